//! Users, groups and ports: rules and ranges.

use palisade_api::settings::{self, Range};
use serde_json::json;

use super::{GroupRule, GroupStrategy, IdRange, PortRange, UserRule, UserStrategy, findings::Findings};
use crate::note::{FieldDefault, Kind};

/// The user, and whether `runAsNonRoot` must be set.
pub(super) fn user(strategy: &UserStrategy, found: &mut Findings) -> (Option<settings::UserRules>, bool) {
    let path = "spec.runAsUser";
    let rules = |rule, ranges| Some(settings::UserRules { rule, ranges });
    match strategy.rule {
        UserRule::RunAsAny => {
            without_effect(path, &strategy.ranges, found);
            (None, false)
        }
        UserRule::MustRunAs => {
            let ranges = id_ranges(path, &strategy.ranges, found);
            if let Some(first) = strategy.ranges.first() {
                found.defaulted(
                    Kind::Defaulted,
                    path,
                    format!("pods without a user get {}, as their containers did before", first.min),
                    FieldDefault::pod(&["securityContext", "runAsUser"], first.min),
                );
            }
            (rules(settings::UserRule::MustRunAs, ranges), false)
        }
        UserRule::MustRunAsNonRoot => {
            without_effect(path, &strategy.ranges, found);
            found.defaulted(
                Kind::Defaulted,
                path,
                "pods without runAsNonRoot, and without root as their user, get runAsNonRoot: true; before, \
                 containers without runAsUser got it",
                FieldDefault::pod(&["securityContext", "runAsNonRoot"], true),
            );
            (rules(settings::UserRule::MustRunAsNonRoot, vec![]), true)
        }
    }
}

/// The group of processes.
pub(super) fn primary_group(strategy: &GroupStrategy, found: &mut Findings) -> Option<settings::GroupRules> {
    let path = "spec.runAsGroup";
    let rule = match strategy.rule {
        GroupRule::RunAsAny => {
            without_effect(path, &strategy.ranges, found);
            return None;
        }
        GroupRule::MayRunAs => settings::GroupRule::MayRunAs,
        GroupRule::MustRunAs => {
            if let Some(first) = strategy.ranges.first() {
                found.defaulted(
                    Kind::Defaulted,
                    path,
                    format!("pods without a group get {}, as their containers did before", first.min),
                    FieldDefault::pod(&["securityContext", "runAsGroup"], first.min),
                );
            }
            settings::GroupRule::MustRunAs
        }
    };
    Some(settings::GroupRules { rule, ranges: id_ranges(path, &strategy.ranges, found) })
}

/// A group that a pod has in addition to its primary one.
pub(super) fn extra_group(
    field: &'static str,
    strategy: &GroupStrategy,
    found: &mut Findings,
) -> Option<settings::GroupRules> {
    let path = format!("spec.{field}");
    let rule = match strategy.rule {
        GroupRule::RunAsAny => {
            without_effect(&path, &strategy.ranges, found);
            return None;
        }
        GroupRule::MayRunAs => settings::GroupRule::MayRunAs,
        GroupRule::MustRunAs => settings::GroupRule::MustRunAs,
    };
    let ranges = id_ranges(&path, &strategy.ranges, found);
    if let Some(first) = strategy.ranges.first().filter(|_| rule == settings::GroupRule::MustRunAs) {
        let value = if field == "fsGroup" { json!(first.min) } else { json!([first.min]) };
        found.defaulted(
            Kind::Defaulted,
            &path,
            format!(
                "pods without one get {}, as before. If the value is only the beginning of a range, change the rule \
                 to MayRunAs: then they get none",
                first.min
            ),
            FieldDefault::pod(&["securityContext", field], value),
        );
    }
    Some(settings::GroupRules { rule, ranges })
}

fn without_effect(path: &str, ranges: &[IdRange], found: &mut Findings) {
    if !ranges.is_empty() {
        found.note(Kind::Note, format!("{path}.ranges"), "had no effect with this rule, and is omitted");
    }
}

fn id_ranges(path: &str, ranges: &[IdRange], found: &mut Findings) -> Vec<Range> {
    if ranges.is_empty() {
        found.mistake(
            path,
            "has no ranges, so the policy admitted no pod",
            "add the intended ranges, or remove this policy",
        );
    }
    ranges
        .iter()
        .enumerate()
        .map(|(index, &IdRange { min, max })| range(format!("{path}.ranges[{index}]"), min, max, found))
        .collect()
}

pub(super) fn ports(ranges: &[PortRange], found: &mut Findings) -> Option<Vec<Range>> {
    let converted = ranges.iter().enumerate().map(|(index, &PortRange { min, max })| {
        range(format!("spec.hostPorts[{index}]"), min.into(), max.into(), found)
    });
    let converted: Vec<_> = converted.collect();
    // Port 0 means no port.
    let all = ranges.iter().any(|range| (0..=1).contains(&range.min) && range.max >= 65535);
    (!all).then_some(converted)
}

fn range(path: String, min: i64, max: i64, found: &mut Findings) -> Range {
    if min < 0 || min > max {
        found.mistake(path, format!("invalid range {min} to {max}"), "min must be at least 0 and at most max");
    }
    Range { min: min.into(), max: max.into() }
}

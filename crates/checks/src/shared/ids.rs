//! Shared code of the four checks of user and group ids.

use super::{defaulted::is_secure, ranges::Ranges};
use crate::{
    Diagnostic, Finding, FindingScope, Integer, Lowering, Settings,
    settings::{GroupRule, GroupRules, Range},
};

/// The highest id that the API server accepts (`runAsUser` and its like are 0 to 2147483647).
pub(crate) const HIGHEST: i64 = 2_147_483_647;

/// The group that is defaulted: the lowest of the first range, where one must be set.
pub(crate) fn demanded_group(settings: &Settings, rules: Option<&GroupRules>) -> Option<Integer> {
    let rules = rules.filter(|rules| rules.rule == GroupRule::MustRunAs && is_secure(settings))?;
    Some(rules.ranges.first()?.min.clone())
}

/// The ranges of a rule that needs some; reports if there are none.
fn lower(cx: &mut Lowering<'_>, path: &str, ranges: &[Range]) -> Ranges {
    if ranges.is_empty() {
        cx.report(
            Diagnostic::new(format!("{path}.ranges"), "must not be empty: no id could match")
                .help("MustRunAs and MayRunAs need at least one range"),
        );
    }
    Ranges::lower(cx, &format!("{path}.ranges"), ranges)
}

/// An id that a container sets, or takes from the pod: `runAsUser`, `runAsGroup`.
pub(crate) fn effective(cx: &mut Lowering<'_>, field: &str, required: bool, path: &str, ranges: &[Range]) -> Finding {
    let ranges = lower(cx, path, ranges);
    let id = format!("c.?securityContext.?{field}.or(variables.podSecurityContext.?{field})");
    let outside = format!("!{}", parenthesised(&ranges.contain(&format!("{id}.value()"))));
    let violated =
        if required { format!("!{id}.hasValue() || {outside}") } else { format!("{id}.hasValue() && {outside}") };
    Finding::new(FindingScope::Containers, violated, says(field, &format!("string({id}.orValue('unset'))"), &ranges))
}

/// The user of containers, and a pod that says root though no container follows it.
pub(crate) fn of_user(cx: &mut Lowering<'_>, required: bool, path: &str, ranges: &[Range]) -> Vec<Finding> {
    let of_containers = effective(cx, "runAsUser", required, path, ranges);
    if ranges.iter().any(|range| range.min == 0.into()) {
        return vec![of_containers];
    }
    let mut unreported = Lowering::new(cx.declared());
    let ranges = Ranges::lower(&mut unreported, path, ranges);
    let of_pod = Finding::new(
        FindingScope::Pod,
        format!(
            "variables.podSecurityContext.?runAsUser.orValue(1) == 0 && !{} \
             && variables.containers.all(c, c.?securityContext.?runAsUser.hasValue())",
            parenthesised(&ranges.contain("0"))
        ),
        says("runAsUser", "'0'", &ranges),
    );
    vec![of_pod, of_containers]
}

/// An id that only the pod sets: `fsGroup`.
pub(crate) fn of_pod(cx: &mut Lowering<'_>, field: &str, required: bool, path: &str, ranges: &[Range]) -> Finding {
    let ranges = lower(cx, path, ranges);
    let id = format!("variables.podSecurityContext.?{field}");
    let outside = format!("!{}", parenthesised(&ranges.contain(&format!("{id}.value()"))));
    let violated =
        if required { format!("!{id}.hasValue() || {outside}") } else { format!("{id}.hasValue() && {outside}") };
    Finding::new(FindingScope::Pod, violated, says(field, &format!("string({id}.orValue('unset'))"), &ranges))
}

/// Ids that only the pod sets, as a list: `supplementalGroups`.
pub(crate) fn of_pod_list(cx: &mut Lowering<'_>, field: &str, required: bool, path: &str, ranges: &[Range]) -> Finding {
    let ranges = lower(cx, path, ranges);
    let ids = format!("variables.podSecurityContext.?{field}.orValue([])");
    let outside = format!("{ids}.exists(g, !{})", parenthesised(&ranges.contain("g")));
    let violated = if required { format!("{ids}.size() == 0 || {outside}") } else { outside };
    let found = format!("({ids}.size() == 0 ? 'unset' : {ids}.map(g, string(g)).join(', '))");
    Finding::new(FindingScope::Pod, violated, says(field, &found, &ranges))
}

fn says(field: &str, found: &str, ranges: &Ranges) -> String {
    format!("'securityContext.{field} is ' + {found} + ', must be ' + {}", ranges.says())
}

fn parenthesised(cel: &str) -> String {
    if cel.starts_with('(') { cel.to_owned() } else { format!("({cel})") }
}

//! What the four checks of user and group ids share.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Settings,
    mutation::is_secure,
    ranges::{Range, Ranges},
};
use crate::{Diagnostic, Finding, Integer, Lowering, Over};

/// How the user of a container is restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UserRule {
    /// The user must be set and lie in one of the ranges.
    MustRunAs,
    /// The user must lie in one of the ranges where it is set.
    MayRunAs,
    /// The user must not be set to 0.
    MustRunAsNonRoot,
    /// Anything.
    RunAsAny,
}

/// How a group is restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GroupRule {
    /// The group must be set and lie in one of the ranges.
    MustRunAs,
    /// The group must lie in one of the ranges where it is set.
    MayRunAs,
    /// Anything.
    RunAsAny,
}

/// A restriction of users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.rule in ['MustRunAs', 'MayRunAs'] == (has(self.ranges) && self.ranges.size() > 0)",
    "MustRunAs and MayRunAs need at least one range, the other rules take none"))]
pub struct UserRules {
    /// MustRunAs: set and in a range; MayRunAs: in a range where set; MustRunAsNonRoot: not set to 0;
    /// RunAsAny: anything.
    pub rule: UserRule,
    /// The allowed user ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub ranges: Vec<Range>,
}

/// A restriction of groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.rule in ['MustRunAs', 'MayRunAs'] == (has(self.ranges) && self.ranges.size() > 0)",
    "MustRunAs and MayRunAs need at least one range, RunAsAny takes none"))]
pub struct GroupRules {
    /// MustRunAs: set and in a range; MayRunAs: in a range where set; RunAsAny: anything.
    pub rule: GroupRule,
    /// The allowed group ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub ranges: Vec<Range>,
}

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
            Diagnostic::new(format!("{path}.ranges"), "is empty, so no id would do")
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
    Finding::new(Over::Containers, violated, says(field, &format!("string({id}.orValue('unset'))"), &ranges))
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
        Over::Pod,
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
    Finding::new(Over::Pod, violated, says(field, &format!("string({id}.orValue('unset'))"), &ranges))
}

/// Ids that only the pod sets, as a list: `supplementalGroups`.
pub(crate) fn of_pod_list(cx: &mut Lowering<'_>, field: &str, required: bool, path: &str, ranges: &[Range]) -> Finding {
    let ranges = lower(cx, path, ranges);
    let ids = format!("variables.podSecurityContext.?{field}.orValue([])");
    let outside = format!("{ids}.exists(g, !{})", parenthesised(&ranges.contain("g")));
    let violated = if required { format!("{ids}.size() == 0 || {outside}") } else { outside };
    let found = format!("({ids}.size() == 0 ? 'unset' : {ids}.map(g, string(g)).join(', '))");
    Finding::new(Over::Pod, violated, says(field, &found, &ranges))
}

fn says(field: &str, found: &str, ranges: &Ranges) -> String {
    format!("'securityContext.{field} is ' + {found} + ', must be ' + {}", ranges.says())
}

fn parenthesised(cel: &str) -> String {
    if cel.starts_with('(') { cel.to_owned() } else { format!("({cel})") }
}

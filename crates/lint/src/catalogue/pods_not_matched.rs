//! Pod templates are checked, but not pods.

use std::collections::BTreeSet;

use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
    policy::{Policy, ResourceRule, Role},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "pods-not-matched",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "Pod templates are checked, but not pods",
    why: "\
The policy checks a security-relevant field of pod templates, but no policy in these files denies pods for that field. A
user can bypass it with a pod, or with a workload of another kind. Match `pods`, too. Matching workloads then only makes the
denial visible earlier.

The finding is a note if pods are matched and some of the usual kinds of workloads are not: their pods are denied only when
a controller creates them. The rule ignores policies on fields such as probes or topology spread.",
    bad: include_str!("pods_not_matched.bad.yaml"),
    good: include_str!("pods_not_matched.good.yaml"),
};

/// The kinds with pod templates, and whether most users know them.
const WORKLOADS: [(&str, &str, bool); 7] = [
    ("batch", "cronjobs", true),
    ("apps", "daemonsets", true),
    ("apps", "deployments", true),
    ("batch", "jobs", true),
    ("apps", "replicasets", false),
    ("", "replicationcontrollers", false),
    ("apps", "statefulsets", true),
];

/// Fields of pods and containers with which a pod gains something.
const FIELDS: [&str; 22] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "automountServiceAccountToken",
    "capabilities",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPath",
    "hostPort",
    "hostUsers",
    "image",
    "nodeName",
    "priorityClassName",
    "privileged",
    "procMount",
    "runAsNonRoot",
    "runAsUser",
    "runtimeClassName",
    "seccompProfile",
    "securityContext",
    "serviceAccountName",
    "sysctls",
];

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    // A policy that only warns about pods keeps no user from creating them.
    let denying = || cluster.policies.iter().filter(|policy| super::denies(cluster, policy));
    let on_pods: Vec<_> = denying().filter(|policy| matches(policy, "", "pods")).collect();
    for policy in denying() {
        let (fields, of_template) = read(policy);
        let (judged, others): (Vec<_>, Vec<_>) =
            WORKLOADS.into_iter().partition(|(group, plural, _)| matches(policy, group, plural));
        if fields.is_empty() || !of_template || judged.is_empty() {
            continue;
        }
        let names =
            |of: &[(&str, &'static str, bool)]| of.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ");
        let usual: Vec<_> = others.iter().copied().filter(|(.., usual)| *usual).collect();
        let of_fields = fields.iter().copied().collect::<Vec<_>>().join(", ");
        let covered = on_pods.iter().any(|one| read(one).0.is_superset(&fields));
        let (message, help, severity) = if !covered {
            let more = if others.is_empty() { String::new() } else { format!(", {}", names(&others)) };
            let message = format!("{of_fields} of {} is checked, but not of pods{more}", names(&judged));
            (message, "match pods, too", Severity::Warning)
        } else if !usual.is_empty() && matches(policy, "", "pods") {
            let message =
                format!("{of_fields} of pods and {} is checked, but not of {}", names(&judged), names(&usual));
            (message, "match them, too: their users then see the denial", Severity::Info)
        } else {
            continue;
        };
        found.put(
            &policy.item,
            Found {
                path: "spec.matchConstraints.resourceRules".to_owned(),
                message,
                help: Some(help.to_owned()),
                severity: Some(severity),
                ..Found::default()
            },
        );
    }
}

/// Whether a policy matches the creation of any object of a resource.
fn matches(policy: &Policy<'_>, group: &str, plural: &str) -> bool {
    let covers = |rule: &ResourceRule| rule.on("CREATE") && rule.names.is_empty() && rule.covers(group, plural);
    policy.rules().iter().any(covers)
}

/// Which of [`FIELDS`] a policy reads to decide, and whether it reads a template.
fn read<'p>(policy: &'p Policy<'_>) -> (BTreeSet<&'p str>, bool) {
    let decides = |role: &Role| matches!(role, Role::Validation | Role::Variable(_));
    let nodes = policy.nodes().filter(|(expression, _)| decides(&expression.role));
    let names: BTreeSet<_> = nodes.filter_map(|(_, node)| tree::field(node)).collect();
    let of_template = names.contains("template");
    (names.into_iter().filter(|name| FIELDS.contains(name)).collect(), of_template)
}

//! A function or macro that this version of Kubernetes does not have.

use std::collections::BTreeSet;

use palisade_admission::create::{FieldError, Refused, create};
use palisade_cel::Minor;
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, item::Item};

pub(super) static RULE: Rule = Rule {
    id: "newer-function",
    severity: Severity::Error,
    category: Category::Rejected,
    precedes_extension: true,
    title: "A function or macro that this version of Kubernetes does not have",
    why: "\
The expression uses a function or macro that only a later version of Kubernetes accepts in a new policy. In new policies, an
API server accepts only functions that the previous minor version also has, so that the cluster can be rolled back. A
function that was added in 1.34 can be used from 1.35 on. Set the target version with `--kube-version`. Upgrade, or rewrite
the expression.",
    bad: include_str!("newer_function.bad.yaml"),
    good: include_str!("newer_function.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, said) in &cluster.said {
        let Err(Refused::Status(status)) = said else { continue };
        let introduced_in = IntroducedIn::of(cluster, item, &status.causes);
        for cause in &status.causes {
            if let Some(minor) = introduced_in.accepts(cause) {
                let message =
                    format!("{} needs Kubernetes {minor}, and {} does not accept it", cause.field, cluster.minor);
                found.add(item, &cause.field, message);
            }
        }
    }
}

/// The fields of an object that later versions reject.
pub(super) struct IntroducedIn(Vec<(Minor, BTreeSet<String>)>);

impl IntroducedIn {
    /// Validates the object with them, if any of the errors is in an expression.
    pub(super) fn of(cluster: &Cluster<'_>, item: &Item<'_>, causes: &[FieldError]) -> Self {
        let any = causes.iter().any(is_in_expression);
        let minors = Minor::ALL.into_iter().filter(|minor| any && *minor > cluster.minor);
        let refused = |minor| match create(minor, &item.json, None) {
            Err(Refused::Status(status)) => status.causes.into_iter().map(|cause| cause.field).collect(),
            Ok(_) | Err(Refused::NoVerdict(_)) => BTreeSet::new(),
        };
        Self(minors.map(|minor| (minor, refused(minor))).collect())
    }

    /// The first version that accepts a field, if there is one.
    pub(super) fn accepts(&self, cause: &FieldError) -> Option<Minor> {
        let accepting = self.0.iter().find(|(_, refused)| !refused.contains(&cause.field));
        accepting.filter(|_| is_in_expression(cause)).map(|(minor, _)| *minor)
    }
}

fn is_in_expression(cause: &FieldError) -> bool {
    cause.body.contains("compilation failed")
}

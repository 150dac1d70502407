//! A function or macro that this version of Kubernetes does not have.

use palisade_harness::create::{FieldError, Refused, create};
use palisade_manifest::Severity;

use crate::cluster::{Cluster, Item};
use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "newer-function",
    severity: Severity::Error,
    category: Category::Rejected,
    title: "A function or macro that this version of Kubernetes does not have",
    why: "\
The expression uses something that only a later version of Kubernetes takes in a new policy. An API server takes in new
policies what its predecessor has as well, so that it can be rolled back: what came with 1.34 can be used from 1.35 on.
`--kube-version` says which version is meant. Upgrade, or write it without.",
    bad: include_str!("newer_function.bad.yaml"),
    good: include_str!("newer_function.good.yaml"),
    check: |cluster, found| {
        for (item, said) in &cluster.said {
            let Err(Refused::Status(status)) = said else { continue };
            for cause in &status.causes {
                if let Some(minor) = since(cluster, item, cause) {
                    let message = format!(
                        "{} uses what Kubernetes takes from 1.{minor} on, not in 1.{}",
                        cause.field, cluster.minor
                    );
                    found.add(item, &cause.field, message);
                }
            }
        }
    },
};

/// The version from which on a mistake is none, if there is one.
pub(super) fn since(cluster: &Cluster<'_>, item: &Item<'_>, cause: &FieldError) -> Option<u8> {
    if !cause.body.contains("compilation failed") {
        return None;
    }
    (cluster.minor + 1..=NEWEST).find(|minor| match create(*minor, &item.json, None) {
        Err(Refused::Status(status)) => status.causes.iter().all(|other| other.field != cause.field),
        Ok(_) | Err(Refused::NoVerdict(_)) => true,
    })
}

/// The newest version that is known.
const NEWEST: u8 = 37;

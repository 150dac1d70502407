//! Findings by profile, namespace and workload: the contents of reports and of the status. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use palisade_api::{
    Enforcement, MAX_NOT_JUDGED, MAX_VIOLATIONS, NotJudged, ReportedViolation, ScanStatus, Stage,
    ToolSecurityReportSpec,
};
use palisade_kube_json::owners::{Owners, Reference};

use super::pass::Found;
use crate::evaluation::Evaluation;

/// The longest text about a violation, in characters.
const MAX_MESSAGE_CHARS: usize = 500;
/// The most checks that are counted apart.
const MAX_CHECKS: usize = 256;

/// Findings of one profile in one namespace.
#[derive(Debug, Default)]
pub struct Tally {
    /// Violations by kind and name of the workload, and by check.
    violations: BTreeMap<(String, String), Violations>,
    /// Workloads without a verdict, by kind and name.
    not_judged: BTreeMap<String, Unjudged>,
}

/// How one workload violates one check.
#[derive(Debug)]
pub struct Violations {
    pub workload: Reference,
    /// The message about the first object.
    pub message: String,
    /// How many objects of the workload violate the check.
    pub objects: i64,
}

/// A workload that could not be evaluated.
#[derive(Debug)]
pub struct Unjudged {
    pub workload: Reference,
    /// Why, for the first object.
    pub message: String,
}

/// Tallies by profile and namespace.
pub type Tallies = BTreeMap<(String, String), Tally>;

/// Counts the findings. Each object of a workload counts for the topmost known workload.
pub fn count(found: &[Found], owners: &Owners) -> Tallies {
    let mut tallies = Tallies::new();
    for Found { namespace, object, owner, outcomes } in found {
        let workload = owners.workload(object, owner.as_ref());
        for (profile, evaluation) in &outcomes.evaluations {
            let tally = tallies.entry((profile.clone(), namespace.clone())).or_default();
            tally.add(workload, evaluation);
        }
    }
    tallies
}

impl Tally {
    fn add(&mut self, workload: &Reference, evaluation: &Evaluation) {
        match evaluation {
            Evaluation::Complies => {}
            Evaluation::Unknown(why) => {
                let first = || Unjudged { workload: workload.clone(), message: short(why) };
                self.not_judged.entry(workload.to_string()).or_insert_with(first);
            }
            Evaluation::Violates(violations) => {
                // Several containers may violate one check: it is one object.
                let mut seen = BTreeSet::new();
                for violation in violations.iter().filter(|violation| seen.insert(&violation.check)) {
                    let key = (workload.to_string(), violation.check.clone());
                    let message = || short(&violation.message);
                    let first = || Violations { workload: workload.clone(), message: message(), objects: 0 };
                    self.violations.entry(key).or_insert_with(first).objects += 1;
                }
            }
        }
    }

    /// The violations with their checks, in the order of the workloads' kinds and names.
    pub fn violations(&self) -> impl ExactSizeIterator<Item = (&str, &Violations)> {
        self.violations.iter().map(|((_, check), violations)| (check.as_str(), violations))
    }

    /// Workloads without a verdict, in the same order.
    pub fn not_judged(&self) -> impl ExactSizeIterator<Item = &Unjudged> {
        self.not_judged.values()
    }

    fn workloads(&self) -> BTreeSet<&str> {
        self.violations.keys().map(|(workload, _)| workload.as_str()).collect()
    }

    fn checks(&self) -> BTreeMap<String, i64> {
        let mut checks = BTreeMap::new();
        for (_, check) in self.violations.keys() {
            *checks.entry(check.clone()).or_default() += 1;
        }
        checks
    }

    /// As a report on a namespace that is at a stage.
    pub fn report(&self, stage: Stage, enforcement: &Enforcement, observed_time: Time) -> ToolSecurityReportSpec {
        let violations = self.violations.iter().take(MAX_VIOLATIONS);
        let violations = violations.map(|((workload, check), Violations { message, objects, .. })| ReportedViolation {
            workload: workload.clone(),
            check: check.clone(),
            message: message.clone(),
            objects: *objects,
            stage: enforcement.checks.get(check).copied(),
        });
        let not_judged = self.not_judged.iter().take(MAX_NOT_JUDGED);
        let first_not_judged =
            not_judged.map(|(workload, one)| NotJudged { workload: workload.clone(), message: one.message.clone() });
        ToolSecurityReportSpec {
            stage,
            observed_time,
            workloads: number(self.workloads().len()),
            checks: self.checks().into_iter().take(MAX_CHECKS).collect(),
            violations: violations.collect(),
            not_judged: number(self.not_judged.len()),
            first_not_judged: first_not_judged.collect(),
        }
    }
}

pub fn total<'a>(of_profile: impl Iterator<Item = &'a Tally>) -> ScanStatus {
    let mut total = ScanStatus::default();
    for tally in of_profile {
        let workloads = number(tally.workloads().len());
        total.workloads += workloads;
        total.namespaces += i64::from(workloads > 0);
        total.not_judged += number(tally.not_judged.len());
        for (check, count) in tally.checks() {
            *total.checks.entry(check).or_default() += count;
        }
    }
    total.checks = total.checks.into_iter().take(MAX_CHECKS).collect();
    total
}

fn short(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use palisade_gate::Violation;
    use serde_json::json;

    use super::{super::pass::Outcomes, *};

    fn violates(checks: &[&str]) -> Evaluation {
        let violation = |check: &&str| Violation { check: (*check).to_owned(), message: format!("{check} is wrong") };
        Evaluation::Violates(checks.iter().map(violation).collect())
    }

    fn found(namespace: &str, kind: &'static str, name: &str, owner: Option<&str>, evaluation: Evaluation) -> Found {
        let object = |owner: &str| json!({"metadata": {"ownerReferences": [{"uid": owner, "kind": "ReplicaSet", "name": owner, "controller": true}]}});
        Found {
            namespace: namespace.to_owned(),
            object: Reference::to(kind, &json!({"metadata": {"name": name}})),
            owner: owner.and_then(|owner| Reference::to_controller(&object(owner))),
            outcomes: Arc::new(Outcomes { evaluations: vec![("tools".to_owned(), evaluation)], ..Outcomes::default() }),
        }
    }

    fn at_zero() -> Time {
        Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn deployment_and_its_pods_are_reported_once_per_check() {
        let mut owners = Owners::default();
        owners.learn(&json!({"metadata": {"uid": "web-1", "ownerReferences": [{"uid": "d", "kind": "Deployment", "name": "web", "controller": true}]}}));
        let mut all = vec![found("a", "Deployment", "web", None, violates(&["privileged"]))];
        for pod in ["web-1-a", "web-1-b"] {
            all.push(found("a", "Pod", pod, Some("web-1"), violates(&["privileged", "privileged", "hostPorts"])));
        }
        all.push(found("a", "Pod", "single", None, violates(&["hostPorts"])));
        all.push(found("b", "Pod", "odd", None, Evaluation::Unknown("too large".to_owned())));
        let tallies = count(&all, &owners);
        let a = tallies[&("tools".to_owned(), "a".to_owned())].report(Stage::Warn, &Enforcement::default(), at_zero());
        assert_eq!((a.workloads, a.not_judged), (2, 0));
        assert_eq!(a.checks, [("hostPorts".to_owned(), 2), ("privileged".to_owned(), 1)].into());
        let lines: Vec<_> =
            a.violations.iter().map(|one| (one.workload.as_str(), one.check.as_str(), one.objects)).collect();
        assert_eq!(
            lines,
            [("Deployment/web", "hostPorts", 2), ("Deployment/web", "privileged", 3), ("Pod/single", "hostPorts", 1)]
        );
        let b = tallies[&("tools".to_owned(), "b".to_owned())].report(Stage::Deny, &Enforcement::default(), at_zero());
        assert_eq!((b.workloads, b.not_judged, b.first_not_judged[0].workload.as_str()), (0, 1, "Pod/odd"));
        let total = total(tallies.values());
        assert_eq!((total.workloads, total.namespaces, total.not_judged), (2, 1, 1));
        assert_eq!(total.checks, a.checks);
    }

    #[test]
    fn a_report_names_the_first_violations_and_counts_all() {
        let all: Vec<_> =
            (0..30).map(|n| found("a", "Pod", &format!("p-{n:02}"), None, violates(&["hostPorts"]))).collect();
        let tallies = count(&all, &Owners::default());
        let report = tallies.values().next().expect("one").report(Stage::Deny, &Enforcement::default(), at_zero());
        assert_eq!((report.workloads, report.violations.len()), (30, MAX_VIOLATIONS));
        assert_eq!(report.violations[0].workload, "Pod/p-00");
    }
}

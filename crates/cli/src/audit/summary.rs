//! The counts of audit events, with limited memory: names come from requests, also from denied ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::{
    events::{Action, Event, Finding, Findings},
    output,
    report::harmless,
};

/// The maximum number of checks, and of profiles, with separate counts. Text in a message may look like a check.
const MAX_CHECKS: usize = 1_000;
/// The maximum number of namespaces, and of workloads, with separate counts.
const MAX_NAMES: usize = 100_000;
/// The maximum number of namespaces that are distinguished, for all checks together.
const MAX_PLACES: usize = 1_000_000;
/// The name of the other checks.
const OTHER: &str = "(other)";

/// The events to count.
#[derive(Debug, Default, clap::Args)]
pub struct Filter {
    /// Only requests that this profile denied, warned or audited.
    #[arg(long = "profile-name", value_name = "NAME")]
    pub profile: Option<String>,
    /// Only in this namespace.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Only requests from this time on, for example 2026-11-24T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = crate::options::time)]
    pub since: Option<Timestamp>,
}

/// The counts.
#[derive(Debug, Default)]
pub struct Summary {
    /// The number of events.
    events: u64,
    dry_runs: u64,
    /// Requests that other policies denied.
    others: u64,
    /// Events that look like answers of a policy, but have no decision that authorization allowed the request.
    undecided: u64,
    requests: BTreeMap<(String, Action), u64>,
    checks: BTreeMap<(String, Action, String), Check>,
    /// The number of namespaces of all checks together.
    places: usize,
    namespaces: Names,
    workloads: Names,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// The requests that violate one check.
#[derive(Debug, Default)]
struct Check {
    requests: u64,
    /// Digests of their names.
    namespaces: BTreeSet<u64>,
}

/// Requests by profile, action and a name.
#[derive(Debug, Default)]
struct Names {
    counts: BTreeMap<(String, Action, String), u64>,
    /// Requests of names without a separate count.
    forgotten: u64,
}

impl Names {
    /// Counts a request. Above the limit, the half of the names with the fewest requests is removed.
    fn add(&mut self, key: (String, Action, String), most: usize) {
        if self.counts.len() >= most && !self.counts.contains_key(&key) {
            let mut counts: Vec<_> = self.counts.values().copied().collect();
            counts.sort_unstable();
            let few = counts[counts.len() / 2];
            let mut excess = counts.len() / 2;
            let forgotten = &mut self.forgotten;
            self.counts.retain(|_, count| {
                let goes = excess > 0 && *count <= few;
                excess -= usize::from(goes);
                *forgotten += if goes { *count } else { 0 };
                !goes
            });
        }
        *self.counts.entry(key).or_default() += 1;
    }
}

impl Summary {
    /// Counts an event if the filter matches.
    pub fn add(&mut self, filter: &Filter, event: &Event) {
        if !event.is_answered() {
            return;
        }
        let at = event.request_received_timestamp;
        let early = filter.since.is_some_and(|since| at.is_none_or(|at| at < since));
        let elsewhere = filter.namespace.as_ref().is_some_and(|name| *name != event.object_ref.namespace);
        if early || elsewhere {
            return;
        }
        self.events += 1;
        self.from = [self.from, at].into_iter().flatten().min();
        self.to = self.to.max(at);
        let Findings { of_profiles: findings, of_others: others, undecided } = event.findings();
        self.undecided += u64::from(undecided);
        if event.is_dry_run() {
            self.dry_runs += u64::from(!findings.is_empty());
            return;
        }
        self.others += u64::from(others);
        let wanted = |finding: &Finding| filter.profile.as_ref().is_none_or(|name| *name == finding.profile);
        for Finding { profile, action, checks } in findings.into_iter().filter(wanted) {
            let namespace = event.object_ref.namespace.clone();
            *self.requests.entry((profile.clone(), action)).or_default() += 1;
            for check in checks {
                self.add_check((profile.clone(), action, check), &namespace);
            }
            let workload = format!("{namespace} {}", event.workload());
            self.namespaces.add((profile.clone(), action, namespace), MAX_NAMES);
            self.workloads.add((profile, action, workload), MAX_NAMES);
        }
    }

    fn add_check(&mut self, mut key: (String, Action, String), namespace: &str) {
        if self.checks.len() >= MAX_CHECKS && !self.checks.contains_key(&key) {
            OTHER.clone_into(&mut key.2);
        }
        let check = self.checks.entry(key).or_default();
        check.requests += 1;
        let mut hasher = DefaultHasher::new();
        namespace.hash(&mut hasher);
        if self.places < MAX_PLACES {
            self.places += usize::from(check.namespaces.insert(hasher.finish()));
        }
    }

    /// A table: counts by check, and the namespaces and workloads with the highest counts.
    pub fn table(&self, top: usize) -> String {
        let span = match (self.from, self.to) {
            (Some(from), Some(to)) => format!(" from {from} to {to}"),
            _ => String::new(),
        };
        let mut text = format!("{} requests in the log{span}\n", self.events);
        if self.requests.is_empty() {
            text.push_str("no profile denied, warned or audited one of them\n");
        } else {
            let head = ["PROFILE", "ACTION", "CHECK", "REQUESTS", "NAMESPACES"].map(str::to_owned).to_vec();
            let totals = self.requests.iter().map(|((profile, action), count)| {
                vec![
                    profile.clone(),
                    format!("{action:?}"),
                    "(any)".to_owned(),
                    count.to_string(),
                    self.spread(profile, *action),
                ]
            });
            let checks = ordered(&self.checks, |check| check.requests);
            let lines = checks.into_iter().map(|((profile, action, check), Check { requests, namespaces })| {
                let (requests, namespaces) = (requests.to_string(), namespaces.len().to_string());
                vec![profile.clone(), format!("{action:?}"), check.clone(), requests, namespaces]
            });
            let rows: Vec<_> = [head].into_iter().chain(totals).chain(lines).collect();
            let _ = write!(text, "\n{}", output::table(&rows));
            for (title, names) in [("NAMESPACE", &self.namespaces), ("WORKLOAD", &self.workloads)] {
                let head = ["PROFILE", "ACTION", title, "REQUESTS"].map(str::to_owned).to_vec();
                let all = ordered(&names.counts, |count| *count);
                let lines = all.iter().take(top).map(|((profile, action, name), count)| {
                    vec![profile.clone(), format!("{action:?}"), name.clone(), count.to_string()]
                });
                let rows: Vec<_> = [head].into_iter().chain(lines).collect();
                let _ = write!(text, "\n{}", output::table(&rows));
                if all.len() > top {
                    let _ = writeln!(text, "and {} more", all.len() - top);
                }
                if names.forgotten > 0 {
                    let _ = writeln!(text, "and {} requests of others with fewer requests", names.forgotten);
                }
            }
        }
        for (count, what) in [
            (self.dry_runs, "denied requests were dry runs and are not counted"),
            (self.others, "requests were denied by other admission policies"),
            (
                self.undecided,
                "events look like answers of a policy, but have no annotation authorization.k8s.io/decision, and are \
                 not \
                 counted: API servers add it to all requests that reach policies",
            ),
        ] {
            if count > 0 {
                let _ = writeln!(text, "\n{count} {what}");
            }
        }
        // Names come from denied requests.
        text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
    }

    /// The number of namespaces.
    fn spread(&self, profile: &str, action: Action) -> String {
        let of = |(found, one, _): &&(String, Action, String)| found == profile && *one == action;
        self.namespaces.counts.keys().filter(of).count().to_string()
    }

    /// The same as one object.
    pub fn json(&self, top: usize) -> Json {
        let checks = ordered(&self.checks, |check| check.requests);
        let checks: Vec<_> = checks
            .into_iter()
            .map(|((profile, action, check), counted)| {
                json!({"profile": profile, "action": action, "check": check, "requests": counted.requests,
                    "namespaces": counted.namespaces.len()})
            })
            .collect();
        let named = |names: &Names, key: &str| -> Vec<Json> {
            let all = ordered(&names.counts, |count| *count).into_iter().take(top);
            all.map(|((profile, action, name), requests)| {
                json!({"profile": profile, "action": action, key: name, "requests": requests})
            })
            .collect()
        };
        let totals: Vec<_> = self
            .requests
            .iter()
            .map(|((profile, action), requests)| json!({"profile": profile, "action": action, "requests": requests}))
            .collect();
        json!({
            "events": self.events, "from": self.from, "to": self.to, "dryRuns": self.dry_runs,
            "deniedByOtherPolicies": self.others, "withoutDecision": self.undecided, "totals": totals, "checks": checks,
            "namespaces": named(&self.namespaces, "namespace"), "workloads": named(&self.workloads, "workload"),
        })
    }
}

/// The entries with the highest counts first.
fn ordered<K: Ord, V>(counts: &BTreeMap<K, V>, count: impl Fn(&V) -> u64) -> Vec<(&K, &V)> {
    let mut all: Vec<_> = counts.iter().collect();
    all.sort_by(|one, other| count(other.1).cmp(&count(one.1)).then_with(|| one.0.cmp(other.0)));
    all
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;

    use super::*;
    use crate::events::{DECISION, FAILURE};

    fn denied(namespace: &str, checks: &str, uri: &str) -> Json {
        json!({
            "stage": "ResponseComplete", "requestURI": uri, "requestReceivedTimestamp": "2026-01-02T00:00:00.123456Z",
            "objectRef": {"resource": "pods", "namespace": namespace}, "annotations": {DECISION: "allow"},
            "requestObject": {"metadata": {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": true}]}},
            "responseStatus": {"code": 403, "message": format!(
                "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'palisade-tools-pods' with binding 'palisade-tools-pods' \
                 denied request: 2 violations of ToolSecurityProfile tools: {checks}"
            )},
        })
    }

    fn summary(events: &[Json], filter: &Filter) -> Summary {
        let mut summary = Summary::default();
        for event in events {
            summary.add(filter, &Event::deserialize(event).expect("an event"));
        }
        summary
    }

    fn events() -> Vec<Json> {
        let noted = json!([{"message": "1 violation of ToolSecurityProfile tools: [hostPorts] x", "policy": "palisade-tools-pods",
            "binding": "palisade-tools-pods-warn", "validationActions": ["Warn", "Audit"]}]);
        let foreign = json!([{"message": "no", "policy": "other", "validationActions": ["Audit"]}]);
        vec![
            denied("a", "[privileged] container \"a\"; [runAsUser] container \"a\": is 0", "/api/v1/namespaces/a/pods"),
            denied("a", "[privileged] container \"a\": [0] is", "/api/v1/namespaces/a/pods"),
            denied("b", "[privileged] container \"a\"", "/api/v1/namespaces/b/pods"),
            denied("palisade-probe", "[privileged] x", "/api/v1/namespaces/palisade-probe/pods?dryRun=All"),
            json!({"stage": "ResponseComplete", "objectRef": {"resource": "pods", "namespace": "a", "name": "p"},
                "annotations": {FAILURE: noted.to_string(), DECISION: "allow"}, "requestReceivedTimestamp": "2026-01-01T00:00:00Z"}),
            json!({"stage": "ResponseComplete", "annotations": {FAILURE: foreign.to_string(), DECISION: "allow"}}),
            json!({"stage": "RequestReceived"}),
            json!({"stage": "ResponseComplete", "objectRef": {"resource": "pods"}, "annotations": {DECISION: "allow"},
                "responseStatus": {"code": 422, "message":
                    "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: no"}}),
        ]
    }

    #[test]
    fn requests_are_counted_by_profile_check_and_namespace() {
        let expected = "\
7 requests in the log from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00.123456Z

PROFILE   ACTION   CHECK        REQUESTS   NAMESPACES
tools     Denied   (any)        3          2
tools     Warned   (any)        1          1
tools     Denied   privileged   3          2
tools     Denied   runAsUser    1          1
tools     Warned   hostPorts    1          1

PROFILE   ACTION   NAMESPACE   REQUESTS
tools     Denied   a           2
and 2 more

PROFILE   ACTION   WORKLOAD             REQUESTS
tools     Denied   a ReplicaSet/web-1   2
and 2 more

1 denied requests were dry runs and are not counted

1 requests were denied by other admission policies
";
        let all = summary(&events(), &Filter::default());
        assert_eq!(all.table(1), expected);
        assert_eq!(all.json(5)["workloads"][2]["workload"], "a pods/p");
    }

    /// The request that forges a denial in kube-system: no right is needed to send it.
    #[test]
    fn an_answer_of_authorization_that_quotes_a_denial_is_not_counted() {
        let name = "x\" is forbidden: ValidatingAdmissionPolicy 'palisade-live-pods' with binding 'palisade-live-pods' denied \
                    request: 1 violation of ToolSecurityProfile live: [privileged] container \"app\": y";
        let forged = |decision: &Json| {
            json!({
                "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "1",
                "stage": "ResponseComplete", "requestURI": "/x", "verb": "update", "user": {"username": "tenant"},
                "objectRef": {"resource": "pods", "namespace": "kube-system", "name": name, "apiVersion": "v1"},
                "annotations": decision, "requestReceivedTimestamp": "2026-11-24T00:00:00.000000Z",
                "responseStatus": {"status": "Failure", "reason": "Forbidden", "code": 403, "message": format!(
                    "pods {name:?} is forbidden: User \"tenant\" cannot update resource \"pods\" in API group \"\" in the \
                     namespace \"kube-system\""
                )},
            })
        };
        for decision in [json!({DECISION: "forbid"}), json!({DECISION: "allow"}), json!({})] {
            let all = summary(&[forged(&decision)], &Filter::default());
            let text = all.table(9);
            assert!(text.contains("no profile denied, warned or audited one of them"), "{decision}: {text}");
            assert!(all.others == 0 && all.undecided == 0, "{decision}: {text}");
        }
        let mut real = denied("a", "[privileged] x", "/x");
        real["annotations"] = json!({});
        let all = summary(&[real], &Filter::default());
        let text = all.table(9);
        assert!(text.contains("\n1 events look like answers of a policy, but have no annotation"), "{text}");
        assert!(text.contains("no profile") && all.json(9)["withoutDecision"] == 1, "{text}");
    }

    #[test]
    fn events_are_picked_by_profile_namespace_and_time() {
        let count = |filter: &Filter| summary(&events(), filter).requests.values().sum::<u64>();
        assert_eq!(count(&Filter { namespace: Some("b".to_owned()), ..Filter::default() }), 1);
        assert_eq!(count(&Filter { profile: Some("other".to_owned()), ..Filter::default() }), 0);
        assert_eq!(count(&Filter { since: "2026-01-02T00:00:00Z".parse().ok(), ..Filter::default() }), 3);
        assert!(summary(&[], &Filter::default()).table(1).contains("no profile denied, warned or audited one of them"));
    }

    #[test]
    fn names_beyond_the_bound_are_forgotten_and_those_with_most_requests_stay() {
        let mut names = Names::default();
        let key = |name: String| ("tools".to_owned(), Action::Denied, name);
        for round in 0..100 {
            names.add(key("often".to_owned()), 10);
            names.add(key(format!("once-{round}")), 10);
        }
        assert_eq!(names.counts[&key("often".to_owned())], 100);
        assert!(names.counts.len() <= 10, "{names:?}");
        assert_eq!(names.counts.values().sum::<u64>() + names.forgotten, 200);
    }

    #[test]
    fn texts_that_look_like_checks_are_counted_together_beyond_the_bound() {
        let mut summary = Summary::default();
        for index in 0..2 * MAX_CHECKS {
            summary.add_check(("tools".to_owned(), Action::Denied, format!("c{index}")), "a");
        }
        assert_eq!(summary.checks.len(), MAX_CHECKS + 1);
        assert_eq!(summary.checks[&("tools".to_owned(), Action::Denied, OTHER.to_owned())].requests, 1_000);
    }
}

//! `palisade audit`: who was denied, warned or noted, by which check, as the audit logs of API servers say.

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

use clap::ValueEnum;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::{
    events::{self, Action, Event, Finding},
    output,
    report::{Failure, harmless},
};

const EXAMPLES: &str = "\
Examples:
  palisade audit /var/log/kubernetes/audit
  palisade audit audit.log --since 2026-11-24T00:00:00Z --profile toolforge
  kubectl get --raw /logs/kube-apiserver/audit.log | palisade audit -

An audit policy at level Metadata is enough for profiles, checks and namespaces. Workloads have their names only at level \
Request, since a controller that creates pods lets the API server name them.

Exit codes: 0 shown, 2 could not run.";

/// The arguments of `palisade audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AuditArgs {
    /// Audit logs, with one event in JSON on a line: files, directories of them, or - for standard input.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub paths: Vec<PathBuf>,
    /// Only what this profile denied or reported.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Only in this namespace.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Only from this time on, as 2026-11-24T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,
    /// How many namespaces and workloads are named.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: AuditFormat,
}

/// The format of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditFormat {
    /// Counts by check, and the namespaces and workloads with the most.
    Table,
    /// The same as one object.
    Json,
}

/// The counts.
#[derive(Debug, Default)]
struct Summary {
    events: u64,
    dry_runs: u64,
    /// What other policies denied.
    others: u64,
    requests: BTreeMap<(String, Action), u64>,
    /// By profile, action and check: requests, by namespace.
    checks: BTreeMap<(String, Action, String), BTreeMap<String, u64>>,
    namespaces: BTreeMap<(String, Action, String), u64>,
    workloads: BTreeMap<(String, Action, String), u64>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// Runs the command.
pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    let mut summary = Summary::default();
    events::each(&args.paths, |event| summary.add(args, &event))?;
    output::print(&match args.output {
        AuditFormat::Table => summary.table(args.top),
        AuditFormat::Json => format!("{:#}\n", summary.json(args.top)),
    })
}

impl Summary {
    fn add(&mut self, args: &AuditArgs, event: &Event) {
        let at = event.request_received_timestamp;
        let early = args.since.is_some_and(|since| at.is_none_or(|at| at < since));
        let elsewhere = args.namespace.as_ref().is_some_and(|name| *name != event.object_ref.namespace);
        if early || elsewhere {
            return;
        }
        self.events += 1;
        self.from = [self.from, at].into_iter().flatten().min();
        self.to = self.to.max(at);
        let (findings, others) = event.findings();
        // The controller asks by dry runs whether a profile is in force.
        if event.is_dry_run() {
            self.dry_runs += u64::from(!findings.is_empty());
            return;
        }
        self.others += u64::from(others);
        let wanted = |finding: &Finding| args.profile.as_ref().is_none_or(|name| *name == finding.profile);
        for Finding { profile, action, checks } in findings.into_iter().filter(wanted) {
            let namespace = event.object_ref.namespace.clone();
            *self.requests.entry((profile.clone(), action)).or_default() += 1;
            for check in checks {
                let by_namespace = self.checks.entry((profile.clone(), action, check)).or_default();
                *by_namespace.entry(namespace.clone()).or_default() += 1;
            }
            let workload = format!("{namespace} {}", event.workload());
            *self.namespaces.entry((profile.clone(), action, namespace)).or_default() += 1;
            *self.workloads.entry((profile, action, workload)).or_default() += 1;
        }
    }

    fn table(&self, top: usize) -> String {
        let span = match (self.from, self.to) {
            (Some(from), Some(to)) => format!(" from {from} to {to}"),
            _ => String::new(),
        };
        let mut text = format!("{} requests in the log{span}\n", self.events);
        if self.requests.is_empty() {
            text.push_str("no profile denied or reported any\n");
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
            let checks = ordered(&self.checks, |by_namespace| by_namespace.values().sum());
            let lines = checks.into_iter().map(|((profile, action, check), count)| {
                let namespaces = self.checks.get(&(profile.clone(), *action, check.clone())).map_or(0, BTreeMap::len);
                vec![profile.clone(), format!("{action:?}"), check.clone(), count.to_string(), namespaces.to_string()]
            });
            let rows: Vec<_> = [head].into_iter().chain(totals).chain(lines).collect();
            let _ = write!(text, "\n{}", output::table(&rows));
            for (title, counts) in [("NAMESPACE", &self.namespaces), ("WORKLOAD", &self.workloads)] {
                let head = ["PROFILE", "ACTION", title, "REQUESTS"].map(str::to_owned).to_vec();
                let all = ordered(counts, |count| *count);
                let lines = all.iter().take(top).map(|((profile, action, name), count)| {
                    vec![profile.clone(), format!("{action:?}"), name.clone(), count.to_string()]
                });
                let rows: Vec<_> = [head].into_iter().chain(lines).collect();
                let _ = write!(text, "\n{}", output::table(&rows));
                if all.len() > top {
                    let _ = writeln!(text, "and {} more", all.len() - top);
                }
            }
        }
        for (count, what) in [
            (self.dry_runs, "requests that a profile denied were dry runs, and are not counted"),
            (self.others, "requests were denied by other admission policies"),
        ] {
            if count > 0 {
                let _ = writeln!(text, "\n{count} {what}");
            }
        }
        // Names come from requests that were denied.
        text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
    }

    /// In how many namespaces.
    fn spread(&self, profile: &str, action: Action) -> String {
        let of = |(found, one, _): &&(String, Action, String)| found == profile && *one == action;
        self.namespaces.keys().filter(of).count().to_string()
    }

    fn json(&self, top: usize) -> Json {
        let checks = ordered(&self.checks, |by_namespace| by_namespace.values().sum());
        let checks: Vec<_> = checks
            .into_iter()
            .map(|((profile, action, check), requests)| {
                let namespaces = self.checks.get(&(profile.clone(), *action, check.clone()));
                json!({"profile": profile, "action": action, "check": check, "requests": requests,
                    "namespaces": namespaces.map_or(0, BTreeMap::len)})
            })
            .collect();
        let named = |counts: &BTreeMap<(String, Action, String), u64>, key: &str| -> Vec<Json> {
            let all = ordered(counts, |count| *count).into_iter().take(top);
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
            "deniedByOtherPolicies": self.others, "totals": totals, "checks": checks,
            "namespaces": named(&self.namespaces, "namespace"), "workloads": named(&self.workloads, "workload"),
        })
    }
}

/// The entries, those with the most first.
fn ordered<K: Ord, V>(counts: &BTreeMap<K, V>, count: impl Fn(&V) -> u64) -> Vec<(&K, u64)> {
    let mut all: Vec<_> = counts.iter().map(|(key, value)| (key, count(value))).collect();
    all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> AuditArgs {
        AuditArgs { paths: vec![], profile: None, namespace: None, since: None, top: 1, output: AuditFormat::Table }
    }

    fn denied(namespace: &str, checks: &str, uri: &str) -> Json {
        json!({
            "stage": "ResponseComplete", "requestURI": uri, "requestReceivedTimestamp": "2026-01-02T00:00:00.123456Z",
            "objectRef": {"resource": "pods", "namespace": namespace},
            "requestObject": {"metadata": {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": true}]}},
            "responseStatus": {"code": 403, "message": format!(
                "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'palisade-tools-pods' with binding 'palisade-tools-pods' \
                 denied request: 2 violations of ToolSecurityProfile tools: {checks}"
            )},
        })
    }

    fn summary(events: &[Json], args: &AuditArgs) -> Summary {
        let lines = events.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let mut summary = Summary::default();
        assert!(events::read("test", lines.as_bytes(), &mut |event| summary.add(args, &event)).is_ok());
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
                "annotations": {events::FAILURE: noted.to_string()}, "requestReceivedTimestamp": "2026-01-01T00:00:00Z"}),
            json!({"stage": "ResponseComplete", "annotations": {events::FAILURE: foreign.to_string()}}),
            json!({"stage": "RequestReceived"}),
            json!({"stage": "ResponseComplete", "responseStatus": {"code": 422,
                "message": "ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: no"}}),
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

1 requests that a profile denied were dry runs, and are not counted

1 requests were denied by other admission policies
";
        let all = summary(&events(), &args());
        assert_eq!(all.table(1), expected);
        assert_eq!(all.json(5)["workloads"][2]["workload"], "a pods/p");
    }

    #[test]
    fn events_are_picked_by_profile_namespace_and_time() {
        let count = |args: &AuditArgs| summary(&events(), args).requests.values().sum::<u64>();
        assert_eq!(count(&AuditArgs { namespace: Some("b".to_owned()), ..args() }), 1);
        assert_eq!(count(&AuditArgs { profile: Some("other".to_owned()), ..args() }), 0);
        assert_eq!(count(&AuditArgs { since: "2026-01-02T00:00:00Z".parse().ok(), ..args() }), 3);
        assert!(summary(&[], &args()).table(1).contains("no profile denied or reported any"));
    }
}

//! The counts of an API server itself: each decision of an admission policy, by policy and action.

use std::{collections::BTreeMap, fmt::Write as _};

use http::Request;
use kube::Client;
use palisade_kube_json::json::set;
use serde_json::{Value as Json, json};

use super::AuditArgs;
use crate::{
    cluster::failed,
    events::profile_of,
    output,
    report::{Failure, harmless},
};

/// A counter with the labels `policy`, `policy_binding`, `error_type` and `enforcement_action` (stability: beta).
const CHECKS: &str = "apiserver_validating_admission_policy_check_total{";
const RIGHT: &str = "this requires permission to get the path /metrics (nonResourceURLs), which the ClusterRole \
                     system:monitoring grants";

/// The number of decisions by action, for the two policies of a profile and all their bindings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    deny: u64,
    warn: u64,
    audit: u64,
    /// The number of these with an expression that did not compile or exceeded the budget.
    errors: u64,
}

/// The values of `error_type` for an expression without a result. `invalid_error` is not one of them: the API server sets it
/// for a validation that is false, too (`ErrorType` in apiserver `pkg/admission/plugin/policy/validating/errors.go`).
const ERRORS: [&str; 2] = ["compile_error", "out_of_budget"];

/// Runs `palisade audit --metrics`.
pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    args.cluster.ask(async |client| {
        let (mut profiles, others) = count(&read(&client).await?);
        profiles.retain(|profile, _| args.filter.profile.as_ref().is_none_or(|wanted| wanted == profile));
        output::print(&args.format.text(|| table(&profiles, &others), || as_json(&profiles, &others))?)
    })
}

async fn read(client: &Client) -> Result<String, Failure> {
    let failed = |error: &kube::Error| {
        let failure = failed("cannot read the metrics of the API server", error);
        match (failure, error) {
            (Failure::CouldNotRun(problems), kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
                Failure::CouldNotRun(problems.into_iter().map(|problem| problem.help(RIGHT)).collect())
            }
            (failure, _) => failure,
        }
    };
    let request = Request::get("/metrics").body(Vec::new());
    let request = request.map_err(|error| failed(&kube::Error::HttpError(error)))?;
    client.request_text(request).await.map_err(|error| failed(&error))
}

/// The counts of profiles, and the sum for other policies.
fn count(metrics: &str) -> (BTreeMap<String, Counts>, Counts) {
    let (mut profiles, mut others) = (BTreeMap::<_, Counts>::new(), Counts::default());
    for line in metrics.lines().filter_map(|line| line.strip_prefix(CHECKS)) {
        let Some((labels, value)) = line.split_once("} ") else { continue };
        // No label has a value with quotes: they are names of objects and identifiers of Kubernetes.
        let label = |name: &str| {
            let parts = labels.split(',').filter_map(|part| part.split_once('='));
            parts.into_iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value.trim_matches('"'))
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, written as a float")]
        let Some(value) = value.split(' ').next().and_then(|value| value.parse::<f64>().ok()).map(|value| value as u64)
        else {
            continue;
        };
        let counts = match profile_of(label("policy")) {
            Some(profile) => profiles.entry(profile).or_default(),
            None => &mut others,
        };
        *match label("enforcement_action") {
            "deny" => &mut counts.deny,
            "warn" => &mut counts.warn,
            "audit" => &mut counts.audit,
            _ => continue,
        } += value;
        counts.errors += if ERRORS.contains(&label("error_type")) { value } else { 0 };
    }
    (profiles, others)
}

fn table(profiles: &BTreeMap<String, Counts>, others: &Counts) -> String {
    let mut text = "counts of one API server since its start, including dry runs\n\n".to_owned();
    if profiles.is_empty() {
        text.push_str("no profile denied, warned or audited a request\n");
    } else {
        let head = ["PROFILE", "DENY", "WARN", "AUDIT", "ERRORS"].map(str::to_owned).to_vec();
        let lines = profiles.iter().map(|(profile, Counts { deny, warn, audit, errors })| {
            [profile.clone()].into_iter().chain([deny, warn, audit, errors].map(u64::to_string)).collect()
        });
        text.push_str(&output::table(&[head].into_iter().chain(lines).collect::<Vec<_>>()));
    }
    if others.deny > 0 {
        let _ = writeln!(text, "\n{} requests were denied by other admission policies", others.deny);
    }
    text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
}

fn as_json(profiles: &BTreeMap<String, Counts>, others: &Counts) -> Json {
    let counts = |Counts { deny, warn, audit, errors }: &Counts| json!({"deny": deny, "warn": warn, "audit": audit, "errors": errors});
    let profiles: Vec<_> = profiles
        .iter()
        .map(|(profile, of)| {
            let mut object = counts(of);
            set(&mut object, &["profile"], profile.as_str());
            object
        })
        .collect();
    json!({"profiles": profiles, "otherPolicies": counts(others)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_counted_by_profile_and_action() {
        let line = |policy: &str, binding: &str, error: &str, action: &str, value: &str| {
            format!(
                "{CHECKS}enforcement_action=\"{action}\",error_type=\"{error}\",policy=\"{policy}\",policy_binding=\"{binding}\"}} {value}\n"
            )
        };
        let metrics = [
            "# TYPE apiserver_validating_admission_policy_check_total counter\n".to_owned(),
            line("palisade-tools-pods", "palisade-tools-pods", "invalid_error", "deny", "3"),
            line("palisade-tools-workloads", "palisade-tools-workloads", "invalid_error", "deny", "1e+06"),
            line("palisade-tools-workloads", "palisade-tools-workloads", "out_of_budget", "deny", "2"),
            line("palisade-tools-workloads", "palisade-tools-workloads", "compile_error", "deny", "1"),
            line("palisade-tools-pods", "palisade-tools-pods-warn", "invalid_error", "warn", "5"),
            line("palisade-tools-pods", "palisade-tools-pods-warn", "invalid_error", "audit", "5"),
            line("palisade-tools-pods", "palisade-tools-pods", "no_error", "allow", "9"),
            line("theirs", "theirs", "invalid_error", "deny", "7"),
            "apiserver_validating_admission_policy_check_duration_seconds_sum{policy=\"palisade-x-pods\"} 7\n"
                .to_owned(),
        ];
        let (profiles, others) = count(&metrics.concat());
        let tools = Counts { deny: 1_000_006, warn: 5, audit: 5, errors: 3 };
        assert_eq!(profiles, [("tools".to_owned(), tools)].into());
        assert_eq!(others, Counts { deny: 7, ..Counts::default() });
        let table = table(&profiles, &others);
        assert!(table.contains("tools     1000006   5      5       3"), "{table}");
        assert!(table.contains("7 requests were denied by other admission policies"), "{table}");
    }
}

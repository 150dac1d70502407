//! `palisade audit --metrics`. Audit logs, which need no cluster, are in [`crate::audit`].

use serde_json::{Value as Json, json};

use super::{ApiServer, assert_failed, assert_lines, output, parsed, server};

/// A counter of decisions, as the API server writes it.
fn counter(policy: &str, action: &str, error: &str, count: u32) -> String {
    format!(
        "apiserver_validating_admission_policy_check_total{{enforcement_action=\"{action}\",error_type=\"{error}\",\
         policy=\"{policy}\",policy_binding=\"{policy}\"}} {count}\n"
    )
}

fn cluster() -> ApiServer {
    let metrics = [
        counter("palisade-tools-pods", "deny", "invalid_error", 3),
        counter("palisade-tools-workloads", "deny", "out_of_budget", 2),
        counter("palisade-tools-pods", "audit", "invalid_error", 5),
        counter("palisade-tools-pods", "allow", "no_error", 90),
        counter("palisade-batch-pods", "warn", "invalid_error", 4),
        counter("theirs", "deny", "invalid_error", 7),
    ];
    ApiServer::start().with("/metrics", Json::String(metrics.concat()))
}

#[test]
fn metrics_are_counted_by_profile() {
    let run = cluster().run(&["audit", "--metrics"]);
    assert_lines(
        output(&run),
        &[
            "counts of one API server since its start, including dry runs",
            "PROFILE   DENY   WARN   AUDIT   ERRORS",
            "batch     0      4      0       0",
            "tools     5      0      5       2",
            "7 requests were denied by other admission policies",
        ],
    );
    let all = parsed(&cluster().run(&["audit", "--metrics", "-o", "json"]));
    let tools = json!({"profile": "tools", "deny": 5, "warn": 0, "audit": 5, "errors": 2});
    let batch = json!({"profile": "batch", "deny": 0, "warn": 4, "audit": 0, "errors": 0});
    assert_eq!((&all["profiles"], &all["otherPolicies"]["deny"]), (&json!([batch, tools]), &json!(7)));
    let only = parsed(&cluster().run(&["audit", "--metrics", "--profile-name", "tools", "-o", "json"]));
    assert_eq!(only["profiles"], json!([tools]));
}

#[test]
fn api_server_without_decisions_has_no_table() {
    let server = ApiServer::start().with("/metrics", Json::String("# TYPE x counter\nx 1\n".to_owned()));
    let run = server.run(&["audit", "--metrics"]);
    assert_lines(output(&run), &["no profile denied, warned or audited a request"]);
    assert!(!run.out.contains("PROFILE"), "{}", run.out);
}

#[test]
fn errors_of_the_api_server_are_reported_with_the_missing_permission() {
    let grants = "the ClusterRole system:monitoring grants";
    let message = "forbidden: User \"jane\" cannot get path \"/metrics\"";
    let server = ApiServer::start().answering("/metrics", server::failure(403, "Forbidden", message));
    let cannot = format!("cannot read the metrics of the API server: {message}");
    assert_failed(&server.run(&["audit", "--metrics"]), &[&cannot, grants]);
    // Another error is no missing permission.
    let run = ApiServer::start().run(&["audit", "--metrics"]);
    assert_failed(
        &run,
        &["cannot read the metrics of the API server: the server could not find the requested resource"],
    );
    assert!(!run.err.contains("system:monitoring"), "{}", run.err);
}

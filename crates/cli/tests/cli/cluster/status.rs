//! `palisade status`.

use serde_json::{Value as Json, json};

use super::{ApiServer, PROFILES, assert_failed, assert_lines, forbidden, output, parsed, profile, ready, server};

/// A profile that is ready, one that is not, and one whose latest generation has no status yet.
fn cluster() -> ApiServer {
    let status = |condition: Json| {
        json!({
            "conditions": [condition],
            "namespaces": {"selected": 3, "ready": 2, "failed": 1, "byStage": {"deny": 2, "warn": 0, "audit": 1}},
            "failedNamespaces": [{"name": "tool-b", "message": "parameter uid is missing"}],
        })
    };
    let spec = json!({"enforcement": {"pods": "Audit"}});
    ApiServer::start().with_list(
        PROFILES,
        &[
            profile("tools", 2, &json!({}), &status(ready("True", "enforced", 2))),
            profile("batch", 2, &spec, &status(ready("False", "spec.users: must have\na range", 2))),
            profile("edited", 3, &spec, &json!({"conditions": [ready("True", "of generation 2", 2)]})),
        ],
    )
}

/// The cells of the row of a profile in the table.
fn row<'a>(text: &'a str, profile: &str) -> Vec<&'a str> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.into_iter().find(|row| row.first() == Some(&profile)).unwrap()
}

#[test]
fn table_has_a_row_for_each_profile() {
    let run = cluster().run(&["status"]);
    let text = output(&run);
    assert_lines(text, &["API server v1.36.2, 3 profiles"]);
    // PROFILE, PODS, WORKLOADS, OBJECTS, READY, NAMESPACES, FAILED, DENY, WARN, AUDIT
    assert_eq!(row(text, "tools")[..10], ["tools", "Deny", "Warn", "-", "True", "2/3", "1", "2", "0", "1"]);
    assert_eq!(row(text, "batch")[..5], ["batch", "Audit", "Warn", "-", "False"]);
    assert_lines(text, &["FAILED NAMESPACES", "tools   tool-b   parameter uid is missing"]);

    // Only the named profiles.
    let run = cluster().run(&["status", "tools"]);
    assert!(output(&run).starts_with("API server v1.36.2, 1 profile\n"), "{}", run.out);
    assert!(!run.out.contains("batch") && !run.out.contains("NOT READY"), "{}", run.out);
}

#[test]
fn profile_that_is_not_ready_has_its_reason_and_does_not_change_the_exit_code() {
    let run = cluster().run(&["status"]);
    assert_lines(
        output(&run),
        &[
            "NOT READY",
            // On one line.
            "batch    spec.users: must have a range",
            "edited   the controller has not processed the latest change yet",
            "FAILED NAMESPACES",
        ],
    );
    let all = parsed(&cluster().run(&["status", "-o", "json"]));
    assert_eq!(all["server"], json!("v1.36.2"));
    let ready = all["profiles"].as_array().unwrap().iter().map(|one| [&one["name"], &one["ready"], &one["stage"]]);
    let ready: Vec<_> = ready.map(|cells| cells.map(|cell| cell.as_str().unwrap())).collect();
    // A condition of an earlier generation does not count.
    let expected = [["tools", "True", "Deny"], ["batch", "False", "Audit"], ["edited", "Unknown", "Audit"]];
    assert_eq!(ready, expected);
    assert_eq!(all["profiles"][1]["status"]["namespaces"]["failed"], json!(1));
}

#[test]
fn errors_of_the_api_server_are_reported() {
    let server = cluster().answering(PROFILES, forbidden("list", "toolsecurityprofiles", "toolsecurity.dev"));
    let texts = [
        "cannot list profiles: toolsecurityprofiles.toolsecurity.dev is forbidden: User \"jane\" cannot list resource",
        "the ClusterRole palisade-reader grants it",
    ];
    assert_failed(&server.run(&["status"]), &texts);
    // JSON has the same error, and no object.
    assert_failed(&server.run(&["status", "-o", "json"]), &texts);
    // Palisade is not installed.
    let run = ApiServer::start().run(&["status"]);
    assert_failed(&run, &["cannot list profiles: the server could not find the requested resource"]);
    let unavailable = server::failure(403, "Forbidden", "forbidden: User \"jane\" cannot get path \"/version\"");
    let run = cluster().answering("/version", unavailable).run(&["status"]);
    assert_failed(&run, &["cannot read the version of the API server: forbidden: User \"jane\" cannot get path"]);
}

#[test]
fn missing_profile_is_an_error_that_lists_the_existing_ones() {
    let run = cluster().run(&["status", "tools", "tolls"]);
    assert_failed(&run, &["ToolSecurityProfile \"tolls\" not found", "existing profiles: tools, batch, edited"]);
    let run = ApiServer::start().with_list(PROFILES, &[]).run(&["status", "tools"]);
    assert_failed(&run, &["ToolSecurityProfile \"tools\" not found", "existing profiles: none"]);
}

#[test]
fn cluster_without_profiles_has_no_table() {
    let server = ApiServer::start().with_list(PROFILES, &[]);
    assert_eq!(output(&server.run(&["status"])), "API server v1.36.2, no ToolSecurityProfile\n");
    assert_eq!(parsed(&server.run(&["status", "-o", "json"]))["profiles"], json!([]));
}

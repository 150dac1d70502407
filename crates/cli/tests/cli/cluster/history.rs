//! `palisade history`, and the rollback to a revision that it lists.

use palisade_api::{ToolSecurityProfile, revision::Revision};
use serde_json::{Value as Json, json};

use super::{ApiServer, PROFILES, assert_failed, forbidden, output, parsed, profile, ready, server};

const REVISIONS: &str = "/apis/apps/v1/namespaces/palisade-system/controllerrevisions";
/// Oldest first: the generation, the time and the port of each recorded revision.
const RECORDED: [(i64, &str, i64); 3] =
    [(1, "2026-01-01T00:00:00Z", 10), (2, "2026-01-02T00:00:00Z", 20), (5, "2026-01-03T00:00:00Z", 50)];

fn with_port(generation: i64, port: i64, status: &Json) -> Json {
    profile("tools", generation, &json!({"host": {"ports": [{"min": port, "max": port}]}}), status)
}

/// A profile at a generation with a port, and its recorded revisions.
fn cluster(generation: i64, port: i64, status: &Json) -> ApiServer {
    let recorded = RECORDED.map(|(generation, at, port)| {
        let of: ToolSecurityProfile = serde_json::from_value(with_port(generation, port, &Json::Null)).unwrap();
        let mut object = json!(Revision::of(&of).object("tools", None));
        object["metadata"]["creationTimestamp"] = json!(at);
        object
    });
    ApiServer::start().with_list(PROFILES, &[with_port(generation, port, status)]).with_list(REVISIONS, &recorded)
}

#[test]
fn revisions_are_listed_with_their_changes() {
    let server = cluster(5, 50, &Json::Null);
    let text = server.run(&["history", "tools"]);
    let rows: Vec<Vec<_>> = output(&text).lines().map(|line| line.split_whitespace().collect()).collect();
    let ages = rows.iter().skip(1).all(|row| row[1].ends_with('d'));
    assert!(ages, "{}", text.out);
    // Without the age.
    let rows: Vec<_> = rows.iter().map(|row| [&row[..1], &row[2..]].concat()).collect();
    let expected = [
        vec!["REVISION", "STATE", "CHANGED"],
        vec!["5", "active", "spec.host.ports"],
        vec!["2", "spec.host.ports"],
        vec!["1"],
    ];
    assert_eq!(rows, expected);
    // Only the revisions of this profile are requested.
    let list = format!("GET {REVISIONS}?");
    let label = "labelSelector=toolsecurity.dev%2Fprofile%3Dtools";
    assert!(
        server.requests().iter().any(|one| one.starts_with(&list) && one.contains(label)),
        "{:?}",
        server.requests()
    );

    let all = parsed(&server.run(&["history", "tools", "-o", "json"]));
    let listed = all["revisions"].as_array().unwrap().iter();
    let listed: Vec<_> =
        listed.map(|one| json!([one["revision"], one["recorded"], one["spec"]["host"]["ports"][0]["min"]])).collect();
    let expected = RECORDED.iter().rev().map(|(generation, at, port)| json!([generation, at, port]));
    assert_eq!((&all["profile"], listed), (&json!("tools"), expected.collect()));
}

#[test]
fn spec_that_is_not_active_is_noted_and_can_be_rolled_back() {
    let status = json!({"conditions": [ready("False", "spec.host.ports: must not overlap", 6)]});
    let server = cluster(6, 60, &status);
    let history = server.run(&["history", "tools"]);
    assert_eq!(history.code, Some(0), "{}", history.err);
    let note = "note: generation 6 (the current spec) is not active: spec.host.ports: must not overlap\n";
    assert_eq!(history.err, note);
    let active: Vec<_> = history.out.lines().filter(|line| line.contains("active")).collect();
    assert!(matches!(active[..], [line] if line.starts_with("5 ")), "{}", history.out);

    // The target is the newest revision that differs from the current spec: the active one.
    let dry = server.run(&["rollback", "tools", "--dry-run"]);
    assert!(output(&dry).ends_with("profile tools would be rolled back to revision 5\n"), "{}", dry.out);
    let rolled_back = server.run(&["rollback", "tools"]);
    assert_eq!(rolled_back.code, Some(0), "{}", rolled_back.err);
    assert!(rolled_back.out.ends_with("profile tools rolled back to revision 5\n"), "{}", rolled_back.out);
    let writes = server.writes();
    let [(dry, first), (real, second)] = &writes[..] else { panic!("{writes:#?}") };
    assert!(dry.starts_with(&format!("PUT {PROFILES}/tools?")) && dry.contains("dryRun=All"), "{dry}");
    assert!(real.starts_with(&format!("PUT {PROFILES}/tools?")) && !real.contains("dryRun"), "{real}");
    for written in [first, second] {
        assert_eq!(written["spec"]["host"]["ports"], json!([{"min": 50, "max": 50}]));
        assert_eq!(written["metadata"]["resourceVersion"], json!("7"));
    }
    // Now the spec is equal to that revision. The next one is chosen by its number.
    let again = server.run(&["rollback", "tools", "--to", "5"]);
    assert_eq!(output(&again), "profile tools unchanged: its spec is equal to revision 5\n");
    let missing = server.run(&["rollback", "tools", "--to", "4"]);
    assert_failed(&missing, &["revision 4 of profile tools not found; recorded: 5, 2, 1"]);
    assert_eq!(server.writes().len(), 2);
}

#[test]
fn errors_of_the_api_server_are_reported_with_the_missing_permission() {
    let one = format!("{PROFILES}/tools");
    let missing = server::failure(404, "NotFound", "toolsecurityprofiles.toolsecurity.dev \"tools\" not found");
    let run = cluster(5, 50, &Json::Null).answering(&one, missing).run(&["history", "tools"]);
    let advice = "list the profiles with kubectl get toolsecurityprofiles";
    assert_failed(&run, &["ToolSecurityProfile \"tools\" not found in this cluster", advice]);

    let refused = forbidden("get", "toolsecurityprofiles", "toolsecurity.dev");
    let run = cluster(5, 50, &Json::Null).answering(&one, refused).run(&["history", "tools"]);
    assert_failed(&run, &["cannot read the profile: toolsecurityprofiles.toolsecurity.dev is forbidden"]);

    let message = "controllerrevisions.apps is forbidden: User \"jane\" cannot list resource \"controllerrevisions\" in API \
                   group \"apps\" in the namespace \"palisade-system\"";
    let refused = server::failure(403, "Forbidden", message);
    let run = cluster(5, 50, &Json::Null).answering(REVISIONS, refused).run(&["history", "tools", "-o", "json"]);
    assert_failed(
        &run,
        &[
            &format!("cannot read the revisions in namespace palisade-system: {message}"),
            "this requires permission to list controllerrevisions.apps in namespace palisade-system; the ClusterRole \
             palisade-reader grants it",
        ],
    );
}

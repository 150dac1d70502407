//! `palisade rollout`.

use serde_json::{Value as Json, json};

use super::{ApiServer, PROFILES, assert_failed, assert_lines, forbidden, output, parsed, profile, server};

const NAMESPACES: &str = "/api/v1/namespaces";
const HELD: &str = "rollout.toolsecurity.dev/tools";
const STAGE: &str = "stage.toolsecurity.dev/tools";

/// A profile with a rollout, and the namespaces `tool-a` to `tool-c`. The controller holds the first one, and a user the
/// second one.
fn cluster(phase: &str, message: &str) -> ApiServer {
    let namespace = |name: &str, annotations: Json| {
        let metadata = json!({"name": name, "labels": {"tenancy": "tool"}, "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    };
    let waves = json!([{"percent": 10}, {"percent": 50}, {"percent": 100}]);
    let status = json!({"rollout": {
        "phase": phase, "wave": 2, "waves": 3, "promoted": 1, "pending": 1, "held": 2, "message": message,
        "heldNamespaces": [{"name": "tool-a", "message": "Violations: 1 object violates the profile"}],
    }});
    ApiServer::start()
        .with_list(PROFILES, &[profile("tools", 1, &json!({"rollout": {"waves": waves}}), &status)])
        .with_list(
            NAMESPACES,
            &[
                namespace("tool-a", json!({HELD: "Violations: 1 object violates the profile"})),
                namespace("tool-b", json!({HELD: "wait for us"})),
                namespace("tool-c", json!({})),
            ],
        )
}

#[test]
fn status_shows_the_wave_and_held_namespaces() {
    let message = "wave 2 soaks until 2026-01-01T00:00:00Z";
    let run = cluster("Soaking", message).run(&["rollout", "status", "tools"]);
    assert_lines(
        output(&run),
        &[
            "tools: Soaking, wave 2 of 3",
            "[##########------------------------------] 25 % of 4 namespaces: 1 promoted, 1 pending, 2 held",
            message,
            "HELD     REASON",
            "tool-a   Violations: 1 object violates the profile",
            "and 1 more: their annotation rollout.toolsecurity.dev/tools has the reason",
        ],
    );
    let status = parsed(&cluster("Soaking", message).run(&["rollout", "status", "tools", "-o", "json"]));
    let known = ["phase", "wave", "waves", "promoted", "pending", "held"].map(|key| status[key].clone());
    assert_eq!(json!(known), json!(["Soaking", 2, 3, 1, 1, 2]));
    assert_eq!(status["heldNamespaces"][0]["name"], json!("tool-a"));
}

#[test]
fn paused_rollout_is_shown_as_paused() {
    let server = cluster("Paused", "spec.rollout.pause is true");
    let run = server.run(&["rollout", "status", "tools"]);
    assert_lines(output(&run), &["tools: Paused, wave 2 of 3", "spec.rollout.pause is true"]);
    assert_eq!(parsed(&server.run(&["rollout", "status", "tools", "-o", "json"]))["phase"], json!("Paused"));
    assert_eq!(server.writes(), []);
}

#[test]
fn pause_and_resume_write_only_what_changes() {
    let server = cluster("Soaking", "");
    let patch = format!("PATCH {PROFILES}/tools?&fieldManager=palisade-rollout");
    let paused = server.run(&["rollout", "pause", "tools"]);
    assert_eq!((paused.code, paused.out.as_str()), (Some(0), "rollout of profile tools paused\n"), "{}", paused.err);
    assert!(paused.err.contains("if GitOps applies the profile"), "{}", paused.err);
    let again = server.run(&["rollout", "pause", "tools"]);
    assert_eq!(output(&again), "profile tools unchanged: its rollout is already paused\n");
    let resumed = server.run(&["rollout", "resume", "tools"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "rollout of profile tools resumed\n"));
    let body = |pause: Json| json!({"spec": {"rollout": {"pause": pause}}});
    assert_eq!(server.writes(), [(patch.clone(), body(json!(true))), (patch, body(Json::Null))]);
}

#[test]
fn retry_keeps_the_namespaces_that_a_user_holds() {
    let server = cluster("Soaking", "");
    let patch = |name: &str| {
        let body = json!({"metadata": {"annotations": {HELD: null}}});
        (format!("PATCH {NAMESPACES}/{name}?&fieldManager=palisade-rollout"), body)
    };
    let run = server.run(&["rollout", "retry", "tools"]);
    assert_eq!(output(&run), "namespace tool-a will be evaluated again\n");
    assert_eq!(server.writes(), [patch("tool-a")]);
    // Unless the command names them.
    let run = server.run(&["rollout", "retry", "tools", "tool-b"]);
    assert_eq!(output(&run), "namespace tool-b will be evaluated again\n");
    assert_eq!(server.writes(), [patch("tool-a"), patch("tool-b")]);
}

#[test]
fn namespace_that_cannot_be_promoted_does_not_stop_the_others() {
    let denied =
        "namespaces \"tool-a\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no";
    let server = cluster("Soaking", "")
        .answering(&format!("{NAMESPACES}/tool-a"), server::failure(403, "Forbidden", denied))
        .answering(
            &format!("{NAMESPACES}/tool-x"),
            server::failure(404, "NotFound", "namespaces \"tool-x\" not found"),
        );
    let run = server.run(&["rollout", "promote", "tools", "tool-a", "tool-x", "tool-b", "--stage", "warn"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), "namespace tool-b is at stage Warn\n"), "{}", run.err);
    let flat = run.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&format!("namespace tool-a: {denied}")), "{flat}");
    assert!(flat.contains("namespace tool-x: namespaces \"tool-x\" not found"), "{flat}");
    // The hold of a promoted namespace is removed with the same request.
    let body = json!({"metadata": {"labels": {STAGE: "Warn"}, "annotations": {HELD: null}}});
    let writes = server.writes();
    assert_eq!(writes.len(), 3, "{writes:#?}");
    assert_eq!(writes[2], (format!("PATCH {NAMESPACES}/tool-b?&fieldManager=palisade-rollout"), body));
}

#[test]
fn errors_are_reported_and_nothing_is_written() {
    let one = format!("{PROFILES}/tools");
    for command in [
        &["rollout", "status", "tools"][..],
        &["rollout", "pause", "tools"],
        &["rollout", "retry", "tools"],
        &["rollout", "promote", "tools", "tool-a"],
    ] {
        let refused = forbidden("get", "toolsecurityprofiles", "toolsecurity.dev");
        let missing = "toolsecurityprofiles.toolsecurity.dev \"tools\" not found";
        let cases = [
            (refused, "toolsecurityprofiles.toolsecurity.dev is forbidden: User \"jane\" cannot get resource"),
            (server::failure(404, "NotFound", missing), missing),
        ];
        for (answer, message) in cases {
            let server = cluster("Soaking", "").answering(&one, answer);
            assert_failed(&server.run(command), &[&format!("cannot read the profile: {message}")]);
            assert_eq!(server.writes(), [], "{command:?}");
        }
        let without = profile("tools", 1, &json!({}), &Json::Null);
        let run = ApiServer::start().with(&one, without).run(command);
        assert_failed(&run, &["profile tools has no spec.rollout"]);
    }
    let pending = profile("tools", 1, &json!({"rollout": {"waves": [{"percent": 10}]}}), &Json::Null);
    let run = ApiServer::start().with(&one, pending).run(&["rollout", "status", "tools"]);
    assert_failed(&run, &["the controller has not started the rollout of tools yet"]);
    // The write itself fails.
    let refused = forbidden("list", "namespaces", "");
    let run = cluster("Soaking", "").answering(NAMESPACES, refused).run(&["rollout", "retry", "tools"]);
    assert_failed(
        &run,
        &["cannot list namespaces: namespaces is forbidden", "the ClusterRole palisade-reader grants it"],
    );
}

//! `palisade audit`: what counts as an answer of a policy.

use serde_json::{Value as Json, json};

use super::run_in;

const DENIAL: &str = "ValidatingAdmissionPolicy 'palisade-live-pods' with binding 'palisade-live-pods' denied request: 1 violation \
                      of ToolSecurityProfile live: [privileged] container \"app\": y";

/// An answered request about a pod with this name.
fn event(name: &str, code: u16, decision: Option<&str>, rest: &str) -> Json {
    let mut event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "1", "stage": "ResponseComplete",
        "requestURI": "/x", "verb": "delete", "user": {"username": "nobody"},
        "objectRef": {"resource": "pods", "namespace": "kube-system", "name": name, "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "status": "Failure", "code": code, "message": format!("pods {name:?} {rest}")},
        "requestReceivedTimestamp": "2026-11-24T00:00:00.000000Z",
    });
    if let Some(decision) = decision {
        event["annotations"] = json!({"authorization.k8s.io/decision": decision, "authorization.k8s.io/reason": ""});
    }
    event
}

fn audited(events: &[Json]) -> Json {
    let log: Vec<_> = events.iter().map(Json::to_string).collect();
    let run = run_in(std::path::Path::new("."), &["audit", "-", "-o", "json"], log.join("\n"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    serde_json::from_str(&run.out).unwrap()
}

#[test]
fn audit_counts_no_denial_that_the_name_of_an_object_quotes() {
    let mut forged = Vec::new();
    for name in [
        format!("x\" is forbidden: {DENIAL}"),
        format!("\" is forbidden: {DENIAL}"),
        format!("x\\\" is forbidden: {DENIAL}"),
        format!("x\n\" is forbidden: {DENIAL}"),
        format!("is forbidden: {DENIAL}"),
        DENIAL.to_owned(),
    ] {
        // What RBAC answers to a user without rights; to one who may delete pods, of which this is none; and to one who
        // may create them.
        forged.push(event(&name, 403, Some("forbid"), "is forbidden: User \"nobody\" cannot delete resource \"pods\""));
        forged.push(event(&name, 404, Some("allow"), "not found"));
        forged.push(event(&name, 422, Some("allow"), "is invalid: metadata.name: Invalid value"));
        // As if RBAC had answered in the words of a policy.
        forged.push(event(&name, 403, Some("forbid"), &format!("is forbidden: {DENIAL}")));
    }
    let found = audited(&forged);
    assert_eq!((&found["totals"], &found["withoutDecision"]), (&json!([]), &json!(0)), "{found:#}");
    assert_eq!((&found["events"], &found["deniedByOtherPolicies"]), (&json!(forged.len()), &json!(0)), "{found:#}");
}

#[test]
fn audit_counts_real_denials_also_of_objects_with_odd_names() {
    let rest = format!("is forbidden: {DENIAL}");
    let names = ["app", "a\"b", "a\\", &format!("x\" is forbidden: {DENIAL}")];
    let events = names.map(|name| event(name, 422, Some("allow"), &rest));
    let found = audited(&events);
    assert_eq!(found["totals"], json!([{"profile": "live", "action": "Denied", "requests": 4}]), "{found:#}");
    let found = audited(&[event("app", 422, None, &rest)]);
    assert_eq!((&found["totals"], &found["withoutDecision"]), (&json!([]), &json!(1)), "{found:#}");
}

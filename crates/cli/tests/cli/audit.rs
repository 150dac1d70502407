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

/// The annotation of an admitted request, with the failures of all bindings that audit.
fn audited_request(failures: &Json) -> Json {
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "1", "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/tool-a/pods", "verb": "create", "user": {"username": "jane"},
        "objectRef": {"resource": "pods", "namespace": "tool-a", "name": "app", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201}, "requestReceivedTimestamp": "2026-11-24T00:00:00.000000Z",
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "validation.policy.admission.k8s.io/validation_failure": failures.to_string(),
        },
    })
}

#[test]
fn audit_counts_each_failure_in_one_annotation_once() {
    let failure = |policy: &str, binding: &str, actions: &[&str], message: &str| json!({"policy": policy, "binding": binding, "validationActions": actions, "expressionIndex": 0, "message": message});
    let two =
        "2 violations of ToolSecurityProfile tools: [privileged] container \"a\"; [hostPorts] container \"a\": is 80";
    let one = "1 violation of ToolSecurityProfile batch: [privileged] container \"a\"";
    let event = audited_request(&json!([
        failure("palisade-tools-pods", "palisade-tools-pods-warn", &["Warn", "Audit"], two),
        // The binding for updates of the same policy reports the same violations.
        failure("palisade-tools-pods", "palisade-tools-pods-updates-warn", &["Warn", "Audit"], two),
        failure("palisade-batch-pods", "palisade-batch-pods-audit", &["Audit"], one),
        failure("theirs", "theirs", &["Audit"], "1 violation of ToolSecurityProfile theirs: [privileged] x"),
    ]));
    let count = |action: &str, profile: &str| json!({"profile": profile, "action": action, "requests": 1});
    let check = |action: &str, profile: &str, check: &str| json!({"profile": profile, "action": action, "check": check, "requests": 1, "namespaces": 1});
    let found = audited(std::slice::from_ref(&event));
    assert_eq!(found["totals"], json!([count("Audited", "batch"), count("Warned", "tools")]), "{found:#}");
    let checks = [
        check("Audited", "batch", "privileged"),
        check("Warned", "tools", "hostPorts"),
        check("Warned", "tools", "privileged"),
    ];
    assert_eq!(found["checks"], json!(checks), "{found:#}");
    assert_eq!(found["deniedByOtherPolicies"], json!(0), "{found:#}");

    let run = run_in(std::path::Path::new("."), &["audit", "-"], event.to_string());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    let rows: Vec<Vec<_>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        ["batch", "Audited", "(any)", "1", "1"],
        ["tools", "Warned", "(any)", "1", "1"],
        ["tools", "Warned", "hostPorts", "1", "1"],
        ["tools", "Warned", "privileged", "1", "1"],
    ] {
        assert_eq!(rows.iter().filter(|found| **found == row).count(), 1, "{row:?} in\n{}", run.out);
    }
    assert!(!run.out.contains("theirs"), "{}", run.out);
}

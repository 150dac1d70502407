//! `palisade why`.

use serde_json::{Value as Json, json};

use super::{
    ApiServer, NAMESPACE, PROFILES, assert_failed, assert_lines, forbidden, output, parsed, profile, ready, server,
};

const IN_NAMESPACE: &str = "/apis/toolsecurity.dev/v1alpha1/namespaces/tool-a";
const GROUP: &str = "toolsecurity.dev";

/// A namespace, a profile that selects it, and another profile.
fn cluster() -> ApiServer {
    let spec = json!({
        "baseline": "Privileged", "enforcement": {"pods": "Deny", "workloads": "Warn"},
        "parameters": [{"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "example.org/uid"}]}],
        "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
    });
    let other = json!({"namespaceSelector": {"matchLabels": {"tenancy": "batch"}}});
    let status = json!({"conditions": [ready("True", "enforced", 1)]});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": "tool-a", "labels": {"tenancy": "tool"}, "annotations": {"example.org/uid": "50001"},
        },
    });
    ApiServer::start()
        .with(NAMESPACE, namespace)
        .with_list(PROFILES, &[profile("tools", 1, &spec, &status), profile("batch", 1, &other, &status)])
        .with_list(&format!("{IN_NAMESPACE}/toolsecurityexceptions"), &[])
        .with_list(&format!("{IN_NAMESPACE}/toolsecurityreports"), &[])
}

/// A running pod with a user.
fn pod(name: &str, user: i64) -> (String, Json) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "tool-a", "uid": "u"},
        "spec": {
            "securityContext": {"runAsUser": user}, "nodeName": "node-1", "containers": [{"name": "app", "image": "app"}],
        },
        "status": {"phase": "Running"},
    });
    (format!("{NAMESPACE}/pods/{name}"), pod)
}

#[test]
fn settings_of_the_namespace_of_the_context_have_their_sources() {
    let server = cluster();
    let text = server.run(&["why"]);
    assert_lines(
        output(&text),
        &[
            "namespace tool-a",
            "profile tools",
            "  ready       yes",
            "  stage       pods Deny, workloads Warn, other objects not evaluated (from the profile)",
            "  parameter   uid = 50001 (from annotation example.org/uid)",
            "not selected by: batch",
        ],
    );
    assert!(server.requests().contains(&format!("GET {NAMESPACE}")), "{:?}", server.requests());
    let why = parsed(&server.run(&["why", "tool-a", "-o", "json"]));
    assert_eq!((&why["profilesRead"], &why["notSelectedBy"]), (&json!(true), &json!(["batch"])));
    let [of_tools] = why["profiles"].as_array().unwrap().as_slice() else { panic!("{why:#}") };
    let uid = json!({"name": "uid", "value": 50001, "from": "annotation example.org/uid"});
    assert_eq!((&of_tools["profile"], &of_tools["parameters"]), (&json!("tools"), &json!([uid])));
    assert_eq!((&of_tools["ready"], &of_tools["stage"]["pods"]), (&json!("True"), &json!("Deny")));
}

#[test]
fn denied_pod_is_explained_with_its_fix() {
    let (bad, good) = (pod("bad", 7), pod("good", 50001));
    let server = cluster().with(&bad.0, bad.1).with(&good.0, good.1);
    let denied = server.run(&["why", "--pod", "pod/bad"]);
    assert_eq!(denied.code, Some(1), "{}{}", denied.out, denied.err);
    assert!(denied.err.contains("the pod violates a profile"), "{}", denied.err);
    assert_lines(&denied.out, &["profile tools", "Pod/bad in namespace tool-a: denied (profiles: tools)"]);
    let violation = denied.out.lines().find(|line| line.starts_with("  denied: [runAsUser] "));
    assert!(violation.is_some_and(|line| line.contains('7') && line.contains("50001")), "{}", denied.out);
    assert_lines(&denied.out, &["    ~ spec.securityContext.runAsUser: 7 -> 50001"]);

    let denied = server.run(&["why", "--pod", "pod/bad", "-o", "json"]);
    let why: Json = serde_json::from_str(&denied.out).unwrap();
    let [violation] = why["pod"]["violations"].as_array().unwrap().as_slice() else { panic!("{why:#}") };
    let known = ["profile", "check", "denied"].map(|key| &violation[key]);
    assert_eq!((denied.code, known), (Some(1), [&json!("tools"), &json!("runAsUser"), &json!(true)]));

    let admitted = server.run(&["why", "--pod", "pod/good"]);
    assert_lines(output(&admitted), &["Pod/good in namespace tool-a: admitted (profiles: tools)"]);
    // Nothing is created for an answer.
    assert_eq!(server.writes(), []);
}

#[test]
fn without_permission_for_profiles_the_parameters_of_the_namespace_are_shown() {
    let params = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityParams",
        "metadata": {"name": "tools", "namespace": "tool-a"},
        "spec": {
            "integers": {"uid": 50001}, "strings": {}, "booleans": {}, "stringLists": {}, "objects": {}, "problem": "",
            "exceptions": {},
        },
    });
    let server = cluster()
        .answering(PROFILES, forbidden("list", "toolsecurityprofiles", GROUP))
        .with_list(&format!("{IN_NAMESPACE}/toolsecurityparams"), &[params]);
    let text = server.run(&["why"]);
    assert_eq!(text.code, Some(0), "{}", text.err);
    let note = "note: only the parameters and reports of the namespace are used: toolsecurityprofiles.toolsecurity.dev is \
                forbidden: User \"jane\" cannot list resource \"toolsecurityprofiles\"";
    assert!(text.err.starts_with(note), "{}", text.err);
    assert_lines(&text.out, &["namespace tool-a", "profile tools", "  parameter   uid = 50001"]);
    // The list of profiles is not known, so it is not reported as empty.
    assert!(!text.out.contains("no profile selects it") && !text.out.contains("ready"), "{}", text.out);
    let json = server.run(&["why", "-o", "json"]).out;
    assert_eq!(serde_json::from_str::<Json>(&json).unwrap()["profilesRead"], json!(false));

    let (path, bad) = pod("bad", 7);
    let run = server.with(&path, bad).run(&["why", "--pod", "pod/bad"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
    assert!(run.err.contains("the pod cannot be evaluated here"), "{}", run.err);
}

#[test]
fn errors_of_the_api_server_are_reported_with_the_missing_permission() {
    let missing = server::failure(404, "NotFound", "namespaces \"tool-a\" not found");
    let run = cluster().answering(NAMESPACE, missing).run(&["why"]);
    assert_failed(&run, &["cannot read the namespace: namespaces \"tool-a\" not found"]);

    // Both errors are reported at once.
    let server = cluster()
        .answering(NAMESPACE, forbidden("get", "namespaces", ""))
        .answering(PROFILES, forbidden("list", "toolsecurityprofiles", GROUP));
    assert_failed(
        &server.run(&["why"]),
        &[
            "cannot read the namespace: namespaces is forbidden: User \"jane\" cannot get resource \"namespaces\"",
            "this requires permission to get namespaces in the whole cluster",
            "cannot list profiles: toolsecurityprofiles.toolsecurity.dev is forbidden: User \"jane\" cannot list",
            "this requires permission to list toolsecurityprofiles.toolsecurity.dev in the whole cluster; the ClusterRole \
             palisade-reader grants it",
        ],
    );

    let missing = server::failure(404, "NotFound", "pods \"x\" not found");
    let run = cluster().answering(&format!("{NAMESPACE}/pods/x"), missing).run(&["why", "--pod", "pod/x"]);
    assert_failed(&run, &["cannot read pod x: pods \"x\" not found"]);
}

#[test]
fn skipped_exceptions_and_reports_are_noted() {
    let server = cluster().answering(
        &format!("{IN_NAMESPACE}/toolsecurityexceptions"),
        forbidden("list", "toolsecurityexceptions", GROUP),
    );
    let run = server.run(&["why"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let note = "note: toolsecurityexceptions are skipped: toolsecurityexceptions.toolsecurity.dev is forbidden: ";
    assert!(run.err.starts_with(note), "{}", run.err);
    assert_lines(&run.out, &["  parameter   uid = 50001 (from annotation example.org/uid)"]);
}

//! `palisade eval`, as its users meet it.

use serde_json::{Value as Json, json};

use super::{Run, directory, run_in};

const TOOLFORGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/toolforge/profile.yaml");

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  variables: [{name: most, expression: \"5\"}]
  validations:
  - expression: object.spec.replicas <= variables.most
    messageExpression: \"'at most ' + string(variables.most)\"
    reason: Forbidden
  auditAnnotations: [{key: replicas, valueExpression: string(object.spec.replicas)}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: replicas, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: warning}
spec: {policyName: replicas, validationActions: [Warn]}
---
apiVersion: example.com/v1
kind: Unknown
metadata: {name: x}
";

fn deployment(replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b}}}}\n    \
         spec: {{containers: [{{name: a, image: b}}]}}\n"
    )
}

fn run(files: &[(&str, &str)], arguments: &[&str]) -> Run {
    run_in(directory(files).path(), &[&["eval"], arguments].concat(), "")
}

#[test]
fn eval_prints_the_denial_a_client_gets() {
    let (four, six) = (deployment(4), deployment(6));
    let files = [("p.yaml", POLICY), ("four.yaml", &*four), ("six.yaml", &*six)];
    let good = run(&files, &["--policies", "p.yaml", "four.yaml"]);
    assert_eq!(good.code, Some(0), "{}", good.err);
    assert_eq!(
        good.out,
        "four.yaml: CREATE deployments.apps default/web: allowed\n  audit annotation replicas/replicas: 4\n"
    );
    assert_eq!(good.err, "note: p.yaml: skipped objects of unknown kinds: 1 Unknown\n");
    let bad = run(&files, &["--policies", "p.yaml", "six.yaml"]);
    assert_eq!(bad.code, Some(1), "{}", bad.err);
    assert_eq!(
        bad.out,
        "six.yaml: CREATE deployments.apps default/web: denied\n  \
         deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'everywhere' denied \
         request: at most 5\n  status: 403 Forbidden\n  by policy replicas, binding everywhere\n  \
         warning: Validation failed for ValidatingAdmissionPolicy 'replicas' with binding 'warning': at most 5\n  \
         audit annotation replicas/replicas: 6\n"
    );
    let verbose = run(&files, &["--policies", "p.yaml", "four.yaml", "-v"]);
    for line in [
        "  replicas everywhere variables[0].expression = 5 (cost 0)\n",
        "  replicas everywhere validations[0].expression = true (cost 6)\n",
        "  replicas everywhere validations[0].messageExpression = \"at most 5\" (cost ",
    ] {
        assert!(verbose.out.contains(line), "{line}{}", verbose.out);
    }
}

#[test]
fn json_has_a_fixed_shape() {
    let (four, six) = (deployment(4), deployment(6));
    let files = [("p.yaml", POLICY), ("four.yaml", &*four), ("six.yaml", &*six)];
    let arguments = ["--policies", "p.yaml", "four.yaml", "six.yaml", "-o", "json", "--user", "a", "--group", "b"];
    let both = run(&files, &arguments);
    assert_eq!(both.code, Some(1), "{}", both.err);
    let answers: Json = serde_json::from_str(&both.out).unwrap();
    let keys = |of: &Json| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let expected = [
        "allowed",
        "auditAnnotations",
        "code",
        "evaluations",
        "matched",
        "message",
        "mutated",
        "noVerdict",
        "patch",
        "reason",
        "request",
        "warnings",
    ];
    let mut found = keys(&answers[0]);
    found.sort();
    assert_eq!(found, expected);
    let mut of_evaluation = keys(&answers[0]["evaluations"][0]);
    of_evaluation.sort();
    assert_eq!(of_evaluation, ["binding", "cost", "error", "param", "path", "policy", "result"]);
    assert_eq!((&answers[0]["allowed"], &answers[1]["allowed"]), (&json!(true), &json!(false)));
    assert_eq!((&answers[1]["code"], &answers[1]["reason"]), (&json!(403), &json!("Forbidden")));
    assert_eq!(answers[1]["noVerdict"], Json::Null);
}

#[test]
fn eval_of_an_update_requires_the_old_object() {
    let (four, six) = (deployment(4), deployment(6));
    let files = [("p.yaml", POLICY), ("four.yaml", &*four), ("six.yaml", &*six)];
    let update = ["--policies", "p.yaml", "six.yaml", "--operation", "update"];
    let without = run(&files, &update);
    assert_eq!(without.code, Some(2));
    assert!(without.err.contains("the UPDATE of Deployment \"web\" requires the stored object"), "{}", without.err);
    let with = run(&files, &[&update[..], &["--old", "four.yaml"]].concat());
    assert_eq!(with.code, Some(1), "{}", with.err);
    assert!(with.out.starts_with("six.yaml: UPDATE deployments.apps default/web: denied\n"), "{}", with.out);
}

#[test]
fn an_old_object_makes_the_request_an_update() {
    let policy = POLICY.replace("object.spec.replicas <= variables.most", "oldObject.spec.replicas < 6");
    let (four, six, other) = (deployment(4), deployment(6), deployment(5).replace("name: web", "name: other"));
    let files = [("p.yaml", &*policy), ("four.yaml", &*four), ("six.yaml", &*six), ("other.yaml", &*other)];
    let eval = |arguments: &[&str]| run(&files, &[&["--policies", "p.yaml"], arguments].concat());
    let updated = eval(&["four.yaml", "--old", "six.yaml"]);
    assert_eq!(updated.code, Some(1), "{}", updated.err);
    assert!(updated.out.starts_with("four.yaml: UPDATE deployments.apps default/web: denied\n"), "{}", updated.out);
    // An old object that does not count would be a mistake without a word.
    let unknown = eval(&["other.yaml", "--old", "six.yaml", "--operation", "DELETE"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("the DELETE of Deployment \"other\" requires the stored object"), "{}", unknown.err);
    let created = eval(&["four.yaml", "--old", "six.yaml", "--operation", "CREATE"]);
    assert_eq!(created.code, Some(2));
    assert!(created.err.contains("--old must not be used with --operation CREATE"), "{}", created.err);
}

#[test]
fn a_policy_without_a_binding_is_reported() {
    let unbound = POLICY.replace("policyName: replicas", "policyName: replicass");
    let run = run(&[("p.yaml", &*unbound), ("six.yaml", &*deployment(6))], &["--policies", "p.yaml", "six.yaml"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        run.err.contains(
            "note: ValidatingAdmissionPolicy replicas is never evaluated because the files have no binding for it: add \
             a ValidatingAdmissionPolicyBinding\n"
        ),
        "{}",
        run.err
    );
    assert_eq!(run.out, "six.yaml: CREATE deployments.apps default/web: allowed\n  no policy matches this request\n");
}

#[test]
fn a_request_without_a_matching_policy_is_reported() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b}]}\n";
    let files = [("p.yaml", POLICY), ("pod.yaml", pod), ("four.yaml", &*deployment(4))];
    let pod = run(&files, &["--policies", "p.yaml", "pod.yaml"]);
    assert_eq!(pod.code, Some(0), "{}", pod.err);
    assert!(
        pod.out.starts_with("pod.yaml: CREATE pods default/p: allowed\n  no policy matches this request\n"),
        "{}",
        pod.out
    );
    let both = run(&files, &["--policies", "p.yaml", "pod.yaml", "four.yaml", "-o", "json"]);
    let answers: Json = serde_json::from_str(&both.out).unwrap();
    let by = |binding| json!({"kind": "ValidatingAdmissionPolicy", "policy": "replicas", "binding": binding});
    assert_eq!(answers[0]["matched"], json!([]));
    assert_eq!(answers[1]["matched"], json!([by("everywhere"), by("warning")]));
    let off =
        run(&files, &["--policies", "p.yaml", "four.yaml", "--disable-admission-plugins=ValidatingAdmissionPolicy"]);
    assert!(off.out.ends_with(": allowed\n  no policy matches this request\n"), "{}", off.out);
}

#[test]
fn eval_without_files_asks_only_the_api_server() {
    let (good, bad) = (deployment(1), deployment(1).replace("name: a, image: b", "name: A, image: b"));
    let files = [("good.yaml", &*good), ("bad.yaml", &*bad)];
    let good = run(&files, &["good.yaml"]);
    assert_eq!(
        (good.code, &*good.out, &*good.err),
        (
            Some(0),
            "good.yaml: CREATE deployments.apps default/web: allowed\n  no policies: only the API server's own checks apply\n",
            ""
        )
    );
    let bad = run(&files, &["bad.yaml"]);
    assert_eq!(bad.code, Some(1), "{}", bad.err);
    assert!(bad.out.contains("spec.template.spec.containers[0].name: Invalid value: \"A\""), "{}", bad.out);
}

#[test]
fn directories_are_read_and_kustomizations_skipped() {
    let directory = directory(&[("six.yaml", deployment(6))]);
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("policies/p.yaml", POLICY);
    write("policies/kustomization.yaml", "resources: [p.yaml]\n");
    write("policies/sub/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n");
    write("requests/four.yaml", &deployment(4));
    write("requests/kustomization.yaml", "kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n");
    let eval = |arguments: &[&str]| run_in(directory.path(), &[&["eval"], arguments].concat(), "");
    let read = eval(&["--policies", "policies", "requests", "six.yaml"]);
    assert_eq!(read.code, Some(1), "{}", read.err);
    assert!(read.out.contains("requests/four.yaml: CREATE deployments.apps default/web: allowed"), "{}", read.out);
    assert!(read.out.contains("six.yaml: CREATE deployments.apps default/web: denied"), "{}", read.out);
    assert_eq!(
        read.err,
        "note: policies: skipped objects of unknown kinds: 2 Kustomization, 1 Unknown\n\
         note: requests/kustomization.yaml: ignored documents that are not a Kubernetes object: 1 Kustomization\n"
    );
    // A request without a kind is no kustomization.
    write("nameless/pod.yaml", "metadata: {name: p}\nspec: {containers: [{name: a, image: b}]}\n");
    let nameless = eval(&["--policies", "policies", "requests", "nameless"]);
    assert_eq!(nameless.code, Some(2), "{}{}", nameless.out, nameless.err);
    assert!(nameless.err.contains("nameless/pod.yaml"), "{}", nameless.err);
    // The old object, too.
    let updated = eval(&["--policies", "policies", "six.yaml", "--old", "requests"]);
    assert!(updated.out.starts_with("six.yaml: UPDATE deployments.apps default/web: denied\n"), "{}", updated.out);
}

#[test]
fn eval_old_object_keeps_status_and_server_fields() {
    let policy = POLICY
        .replace("[CREATE, UPDATE]", "[UPDATE, DELETE]")
        .replace("apiGroups: [apps]", "apiGroups: ['*']")
        .replace("resources: [deployments]", "resources: ['*/*']")
        .replace("object.spec.replicas <= variables.most", "oldObject.?status.phase.orValue('') != 'Bound'")
        .replace("string(object.spec.replicas)", "request.operation");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, uid: u}\nspec:\n  accessModes: \
                 [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";
    let bound = format!("{claim}status: {{phase: Bound}}\n");
    let scale = "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: web}\nspec: {replicas: 6}\n";
    let (four, six) = (deployment(4), deployment(6).replace("a: b", "a: c"));
    let files = [
        ("p.yaml", &*policy),
        ("bound.yaml", &*bound),
        ("free.yaml", claim),
        ("four.yaml", &*four),
        ("six.yaml", &*six),
        ("scale.yaml", scale),
    ];
    let eval = |arguments: &[&str]| run(&files, &[&["--policies", "p.yaml"], arguments].concat());
    let denied = eval(&["bound.yaml", "--operation", "DELETE"]);
    assert_eq!(denied.code, Some(1), "{}", denied.err);
    assert!(denied.out.contains("DELETE persistentvolumeclaims default/c: denied"), "{}", denied.out);
    assert_eq!(eval(&["free.yaml", "--operation", "DELETE"]).code, Some(0));
    let immutable = eval(&["six.yaml", "--operation", "UPDATE", "--old", "four.yaml"]);
    assert!(
        immutable.out.contains("spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}"),
        "{}",
        immutable.out
    );
    let scaled = eval(&["scale.yaml", "--operation", "UPDATE", "--subresource", "scale", "--old", "four.yaml"]);
    assert!(
        scaled.out.starts_with("scale.yaml: UPDATE deployments.apps/scale default/web: allowed"),
        "{}{}",
        scaled.out,
        scaled.err
    );
}

#[test]
fn eval_accepts_an_admission_review() {
    let mut object: Json = serde_saphyr::from_str(&deployment(6)).unwrap();
    object["metadata"]["namespace"] = json!("tools");
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "name": "web", "namespace": "tools", "object": object,
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "userInfo": {"username": "alice", "groups": ["dev"]},
    }});
    let run = run(&[("p.yaml", POLICY), ("r.json", &review.to_string())], &["--policies", "p.yaml", "r.json"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.out.starts_with("r.json: CREATE deployments.apps tools/web: denied\n"), "{}", run.out);
}

#[test]
fn eval_fails_on_a_policy_the_api_server_rejects() {
    let wrong = POLICY.replace("object.spec.replicas <= variables.most", "variables.least");
    let run = run(&[("p.yaml", &wrong), ("d.yaml", &deployment(1))], &["--policies", "p.yaml", "d.yaml"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.contains("undefined field 'least'") && run.err.contains("p.yaml:9"), "{}", run.err);
}

#[test]
fn unknown_authorization_has_no_verdict() {
    let asking =
        POLICY.replace("object.spec.replicas <= variables.most", "authorizer.path('/x').check('get').allowed()");
    let files = [("p.yaml", &*asking), ("d.yaml", &*deployment(1))];
    let alice = run(&files, &["--policies", "p.yaml", "d.yaml", "--user", "alice"]);
    assert_eq!(alice.code, Some(1));
    assert!(
        alice.out.contains("no verdict\n  policy 'replicas': it is not known whether \"alice\" may get /x"),
        "{}",
        alice.out
    );
    let master = run(&files, &["--policies", "p.yaml", "d.yaml", "--group", "system:masters"]);
    assert_eq!(master.code, Some(0), "{}", master.out);
}

#[test]
fn verbose_eval_shows_why_a_policy_was_skipped() {
    let profile = "apiVersion: toolsecurity.dev/v1alpha1\nkind: ToolSecurityProfile\nmetadata: {name: a}\n\
                   spec: {baseline: Privileged, namespaceSelector: {matchLabels: {a: b}}, host: {network: false}}\n";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: tenant, labels: {a: b}}\n";
    let pod = |field| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{{field}containers: [{{name: a, image: b}}]}}\n"
        )
    };
    let (good, bad) = (pod(""), pod("hostNetwork: true, "));
    let files = [("a.yaml", profile), ("ns.yaml", namespace), ("good.yaml", &*good), ("bad.yaml", &*bad)];
    let ask = |request| run(&files, &["--policies", "a.yaml", "--policies", "ns.yaml", request, "-n", "tenant", "-v"]);
    let at = "  palisade-a-pods palisade-a-pods matchConditions[0].expression = ";
    let passed = ask("good.yaml");
    assert!(passed.out.contains(&format!("{at}false (cost ")), "{}", passed.out);
    assert!(passed.out.contains("): the policy is skipped\n") && !passed.out.contains("validations[0]"));
    let judged = ask("bad.yaml");
    assert!(
        judged.out.contains(&format!("{at}true (cost ")) && judged.out.contains("validations[0]"),
        "{}",
        judged.out
    );
}

#[test]
fn profiles_are_compiled_for_the_namespaces_given() {
    let profile = std::fs::read_to_string(TOOLFORGE).unwrap();
    let namespaces = "apiVersion: v1\nkind: Namespace\nmetadata: {name: tool-a, labels: {tenancy: tool}, annotations: {toolforge.org/uid: \"50001\"}}\n\
                      ---\napiVersion: v1\nkind: Namespace\nmetadata: {name: elsewhere}\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b, securityContext: {privileged: true}}]}\n";
    let files = [("profile.yaml", &*profile), ("ns.yaml", namespaces), ("pod.yaml", pod)];
    let ask =
        |namespace| run(&files, &["--policies", "profile.yaml", "--policies", "ns.yaml", "pod.yaml", "-n", namespace]);
    let denied = ask("tool-a");
    assert_eq!(denied.code, Some(1), "{}", denied.err);
    assert!(denied.out.contains("+    runAsUser: 50001") && denied.out.contains("[privileged]"), "{}", denied.out);
    assert!(
        denied.out.contains(
            "by policy palisade-toolforge-pods, binding palisade-toolforge-pods, parameters tool-a/toolforge\n"
        )
    );
    assert_eq!(ask("elsewhere").code, Some(0));
    let unknown = ask("nobody-knows");
    assert!(
        unknown.code == Some(1) && unknown.out.contains("the labels of namespace \"nobody-knows\" are not known"),
        "{}",
        unknown.out
    );
}

#[test]
fn a_namespace_is_judged_at_the_stage_of_its_label() {
    let profile = "\
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Privileged
  privileges: {privileged: false}
  enforcement: {pods: Audit, namespaceStages: ByLabel}
";
    let pod = "\
apiVersion: v1
kind: Pod
metadata: {name: x, namespace: tool}
spec: {containers: [{name: a, image: b, securityContext: {privileged: true}}]}
";
    for (label, denied, warned) in [
        ("", false, false),
        ("stage.toolsecurity.dev/other: Deny", false, false),
        ("stage.toolsecurity.dev/tools: Audit", false, false),
        ("stage.toolsecurity.dev/tools: Warn", false, true),
        ("stage.toolsecurity.dev/tools: Deny", true, false),
        ("stage.toolsecurity.dev/tools: warn", true, false),
        ("stage.toolsecurity.dev/tools: ''", true, false),
    ] {
        let labels = format!("{{tenancy: tool, {label}}}").replace(", }", "}");
        let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: tool\n  labels: {labels}\n");
        let files = [("profile.yaml", profile), ("namespace.yaml", &*namespace), ("pod.yaml", pod)];
        let found = run(&files, &["--policies", "profile.yaml", "--policies", "namespace.yaml", "pod.yaml"]);
        assert_eq!(found.code, Some(i32::from(denied)), "{label}: {}{}", found.out, found.err);
        assert_eq!(found.out.contains("warning: Validation failed"), warned, "{label}: {}", found.out);
    }
}

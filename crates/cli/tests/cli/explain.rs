//! `palisade check --explain`, as a tenant meets it.

use serde_json::{Value as Json, json};

use super::{Run, directory, run_in};

const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]
  users: {runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}}
  images: {redirect: {target: mirror.example}}
  mutation: {defaults: Secure}
";

const NAMESPACE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: tool-a, labels: {tenancy: tool}, annotations: {uid: '50001'}}
";

const GOOD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: good}
spec: {containers: [{name: app, image: nginx}]}
";

const BAD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  hostPID: true
  securityContext: {runAsUser: 0, fsGroup: 7}
  containers:
  - name: app
    image: nginx
    ports: [{containerPort: 80, hostPort: 80}]
    securityContext:
      privileged: true
      capabilities: {add: [NET_BIND_SERVICE, NET_RAW]}
";

fn explain(pod: &str, more: &[&str]) -> Run {
    let files = directory(&[("pod.yaml", pod), ("profile.yaml", PROFILE), ("namespace.yaml", NAMESPACE)]);
    run_in(files.path(), &[&["check", "--explain", "pod.yaml", "--profile", "profile.yaml"], more].concat(), "")
}

const HERE: [&str; 2] = ["--namespaces", "namespace.yaml"];

#[test]
fn explain_shows_the_mutations_of_an_admitted_pod() {
    let run = explain(GOOD, &HERE);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    assert_eq!(
        run.out,
        "Pod/good in namespace tool-a: admitted (profiles: tools)
  mutated:
    pod securityContext.runAsNonRoot true
    pod securityContext.runAsUser 50001
    pod securityContext.seccompProfile {type: RuntimeDefault}
    container \"app\" securityContext.allowPrivilegeEscalation false
    container \"app\" securityContext.capabilities.drop [ALL]
    container \"app\" image nginx is now mirror.example/docker.io/library/nginx

1 object evaluated, no violations
"
    );
}

#[test]
fn explain_shows_the_smallest_change_for_a_denied_pod() {
    let run = explain(BAD, &HERE);
    assert_eq!(run.code, Some(1), "{}", run.err);
    let (_, changed) = run.out.split_once("with this change it passes:\n").unwrap_or_else(|| panic!("{}", run.out));
    let mut lines: Vec<_> = changed.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.sort_unstable();
    // The rest is defaulted, and what may stay stays.
    assert_eq!(
        lines,
        [
            "- spec.containers[0].ports[0].hostPort: 80",
            "- spec.containers[0].securityContext.privileged: true",
            "- spec.hostPID: true",
            "~ spec.containers[0].securityContext.capabilities.add: [\"NET_BIND_SERVICE\",\"NET_RAW\"] -> [\"NET_BIND_SERVICE\"]",
            "~ spec.securityContext.runAsUser: 0 -> 50001",
        ]
    );
}

#[test]
fn suggested_patch_makes_the_pod_pass() {
    let run = explain(BAD, &[&HERE[..], &["-o", "json"]].concat());
    let said: Json = serde_json::from_str(&run.out).unwrap();
    let one = &said["objects"][0];
    assert_eq!(
        one["violations"].as_array().unwrap().iter().filter(|one| one["check"] == "privileged").count(),
        1,
        "{one:#}"
    );
    let patch: json_patch::Patch = serde_json::from_value(one["change"]["patch"].clone()).unwrap();
    let mut pod: Json = serde_saphyr::from_str(BAD).unwrap();
    json_patch::patch(&mut pod, &patch).unwrap();
    let again = explain(&pod.to_string(), &HERE);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    // Nothing was changed that was not refused.
    assert_eq!(pod["spec"]["securityContext"], json!({"fsGroup": 7, "runAsUser": 50001}));
}

#[test]
fn explain_reports_violations_without_a_known_fix() {
    let pod = GOOD.replace("}]}", "}], volumes: [{name: v, hostPath: {path: /}}], hostIPC: true}");
    let run = explain(&pod, &HERE);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("with this change it has fewer violations:\n    - spec.hostIPC: true\n"), "{}", run.out);
    assert!(run.out.contains("[restrictedVolumes] has no change that is known to fix it: see https://"), "{}", run.out);
}

#[test]
fn former_explain_command_is_check_with_a_warning() {
    let files = directory(&[("pod.yaml", BAD), ("profile.yaml", PROFILE), ("namespace.yaml", NAMESPACE)]);
    let former = ["explain", "--pod", "pod.yaml", "--profile", "profile.yaml", "--namespace", "namespace.yaml"];
    let run = run_in(files.path(), &former, "");
    assert_eq!((run.code, run.out), (Some(1), explain(BAD, &HERE).out));
    assert!(run.err.contains("palisade explain is deprecated: use palisade check --explain"), "{}", run.err);
}

#[test]
fn workload_shows_what_its_pods_get() {
    let deployment = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: nginx}]}}
";
    let run = explain(deployment, &HERE);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    let heading = "Deployment/web in namespace tool-a: admitted (profiles: tools)\n  mutated in its pods:\n";
    assert!(
        run.out.starts_with(heading) && run.out.contains("    pod securityContext.runAsUser 50001\n"),
        "{}",
        run.out
    );
}

#[test]
fn explain_without_a_valid_pod_is_no_success() {
    for (pod, code, says) in [
        (NAMESPACE, 2, "no object was evaluated"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}", 1, "spec.containers: Required value"),
    ] {
        let run = explain(pod, &HERE);
        assert_eq!(run.code, Some(code), "{}", run.err);
        assert!(format!("{}{}", run.out, run.err).contains(says), "{}{}", run.out, run.err);
    }
}

fn refused(pod: &str) -> Vec<(String, String)> {
    let run = explain(pod, &[&HERE[..], &["-o", "json"]].concat());
    let said: Json = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.err));
    let text = |one: &Json, field: &str| one[field].as_str().unwrap().to_owned();
    let all = said["objects"][0]["violations"].as_array().unwrap();
    all.iter().map(|one| (text(one, "check"), text(one, "message"))).collect()
}

#[test]
fn hostile_value_forges_no_violation() {
    let forged = "x; [privileged] container \\\"app\\\": forged\\n  x Pod/a: [hostNetwork] pod: forged";
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  hostIPC: true\n  securityContext: {{seLinuxOptions: \
         {{user: \"{forged}\"}}}}\n  containers: [{{name: app, image: nginx}}]\n"
    );
    let found = refused(&pod);
    let checks: Vec<_> = found.iter().map(|(check, _)| check.as_str()).collect();
    assert_eq!(checks, ["hostNamespaces", "seLinuxOptions"], "{found:?}");
    assert!(found[1].1.contains("forged"), "{found:?}");
    let run = explain(&pod, &HERE);
    assert_eq!(run.out.lines().filter(|line| line.starts_with("  x ")).count(), 2, "{}", run.out);
}

#[test]
fn explain_lists_every_violation_despite_truncation() {
    // What the API server says ends after 5 KiB.
    let containers = (0..90)
        .map(|n| {
            format!(
                "  - {{name: container-{n}-{}, image: nginx, securityContext: {{privileged: true}}}}\n",
                "x".repeat(40)
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let found =
        refused(&format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers:\n{containers}"));
    let privileged = found.iter().filter(|(check, message)| check == "privileged" && !message.ends_with("(truncated)"));
    assert_eq!(privileged.count(), 90, "{found:?}");
}

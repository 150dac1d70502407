//! What `palisade eval` and `palisade render` show of what is changed in objects.

use serde_json::{Value as Json, json};

use super::{Run, directory, run_in};

const PROFILES: &str = "\
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  excludeNamespaces: [tool-left-out]
  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]
  users: {runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}}
  exemptions: {groups: [admins]}
  mutation: {defaults: Secure}
---
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: images}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Privileged
  images: {redirect: {target: mirror.example}}
  mutation: {engine: Webhook}
";

const NAMESPACES: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: tool-a, labels: {tenancy: tool}, annotations: {uid: \"50001\"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: tool-left-out, labels: {tenancy: tool}}
---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
";

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {note: \"\\e[31mred\"}}
spec:
  automountServiceAccountToken: false
  containers:
  - {name: app, image: nginx}
";

fn run(profiles: &str, pod: &str, arguments: &[&str]) -> Run {
    let files = directory(&[("profiles.yaml", profiles), ("ns.yaml", NAMESPACES), ("pod.yaml", pod)]);
    run_in(files.path(), arguments, "")
}

fn eval(profiles: &str, pod: &str, more: &[&str]) -> Run {
    let arguments = ["eval", "--policies", "profiles.yaml", "--policies", "ns.yaml", "pod.yaml", "-n", "tool-a"];
    run(profiles, pod, &[&arguments, more].concat())
}

fn answer(run: &Run) -> Json {
    let answers: Json =
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err));
    answers[0].clone()
}

#[test]
fn eval_shows_the_mutations_of_the_webhook() {
    let shown = eval(PROFILES, POD, &["--kube-version", "1.33"]);
    assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""), "{}", shown.out);
    insta::assert_snapshot!("eval_diff", shown.out);
    let whole = eval(PROFILES, POD, &["--kube-version", "1.33", "-v"]);
    assert!(whole.out.contains("@@ -1,") && whole.out.contains("   restartPolicy: Always\n"), "{}", whole.out);
}

#[test]
fn every_engine_mutates_a_pod_alike() {
    let by = |engine: &str, version: &str| {
        let profiles = PROFILES.replace("defaults: Secure", &format!("defaults: Secure, engine: '{engine}'"));
        answer(&eval(&profiles, POD, &["-o", "json", "--kube-version", version]))
    };
    let webhook = by("Webhook", "1.36");
    assert_eq!(webhook["allowed"], json!(true), "{webhook}");
    let pod = &webhook["mutated"];
    assert_eq!(pod["spec"]["securityContext"]["runAsUser"], json!(50001));
    assert_eq!(pod["spec"]["containers"][0]["image"], json!("mirror.example/docker.io/library/nginx"));
    assert_eq!(
        webhook["warnings"][0],
        "mutated by ToolSecurityProfile images: container \"app\" image nginx is now mirror.example/docker.io/library/nginx"
    );
    for (engine, version) in [("Auto", "1.36"), ("Native", "1.35"), ("Auto", "1.35")] {
        let other = by(engine, version);
        assert_eq!(other["mutated"], *pod, "{engine} {version}");
        // A policy sets defaults without a word.
        assert_eq!(
            other["warnings"].as_array().unwrap().len(),
            if version == "1.35" && engine == "Auto" { 2 } else { 1 }
        );
    }
    for (engine, version) in [("Off", "1.36"), ("Native", "1.33")] {
        let other = by(engine, version);
        assert_eq!(
            (&other["allowed"], &other["mutated"]["spec"]["securityContext"]),
            (&json!(false), &json!({})),
            "{engine}"
        );
    }
}

#[test]
fn eval_reports_mutations_as_a_json_patch() {
    let found = answer(&eval(PROFILES, POD, &["-o", "json", "--kube-version", "1.33"]));
    let operations = found["patch"].as_array().unwrap();
    let of = |path: &str| operations.iter().find(|one| one["path"] == path).map(|one| (&one["op"], &one["value"]));
    let image = json!("mirror.example/docker.io/library/nginx");
    assert_eq!(of("/spec/containers/0/image"), Some((&json!("replace"), &image)));
    assert_eq!(of("/spec/securityContext/runAsUser"), Some((&json!("add"), &json!(50001))));
}

#[test]
fn eval_mutates_only_where_a_profile_applies() {
    let with = |from: &str, to: &str, arguments: &[&str]| {
        let (profiles, pod) = (PROFILES.replace(from, to), POD.replace(from, to));
        let found = answer(&eval(&profiles, &pod, &[&["-o", "json", "--kube-version", "1.33"], arguments].concat()));
        (found["mutated"].clone(), found["patch"].clone(), found["warnings"].clone())
    };
    let nothing = (Json::Null, Json::Null, json!([]));
    assert_eq!(with("name: web", "name: web, namespace: elsewhere", &[]), nothing);
    // One profile leaves the namespace out, the other does not.
    assert_eq!(with("name: web", "name: web, namespace: tool-left-out", &[]).0["spec"]["securityContext"], json!({}));
    // Whose requests are exempt.
    assert_eq!(with("", "", &["--group", "admins"]).0["spec"]["securityContext"], json!({}));
    // A policy is not asked, either, about what is not a new pod.
    let old = with("", "", &["--operation", "UPDATE", "--old", "pod.yaml"]);
    assert_eq!(old, nothing);
}

#[test]
fn eval_defaults_new_ephemeral_containers() {
    let pod = format!("{POD}  ephemeralContainers: [{{name: debug, image: busybox}}]\n");
    let old = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(old.path(), POD).unwrap();
    let old = old.path().to_str().unwrap();
    let arguments = ["-o", "json", "--operation", "UPDATE", "--subresource", "ephemeralcontainers", "--old", old];
    for version in ["1.33", "1.36"] {
        let found = answer(&eval(PROFILES, &pod, &[&arguments[..], &["--kube-version", version]].concat()));
        let spec = &found["mutated"]["spec"];
        assert_eq!(
            spec["ephemeralContainers"][0]["image"],
            json!("mirror.example/docker.io/library/busybox"),
            "{found}"
        );
        assert_eq!(spec["ephemeralContainers"][0]["securityContext"]["runAsUser"], json!(50001));
        assert_eq!((&spec["containers"][0]["image"], &spec["securityContext"]), (&json!("nginx"), &json!({})));
    }
}

#[test]
fn render_shows_the_mutated_pod() {
    let render = |pod: &str, more: &[&str]| {
        run(PROFILES, pod, &[&["render", "profiles.yaml", "--pod", "pod.yaml"], more].concat())
    };
    let pod = POD.replace("name: web", "name: web, namespace: tool-a");
    let both = render(&pod, &["--namespaces", "ns.yaml", "--kube-version", "1.33"]);
    assert_eq!((both.code, both.err.as_str()), (Some(0), ""), "{}", both.out);
    insta::assert_snapshot!("render_pod", both.out);
    // The comment is the difference, and the rest is the object.
    let difference = render(&pod, &["--namespaces", "ns.yaml", "-o", "diff"]);
    let comment: Vec<_> = both.out.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    assert_eq!(comment, difference.out.lines().collect::<Vec<_>>());
    let json = render(&pod, &["--namespaces", "ns.yaml", "-o", "json"]);
    let json: Json = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["items"][0], serde_saphyr::from_str::<Json>(&both.out).unwrap());
    let made_up = render(POD, &[]);
    assert!(made_up.err.contains("sample values (profile tools)") && made_up.code == Some(0), "{}", made_up.err);
    let nowhere = render(POD, &["--namespaces", "ns.yaml"]);
    assert!(nowhere.code == Some(2) && nowhere.err.contains("a pod has no namespace"), "{}", nowhere.err);
}

#[test]
fn profiles_redirecting_each_others_images_are_warned_about() {
    let profile = |name: &str| {
        format!(
            "apiVersion: toolsecurity.dev/v1alpha1\nkind: ToolSecurityProfile\nmetadata: {{name: {name}}}\nspec:\n  \
             namespaceSelector: {{matchLabels: {{tenancy: tool}}}}\n  baseline: Privileged\n  \
             images: {{redirect: {{target: {name}.example}}}}\n"
        )
    };
    let both = format!("{}---\n{}", profile("b"), profile("a"));
    let rendered = run(&both, POD, &["render", "profiles.yaml"]);
    assert!(rendered.err.contains("warning: profiles b and a redirect each other's images"), "{}", rendered.err);
    // What would become of them: each is asked once, and once more because the other changed something.
    let found = answer(&eval(&both, POD, &["-o", "json", "--kube-version", "1.33"]));
    let image = &found["mutated"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, json!("b.example/a.example/b.example/a.example/docker.io/library/nginx"));
    let skipping = both.replace("target: a.example", "target: a.example, skip: [b.example]");
    let skipping = skipping.replace("target: b.example", "target: b.example, skip: [a.example]");
    assert_eq!(run(&skipping, POD, &["render", "profiles.yaml"]).err, "");
    let found = answer(&eval(&skipping, POD, &["-o", "json", "--kube-version", "1.33"]));
    assert_eq!(found["mutated"]["spec"]["containers"][0]["image"], json!("a.example/docker.io/library/nginx"));
}

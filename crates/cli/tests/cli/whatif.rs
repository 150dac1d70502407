//! `palisade diff` with files and `palisade replay`, as an admin's CI runs them.

use std::{fs, path::Path, process::Command};

use serde_json::{Value as Json, json};

use super::{Run, directory, run_in};

const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Privileged
  privileges: {privileged: false}
";

const NAMESPACES: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: tool-a, labels: {tenancy: tool}}
---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
";

fn pod(host_pid: bool, privileged: bool) -> Json {
    json!({"hostPID": host_pid, "containers": [
        {"name": "app", "image": "nginx", "securityContext": {"privileged": privileged}},
    ]})
}

/// A Deployment with its ReplicaSet and a pod of it; a pod alone; and a pod that nobody selects.
fn manifests() -> String {
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]);
    let labels = json!({"app": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": pod(true, false)});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    let all = [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "tool-a", "uid": "web"}, "spec": spec}),
        json!({"apiVersion": "v1", "kind": "Pod", "spec": pod(true, false), "status": {"phase": "Running"},
            "metadata": {"name": "web-1-x", "namespace": "tool-a", "labels": labels, "ownerReferences": owner("ReplicaSet", "web-1")}}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec,
            "metadata": {"name": "web-1", "namespace": "tool-a", "uid": "web-1", "ownerReferences": owner("Deployment", "web")}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "single", "namespace": "tool-a"}, "spec": pod(false, true)}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ended", "namespace": "tool-a"}, "spec": pod(true, true),
            "status": {"phase": "Succeeded"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "free", "namespace": "elsewhere"}, "spec": pod(true, true)}),
    ];
    all.map(|object| object.to_string()).join("\n---\n")
}

fn changed() -> String {
    PROFILE.replace("privileges: {privileged: false}", "host: {pid: false}")
}

fn diff(after: &str, more: &[&str]) -> Run {
    let files = [("old.yaml", PROFILE), ("new.yaml", after), ("ns.yaml", NAMESPACES), ("m.yaml", &manifests())];
    let files = directory(&files);
    let arguments = ["diff", "old.yaml", "new.yaml", "--manifests", "m.yaml", "--namespaces", "ns.yaml"];
    run_in(files.path(), &[&arguments[..], more].concat(), "")
}

#[test]
fn a_deployment_with_its_pods_is_one_line() {
    let run = diff(&changed(), &["-o", "json"]);
    assert_eq!((run.code, run.err.as_str()), (Some(1), ""), "{}", run.out);
    let found: Json = serde_json::from_str(&run.out).unwrap();
    let line = |of: &str| {
        let lines = found[of]["workloads"].as_array().unwrap();
        assert_eq!(lines.len(), 1, "{of}: {found:#}");
        (lines[0]["workload"].clone(), lines[0]["objects"].clone(), lines[0]["checks"][0]["check"].clone())
    };
    assert_eq!(line("newlyDenied"), (json!("Deployment/web"), json!(2), json!("hostNamespaces")));
    assert_eq!(line("newlyAdmitted"), (json!("Pod/single"), json!(1), json!("privileged")));
    assert_eq!((&found["judged"], &found["noVerdict"], &found["matters"]), (&json!(3), &json!([]), &json!(true)));
    let human = diff(&changed(), &[]);
    assert!(human.out.contains("\nnewly denied: 2 objects of 1 workload in 1 namespace\n"), "{}", human.out);
    assert!(human.out.contains("+++ AFTER/ValidatingAdmissionPolicy/palisade-tools-pods"), "{}", human.out);
}

#[test]
fn the_change_for_any_pod_precedes_existing_objects() {
    let run = diff(&changed(), &[]);
    let expected = "\
without mutation at the stage Deny (palisade prove has examples):
tools: a loosening and a tightening
  newly admitted: [privileged] container \"main\": securityContext.privileged is true, must be false or unset
  newly denied: [hostNamespaces] pod: spec.hostPID is true, host namespaces are not allowed

3 objects evaluated";
    assert!(run.out.contains(expected), "{}", run.out);
    let json = diff(&changed(), &["-o", "json"]);
    let json: Json = serde_json::from_str(&json.out).unwrap();
    let answer = &json["anyPod"][0];
    assert_eq!((&answer["before"], &answer["change"]), (&json!("tools"), &json!("both")), "{answer:#}");
    assert_eq!(answer["newlyDenied"]["examples"][0]["object"]["spec"]["hostPID"], true, "{answer:#}");
    let markdown = diff(&changed(), &["-o", "markdown"]);
    assert!(markdown.out.contains("- tools: a loosening and a tightening\n  - newly admitted: "), "{}", markdown.out);

    // A stage is no part of a proof, and other parameters have other values.
    let staged = diff(&format!("{PROFILE}  enforcement: {{pods: Warn, workloads: Warn}}\n"), &[]);
    assert!(
        staged.out.contains("\ntools: the same pods are admitted\n  newly admitted: no pod (proved)\n"),
        "{}",
        staged.out
    );
    let parameter = "{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}";
    let parameters = diff(
        &format!(
            "{PROFILE}  parameters: [{parameter}]\n  users: {{runAsUser: {{rule: MustRunAs, ranges: [{{min: $uid, max: $uid}}]}}}}\n"
        ),
        &[],
    );
    assert!(
        parameters.out.contains("\ntools: not decided\n  newly admitted: not decided: spec.parameters differ"),
        "{}{}",
        parameters.out,
        parameters.err
    );
    let renamed = diff(&PROFILE.replace("{name: tools}", "{name: others}"), &[]);
    for expected in ["\nothers: added: it admits no pod", "\ntools: removed: a loosening"] {
        assert!(renamed.out.contains(expected), "{expected}: {}", renamed.out);
    }
}

#[test]
fn a_change_that_only_admits_is_no_failure() {
    let run = diff(&PROFILE.replace("privileged: false", "privileged: true"), &["-o", "markdown"]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(
        run.out.contains("| newly admitted | 1 | 1 | 1 |") && run.out.contains("| newly denied | 0 |"),
        "{}",
        run.out
    );
}

#[test]
fn what_is_only_warned_of_is_counted_apart() {
    let warn = |text: &str| format!("{text}  enforcement: {{pods: Warn, workloads: Warn}}\n");
    let run = diff(&warn(&changed()), &["-o", "json"]);
    let found: Json = serde_json::from_str(&run.out).unwrap();
    assert_eq!(run.code, Some(0), "{found:#}");
    assert_eq!(found["newlyReported"]["total"], json!({"objects": 2, "workloads": 1, "namespaces": 1}));
}

#[test]
fn a_change_that_cannot_matter_is_named() {
    let same = format!("# only a comment\n{PROFILE}  overrides: []\n");
    let run = diff(&same, &[]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "old.yaml -> new.yaml: the profiles are equal: the change has no effect\n")
    );
    // What the baseline says in any case.
    let implied = PROFILE.replace("privileged: false", "privileged: false, allowPrivilegeEscalation: true");
    let run = diff(&implied, &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    assert!(run.out.ends_with("are equal: the change has no effect\n"), "{}", run.out);
    // Neither does the generation, which a profile of a cluster has and a file has not.
    let stored = implied.replace("{name: tools}", "{name: tools, generation: 7}");
    assert_ne!(stored, implied);
    let run = diff(&stored, &[]);
    assert!(run.out.ends_with("are equal: the change has no effect\n"), "{}", run.out);
}

#[test]
fn objects_in_namespaces_are_compared() {
    let profile = |pods: u32, more: &str| {
        format!(
            "{PROFILE}  generate:
  - name: quota
    template: {{apiVersion: v1, kind: ResourceQuota, metadata: {{name: tenant}}, spec: {{hard: {{pods: {pods}}}}}}}
{more}"
        )
    };
    let isolation = "  - name: isolation
    deletionPolicy: Orphan
    template: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: isolation}, spec: {podSelector: {}}}
";
    let run = |old: &str, new: &str, more: &[&str]| {
        let files = [("old.yaml", old), ("new.yaml", new), ("ns.yaml", NAMESPACES), ("m.yaml", &manifests())];
        let files = directory(&files);
        run_in(files.path(), &[&["diff", "old.yaml", "new.yaml"], more].concat(), "")
    };
    let known = ["--manifests", "m.yaml", "--namespaces", "ns.yaml"];
    let found = run(&profile(10, isolation), &profile(20, ""), &known);
    assert_eq!((found.code, found.err.as_str()), (Some(0), ""), "{}", found.out);
    for expected in [
        "NetworkPolicy/isolation is released in 1 namespace (first: tool-a)",
        "ResourceQuota/tenant is changed in 1 namespace (first: tool-a)",
        "--- BEFORE/tool-a/ResourceQuota/tenant\n+++ AFTER/tool-a/ResourceQuota/tenant\n",
        "-    pods: 10\n+    pods: 20\n",
    ] {
        assert!(found.out.contains(expected), "{expected}: {}", found.out);
    }
    let added = run(PROFILE, &profile(10, ""), &[&known[..], &["-o", "json"]].concat());
    let added: Json = serde_json::from_str(&added.out).unwrap();
    let object = &added["objectsInNamespaces"][0];
    assert_eq!((&object["change"], &object["namespaces"]), (&json!("added"), &json!(["tool-a"])), "{added:#}");
    assert_eq!(added["matters"], true);
    // Without namespaces, nothing is claimed.
    let unknown = run(&profile(10, ""), &profile(20, ""), &[]);
    assert!(unknown.out.contains("objects may differ in unknown namespaces"), "{}{}", unknown.out, unknown.err);
}

#[test]
fn a_commit_is_compared_with_the_working_tree() {
    let at = directory(&[("m.yaml", manifests().as_str()), ("ns.yaml", NAMESPACES)]);
    fs::create_dir(at.path().join("profiles")).unwrap();
    let file = at.path().join("profiles/tools.yaml");
    fs::write(&file, PROFILE).unwrap();
    fs::write(at.path().join("profiles/README.md"), "none").unwrap();
    git(at.path(), &["init", "-q"]);
    git(at.path(), &["add", "."]);
    git(at.path(), &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a"]);
    fs::write(&file, changed()).unwrap();
    for place in ["git:HEAD:profiles", "git:HEAD:profiles/tools.yaml"] {
        let run =
            run_in(at.path(), &["diff", place, "profiles/", "--manifests", "m.yaml", "--namespaces", "ns.yaml"], "");
        assert_eq!((run.code, run.err.as_str()), (Some(1), ""), "{}", run.out);
        assert!(run.out.starts_with("HEAD:profiles"), "{}", run.out);
    }
    let none = run_in(at.path(), &["diff", "git:HEAD:nothing", "profiles/"], "");
    assert!(none.code == Some(2) && none.err.contains("file or directory not found in this commit"), "{}", none.err);
    let unknown = run_in(at.path(), &["diff", "git:nope:profiles", "profiles/"], "");
    assert!(unknown.code == Some(2) && unknown.err.contains("nope"), "{}", unknown.err);
}

fn git(at: &Path, arguments: &[&str]) {
    let ran = Command::new("git").current_dir(at).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn mistakes_of_diff_have_their_place() {
    let unselected = manifests().replace("elsewhere", "nowhere");
    let files = directory(&[
        ("a.yaml", PROFILE),
        ("b.yaml", &PROFILE.replace("privileged: false", "nope: 1")),
        ("m.yaml", &unselected),
        ("ns.yaml", NAMESPACES),
    ]);
    let run = |arguments: &[&str]| run_in(files.path(), arguments, "");
    let wrong = run(&["diff", "a.yaml", "b.yaml"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("b.yaml:8:"), "{}{}", wrong.out, wrong.err);
    let nowhere = run(&["diff", "a.yaml", "a.yaml", "--manifests", "m.yaml", "--namespaces", "ns.yaml"]);
    assert!(nowhere.code == Some(2) && nowhere.err.contains("namespace nowhere is not known"), "{}", nowhere.err);
    let no_dump = run(&["diff", "a.yaml", "--dump", "."]);
    assert!(no_dump.code == Some(2) && no_dump.err.contains("not a complete dump"), "{}", no_dump.err);
    let twice = run(&["diff", "-", "-"]);
    assert!(twice.code == Some(2) && twice.err.contains("only one FILE can be standard input"), "{}", twice.err);
    let revision = run(&["diff", "a@x"]);
    assert!(revision.code == Some(2) && revision.err.contains("PROFILE@REVISION"), "{}", revision.err);
}

fn event(verb: &str, object: &Json, code: u16, more: &Json) -> String {
    let mut event = json!({
        "level": "Request", "stage": "ResponseComplete", "verb": verb, "requestURI": "/api/v1/namespaces/tool-a/pods",
        "user": {"username": "jane", "groups": ["system:authenticated"]},
        "objectRef": {"resource": "pods", "namespace": "tool-a", "apiVersion": "v1", "name": "p"},
        "requestObject": object, "responseStatus": {"code": code}, "requestReceivedTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"authorization.k8s.io/decision": "allow"},
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event.to_string()
}

fn replayed(log: &[String], more: &[&str]) -> (Run, Json) {
    let files = directory(&[("new.yaml", changed().as_str()), ("ns.yaml", NAMESPACES)]);
    let arguments = ["replay", "-p", "new.yaml", "--namespaces", "ns.yaml", "-o", "json", "-"];
    let run = run_in(files.path(), &[&arguments[..], more].concat(), log.join("\n"));
    let found = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err));
    (run, found)
}

#[test]
fn requests_of_the_past_are_judged_and_others_counted() {
    let of = |host_pid, privileged| json!({"metadata": {"name": "p"}, "spec": pod(host_pid, privileged)});
    let denied = json!({"responseStatus": {"code": 403, "message": "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'palisade-tools-pods' \
        with binding 'palisade-tools-pods' denied request: 1 violation of ToolSecurityProfile tools: [privileged] container \"app\""}});
    let others = json!({"responseStatus": {"code": 403, "message": "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: no"}});
    let reference = |key: &str, value: &str| {
        let mut reference = json!({"resource": "pods", "namespace": "tool-a", "apiVersion": "v1", "name": "p"});
        reference[key] = value.into();
        json!({"objectRef": reference})
    };
    let none = json!({});
    let log = [
        event("create", &of(true, false), 201, &none),
        event("create", &of(false, true), 403, &denied),
        event("create", &of(false, false), 201, &none),
        event("create", &of(true, true), 403, &denied),
        event("patch", &of(true, false), 201, &none),
        event("patch", &of(true, false), 200, &none),
        event("update", &of(true, false), 200, &none),
        event("update", &of(false, false), 200, &none),
        event("create", &json!(null), 201, &json!({"level": "Metadata"})),
        event("create", &of(true, false), 201, &json!({"requestURI": "/api/v1/namespaces/tool-a/pods?dryRun=All"})),
        event("create", &of(true, false), 409, &none),
        event("create", &of(true, false), 403, &others),
        event("create", &of(true, false), 201, &reference("namespace", "gone")),
        event("patch", &of(true, false), 200, &reference("subresource", "ephemeralcontainers")),
        event("create", &of(true, false), 201, &reference("subresource", "binding")),
        event("create", &of(true, false), 201, &reference("resource", "services")),
        event("delete", &json!(null), 200, &none),
        event("create", &json!({"metadata": {"name": "P!"}, "spec": {}}), 201, &none),
    ];
    let (run, found) = replayed(&log, &[]);
    assert_eq!((run.code, run.err.as_str()), (Some(1), ""), "{found:#}");
    assert_eq!(
        (&found["events"], &found["judged"], &found["stillDenied"]),
        (&json!(18), &json!(6), &json!(1)),
        "{found:#}"
    );
    assert_eq!(found["newlyDenied"]["total"]["objects"], 2);
    assert_eq!(found["newlyAdmitted"]["total"]["objects"], 1);
    let reasons = found["noVerdict"].as_array().unwrap();
    assert!(reasons.iter().all(|one| one["count"] == 1), "{reasons:#?}");
    let parts = [
        "level is Metadata",
        "dry run",
        "409",
        "another policy",
        "namespace is unknown",
        "ephemeralcontainers",
        "a patch",
        "an update",
        "itself rejects",
    ];
    for part in parts {
        assert!(reasons.iter().any(|one| one["reason"].as_str().unwrap().contains(part)), "{part}: {reasons:#?}");
    }
    assert_eq!(reasons.len(), parts.len(), "{reasons:#?}");
}

#[test]
fn an_update_that_passes_whatever_it_replaces_is_judged() {
    let stored = |spec: Json| {
        json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": spec, "status": {"phase": "Running"}})
    };
    let mut debugged = pod(false, false);
    debugged["ephemeralContainers"] = json!([{"name": "e", "image": "nginx", "securityContext": {"privileged": true}}]);
    let template = |host_pid| {
        json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod(host_pid, false)}})
    };
    let of = |kind: &str| json!({"objectRef": {"resource": kind, "apiGroup": "apps", "apiVersion": "v1", "namespace": "tool-a", "name": "p"}});
    let warned = |profile: &str| format!("{profile}  enforcement: {{pods: Deny, workloads: Deny}}\n");
    let log = [
        event("update", &stored(pod(false, false)), 200, &json!({})),
        event("update", &stored(pod(true, false)), 200, &json!({})),
        event("update", &stored(debugged), 200, &json!({})),
        event("update", &stored(template(false)), 200, &of("deployments")),
        event("update", &stored(template(true)), 200, &of("deployments")),
    ];
    let replay = |profile: &str| {
        let files = directory(&[("new.yaml", profile), ("ns.yaml", NAMESPACES)]);
        let run =
            run_in(files.path(), &["replay", "-p", "new.yaml", "--namespaces=ns.yaml", "-ojson", "-"], log.join("\n"));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
        serde_json::from_str::<Json>(&run.out).unwrap()
    };
    let found = replay(&warned(&changed()));
    let unknown = |found: &Json| {
        let all = found["noVerdict"].as_array().unwrap().clone();
        assert!(all.iter().all(|one| one["reason"].as_str().unwrap().contains("an update")), "{found:#}");
        all.iter().map(|one| one["count"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((&found["judged"], unknown(&found)), (&json!(2), 3), "{found:#}");
    // Defaults are set in new pods, and not in updates of pods. A template is judged as the pod that it becomes.
    let mutated = format!("{}  mutation: {{defaults: Secure}}\n", warned(&changed().replace("Privileged", "Baseline")));
    let mutated =
        mutated.replace("host: {pid: false}", "privileges: {seccomp: {allowed: [RuntimeDefault], required: true}}");
    let found = replay(&mutated);
    assert_eq!((&found["judged"], unknown(&found)), (&json!(1), 4), "{found:#}");
}

#[test]
fn owners_are_known_by_their_names_in_the_log() {
    let owned = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
    let set = json!({"metadata": {"name": "web-1", "ownerReferences": owned("Deployment", "web")},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod(true, false)}}});
    let of_sets = json!({"objectRef": {"resource": "replicasets", "apiGroup": "apps", "apiVersion": "v1", "namespace": "tool-a", "name": "web-1"}});
    let of_set = json!({"metadata": {"generateName": "web-1-", "ownerReferences": owned("ReplicaSet", "web-1")}, "spec": pod(true, false)});
    let unnamed = json!({"objectRef": {"resource": "pods", "apiVersion": "v1", "namespace": "tool-a"}});
    let log = [event("create", &set, 201, &of_sets), event("create", &of_set, 201, &unnamed)];
    let (_, found) = replayed(&log, &[]);
    let line = &found["newlyDenied"]["workloads"];
    // The profile does not deny workloads: of both only the pod.
    let denied = (line.as_array().unwrap().len(), &line[0]["workload"], &line[0]["objects"]);
    assert_eq!(denied, (1, &json!("Deployment/web"), &json!(1)), "{found:#}");
    assert_eq!(found["judged"], 2);
}

#[test]
fn a_log_whose_end_is_missing_is_noted() {
    let good = event("create", &json!({"metadata": {"name": "p"}, "spec": pod(false, false)}), 201, &json!({}));
    let (run, found) = replayed(&[good, "{\"level\":".to_owned()], &[]);
    assert_eq!((run.code, &found["judged"]), (Some(0), &json!(1)));
    assert!(run.err.contains("<stdin>: the last line is cut off"), "{}", run.err);
    let files = directory(&[("new.yaml", PROFILE)]);
    let run = run_in(files.path(), &["replay", "-p", "new.yaml", "-"], "");
    assert!(run.code == Some(2) && run.err.contains("--dump DIR, --namespaces FILE or --live"), "{}", run.err);
}

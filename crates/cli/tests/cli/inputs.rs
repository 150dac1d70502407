//! Each command that reads objects or logs, with each form of input: what it cannot judge is named, and never passes.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value as Json, json};

use super::{Run, directory, run_in};

const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec: {namespaceSelector: {matchLabels: {tenancy: tool}}, baseline: Privileged, host: {pid: false}}
";
const NAMESPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: tool-a, labels: {tenancy: tool}}}";

/// A pod that violates the profile.
fn pod() -> Json {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "tool-a"},
        "spec": {"hostPID": true, "containers": [{"name": "c", "image": "a"}]},
    })
}

fn typed_list() -> Json {
    let mut item = pod();
    item.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
    json!({"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [item]})
}

fn list(items: &[Json]) -> Json {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Forms in which the pod is found.
fn understood() -> Vec<(&'static str, String)> {
    let nested = list(&[list(&[]), list(&[typed_list()])]);
    vec![
        ("an object", pod().to_string()),
        ("a list", list(&[pod()]).to_string()),
        ("a list in a list", list(&[list(&[pod()])]).to_string()),
        ("a typed list", typed_list().to_string()),
        ("a typed list in lists", nested.to_string()),
        ("objects in a row", format!("{NAMESPACE}\n---\n{}\n---\n", pod())),
        ("with an empty list", format!("{}\n{}", json!({"apiVersion": "v1", "kind": "PodList", "items": null}), pod())),
    ]
}

/// Forms in which nothing is an object, with what the message has.
fn not_understood() -> Vec<(&'static str, String, &'static str)> {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"object": pod()}});
    let event = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Event", "requestObject": pod()});
    let events = json!({"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": [event]});
    let table = json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table", "rows": [{"object": pod()}]});
    let mut without_version = pod();
    without_version.as_object_mut().unwrap().remove("apiVersion");
    vec![
        ("an array", json!([pod()]).to_string(), "a list"),
        ("a text", "hello".to_owned(), "a string"),
        ("a watch event", json!({"type": "ADDED", "object": pod()}).to_string(), "a watch event"),
        ("a review", review.to_string(), "an AdmissionReview"),
        ("a request", json!({"uid": "u", "operation": "CREATE", "object": pod()}).to_string(), "an admission request"),
        ("a table", table.to_string(), "a Table"),
        ("an audit event", event.to_string(), "an event of an audit log"),
        ("audit events", events.to_string(), "an event of an audit log"),
        ("a wrapped line", json!({"log": pod().to_string()}).to_string(), "a line of a container's log"),
        ("no apiVersion", without_version.to_string(), "this Pod has no apiVersion"),
        ("no apiVersion in a list", list(&[without_version]).to_string(), "this Pod has no apiVersion"),
        ("no kind", json!({"apiVersion": "v1", "spec": pod()["spec"]}).to_string(), "it has no kind"),
        ("values", "a: {b: c}".to_owned(), "no kind and no apiVersion"),
        ("a template", "{{ if .Values.x }}\nkind: Pod\n{{ end }}".to_owned(), "helm template"),
        ("a template in the middle", format!("{NAMESPACE}\n---\n{{{{- range }}}}\nkind: Pod\n"), "helm template"),
    ]
}

/// The commands, with what each says of the pod: its exit code, and a part of what it prints.
const COMMANDS: [(&str, &[&str], i32, &str); 8] = [
    ("check", &["check", "--profile", "profile.yaml", "--namespaces", "ns.yaml", "in"], 1, "[hostNamespaces]"),
    (
        "diff",
        &["diff", "other.yaml", "profile.yaml", "--manifests", "in", "--manifests", "ns.yaml"],
        1,
        "newly denied: 1 object",
    ),
    ("eval", &["eval", "--policies", "profile.yaml", "--policies", "ns.yaml", "in"], 1, "pods tool-a/p: denied"),
    ("eval -f", &["eval", "--policies", "in", "--policies", "ns.yaml", "cm.yaml"], 0, "configmaps tool-a/c: allowed"),
    ("lint", &["lint", "in"], 0, " Pod"),
    ("report", &["report", "in", "ns.yaml", "--profile", "profile.yaml", "-o", "json"], 0, "\"workloads\": 1"),
    ("suggest", &["suggest", "in", "ns.yaml", "--profile", "profile.yaml"], 0, "hostNamespaces"),
    (
        "check --explain",
        &["check", "--explain", "in", "--profile", "profile.yaml", "--namespaces", "ns.yaml"],
        1,
        "hostNamespaces",
    ),
];

fn run(arguments: &[&str], input: &str, more: &[(&str, &str)]) -> Run {
    let other = PROFILE.replace("pid: false", "pid: true");
    let cm = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: tool-a}}";
    let mut files =
        vec![("profile.yaml", PROFILE), ("other.yaml", &other), ("ns.yaml", NAMESPACE), ("cm.yaml", cm), ("in", input)];
    files.extend(more);
    run_in(directory(&files).path(), arguments, "")
}

#[test]
fn an_object_is_found_in_each_form() {
    for (form, input) in understood() {
        for (command, arguments, code, said) in COMMANDS {
            let run = run(arguments, &input, &[]);
            assert_eq!(run.code, Some(code), "{command} of {form}: {}{}", run.out, run.err);
            assert!(run.out.contains(said), "{command} of {form}: {}{}", run.out, run.err);
        }
    }
}

#[test]
fn what_is_no_object_is_named_and_is_no_success() {
    for (form, input, said) in not_understood() {
        for (command, arguments, ..) in COMMANDS {
            // It is a request.
            if (command, form) == ("eval", "a review") {
                continue;
            }
            let run = run(arguments, &input, &[]);
            let unreadable_to_lint = (command, said) == ("lint", "helm template") && run.code == Some(1);
            assert!(
                run.code == Some(2) || unreadable_to_lint,
                "{command} of {form}: {:?} {}{}",
                run.code,
                run.out,
                run.err
            );
            let text = run.out + &run.err;
            assert!(text.contains(said) && text.contains("in:"), "{command} of {form}: {text}");
        }
    }
}

/// What can be judged is shown, whatever stands beside it.
#[test]
fn one_bad_object_does_not_hide_the_verdicts_of_others() {
    let judging = ["check", "diff", "eval", "lint", "report", "suggest"];
    let old = "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: d, namespace: tool-a}}";
    for bad in
        ["hello", "a: [", "{kind: Pod}", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {a: !!int x}}", old]
    {
        for (command, arguments, _, said) in COMMANDS.into_iter().filter(|(command, ..)| judging.contains(command)) {
            // diff takes each file by an option.
            let bad_and_in = if command == "diff" { &["bad", "--manifests", "in"][..] } else { &["bad", "in"] };
            let arguments: Vec<_> =
                arguments.iter().flat_map(|one| if *one == "in" { bad_and_in.to_vec() } else { vec![*one] }).collect();
            let run = run(&arguments, &pod().to_string(), &[("bad", bad)]);
            let passes = command == "lint" && (bad == old || bad.contains("!!int") || run.code == Some(1));
            assert!(run.code == Some(2) || passes, "{command} beside {bad}: {:?} {}{}", run.code, run.out, run.err);
            assert!(run.out.contains(said), "{command} beside {bad}: {}{}", run.out, run.err);
        }
    }
}

#[test]
fn nothing_to_judge_is_no_success_unless_that_is_accepted() {
    let service = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: tool-a}}";
    for (command, arguments, ..) in COMMANDS.into_iter().filter(|(command, ..)| ["check", "diff"].contains(command)) {
        for input in [service, "", "---\n", "{apiVersion: v1, kind: List, items: []}", "values: 1", "a: ["] {
            let refused = run(arguments, input, &[]);
            assert_eq!(refused.code, Some(2), "{command} of {input:?}: {}{}", refused.out, refused.err);
            let accepted = run(&[arguments, &["--allow-unevaluated"]].concat(), input, &[]);
            assert_eq!(accepted.code, Some(0), "{command} of {input:?}: {}{}", accepted.out, accepted.err);
            assert!(accepted.err.contains("note: not evaluated: 1, the first: "), "{command}: {}", accepted.err);
            assert!(!accepted.out.contains("no violations"), "{}", accepted.out);
        }
    }
    for (arguments, input) in [(["lint", "in"], ""), (["lint", "in"], "a: b")] {
        assert_eq!(run(&arguments, input, &[]).code, Some(2));
        assert_eq!(run(&[&arguments[..], &["--allow-unevaluated"]].concat(), input, &[]).code, Some(0));
    }
}

/// Of a namespace that the profiles cannot select nothing is known; of others, all is.
#[test]
fn an_odd_namespace_does_not_hide_the_others() {
    let profile = PROFILE.replace(
        "{matchLabels: {tenancy: tool}}",
        "{matchLabels: {tenancy: tool}, matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}",
    );
    let files = [
        ("profile.yaml", profile),
        ("a", pod().to_string()),
        ("b", pod().to_string().replace("tool-a", "kube-system")),
    ];
    let run = run_in(directory(&files).path(), &["check", "--profile", "profile.yaml", "a", "b"], "");
    assert_eq!(run.code, Some(2), "{}{}", run.out, run.err);
    assert!(run.out.contains("Pod/p: [hostNamespaces]") && run.err.contains("kube-system"), "{}{}", run.out, run.err);
}

/// A request that created the pod, and one that read it.
fn events() -> Vec<Json> {
    let event = |verb: &str, object: Json| {
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Request", "stage": "ResponseComplete", "verb": verb,
            "requestURI": "/api/v1/namespaces/tool-a/pods", "user": {"username": "jane"}, "requestObject": object,
            "objectRef": {"resource": "pods", "namespace": "tool-a", "apiVersion": "v1", "name": "p"},
            "responseStatus": {"code": 201}, "annotations": {"authorization.k8s.io/decision": "allow"},
        })
    };
    vec![event("create", pod()), event("get", Json::Null)]
}

fn logs() -> Vec<(&'static str, Vec<u8>)> {
    let lines = |of: &dyn Fn(&Json) -> String| events().iter().map(|event| of(event) + "\n").collect::<String>();
    let plain = lines(&Json::to_string);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(plain.as_bytes()).unwrap();
    let list = json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": events()});
    let split = |event: &Json, part: &dyn Fn(&str, bool) -> String| {
        let text = event.to_string();
        let (one, other) = text.split_at(text.len() / 2);
        format!("{}\n{}", part(one, false), part(other, true))
    };
    vec![
        ("lines", plain.clone().into_bytes()),
        ("with a byte order mark", format!("\u{feff}{plain}").into_bytes()),
        ("packed", packed.finish().unwrap()),
        ("of CRI", lines(&|event| format!("2026-01-01T00:00:00.1Z stdout F {event}")).into_bytes()),
        (
            "of CRI, split",
            lines(&|event| {
                split(event, &|text, ends| {
                    format!("2026-01-01T00:00:00.1Z stderr {} {text}", if ends { "F" } else { "P" })
                })
            })
            .into_bytes(),
        ),
        (
            "of Docker",
            lines(&|event| json!({"log": format!("{event}\n"), "stream": "stdout"}).to_string()).into_bytes(),
        ),
        (
            "of Docker, split",
            lines(&|event| {
                split(event, &|text, ends| {
                    json!({"log": format!("{text}{}", if ends { "\n" } else { "" }), "stream": "stdout"}).to_string()
                })
            })
            .into_bytes(),
        ),
        ("wrapped", lines(&|event| json!({"log": event.to_string()}).to_string()).into_bytes()),
        ("a list", list.to_string().into_bytes()),
        ("a list over lines", format!("{list:#}").into_bytes()),
        ("an array", json!(events()).to_string().into_bytes()),
        ("over lines", lines(&|event| format!("{event:#}")).into_bytes()),
        ("an array over lines", format!("{:#}", json!(events())).into_bytes()),
        ("cut off", format!("{plain}{}", &plain[..99]).into_bytes()),
    ]
}

fn of_log(command: &str, log: &[u8], more: &[&str]) -> Run {
    let files = directory(&[("profile.yaml", PROFILE.as_bytes()), ("ns.yaml", NAMESPACE.as_bytes()), ("log", log)]);
    let arguments: &[&str] = match command {
        "replay" => &["replay", "-p", "profile.yaml", "--namespaces", "ns.yaml", "log", "-o", "json"],
        _ => &["audit", "log", "-o", "json"],
    };
    run_in(files.path(), &[arguments, more].concat(), "")
}

#[test]
fn events_are_found_in_each_form_of_log() {
    for (form, log) in logs() {
        for (command, code, said) in [("replay", 1, "\"events\": 2"), ("audit", 0, "\"events\": 2")] {
            let run = of_log(command, &log, &[]);
            assert_eq!(run.code, Some(code), "{command} of {form}: {}{}", run.out, run.err);
            assert!(run.out.contains(said), "{command} of {form}: {}{}", run.out, run.err);
        }
    }
}

#[test]
fn a_log_that_is_not_understood_is_no_success() {
    let plain = events().iter().map(Json::to_string).collect::<Vec<_>>().join("\n") + "\n";
    for (form, log, read) in [
        ("empty", String::new(), false),
        ("a text", "hello\n".to_owned(), false),
        ("objects", pod().to_string(), false),
        ("a list of objects", typed_list().to_string(), false),
        ("an event of the API", json!({"kind": "Event", "apiVersion": "v1", "metadata": {}}).to_string(), false),
        ("an array of others", json!([pod()]).to_string(), false),
        ("legacy format", "2026-01-01T00:00:00Z AUDIT: id=\"1\" stage=\"ResponseComplete\"\n".to_owned(), false),
        ("a wrapped text", json!({"log": "hello"}).to_string(), false),
        ("one bad line", format!("hello\n{plain}"), true),
        ("a bad line in the middle", format!("{plain}{{\"a\": 1}}\n{plain}"), true),
        ("another end", format!("{plain}hello"), true),
        ("another value at the end", format!("{plain}{{\"a\": 1}}"), true),
        ("a bad item", format!("{}\n", json!([events()[0], 7])), true),
        ("a broken end", format!("{plain}{{\"kind\": \n"), true),
    ] {
        for command in ["replay", "audit"] {
            let run = of_log(command, log.as_bytes(), &[]);
            assert_eq!(run.code, Some(2), "{command} of {form}: {}{}", run.out, run.err);
            assert!(run.err.contains("audit event"), "{command} of {form}: {}{}", run.out, run.err);
            // What it could read is shown.
            let expected = if command == "replay" && read { "\"judged\": 1" } else { "" };
            assert!(
                run.out.contains(expected) || run.out.contains("\"judged\": 2"),
                "{command} of {form}: {}",
                run.out
            );
            let accepted = of_log(command, log.as_bytes(), &["--allow-unevaluated"]);
            assert_eq!(
                accepted.code,
                Some(i32::from(command == "replay" && read)),
                "{command} of {form}: {}",
                accepted.err
            );
        }
    }
    // Events that no profile judges.
    let only_read = format!("{}\n", events()[1]);
    assert_eq!(of_log("replay", only_read.as_bytes(), &[]).code, Some(2));
    assert_eq!(of_log("audit", only_read.as_bytes(), &[]).code, Some(0));
}

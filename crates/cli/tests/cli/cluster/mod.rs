//! Commands that connect to a cluster, against a simulated API server: a module for a command.

mod audit;
mod history;
mod rollout;
mod server;
mod status;
mod why;

use serde_json::{Value as Json, json};

use self::server::ApiServer;
use super::Run;

const PROFILES: &str = "/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles";
const NAMESPACE: &str = "/api/v1/namespaces/tool-a";

/// A profile in a cluster, for namespaces with the label `tenancy=tool`.
fn profile(name: &str, generation: i64, spec: &Json, status: &Json) -> Json {
    let mut all = json!({"namespaceSelector": {"matchLabels": {"tenancy": "tool"}}});
    json_patch::merge(&mut all, spec);
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": generation, "resourceVersion": "7"},
        "spec": all, "status": status,
    })
}

/// The condition `Ready`, observed for a generation.
fn ready(status: &str, message: &str, generation: i64) -> Json {
    json!({
        "type": "Ready", "status": status, "reason": "X", "message": message, "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// The error of an API server for a missing permission in the whole cluster.
fn forbidden(verb: &str, resource: &str, group: &str) -> (u16, Json) {
    let named = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let message = format!(
        "{named} is forbidden: User \"jane\" cannot {verb} resource \"{resource}\" in API group \"{group}\" at the \
         cluster scope"
    );
    server::failure(403, "Forbidden", &message)
}

/// The output of a run that succeeded and reported nothing else.
fn output(run: &Run) -> &str {
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    &run.out
}

/// The same as JSON.
fn parsed(run: &Run) -> Json {
    serde_json::from_str(output(run)).unwrap()
}

/// Asserts that a run failed with exit code 2 and without output, and reported each of these texts.
fn assert_failed(run: &Run, texts: &[&str]) {
    // Messages are wrapped at the width of a terminal.
    let flat = run.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{flat}");
    for text in texts {
        assert!(flat.contains(text), "{text} is not in: {flat}");
    }
}

/// Asserts that each of these lines is in a text, in this order.
fn assert_lines(text: &str, lines: &[&str]) {
    let mut rest = text.lines();
    for line in lines {
        assert!(rest.any(|found| found == *line), "{line:?} is not in, or not in this order:\n{text}");
    }
}

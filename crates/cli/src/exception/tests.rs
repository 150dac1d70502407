//! Approvals with a simulated API server.

use std::sync::{Arc, Mutex};

use kube::client::Body;
use palisade_kube_json::json;
use serde_json::{Value as Json, json};

use super::*;
use crate::cluster::ClusterArgs;

/// An exception, and its changes between a read and a write.
#[derive(Default)]
struct Server {
    object: Json,
    /// The changes of the object before the first write.
    meanwhile: Vec<(&'static [&'static str], Json)>,
    /// The error that a write returns, if it does not succeed.
    refusal: Option<(u16, &'static str)>,
    written: Vec<Json>,
}

fn exception() -> Json {
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
        "metadata": {"name": "gpu", "namespace": "tool-a", "uid": "u", "generation": 2, "resourceVersion": "7"},
        "spec": {
            "profile": "tools", "checks": ["privileged"], "scope": {"kind": "Namespace"}, "reason": "x",
            "expires": "2999-01-31T00:00:00Z",
        },
    })
}

fn failure(code: u16, reason: &str, message: &str) -> (u16, Json) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": message,
    });
    (code, status)
}

impl Server {
    fn answer(&mut self, method: &http::Method, path: &str, body: &Json) -> (u16, Json) {
        if path.ends_with("/selfsubjectreviews") {
            return (201, json!({"metadata": {}, "status": {"userInfo": {"username": "eve"}}}));
        }
        if *method == http::Method::GET {
            return (200, self.object.clone());
        }
        for (path, value) in std::mem::take(&mut self.meanwhile) {
            json::set(&mut self.object, path, value);
        }
        if let Some((code, message)) = self.refusal {
            return failure(code, "Forbidden", message);
        }
        let version = |of: &Json| of.pointer("/metadata/resourceVersion").cloned();
        if version(body) != version(&self.object) {
            return failure(409, "Conflict", "the object has been modified");
        }
        self.written.push(body.clone());
        let approval = body.pointer("/status/approval").cloned().unwrap_or_default();
        json::set(&mut self.object, &["status", "approval"], approval);
        (200, self.object.clone())
    }
}

/// Runs a command against the server. Returns its error, if there is one, and the writes.
fn with(server: Server, command: impl AsyncFnOnce(Client) -> Result<(), Failure>) -> (Option<String>, Vec<Json>) {
    let server = Arc::new(Mutex::new(server));
    let shared = Arc::clone(&server);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let server = Arc::clone(&shared);
        async move {
            let (parts, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
            let (code, answer) = server.lock().unwrap().answer(&parts.method, parts.uri.path(), &body);
            let answer = Body::from(serde_json::to_vec(&answer)?);
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(http::Response::builder().status(code).body(answer)?)
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    crate::capture::keep();
    let result = runtime.block_on(async { command(Client::new(service, "tool-a")).await });
    let problems = match result {
        Ok(()) => None,
        Err(Failure::CouldNotRun(problems) | Failure::Wrong(problems)) => {
            let text = |one: &Problem| format!("{one}; {}", one.advice().unwrap_or_default());
            Some(problems.iter().map(text).collect())
        }
    };
    let written = server.lock().unwrap().written.clone();
    (problems, written)
}

fn one() -> OneArgs {
    let of = NamespaceArgs { namespace: None, cluster: ClusterArgs::default() };
    OneArgs { name: "gpu".to_owned(), of, format: FormatArgs { output: Format::Human } }
}

fn approve_it(server: Server, generation: Option<i64>) -> (Option<String>, Vec<Json>) {
    let args = ApproveArgs { one: one(), yes: true, generation };
    with(server, async |client| approve(&client, &args).await)
}

#[test]
fn what_was_shown_is_approved_in_the_name_of_who_approves() {
    let (problem, written) = approve_it(Server { object: exception(), ..Server::default() }, None);
    assert_eq!(problem, None);
    let expected = json!({
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "status": {"approval": {"uid": "u", "generation": 2, "by": "eve"}},
    });
    assert_eq!(written, [expected]);
}

#[test]
fn what_was_changed_meanwhile_is_not_approved() {
    let version: (&[&str], Json) = (&["metadata", "resourceVersion"], json!("8"));
    let spec = vec![version.clone(), (&["metadata", "generation"], json!(3))];
    let another = vec![version.clone(), (&["metadata", "uid"], json!("v"))];
    for meanwhile in [spec, another] {
        let server = Server { object: exception(), meanwhile, ..Server::default() };
        let (problem, written) = approve_it(server, None);
        assert!(problem.unwrap().starts_with("exception gpu was modified at the same time; no change was made"));
        assert!(written.is_empty(), "{written:?}");
    }
    // The controller has written its part of the status: that does not invalidate the approval.
    let (problem, written) =
        approve_it(Server { object: exception(), meanwhile: vec![version], ..Server::default() }, None);
    assert_eq!((problem, written.len()), (None, 1));
}

#[test]
fn another_generation_than_the_named_one_is_not_approved() {
    let (problem, written) = approve_it(Server { object: exception(), ..Server::default() }, Some(1));
    assert!(problem.unwrap().starts_with("exception gpu is at generation 2, not 1"));
    assert!(written.is_empty(), "{written:?}");
    let (problem, written) = approve_it(Server { object: exception(), ..Server::default() }, Some(2));
    assert_eq!((problem, written.len()), (None, 1));
}

#[test]
fn whoever_may_not_approve_reads_which_role_is_missing() {
    let server = Server { object: exception(), refusal: Some((403, "not by you")), ..Server::default() };
    let problem = approve_it(server, None).0.unwrap();
    assert!(problem.starts_with("cannot write the approval: not by you; "), "{problem}");
    assert!(problem.contains("palisade-exception-approver by a ClusterRoleBinding"), "{problem}");
}

#[test]
fn an_approval_is_taken_away_once() {
    let revoke_it =
        |object: Json| with(Server { object, ..Server::default() }, async |client| revoke(&client, &one()).await);
    assert_eq!(revoke_it(exception()), (None, Vec::new()));
    let mut approved = exception();
    json::set(&mut approved, &["status", "approval"], json!({"uid": "u", "generation": 1}));
    let (problem, written) = revoke_it(approved);
    assert_eq!(problem, None);
    assert_eq!(written, [json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"approval": null}})]);
}

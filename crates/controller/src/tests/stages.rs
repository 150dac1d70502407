//! Single stages: requests, the revision, the report, the watches.

use std::time::Duration;

use http::Method;
use kube::Api;
use palisade_api::{ToolSecurityParams, ToolSecurityParamsSpec, names};
use serde_json::json;
use tokio::time::Instant;

use super::{
    BINDINGS, PROFILES, Setup,
    mock::{Mock, Respond},
    params_path, path,
};
use crate::{api_request::ApiError, generated::converge::converge, watch::observe};

#[tokio::test(start_paused = true)]
async fn write_outcome_follows_from_the_response() {
    // The response and its repetitions; the requests, the seconds, and the result.
    let table: [(Respond, usize, usize, u64, &str); 9] = [
        (Respond::Error(409), 2, 3, 0, "written"),
        (Respond::Error(409), 9, 3, 0, "conflict"),
        (Respond::Error(422), 1, 1, 0, "refusal"),
        (Respond::Error(403), 1, 1, 0, "refusal"),
        (Respond::Error(404), 1, 1, 0, "not found"),
        (Respond::Error(429), 1, 1, 0, "error"),
        (Respond::Error(500), 1, 1, 0, "error"),
        (Respond::After(Duration::from_secs(20)), 1, 1, 20, "written"),
        (Respond::Never, 1, 1, 30, "timeout"),
    ];
    for (respond, times, requests, seconds, expected) in table {
        let (mock, client) = Mock::start();
        let (answer, left) = (respond.clone(), std::sync::atomic::AtomicUsize::new(times));
        mock.rule(move |_| {
            let more =
                left.fetch_update(std::sync::atomic::Ordering::Relaxed, std::sync::atomic::Ordering::Relaxed, |n| {
                    n.checked_sub(1)
                });
            if more.is_ok() { answer.clone() } else { Respond::Normally }
        });
        let mut params = ToolSecurityParams::new("tools", ToolSecurityParamsSpec::default());
        params.metadata.namespace = Some("n".into());
        let (start, api) = (Instant::now(), Api::namespaced(client, "n"));
        let result = converge(&api, &params, None, names::field_manager::PARAMS, |_| true).await;
        let ended = match result {
            Ok(_) => "written",
            Err(ApiError::Timeout(_)) => "timeout",
            Err(error) if error.is_conflict() => "conflict",
            Err(error) if error.is_refusal() => "refusal",
            Err(error) if error.is_not_found() => "not found",
            Err(_) => "error",
        };
        assert_eq!((ended, start.elapsed().as_secs()), (expected, seconds), "{respond:?}");
        assert_eq!(mock.asked().len(), requests, "{respond:?}");
    }
}

#[tokio::test]
async fn a_spec_that_others_changed_is_restored_by_one_patch() {
    let params = |uid: i64| {
        let spec =
            ToolSecurityParamsSpec { integers: [("uid".into(), uid)].into(), ..ToolSecurityParamsSpec::default() };
        let mut params = ToolSecurityParams::new("tools", spec);
        params.metadata.namespace = Some("n".into());
        params
    };
    let (desired, edited) = (params(1), params(2));
    let patch = json!({"metadata": {}, "spec": {"integers": {"uid": 1}}});
    // The answer of the API server to the patch, and the requests: the patch, and then perhaps the whole object.
    for (respond, sent) in [
        (None, vec![patch.clone()]),
        (Some(404), vec![patch.clone(), json!(desired)]),
        (Some(422), vec![patch.clone()]),
        (Some(500), vec![patch.clone()]),
    ] {
        let (mock, client) = Mock::start();
        mock.put(&params_path("tools", "n"), json!(edited));
        mock.rule(move |asked| match respond {
            Some(code) if asked.body.get("apiVersion").is_none() => Respond::Error(code),
            _ => Respond::Normally,
        });
        let same = |found: &ToolSecurityParams| found.spec == desired.spec;
        let api = Api::namespaced(client, "n");
        let result = converge(&api, &desired, Some(&edited), names::field_manager::PARAMS, same).await;
        assert_eq!(result.is_ok(), respond.is_none_or(|code| code == 404), "{respond:?}: {:?}", result.err());
        let asked: Vec<_> = mock.asked().into_iter().map(|asked| asked.body).collect();
        assert_eq!(asked, sent, "{respond:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_writes_of_revision_or_status_block_nothing() {
    for (kind, method) in [("controllerrevisions", Method::POST), ("toolsecurityprofiles", Method::PATCH)] {
        for respond in [
            Respond::Error(409),
            Respond::Error(422),
            Respond::Error(429),
            Respond::Error(500),
            Respond::After(Duration::from_secs(20)),
            Respond::Never,
        ] {
            let setup = Setup::new(&["n0"]);
            let (answer, stage) = (respond.clone(), method.clone());
            setup.mock.rule(move |asked| {
                if asked.is_of(kind) && asked.method == stage { answer.clone() } else { Respond::Normally }
            });
            setup.run();
            setup.write("tools", 1, 100);
            let took = setup.in_force("tools", 1).await;
            assert!(took < Duration::from_secs(2), "{kind} {respond:?}: in force after {took:?}");
            setup.delete(BINDINGS, "tools");
            let took = setup.in_force("tools", 1).await;
            assert!(took < Duration::from_millis(200), "{kind} {respond:?}: repaired after {took:?}");
            setup.add_namespace("n1");
            let new = super::params_path("tools", "n1");
            let took = setup.until("parameters", |mock| mock.get(&new).is_some()).await;
            assert!(took < Duration::from_secs(1), "{kind} {respond:?}: parameters after {took:?}");
            // And once it can, it is.
            setup.mock.rule(|_| Respond::Normally);
            setup.condition("tools", "Programmed", "Programmed").await;
            let revisions = format!(
                "/apis/apps/v1/namespaces/{}/controllerrevisions/{}",
                names::OPERATOR_NAMESPACE,
                names::revision("tools", 1)
            );
            setup.until("the revision", |mock| mock.get(&revisions).is_some()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_the_finalizer() {
    for respond in [Respond::Error(409), Respond::Error(429), Respond::Error(500), Respond::Never] {
        let setup = Setup::new(&["n0"]);
        let answer = respond.clone();
        setup
            .mock
            .rule(move |asked| if asked.is_of("toolsecurityprofiles") { answer.clone() } else { Respond::Normally });
        setup.run();
        let mut profile = super::profile("tools", 1, 100);
        profile["metadata"]["finalizers"] = json!([]);
        setup.observe(&profile);
        tokio::time::sleep(Duration::from_mins(3)).await;
        assert!(setup.mock.get(&path(BINDINGS, "tools")).is_none(), "{respond:?}");
        let asked = setup.mock.writes();
        let path = format!("PATCH {PROFILES}/tools");
        assert!(asked.len() > 1 && asked.iter().all(|write| *write == path), "{respond:?}: {asked:?}");
        setup.mock.rule(|_| Respond::Normally);
        setup.in_force("tools", 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn watch_restarts_however_it_ended() {
    let expired =
        json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}});
    let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "Namespace", "apiVersion": "v1", "metadata": {"resourceVersion": "150", "creationTimestamp": null}}});
    for (respond, lists) in [
        (Respond::Events(vec![expired]), 2),
        (Respond::Events(vec![bookmark]), 1),
        (Respond::Events(vec![]), 1),
        (Respond::Events(vec![json!({"nonsense": true})]), 1),
        (Respond::Error(429), 1),
        (Respond::Error(500), 1),
    ] {
        let setup = Setup::new(&[]);
        let (answer, first) = (respond.clone(), std::sync::atomic::AtomicBool::new(true));
        setup.mock.rule(move |asked| {
            let of_namespaces = asked.path == "/api/v1/namespaces" && asked.query.contains("watch=true");
            if of_namespaces && first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                answer.clone()
            } else {
                Respond::Normally
            }
        });
        observe::start(&setup.cx.client, &setup.cx.store, &setup.cx.queues, &setup.cx.supervisor);
        setup.until("a watch", |mock| mock.watched("/api/v1/namespaces") >= 1).await;
        setup.mock.put(
            "/api/v1/namespaces/late",
            json!({"metadata": {"name": "late", "resourceVersion": "160", "labels": {}}}),
        );
        setup.until("another watch", |mock| mock.watched("/api/v1/namespaces") >= 2).await;
        let asked = setup.mock.asked();
        let listed =
            asked.iter().filter(|it| it.path == "/api/v1/namespaces" && !it.query.contains("watch=true")).count();
        assert!(listed >= lists, "{respond:?}: {listed} lists");
        assert_eq!(setup.cx.store.has_namespace("late"), listed > 1, "{respond:?}");
        assert!(!setup.cx.stop.is_cancelled(), "{respond:?}");
    }
}

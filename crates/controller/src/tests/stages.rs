//! Single stages: requests, the revision, the report, the watches.

use std::time::Duration;

use http::Method;
use kube::Api;
use palisade_api::{ToolSecurityParams, ToolSecurityParamsSpec, names};
use serde_json::json;
use tokio::time::Instant;

use super::{
    BINDINGS, PROFILES, Scene,
    mock::{Mock, Say},
    path,
};
use crate::{call::ApiError, converge::converge, observe};

#[tokio::test(start_paused = true)]
async fn a_write_ends_with_each_answer() {
    // What is said, how often; requests, seconds, and what it ends with.
    let table: [(Say, usize, usize, u64, &str); 9] = [
        (Say::No(409), 2, 3, 0, "written"),
        (Say::No(409), 9, 3, 0, "conflict"),
        (Say::No(422), 1, 1, 0, "refusal"),
        (Say::No(403), 1, 1, 0, "refusal"),
        (Say::No(404), 1, 1, 0, "not found"),
        (Say::No(429), 1, 1, 0, "error"),
        (Say::No(500), 1, 1, 0, "error"),
        (Say::Late(Duration::from_secs(20)), 1, 1, 20, "written"),
        (Say::Never, 1, 1, 30, "timeout"),
    ];
    for (say, times, requests, seconds, expected) in table {
        let (mock, client) = Mock::start();
        let (answer, left) = (say.clone(), std::sync::atomic::AtomicUsize::new(times));
        mock.rule(move |_| {
            let more =
                left.fetch_update(std::sync::atomic::Ordering::Relaxed, std::sync::atomic::Ordering::Relaxed, |n| {
                    n.checked_sub(1)
                });
            if more.is_ok() { answer.clone() } else { Say::Well }
        });
        let mut params = ToolSecurityParams::new("tools", ToolSecurityParamsSpec::default());
        params.metadata.namespace = Some("n".into());
        let (start, api) = (Instant::now(), Api::namespaced(client, "n"));
        let result = converge(&api, &params, names::field_manager::PARAMS, |_| true).await;
        let ended = match result {
            Ok(_) => "written",
            Err(ApiError::Timeout(_)) => "timeout",
            Err(error) if error.is_conflict() => "conflict",
            Err(error) if error.is_refusal() => "refusal",
            Err(error) if error.is_not_found() => "not found",
            Err(_) => "error",
        };
        assert_eq!((ended, start.elapsed().as_secs()), (expected, seconds), "{say:?}");
        assert_eq!(mock.asked().len(), requests, "{say:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_or_told_stops_nothing() {
    for (kind, method) in [("controllerrevisions", Method::POST), ("toolsecurityprofiles", Method::PATCH)] {
        for say in
            [Say::No(409), Say::No(422), Say::No(429), Say::No(500), Say::Late(Duration::from_secs(20)), Say::Never]
        {
            let scene = Scene::new(&["n0"]);
            let (answer, stage) = (say.clone(), method.clone());
            scene
                .mock
                .rule(move |asked| if asked.is_of(kind) && asked.method == stage { answer.clone() } else { Say::Well });
            scene.run();
            scene.write("tools", 1, 100);
            let took = scene.in_force("tools", 1).await;
            assert!(took < Duration::from_secs(2), "{kind} {say:?}: in force after {took:?}");
            scene.delete(BINDINGS, "tools");
            let took = scene.in_force("tools", 1).await;
            assert!(took < Duration::from_millis(200), "{kind} {say:?}: repaired after {took:?}");
            scene.add_namespace("n1");
            let new = super::params_path("tools", "n1");
            let took = scene.until("parameters", |mock| mock.get(&new).is_some()).await;
            assert!(took < Duration::from_secs(1), "{kind} {say:?}: parameters after {took:?}");
            // And once it can, it is.
            scene.mock.rule(|_| Say::Well);
            scene.said("tools", "Programmed", "Programmed").await;
            let revisions = format!(
                "/apis/apps/v1/namespaces/{}/controllerrevisions/{}",
                names::OPERATOR_NAMESPACE,
                names::revision("tools", 1)
            );
            scene.until("the revision", |mock| mock.get(&revisions).is_some()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_cannot_be_added_lets_nothing_be_written() {
    for say in [Say::No(409), Say::No(429), Say::No(500), Say::Never] {
        let scene = Scene::new(&["n0"]);
        let answer = say.clone();
        scene.mock.rule(move |asked| if asked.is_of("toolsecurityprofiles") { answer.clone() } else { Say::Well });
        scene.run();
        let mut profile = super::profile("tools", 1, 100);
        profile["metadata"]["finalizers"] = json!([]);
        scene.see(&profile);
        tokio::time::sleep(Duration::from_mins(3)).await;
        assert!(scene.mock.get(&path(BINDINGS, "tools")).is_none(), "{say:?}");
        let asked = scene.mock.writes();
        let path = format!("PATCH {PROFILES}/tools");
        assert!(asked.len() > 1 && asked.iter().all(|write| *write == path), "{say:?}: {asked:?}");
        scene.mock.rule(|_| Say::Well);
        scene.in_force("tools", 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_anew_whatever_ends_it() {
    let expired =
        json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}});
    let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "Namespace", "apiVersion": "v1", "metadata": {"resourceVersion": "150", "creationTimestamp": null}}});
    for (say, lists) in [
        (Say::Events(vec![expired]), 2),
        (Say::Events(vec![bookmark]), 1),
        (Say::Events(vec![]), 1),
        (Say::Events(vec![json!({"nonsense": true})]), 1),
        (Say::No(429), 1),
        (Say::No(500), 1),
    ] {
        let scene = Scene::new(&[]);
        let (answer, first) = (say.clone(), std::sync::atomic::AtomicBool::new(true));
        scene.mock.rule(move |asked| {
            let of_namespaces = asked.path == "/api/v1/namespaces" && asked.query.contains("watch=true");
            if of_namespaces && first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                answer.clone()
            } else {
                Say::Well
            }
        });
        observe::start(&scene.cx.client, &scene.cx.store, &scene.cx.queues, &scene.cx.supervisor);
        scene.until("a watch", |mock| mock.watched("/api/v1/namespaces") >= 1).await;
        scene.mock.put(
            "/api/v1/namespaces/late",
            json!({"metadata": {"name": "late", "resourceVersion": "160", "labels": {}}}),
        );
        scene.until("another watch", |mock| mock.watched("/api/v1/namespaces") >= 2).await;
        let asked = scene.mock.asked();
        let listed =
            asked.iter().filter(|it| it.path == "/api/v1/namespaces" && !it.query.contains("watch=true")).count();
        assert!(listed >= lists, "{say:?}: {listed} lists");
        assert_eq!(scene.cx.store.has_namespace("late"), listed > 1, "{say:?}");
        assert!(!scene.cx.stop.is_cancelled(), "{say:?}");
    }
}

//! What happens to one profile while others, or its own namespaces, are in trouble. The clock is the test's.

use std::time::Duration;

use http::Method;
use palisade_api::names;
use serde_json::json;
use tokio::time::Instant;

use super::{
    BINDINGS, POLICIES, PROFILES, Scene,
    mock::{Asked, Say},
    params_path, path, profile,
};
use crate::{health::Heartbeat, lane::Lane, queue::Next};

fn names_of(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("n{n}")).collect()
}

fn scene(namespaces: usize) -> Scene {
    let names = names_of(namespaces);
    Scene::new(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Whether the object of a request is of a generation.
fn is_of_generation(asked: &Asked, generation: i64) -> bool {
    asked.body["metadata"]["annotations"][names::GENERATION_ANNOTATION].as_str()
        == Some(generation.to_string().as_str())
}

#[tokio::test(start_paused = true)]
async fn repair_waits_for_nothing() {
    let scene = scene(40);
    scene.run();
    scene.write("healthy", 1, 100);
    scene.in_force("healthy", 1).await;
    // From here on, whatever else is asked is never answered: parameters, probes, statuses, dry runs, revisions.
    scene.mock.rule(|asked| {
        let restored = asked.path.contains("palisade-healthy-") && !asked.is_dry_run() && !asked.is_of("namespaces");
        if restored { Say::Well } else { Say::Never }
    });
    for broken in 0..25 {
        scene.write(&format!("broken-{broken}"), 1, 100);
        scene.add_namespace(&format!("new-{broken}"));
    }
    // And a new generation of its own waits for parameters that hang.
    let mut next = profile("healthy", 2, 100);
    next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
    scene.see(&next);
    tokio::time::sleep(Duration::from_secs(2)).await;
    for kind in [BINDINGS, POLICIES] {
        for _ in 0..3 {
            scene.delete(kind, "healthy");
            let took = scene.in_force("healthy", 1).await;
            assert!(took < Duration::from_millis(200), "{kind} was back after {took:?}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_namespace_comes_before_thousands() {
    let scene = scene(1000);
    scene.mock.rule(
        |asked| if asked.is_of("toolsecurityparams") { Say::Late(Duration::from_millis(100)) } else { Say::Well },
    );
    scene.run();
    scene.write("a", 1, 100);
    scene.write("b", 1, 100);
    for name in ["a", "b"] {
        let first = params_path(name, "n0");
        scene.until("the first parameters", |mock| mock.get(&first).is_some()).await;
    }
    scene.add_namespace("new");
    let new = ["a", "b"].map(|name| params_path(name, "new"));
    let took = scene.until("parameters", |mock| new.iter().all(|path| mock.get(path).is_some())).await;
    assert!(took < Duration::from_millis(500), "parameters after {took:?}");
    assert!(scene.mock.get(&params_path("a", "n999")).is_none(), "the others were written first");
    // Parameters come first when something is new.
    assert!(scene.mock.get(&path(POLICIES, "a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_fails_is_named_and_falsifies_nothing() {
    let scene = scene(10);
    let (hangs, refused) = (params_path("tools", "n3"), params_path("tools", "n5"));
    let at = [hangs.clone(), refused.clone()];
    scene.mock.rule(move |asked| match at.iter().position(|path| *path == asked.path) {
        Some(0) => Say::Never,
        Some(_) => Say::No(422),
        None => Say::Well,
    });
    scene.run();
    scene.write("tools", 1, 100);
    let took = scene.in_force("tools", 1).await;
    assert!(took < Duration::from_secs(6), "in force after {took:?}");
    let (status, _) = scene.said("tools", "Programmed", "Programmed").await;
    assert_eq!(status, "True");
    // Asking goes on: here there is no namespace to ask in.
    let (status, _) = scene.said("tools", "Enforced", "ProbeFailed").await;
    assert_eq!(status, "Unknown");
    let at = format!("{PROFILES}/tools/status");
    scene.until("both counted", |mock| mock.get(&at).unwrap()["status"]["namespaces"]["failed"] == 2).await;
    let status = scene.mock.get(&at).unwrap();
    let failed = status["status"]["failedNamespaces"].as_array().unwrap();
    assert_eq!([&failed[0]["name"], &failed[1]["name"]], ["n3", "n5"]);
    assert_eq!(status["status"]["namespaces"], json!({"selected": 10, "ready": 8, "failed": 2}));
    let (status, message) = scene.said("tools", "Programmed", "Programmed").await;
    assert_eq!(status, "True");
    assert!(message.contains("the parameters of 2 namespaces could not be written"), "{message}");
    // And when they can be written, they are.
    scene.mock.rule(|_| Say::Well);
    scene.until("written", |mock| mock.get(&hangs).is_some() && mock.get(&refused).is_some()).await;
    scene.until("none counted", |mock| mock.get(&at).unwrap()["status"]["namespaces"]["ready"] == 10).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_rejects_leaves_the_last_generation_whole() {
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    for (code, kind) in [(400, policies), (403, bindings), (413, policies), (422, bindings)] {
        let scene = scene(3);
        scene.run();
        scene.write("tools", 1, 100);
        scene.in_force("tools", 1).await;
        scene.said("tools", "Programmed", "Programmed").await;
        scene.mock.rule(
            move |asked| {
                if asked.is_of(kind) && is_of_generation(asked, 2) { Say::No(code) } else { Say::Well }
            },
        );
        scene.mock.asked();
        // Another value of the parameter, so that something would be written.
        let mut next = profile("tools", 2, 200);
        next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
        scene.see(&next);
        let (status, message) = scene.said("tools", "Accepted", "RefusedByApiServer").await;
        assert_eq!(status, "False");
        assert!(message.contains(&format!("the mock says {code}")), "{message}");
        let (status, message) = scene.said("tools", "Programmed", "LastGoodInForce").await;
        assert_eq!((status.as_str(), message.contains("generation 1")), ("False", true), "{message}");
        // Not even its parameters.
        let written = scene.mock.writes();
        let generated =
            |path: &&String| path.contains("/toolsecurityparams/") || path.contains("admissionregistration");
        assert_eq!(written.iter().find(generated), None, "{code} {kind}");
        scene.delete(POLICIES, "tools");
        scene.in_force("tools", 1).await;
        // It is asked again, and when it is taken, it is in force.
        scene.mock.rule(|_| Say::Well);
        scene.in_force("tools", 2).await;
        assert_eq!(scene.mock.get(&params_path("tools", "n1")).unwrap()["spec"]["integers"]["uid"], 7);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_rejected_in_the_middle_is_taken_back_whole() {
    let scene = scene(3);
    scene.run();
    scene.write("tools", 1, 100);
    scene.in_force("tools", 1).await;
    // The dry run is answered well, and the policy is taken.
    scene.mock.rule(|asked| {
        let binding = asked.is_of("validatingadmissionpolicybindings") && !asked.is_dry_run();
        if binding && is_of_generation(asked, 2) { Say::No(403) } else { Say::Well }
    });
    let mut next = profile("tools", 2, 200);
    next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
    scene.see(&next);
    scene.said("tools", "Accepted", "RefusedByApiServer").await;
    scene.in_force("tools", 1).await;
    let params = params_path("tools", "n1");
    scene.until("its parameters", |mock| mock.get(&params).unwrap()["spec"]["integers"]["uid"] == 50001).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_verdict_of_the_api_server_nothing_is_written() {
    for say in [Say::No(409), Say::No(429), Say::No(500), Say::No(503), Say::Never] {
        let scene = scene(3);
        scene.run();
        scene.write("tools", 1, 100);
        scene.in_force("tools", 1).await;
        scene.said("tools", "Programmed", "Programmed").await;
        let answer = say.clone();
        scene.mock.rule(
            move |asked| if asked.is_dry_run() && is_of_generation(asked, 2) { answer.clone() } else { Say::Well },
        );
        scene.mock.asked();
        scene.write("tools", 2, 200);
        let (status, _) = scene.said("tools", "Programmed", "ApplyFailed").await;
        assert_eq!(status, "False", "{say:?}");
        tokio::time::sleep(Duration::from_mins(2)).await;
        let written = scene.mock.writes();
        assert!(!written.iter().any(|path| path.contains("admissionregistration")), "{say:?}: {written:?}");
        scene.mock.rule(|_| Say::Well);
        scene.in_force("tools", 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_repair_that_fails_is_tried_again_and_told() {
    for say in [Say::No(409), Say::No(422), Say::No(429), Say::No(500), Say::Late(Duration::from_secs(3)), Say::Never] {
        let scene = scene(3);
        scene.run();
        scene.write("tools", 1, 100);
        scene.in_force("tools", 1).await;
        scene.said("tools", "Programmed", "Programmed").await;
        let (answer, late) = (say.clone(), matches!(say, Say::Late(_)));
        scene.mock.rule(move |asked| {
            if asked.is_write() && asked.is_of("validatingadmissionpolicybindings") {
                answer.clone()
            } else {
                Say::Well
            }
        });
        scene.delete(BINDINGS, "tools");
        if !late {
            let (status, message) = scene.said("tools", "Programmed", "ApplyFailed").await;
            assert_eq!(status, "False", "{say:?}: {message}");
            scene.mock.rule(|_| Say::Well);
        }
        let took = scene.in_force("tools", 1).await;
        assert!(took < Duration::from_secs(20), "{say:?}: back after {took:?}");
        scene.said("tools", "Programmed", "Programmed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_profile_is_removed_whatever_fails_first() {
    let table = [
        ("validatingadmissionpolicybindings", Method::DELETE, Say::No(409)),
        ("validatingadmissionpolicybindings", Method::DELETE, Say::Never),
        ("validatingadmissionpolicies", Method::DELETE, Say::No(429)),
        ("toolsecurityparams", Method::DELETE, Say::No(500)),
        ("toolsecurityparams", Method::DELETE, Say::Never),
        ("controllerrevisions", Method::DELETE, Say::Never),
        ("toolsecurityprofiles", Method::PATCH, Say::No(409)),
        ("toolsecurityprofiles", Method::PATCH, Say::No(500)),
    ];
    for (kind, method, say) in table {
        let scene = scene(5);
        scene.run();
        scene.write("tools", 1, 100);
        scene.in_force("tools", 1).await;
        let (answer, stage) = (say.clone(), method.clone());
        scene
            .mock
            .rule(move |asked| if asked.method == stage && asked.is_of(kind) { answer.clone() } else { Say::Well });
        let mut deleted = profile("tools", 1, 100);
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        scene.see(&deleted);
        tokio::time::sleep(Duration::from_mins(2)).await;
        let finalizers = |scene: &Scene| {
            let profile = scene.mock.get(&format!("{PROFILES}/tools")).unwrap();
            profile["metadata"]["finalizers"].as_array().map_or(0, Vec::len)
        };
        assert_eq!(finalizers(&scene), 1, "{kind} {say:?}: it was let go too early");
        scene.mock.rule(|_| Say::Well);
        scene.until("let go", |_| finalizers(&scene) == 0).await;
        for left in [path(POLICIES, "tools"), path(BINDINGS, "tools"), params_path("tools", "n4")] {
            assert!(scene.mock.get(&left).is_none(), "{kind} {say:?}: {left} is left");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_hangs_holds_up_no_other() {
    let scene = scene(30);
    scene.run();
    for name in ["tools", "other"] {
        scene.write(name, 1, 100);
        scene.in_force(name, 1).await;
    }
    let hangs = params_path("tools", "n0");
    scene
        .mock
        .rule(move |asked| if asked.method == Method::DELETE && asked.path == hangs { Say::Never } else { Say::Well });
    let mut deleted = profile("tools", 1, 100);
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    scene.see(&deleted);
    let others: Vec<_> = (1..30).map(|n| params_path("tools", &format!("n{n}"))).collect();
    let took = scene.until("the others deleted", |mock| others.iter().all(|path| mock.get(path).is_none())).await;
    assert!(took < Duration::from_secs(15), "the others were deleted after {took:?}");
    scene.delete(BINDINGS, "other");
    assert!(scene.in_force("other", 1).await < Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_a_selection_loses_its_parameters_after_the_api_server_knows() {
    let scene = scene(3);
    scene.run();
    scene.write("tools", 1, 100);
    scene.in_force("tools", 1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut left = super::namespace("n1");
    left.metadata.labels = None;
    let concerned = scene.cx.store.see_namespace(kube::runtime::watcher::Event::Apply(left));
    scene.cx.queues.params.trigger(concerned);
    let gone = params_path("tools", "n1");
    let took = scene.until("deleted", |mock| mock.get(&gone).is_none()).await;
    assert!(took >= Duration::from_secs(2), "deleted after {took:?}");
    assert!(scene.mock.get(&params_path("tools", "n0")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_panics_is_no_trouble_of_others() {
    let scene = scene(0);
    let start = Instant::now();
    Lane::start(
        &scene.cx,
        "test",
        &scene.cx.queues.reconcile,
        &std::sync::Arc::new(Heartbeat::new()),
        |cx, profile| {
            Box::pin(async move {
                cx.metrics.drifted(if profile == "bad" { "bad" } else { "good" });
                assert!(profile != "bad", "a bug");
                Next::Change
            })
        },
    );
    let count = |kind: &str| {
        let text = scene.cx.metrics.text().unwrap();
        let line =
            text.lines().find(|line| line.starts_with(&format!("palisade_drift_repaired_total{{kind=\"{kind}\"}}")));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    };
    scene.cx.queues.reconcile.trigger(["bad".to_owned(), "good".to_owned()]);
    scene.until("the other", |_| count("good") == 1).await;
    scene.until("again", |_| count("bad") == 2).await;
    assert!(start.elapsed() >= Duration::from_secs(9));
    assert!(!scene.cx.stop.is_cancelled());
}

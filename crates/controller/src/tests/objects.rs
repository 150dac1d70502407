//! Existing objects other than pods and workloads: the rollout and the scan.

use std::{sync::Arc, time::Duration};

use palisade_api::names;
use serde_json::{Value as Json, json};

use super::{
    PROFILES, Setup,
    mock::{Mock, Respond},
    profile,
};
use crate::{
    lanes::{health::Heartbeat, lane::Lane},
    options::{Options, ScanInterval},
    rollout, scan,
};

/// A profile with a check of Ingresses and one of a kind that the API server does not have.
fn with_objects(more: &Json) -> Json {
    let mut profile = profile("tools", 1, 10);
    let widgets = json!({
        "id": "widgets", "target": "Object", "message": "m", "expression": "false",
        "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets"}],
    });
    let spec = json!({
        "users": null, "baseline": "Privileged", "network": {"allowedHosts": ["ok.example.org"]},
        "customChecks": [widgets],
    });
    palisade_kube_json::pod::merge(&mut profile, &json!({"spec": spec}));
    palisade_kube_json::pod::merge(&mut profile, &json!({"spec": more}));
    profile
}

/// Namespaces with an Ingress each, and the discovery of the kind.
fn setup(hosts: &[(&str, &str)]) -> Setup {
    with_options(hosts, &Options::default())
}

fn with_options(hosts: &[(&str, &str)], options: &Options) -> Setup {
    let names: Vec<_> = hosts.iter().map(|(name, _)| *name).collect();
    let setup = Setup::with_options(Mock::start().0, &names, options);
    for (name, host) in hosts {
        setup.mock.put(&format!("/api/v1/namespaces/{name}"), json!(super::namespace(name)));
        let ingress = json!({
            "metadata": {"name": "web", "namespace": name, "uid": format!("uid-{name}"), "resourceVersion": "1"},
            "spec": {"rules": [{"host": host}]},
        });
        setup.mock.put(&format!("/apis/networking.k8s.io/v1/namespaces/{name}/ingresses/web"), ingress);
    }
    let discovered = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "networking.k8s.io/v1",
        "resources": [{"name": "ingresses", "singularName": "ingress", "namespaced": true, "kind": "Ingress", "verbs": ["list"]}],
    });
    setup.mock.put("/apis/networking.k8s.io/v1", discovered);
    setup
}

#[tokio::test(start_paused = true)]
async fn rollout_holds_namespaces_with_violating_objects() {
    let setup = setup(&[("good", "ok.example.org"), ("bad", "evil.example.org")]);
    setup.run();
    Lane::start(&setup.cx, "rollouts", &setup.cx.queues.rollouts, &Arc::new(Heartbeat::new()), rollout::work);
    let enforcement = json!({"pods": "Audit", "workloads": "Off", "namespaceStages": "ByLabel"});
    setup.observe(&with_objects(&json!({"enforcement": enforcement, "rollout": {"waves": [{"percent": 100}]}})));
    let metadata = |name: &str| setup.mock.get(&format!("/api/v1/namespaces/{name}")).unwrap()["metadata"].clone();
    let held = |name: &str| {
        let text = metadata(name)["annotations"][names::rollout_annotation("tools")].clone();
        text.as_str().is_some_and(|text| text.contains("Ingress web: [networkHosts]"))
    };
    let promoted = |name: &str| metadata(name)["labels"][names::stage_label("tools")] == "Deny";
    setup.until("one is promoted, and the other is held", |_| promoted("good") && held("bad")).await;
    assert!(!promoted("bad") && !held("good"));
}

#[tokio::test(start_paused = true)]
async fn rollout_promotes_no_namespace_whose_objects_it_cannot_list() {
    let setup = setup(&[("good", "ok.example.org")]);
    setup.mock.rule(|asked| if asked.is_of("ingresses") { Respond::Error(403) } else { Respond::Normally });
    setup.run();
    Lane::start(&setup.cx, "rollouts", &setup.cx.queues.rollouts, &Arc::new(Heartbeat::new()), rollout::work);
    let enforcement = json!({"pods": "Audit", "workloads": "Off", "namespaceStages": "ByLabel"});
    setup.observe(&with_objects(&json!({"enforcement": enforcement, "rollout": {"waves": [{"percent": 100}]}})));
    let asked = |mock: &Mock| mock.asked().iter().any(|asked| asked.is_of("ingresses"));
    setup.until("the objects are asked for", asked).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let namespace = setup.mock.get("/api/v1/namespaces/good").unwrap();
    assert_eq!(namespace["metadata"]["labels"][names::stage_label("tools")], Json::Null, "{namespace}");
}

#[tokio::test(start_paused = true)]
async fn scan_reports_objects_and_kinds_that_it_does_not_see() {
    let options = Options { scan_interval: ScanInterval(Some(Duration::from_secs(30))), ..Options::default() };
    let setup = with_options(&[("good", "ok.example.org"), ("bad", "evil.example.org")], &options);
    setup.run();
    setup.observe(&with_objects(&json!({"enforcement": {"workloads": "Off"}})));
    scan::start(&setup.cx, &options);
    let status = || setup.mock.get(&format!("{PROFILES}/tools/status")).unwrap_or_default()["status"]["scan"].clone();
    setup.until("the scan counts the Ingress", |_| status()["workloads"] == 1).await;
    let reports = setup.mock.list("toolsecurityreports");
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(
        (&report["metadata"]["namespace"], &report["spec"]["violations"][0]["workload"]),
        (&json!("bad"), &json!("Ingress/web"))
    );
    let missing = "widgets.example.org (the API server does not have the kind)";
    assert_eq!(status()["message"], format!("not scanned: {missing}"));
    // Without permission, the other kinds are still scanned.
    setup.mock.rule(|asked| if asked.is_of("ingresses") { Respond::Error(403) } else { Respond::Normally });
    let denied = "ingresses.networking.k8s.io (grant palisade-controller permission to list them)";
    let names_both = |text: &str| text.contains(denied) && text.contains(missing);
    setup.until("the status names the kind", |_| status()["message"].as_str().is_some_and(names_both)).await;
}

//! Templates of pods: each kind of workload, and pods that controllers create from templates that were never judged.

use palisade_kube_json::workload::{WORKLOADS, Workload};
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{UID, complying, hostile, with},
    table::{Attack, Expect, Tally, make},
    wire::{APPLY, JSON_PATCH, MERGE, Request, client_of, pods},
};

fn path(workload: &Workload, namespace: &str) -> String {
    let prefix = if workload.api_version == "v1" { "api" } else { "apis" };
    format!("/{prefix}/{}/namespaces/{namespace}/{}", workload.api_version, workload.resource)
}

/// An object with a value at a JSON pointer, for a merge patch.
fn at(pointer: &str, value: Json) -> Json {
    pointer.rsplit('/').filter(|key| !key.is_empty()).fold(value, |inner, key| json!({key: inner}))
}

/// Templates that violate, and by what check.
fn templates() -> Vec<(&'static str, Json)> {
    let set = |path: &str, value: Json| with(complying("x"), &[(path, Some(value))]);
    vec![
        ("hostNamespaces", hostile("x")),
        ("imageRegistries", set("spec.containers.0.image", json!("evil.example/x"))),
        ("runAsUser", set("spec.securityContext.runAsUser", json!(0))),
        ("runAsUser", set("spec.securityContext.runAsUser", json!(UID + 1))),
        ("privileged", set("spec.containers.0.securityContext", json!({"privileged": true}))),
        ("hostPathVolumes", set("spec.volumes", json!([{"name": "v", "hostPath": {"path": "/"}}]))),
        (
            "capabilities",
            set("spec.initContainers", json!([{"name": "i", "image": format!("{}/x", crate::pods::REGISTRY)}])),
        ),
    ]
}

/// Each kind of workload, with each hostile template, by creation and by each kind of change.
pub(crate) async fn workloads(arena: &mut Arena) -> Result<Tally> {
    let test = "red-workloads";
    let namespace = arena.stage(test, |spec| spec["enforcement"]["workloads"] = "Deny".into()).await?;
    let mut attacks = vec![];
    for workload in &WORKLOADS {
        let (kind, path) = (workload.kind, path(workload, &namespace));
        let good = workload.around("good", &complying("x"));
        arena.demand(&Request::create(&path, &good)).await?;
        let one = format!("{path}/good?dryRun=All");
        let mut attack = |name: String, how: Request, expect: Expect| {
            attacks.push(Attack::new(format!("{kind}, {name}"), how, expect));
        };
        attack(
            "that complies".to_owned(),
            Request::dry_run(&path, &workload.around("x", &complying("x"))),
            Expect::Admitted,
        );
        for (check, pod) in templates() {
            attack(
                format!("create [{check}]"),
                Request::dry_run(&path, &workload.around("x", &pod)),
                Expect::check(check),
            );
            // The template of a Job cannot be changed.
            let expect = if kind == "Job" { Expect::Refused } else { Expect::check(check) };
            let spec = format!("{}/spec", workload.template);
            let whole = workload.around("good", &pod).pointer(&spec).cloned().unwrap_or_default();
            attack(
                format!("merge [{check}]"),
                Request::new("PATCH", &one, MERGE, &at(&spec, whole.clone())),
                expect.clone(),
            );
            let operations = json!([{"op": "replace", "path": spec, "value": whole}]);
            attack(format!("JSON patch [{check}]"), Request::new("PATCH", &one, JSON_PATCH, &operations), expect);
            let apply = format!("{path}/new?dryRun=All&fieldManager=x&force=true");
            let new = workload.around("new", &pod);
            attack(format!("apply [{check}]"), Request::new("PATCH", apply, APPLY, &new), Expect::check(check));
        }
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        attack("a label".to_owned(), Request::new("PATCH", &one, MERGE, &label), Expect::Admitted);
        let template = at(&workload.template.replacen("/spec", "/status", 1), json!({"spec": {"hostPID": true}}));
        let status = Request::new("PATCH", format!("{path}/good/status?dryRun=All"), MERGE, &template);
        attack("by status".to_owned(), status, Expect::Stopped.or_ineffective(workload));
        if matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController") {
            let scale = json!({"spec": {"replicas": 3, "template": {"spec": {"hostPID": true}}}});
            let how = Request::new("PATCH", format!("{path}/good/scale?dryRun=All"), MERGE, &scale);
            attack("by scale".to_owned(), how, Expect::Ineffective("/spec/template", Json::Null));
        }
    }
    let mut tally = make(&arena.tenant, attacks).await;
    let nothing = vec![Attack::new(
        "a PodTemplate without a template",
        Request::dry_run(
            &path(&WORKLOADS[7], &namespace),
            &json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}}),
        ),
        Expect::Refused,
    )];
    tally.add(make(&arena.tenant, nothing).await);
    tally.add(by_controllers(arena, &namespace).await?);
    arena.delete_profile(test).await?;
    Ok(tally)
}

impl Expect {
    /// A status has no template; what is written there must not reach the one of the spec.
    fn or_ineffective(self, workload: &Workload) -> Self {
        match workload.template {
            "/spec/template" => Self::Ineffective("/spec/template/spec/hostPID", Json::Null),
            "/spec/jobTemplate/spec/template" => {
                Self::Ineffective("/spec/jobTemplate/spec/template/spec/hostPID", Json::Null)
            }
            _ => self,
        }
    }
}

/// Whoever may create a DaemonSet makes its controller create pods. The controllers are judged like anybody.
async fn by_controllers(arena: &Arena, namespace: &str) -> Result<Tally> {
    let mut tally = Tally::default();
    for (controller, kind) in [
        ("daemon-set-controller", "DaemonSet"),
        ("replicaset-controller", "ReplicaSet"),
        ("replication-controller", "ReplicationController"),
        ("statefulset-controller", "StatefulSet"),
        ("job-controller", "Job"),
    ] {
        let user = format!("system:serviceaccount:kube-system:{controller}");
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
        let client = client_of(&arena.cluster, &user, &groups).await?;
        let version = if kind == "Job" {
            "batch/v1"
        } else if kind == "ReplicationController" {
            "v1"
        } else {
            "apps/v1"
        };
        let owned = |mut pod: Json| {
            pod["metadata"] = json!({"generateName": "old-", "ownerReferences": [
                {"apiVersion": version, "kind": kind, "name": "old", "uid": "00000000-0000-0000-0000-000000000000", "controller": true},
            ]});
            pod
        };
        let attacks = vec![
            Attack::new(
                format!("a hostile pod of {controller}"),
                Request::pod(namespace, &owned(hostile("x"))),
                Expect::check("hostNamespaces"),
            ),
            Attack::new(
                format!("for real, of {controller}"),
                Request::create(&pods(namespace), &owned(hostile("x"))),
                Expect::check("hostNamespaces"),
            ),
            Attack::new(
                format!("a pod of {controller} that complies"),
                Request::pod(namespace, &owned(complying("x"))),
                Expect::Admitted,
            ),
        ];
        tally.add(make(&client, attacks).await);
    }
    Ok(tally)
}

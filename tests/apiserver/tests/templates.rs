//! A template gets the verdict of the pod that it becomes.

use std::collections::BTreeSet;

use palisade_api::{catalogue, names};
use palisade_checks::fixture::Fixture;
use palisade_kube_json::{pod, workload::WORKLOADS};
use palisade_tests::{Cluster, TestResult, Verdict, Webhook, ensure, eventually};
use serde_json::{Value as Json, json};

use crate::{webhook, workloads::path};

crate::groups::scenarios! {
    template_gets_the_verdict_of_the_pod_that_it_becomes: Judged 100 needs USER_NAMESPACES;
}

/// A profile that defaults all that it can, redirects images, and has checks of its own.
fn profile(test: &str) -> Json {
    json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": test},
        "spec": {
            "namespaceSelector": {"matchLabels": {"test": test}},
            "enforcement": {"pods": "Deny", "workloads": "Deny"},
            "parameters": [{"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "uid"}]}],
            "users": {
                "runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]},
                "runAsGroup": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]},
                "fsGroup": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]},
            },
            "privileges": {"readOnlyRootFilesystem": true},
            "images": {
                "allowedRegistries": [
                    "mirror.example:5000/docker.io", "mirror.example:5000/palisade.invalid", "registry.example",
                ],
                "redirect": {"target": "mirror.example:5000", "skip": ["registry.example"]},
            },
            "mutation": {"defaults": "Secure", "additionalDefaults": ["HostUsers"]},
            "customChecks": [
                {
                    "id": "limited", "target": "Containers", "message": "must have a limit of memory",
                    "expression": "'memory' in container.?resources.?limits.orValue({})",
                    "default": {"path": "resources.limits", "value": {"memory": "1Gi"}},
                },
                {
                    "id": "mirrored", "target": "Pod", "messageExpression": "'images: ' + variables.containers.map(c, c.image).join(' ')",
                    "expression": "variables.spec.containers.all(c, c.image.contains('/'))",
                },
            ],
        },
    })
}

/// Pods of all kinds, without their ephemeral containers, which no template has.
fn pods() -> TestResult<Vec<Json>> {
    let mut pods = vec![pod::minimal("bare")];
    let mut elsewhere = pod::minimal("elsewhere");
    pod::set_containers(&mut elsewhere, &["image"], &json!("quay.io/a/b:1"));
    pods.push(elsewhere);
    let mut hub = pod::minimal("hub");
    pod::set_containers(&mut hub, &["image"], &json!("nginx"));
    pods.push(hub.clone());
    pod::set(&mut hub, &["os"], json!({"name": "windows"}));
    pods.push(hub);
    let mut seen = BTreeSet::new();
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures)?;
        for mut pod in fixtures.iter().map(Fixture::pod) {
            // The API server turns AppArmor's annotation into a field: of a pod, and not of a template.
            if pod["metadata"]["annotations"].to_string().contains("container.apparmor.security.beta.kubernetes.io") {
                continue;
            }
            if let Some(spec) = pod["spec"].as_object_mut() {
                spec.remove("ephemeralContainers");
            }
            if seen.insert(pod.to_string()) {
                pods.push(pod);
            }
        }
    }
    Ok(pods)
}

/// The violations that a denial lists.
fn violations(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Admitted => Some(""),
        Verdict::Denied(text) => Some(text.split_once("denied request: ")?.1.split_once(": ")?.1),
        Verdict::Refused(..) => None,
    }
}

pub(crate) async fn template_gets_the_verdict_of_the_pod_that_it_becomes(cluster: &mut Cluster) -> TestResult {
    let test = "become";
    cluster.create_namespace(test, &json!({"test": test}), &json!({"uid": "52001"})).await?;
    let engine = Webhook::start_if_needed(cluster).await?;
    cluster.enforce(&profile(test)).await?;
    let bare = pod::minimal("bare");
    cluster
        .wait_admitted(test, &{
            let mut pod = bare.clone();
            pod::set_containers(&mut pod, &["image"], &json!("nginx"));
            pod
        })
        .await?;
    let privileged = {
        let mut pod = bare.clone();
        pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
        WORKLOADS[0].around("bad", &pod)
    };
    eventually("templates are judged", || async {
        let verdict = cluster.dry_run_at(&cluster.admin, &path(&WORKLOADS[0], test), &privileged).await;
        verdict.denial().map(|_| ()).ok_or(format!("{verdict:?}"))
    })
    .await?;
    let (mut admitted, mut denied, mut invalid) = (0, 0, 0);
    let mut wrong = Vec::new();
    for (index, pod) in pods()?.iter().enumerate() {
        let of_pod = cluster.dry_run(test, pod).await;
        let workload = &WORKLOADS[index % WORKLOADS.len()];
        let of_template =
            cluster.dry_run_at(&cluster.admin, &path(workload, test), &workload.around("random", pod)).await;
        match (violations(&of_pod), violations(&of_template)) {
            (Some(pod), Some(template)) if pod == template => {
                *(if pod.is_empty() { &mut admitted } else { &mut denied }) += 1;
            }
            // The API server's own validation comes first, and allows templates more.
            (None, _) | (_, None) => invalid += 1,
            _ => wrong.push(format!(
                "{}: {of_pod:?}\n  {}: {of_template:?}\n  {pod}",
                pod["metadata"]["name"], workload.kind
            )),
        }
    }
    println!("{admitted} pods and their templates are admitted, {denied} denied alike, {invalid} are invalid");
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(admitted > 20 && denied > 100, "{admitted} {denied}");
    cluster.delete_profile(test).await?;
    webhook::end(engine).await
}

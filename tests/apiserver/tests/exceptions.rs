//! Exceptions that tenants ask for: what an approval does, and until when.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use palisade_api::{
    RequestCounts, ToolSecurityException,
    conditions::{ExceptionCondition, ExceptionReason},
    names,
};
use palisade_kube_json::{
    pod,
    workload::{WORKLOADS, Workload},
};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    an_approved_exception_holds_for_its_workload_until_its_end: Oldest 150, Answers 190;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const DEPLOYMENT: &Workload = &WORKLOADS[0];
const REPLICA_SET: &Workload = &WORKLOADS[1];
const HOW_TO_ASK: &str = "Ask for a ToolSecurityException: wiki.example/exceptions";
const HASH: &str = "5d4f8c7b9";

pub(crate) fn profile(test: &str) -> Json {
    json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": test},
        "spec": {
            "namespaceSelector": {"matchLabels": {"test": test}}, "baseline": "Baseline",
            "enforcement": {"workloads": "Deny"},
            "exceptionRequests": {"checks": ["privileged"], "message": HOW_TO_ASK},
        },
    })
}

pub(crate) fn exception(name: &str, profile: &str, scope: &Json, end: Timestamp) -> Json {
    json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityException", "metadata": {"name": name},
        "spec": {
            "profile": profile, "checks": ["privileged"], "scope": scope, "reason": "a driver",
            "expires": end.to_string(),
        },
    })
}

fn deployment(name: &str) -> Json {
    json!({"kind": "Deployment", "name": name})
}

pub(crate) fn path(namespace: &str, name: &str) -> String {
    format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityexceptions/{name}")
}

pub(crate) fn privileged() -> Json {
    let mut pod = pod::minimal("bad");
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod
}

/// An object as the controller of another one makes it.
fn owned(mut object: Json, kind: &str, name: &str) -> Json {
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1-2-3", "controller": true}]);
    object
}

/// A pod of a Deployment.
fn pod_of(deployment: &str) -> Json {
    let mut pod = owned(privileged(), "ReplicaSet", &format!("{deployment}-{HASH}"));
    pod["metadata"]["labels"] = json!({"pod-template-hash": HASH});
    pod
}

pub(crate) async fn read(cluster: &Cluster, namespace: &str, name: &str) -> Result<ToolSecurityException> {
    Ok(serde_json::from_value(cluster.answer("GET", &path(namespace, name), "", &json!(null)).await?)?)
}

/// The approval of what is there now.
pub(crate) async fn approval(cluster: &Cluster, namespace: &str, name: &str) -> Result<Json> {
    let meta = read(cluster, namespace, name).await?.metadata;
    Ok(json!({"status": {"approval": {"uid": meta.uid, "generation": meta.generation}}}))
}

pub(crate) async fn approve(cluster: &Cluster, approver: &Client, namespace: &str, name: &str) -> TestResult {
    let approval = approval(cluster, namespace, name).await?;
    let status = format!("{}/status", path(namespace, name));
    eventually("approved", || async {
        match cluster.ask_as(approver, "PATCH", &status, &approval).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

pub(crate) async fn wait_state(cluster: &Cluster, namespace: &str, name: &str, state: ExceptionReason) -> TestResult {
    eventually(&format!("{name} is {state}"), || async {
        let found = read(cluster, namespace, name).await.map_err(|error| error.to_string())?;
        match found.condition(ExceptionCondition::Ready) {
            Some(ready) if ready.reason == state.to_string() => Ok(()),
            _ => Err(format!("{:?}", found.status)),
        }
    })
    .await?;
    Ok(())
}

/// The verdicts on all that is made for a Deployment: itself, its ReplicaSet and a pod.
async fn verdicts(cluster: &Cluster, namespace: &str, name: &str) -> Vec<(String, Verdict)> {
    let replica_set = REPLICA_SET.around(&format!("{name}-{HASH}"), &privileged());
    let mut found = Vec::new();
    for (at, object) in [
        (format!("/apis/apps/v1/namespaces/{namespace}/deployments"), DEPLOYMENT.around(name, &privileged())),
        (format!("/apis/apps/v1/namespaces/{namespace}/replicasets"), owned(replica_set, "Deployment", name)),
        (format!("/api/v1/namespaces/{namespace}/pods"), pod_of(name)),
    ] {
        let verdict = cluster.dry_run_at(&cluster.admin, &at, &object).await;
        found.push((at, verdict));
    }
    found
}

async fn wait_admitted(cluster: &Cluster, namespace: &str, name: &str) -> TestResult {
    eventually(&format!("{name} is admitted"), || async {
        let found = verdicts(cluster, namespace, name).await;
        if found.iter().all(|(_, verdict)| *verdict == Verdict::Admitted) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await?;
    Ok(())
}

async fn denied(cluster: &Cluster, namespace: &str, name: &str) -> TestResult {
    for (at, verdict) in verdicts(cluster, namespace, name).await {
        let right = verdict.denial().is_some_and(|text| text.contains("[privileged]"));
        ensure!(right, "{name} at {at}: {verdict:?}");
    }
    Ok(())
}

/// A user who may ask in a namespace, and one who may approve everywhere.
pub(crate) async fn people(cluster: &Cluster, namespace: &str) -> Result<[Client; 2]> {
    let (asker, approver) = (format!("{namespace}-asker"), format!("{namespace}-approver"));
    let role = "--clusterrole=palisade-exception-requester";
    cluster.kubectl(&["create", "rolebinding", &asker, role, &format!("--user={asker}"), "-n", namespace])?;
    let role = "--clusterrole=palisade-exception-approver";
    cluster.kubectl(&["create", "clusterrolebinding", &approver, role, &format!("--user={approver}")])?;
    Ok([cluster.client_of_tenant(&asker).await?, cluster.client_of_tenant(&approver).await?])
}

pub(crate) async fn ask(cluster: &Cluster, asker: &Client, namespace: &str, exception: &Json) -> TestResult {
    let at = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityexceptions");
    eventually("asked", || async {
        match cluster.ask_as(asker, "POST", &at, exception).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

pub(crate) async fn an_approved_exception_holds_for_its_workload_until_its_end(cluster: &mut Cluster) -> TestResult {
    let (test, here, elsewhere) = ("asked", "asked-a", "asked-b");
    for namespace in [here, elsewhere] {
        cluster.create_namespace(namespace, &json!({"test": test}), &json!({})).await?;
    }
    let [asker, approver] = people(cluster, here).await?;
    cluster.enforce(&profile(test)).await?;
    cluster.wait_admitted(here, &pod::minimal("complies")).await?;
    no_warnings(cluster, test).await?;
    denied(cluster, here, "encoder").await?;
    let verdict = cluster.dry_run(here, &privileged()).await;
    ensure!(verdict.denial().is_some_and(|text| text.contains(HOW_TO_ASK)), "{verdict:?}");
    let mut host = pod::minimal("host");
    pod::set(&mut host, &["hostPID"], json!(true));
    let verdict = cluster.dry_run(here, &host).await;
    ensure!(verdict.denial().is_some_and(|text| !text.contains(HOW_TO_ASK)), "nobody can ask for it: {verdict:?}");

    // Asked for, and not approved.
    let in_an_hour = Timestamp::now() + SignedDuration::from_hours(1);
    ask(cluster, &asker, here, &exception("driver", test, &deployment("encoder"), in_an_hour)).await?;
    wait_state(cluster, here, "driver", ExceptionReason::AwaitingApproval).await?;
    denied(cluster, here, "encoder").await?;

    // Approved: for this workload, this check, and this namespace.
    approve(cluster, &approver, here, "driver").await?;
    wait_admitted(cluster, here, "encoder").await?;
    wait_state(cluster, here, "driver", ExceptionReason::InForce).await?;
    denied(cluster, here, "neighbour").await?;
    denied(cluster, here, "encoder-2").await?;
    denied(cluster, elsewhere, "encoder").await?;
    let bare = cluster.dry_run(here, &privileged()).await;
    ensure!(bare.denial().is_some(), "a pod of nobody: {bare:?}");
    let mut both = pod_of("encoder");
    pod::set(&mut both, &["hostPID"], json!(true));
    let both = cluster.dry_run(here, &both).await;
    let one = |text: &str| text.contains("1 violation ") && text.contains("[hostNamespaces]");
    ensure!(both.denial().is_some_and(one), "{both:?}");

    // Another spec is not what was approved.
    let other = json!({"spec": {"scope": deployment("neighbour")}});
    let changed = cluster.ask_as(&asker, "PATCH", &path(here, "driver"), &other).await;
    ensure!(changed == Verdict::Admitted, "{changed:?}");
    wait_state(cluster, here, "driver", ExceptionReason::ApprovalOutdated).await?;
    eventually("the approval is lost", || async {
        for name in ["encoder", "neighbour"] {
            denied(cluster, here, name).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    })
    .await?;
    cluster.kubectl(&["delete", "tse", "driver", "-n", here])?;

    // For the whole namespace, until it is withdrawn.
    ask(cluster, &asker, here, &exception("all", test, &json!({"kind": "Namespace"}), in_an_hour)).await?;
    approve(cluster, &approver, here, "all").await?;
    wait_admitted(cluster, here, "neighbour").await?;
    denied(cluster, elsewhere, "neighbour").await?;
    let withdrawn = json!({"status": {"approval": null}});
    let status = format!("{}/status", path(here, "all"));
    ensure!(cluster.ask_as(&approver, "PATCH", &status, &withdrawn).await == Verdict::Admitted, "not withdrawn");
    eventually("withdrawn", || async { denied(cluster, here, "neighbour").await.map_err(|error| error.to_string()) })
        .await?;
    of_containers(cluster, [&asker, &approver], test, here).await?;
    ends(cluster, [&asker, &approver], test, here).await?;
    cluster.delete_profile(test).await
}

/// The API server finds no mistake in the expressions of the policies.
async fn no_warnings(cluster: &Cluster, test: &str) -> TestResult {
    for shape in names::Shape::OF_PODS {
        let name = names::policy(test, shape);
        eventually(&format!("{name} is type checked"), || async {
            let policy = cluster.policies().get(&name).await.map_err(|error| error.to_string())?;
            let status = policy.status.unwrap_or_default();
            let warnings = status.type_checking.and_then(|found| found.expression_warnings).unwrap_or_default();
            let checked = status.observed_generation.is_some();
            if checked && warnings.is_empty() { Ok(()) } else { Err(format!("{checked} {warnings:?}")) }
        })
        .await?;
    }
    Ok(())
}

/// For a container by its name and its image; and what the API server does not take.
async fn of_containers(cluster: &Cluster, [asker, approver]: [&Client; 2], test: &str, here: &str) -> TestResult {
    let in_an_hour = Timestamp::now() + SignedDuration::from_hours(1);
    let at = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{here}/toolsecurityexceptions");
    for (wrong, said) in [
        (json!({"kind": "Namespace", "name": "x"}), "not allowed with kind Namespace"),
        (json!({"kind": "Deployment"}), "name is required for a workload, pod or object"),
        (json!({"kind": "Object", "name": "x"}), "resource is required with kind Object"),
        (json!({"kind": "Deployment", "name": "x", "resource": "ingresses"}), "not allowed with other kinds"),
        (json!({"kind": "Namespace", "imagePrefix": "registry.example/drivers"}), "spec.scope.imagePrefix"),
        (json!({"kind": "Secret", "name": "x"}), "Unsupported value"),
        (json!({}), "spec.scope.kind: Required value"),
    ] {
        let verdict = cluster.ask_as(asker, "POST", &at, &exception("wrong", test, &wrong, in_an_hour)).await;
        let right = matches!(&verdict, Verdict::Refused(422, text) if text.contains(said));
        ensure!(right, "{wrong}: {verdict:?}");
    }
    let scope = json!({"kind": "Namespace", "container": "driver", "imagePrefix": "registry.example/drivers/"});
    ask(cluster, asker, here, &exception("container", test, &scope, in_an_hour)).await?;
    approve(cluster, approver, here, "container").await?;
    let pod = |name: &str, image: &str| {
        let mut pod = privileged();
        pod::set_container(&mut pod, &["name"], json!(name));
        pod::set_container(&mut pod, &["image"], json!(image));
        pod
    };
    let right = pod("driver", "registry.example/drivers/gpu:1");
    cluster.wait_admitted(here, &right).await?;
    let deployments = format!("/apis/apps/v1/namespaces/{here}/deployments");
    let deployment = cluster.dry_run_at(&cluster.admin, &deployments, &DEPLOYMENT.around("x", &right)).await;
    ensure!(deployment == Verdict::Admitted, "{deployment:?}");
    for other in [pod("driver", "registry.example/drivers-2/gpu:1"), pod("other", "registry.example/drivers/gpu:1")] {
        let verdict = cluster.dry_run(here, &other).await;
        ensure!(verdict.denial().is_some(), "{other}: {verdict:?}");
        let verdict = cluster.dry_run_at(&cluster.admin, &deployments, &DEPLOYMENT.around("x", &other)).await;
        ensure!(verdict.denial().is_some(), "{other}: {verdict:?}");
    }
    cluster.kubectl(&["delete", "tse", "container", "-n", here])?;
    eventually("deleted", || async {
        let verdict = cluster.dry_run(here, &right).await;
        verdict.denial().map(|_| ()).ok_or(format!("{verdict:?}"))
    })
    .await?;
    Ok(())
}

/// Nobody is there to take it away, and it ends.
async fn ends(cluster: &mut Cluster, [asker, approver]: [&Client; 2], test: &str, here: &str) -> TestResult {
    let mut seconds = 8;
    let rest = loop {
        let end = Timestamp::from_second(Timestamp::now().as_second() + seconds)?;
        let name = format!("short-{seconds}");
        ask(cluster, asker, here, &exception(&name, test, &deployment("encoder"), end)).await?;
        approve(cluster, approver, here, &name).await?;
        let written = end.to_string();
        let seen = eventually("the end in the parameters", || async {
            let spec = cluster.params(here, test).await?.spec;
            match spec.workload_exceptions.get("Deployment/encoder").and_then(|ends| ends.get("privileged")) {
                Some(found) if *found == written => Ok(true),
                _ if Timestamp::now() >= end => Ok(false),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
        cluster.stop_controller().await?;
        let rest = end.duration_since(Timestamp::now());
        if seen && rest.is_positive() {
            break Duration::try_from(rest).unwrap_or_default();
        }
        ensure!(seconds < 300, "the controller could not be stopped within {seconds} s");
        seconds *= 2;
        cluster.start_controller().await?;
    };
    // No controller runs: the exception ends by the clock of the API server. One second is a margin.
    tokio::time::sleep(rest + Duration::from_secs(1)).await;
    let spec = cluster.params(here, test).await?.spec;
    ensure!(spec.workload_exceptions.contains_key("Deployment/encoder"), "somebody took it away: {spec:?}");
    denied(cluster, here, "encoder").await?;

    cluster.start_controller().await?;
    let name = format!("short-{seconds}");
    wait_state(cluster, here, &name, ExceptionReason::Expired).await?;
    let of_it = format!("--field-selector=reason=Expired,involvedObject.name={name}");
    eventually("an event", || async {
        let events = cluster.kubectl(&["get", "events", "-n", here, &of_it, "--no-headers"]);
        match events.map_err(|error| error.to_string())?.lines().count() {
            1 => Ok(()),
            other => Err(format!("{other} events; {:?}", cluster.kubectl(&["get", "events", "-n", here]))),
        }
    })
    .await?;
    eventually("taken away", || async {
        let spec = cluster.params(here, test).await?.spec;
        if spec.workload_exceptions.is_empty() { Ok(()) } else { Err(format!("{spec:?}")) }
    })
    .await?;
    eventually("counted", || async {
        let found = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
        let counts = found.status.and_then(|status| status.exceptions).and_then(|counts| counts.requested);
        match counts {
            Some(RequestCounts { pending: 1, approved: 0, expired, invalid: 0, unused: 0 }) if expired >= 1 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

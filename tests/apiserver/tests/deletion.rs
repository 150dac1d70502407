//! Namespaces that are deleted while finalizers hold their objects.

use std::time::Duration;

use futures::future::try_join_all;
use palisade_kube_json::workload::{WORKLOADS, Workload};
use palisade_tests::{
    Cluster, TestResult, Verdict, ensure, ephemeral_container, eventually, hostile_pod, tool_pod, within,
};
use serde_json::{Value as Json, json};

use crate::workloads::path;

crate::groups::scenarios! {
    namespace_of_compliant_pods_with_finalizers_can_be_deleted: Maintained 80, Oldest 270 needs ORDERED_NAMESPACE_DELETION;
    namespace_selected_while_terminating_can_be_deleted: Maintained 90, Oldest 280 needs ORDERED_NAMESPACE_DELETION;
}

const UID: i64 = 50_001;
const FORBIDDEN: &str = "evil.example/other";

/// How a namespace goes.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Whether the profile has parameters.
    parameters: bool,
    /// Whether the controller runs.
    controller: bool,
}

/// Those that wait beside each other: the namespace controller asks again only every few seconds.
fn cases(controller: bool) -> [Case; 2] {
    [true, false].map(|parameters| Case { parameters, controller })
}

impl Case {
    fn name(self, test: &str) -> String {
        let with = |is: bool, what: &str| if is { what.to_owned() } else { format!("no-{what}") };
        format!("{test}-{}-{}", with(self.parameters, "params"), with(self.controller, "controller"))
    }

    /// It also denies workloads; without parameters all tools have one uid.
    fn profile(self, test: &str) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
        let mut profile = Cluster::small_profile(test);
        profile["spec"]["enforcement"] = json!({"pods": "Deny", "workloads": "Deny"});
        if !self.parameters {
            profile["spec"]["parameters"] = json!([]);
            profile = serde_json::from_str(&profile.to_string().replace("\"$uid\"", &UID.to_string()))?;
        }
        Ok(profile)
    }
}

/// A name in the namespace for an object that a finalizer holds.
fn held(workload: &Workload) -> String {
    format!("held-{}", workload.kind.to_lowercase())
}

/// A workload of each kind around a pod, each with its path.
fn workloads(namespace: &str, pod: &Json) -> Vec<(&'static Workload, String, Json)> {
    let mut pod = pod.clone();
    if let Some(spec) = pod["spec"].as_object_mut() {
        // Only Jobs may say never.
        spec.remove("restartPolicy");
    }
    let around = |workload: &'static Workload| {
        let mut object = workload.around(&held(workload), &pod);
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        (workload, path(workload, namespace), object)
    };
    WORKLOADS.iter().map(around).collect()
}

/// Creates a pod and a workload of each kind, all with finalizers.
async fn create_held(cluster: &Cluster, namespace: &str, pod: &Json) -> TestResult {
    let mut pod = pod.clone();
    pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let created = cluster.create_pod(namespace, &pod).await;
    ensure!(created == Verdict::Admitted, "{namespace}: the pod: {created:?}");
    for (workload, path, object) in workloads(namespace, &pod) {
        let created = cluster.create_at(&path, &object).await;
        ensure!(created == Verdict::Admitted, "{namespace}: {}: {created:?}", workload.kind);
    }
    Ok(())
}

pub(crate) async fn is_being_deleted(cluster: &Cluster, path: &str) -> Result<(), String> {
    let object = cluster.answer_to("GET", path, &Json::Null).await?;
    let deleted = object["metadata"]["deletionTimestamp"].is_string();
    if deleted { Ok(()) } else { Err(format!("{path} is not being deleted")) }
}

/// No specification changes: not by itself, and not in the request that removes a finalizer.
async fn no_pod_changes(cluster: &Cluster, namespace: &str) -> TestResult {
    let pod = format!("/api/v1/namespaces/{namespace}/pods/held");
    let image = json!({"op": "replace", "path": "/spec/containers/0/image", "value": FORBIDDEN});
    let free = json!({"op": "remove", "path": "/metadata/finalizers"});
    for patch in [json!([image]), json!([image, free])] {
        let changed = cluster.json_patch_pod(namespace, "held", &patch).await;
        ensure!(changed.denial().is_some(), "{namespace}: {patch}: {changed:?}");
    }
    let ephemeral = cluster.dry_run_ephemeral(namespace, "held", &ephemeral_container(0)).await;
    ensure!(ephemeral.denial().is_some(), "{namespace}: an ephemeral container: {ephemeral:?}");
    is_being_deleted(cluster, &pod).await?;
    Ok(())
}

/// Takes the finalizers away, of the pod first: what else is in the namespace goes when no pod is left.
async fn free(cluster: &Cluster, namespace: &str, parameters: Option<&str>) -> TestResult {
    let without = json!({"metadata": {"finalizers": null}});
    let freed = cluster.patch_pod(namespace, "held", &without).await;
    ensure!(freed == Verdict::Admitted, "{namespace}: the finalizer of the pod cannot be removed: {freed:?}");
    for workload in &WORKLOADS {
        let path = format!("{}/{}", path(workload, namespace), held(workload));
        within(Duration::from_mins(2), "a workload is being deleted", || is_being_deleted(cluster, &path)).await?;
    }
    if let Some(profile) = parameters {
        eventually("the parameters are gone", || async {
            match cluster.params(namespace, profile).await {
                Err(error) if error.contains("not found") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    }
    for workload in &WORKLOADS {
        let path = format!("{}/{}", path(workload, namespace), held(workload));
        let freed = cluster.patch_at(&path, &without).await;
        ensure!(freed == Verdict::Admitted, "{namespace}: the finalizer of a {}: {freed:?}", workload.kind);
    }
    within(Duration::from_mins(2), "the namespace is gone", || async {
        match cluster.kubectl(&["get", "namespace", namespace, "-o", "jsonpath={.status}"]) {
            Err(error) if error.to_string().contains("not found") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

/// A tenant's namespace whose objects all comply: its parameters go with them.
pub(crate) async fn namespace_of_compliant_pods_with_finalizers_can_be_deleted(cluster: &mut Cluster) -> TestResult {
    for controller in [true, false] {
        let cases = cases(controller);
        let shared = &*cluster;
        try_join_all(cases.map(|case| async move {
            let test = case.name("going");
            shared.create_tool(&test, &test, UID).await?;
            shared.enforce(&case.profile(&test)?).await?;
            shared.wait_admitted(&test, &tool_pod("job", UID)).await?;
            create_held(shared, &test, &tool_pod("held", UID)).await
        }))
        .await?;
        if !controller {
            cluster.stop_controller().await?;
        }
        let shared = &*cluster;
        try_join_all(cases.map(|case| async move {
            let test = case.name("going");
            shared.delete_namespace(&test).await?;
            let pod = format!("/api/v1/namespaces/{test}/pods/held");
            eventually("the pod is being deleted", || is_being_deleted(shared, &pod)).await?;
            no_pod_changes(shared, &test).await?;
            free(shared, &test, case.parameters.then_some(&test)).await
        }))
        .await?;
        cluster.start_controller().await?;
        for case in cases {
            cluster.delete_profile(&case.name("going")).await?;
        }
    }
    Ok(())
}

/// A profile selects a namespace that is already being deleted: it never gets parameters, and its objects violate the
/// profile.
pub(crate) async fn namespace_selected_while_terminating_can_be_deleted(cluster: &mut Cluster) -> TestResult {
    for controller in [true, false] {
        let cases = cases(controller);
        let shared = &*cluster;
        try_join_all(cases.map(|case| async move {
            let test = case.name("late");
            let uid = json!({"toolforge.org/uid": UID.to_string()});
            shared.create_namespace(&test, &json!({}), &uid).await?;
            create_held(shared, &test, &hostile_pod("held")).await?;
            shared.enforce(&case.profile(&test)?).await?;
            TestResult::Ok(())
        }))
        .await?;
        if !controller {
            cluster.stop_controller().await?;
        }
        let shared = &*cluster;
        try_join_all(cases.map(|case| async move {
            let test = case.name("late");
            shared.delete_namespace(&test).await?;
            let pod = format!("/api/v1/namespaces/{test}/pods/held");
            eventually("the pod is being deleted", || is_being_deleted(shared, &pod)).await?;
            shared.patch_namespace(&test, &json!({"metadata": {"labels": {"tenancy": test}}})).await?;
            eventually("the namespace is judged", || async {
                let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": FORBIDDEN}]);
                let dry_run = format!("{pod}?dryRun=All");
                let changed = shared.answer("PATCH", &dry_run, "application/json-patch+json", &image).await;
                let changed = Verdict::of(changed);
                changed.denial().map(drop).ok_or(format!("{changed:?}"))
            })
            .await?;
            no_pod_changes(shared, &test).await?;
            free(shared, &test, None).await
        }))
        .await?;
        cluster.start_controller().await?;
        for case in cases {
            cluster.delete_profile(&case.name("late")).await?;
        }
    }
    Ok(())
}

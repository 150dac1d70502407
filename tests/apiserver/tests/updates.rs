//! Updates of pods that exist, and the bindings that are for them.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::api::{DeleteParams, PatchParams};
use palisade_api::{
    catalogue,
    names::{self, Shape},
};
use palisade_checks::fixture::Fixture;
use palisade_kube_json::pod;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, tool_pod, within};
use serde_json::json;

use crate::lifecycle::Watch;

crate::groups::scenarios! {
    update_cannot_change_a_field_that_is_not_judged: Reconciled 20, Oldest 300;
    adding_or_removing_parameters_admits_no_violation: Reconciled 30;
    the_binding_for_updates_is_restored: Reconciled 40;
}

const UID: i64 = 50_001;

/// Which fields an update can change is what Kubernetes says, and which checks need not be made then follows from that.
pub(crate) async fn update_cannot_change_a_field_that_is_not_judged(cluster: &mut Cluster) -> TestResult {
    let test = "unchanged";
    cluster.create_namespace(test, &json!({}), &json!({})).await?;
    let created = cluster.create_pod(test, &pod::minimal("old")).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    let path = format!("/api/v1/namespaces/{test}/pods/old");
    let old = cluster.answer_to("GET", &path, &json!(null)).await?;
    let (mut refused, mut changed) = (0, BTreeMap::<&str, usize>::new());
    for check in catalogue::ALL {
        for fixture in serde_saphyr::from_str::<Vec<Fixture>>(check.fixtures)? {
            let patch = json!({"spec": fixture.pod()["spec"]});
            let dry_run = format!("{path}?dryRun=All");
            match cluster.answer("PATCH", &dry_run, "application/merge-patch+json", &patch).await {
                Ok(new) if new["spec"] != old["spec"] => {
                    ensure!(
                        check.restricts_what_updates_change(),
                        "{}: {}: an update changes {} to {}",
                        check.id,
                        fixture.name,
                        old["spec"],
                        new["spec"]
                    );
                    *changed.entry(check.id).or_default() += 1;
                }
                Ok(_) => {}
                Err(_) => refused += 1,
            }
        }
    }
    println!("{refused} updates are refused; changed: {changed:?}");
    ensure!(refused > 150 && changed.contains_key("imageRegistries"), "{refused} refused, changed: {changed:?}");
    Ok(())
}

/// A profile gets parameters and loses them, and with them the binding for updates.
pub(crate) async fn adding_or_removing_parameters_admits_no_violation(cluster: &mut Cluster) -> TestResult {
    let test = "parameters";
    cluster.create_tool(test, test, UID).await?;
    let with = Cluster::toolforge_profile(test)?;
    let mut without = with.clone();
    without["spec"]["parameters"] = json!([]);
    let without = serde_json::from_str(&without.to_string().replace("\"$uid\"", &UID.to_string()))?;
    cluster.enforce(&with).await?;
    cluster.wait_admitted(test, &tool_pod("job", UID)).await?;
    let created = cluster.create_pod(test, &tool_pod("old", UID)).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    let bad = Watch::start(cluster, test, hostile_pod("hostile"), false);
    let updates = names::updates(test, Shape::Pods);
    let bindings = cluster.bindings();
    for (profile, parameters) in [(&without, false), (&with, true), (&without, false)] {
        cluster.enforce(profile).await?;
        eventually("the binding for updates is there where there are parameters", || async {
            let found = bindings.get_opt(&updates).await.map_err(|error| error.to_string())?;
            if found.is_some() == parameters { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await?;
        cluster.wait_admitted(test, &tool_pod("job", UID)).await?;
        image_is_judged(cluster, test).await?;
    }
    bad.finish("a pod that violates, while the profile gets and loses parameters").await?;
    cluster.delete_profile(test).await
}

/// Whoever edits or deletes the binding for updates.
pub(crate) async fn the_binding_for_updates_is_restored(cluster: &mut Cluster) -> TestResult {
    let test = "bound";
    cluster.create_tool(test, test, UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.wait_admitted(test, &tool_pod("job", UID)).await?;
    let created = cluster.create_pod(test, &tool_pod("old", UID)).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    let bindings = cluster.bindings();
    let name = names::updates(test, Shape::Pods);
    let spec = bindings.get(&name).await?.spec;
    let back = || async {
        let now = bindings.get_opt(&name).await.map_err(|error| error.to_string())?.map(|now| now.spec);
        if now.as_ref() == Some(&spec) { Ok(()) } else { Err(format!("{now:?}")) }
    };
    let limit = Duration::from_secs(30);
    bindings.delete(&name, &DeleteParams::default()).await?;
    within(limit, "a deleted binding", back).await?;
    let edit = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
    let weaker = kube::api::Patch::Merge(json!({"spec": {"validationActions": ["Audit"]}}));
    bindings.patch(&name, &edit, &weaker).await?;
    within(limit, "an edited binding", back).await?;
    image_is_judged(cluster, test).await?;
    cluster.delete_profile(test).await?;
    let left = cluster.left_of(test)?;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}

async fn image_is_judged(cluster: &Cluster, namespace: &str) -> TestResult {
    let path = format!("/api/v1/namespaces/{namespace}/pods/old?dryRun=All");
    let to = |image: &str| json!([{"op": "replace", "path": "/spec/containers/0/image", "value": image}]);
    eventually("a forbidden image is denied in an update", || async {
        let patch = to("evil.example/other");
        let changed = Verdict::of(cluster.answer("PATCH", &path, "application/json-patch+json", &patch).await);
        changed.denial().filter(|text| text.contains("[imageRegistries]")).map(drop).ok_or(format!("{changed:?}"))
    })
    .await?;
    let patch = to("docker-registry.svc.toolforge.org/other");
    let changed = Verdict::of(cluster.answer("PATCH", &path, "application/json-patch+json", &patch).await);
    ensure!(changed == Verdict::Admitted, "an allowed image in an update: {changed:?}");
    Ok(())
}

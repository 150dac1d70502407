//! Namespaces that come, change and are wrong.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, tool_pod};
use serde_json::json;

crate::groups::scenarios! {
    a_new_namespace_never_admits_a_violation: Oldest 160, Judged 180;
    policies_stay_enforced_while_the_controller_is_down: Judged 190;
    invalid_parameter_fails_only_its_namespace: Oldest 170, Judged 200;
    a_changed_annotation_writes_one_object: Judged 210;
    several_profiles_all_apply: Judged 220;
}

const UID: i64 = 50_001;

/// 200 namespaces; to each a violating pod is sent again and again from the moment it exists, until the policy
/// itself answers.
pub(crate) async fn a_new_namespace_never_admits_a_violation(cluster: &mut Cluster) -> TestResult {
    let test = "race";
    cluster.enforce(&Cluster::small_profile(test)).await?;
    let cluster: &Cluster = cluster;
    stream::iter(0..200)
        .map(Ok)
        .try_for_each_concurrent(16, |index| async move {
            let namespace = format!("race-{index}");
            cluster.create_tool(test, &namespace, UID + index).await?;
            eventually("judged by the profile", || async {
                match cluster.create_pod(&namespace, &hostile_pod("hostile")).await {
                    // Nothing makes this good again: the wait ends, and the test fails below.
                    Verdict::Admitted => Ok(()),
                    Verdict::Denied(text) if text.contains("violations of ToolSecurityProfile race") => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await?;
            cluster.wait_admitted(&namespace, &tool_pod("job", UID + index)).await
        })
        .await?;
    let pods =
        cluster.kubectl(&["get", "pods", "--all-namespaces", "-o", "jsonpath={.items[*].metadata.namespace}"])?;
    ensure!(!pods.contains("race-"), "pods were admitted: {pods}");
    cluster.delete_profile(test).await
}

pub(crate) async fn policies_stay_enforced_while_the_controller_is_down(cluster: &mut Cluster) -> TestResult {
    let test = "down";
    cluster.create_tool(test, "down-old", UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.wait_admitted("down-old", &tool_pod("job", UID)).await?;
    cluster.stop_controller().await?;

    cluster.create_tool(test, "down-new", UID + 1).await?;
    let old = cluster.dry_run("down-old", &hostile_pod("hostile")).await;
    ensure!(old.denial().is_some_and(|text| text.contains("[privileged]")), "enforcement goes on: {old:?}");
    let good = cluster.dry_run("down-old", &tool_pod("job", UID)).await;
    ensure!(good == Verdict::Admitted, "work goes on: {good:?}");
    for pod in [hostile_pod("hostile"), tool_pod("job", UID + 1)] {
        let new = cluster.dry_run("down-new", &pod).await;
        ensure!(
            new.denial().is_some_and(|text| text.contains("no params found")),
            "a namespace without parameters is closed: {new:?}"
        );
    }

    // Tools that wait for a profile do not take it for ready before a controller has seen it.
    let unseen = Cluster::small_profile("down-unseen");
    cluster.apply_profile(&unseen).await?;
    let found = cluster.profiles().get("down-unseen").await?.status.unwrap_or_default();
    let conditions: Vec<_> = found.conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())).collect();
    ensure!(conditions == [("Ready", "Unknown")], "{conditions:?}");

    cluster.start_controller().await?;
    cluster.wait_admitted("down-new", &tool_pod("job", UID + 1)).await?;
    cluster.wait_condition("down-unseen", "Ready", "True").await?;
    cluster.delete_profile("down-unseen").await?;
    for path in ["/livez", "/readyz"] {
        let answer = cluster.controller_get(path).await?;
        ensure!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    let new = cluster.dry_run("down-new", &hostile_pod("hostile")).await;
    ensure!(new.denial().is_some_and(|text| text.contains("[privileged]")), "{new:?}");
    cluster.delete_profile(test).await
}

pub(crate) async fn invalid_parameter_fails_only_its_namespace(cluster: &mut Cluster) -> TestResult {
    let test = "wrong";
    let uid = |text: &str| json!({"toolforge.org/uid": text});
    let labels = json!({"tenancy": test});
    cluster.create_tool(test, "wrong-good", UID).await?;
    cluster.create_namespace("wrong-missing", &labels, &json!({})).await?;
    cluster.create_namespace("wrong-malformed", &labels, &uid("fifty thousand")).await?;
    cluster.create_namespace("wrong-range", &labels, &uid("0")).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.wait_admitted("wrong-good", &tool_pod("job", UID)).await?;

    let problems = [
        ("wrong-missing", "parameter uid is missing: the namespace has no annotation toolforge.org/uid"),
        ("wrong-malformed", "parameter uid (annotation toolforge.org/uid) is \"fifty thousand\", must be an integer"),
        ("wrong-range", "parameter uid (annotation toolforge.org/uid) is 0, below the minimum 50000"),
    ];
    for (namespace, problem) in problems {
        for pod in [tool_pod("job", UID), hostile_pod("hostile")] {
            let verdict = cluster.dry_run(namespace, &pod).await;
            ensure!(verdict.denial().is_some_and(|text| text.contains(problem)), "{namespace}: {verdict:?}");
        }
        let events = Api::<Event>::namespaced(cluster.admin.clone(), namespace);
        // Not that pods are denied: the profile may be in a stage that admits them.
        let note = format!("every pod violates the profile: {problem}");
        eventually(&format!("an event in {namespace}"), || async {
            let list = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let found = list.iter().any(|event| event.message.as_deref().is_some_and(|text| text.contains(&note)));
            found.then_some(()).ok_or(format!("{:?}", list.items))
        })
        .await?;
    }
    let profile = eventually("counts", || async {
        let profile = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
        let counts = profile.status.as_ref().map(|status| status.namespaces.clone()).unwrap_or_default();
        if (counts.selected, counts.ready, counts.failed) == (4, 1, 3) {
            Ok(profile)
        } else {
            Err(format!("{counts:?}"))
        }
    })
    .await?;
    let failed = profile.status.map(|status| status.failed_namespaces).unwrap_or_default();
    ensure!(failed.len() == 3 && failed[0].name == "wrong-malformed", "{failed:?}");

    let mended = json!({"metadata": {"annotations": uid("50002")}});
    cluster.patch_namespace("wrong-missing", &mended).await?;
    cluster.wait_admitted("wrong-missing", &tool_pod("job", 50_002)).await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn a_changed_annotation_writes_one_object(cluster: &mut Cluster) -> TestResult {
    let test = "changed";
    for index in 0..10 {
        cluster.create_tool(test, &format!("changed-{index}"), UID + index).await?;
    }
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.wait_admitted("changed-3", &tool_pod("job", UID + 3)).await?;
    let (before, policies) = (cluster.params_versions(test).await?, cluster.policy_versions(test).await?);
    ensure!(before.len() == 10, "{before:?}");

    cluster.patch_namespace("changed-3", &json!({"metadata": {"annotations": {"toolforge.org/uid": "60000"}}})).await?;
    cluster.wait_admitted("changed-3", &tool_pod("job", 60_000)).await?;
    let old = cluster.dry_run("changed-3", &tool_pod("job", UID + 3)).await;
    ensure!(old.denial().is_some_and(|text| text.contains("must be 60000")), "{old:?}");
    // Something that is no parameter.
    cluster
        .patch_namespace("changed-4", &json!({"metadata": {"annotations": {"other": "x"}, "labels": {"other": "x"}}}))
        .await?;
    // No other object may be written during this time.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let after = cluster.params_versions(test).await?;
    let written: Vec<_> = after.iter().filter(|(namespace, version)| before.get(*namespace) != Some(version)).collect();
    ensure!(written.len() == 1 && written[0].0 == "changed-3", "written: {written:?}");
    ensure!(cluster.policy_versions(test).await? == policies, "the policy or the binding was written");

    // A namespace that is no longer selected is free, and its parameters go.
    cluster.patch_namespace("changed-5", &json!({"metadata": {"labels": {"tenancy": null}}})).await?;
    eventually("parameters removed", || async {
        match cluster.params("changed-5", test).await {
            Err(error) if error.contains("not found") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.wait_admitted("changed-5", &hostile_pod("free")).await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn several_profiles_all_apply(cluster: &mut Cluster) -> TestResult {
    let test = "several";
    cluster.create_tool(test, "several-tool", UID).await?;
    cluster.enforce(&Cluster::toolforge_profile(test)?).await?;
    let strict = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "several-strict"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"tenancy": test}},
            "privileges": {"readOnlyRootFilesystem": true},
            "volumes": {"allowed": ["*"], "hostPaths": [{"pathPrefix": "/"}]},
        },
    });
    // Both are probed in one namespace that both select; each is asked about alone.
    cluster.enforce(&strict).await?;
    cluster.wait_condition(test, "Enforced", "True").await?;
    let verdict = cluster.dry_run("several-tool", &tool_pod("job", UID)).await;
    ensure!(verdict.denial().is_some_and(|text| text.contains("readOnlyRootFilesystem is false")), "{verdict:?}");
    let mut both = tool_pod("job", UID);
    both["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = json!(true);
    cluster.wait_admitted("several-tool", &both).await?;
    both["spec"]["securityContext"]["fsGroup"] = json!(0);
    let verdict = cluster.dry_run("several-tool", &both).await;
    ensure!(verdict.denial().is_some_and(|text| text.contains("[fsGroup]")), "{verdict:?}");
    cluster.delete_profile("several-strict").await?;
    cluster.delete_profile(test).await
}

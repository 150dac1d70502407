//! Who and what a profile does not judge.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use palisade_api::names;
use palisade_kube_json::{
    pod,
    workload::{WORKLOADS, Workload},
};
use palisade_tests::{Cluster, TestResult, Verdict, Webhook, dry_run_answer, ensure, eventually};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    named_users_and_groups_are_exempt_and_no_other_tenant: Judged 140;
    exempt_pods_are_not_mutated_by_any_engine: Judged 150 needs NATIVE_MUTATION;
    exemption_that_covers_tenants_is_reported_in_status: Judged 160;
    an_exception_ends_by_the_clock_of_the_api_server: Oldest 140, Judged 170;
}

fn profile(test: &str, spec: &Json) -> Json {
    let mut profile = json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": test},
        "spec": {
            "namespaceSelector": {"matchLabels": {"test": test}}, "baseline": "Baseline",
            "enforcement": {"workloads": "Deny"},
        },
    });
    pod::merge(&mut profile["spec"], spec);
    profile
}

fn privileged() -> Json {
    let mut pod = pod::minimal("bad");
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod
}

const DEPLOYMENT: &Workload = &WORKLOADS[0];

pub(crate) async fn named_users_and_groups_are_exempt_and_no_other_tenant(cluster: &mut Cluster) -> TestResult {
    let test = "exempt";
    cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
    let exemptions = json!({"exemptions": {"users": ["system:serviceaccount:ops:deployer"], "groups": ["ops"]}});
    cluster.enforce(&profile(test, &exemptions)).await?;
    eventually("in force", || async {
        let verdict = cluster.dry_run(test, &privileged()).await;
        verdict.denial().map(|_| ()).ok_or(format!("{verdict:?}"))
    })
    .await?;
    let mut mirror = privileged();
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "0123"});
    pod::set(&mut mirror, &["nodeName"], json!("worker"));
    let deployment = DEPLOYMENT.around("bad", &privileged());
    let (pods, deployments) =
        (format!("/api/v1/namespaces/{test}/pods"), format!("/apis/apps/v1/namespaces/{test}/deployments"));
    let authenticated = "system:authenticated";
    for (user, groups, admitted) in [
        ("tenant", [authenticated].as_slice(), false),
        ("tenant-of-ops", &[authenticated, "ops"], true),
        ("system:serviceaccount:ops:deployer", &["system:serviceaccounts", authenticated], true),
        ("system:serviceaccount:ops:default", &["system:serviceaccounts", authenticated], false),
    ] {
        let client = cluster.client_of(user, groups).await?;
        for (path, object) in [(&pods, &privileged()), (&deployments, &deployment)] {
            let verdict = cluster.dry_run_at(&client, path, object).await;
            let right = if admitted { verdict == Verdict::Admitted } else { verdict.denial().is_some() };
            ensure!(right, "{user} in {groups:?} at {path}: {verdict:?}");
        }
        let verdict = cluster.dry_run_at(&client, &pods, &mirror).await;
        ensure!(admitted || verdict.denial().is_some(), "a mirror pod of {user}: {verdict:?}");
    }
    let node = cluster.client_of("system:node:worker", &["system:nodes", authenticated]).await?;
    let mirrored = cluster.dry_run_at(&node, &pods, &mirror).await;
    ensure!(mirrored == Verdict::Admitted, "a mirror pod of a node: {mirrored:?}");
    let other = cluster.dry_run_at(&node, &pods, &privileged()).await;
    ensure!(other.denial().is_some(), "another pod of a node: {other:?}");
    cluster.delete_profile(test).await
}

/// All kinds of exemptions, with each engine that changes pods: the API server itself, and the webhook.
pub(crate) async fn exempt_pods_are_not_mutated_by_any_engine(cluster: &mut Cluster) -> TestResult {
    let webhook = Webhook::start(cluster, None, &[]).await?;
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "confined"}, "handler": "confined",
    });
    ensure!(cluster.create_at("/apis/node.k8s.io/v1/runtimeclasses", &class).await == Verdict::Admitted, "no class");
    let authenticated = "system:authenticated";
    let tenant = cluster.client_of("changed-tenant", &[authenticated]).await?;
    let user = cluster.client_of("unchanged-user", &[authenticated]).await?;
    let member = cluster.client_of("unchanged-member", &[authenticated, "ops"]).await?;
    let plain = pod::minimal("plain");
    let mut confined = plain.clone();
    pod::set(&mut confined, &["runtimeClassName"], json!("confined"));
    for engine in ["Native", "Webhook"] {
        for (kind, names, client, exempt) in [
            ("users", "unchanged-user", &user, &plain),
            ("groups", "ops", &member, &plain),
            ("runtimeClasses", "confined", &tenant, &confined),
        ] {
            let test = format!("exempt-{}-{}", kind.to_lowercase(), engine.to_lowercase());
            cluster.create_namespace(&test, &json!({"test": test}), &json!({})).await?;
            let spec = json!({
                "baseline": "Restricted", "exemptions": {kind: [names]},
                "mutation": {"defaults": "Secure", "engine": engine},
            });
            cluster.enforce(&profile(&test, &spec)).await?;
            // A user who is not exempt complies because the pod is mutated.
            eventually(&format!("{test}: a tenant's pod is changed"), || async {
                let answer = dry_run_answer(&tenant, &test, &plain).await.map_err(|error| error.to_string())?;
                let set = &answer["spec"]["securityContext"]["runAsNonRoot"];
                if *set == json!(true) { Ok(()) } else { Err(answer["spec"].to_string()) }
            })
            .await?;
            // An exempt user is neither denied nor gets defaults.
            let answer = dry_run_answer(client, &test, exempt).await?;
            ensure!(answer["spec"]["securityContext"] == json!({}), "{test}: {}", answer["spec"]);
            cluster.delete_profile(&test).await?;
        }
    }
    cluster.kubectl(&["delete", "runtimeclass", "confined"])?;
    webhook.stop().await
}

/// An exemption of a controller of kube-system exempts whoever may create the workloads that it serves, and is
/// reported.
pub(crate) async fn exemption_that_covers_tenants_is_reported_in_status(cluster: &mut Cluster) -> TestResult {
    let test = "frees-tenants";
    let controller = "system:serviceaccount:kube-system:daemon-set-controller";
    cluster.apply_profile(&profile(test, &json!({"exemptions": {"users": [controller]}}))).await?;
    let told = |found: palisade_api::ToolSecurityProfile| {
        let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
        let accepted = conditions.into_iter().find(|condition| condition.type_ == "Accepted");
        accepted.map(|condition| condition.message).unwrap_or_default()
    };
    let message = told(cluster.wait_condition(test, "Accepted", "True").await?);
    let expected =
        format!("; warning: spec.exemptions.users[0]: {controller} is a controller, which creates pods on behalf of");
    ensure!(message.contains(&expected), "{message}");
    cluster
        .apply_profile(&profile(test, &json!({"exemptions": {"users": ["system:serviceaccount:ops:deployer"]}})))
        .await?;
    let message = told(cluster.wait_condition(test, "Accepted", "True").await?);
    ensure!(!message.contains("warning"), "{message}");
    cluster.delete_profile(test).await
}

pub(crate) async fn an_exception_ends_by_the_clock_of_the_api_server(cluster: &mut Cluster) -> TestResult {
    let test = "excepted";
    for namespace in ["excepted-a", "excepted-b"] {
        cluster.create_namespace(namespace, &json!({"test": test}), &json!({})).await?;
    }
    let excepted_until = |end: Timestamp| {
        let exceptions = json!({"exceptions": [{
            "namespaces": ["excepted-a"], "checks": ["privileged"], "reason": "a test", "expires": end.to_string(),
        }]});
        profile(test, &exceptions)
    };
    cluster.enforce(&excepted_until(Timestamp::now() + SignedDuration::from_hours(1))).await?;
    let mut both = privileged();
    pod::set(&mut both, &["hostPID"], json!(true));
    cluster.wait_admitted("excepted-a", &privileged()).await?;
    let other_check = cluster.dry_run("excepted-a", &both).await;
    ensure!(
        other_check.denial().is_some_and(|text| text.contains("1 violation ") && text.contains("[hostNamespaces]")),
        "{other_check:?}"
    );
    let deployments = "/apis/apps/v1/namespaces/excepted-a/deployments";
    let deployment = cluster.dry_run_at(&cluster.admin, deployments, &DEPLOYMENT.around("x", &privileged())).await;
    ensure!(deployment == Verdict::Admitted, "{deployment:?}");
    let elsewhere = cluster.dry_run("excepted-b", &privileged()).await;
    ensure!(elsewhere.denial().is_some(), "{elsewhere:?}");

    // Nobody is there to take it away: it ends by itself. A slow machine needs longer to stop the controller before that.
    let mut seconds = 5;
    let rest = loop {
        let end = Timestamp::from_second(Timestamp::now().as_second() + seconds)?;
        cluster.apply_profile(&excepted_until(end)).await?;
        let written = end.to_string();
        let seen = eventually("the new end", || async {
            let spec = cluster.params("excepted-a", test).await?.spec;
            match spec.exceptions.get("privileged") {
                Some(found) if *found == written => Ok(true),
                // Written, and taken away again.
                None if Timestamp::now() >= end => Ok(false),
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
    let spec = cluster.params("excepted-a", test).await?.spec;
    ensure!(spec.exceptions.contains_key("privileged"), "{spec:?}");
    let after = cluster.dry_run("excepted-a", &privileged()).await;
    ensure!(after.denial().is_some_and(|text| text.contains("[privileged]")), "{after:?}");
    let deployment = cluster.dry_run_at(&cluster.admin, deployments, &DEPLOYMENT.around("x", &privileged())).await;
    ensure!(deployment.denial().is_some(), "{deployment:?}");

    cluster.start_controller().await?;
    eventually("the exception taken away", || async {
        let spec = cluster.params("excepted-a", test).await?.spec;
        if spec.exceptions.is_empty() { Ok(()) } else { Err(format!("{spec:?}")) }
    })
    .await?;
    eventually("counted", || async {
        let found = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
        let counts = found.status.and_then(|status| status.exceptions);
        match counts {
            Some(counts) if (counts.active, counts.expired) == (0, 1) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.delete_profile(test).await
}

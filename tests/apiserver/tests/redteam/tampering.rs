//! Somebody with the right to do so takes away what enforces. It comes back within a short time, whatever else is wrong
//! in the cluster; that time is counted apart.

use std::time::Duration;

use palisade_tests::{Cluster, within};
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::{Arena, LIMIT},
    pods::{UID, complying, hostile},
    table::{Expect, Tally},
    wire::{MERGE, Request, send},
};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
/// The controller restores a deleted object within a fraction of a second, which the report shows; on a busy machine it
/// may take longer.
const REPAIR: Duration = LIMIT;

/// Changes of generated objects, and their deletion.
pub(crate) async fn tampering(arena: &mut Arena) -> Result<Tally> {
    let test = "red-tampering";
    let namespace = arena.stage(test, |_| ()).await?;
    let [policy, binding] = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
        .map(|plural| format!("{ADMISSION}/{plural}/palisade-{test}-pods"));
    let params = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityparams/{test}");
    let everything = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]);
    let edits: [(&str, &str, Option<Json>); 11] = [
        ("a deleted binding", &binding, None),
        ("a deleted policy", &policy, None),
        ("deleted parameters", &params, None),
        ("a binding that only audits", &binding, Some(json!({"spec": {"validationActions": ["Audit"]}}))),
        (
            "a binding for nobody",
            &binding,
            Some(json!({"spec": {"matchResources": {"namespaceSelector": {"matchLabels": {"no": "body"}}}}})),
        ),
        (
            "a binding to other parameters",
            &binding,
            Some(json!({"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}})),
        ),
        ("a policy that says yes", &policy, Some(json!({"spec": {"validations": [{"expression": "true"}]}}))),
        (
            "a policy that never applies",
            &policy,
            Some(json!({"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}})),
        ),
        (
            "a policy that excludes all",
            &policy,
            Some(json!({"spec": {"matchConstraints": {"excludeResourceRules": everything}}})),
        ),
        ("a policy that fails open", &policy, Some(json!({"spec": {"failurePolicy": "Ignore"}}))),
        ("parameters of root", &params, Some(json!({"spec": {"integers": {"uid": 0}}}))),
    ];
    let mut tally = Tally::default();
    let edits = edits.into_iter().step_by(arena.extent.pick(2, 1));
    for (what, path, change) in edits {
        tally.add(tamper(arena, &namespace, what, path, change).await?);
    }
    // Twelve profiles without an engine that mutates pods: each of their probes waits in vain.
    let broken = 12;
    for index in 0..broken {
        let mut profile = Cluster::toolforge_profile(&format!("{test}-{index}"))?;
        profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Webhook"});
        arena.cluster.apply_profile(&profile).await?;
    }
    for index in 0..broken {
        arena.condition(&format!("{test}-{index}"), "Accepted", "True").await?;
    }
    for (what, path) in [
        ("a deleted binding beside twelve broken profiles", &binding),
        ("a deleted policy beside twelve broken profiles", &policy),
    ] {
        tally.add(tamper(arena, &namespace, what, path, None).await?);
    }
    for index in 0..3 {
        let name = format!("{test}-new-{index}");
        arena.cluster.create_tool(test, &name, UID).await?;
        let served = within(REPAIR, "parameters of a new namespace", || async {
            let answer = send(arena.admin(), &Request::pod(&name, &complying("x"))).await;
            if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
        })
        .await;
        tally.must(served.is_ok(), format!("beside twelve broken profiles, {name}: {served:?}"));
        let answer = send(arena.admin(), &Request::pod(&name, &hostile("x"))).await;
        tally.count(&format!("hostPID in {name}"), &Expect::check("hostNamespaces"), &answer);
    }
    for index in 0..broken {
        arena.delete_profile(&format!("{test}-{index}")).await?;
    }
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// Edits an object, or deletes it, and sends hostile pods until its spec is as before.
async fn tamper(arena: &Arena, namespace: &str, what: &str, path: &str, change: Option<Json>) -> Result<Tally> {
    let spec = arena.demand(&Request::get(path)).await?["spec"].clone();
    match change {
        None => arena.demand(&Request::delete(path)).await?,
        Some(change) => arena.demand(&Request::new("PATCH", path, MERGE, &change)).await?,
    };
    let restored = || async { arena.ask(&Request::get(path)).await.body["spec"] == spec };
    arena.window(what, namespace, REPAIR, restored).await
}

/// The definition of parameters is deleted, and all parameters with it: everything is closed until it is back.
pub(crate) async fn deleted_definition(arena: &mut Arena) -> Result<Tally> {
    let test = "red-definition";
    let namespace = arena.stage(test, |_| ()).await?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let one = format!("{path}/toolsecurityparams.toolsecurity.dev");
    let mut definition = arena.demand(&Request::get(&one)).await?;
    arena.demand(&Request::delete(&one)).await?;
    let mut tally = Tally::default();
    for turn in 0..60 {
        let answer = send(arena.admin(), &Request::pod(&namespace, &hostile("x"))).await;
        tally.count(&format!("pod {turn}, without the definition"), &Expect::Stopped, &answer);
        // The attacks last six seconds, during which the parameters are removed.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    definition["metadata"] = json!({"name": definition["metadata"]["name"]});
    if let Some(fields) = definition.as_object_mut() {
        fields.remove("status");
    }
    arena.demand(&Request::create(path, &definition)).await?;
    let start = std::time::Instant::now();
    while start.elapsed() < 4 * LIMIT {
        let answer = send(arena.admin(), &Request::pod(&namespace, &hostile("x"))).await;
        tally.count("a pod while the definition comes back", &Expect::Stopped, &answer);
        if send(arena.admin(), &Request::pod(&namespace, &complying("x"))).await.is_admitted() {
            break;
        }
        // The interval between two attacks. Each answer is evaluated.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    arena.admitted(&namespace, &complying("x")).await?;
    arena.delete_profile(test).await?;
    Ok(tally)
}

//! Custom checks that a fast path could pass over. `crates/gate/tests/fast.rs` tries the same offline.

use palisade_kube_json::workload::WORKLOADS;
use palisade_tests::Cluster;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::complying,
    table::{Attack, Expect, Tally, make},
    wire::Request,
};

const CASES: &str = include_str!("../../cases/custom/fast-path.yaml");

#[derive(Deserialize)]
struct Case {
    name: String,
    checks: Json,
    pods: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    admitted: bool,
    #[serde(default)]
    metadata: Json,
    spec: Json,
}

/// A pod that complies with the profile, changed as the case says: the first container gets what the case's first has.
fn pod(of: &Pod) -> Json {
    let mut pod = complying("x");
    let mut change = of.spec.clone();
    if let Some(containers) = change.get_mut("containers").and_then(Json::as_array_mut) {
        let first = pod["spec"]["containers"][0].clone();
        for container in containers {
            let mut whole = first.clone();
            let image = whole["image"].clone();
            palisade_kube_json::pod::merge(&mut whole, container);
            whole["image"] = image;
            *container = whole;
        }
    }
    palisade_kube_json::pod::merge(&mut pod["spec"], &change);
    if of.metadata.is_object() {
        palisade_kube_json::pod::merge(&mut pod["metadata"], &of.metadata);
    }
    pod
}

/// Each case's profile, and its pods as pods and in Deployments.
pub(crate) async fn custom_checks(arena: &mut Arena) -> Result<Tally> {
    let test = "red-customs";
    let namespace = arena.stage(test, |_| ()).await?;
    let mut tally = Tally::default();
    let cases: Vec<Case> = serde_saphyr::from_str(CASES)?;
    // Each is a profile that must get into force first.
    for case in cases.into_iter().step_by(arena.extent.pick(4, 1)) {
        let mut profile = Cluster::small_profile(test);
        profile["spec"]["customChecks"] = case.checks.clone();
        profile["spec"]["enforcement"] = json!({"pods": "Deny", "workloads": "Deny"});
        arena.enforce(&profile).await?;
        let mut attacks = Vec::new();
        for (index, of) in case.pods.iter().enumerate() {
            let expect = if of.admitted { Expect::Admitted } else { Expect::Denied("[".to_owned()) };
            let pod = pod(of);
            let name = format!("{}, pod {index}", case.name);
            let deployment = WORKLOADS.iter().find(|of| of.kind == "Deployment").map(|of| of.around("x", &pod));
            let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All");
            let create = Request::create(&path, &deployment.unwrap_or_default());
            attacks.push(Attack::new(format!("{name}, in a Deployment"), create, expect.clone()));
            attacks.push(Attack::new(name, Request::pod(&namespace, &pod), expect));
        }
        tally.add(make(&arena.tenant, attacks).await);
    }
    arena.delete_profile(test).await?;
    Ok(tally)
}

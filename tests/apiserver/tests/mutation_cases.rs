//! What becomes of objects that mutating policies change: on a real API server, and offline.

use std::{collections::BTreeMap, time::Duration};

use palisade_admission::requests::{Operation, Outcome};
use palisade_cel::Minor;
use palisade_tests::{
    Cluster, TestResult, ensure, eventually,
    mutations::{self, Case, comparable},
    root,
};
use serde_json::Value as Json;

crate::groups::scenarios! {
    mutation_cases_match_the_api_server: Alone 10 needs NATIVE_MUTATION;
}

/// How often, and in which intervals, to ask until the policies are in force.
const ROUNDS: usize = 120;
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn mutation_cases_match_the_api_server(cluster: &mut Cluster) -> TestResult {
    let minor = cluster.minor().await?;
    let cases = mutations::cases(&root().join("tests/apiserver/cases/mutation"));
    apply(cluster, &mutations::definition()).await?;
    cluster.wait_established(&["crd", "gadgets.mutation.example"])?;
    for case in &cases {
        for object in &case.cluster {
            apply(cluster, object).await?;
        }
        if let Some(old) = &case.old {
            // A pod is refused until its namespace has a service account.
            let path = path(case, false);
            eventually(&case.name, || cluster.answer_to("POST", &path, old)).await?;
        }
    }
    let mut pending: BTreeMap<&str, (&Case, Vec<String>)> =
        cases.iter().map(|case| (case.name.as_str(), (case, vec!["not asked".to_owned()]))).collect();
    for round in 0..ROUNDS {
        if round > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        for (case, problems) in pending.values_mut() {
            *problems = compare(cluster, minor, case).await;
        }
        pending.retain(|_, (_, problems)| !problems.is_empty());
        if pending.is_empty() {
            println!("{} cases agree", cases.len());
            return Ok(());
        }
    }
    let problems: Vec<String> = pending
        .iter()
        .flat_map(|(name, (_, problems))| problems.iter().map(move |one| format!("{name}: {one}")))
        .collect();
    ensure!(false, "{} of {} cases:\n{}", pending.len(), cases.len(), problems.join("\n"));
    Ok(())
}

async fn apply(cluster: &Cluster, object: &Json) -> TestResult {
    let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let path = match text("/kind") {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        "ConfigMap" => format!("/api/v1/namespaces/{}/configmaps", text("/metadata/namespace")),
        "CustomResourceDefinition" => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        "MutatingAdmissionPolicy" => "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies".to_owned(),
        _ => "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings".to_owned(),
    };
    match cluster.answer_to("POST", &path, object).await {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{} {}: {error}", text("/kind"), text("/metadata/name")).into()),
    }
}

/// The path of a case's request.
fn path(case: &Case, with_name: bool) -> String {
    let (group, plural) = case.resource;
    let mut path = format!("/{group}/namespaces/{}/{plural}", case.name);
    if with_name {
        path += "/web";
        if !case.subresource.is_empty() {
            path = format!("{path}/{}", case.subresource);
        }
    }
    path
}

/// The differences between both answers, and the unmet expectations.
async fn compare(cluster: &Cluster, minor: Minor, case: &Case) -> Vec<String> {
    let updates = case.operation == "UPDATE";
    let method = if updates { "PUT" } else { "POST" };
    let found = cluster.answer_to(method, &format!("{}?dryRun=All", path(case, updates)), &case.object).await;
    let found = found.map_err(|text| text.replace('\u{a0}', " "));
    let mut problems: Vec<String> =
        case.expected.unmet(&found).into_iter().map(|unmet| format!("API server: {unmet}")).collect();
    match (offline(minor, case), found) {
        (Err(why), _) => problems.push(format!("no verdict: {why}")),
        // The controller manager changes what is stored.
        (Ok(Ok(_)), Ok(_)) if updates => {}
        (Ok(Ok(ours)), Ok(theirs)) => {
            let (ours, theirs) = (comparable(ours), comparable(theirs));
            if ours != theirs {
                problems.push(format!("different objects\n  API server: {theirs}\n  harness:    {ours}"));
            }
        }
        (Ok(Err(ours)), Err(theirs)) if ours == theirs => {}
        (Ok(ours), theirs) => problems.push(format!("different\n  API server: {theirs:?}\n  harness:    {ours:?}")),
    }
    problems
}

fn offline(minor: Minor, case: &Case) -> Result<Result<Json, String>, String> {
    let mut cluster = palisade_gate::cluster(minor);
    for object in std::iter::once(mutations::definition()).chain(case.cluster.iter().cloned()) {
        cluster.apply(object).map_err(|error| format!("{error:?}"))?;
    }
    let operation = Operation::parse(&case.operation).ok_or("no operation")?;
    let request = cluster.request(operation, &case.subresource, &case.object, case.old.as_ref())?;
    let review = cluster.admit(&request);
    match review.outcome {
        Outcome::Allowed => Ok(Ok(review.object.unwrap_or_default())),
        Outcome::Denied(denials) => Ok(Err(denials[0].message.clone())),
        Outcome::NoVerdict(why) => Err(why),
    }
}

//! The table of features of API servers is true of this one. Scenarios are skipped by it.

use palisade_controlplane::{Feature, Source};
use palisade_tests::{Cluster, TestResult, ensure};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    features_match_the_api_server: Answers 5;
}

pub(crate) async fn features_match_the_api_server(cluster: &mut Cluster) -> TestResult {
    let (minor, help) = (cluster.served().await?, cluster.control_plane.apiserver_help()?);
    ensure!(help.contains("--feature-gates"), "the help has another form");
    let mut wrong = Vec::new();
    for feature in Feature::ALL {
        let found = match feature.source {
            Source::Gate(gate) => default_of(&help, gate),
            Source::Switch(gate) => Some(default_of(&help, gate).is_some()),
            Source::Resource { path, name } => Some(serves(cluster, path, name).await),
        };
        // A gate that is locked or removed is not listed.
        if found.is_some_and(|found| found != feature.is_in(minor)) || (found.is_none() && !feature.is_in(minor)) {
            wrong.push(format!("{feature}: {found:?} in the API server, {} in the table", feature.is_in(minor)));
        }
    }
    ensure!(wrong.is_empty(), "Kubernetes 1.{minor}:\n{}", wrong.join("\n"));
    Ok(())
}

/// The default of a feature gate, from a line like `kube:ImageVolume=true|false (BETA - default=true)`.
fn default_of(help: &str, gate: &str) -> Option<bool> {
    let (_, rest) = help.split_once(&format!(":{gate}=true|false ("))?;
    let (_, default) = rest.split_once(')')?.0.split_once("default=")?;
    Some(default == "true")
}

async fn serves(cluster: &Cluster, path: &str, name: &str) -> bool {
    let found = cluster.answer_to("GET", path, &json!({})).await.unwrap_or_default();
    found["resources"].as_array().into_iter().flatten().any(|one: &Json| one["name"] == name)
}

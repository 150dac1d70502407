//! Other engines that make the checks of Toolforge's profile, each on an API server of its own, in turn with a namespace
//! that nothing judges and with Palisade.

mod gatekeeper;
mod kyverno;

use std::path::Path;

use palisade_tests::Cluster;
use serde_json::Value as Json;

use crate::{
    Only, Result,
    arms::{self, Arm, UID},
    engine::Engine,
    measure::{self, Figures, Plan},
};

/// A way in which a peer judges.
struct Way {
    /// The name of its arm and of its namespace.
    name: &'static str,
    about: &'static str,
    /// The directory below the one of all peers where `cargo xtask peers` keeps what it needs.
    directory: &'static str,
    /// Starts the engine for a namespace.
    start: fn(&Cluster, &Path, &str) -> Result<Engine>,
    /// What judges there.
    policies: fn(&str) -> Result<Vec<Json>>,
}

const WAYS: &[Way] = &[
    Way {
        name: "kyverno-clusterpolicy",
        about: "Kyverno, a ClusterPolicy of patterns",
        directory: "kyverno",
        start: kyverno::start,
        policies: kyverno::cluster_policy,
    },
    Way {
        name: "kyverno-clusterpolicy-parameters",
        about: "Kyverno, the same, with the uid of the pod's namespace",
        directory: "kyverno",
        start: kyverno::start,
        policies: kyverno::cluster_policy_with_parameters,
    },
    Way {
        name: "kyverno-policies",
        about: "Kyverno, a Policy of the same patterns in each of 100 namespaces",
        directory: "kyverno",
        start: kyverno::start,
        policies: kyverno::policies,
    },
    Way {
        name: "kyverno-validatingpolicy",
        about: "Kyverno, a ValidatingPolicy of the profile's own CEL",
        directory: "kyverno",
        start: kyverno::start,
        policies: kyverno::validating_policy,
    },
    Way {
        name: "gatekeeper-rego",
        about: "Gatekeeper, seven constraints in Rego",
        directory: "gatekeeper",
        start: gatekeeper::webhook,
        policies: gatekeeper::rego,
    },
    Way {
        name: "gatekeeper-cel",
        about: "Gatekeeper, a constraint of the profile's own CEL",
        directory: "gatekeeper",
        start: gatekeeper::webhook,
        policies: gatekeeper::cel,
    },
    Way {
        name: "gatekeeper-policy",
        about: "Gatekeeper, the policy that it generates of that CEL, without a webhook",
        directory: "gatekeeper",
        start: gatekeeper::generator,
        policies: gatekeeper::generated,
    },
];

/// Measures the peers that are to be measured: the arms of each, with those beside it. One that fails does
/// not stop the others.
pub(crate) async fn all(directory: &Path, only: &Only, plan: Plan) -> Result<Vec<Vec<Figures>>> {
    let mut groups = Vec::new();
    for way in WAYS.iter().filter(|way| only.has(way.name)) {
        let own = directory.join(way.directory);
        if !own.is_dir() {
            println!("==> {}: not measured, because cargo xtask peers has not built it", way.name);
            continue;
        }
        println!("==> {}: starting etcd, kube-apiserver and kube-controller-manager", way.name);
        let cluster = Cluster::start(None).await?;
        let figures = one(&cluster, way, &own, plan).await;
        cluster.stop().await?;
        match figures {
            Ok(figures) => groups.push(figures),
            Err(error) => println!("==> {}: not measured, because of an error: {error}", way.name),
        }
    }
    Ok(groups)
}

async fn one(cluster: &Cluster, way: &Way, directory: &Path, plan: Plan) -> Result<Vec<Figures>> {
    let definitions = directory.join("crds").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--recursive", "-f", &definitions])?;
    cluster.wait_established(&["crd", "--all"])?;
    let engine = (way.start)(cluster, directory, way.name)?;
    let mut peer = arms::of_peer(way.name, way.about, engine.pid())?;
    peer.objects = (way.policies)(way.name)?;
    let arms: Vec<Arm> = arms::beside_peers()?.into_iter().chain([peer]).collect();
    measure::run(cluster, &arms, plan).await.map_err(|error| format!("{error}\n{}", engine.log_tail()).into())
}

/// The spec of the policy for pods that Palisade compiles Toolforge's profile to, with the uid a constant and without the
/// fast path.
fn cel_of_profile(namespace: &str) -> Result<Json> {
    let all = arms::policy_of_namespace(namespace, UID)?;
    let of_pods = all.into_iter().find(|object| {
        let rules = &object["spec"]["matchConstraints"]["resourceRules"];
        object["kind"] == "ValidatingAdmissionPolicy" && rules.to_string().contains("\"pods\"")
    });
    Ok(of_pods.ok_or("no policy for pods")?["spec"].clone())
}

//! Active profiles in an offline cluster.

use k8s_openapi::jiff::Timestamp;
use palisade_admission::{
    create::{Refused, Status},
    requests::Cluster,
};
use palisade_api::crd;
use palisade_cel::Minor;
use palisade_compiler::ChangedBy;

use crate::{
    namespaces::Tenant,
    output::could_not_print,
    profiles::{self, Accepted},
    report::{Failure, Problem},
};

/// Creates the CRDs of the product.
///
/// # Errors
/// The cluster rejects one.
pub fn define(cluster: &mut Cluster) -> Result<(), Failure> {
    for crd in crd::all() {
        let crd = serde_json::to_value(crd).map_err(|error| could_not_print(&error))?;
        cluster.apply(crd).map_err(|refused| refusal(&refused))?;
    }
    Ok(())
}

/// Enforces profiles in namespaces, like the controller at a time.
///
/// # Errors
/// The cluster rejects a policy, a binding or parameters.
pub fn enforce(
    cluster: &mut Cluster,
    accepted: &[Accepted],
    tenants: &[Tenant],
    version: Minor,
    now: Timestamp,
) -> Result<(), Failure> {
    for object in profiles::objects(accepted, tenants, version, now).map_err(|error| could_not_print(&error))? {
        cluster.apply(object).map_err(|refused| refusal(&refused))?;
    }
    for one in accepted {
        if let Some((mutation, ChangedBy::Webhook)) = profiles::changed_by(one, version) {
            palisade_gate::register(cluster, mutation.clone());
        }
    }
    Ok(())
}

/// The message of the cluster.
pub fn text(refused: &Refused) -> String {
    match refused {
        Refused::Status(Status { message, .. }) => message.clone(),
        Refused::NoVerdict(why) => why.clone(),
    }
}

/// The failure for an object that the cluster rejects.
pub fn refusal(refused: &Refused) -> Failure {
    Failure::CouldNotRun(vec![Problem::new(text(refused))])
}

//! Profiles and namespaces of a cluster, for commands that judge by what is in force there. Only read rights are needed.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::ListParams};
use palisade_api::{ToolSecurityException, ToolSecurityProfile};
use palisade_compiler::Request;

use crate::{
    cluster::failed,
    namespaces::{self, Tenant},
    report::{Failure, Problem},
};

/// All profiles of the cluster.
///
/// # Errors
/// The API server gives no list. Its answer names the right that is missing.
pub async fn profiles(client: &Client) -> Result<Vec<ToolSecurityProfile>, Failure> {
    let api = Api::<ToolSecurityProfile>::all(client.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(|error| {
        may(failed("cannot read the profiles", &error), "list toolsecurityprofiles.toolsecurity.dev")
    })?;
    Ok(list.items)
}

/// The namespaces of these names, with the exceptions in them; those that do not exist are left out.
///
/// # Errors
/// The API server does not let this user read one.
pub async fn tenants(client: &Client, names: &BTreeSet<String>) -> Result<Vec<Tenant>, Failure> {
    let mut tenants = Vec::new();
    for name in names {
        let found = Api::<Namespace>::all(client.clone()).get_opt(name).await;
        let found =
            found.map_err(|error| may(failed(&format!("cannot read namespace {name}"), &error), "get namespaces"))?;
        let Some(mut tenant) = found.and_then(|found| namespaces::seen(name.clone(), found.metadata)) else { continue };
        let exceptions = Api::<ToolSecurityException>::namespaced(client.clone(), name);
        let list = exceptions.list(&ListParams::default()).await.map_err(|error| {
            let failure = failed(&format!("cannot read the exceptions in namespace {name}"), &error);
            may(failure, "list toolsecurityexceptions.toolsecurity.dev in the namespace")
        })?;
        for exception in list.items {
            let request = Request::from(&exception);
            tenant.requests.push((exception.metadata.name.unwrap_or_default(), request));
        }
        tenants.push(tenant);
    }
    Ok(tenants)
}

/// The failure, with the right that it takes.
fn may(failure: Failure, right: &str) -> Failure {
    match failure {
        Failure::CouldNotRun(problems) => {
            let help = format!("this takes the right to {right}; --profile reads profiles from files instead");
            Failure::CouldNotRun(problems.into_iter().map(|problem: Problem| problem.help(help.clone())).collect())
        }
        failure @ Failure::Wrong(_) => failure,
    }
}

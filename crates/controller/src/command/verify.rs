//! Checks an installation: there is a leader, and all profiles are Ready.

use std::time::Duration;

use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{Api, Client, api::ListParams};
use palisade_api::{ToolSecurityProfile, conditions::ConditionType, names};
use palisade_runtime::lists::{all, bounded};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::api_request::{ApiError, call};

/// How often to look.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// An error in the installation.
#[derive(Debug, thiserror::Error)]
#[error("after {} s: {problem}", .limit.as_secs())]
pub struct VerifyError {
    limit: Duration,
    problem: String,
}

/// Returns when nothing is wrong.
pub async fn run(client: Client, limit: Duration, stop: CancellationToken) -> Result<(), VerifyError> {
    let (client, until) = (bounded(client), Instant::now() + limit);
    // When the Lease was renewed, as it was seen first.
    let mut first = None;
    loop {
        let problem = match look(&client, &mut first).await {
            Ok((leader, profiles)) => {
                tracing::info!(holder = leader, profiles, "there is a leader, and all profiles are Ready");
                return Ok(());
            }
            Err(problem) => problem,
        };
        if Instant::now() >= until || stop.is_cancelled() {
            return Err(VerifyError { limit, problem });
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The leader and the number of profiles, or an error.
async fn look(client: &Client, first: &mut Option<MicroTime>) -> Result<(String, usize), String> {
    let unreadable = |what: &str, error: ApiError| format!("{what} could not be read: {error}");
    let leases: Api<Lease> = Api::namespaced(client.clone(), names::OPERATOR_NAMESPACE);
    let lease = call(leases.get(names::CONTROLLER)).await.map_err(|error| unreadable("the Lease", error))?;
    let spec = lease.spec.unwrap_or_default();
    let Some((leader, renewed)) = spec.holder_identity.filter(|holder| !holder.is_empty()).zip(spec.renew_time) else {
        return Err("no controller holds the Lease palisade-system/palisade-controller".to_owned());
    };
    // Clocks of two machines are not compared.
    if *first.get_or_insert_with(|| renewed.clone()) == renewed {
        return Err(format!("{leader} holds the Lease but does not renew it"));
    }
    let api: Api<ToolSecurityProfile> = Api::all(client.clone());
    let profiles = call(all(&api, &ListParams::default())).await;
    let profiles = profiles.map_err(|error| unreadable("ToolSecurityProfiles", error))?;
    let wrong: Vec<_> = profiles.iter().filter_map(unready).collect();
    if wrong.is_empty() { Ok((leader, profiles.len())) } else { Err(wrong.join("; ")) }
}

fn unready(profile: &ToolSecurityProfile) -> Option<String> {
    let conditions = profile.status.iter().flat_map(|status| &status.conditions);
    let ready = ConditionType::Ready.to_string();
    let name = profile.metadata.name.as_deref().unwrap_or_default();
    match conditions.into_iter().find(|condition| condition.type_ == ready) {
        Some(ready) if ready.observed_generation != profile.metadata.generation => {
            Some(format!("{name}: the controller has not processed its last change"))
        }
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(format!("{name} is not Ready: {}: {}", ready.reason, ready.message)),
        None => Some(format!("{name} has no condition Ready yet")),
    }
}

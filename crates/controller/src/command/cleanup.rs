//! Deletes all profiles before Palisade is uninstalled, and waits until nothing of them is left.
//!
//! A profile has a finalizer, which a controller removes at last. So this is one of the replicas of the controller: it
//! follows while another one leads, and takes over where none does. Nothing that removes is written twice.

use std::{net::Ipv4Addr, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, ObjectMeta},
    core::PartialObjectMeta,
};
use palisade_api::{ToolSecurityProfile, ToolSecurityReport, names};
use palisade_runtime::lists::{all_metadata, bounded};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    api_request::{ApiError, call, gone},
    context::Access,
    lanes::run::{Controller, Error, Running},
    options::{Options, ScanInterval},
};

/// Polling interval for remaining objects.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Why something is left.
#[derive(Debug, thiserror::Error)]
pub enum CleanupError {
    #[error("{what} could not be {verb}: {error}")]
    Api {
        what: &'static str,
        /// The failed operation.
        verb: &'static str,
        error: ApiError,
    },
    #[error(transparent)]
    Controller(#[from] Error),
    /// The time is over.
    #[error("ToolSecurityProfiles that still exist after {} s: {profiles}", .limit.as_secs())]
    Left {
        /// How long it took.
        limit: Duration,
        /// Their names, with the finalizers that keep them.
        profiles: String,
    },
    #[error("stopped before all ToolSecurityProfiles were deleted")]
    Stopped,
}

/// Deletes all profiles, and returns after they and their generated objects are deleted.
pub async fn run(
    client: Client,
    options: Options,
    limit: Duration,
    stop: CancellationToken,
) -> Result<(), CleanupError> {
    let (client, until) = (bounded(client), Instant::now() + limit);
    let wrong = |what, verb| move |error| CleanupError::Api { what, verb, error };
    if left(&client).await.map_err(wrong("ToolSecurityProfiles", "listed"))?.is_empty() {
        tracing::info!("found no ToolSecurityProfiles");
        return reports(&client).await;
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), names::OPERATOR_NAMESPACE);
    let lease = call(leases.get_opt(names::CONTROLLER)).await.map_err(wrong("the Lease", "read"))?;
    let options = Options {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        scan_interval: ScanInterval(None),
        // Without the Lease no controller is installed that could lead.
        leader_elect: lease.is_some(),
        ..options
    };
    let mut replica = start(&client, &options, &stop).await?;
    let outcome = loop {
        if stop.is_cancelled() {
            break Err(CleanupError::Stopped);
        }
        // As a kubelet does with one that ended because another one leads.
        if replica.join.is_finished() {
            replica = start(&client, &options, &stop).await?;
        }
        let profiles = match delete(&client).await {
            Ok(profiles) => profiles,
            Err(error) if Instant::now() < until => {
                tracing::warn!(%error, "could not list or delete ToolSecurityProfiles; will retry");
                sleep(POLL_INTERVAL).await;
                continue;
            }
            Err(error) => break Err(wrong("ToolSecurityProfiles", "deleted")(error)),
        };
        if profiles.is_empty() {
            break Ok(());
        }
        if Instant::now() >= until {
            let profiles = profiles.iter().map(describe).collect::<Vec<_>>().join(", ");
            break Err(CleanupError::Left { limit, profiles });
        }
        sleep(POLL_INTERVAL).await;
    };
    replica.stop().await?;
    outcome?;
    tracing::info!("deleted all ToolSecurityProfiles and their generated objects");
    reports(&client).await
}

async fn start(client: &Client, options: &Options, stop: &CancellationToken) -> Result<Running, Error> {
    let access = Access { client: client.clone(), config: Config::infer().await.ok(), own_connections: true };
    Controller::start_with(access, options.clone(), stop.child_token()).await
}

/// The profiles that there are; none where their kind is not known.
async fn left(client: &Client) -> Result<Vec<ObjectMeta>, ApiError> {
    let api: Api<PartialObjectMeta<ToolSecurityProfile>> = Api::all(client.clone());
    match call(all_metadata(&api, &ListParams::default())).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        found => found,
    }
}

/// Deletes the profiles that are not being deleted yet. Returns all existing profiles.
async fn delete(client: &Client) -> Result<Vec<ObjectMeta>, ApiError> {
    let api: Api<ToolSecurityProfile> = Api::all(client.clone());
    let profiles = left(client).await?;
    for profile in profiles.iter().filter(|profile| profile.deletion_timestamp.is_none()) {
        let name = profile.name.as_deref().unwrap_or_default();
        gone(api.delete(name, &DeleteParams::default())).await?;
        tracing::info!(profile = name, "deleted the ToolSecurityProfile");
    }
    Ok(profiles)
}

fn describe(profile: &ObjectMeta) -> String {
    let finalizers = profile.finalizers.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("{} (finalizers: {finalizers})", profile.name.as_deref().unwrap_or_default())
}

/// Deletes the reports of the background scan, which are no longer updated.
async fn reports(client: &Client) -> Result<(), CleanupError> {
    let wrong = |verb| move |error| CleanupError::Api { what: "ToolSecurityReports", verb, error };
    let all: Api<PartialObjectMeta<ToolSecurityReport>> = Api::all(client.clone());
    loop {
        let mut found = match call(all_metadata(&all, &ListParams::default())).await {
            Err(error) if error.is_not_found() => return Ok(()),
            found => found.map_err(wrong("listed"))?,
        };
        // A tenant can hold its reports with a finalizer. These go when it is removed: nothing waits for that.
        found.retain(|report| report.deletion_timestamp.is_none());
        if found.is_empty() {
            return Ok(());
        }
        for report in found {
            let ObjectMeta { name: Some(name), namespace: Some(namespace), .. } = report else { continue };
            let api: Api<ToolSecurityReport> = Api::namespaced(client.clone(), &namespace);
            gone(api.delete(&name, &DeleteParams::default())).await.map_err(wrong("deleted"))?;
        }
    }
}

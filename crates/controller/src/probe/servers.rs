//! The API servers: each enforces the policies that it has read, so each is probed separately.
//!
//! The EndpointSlice `kubernetes` of the namespace `default` has the addresses behind the service `kubernetes`. The
//! controller reads them periodically, because servers are added and removed. It asks each server for its version, to
//! detect servers that do not answer before they use up a turn.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use http::Uri;
use kube::{Client, Config, client::Body};
use palisade_runtime::Supervisor;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use super::{
    discover::{Found, discover},
    wait::{ANSWER_TIMEOUT, no_answer},
};
use crate::{
    api_request::ApiError,
    metrics::Metrics,
    options::ApiServers,
    pacing::{Pacing, is_affected},
    queue::ProfileQueue,
    watch::store::Store,
};

/// How often the addresses are read and each server is asked whether it answers.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// The same, while some server does not answer.
const CHECK_INTERVAL_WHILE_MISSING: Duration = Duration::from_secs(1);
/// The shortest time between two rounds.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How many answers in a row must be missing.
const MAX_MISSING_ANSWERS: u32 = 2;

/// An API server.
pub struct Server {
    /// Where it is, for people.
    pub address: String,
    /// A client of this server only.
    pub client: Client,
    state: Mutex<State>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Server").field(&self.address).finish()
    }
}

#[derive(Debug, Default)]
struct State {
    /// How many answers in a row were missing.
    strikes: u32,
    /// Why the last answer was missing.
    why: String,
    /// The minor version in the last answer that had one.
    minor: Option<u32>,
}

impl Server {
    /// A server that is assumed to answer.
    pub fn new(address: String, client: Client) -> Arc<Self> {
        Arc::new(Self { address, client, state: Mutex::default() })
    }

    /// Why it cannot be asked, if it is known not to answer.
    pub fn silent(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.strikes >= MAX_MISSING_ANSWERS).then(|| state.why.clone())
    }

    /// Asks whether it answers. Any answer counts.
    async fn ping(&self) {
        let request = http::Request::get("/version").body(Body::empty()).map_err(|error| error.to_string());
        let answer = match request {
            Ok(request) => match timeout(ANSWER_TIMEOUT, self.version(request)).await {
                Ok(Ok(minor)) => Ok(minor),
                Ok(Err(error)) => Err(ApiError::from(error).to_string()),
                Err(_) => Err(no_answer()),
            },
            Err(error) => Err(error),
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(minor) => *state = State { minor: minor.or(state.minor), ..State::default() },
            Err(why) => {
                state.strikes = state.strikes.saturating_add(1);
                // The first errors only: later ones may differ in details.
                if state.strikes <= MAX_MISSING_ANSWERS {
                    state.why = why;
                }
            }
        }
    }

    /// The minor version in the answer, if it has one.
    async fn version(&self, request: http::Request<Body>) -> kube::Result<Option<u32>> {
        let body = self.client.send(request).await?.into_body();
        Ok(body.collect_bytes().await.ok().and_then(|body| minor(&body)))
    }

    /// The address and version, if this version can exit while it compiles a policy.
    fn affected(&self) -> Option<String> {
        let minor = self.state.lock().unwrap_or_else(PoisonError::into_inner).minor?;
        is_affected(minor).then(|| format!("{} (1.{minor})", self.address))
    }

    fn is_well(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).strikes == 0
    }
}

/// The API servers as they are now.
#[derive(Clone, Debug)]
pub struct Set {
    /// Each of them, by address.
    pub servers: Vec<Arc<Server>>,
    /// Why only the configured address is probed, if others may be behind it.
    pub alone: Option<String>,
    /// Another number after each change.
    pub epoch: u64,
}

/// Keeps the list of API servers.
pub struct Servers {
    /// A client of the configured address.
    client: Client,
    /// How that is done, if it can be done for other addresses.
    config: Option<Config>,
    which: ApiServers,
    /// Learns which servers are affected.
    pub pacing: Arc<Pacing>,
    metrics: Arc<Metrics>,
    set: watch::Sender<Option<Set>>,
    /// A probe has missed an answer.
    missed: Notify,
}

impl Servers {
    /// Nothing is known yet.
    pub fn new(
        client: Client,
        config: Option<Config>,
        which: ApiServers,
        pacing: Arc<Pacing>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { client, config, which, pacing, metrics, set: watch::Sender::new(None), missed: Notify::new() }
    }

    /// For tests: these are all.
    #[cfg(test)]
    pub fn knowing(self, servers: Vec<Arc<Server>>) -> Self {
        self.set.send_replace(Some(Set { servers, alone: None, epoch: 1 }));
        self
    }

    /// To the configured address.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The API servers, once they are known.
    pub async fn current(&self) -> Set {
        let mut receiver = self.set.subscribe();
        let known = receiver.wait_for(Option::is_some).await.ok().and_then(|set| set.clone());
        // The sender lives as long as this does, so there is always one.
        known.unwrap_or_else(|| Set { servers: Vec::new(), alone: None, epoch: 0 })
    }

    /// Another number after each change.
    pub fn epoch(&self) -> u64 {
        self.set.borrow().as_ref().map_or(0, |set| set.epoch)
    }

    /// An answer was missing: checks whether the server answers at all.
    pub fn missed_an_answer(&self) {
        self.missed.notify_one();
    }

    /// Keeps this up to date until the end, and triggers all profiles after each change.
    pub fn follow(self: &Arc<Self>, store: &Arc<Store>, queue: &Arc<ProfileQueue>, supervisor: &Supervisor) {
        let (servers, store, queue) = (Arc::clone(self), Arc::clone(store), Arc::clone(queue));
        let stop = supervisor.stop().clone();
        supervisor.spawn("API servers", async move {
            let rounds = async {
                loop {
                    let begun = Instant::now();
                    if servers.round().await {
                        queue.trigger(store.profiles());
                    }
                    let all_well = servers.set.borrow().iter().flat_map(|set| &set.servers).all(|one| one.is_well());
                    tokio::select! {
                        () = tokio::time::sleep(if all_well { CHECK_INTERVAL } else { CHECK_INTERVAL_WHILE_MISSING }) => {}
                        () = servers.missed.notified() => tokio::time::sleep_until(begun + MIN_CHECK_INTERVAL).await,
                    }
                }
            };
            let _: Option<()> = stop.run_until_cancelled(rounds).await;
        });
    }

    /// Reads the addresses and asks each server whether it answers. Returns whether anything is new.
    async fn round(&self) -> bool {
        let before = self.set.borrow().clone();
        let silent = |set: &Set| set.servers.iter().map(|one| (one.address.clone(), one.silent())).collect::<Vec<_>>();
        let was_silent = before.as_ref().map(silent);
        let (servers, alone) = match self.find().await {
            Found::At(addresses) => match self.clients(before.as_ref(), &addresses) {
                Ok(servers) => (servers, None),
                Err(why) => (self.configured(before.as_ref()), Some(why)),
            },
            Found::Alone(why) => (self.configured(before.as_ref()), Some(why)),
            Found::Unknown(why) => match before.clone() {
                Some(set) => (set.servers, set.alone),
                None => (self.configured(None), Some(why)),
            },
        };
        join_all(servers.iter().map(|server| server.ping())).await;
        let paced = self.pace(&servers);
        let epoch = before.as_ref().map_or(0, |set| set.epoch);
        let set = Set { servers, alone, epoch };
        let now_silent = silent(&set);
        if was_silent.as_ref() == Some(&now_silent) && before.as_ref().is_some_and(|before| before.alone == set.alone) {
            return paced;
        }
        for (address, why) in &now_silent {
            self.metrics.probes.set_answers(address, why.is_none());
            if let Some(why) = why {
                tracing::warn!(address, error = why, "an API server did not answer");
            }
        }
        for (address, _) in was_silent.iter().flatten().filter(|(old, _)| !now_silent.iter().any(|(new, _)| new == old))
        {
            self.metrics.probes.forget_server(address);
        }
        let addresses: Vec<_> = now_silent.iter().map(|(address, _)| address.as_str()).collect();
        tracing::info!(?addresses, alone = set.alone, "probing API servers");
        self.set.send_replace(Some(Set { epoch: epoch + 1, ..set }));
        true
    }

    /// Reports which servers are affected. Returns whether that is new.
    fn pace(&self, servers: &[Arc<Server>]) -> bool {
        let affected: Vec<_> = servers.iter().filter_map(|server| server.affected()).collect();
        let new = self.pacing.set_affected(affected);
        if new && let Some(servers) = self.pacing.affected() {
            tracing::warn!(
                servers,
                "API servers of this version can exit while they compile a policy; upgrade to Kubernetes 1.34 or later"
            );
        }
        for server in servers {
            self.metrics.probes.set_can_exit(&server.address, server.affected().is_some());
        }
        new
    }

    async fn find(&self) -> Found {
        match &self.which {
            ApiServers::At(addresses) => Found::At(addresses.clone()),
            ApiServers::Discover => discover(&self.client).await,
        }
    }

    /// A client for each address. Existing clients are reused.
    fn clients(&self, before: Option<&Set>, addresses: &[Uri]) -> Result<Vec<Arc<Server>>, String> {
        let Some(config) = &self.config else {
            return Err("the controller has a client but no configuration for other addresses".to_owned());
        };
        let known: BTreeMap<_, _> =
            before.iter().flat_map(|set| &set.servers).map(|server| (server.address.as_str(), server)).collect();
        let mut servers = BTreeMap::new();
        for uri in addresses {
            let address = shown(uri);
            let server = if let Some(server) = known.get(address.as_str()) {
                Arc::clone(server)
            } else {
                let client = Client::try_from(config_at(config, uri))
                    .map_err(|error| format!("no client could be created for {address}: {error}"))?;
                Server::new(address.clone(), client)
            };
            servers.insert(address, server);
        }
        Ok(servers.into_values().collect())
    }

    /// Only the configured server.
    fn configured(&self, before: Option<&Set>) -> Vec<Arc<Server>> {
        let address = self.config.as_ref().map_or_else(
            || "the configured address".to_owned(),
            |config| format!("the configured address {}", shown(&config.cluster_url)),
        );
        let known = before.iter().flat_map(|set| &set.servers).find(|server| server.address == address);
        vec![known.map_or_else(|| Server::new(address, self.client.clone()), Arc::clone)]
    }
}

/// The configuration for another address. The certificate must be valid for the configured name, which each API server
/// behind the service has; it may not have its own address.
fn config_at(config: &Config, uri: &Uri) -> Config {
    let mut at = config.clone();
    let host = config.cluster_url.host().map(|host| host.trim_matches(['[', ']']).to_owned());
    at.tls_server_name = at.tls_server_name.or(host);
    at.cluster_url = uri.clone();
    at.connect_timeout = Some(ANSWER_TIMEOUT);
    // The caller retries itself.
    at.default_retry = false;
    at
}

/// The number in `minor` of an answer to `/version`. Some providers write `33+`.
fn minor(version: &[u8]) -> Option<u32> {
    let version: serde_json::Value = serde_json::from_slice(version).ok()?;
    let minor = version.get("minor")?.as_str()?;
    minor[..minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len())].parse().ok()
}

fn shown(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("https");
    format!("{scheme}://{}", uri.authority().map(http::uri::Authority::as_str).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_version_is_a_number_at_the_start() {
        for (version, number) in [
            (r#"{"major": "1", "minor": "33"}"#, Some(33)),
            (r#"{"major": "1", "minor": "33+", "gitVersion": "v1.33.1-eks-1"}"#, Some(33)),
            (r#"{"major": "1", "minor": "36", "emulationMinor": "33"}"#, Some(36)),
            (r#"{"minor": "+"}"#, None),
            (r#"{"minor": 33}"#, None),
            ("{}", None),
            ("Forbidden", None),
        ] {
            assert_eq!(minor(version.as_bytes()), number, "{version}");
        }
    }

    #[test]
    fn the_certificate_is_verified_for_the_configured_name() {
        let service = Config::new("https://[fd00::1]:443/".parse().unwrap());
        let one = config_at(&service, &"https://10.0.0.2:6443".parse().unwrap());
        assert_eq!(one.tls_server_name.as_deref(), Some("fd00::1"));
        assert_eq!(shown(&one.cluster_url), "https://10.0.0.2:6443");
        let mut named = service;
        named.tls_server_name = Some("kubernetes.default.svc".into());
        let one = config_at(&named, &"https://10.0.0.2:6443".parse().unwrap());
        assert_eq!(one.tls_server_name.as_deref(), Some("kubernetes.default.svc"));
    }
}

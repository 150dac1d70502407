//! Leader election: of several replicas one works, and the others follow the cluster to take over soon.
//!
//! [`crate::leader::fence`] keeps a former leader from writing.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{Api, Client, api::PostParams};
use palisade_api::names;
use palisade_runtime::Supervisor;
use tokio::time::Instant;

use crate::{
    api_request::{ApiError, call},
    leader::{
        fence::Leadership,
        lease::{Action, Observed, Timing, released},
    },
    metrics::Metrics,
};

/// How long a leader that ends may take to release the Lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// One replica's part in the election.
#[derive(Debug)]
pub struct Election {
    api: Api<Lease>,
    me: String,
    timing: Timing,
    leadership: Arc<Leadership>,
    metrics: Arc<Metrics>,
}

impl Election {
    /// A replica named `instance`. Replicas with the same name are still distinguished. `client` has no fence.
    pub fn new(
        client: Client,
        instance: Option<&str>,
        timing: Timing,
        leadership: Arc<Leadership>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let api = Api::namespaced(client, names::OPERATOR_NAMESPACE);
        let random = RandomState::new().build_hasher().finish();
        let me = format!("{}_{random:016x}", instance.unwrap_or(names::CONTROLLER));
        Self { api, me, timing, leadership, metrics }
    }

    /// Takes part in the election until the process stops. A leader that could not renew the Lease in time ends the
    /// process, which restarts as a standby, because its work in progress may be out of date.
    pub fn start(self: Arc<Self>, supervisor: &Supervisor) {
        let stop = supervisor.stop().clone();
        supervisor.spawn("leader election", async move {
            let _: Option<()> = stop.run_until_cancelled(self.take_part()).await;
        });
    }

    async fn take_part(&self) {
        self.metrics.leads(false);
        let (mut observed, mut leads, mut waits_for) = (Observed::default(), false, String::new());
        loop {
            match self.ask(&mut observed).await {
                Ok(None) => {
                    if !leads {
                        tracing::info!(identity = self.me, "became the leader");
                        self.metrics.leads(true);
                    }
                    leads = true;
                }
                Ok(Some(holder)) if leads => {
                    tracing::error!(identity = self.me, holder, "another replica is the leader; stopping");
                    break;
                }
                Ok(Some(holder)) => {
                    if waits_for != holder {
                        tracing::info!(identity = self.me, holder, "another replica is the leader; standing by");
                        waits_for = holder;
                    }
                }
                Err(error) => {
                    let help = if error.is_not_found() {
                        "; create it with kubectl apply -k manifests or the chart"
                    } else {
                        ""
                    };
                    tracing::warn!(identity = self.me, %error, "could not read or renew the Lease palisade-system/{}{help}", names::CONTROLLER);
                }
            }
            if leads && !self.leadership.leads() {
                tracing::error!(
                    identity = self.me,
                    "could not renew the Lease within {:?}; stopping",
                    self.timing.renew
                );
                break;
            }
            tokio::time::sleep(self.timing.retry).await;
        }
        self.metrics.leads(false);
    }

    /// Reads the Lease, and takes or renews it. Returns who leads, if it is another.
    async fn ask(&self, observed: &mut Observed) -> Result<Option<String>, ApiError> {
        // From before the request: it is answered later than the API server has taken it.
        let begun = Instant::now();
        let work = async {
            let lease = call(self.api.get(names::CONTROLLER)).await?;
            match observed.next(&lease, &self.me, &self.timing, Instant::now(), Timestamp::now()) {
                Action::Wait(holder) => Ok(Some(holder)),
                Action::Write(spec) => {
                    let lease = Lease { spec: Some(*spec), ..lease };
                    match call(self.api.replace(names::CONTROLLER, &PostParams::default(), &lease)).await {
                        Ok(_) => Ok(None),
                        // Another replica was faster. The next turn shows which.
                        Err(error) => Err(error),
                    }
                }
            }
        };
        let outcome = tokio::time::timeout(self.timing.renew, work).await;
        let outcome = outcome.unwrap_or(Err(ApiError::Timeout(self.timing.renew)));
        if matches!(outcome, Ok(None)) {
            self.leadership.holds_until(begun + self.timing.renew);
        }
        outcome
    }

    /// Lets the next replica lead at once. Call it when all work has ended.
    pub async fn release(&self) {
        if !self.leadership.leads() {
            return;
        }
        self.leadership.end();
        let work = async {
            let lease = call(self.api.get(names::CONTROLLER)).await?;
            let Some(spec) = released(&lease, &self.me, Timestamp::now()) else { return Ok(()) };
            let lease = Lease { spec: Some(spec), ..lease };
            call(self.api.replace(names::CONTROLLER, &PostParams::default(), &lease)).await.map(drop)
        };
        match tokio::time::timeout(RELEASE_TIMEOUT, work).await {
            Ok(Ok(())) => tracing::info!(identity = self.me, "released the Lease"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not release the Lease; the next leader waits until it expires");
            }
            Err(_) => tracing::warn!("could not release the Lease in time; the next leader waits until it expires"),
        }
    }
}

//! Leader election: of several replicas one works, and the others follow the cluster to take over soon.
//!
//! Two things keep a former leader from writing. The lanes begin nothing unless this replica leads. And each request that
//! changes something passes a fence in the client, which lets it through only until the time up to which the Lease
//! surely holds. The fence is for a process that was paused in the middle of its work: when it wakes up, that time is over.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt, ready};
use http::{Method, Request, Response};
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{Api, Client, api::PostParams, client::Body};
use palisade_api::names;
use palisade_process::Supervisor;
use tokio::time::Instant;
use tower::Service;

use crate::{
    call::{ApiError, call},
    lease::{Action, Observed, Timing, released},
    metrics::Metrics,
};

/// How long a leader that ends may take to release the Lease.
const RELEASE: Duration = Duration::from_secs(2);

/// Whether this replica leads.
#[derive(Debug)]
pub struct Leadership {
    begun: Instant,
    /// Until when it surely leads, in milliseconds since `begun`; `u64::MAX` without an election.
    until: AtomicU64,
}

impl Leadership {
    /// Of a replica that is the only one, or else has to be elected.
    pub fn new(elected: bool) -> Self {
        Self { begun: Instant::now(), until: AtomicU64::new(if elected { 0 } else { u64::MAX }) }
    }

    /// Whether it leads now.
    pub fn leads(&self) -> bool {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        now < self.until.load(Ordering::Acquire)
    }

    fn holds_until(&self, until: Instant) {
        let until = until.duration_since(self.begun).as_millis();
        self.until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Release);
    }
}

/// A client that changes something only while this replica leads. Dry runs change nothing.
pub fn fenced(client: Client, leadership: &Arc<Leadership>) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Fence { client, leadership: Arc::clone(leadership) }, namespace)
}

/// See [`fenced`].
#[derive(Clone)]
struct Fence {
    client: Client,
    leadership: Arc<Leadership>,
}

/// A request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("not sent: this replica does not lead, and only the leader changes anything")]
pub struct NotLeading;

fn changes(request: &Request<Body>) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let dry = request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "dryRun=All"));
    !reads && !dry
}

impl Service<Request<Body>> for Fence {
    type Response = Response<Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if changes(&request) && !self.leadership.leads() {
            return ready(Err(NotLeading.into())).boxed();
        }
        let client = self.client.clone();
        async move { Ok(client.send(request).await?) }.boxed()
    }
}

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
    /// A replica named `instance`: two with the same name are told apart all the same. `client` is without a fence.
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

    /// Takes part until the process stops. A leader that could not renew the Lease in time ends the process, which then
    /// begins anew as a replica that follows: what it has under way may be out of date.
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
                        tracing::info!(identity = self.me, "this replica leads");
                        self.metrics.leads(true);
                    }
                    leads = true;
                }
                Ok(Some(holder)) if leads => {
                    tracing::error!(identity = self.me, holder, "another replica leads; stopping");
                    break;
                }
                Ok(Some(holder)) => {
                    if waits_for != holder {
                        tracing::info!(identity = self.me, holder, "another replica leads; this one follows");
                        waits_for = holder;
                    }
                }
                Err(error) => {
                    let help =
                        if error.is_not_found() { "; kubectl apply -k manifests creates it, or the chart" } else { "" };
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
        // From here on nothing is written.
        self.leadership.holds_until(self.leadership.begun);
        let work = async {
            let lease = call(self.api.get(names::CONTROLLER)).await?;
            let Some(spec) = released(&lease, &self.me, Timestamp::now()) else { return Ok(()) };
            let lease = Lease { spec: Some(spec), ..lease };
            call(self.api.replace(names::CONTROLLER, &PostParams::default(), &lease)).await.map(drop)
        };
        match tokio::time::timeout(RELEASE, work).await {
            Ok(Ok(())) => tracing::info!(identity = self.me, "released the Lease"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not release the Lease; the next leader waits until it ends");
            }
            Err(_) => tracing::warn!("could not release the Lease in time; the next leader waits until it ends"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, uri: &str) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        (*request.method_mut(), *request.uri_mut()) = (method, uri.parse().expect("a URI"));
        request
    }

    #[test]
    fn only_what_changes_nothing_passes_the_fence_always() {
        for (method, uri, expected) in [
            (Method::GET, "/api/v1/namespaces?watch=true", false),
            (Method::POST, "/api/v1/namespaces/a/pods?fieldManager=x&dryRun=All", false),
            (Method::POST, "/api/v1/namespaces/a/pods", true),
            (Method::PATCH, "/a?dryRun=Allx", true),
            (Method::DELETE, "/a", true),
            (Method::PUT, "/a", true),
        ] {
            assert_eq!(changes(&request(method.clone(), uri)), expected, "{method} {uri}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_by_itself() {
        let leadership = Leadership::new(true);
        assert!(!leadership.leads());
        leadership.holds_until(Instant::now() + Duration::from_secs(5));
        assert!(leadership.leads());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!leadership.leads());
        assert!(Leadership::new(false).leads());
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_of_a_replica_that_does_not_lead_is_not_sent() {
        let (service, mut handle) = tower_test();
        let leadership = Arc::new(Leadership::new(true));
        let mut fence = Fence { client: Client::new(service, "default"), leadership: Arc::clone(&leadership) };
        let refused = fence.call(request(Method::PUT, "/a")).await;
        assert!(refused.is_err_and(|error| error.is::<NotLeading>()));
        assert!(handle.try_recv().is_err(), "it was sent");
        leadership.holds_until(Instant::now() + Duration::from_secs(5));
        let _sent = fence.call(request(Method::PUT, "/a")).await;
        assert_eq!(handle.try_recv().as_deref(), Ok("/a"));
    }

    /// A server that answers nothing, and the paths that it is asked for.
    fn tower_test() -> (
        impl Service<Request<Body>, Response = Response<Body>, Error = std::io::Error, Future: Send>
        + Clone
        + Send
        + 'static,
        tokio::sync::mpsc::UnboundedReceiver<String>,
    ) {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let service = tower::service_fn(move |request: Request<Body>| {
            let _ = sender.send(request.uri().path().to_owned());
            ready(Err(std::io::Error::other("no answer")))
        });
        (service, receiver)
    }
}

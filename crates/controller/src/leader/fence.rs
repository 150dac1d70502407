//! Fences that prevent writes by a former leader.
//!
//! The lanes start work only while this replica is the leader. Their requests pass two fences, for a process that was
//! paused during its work: when it resumes, the time in which it certainly holds the Lease is over.
//!
//! 1. A request with a change enters the client only before the end of that time.
//! 2. A connection sends bytes only before the end of that time, because a request may wait in it after it has entered.
//!    All connections of a former leader are then closed, including those for reads, and its process ends.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as TaskContext, Poll},
};

use futures::future::{BoxFuture, FutureExt, poll_fn, ready};
use http::{Method, Request, Response};
use hyper::rt::Executor;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use palisade_runtime::lists::Pages;
use tokio::time::Instant;
use tower::Service;

/// The leadership of this replica.
#[derive(Debug)]
pub struct Leadership {
    begun: Instant,
    /// End of the time in which it is certainly the leader, in milliseconds since `begun`. 0 before it leads;
    /// `u64::MAX` without an election.
    until: AtomicU64,
}

impl Leadership {
    /// The leadership of a single replica, or of a replica that must be elected.
    pub fn new(elected: bool) -> Self {
        Self { begun: Instant::now(), until: AtomicU64::new(if elected { 0 } else { u64::MAX }) }
    }

    /// True if it leads now.
    pub fn leads(&self) -> bool {
        self.now() < self.until.load(Ordering::Acquire)
    }

    /// True if it led, and leads no longer.
    pub fn lapsed(&self) -> bool {
        let until = self.until.load(Ordering::Acquire);
        until > 0 && self.now() >= until
    }

    /// It leads until then.
    pub fn holds_until(&self, until: Instant) {
        let until = u64::try_from(until.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX);
        self.until.store(until.max(1), Ordering::Release);
    }

    /// It leads no longer: from here on nothing is written.
    pub fn end(&self) {
        self.holds_until(self.begun);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// A client that makes changes only while this replica is the leader, and that pages its lists to limit memory. Dry
/// runs are not changes. With a configuration, it has separate connections that end with the leadership; otherwise it
/// uses those of `client`.
///
/// # Errors
///
/// If no client can be created from the configuration.
pub fn fenced(client: Client, config: Option<&Config>, leadership: &Arc<Leadership>) -> kube::Result<Client> {
    let fence = Fence::new(client, config, leadership)?;
    let namespace = fence.client.default_namespace().to_owned();
    Ok(Client::new(fence, namespace))
}

/// Lets requests enter the client.
#[derive(Clone)]
struct Fence {
    client: Client,
    leadership: Arc<Leadership>,
    pages: Arc<Pages>,
}

impl Fence {
    fn new(client: Client, config: Option<&Config>, leadership: &Arc<Leadership>) -> kube::Result<Self> {
        let leadership = Arc::clone(leadership);
        let client = match config {
            Some(config) => ClientBuilder::try_from((config.clone(), Connections(Arc::clone(&leadership))))?.build(),
            None => client,
        };
        Ok(Self { client, leadership, pages: Arc::default() })
    }
}

/// A request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("not sent: this replica is not the leader, and only the leader makes changes")]
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
        let (client, pages) = (self.client.clone(), Arc::clone(&self.pages));
        async move { pages.send(&client, request).await }.boxed()
    }
}

/// Runs the client's connections: whatever one sends, it sends while it is polled here.
#[derive(Clone)]
struct Connections(Arc<Leadership>);

impl Executor<Pin<Box<dyn Future<Output = ()> + Send>>> for Connections {
    fn execute(&self, mut connection: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let leadership = Arc::clone(&self.0);
        tokio::spawn(poll_fn(
            move |cx| {
                if leadership.lapsed() { Poll::Ready(()) } else { connection.as_mut().poll(cx) }
            },
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        sync::mpsc::{UnboundedReceiver, unbounded_channel},
    };

    use super::*;

    fn request(method: Method, uri: &str) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        (*request.method_mut(), *request.uri_mut()) = (method, uri.parse().expect("a URI"));
        request
    }

    #[test]
    fn only_reads_and_dry_runs_always_pass_the_fence() {
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
    async fn leadership_expires() {
        let leadership = Leadership::new(true);
        assert!(!leadership.leads() && !leadership.lapsed());
        leadership.holds_until(Instant::now() + Duration::from_secs(5));
        assert!(leadership.leads() && !leadership.lapsed());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!leadership.leads() && leadership.lapsed());
        let alone = Leadership::new(false);
        assert!(alone.leads() && !alone.lapsed());
        let released = Leadership::new(true);
        released.holds_until(Instant::now() + Duration::from_secs(5));
        released.end();
        assert!(!released.leads() && released.lapsed());
    }

    #[tokio::test]
    async fn a_write_of_a_replica_that_does_not_lead_is_not_sent() {
        let (server, mut asked) = server().await;
        let leadership = Arc::new(Leadership::new(true));
        let client = fenced(plain(&server), Some(&server), &leadership).expect("a client");
        let refused = client.send(request(Method::PUT, "/a")).await;
        assert!(matches!(refused, Err(kube::Error::Service(error)) if error.is::<NotLeading>()));
        client.send(request(Method::GET, "/b")).await.expect("who follows reads");
        assert_eq!(asked.recv().await.as_deref(), Some("GET /b"));
        leadership.holds_until(Instant::now() + Duration::from_hours(1));
        client.send(request(Method::PUT, "/c")).await.expect("who leads writes");
        assert_eq!(asked.recv().await.as_deref(), Some("PUT /c"));
    }

    /// As of a process that is paused between the two, and wakes up when another one leads.
    #[tokio::test]
    async fn a_write_that_entered_the_client_before_the_leadership_ended_is_not_sent() {
        let (server, mut asked) = server().await;
        let leadership = Arc::new(Leadership::new(true));
        leadership.holds_until(Instant::now() + Duration::from_hours(1));
        let mut fence = Fence::new(plain(&server), Some(&server), &leadership).expect("a client");
        fence.call(request(Method::GET, "/a")).await.expect("an answer");
        assert_eq!(asked.recv().await.as_deref(), Some("GET /a"));

        // On this runtime of one thread no connection is polled before the test waits for something.
        let write = fence.call(request(Method::PUT, "/b"));
        leadership.end();
        write.await.expect_err("no answer");
        plain(&server).send(request(Method::GET, "/c")).await.expect("an answer");
        assert_eq!(asked.recv().await.as_deref(), Some("GET /c"), "it was sent");
    }

    fn plain(server: &Config) -> Client {
        Client::try_from(server.clone()).expect("a client")
    }

    /// A server of HTTP/1.1, and the method and path of each request that reaches it.
    async fn server() -> (Config, UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, receiver) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    let (mut text, mut buffer) = (String::new(), [0; 1024]);
                    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
                        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
                            let line = head.lines().next().unwrap_or_default();
                            let _ = sender.send(line.trim_end_matches(" HTTP/1.1").to_owned());
                            text = rest.to_owned();
                            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
                        }
                    }
                });
            }
        });
        (Config::new(format!("http://{address}").parse().expect("a URI")), receiver)
    }
}

//! A port that nobody can hold up: HTTP, with or without TLS, whose connections and bodies are bounded.
//!
//! | what a client may do | bound | what happens then |
//! |---|---|---|
//! | connect, and never finish the TLS handshake | [`Limits::handshake`] | closed |
//! | begin a request and never finish its head | [`Limits::head`] | closed |
//! | begin a body and never finish it | [`Limits::body`] | 408 |
//! | never read the answer | [`Limits::request`] | closed |
//! | ask nothing | [`Limits::idle`] | closed |
//! | open many connections | [`Limits::connections`] | the one that is idle longest is closed ([`seats`]) |
//! | send many bodies | [`Limits::body_bytes`] | the one that is unfinished longest is refused with 503 ([`budget`]) |
//!
//! Only while every connection has a request under way do new ones wait, in the kernel's queue; each request ends
//! within [`Limits::request`].

mod budget;
mod connection;
mod metrics;
mod seats;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, http::header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{budget::Budget, seats::Seats};
pub use self::{budget::Share, metrics::FrontMetrics};

/// How long requests that are under way may take after the server was told to stop.
pub const GRACE: Duration = Duration::from_secs(10);

/// What clients may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there may be.
    pub connections: usize,
    /// How long a TLS session may take to begin.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// From the end of the head to the end of the body.
    pub body: Duration,
    /// From the end of the head until the client has read the answer.
    pub request: Duration,
    /// How long a connection without a request is kept. API servers close theirs after 90 s and reuse them until
    /// then: whoever closes first must not be the one to whom the next request goes. They also connect ahead of
    /// need, so that a connection that was never used must not be closed earlier than others.
    pub idle: Duration,
    /// How many bytes of bodies there may be at the same time, on all connections.
    pub body_bytes: usize,
    /// How many requests there may be at the same time on one connection with HTTP/2.
    pub streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(5),
            body: Duration::from_secs(5),
            request: Duration::from_secs(20),
            idle: Duration::from_mins(2),
            body_bytes: 32 << 20,
            streams: 100,
        }
    }
}

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It has more bytes than any request may have.
    #[error("the body has more than {most} bytes")]
    TooLarge {
        /// How many it may have.
        most: usize,
    },
    /// It did not come in time.
    #[error("the body did not come within {bound:?}")]
    Slow {
        /// What is in time.
        bound: Duration,
    },
    /// All bodies together have too many bytes, and there was no other that had been unfinished for longer.
    #[error("too many bytes of other requests are under way")]
    NoMemory,
    /// The client closed the connection, or reset the stream.
    #[error("the client closed early")]
    ClosedEarly,
}

/// One port. Clones are the same port.
#[derive(Clone, Debug)]
pub struct Front {
    limits: Limits,
    seats: Arc<Seats>,
    bodies: Arc<Budget>,
    metrics: FrontMetrics,
    port: &'static str,
    listens: Arc<AtomicBool>,
}

impl Front {
    /// A port, by the name `port` in the metrics.
    pub fn new(port: &'static str, limits: Limits, metrics: &FrontMetrics) -> Self {
        let gauges = metrics.of(port);
        Self {
            limits,
            seats: Arc::new(Seats::new(limits.connections, gauges.connections)),
            bodies: Arc::new(Budget::new(limits.body_bytes, gauges.body_bytes)),
            metrics: metrics.clone(),
            port,
            listens: Arc::default(),
        }
    }

    /// Whether requests can be taken.
    ///
    /// # Errors
    /// What is wrong, in a word.
    pub fn ready(&self) -> Result<(), &'static str> {
        if !self.listens.load(Ordering::Relaxed) {
            Err("not listening")
        } else if self.seats.are_all_busy() {
            Err("all connections are busy")
        } else {
            Ok(())
        }
    }

    /// Serves `router` until `stop` is cancelled, and then for as long as requests are under way, at most [`GRACE`].
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Option<ServerConfig>,
        router: Router,
        stop: CancellationToken,
    ) {
        let acceptor = tls.map(|tls| TlsAcceptor::from(Arc::new(tls)));
        let connections = TaskTracker::new();
        self.listens.store(true, Ordering::Relaxed);
        while let Some(stream) = stop.run_until_cancelled(accept(&listener)).await {
            let Some(seat) = stop.run_until_cancelled(self.seats.take(&stop)).await else { break };
            let (acceptor, router, front) = (acceptor.clone(), router.clone(), self.clone());
            connections.spawn(async move {
                let ending = connection::run(stream, acceptor, router, &seat, &front.limits).await;
                front.metrics.closed(front.port, ending);
            });
        }
        self.listens.store(false, Ordering::Relaxed);
        drop(listener);
        connections.close();
        if timeout(GRACE, connections.wait()).await.is_err() {
            tracing::warn!(port = self.port, "some requests did not end");
        }
    }

    /// Reads a body of at most `most` bytes. The bytes count as memory of bodies until the [`Share`] is dropped.
    ///
    /// # Errors
    /// Why it was not read.
    pub async fn body(&self, request: Request, most: usize) -> Result<(Vec<u8>, Share), BodyError> {
        let said = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let read = async {
            if said.is_some_and(|said: usize| said > most) {
                return Err(BodyError::TooLarge { most });
            }
            let mut share = self.bodies.share();
            let given_up = share.given_up();
            let bytes = tokio::select! {
                () = given_up.cancelled() => return Err(BodyError::NoMemory),
                bytes = collect(request.into_body(), said.unwrap_or_default(), most, &mut share) => bytes?,
            };
            share.finish();
            Ok((bytes, share))
        };
        let bound = self.limits.body;
        let read = timeout(bound, read).await.unwrap_or(Err(BodyError::Slow { bound }));
        if let Err(error) = &read {
            self.metrics.refused(self.port, *error);
        }
        read
    }
}

/// Memory is paid for as bytes come: what a client says of the length costs it nothing.
async fn collect(mut body: Body, said: usize, most: usize, share: &mut Share) -> Result<Vec<u8>, BodyError> {
    // What is not written to is no memory yet.
    let mut bytes = Vec::with_capacity(said.min(most));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::ClosedEarly)?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err(BodyError::TooLarge { most });
        }
        share.grow(data.len()).await.map_err(|_| BodyError::NoMemory)?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // An answer is one small packet that nothing follows.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => refused(error).await,
        }
    }
}

async fn refused(error: io::Error) {
    // No more files, for example: that passes when connections end.
    tracing::warn!(%error, "a connection could not be accepted");
    sleep(Duration::from_millis(100)).await;
}

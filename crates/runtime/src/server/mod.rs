//! An HTTP server that no client can block: with or without TLS; connections and bodies are bounded.
//!
//! | a client may | bound | then the server |
//! |---|---|---|
//! | never finish the TLS handshake | [`Limits::handshake`] | closes the connection |
//! | never finish the head of a request | [`Limits::head`] | closes the connection |
//! | never finish a body | [`Limits::body`] | answers 408 |
//! | never read the response | [`Limits::request`] | closes the connection |
//! | send no request | [`Limits::idle`] | closes the connection |
//! | open many connections | [`Limits::connections`] | closes the one that has been idle longest ([`slots`]) |
//! | send many bodies | [`Limits::body_bytes`] | refuses the one that has been unfinished longest with 503 ([`budget`]) |
//!
//! Only while every connection has a request in progress do new ones wait, in the kernel's queue; each request ends
//! within [`Limits::request`].

mod budget;
mod connection;
mod metrics;
mod slots;

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

use self::{budget::Budget, slots::Slots};
pub use self::{budget::Share, metrics::HttpMetrics};

/// How long requests in progress may take after the server was asked to stop.
pub const GRACE: Duration = Duration::from_secs(10);

/// Limits for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections.
    pub connections: usize,
    /// How long the TLS handshake may take.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// From the end of the head to the end of the body.
    pub body: Duration,
    /// From the end of the head until the client has read the answer.
    pub request: Duration,
    /// How long a connection without a request stays open. API servers close theirs after 90 s and reuse them until
    /// then: the server must not close a connection just before the next request arrives. They also connect ahead of
    /// need, so the server must not close an unused connection earlier than others.
    pub idle: Duration,
    /// The most bytes of bodies at the same time, on all connections.
    pub body_bytes: usize,
    /// The most requests at the same time on one HTTP/2 connection.
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
    /// It was not complete in time.
    #[error("the body was not complete within {bound:?}")]
    Slow {
        /// The time for it.
        bound: Duration,
    },
    /// All bodies together have too many bytes, and no other body has been unfinished for longer.
    #[error("too many bytes of other requests are in progress")]
    NoMemory,
    /// The client closed the connection, or reset the stream.
    #[error("the client closed the connection early")]
    ClosedEarly,
}

/// One port. Clones are the same port.
#[derive(Clone, Debug)]
pub struct HttpServer {
    limits: Limits,
    slots: Arc<Slots>,
    bodies: Arc<Budget>,
    metrics: HttpMetrics,
    port: &'static str,
    listens: Arc<AtomicBool>,
}

impl HttpServer {
    /// A port, by the name `port` in the metrics.
    pub fn new(port: &'static str, limits: Limits, metrics: &HttpMetrics) -> Self {
        let gauges = metrics.of(port);
        Self {
            limits,
            slots: Arc::new(Slots::new(limits.connections, gauges.connections)),
            bodies: Arc::new(Budget::new(limits.body_bytes, gauges.body_bytes)),
            metrics: metrics.clone(),
            port,
            listens: Arc::default(),
        }
    }

    /// Checks that it can serve requests.
    ///
    /// # Errors
    ///
    /// The error, in a word.
    pub fn ready(&self) -> Result<(), &'static str> {
        if !self.listens.load(Ordering::Relaxed) {
            Err("not listening")
        } else if self.slots.are_all_busy() {
            Err("all connections are busy")
        } else {
            Ok(())
        }
    }

    /// Serves `router` until `stop` is cancelled, and then while requests are in progress, at most [`GRACE`].
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
            let Some(slot) = stop.run_until_cancelled(self.slots.take(&stop)).await else { break };
            let (acceptor, router, server) = (acceptor.clone(), router.clone(), self.clone());
            connections.spawn(async move {
                let ending = connection::run(stream, acceptor, router, &slot, &server.limits).await;
                server.metrics.closed(server.port, ending);
            });
        }
        self.listens.store(false, Ordering::Relaxed);
        drop(listener);
        connections.close();
        if timeout(GRACE, connections.wait()).await.is_err() {
            tracing::warn!(port = self.port, "some requests did not finish in time");
        }
    }

    /// Reads a body of at most `most` bytes. The bytes count as memory of bodies until the [`Share`] is dropped.
    ///
    /// # Errors
    /// Why it was not read.
    pub async fn body(&self, request: Request, most: usize) -> Result<(Vec<u8>, Share), BodyError> {
        let announced = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let read = async {
            if announced.is_some_and(|length: usize| length > most) {
                return Err(BodyError::TooLarge { most });
            }
            let mut share = self.bodies.share();
            let evicted = share.evicted();
            let bytes = tokio::select! {
                () = evicted.cancelled() => return Err(BodyError::NoMemory),
                bytes = collect(request.into_body(), announced.unwrap_or_default(), most, &mut share) => bytes?,
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

/// Memory is reserved as bytes arrive: the length that a client announces reserves nothing.
async fn collect(mut body: Body, announced: usize, most: usize, share: &mut Share) -> Result<Vec<u8>, BodyError> {
    // Untouched pages take no memory.
    let mut bytes = Vec::with_capacity(announced.min(most));
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
                // A response is one small packet that nothing follows.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => accept_failed(error).await,
        }
    }
}

async fn accept_failed(error: io::Error) {
    // Perhaps there are no file descriptors left. Ending connections free some.
    tracing::warn!(%error, "could not accept a connection");
    sleep(Duration::from_millis(100)).await;
}

//! No client that reaches the ports of the webhook can block it.

use std::{sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

use crate::common::{LONG, Webhook, answer, eventually, head, request, review};

/// How many connections the webhook may have in these tests.
const CONNECTIONS: usize = 16;
/// How many try to hold it up. To see the webhook of former times fail: 1100.
const ATTACKERS: usize = 100;

const HALF_HEAD: &[u8] = b"POST /mutate/a HTTP/1.1\r\nHost: a\r\n";
const HALF_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

async fn webhook() -> Webhook {
    Webhook::start(|options| options.max_connections = CONNECTIONS).await
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// What keeps a connection and never asks anything.
const KINDS: [(&str, Option<&str>, &[u8]); 8] = [
    ("no byte", None, b""),
    ("half of a hello", None, b"\x16\x03\x01"),
    ("silence after the handshake", Some("http/1.1"), b""),
    ("silence after the handshake, HTTP/2", Some("h2"), b""),
    ("one byte", Some("http/1.1"), b"P"),
    ("half of the preface", Some("h2"), HALF_PREFACE),
    ("only the preface", Some("h2"), PREFACE),
    ("half of the head", Some("http/1.1"), HALF_HEAD),
];

async fn attack(webhook: &Webhook, (_, protocol, bytes): (&str, Option<&str>, &[u8])) -> Option<Box<dyn Stream>> {
    let mut stream: Box<dyn Stream> = match protocol {
        None => Box::new(webhook.connect().await),
        // It may be closed meanwhile.
        Some(protocol) => Box::new(timeout(LONG, webhook.tls(protocol)).await.ok()?.ok()?),
    };
    stream.write_all(bytes).await.ok()?;
    stream.flush().await.ok()?;
    Some(stream)
}

/// Waits until the server has closed it.
async fn closed(stream: &mut Box<dyn Stream>) -> bool {
    let mut sink = vec![];
    timeout(LONG, stream.read_to_end(&mut sink)).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_do_not_block_clients() {
    let webhook = webhook().await;
    // An API server that has a connection keeps it.
    let mut known = webhook.tls("http/1.1").await.unwrap();
    known.write_all(&request(&review(), "keep-alive")).await.unwrap();
    answer(&mut known).await.unwrap();
    let mut held = vec![];
    for kind in KINDS.iter().cycle().take(ATTACKERS) {
        held.extend(attack(&webhook, *kind).await);
    }
    assert!(webhook.is_answered().await, "a proper request is not answered");
    known.write_all(&request(&review(), "keep-alive")).await.unwrap();
    let again = timeout(LONG, answer(&mut known)).await.unwrap().unwrap();
    assert!(again.starts_with("HTTP/1.1 200"), "{again}");
    let connections = usize::try_from(webhook.connections("webhook").await).unwrap();
    assert!(connections <= CONNECTIONS + CONNECTIONS / 4, "{connections} connections");
    let displaced =
        webhook.metric("palisade_http_connections_closed_total{port=\"webhook\",reason=\"displaced\"}").await;
    assert!(displaced > 0, "none was displaced");
    drop(held);
    webhook.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_connections_time_out_even_without_load() {
    let webhook = webhook().await;
    let mut held = JoinSet::new();
    // Silence after a handshake is normal: API servers connect ahead of need.
    for kind in KINDS.iter().filter(|(name, ..)| !name.starts_with("silence after the handshake,")) {
        if ["silence after the handshake", "only the preface"].contains(&kind.0) {
            continue;
        }
        let mut stream = attack(&webhook, *kind).await.expect(kind.0);
        held.spawn(async move { (kind.0, closed(&mut stream).await) });
    }
    let mut body = webhook.tls("http/1.1").await.unwrap();
    body.write_all(&head(100, "keep-alive")).await.unwrap();
    body.write_all(b"{").await.unwrap();
    let late = timeout(LONG, answer(&mut body)).await.unwrap().unwrap();
    assert!(late.starts_with("HTTP/1.1 408"), "{late}");
    while let Some(found) = held.join_next().await {
        let (kind, closed) = found.unwrap();
        assert!(closed, "{kind}: still open");
    }
    webhook.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhook_is_unready_while_all_connections_are_busy() {
    let webhook = webhook().await;
    let webhook = Arc::new(webhook);
    let mut attackers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let webhook = Arc::clone(&webhook);
        attackers.spawn(async move {
            // Again and again, since none is busy for longer than the time of a body.
            loop {
                if let Ok(mut stream) = webhook.tls("http/1.1").await
                    && stream.write_all(&head(100, "keep-alive")).await.is_ok()
                {
                    let _ = answer(&mut stream).await;
                }
            }
        });
    }
    eventually("it is not ready", async || {
        webhook.get("/readyz").await.is_ok_and(|answer| answer.contains("all connections are busy"))
    })
    .await;
    assert!(webhook.is_answered().await, "a proper request is not answered");
    attackers.shutdown().await;
    eventually("it is ready", async || webhook.get("/readyz").await.is_ok_and(|answer| answer.ends_with("ok\n"))).await;
    Arc::into_inner(webhook).unwrap().running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_requests_do_not_block_the_health_port() {
    let webhook = webhook().await;
    let mut held = vec![];
    for _ in 0..400 {
        let mut stream = TcpStream::connect(webhook.running.health_addr).await.unwrap();
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n").await;
        held.push(stream);
    }
    let ready = webhook.get("/readyz").await.unwrap();
    assert!(ready.ends_with("ok\n"), "{ready}");
    let connections = webhook.connections("health").await;
    assert!(connections <= 64 + 16, "{connections} connections");
    // Seen from outside: all but those were closed.
    let mut closed = 0;
    for stream in &mut held {
        let mut byte = [0];
        closed += usize::from(timeout(Duration::from_millis(1), stream.read(&mut byte)).await.is_ok());
    }
    assert!(closed >= 400 - 80, "{closed} were closed");
    drop(held);
    webhook.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_of_one_connection_are_answered() {
    let webhook = webhook().await;
    let stream = TokioIo::new(webhook.tls("h2").await.unwrap());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut asked = JoinSet::new();
    for _ in 0..300 {
        let mut sender = sender.clone();
        asked.spawn(async move {
            let request = http::Request::post("https://localhost/mutate/a").body(Full::new(Bytes::from(review())));
            let answer = sender.send_request(request.unwrap()).await.unwrap();
            let status = answer.status();
            (status, answer.into_body().collect().await.unwrap().to_bytes())
        });
    }
    while let Some(answer) = asked.join_next().await {
        let (status, body) = answer.unwrap();
        assert_eq!(status, 200, "{body:?}");
    }
    drop(sender);
    connection.await.unwrap().unwrap();
    webhook.running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_flight_are_answered_on_shutdown() {
    let webhook = webhook().await;
    let (mut stream, mut silent) = (webhook.tls("http/1.1").await.unwrap(), webhook.tls("http/1.1").await.unwrap());
    let review = review();
    stream.write_all(&head(review.len(), "keep-alive")).await.unwrap();
    stream.write_all(&review.as_bytes()[..9]).await.unwrap();
    // The head is read.
    eventually("the request has begun", async || {
        webhook.metric("palisade_http_bodies_bytes{port=\"webhook\"}").await > 0
    })
    .await;
    let (address, join) = (webhook.running.addr, webhook.running.join);
    webhook.running.shutdown.cancel();
    eventually("nobody listens", async || TcpStream::connect(address).await.is_err()).await;
    stream.write_all(&review.as_bytes()[9..]).await.unwrap();
    let answered = timeout(LONG, answer(&mut stream)).await.unwrap().unwrap();
    assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    assert!(answered.contains("connection: close"), "{answered}");
    let mut end = vec![];
    timeout(LONG, silent.read_to_end(&mut end)).await.unwrap().ok();
    timeout(LONG, join).await.unwrap().unwrap().unwrap();
}

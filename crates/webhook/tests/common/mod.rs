//! A webhook that runs, real sockets to it, and as much of an API server as it needs to become ready.

#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests have a clock and files, and may panic")]

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use palisade_webhook::{Certificates, Options, Running, start};
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};
use tokio_util::sync::CancellationToken;

/// What takes a moment may take so long on a machine that has other things to do.
pub const LONG: Duration = Duration::from_mins(1);

/// A webhook and what it has shown to clients.
pub struct Webhook {
    pub running: Running,
    pub authority: String,
    _files: TempDir,
}

impl Webhook {
    /// Starts one, and waits until it is ready.
    pub async fn start(change: impl FnOnce(&mut Options)) -> Self {
        let webhook = Self::start_with(json!([]), change).await;
        eventually("ready", async || webhook.get("/readyz").await.is_ok_and(|answer| answer.ends_with("ok\n"))).await;
        webhook
    }

    /// Starts one in a cluster that has these `ToolSecurityParams`.
    pub async fn start_with(params: Json, change: impl FnOnce(&mut Options)) -> Self {
        let files = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let authority = made.cert.pem();
        std::fs::write(files.path().join("tls.crt"), &authority).unwrap();
        std::fs::write(files.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut options = Options {
            listen: any,
            listen_health: any,
            certificates: Certificates::Files(files.path().to_owned()),
            drain: Duration::ZERO,
            ..Options::default()
        };
        change(&mut options);
        let running = start(api_server(params), options, CancellationToken::new()).await.unwrap();
        Self { running, authority, _files: files }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.running.addr).await.unwrap()
    }

    /// A TLS connection, without a certificate of the client.
    pub async fn tls(&self, protocol: &str) -> io::Result<TlsStream<TcpStream>> {
        self.tls_as(protocol, None).await
    }

    /// A TLS connection of a client with a certificate and key, in PEM.
    pub async fn tls_as(&self, protocol: &str, client: Option<(&str, &str)>) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(self.running.addr).await?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// Sends a proper review on a connection of its own. Returns whether it was answered.
    pub async fn is_answered(&self) -> bool {
        let ask = async {
            let mut stream = self.tls("http/1.1").await?;
            stream.write_all(&request(&review(), "close")).await?;
            answer(&mut stream).await
        };
        match timeout(LONG, ask).await {
            Ok(Ok(answer)) => answer.starts_with("HTTP/1.1 200") && answer.contains("\"allowed\":true"),
            _ => false,
        }
    }

    /// The answer of the health server.
    pub async fn get(&self, path: &str) -> io::Result<String> {
        let ask = async {
            let mut stream = TcpStream::connect(self.running.health_addr).await?;
            stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok(answer)
        };
        timeout(LONG, ask).await?
    }

    /// The value of a metric by its name with labels.
    pub async fn metric(&self, name: &str) -> u64 {
        let metrics = self.get("/metrics").await.unwrap();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_default()
    }

    pub async fn connections(&self, port: &str) -> u64 {
        let connections = self.metric(&format!("palisade_http_connections{{port=\"{port}\"}}")).await;
        assert!(connections > 0 || port != "health", "who asks has one");
        connections
    }
}

/// Waits until something holds.
pub async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < LONG, "{what}: not within {LONG:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// A pod that is created.
pub fn review() -> String {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "tool"},
        "spec": {"containers": [{"name": "a", "image": "a.example/a"}]},
    });
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "tool", "object": pod,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
        },
    });
    review.to_string()
}

/// A request as API servers send it.
pub fn request(body: &str, connection: &str) -> Vec<u8> {
    let mut request = head(body.len(), connection);
    request.extend(body.as_bytes());
    request
}

pub fn head(length: usize, connection: &str) -> Vec<u8> {
    format!(
        "POST /mutate/a?timeout=3s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: {connection}\r\n\
         Content-Length: {length}\r\n\r\n"
    )
    .into_bytes()
}

/// One whole answer.
pub async fn answer(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    let (mut read, mut chunk) = (vec![], [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).await?;
        read.extend(&chunk[..count]);
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if length.is_some_and(|length: usize| body.len() >= length) {
                return Ok(text.into_owned());
            }
        }
        if count == 0 {
            return Err(io::Error::other(format!("closed after {text:?}")));
        }
    }
}

fn list(items: &Json) -> Json {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})
}

/// An API server without any profile, whose objects can be read and written.
fn api_server(params: Json) -> Client {
    let objects: Arc<Mutex<BTreeMap<String, Json>>> = Arc::default();
    let serve = move |request: Request<Body>| {
        let (objects, params) = (Arc::clone(&objects), params.clone());
        async move {
            let path = request.uri().path().to_owned();
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                std::future::pending::<()>().await;
            }
            let answer = if request.method() == Method::PUT {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let object: Json = serde_json::from_slice(&body).unwrap();
                objects.lock().unwrap().insert(path, object.clone());
                object
            } else {
                let last = path.rsplit('/').next().unwrap_or_default();
                match last {
                    "toolsecurityparams" => list(&params),
                    "toolsecurityprofiles" | "controllerrevisions" => list(&json!([])),
                    name => {
                        let empty = json!({"metadata": {"name": name, "resourceVersion": "1"}});
                        objects.lock().unwrap().get(&path).cloned().unwrap_or(empty)
                    }
                }
            };
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            Ok::<_, Infallible>(Response::builder().header("content-type", "application/json").body(body).unwrap())
        }
    };
    Client::new(tower::service_fn(serve), "palisade-system")
}

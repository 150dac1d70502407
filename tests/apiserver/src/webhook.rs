//! The webhook as a process of its own, and what stands before it in a cluster.

use std::{
    error::Error,
    net::SocketAddr,
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use clap::Parser;
use kube::{Client, Config};
use palisade_controlplane::{Feature, free_address};
use palisade_runtime::LogOptions;
use palisade_webhook::Options;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{Cluster, eventually};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The first argument with which a test binary runs the webhook instead of its tests; also its service account.
pub const WEBHOOK: &str = "palisade-webhook";

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Here nobody reads logs.
    #[command(flatten)]
    _log: LogOptions,
}

/// Runs the webhook until a signal ends it, with the arguments of this process after the first.
pub async fn run_webhook() -> ExitCode {
    let run = async {
        let options = Arguments::parse_from(std::env::args().skip(1)).options;
        let client = Client::try_from(Config::infer().await?)?;
        let (shutdown, mut terminate) = (CancellationToken::new(), signal(SignalKind::terminate())?);
        let running = palisade_webhook::start(client, options, shutdown.clone()).await?;
        terminate.recv().await;
        running.stop().await?;
        Result::Ok(())
    };
    match run.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the webhook: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A webhook process. Dropping it kills it.
pub struct Webhook {
    child: Child,
    /// The address of `/mutate`.
    pub address: SocketAddr,
    /// The address of `/readyz` and `/metrics`.
    pub health: SocketAddr,
    _kubeconfig: tempfile::TempPath,
}

impl Webhook {
    /// Starts one that the API server reaches at `url`, or else directly, with the rights that the manifests give it.
    pub async fn start(cluster: &Cluster, url: Option<&str>, arguments: &[&str]) -> Result<Self> {
        let address = free_address()?;
        Self::start_at(cluster, address, url, arguments).await
    }

    /// [`Self::start`], if the API server has no MutatingAdmissionPolicy.
    pub async fn start_if_needed(cluster: &Cluster) -> Result<Option<Self>> {
        if cluster.has(&Feature::NATIVE_MUTATION).await? {
            return Ok(None);
        }
        Self::start(cluster, None, &[]).await.map(Some)
    }

    /// [`Self::start`] at an address.
    pub async fn start_at(
        cluster: &Cluster,
        address: SocketAddr,
        url: Option<&str>,
        arguments: &[&str],
    ) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, cluster.kubeconfig_of(WEBHOOK)?.as_bytes())?;
        let (kubeconfig, health) = (file.into_temp_path(), free_address()?);
        let child = Command::new(std::env::current_exe()?)
            .arg(WEBHOOK)
            .args([format!("--listen={address}"), format!("--listen-health={health}"), "--interval=500ms".to_owned()])
            .arg(format!("--url={}", url.map_or_else(|| format!("https://{address}"), str::to_owned)))
            .args(arguments)
            .env("KUBECONFIG", &kubeconfig)
            .stdout(Stdio::null())
            .spawn()?;
        let webhook = Self { child, address, health, _kubeconfig: kubeconfig };
        eventually("the webhook ready", || async {
            if webhook.is_ready().await { Ok(()) } else { Err("not ready".to_owned()) }
        })
        .await?;
        Ok(webhook)
    }

    pub async fn is_ready(&self) -> bool {
        is_ready(self.health).await
    }

    /// What it says at an HTTP path of its health server.
    pub async fn get(&self, path: &str) -> Result<String> {
        get(self.health, path).await
    }

    /// The value of a metric without labels, or with these.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        value(&self.get("/metrics").await?, |line| line.starts_with(name)).ok_or(format!("no {name}").into())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).ok_or("no process")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Ends it as a kubelet does, and waits until it has ended.
    pub async fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        eventually("the webhook ended", || {
            let ended = self.child.try_wait();
            async move {
                match ended {
                    Ok(Some(status)) if status.success() => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            }
        })
        .await?;
        Ok(())
    }

    /// Ends it at once.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Whether a process says so.
pub(crate) async fn is_ready(health: SocketAddr) -> bool {
    get(health, "/readyz").await.is_ok_and(|answer| answer.starts_with("HTTP/1.0 200"))
}

async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    timeout(Duration::from_secs(15), ask).await?
}

/// What kube-proxy and its like do in a cluster: each new connection goes to the next webhook that is ready.
pub struct Balancer {
    /// Where the API server connects to. This machine by an address that is not its loopback's, with which API servers
    /// speak HTTP/2; with a Service they speak HTTP/1.1, as here.
    pub url: String,
    backends: Arc<std::sync::Mutex<Vec<(SocketAddr, SocketAddr)>>>,
    _accepting: AbortOnDropHandle<()>,
}

impl Balancer {
    /// Starts one without any webhook.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://0.0.0.0:{}", listener.local_addr()?.port());
        let backends: Arc<std::sync::Mutex<Vec<_>>> = Arc::default();
        let known = Arc::clone(&backends);
        let accepting = tokio::spawn(async move {
            let mut turn = 0;
            while let Ok((mut client, _)) = listener.accept().await {
                let known: Vec<_> = known.lock().map(|known| known.clone()).unwrap_or_default();
                turn += 1;
                tokio::spawn(async move {
                    for (address, health) in known.iter().cycle().skip(turn % known.len().max(1)).take(known.len()) {
                        if is_ready(*health).await
                            && let Ok(mut server) = TcpStream::connect(address).await
                        {
                            let _ = copy_bidirectional(&mut client, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { url, backends, _accepting: AbortOnDropHandle::new(accepting) })
    }

    /// Sends connections to these from now on.
    pub fn to(&self, webhooks: &[&Webhook]) {
        if let Ok(mut backends) = self.backends.lock() {
            *backends = webhooks.iter().map(|webhook| (webhook.address, webhook.health)).collect();
        }
    }
}

/// Makes a connection that believes these authorities (PEM) only.
///
/// # Errors
/// The certificate is not believed, or there is no answer.
pub async fn handshake(address: SocketAddr, name: &str, authorities: &[u8]) -> Result<()> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities) {
        roots.add(authority?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connect = async {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(name.to_owned())?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        Ok(())
    };
    timeout(Duration::from_secs(15), connect).await?
}

/// How many pods the API server has let through because it could not ask the webhook about them for a profile.
pub async fn fail_open_count(cluster: &Cluster, profile: &str) -> Result<f64> {
    // The API server counts a failed call shortly after its answer. The counter does not exist before the first failure, so
    // there is no value to wait for.
    sleep(Duration::from_millis(100)).await;
    let metrics = cluster.control_plane.get("/metrics").await?;
    let name = format!("name=\"{profile}.mutate.toolsecurity.dev\"");
    let of = |line: &str| line.starts_with("apiserver_admission_webhook_fail_open_count{") && line.contains(&name);
    Ok(value(&metrics, of).unwrap_or_default())
}

/// The sum of the values of some metrics.
fn value(metrics: &str, wanted: impl Fn(&str) -> bool) -> Option<f64> {
    let values: Vec<f64> = metrics
        .lines()
        .filter(|line| !line.starts_with('#') && wanted(line))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

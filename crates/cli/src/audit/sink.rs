//! `palisade audit --listen`: an audit webhook, to which API servers send their events (`--audit-webhook-config-file`).
//!
//! An API server sends them in batches, in the background. It does not wait for this process. While the process is
//! down, only counts are lost.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode},
};
use palisade_process::{
    BodyError, GRACE, Health, HttpMetrics, HttpServer, Limits, Supervisor, about_process, duration, on_signal,
    serve_health, text, tls,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter},
    registry::Registry,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    net::TcpListener,
    time::{MissedTickBehavior, interval},
};

use super::{
    AuditArgs, AuditFormat,
    summary::{Filter, Summary},
};
use crate::{
    cluster::could_not_run,
    events::Event,
    output,
    report::{self, Failure},
};

/// The largest batch. By default an API server sends at most 400 events at once.
const MAX_BATCH: usize = 32 << 20;
const LIMITS: Limits = Limits {
    connections: 64,
    handshake: Duration::from_secs(5),
    head: Duration::from_secs(5),
    // An API server waits 30 s for the answer. In the meantime it sends the next batch on another connection.
    body: Duration::from_secs(20),
    request: Duration::from_secs(30),
    idle: Duration::from_mins(2),
    body_bytes: 64 << 20,
    streams: 100,
};

/// Heading of these arguments.
const WEBHOOK: &str = "Audit webhook";

/// The arguments of the audit webhook.
#[derive(Debug, clap::Args)]
pub struct SinkArgs {
    /// Address to listen on for events from API servers (kube-apiserver --audit-webhook-config-file). The counts are
    /// printed on SIGTERM or Ctrl-C.
    #[arg(long, value_name = "ADDRESS", help_heading = WEBHOOK, conflicts_with = "paths")]
    pub listen: Option<SocketAddr>,
    /// Certificate chain for API servers, in PEM, read at the start. It may be omitted only for a loopback address;
    /// then connections are not encrypted.
    #[arg(long, value_name = "FILE", help_heading = WEBHOOK, requires = "listen", requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", help_heading = WEBHOOK, requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Accept events only from clients with a certificate signed by an authority in this file.
    #[arg(long, value_name = "FILE", help_heading = WEBHOOK, requires = "tls_cert_file")]
    pub client_ca_file: Option<PathBuf>,
    /// Address of /livez, /readyz and /metrics, without TLS. By default, they are disabled.
    #[arg(long, value_name = "ADDRESS", help_heading = WEBHOOK, requires = "listen")]
    pub listen_health: Option<SocketAddr>,
    /// Print counts at this interval, for example 1m.
    #[arg(long, value_name = "TIME", help_heading = WEBHOOK, requires = "listen", value_parser = duration)]
    pub every: Option<Duration>,
}

/// The batch of an API server.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventList<'a> {
    api_version: String,
    kind: String,
    /// Each item is parsed separately, so that the memory for the whole is that of the text.
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

/// The process. Clones share it.
#[derive(Clone, Debug)]
struct Sink {
    filter: Filter,
    counts: Arc<Mutex<Counts>>,
    http: HttpServer,
    registry: Arc<Registry>,
}

#[derive(Debug, Default)]
struct Counts {
    summary: Summary,
    /// Items that are not events.
    unreadable: u64,
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until a signal.
pub fn run(args: &AuditArgs, listen: SocketAddr) -> Result<(), Failure> {
    let (certificate, key) = (&args.sink.tls_cert_file, &args.sink.tls_private_key_file);
    let tls = match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let of = |error: tls::UnusableFile| could_not_run(error.to_string());
            let certificate = tls::certificate(certificate, key).map_err(of)?;
            let clients = args.sink.client_ca_file.as_deref().map(tls::client_verifier).transpose().map_err(of)?;
            let tls = tls::server_config(certificate, clients);
            Some(tls.map_err(|error| could_not_run(format!("TLS cannot be set up: {error}")))?)
        }
        _ if listen.ip().is_loopback() => None,
        _ => {
            let message =
                format!("--tls-cert-file and --tls-private-key-file are required: {listen} is not a loopback address");
            return Err(could_not_run(message));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| could_not_run(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let stop = on_signal().map_err(|error| could_not_run(format!("cannot catch signals: {error}")))?;
        let of = |address| move |error: io::Error| could_not_run(format!("cannot listen on {address}: {error}"));
        let tasks = Supervisor::new(stop.clone());
        let ports = HttpMetrics::default();
        let sink = Sink::new(args.filter.clone(), &ports);
        let listener = TcpListener::bind(listen).await.map_err(of(listen))?;
        let address = listener.local_addr().map_err(of(listen))?;
        if let Some(health) = args.sink.listen_health {
            let at = serve_health(health, sink.clone(), &ports, &tasks, stop.clone()).await.map_err(of(health))?;
            report::note(&format!("/metrics is at {at}"));
        }
        let (server, router) = (sink.http.clone(), Router::new().fallback(take).with_state(sink.clone()));
        let stopped = stop.clone();
        tasks.spawn("audit webhook", async move { server.serve(listener, tls, router, stopped).await });
        report::note(&format!("waiting for audit events at {address}"));
        if let Some(every) = args.sink.every {
            let mut due = interval(every.max(Duration::from_millis(1)));
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
            due.tick().await;
            while stop.run_until_cancelled(due.tick()).await.is_some() {
                sink.print(args)?;
            }
        }
        stop.cancelled().await;
        let finished = tasks.finish(GRACE + Duration::from_secs(2)).await;
        sink.print(args)?;
        finished.map_err(|error| could_not_run(error.to_string()))
    })
}

/// Takes a batch.
async fn take(State(sink): State<Sink>, request: Request) -> (StatusCode, String) {
    if request.method() != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, "only POST of audit events is allowed\n".to_owned());
    }
    let (batch, _memory) = match sink.http.body(request, MAX_BATCH).await {
        Ok(read) => read,
        Err(error) => return (status(error), format!("{error}\n")),
    };
    let counted = tokio::task::spawn_blocking(move || sink.count(&batch)).await;
    match counted {
        Ok(Ok(())) => (StatusCode::OK, String::new()),
        Ok(Err(wrong)) => (StatusCode::BAD_REQUEST, format!("{wrong}\n")),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "counting failed\n".to_owned()),
    }
}

fn status(error: BodyError) -> StatusCode {
    match error {
        BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Slow { .. } => StatusCode::REQUEST_TIMEOUT,
        // The API server sends it again.
        BodyError::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::ClosedEarly => StatusCode::BAD_REQUEST,
    }
}

impl Sink {
    fn new(filter: Filter, ports: &HttpMetrics) -> Self {
        let counts = Arc::<Mutex<Counts>>::default();
        let mut registry = Registry::default();
        about_process(&mut registry, env!("CARGO_PKG_VERSION"));
        ports.register(&mut registry);
        registry.register_collector(Box::new(Collected(Arc::clone(&counts))));
        let http = HttpServer::new("audit", LIMITS, ports);
        Self { filter, counts, http, registry: Arc::new(registry) }
    }

    /// Counts a batch.
    fn count(&self, batch: &[u8]) -> Result<(), String> {
        let list: EventList<'_> =
            serde_json::from_slice(batch).map_err(|error| format!("not an audit.k8s.io/v1 EventList: {error}"))?;
        if (list.api_version.as_str(), list.kind.as_str()) != ("audit.k8s.io/v1", "EventList") {
            return Err(format!("must be audit.k8s.io/v1 EventList, not {} {}", list.api_version, list.kind));
        }
        for item in list.items {
            let event = serde_json::from_str::<Event>(item.get());
            let mut counts = lock(&self.counts);
            match event {
                Ok(event) => counts.summary.add(&self.filter, &event),
                Err(_) => counts.unreadable += 1,
            }
        }
        Ok(())
    }

    fn print(&self, args: &AuditArgs) -> Result<(), Failure> {
        let text = {
            let counts = lock(&self.counts);
            match args.output {
                AuditFormat::Table => counts.summary.table(args.top),
                AuditFormat::Json => format!("{}\n", counts.summary.json(args.top)),
            }
        };
        output::print(&text)
    }
}

impl Health for Sink {
    fn ready(&self) -> Result<(), &'static str> {
        self.http.ready()
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        text(&self.registry)
    }
}

/// The counts as metrics, without names of namespaces and workloads, because their number is not limited.
#[derive(Debug)]
struct Collected(Arc<Mutex<Counts>>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = lock(&self.0);
        let summary = &counts.summary;
        for (name, help, value) in [
            ("palisade_audit_events", "Audit events that were counted", summary.events),
            ("palisade_audit_unreadable", "Items of batches that are not audit events", counts.unreadable),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        let help = "Requests that a profile denied, warned or audited, by action";
        let mut metric = encoder.encode_descriptor("palisade_audit_requests", help, None, MetricType::Counter)?;
        for (profile, action, requests) in summary.requests() {
            let labels = [("profile", profile), ("action", action.label())];
            ConstCounter::new(requests).encode(metric.encode_family(&labels)?)?;
        }
        let help = "Requests that violate a check, by action";
        let mut metric = encoder.encode_descriptor("palisade_audit_checks", help, None, MetricType::Counter)?;
        for (profile, action, check, requests) in summary.checks() {
            let labels = [("profile", profile), ("check", check), ("action", action.label())];
            ConstCounter::new(requests).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn denied(namespace: &str) -> Json {
        json!({
            "stage": "ResponseComplete", "requestURI": "/api/v1/pods",
            "objectRef": {"resource": "pods", "namespace": namespace, "name": "x"},
            "annotations": {"authorization.k8s.io/decision": "allow"},
            "responseStatus": {"code": 403, "message": "pods \"x\" is forbidden: ValidatingAdmissionPolicy \
                'palisade-tools-pods' with binding 'b' denied request: 1 violation of ToolSecurityProfile tools: [privileged] y"},
        })
    }

    fn list(items: &[Json]) -> Vec<u8> {
        json!({"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": items}).to_string().into_bytes()
    }

    #[test]
    fn batches_are_counted_and_metrics_name_no_namespace() {
        let sink = Sink::new(Filter::default(), &HttpMetrics::default());
        assert_eq!(sink.count(&list(&[denied("secret-a"), json!({"stage": 7})])), Ok(()));
        assert_eq!(sink.count(&list(&[denied("secret-b")])), Ok(()));
        let metrics = sink.metrics().expect("metrics");
        for line in [
            "palisade_audit_events_total 2",
            "palisade_audit_unreadable_total 1",
            "palisade_audit_requests_total{profile=\"tools\",action=\"denied\"} 2",
            "palisade_audit_checks_total{profile=\"tools\",check=\"privileged\",action=\"denied\"} 2",
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
        }
        assert!(!metrics.contains("secret"), "{metrics}");
        assert_eq!(lock(&sink.counts).summary.json(9)["namespaces"][1]["namespace"], "secret-b");
    }

    #[test]
    fn what_is_no_list_of_events_is_rejected() {
        let sink = Sink::new(Filter::default(), &HttpMetrics::default());
        let other = json!({"apiVersion": "v1", "kind": "PodList", "items": []}).to_string();
        for (batch, wrong) in
            [("[]", "not an audit.k8s.io/v1 EventList"), ("{}", "missing field"), (other.as_str(), "not v1 PodList")]
        {
            let error = sink.count(batch.as_bytes()).expect_err(batch);
            assert!(error.contains(wrong), "{batch}: {error}");
        }
        assert_eq!(lock(&sink.counts).summary.events, 0);
    }
}

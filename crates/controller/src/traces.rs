//! Traces: spans that are sent to an OpenTelemetry collector, as OTLP over HTTP.

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, Response, Uri, body::Bytes, http::uri::Scheme};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use palisade_runtime::Spans;
use tokio::{runtime::Handle, time::timeout};
use tracing_subscriber::{
    Layer, Registry,
    filter::dynamic_filter_fn,
    layer::{Context, Filter},
    registry::LookupSpan,
};

/// Time limit for a response of the collector, and for sending the last spans when the process stops.
const PATIENCE: Duration = Duration::from_secs(5);
/// Limit for a response, which contains the number of rejected spans and the reason.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Options for traces.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TraceOptions {
    /// OpenTelemetry collector for traces, for example `http://otel-collector.observability:4318` (OTLP over HTTP,
    /// without TLS). If unset, no traces are sent. `OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES` and the other
    /// variables of OpenTelemetry also apply.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp_endpoint: Option<Collector>,
}

/// The address of a collector.
#[derive(Clone, Debug)]
struct Collector(Uri);

impl FromStr for Collector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("invalid URL: {error}"))?;
        if uri.scheme() == Some(&Scheme::HTTPS) {
            return Err(
                "TLS is not supported: use the http:// address of a collector in the cluster, which can forward \
                 traces with TLS"
                    .into(),
            );
        }
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err("must begin with http://, for example http://otel-collector.observability:4318".into());
        }
        if uri.query().is_some() || uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("must have only a host, a port and a path after http://".into());
        }
        Ok(Self(uri))
    }
}

impl fmt::Display for Collector {
    /// The URL for traces: <https://opentelemetry.io/docs/specs/otlp/#otlphttp-request>
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/v1/traces", self.0.to_string().trim_end_matches('/'))
    }
}

impl TraceOptions {
    /// Starts sending the spans of `service`, if a collector is set. Must be called in a runtime, which sends them.
    ///
    /// # Errors
    /// The exporter cannot be created.
    pub fn start(&self, service: &'static str) -> Result<Option<Spans>, String> {
        let traces = self.traces(service).map_err(|error| error.to_string())?;
        Ok(traces.map(|traces| Spans { layer: Box::new(traces.layer()), end: Box::new(move || traces.end()) }))
    }

    fn traces(&self, service: &'static str) -> Result<Option<Traces>, ExporterBuildError> {
        let Some(collector) = &self.otlp_endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder().with_http().with_http_client(Sender::new());
        let exporter = exporter.with_endpoint(collector.to_string()).with_timeout(PATIENCE).build()?;
        let resource = Resource::builder().with_service_name(service);
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let instance = std::env::var("POD_NAME").ok().map(|name| KeyValue::new("service.instance.id", name));
        let resource = resource.with_attributes([version].into_iter().chain(instance)).build();
        Ok(Some(Traces(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())))
    }
}

/// Traces that are being sent.
struct Traces(SdkTracerProvider);

impl Traces {
    /// The layer that exports spans of `tracing`.
    fn layer(&self) -> impl Layer<Registry> + Send + Sync + use<> {
        let layer = tracing_opentelemetry::layer().with_tracer(self.0.tracer("palisade")).with_location(false);
        layer.with_threads(false).with_filter(in_traces())
    }

    /// Sends the last spans.
    fn end(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "could not send the last spans");
        }
    }
}

/// Palisade's own spans, and the requests to the API server in them. Requests outside, which watch objects and renew the
/// Lease, would be a trace each.
fn in_traces<S>() -> impl Filter<S>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let part = |metadata: &tracing::Metadata<'_>, context: &Context<'_, S>| {
        let own = metadata.target().starts_with("palisade_") && *metadata.level() <= tracing::Level::DEBUG;
        let request = metadata.is_span() && metadata.target().starts_with("kube_client::");
        // An event outside of all spans is in no trace.
        (own && metadata.is_span()) || ((own || request) && context.lookup_current().is_some())
    };
    dynamic_filter_fn(part)
}

/// Sends spans from the runtime: the SDK exports them on a separate thread without a runtime.
#[derive(Debug)]
struct Sender {
    runtime: Handle,
    client: Client<HttpConnector, Full<Bytes>>,
    /// True if the collector did not accept the last spans.
    fails: AtomicBool,
}

impl Sender {
    fn new() -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { runtime: Handle::current(), client, fails: AtomicBool::new(false) }
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = async move {
            let response = client.request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let sent = self.runtime.spawn(async { timeout(PATIENCE, sent).await });
        let answer = sent.await?.map_err(HttpError::from).flatten();
        let error = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("status {}", answer.status())),
            Err(error) => Some(error.to_string()),
        };
        // Once, and not every five seconds.
        match (&error, self.fails.swap(error.is_some(), Ordering::Relaxed)) {
            (Some(error), false) => tracing::warn!(error, "cannot send traces; the spans are lost"),
            (None, true) => tracing::info!("sending traces again"),
            _ => {}
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        sync::mpsc,
        thread,
    };

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn a_collector_is_a_url_without_tls() {
        for (url, traces) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces"),
            ("http://gateway/otlp", "http://gateway/otlp/v1/traces"),
        ] {
            assert_eq!(url.parse::<Collector>().unwrap().to_string(), traces);
        }
        for (url, mistake) in [
            ("https://collector:4318", "TLS is not supported"),
            ("collector:4318", "must begin with http://"),
            ("grpc://collector:4317", "must begin with http://"),
            ("http://user:secret@collector", "only a host"),
            ("http://collector/?a=b", "only a host"),
            ("http://", "invalid URL"),
        ] {
            let error = url.parse::<Collector>().unwrap_err();
            assert!(error.contains(mistake), "{url}: {error}");
        }
    }

    /// A server that answers each request with the next status, and hands over what it got.
    fn server(statuses: &'static [u16]) -> (String, mpsc::Receiver<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (send, received) = mpsc::channel();
        thread::spawn(move || {
            for status in statuses {
                let (mut connection, _) = listener.accept().unwrap();
                let (mut request, mut part) = (Vec::new(), [0; 4096]);
                let missing = |request: &[u8]| {
                    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
                    let Some((head, _)) = text.split_once("\r\n\r\n") else { return true };
                    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
                    request.len() < head.len() + 4 + length.parse::<usize>().unwrap()
                };
                while missing(&request) {
                    let read = connection.read(&mut part).unwrap();
                    assert!(read > 0, "the request ends");
                    request.extend_from_slice(&part[..read]);
                }
                write!(connection, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
                send.send(request).unwrap();
            }
        });
        (format!("http://{address}"), received)
    }

    fn contains(bytes: &[u8], text: &str) -> bool {
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn spans_of_work_are_sent_and_a_failure_loses_only_its_own() {
        let (url, received) = server(&[400, 200]);
        let options = TraceOptions { otlp_endpoint: Some(url.parse().unwrap()) };
        let traces = options.traces("palisade-test").unwrap().unwrap();
        let subscriber = tracing_subscriber::registry().with(traces.layer());
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug_span!("lost").in_scope(|| ());
            assert!(traces.0.force_flush().is_err(), "the collector refused it");
            assert!(contains(&received.recv().unwrap(), "lost"));

            tracing::debug_span!(target: "kube_client::client", "watch").in_scope(|| ());
            tracing::debug_span!(target: "hyper", "library").in_scope(|| ());
            tracing::debug_span!("work", profile = "tools").in_scope(|| {
                tracing::debug_span!(target: "kube_client::client", "HTTP", otel.name = "patch").in_scope(|| ());
                tracing::debug!("an event");
            });
        });
        tokio::task::spawn_blocking(move || traces.end()).await.unwrap();
        let request = received.recv().unwrap();
        assert!(request.starts_with(b"POST /v1/traces HTTP/1.1\r\n"));
        for part in ["palisade-test", "work", "tools", "patch", "an event"] {
            assert!(contains(&request, part), "{part}");
        }
        for other in ["watch", "library", "lost"] {
            assert!(!contains(&request, other), "{other}");
        }
    }

    #[test]
    fn without_a_collector_nothing_is_sent() {
        assert!(TraceOptions::default().start("palisade-test").unwrap().is_none());
    }
}

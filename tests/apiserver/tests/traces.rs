//! Traces of the controller, as an OpenTelemetry collector gets them.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, extract::State, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind},
};
use palisade_api::names;
use palisade_tests::{Cluster, ControllerProcess, TestResult, ensure, eventually};
use prost::Message as _;

crate::groups::scenarios! {
    a_reconcile_is_a_trace_with_its_requests: Audited 60;
}

const TEST: &str = "traces";

/// A span, and the service that it is of.
type Collected = Arc<Mutex<Vec<(String, Span)>>>;

/// The text or number of an attribute.
fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let value = attributes.iter().find(|one| one.key == key).and_then(|one| one.value.as_ref()?.value.as_ref());
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// <https://opentelemetry.io/docs/specs/otlp/#otlphttp>
async fn collect(State(collected): State<Collected>, body: Bytes) -> Vec<u8> {
    let request = ExportTraceServiceRequest::decode(body).expect("an ExportTraceServiceRequest");
    let mut collected = collected.lock().expect("no panic");
    for resource in request.resource_spans {
        let service = resource.resource.map(|one| attribute(&one.attributes, "service.name")).unwrap_or_default();
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        collected.extend(spans.map(|span| (service.clone(), span)));
    }
    ExportTraceServiceResponse::default().encode_to_vec()
}

/// The spans above one, the nearest first.
fn above<'a>(spans: &'a [Span], span: &'a Span) -> Vec<&'a Span> {
    let mut out = Vec::new();
    let mut last = span;
    while let Some(parent) = spans.iter().find(|one| one.span_id == last.parent_span_id) {
        out.push(parent);
        last = parent;
    }
    out
}

pub(crate) async fn a_reconcile_is_a_trace_with_its_requests(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let collected = Collected::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let collector = Router::new().route("/v1/traces", post(collect)).with_state(Arc::clone(&collected));
    let collector = tokio::spawn(async move { axum::serve(listener, collector).await });

    let mut controller = ControllerProcess::traced(cluster, &endpoint)?;
    cluster.create_tool(TEST, "traces-a", 50_001).await?;
    cluster.enforce(&Cluster::toolforge_profile(TEST)?).await?;
    // What it has not sent yet, it sends at the end.
    controller.signal("TERM")?;
    eventually("the controller ends", || {
        let running = controller.is_running().map_err(|error| error.to_string());
        async move { if running? { Err("it runs".to_owned()) } else { Ok(()) } }
    })
    .await?;
    collector.abort();
    cluster.start_controller().await?;
    cluster.delete_profile(TEST).await?;

    let (services, spans): (Vec<_>, Vec<_>) =
        std::mem::take(&mut *collected.lock().expect("no panic")).into_iter().unzip();
    println!("{} spans of {} traces", spans.len(), spans.iter().filter(|span| span.parent_span_id.is_empty()).count());
    ensure!(services.iter().all(|service| service == names::CONTROLLER), "{services:?}");
    let of_policy = |span: &&Span| {
        span.kind() == SpanKind::Client
            && attribute(&span.attributes, "http.url").contains("/validatingadmissionpolicies/palisade-traces-pods")
    };
    let write = spans.iter().find(of_policy).ok_or("no span of a request for the policy")?;
    ensure!(attribute(&write.attributes, "http.status_code").starts_with("20"), "{write:?}");
    let above_write = above(&spans, write);
    let reconcile = above_write.iter().find(|span| span.name == "reconcile").ok_or("the request is in no reconcile")?;
    ensure!(attribute(&reconcile.attributes, "profile") == TEST, "{reconcile:?}");
    ensure!(attribute(&reconcile.attributes, "generation") == "1", "{reconcile:?}");
    let root = above_write.last().ok_or("no root")?;
    ensure!(root.parent_span_id.is_empty() && root.name == "lane reconcile", "{root:?}");
    let compile = spans.iter().find(|span| span.name == "compile").ok_or("no span of the compilation")?;
    ensure!(above(&spans, compile).iter().any(|span| span.name == "reconcile"), "{compile:?}");
    // Watches and the renewal of the Lease are no work on a profile.
    let roots: Vec<_> = spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    ensure!(roots.iter().all(|span| span.name.starts_with("lane ")), "{roots:?}");
    Ok(())
}

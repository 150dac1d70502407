//! What policies do with requests: the same cases on the real API server and offline, compared in all that a client sees.

use std::time::Duration;

use kube::client::Body;
use palisade_admission::requests::{Cluster as Offline, Operation, Outcome, Request};
use palisade_agreement::cases::{Ask, Own, own};
use palisade_tests::{Cluster, TestResult, ensure, eventually, root, within};
use serde_json::Value as Json;

crate::groups::scenarios! {
    offline_verdicts_match_the_api_server: Oldest 10, Answers 10, Middle 20;
}

/// How long a policy that was written may take to be in force.
const SETTLE: Duration = Duration::from_mins(1);

/// What a client sees of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Text, reason and code of a refusal.
    pub refused: Option<(String, String, u16)>,
    pub warnings: Vec<String>,
}

pub(crate) async fn offline_verdicts_match_the_api_server(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let minor = cluster.minor().await?;
    let mut cases = own(&root().join("tests/apiserver/cases/admission"))?;
    cases.retain(|case| case.from <= minor);
    for case in &cases {
        for object in case.objects() {
            create(cluster, &path(&Offline::new(minor), &object), &object).await?;
        }
    }
    cluster.wait_established(&["crd", "--all"])?;
    let policies: Vec<Json> = cases.iter().flat_map(Own::policies).collect();
    for object in &policies {
        create(cluster, &path(&Offline::new(minor), object), object).await?;
    }
    // The informers of parameters' kinds start with the policies that need them. The API server does not report when they are
    // ready, and before that an admission proves nothing.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (mut count, mut wrong) = (0, Vec::new());
    for case in &cases {
        let offline = case.cluster(minor)?;
        for (index, ask) in case.requests.iter().enumerate() {
            count += 1;
            if let Err(error) = compare(cluster, case, ask, &offline).await {
                println!("{} {index}: {error}", case.name);
                wrong.push(format!("{} {index}", case.name));
            }
        }
    }
    println!("{} cases, {count} requests, {} answered alike", cases.len(), count - wrong.len());
    for object in policies.iter().rev() {
        remove(cluster, &path(&Offline::new(minor), object), object).await?;
    }
    ensure!(wrong.is_empty(), "{} of {count} are answered differently: {}", wrong.len(), wrong.join(", "));
    Ok(())
}

async fn compare(cluster: &Cluster, case: &Own, ask: &Ask, offline: &Offline) -> TestResult {
    let request = case.request(ask, offline)?;
    let review = offline.admit(&request);
    let refused = match &review.outcome {
        Outcome::Allowed => None,
        Outcome::Denied(denials) => {
            denials.first().map(|denial| (denial.message.clone(), denial.reason.clone(), denial.code))
        }
        Outcome::NoVerdict(why) => return Err(format!("no verdict: {why}").into()),
    };
    let expected = Answer { refused, warnings: review.warnings.clone() };
    // Policies come into force a moment after they are written.
    within(SETTLE, "the same answer", || async {
        let answer = ask_server(cluster, &request).await.map_err(|error| error.to_string())?;
        if answer == expected { Ok(()) } else { Err(format!("the API server: {answer:?}\n    offline: {expected:?}")) }
    })
    .await?;
    Ok(())
}

pub(crate) async fn ask_server(
    cluster: &Cluster,
    request: &Request,
) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
    let ids = &request.resource;
    let collection = collection(&ids.group, &ids.version, &ids.resource, &request.namespace, &request.kind.kind);
    let named = format!("{collection}/{}", request.name);
    let sub = if request.subresource.is_empty() { String::new() } else { format!("/{}", request.subresource) };
    let (method, path) = match request.operation {
        Operation::Create if sub.is_empty() => ("POST", format!("{collection}?dryRun=All")),
        Operation::Create => ("POST", format!("{named}{sub}?dryRun=All")),
        Operation::Update => ("PUT", format!("{named}{sub}?dryRun=All")),
        Operation::Delete => ("DELETE", format!("{named}{sub}?dryRun=All")),
        Operation::Connect => {
            let command = request.object.as_ref().and_then(|object| object["command"][0].as_str()).unwrap_or_default();
            ("POST", format!("{named}{sub}?command={command}"))
        }
    };
    let mut http = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("impersonate-user", &request.user.name);
    for group in &request.user.groups {
        http = http.header("impersonate-group", group);
    }
    let body = request.object.as_ref().map(Json::to_string).unwrap_or_default().into_bytes();
    let response = cluster.admin.send(http.body(Body::from(body))?).await?;
    let (parts, body) = response.into_parts();
    let body: Json = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
    let warnings = parts.headers.get_all("warning").iter().filter_map(|value| warning(value.as_bytes())).collect();
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    // A connection that is admitted fails later: there is no node.
    let admitted = parts.status.is_success()
        || (request.operation == Operation::Connect && !text("message").contains("is forbidden"));
    let refused = (!admitted).then(|| (text("message"), text("reason"), parts.status.as_u16()));
    Ok(Answer { refused, warnings })
}

/// The text of a header `299 - "text"`.
pub(crate) fn warning(header: &[u8]) -> Option<String> {
    let header = String::from_utf8_lossy(header).into_owned();
    let quoted = header.strip_prefix("299 - \"")?.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next()? } else { c });
    }
    Some(text)
}

pub(crate) fn collection(group: &str, version: &str, resource: &str, namespace: &str, kind: &str) -> String {
    let api = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if namespace.is_empty() || kind == "Namespace" {
        format!("{api}/{resource}")
    } else {
        format!("{api}/namespaces/{namespace}/{resource}")
    }
}

/// Where an object is created.
fn path(offline: &Offline, object: &Json) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = offline.kinds().by_kind(api_version, kind).map(|resource| resource.plural.clone());
    collection(group, version, &plural.unwrap_or_default(), text("/metadata/namespace"), kind)
}

/// Creates an object; a pod as soon as its namespace has a service account.
async fn create(cluster: &Cluster, path: &str, object: &Json) -> TestResult {
    eventually(&format!("{} in {path}", object["metadata"]["name"]), || async {
        match cluster.create_at(path, object).await {
            // Several requests of a case change or delete the same.
            palisade_tests::Verdict::Admitted | palisade_tests::Verdict::Refused(409, _) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

async fn remove(cluster: &Cluster, path: &str, object: &Json) -> TestResult {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let request = http::Request::delete(format!("{path}/{name}")).body(Vec::new())?;
    cluster.admin.request::<Json>(request).await?;
    Ok(())
}

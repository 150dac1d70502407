//! The built-in admission plugins: the same requests on the real API server and offline, compared in all that a client
//! sees. Where there is no verdict offline, it must name the plugin by which the API server denies.

use std::{collections::BTreeMap, time::Duration};

use kube::client::Body;
use palisade_admission::requests::{Cluster as Offline, Operation, Outcome, PLUGINS, Request, User};
use palisade_cel::Minor;
use palisade_tests::{Cluster, TestResult, ensure, eventually, root, within};
use serde::Deserialize;
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    plugins_answer_like_the_api_server: Oldest 20, Answers 20;
    default_plugins_match_kube_apiserver_help: Answers 30;
}

/// How long the API server may take to see new objects: its plugins read from caches.
const SETTLE: Duration = Duration::from_mins(1);

/// A namespace, the objects in the cluster, and requests.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    /// Of the namespace.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Whether the namespace is being deleted when the requests are made.
    #[serde(default)]
    terminating: bool,
    /// What is there.
    #[serde(default)]
    objects: Vec<Json>,
    requests: Vec<Ask>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Ask {
    /// The object to create.
    object: Option<Json>,
    /// `Kind/name` of what is updated, or Namespace for the case's own, and by which merge patch.
    update: Option<String>,
    #[serde(default)]
    patch: Json,
    /// The field with a list of which the patch changes the first element.
    list: Option<String>,
    /// The object to delete.
    delete: Option<Json>,
    /// A part of the API server's refusal; it admits the request if there is none.
    denied: Option<String>,
    /// A part of one of its warnings; there is none else.
    warned: Option<String>,
    /// The plugin that is named where there is no verdict offline.
    no_verdict: Option<String>,
}

/// What a client sees of an answer.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    refused: Option<(String, String, u16)>,
    warnings: Vec<String>,
    /// What plugins may change of a new object.
    object: Json,
}

pub(crate) async fn plugins_answer_like_the_api_server(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let minor = cluster.minor().await?;
    let mut cases = Vec::new();
    for file in ["pods.yaml", "cluster.yaml"] {
        let text = std::fs::read_to_string(root().join("tests/apiserver/cases/plugins").join(file))?;
        cases.extend(serde_saphyr::from_str::<Vec<Case>>(&text)?);
    }
    for case in &cases {
        case.set_up(cluster).await.map_err(|error| format!("{}: {error}", case.name))?;
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for case in &cases {
        let offline = case.offline(cluster, minor).await?;
        for (index, ask) in case.requests.iter().enumerate() {
            count += 1;
            if let Err(error) = case.compare(cluster, ask, &offline).await {
                println!("{} {index}: {error}", case.name);
                wrong.push(format!("{} {index}", case.name));
            }
        }
    }
    println!("{} cases, {count} requests, {} answered alike", cases.len(), count - wrong.len());
    for case in &cases {
        case.tear_down(cluster).await;
    }
    ensure!(wrong.is_empty(), "{} of {count} are answered differently: {}", wrong.len(), wrong.join(", "));
    Ok(())
}

/// The names that kube-apiserver itself says are on by default.
pub(crate) async fn default_plugins_match_kube_apiserver_help(cluster: &mut Cluster) -> TestResult {
    let minor = cluster.served().await?;
    let help = cluster.control_plane.apiserver_help()?;
    let (_, list) = help.split_once("in addition to default enabled ones (").ok_or("the help has another form")?;
    let (list, _) = list.split_once(").").ok_or("the help has another form")?;
    let mut wanted: Vec<&str> = list.split(", ").collect();
    wanted.sort_unstable();
    let on = PLUGINS.iter().filter(|plugin| (plugin.since..=plugin.until).contains(&minor));
    let mut found: Vec<&str> = on.map(|plugin| plugin.name).collect();
    found.sort_unstable();
    ensure!(found == wanted, "the table has {found:?}, kube-apiserver {wanted:?}");
    Ok(())
}

impl Case {
    fn namespace(&self) -> String {
        format!("plg-{}", self.name)
    }

    /// An object with all that the case leaves out.
    fn whole(&self, object: &Json) -> Json {
        let mut whole = object.clone();
        if whole["apiVersion"].is_null() {
            whole["apiVersion"] = "v1".into();
        }
        if whole["metadata"]["name"].is_null() {
            whole["metadata"]["name"] = if whole["kind"] == "PersistentVolume" { "plg-x" } else { "x" }.into();
        }
        if whole["kind"] == "Pod" && whole["spec"].is_null() {
            whole["spec"] = json!({"containers": [{"name": "a", "image": "a"}]});
        }
        let kind = whole["kind"].as_str().unwrap_or_default();
        let kinds = palisade_gate::cluster(Minor::V1_36);
        let found = kinds.kinds().by_kind(whole["apiVersion"].as_str().unwrap_or_default(), kind);
        if found.is_none_or(|resource| resource.namespaced) {
            whole["metadata"]["namespace"] = self.namespace().into();
        }
        whole
    }

    async fn set_up(&self, cluster: &Cluster) -> TestResult {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace(), "labels": self.labels},
        });
        create(cluster, &namespace).await?;
        for object in &self.objects {
            let object = self.whole(object);
            create(cluster, &object).await?;
            if object["status"].is_object() {
                set_status(cluster, &object).await?;
            }
        }
        if self.terminating {
            let path = format!("/api/v1/namespaces/{}", self.namespace());
            cluster.answer("DELETE", &path, "application/json", &json!({})).await?;
            eventually("the namespace is terminating", || async {
                let namespace = cluster.answer_to("GET", &path, &Json::Null).await?;
                let phase = namespace["status"]["phase"].to_string();
                if phase == "\"Terminating\"" { Ok(()) } else { Err(phase) }
            })
            .await?;
        }
        Ok(())
    }

    /// The same cluster, of what the API server has stored.
    async fn offline(
        &self,
        cluster: &Cluster,
        minor: Minor,
    ) -> Result<Offline, Box<dyn std::error::Error + Send + Sync>> {
        let mut offline = palisade_gate::cluster(minor);
        let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace()}});
        let objects = std::iter::once(own).chain(self.objects.iter().map(|object| self.whole(object)));
        for object in objects {
            let mut stored = cluster.answer_to("GET", &path(&object), &Json::Null).await?;
            if let Some(metadata) = stored["metadata"].as_object_mut() {
                metadata.remove("managedFields");
                metadata.remove("resourceVersion");
            }
            let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
            offline.apply(stored).map_err(|refused| format!("{name}: {refused:?}"))?;
        }
        Ok(offline)
    }

    /// The request, with what is stored already.
    async fn request(&self, cluster: &Cluster, ask: &Ask, offline: &Offline) -> Result<Request, String> {
        let mut request = if let Some(object) = &ask.object {
            offline.request(Operation::Create, "", &self.whole(object), None)?
        } else if let Some(object) = &ask.delete {
            offline.request(Operation::Delete, "", &self.whole(object), None)?
        } else {
            let of = ask.update.as_deref().unwrap_or_default();
            let (kind, name) = of.split_once('/').unwrap_or((of, ""));
            let mut named = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
            if kind == "Namespace" {
                named["metadata"]["name"] = self.namespace().into();
            }
            let mut stored = cluster.answer_to("GET", &path(&self.whole(&named)), &Json::Null).await?;
            for (key, value) in [("apiVersion", "v1"), ("kind", kind)] {
                stored[key] = value.into();
            }
            if let Some(metadata) = stored["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            let mut changed = stored.clone();
            match &ask.list {
                Some(list) => {
                    let place = format!("/{}", list.replace('.', "/"));
                    let (element, patch) = (changed.pointer_mut(&format!("{place}/0")), ask.patch.pointer(&place));
                    merge(element.ok_or("no such list")?, &patch.ok_or("no such list")?[0]);
                }
                None => merge(&mut changed, &ask.patch),
            }
            offline.request(Operation::Update, "", &changed, Some(&stored))?
        };
        let groups = ["system:masters", "system:authenticated"].map(str::to_owned).to_vec();
        request.user = User { name: "tester".to_owned(), groups, ..User::default() };
        request.dry_run = true;
        request.options = Request::default_options(request.operation, true);
        Ok(request)
    }

    async fn compare(&self, cluster: &Cluster, ask: &Ask, offline: &Offline) -> TestResult {
        let request = self.request(cluster, ask, offline).await?;
        let review = offline.admit(&request);
        let compared = request.operation == Operation::Create;
        let expected = match &review.outcome {
            Outcome::NoVerdict(why) => {
                let plugin = ask.no_verdict.as_deref().ok_or_else(|| format!("no verdict: {why}"))?;
                ensure!(why.contains(&format!("admission plugin {plugin}: ")), "{plugin} is not named: {why}");
                None
            }
            outcome => Some(Answer {
                refused: outcome.denial().map(|one| (one.message.clone(), one.reason.clone(), one.code)),
                warnings: review.warnings.clone(),
                object: if compared { comparable(review.object.as_ref()) } else { Json::Null },
            }),
        };
        ensure!(expected.is_none() == ask.no_verdict.is_some(), "there is a verdict: {:?}", review.outcome);
        within(SETTLE, "the same answer", || async {
            let answer = self.ask(cluster, &request, compared).await.map_err(|error| error.to_string())?;
            let text = answer.refused.as_ref().map(|(text, _, _)| text.as_str());
            let as_said = match (&ask.denied, text) {
                (None, None) => true,
                (Some(part), Some(text)) => text.contains(part.as_str()),
                _ => false,
            };
            let warned = match &ask.warned {
                Some(part) => answer.warnings.iter().any(|warning| warning.contains(part.as_str())),
                None => answer.warnings.is_empty(),
            };
            let same = expected.as_ref().is_none_or(|expected| {
                let object = expected.refused.is_some() || expected.object == answer.object;
                object && expected.refused == answer.refused && expected.warnings == answer.warnings
            });
            if same && as_said && warned {
                return Ok(());
            }
            Err(format!(
                "the API server: {answer:?}\n    offline: {expected:?}\n    as the case says: {as_said} {warned}"
            ))
        })
        .await?;
        Ok(())
    }

    async fn ask(
        &self,
        cluster: &Cluster,
        request: &Request,
        compared: bool,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let object = request.object.as_ref().or(request.old_object.as_ref()).cloned().unwrap_or_default();
        let named = path(&object);
        let (method, at) = match request.operation {
            Operation::Create => ("POST", named.rsplit_once('/').map_or("", |(collection, _)| collection)),
            Operation::Update => ("PUT", named.as_str()),
            _ => ("DELETE", named.as_str()),
        };
        let http = http::Request::builder()
            .method(method)
            .uri(format!("{at}?dryRun=All"))
            .header("content-type", "application/json")
            .header("impersonate-user", &request.user.name)
            .header("impersonate-group", "system:masters");
        let body = request.object.as_ref().map(Json::to_string).unwrap_or_default().into_bytes();
        let response = cluster.admin.send(http.body(Body::from(body))?).await?;
        let (parts, body) = response.into_parts();
        let body: Json = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        let warnings = parts.headers.get_all("warning").iter();
        let warnings = warnings.filter_map(|value| crate::admission::warning(value.as_bytes())).collect();
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        let refused = (!parts.status.is_success()).then(|| (text("message"), text("reason"), parts.status.as_u16()));
        Ok(Answer { refused, warnings, object: if compared { comparable(Some(&body)) } else { Json::Null } })
    }

    /// Other scenarios have no use for default classes and finalizers.
    async fn tear_down(&self, cluster: &Cluster) {
        for object in self.objects.iter().map(|object| self.whole(object)) {
            if object["metadata"]["finalizers"].is_array() {
                let _ = cluster.patch_at(&path(&object), &json!({"metadata": {"finalizers": null}})).await;
            }
            if object["metadata"]["namespace"].is_null() {
                let _ = cluster.answer("DELETE", &path(&object), "application/json", &json!({})).await;
            }
        }
        let path = format!("/api/v1/namespaces/{}", self.namespace());
        let _ = cluster.answer("DELETE", &path, "application/json", &json!({})).await;
    }
}

/// What plugins may change of a new object, without what is chosen anew each time.
fn comparable(object: Option<&Json>) -> Json {
    let Some(object) = object else { return Json::Null };
    let plugins = ["Pod", "PersistentVolumeClaim", "PersistentVolume", "Ingress", "Node"];
    if !plugins.contains(&object["kind"].as_str().unwrap_or_default()) {
        return Json::Null;
    }
    let metadata = &object["metadata"];
    let mut parts = json!({
        "spec": object["spec"], "labels": metadata["labels"], "annotations": metadata["annotations"],
        "finalizers": metadata["finalizers"],
    });
    if let Some(spec) = parts["spec"].as_object_mut() {
        spec.remove("podCIDR");
    }
    rename_tokens(&mut parts);
    parts
}

/// The name of the volume with a token ends in five random letters.
fn rename_tokens(value: &mut Json) {
    match value {
        Json::String(text) if text.starts_with("kube-api-access-") => "kube-api-access".clone_into(text),
        Json::Array(list) => list.iter_mut().for_each(rename_tokens),
        Json::Object(fields) => fields.values_mut().for_each(rename_tokens),
        _ => {}
    }
}

/// Where an object is.
fn path(object: &Json) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let api = if api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api_version}") };
    let offline = palisade_gate::cluster(Minor::V1_36);
    let resource = offline.kinds().by_kind(api_version, kind);
    let plural = resource.map_or("", |resource| resource.plural.as_str());
    match text("/metadata/namespace") {
        "" => format!("{api}/{plural}/{name}"),
        namespace => format!("{api}/namespaces/{namespace}/{plural}/{name}"),
    }
}

/// Creates an object; a pod as soon as its namespace has a service account.
async fn create(cluster: &Cluster, object: &Json) -> TestResult {
    let at = path(object);
    let (collection, _) = at.rsplit_once('/').unwrap_or_default();
    let last = eventually(&at, || async {
        match cluster.create_at(collection, object).await {
            palisade_tests::Verdict::Admitted | palisade_tests::Verdict::Refused(409, _) => Ok(None),
            // No time makes it valid.
            palisade_tests::Verdict::Refused(code, text) if code != 403 => Ok(Some(text)),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    last.map_or(Ok(()), |text| Err(format!("{at}: {text}").into()))
}

/// Writes the status that a controller would write.
async fn set_status(cluster: &Cluster, object: &Json) -> TestResult {
    let patch = json!({"status": object["status"]});
    match cluster.patch_at(&format!("{}/status", path(object)), &patch).await {
        palisade_tests::Verdict::Admitted => Ok(()),
        other => Err(format!("{}: {other:?}", path(object)).into()),
    }
}

/// RFC 7386.
fn merge(target: &mut Json, patch: &Json) {
    match (target, patch) {
        (Json::Object(target), Json::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key.clone()).or_insert(Json::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

//! Objects that are stored: changed, deleted, and freed of their finalizers. What the real API server says to that, by
//! itself and with policies that read both objects, compared with the offline verdicts on what it has stored.

use std::collections::BTreeMap;

use palisade_admission::{
    objects::NOT_SHOWN,
    requests::{Cluster as Offline, Operation, Outcome, Request, User},
};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, root};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::admission::{Answer, ask_server, collection};

crate::groups::scenarios! {
    stored_objects_are_judged_like_the_api_server: Oldest 30, Answers 40;
}

mod sweep;

const NAMESPACE: &str = "stored";

/// Whom no policy denies anything but what one would, and whom one policy tells what it saw.
const USERS: [&str; 2] = ["tester", "witness"];

#[derive(Deserialize)]
struct StoredCluster {
    definition: Json,
    objects: Vec<Json>,
}

/// A request for a stored object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// `Kind/name`
    object: String,
    #[serde(default, rename = "do")]
    operation: Option<String>,
    #[serde(default, rename = "sub")]
    subresource: String,
    /// By JSON pointers; null removes.
    #[serde(default)]
    set: BTreeMap<String, Json>,
    /// Why there is no verdict offline.
    #[serde(default)]
    unknown: Option<String>,
    /// Whether the answer depends on the minor of the API server's program, and not on the emulated one.
    #[serde(default)]
    program: bool,
}

/// Where objects of each kind are.
type Places = BTreeMap<String, String>;

pub(crate) async fn stored_objects_are_judged_like_the_api_server(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let minor = cluster.minor().await?;
    let directory = root().join("tests/apiserver/cases/stored");
    let read = |file: &str| std::fs::read_to_string(directory.join(file));
    let stored: StoredCluster = serde_saphyr::from_str(&read("cluster.yaml")?)?;
    let cases: Vec<Case> = serde_saphyr::from_str(&read("requests.yaml")?)?;
    let mut offline = palisade_gate::cluster(minor);
    offline.apply(stored.definition.clone()).map_err(|refused| format!("{refused:?}"))?;
    let places = set_up(cluster, &stored, &offline).await?;
    let policies = policies();
    for policy in &policies {
        let plural = format!("{}s", policy["kind"].as_str().unwrap_or_default().to_lowercase());
        let plural = plural.replace("policys", "policies");
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        ensure!(cluster.create_at(&path, policy).await == Verdict::Admitted, "{policy}");
        offline.apply(policy.clone()).map_err(|refused| format!("{policy}: {refused:?}"))?;
    }
    in_force(cluster, &places).await?;
    offline
        .apply(cluster.answer_to("GET", &format!("/api/v1/namespaces/{NAMESPACE}"), &Json::Null).await?)
        .map_err(|refused| format!("{refused:?}"))?;
    let emulates = cluster.program_minor().await? != minor;
    let mut counts = BTreeMap::<String, [usize; 2]>::new();
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| !(emulates && case.program)) {
        for user in USERS {
            let operation = case.operation.as_deref().unwrap_or("UPDATE");
            let kind = case.object.split('/').next().unwrap_or_default();
            let what = format!("{operation} {kind}{}", if case.subresource.is_empty() { "" } else { "/" });
            let count = counts.entry(format!("{what}{}", case.subresource)).or_default();
            match ask(cluster, &offline, &places, case, user, emulates).await {
                Ok(known) => count[usize::from(!known)] += 1,
                Err(error) => wrong
                    .push(format!("{what}{} {} {:?} as {user}:\n  {error}", case.subresource, case.object, case.set)),
            }
        }
    }
    for (what, [equal, unknown]) in &counts {
        println!("{what}: {equal} answered alike, {unknown} have no verdict");
    }
    let sum = |index: usize| counts.values().map(|count| count[index]).sum::<usize>();
    println!("{minor}: {} requests, {} answered alike, {} have no verdict", 2 * cases.len(), sum(0), sum(1));
    let swept = sweep::sweep(cluster, &offline, &places, &stored).await?;
    for policy in policies.iter().rev() {
        let name = policy["metadata"]["name"].as_str().unwrap_or_default();
        cluster.kubectl(&["delete", policy["kind"].as_str().unwrap_or_default(), name])?;
    }
    ensure!(wrong.is_empty(), "{} are answered differently:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(swept.is_empty(), "{} changes of one value get another verdict:\n{}", swept.len(), swept.join("\n"));
    Ok(())
}

/// Creates the stored objects.
async fn set_up(
    cluster: &Cluster,
    stored: &StoredCluster,
    offline: &Offline,
) -> Result<Places, Box<dyn std::error::Error + Send + Sync>> {
    cluster.create_namespace(NAMESPACE, &json!({}), &json!({})).await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    ensure!(cluster.create_at(definitions, &stored.definition).await == Verdict::Admitted, "the definition");
    let name = stored.definition["metadata"]["name"].as_str().unwrap_or_default();
    cluster.wait_established(&["crd", name])?;
    let mut places = BTreeMap::new();
    for object in &stored.objects {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let resource = offline.kinds().by_kind(text("apiVersion"), text("kind")).ok_or_else(|| format!("{object}"))?;
        let namespace = if resource.namespaced { NAMESPACE } else { "" };
        let collection = collection(&resource.group, &resource.version, &resource.plural, namespace, &resource.kind);
        places.insert(text("kind").to_owned(), collection.clone());
        let mut created = object.clone();
        let then = created["then"].take();
        if let Some(fields) = created.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        // A pod is refused until its namespace has a service account.
        eventually(&collection, || cluster.answer_to("POST", &collection, &created)).await?;
        let path = format!("{collection}/{name}");
        if !then["status"].is_null() {
            let patch = json!({"status": then["status"]});
            let kind = "application/merge-patch+json";
            cluster.answer("PATCH", &format!("{path}/status"), kind, &patch).await?;
        }
        if then["delete"] == true {
            cluster.answer_to("DELETE", &path, &json!({})).await?;
        }
    }
    Ok(places)
}

/// Sends a request, until nothing else changes the stored object meanwhile. Returns whether there is a verdict.
async fn ask(
    cluster: &Cluster,
    offline: &Offline,
    places: &Places,
    case: &Case,
    user: &str,
    emulates: bool,
) -> Result<bool, String> {
    let (kind, name) = case.object.split_once('/').ok_or("no object")?;
    let path = format!("{}/{name}", places.get(kind).ok_or("no such kind")?);
    let get = |path: String| async move { cluster.answer_to("GET", &path, &Json::Null).await };
    eventually("an answer while nothing changes", || async {
        let stored = get(path.clone()).await?;
        let shown = if case.subresource == "scale" { get(format!("{path}/scale")).await? } else { stored.clone() };
        let request = match request(offline, case, &stored, &shown, user) {
            Ok(request) => request,
            Err(error) => return Ok(Err(error)),
        };
        let found = ask_server(cluster, &request).await.map_err(|error| error.to_string())?;
        if get(path.clone()).await? != stored {
            return Err("it changed".to_owned());
        }
        Ok(compare(offline, case, &request, &found, emulates))
    })
    .await?
}

fn request(offline: &Offline, case: &Case, stored: &Json, shown: &Json, user: &str) -> Result<Request, String> {
    let operation =
        case.operation.as_deref().map_or(Some(Operation::Update), Operation::parse).ok_or("no operation")?;
    let mut object = shown.clone();
    for (pointer, value) in &case.set {
        put(&mut object, pointer, value)?;
    }
    let old = (operation != Operation::Create).then_some(stored);
    let mut request = offline.request(operation, &case.subresource, &object, old)?;
    let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    request.user = User { name: user.to_owned(), groups, ..User::default() };
    request.dry_run = true;
    request.options = Request::default_options(operation, true);
    Ok(request)
}

/// Sets the value at a place; null removes it.
fn put(object: &mut Json, pointer: &str, value: &Json) -> Result<(), String> {
    let (parent, key) = pointer.rsplit_once('/').ok_or("no pointer")?;
    let key = key.replace("~1", "/").replace("~0", "~");
    if object.pointer(parent).is_none_or(Json::is_null) {
        put(object, parent, &json!({}))?;
    }
    match (object.pointer_mut(parent), value) {
        (Some(Json::Object(fields)), Json::Null) => drop(fields.remove(&key)),
        (Some(Json::Object(fields)), value) => drop(fields.insert(key, value.clone())),
        (Some(Json::Array(list)), value) => {
            let at: usize = key.parse().map_err(|_| format!("{pointer}: no index"))?;
            match value {
                Json::Null => drop(list.remove(at)),
                value if at == list.len() => list.push(value.clone()),
                value => list[at] = value.clone(),
            }
        }
        _ => return Err(format!("{pointer} is in nothing")),
    }
    Ok(())
}

/// Whether there is a verdict offline, which is then the server's.
fn compare(offline: &Offline, case: &Case, request: &Request, found: &Answer, emulates: bool) -> Result<bool, String> {
    let review = offline.admit(request);
    let refused = match &review.outcome {
        Outcome::NoVerdict(why) => {
            return match &case.unknown {
                Some(part) if why.contains(part.as_str()) => Ok(false),
                _ => Err(format!("no verdict: {why}\n  the API server: {found:?}")),
            };
        }
        Outcome::Allowed => None,
        Outcome::Denied(denials) => denials.first().map(|one| (one.message.clone(), one.reason.clone(), one.code)),
    };
    let same = match (&refused, &found.refused) {
        (None, None) => true,
        (Some((said, reason, code)), Some((text, wanted, status))) => {
            let words = if emulates { is_like_but_for_values } else { is_like };
            words(said, text) && (reason, code) == (wanted, status)
        }
        _ => false,
    };
    if !same || review.warnings != found.warnings {
        return Err(format!("offline: {refused:?} {:?}\n  the API server: {found:?}", review.warnings));
    }
    if case.unknown.is_some() {
        return Err("there is a verdict".to_owned());
    }
    Ok(true)
}

/// Whether a text is another one, but for what that does not show.
pub(crate) fn is_like(said: &str, text: &str) -> bool {
    let parts: Vec<&str> = said.split(NOT_SHOWN).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return said == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// [`is_like`], whatever values are shown: an API server that emulates another minor shows them as its own one does.
fn is_like_but_for_values(said: &str, text: &str) -> bool {
    const SHOWN: &str = "Invalid value: ";
    let (mut ours, mut theirs) = (said.split(SHOWN), text.split(SHOWN));
    if said.matches(SHOWN).count() != text.matches(SHOWN).count() {
        return false;
    }
    let first = ours.next().zip(theirs.next()).is_some_and(|(ours, theirs)| is_like(ours, theirs));
    first
        && ours.zip(theirs).all(|(ours, theirs)| theirs.ends_with(ours.split_once(": ").map_or(ours, |(_, rest)| rest)))
}

/// What a policy sees of an object, as text.
fn seen(of: &str) -> String {
    let text = |path: &str| {
        let mut guard = String::new();
        let mut at = of.to_owned();
        for key in path.split('.') {
            at = format!("{at}.{key}");
            guard = if guard.is_empty() { format!("has({at})") } else { format!("{guard} && has({at})") };
        }
        format!("({guard} ? string({at}) : '-')")
    };
    let mut parts = vec![];
    for path in [
        "metadata.generation",
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
        "metadata.labels.step",
        "spec.replicas",
        "spec.size",
        "spec.volumeName",
        "spec.hostNetwork",
        "spec.color",
        "status.phase",
        "status.replicas",
        "status.readyReplicas",
        "status.qosClass",
        "status.selector",
    ] {
        parts.push(format!("'{} ' + {}", path.rsplit('.').next().unwrap_or_default(), text(path)));
    }
    let has = |key: &str| format!("string(has({of}.metadata.{key}))");
    parts.push(format!("'uid ' + {} + ' created ' + {}", has("uid"), has("creationTimestamp")));
    parts.push(format!("(has({of}.metadata.finalizers) ? {of}.metadata.finalizers.join(' ') : 'free')"));
    parts.push(format!("(has({of}.status) ? string(size(dyn({of}.status))) : 'none')"));
    format!("({of} == null ? 'nothing' : {})", parts.join(" + ', ' + "))
}

fn policies() -> Vec<Json> {
    let version = "admissionregistration.k8s.io/v1";
    let everything = json!({"resourceRules": [{
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["*/*"], "scope": "*",
    }]});
    let by = |user: &str| json!([{"name": "by", "expression": format!("request.userInfo.username == '{user}'")}]);
    let policy = |name: &str, user: &str, validations: Json| {
        json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
            "matchConstraints": everything, "matchConditions": by(user), "validations": validations,
        }})
    };
    let said = format!(
        "request.operation + ' ' + request.name + ': ' + {} + ' was ' + {} + (object != null && oldObject != null && \
         has(object.metadata.uid) && has(oldObject.metadata.uid) ? ' same ' + string(object.metadata.uid == \
         oldObject.metadata.uid) + string(object.metadata.creationTimestamp == oldObject.metadata.creationTimestamp) : '')",
        seen("object"),
        seen("oldObject"),
    );
    let witness = policy("stored-witness", USERS[1], json!([{"expression": "false", "messageExpression": said}]));
    let rules = json!([
        {
            "expression": "request.operation != 'DELETE' || request.resource.resource != 'persistentvolumeclaims' || \
                           oldObject.status.phase != 'Bound'",
            "message": "a bound claim stays",
        },
        {
            "expression": "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp) || \
                           object.metadata.generation == oldObject.metadata.generation",
            "message": "what ends does not change",
        },
        {
            "expression": "request.operation != 'UPDATE' || !has(object.status) || !has(object.status.phase) || \
                           object.status.phase != 'Succeeded'",
            "message": "nothing succeeds",
        },
    ]);
    let tester = policy("stored-rules", USERS[0], rules);
    let binding = |name: &str| {
        json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {
            "policyName": name, "validationActions": ["Deny"],
        }})
    };
    vec![tester, witness, binding("stored-rules"), binding("stored-witness")]
}

/// Waits until both policies deny.
async fn in_force(cluster: &Cluster, places: &Places) -> TestResult {
    for (user, path) in [
        (USERS[1], format!("{}/fixed", places["ConfigMap"])),
        (USERS[0], format!("{}/bound", places["PersistentVolumeClaim"])),
    ] {
        eventually(&format!("a denial of {user}"), || async {
            let http = http::Request::delete(format!("{path}?dryRun=All"))
                .header("impersonate-user", user)
                .header("impersonate-group", "system:masters")
                .body(Vec::new());
            let answer = cluster.admin.request::<Json>(http.map_err(|error| error.to_string())?).await;
            match Verdict::of(answer) {
                Verdict::Denied(_) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    }
    Ok(())
}

//! The library of policies: the requests of its suites on the real API server and offline, compared in all that a client
//! sees.

use std::{fs, path::Path, sync::Arc, time::Duration};

use palisade_admission::{
    objects::{Kinds, NOT_SHOWN},
    requests::{Outcome, Plugins, Request, Review},
};
use palisade_cel::Minor;
use palisade_kube_json::json::Change as _;
use palisade_manifest::Source;
use palisade_policy_test::{Files, Server, Suite, load};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, root, within};
use serde_json::{Value as Json, json};

use crate::admission::{Answer, ask_server, collection};

crate::groups::scenarios! {
    library_policies_answer_like_the_api_server: Answers 70;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long a policy that was written may take to be in force.
const SETTLE: Duration = Duration::from_mins(1);
/// How long to wait for the same answer once the policy is in force: an API server that is busy answers with an error.
const IN_FORCE: Duration = Duration::from_secs(5);

/// A policy of the library, with what its suite asks.
struct Policy {
    name: String,
    /// What is there before the policy: parameters, and what requests name.
    before: Vec<Json>,
    /// The policy, and its binding as it is once it denies.
    objects: Vec<Json>,
    suites: Vec<Suite>,
}

/// A request of a suite, as it is sent to both.
struct Asked {
    name: String,
    request: Request,
    review: Review,
}

pub(crate) async fn library_policies_answer_like_the_api_server(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let minor = cluster.minor().await?;
    // An API server that emulates another minor warns of deprecated fields as its program does.
    let emulates = cluster.program_minor().await? != minor;
    let kinds = Kinds::builtin(minor);
    let library = root().join("policies");
    let definition = read(&library.join("parameters.crd.yaml"))?;
    for object in &definition {
        create(cluster, &kinds, object).await?;
    }
    cluster.wait_established(&["crd", "--all"])?;
    cluster.create_namespace("shop", &json!({}), &json!({})).await?;
    let mut directories: Vec<_> = fs::read_dir(&library)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    directories.retain(|path| path.is_dir());
    directories.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for directory in &directories {
        let policy = Policy::read(directory, minor)?;
        let (compared, different) = policy.compare(cluster, &kinds, minor, emulates).await?;
        ensure!(compared > 1, "{}: nothing is asked", policy.name);
        count += compared;
        wrong.extend(different);
    }
    println!("{} policies, {count} requests, {} answered alike", directories.len(), count - wrong.len());
    cluster.delete_namespace("shop").await?;
    for object in &definition {
        remove(cluster, &kinds, object).await?;
    }
    ensure!(wrong.is_empty(), "{} of {count} are answered differently:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

impl Policy {
    fn read(directory: &Path, minor: Minor) -> Result<Self> {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut objects = read(&directory.join("policy.yaml"))?;
        for mut binding in read(&directory.join("binding.yaml"))? {
            *binding.at_mut(&["spec", "validationActions"]) = json!(["Deny"]);
            objects.push(binding);
        }
        let place = directory.join("palisade-test.yaml");
        let source = Arc::new(Source::new(&place.to_string_lossy(), fs::read_to_string(&place)?));
        let server = Server { minor, plugins: Plugins::default(), extension: None };
        let suites = load(&source, &Disk, &server).map_err(|problems| format!("{name}: {problems:?}"))?;
        let mut before = Vec::new();
        for suite in read(&place)? {
            for resource in suite["resources"].as_array().into_iter().flatten() {
                match resource.as_str() {
                    // It is there for all of them.
                    Some(file) if file.ends_with(".crd.yaml") => {}
                    Some(file) => before.extend(read(&directory.join(file))?),
                    None => before.push(resource.clone()),
                }
            }
        }
        Ok(Self { name, before, objects, suites })
    }

    /// How many requests were compared, and those with different answers.
    async fn compare(
        &self,
        cluster: &Cluster,
        kinds: &Kinds,
        minor: Minor,
        emulates: bool,
    ) -> Result<(usize, Vec<String>)> {
        let mut asked = Vec::new();
        let mut stored = Vec::new();
        for object in &self.before {
            if create(cluster, kinds, object).await? {
                stored.push(object.clone());
            }
        }
        for suite in &self.suites {
            // A case for another minor is asked there.
            for (index, case) in suite.cases.iter().enumerate().filter(|(_, case)| suite.minor(case) == minor) {
                let mut request = case.request().clone();
                // Who may do everything, so that only the policies judge.
                request.user.groups = vec!["system:masters".to_owned()];
                rename(&mut request, &self.name, index);
                if let Some(old) = request.old_object.take() {
                    let (created, found) = store(cluster, kinds, &request, &old).await?;
                    stored.extend(created);
                    if let Some(object) = &mut request.object {
                        let mut changed = found.clone();
                        carry(&old, object, &mut changed);
                        *object = changed;
                        // A controller writes the token of an account into its Secret meanwhile.
                        if let Some(metadata) = object["metadata"].as_object_mut().filter(|_| old["kind"] == "Secret") {
                            metadata.remove("resourceVersion");
                        }
                    }
                    request.old_object = Some(found);
                }
                let review = suite.ask(case, &request);
                asked.push(Asked { name: format!("{}: {}", self.name, case.name), request, review });
            }
        }
        for object in &self.objects {
            create(cluster, kinds, object).await?;
        }
        // Once one is denied, the policy is in force, and what is admitted is admitted by it.
        asked.sort_by_key(|one| one.review.outcome.is_allowed());
        ensure!(asked.first().is_some_and(|one| !one.review.outcome.is_allowed()), "{}: nothing is denied", self.name);
        let mut wrong = Vec::new();
        let mut limit = SETTLE;
        for one in &asked {
            if let Err(error) = one.compare(cluster, limit, emulates).await {
                println!("{}: {error}", one.name);
                wrong.push(format!("{}: {error}", one.name));
            }
            limit = IN_FORCE;
        }
        for object in self.objects.iter().rev() {
            remove(cluster, kinds, object).await?;
        }
        asked[0].no_longer_denied(cluster).await?;
        for object in stored.iter().rev() {
            remove(cluster, kinds, object).await?;
        }
        Ok((asked.len(), wrong))
    }
}

impl Asked {
    /// A policy that is deleted still denies until the API server reads its policies anew; what is asked next, by this
    /// scenario or by another, must not be its business.
    async fn no_longer_denied(&self, cluster: &Cluster) -> Result<()> {
        within(SETTLE, "the policy to be out of force", || async {
            let answer = ask_server(cluster, &self.request).await.map_err(|error| error.to_string())?;
            match answer.refused {
                Some((message, ..)) if message.contains("ValidatingAdmissionPolicy") => Err(message),
                _ => Ok(()),
            }
        })
        .await?;
        Ok(())
    }

    async fn compare(&self, cluster: &Cluster, limit: Duration, emulated: bool) -> Result<()> {
        let refused = match &self.review.outcome {
            Outcome::Allowed => None,
            Outcome::Denied(denials) => {
                denials.first().map(|denial| (denial.message.clone(), denial.reason.clone(), denial.code))
            }
            Outcome::NoVerdict(why) => return Err(format!("no verdict: {why}").into()),
        };
        let expected = Answer { refused, warnings: self.review.warnings.clone() };
        // The API server ends some of its own answers with Go's comparison of two values.
        let shown =
            expected.refused.as_ref().and_then(|(text, ..)| text.split_once(NOT_SHOWN)).map(|(text, _)| text.len());
        within(limit, "the same answer", || async {
            let mut answer = ask_server(cluster, &self.request).await.map_err(|error| error.to_string())?;
            let of_policy = |warning: &String| warning.starts_with("Validation failed for");
            if emulated {
                answer.warnings.retain(|warning| of_policy(warning) || expected.warnings.contains(warning));
            }
            if let (Some(shown), Some((text, ..))) = (shown, &mut answer.refused)
                && text.len() > shown
            {
                text.truncate(shown);
                text.push_str(NOT_SHOWN);
            }
            if answer == expected {
                Ok(())
            } else {
                Err(format!("the API server: {answer:?}\n    offline: {expected:?}"))
            }
        })
        .await?;
        Ok(())
    }
}

/// Gives a request that is about something stored an object of its own.
fn rename(request: &mut Request, policy: &str, index: usize) {
    if request.old_object.is_none() || request.name == "kube-system" {
        return;
    }
    // A definition has its name in several places. Objects of another policy's requests may still be terminating.
    let (before, after) = if request.kind.kind == "CustomResourceDefinition" {
        ("widget", format!("widget{index}"))
    } else {
        (request.name.as_str(), format!("{}-{policy}-{index}", request.name))
    };
    let name = request.name.replacen(before, &after, 1);
    for object in [&mut request.object, &mut request.old_object].into_iter().flatten() {
        if request.kind.kind == "CustomResourceDefinition" {
            let text = object["spec"].to_string().replace(before, &after).replace("Widget", &format!("Widget{index}"));
            *object.at_mut(&["spec"]) = serde_json::from_str(&text).unwrap_or_default();
        }
        *object.at_mut(&["metadata", "name"]) = name.clone().into();
    }
    if request.kind.kind == "Namespace" {
        request.namespace.clone_from(&name);
    }
    request.name = name;
}

/// Stores what a request changes or deletes. Returns what was created, and what the API server has stored.
async fn store(cluster: &Cluster, kinds: &Kinds, request: &Request, old: &Json) -> Result<(Option<Json>, Json)> {
    let ids = &request.resource;
    let mut parent = old.clone();
    if request.subresource == "scale" {
        let text = json!({"matchLabels": {"app": "web"}});
        let pod =
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
        parent = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": old["metadata"],
            "spec": {"replicas": old["spec"]["replicas"], "selector": text, "template": pod},
        });
    }
    let created = create(cluster, kinds, &parent).await?;
    let collection = collection(&ids.group, &ids.version, &ids.resource, &request.namespace, &request.kind.kind);
    if request.kind.kind == "CustomResourceDefinition" {
        // Until then its status is written, and an update conflicts with that.
        cluster.wait_established(&["crd", &request.name])?;
    }
    // What is created has no status.
    if let Some(status) = old.get("status").filter(|_| request.subresource.is_empty()) {
        let written =
            cluster.patch_at(&format!("{collection}/{}/status", request.name), &json!({"status": status})).await;
        ensure!(written == Verdict::Admitted, "the status of {}: {written:?}", request.name);
    }
    // The other subresources have the object itself.
    let part = if request.subresource == "scale" { "/scale" } else { "" };
    let found = cluster.answer_to("GET", &format!("{collection}/{}{part}", request.name), &json!({})).await?;
    Ok((created.then_some(parent), found))
}

/// Makes the change from `old` to `new` in what is stored.
fn carry(old: &Json, new: &Json, stored: &mut Json) {
    match (old, new, stored) {
        (Json::Object(old), Json::Object(new), Json::Object(stored)) => {
            stored.retain(|key, _| new.contains_key(key) || !old.contains_key(key));
            for (key, value) in new {
                match (old.get(key), stored.get_mut(key)) {
                    (Some(before), Some(_)) if before == value => {}
                    (Some(before), Some(stored)) => carry(before, value, stored),
                    _ => drop(stored.insert(key.clone(), value.clone())),
                }
            }
        }
        (Json::Array(old), Json::Array(new), Json::Array(stored))
            if old.len() == new.len() && new.len() == stored.len() =>
        {
            for ((old, new), stored) in old.iter().zip(new).zip(stored) {
                carry(old, new, stored);
            }
        }
        (_, new, stored) => *stored = new.clone(),
    }
}

/// The objects of a file.
fn read(path: &Path) -> Result<Vec<Json>> {
    let source = Arc::new(Source::new(&path.to_string_lossy(), fs::read_to_string(path)?));
    let objects = palisade_manifest::objects(&source).map_err(|problem| problem.to_string())?;
    objects.iter().map(|object| object.json().map_err(|problem| format!("{problem:?}").into())).collect()
}

/// The collection of an object, in the namespace of the suites if it names none.
fn path(kinds: &Kinds, object: &Json) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = match kinds.by_kind(api_version, kind) {
        Some(resource) => resource.plural.clone(),
        None => kind.to_lowercase(),
    };
    collection(group, version, &plural, text("/metadata/namespace"), kind)
}

/// Creates an object, unless it is there.
async fn create(cluster: &Cluster, kinds: &Kinds, object: &Json) -> Result<bool> {
    let path = path(kinds, object);
    let created = eventually(&format!("{} in {path}", object["metadata"]["name"]), || async {
        match cluster.create_at(&path, object).await {
            Verdict::Admitted => Ok(true),
            Verdict::Refused(409, _) => Ok(false),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(created)
}

async fn remove(cluster: &Cluster, kinds: &Kinds, object: &Json) -> TestResult {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
    let path = format!("{}/{name}", path(kinds, object));
    // A policy that is gone still denies until the API server has read that it is.
    eventually(&format!("{path} to go"), || cluster.answer_to("DELETE", &path, &options)).await?;
    Ok(())
}

/// The files of suites.
struct Disk;

impl Files for Disk {
    fn read(&self, suite: &str, path: &str) -> std::result::Result<Arc<Source>, String> {
        let path = Path::new(suite).parent().unwrap_or(Path::new("")).join(path);
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        Ok(Arc::new(Source::new(&path.to_string_lossy(), text)))
    }

    fn now(&self) -> k8s_openapi::jiff::Timestamp {
        k8s_openapi::jiff::Timestamp::now()
    }
}

//! Each engine, the API server with a MutatingAdmissionPolicy or the webhook, mutates pods as the patch does.
//!
//! Each pod is also sent to a namespace without mutation. The answer there is the API server's own form of the pod.
//! With the patch applied, it must equal, byte for byte, the answer from the namespace with mutation. So this shows
//! that policy and webhook do the same, though on servers of different versions.

mod additions;
mod case;
mod pods;

use case::{Case, LABEL};
use futures::{StreamExt, stream};
use palisade_api::{Published, names};
use palisade_kube_json::pod;
use palisade_mutation::{MutationRequest, PodOperation};
use palisade_tests::{
    Cluster, TestResult, Verdict, Webhook, ensure, eventually, fail_open_count, remove_unserved, root,
};
use serde_json::{Value as Json, json};

use crate::webhook::registered;

crate::groups::scenarios! {
    native_policy_mutates_like_the_patch: Judged 130 needs NATIVE_MUTATION;
    native_policy_mutates_corpus_pods_like_the_patch: Others needs NATIVE_MUTATION if "PALISADE_LARGE";
    beta_policy_mutates_like_the_patch: Beta 10 needs BETA_MUTATION;
    webhook_mutates_like_the_patch: Webhooks 10;
    additions_reach_late_containers_once: Alone 30 needs NATIVE_MUTATION;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const JSON: &str = "application/json";
const CONTROL: &str = "mutation-control";
/// How many pods are asked about at the same time.
const AT_ONCE: usize = 6;

/// Who sets defaults.
#[derive(Clone, Copy)]
enum Engine {
    /// The API server, by policies of this version of `admissionregistration.k8s.io`.
    Policy(&'static str),
    /// The webhook, for the profiles themselves.
    Webhook,
}

fn pods_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods?dryRun=All")
}

/// What of a pod a mutation could change.
fn seen(pod: &Json) -> Json {
    json!({
        "spec": pod["spec"], "labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"],
    })
}

/// The fields that a profile may overwrite: images, and the fields that `injected` and `injected-all` set or remove.
fn overwritten(profile: &str) -> &'static [&'static str] {
    match profile {
        "injected" => &["image", "workingDir"],
        "injected-all" => &["image", "env[]", "workingDir"],
        _ => &["image"],
    }
}

/// The first thing that is set in `before` and something else in `after`, besides these. A list may have become longer.
fn changed(path: &str, before: &Json, after: &Json, besides: &[&str]) -> Option<String> {
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => before.iter().find_map(|(key, value)| {
            changed(&format!("{path}.{key}"), value, after.get(key).unwrap_or(&Json::Null), besides)
        }),
        (Json::Array(before), Json::Array(after)) if before.len() <= after.len() => {
            before.iter().zip(after).find_map(|(before, after)| changed(&format!("{path}[]"), before, after, besides))
        }
        _ if before == after || path.split('.').any(|step| besides.contains(&step)) => None,
        _ => Some(format!("{path} was {before} and is {after}")),
    }
}

pub(crate) async fn native_policy_mutates_like_the_patch(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let cases = install(cluster, Engine::Policy("v1")).await?;
    let tally = compare(cluster, &cases, Pods::Own).await?;
    tally.report("native policy", &cases);
    clean(cluster, Engine::Policy("v1")).await?;
    tally.nothing_is_wrong()
}

pub(crate) async fn native_policy_mutates_corpus_pods_like_the_patch(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let cases = install(cluster, Engine::Policy("v1")).await?;
    let tally = compare(cluster, &cases, Pods::OfOthers).await?;
    tally.report("native policy", &cases);
    clean(cluster, Engine::Policy("v1")).await?;
    tally.nothing_is_wrong()
}

pub(crate) async fn additions_reach_late_containers_once(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    Box::pin(additions::reach_late_containers_once(cluster)).await
}

pub(crate) async fn beta_policy_mutates_like_the_patch(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let cases = install(cluster, Engine::Policy("v1beta1")).await?;
    let tally = compare(cluster, &cases, Pods::Own).await?;
    tally.report("native policy of v1beta1", &cases);
    clean(cluster, Engine::Policy("v1beta1")).await?;
    tally.nothing_is_wrong()
}

pub(crate) async fn webhook_mutates_like_the_patch(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    let cases = install(cluster, Engine::Webhook).await?;
    let tally = compare(cluster, &cases, Pods::Own).await?;
    tally.report("webhook", &cases);
    let mutated = webhook.metric("palisade_webhook_requests_total{result=\"mutated\"}").await?;
    let mut unasked = 0.0;
    for case in &cases {
        unasked += fail_open_count(cluster, &case.compiled.profile).await?;
    }
    println!("webhook: it defaulted {mutated} times, and the API server could not ask it {unasked} times");
    clean(cluster, Engine::Webhook).await?;
    registered(&webhook, 0.0).await?;
    webhook.stop().await?;
    tally.nothing_is_wrong()?;
    ensure!(mutated > 1000.0, "it defaulted {mutated} times");
    ensure!(unasked < 0.5, "the API server could not ask {unasked} times");
    Ok(())
}

fn written() -> Result<Json> {
    let text = std::fs::read_to_string(root().join("tests/apiserver/tests/mutation-cases.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// Puts the profiles of the cases in force.
async fn install(cluster: &Cluster, engine: Engine) -> Result<Vec<Case>> {
    let written = written()?;
    let profiles = written["profiles"].as_object().ok_or("no profiles")?;
    let cases: Vec<_> = profiles.iter().map(|(name, spec)| Case::new(name, spec)).collect::<Result<_>>()?;
    cluster.create_namespace(CONTROL, &json!({}), &json!({})).await?;
    ensure!(cluster.create_pod(CONTROL, &pod::minimal("debugged")).await == Verdict::Admitted, "no pod to debug");
    for case in &cases {
        case.install(cluster, engine).await?;
    }
    if let Engine::Webhook = engine {
        register(cluster, &cases).await?;
    }
    for case in &cases {
        case.in_force(cluster).await?;
    }
    Ok(cases)
}

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/palisade-webhook";

/// Registers the webhook for these cases, as the controller does.
async fn register(cluster: &Cluster, cases: &[Case]) -> TestResult {
    let path = format!("/api/v1/namespaces/{}/configmaps/{}", names::OPERATOR_NAMESPACE, names::WEBHOOK_CA);
    let published = eventually("what the webhook says of itself", || async {
        let config = cluster.answer_to("GET", &path, &json!({})).await?;
        let data = serde_json::from_value(config["data"].clone()).unwrap_or_default();
        Published::read(&data).ok_or_else(|| "nothing".to_owned())
    })
    .await?;
    let mut registration = cluster.answer_to("GET", REGISTRATION, &json!({})).await?;
    registration["webhooks"] = cases.iter().map(|case| case.entry(&published)).collect::<Result<_>>()?;
    cluster.answer_to("PUT", REGISTRATION, &registration).await?;
    Ok(())
}

/// Removes what [`install`] has made, but the namespaces.
async fn clean(cluster: &Cluster, engine: Engine) -> TestResult {
    let mutating: &[&str] = match engine {
        Engine::Policy(_) => &["mutatingadmissionpolicybindings", "mutatingadmissionpolicies"],
        Engine::Webhook => {
            cluster.patch_at(REGISTRATION, &json!({"webhooks": null})).await;
            &["controllerrevisions"]
        }
    };
    for kind in mutating.iter().chain(&["validatingadmissionpolicybindings", "validatingadmissionpolicies"]) {
        cluster.kubectl(&["delete", kind, "--all-namespaces", &format!("--selector={LABEL}=mutation")])?;
    }
    Ok(())
}

/// What came of the pods.
#[derive(Default)]
struct Tally {
    own: usize,
    third_party: usize,
    /// Refused by the API server wherever they are, which only those of others may be.
    invalid: usize,
    compared: usize,
    denied: usize,
    ephemeral: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn report(&self, what: &str, cases: &[Case]) {
        let Self { own, third_party, invalid, compared, denied, ephemeral, wrong } = self;
        println!(
            "{what}: {own} own pods and {third_party} of others ({invalid} refused by API validation alone), {} \
             profiles: {compared} byte-equal, of which {denied} were denied afterwards; {ephemeral} ephemeral containers \
             byte-equal; {} wrong",
            cases.len(),
            wrong.len()
        );
    }

    fn nothing_is_wrong(&self) -> TestResult {
        let Self { wrong, .. } = self;
        ensure!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
        ensure!(self.compared > 500 && self.denied > 0 && self.ephemeral > 0, "too little was compared");
        Ok(())
    }
}

/// The collection that pods of others are from.
pub(crate) fn others() -> palisade_needs::Need {
    palisade_needs::corpus(&root(), pods::INDEX)
}

/// Which pods are compared.
#[derive(Clone, Copy)]
enum Pods {
    /// Those of the cases.
    Own,
    /// Those of other projects.
    OfOthers,
}

/// Asks about pods in the namespaces of each case.
async fn compare(cluster: &Cluster, cases: &[Case], pods: Pods) -> Result<Tally> {
    let (pods, mut tally) = match pods {
        Pods::Own => {
            let pods: Vec<_> = written()?["pods"].as_array().ok_or("no pods")?.iter().map(pods::own).collect();
            let own = pods.len();
            (pods, Tally { own, ..Tally::default() })
        }
        Pods::OfOthers => {
            let pods = pods::third_party()?;
            let third_party = pods.len();
            (pods, Tally { third_party, ..Tally::default() })
        }
    };
    let mut answers = stream::iter(pods.iter().enumerate())
        .map(|(index, pod)| async move { (index, everywhere(cluster, cases, pod).await) })
        .buffer_unordered(AT_ONCE);
    while let Some((index, answer)) = answers.next().await {
        match answer {
            Ok(found) => {
                for (case, found) in cases.iter().zip(found) {
                    match found {
                        Ok(denied) => {
                            tally.compared += 1;
                            tally.denied += usize::from(denied);
                        }
                        Err(error) => tally.wrong.push(format!("{}: pod {index}: {error}", case.compiled.profile)),
                    }
                }
            }
            Err(error) if index < tally.own => tally.wrong.push(format!("pod {index}: {error}")),
            Err(_) => tally.invalid += 1,
        }
    }
    drop(answers);
    ephemeral(cluster, cases, &mut tally).await?;
    Ok(tally)
}

/// What came of a pod in each case.
///
/// # Errors
/// It is refused where nothing sets defaults or judges.
async fn everywhere(cluster: &Cluster, cases: &[Case], pod: &Json) -> Result<Vec<Result<bool>>> {
    // The API server's own form of the pod, before any engine mutates it.
    let control = cluster.answer("POST", &pods_of(CONTROL), JSON, pod).await?;
    let mut found = Vec::new();
    for case in cases {
        found.push(same(cluster, case, pod, &control).await);
    }
    Ok(found)
}

/// The spec of a mutated pod without the init containers that it has in addition.
fn own_containers(before: &Json, spec: &Json) -> Json {
    let of = |spec: &Json| spec["initContainers"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = of(&before["spec"]).iter().map(|one| one["name"].clone()).collect();
    let mut containers = of(spec);
    containers.retain(|one| names.contains(&one["name"]));
    let mut spec = spec.clone();
    match spec.as_object_mut() {
        Some(fields) if containers.is_empty() => drop(fields.remove("initContainers")),
        _ => spec["initContainers"] = containers.into(),
    }
    spec
}

/// Asks about a pod where a profile sets defaults, and where it judges, too; whether it is denied there.
async fn same(cluster: &Cluster, case: &Case, pod: &Json, control: &Json) -> Result<bool> {
    let mut asked = control.clone();
    asked["metadata"] = json!({"name": pod["metadata"]["name"]});
    for field in ["labels", "annotations"] {
        if let Some(set) = control["metadata"].get(field) {
            asked["metadata"][field] = set.clone();
        }
    }
    // An API server removes fields that it does not serve after mutation. This one decides about a default.
    if let Some(host_users) = pod["spec"].get("hostUsers") {
        asked["spec"]["hostUsers"] = host_users.clone();
    }
    let mut expected = case.patched(&MutationRequest::create(&case.mutated, &asked))?;
    remove_unserved(&mut expected, cluster.served().await?);
    if own_containers(control, &expected["spec"]) != expected["spec"] {
        // The API server sets fields of added containers.
        expected["spec"] = cluster.answer("POST", &pods_of(CONTROL), JSON, &expected).await?["spec"].clone();
    }
    let answer = cluster.answer("POST", &pods_of(&case.mutated), JSON, pod).await?;
    let (found, wanted) = (seen(&answer).to_string(), seen(&expected).to_string());
    ensure!(found == wanted, "what was defaulted and the patch differ:\n  {found}\n  {wanted}");
    if let Some(changed) = changed(
        "spec",
        &control["spec"],
        &own_containers(control, &answer["spec"]),
        overwritten(&case.compiled.profile),
    ) {
        return Err(changed.into());
    }
    // Defaulted once more, it is as it was.
    let mut again = pod.clone();
    again["spec"] = answer["spec"].clone();
    let again = cluster.answer("POST", &pods_of(&case.mutated), JSON, &again).await?;
    ensure!(again["spec"] == answer["spec"], "defaulted twice it is {}", again["spec"]);
    // The API server judges the mutated pod.
    let denied = case.denies(&expected)?;
    let verdict = Verdict::of(cluster.answer("POST", &pods_of(&case.judged), JSON, pod).await);
    ensure!(
        if denied { verdict.denial().is_some() } else { verdict == Verdict::Admitted },
        "expected to be denied: {denied}, and found {verdict:?}"
    );
    Ok(denied)
}

/// Ephemeral containers of pods that were there before.
async fn ephemeral(cluster: &Cluster, cases: &[Case], tally: &mut Tally) -> TestResult {
    let containers = [
        json!({"name": "a", "image": "nginx"}),
        json!({"name": "a", "image": "quay.io/a/b:1", "securityContext": {"runAsUser": 7, "runAsNonRoot": true}}),
        json!({"name": "a", "image": "Nginx", "securityContext": {"privileged": true}}),
        json!({"name": "a", "image": "ghcr.io/a", "securityContext": {"capabilities": {"add": ["NET_RAW"]}}}),
        json!({"name": "a", "image": "x", "securityContext": {"seccompProfile": {"type": "Unconfined"}, "runAsUser": 0}}),
    ];
    for container in &containers {
        let patch = json!({"spec": {"ephemeralContainers": [container]}});
        let path =
            |namespace: &str| format!("/api/v1/namespaces/{namespace}/pods/debugged/ephemeralcontainers?dryRun=All");
        let ask = |namespace: String| async move {
            cluster.answer("PATCH", &path(&namespace), "application/strategic-merge-patch+json", &patch).await
        };
        let control = ask.clone()(CONTROL.to_owned()).await?;
        for case in cases {
            let old = pod::minimal("debugged");
            let asked = MutationRequest {
                operation: PodOperation::Update,
                subresource: "ephemeralcontainers",
                old_pod: &old,
                ..MutationRequest::create(&case.mutated, &control)
            };
            let expected = case.patched(&asked)?;
            let answer = ask.clone()(case.mutated.clone()).await?;
            let (found, wanted) = (seen(&answer).to_string(), seen(&expected).to_string());
            if found == wanted {
                tally.ephemeral += 1;
            } else {
                tally.wrong.push(format!("{}: ephemeral:\n  {found}\n  {wanted}", case.compiled.profile));
            }
        }
    }
    Ok(())
}

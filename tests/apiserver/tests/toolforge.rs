//! The example for Toolforge: the answers to requests of its services and tools, and what a tool gets.

mod given;

use palisade_api::{RolloutPhase, RolloutStatus};
use palisade_kube_json::workload::WORKLOADS;
use palisade_tests::{Cluster, TestResult, Verdict, Webhook, dry_run_answer, ensure, eventually, root};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use crate::{history::palisade, rollout, webhook, workloads::path};

crate::groups::scenarios! {
    example_answers_what_a_tool_expects: Judged 110;
    tools_go_from_audit_to_deny: Judged 120;
}

const TEST: &str = "toolforge";
const TOOLS_TEST: &str = "tools-rollout";
const TOOLS_PREFIX: &str = "tool-rollout-";
const UID: i64 = 52_001;
const TOOL: &str = "tool-weather";
/// The tool for missing pages.
const PAGES: &str = "tool-fourohfour";
/// A namespace that is labelled as that of a tool, and that of no tool by its name.
const PROJECT: &str = "project-x";
/// Namespaces of no tool: of users, and one of the platform.
const OTHERS: [&str; 2] = ["other", "abc"];
const BUILDS: &str = "image-build";
const PLATFORM: &str = "kube-public";

/// A request, and the answer that it gets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "tool")]
    namespace: String,
    /// An object from before the profile, which the request updates.
    #[serde(default)]
    earlier: Option<Json>,
    /// A pod that complies, which the request updates.
    #[serde(default)]
    old: Option<Json>,
    object: Json,
    /// The user of the request; if unset, an administrator.
    #[serde(default)]
    user: Option<String>,
    /// The answer of Toolforge's webhooks and policies.
    answer: Answer,
    /// The reason if the answer of the profiles differs.
    #[serde(default)]
    why: Option<String>,
    /// A part of the denial; none if the request is admitted.
    #[serde(default)]
    denied: Option<String>,
    /// Fields of the admitted object, by their JSON pointers.
    #[serde(default)]
    is: Map<String, Json>,
    /// The parts of the admitted pod's spec that additions can change.
    #[serde(default)]
    pod: Option<Json>,
    /// Those of them, by their JSON pointers, that differ with Toolforge's webhooks.
    #[serde(default)]
    webhooks: Map<String, Json>,
}

/// An answer that does not come from the profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Admitted,
    Denied,
    /// The webhook fails.
    Error,
}

fn tool() -> String {
    TOOL.to_owned()
}

fn cases() -> TestResult<Vec<Case>> {
    let text = std::fs::read_to_string(root().join("tests/apiserver/cases/toolforge.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// An example's profile, for the namespaces of this test.
fn example(file: &str) -> TestResult<Json> {
    let text = std::fs::read_to_string(root().join("examples/toolforge").join(file))?;
    let mut profile: Json = serde_saphyr::from_str(&text)?;
    let selector = &mut profile["spec"]["namespaceSelector"];
    palisade_kube_json::json::merge(selector, &json!({"matchLabels": {"test": TEST}}));
    for expression in selector.get_mut("matchExpressions").and_then(Json::as_array_mut).into_iter().flatten() {
        if expression["key"] == "kubernetes.io/metadata.name" {
            let names = expression["values"].as_array_mut().ok_or("values")?;
            for name in names {
                *name = namespace(name.as_str().unwrap_or_default()).into();
            }
        }
    }
    Ok(profile)
}

/// The namespace of this test that stands for one.
fn namespace(name: &str) -> String {
    if name == PLATFORM || name.starts_with("kube-") { format!("{TEST}-{name}") } else { name.to_owned() }
}

pub(crate) async fn example_answers_what_a_tool_expects(cluster: &mut Cluster) -> TestResult {
    let cases = cases()?;
    let uid = json!({"toolforge.org/uid": "52001"});
    for name in [TOOL, PAGES, PROJECT] {
        cluster.create_namespace(name, &json!({"tenancy": "tool", "test": TEST}), &uid).await?;
    }
    define(cluster).await?;
    cluster.create_namespace(BUILDS, &json!({"tenancy": "builds", "test": TEST}), &json!({})).await?;
    for name in OTHERS.into_iter().chain([PLATFORM]) {
        cluster.create_namespace(&namespace(name), &json!({"test": TEST}), &json!({})).await?;
    }
    for case in &cases {
        if let Some(earlier) = &case.earlier {
            cluster.answer_to("POST", &collection(&namespace(&case.namespace), earlier)?, earlier).await?;
        }
    }
    let engine = Webhook::start_if_needed(cluster).await?;
    let profiles = ["profile.yaml", "additions.yaml", "images.yaml", "builds.yaml"];
    let profiles = profiles.into_iter().map(example).collect::<TestResult<Vec<_>>>()?;
    for profile in &profiles {
        cluster.enforce(profile).await?;
    }
    for case in &cases {
        if let Some(old) = &case.old {
            let verdict = cluster.create_pod(&namespace(&case.namespace), old).await;
            ensure!(verdict == Verdict::Admitted, "{}: {verdict:?}", case.name);
        }
    }
    let mut rows = Vec::new();
    for case in &cases {
        // Policies for workloads come into force a moment after those for pods.
        let denial = eventually(&case.name, || async { answer(cluster, case).await }).await?;
        rows.push(row(case, denial.as_deref())?);
    }
    rows.extend(given::objects(cluster, example("objects.yaml")?).await?);
    println!("{} cases", rows.len());
    compare(&rows)?;
    let elsewhere = cases.iter().find(|case| case.name == "a pod with an image from elsewhere").ok_or("no case")?;
    a_program_understands_the_denial(cluster, &elsewhere.object).await?;
    for profile in &profiles {
        cluster.delete_profile(profile["metadata"]["name"].as_str().unwrap_or_default()).await?;
    }
    webhook::end(engine).await
}

/// The kinds of extensions in the cases, with any content.
async fn define(cluster: &Cluster) -> TestResult {
    for (group, version, kind, plural) in [
        ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"),
        ("tekton.dev", "v1beta1", "PipelineRun", "pipelineruns"),
    ] {
        let name = format!("{plural}.{group}");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": name,
                "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"},
            },
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {
                    "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
                },
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        cluster.create_at("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        cluster.wait_established(&["crd", &name])?;
    }
    Ok(())
}

/// The row of a case in the example's table: the answers of Toolforge's webhooks and of the API server with the profiles.
fn row(case: &Case, denial: Option<&str>) -> TestResult<String> {
    let checks = denial.map(|text| {
        let ids = text.split('[').skip(1).filter_map(|rest| rest.split_once("] ")).map(|(id, _)| id);
        let mut ids: Vec<_> = ids.filter(|id| id.chars().all(char::is_alphanumeric)).collect();
        ids.dedup();
        ids.join(", ")
    });
    let wanted = if case.denied.is_some() { Answer::Denied } else { Answer::Admitted };
    let found = if checks.is_some() { Answer::Denied } else { Answer::Admitted };
    let pod = case.pod.clone().unwrap_or_default();
    let differs = |pointer: &str, value: &Json| pod.pointer(pointer).is_some_and(|ours| ours != value);
    ensure!(case.webhooks.iter().all(|(at, value)| differs(at, value)), "{}: `webhooks` does not differ", case.name);
    ensure!(
        (case.answer == wanted && case.webhooks.is_empty()) == case.why.is_none(),
        "{}: `why` is the reason for a difference, and only that",
        case.name
    );
    let shown = |answer: Answer| format!("{answer:?}").to_lowercase();
    let found = checks.map_or_else(|| shown(found), |checks| format!("denied: {checks}"));
    let why = case.why.as_deref().unwrap_or_default();
    Ok(format!("| {} | {} | {} | {found} | {why} |", case.name, shown(case.answer), shown(wanted)))
}

/// Compares the table with that of the example, or writes it with `UPDATE_GOLDEN=1`.
fn compare(rows: &[String]) -> TestResult {
    const BEGIN: &str =
        "| request | webhooks | wanted | API server | reason for a difference |\n|---|---|---|---|---|\n";
    let path = root().join("examples/toolforge/README.md");
    let text = std::fs::read_to_string(&path)?;
    let (before, rest) = text.split_once(BEGIN).ok_or("no table")?;
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let expected = format!("{before}{BEGIN}{}\n\n{after}", rows.join("\n"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, expected)?;
        return Ok(());
    }
    ensure!(text == expected, "the table of examples/toolforge/README.md is not up to date: UPDATE_GOLDEN=1 writes it");
    Ok(())
}

/// The answer has the form that docs/exceptions.md describes.
async fn a_program_understands_the_denial(cluster: &Cluster, pod: &Json) -> TestResult {
    let Err(kube::Error::Api(status)) = dry_run_answer(&cluster.admin, TOOL, pod).await else {
        return Err("it is admitted".into());
    };
    let causes = status.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
    let text = causes.first().map(|cause| cause.message.as_str()).unwrap_or_default();
    ensure!((status.code, status.reason.as_str(), causes.len()) == (403, "Forbidden", 1), "{status:?}");
    ensure!(
        status.message.contains("ValidatingAdmissionPolicy 'palisade-") && status.message.ends_with(text),
        "{status:?}"
    );
    let said = text.split_once(" denied request: ").map_or(text, |(_, said)| said);
    ensure!(said.starts_with("1 violation of ToolSecurityProfile toolforge: [imageRegistries] container "), "{text}");
    Ok(())
}

/// The namespaces of a cluster of tools. One of them has a pod that runs as root, and one has no uid.
const TOOLS: i64 = 20;
const ROOT: i64 = 18;
const WITHOUT_UID: i64 = 19;

/// The objects of a tool that a web service and a scheduled job make.
fn objects(case: &[Case], uid: i64) -> TestResult<Vec<Json>> {
    let [webservice, _, job, ..] = case else { return Err("no cases".into()) };
    let deployment = webservice.object.clone();
    // As the admission before Palisade left it.
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": deployment["spec"]["template"]["spec"].clone(),
    });
    pod["spec"]["securityContext"] = json!({
        "runAsUser": uid, "runAsGroup": uid, "fsGroup": uid, "seccompProfile": {"type": "RuntimeDefault"},
    });
    pod["spec"]["containers"][0]["securityContext"] = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
    });
    if uid == UID + ROOT {
        pod["spec"]["containers"][0]["securityContext"]["runAsUser"] = 0.into();
    }
    let mut template = job.object["spec"]["template"].clone();
    for context in [&["spec", "securityContext"][..], &["spec", "containers", "0", "securityContext"]] {
        let pointer = format!("/{}", context.join("/"));
        for (id, value) in template.pointer_mut(&pointer).and_then(Json::as_object_mut).into_iter().flatten() {
            if ["runAsUser", "runAsGroup", "fsGroup"].contains(&id.as_str()) {
                *value = uid.into();
            }
        }
    }
    let scheduled = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "daily"},
        "spec": {"schedule": "0 4 * * *", "jobTemplate": {"spec": {"template": template}}},
    });
    Ok(vec![deployment, pod, scheduled])
}

/// A cluster of tools goes from Audit to Deny: all namespaces but the two that violate the profile.
pub(crate) async fn tools_go_from_audit_to_deny(cluster: &mut Cluster) -> TestResult {
    let cases = cases()?;
    let name = |index: i64| format!("{TOOLS_PREFIX}{index:02}");
    for index in 0..TOOLS {
        let (namespace, uid) = (name(index), UID + index);
        if index == WITHOUT_UID {
            cluster.create_namespace(&namespace, &json!({"tenancy": TOOLS_TEST}), &json!({})).await?;
        } else {
            cluster.create_tool(TOOLS_TEST, &namespace, uid).await?;
        }
        for object in objects(&cases, uid)? {
            let collection = collection(&namespace, &object)?;
            // A pod is refused until its namespace has a service account.
            eventually("a tool's object", || cluster.answer_to("POST", &collection, &object)).await?;
        }
    }
    let engine = Webhook::start_if_needed(cluster).await?;
    let mut profile = example("profile.yaml")?;
    profile["metadata"]["name"] = TOOLS_TEST.into();
    profile["spec"]["namespaceSelector"]["matchLabels"] = json!({"tenancy": TOOLS_TEST});
    let enforcement = |workloads: &str| json!({"pods": "Audit", "workloads": workloads, "namespaceStages": "ByLabel"});
    let mut ready = Vec::new();
    for workloads in ["Off", "Audit", "Warn"] {
        profile["spec"]["enforcement"] = enforcement(workloads);
        cluster.enforce_policies(&profile).await?;
        let report = palisade(cluster, &["report", "--live", "-o", "json"]).await?;
        let report: Json = serde_json::from_str(&report.out)?;
        ready.push(of_report(&report));
    }
    ensure!(ready.iter().all(|found| *found == (18, 2)), "{ready:?}");

    profile["spec"]["enforcement"] = enforcement("Audit");
    profile["spec"]["rollout"] = json!({"waves": [{"percent": 100}]});
    rollout::permit(cluster, "apply")?;
    cluster.apply_profile(&profile).await?;
    let complete = |status: &RolloutStatus| status.phase == RolloutPhase::Complete;
    let status = rollout::wait_rollout(cluster, TOOLS_TEST, "complete", complete).await?;
    ensure!((status.promoted, status.held, status.pending) == (TOOLS - 2, 2, 0), "{status:?}");
    let held: Vec<_> = status.held_namespaces.iter().map(|held| held.name.clone()).collect();
    ensure!(held == [name(ROOT), name(WITHOUT_UID)], "{status:?}");
    let nginx = cases.iter().find(|case| case.name.starts_with("a Deployment")).ok_or("no case")?;
    let verdict = cluster.dry_run_at(&cluster.admin, &collection(&name(0), &nginx.object)?, &nginx.object).await;
    ensure!(verdict.denial().is_some(), "{verdict:?}");
    rollout::permit(cluster, "delete")?;
    cluster.delete_profile(TOOLS_TEST).await?;
    webhook::end(engine).await
}

/// How many namespaces of the test are ready, and how many are not.
fn of_report(report: &Json) -> (usize, usize) {
    let namespaces = report["namespaces"].as_array().into_iter().flatten();
    let ready: Vec<_> = namespaces
        .filter(|namespace| namespace["name"].as_str().is_some_and(|name| name.starts_with(TOOLS_PREFIX)))
        .map(|namespace| namespace["readiness"] == "ready")
        .collect();
    let count = ready.iter().filter(|ready| **ready).count();
    (count, ready.len() - count)
}

/// The expected answer: the text of a denial, or none.
async fn answer(cluster: &Cluster, case: &Case) -> Result<Option<String>, String> {
    let collection = collection(&namespace(&case.namespace), &case.object).map_err(|error| error.to_string())?;
    let name = case.object["metadata"]["name"].as_str().unwrap_or_default();
    let answer = if case.old.is_some() {
        // As kubectl apply: the API server has set further fields of the pod, which cannot be removed.
        let patch = json!({"spec": case.object["spec"]});
        match cluster.strategic_patch_at(&format!("{collection}/{name}?dryRun=All"), &patch).await {
            Verdict::Admitted => Ok(Json::Null),
            Verdict::Denied(text) | Verdict::Refused(_, text) => Err(text),
        }
    } else if case.earlier.is_some() {
        cluster.answer_to("PUT", &format!("{collection}/{name}?dryRun=All"), &case.object).await
    } else if let Some(user) = &case.user {
        let client = cluster.client_of(user, &["system:authenticated"]).await.map_err(|error| error.to_string())?;
        match cluster.dry_run_at(&client, &collection, &case.object).await {
            Verdict::Admitted => Ok(Json::Null),
            Verdict::Denied(text) | Verdict::Refused(_, text) => Err(text),
        }
    } else {
        cluster.answer_to("POST", &format!("{collection}?dryRun=All"), &case.object).await
    };
    match (&answer, &case.denied) {
        (Err(text), Some(part)) if text.contains(part.as_str()) => Ok(Some(text.clone())),
        (Ok(object), None) => {
            let parts = given::parts(&object["spec"]);
            let is = case.is.iter().all(|(pointer, value)| object.pointer(pointer) == Some(value));
            let has = case.pod.as_ref().is_none_or(|pod| *pod == parts);
            if is && has { Ok(None) } else { Err(format!("{object}\nhas the parts {parts}")) }
        }
        _ => Err(format!("{answer:?}")),
    }
}

/// The path of an object's kind in a namespace.
fn collection(namespace: &str, object: &Json) -> TestResult<String> {
    let resource = match object["kind"].as_str().unwrap_or_default() {
        "Pod" => Some("pods"),
        "Service" => Some("services"),
        "Endpoints" => Some("endpoints"),
        "Ingress" => Some("ingresses"),
        "HTTPRoute" => Some("httproutes"),
        "PipelineRun" => Some("pipelineruns"),
        _ => None,
    };
    if let Some(resource) = resource {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let root = if version.contains('/') { "apis" } else { "api" };
        return Ok(format!("/{root}/{version}/namespaces/{namespace}/{resource}"));
    }
    let workload = WORKLOADS.iter().find(|workload| object["kind"] == workload.kind);
    Ok(path(workload.ok_or("no such workload")?, namespace))
}

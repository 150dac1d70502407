//! What the API server fills in by a MutatingAdmissionPolicy is what the patch fills in.

use k8s_openapi::jiff::Timestamp;
use palisade_api::ToolSecurityProfile;
use palisade_checks::{pod, workload::WORKLOADS};
use palisade_compiler::{Compiled, Namespace};
use palisade_harness::{Decision, Policy, Request};
use palisade_mutation::{Operation, Plan, Request as Asked};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, root};
use serde_json::{Value as Json, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A profile of the cases, and what it is in its namespace, where it fills in and judges nothing, and in another,
/// where it does both.
struct Case {
    compiled: Compiled,
    plan: Plan,
    params: Option<Json>,
    filled: String,
    judged: String,
}

impl Case {
    fn new(name: &str, spec: &Json) -> Result<Self> {
        let mut spec = spec.clone();
        spec["namespaceSelector"] = json!({"matchLabels": {"mutated": name}});
        let profile: ToolSecurityProfile = serde_json::from_value(json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": name}, "spec": spec,
        }))?;
        let compiled = palisade_compiler::compile(&profile).map_err(|found| format!("{name}: {found:?}"))?;
        let namespace = Namespace {
            name: format!("mutated-{name}"),
            annotations: [("uid".to_owned(), "50001".to_owned())].into(),
            ..Namespace::default()
        };
        let params = compiled.params(&namespace, Timestamp::now());
        let mutation = compiled.mutation.as_ref().ok_or("changes nothing")?;
        let plan = Plan::new([(mutation, params.as_ref().map(|params| &params.spec))]);
        let params = params.map(|params| json!(params));
        Ok(Self { plan, params, filled: namespace.name, judged: format!("judged-{name}"), compiled })
    }

    async fn install(&self, cluster: &Cluster) -> TestResult {
        let name = &self.compiled.profile;
        let labels = json!({"mutated": name});
        cluster.create_namespace(&self.filled, &labels, &json!({})).await?;
        let judged = json!({"mutated": name, "judged": name});
        cluster.create_namespace(&self.judged, &judged, &json!({})).await?;
        for namespace in [&self.filled, &self.judged] {
            // Before anything is in force.
            let verdict = cluster.create_pod(namespace, &pod::minimal("debugged")).await;
            ensure!(verdict == Verdict::Admitted, "{verdict:?}");
            if let Some(params) = &self.params {
                let mut params = params.clone();
                params["metadata"]["namespace"] = json!(namespace);
                let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityparams");
                cluster.answer("POST", &path, JSON, &params).await?;
            }
        }
        let pair = self.compiled.bundle.mutation.as_ref().ok_or("no policy")?;
        let [policy, binding] = pair.objects("v1");
        let mut judging = json!(self.compiled.bundle.pods.policy);
        judging["spec"]["matchConstraints"]["namespaceSelector"]["matchLabels"] = json!({"judged": name});
        for (kind, object) in [
            ("mutatingadmissionpolicies", policy),
            ("mutatingadmissionpolicybindings", binding),
            ("validatingadmissionpolicies", judging),
            ("validatingadmissionpolicybindings", json!(self.compiled.bundle.pods.binding)),
        ] {
            let mut object = object;
            // Or a controller would take them for its own.
            object["metadata"]["labels"] = json!({"toolsecurity.dev/test": "mutation"});
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}");
            cluster.answer("POST", &path, JSON, &object).await.map_err(|error| format!("{name} {kind}: {error}"))?;
        }
        Ok(())
    }

    /// The pod after it was filled in as the patch does it.
    fn patched(&self, asked: &Asked<'_>) -> Result<Json> {
        let mut pod = asked.pod.clone();
        self.plan.patch(asked).apply(&mut pod)?;
        let again = self.plan.patch(&Asked { pod: &pod, ..*asked });
        ensure_none(&again.operations)?;
        Ok(pod)
    }

    fn denies(&self, policy: &Policy, pod: &Json) -> Result<bool> {
        let params = self.params.as_ref();
        // The API server sets it before it asks a policy; exceptions go by it.
        let mut pod = pod.clone();
        pod["metadata"]["creationTimestamp"] = json!(Timestamp::now().to_string());
        let decision = policy.evaluate(&Request { params, ..Request::create("Pod", &pod) });
        Ok(matches!(decision.map_err(|error| error.to_string())?, Decision::Deny { .. }))
    }
}

fn ensure_none<T: std::fmt::Debug>(found: &[T]) -> Result<()> {
    ensure!(found.is_empty(), "filled in twice: {found:?}");
    Ok(())
}

const JSON: &str = "application/json";
const CONTROL: &str = "mutation-control";

fn pods_of(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods?dryRun=All")
}

/// What of a pod a mutation could change.
fn seen(pod: &Json) -> Json {
    json!({
        "spec": pod["spec"], "labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"],
    })
}

/// The first thing that is set in `before` and something else in `after`, besides images.
fn changed(path: &str, before: &Json, after: &Json) -> Option<String> {
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => before
            .iter()
            .find_map(|(key, value)| changed(&format!("{path}.{key}"), value, after.get(key).unwrap_or(&Json::Null))),
        (Json::Array(before), Json::Array(after)) if before.len() == after.len() => {
            before.iter().zip(after).find_map(|(before, after)| changed(&format!("{path}[]"), before, after))
        }
        _ if before == after || path.split('.').any(|step| step == "image") => None,
        _ => Some(format!("{path} was {before} and is {after}")),
    }
}

pub(crate) async fn the_native_policy_does_what_the_patch_does(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let cluster: &Cluster = cluster;
    let text = std::fs::read_to_string(root().join("tests/apiserver/tests/mutation-cases.yaml"))?;
    let written: Json = serde_saphyr::from_str(&text)?;
    let profiles = written["profiles"].as_object().ok_or("no profiles")?;
    let cases: Vec<_> = profiles.iter().map(|(name, spec)| Case::new(name, spec)).collect::<Result<_>>()?;
    cluster.create_namespace(CONTROL, &json!({}), &json!({})).await?;
    ensure!(cluster.create_pod(CONTROL, &pod::minimal("debugged")).await == Verdict::Admitted, "no pod to debug");
    for case in &cases {
        case.install(cluster).await?;
    }
    for case in &cases {
        in_force(cluster, case).await?;
    }
    let mut pods: Vec<_> = written["pods"].as_array().ok_or("no pods")?.iter().map(own_pod).collect();
    let own = pods.len();
    pods.extend(third_party()?);
    let mut wrong = Vec::new();
    let (mut compared, mut invalid, mut denied) = (0, 0, 0);
    for (index, pod) in pods.iter().enumerate() {
        // What the API server makes of it before anybody is asked.
        let control = match cluster.answer("POST", &pods_of(CONTROL), JSON, pod).await {
            Ok(control) => control,
            Err(error) => {
                ensure!(index >= own, "{error}: {pod}");
                invalid += 1;
                continue;
            }
        };
        for case in &cases {
            match same(cluster, case, &control).await {
                Ok(by_policy) => {
                    compared += 1;
                    denied += usize::from(by_policy);
                }
                Err(error) => wrong.push(format!("{}: pod {index}: {error}", case.compiled.profile)),
            }
        }
    }
    let debugged = ephemeral(cluster, &cases, &mut wrong).await?;
    println!(
        "native mutation: {} pods ({own} own, {invalid} refused by API validation alone) and {} profiles: {compared} \
         byte-equal, of which {denied} were denied afterwards; {debugged} ephemeral containers byte-equal; {} wrong",
        pods.len(),
        cases.len(),
        wrong.len()
    );
    for kind in [
        "mutatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicies",
    ] {
        cluster.kubectl(&["delete", kind, "--selector=toolsecurity.dev/test=mutation"])?;
    }
    ensure!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// Waits until the API server follows the policies of a case.
async fn in_force(cluster: &Cluster, case: &Case) -> TestResult {
    let mut canary = pod::minimal("canary");
    canary["spec"]["containers"][0]["image"] = json!("nginx");
    let ask = |namespace: &str, pod: &Json| {
        let (path, pod) = (pods_of(namespace), pod.clone());
        async move { cluster.answer("POST", &path, JSON, &pod).await }
    };
    let control =
        eventually("a service account", || async { ask(CONTROL, &canary).await.map_err(|error| error.to_string()) })
            .await?;
    for namespace in [&case.filled, &case.judged] {
        eventually(&format!("{namespace} filled in"), || async {
            match ask(namespace, &canary).await {
                Ok(answer) if answer["spec"] == control["spec"] => Err("nothing is filled in".to_owned()),
                Err(error) if !error.to_string().contains("ValidatingAdmissionPolicy") => Err(error.to_string()),
                _ => Ok(()),
            }
        })
        .await?;
    }
    let policy = Policy::new(&case.compiled.bundle.pods.policy).map_err(|error| format!("{error:?}"))?;
    let mut violating = canary.clone();
    for (field, value) in
        [("hostPID", json!(true)), ("securityContext", json!({"runAsUser": 0, "runAsNonRoot": false}))]
    {
        violating["spec"][field] = value;
    }
    violating["spec"]["containers"][0]["securityContext"] = json!({"capabilities": {"add": ["NET_RAW"]}});
    if case.denies(&policy, &violating)? {
        eventually(&format!("{} judged", case.judged), || async {
            let verdict = Verdict::of(ask(&case.judged, &violating).await);
            verdict.denial().map(|_| ()).ok_or(format!("{verdict:?}"))
        })
        .await?;
    }
    Ok(())
}

/// Asks about a pod where a profile fills in, and where it judges, too; whether it is denied there.
async fn same(cluster: &Cluster, case: &Case, control: &Json) -> Result<bool> {
    let mut asked = control.clone();
    asked["metadata"] = json!({"name": "same"});
    for field in ["labels", "annotations"] {
        if let Some(set) = control["metadata"].get(field) {
            asked["metadata"][field] = set.clone();
        }
    }
    let expected = case.patched(&Asked::create(&case.filled, &asked))?;
    let answer = cluster.answer("POST", &pods_of(&case.filled), JSON, &asked).await?;
    let (found, wanted) = (seen(&answer).to_string(), seen(&expected).to_string());
    ensure!(found == wanted, "the policy and the patch differ:\n  {found}\n  {wanted}");
    if let Some(changed) = changed("spec", &control["spec"], &answer["spec"]) {
        return Err(changed.into());
    }
    // Filled in once more, it is as it was.
    asked["spec"] = answer["spec"].clone();
    let again = cluster.answer("POST", &pods_of(&case.filled), JSON, &asked).await?;
    ensure!(again["spec"] == answer["spec"], "filled in twice it is {}", again["spec"]);
    // What is judged is what was filled in.
    let policy = Policy::new(&case.compiled.bundle.pods.policy).map_err(|error| format!("{error:?}"))?;
    let denied = case.denies(&policy, &expected)?;
    asked["spec"] = control["spec"].clone();
    let verdict = Verdict::of(cluster.answer("POST", &pods_of(&case.judged), JSON, &asked).await);
    ensure!(
        if denied { verdict.denial().is_some() } else { verdict == Verdict::Admitted },
        "expected to be denied: {denied}, and found {verdict:?}"
    );
    Ok(denied)
}

/// Ephemeral containers of pods that were there before.
async fn ephemeral(cluster: &Cluster, cases: &[Case], wrong: &mut Vec<String>) -> Result<usize> {
    let containers = [
        json!({"name": "a", "image": "nginx"}),
        json!({"name": "a", "image": "quay.io/a/b:1", "securityContext": {"runAsUser": 7, "runAsNonRoot": true}}),
        json!({"name": "a", "image": "Nginx", "securityContext": {"privileged": true}}),
        json!({"name": "a", "image": "ghcr.io/a", "securityContext": {"capabilities": {"add": ["NET_RAW"]}}}),
        json!({"name": "a", "image": "x", "securityContext": {"seccompProfile": {"type": "Unconfined"}, "runAsUser": 0}}),
    ];
    let mut compared = 0;
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
            let asked = Asked {
                operation: Operation::Update,
                subresource: "ephemeralcontainers",
                old_pod: &old,
                ..Asked::create(&case.filled, &control)
            };
            let expected = case.patched(&asked)?;
            let answer = ask.clone()(case.filled.clone()).await?;
            let (found, wanted) = (seen(&answer).to_string(), seen(&expected).to_string());
            if found == wanted {
                compared += 1;
            } else {
                wrong.push(format!("{}: ephemeral:\n  {found}\n  {wanted}", case.compiled.profile));
            }
        }
    }
    Ok(compared)
}

/// A pod of the cases.
fn own_pod(case: &Json) -> Json {
    let mut pod = pod::minimal("case");
    let mut case = case.clone();
    let container = case.as_object_mut().and_then(|fields| fields.remove("c"));
    pod::merge(&mut pod, &case);
    if let Some(container) = container {
        pod::merge(&mut pod["spec"]["containers"][0], &container);
    }
    pod
}

/// Pods of workloads of other projects; none where the collection is not there: `PALISADE_CORPUS` names its directory,
/// or it is `shared/corpus` beside the clone.
fn third_party() -> Result<Vec<Json>> {
    let directory = std::env::var_os("PALISADE_CORPUS").map_or_else(|| root().join("../shared/corpus"), Into::into);
    let Ok(index) = std::fs::read_to_string(directory.join("workloads/INDEX.json")) else {
        println!("skipped: no directory {}", directory.display());
        return Ok(vec![]);
    };
    let index: Vec<Json> = serde_json::from_str(&index)?;
    let mut pods = Vec::new();
    for entry in &index {
        let text = std::fs::read_to_string(directory.join(entry["file"].as_str().unwrap_or_default()))?;
        let Ok(object) = serde_saphyr::from_str::<Json>(&text) else { continue };
        let workload = WORKLOADS.iter().find(|workload| object["kind"] == workload.kind);
        let template = match workload {
            Some(workload) => object.pointer(workload.template),
            None if object["kind"] == "Pod" => Some(&object),
            None => None,
        };
        let Some(template) = template else { continue };
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "case", "annotations": template["metadata"]["annotations"]},
            "spec": template["spec"],
        });
        // Of things that are not in this cluster.
        if let Some(spec) = pod["spec"].as_object_mut() {
            for key in ["serviceAccount", "serviceAccountName", "priorityClassName", "priority", "runtimeClassName"] {
                spec.remove(key);
            }
            spec.insert("automountServiceAccountToken".to_owned(), json!(false));
        }
        pods.push(pod);
    }
    Ok(pods)
}

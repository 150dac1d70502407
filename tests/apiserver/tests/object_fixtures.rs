//! Every fixture of every check of other objects than pods, on the real API server: its verdict is the offline verdict.

use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use palisade_api::{ToolSecurityParams, ToolSecurityParamsSpec, ToolSecurityProfile, names, names::Shape, objects};
use palisade_checks::{FixtureRequest, FixtureUser, ObjectCheck, ObjectFixture, ObjectResource};
use palisade_compiler::Compiled;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    fixtures_of_objects_get_their_verdicts: Answers 101;
}

/// The namespace of the tenant in fixtures.
const TENANT: &str = "tool-weather";

struct Case {
    name: String,
    check: &'static ObjectCheck,
    fixture: ObjectFixture,
    compiled: Compiled,
}

pub(crate) async fn fixtures_of_objects_get_their_verdicts(cluster: &mut Cluster) -> TestResult {
    // Policies of other tests would deny the same objects first.
    cluster.stop_controller().await?;
    let cluster: &Cluster = cluster;
    define(cluster).await?;
    let cases = cases()?;
    stream::iter(&cases).map(Ok).try_for_each_concurrent(16, |case| install(cluster, case)).await?;
    let mut wrong = Vec::new();
    // First the denied ones: then the policies of the others are in force, too.
    for is_denied in [true, false] {
        let some = cases.iter().filter(|case| case.fixture.violations.is_empty() != is_denied);
        let found: Vec<String> = stream::iter(some)
            .map(|case| async move { judge(cluster, case).await.err().map(|error| format!("{}: {error}", case.name)) })
            .buffer_unordered(16)
            .filter_map(std::future::ready)
            .collect()
            .await;
        wrong.extend(found);
    }
    println!("{} fixtures of objects, {} right", cases.len(), cases.len() - wrong.len());
    let fixtures = ListParams::default().labels("toolsecurity.dev/test=object-fixture");
    cluster.bindings().delete_collection(&DeleteParams::default(), &fixtures).await?;
    cluster.policies().delete_collection(&DeleteParams::default(), &fixtures).await?;
    ensure!(wrong.is_empty(), "{} of {} fixtures are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    Ok(())
}

/// Defines the kinds that Kubernetes does not have.
async fn define(cluster: &Cluster) -> TestResult {
    let mut defined = Vec::new();
    let is_extension = |kind: &&ObjectResource| kind.group.contains("gateway") || kind.group.contains("snapshot");
    for kind in objects::ALL.iter().flat_map(|check| check.kinds).filter(is_extension) {
        let name = format!("{}.{}", kind.resource, kind.group);
        if !defined.contains(&name) {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let verdict = cluster.create_at(path, &definition(&name, kind)).await;
            ensure!(verdict == Verdict::Admitted, "{name}: {verdict:?}");
            cluster.wait_established(&["crd", &name])?;
            defined.push(name);
        }
    }
    Ok(())
}

fn definition(name: &str, kind: &ObjectResource) -> Json {
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == kind.versions[0],
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1111"},
        },
        "spec": {
            "group": kind.group, "scope": "Namespaced",
            "names": {
                "plural": kind.resource, "singular": kind.kind.to_lowercase(), "kind": kind.kind,
                "listKind": format!("{}List", kind.kind),
            },
            "versions": kind.versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}

fn cases() -> Result<Vec<Case>, Box<dyn std::error::Error + Send + Sync>> {
    let mut cases = Vec::new();
    for check in objects::ALL.iter().copied() {
        for fixture in serde_saphyr::from_str::<Vec<ObjectFixture>>(check.fixtures)? {
            let name = format!("object-fixture-{}", cases.len());
            let profile: ToolSecurityProfile = serde_json::from_value(json!({
                "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": name},
                "spec": fixture.spec(&json!({"fixture": name})),
            }))?;
            let compiled = palisade_compiler::compile(&profile)
                .map_err(|diagnostics| format!("{}: {diagnostics:?}", fixture.name))?;
            cases.push(Case { name: format!("{name} ({}: {})", check.id, fixture.name), check, fixture, compiled });
        }
    }
    Ok(cases)
}

/// A namespace with the policy of the fixture alone.
async fn install(cluster: &Cluster, case: &Case) -> TestResult {
    let namespace = &case.compiled.profile;
    cluster.create_namespace(namespace, &json!({"fixture": namespace}), &json!({})).await?;
    if case.compiled.is_parameterized() {
        let params = ToolSecurityParams::new(namespace, ToolSecurityParamsSpec::of(&case.fixture.values()));
        let api = Api::<ToolSecurityParams>::namespaced(cluster.admin.clone(), namespace);
        api.create(&PostParams::default(), &params).await?;
    }
    let sent = case.fixture.request(case.check, namespace).ok_or("no kind of the check")?;
    // The API server looks up the account, and the object that an update changes, before it evaluates policies.
    let existing = match &sent.stored {
        None if sent.subresource == "token" => {
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": sent.name}});
            Some((format!("/api/v1/namespaces/{namespace}/serviceaccounts"), account))
        }
        None => None,
        Some(stored) => Some((collection(&sent, namespace), stored.clone())),
    };
    if let Some((path, object)) = existing {
        let verdict = cluster.create_at(&path, &object).await;
        ensure!(verdict == Verdict::Admitted, "{path}: {verdict:?}");
    }
    // Not labelled as the operator's own, which it would remove.
    let labels = Some([("toolsecurity.dev/test".to_owned(), "object-fixture".to_owned())].into());
    let pair = case.compiled.bundle.objects.as_ref();
    // A profile that allows everything has no policy.
    let Some(pair) = pair else { return Ok(()) };
    let mut policy = pair.policy.clone();
    policy.metadata.labels.clone_from(&labels);
    cluster.policies().create(&PostParams::default(), &policy).await?;
    for binding in pair.bindings() {
        let mut binding = binding.clone();
        binding.metadata.labels.clone_from(&labels);
        cluster.bindings().create(&PostParams::default(), &binding).await?;
    }
    Ok(())
}

async fn judge(cluster: &Cluster, case: &Case) -> TestResult {
    let Case { check, fixture, compiled, .. } = case;
    let namespace = &compiled.profile;
    let sent = fixture.request(check, namespace).ok_or("no kind of the check")?;
    let FixtureUser { username, groups } = &fixture.user;
    let groups: Vec<_> = groups.iter().map(String::as_str).collect();
    let client = cluster.client_of(username, &groups).await?;
    for method in methods(&sent) {
        let judged = eventually("judged", || async {
            let verdict = ask(cluster, &client, method, &sent, namespace).await.map_err(|error| error.to_string())?;
            // The policy of a denied one comes into force meanwhile.
            let is_early = verdict.denial().is_none() && !fixture.violations.is_empty();
            if is_early || is_unsettled(&verdict) { Err(format!("{method}: {verdict:?}")) } else { Ok(verdict) }
        });
        let verdict = judged.await?;
        match verdict.denial().filter(|_| !fixture.violations.is_empty()) {
            Some(text) => is_complete(case, text)?,
            None => ensure!(is_admitted(&sent, &verdict), "{method} should be admitted: {verdict:?}"),
        }
    }
    Ok(())
}

/// The methods that send the request. Each method connects.
fn methods(sent: &FixtureRequest) -> &'static [&'static str] {
    match sent.stored {
        Some(_) => &["PUT"],
        None if sent.is_connection() => &["GET", "POST"],
        None => &["POST"],
    }
}

/// The path at which objects of the kind are created in a namespace.
fn collection(FixtureRequest { group, version, resource, .. }: &FixtureRequest, namespace: &str) -> String {
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    format!("{root}/{version}/namespaces/{namespace}/{resource}")
}

/// Sends the request of a fixture: as a dry run, if the API server stores the object.
async fn ask(
    cluster: &Cluster,
    client: &Client,
    method: &str,
    sent: &FixtureRequest,
    namespace: &str,
) -> Result<Verdict, Box<dyn std::error::Error + Send + Sync>> {
    let FixtureRequest { subresource, name, object, .. } = sent;
    let object: Json = serde_json::from_str(&object.to_string().replace(TENANT, namespace))?;
    let path = collection(sent, namespace);
    if subresource.is_empty() {
        return Ok(cluster.dry_run_at(client, &path, &object).await);
    }
    let path = format!("{path}/{name}/{subresource}");
    let path = match sent.stored {
        Some(_) => format!("{path}?dryRun=All"),
        None if sent.is_connection() => connection(&path, &object),
        None => path,
    };
    Ok(cluster.ask_as(client, method, &path, &object).await)
}

/// The path and query of a connection with these options.
fn connection(path: &str, options: &Json) -> String {
    let mut query = Vec::new();
    for (key, value) in options.as_object().into_iter().flatten() {
        let values = value.as_array().map_or_else(|| vec![value], |list| list.iter().collect());
        if !["apiVersion", "kind", "path"].contains(&key.as_str()) {
            query.extend(values.into_iter().map(|one| format!("{key}={}", encoded(one))));
        }
    }
    format!("{path}{}?{}", options["path"].as_str().unwrap_or_default(), query.join("&"))
}

fn encoded(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Whether an answer is none about the object: the API server has not seen the parameters yet, or it is overloaded.
fn is_unsettled(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Admitted => false,
        Verdict::Denied(text) => text.contains("no params found"),
        Verdict::Refused(code, _) => matches!(code, 0 | 429 | 500..),
    }
}

/// Whether no policy denied a request. There is no pod and no Service to connect to, which the API server looks up after
/// admission.
fn is_admitted(sent: &FixtureRequest, verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Admitted => true,
        Verdict::Refused(404, text) => {
            !sent.subresource.is_empty() && sent.stored.is_none() && text.contains("not found")
        }
        Verdict::Denied(_) | Verdict::Refused(..) => false,
    }
}

/// Whether a denial has all violations of a fixture, and no others.
fn is_complete(Case { check, fixture, compiled, .. }: &Case, text: &str) -> TestResult {
    let namespace = &compiled.profile;
    let policy = format!("ValidatingAdmissionPolicy '{}'", names::policy(namespace, Shape::Objects));
    ensure!(text.contains(&policy), "denied by something else: {text}");
    let found = text.matches(&format!("[{}]", check.id)).count();
    ensure!(found == fixture.violations.len(), "{found} violations: {text}");
    for violation in &fixture.violations {
        let violation = violation.replace(TENANT, namespace);
        ensure!(text.contains(&violation), "does not say {violation:?}: {text}");
    }
    Ok(())
}

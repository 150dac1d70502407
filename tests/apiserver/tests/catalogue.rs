//! Every fixture of every check, on the real API server: what the offline check says is what it says.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::{core::v1::ServiceAccount, node::v1::RuntimeClass, scheduling::v1::PriorityClass};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use palisade_api::{ToolSecurityParams, ToolSecurityParamsSpec, ToolSecurityProfile, catalogue, names};
use palisade_checks::{Check, fixture::Fixture};
use palisade_compiler::Compiled;
use palisade_controlplane::Feature;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, features_of};
use serde_json::{Value as Json, json};
use tokio::time::sleep;

crate::groups::scenarios! {
    fixtures_get_their_verdicts: Answers 100;
}

struct Case {
    name: String,
    check: &'static Check,
    fixture: Fixture,
    compiled: Compiled,
    /// The pod without its ephemeral containers, which exist only on pods that exist.
    base: Json,
    ephemeral: Option<Json>,
}

pub(crate) async fn fixtures_get_their_verdicts(cluster: &mut Cluster) -> TestResult {
    // Policies of other tests would deny the same pods first.
    cluster.stop_controller().await?;
    let cluster: &Cluster = cluster;
    // The API server rejects a class that does not exist before policies run.
    let classes: Api<RuntimeClass> = Api::all(cluster.admin.clone());
    for name in ["gvisor", "kata"] {
        let class = serde_json::from_value(json!({"metadata": {"name": name}, "handler": "runc"}))?;
        classes.create(&PostParams::default(), &class).await?;
    }
    let classes: Api<PriorityClass> = Api::all(cluster.admin.clone());
    for name in ["batch", "interactive"] {
        let class = serde_json::from_value(json!({"metadata": {"name": name}, "value": 1000}))?;
        classes.create(&PostParams::default(), &class).await?;
    }
    let minor = cluster.served().await?;
    let mut cases = cases()?;
    // The probe shows that the policy is in effect.
    let features = |case: &Case| {
        let probe = case.compiled.probes.violating.as_ref().map(|violating| features_of(&violating.pod));
        [features_of(&case.fixture.pod()), probe.unwrap_or_default()].concat()
    };
    cases.retain(|case| match Feature::lacking(&features(case), minor) {
        Some(feature) => {
            println!("{}: skipped, the API server lacks: {feature}", case.name);
            false
        }
        None => true,
    });
    let count = cases.len();
    stream::iter(&cases).map(Ok).try_for_each_concurrent(16, |case| prepare(cluster, case)).await?;
    stream::iter(&cases).map(Ok).try_for_each_concurrent(16, |case| install(cluster, case)).await?;
    if minor <= 33 {
        // Such an API server can exit if it compiles a policy and evaluates another one at the same time.
        sleep(Duration::from_secs(30)).await;
    }
    let wrong: Vec<String> = stream::iter(&cases)
        .map(|case| async move { judge(cluster, case).await.err().map(|error| format!("{}: {error}", case.name)) })
        .buffer_unordered(16)
        .filter_map(std::future::ready)
        .collect()
        .await;
    println!("{count} fixtures, {} right", count - wrong.len());
    let fixtures = ListParams::default().labels("toolsecurity.dev/test=fixture");
    cluster.bindings().delete_collection(&DeleteParams::default(), &fixtures).await?;
    cluster.policies().delete_collection(&DeleteParams::default(), &fixtures).await?;
    ensure!(wrong.is_empty(), "{} of {count} fixtures are wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

fn cases() -> Result<Vec<Case>, Box<dyn std::error::Error + Send + Sync>> {
    let mut cases = Vec::new();
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures)?;
        for fixture in fixtures {
            let name = format!("fixture-{}", cases.len());
            let compiled = palisade_compiler::compile(&profile(&name, &fixture)?)
                .map_err(|diagnostics| format!("{}: {diagnostics:?}", fixture.name))?;
            let mut base = fixture.pod();
            let ephemeral = base["spec"].as_object_mut().and_then(|spec| spec.remove("ephemeralContainers"));
            cases.push(Case {
                name: format!("{name} ({}: {})", check.id, fixture.name),
                check,
                fixture,
                compiled,
                base,
                ephemeral,
            });
        }
    }
    Ok(cases)
}

/// A profile that makes only the fixture's check, in a namespace of its own.
fn profile(name: &str, fixture: &Fixture) -> Result<ToolSecurityProfile, serde_json::Error> {
    serde_json::from_value(json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": name},
        "spec": fixture.spec(&json!({"fixture": name})),
    }))
}

/// The namespace and, where there are ephemeral containers, the pod that gets them: before any policy.
async fn prepare(cluster: &Cluster, case: &Case) -> TestResult {
    let namespace = &case.compiled.profile;
    cluster.create_namespace(namespace, &json!({"fixture": namespace}), &json!({})).await?;
    let accounts = Api::<ServiceAccount>::namespaced(cluster.admin.clone(), namespace);
    for name in ["builder", "operator"] {
        let used = ["serviceAccountName", "serviceAccount"].iter().any(|field| case.base["spec"][*field] == name);
        if used {
            let account = serde_json::from_value(json!({"metadata": {"name": name}}))?;
            accounts.create(&PostParams::default(), &account).await?;
        }
    }
    if case.ephemeral.is_some() {
        let verdict = cluster.create_pod(namespace, &case.base).await;
        ensure!(verdict == Verdict::Admitted, "{}: the pod itself: {verdict:?}", case.name);
    }
    Ok(())
}

async fn install(cluster: &Cluster, case: &Case) -> TestResult {
    let values = case.fixture.values();
    if !values.is_empty() {
        let params = ToolSecurityParams::new(&case.compiled.profile, ToolSecurityParamsSpec::of(&values));
        let api = Api::<ToolSecurityParams>::namespaced(cluster.admin.clone(), &case.compiled.profile);
        api.create(&PostParams::default(), &params).await?;
    }
    // Not labelled as the operator's own, which it would remove.
    let labels = Some([("toolsecurity.dev/test".to_owned(), "fixture".to_owned())].into());
    let mut policy = case.compiled.bundle.pods.policy.clone();
    policy.metadata.labels.clone_from(&labels);
    let mut binding = case.compiled.bundle.pods.binding.clone();
    binding.metadata.labels = labels;
    cluster.policies().create(&PostParams::default(), &policy).await?;
    cluster.bindings().create(&PostParams::default(), &binding).await?;
    Ok(())
}

async fn judge(cluster: &Cluster, case: &Case) -> TestResult {
    let namespace = &case.compiled.profile;
    let policy = format!("ValidatingAdmissionPolicy '{}'", names::policy(namespace, names::Shape::Pods));
    if case.fixture.values().is_empty()
        && let Some(violating) = &case.compiled.probes.violating
        // A probe that is denied by its name is denied in the namespace of probes only.
        && violating.check != Some("probe")
    {
        // From here on the policy is known to be in force.
        eventually("in force", || async {
            let verdict = cluster.dry_run(namespace, &violating.pod).await;
            verdict.denial().filter(|text| text.contains(&policy)).map(|_| ()).ok_or(format!("{verdict:?}"))
        })
        .await?;
    }
    let ask = || async {
        match &case.ephemeral {
            Some(containers) => cluster.dry_run_ephemeral(namespace, "fixture", containers).await,
            None => cluster.dry_run(namespace, &case.base).await,
        }
    };
    if let Some(invalid) = &case.fixture.invalid {
        let verdict = ask().await;
        ensure!(
            matches!(&verdict, Verdict::Refused(422, text) if text.contains(invalid)),
            "the API server should refuse it for {invalid}: {verdict:?}"
        );
        return Ok(());
    }
    if case.fixture.violations.is_empty() {
        let verdict = ask().await;
        ensure!(verdict == Verdict::Admitted, "should be admitted: {verdict:?}");
        return Ok(());
    }
    let text = eventually("denied", || async {
        let verdict = ask().await;
        verdict.denial().map(str::to_owned).ok_or(format!("{verdict:?}"))
    })
    .await?;
    let found = text.matches(&format!("[{}]", case.check.id)).count();
    ensure!(text.contains(&policy), "denied by something else: {text}");
    ensure!(found == case.fixture.violations.len(), "{found} violations: {text}");
    for violation in &case.fixture.violations {
        ensure!(text.contains(violation), "does not say {violation:?}: {text}");
    }
    Ok(())
}

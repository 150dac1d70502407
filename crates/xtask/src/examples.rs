//! Examples on the pages of checks: two fixtures, really evaluated.

use palisade_api::{Level, ToolSecurityParamsSpec, ToolSecurityProfile};
use palisade_checks::{Check, Field, Lowering, fixture::Fixture};
use palisade_compiler::Compiled;
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::json::Change as _;
use serde_json::{Value as Json, json};

const AUTOMOUNT: &str = "automountServiceAccountToken";

/// The content of a page.
pub(crate) struct Example {
    pub(crate) settings: Json,
    /// The parameters that they refer to, with values.
    pub(crate) parameters: Vec<(String, Json)>,
    /// A pod that is denied.
    pub(crate) bad: Json,
    /// The message that the pod's author reads.
    pub(crate) message: String,
    /// A pod that is admitted.
    pub(crate) good: Json,
    /// The compiled check: names and expressions of variables of the policy.
    pub(crate) compiled: Vec<(String, String)>,
}

/// The example of a check.
///
/// # Errors
/// The error in its fixtures.
pub(crate) fn of(check: &Check) -> Result<Example, String> {
    let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).map_err(|error| error.to_string())?;
    let (bad, good): (Vec<_>, _) =
        fixtures.iter().filter(|fixture| fixture.example).partition(|fixture| !fixture.violations.is_empty());
    let ([bad], [good]) = (&bad[..], &good[..]) else {
        return Err("wants `example: true` in one fixture that passes and in one that does not".to_owned());
    };
    if (&bad.settings, &bad.parameters) != (&good.settings, &good.parameters) {
        return Err("the two examples have different settings".to_owned());
    }
    let compiled = compile(&bad.spec(&json!({"a": "b"})))?;
    let values = bad.values();
    let params = (!values.is_empty()).then(|| json!({"spec": ToolSecurityParamsSpec::of(&values)}));
    // Fields that each fixture sets, so that no API server adds a token to it, are shown only if the check is about
    // them.
    let shown = |fixture: &Fixture| {
        let (mut pod, automount) = (presentable(fixture.pod()), &fixture.pod()["spec"][AUTOMOUNT]);
        if check.fields.contains(&Field::Pod(AUTOMOUNT)) && !automount.is_null() {
            *pod.at_mut(&["spec", AUTOMOUNT]) = automount.clone();
        }
        pod
    };
    let (bad_pod, good_pod) = (shown(bad), shown(good));
    let message = match denial(&compiled, params.as_ref(), &bad_pod)? {
        Some(message) if bad.violations.iter().all(|violation| message.contains(violation)) => message,
        other => return Err(format!("{:?} should be denied for {:?}: {other:?}", bad.name, bad.violations)),
    };
    if let Some(message) = denial(&compiled, params.as_ref(), &good_pod)? {
        return Err(format!("{:?} should be admitted: {message}", good.name));
    }
    Ok(Example {
        settings: written(&bad.settings)?,
        parameters: bad.parameters.clone().into_iter().collect(),
        bad: bad_pod,
        message,
        good: good_pod,
        compiled: variables(check, bad, &compiled),
    })
}

/// A pod that a profile without any settings admits: one that complies with the Restricted level.
///
/// # Errors
/// It does not.
pub(crate) fn restricted() -> Result<Json, String> {
    let spec = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": Level::Restricted});
    let compiled = compile(&spec)?;
    let mut pod = presentable(compiled.probes.compliant.pod.clone());
    if let Some(metadata) = pod.at_mut(&["metadata"]).as_object_mut() {
        metadata.remove("labels");
    }
    match denial(&compiled, None, &pod)? {
        None => Ok(pod),
        Some(message) => Err(message),
    }
}

fn compile(spec: &Json) -> Result<Compiled, String> {
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "example"},
        "spec": spec,
    }))
    .map_err(|error| error.to_string())?;
    palisade_compiler::compile(&profile).map_err(|diagnostics| format!("{diagnostics:?}"))
}

/// The pod as a reader would write it. It is evaluated as it is shown.
fn presentable(mut pod: Json) -> Json {
    *pod.at_mut(&["metadata", "name"]) = json!("example");
    if let Some(spec) = pod.at_mut(&["spec"]).as_object_mut() {
        spec.remove(AUTOMOUNT);
    }
    for container in pod.at_mut(&["spec", "containers"]).as_array_mut().into_iter().flatten() {
        if container["image"].as_str().is_some_and(|image| image.starts_with("palisade.invalid/")) {
            *container.at_mut(&["image"]) = json!("registry.example/app:1");
        }
    }
    pod
}

fn denial(compiled: &Compiled, params: Option<&Json>, pod: &Json) -> Result<Option<String>, String> {
    let policy = Validator::new(&compiled.bundle.pods.policy).map_err(|diagnostics| format!("{diagnostics:?}"))?;
    let request = ValidationRequest { params, ..ValidationRequest::create("Pod", pod) };
    match policy.evaluate(&request).map_err(|diagnostic| diagnostic.to_string())? {
        Decision::Admit => Ok(None),
        Decision::Deny { message, .. } => Ok(Some(message)),
    }
}

/// Settings without empty groups.
pub(crate) fn written(settings: &palisade_checks::Settings) -> Result<Json, String> {
    let mut settings = serde_json::to_value(settings).map_err(|error| error.to_string())?;
    if let Some(groups) = settings.as_object_mut() {
        groups.retain(|_, group| group != &json!({}));
    }
    Ok(settings)
}

/// The variables that the policy has because of the check.
fn variables(check: &Check, fixture: &Fixture, compiled: &Compiled) -> Vec<(String, String)> {
    let types = fixture.types();
    let rule = (check.compile)(&fixture.settings, &mut Lowering::new(&types)).unwrap_or_default();
    let names: Vec<_> = rule.variables.iter().map(|(name, _)| *name).chain([check.id]).collect();
    let all = compiled.bundle.pods.policy.spec.iter().flat_map(|spec| spec.variables.iter().flatten());
    all.filter(|variable| names.contains(&variable.name.as_str()))
        .map(|variable| (variable.name.clone(), variable.expression.clone()))
        .collect()
}

//! Profiles in files, compiled and checked.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use k8s_openapi::{api::admissionregistration::v1::ValidatingAdmissionPolicy, jiff::Timestamp};
use palisade_api::{
    Diagnostic, Location, NamespaceStages, OptionalStage, Stage, ToolSecurityParams, ToolSecurityProfile,
    conditions::ExceptionReason, names,
};
use palisade_cel::Minor;
use palisade_compiler::{ChangedBy, Compiled, Mutation, ResolvedTemplate};
use palisade_gate::{Checked, PORTABLE};
use palisade_runtime::on_large_stack;
use serde_json::{Map, Value as Json, json};

use crate::{
    input::{self, Object},
    namespaces::{self, Tenant},
    output,
    report::{self, Failure, Problem, Source},
    strict,
};

/// The kind of a profile.
pub const KIND: &str = "ToolSecurityProfile";

/// A profile that passed the check.
#[derive(Clone)]
pub struct Accepted {
    /// The profile.
    pub profile: ToolSecurityProfile,
    /// Its compiled form, checked.
    pub checked: Checked<Compiled>,
}

/// The profiles in some files, if all are accepted. There is at least one, and names are unique.
pub fn all(sources: &[Arc<Source>]) -> Result<Vec<Accepted>, Failure> {
    let mut accepted = Vec::new();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for source in sources {
        let mut others = Vec::new();
        for object in input::objects(source)? {
            let is_own = object.kind == KIND || object.api_version.starts_with(names::GROUP);
            if !is_own || object.kind == "ToolSecurityParams" || namespaces::is_exception(&object) {
                others.push(object.kind);
                continue;
            }
            match accept(&object) {
                Ok(profile) if seen.insert(profile.checked.profile.clone()) => accepted.push(profile),
                Ok(profile) => problems.push(object.problem(
                    "metadata.name",
                    format!("metadata.name: must be unique: another profile is named {:?}", profile.checked.profile),
                )),
                Err(found) => problems.extend(found),
            }
        }
        // Files of other kinds are expected among several files.
        if let ([_], true) = (sources, problems.is_empty()) {
            output::ignored(source, &others, KIND);
        }
    }
    if !problems.is_empty() {
        return Err(Failure::Wrong(problems));
    }
    if accepted.is_empty() {
        let names: Vec<_> = sources.iter().map(|source| source.name()).collect();
        let message = if names.is_empty() {
            format!("a {KIND} is required: the directory has no YAML or JSON file")
        } else {
            format!("{}: a {KIND} is required", names.join(", "))
        };
        return Err(Failure::CouldNotRun(vec![Problem::new(message)]));
    }
    Ok(accepted)
}

/// Compiles and checks a profile, or returns all its problems.
pub fn accept(object: &Object<'_>) -> Result<Accepted, Vec<Problem>> {
    for (path, found, expected) in
        [("kind", &object.kind, KIND), ("apiVersion", &object.api_version, names::API_VERSION)]
    {
        if found != expected {
            let message =
                if found.is_empty() { format!("{path}: is required") } else { format!("{path}: unknown: {found:?}") };
            return Err(vec![object.problem(path, message).help(format!("must be {expected}"))]);
        }
    }
    let mut problems: Vec<_> = strict::unknown_fields(&object.node)
        .into_iter()
        .map(|unknown| problem(&unknown.diagnostic).at(object.source, unknown.key))
        .collect();
    let profile = match object.parse::<ToolSecurityProfile>() {
        Ok(profile) => Some(profile),
        // The strict check has already reported this field with the others.
        Err(mistake) if mistake.unknown_field && !problems.is_empty() => None,
        Err(mistake) => {
            problems.push(mistake.problem);
            None
        }
    };
    let Some(profile) = profile.filter(|_| problems.is_empty()) else { return Err(problems) };
    checked(profile, PORTABLE, &|diagnostic| problem(diagnostic).at(object.source, place(object, &diagnostic.location)))
}

/// Compiles and checks a profile of a cluster.
///
/// # Errors
/// All its problems.
pub fn accept_live(profile: ToolSecurityProfile) -> Result<Accepted, Vec<Problem>> {
    checked(profile, PORTABLE, &problem)
}

/// Checks accepted profiles again if the API server is older than the minors for which they are checked otherwise: it may
/// reject their expressions, or remove fields that they require.
///
/// # Errors
/// All problems of the profiles with this API server.
pub fn on(accepted: Vec<Accepted>, version: Minor) -> Result<Vec<Accepted>, Failure> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for one in accepted {
        if version >= one.checked.minimum.unwrap_or(PORTABLE) {
            found.push(one);
            continue;
        }
        match checked(one.profile, version, &problem) {
            Ok(one) => found.push(one),
            Err(several) => problems.extend(several),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(Failure::Wrong(problems)) }
}

/// A profile at the stage Deny everywhere: only then every error is a denial, also errors that are not violations of a
/// check, such as a missing parameter. Checks with another stage remain in it.
///
/// # Errors
/// All its problems.
pub fn in_deny(profile: &ToolSecurityProfile) -> Result<Accepted, Vec<Problem>> {
    let mut profile = profile.clone();
    let enforcement = &mut profile.spec.enforcement;
    enforcement.pods = Stage::Deny;
    enforcement.namespace_stages = NamespaceStages::Uniform;
    if enforcement.workloads != OptionalStage::Off {
        enforcement.workloads = OptionalStage::Deny;
    }
    // Unset, it is that of pods.
    if enforcement.objects != Some(OptionalStage::Off) {
        enforcement.objects = None;
    }
    // Its waves need namespaces with separate stages.
    profile.spec.rollout = None;
    accept_live(profile)
}

/// The accepted profiles of a cluster, each with its name or its problems. The others are skipped and reported: an
/// earlier generation of them may be active, but it is unknown here.
pub fn known(all: impl IntoIterator<Item = (String, Result<Accepted, Vec<Problem>>)>) -> Vec<Accepted> {
    let known = |(name, found): (String, Result<Accepted, Vec<Problem>>)| {
        let leave_out = |problems: Vec<Problem>| {
            let why = problems.first().map(ToString::to_string).unwrap_or_default();
            report::note(&format!(
                "warning: profile {name} in the cluster is skipped, because it is not accepted: {why}"
            ));
        };
        found.map_err(leave_out).ok()
    };
    all.into_iter().filter_map(known).collect()
}

/// Compiles a profile, and checks it for a cluster; `located` makes a problem of an error at a place in it.
pub fn checked(
    profile: ToolSecurityProfile,
    cluster: Minor,
    located: &dyn Fn(&Diagnostic) -> Problem,
) -> Result<Accepted, Vec<Problem>> {
    let compiled = guarded(|| palisade_compiler::compile(&profile))
        .map_err(|problem| vec![problem])?
        .map_err(|diagnostics| diagnostics.iter().map(located).collect::<Vec<_>>())?;
    let bundle = compiled.bundle.clone();
    match guarded(|| palisade_gate::check_for(compiled, cluster)).map_err(|problem| vec![problem])? {
        Ok(checked) => Ok(Accepted { profile, checked }),
        Err(rejected) => Err(rejected
            .diagnostics
            .iter()
            .map(|diagnostic| {
                let pair = palisade_gate::part_of(&diagnostic.location).and_then(|part| bundle.part(part));
                pair.map_or_else(|| located(diagnostic), |pair| in_policy(diagnostic, &pair.policy))
            })
            .collect()),
    }
}

/// Compiles or checks a profile. A panic is reported as a problem, so that other profiles are still handled.
pub fn guarded<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Problem> {
    on_large_stack(work).map_err(|error| {
        let problem = Problem::new(format!("internal error in the compilation of the profile: {error}"));
        problem.help("undo the last edit of the profile, and report this error")
    })
}

/// The bytes of a location in a profile.
fn place(object: &Object<'_>, Location { path, position, .. }: &Location) -> Range<usize> {
    match *position {
        Some((line, column)) => object.place_in_text(&path.to_string(), line, column),
        None => object.node.place(&path.to_string()),
    }
}

fn problem(diagnostic: &Diagnostic) -> Problem {
    let problem = Problem::new(format!("{}: {}", diagnostic.location, diagnostic.message));
    match &diagnostic.help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// A problem in the generated policy. It has no place in the file, so the message quotes the expression.
fn in_policy(diagnostic: &Diagnostic, policy: &ValidatingAdmissionPolicy) -> Problem {
    let quoted = quote(&diagnostic.location, policy).map(|line| format!("the generated expression is: {line}"));
    let help = diagnostic.help.clone().or(quoted);
    let problem = problem(diagnostic);
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// The text around `policy.spec.variables[3].expression:1:7`.
fn quote(location: &Location, policy: &ValidatingAdmissionPolicy) -> Option<String> {
    const AROUND: usize = 80;
    let (line, column) = location.position.unwrap_or((1, 1));
    let (line, column) = (line.saturating_sub(1), column.saturating_sub(1));
    let policy = serde_json::to_value(policy).ok()?;
    let text: Vec<_> = location.path.value(&policy)?.as_str()?.lines().nth(line)?.chars().collect();
    let (from, to) = (column.saturating_sub(AROUND).min(text.len()), (column + AROUND).min(text.len()));
    let dots = |cut: bool| if cut { "..." } else { "" };
    Some(format!("{}{}{}", dots(from > 0), text[from..to].iter().collect::<String>(), dots(to < text.len())))
}

/// Warns about profiles that exempt tenants, and about profiles that may select the same namespace and redirect each
/// other's images.
pub fn warn(accepted: &[Accepted]) {
    for (index, one) in accepted.iter().enumerate() {
        for found in palisade_compiler::exempt_tenants(&one.profile.spec.exemptions) {
            report::note(&format!(
                "warning: profile {}: {found}; see palisade lint --explain exempts-tenants",
                one.checked.profile
            ));
        }
        for other in &accepted[..index] {
            let [mine, theirs] = [one, other].map(|of| palisade_compiler::namespace_selector(&of.profile.spec));
            if palisade_kube_json::selector::overlap(&mine, &theirs)
                && palisade_compiler::redirect_each_other(&one.profile.spec, &other.profile.spec)
            {
                report::note(&format!(
                    "warning: profiles {} and {} redirect each other's images in namespaces that both select; \
                     see palisade lint --explain redirected-twice",
                    other.checked.profile, one.checked.profile
                ));
            }
        }
    }
}

/// Reports exceptions without effect, and namespaces in which every pod violates a profile.
pub fn tell(accepted: &[Accepted], namespaces: &[Tenant]) {
    let now = Timestamp::now();
    for Accepted { profile, checked } in accepted {
        for namespace in namespaces.iter().filter(|one| palisade_compiler::selects(&profile.spec, one)) {
            let requests = namespace.requests.iter().map(|(_, request)| request);
            let Some(params) = checked.params(namespace, requests, now) else { continue };
            without_effect(checked, namespace, now);
            if !params.spec.problem.is_empty() {
                report::note(&format!(
                    "warning: namespace {}: every pod violates profile {}: {}",
                    namespace.name, checked.profile, params.spec.problem
                ));
            }
        }
    }
}

/// A profile without the fields that an API server adds, and without empty groups of settings.
pub fn written(profile: &ToolSecurityProfile) -> Json {
    let metadata = json!(profile.metadata);
    let mut kept = Map::new();
    for key in ["name", "labels", "annotations"] {
        if let Some(value) = metadata.get(key) {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(annotations) = kept.get_mut("annotations").and_then(Json::as_object_mut) {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    let mut spec = json!(profile.spec);
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| value.as_object().is_none_or(|fields| !fields.is_empty()));
    }
    json!({"apiVersion": names::API_VERSION, "kind": KIND, "metadata": kept, "spec": spec})
}

/// All objects at a time, in the order in which the controller applies them. Exceptions end at their time.
pub fn objects(
    accepted: &[Accepted],
    namespaces: &[Tenant],
    version: Minor,
    now: Timestamp,
) -> Result<Vec<Json>, serde_json::Error> {
    let mut objects = Vec::new();
    for one in accepted {
        let Accepted { profile, checked } = one;
        for namespace in namespaces.iter().filter(|one| palisade_compiler::selects(&profile.spec, one)) {
            let requests = namespace.requests.iter().map(|(_, request)| request);
            if let Some(params) = checked.params(namespace, requests, now) {
                objects.push(serde_json::to_value(params)?);
            }
            for ResolvedTemplate { template, object } in checked.generated(namespace) {
                match object {
                    Ok(generated) => objects.push(generated.object),
                    Err(problem) => report::note(&format!(
                        "note: profile {}: template {template} gives no object in namespace {}: {problem}",
                        checked.profile, namespace.name
                    )),
                }
            }
        }
        for (_, pair) in checked.bundle.pairs() {
            objects.push(serde_json::to_value(&pair.policy)?);
            for binding in pair.bindings() {
                objects.push(serde_json::to_value(binding)?);
            }
        }
        if let (Some((_, ChangedBy::Policy(served))), Some(pair)) = (changed_by(one, version), &checked.bundle.mutation)
        {
            objects.extend(pair.objects(served));
        }
    }
    Ok(objects)
}

/// Whether a profile selects a pod in a namespace. Without a namespace, it does.
pub fn meets(accepted: &Accepted, namespace: Option<&Tenant>) -> bool {
    let Some(namespace) = namespace else { return true };
    let selected = palisade_compiler::selects(&accepted.profile.spec, namespace);
    if !selected {
        report::note(&format!(
            "note: profile {} does not select namespace {}",
            accepted.checked.profile, namespace.name
        ));
    }
    selected
}

/// The parameters of a profile in a namespace, if it has any; sample values without a namespace.
pub fn params(Accepted { checked, .. }: &Accepted, namespace: Option<&Tenant>) -> Option<ToolSecurityParams> {
    if let Some(namespace) = namespace {
        let (requests, now) = (namespace.requests.iter().map(|(_, request)| request), Timestamp::now());
        without_effect(checked, namespace, now);
        return checked.params(namespace, requests, now);
    }
    let name = checked.profile.as_str();
    if !checked.parameters.is_empty() {
        report::note(&format!("warning: without the pod's namespace, parameters have sample values (profile {name})"));
    }
    checked.probes.params.clone().map(|spec| ToolSecurityParams::new(name, spec))
}

/// Reports exceptions for a profile that have no effect, with the reason.
fn without_effect(checked: &Checked<Compiled>, namespace: &Tenant, now: Timestamp) {
    for (name, request) in namespace.requests.iter().filter(|(_, request)| request.profile == checked.profile) {
        let (reason, why) = checked.exceptions.standing(request, now);
        if reason != ExceptionReason::InForce {
            let place = format!("{}/{name}", namespace.name);
            report::note(&format!("note: ToolSecurityException {place} has no effect; {reason}: {why}"));
        }
    }
}

/// How a profile mutates pods, and what mutates them; `None` if it does not mutate pods.
pub fn changed_by(accepted: &Accepted, version: Minor) -> Option<(&Mutation, ChangedBy)> {
    let mutation = accepted.checked.mutation.as_ref()?;
    Some((mutation, mutation.by(version)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotes_the_generated_expression() {
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({"spec": {"variables": [
            {"name": "a", "expression": format!("{}\nx + here", "ä".repeat(500))},
        ]}}))
        .unwrap();
        let quote = |path: &str, position| quote(&Location { position, ..path.into() }, &policy).unwrap_or_default();
        let expression = "spec.variables[0].expression";
        assert_eq!(quote(expression, Some((2, 5))), "x + here");
        assert_eq!(quote(expression, Some((1, 200))), format!("...{}...", "ä".repeat(160)));
        for (path, position) in
            [("", None), ("spec", None), ("spec.variables[7].expression", Some((1, 1))), (expression, Some((9, 9)))]
        {
            assert_eq!(quote(path, position), "", "{path}");
        }
        assert_eq!(quote(expression, Some((2, 99999))), "...");
    }
}

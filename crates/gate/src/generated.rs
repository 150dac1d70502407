//! Whether each supported API server would accept every object that a profile becomes.
//!
//! If it would reject one, the error is reported at the place in the profile that causes it, if there is one.

use std::{collections::BTreeSet, sync::LazyLock};

use palisade_admission::{
    create::{self, FieldError, Refused},
    objects::{self, Kinds, RequestContext, Submission},
};
use palisade_api::{
    Diagnostic, Origin, Published, crd,
    names::{self, Part},
};
use palisade_cel::Minor;
use palisade_compiler::Compiled;
use palisade_kube_json::{
    field_path::{FieldPath, Segment},
    json::set,
};
use serde_json::{Value as Json, json};

use crate::place::{MUTATING_BINDING, MUTATING_POLICY, PARAMS, WEBHOOK, binding, policy};

/// A namespace like that of any tenant.
const TENANT: &str = "tenant";

const SELECTOR: &str = "write a Kubernetes label selector: In and NotIn with values, Exists and DoesNotExist without";

/// The kinds of parameters, in each minor.
static KINDS: LazyLock<Vec<Kinds>> = LazyLock::new(|| {
    let with = |minor| {
        let mut kinds = Kinds::without_builtin(minor);
        // It is this project's own, and tests install it on API servers.
        let _ = kinds.add_crd(&json!(crd::params()));
        kinds
    };
    Minor::ALL.map(with).into()
});

/// The errors for which some API server, from the oldest minor on, would reject an object. Each place is reported once, in
/// the words of the oldest minor that rejects it.
pub(crate) fn diagnose(compiled: &Compiled, oldest: Minor) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for (minor, kinds) in Minor::ALL.into_iter().zip(KINDS.iter()).filter(|(minor, _)| *minor >= oldest) {
        let mut found: Vec<Diagnostic> = Vec::new();
        for (what, object) in policies(compiled, minor) {
            found.extend(
                create::create(minor, &object, None)
                    .err()
                    .iter()
                    .flat_map(|refused| said(compiled, minor, what, refused)),
            );
        }
        found.extend(of_selectors(compiled, minor));
        let params = params(compiled).and_then(|object| receive(kinds, &object));
        found.extend(params.iter().flat_map(|refused| said(compiled, minor, PARAMS, refused)));
        let earlier: BTreeSet<_> = diagnostics.iter().map(|one| one.location.clone()).collect();
        for diagnostic in found.into_iter().filter(|one| !earlier.contains(&one.location)) {
            // Several objects contain the same selector.
            if !diagnostics.contains(&diagnostic) {
                diagnostics.push(diagnostic);
            }
        }
    }
    diagnostics
}

/// The policies, their bindings and the webhook's registration, as the controller writes them to an API server of a
/// minor.
fn policies(compiled: &Compiled, minor: Minor) -> Vec<(Origin, Json)> {
    let mut all = Vec::new();
    for (part, pair) in compiled.bundle.pairs() {
        all.extend([(policy(part), json!(pair.policy)), (binding(part), json!(pair.binding))]);
    }
    let version = match minor {
        _ if minor >= Minor::V1_36 => Some("v1"),
        _ if minor >= Minor::V1_34 => Some("v1beta1"),
        _ => None,
    };
    if let (Some(pair), Some(version)) = (&compiled.bundle.mutation, version) {
        let [policy, binding] = pair.objects(version);
        all.extend([(MUTATING_POLICY, policy), (MUTATING_BINDING, binding)]);
    }
    if let Some(mutation) = &compiled.mutation {
        // The profile does not decide what the webhook publishes.
        let published = Published { authorities: None, url: None, timeout_seconds: 1 };
        let registration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": names::WEBHOOK}, "webhooks": [mutation.webhook(&published)],
        });
        all.push((WEBHOOK, registration));
    }
    all
}

/// The errors in the selectors of a rollout's waves and of templates. They are in no generated object: a binding with
/// the same selector has the same errors.
fn of_selectors(compiled: &Compiled, minor: Minor) -> Vec<Diagnostic> {
    let waves =
        compiled.wave_selectors.iter().map(|(index, selector)| ("spec.rollout.waves", *index, "selector", selector));
    let templates = compiled.templates.selectors();
    let templates = templates.map(|(index, selector)| ("spec.generate", index, "namespaceSelector", selector));
    let mistakes = waves.chain(templates).flat_map(|(list, index, field, selector)| {
        let mut binding = json!(compiled.bundle.pods.binding);
        set(&mut binding, &["spec", "matchResources"], json!({"namespaceSelector": selector}));
        let causes = match create::create(minor, &binding, None) {
            Err(Refused::Status(status)) => status.causes,
            _ => Vec::new(),
        };
        causes.into_iter().filter_map(move |cause| {
            let found = FieldPath::from(cause.field);
            let selector = FieldPath::from(list).index(index).child(field);
            Some(Diagnostic::new(selector.join(in_selector(&found)?), cause.body).help(SELECTOR))
        })
    });
    mistakes.collect()
}

/// Parameters that a namespace could have, with all exceptions of the profile; `None` if there are none.
fn params(compiled: &Compiled) -> Option<Json> {
    let mut spec = compiled.probes.params.clone()?;
    compiled.exceptions.everywhere(&mut spec);
    Some(json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityParams",
        "metadata": {"name": names::params(&compiled.profile), "namespace": TENANT}, "spec": spec,
    }))
}

fn receive(kinds: &Kinds, object: &Json) -> Option<Refused> {
    let resource = kinds.by_kind(names::API_VERSION, "ToolSecurityParams")?;
    let sent = Submission { resource, subresource: "", namespace: TENANT, object, old: None };
    objects::receive(kinds, sent, &RequestContext::default()).err().map(Refused::from)
}

fn said(compiled: &Compiled, minor: Minor, what: Origin, refused: &Refused) -> Vec<Diagnostic> {
    match refused {
        Refused::NoVerdict(why) => {
            vec![Diagnostic::new(what, format!("cannot tell whether Kubernetes {minor} accepts it: {why}"))]
        }
        Refused::Status(status) if status.causes.is_empty() => {
            vec![Diagnostic::new(what, format!("Kubernetes {minor} rejects it: {}", status.message))]
        }
        Refused::Status(status) => {
            // Which namespaces are left out, the policy for pods says too, and there each has its place in the profile.
            let of_guard = [policy(Part::Guard), binding(Part::Guard)].contains(&what);
            let said = |cause: &&FieldError| !of_guard || in_selector(&cause.field.as_str().into()).is_none();
            status.causes.iter().filter(said).map(|cause| of_cause(compiled, minor, what, cause)).collect()
        }
    }
}

/// The steps of a path below the `namespaceSelector` of a generated object.
fn in_selector(field: &FieldPath) -> Option<&[Segment]> {
    field.after("namespaceSelector").filter(|rest| !rest.is_empty())
}

/// The error in a generated field, at the place in the profile that the field comes from.
fn of_cause(compiled: &Compiled, minor: Minor, what: Origin, cause: &FieldError) -> Diagnostic {
    // Each generated object has the profile's name in its own name, and as a label.
    if matches!(cause.field.as_str(), "metadata.name" | "metadata.labels") {
        let help = "use lower-case letters, digits, dashes and dots; begin and end with a letter or digit";
        return Diagnostic::new("metadata.name", cause.body.clone()).help(help);
    }
    let field = FieldPath::from(cause.field.as_str());
    let Some(rest) = in_selector(&field) else {
        return Diagnostic::new(what.at(field), format!("Kubernetes {minor} rejects it: {}", cause.body));
    };
    match excluded(compiled, rest) {
        Some(index) => Diagnostic::new(FieldPath::from("spec.excludeNamespaces").index(index), cause.body.clone())
            .help("write the name of a namespace: up to 63 lower-case letters, digits and dashes"),
        None => {
            Diagnostic::new(FieldPath::from("spec.namespaceSelector").join(rest), cause.body.clone()).help(SELECTOR)
        }
    }
}

/// The index of an excluded namespace in the profile, given its place in the generated selector
/// (`matchExpressions[2].values[0]`), whose last requirement lists them.
fn excluded(compiled: &Compiled, place: &[Segment]) -> Option<usize> {
    let spec = compiled.bundle.pods.policy.spec.as_ref()?;
    let selector = spec.match_constraints.as_ref()?.namespace_selector.as_ref()?;
    let expressions = selector.match_expressions.as_deref()?;
    let [_, Segment::Index(index), Segment::Field(field), Segment::Index(value), ..] = place else { return None };
    let last = expressions.last().filter(|_| *index == expressions.len() - 1 && field == "values")?;
    let name = last.values.as_ref()?.get(*value)?;
    compiled.excluded.iter().position(|excluded| excluded == name)
}

//! How a profile mutates pods, as a MutatingAdmissionPolicy: the API server does what the webhook would.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    JSONPatch, MatchCondition, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec, MutatingAdmissionPolicySpec, Mutation as MutationOfPolicy, Variable,
};
use palisade_api::{ToolSecurityProfile, names};
use palisade_checks::{
    FieldDefault, Lowering, Subject, bounds, cel,
    defaults::{self, PodNames, Step},
    settings::redirect::Redirect,
};
use palisade_kube_json::json::Change as _;
use serde_json::{Value as Json, json};

use crate::{
    ExpressionStyle, Mutation, expressions, fast,
    metadata::{metadata, param_kind, param_ref},
    used::used,
};

/// A policy that mutates pods, and the binding that activates it.
#[derive(Clone, Debug, PartialEq)]
pub struct MutatingPair {
    /// The policy.
    pub policy: MutatingAdmissionPolicy,
    /// Its binding, of the same name.
    pub binding: MutatingAdmissionPolicyBinding,
}

impl MutatingPair {
    /// Policy and binding as they are written in a version of `admissionregistration.k8s.io` that an API server
    /// serves: `v1` (from Kubernetes 1.36 on) or `v1beta1` (1.34 and 1.35, where it is turned on). The two do not
    /// differ in anything that is used here.
    pub fn objects(&self, version: &str) -> [Json; 2] {
        [json!(self.policy), json!(self.binding)].map(|mut object| {
            *object.at_mut(&["apiVersion"]) = json!(format!("admissionregistration.k8s.io/{version}"));
            object
        })
    }
}

/// The match conditions of the policy, and of the webhook's registration. They leave out pods in the probe namespace,
/// unless these ask who mutates them; exempt users and pods; pods that need no change, because even an empty patch
/// costs more; and pods with a list over its bound, which validation denies.
pub fn match_conditions(mutation: &Mutation) -> Vec<MatchCondition> {
    conditions(mutation, ExpressionStyle::Readable)
}

fn conditions(mutation: &Mutation, style: ExpressionStyle) -> Vec<MatchCondition> {
    let mut exempt = expressions::exempt_terms(&mutation.exemptions, "object.spec");
    exempt.push(expressions::mirrored("object.metadata.?annotations.orValue({})"));
    let condition = |name: &str, lowered| {
        let expression = style.expression("", lowered);
        MatchCondition { name: name.to_owned(), expression }
    };
    let bounds = mutation.bounds();
    let within = (!bounds.is_empty()).then(|| {
        let exact = bounds::hold(&bounds, &NAMES);
        // Nearly every pod is within the cheap one.
        let cheap = fast::sufficient(&exact).and_then(|node| ExpressionStyle::AsLowered.tree("", &node));
        cheap.map_or_else(|| exact.clone(), |cheap| format!("({cheap} || ({exact}))"))
    });
    let mut conditions = vec![
        condition(
            "not-a-probe",
            format!(
                "request.namespace != '{}' || '{}' in object.metadata.?annotations.orValue({{}})",
                names::PROBE_NAMESPACE,
                names::PROBE_MUTATION_ANNOTATION
            ),
        ),
        condition("not-exempt", format!("!{}", cel::any(&exempt))),
    ];
    // One condition, because the API server evaluates all of them, whatever the others say.
    let something = if mutation.fast_path { Parts::new(mutation).something_to_change() } else { None };
    let terms: Vec<_> = something.into_iter().chain(within).collect();
    if !terms.is_empty() {
        let about = "skips requests without changes: docs/adr/0033-skip-complying-requests.md";
        let expression = style.expression(about, terms.join(" && "));
        conditions.push(MatchCondition { name: "something-to-change".to_owned(), expression });
    }
    conditions
}

pub(crate) fn pair(profile: &ToolSecurityProfile, mutation: &Mutation, style: ExpressionStyle) -> MutatingPair {
    let name = names::mutation(&mutation.profile);
    let failure_policy: &str = mutation.failure_policy.into();
    let (variables, expressions) = Parts::new(mutation).expressions(style);
    MutatingPair {
        policy: MutatingAdmissionPolicy {
            metadata: metadata(profile, name.clone()),
            spec: Some(MutatingAdmissionPolicySpec {
                failure_policy: Some(failure_policy.to_owned()),
                match_conditions: Some(conditions(mutation, style)),
                match_constraints: Some(mutation.match_constraints()),
                mutations: Some(expressions.into_iter().map(json_patch).collect()),
                param_kind: mutation.parameterized.then(param_kind),
                // The policy also defaults what a webhook adds after it, such as a container.
                reinvocation_policy: Some("IfNeeded".to_owned()),
                variables: Some(variables),
            }),
        },
        binding: MutatingAdmissionPolicyBinding {
            metadata: metadata(profile, name.clone()),
            spec: Some(MutatingAdmissionPolicyBindingSpec {
                match_resources: None,
                // Where a namespace has none, validation denies and says why.
                param_ref: mutation.parameterized.then(|| param_ref(&mutation.profile, "Allow")),
                policy_name: Some(name),
            }),
        },
    }
}

fn json_patch(expression: String) -> MutationOfPolicy {
    MutationOfPolicy {
        apply_configuration: None,
        json_patch: Some(JSONPatch { expression: Some(expression) }),
        patch_type: "JSONPatch".to_owned(),
    }
}

const ALL_CONTAINERS: &str = "object.spec.containers + object.spec.?initContainers.orValue([]) \
                              + object.spec.?ephemeralContainers.orValue([])";
const IMAGES: &str = "variables.containers.map(c, string(c.?image.orValue(''))) \
                      + object.spec.?volumes.orValue([]).map(v, string(v.?image.?reference.orValue('')))";
/// How the bounds name the parts of the pod.
const NAMES: bounds::Names<'_> = bounds::Names {
    spec: "object.spec",
    containers: &[
        "object.spec.containers",
        "object.spec.?initContainers.orValue([])",
        "object.spec.?ephemeralContainers.orValue([])",
    ],
    volumes: "object.spec.?volumes.orValue([])",
    annotations: "object.metadata.?annotations.orValue({})",
};
/// How the conditions of defaults name the pod.
const POD: PodNames = PodNames { spec: "object.spec", annotations: "object.metadata.?annotations.orValue({})" };
/// CEL of type bool: an ephemeral container is new. The others cannot change.
const NEW: &str = "!oldObject.spec.?ephemeralContainers.orValue([]).exists(o, o.name == c.name)";

/// The parts of a mutation, lowered.
struct Parts<'a> {
    mutation: &'a Mutation,
    /// The variables: name, comment and expression.
    variables: Vec<(&'static str, &'static str, String)>,
    /// CEL of type list(JSONPatch) that adds containers to a new pod. The other operations are for the pod with them.
    added: Option<String>,
    /// CEL of type list(JSONPatch), for a new pod.
    created: String,
    /// CEL of type list(JSONPatch), for new ephemeral containers.
    ephemeral: String,
    /// CEL of type list that is empty only where `created` is, and cheaper; `None` if there is none.
    changing: Option<String>,
}

impl<'a> Parts<'a> {
    fn new(mutation: &'a Mutation) -> Self {
        // Mistakes in the settings were reported when they were lowered for the checks.
        let mut cx = Lowering::new(&mutation.parameters);
        let mut operations = Operations { cx: &mut cx, created: vec![], ephemeral: vec![] };
        operations.set_defaults(mutation);
        let not_windows =
            |defaults: &[String]| format!("(object.spec.?os.?name.orValue('') == 'windows' ? [] : {})", sum(defaults));
        if !mutation.defaults.is_empty() {
            for terms in [&mut operations.created, &mut operations.ephemeral] {
                *terms = if terms.is_empty() { vec![] } else { vec![not_windows(terms)] };
            }
        }
        let mut variables = vec![("containers", "", ALL_CONTAINERS.to_owned())];
        let mut changing = Some(operations.created.clone());
        let mut added = None;
        if !mutation.injections.is_empty() {
            let injected = mutation.injections.lower(operations.cx);
            variables.extend(injected.variables);
            added = injected.containers;
            operations.created.extend(injected.operations);
            // Nearly every pod that an entry matches gets something from it.
            if let Some(terms) = &mut changing {
                terms.push(format!("({} ? [true] : [])", injected.applies));
            }
        }
        if let Some(redirect) = &mutation.redirect {
            let moving = operations.may_redirect(redirect);
            changing = changing.zip(moving).map(|(defaults, moving)| [defaults, moving].concat());
            operations.redirect();
            variables.push(("images", "", IMAGES.to_owned()));
            let redirected = redirect.lower(operations.cx, "variables.images");
            variables.push(("redirected", "redirected images: spec.images.redirect of the profile", redirected));
        }
        let Operations { created, ephemeral, .. } = operations;
        let changing = changing.map(|terms| sum(&terms));
        Self { mutation, variables, added, created: sum(&created), ephemeral: sum(&ephemeral), changing }
    }

    /// CEL of type bool that is false only where nothing changes; `None` if it would have to do all the work. Always
    /// true for a probe that asks who mutates pods: others may have mutated it already, and each one must answer.
    fn something_to_change(&self) -> Option<String> {
        let nothing = fast::nothing_to_do(self.changing.as_ref()?, &self.variables)?;
        let nothing = ExpressionStyle::AsLowered.tree("", &nothing)?;
        Some(format!("(request.namespace == '{}' || !({nothing}))", names::PROBE_NAMESPACE))
    }

    /// The variables, and CEL of type list(JSONPatch) of each mutation. An API server evaluates each of them, and the
    /// variables in it, on the pod that the one before returns.
    fn expressions(self, style: ExpressionStyle) -> (Vec<Variable>, Vec<String>) {
        let Self { mutation, variables, added, created, ephemeral, .. } = self;
        let mut expressions = Vec::new();
        if let Some(added) = added {
            let about = "containers: spec.mutation.inject of the profile".to_owned();
            expressions.push((about, format!("request.operation == 'CREATE' ? {added} : []")));
        }
        expressions.push((about(mutation), format!("request.operation == 'CREATE' ? {created} : {ephemeral}")));
        if mutation.parameterized {
            for (_, expression) in &mut expressions {
                *expression = format!("params.spec.problem != '' ? [] : ({expression})");
            }
        }
        let of_mutations: Vec<_> = expressions.iter().map(|(_, text)| text.clone()).collect();
        let variables = used(variables, |(name, _, text)| (name, text), of_mutations)
            .into_iter()
            .map(|(name, about, lowered)| Variable {
                name: name.to_owned(),
                expression: style.expression(about, lowered),
            })
            .collect();
        let expressions = expressions.into_iter().map(|(about, text)| style.expression(&about, text)).collect();
        (variables, expressions)
    }
}

/// The checks for which a default is set, and their pages.
fn about(mutation: &Mutation) -> String {
    let mut checks: Vec<_> = mutation.defaults.iter().filter_map(|(check, _)| check.as_deref()).collect();
    checks.dedup();
    let mut parts = Vec::new();
    if !checks.is_empty() {
        parts.push(format!("defaults of the checks {}: docs/checks", checks.join(", ")));
    }
    if mutation.redirect.is_some() {
        parts.push("images: spec.images.redirect of the profile".to_owned());
    }
    if !mutation.injections.is_empty() {
        parts.push("additions: spec.mutation.inject of the profile".to_owned());
    }
    parts.join("; ")
}

fn sum(terms: &[String]) -> String {
    match terms {
        [] => "[]".to_owned(),
        terms => format!("({})", terms.join(" + ")),
    }
}

/// CEL of type list(JSONPatch), piece by piece.
struct Operations<'a, 'b> {
    cx: &'a mut Lowering<'b>,
    /// For a new pod.
    created: Vec<String>,
    /// For new ephemeral containers.
    ephemeral: Vec<String>,
}

impl Operations<'_, '_> {
    fn set_defaults(&mut self, mutation: &Mutation) {
        let of = |wanted: &[Subject]| -> Vec<&FieldDefault> {
            mutation
                .defaults
                .iter()
                .map(|(_, default)| default)
                .filter(|default| wanted.contains(&default.of))
                .collect()
        };
        for step in defaults::steps(&of(&[Subject::Pod, Subject::PodOrContainer])) {
            let condition = step.cel("object.spec", POD, self.cx);
            let path = cel::quote(&format!("/spec{}", step.pointer()));
            let operation = self.add(&path, &step);
            self.created.push(format!("({condition} ? [{operation}] : [])"));
        }
        let of_containers = of(&[Subject::Container, Subject::LastingContainer]);
        for step in defaults::steps(&of_containers) {
            for list in ["containers", "initContainers"] {
                let each = self.each(list, None, &step);
                self.created.push(each);
            }
        }
        let of_ephemeral = mutation.of_ephemeral();
        let of_ephemeral: Vec<_> = of_ephemeral.iter().map(|(_, default)| default).collect();
        for step in defaults::steps(&of_ephemeral) {
            let each = self.each("ephemeralContainers", Some(NEW), &step);
            self.ephemeral.push(each);
        }
    }

    /// CEL of type list(JSONPatch): a step in each container of a list.
    fn each(&mut self, list: &str, only: Option<&str>, step: &Step<'_>) -> String {
        let condition = step.cel("c", POD, self.cx);
        let condition = only.map_or(condition.clone(), |only| format!("{only} && {condition}"));
        let path = format!("'/spec/{list}/' + string(i) + {}", cel::quote(&step.pointer()));
        let operation = self.add(&path, step);
        format!("{}.transformList(i, c, {condition}, {operation})", elements(list))
    }

    fn add(&mut self, path: &str, step: &Step<'_>) -> String {
        let value = step.value.map_or_else(|| "{}".to_owned(), |value| value.cel(self.cx));
        format!("JSONPatch{{op: 'add', path: {path}, value: {value}}}")
    }

    /// CEL of type list, each: the containers and volumes whose images may be redirected, and all whose images are;
    /// `None` if that takes all the work.
    fn may_redirect(&mut self, redirect: &Redirect) -> Option<Vec<String>> {
        let mut of = |list: &str, item: &str, image: &str| {
            let stays = redirect.stays(self.cx, &format!("{item}.?{image}.orValue('')"))?;
            Some(format!("{}.filter({item}, !{stays})", elements(list)))
        };
        ["containers", "initContainers"]
            .map(|list| of(list, "c", "image"))
            .into_iter()
            .chain([of("volumes", "v", "image.?reference")])
            .collect()
    }

    fn redirect(&mut self) {
        let images = |list: &str, only: &str, before: &str, field: &str| {
            let found = format!("variables.images[i{before}]");
            let value = format!("variables.redirected[i{before}]");
            let field = field.replace('.', "/");
            format!(
                "{}.transformList(i, c, {only}{value} != {found}, \
                 JSONPatch{{op: 'replace', path: '/spec/{list}/' + string(i) + '/{field}', value: {value}}})",
                elements(list)
            )
        };
        let containers = " + object.spec.containers.size()";
        let all = " + variables.containers.size()";
        let init = format!("{containers} + object.spec.?initContainers.orValue([]).size()");
        self.created.push(images("containers", "", "", "image"));
        self.created.push(images("initContainers", "", containers, "image"));
        self.created.push(images("volumes", "", all, "image.reference"));
        self.ephemeral.push(images("ephemeralContainers", &format!("{NEW} && "), &init, "image"));
    }
}

/// CEL of type list: a list of the pod, which `containers` always has.
fn elements(list: &str) -> String {
    if list == "containers" { "object.spec.containers".to_owned() } else { format!("object.spec.?{list}.orValue([])") }
}

/// The conditions by name, to register a webhook.
impl Mutation {
    /// The conditions (CEL) that a request must meet to be mutated, by name: `matchConditions` of a webhook that does
    /// what the policy would.
    pub fn match_conditions(&self) -> BTreeMap<String, String> {
        match_conditions(self).into_iter().map(|condition| (condition.name, condition.expression)).collect()
    }
}

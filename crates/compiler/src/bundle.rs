//! From rules to policies and bindings.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicySpec, Validation,
};
use palisade_api::{
    ToolSecurityProfile,
    names::{self, Part, Shape},
};
use palisade_checks::{
    bounds::{BOUNDS, Bound},
    settings::mutation::Engine,
};

use crate::{
    Custom, Lowered, Mutation, Options, Writing,
    bindings::Bindings,
    exceptions::how_to_ask,
    expressions::{self, HOW_TO_ASK, Judging},
    fast, guard,
    matching::{all_rules, matching, namespace_selector},
    metadata::{metadata, param_kind, profile_name},
    mutated::{Mutated, Unreadable},
    native::{self, MutatingPair},
    updates::PodUpdates,
};

/// The objects that a profile becomes in the API server, besides the parameters in each namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// The policy and bindings that judge pods.
    pub pods: Pair,
    /// The policy and bindings that judge pod templates; `None` if the profile does not.
    pub workloads: Option<Pair>,
    /// The policy and binding that guard what the profile reads from namespaces; `None` if the profile does not ask for
    /// it, or reads nothing that somebody could change.
    pub guard: Option<Box<Pair>>,
    /// The policy that makes the API server mutate pods; `None` if nothing is defaulted, or the webhook does it.
    pub mutation: Option<MutatingPair>,
}

/// A policy and the bindings that put it in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The policy.
    pub policy: ValidatingAdmissionPolicy,
    /// Its binding, of the same name.
    pub binding: ValidatingAdmissionPolicyBinding,
    /// The binding for updates that can remove a finalizer, which `binding` then leaves out; `None` if the policy reads
    /// no parameters.
    pub updates: Option<ValidatingAdmissionPolicyBinding>,
    /// The same two for namespaces with a stage of their own, which `binding` and `updates` then leave out, for each
    /// stage; empty if no namespace has one.
    pub staged: Vec<ValidatingAdmissionPolicyBinding>,
}

impl Pair {
    /// Whether it has a fast path for requests that surely violate nothing.
    pub fn has_fast_path(&self) -> bool {
        self.policy.spec.as_ref().is_some_and(|spec| spec.match_conditions.is_some())
    }

    /// Its bindings. Each request matches one of them.
    pub fn bindings(&self) -> impl Iterator<Item = &ValidatingAdmissionPolicyBinding> {
        [&self.binding].into_iter().chain(&self.updates).chain(&self.staged)
    }
}

impl Bundle {
    /// Takes the fast path from the policies that judge. They give the same verdicts without it.
    pub fn remove_fast_path(&mut self) {
        for spec in
            [Some(&mut self.pods), self.workloads.as_mut()].into_iter().flatten().flat_map(|pair| &mut pair.policy.spec)
        {
            spec.match_conditions = None;
        }
    }

    /// The pair that judges a shape; `None` if none does.
    pub fn pair(&self, shape: Shape) -> Option<&Pair> {
        match shape {
            Shape::Pods => Some(&self.pods),
            Shape::Workloads => self.workloads.as_ref(),
        }
    }

    /// The pair that is a part of the profile; `None` if there is none.
    pub fn part(&self, part: Part) -> Option<&Pair> {
        match part {
            Part::Judge(shape) => self.pair(shape),
            Part::Guard => self.guard.as_deref(),
        }
    }

    /// The same without the fast path: all expressions judge every request, with the same verdicts.
    #[must_use]
    pub fn in_full(mut self) -> Self {
        for pair in [Some(&mut self.pods), self.workloads.as_mut()].into_iter().flatten() {
            if let Some(spec) = &mut pair.policy.spec {
                spec.match_conditions = None;
            }
        }
        self
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (Part, &Pair)> {
        Part::ALL.into_iter().filter_map(|part| Some((part, self.part(part)?)))
    }
}

/// The objects that the rules of a profile become.
pub(crate) fn bundle(
    profile: &ToolSecurityProfile,
    rules: &[Lowered],
    customs: &[Custom],
    mutation: Option<&Mutation>,
    parameterized: bool,
    options: Options,
) -> Bundle {
    let Options { writing, fast_path } = options;
    let updates = PodUpdates::new(profile, rules, customs, parameterized);
    let bounds = bounds(rules, customs, mutation);
    let changed = mutation.and_then(|mutation| as_mutated(rules, customs, mutation, writing).ok());
    let pair = |shape, stage| {
        let as_written = customs;
        let (rules, customs, mutated) = match &changed {
            Some((rules, customs, variables)) if shape == Shape::Workloads => {
                (&rules[..], &customs[..], &variables[..])
            }
            _ => (rules, customs, &[][..]),
        };
        let bindings = Bindings { profile, shape, updates };
        let (binding, updates_binding) = bindings.unlabelled(stage);
        Pair {
            policy: ValidatingAdmissionPolicy {
                metadata: metadata(profile, names::policy(profile_name(profile), shape)),
                spec: Some(policy_spec(
                    profile,
                    shape,
                    fast_path,
                    &Judging { rules, customs, as_written, updates, bounds: &bounds, mutated, writing },
                )),
                status: None,
            },
            binding,
            updates: updates_binding,
            staged: bindings.labelled(),
        }
    };
    let enforcement = &profile.spec.enforcement;
    Bundle {
        pods: pair(Shape::Pods, enforcement.pods),
        workloads: enforcement.workloads.stage().map(|stage| pair(Shape::Workloads, stage)),
        guard: guard::objects(profile, writing)
            .map(|(policy, binding)| Box::new(Pair { policy, binding, updates: None, staged: vec![] })),
        mutation: mutation
            .filter(|mutation| mutation.engine != Engine::Webhook)
            .map(|mutation| native::pair(profile, mutation, writing)),
    }
}

/// The checks as they judge templates, and the variables that their expressions need.
type AsMutated = (Vec<Lowered>, Vec<Custom>, Vec<(String, String, String)>);

/// # Errors
/// An expression of the profile does not parse, which the gate reports.
fn as_mutated(
    rules: &[Lowered],
    customs: &[Custom],
    mutation: &Mutation,
    writing: Writing,
) -> Result<AsMutated, Unreadable> {
    let mutated = Mutated::new(mutation)?;
    let rules = rules.iter().map(|rule| mutated.lowered(rule)).collect::<Result<_, _>>()?;
    let customs = customs.iter().map(|custom| mutated.custom(custom, writing)).collect::<Result<_, _>>()?;
    Ok((rules, customs, mutated.variables))
}

/// The bounds of a pod's lists: those of lists in which a check restricts something, and all bounds if the profile
/// mutates pods or has custom checks.
fn bounds(rules: &[Lowered], customs: &[Custom], mutation: Option<&Mutation>) -> Vec<&'static Bound> {
    let of_mutation = mutation.map(Mutation::bounds).unwrap_or_default();
    let restricted = |bound: &&Bound| rules.iter().flat_map(|one| one.check.fields).any(|field| bound.covers(field));
    BOUNDS.iter().filter(|bound| !customs.is_empty() || restricted(bound) || of_mutation.contains(bound)).collect()
}

/// CEL of type string: the message for a denied user. The API server drops a message that is longer than 5 KiB (bytes)
/// or has line breaks. What ends it, so many bytes, is not cut off.
fn message(ends: Option<usize>) -> String {
    let bytes = ends.unwrap_or_default();
    let end = if ends.is_some() { format!(" + variables.{HOW_TO_ASK}") } else { String::new() };
    let (longest, cut) = (5120 - bytes, 5090 - bytes);
    format!(
        "bytes(variables.message).size() <= {longest} ? variables.message{end} : variables.message.substring(0, \
         bytes(variables.message).size() == variables.message.size() ? {cut} : {}) + ' ... (truncated)'{end}",
        (cut - 10) / 4
    )
}

/// The spec, with each default of the API server written out, so that the controller can compare what it reads back
/// with what it wrote.
fn policy_spec(
    profile: &ToolSecurityProfile,
    shape: Shape,
    fast_path: bool,
    judging: &Judging<'_>,
) -> ValidatingAdmissionPolicySpec {
    let parameterized = judging.updates != PodUpdates::AsCreation;
    let variables = expressions::variables(profile, shape, judging);
    let condition = if fast_path { fast::match_condition(shape, judging, &variables) } else { None };
    let end = how_to_ask(profile, "").map(|(_, sentence)| sentence.len() + ". ".len());
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        param_kind: parameterized.then(param_kind),
        match_constraints: Some(matching(namespace_selector(&profile.spec), all_rules(shape))),
        match_conditions: condition.map(|condition| vec![condition]),
        variables: Some(variables),
        validations: Some(vec![Validation {
            expression: "variables.violations.size() == 0".to_owned(),
            message: Some(format!("violates ToolSecurityProfile {}", profile_name(profile))),
            message_expression: Some(judging.writing.expression("", message(end))),
            reason: Some("Forbidden".to_owned()),
        }]),
        audit_annotations: None,
    }
}

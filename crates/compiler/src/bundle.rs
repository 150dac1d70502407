//! From rules to policies and bindings.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicySpec,
    Validation, Variable,
};
use palisade_api::{
    CustomTarget, Stage, ToolSecurityProfile,
    names::{self, Part, Shape},
};
use palisade_cel::parse::parse_unexpanded;
use palisade_checks::{
    bounds::{self, BOUNDS},
    settings::mutation::Engine,
};

use crate::{
    Custom, ExpressionStyle, Lowered, LoweredObject, Mutation, Options,
    bindings::{Bindings, Bound},
    exceptions::{excepted_checks, how_to_ask},
    expressions::{self, HOW_TO_ASK, PolicyInputs},
    fast, guard,
    matching::{RequestRules, matching, namespace_selector},
    metadata::{metadata, param_kind, profile_name},
    mutated::{Mutated, Unreadable},
    native::{self, MutatingPair},
    objects::{self, ObjectCheck},
    own_stage::OwnStage,
    probes::Probes,
    style::SYNTAX,
    tree::variables_read,
    updates::PodUpdates,
    used::used,
};

/// The objects that a profile compiles to, without the parameters in each namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// The policy and bindings that evaluate pods.
    pub pods: PolicyWithBindings,
    /// The policy and bindings that evaluate pod templates; `None` if the profile does not.
    pub workloads: Option<PolicyWithBindings>,
    /// The same two for the checks with a separate stage, where that makes a difference.
    pub checks_of_pods: Option<Box<PolicyWithBindings>>,
    /// See [`Self::checks_of_pods`].
    pub checks_of_workloads: Option<Box<PolicyWithBindings>>,
    /// The policy and bindings that evaluate objects other than pods and workloads; `None` if the profile does not.
    pub objects: Option<Box<PolicyWithBindings>>,
    /// The same for the checks with a separate stage, where that makes a difference.
    pub checks_of_objects: Option<Box<PolicyWithBindings>>,
    /// The policy and binding that guard the labels and annotations that the profile reads from namespaces; `None` if
    /// `guardSources` is false, or the profile reads none that a user could change.
    pub guard: Option<Box<PolicyWithBindings>>,
    /// The policy that makes the API server mutate pods; `None` if nothing is defaulted, or the webhook does it.
    pub mutation: Option<MutatingPair>,
}

/// A policy and the bindings that activate it.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyWithBindings {
    /// The policy.
    pub policy: ValidatingAdmissionPolicy,
    /// Its binding, of the same name.
    pub binding: ValidatingAdmissionPolicyBinding,
    /// The binding for updates that can remove a finalizer, which `binding` then leaves out; `None` if the policy reads
    /// no parameters.
    pub updates: Option<ValidatingAdmissionPolicyBinding>,
    /// The same two for namespaces with a separate stage, which `binding` and `updates` then leave out, for each
    /// stage; and those of a policy for objects by which updates are evaluated without parameters.
    pub others: Vec<ValidatingAdmissionPolicyBinding>,
    /// The variables that custom checks of pods can read. The policy has only those that are read. Empty if it evaluates no
    /// custom check of pods.
    pub offered: Vec<Variable>,
}

impl PolicyWithBindings {
    /// Whether it has a fast path for requests that certainly violate nothing.
    pub fn has_fast_path(&self) -> bool {
        self.policy.spec.as_ref().is_some_and(|spec| spec.match_conditions.is_some())
    }

    /// Its bindings. Each request matches one of them; some updates of objects match two, of which one lacks parameters.
    pub fn bindings(&self) -> impl Iterator<Item = &ValidatingAdmissionPolicyBinding> {
        [&self.binding].into_iter().chain(&self.updates).chain(&self.others)
    }
}

impl Bundle {
    /// Takes the fast path from the policies that evaluate. They give the same verdicts without it.
    pub fn remove_fast_path(&mut self) {
        // The match condition of the guard is no fast path.
        let Self {
            pods,
            workloads,
            checks_of_pods,
            checks_of_workloads,
            objects,
            checks_of_objects,
            guard: _,
            mutation: _,
        } = self;
        let boxed = [checks_of_pods, checks_of_workloads, objects, checks_of_objects];
        let boxed = boxed.into_iter().filter_map(|pair| pair.as_deref_mut());
        for pair in [pods].into_iter().chain(workloads).chain(boxed) {
            if let Some(spec) = &mut pair.policy.spec {
                spec.match_conditions = None;
            }
        }
    }

    /// The pair that evaluates a shape; `None` if none does. Checks with a separate stage that is not Deny are in
    /// another pair ([`Self::judging`]).
    pub fn pair(&self, shape: Shape) -> Option<&PolicyWithBindings> {
        match shape {
            Shape::Pods => Some(&self.pods),
            Shape::Workloads => self.workloads.as_ref(),
            Shape::Objects => self.objects.as_deref(),
        }
    }

    /// All pairs that evaluate a shape.
    pub fn judging(&self, shape: Shape) -> impl Iterator<Item = (Part, &PolicyWithBindings)> {
        Part::judging(shape).into_iter().filter_map(|part| Some((part, self.part(part)?)))
    }

    /// The pair that is a part of the profile; `None` if there is none.
    pub fn part(&self, part: Part) -> Option<&PolicyWithBindings> {
        match part {
            Part::Judge(shape) => self.pair(shape),
            Part::Checks(Shape::Pods) => self.checks_of_pods.as_deref(),
            Part::Checks(Shape::Workloads) => self.checks_of_workloads.as_deref(),
            Part::Checks(Shape::Objects) => self.checks_of_objects.as_deref(),
            Part::Guard => self.guard.as_deref(),
        }
    }

    /// The same without the fast path: all expressions evaluate every request, with the same verdicts.
    #[must_use]
    pub fn in_full(mut self) -> Self {
        self.remove_fast_path();
        self
    }

    /// All pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (Part, &PolicyWithBindings)> {
        Part::ALL.into_iter().filter_map(|part| Some((part, self.part(part)?)))
    }
}

/// The objects that the rules of a profile become.
pub(crate) fn bundle(
    profile: &ToolSecurityProfile,
    (rules, objects): (&[Lowered], &[LoweredObject]),
    customs: &[Custom],
    mutation: Option<&Mutation>,
    parameterized: bool,
    probes: &Probes,
    options: Options,
) -> Bundle {
    let (of_objects, customs): (Vec<_>, Vec<_>) =
        customs.iter().cloned().partition(|custom| custom.check.target == CustomTarget::Object);
    let customs = &customs[..];
    let changed = mutation.and_then(|mutation| as_mutated(rules, customs, mutation, options.style).ok());
    let source =
        Source { profile, rules, customs, objects, of_objects, changed, mutation, parameterized, probes, options };
    let enforcement = &profile.spec.enforcement;
    let workloads = enforcement.workloads.stage();
    let is_listed = |own: &OwnStage<'_>| {
        let ids = rules.iter().map(|one| one.check.id).chain(customs.iter().map(|one| one.check.id.as_str()));
        ids.into_iter().any(|id| own.has(id))
    };
    let own_of = |stage| OwnStage::of(enforcement)?.in_shape(stage);
    let own = |shape, stage| own_of(stage).filter(is_listed).map(|own| (shape, own));
    let of_pods = own(Shape::Pods, enforcement.pods);
    let of_workloads = workloads.and_then(|stage| own(Shape::Workloads, stage));
    let checks = |(shape, own): (Shape, OwnStage<'_>)| Box::new(source.checks(shape, own));
    Bundle {
        pods: source.judge(Shape::Pods, enforcement.pods, of_pods.map(|(_, own)| own)),
        workloads: workloads.map(|stage| source.judge(Shape::Workloads, stage, of_workloads.map(|(_, own)| own))),
        checks_of_pods: of_pods.map(checks),
        checks_of_workloads: of_workloads.map(checks),
        objects: enforcement.objects().and_then(|stage| {
            let own = own_of(stage);
            let part = Part::Judge(Shape::Objects);
            source.objects(part, stage, |check| own.is_none_or(|own| own.shape_judges(check))).map(Box::new)
        }),
        checks_of_objects: enforcement.objects().and_then(own_of).and_then(|own| {
            source.objects(Part::Checks(Shape::Objects), own.stage, |check| own.has(check)).map(Box::new)
        }),
        guard: guard::objects(profile, options.style).map(|(policy, binding)| {
            Box::new(PolicyWithBindings { policy, binding, updates: None, others: vec![], offered: vec![] })
        }),
        mutation: mutation
            .filter(|mutation| mutation.engine != Engine::Webhook)
            .map(|mutation| native::pair(profile, mutation, options.style)),
    }
}

/// The parts of a profile that become its pairs.
struct Source<'a> {
    profile: &'a ToolSecurityProfile,
    rules: &'a [Lowered],
    /// The custom checks of pods.
    customs: &'a [Custom],
    /// The rules for other objects.
    objects: &'a [LoweredObject],
    /// The custom checks of other objects.
    of_objects: Vec<Custom>,
    /// The same as they evaluate templates, if the profile mutates pods.
    changed: Option<AsMutated>,
    mutation: Option<&'a Mutation>,
    parameterized: bool,
    probes: &'a Probes,
    options: Options,
}

impl Source<'_> {
    /// The pair that evaluates a shape by all checks that have no pair of their own.
    fn judge(&self, shape: Shape, stage: Stage, own: Option<OwnStage<'_>>) -> PolicyWithBindings {
        self.pair(shape.into(), shape, stage, |check| own.is_none_or(|own| own.shape_judges(check)))
    }

    /// The pair that evaluates a shape by the checks with a separate stage.
    fn checks(&self, shape: Shape, own: OwnStage<'_>) -> PolicyWithBindings {
        self.pair(Part::Checks(shape), shape, own.stage, |check| own.has(check))
    }

    fn pair(&self, part: Part, shape: Shape, stage: Stage, makes: impl Fn(&str) -> bool) -> PolicyWithBindings {
        let Self { profile, rules, customs, changed, mutation, parameterized, probes, options, .. } = self;
        let Options { style, fast_path } = *options;
        let made = |rules: &[Lowered]| rules.iter().filter(|one| makes(one.check.id)).cloned().collect::<Vec<_>>();
        let own = |customs: &[Custom]| customs.iter().filter(|one| makes(&one.check.id)).cloned().collect::<Vec<_>>();
        let as_written = own(customs);
        let (declared, customs, mutated) = match changed {
            Some((rules, customs, variables)) if shape == Shape::Workloads => {
                (&rules[..], own(customs), variables.clone())
            }
            _ => (*rules, as_written.clone(), Vec::new()),
        };
        let (rules, as_judged) = (made(rules), made(declared));
        let is_by_itself = matches!(part, Part::Checks(_));
        // A custom check may name any variable.
        let all = !is_by_itself || !customs.is_empty();
        let mutated = if all { mutated } else { read_by(&as_judged, mutated) };
        // The checks of a pair by itself may read no parameters. Then it also judges where these are wrong.
        let of_mutation = mutated.iter().map(|(_, _, text)| text).chain(as_judged.iter().flat_map(Lowered::texts));
        let reads_parameters = reads_parameters(profile, &rules, &as_written)
            || of_mutation.into_iter().any(|text| text.contains("params"));
        let parameterized = *parameterized && (!is_by_itself || reads_parameters);
        let updates = PodUpdates::new(profile, &rules, &as_written, parameterized);
        let mutates = mutation.filter(|_| !is_by_itself || !mutated.is_empty());
        let inputs = PolicyInputs {
            rules: &as_judged,
            declared,
            customs: &customs,
            as_written: &as_written,
            updates,
            bounds: &bounds(&rules, &as_written, mutates),
            mutated: &mutated,
            denies_probe: probes.is_denied_by_name(part),
            style,
        };
        let variables = expressions::variables(profile, part, shape, &inputs);
        let condition = if fast_path { fast::match_condition(shape, &inputs, &variables) } else { None };
        let rules = match shape {
            Shape::Pods => RequestRules::of_pods(),
            Shape::Workloads | Shape::Objects => RequestRules::of_workloads(),
        };
        let bindings = Bindings { profile, part, shape, rules: &rules, updates, without: false };
        let offered = if customs.is_empty() { Vec::new() } else { variables.clone() };
        let pair = self.bound(bindings, stage, condition, without_unread(variables, &customs));
        PolicyWithBindings { offered, ..pair }
    }

    /// The pair that evaluates objects other than pods and workloads by some checks; `None` if there are none.
    fn objects(&self, part: Part, stage: Stage, makes: impl Fn(&str) -> bool) -> Option<PolicyWithBindings> {
        let Self { profile, objects, of_objects, options, .. } = self;
        let catalogue = objects.iter().filter(|one| makes(one.check.id));
        let catalogue = catalogue.map(|one| ObjectCheck::of_catalogue(one, profile, options.style));
        let customs = of_objects.iter().filter(|custom| makes(&custom.check.id));
        let customs = customs.map(|custom| ObjectCheck::custom(custom, profile));
        let checks: Vec<_> = catalogue.chain(customs).collect();
        if checks.is_empty() {
            return None;
        }
        let rules = RequestRules::of_resources(checks.iter().flat_map(|check| &check.resources)).with_probes();
        // Without a check that reads parameters, it also evaluates namespaces whose parameters are missing.
        let updates = if self.parameterized && checks.iter().any(|check| check.reads_parameters) {
            PodUpdates::WithParameters
        } else {
            PodUpdates::AsCreation
        };
        let variables = objects::variables(profile, part, &checks, options.style);
        let condition =
            options.fast_path.then(|| objects::match_condition(profile, &checks, &variables, options.style)).flatten();
        let without = checks.iter().any(|check| !check.reads_parameters || check.is_of_catalogue);
        let bindings = Bindings { profile, part, shape: Shape::Objects, rules: &rules, updates, without };
        Some(self.bound(bindings, stage, condition, without_unread(variables, &[])))
    }

    /// A policy with these variables, and its bindings.
    fn bound(
        &self,
        bindings: Bindings<'_>,
        stage: Stage,
        condition: Option<MatchCondition>,
        variables: Vec<Variable>,
    ) -> PolicyWithBindings {
        let Bindings { profile, part, rules, updates, .. } = bindings;
        let Bound { binding, updates: of_updates, others } = bindings.all(stage);
        let parameterized = updates != PodUpdates::AsCreation;
        PolicyWithBindings {
            policy: ValidatingAdmissionPolicy {
                metadata: metadata(profile, names::policy(profile_name(profile), part)),
                spec: Some(policy_spec(profile, rules, parameterized, condition, variables, self.options.style)),
                status: None,
            },
            binding,
            updates: of_updates,
            others,
            offered: Vec::new(),
        }
    }
}

/// The variables of mutation that these rules read, also through each other.
fn read_by(rules: &[Lowered], mutated: Vec<(String, String, String)>) -> Vec<(String, String, String)> {
    used(mutated, |(name, _, text)| (name, text), rules.iter().flat_map(Lowered::texts))
}

/// The variables that the validation of a policy with these custom checks of pods reads, also through each other.
fn without_unread(variables: Vec<Variable>, customs: &[Custom]) -> Vec<Variable> {
    let read_by = |custom: &Custom| variables_read(&parse_unexpanded(custom.violations(), SYNTAX).ok()?.root);
    // An administrator can write the name of a variable in more ways than one.
    let Some(named) = customs.iter().map(read_by).collect::<Option<Vec<_>>>() else { return variables };
    let named = named.into_iter().flatten().map(|name| format!("variables.{name}"));
    let texts = named.chain([VALIDATION.to_owned(), message(Some(0))]);
    used(variables, |one| (&one.name, &one.expression), texts)
}

/// Whether a policy with these checks reads the parameters of the namespace. A custom check may read the variables of
/// all others.
fn reads_parameters(profile: &ToolSecurityProfile, rules: &[Lowered], customs: &[Custom]) -> bool {
    let excepted = excepted_checks(&profile.spec);
    !customs.is_empty() || rules.iter().any(|one| one.reads_parameters || excepted.contains(one.check.id))
}

/// The checks as they evaluate templates, and the variables that their expressions need.
type AsMutated = (Vec<Lowered>, Vec<Custom>, Vec<(String, String, String)>);

/// # Errors
/// An expression of the profile does not parse, which the gate reports.
fn as_mutated(
    rules: &[Lowered],
    customs: &[Custom],
    mutation: &Mutation,
    style: ExpressionStyle,
) -> Result<AsMutated, Unreadable> {
    let mutated = Mutated::new(mutation)?;
    let rules = rules.iter().map(|rule| mutated.lowered(rule)).collect::<Result<_, _>>()?;
    let customs = customs.iter().map(|custom| mutated.custom(custom, style)).collect::<Result<_, _>>()?;
    Ok((rules, customs, mutated.variables))
}

/// The bounds of a pod's lists: those of lists in which a check restricts something, and all bounds if the profile
/// mutates pods or has custom checks.
fn bounds(rules: &[Lowered], customs: &[Custom], mutation: Option<&Mutation>) -> Vec<&'static bounds::Bound> {
    let of_mutation = mutation.map(Mutation::bounds).unwrap_or_default();
    let restricted =
        |bound: &&bounds::Bound| rules.iter().flat_map(|one| one.check.fields).any(|field| bound.covers(field));
    BOUNDS.iter().filter(|bound| !customs.is_empty() || restricted(bound) || of_mutation.contains(bound)).collect()
}

/// CEL of type string: the message for a denied user. The API server drops a message that is longer than 5 KiB (bytes)
/// or has line breaks. The end of the message, with a length of `ends` bytes, is never cut off.
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

/// CEL of type bool: the validation of a policy that evaluates.
const VALIDATION: &str = "variables.violations.size() == 0";

/// The spec, with each default of the API server written out, so that the controller can compare what it reads back
/// with what it wrote.
fn policy_spec(
    profile: &ToolSecurityProfile,
    rules: &RequestRules,
    parameterized: bool,
    condition: Option<MatchCondition>,
    variables: Vec<Variable>,
    style: ExpressionStyle,
) -> ValidatingAdmissionPolicySpec {
    let end = how_to_ask(profile, "").map(|(_, sentence)| sentence.len() + ". ".len());
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        param_kind: parameterized.then(param_kind),
        match_constraints: Some(matching(namespace_selector(&profile.spec), rules.all.clone())),
        match_conditions: condition.map(|condition| vec![condition]),
        variables: Some(variables),
        validations: Some(vec![Validation {
            expression: VALIDATION.to_owned(),
            message: Some(format!("violates ToolSecurityProfile {}", profile_name(profile))),
            message_expression: Some(style.expression("", message(end))),
            reason: Some("Forbidden".to_owned()),
        }]),
        audit_annotations: None,
    }
}

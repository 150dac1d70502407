//! Proofs that each pod that one profile admits is admitted by another one, check by check, or the smallest pods for which
//! that does not hold.

mod example;

use std::collections::BTreeSet;

use palisade_api::{
    Parameter, ParameterType, ToolSecurityProfileSpec,
    names::{self, Part, Shape},
};
use palisade_cel::{ast::Node, schema::Kind};
use palisade_compiler::{Compiled, VIOLATIONS};
use palisade_prove::{
    Answer, Operation, Policy, Questions, Requests,
    Side as Admitting,
    question::{OTHER_PARAMS, PARAMS, expression},
    search::Proved,
    universe::{self, Type},
};

use crate::{
    Checked,
    proofs::{SCHEMAS, params_type, read_variables},
};

pub use example::Example;

/// The row for the requests that are exempt.
pub const EXEMPTIONS: &str = "exemptions";
/// The row for the limits of lists and strings.
pub const BOUNDS: &str = "bounds";

/// A profile and its compiled form, checked.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// The settings.
    pub spec: &'a ToolSecurityProfileSpec,
    /// The compiled form.
    pub checked: &'a Checked<Compiled>,
}

/// Whether each pod that one profile admits satisfies a check of another.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It does.
    Proved(Proved),
    /// This pod is admitted by the one, and denied by the other. The offline evaluation of both policies confirms it.
    Differs(Box<Example>),
    /// There is no proof and no example.
    Unknown(String),
}

/// The verdict on each check of a profile.
pub type Rows = Vec<(String, Verdict)>;

/// A profile's policies for pods.
struct Side {
    policies: Vec<Policy>,
    /// The checks of each, with an expression that holds if the check finds nothing.
    checks: Vec<(usize, String, Node)>,
    assumed: Vec<Node>,
}

impl Side {
    /// `None` if an expression does not parse, which the check of a profile excludes.
    fn new(profile: Profile<'_>) -> Option<Self> {
        let mut side = Self { policies: Vec::new(), checks: Vec::new(), assumed: Vec::new() };
        let tenant = format!("request.namespace != '{}'", names::PROBE_NAMESPACE);
        side.assumed.push(expression(&tenant)?);
        for part in Part::judging(Shape::Pods) {
            let Some(pair) = profile.checked.bundle.part(part) else { continue };
            let spec = pair.policy.spec.as_ref()?;
            let variables = spec.variables.iter().flatten().map(|one| (one.name.as_str(), one.expression.as_str()));
            let validations = spec.validations.iter().flatten().map(|one| one.expression.as_str());
            let policy = Policy::parse(variables, [], validations)?;
            let mut read = BTreeSet::new();
            read_variables(policy.variables.get(VIOLATIONS)?, &mut read);
            for id in read.into_iter().filter(|id| !crate::proofs::HELPERS.contains(&id.as_str())) {
                let finds_nothing = expression(&format!("variables.{id}.size() == 0"))?;
                side.checks.push((side.policies.len(), id, finds_nothing));
            }
            if spec.param_kind.is_some() && side.assumed.len() == 1 {
                side.assumed.push(expression("params != null && params.spec.problem == ''")?);
                side.assumed.extend(limits(profile.spec));
            }
            side.policies.push(policy);
        }
        Some(side)
    }

    /// The policies without exemptions and limits, which have rows of their own.
    fn plain(&self) -> Option<Vec<Policy>> {
        let of = |policy: &Policy| {
            let mut policy = policy.clone();
            for (name, value) in [("exempt", "false"), ("withinBounds", "true")] {
                if let Some(definition) = policy.variables.get_mut(name) {
                    *definition = expression(value)?;
                }
            }
            Some(policy)
        };
        self.policies.iter().map(of).collect()
    }

    /// The first policy with a variable as its only validation; none if it has no such variable.
    fn about(&self, variable: &str) -> Option<Policy> {
        let policy = self.policies.first().filter(|policy| policy.variables.contains_key(variable))?;
        let validations = vec![expression(&format!("variables.{variable}"))?];
        Some(Policy { validations, ..policy.clone() })
    }
}

/// That declared parameters have values, within their limits.
fn limits(spec: &ToolSecurityProfileSpec) -> Vec<Node> {
    let of = |one: &Parameter| {
        let map = match one.type_ {
            ParameterType::Integer => "integers",
            ParameterType::String => "strings",
            ParameterType::Boolean => "booleans",
            ParameterType::StringList => "stringLists",
        };
        let is_set = format!("'{}' in params.spec.{map}", one.name);
        let value = format!("params.spec.{map}['{}']", one.name);
        let least = one.minimum.map(|least| format!("{value} >= {least}"));
        let most = one.maximum.map(|most| format!("{value} <= {most}"));
        [Some(is_set), least, most].into_iter().flatten()
    };
    spec.parameters.iter().flat_map(of).filter_map(|text| expression(&text)).collect()
}

/// Whether two profiles read the same values: no parameter differs that both declare.
fn share_parameters(one: &ToolSecurityProfileSpec, other: &ToolSecurityProfileSpec) -> bool {
    let same = |of: &Parameter| other.parameters.iter().all(|also| also.name != of.name || also == of);
    one.parameters.iter().all(same)
}

/// For each check of `denying`: whether each new pod that `admitting` admits satisfies it. The pods are those of any user
/// in any namespace that both select, with any parameters.
pub fn admitted_by(admitting: Profile<'_>, denying: Profile<'_>) -> Rows {
    let unreadable = || vec![(String::new(), Verdict::Unknown("an expression does not parse".to_owned()))];
    let Some((one, other)) = Side::new(admitting).zip(Side::new(denying)) else { return unreadable() };
    let Some((plain, others)) = one.plain().zip(other.plain()) else { return unreadable() };
    let pod = Kind::parse("v1/Pod").and_then(|kind| universe::of_kind(&SCHEMAS, &kind));
    let object = pod.unwrap_or(Type::Other);
    let params = params_type();
    let requests = Requests { object: &object, kind: "Pod", operation: Operation::Create, params: params.as_ref() };
    let shared = share_parameters(admitting.spec, denying.spec);
    let of_other = if shared { PARAMS } else { OTHER_PARAMS };
    let mut questions = Questions::default();
    let mut rows = Rows::new();
    let mut assumed = one.assumed.clone();
    if shared {
        assumed.extend(other.assumed.iter().cloned());
    }
    for (index, policy) in others.iter().enumerate() {
        let (ids, goals): (Vec<_>, Vec<_>) =
            other.checks.iter().filter(|(of, ..)| *of == index).map(|(_, id, goal)| (id.clone(), goal.clone())).unzip();
        let by = Admitting { policies: &plain, params: PARAMS };
        let answers = requests.admitted_satisfy(&mut questions, by, &assumed, (policy, of_other), &goals);
        for (id, answer) in ids.into_iter().zip(answers) {
            let check = id.strip_prefix("custom_").unwrap_or(&id).to_owned();
            let verdict = verdict(answer, admitting, denying, &check);
            rows.push((check, verdict));
        }
    }
    for (row, variable) in [(EXEMPTIONS, "exempt"), (BOUNDS, "withinBounds")] {
        let Some(policy) = other.about(variable) else { continue };
        let premise: Vec<Policy> = one.about(variable).into_iter().collect();
        let by = Admitting { policies: &premise, params: PARAMS };
        let goals = policy.validations.clone();
        let goals = requests.admitted_satisfy(&mut questions, by, &assumed, (&policy, of_other), &goals);
        for answer in goals {
            rows.push((row.to_owned(), verdict(answer, admitting, denying, row)));
        }
    }
    rows
}

fn verdict(answer: Answer, admitting: Profile<'_>, denying: Profile<'_>, check: &str) -> Verdict {
    match answer {
        Answer::Proved(proved) => Verdict::Proved(proved),
        Answer::Unknown(why) => Verdict::Unknown(why),
        Answer::Counterexample(request) => {
            match Example::confirmed(&request, admitting.checked, denying.checked, check) {
                Some(example) => Verdict::Differs(Box::new(example)),
                None => {
                    let doubts: Vec<_> = request.doubts.iter().map(String::as_str).collect();
                    let doubts = if doubts.is_empty() { String::new() } else { format!(": {}", doubts.join(", ")) };
                    Verdict::Unknown(format!("the example that was found is not confirmed by the evaluation{doubts}"))
                }
            }
        }
    }
}


//! Proofs that the fast path admits no violation. Terms of a match condition without a proof are left out, and the
//! requests for which they would hold are evaluated in full.

use std::{collections::BTreeSet, sync::LazyLock};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicySpec;
use palisade_api::{
    crd,
    names::{Part, Shape},
};
use palisade_cel::{
    Minor,
    ast::{Expr, Node, NodeId},
    format::{WIDTH, print},
    schema::{Kind, Schemas},
};
use palisade_compiler::{Compiled, PolicyWithBindings, Unproved, VIOLATIONS};
use palisade_kube_json::workload::WORKLOADS;
use palisade_prove::{
    Answer, Operation, Policy, Questions, Requests,
    question::expression,
    universe::{self, Type},
};

use crate::types::kinds_of;

/// The schemas of the newest minor: each field of an older one is in them.
pub(crate) static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let mut schemas = Schemas::builtin(Minor::ALL[Minor::ALL.len() - 1]).unwrap_or_default();
    schemas.add_crd(&serde_json::to_value(crd::params()).unwrap_or_default());
    schemas
});

/// The variables that the list of violations reads and that are no check.
pub(crate) const HELPERS: [&str; 6] = ["exempt", "withinBounds", "overBounds", "unchanged", "sameAnnotations", "updated"];

/// The type of parameters.
pub(crate) fn params_type() -> Option<Type> {
    let params = SCHEMAS.kinds().find(|kind| kind.kind == "ToolSecurityParams").cloned();
    params.and_then(|kind| universe::of_kind(&SCHEMAS, &kind))
}

/// Leaves out each term of a match condition that is not proved.
pub(crate) fn leave_out_unproved(compiled: &mut Compiled) {
    let params = params_type();
    for part in Part::ALL {
        let Some(shape) = part.shape() else { continue };
        let Some(pair) = compiled.bundle.part(part).filter(|pair| pair.has_fast_path()) else { continue };
        let Some(spec) = &pair.policy.spec else { continue };
        let (kept, mut unproved) = proved_terms(spec, shape, params.as_ref());
        if unproved.is_empty() {
            continue;
        }
        for one in &mut unproved {
            one.policy = pair.policy.metadata.name.clone().unwrap_or_default();
        }
        compiled.unproved.extend(unproved);
        if let Some(pair) = compiled.bundle.part_mut(part) {
            keep(pair, kept);
        }
    }
}

/// The terms of a policy's match condition that are proved, and the reasons why others are not.
fn proved_terms(
    spec: &ValidatingAdmissionPolicySpec,
    shape: Shape,
    params: Option<&Type>,
) -> (Vec<Node>, Vec<Unproved>) {
    let variables = spec.variables.iter().flatten().map(|one| (one.name.as_str(), one.expression.as_str()));
    let conditions = spec.match_conditions.iter().flatten().map(|one| one.expression.as_str());
    let validations = spec.validations.iter().flatten().map(|one| one.expression.as_str());
    let unreadable = || vec![Unproved { policy: String::new(), checks: Vec::new(), reason: "it does not parse".into() }];
    let Some(policy) = Policy::parse(variables, conditions, validations) else { return (Vec::new(), unreadable()) };
    let [condition] = policy.conditions.as_slice() else { return (Vec::new(), unreadable()) };
    let terms = terms(condition);
    let params = params.filter(|_| spec.param_kind.is_some());
    let mut reasons: Vec<Option<Unproved>> = vec![None; terms.len()];
    let mut questions = Questions::default();
    for (kind, object) in kinds(spec, shape) {
        for operation in [Operation::Create, Operation::Update] {
            let requests = Requests { object: &object, kind: &kind, operation, params };
            let open: Vec<usize> = (0..terms.len()).filter(|term| reasons[*term].is_none()).collect();
            let asked: Vec<Node> = open.iter().map(|term| terms[*term].clone()).collect();
            let answers = requests.imply(&mut questions, &policy, &asked, &policy.validations);
            for (term, answers) in open.into_iter().zip(answers) {
                let failed = answers.into_iter().find(|answer| !matches!(answer, Answer::Proved(_)));
                let Some(failed) = failed else { continue };
                let checks = blamed(&requests, &mut questions, &policy, &terms[term]);
                let operation = if operation == Operation::Create { "create" } else { "update" };
                let reason = match failed {
                    Answer::Unknown(why) => why,
                    _ => "a violation may hold together with it".to_owned(),
                };
                let kind = if kind.is_empty() { "an object without a known schema" } else { &kind };
                let reason = format!("{operation} of {kind}: {reason}");
                reasons[term] = Some(Unproved { policy: String::new(), checks, reason });
            }
        }
    }
    let kept = terms.into_iter().zip(&reasons).filter(|(_, reason)| reason.is_none()).map(|(term, _)| term).collect();
    (kept, reasons.into_iter().flatten().collect())
}

/// The checks for which a term is not proved.
fn blamed(requests: &Requests<'_>, questions: &mut Questions, policy: &Policy, term: &Node) -> Vec<String> {
    // The list of violations adds the lists of checks.
    let Some(violations) = policy.variables.get(VIOLATIONS) else { return Vec::new() };
    let (mut ids, mut goals) = (BTreeSet::new(), Vec::new());
    read_variables(violations, &mut ids);
    ids.retain(|id| !HELPERS.contains(&id.as_str()));
    for id in &ids {
        goals.extend(expression(&format!("variables.exempt || variables.{id}.size() == 0")));
    }
    let answers = requests.imply(questions, policy, std::slice::from_ref(term), &goals).pop().unwrap_or_default();
    let failed = ids.into_iter().zip(answers).filter(|(_, answer)| !matches!(answer, Answer::Proved(_)));
    failed.map(|(id, _)| id.strip_prefix("custom_").unwrap_or(&id).to_owned()).collect()
}

/// The variables that an expression reads itself.
pub(crate) fn read_variables(of: &Node, found: &mut BTreeSet<String>) {
    if let Expr::Select { operand, field, .. } = &of.expr
        && matches!(&operand.expr, Expr::Ident(name) if &**name == "variables")
    {
        found.insert(field.to_string());
    }
    of.children().for_each(|part| read_variables(part, found));
}

/// The kinds of the requests that a policy evaluates, with their types. A kind without a schema has no name, and nothing
/// is assumed of its objects.
fn kinds(spec: &ValidatingAdmissionPolicySpec, shape: Shape) -> Vec<(String, Type)> {
    let found: Vec<Option<Kind>> = match shape {
        Shape::Pods => vec![Kind::parse("v1/Pod")],
        Shape::Workloads => {
            WORKLOADS.iter().map(|one| Kind::parse(&format!("{}/{}", one.api_version, one.kind))).collect()
        }
        Shape::Objects => resources(spec)
            .map(|[group, version, resource]| kinds_of(group, version, resource).pop())
            .collect(),
    };
    let of = |kind: Option<Kind>| match kind.as_ref().and_then(|kind| Some((kind, universe::of_kind(&SCHEMAS, kind)?))) {
        Some((kind, of)) => (kind.kind.clone(), of),
        None => (String::new(), Type::Other),
    };
    let mut seen = BTreeSet::new();
    found.into_iter().map(of).filter(|(kind, _)| seen.insert(kind.clone())).collect()
}

/// Group, version and resource of each rule of a policy.
fn resources(spec: &ValidatingAdmissionPolicySpec) -> impl Iterator<Item = [&str; 3]> {
    let rules = spec.match_constraints.iter().flat_map(|matched| matched.resource_rules.iter().flatten());
    rules.flat_map(|rule| {
        let groups = rule.api_groups.iter().flatten();
        groups.flat_map(move |group| {
            let versions = rule.api_versions.iter().flatten();
            versions.flat_map(move |version| {
                rule.resources.iter().flatten().map(move |resource| [group.as_str(), version, resource])
            })
        })
    })
}

/// The operands of a negated disjunction: for a request for which one holds, the condition is false.
fn terms(condition: &Node) -> Vec<Node> {
    fn collect(of: &Node, to: &mut Vec<Node>) {
        match &of.expr {
            Expr::Call { function, target: None, args } if &**function == "_||_" => {
                args.iter().for_each(|arg| collect(arg, to));
            }
            _ => to.push(of.clone()),
        }
    }
    match &condition.expr {
        Expr::Call { function, target: None, args } if &**function == "!_" => {
            let mut all = Vec::new();
            args.iter().for_each(|arg| collect(arg, &mut all));
            all
        }
        _ => vec![call("!_", vec![condition.clone()])],
    }
}

fn call(function: &str, args: Vec<Node>) -> Node {
    Node { id: NodeId(0), expr: Expr::Call { function: function.into(), target: None, args } }
}

/// The match condition with these terms only; none without terms.
fn keep(pair: &mut PolicyWithBindings, terms: Vec<Node>) {
    let Some(spec) = &mut pair.policy.spec else { return };
    let sum = terms.into_iter().reduce(|one, other| call("_||_", vec![one, other]));
    let printed = sum.and_then(|sum| print(&call("!_", vec![sum]), WIDTH, &[]));
    match (printed, spec.match_conditions.as_mut().and_then(|all| all.first_mut())) {
        (Some(printed), Some(condition)) => {
            let comment = condition.expression.lines().next().filter(|line| line.starts_with("//"));
            let comment = comment.map(|line| format!("{line}\n// some terms are left out: no proof shows that they are sound\n"));
            condition.expression = format!("{}{}", comment.unwrap_or_default(), printed.text);
        }
        _ => spec.match_conditions = None,
    }
}

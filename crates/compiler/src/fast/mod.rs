//! The fast path: a condition that holds only for requests that violate nothing, and costs a fraction of the search for
//! violations.
//!
//! The API server evaluates match conditions first, and where one is false, it evaluates nothing else of a policy:
//! neither the validations nor their messages, for each of which it would convert the objects once more
//! (`validator.Validate` in apiserver `pkg/admission/plugin/policy/validating`). So a policy has one match condition,
//! the opposite of a test that is *sufficient*: where it holds, no check finds anything. Where it does not, the policy
//! evaluates as if it were not there.
//!
//! The test is derived from the expressions of the policy itself. [`cases`] evaluates them as far as it can without a
//! request and makes each question that is left a separate case; [`simplify`] brings the cases into a form that asks
//! for each thing once, and loops over each list once.

mod atoms;
mod cases;
mod constants;
mod cost;
mod formula;
mod simplify;
mod texts;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, Variable};
use palisade_api::{
    CustomTarget,
    names::{self, Shape},
};
use palisade_cel::{
    ast::{Expr, Literal, Node},
    parse::parse_unexpanded,
};
use palisade_checks::{Finding, FindingScope};

use crate::{
    Custom,
    expressions::PolicyInputs,
    fold::fold,
    mutated::TAKES_DEFAULTS,
    style::SYNTAX,
    tree,
    tree::{TEMPLATE, balance, call, collect, ident, inlined, literal, mentions, node, select, truth},
    updates::PodUpdates,
};

use cases::{Cases, Known, Scope};
use formula::Test;
use simplify::simplified;

/// The name of the match condition.
pub const MAY_VIOLATE: &str = "may-violate";

/// The highest allowed cost of one expression (`PerCallLimit` in apiserver `pkg/apis/cel`). All match conditions of a
/// policy together may cost more.
const BUDGET: u64 = 1_000_000;

/// The longest list that is looped over within another loop: the first of these with which the test is within the
/// budget.
const WITHIN: [u64; 4] = [32, 24, 20, 16];

/// The match condition of a policy with these variables; `None` if it finds no sufficient condition.
pub(crate) fn match_condition(
    shape: Shape,
    inputs: &PolicyInputs<'_>,
    variables: &[Variable],
) -> Option<MatchCondition> {
    let mut definitions = BTreeMap::new();
    for variable in variables {
        let definition = parse_unexpanded(&variable.expression, SYNTAX).ok()?.root;
        // A custom check may name any variable; a variable of the policy uses only those before it.
        if tree::variables(&definition).iter().all(|name| definitions.contains_key(&**name)) {
            definitions.insert(variable.name.as_str(), definition);
        }
    }
    let template = definitions.get("template").cloned();
    let mut exempt = inlined(definitions.get("exempt")?.clone(), &|name| definitions.get(name).cloned())?;
    if shape == Shape::Workloads {
        definitions.insert("template", ident(TEMPLATE));
        definitions.insert("spec", select(ident(TEMPLATE), "spec"));
    }
    // Nearly all templates take the defaults. So the test asks once, instead of at each field with a default.
    let takes_defaults = definitions.get(TAKES_DEFAULTS).cloned();
    if takes_defaults.is_some() {
        definitions.insert(TAKES_DEFAULTS, truth(true));
    }
    let (test, assumed) = WITHIN
        .into_iter()
        .find_map(|within| complying(shape, inputs, &definitions, takes_defaults.as_ref(), within))?;
    let mut sufficient = test.node();
    if let Some(template) = template {
        // One binding, whatever reads it.
        let of = node(Expr::List { elements: vec![template], optional: Vec::new() });
        let args = vec![ident(TEMPLATE), sufficient];
        sufficient = node(Expr::Call { function: "exists".into(), target: Some(Box::new(of)), args });
    }
    let mut conditions = Vec::new();
    if inputs.denies_probe {
        conditions.push(call("!_", vec![is_probe()]));
    }
    if inputs.updates != PodUpdates::AsCreation {
        // Without parameters, and where they have a problem, the policy says so.
        let params = ident("params");
        let problem = select(select(params.clone(), "spec"), "problem");
        conditions.push(call("_!=_", vec![params, node(Expr::Literal(Literal::Null))]));
        conditions.push(call("_==_", vec![problem, literal::string("")]));
        conditions.extend(assumed);
    }
    if !conditions.is_empty() {
        conditions.push(sufficient);
        sufficient = all_of(conditions);
    }
    exempt = fold(exempt);
    let condition = call("!_", vec![chain("_||_", vec![exempt, sufficient])]);
    let about = "skips requests that cannot violate any check: docs/adr/0033-skip-complying-requests.md";
    Some(MatchCondition { name: MAY_VIOLATE.to_owned(), expression: inputs.style.tree(about, &condition)? })
}

/// A test that holds only where no check finds anything, and what it assumes to be there; `None` if there is none
/// within the budget. The definitions assume that the condition `takes_defaults` is true, so the test demands it.
fn complying(
    shape: Shape,
    inputs: &PolicyInputs<'_>,
    definitions: &BTreeMap<&str, Node>,
    takes_defaults: Option<&Node>,
    within: u64,
) -> Option<(Test, Vec<Node>)> {
    // Whether an unset field gets its default may depend on `hostUsers`.
    let ignored: &[&str] = if takes_defaults.is_some() { &["os"] } else { &["os", "hostUsers"] };
    let cases = Cases::new(definitions, shape, ignored, within);
    let for_customs = Cases::new(definitions, shape, &[], within).of_users();
    let mut tests = Vec::new();
    if let Some(condition) = takes_defaults {
        tests.push(Cases::new(definitions, shape, &[], within).holds(condition, true, &Scope::default()));
    }
    if let Some(bounds) = definitions.get("withinBounds") {
        tests.push(cases.holds(bounds, true, &Scope::default()));
    }
    for finding in inputs.rules.iter().flat_map(|one| &one.rule.findings) {
        tests.push(clean(&cases, finding)?);
    }
    tests.extend(inputs.customs.iter().map(|custom| complies(&for_customs, custom)).collect::<Option<Vec<_>>>()?);
    let test = simplified(Test::All(tests));
    let assumed = cases.assumed.take().into_iter().chain(for_customs.assumed.take()).collect();
    is_usable(&test).then_some((test, assumed))
}

/// Whether a test can stand in a policy: it sometimes holds, it is within the budget, and each of its names has one
/// meaning.
fn is_usable(test: &Test) -> bool {
    *test != Test::Const(false) && test.cost() <= BUDGET && test.is_closed(&mut Vec::new())
}

/// CEL of type bool that is true only of a new pod that a mutation does not change: its operations (CEL of type list,
/// which may read `variables`) are an empty list. It reads no parameters, so that a webhook can have it, too.
pub(crate) fn nothing_to_do(operations: &str, variables: &[(&str, &str, String)]) -> Option<Node> {
    let operation = call("_==_", vec![select(ident("request"), "operation"), literal::string("CREATE")]);
    let nothing =
        |cases: &Cases<'_>, root: &Node| cases.each(root, &Scope::default(), true, &mut |_| Test::Const(false));
    Some(all_of(vec![operation, of_pod(operations, variables, nothing)?]))
}

/// CEL of type bool that is cheap, and true only where the given condition (CEL of type bool) is.
pub(crate) fn sufficient(condition: &str) -> Option<Node> {
    of_pod(condition, &[], |cases, root| cases.holds(root, true, &Scope::default()))
}

/// A test of a pod, without parameters.
fn of_pod(text: &str, variables: &[(&str, &str, String)], test: impl Fn(&Cases<'_>, &Node) -> Test) -> Option<Node> {
    let mut definitions = BTreeMap::new();
    for (name, _, lowered) in variables {
        definitions.insert(*name, parse_unexpanded(lowered, SYNTAX).ok()?.root);
    }
    let root = parse_unexpanded(text, SYNTAX).ok()?.root;
    WITHIN.into_iter().find_map(|within| {
        let mut cases = Cases::new(&definitions, Shape::Pods, &["os"], within);
        cases.parameters = false;
        let test = simplified(test(&cases, &root));
        is_usable(&test).then(|| test.node())
    })
}

fn all_of(conditions: Vec<Node>) -> Node {
    chain("_&&_", conditions)
}

/// Operands of one operator, each of which may be a chain of it.
fn chain(function: &str, operands: Vec<Node>) -> Node {
    let mut terms = Vec::new();
    for operand in operands {
        collect(function, operand, &mut terms);
    }
    balance(function, &mut terms.into_iter().map(Some).collect::<Vec<_>>())
}

/// A test that holds only where a finding finds nothing; `None` if it cannot be read.
fn clean(cases: &Cases<'_>, finding: &Finding) -> Option<Test> {
    let (text, wanted) = match &finding.complies {
        Some(complies) => (complies, true),
        None => (&finding.violated, false),
    };
    let root = parse_unexpanded(text, SYNTAX).ok()?.root;
    let (list, item) = match finding.scope {
        FindingScope::Pod => return Some(cases.holds(&root, wanted, &Scope::default())),
        FindingScope::Containers => ("containers", "c"),
        FindingScope::Volumes => ("volumes", "v"),
        FindingScope::List(list) => (list, "v"),
    };
    Some(every(cases, list, item, |scope| cases.holds(&root, wanted, scope)))
}

fn every(cases: &Cases<'_>, list: &str, item: &str, test: impl Fn(&Scope) -> Test) -> Test {
    let list = select(ident("variables"), list);
    let item: Arc<str> = item.into();
    cases.each(&list, &Scope::default(), true, &mut |element: Known| test(&Scope::default().with(&item, element)))
}

/// A test that holds only where a custom check finds nothing.
///
/// If an expression has no such test, the condition contains it as it is: where it fails, the policy fails as well. One
/// that reads the namespace cannot be in a match condition, where `namespaceObject` is always null (`Match` in
/// apiserver `pkg/admission/plugin/webhook/matchconditions/matcher.go`).
fn complies(cases: &Cases<'_>, custom: &Custom) -> Option<Test> {
    let root = parse_unexpanded(&custom.check.expression, SYNTAX).ok()?.root;
    let (list, item) = match custom.check.target {
        CustomTarget::Pod | CustomTarget::Object => (None, ""),
        CustomTarget::Containers => (Some("containers"), "container"),
        CustomTarget::Volumes => (Some("volumes"), "volume"),
    };
    let any = Scope::default().with(&item.into(), Known::Cel(ident(item)));
    cases.gave_up.set(false);
    if simplified(cases.holds(&root, true, &any)) != Test::Const(false) && !cases.gave_up.get() {
        return Some(match list {
            None => cases.holds(&root, true, &Scope::default()),
            Some(list) => every(cases, list, item, |scope| cases.holds(&root, true, scope)),
        });
    }
    let inlined = |root| inlined(root, &|name| cases.definitions.get(name).cloned());
    let mut own = inlined(root)?;
    if mentions(&own, "namespaceObject") {
        return None;
    }
    if let Some(list) = list {
        let target = Some(Box::new(inlined(select(ident("variables"), list))?));
        own = node(Expr::Call { function: "all".into(), target, args: vec![ident(item), own] });
    }
    // Custom checks do not judge probes.
    Some(Test::Any(vec![Test::Is(is_probe(), true), Test::Is(own, true)]))
}

/// Whether the request is in the probe namespace.
fn is_probe() -> Node {
    call("_==_", vec![select(ident("request"), "namespace"), literal::string(names::PROBE_NAMESPACE)])
}

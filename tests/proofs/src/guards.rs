//! Proofs that cannot fail prove nothing: each guard of a fast path is left out once. Either the guard is redundant, which is
//! proved, or a request refutes the rest, and the evaluation of the policy confirms that.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use palisade_api::names::Shape;
use palisade_cel::{
    Minor,
    ast::{Expr, Node},
    format::{WIDTH, print},
};
use palisade_gate::{ValidationRequest, Validator};
use palisade_prove::{Answer, Operation, model::Request, question::expression};
use serde_json::{Value as Json, json};

use crate::support::{self, Types};

/// The number of operands of conjunctions in an expression.
fn guards(of: &Node) -> usize {
    let own = match &of.expr {
        Expr::Call { function, target: None, args } if &**function == "_&&_" => args.len(),
        _ => 0,
    };
    own + of.children().map(guards).sum::<usize>()
}

/// The expression without the operand of this number.
fn without(of: &Node, number: &mut usize) -> Node {
    let mut changed = of.clone();
    if let Expr::Call { function, target: None, args } = &of.expr
        && &**function == "_&&_"
        && let [one, other] = args.as_slice()
    {
        for (left, kept) in [(one, other), (other, one)] {
            // A conjunction of several is nested; its inner nodes are no guards.
            let is_guard = !matches!(&left.expr, Expr::Call { function, .. } if &**function == "_&&_");
            if is_guard && *number == 0 {
                *number = usize::MAX;
                return kept.clone();
            }
            *number = number.saturating_sub(usize::from(is_guard && *number != usize::MAX));
        }
    }
    for child in changed.children_mut() {
        if *number != usize::MAX {
            *child = without(child, number);
        }
    }
    changed
}

/// Whether the evaluation finds that the condition leaves out a request that the policy denies, or fails.
fn is_wrong(policy: &ValidatingAdmissionPolicy, request: &Request) -> Result<(), String> {
    let of = |name: &str| request.variables.get(name).cloned().unwrap_or_default();
    let (mut object, info) = (of("object"), of("request")["userInfo"].clone());
    palisade_kube_json::json::set(&mut object, &["apiVersion"], json!("v1"));
    palisade_kube_json::json::set(&mut object, &["kind"], json!("Pod"));
    let groups: Vec<_> = info["groups"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let (params, namespace) = (of("params"), of("request")["namespace"].clone());
    let validator = Validator::new(policy).map_err(|error| format!("{error:?}"))?;
    let judged = validator.judge(&ValidationRequest {
        namespace: namespace.as_str().unwrap_or_default(),
        user: info["username"].as_str().unwrap_or_default(),
        groups: &groups,
        params: Some(&params).filter(|params| !params.is_null()),
        ..ValidationRequest::create("Pod", &object)
    });
    match judged {
        Err(wrong) if wrong.to_string().contains("matchConditions") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// The results for all guards of a profile.
#[derive(Debug, Default)]
struct Tally {
    refuted: usize,
    fails: usize,
    redundant: Vec<String>,
    undecided: Vec<String>,
}

fn tally(name: &str) -> Tally {
    let types = Types::of(Minor::DEFAULT);
    let object = types.kind("v1/Pod");
    let (_, profile) = support::examples().into_iter().find(|(of, _)| *of == name).unwrap();
    let compiled = support::compile(&profile);
    let policy = support::policy(&compiled, Shape::Pods).unwrap();
    let requests = support::requests(&object, "Pod", Operation::Create, &types.params);
    let condition = &policy.conditions[0];
    let text = |of: &Node| print(of, WIDTH, &[]).unwrap().text;
    let mut tally = Tally::default();
    for number in 0..guards(condition) {
        let mut left = number;
        let changed = expression(&text(&without(condition, &mut left))).unwrap();
        if left != usize::MAX {
            break;
        }
        let mut policy = policy.clone();
        policy.conditions = vec![changed.clone()];
        let mut real = compiled.bundle.pods.policy.clone();
        let conditions = real.spec.as_mut().unwrap().match_conditions.as_mut().unwrap();
        conditions[0].expression = text(&changed);
        let confirmed = |request: &Request| {
            is_wrong(&real, request).unwrap_or_else(|why| panic!("{name} {number}: {why}\n{}\n{request:?}", text(&changed)));
        };
        let label = || {
            let (before, after) = (text(condition), text(&changed));
            let lost = before.lines().find(|line| !after.contains(line.trim())).unwrap_or_default();
            format!("{number}: {}", lost.trim())
        };
        match requests.left_out_are_admitted(&policy) {
            Answer::Counterexample(request) => {
                confirmed(&request);
                tally.refuted += 1;
            }
            Answer::Unknown(why) => tally.undecided.push(format!("{}: {why}", label())),
            Answer::Proved(_) => match requests.conditions_never_fail(&policy) {
                Answer::Counterexample(request) => {
                    confirmed(&request);
                    tally.fails += 1;
                }
                Answer::Proved(_) => tally.redundant.push(label()),
                Answer::Unknown(why) => tally.undecided.push(format!("{}: {why}", label())),
            },
        }
    }
    println!("{name}: {tally:#?}");
    tally
}

#[test]
fn condition_without_a_guard_is_refuted_or_the_guard_is_redundant() {
    for name in ["restricted", "baseline"] {
        let tally = tally(name);
        assert!(tally.undecided.is_empty(), "{name}: {tally:#?}");
        assert!(tally.refuted > 30, "{name}: {tally:#?}");
    }
}

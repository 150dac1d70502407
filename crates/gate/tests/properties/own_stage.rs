//! Checks with a stage of their own, whatever a profile says: together, its policies find what one policy of all checks
//! finds, each for its own checks.

use std::{cell::Cell, collections::BTreeSet};

use palisade_admission::requests::Operation;
use palisade_api::{
    Level, ToolSecurityProfile, catalogue,
    names::{Part, Shape},
};
use palisade_compiler::Compiled;
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::workload::WORKLOADS;
use proptest::{prelude::*, sample};
use serde_json::{Value as Json, json};

use crate::properties::{pods, profile, random::Random, runner, settings, unusual, values, yaml};

/// How many pairs of objects are judged by a profile.
const PAIRS: usize = 40;

/// Custom checks. Some read variables of checks of the catalogue, which another policy may make.
const CUSTOM: [&str; 5] = [
    "variables.annotations[?'team'].orValue('a') == 'a'",
    "variables.privileged.size() == 0 || variables.annotations[?'team'].orValue('') == 'a'",
    "variables.containers.all(c, c.?workingDir.orValue('') != '/host')",
    "variables.spec.?tolerations.orValue([]).size() < 2",
    "object.metadata.?labels.orValue({}).size() < 3",
];

type Found = BTreeSet<(String, String)>;

/// A policy of a profile, as it is bound.
struct PartPolicy {
    part: Part,
    policy: Validator,
    params: Option<Json>,
    /// Whether it judges updates of pods without parameters.
    updated_without: bool,
}

impl PartPolicy {
    fn of(compiled: &Compiled) -> Vec<Self> {
        let pairs = compiled.bundle.pairs().filter(|(part, _)| part.shape().is_some());
        let judge = |(part, pair): (Part, &palisade_compiler::PolicyWithBindings)| Self {
            part,
            policy: Validator::new(&pair.policy).unwrap_or_else(|error| panic!("{error:?}")),
            params: compiled
                .probes
                .params
                .as_ref()
                .filter(|_| pair.updates.is_some())
                .map(|spec| json!({"spec": spec})),
            updated_without: pair.updates.as_ref().is_some_and(|updates| updates.spec.param_ref.is_none()),
        };
        pairs.map(judge).collect()
    }

    /// What it finds. That an expression fails, or that the match condition passes over what is found, is a mistake.
    fn finds(&self, request: &ValidationRequest<'_>) -> Result<Found, TestCaseError> {
        let without = self.updated_without && request.operation == Operation::Update;
        let params = self.params.as_ref().filter(|_| !without);
        let judgement = self.policy.judge(&ValidationRequest { params, ..request.clone() });
        let judgement = judgement.map_err(|error| TestCaseError::fail(format!("{error:?}\n{}", request.object)))?;
        Ok(match judgement.decision {
            Decision::Admit => Found::new(),
            Decision::Deny { violations, .. } => violations.into_iter().map(|one| (one.check, one.message)).collect(),
        })
    }
}

fn found(judges: &[PartPolicy], shape: Shape, request: &ValidationRequest<'_>) -> Result<[Found; 2], TestCaseError> {
    let of = |part| match judges.iter().find(|judge| judge.part == part) {
        Some(judge) => judge.finds(request),
        None => Ok(Found::new()),
    };
    let [main, checks] = Part::judging(shape).map(of);
    Ok([main?, checks?])
}

#[test]
fn policies_of_a_profile_together_find_what_one_policy_finds() {
    let changes = prop::collection::vec(pods::change(catalogue::ALL), 0..4);
    let pair =
        (pods::shape(), prop::bool::ANY, changes, prop::option::of(any::<u64>()), sample::select(&WORKLOADS[..]));
    let stage = sample::select(vec!["Deny", "Warn", "Audit"]);
    let own = (any::<u64>(), stage, prop::bool::ANY, sample::select(vec!["None", "Secure"]));
    let customs = sample::subsequence(CUSTOM.to_vec(), 0..4);
    let asked = sample::subsequence(vec!["privileged", "seccompProfile", "own0"], 0..3);
    let cases = (settings::settings(), customs, asked, own, prop::collection::vec(pair, PAIRS));
    let [judged, denied, of_checks] = [(); 3].map(|()| Cell::new(0));
    let outcome = runner(25).run(&cases, |(settings, customs, asked, (seed, stage, by_label, defaults), pairs)| {
        let mut profile = profile(&settings, Level::Baseline);
        let makes = crate::properties::compile(&settings, Level::Baseline).checks;
        let is_valid = |expression: &&&str| !expression.contains("privileged") || makes.contains(&"privileged");
        let spec = &mut profile["spec"];
        let customs = customs.iter().filter(is_valid).enumerate();
        spec["customChecks"] = customs
            .map(|(index, expression)| json!({"id": format!("own{index}"), "expression": expression, "message": "no"}))
            .collect();
        let asked: Vec<_> =
            asked.into_iter().filter(|id| *id != "own0" || spec["customChecks"][0] != Json::Null).collect();
        if !asked.is_empty() {
            spec["exceptionRequests"] = json!({"checks": asked});
        }
        spec["mutation"] = json!({"defaults": defaults});
        let stages = if by_label { "ByLabel" } else { "Uniform" };
        spec["enforcement"] = json!({"pods": "Deny", "workloads": "Warn", "namespaceStages": stages});
        let compile = |profile: &Json| {
            let profile: ToolSecurityProfile = serde_json::from_value(profile.clone()).unwrap();
            palisade_compiler::compile(&profile)
        };
        let whole = compile(&profile).unwrap_or_else(|error| panic!("{error:?}\n{}", yaml(&settings)));
        let made =
            whole.checks.iter().map(|id| (*id).to_owned()).chain(whole.customs.iter().map(|one| one.check.id.clone()));
        let mut random = Random::new(seed);
        let listed: BTreeSet<_> = made.filter(|_| random.below(3) == 0).collect();
        let checks = listed.iter().map(|id| (id.clone(), json!(stage))).collect::<serde_json::Map<_, _>>();
        profile["spec"]["enforcement"]["checks"] = checks.into();
        // A profile all of whose checks have a stage of their own is not accepted.
        let Ok(split) = compile(&profile) else { return Err(TestCaseError::reject("all checks")) };
        let (whole, judges) = (PartPolicy::of(&whole), PartPolicy::of(&split));
        let mut before: Option<Json> = None;
        for (shape, complying, changes, unusual, workload) in pairs {
            let mut pod = if complying { shape.complying(&settings, &values()) } else { shape.bare() };
            for change in &changes {
                change.apply(&mut pod);
            }
            if let Some(seed) = unusual {
                unusual::change(&mut Random::new(seed), &mut pod);
            }
            let older = before.replace(pod.clone()).unwrap_or_else(|| palisade_kube_json::pod::minimal("older"));
            for shape in Shape::OF_PODS {
                let in_shape = |pod: &Json| match shape {
                    Shape::Pods => ("Pod", pod.clone()),
                    Shape::Workloads | Shape::Objects => (workload.kind, workload.around("random", pod)),
                };
                let ((kind, object), (_, old)) = (in_shape(&pod), in_shape(&older));
                let create = ValidationRequest::create(kind, &object);
                let update = ValidationRequest { operation: Operation::Update, old_object: &old, ..create.clone() };
                for request in [&create, &update] {
                    let [all, none] = found(&whole, shape, request)?;
                    prop_assert!(none.is_empty());
                    let [main, checks] = found(&judges, shape, request)?;
                    judged.set(judged.get() + 1);
                    denied.set(denied.get() + usize::from(!all.is_empty()));
                    of_checks.set(of_checks.get() + usize::from(!checks.is_empty()));
                    let is_listed = |(id, _): &(String, String)| listed.contains(id) || id == "bounds";
                    let is_apart = judges.iter().any(|judge| judge.part == Part::Checks(shape));
                    prop_assert!(checks.iter().all(is_listed), "{checks:?}");
                    if stage == "Deny" || !is_apart {
                        prop_assert_eq!(&main, &all);
                    }
                    if all.iter().any(|(id, _)| id == "bounds") {
                        // Each policy has the bounds of the lists that it reads.
                        continue;
                    }
                    let together: Found = main.union(&checks).cloned().collect();
                    prop_assert!(together.is_subset(&all), "{together:?} of {all:?}");
                    if request.operation == Operation::Create {
                        prop_assert_eq!(&together, &all);
                        let expected: Found = all.into_iter().filter(|one| is_apart && is_listed(one)).collect();
                        prop_assert_eq!(&checks, &expected);
                    } else {
                        // A policy without parameters judges only checks of which an update can change something, and these
                        // updates change anything.
                        if judges.iter().any(|judge| judge.part.shape() == Some(shape) && judge.updated_without) {
                            continue;
                        }
                        let [before, _] = found(&whole, shape, &ValidationRequest::create(kind, &old))?;
                        let missing: Vec<_> = all.difference(&together).filter(|one| !before.contains(*one)).collect();
                        prop_assert!(missing.is_empty(), "{missing:?}\n{}\n{object}\n{old}", yaml(&settings));
                    }
                }
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let [judged, denied, of_checks] = [judged, denied, of_checks].map(Cell::into_inner);
    println!("{judged} requests: {denied} violate the profile, {of_checks} a check with a stage of its own");
    assert!(of_checks > 0 && denied > of_checks && judged > denied);
}

//! Custom checks and the fast path: random expressions beside random settings, on random pods and workloads, created and
//! updated.

mod expressions;
mod kinds;
pub(crate) mod objects;

use std::cell::Cell;

use palisade_admission::requests::Operation;
use palisade_api::{Level, ToolSecurityProfile, names::Shape};
use palisade_compiler::Compiled;
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::workload::WORKLOADS;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::properties::{profile, random::Random, runner, settings, unusual};
use expressions::{Expressions, Scope};
use kinds::Kind;

/// How many pods each policy judges: fewer in `cargo test`, where compiling takes the time anyway.
fn pods() -> usize {
    if std::env::var_os("PROPTEST_CASES").is_some() { 150 } else { 60 }
}

/// The checks, and a parameter for each that they name.
pub(crate) fn checks(random: &mut Random) -> (Json, Vec<Json>) {
    let failing = random.percent(30);
    let of = |random: &mut Random, number: usize| {
        let (target, item) = random.one(&[
            ("Pod", None),
            ("Pod", None),
            ("Containers", Some(("container", Kind::Container))),
            ("Volumes", Some(("volume", Kind::Volume))),
        ]);
        let mut scope: Scope = vec![("variables.spec".to_owned(), Kind::Spec)];
        scope.extend(item.map(|(name, kind)| (name.to_owned(), kind)));
        let depth = 1 + random.below(5);
        let expression = Expressions { random, failing }.condition(depth, &scope);
        json!({"id": format!("own{number}"), "target": target, "expression": expression, "message": "m"})
    };
    let number = 1 + random.below(3);
    let checks: Json = (0..number).map(|number| of(random, number)).collect();
    let text = checks.to_string();
    let all = [("text", "String", "a"), ("texts", "StringList", "a,b"), ("on", "Boolean", "true")];
    let used = all.into_iter().filter(|(name, ..)| text.contains(&format!("['{name}']")));
    (checks, used.map(|(name, kind, value)| json!({"name": name, "type": kind, "default": value})).collect())
}

fn compiled(random: &mut Random, settings: Option<&palisade_api::Settings>) -> Option<(Json, Compiled)> {
    let mut profile = profile(&settings.cloned().unwrap_or_default(), Level::Privileged);
    let (checks, parameters) = checks(random);
    let declared = profile["spec"]["parameters"].as_array_mut()?;
    for parameter in parameters {
        if declared.iter().all(|other| other["name"] != parameter["name"]) {
            declared.push(parameter);
        }
    }
    profile["spec"]["customChecks"] = checks;
    profile["spec"]["enforcement"] = json!({"workloads": "Deny"});
    let typed: ToolSecurityProfile = serde_json::from_value(profile.clone()).unwrap();
    // Some expressions are wrong, and some profiles become too large.
    Some((profile, palisade_compiler::compile(&typed).ok()?))
}

/// The policy without the fast path, and with it, if it has one; `None` if the API server would reject it.
fn policies(compiled: &Compiled, shape: Shape) -> Option<(Validator, Option<Validator>)> {
    let policy = &compiled.bundle.pair(shape)?.policy;
    let mut judging_all = policy.clone();
    judging_all.spec.as_mut()?.match_conditions = None;
    let full = Validator::new(&judging_all).ok()?;
    let has_fast_path = policy.spec.as_ref()?.match_conditions.is_some();
    // What the API server accepts without a fast path, it accepts with it.
    Some((full, has_fast_path.then(|| Validator::new(policy).unwrap_or_else(|error| panic!("{error:?}")))))
}

#[derive(Default)]
struct Counts {
    rejected: Cell<usize>,
    without: Cell<usize>,
    policies: Cell<usize>,
    judged: Cell<usize>,
    early: Cell<usize>,
    denied: Cell<usize>,
    failed: Cell<usize>,
}

fn count(of: &Cell<usize>) {
    of.set(of.get() + 1);
}

impl Counts {
    /// Compares the verdicts on one request: the fast path excludes nothing that is denied, or on which an expression
    /// fails.
    fn compare(&self, fast: &Validator, full: &Validator, request: &ValidationRequest<'_>) -> Result<(), String> {
        count(&self.judged);
        match (full.judge(request), fast.judge(request)) {
            (Ok(full), Ok(fast)) => {
                if !fast.matched {
                    count(&self.early);
                }
                if full.decision != Decision::Admit {
                    count(&self.denied);
                }
                if full.decision == fast.decision {
                    Ok(())
                } else {
                    Err(format!("with the fast path: {:?}, without: {:?}", fast.decision, full.decision))
                }
            }
            (_, Err(error)) if error.message.contains("excludes") => Err(format!("with the fast path: {error}")),
            // The API server denies what an expression fails on.
            (Err(_), _) => {
                count(&self.failed);
                Ok(())
            }
            (Ok(full), Err(error)) => Err(format!("without the fast path: {:?}, with it: {error}", full.decision)),
        }
    }

    fn profile(&self, seed: u64, settings: Option<&palisade_api::Settings>) -> Result<(), String> {
        let random = &mut Random::new(seed);
        let Some((profile, compiled)) = compiled(random, settings) else {
            count(&self.rejected);
            return Ok(());
        };
        let params = compiled.probes.params.as_ref().map(|params| json!({"metadata": {}, "spec": params}));
        for shape in Shape::OF_PODS {
            let Some((full, fast)) = policies(&compiled, shape) else {
                count(&self.rejected);
                continue;
            };
            let Some(fast) = fast else {
                count(&self.without);
                continue;
            };
            count(&self.policies);
            let mut older = Json::Null;
            for _ in 0..pods() {
                let mut pod = objects::pod(random);
                if settings.is_some() {
                    unusual::change(random, &mut pod);
                }
                let workload = random.one(&[&WORKLOADS[0], &WORKLOADS[random.clone().below(WORKLOADS.len())]]);
                let (kind, object) = match shape {
                    Shape::Pods => ("Pod", pod),
                    Shape::Workloads | Shape::Objects => (workload.kind, workload.around("random", &pod)),
                };
                let create = ValidationRequest { params: params.as_ref(), ..ValidationRequest::create(kind, &object) };
                let update = ValidationRequest { operation: Operation::Update, old_object: &older, ..create.clone() };
                let is_update = older["kind"] == object["kind"] && random.percent(30);
                let request = if is_update { &update } else { &create };
                self.compare(&fast, &full, request).map_err(|error| {
                    format!("seed {seed}, {shape:?}: {error}\n{}\n{}\n{object}", profile["spec"], request.old_object)
                })?;
                older = object;
            }
        }
        Ok(())
    }
}

/// With and without the fast path, each request gets the same verdict.
#[test]
fn fast_path_never_admits_violation_of_custom_check() {
    let counts = Counts::default();
    let cases = (any::<u64>().no_shrink(), prop::option::weighted(0.3, settings::settings()));
    let outcome = runner(100)
        .run(&cases, |(seed, settings)| counts.profile(seed, settings.as_ref()).map_err(TestCaseError::fail));
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let [rejected, without, policies, judged, early, denied, failed] =
        [counts.rejected, counts.without, counts.policies, counts.judged, counts.early, counts.denied, counts.failed]
            .map(Cell::into_inner);
    println!(
        "{policies} policies with a fast path, {without} without, {rejected} rejected; {judged} verdicts: {early} excluded, \
         {denied} denied, {failed} failed"
    );
    assert!(early > 0 && denied > 0);
}

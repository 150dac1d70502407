//! Policies as people read them judge as the rules of the checks do that they were made of: simplified, formatted and
//! commented expressions have the same verdicts, messages and warnings, and cost no more.

use std::{
    cell::RefCell,
    hash::{DefaultHasher, Hash, Hasher},
};

use palisade_admission::requests::{Cluster, Operation, User};
use palisade_api::{Level, ToolSecurityParamsSpec, ToolSecurityProfile, crd, names, names::Shape};
use palisade_cel::Minor;
use palisade_checks::fixture::Fixture;
use palisade_compiler::{Compiled, ExpressionStyle, Options, compile_with};
use palisade_gate::{ValidationRequest, Validator};
use palisade_kube_json::{pod, workload::WORKLOADS};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::properties::{CASES, catalogue, env, pods, profile, runner, settings, values, yaml};

/// As lowered, and as applied.
const STYLES: [ExpressionStyle; 2] = [ExpressionStyle::AsLowered, ExpressionStyle::Readable];

fn both(profile: &Json) -> [Compiled; 2] {
    let profile: ToolSecurityProfile = serde_json::from_value(profile.clone()).unwrap();
    STYLES.map(|style| {
        let options = Options { style, ..Options::default() };
        compile_with(&profile, options).unwrap_or_else(|error| panic!("{error:?}\n{profile:?}"))
    })
}

/// The bytes of the largest policy of a profile.
fn size(compiled: &Compiled) -> usize {
    let validating = compiled.bundle.pairs().map(|(_, pair)| json!(pair.policy).to_string().len());
    let mutating = compiled.bundle.mutation.iter().map(|pair| json!(pair.policy).to_string().len());
    validating.chain(mutating).max().unwrap_or_default()
}

/// What a policy says of an object that is created, and of a change to it, and what the two cost.
fn judged(compiled: &Compiled, shape: Shape, params: Option<&Json>, pod: &Json) -> (Vec<String>, u64) {
    let policy = &compiled.bundle.pair(shape).unwrap().policy;
    let policy = Validator::new(policy).unwrap_or_else(|error| panic!("{error:?}"));
    let (kind, object) = match shape {
        Shape::Pods => ("Pod", pod.clone()),
        Shape::Workloads | Shape::Objects => (WORKLOADS[0].kind, WORKLOADS[0].around("random", pod)),
    };
    let mut older = object.clone();
    older["spec"]["older"] = true.into();
    let create = ValidationRequest { params, ..ValidationRequest::create(kind, &object) };
    let update = ValidationRequest { operation: Operation::Update, old_object: &older, ..create.clone() };
    let judgements = [create, update].map(|request| policy.judge(&request));
    let cost = judgements.iter().flatten().map(|judgement| judgement.cost).sum();
    let said = |judgement: &Result<palisade_gate::Judgement, _>| match judgement {
        Ok(judgement) => format!("{:?}", judgement.decision),
        Err(error) => format!("fails: {error:?}"),
    };
    (judgements.iter().map(said).collect(), cost)
}

/// What a cluster says of a pod, and of a workload with its template, where all that a profile becomes is in force.
fn admitted(compiled: &Compiled, pod: &Json) -> Vec<String> {
    let mut cluster = Cluster::new(Minor::V1_36).without_service_accounts();
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant", "labels": {"a": "b"}},
    })];
    objects.extend(crd::all().into_iter().map(|crd| json!(crd)));
    objects.extend(compiled.probes.params.as_ref().map(|spec| {
        json!({
            "apiVersion": names::API_VERSION, "kind": "ToolSecurityParams",
            "metadata": {"name": names::params(&compiled.profile), "namespace": "tenant"}, "spec": spec,
        })
    }));
    for (_, pair) in compiled.bundle.pairs() {
        objects.push(json!(pair.policy));
        objects.extend(pair.bindings().map(|binding| json!(binding)));
    }
    objects.extend(compiled.bundle.mutation.iter().flat_map(|pair| pair.objects("v1")));
    for object in objects {
        cluster.apply(object).unwrap_or_else(|refused| panic!("{refused:?}"));
    }
    let said = |mut object: Json| {
        object["metadata"]["namespace"] = "tenant".into();
        let mut request = cluster.request(Operation::Create, "", &object, None).unwrap();
        let groups = vec!["system:authenticated".to_owned()];
        request.user = User { name: "tenant".to_owned(), groups, ..User::default() };
        let review = cluster.admit(&request);
        format!("{:?} {:?} {:?} {:?}", review.outcome, review.object, review.warnings, review.audit_annotations)
    };
    vec![said(pod.clone()), said(WORKLOADS[0].around("random", pod))]
}

/// What was compared: the most and the sum of sizes and costs of both.
#[derive(Default)]
struct Figures {
    sizes: [(usize, usize); 2],
    costs: [(u64, u64); 2],
    count: usize,
    answers: DefaultHasher,
}

impl Figures {
    fn add(&mut self, sizes: [usize; 2], costs: [u64; 2], answers: &[String]) {
        for (figure, size) in self.sizes.iter_mut().zip(sizes) {
            *figure = (figure.0.max(size), figure.1 + size);
        }
        for (figure, cost) in self.costs.iter_mut().zip(costs) {
            *figure = (figure.0.max(cost), figure.1 + cost);
        }
        self.count += 1;
        answers.hash(&mut self.answers);
    }

    fn print(&self, what: &str) {
        let ([before, after], count) = (self.sizes, self.count);
        let mean = |sum: usize| sum / count.max(1);
        println!("{what}: {count} compared, digest of what was said {:016x}", self.answers.finish());
        println!(
            "largest policy, bytes: mean {} -> {}, most {} -> {}",
            mean(before.1),
            mean(after.1),
            before.0,
            after.0
        );
        let [before, after] = self.costs;
        println!("cost: sum {} -> {}, most {} -> {}", before.1, after.1, before.0, after.0);
    }
}

#[test]
fn readable_policies_judge_random_pods_like_the_lowered_rules() {
    let figures = RefCell::new(Figures::default());
    let pod = (pods::shape(), any::<bool>(), prop::collection::vec(pods::change(catalogue::ALL), 0..8));
    let cases = (settings::settings(), pod, prop::bool::weighted(0.02), prop::bool::weighted(0.2));
    // As many as `cargo xtask properties` is told, and fewer in a short run: each profile becomes four policies.
    let count = if env::var_os("PROPTEST_CASES").is_some() { CASES } else { 200 };
    let outcome = runner(count).run(&cases, |(settings, (shape, complying, changes), in_cluster, restricted)| {
        let level = if restricted { Level::Restricted } else { Level::Privileged };
        let compiled = both(&profile(&settings, level));
        let params = compiled[0].probes.params.as_ref().map(|params| json!({"spec": params}));
        let mut pod = if complying { shape.complying(&settings, &values()) } else { shape.bare() };
        for change in &changes {
            change.apply(&mut pod);
        }
        let (mut said, mut costs) = (Vec::new(), [0, 0]);
        for shape in Shape::OF_PODS {
            let [(before, cost_before), (after, cost_after)] =
                compiled.each_ref().map(|one| judged(one, shape, params.as_ref(), &pod));
            prop_assert_eq!(&before, &after, "{}\n{}", pod, yaml(&settings));
            prop_assert!(cost_after <= cost_before, "{cost_before} -> {cost_after}\n{pod}\n{}", yaml(&settings));
            costs = [costs[0] + cost_before, costs[1] + cost_after];
            said.extend(after);
        }
        if in_cluster {
            let [before, after] = compiled.each_ref().map(|one| admitted(one, &pod));
            prop_assert_eq!(&before, &after, "{}\n{}", pod, yaml(&settings));
            said.extend(after);
        }
        figures.borrow_mut().add(compiled.each_ref().map(size), costs, &said);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    figures.borrow().print("random profiles and pods");
}

#[test]
fn readable_policies_judge_fixtures_like_the_lowered_rules() {
    let mut figures = Figures::default();
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        for fixture in fixtures {
            let compiled = both(&json!({
                "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
                "metadata": {"name": "fixture"}, "spec": fixture.spec(&json!({"a": "b"})),
            }));
            let fixture_values = fixture.values();
            let params =
                (!fixture_values.is_empty()).then(|| json!({"spec": ToolSecurityParamsSpec::of(&fixture_values)}));
            let (mut said, mut costs) = (Vec::new(), [0, 0]);
            for (shape, pod) in
                Shape::OF_PODS.into_iter().flat_map(|shape| [(shape, fixture.pod()), (shape, pod::minimal("a"))])
            {
                if compiled[0].bundle.pair(shape).is_none() {
                    continue;
                }
                let [(before, cost_before), (after, cost_after)] =
                    compiled.each_ref().map(|one| judged(one, shape, params.as_ref(), &pod));
                assert_eq!(before, after, "{}: {}", check.id, fixture.name);
                assert!(cost_after <= cost_before, "{}: {}: {cost_before} -> {cost_after}", check.id, fixture.name);
                costs = [costs[0] + cost_before, costs[1] + cost_after];
                said.extend(after);
            }
            figures.add(compiled.each_ref().map(size), costs, &said);
        }
    }
    figures.print("fixtures");
}

//! A template is judged as the pod that it becomes: after the profile's own mutation.

use std::cell::Cell;

use palisade_api::{Level, Settings, ToolSecurityProfile, catalogue, names::Shape};
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_kube_json::workload::WORKLOADS;
use palisade_mutation::{MutationRequest, Plan};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::properties::{
    custom::{checks, objects},
    pods, profile,
    random::Random,
    runner, settings, unusual, values,
};

/// Checks of fields that the API server's own admission sets in each pod, so that templates need not have them.
const OF_ADMISSION: [&str; 3] = ["automountServiceAccountToken", "priorityClasses", "serviceAccounts"];

/// Custom checks with a default, each of which demands it.
fn defaulting(random: &mut Random) -> Json {
    let of = |id: &str, target: &str, expression: &str, path: &str, value: Json| {
        json!({
            "id": id, "target": target, "expression": expression, "messageExpression": "'found ' + string(1)",
            "default": {"path": path, "value": value},
        })
    };
    let all = [
        of(
            "defaultProcMount",
            "Containers",
            "has(container.securityContext) && has(container.securityContext.procMount) \
             && container.securityContext.procMount == 'Default'",
            "securityContext.procMount",
            json!("Default"),
        ),
        of(
            "defaultPolicy",
            "Pod",
            "variables.containers.all(x, x.?terminationMessagePolicy.orValue('') == 'FallbackToLogsOnError')",
            "terminationGracePeriodSeconds",
            json!(5),
        ),
        of(
            "defaultDns",
            "Pod",
            "variables.spec.?dnsConfig.?nameservers.orValue([]).exists(n, n == '192.0.2.1')",
            "dnsConfig",
            json!({"nameservers": ["192.0.2.1"]}),
        ),
        of(
            "defaultLimits",
            "Containers",
            "'memory' in container.?resources.?limits.orValue({})",
            "resources.limits",
            json!({"memory": "1Gi"}),
        ),
        of(
            "defaultGroups",
            "Pod",
            "variables.podSecurityContext.?sysctls.orValue([]).size() > 0 \
             && variables.podSecurityContext.sysctls[0].name != ''",
            "securityContext.sysctls",
            json!([{"name": "kernel.shm_rmid_forced", "value": "0"}]),
        ),
    ];
    all[random.below(all.len())].clone()
}

/// A profile that mutates, with custom checks that read only what a template has as a pod has it.
fn spec(random: &mut Random, settings: &Settings) -> Json {
    let mut profile = profile(settings, Level::Privileged);
    let (own, parameters) = checks(random);
    let of_pod = |check: &Json| {
        let text = check["expression"].as_str().unwrap();
        !["object.", "oldObject", "request"].iter().any(|root| text.contains(root))
    };
    let mut own: Vec<_> = own.as_array().unwrap().iter().filter(|check| of_pod(check)).cloned().collect();
    if random.percent(50) {
        own.push(defaulting(random));
    }
    for parameter in parameters {
        let declared = profile["spec"]["parameters"].as_array_mut().unwrap();
        if declared.iter().all(|other| other["name"] != parameter["name"]) {
            declared.push(parameter);
        }
    }
    profile["spec"]["customChecks"] = own.into();
    profile["spec"]["enforcement"] = json!({"workloads": "Deny"});
    profile
}

#[derive(Default)]
struct Counts {
    policies: Cell<usize>,
    judged: Cell<usize>,
    mutated: Cell<usize>,
    repaired: Cell<usize>,
    denied: Cell<usize>,
    early: Cell<usize>,
    too_costly: Cell<usize>,
}

fn count(of: &Cell<usize>) {
    of.set(of.get() + 1);
}

/// The violations, by the policy; `None` if an expression fails.
fn violations(policy: &Validator, request: &ValidationRequest<'_>) -> Option<(Vec<String>, bool)> {
    let judgement = policy.judge(request).ok()?;
    let found = match judgement.decision {
        Decision::Admit => vec![],
        Decision::Deny { violations, .. } => {
            let found = violations.into_iter().filter(|one| !OF_ADMISSION.contains(&one.check.as_str()));
            found.map(|one| format!("[{}] {}", one.check, one.message)).collect()
        }
    };
    Some((found, judgement.matched))
}

impl Counts {
    fn profile(&self, seed: u64, settings: &Settings, pods: &[Json]) -> Result<(), String> {
        let random = &mut Random::new(seed);
        let profile = spec(random, settings);
        let typed: ToolSecurityProfile = serde_json::from_value(profile.clone()).unwrap();
        let Ok(compiled) = palisade_compiler::compile(&typed) else { return Ok(()) };
        let Some(mutation) = &compiled.mutation else { return Ok(()) };
        let validator = |shape| Validator::new(&compiled.bundle.pair(shape)?.policy).ok();
        // Some random expressions are wrong.
        let Some(of_pods) = validator(Shape::Pods) else { return Ok(()) };
        let of_templates = Validator::new(&compiled.bundle.workloads.as_ref().unwrap().policy)
            .map_err(|error| format!("the policy of templates is rejected: {error:?}\n{}", profile["spec"]))?;
        count(&self.policies);
        let spec = compiled.probes.params.as_ref();
        let params = spec.map(|params| json!({"metadata": {}, "spec": params}));
        let plan = Plan::new([(mutation, spec)]);
        for pod in pods {
            let mut pod = pod.clone();
            if random.percent(40) {
                unusual::change(random, &mut pod);
            }
            if let Some(fields) = pod["spec"].as_object_mut() {
                // No template has one.
                fields.remove("ephemeralContainers");
            }
            let workload = random.one(&[&WORKLOADS[0], &WORKLOADS[random.clone().below(WORKLOADS.len())]]);
            let object = workload.around("random", &pod);
            let patch = plan.patch(&MutationRequest::create("tenant", &pod));
            let mut after = pod.clone();
            patch.apply(&mut after).map_err(|error| format!("{error:?}"))?;
            let request =
                |kind, object| ValidationRequest { params: params.as_ref(), ..ValidationRequest::create(kind, object) };
            let pod_request = request("Pod", &after);
            let Some((wanted, _)) = violations(&of_pods, &pod_request) else { continue };
            count(&self.judged);
            if !patch.is_empty() {
                count(&self.mutated);
                let before = request("Pod", &pod);
                if wanted.is_empty() && violations(&of_pods, &before).is_some_and(|(found, _)| !found.is_empty()) {
                    count(&self.repaired);
                }
            }
            if !wanted.is_empty() {
                count(&self.denied);
            }
            let of_template = request(workload.kind, &object);
            let found = match of_templates.judge(&of_template) {
                Ok(found) => found,
                // A check of a user with nested loops over dozens of containers costs more where it reads redirected
                // images. The API server denies the template.
                Err(error) if error.to_string().contains("actual cost limit exceeded") => {
                    count(&self.too_costly);
                    continue;
                }
                Err(error) => {
                    let spec = &profile["spec"];
                    return Err(format!("seed {seed}: the policy of templates fails: {error}\n{spec}\n{object}"));
                }
            };
            if !found.matched {
                count(&self.early);
            }
            let found = violations(&of_templates, &of_template).unwrap_or_default().0;
            if found != wanted {
                return Err(format!(
                    "seed {seed}\nof the template: {found:#?}\nof the pod: {wanted:#?}\n{}\n{object}\n{after}",
                    profile["spec"]
                ));
            }
        }
        Ok(())
    }
}

/// The policy of templates finds in each what the policy of pods finds in the pod that is made from it, after mutation.
#[test]
fn template_is_judged_as_the_pod_that_it_becomes() {
    let counts = Counts::default();
    let pod = (pods::shape(), any::<bool>(), prop::collection::vec(pods::change(catalogue::ALL), 0..6));
    let cases = (any::<u64>().no_shrink(), settings::settings(), prop::collection::vec(pod, 8..16));
    let outcome = runner(150).run(&cases, |(seed, settings, pods)| {
        let random = &mut Random::new(seed);
        let mut pods: Vec<_> = pods
            .iter()
            .map(|(shape, complying, changes)| {
                let mut pod = if *complying { shape.complying(&settings, &values()) } else { shape.bare() };
                for change in changes {
                    change.apply(&mut pod);
                }
                pod
            })
            .collect();
        pods.extend((0..20).map(|_| objects::pod(random)));
        counts.profile(seed, &settings, &pods).map_err(TestCaseError::fail)
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let [policies, judged, mutated, repaired, denied, early, too_costly] = [
        counts.policies,
        counts.judged,
        counts.mutated,
        counts.repaired,
        counts.denied,
        counts.early,
        counts.too_costly,
    ]
    .map(Cell::into_inner);
    println!(
        "{policies} profiles that mutate, {judged} templates: {mutated} become other pods, {repaired} of them comply only \
         then, {denied} violate; the fast path excluded {early}; {too_costly} cost too much"
    );
    assert!(too_costly * 1000 <= judged, "{too_costly} of {judged}");
    assert!(repaired > 20 && denied > 100 && early > 5, "{repaired} {denied} {early}");
}

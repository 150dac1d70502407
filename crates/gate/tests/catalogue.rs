//! Every fixture of every check gets its verdict offline.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use palisade_api::{
    Settings, ToolSecurityParamsSpec, ToolSecurityProfile, catalogue,
    names::{Part, Shape},
};
use palisade_checks::{Lowering, fixture::Fixture};
use palisade_gate::{Decision, Judgement, ValidationRequest, Validator};
use serde_json::json;

fn fixtures() -> impl Iterator<Item = (&'static palisade_checks::Check, Fixture)> {
    catalogue::ALL.iter().flat_map(|check| {
        let fixtures: Vec<Fixture> =
            serde_saphyr::from_str(check.fixtures).unwrap_or_else(|error| panic!("fixtures of {}: {error}", check.id));
        fixtures.into_iter().map(move |fixture| (*check, fixture))
    })
}

/// A profile that makes only the fixture's check: everything else is allowed.
fn profile(fixture: &Fixture) -> ToolSecurityProfile {
    serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1",
        "kind": "ToolSecurityProfile",
        "metadata": {"name": "fixture"},
        "spec": fixture.spec(&json!({"a": "b"})),
    }))
    .unwrap()
}

#[test]
fn fixtures_get_their_verdicts() {
    let mut wrong = Vec::new();
    let mut count = 0;
    // Of each check, how many pods comply, and how many of them the fast path passes over.
    let mut early: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (check, fixture) in fixtures() {
        count += 1;
        let name = format!("{}: {}", check.id, fixture.name);
        let compiled =
            palisade_compiler::compile(&profile(&fixture)).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let policy: ValidatingAdmissionPolicy = compiled.bundle.pods.policy.clone();
        let policy = Validator::new(&policy).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let values = fixture.values();
        let params = (!values.is_empty()).then(|| json!({"spec": ToolSecurityParamsSpec::of(&values)}));
        let pod = fixture.pod();
        let request = ValidationRequest { params: params.as_ref(), ..ValidationRequest::create("Pod", &pod) };
        let judgement = policy.judge(&request);
        if let Ok(Judgement { matched, decision: Decision::Admit, .. }) = &judgement {
            let (complying, passed_over) = early.entry(check.id).or_default();
            *complying += 1;
            *passed_over += u32::from(!matched);
        }
        let decision = judgement.map(|judgement| judgement.decision);
        let right = match &decision {
            Ok(Decision::Admit) => fixture.violations.is_empty(),
            Ok(Decision::Deny { message, .. }) => {
                !fixture.violations.is_empty()
                    && fixture.violations.iter().all(|violation| message.contains(violation))
                    && message.matches(&format!("[{}]", check.id)).count() == fixture.violations.len()
            }
            Err(_) => false,
        };
        if !right {
            wrong.push(format!("{name}\n    expected {:?}\n    got {decision:?}", fixture.violations));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} fixtures are wrong:\n{}", wrong.len(), wrong.join("\n"));
    // Those that use what is rarely allowed are judged in full.
    let few: Vec<_> = early.iter().filter(|(_, (complying, passed_over))| passed_over * 2 <= *complying).collect();
    assert!(few.is_empty() && early.len() == catalogue::ALL.len(), "judged in full, although they comply: {few:?}");
}

#[test]
fn the_catalogue_is_consistent() {
    let ids: BTreeSet<_> = catalogue::ALL.iter().map(|check| check.id).collect();
    assert_eq!(ids.len(), catalogue::ALL.len(), "ids are unique");
    for check in catalogue::ALL {
        let of_check = || fixtures().filter(|(of, _)| of.id == check.id).map(|(_, fixture)| fixture);
        assert!(of_check().any(|fixture| fixture.violations.is_empty()), "{} has a fixture that passes", check.id);
        assert!(of_check().any(|fixture| !fixture.violations.is_empty()), "{} has a fixture that fails", check.id);
        let names: BTreeSet<_> = of_check().map(|fixture| fixture.name).collect();
        assert_eq!(names.len(), of_check().count(), "{}: names of fixtures are unique", check.id);
        // With everything allowed there is nothing to compile; with the default settings, what is compiled
        // is what can be violated.
        let types = BTreeMap::new();
        let mut cx = Lowering::new(&types);
        assert_eq!((check.compile)(&Settings::default(), &mut cx), None, "{} without settings", check.id);
    }
}

/// For each check and each fixture's settings: the pod that complies passes, the one that violates is denied.
#[test]
fn probe_pods_of_every_fixture_pass_the_gate() {
    let mut seen = BTreeSet::new();
    for (check, fixture) in fixtures() {
        let profile = profile(&fixture);
        if !seen.insert(serde_json::to_string(&profile.spec).unwrap()) {
            continue;
        }
        let compiled = palisade_compiler::compile(&profile).unwrap();
        let name = format!("{}: {}", check.id, fixture.name);
        let restricts = !compiled.checks.is_empty();
        let violating = compiled.probes.violating.clone();
        match palisade_gate::check(compiled) {
            Ok(checked) => {
                assert_eq!(violating.is_some(), restricts, "{name}: {violating:?}");
                assert_eq!(checked.strictest_stage().is_some(), restricts, "{name}");
            }
            Err(rejected) => panic!("{name}: {rejected}"),
        }
    }
}

/// Checks with a stage of their own, also an own one that reads the variable of another: the gate tries both policies, and
/// each has its probe.
#[test]
fn checks_with_a_stage_of_their_own_pass_the_gate() {
    let mut profile: ToolSecurityProfile =
        serde_saphyr::from_str(include_str!("../../../examples/toolforge/profile.yaml")).unwrap();
    profile.spec.custom_checks = serde_json::from_value(json!([{
        "id": "own", "message": "no", "expression": "variables.privileged.size() == 0 || variables.annotations.size() == 0",
    }]))
    .unwrap();
    let all: Vec<_> = palisade_compiler::compile(&profile).unwrap().checks;
    for ids in all.chunks(9).chain([&["own"][..]]) {
        for stage in ["Deny", "Audit"] {
            let checks: BTreeMap<_, _> = ids.iter().map(|id| (*id, stage)).collect();
            profile.spec.enforcement =
                serde_json::from_value(json!({"pods": "Warn", "workloads": "Warn", "checks": checks})).unwrap();
            let compiled = palisade_compiler::compile(&profile).unwrap();
            let checked = palisade_gate::check(compiled).unwrap_or_else(|rejected| panic!("{checks:?}: {rejected}"));
            for shape in Shape::OF_PODS {
                let [main, own] = Part::judging(shape).map(|part| checked.probes.question(part).map(|one| one.check));
                assert!(main.is_some_and(|check| stage == "Deny" || !ids.contains(&check)), "{checks:?}: {main:?}");
                assert!(ids == ["own"] || own.is_some_and(|check| ids.contains(&check)), "{checks:?}: {own:?}");
            }
        }
    }
    // Mistakes have their place in each policy.
    let wrong = json!([{"id": "own", "message": "no", "expression": "object.nonsense == 1"}]);
    profile.spec.custom_checks = serde_json::from_value(wrong).unwrap();
    let rejected = palisade_gate::check(palisade_compiler::compile(&profile).unwrap()).unwrap_err();
    assert!(
        rejected.diagnostics.iter().all(|one| one.location.to_string().starts_with("spec.customChecks[0].expression")),
        "{rejected}"
    );
}

//! Every fixture of every check gets its verdict offline.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use palisade_api::{Settings, ToolSecurityParamsSpec, ToolSecurityProfile, catalogue};
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
            Ok(_) => {
                if let Some(probe) = violating {
                    assert!(restricts, "{name}: {probe:?}");
                }
            }
            Err(rejected) => panic!("{name}: {rejected}"),
        }
    }
}

//! Exceptions that tenants ask for and the guard of what a profile reads, whatever else a profile says.

use std::cell::Cell;

use palisade_api::{
    ApprovalState, ExceptionScope, Level, ScopeKind, Settings, ToolSecurityProfile, catalogue,
    conditions::ExceptionReason,
};
use palisade_compiler::{Compiled, Namespace, Request};
use palisade_gate::{Decision, ValidationRequest, Validator, Violation};
use proptest::{prelude::*, sample};
use serde_json::{Value as Json, json};

use crate::properties::{pods, profile, runner, settings, values, yaml};

const NOW: &str = "2026-06-01T00:00:00Z";

/// With the checks that can be asked for, and a guard or none.
fn compile(settings: &Settings, checks: &[String], guarded: bool) -> Compiled {
    let mut profile = profile(settings, Level::Privileged);
    if !checks.is_empty() {
        profile["spec"]["exceptionRequests"] = json!({"checks": checks, "message": "Ask ops"});
    }
    profile["spec"]["guardSources"] = json!(guarded);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    palisade_compiler::compile(&profile).unwrap_or_else(|error| panic!("{error:?}\n{settings:?}"))
}

/// All violations of a pod that is created now, in a namespace where this was asked for.
fn violations(compiled: &Compiled, policy: &Validator, requests: &[Request], pod: &Json) -> Vec<Violation> {
    let namespace = Namespace { name: "tool".to_owned(), ..Namespace::default() };
    let params = compiled.params(&namespace, requests, NOW.parse().unwrap());
    let params = params.map(|params| json!({"spec": params.spec}));
    let request =
        ValidationRequest { namespace: "tool", params: params.as_ref(), ..ValidationRequest::create("Pod", pod) };
    match policy.evaluate(&request).unwrap_or_else(|error| panic!("{error}\n{pod}")) {
        Decision::Admit => Vec::new(),
        Decision::Deny { violations, message, .. } => {
            assert!(!violations.is_empty(), "{message}");
            violations
        }
    }
}

fn request(checks: &[String], approval: ApprovalState, container: Option<&str>, expires: &str) -> Request {
    Request {
        profile: "random".to_owned(),
        checks: checks.to_vec(),
        scope: ExceptionScope {
            kind: ScopeKind::Namespace,
            resource: None,
            name: None,
            container: container.map(str::to_owned),
            image_prefix: None,
        },
        expires: expires.parse().unwrap(),
        approval,
    }
}

fn ids() -> Vec<String> {
    catalogue::ALL.iter().map(|check| check.id.to_owned()).collect()
}

/// What is asked for is lifted, all of it, and nothing else: not before it is approved, not for another container, and not
/// after its end.
#[test]
fn an_approved_exception_lifts_just_the_checks_that_it_names() {
    let (lifted, kept, partly) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let checks = prop::collection::vec(any::<sample::Index>(), 6);
    let pod = (pods::shape(), prop::collection::vec(pods::change(catalogue::ALL), 4..16));
    let cases = (settings::settings(), sample::subsequence(ids(), 12..32), checks, pod);
    let outcome = runner(60).run(&cases, |(settings, requestable, asked, (shape, changes))| {
        let mut pod = shape.complying(&settings, &values());
        for change in &changes {
            change.apply(&mut pod);
        }
        pod["metadata"]["creationTimestamp"] = NOW.into();
        let asked: Vec<_> = asked.iter().map(|index| index.get(&requestable).clone()).collect();
        let plain = compile(&settings, &[], false);
        let compiled = compile(&settings, &requestable, false);
        let [of_plain, policy] =
            [&plain, &compiled].map(|compiled| Validator::new(&compiled.bundle.pods.policy).unwrap());
        let all = violations(&plain, &of_plain, &[], &pod);
        let judge = |requests: &[Request]| violations(&compiled, &policy, requests, &pod);
        let later = "2026-06-01T00:00:01Z";
        prop_assert_eq!(&judge(&[]), &all, "nobody has asked for anything\n{}\n{}", pod, yaml(&settings));
        for without_effect in [
            request(&asked, ApprovalState::Missing, None, later),
            request(&asked, ApprovalState::Outdated, None, later),
            request(&asked, ApprovalState::Current, None, NOW),
        ] {
            prop_assert_eq!(&judge(std::slice::from_ref(&without_effect)), &all, "{:?}\n{}", without_effect, pod);
        }
        let rest: Vec<_> = all.iter().filter(|one| !asked.contains(&one.check)).cloned().collect();
        let approved = request(&asked, ApprovalState::Current, None, later);
        prop_assert_eq!(&judge(&[approved]), &rest, "{:?} are lifted\n{}\n{}", &asked, pod, yaml(&settings));
        lifted.set(lifted.get() + all.len() - rest.len());
        kept.set(kept.get() + rest.len());

        // For one container, one check at a time: some cannot be asked for in this way.
        let name = pod.pointer("/spec/containers/0/name").and_then(Json::as_str).unwrap_or("main");
        for check in &asked {
            let check = std::slice::from_ref(check);
            let one = request(check, ApprovalState::Current, Some(name), later);
            let nobody = request(check, ApprovalState::Current, Some("no-such-container"), later);
            prop_assert_eq!(&judge(&[nobody]), &all, "{:?} of no container\n{}", check, pod);
            let found = judge(std::slice::from_ref(&one));
            let in_force = compiled.exceptions.standing(&one, NOW.parse().unwrap()).0 == ExceptionReason::InForce;
            prop_assert!(in_force || found == all, "{check:?} has an effect\n{pod}");
            prop_assert!(
                found.iter().all(|one| all.contains(one))
                    && all.iter().all(|one| check.contains(&one.check) || found.contains(one)),
                "{check:?} of container {name}: {found:?} instead of {all:?}\n{pod}\n{}",
                yaml(&settings)
            );
            partly.set(partly.get() + all.len() - found.len());
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let counts = (lifted.get(), kept.get(), partly.get());
    println!("violations lifted, kept, and lifted for a container: {counts:?}");
    assert!(counts.0 > 9 && counts.1 > 20 && counts.2 > 3, "too few of a kind: {counts:?}");
}

/// A guard is a policy beside the others, which judge pods and workloads as without it; and an API server takes it all.
#[test]
fn a_guard_changes_nothing_of_how_pods_are_judged() {
    let cases = (settings::settings(), sample::subsequence(ids(), 0..8));
    let outcome = runner(40).run(&cases, |(settings, requestable)| {
        let [without, with] = [false, true].map(|guarded| compile(&settings, &requestable, guarded));
        let specs = |compiled: &Compiled| {
            let pairs = [Some(&compiled.bundle.pods), compiled.bundle.workloads.as_ref()];
            let specs = pairs.map(|pair| pair.map(|pair| json!([pair.policy.spec, pair.binding.spec])));
            json!([specs, compiled.params(&Namespace::default(), [], NOW.parse().unwrap())])
        };
        prop_assert_eq!(specs(&without), specs(&with), "{}", yaml(&settings));
        let guards = [&without, &with].map(|compiled| compiled.bundle.guard.is_some());
        prop_assert_eq!(guards, [false, true], "{}", yaml(&settings));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// The gate evaluates each policy on all pods of the catalogue, so that these are few.
#[test]
fn gate_accepts_profiles_with_a_guard_and_exceptions_on_request() {
    let cases = (settings::settings(), sample::subsequence(ids(), 1..catalogue::ALL.len()));
    let outcome = runner(3).run(&cases, |(settings, requestable)| {
        if let Err(rejected) = palisade_gate::check(compile(&settings, &requestable, true)) {
            prop_assert!(crate::properties::contradictory(&settings), "{rejected}\n{}", yaml(&settings));
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

//! Changes of the generation in effect: rejected generations, dry runs without a verdict, and policies that take over
//! from others. The clock is the test's.

use std::time::Duration;

use palisade_api::names::{self, Part, Shape};
use serde_json::json;

use super::{
    BINDINGS, POLICIES, Setup,
    mock::{RecordedRequest, Respond},
    params_path, profile, setup,
};

/// True if the object of a request is of a generation.
fn is_of_generation(asked: &RecordedRequest, generation: i64) -> bool {
    asked.body["metadata"]["annotations"][names::GENERATION_ANNOTATION].as_str()
        == Some(generation.to_string().as_str())
}

#[tokio::test(start_paused = true)]
async fn rejected_generation_keeps_the_last_good_bundle() {
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    for (code, kind) in [(400, policies), (403, bindings), (413, policies), (422, bindings)] {
        let setup = setup(3);
        setup.run();
        setup.write("tools", 1, 100);
        setup.in_force("tools", 1).await;
        setup.condition("tools", "Programmed", "Programmed").await;
        setup.mock.rule(move |asked| {
            if asked.is_of(kind) && is_of_generation(asked, 2) { Respond::Error(code) } else { Respond::Normally }
        });
        setup.mock.asked();
        // Another value of the parameter, so that something would be written.
        let mut next = profile("tools", 2, 200);
        next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
        setup.observe(&next);
        let (status, message) = setup.condition("tools", "Accepted", "RefusedByApiServer").await;
        assert_eq!(status, "False");
        assert!(message.contains(&format!("the mock says {code}")), "{message}");
        let (status, message) = setup.condition("tools", "Programmed", "LastGoodInForce").await;
        assert_eq!((status.as_str(), message.contains("generation 1")), ("False", true), "{message}");
        // Not even its parameters.
        let written = setup.mock.writes();
        let generated =
            |path: &&String| path.contains("/toolsecurityparams/") || path.contains("admissionregistration");
        assert_eq!(written.iter().find(generated), None, "{code} {kind}");
        setup.delete(POLICIES, "tools");
        setup.in_force("tools", 1).await;
        // It is asked again, and when it is taken, it is in force.
        setup.mock.rule(|_| Respond::Normally);
        setup.in_force("tools", 2).await;
        assert_eq!(setup.mock.get(&params_path("tools", "n1")).unwrap()["spec"]["integers"]["uid"], 7);
    }
}

#[tokio::test(start_paused = true)]
async fn a_generation_rejected_midway_is_rolled_back() {
    let setup = setup(3);
    setup.run();
    setup.write("tools", 1, 100);
    setup.in_force("tools", 1).await;
    // The dry run is answered well, and the policy is taken.
    setup.mock.rule(|asked| {
        let binding = asked.is_of("validatingadmissionpolicybindings") && !asked.is_dry_run();
        if binding && is_of_generation(asked, 2) { Respond::Error(403) } else { Respond::Normally }
    });
    let mut next = profile("tools", 2, 200);
    next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
    setup.observe(&next);
    setup.condition("tools", "Accepted", "RefusedByApiServer").await;
    setup.in_force("tools", 1).await;
    let params = params_path("tools", "n1");
    setup.until("its parameters", |mock| mock.get(&params).unwrap()["spec"]["integers"]["uid"] == 50001).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_denies_until_the_one_that_takes_over_is_shown_to_deny() {
    let setup = Setup::new(&["n0", names::PROBE_NAMESPACE]);
    setup.run();
    let denies = |policy: &str| {
        let actions = setup.mock.get(&format!("{BINDINGS}/{policy}"))?["spec"]["validationActions"].clone();
        Some(actions == json!(["Deny"]))
    };
    let write = |generation, enforcement| {
        let mut profile = profile("tools", generation, 100);
        profile["spec"]["enforcement"] = enforcement;
        setup.observe(&profile);
    };
    let (own, none) = (json!({"pods": "Audit", "checks": {"privileged": "Deny"}}), json!({"pods": "Deny"}));
    let [of_shape, of_checks] =
        [Part::from(Shape::Pods), Part::Checks(Shape::Pods)].map(|part| names::policy("tools", part));
    let (of_shape, of_checks) = (&of_shape, &of_checks);
    write(1, own.clone());
    setup.condition("tools", "Programmed", "Programmed").await;
    assert_eq!((denies(of_shape), denies(of_checks)), (Some(false), Some(true)));
    for (generation, enforcement, first, second, left) in
        [(2, none, of_shape, of_checks, None), (3, own, of_checks, of_shape, Some(false))]
    {
        // The API server does not read the new policy.
        setup.mock.rule(|_| Respond::Normally);
        write(generation, enforcement);
        setup.condition("tools", "Programmed", "ApplyFailed").await;
        tokio::time::sleep(Duration::from_mins(3)).await;
        assert_eq!((denies(first), denies(second)), (Some(true), Some(true)), "{generation}");
        let (_, message) = setup.condition("tools", "Programmed", "ApplyFailed").await;
        assert!(message.contains(&format!("does not enforce policy {first} yet")), "{message}");
        // Now it does.
        let policy = first.clone();
        setup.mock.rule(move |asked| {
            if asked.is_dry_run() && asked.is_of("pods") { Respond::Denied(policy.clone()) } else { Respond::Normally }
        });
        setup.condition("tools", "Programmed", "Programmed").await;
        assert_eq!((denies(first), denies(second)), (Some(true), left), "{generation}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_a_dry_run_verdict() {
    for respond in [Respond::Error(409), Respond::Error(429), Respond::Error(500), Respond::Error(503), Respond::Never]
    {
        let setup = setup(3);
        setup.run();
        setup.write("tools", 1, 100);
        setup.in_force("tools", 1).await;
        setup.condition("tools", "Programmed", "Programmed").await;
        let answer = respond.clone();
        setup.mock.rule(move |asked| {
            if asked.is_dry_run() && is_of_generation(asked, 2) { answer.clone() } else { Respond::Normally }
        });
        setup.mock.asked();
        setup.write("tools", 2, 200);
        let (status, _) = setup.condition("tools", "Programmed", "ApplyFailed").await;
        assert_eq!(status, "False", "{respond:?}");
        tokio::time::sleep(Duration::from_mins(2)).await;
        let written = setup.mock.writes();
        assert!(!written.iter().any(|path| path.contains("admissionregistration")), "{respond:?}: {written:?}");
        setup.mock.rule(|_| Respond::Normally);
        setup.in_force("tools", 2).await;
    }
}

//! Transitions between generations, without lanes: how each response ends one. The clock is the test's.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
    time::Duration,
};

use palisade_api::{ToolSecurityProfile, names};
use serde_json::Value as Json;
use tokio::time::{Instant, timeout};

use super::{
    BINDINGS, POLICIES, Setup,
    mock::{RecordedRequest, Respond},
    path, profile, setup,
};
use crate::{
    apply::transition::{put_in_force, stop, write},
    context::state::State,
    generations::accepted::AcceptedProfile,
    object_name::ProfileName,
    queue::ProfileQueue,
};

const PROFILE: &str = "tools";

/// The generations 1 to 3, each with another limit. Compiling takes a while.
static ACCEPTED: LazyLock<[Arc<AcceptedProfile>; 3]> = LazyLock::new(|| {
    [1, 2, 3].map(|generation| {
        let profile = profile(PROFILE, generation, 100 + generation);
        let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
        let compiled = palisade_gate::check(palisade_compiler::compile(&profile).unwrap()).unwrap();
        Arc::new(AcceptedProfile { profile: Arc::new(profile), compiled })
    })
});

/// The generation in the annotation of an object.
fn generation_of(object: &Json) -> Option<i64> {
    object["metadata"]["annotations"][names::GENERATION_ANNOTATION].as_str()?.parse().ok()
}

/// The generations of policy and binding for pods in the cluster.
fn in_cluster(setup: &Setup) -> [Option<i64>; 2] {
    [POLICIES, BINDINGS].map(|kind| generation_of(&setup.mock.get(&path(kind, PROFILE))?))
}

fn is_binding_of(asked: &RecordedRequest, generation: i64) -> bool {
    asked.is_write()
        && asked.is_of("validatingadmissionpolicybindings")
        && generation_of(&asked.body) == Some(generation)
}

/// True if the profile is due within this time.
async fn due(queue: &ProfileQueue, within: Duration) -> bool {
    timeout(within, queue.next(&BTreeSet::new())).await.is_ok_and(|due| due == ProfileName::new(PROFILE))
}

/// A controller with generation 1 in effect, and nothing due.
async fn with_first() -> (Setup, Arc<State>) {
    let setup = setup(1);
    let state = setup.cx.states.of(PROFILE);
    put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[0]).await.unwrap();
    assert_eq!(observed(&state), (Some(1), Some(1), None, 0));
    assert_eq!(in_cluster(&setup), [Some(1); 2]);
    assert!(due(&setup.cx.queues.params, Duration::from_secs(1)).await);
    assert!(!due(&setup.cx.queues.repairs, Duration::from_mins(1)).await);
    setup.mock.asked();
    (setup, state)
}

/// The generation in effect and the confirmed one, the error, and the number of failures.
fn observed(state: &State) -> (Option<i64>, Option<i64>, Option<String>, u32) {
    let in_force = state.in_force();
    (in_force.generation(), in_force.confirmed, in_force.error.clone(), in_force.failures)
}

#[tokio::test(start_paused = true)]
async fn response_decides_which_generation_remains() {
    // The response to the binding of the new generation; the generation in effect, the one in the cluster by policy and
    // binding, the confirmed one, and the number of failures.
    for (respond, in_effect, cluster, confirmed, failures, error) in [
        (Respond::Normally, 2, [2, 2], 2, 0, ""),
        // A rejection: everything is restored.
        (Respond::Error(403), 1, [1, 1], 1, 0, "the mock says 403"),
        (Respond::Error(422), 1, [1, 1], 1, 0, "the mock says 422"),
        // Otherwise the lane of repairs writes the rest of the new generation.
        (Respond::Error(409), 2, [2, 1], 1, 1, "the mock says 409"),
        (Respond::Error(500), 2, [2, 1], 1, 1, "the mock says 500"),
        (Respond::Never, 2, [2, 1], 1, 1, "no answer within 10 s"),
    ] {
        let (setup, state) = with_first().await;
        let answer = respond.clone();
        setup.mock.rule(move |asked| if is_binding_of(asked, 2) { answer.clone() } else { Respond::Normally });
        let begin = Instant::now();
        let result = put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[1]).await;
        let is_slow = matches!(respond, Respond::Never);
        assert_eq!(begin.elapsed().as_secs(), if is_slow { 10 } else { 0 }, "{respond:?}");
        let failed = result.as_ref().err().map(ToString::to_string);
        assert_eq!(failed.is_some(), !error.is_empty(), "{respond:?}");
        assert!(failed.iter().all(|text| text.contains(error)), "{respond:?}: {failed:?}");
        let (generation, of, kept, count) = observed(&state);
        assert_eq!((generation, of, count), (Some(in_effect), Some(confirmed), failures), "{respond:?}");
        assert_eq!(kept, failed.filter(|_| failures > 0), "{respond:?}");
        assert_eq!(in_cluster(&setup), cluster.map(Some), "{respond:?}");
        assert!(state.writing.try_lock().is_ok(), "{respond:?}");
        // The parameters to keep have changed, whatever the result is.
        assert!(due(&setup.cx.queues.params, Duration::from_secs(1)).await, "{respond:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_transition_is_retried_after_half_a_second() {
    for respond in [Respond::Error(403), Respond::Error(500), Respond::Never] {
        let (setup, state) = with_first().await;
        let answer = respond.clone();
        setup.mock.rule(move |asked| if is_binding_of(asked, 2) { answer.clone() } else { Respond::Normally });
        put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[1]).await.unwrap_err();
        let repairs = &setup.cx.queues.repairs;
        assert!(!due(repairs, Duration::from_millis(300)).await, "{respond:?}");
        assert!(due(repairs, Duration::from_millis(400)).await, "{respond:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_first_generation_remains_with_its_error() {
    let (setup, state) = (setup(1), Arc::new(State::default()));
    setup.mock.rule(|asked| if is_binding_of(asked, 1) { Respond::Error(403) } else { Respond::Normally });
    let error = put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[0]).await.unwrap_err();
    assert_eq!(observed(&state), (Some(1), None, Some(error.to_string()), 1));
}

#[tokio::test(start_paused = true)]
async fn previous_generation_that_cannot_be_restored_is_left_to_repairs() {
    let (setup, state) = with_first().await;
    setup.mock.rule(|asked| {
        let restored =
            asked.is_write() && asked.path == path(POLICIES, PROFILE) && generation_of(&asked.body) == Some(1);
        if restored {
            Respond::Error(500)
        } else if is_binding_of(asked, 2) {
            Respond::Error(403)
        } else {
            Respond::Normally
        }
    });
    // The result is the rejection; the state has the later error.
    let error = put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[1]).await.unwrap_err();
    assert!(error.is_refusal(), "{error}");
    let (generation, confirmed, kept, failures) = observed(&state);
    assert_eq!((generation, confirmed, failures), (Some(1), Some(1), 2));
    assert!(kept.unwrap().contains("the mock says 500"));
    assert_eq!(in_cluster(&setup), [Some(2), Some(1)]);
}

#[tokio::test(start_paused = true)]
async fn new_transition_clears_earlier_failures_and_leaves_the_rest_to_repairs_if_it_is_dropped() {
    let (setup, state) = with_first().await;
    setup.mock.rule(|asked| if is_binding_of(asked, 2) { Respond::Error(500) } else { Respond::Normally });
    put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[1]).await.unwrap_err();
    assert_eq!(observed(&state).3, 1);
    // Each further failure counts.
    write(&setup.cx, PROFILE, &ACCEPTED[1], &state).await.unwrap_err();
    assert_eq!(observed(&state).3, 2);
    setup.mock.rule(|asked| if is_binding_of(asked, 3) { Respond::Never } else { Respond::Normally });
    {
        let third = &ACCEPTED[2];
        let mut transition = std::pin::pin!(put_in_force(&setup.cx, PROFILE, &state, third));
        assert!(timeout(Duration::from_secs(1), &mut transition).await.is_err());
        assert_eq!(observed(&state), (Some(3), Some(1), None, 0));
        // Repairs wait for its end.
        assert!(state.writing.try_lock().is_err());
    }
    assert!(state.writing.try_lock().is_ok());
    assert_eq!(observed(&state).0, Some(3));
    // They finish it.
    setup.mock.rule(|_| Respond::Normally);
    state.in_force().error = Some("an earlier error".to_owned());
    state.in_force().failures = 7;
    write(&setup.cx, PROFILE, &ACCEPTED[2], &state).await.unwrap();
    assert_eq!(observed(&state), (Some(3), Some(3), None, 0));
    assert_eq!(in_cluster(&setup), [Some(3); 2]);
}

#[tokio::test(start_paused = true)]
async fn transition_and_stop_wait_for_other_writes() {
    let (setup, state) = with_first().await;
    {
        let _repair = state.writing.lock().await;
        let transition = put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[1]);
        assert!(timeout(Duration::from_mins(1), transition).await.is_err());
        assert_eq!((observed(&state).0, setup.mock.writes()), (Some(1), vec![]));
        assert!(timeout(Duration::from_mins(1), stop(&state)).await.is_err());
        assert_eq!(observed(&state).0, Some(1));
    }
    stop(&state).await;
    assert_eq!(observed(&state).0, None);
}

#[tokio::test(start_paused = true)]
async fn slow_write_is_not_given_up_too_early() {
    let (setup, state) = with_first().await;
    setup.mock.rule(|asked| {
        if is_binding_of(asked, 2) { Respond::After(Duration::from_millis(1500)) } else { Respond::Normally }
    });
    put_in_force(&setup.cx, PROFILE, &state, &ACCEPTED[1]).await.unwrap();
    assert_eq!(in_cluster(&setup), [Some(2); 2]);
}

#[tokio::test(start_paused = true)]
async fn restored_policy_and_binding_are_counted_and_reported() {
    let (setup, state) = with_first().await;
    let count = |of: &str| {
        let text = setup.cx.metrics.text().unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(of)).map(str::to_owned);
        line.map_or(0, |count| count.trim().parse::<u32>().unwrap())
    };
    for (kind, name) in [(POLICIES, "ValidatingAdmissionPolicy"), (BINDINGS, "ValidatingAdmissionPolicyBinding")] {
        let written = format!("palisade_writes_total{{kind=\"{name}\",verb=\"apply\"}}");
        let restored = format!("palisade_drift_repaired_total{{kind=\"{name}\"}}");
        let before = [count(&written), count(&restored)];
        assert_eq!((before[0] > 0, before[1]), (true, 0), "{name}");
        setup.delete(kind, PROFILE);
        setup.mock.asked();
        write(&setup.cx, PROFILE, &ACCEPTED[0], &state).await.unwrap();
        assert_eq!(in_cluster(&setup), [Some(1); 2]);
        assert_eq!([count(&written), count(&restored)], [before[0] + 1, 1], "{name}");
        // Nothing else is written, and an event names the object.
        let asked = std::cell::RefCell::new(Vec::new());
        setup
            .until("an event", |mock| {
                asked.borrow_mut().extend(mock.asked());
                asked.borrow().iter().any(|asked| asked.path.contains("/events"))
            })
            .await;
        let asked = asked.into_inner();
        let event = asked.iter().find(|asked| asked.path.contains("/events")).unwrap();
        assert_eq!(event.body["reason"], "DriftRepaired");
        let note = event.body["note"].as_str().unwrap();
        assert_eq!(note, format!("{name} palisade-{PROFILE}-pods was changed by another client and restored"));
        let generated = asked.iter().filter(|asked| asked.is_write() && asked.path.contains("admissionregistration"));
        assert_eq!(generated.map(|asked| asked.path.clone()).collect::<Vec<_>>(), [path(kind, PROFILE)]);
    }
}

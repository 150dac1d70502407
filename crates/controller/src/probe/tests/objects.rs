//! Probes of the policy for objects other than pods and workloads.

use super::*;

fn with_objects(enforcement: &Json) -> Arc<AcceptedProfile> {
    accepted("a", 1, &json!({"enforcement": enforcement, "network": {"allowedHosts": ["*.example.org"]}}))
}

#[tokio::test(start_paused = true)]
async fn enforced_requires_the_policy_for_objects() {
    let (setup, accepted) = (Setup::new(1), with_objects(&json!({"workloads": "Off"})));
    setup.servers[0].enforce("a.1", &["pods"]);
    let (first, _) = setup.answer(&accepted).await;
    assert!(matches!(first.worst(), Outcome::ViolationAdmitted("probe object", "probe")), "{first:?}");
    setup.servers[0].enforce("a.1.o", &["podtemplates"]);
    let passed = setup.until(&accepted, Reason::ProbesPassed, LIMIT).await;
    let expected =
        "the API server denies pods and other objects that violate the profile, and admits compliant objects";
    assert!(passed.message.starts_with(expected), "{}", passed.message);
}

#[tokio::test(start_paused = true)]
async fn objects_in_audit_are_reported_as_not_visible() {
    let (setup, accepted) = (Setup::new(1), with_objects(&json!({"workloads": "Audit", "objects": "Audit"})));
    setup.servers[0].enforce("a.1", &["pods"]);
    let passed = setup.until(&accepted, Reason::ProbesPassed, LIMIT).await;
    let expected = "the stage Audit of workloads and other objects is visible only in the audit log";
    assert!(passed.message.contains(expected), "{}", passed.message);
}

/// The removal of a profile waits for the policy that denies, whichever it is.
#[tokio::test(start_paused = true)]
async fn denials_of_objects_alone_are_noticed() {
    let (setup, accepted) =
        (Setup::new(1), with_objects(&json!({"pods": "Audit", "workloads": "Off", "objects": "Deny"})));
    assert_eq!(setup.prober.some_denies(&accepted).await, Some(false));
    setup.servers[0].enforce("a.1.o", &["podtemplates"]);
    assert_eq!(setup.prober.some_denies(&accepted).await, Some(true));
}

//! Profiles on clusters of each minor: an older one is stricter, all others are alike.

use palisade_api::ToolSecurityProfile;
use palisade_compiler::{Compiled, compile};
use palisade_gate::{Minor, PORTABLE, check, check_for};
use serde_json::{Value as Json, json};

fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    });
    for (key, value) in spec.as_object().unwrap() {
        profile["spec"][key] = value.clone();
    }
    compile(&serde_json::from_value::<ToolSecurityProfile>(profile).unwrap()).unwrap()
}

fn custom(expression: &str) -> Json {
    json!({"baseline": "Privileged", "customChecks": [{
        "id": "own", "target": "Pod", "expression": expression, "message": "not allowed",
    }]})
}

/// The minors whose clusters accept a spec.
fn accepting(spec: &Json) -> Vec<Minor> {
    Minor::ALL.into_iter().filter(|minor| check_for(compiled(spec), *minor).is_ok()).collect()
}

#[test]
fn example_profile_is_accepted_by_clusters_of_all_minors() {
    let text = include_str!("../../../examples/toolforge/profile.yaml");
    let profile: ToolSecurityProfile = serde_saphyr::from_str(text).unwrap();
    let compiled = compile(&profile).unwrap();
    for minor in Minor::ALL {
        check_for(compiled.clone(), minor).unwrap_or_else(|rejected| panic!("{minor}: {rejected}"));
    }
}

#[test]
fn only_clusters_before_the_portable_minor_are_stricter() {
    let later = || Minor::ALL.into_iter().filter(|minor| *minor >= PORTABLE).collect::<Vec<_>>();
    let two_variables = custom("variables.containers.all(i, container, i < 100)");
    let removed = json!({"users": {"supplementalGroupsPolicy": "Strict"}});
    for (spec, expected) in [
        (&json!({}), Minor::ALL.to_vec()),
        (&json!({"baseline": "Baseline"}), Minor::ALL.to_vec()),
        (&custom("variables.containers.all(container, true)"), Minor::ALL.to_vec()),
        (&two_variables, later()),
        (&removed, later()),
        // Of 1.34: no cluster accepts it, because a profile is portable.
        (&custom("[2, 1].sort() == [1, 2]"), vec![]),
    ] {
        assert_eq!(accepting(spec), expected, "{spec}");
        assert_eq!(check(compiled(spec)).is_ok(), expected.contains(&PORTABLE), "{spec}");
    }
    // Of 1.34, if the profile says so. Without a cluster, it is checked for that minor.
    for (minimum, expected) in [("1.32", vec![]), ("1.33", vec![]), ("1.36", vec![Minor::V1_36, Minor::V1_37])] {
        let mut spec = custom("[2, 1].sort() == [1, 2]");
        spec["minimumKubeVersion"] = minimum.into();
        assert_eq!(accepting(&spec), expected, "{minimum}");
        assert_eq!(check(compiled(&spec)).is_ok(), !expected.is_empty(), "{minimum}");
        let plain = json!({"minimumKubeVersion": minimum});
        let minimum: Minor = minimum.parse().unwrap();
        let served: Vec<_> = Minor::ALL.into_iter().filter(|minor| *minor >= minimum).collect();
        assert_eq!(accepting(&plain), served, "{minimum}");
    }
    let rejected = check_for(compiled(&json!({"minimumKubeVersion": "1.36"})), Minor::V1_35).unwrap_err().to_string();
    assert!(
        rejected.contains("spec.minimumKubeVersion: is 1.36, and the version of the cluster is 1.35"),
        "{rejected}"
    );
    // An older minor than the portable one counts.
    let mut older = two_variables.clone();
    older["minimumKubeVersion"] = "1.32".into();
    assert_eq!(accepting(&older), []);
    let rejected = check_for(compiled(&removed), Minor::V1_32).unwrap_err().to_string();
    assert!(rejected.contains("every pod is denied, because Kubernetes 1.32 removes a field"), "{rejected}");
    assert!(rejected.contains("supplementalGroupsPolicy"), "{rejected}");
    let rejected = check_for(compiled(&two_variables), Minor::V1_32).unwrap_err().to_string();
    assert!(rejected.contains("spec.customChecks[0].expression"), "{rejected}");
}

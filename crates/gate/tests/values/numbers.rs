//! Numbers at the ends of 64 bits, in settings and in pods.

use std::cell::Cell;

use palisade_kube_json::pod;
use proptest::{prelude::*, sample::select};
use serde_json::{Value as Json, json};

use crate::values::{PodPolicy, compiled, runner};

const ENDS: [i64; 12] = [
    i64::MIN,
    i64::MIN + 1,
    -2_147_483_649,
    -1,
    0,
    1,
    2_147_483_646,
    2_147_483_647,
    2_147_483_648,
    4_294_967_296,
    i64::MAX - 1,
    i64::MAX,
];

/// Two of them, in order.
fn range() -> impl Strategy<Value = (i64, i64)> {
    (select(&ENDS[..]), select(&ENDS[..])).prop_map(|(one, other)| (one.min(other), one.max(other)))
}

/// The settings that have ranges, and a pod that says a number there.
fn ranged(setting: &str, ranges: &Json, number: i64) -> (Json, Json) {
    let must = json!({"rule": "MustRunAs", "ranges": ranges});
    let mut pod = pod::minimal("pod");
    let context = &mut pod["spec"]["securityContext"];
    let spec = match setting {
        "ports" => {
            pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 1, "hostPort": number}]);
            json!({"host": {"ports": ranges}})
        }
        "supplementalGroups" => {
            *context = json!({"supplementalGroups": [number]});
            json!({"users": {setting: must}})
        }
        _ => {
            *context = json!({setting: number});
            json!({"users": {setting: must}})
        }
    };
    (spec, pod)
}

#[test]
fn settings_at_the_ends_of_numbers_mean_what_they_say() {
    let settings = select(vec!["runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "ports"]);
    let cases = (settings, prop::collection::vec(range(), 1..3), any::<bool>());
    let (inside, outside) = (Cell::new(0), Cell::new(0));
    let outcome = runner(150).run(&cases, |(setting, ranges, by_parameter)| {
        let written: Vec<_> = ranges.iter().map(|(min, max)| json!({"min": min, "max": max})).collect();
        let (mut spec, _) = ranged(setting, &json!(written), 0);
        if by_parameter {
            let (low, high) = ranges[0];
            let mut written = written.clone();
            written[0] = json!({"min": "$low", "max": "$high"});
            spec = ranged(setting, &json!(written), 0).0;
            spec["parameters"] = json!([
                {"name": "low", "type": "Integer", "default": low, "minimum": i64::MIN, "maximum": i64::MAX},
                {"name": "high", "type": "Integer", "default": high, "minimum": high, "maximum": high},
            ]);
        }
        let compiled = compiled(&spec);
        let judge = PodPolicy::new(&compiled);
        let params = compiled.probes.params.as_ref();
        for number in ENDS {
            let (_, pod) = ranged(setting, &json!([]), number);
            // Of a port, 0 means none.
            let expected =
                ranges.iter().any(|(min, max)| (min..=max).contains(&&number)) || (setting == "ports" && number == 0);
            let denial = judge.denial(&pod, params);
            prop_assert_eq!(denial.is_none(), expected, "{} {} in {:?}: {:?}", setting, number, ranges, denial);
            let counted = if expected { &inside } else { &outside };
            counted.set(counted.get() + 1);
        }
        // The pod that shows that the profile is in force violates it. If no pod does, it is denied by its name in the
        // namespace of probes.
        let violating = compiled.probes.violating.as_ref().filter(|probe| probe.check != Some("probe"));
        let violating = violating.map(|probe| judge.denial(&probe.pod, params));
        prop_assert!(violating != Some(None), "{:?} in {:?}", compiled.probes.violating, ranges);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(inside.get() > 100 && outside.get() > 100, "{} {}", inside.get(), outside.get());
}

#[test]
fn token_lifetimes_at_the_ends_of_numbers_mean_what_they_say() {
    for most in ENDS {
        for by_parameter in [false, true] {
            let rules =
                |most: Json| json!({"serviceAccountTokens": {"audiences": ["*"], "maxExpirationSeconds": most}});
            let mut spec = json!({"volumes": {"allowed": ["*"]}, "identity": rules(json!(most))});
            if by_parameter {
                spec["identity"] = rules(json!("$most"));
                spec["parameters"] = json!([{"name": "most", "type": "Integer", "default": most}]);
            }
            let compiled = compiled(&spec);
            let judge = PodPolicy::new(&compiled);
            for seconds in ENDS {
                let mut pod = pod::minimal("pod");
                let token = json!({"path": "token", "audience": "vault", "expirationSeconds": seconds});
                let projected = json!({"sources": [{"serviceAccountToken": token}]});
                pod["spec"]["volumes"] = json!([{"name": "v", "projected": projected}]);
                let denial = judge.denial(&pod, compiled.probes.params.as_ref());
                assert_eq!(denial.is_none(), seconds <= most, "{seconds} of at most {most}: {denial:?}");
            }
        }
    }
}

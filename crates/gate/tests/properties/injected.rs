//! Additions of random profiles to random pods: policy, webhook and patch make the same pod of each.

use std::{env, ops::Range};

use palisade_admission::requests::{Cluster, Operation, Outcome, User};
use palisade_api::{
    ToolSecurityProfile, crd,
    names::{self, Shape},
};
use palisade_compiler::Compiled;
use palisade_gate::{Decision, Minor, check, cluster, register};
use palisade_kube_json::workload::WORKLOADS;
use palisade_mutation::{MutationRequest, Plan};
use serde_json::{Value as Json, json};

use crate::{
    properties::{injections, judge, mutated::Conditions, random::Random},
    support::ShapePolicy,
};

const TENANT: &str = "tenant";

/// An API server with one engine for the profiles; none for a control.
fn server(compiled: &[&Compiled], native: bool) -> Cluster {
    let mut cluster = cluster(Minor::V1_36).without_service_accounts();
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT, "labels": {"a": "b"}}});
    let mut objects = vec![json!(crd::params()), namespace];
    for one in compiled {
        objects.extend(one.probes.params.as_ref().map(|spec| {
            json!({
                "apiVersion": names::API_VERSION, "kind": "ToolSecurityParams",
                "metadata": {"name": names::params(&one.profile), "namespace": TENANT}, "spec": spec,
            })
        }));
        if native {
            let [mut policy, binding] = one.bundle.mutation.as_ref().unwrap().objects("v1");
            policy["spec"]["failurePolicy"] = "Fail".into();
            objects.extend([policy, binding]);
        } else {
            register(&mut cluster, one.mutation.clone().unwrap());
        }
    }
    for object in objects {
        cluster.apply(object).unwrap_or_else(|error| panic!("{error:?}"));
    }
    cluster
}

/// The new pod as it is stored; `None` if the API server's own validation denies it.
fn stored(cluster: &Cluster, pod: &Json) -> Option<Json> {
    let mut pod = pod.clone();
    pod["metadata"]["namespace"] = TENANT.into();
    let mut request = cluster.request(Operation::Create, "", &pod, None).ok()?;
    request.user = User { name: "user".to_owned(), groups: vec!["system:authenticated".to_owned()], ..User::default() };
    let review = cluster.admit(&request);
    if let Some((path, error)) = review.evaluations.iter().find_map(|one| Some((&one.path, one.result.as_ref().err()?)))
    {
        panic!("{path} fails: {error}\n{:.2000}", pod.to_string());
    }
    match review.outcome {
        Outcome::Allowed => review.object.map(|pod| seen(&pod)),
        Outcome::Denied(_) => None,
        Outcome::NoVerdict(why) => panic!("{why}\n{pod}"),
    }
}

/// The fields that an addition can change, and the name.
fn seen(pod: &Json) -> Json {
    let mut metadata = json!({"name": pod["metadata"]["name"]});
    for field in ["labels", "annotations"] {
        if pod["metadata"][field].as_object().is_some_and(|map| !map.is_empty()) {
            metadata[field] = pod["metadata"][field].clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]})
}

/// Whether everything in `before` is in `after`: lists and maps may have more.
fn kept(before: &Json, after: &Json) -> bool {
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => {
            before.iter().all(|(key, value)| after.get(key).is_some_and(|found| kept(value, found)))
        }
        (Json::Array(before), Json::Array(after)) => {
            before.len() <= after.len() && before.iter().zip(after).all(|(before, after)| kept(before, after))
        }
        _ => before == after,
    }
}

/// A pod without the init containers that it has in addition to another one.
fn without_added(before: &Json, mut pod: Json) -> Json {
    let of = |pod: &Json| pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = of(before).iter().map(|one| one["name"].clone()).collect();
    let kept: Vec<_> = of(&pod).into_iter().filter(|one| names.contains(&one["name"])).collect();
    if kept.is_empty() {
        pod["spec"].as_object_mut().unwrap().remove("initContainers");
    } else {
        pod["spec"]["initContainers"] = kept.into();
    }
    pod
}

fn compile(profile: Json) -> Compiled {
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    palisade_compiler::compile(&profile).unwrap_or_else(|error| panic!("{error:?}"))
}

/// How many profiles are tried, and each with how many pods. In a long run, a profile has more pods, because its check takes
/// longer than a pod.
const PROFILES: u64 = 20;
const PODS: u64 = 12;
const PODS_OF_LONG_RUN: u64 = 100;

/// The seeds of the profiles and the number of pods of each: always the same ones; or others each time, for as many pods in
/// total as the environment says.
fn seeds() -> (Range<u64>, u64) {
    let number = |name: &str| env::var_os(name)?.to_str()?.parse::<u64>().ok();
    let Some(cases) = number("PROPTEST_CASES") else {
        return (0..PROFILES, PODS);
    };
    let first = number("PALISADE_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20);
    println!("profiles from PALISADE_SEED={first}");
    (first..first + cases.div_ceil(PODS_OF_LONG_RUN).max(PROFILES), PODS_OF_LONG_RUN)
}

#[test]
fn engines_inject_the_same_and_the_result_complies() {
    let (mut changed, mut untouched, mut rejected, mut overwritten, mut valid, mut skipped) = (0, 0, 0, 0, 0, 0);
    let mut added = 0;
    let bare = server(&[], true);
    let (seeds, pods) = seeds();
    for seed in seeds {
        let random = &mut Random::new(seed);
        let profile = injections::profile(random, "injects");
        let compiled = compile(profile.clone());
        if let Err(why) = check(compiled.clone()) {
            // Additions that violate the profile, or that are for no pod.
            let why = why.to_string();
            let is_expected = ["[hostPathVolumes]", "when: matches no pod"].iter().any(|text| why.contains(text));
            assert!(is_expected, "{why}\n{profile}");
            rejected += 1;
            continue;
        }
        let judge = judge(&compiled);
        let mutation = compiled.mutation.as_ref().unwrap();
        let plan = Plan::new([(mutation, compiled.probes.params.as_ref())]);
        let (native, webhook) = (server(&[&compiled], true), server(&[&compiled], false));
        let conditions = Conditions::new(mutation);
        for _ in 0..pods {
            let pod = injections::pod(random);
            let Some(control) = stored(&bare, &pod) else { continue };
            valid += 1;
            let patch = plan.patch(&MutationRequest::create(TENANT, &control));
            let mut expected = control.clone();
            patch.apply(&mut expected).unwrap();
            // With the API server's defaults for added containers.
            let expected = stored(&bare, &expected).unwrap_or(expected);
            let found = stored(&native, &pod);
            let context = format!("\npod {pod}\npatch {:?}\nprofile {profile}", patch.operations);
            assert_eq!(found.as_ref(), Some(&expected), "native{context}");
            assert_eq!(stored(&webhook, &pod).as_ref(), Some(&expected), "webhook{context}");
            // A second application changes nothing, by any engine.
            assert!(plan.patch(&MutationRequest::create(TENANT, &expected)).is_empty(), "again{context}");
            assert_eq!(stored(&native, &expected).as_ref(), Some(&expected), "native again{context}");
            let overwrites =
                !patch.operations.iter().all(|one| matches!(one, palisade_mutation::PatchOperation::Add { .. }));
            let own = without_added(&control, expected.clone());
            added += usize::from(own != expected);
            assert!(overwrites || kept(&control, &own), "{context}");
            overwritten += usize::from(overwrites);
            changed += usize::from(!patch.is_empty());
            untouched += usize::from(patch.is_empty());
            let matched = conditions.hold(&control);
            assert!(matched || patch.is_empty(), "skipped{context}");
            skipped += usize::from(!matched);
            if judge.denial(&control).is_none() {
                assert_eq!(judge.denial(&expected), None, "{context}");
            }
        }
    }
    println!(
        "{valid} pods: {changed} changed, {untouched} untouched, {overwritten} overwritten, {skipped} \
         skipped, {added} with more containers; {rejected} profiles rejected"
    );
    assert!(changed > 30 && untouched > 6 && overwritten > 3 && skipped > 3 && rejected > 0 && added > 10);
}

/// Two profiles on one namespace inject in the order of their names, and then nothing more.
#[test]
fn two_profiles_inject_what_neither_has_added() {
    let mut changed = 0;
    let bare = server(&[], true);
    for seed in 0..PROFILES {
        let random = &mut Random::new(10_000 + seed);
        let [one, other] = ["one", "two"].map(|name| compile(injections::profile(random, name)));
        let plan = Plan::new([&one, &other].map(|it| (it.mutation.as_ref().unwrap(), it.probes.params.as_ref())));
        let (native, webhook) = (server(&[&one, &other], true), server(&[&one, &other], false));
        for _ in 0..8 {
            let pod = injections::pod(random);
            let Some(control) = stored(&bare, &pod) else { continue };
            let mut expected = control.clone();
            let patch = plan.patch(&MutationRequest::create(TENANT, &control));
            patch.apply(&mut expected).unwrap();
            let expected = stored(&bare, &expected).unwrap_or(expected);
            // Each profile always sets the same variables, so the second one to be asked wins. Only then they differ.
            let fights = plan.patch(&MutationRequest::create(TENANT, &expected));
            if !fights.is_empty() {
                continue;
            }
            changed += usize::from(!patch.is_empty());
            assert_eq!(stored(&native, &pod).as_ref(), Some(&expected), "native\n{pod}");
            assert_eq!(stored(&webhook, &pod).as_ref(), Some(&expected), "webhook\n{pod}");
        }
    }
    assert!(changed > 20, "{changed}");
}

/// The most that a profile can add, in the largest pods that it changes and in larger ones.
#[test]
fn containers_at_their_bounds_stay_within_the_cost_limit() {
    let env: Vec<_> = (0..24)
        .map(|index| json!({"name": format!("V{index}"), "value": "$text", "policy": "Always", "unlessSet": ["NO_A", "NO_B"]}))
        .collect();
    let volumes: Vec<_> = (0..12)
        .map(|index| {
            let mounts = [0, 1].map(|mount| json!({"mountPath": format!("/m{index}/{mount}"), "subPath": "$text"}));
            json!({"name": format!("v{index}"), "hostPath": {"path": format!("/data/$text/{index}")}, "mounts": mounts})
        })
        .collect();
    let entry = json!({
        "name": "all", "initContainers": true, "env": env, "volumes": volumes, "removeWorkingDirIfSet": ["NO_C"],
    });
    let compiled = compile(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "injects"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged",
            "parameters": [{"name": "text", "type": "String", "default": "text"}],
            "mutation": {"inject": [entry]},
        },
    }));
    let (bare, native) = (server(&[], true), server(&[&compiled], true));
    let plan = Plan::new([(compiled.mutation.as_ref().unwrap(), compiled.probes.params.as_ref())]);
    for (containers, each, fits) in
        [(1, 1024, true), (32, 64, true), (33, 1, false), (3, 1024, false), (128, 1024, false)]
    {
        let mut pod = palisade_kube_json::pod::minimal("random");
        let container = |index: usize| {
            let env: Vec<_> = (0..each).map(|index| json!({"name": format!("OWN{index}")})).collect();
            json!({"name": format!("c{index}"), "image": "x", "env": env})
        };
        pod["spec"]["containers"] = (0..containers).map(container).collect();
        let volumes = (0..200).map(|index| json!({"name": format!("own{index}"), "emptyDir": {}}));
        pod["spec"]["volumes"] = volumes.collect();
        let control = stored(&bare, &pod).unwrap();
        let patch = plan.patch(&MutationRequest::create(TENANT, &control));
        let mut expected = control;
        patch.apply(&mut expected).unwrap();
        let added = expected["spec"]["containers"][0]["env"].as_array().unwrap().len() > each;
        assert_eq!(added, fits, "{containers} {each}");
        assert!(stored(&native, &pod) == Some(expected), "{containers} {each}");
    }
}

/// The check `nodeSelector` reads the labels that the pods of a template get, under the conditions of the entry.
#[test]
fn template_has_the_node_labels_that_its_pods_get() {
    let compiled = compile(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "injects"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged",
            "enforcement": {"workloads": "Deny"},
            "scheduling": {"nodeSelector": [{"key": "nfs", "values": ["true"]}]},
            "mutation": {"inject": [{
                "name": "storage", "when": {"podSelector": {"matchLabels": {"storage": "all"}}},
                "nodeSelector": {"nfs": "true"},
            }]},
        },
    }));
    check(compiled.clone()).unwrap_or_else(|why| panic!("{why}"));
    let policy = ShapePolicy::new(&compiled, Shape::Workloads);
    let deployment = WORKLOADS.iter().find(|workload| workload.kind == "Deployment").unwrap();
    for (labels, selected, admitted) in [
        (json!({"storage": "all"}), json!({}), true),
        (json!({"storage": "all"}), json!({"nfs": "false"}), false),
        (json!({"storage": "none"}), json!({}), false),
        (json!({"storage": "none"}), json!({"nfs": "true"}), true),
    ] {
        let mut pod = palisade_kube_json::pod::minimal("w");
        pod["spec"]["nodeSelector"] = selected;
        let mut object = deployment.around("w", &pod);
        object["spec"]["template"]["metadata"]["labels"] = labels;
        let found = policy.creates("Deployment", &object).decision;
        assert_eq!(found == Decision::Admit, admitted, "{object}: {found:?}");
    }
}

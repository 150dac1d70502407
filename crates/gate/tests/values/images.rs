//! References of images, as policies read them and as the rest of Palisade does.

use std::cell::Cell;

use palisade_checks::{Lowering, image, settings::redirect::Redirect};
use palisade_gate::Validator;
use palisade_kube_json::pod;
use proptest::{prelude::*, sample::select};
use serde_json::{Value as Json, json};

use crate::values::{PodPolicy, compiled, runner};

/// Digits of hexadecimal numbers, of all lengths that mean something.
fn digits() -> impl Strategy<Value = String> {
    let length = select(vec![0_usize, 1, 7, 12, 32, 63, 64, 65, 96, 128]);
    let letters = select(vec!["0123456789abcdef", "0123456789ABCDEF", "0123456789abcdefg"]);
    (length, letters, any::<u64>()).prop_map(|(length, letters, seed)| {
        let letters: Vec<_> = letters.chars().collect();
        let mut state = seed | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 40).unwrap()
        };
        (0..length).map(|_| letters[next() % letters.len()]).collect()
    })
}

/// References of all forms: names, ids, what is nearly one of them, and what is none.
fn reference() -> impl Strategy<Value = String> {
    let before = select(vec![
        "",
        "sha256:",
        "sha384:",
        "sha512:",
        "blake3:",
        "SHA256:",
        "sha1:",
        "md5:",
        "sha256@sha256:",
        "sha256/",
        "sha256:5000/",
        "docker.io/",
        "docker.io/library/",
        "docker.io/library/sha256:",
        "index.docker.io/",
        "nginx@sha256:",
        "x:",
        " sha256:",
        "sha256::",
        "registry.example/",
        "registry.example/a@sha256:",
        "localhost/",
        "EVIL/",
        "sha256",
        "sha256:a/",
        "sha256:\n",
    ]);
    let after = select(vec!["", "", "", ":1", "/x", "@x", "\n", " ", ".", "@sha256:00"]);
    prop_oneof![
        4 => (before, digits(), after).prop_map(|(before, digits, after)| format!("{before}{digits}{after}")),
        1 => "[a-zA-Z0-9:/@._-]{0,20}",
    ]
}

const REGISTRIES: [&str; 10] = [
    "docker.io",
    "docker.io/library",
    "docker.io/library/sha256",
    "registry.example",
    "registry.example/a",
    "localhost",
    "sha256",
    "sha256:5000",
    "index.docker.io",
    "EVIL",
];

/// A pod with an image in a container and in a volume.
fn with_images(container: &str, volume: &str) -> Json {
    let mut pod = pod::minimal("pod");
    pod["spec"]["containers"][0]["image"] = json!(container);
    pod["spec"]["volumes"] = json!([{"name": "v", "image": {"reference": volume}}]);
    pod
}

#[test]
fn a_policy_reads_references_of_images_as_the_rest_of_palisade_does() {
    let (ids, admitted) = (Cell::new(0), Cell::new(0));
    let settings = (prop::collection::vec(select(&REGISTRIES[..]), 1..4), any::<bool>(), any::<bool>());
    let cases = (settings, prop::collection::vec(reference(), 40));
    let outcome = runner(40).run(&cases, |((registries, by_parameter, redirected), references)| {
        let mut spec = json!({"images": {"allowedRegistries": registries}, "volumes": {"allowed": ["*"]}});
        if by_parameter {
            let list = registries.join(",");
            spec["parameters"] = json!([{"name": "registries", "type": "StringList", "default": list}]);
            spec["images"]["allowedRegistries"] = json!(["$registries"]);
        }
        if redirected {
            spec["images"]["redirect"] = json!({"target": "registry.example"});
        }
        let compiled = compiled(&spec);
        let judge = PodPolicy::new(&compiled);
        let good = format!("{}/x", registries[0]);
        // One that a runtime completes is elsewhere then.
        let good = if image::is_from(&good, &registries) { good } else { "registry.example/x".to_owned() };
        for reference in &references {
            for pod in [with_images(reference, &good), with_images(&good, reference)] {
                let images = [&pod["spec"]["containers"][0]["image"], &pod["spec"]["volumes"][0]["image"]["reference"]];
                let expected = images.iter().all(|one| image::is_from(one.as_str().unwrap(), &registries));
                let denial = judge.denial(&pod, compiled.probes.params.as_ref());
                prop_assert_eq!(denial.is_none(), expected, "{:?} {:?}: {:?}", registries, reference, denial);
                let says = denial.unwrap_or_default().contains("is an image ID");
                prop_assert_eq!(says, image::is_id(reference), "{:?}", reference);
                admitted.set(admitted.get() + u32::from(expected));
            }
            ids.set(ids.get() + u32::from(image::is_id(reference)));
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{} ids, {} pods were admitted", ids.get(), admitted.get());
    assert!(ids.get() > 200 && admitted.get() > 200, "{} {}", ids.get(), admitted.get());
}

/// Where any registry is allowed and images are redirected, ids are denied and nothing else is.
#[test]
fn a_profile_that_redirects_images_denies_ids_and_leaves_them_alone() {
    let redirects = [
        json!({"target": "sea.hub:5000"}),
        json!({"target": "sea.hub/x", "pathStyle": "StripHost", "skip": ["docker.io/library", "registry.example"]}),
        json!({"hosts": [{"host": "docker.io", "target": "hub.example/a"}]}),
    ];
    let moved = Cell::new(0);
    for redirect in redirects {
        for allowed in [json!({}), json!({"allowedRegistries": ["*"]})] {
            let mut spec = json!({"images": {"redirect": redirect}, "volumes": {"allowed": ["*"]}});
            pod::merge(&mut spec["images"], &allowed);
            let judge = PodPolicy::new(&compiled(&spec));
            let redirect: Redirect = serde_json::from_value(redirect.clone()).unwrap();
            let redirector = redirect.resolve(&[].into());
            // What the API server makes of references: the expression of the policy that changes them.
            let declared = [].into();
            let mut cx = Lowering::new(&declared);
            let lowered = redirect.lower(&mut cx, "object.spec.containers.map(c, string(c.image))");
            assert!(cx.finish().is_empty());
            let expression = format!("{lowered} == [object.metadata.annotations['expected']]");
            let policy =
                json!({"metadata": {"name": "redirect"}, "spec": {"validations": [{"expression": expression}]}});
            let rewritten = PodPolicy(Validator::new(&serde_json::from_value(policy).unwrap()).unwrap());
            let outcome = runner(300).run(&reference(), |reference| {
                let is_id = image::is_id(&reference);
                for pod in [with_images(&reference, "a.example/x"), with_images("a.example/x", &reference)] {
                    prop_assert_eq!(judge.denial(&pod, None).is_some(), is_id, "{:?}", reference);
                }
                let becomes = redirector.redirect(&reference);
                prop_assert!(!is_id || becomes.is_none(), "{:?} becomes {:?}", reference, becomes);
                moved.set(moved.get() + u32::from(becomes.is_some()));
                let mut pod = with_images(&reference, "x");
                let expected = becomes.unwrap_or_else(|| reference.clone());
                pod["metadata"]["annotations"] = json!({"expected": expected});
                prop_assert_eq!(rewritten.denial(&pod, None), None, "{:?} is not {:?}", reference, expected);
                Ok(())
            });
            outcome.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    assert!(moved.get() > 100, "{}", moved.get());
}

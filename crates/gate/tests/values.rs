//! What values at the ends of their types, and values that somebody else writes, make of a profile: random ones, against
//! what they mean in Rust.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::cell::Cell;

use palisade_api::{ToolSecurityParamsSpec, ToolSecurityProfile};
use palisade_checks::{Lowering, Text, image, settings::redirect::Redirect};
use palisade_compiler::{Compiled, Namespace, compile};
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_objects::pod;
use proptest::{
    prelude::*,
    sample::{Index, select},
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Value as Json, json};

/// Always the same cases, or as many others as the environment says.
fn runner(cases: u32) -> TestRunner {
    let config = Config { failure_persistence: None, max_shrink_iters: 1000, ..Config::default() };
    TestRunner::new(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => Config { cases, rng_seed: RngSeed::Fixed(1), ..config },
    })
}

fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged"},
    });
    pod::merge(&mut profile["spec"], spec);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    compile(&profile).unwrap_or_else(|error| panic!("{error:?}\n{spec}"))
}

/// The policy of pods. That an expression fails on a pod is a mistake.
struct Judge(Validator);

impl Judge {
    fn new(compiled: &Compiled) -> Self {
        Self(Validator::new(&compiled.bundle.pods.policy).unwrap_or_else(|error| panic!("{error:?}")))
    }

    fn denial(&self, pod: &Json, params: Option<&ToolSecurityParamsSpec>) -> Option<String> {
        let params = params.map(|spec| json!({"spec": spec}));
        let request = ValidationRequest { params: params.as_ref(), ..ValidationRequest::create("Pod", pod) };
        match self.0.evaluate(&request) {
            Ok(Decision::Admit) => None,
            Ok(Decision::Deny { message, .. }) => Some(message),
            Err(error) => panic!("{error}\n{pod}"),
        }
    }
}

// Images.

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
        let judge = Judge::new(&compiled);
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
            let judge = Judge::new(&compiled(&spec));
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
            let rewritten = Judge(Validator::new(&serde_json::from_value(policy).unwrap()).unwrap());
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

// Values of parameters.

/// Values that somebody who wants more than a profile gives would try.
fn hostile() -> impl Strategy<Value = String> {
    let part = select(vec![
        ".", "..", "/", "//", "\\", "*", " ", "\n", "\t", "\u{0}", "\u{a0}", "\u{202e}", "a", "b", "-", "_", ":", "@",
        "$", "~", "other", "registry", "sha256", "%2e", "é", "0", ".json", ",",
    ]);
    prop_oneof![3 => prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat()), 1 => ".{0,8}"]
}

/// A path without what does not change where it leads to.
fn normal(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    for segment in path.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    segments
}

fn namespace(value: &str) -> Namespace {
    Namespace {
        name: "tenant".to_owned(),
        annotations: [("e/text".to_owned(), value.to_owned())].into(),
        ..Namespace::default()
    }
}

fn parameter(kind: &str) -> Json {
    json!([{"name": "text", "type": kind, "sources": [{"namespaceAnnotation": "e/text"}]}])
}

#[test]
fn no_value_of_a_parameter_opens_a_path_outside_of_what_the_profile_names() {
    let templates =
        ["/data/$text", "/data/$text/x", "/data/a-$text", "/data/.$text", "/data/${text}.", "/data/$text$text"];
    let profiles: Vec<_> = templates
        .iter()
        .map(|template| {
            let compiled = compiled(&json!({
                "parameters": parameter("String"),
                "volumes": {"allowed": ["hostPath"], "hostPaths": [{"pathPrefix": template}]},
            }));
            (*template, Judge::new(&compiled), compiled)
        })
        .collect();
    let (refused, admitted) = (Cell::new(0), Cell::new(0));
    let tails = select(vec!["", "/", "/x", "/./x", "/../other", "/..", "x", "/other", "\\..\\other", "//other"]);
    let cases = (any::<Index>(), hostile(), prop::collection::vec((any::<bool>(), hostile(), tails), 6));
    let outcome = runner(400).run(&cases, |(at, value, paths)| {
        let (template, judge, compiled) = at.get(&profiles);
        let params = compiled.resolver.params(&namespace(&value));
        let trimmed = value.trim();
        if !params.problem.is_empty() {
            refused.set(refused.get() + 1);
            let denial = judge.denial(&pod::minimal("pod"), Some(&params)).unwrap_or_default();
            let shown: String = trimmed.chars().take(40).collect();
            let says =
                denial.contains("annotation e/text") && (trimmed.is_empty() || denial.contains(&format!("{shown:?}")));
            prop_assert!(says, "{value:?}: {denial}");
            return Ok(());
        }
        let prefix = Text((*template).to_owned()).0.replace("${text}", trimmed).replace("$text", trimmed);
        for (own, other, tail) in paths {
            let path = if own { format!("{prefix}{tail}") } else { format!("/data/{other}{tail}") };
            let mut pod = pod::minimal("pod");
            pod["spec"]["volumes"] = json!([{"name": "v", "hostPath": {"path": path}}]);
            // What the API server itself refuses (`validatePathNoBacksteps`).
            if path.is_empty() || path.split('/').any(|segment| segment == "..") {
                continue;
            }
            if judge.denial(&pod, Some(&params)).is_some() {
                continue;
            }
            admitted.set(admitted.get() + 1);
            let inside = prefix.trim_start_matches('/').split('/').collect::<Vec<_>>();
            // On a node with Linux, a backslash is a letter of a name.
            let found = path.split('/').filter(|one| !matches!(*one, "" | ".")).collect::<Vec<_>>();
            prop_assert!(found.starts_with(&inside), "{template} with {value:?} admits {path:?}");
            prop_assert!(inside.len() > 1 && normal(&prefix) == inside, "{template} with {value:?} is {prefix:?}");
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    println!("{} values are refused, {} paths admitted", refused.get(), admitted.get());
    assert!(refused.get() > 100 && admitted.get() > 100, "{} {}", refused.get(), admitted.get());
}

#[test]
fn no_value_of_a_parameter_names_another_registry_or_profile() {
    let spec = json!({
        "parameters": parameter("String"),
        "images": {"allowedRegistries": ["registry.example/tool-$text", "$text.harbor.example"]},
        "privileges": {"seccomp": {
            "allowed": ["Localhost"], "localhostProfiles": ["tools/$text.json"], "required": false, "annotations": false,
        }},
    });
    let compiled = compiled(&spec);
    let outcome = runner(400).run(&hostile(), |value| {
        let params = compiled.resolver.params(&namespace(&value));
        let Some(value) = params.strings.get("text") else { return Ok(()) };
        let allowed = [format!("registry.example/tool-{value}"), format!("{value}.harbor.example")];
        for (registry, count) in allowed.iter().zip([2, 1]) {
            prop_assert_eq!(registry.split('/').count(), count, "{:?}", value);
            prop_assert!(!registry.contains([':', '@', '*', ' ']), "{value:?}");
        }
        prop_assert!(image::completed(&format!("{}/x", allowed[1])).starts_with(&allowed[1]), "{value:?}");
        prop_assert_eq!(normal(&format!("tools/{value}.json")).len(), 2, "{:?}", value);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn refused_values_are_reported_with_their_place_and_what_is_allowed() {
    let of = |setting: Json, kind: &str, value: &str| {
        let mut spec = json!({"parameters": parameter(kind)});
        pod::merge(&mut spec, &setting);
        compiled(&spec).resolver.params(&namespace(value)).problem
    };
    let path = |prefix: &str| json!({"volumes": {"allowed": ["hostPath"], "hostPaths": [{"pathPrefix": prefix}]}});
    assert_eq!(
        of(path("/data/$text"), "String", "."),
        "parameter text (annotation e/text) is \".\", which spec.volumes.hostPaths[0].pathPrefix must not contain; allowed is \
         the name of one file or directory: no slash, no white space, not . and not .."
    );
    let registries = json!({"images": {"allowedRegistries": ["a.example", "$text"]}});
    let redirect = json!({"images": {"redirect": {"target": "$text.example/x"}}});
    let skip = json!({"images": {"redirect": {"target": "a.example", "skip": ["a.example/$text"]}}});
    let sysctls = json!({"privileges": {"sysctls": {"allowed": ["$text"], "forbidden": []}}});
    let app_armor = json!({"privileges": {"appArmor": {"allowed": ["Localhost"], "localhostProfiles": ["a/$text"]}}});
    let level = json!({"privileges": {"seLinux": {"levels": ["s0:c$text"]}}});
    for (setting, kind, value, place) in [
        (path("/data/$text/x"), "String", "..", "pathPrefix"),
        (path("/data/$text"), "String", "a/b", "pathPrefix"),
        (path("/data/$text"), "String", "a b", "pathPrefix"),
        (path("/data/$text"), "String", "a\\..\\b", "pathPrefix"),
        (path("$text/x"), "String", "/a/..", "pathPrefix"),
        (path("$text"), "String", "/", "pathPrefix"),
        (registries.clone(), "StringList", "b.example,*", "allowedRegistries[1]"),
        (registries.clone(), "StringList", "https://b.example", "allowedRegistries[1]"),
        (registries.clone(), "String", "b.example/", "allowedRegistries[1]"),
        (redirect, "String", "evil.example/x", "redirect.target"),
        (skip, "String", "x/../y", "redirect.skip[0]"),
        (sysctls.clone(), "StringList", "kernel.*", "sysctls.allowed[0]"),
        (app_armor, "String", "../x", "appArmor.localhostProfiles[0]"),
        (level, "String", "0.c1023", "seLinux.levels[0]"),
    ] {
        let problem = of(setting, kind, value);
        assert!(problem.contains(place) && problem.contains("allowed is "), "{value:?}: {problem:?}");
    }
    for (setting, kind, value) in [
        (path("/data/$text"), "String", "tool-1.x_y"),
        (path("$text/x"), "String", "/data"),
        (path("$text"), "String", "/data/"),
        (registries, "StringList", "b.example:5000/x, docker.io"),
        (sysctls, "StringList", "kernel.msgmax"),
    ] {
        assert_eq!(of(setting, kind, value), "", "{value:?}");
    }
}

// Numbers.

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
        let judge = Judge::new(&compiled);
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
        // The pod that shows that the profile is in force violates it.
        let violating = compiled.probes.violating.as_ref().map(|probe| judge.denial(&probe.pod, params));
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
            let judge = Judge::new(&compiled);
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

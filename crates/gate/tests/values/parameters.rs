//! Values of parameters in longer texts: no value opens more than the rest of the text names.

use std::cell::Cell;

use palisade_checks::image;
use palisade_compiler::Namespace;
use palisade_kube_json::pod;
use proptest::{
    prelude::*,
    sample::{Index, select},
};
use serde_json::{Value as Json, json};

use crate::values::{PodPolicy, compiled, runner};

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
            (*template, PodPolicy::new(&compiled), compiled)
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
        let prefix = template.replace("${text}", trimmed).replace("$text", trimmed);
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
        "parameter text (annotation e/text) is \".\", which spec.volumes.hostPaths[0].pathPrefix must not contain; must be \
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
        assert!(problem.contains(place) && problem.contains("must be "), "{value:?}: {problem:?}");
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

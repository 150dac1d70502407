//! `palisade infer`: the strictest profile that admits existing workloads.

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::{Run, directory, run_in};

/// The number of namespaces.
const TOOLS: usize = 20;

fn deployment(tool: usize, name: &str, user: usize, pod: &Json, container: &Json) -> Json {
    let mut spec = json!({
        "securityContext": {"runAsUser": user},
        "containers": [{"name": "app", "image": "registry.example/app:1"}],
        "volumes": [{"name": "home", "hostPath": {"path": format!("/data/project/t{tool}/public")}}],
    });
    json_patch::merge(&mut spec, pod);
    json_patch::merge(&mut spec["containers"][0], container);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": format!("tool-t{tool}")},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    })
}

/// Namespaces with a uid, and with an annotation that equals it in nine of ten. In each one there is a workload with the uid
/// and with the directory of the tool; some have others.
fn objects() -> Vec<Json> {
    let none = json!({});
    let mut all = Vec::new();
    for tool in 0..TOOLS {
        let uid = 50_000 + tool;
        let decoy = if tool < 2 { 1000 } else { uid };
        all.push(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": format!("tool-t{tool}"), "labels": {"tenancy": "tool"},
                "annotations": {"example.org/uid": uid.to_string(), "example.org/decoy": decoy.to_string()},
            },
        }));
        all.push(deployment(tool, "web", uid, &none, &none));
    }
    all.push(deployment(3, "elsewhere", 50_003, &none, &json!({"image": "docker.io/bitnami/redis:7"})));
    all.push(deployment(4, "other-user", 1234, &none, &none));
    all.push(deployment(5, "open", 50_005, &none, &json!({"securityContext": {"privileged": true}})));
    all.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}}));
    all
}

fn files(objects: &[Json]) -> TempDir {
    directory(&[("objects.json", json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string().as_str())])
}

fn infer(at: &TempDir, more: &[&str]) -> Run {
    let arguments = ["infer", "objects.json", "-l", "tenancy=tool", "--time", "2026-11-25T08:00:00Z"];
    run_in(at.path(), &[&arguments[..], more].concat(), "")
}

fn json_of(at: &TempDir, more: &[&str]) -> Json {
    let run = infer(at, &[&["-o", "json"], more].concat());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    serde_json::from_str(&run.out).unwrap()
}

fn workloads(list: &Json) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["workload"].as_str().unwrap()).collect()
}

fn settings(list: &Json) -> Vec<String> {
    let changes = list.as_array().unwrap().iter().flat_map(|one| one["changes"].as_array().unwrap());
    changes.map(|one| format!("{} {}", one["path"].as_str().unwrap(), one["add"])).collect()
}

#[test]
fn inferred_profile_admits_existing_workloads_and_no_others() {
    let at = files(&objects());
    let found = json_of(&at, &[]);
    let levels: Vec<_> = found["levels"].as_array().unwrap().iter().map(|one| one["admitted"].clone()).collect();
    // Each has a volume of the node.
    assert_eq!((levels, &found["workloads"]), (vec![json!(0); 3], &json!(TOOLS + 3)));

    // A source that equals nine of ten values is not a parameter.
    let parameters = found["parameters"].as_array().unwrap();
    let sources: Vec<_> = parameters.iter().map(|one| (&one["name"], &one["source"])).collect();
    let name = json!("the name of the namespace without tool-");
    assert_eq!(
        sources,
        [(&json!("uid"), &json!("annotation example.org/uid")), (&json!("tenant"), &name)],
        "{found:#}"
    );
    let user = &parameters[0]["settings"][0];
    assert_eq!((&user["pairs"], &user["equal"]), (&json!(TOOLS + 1), &json!(TOOLS)), "{user:#}");

    assert_eq!(
        settings(&found["settings"]),
        [r#"images.allowedRegistries "registry.example""#, r#"images.allowedRegistries "docker.io/bitnami""#]
    );
    assert_eq!(workloads(&found["settings"][1]["workloads"]), ["Deployment/elsewhere"]);
    assert_eq!(workloads(&found["exceptions"]["workloads"]), ["Deployment/other-user", "Deployment/open"]);
    assert_eq!((&found["denied"], &found["notJudged"]), (&json!([]), &json!([])));

    std::fs::write(at.path().join("profile.json"), found["profile"].to_string()).unwrap();
    let again =
        ["suggest", "objects.json", "--profile", "profile.json", "--time", "2026-11-25T08:00:00Z", "-o", "json"];
    let again = run_in(at.path(), &again, "");
    let again: Json = serde_json::from_str(&again.out).unwrap();
    assert_eq!((&again["objects"], &again["violating"]["workloads"]), (&json!(TOOLS + 3), &json!(0)), "{again:#}");

    // Another user, a directory of another tool, an image of another registry, ...: each is denied.
    let changes = [
        (json!({"securityContext": {"runAsUser": 50_007}}), json!({}), "runAsUser"),
        (json!({"volumes": [{"name": "v", "hostPath": {"path": "/data/project/t7"}}]}), json!({}), "hostPathVolumes"),
        (json!({}), json!({"image": "docker.io/library/redis:7"}), "imageRegistries"),
        (json!({"hostNetwork": true}), json!({}), "hostNamespaces"),
        (json!({"priorityClassName": "system-node-critical"}), json!({}), "priorityClasses"),
    ];
    let changed: Vec<_> = changes
        .iter()
        .map(|(pod, container, check)| deployment(6, &check.to_lowercase(), 50_006, pod, container))
        .collect();
    std::fs::write(
        at.path().join("changed.json"),
        json!({"apiVersion": "v1", "kind": "List", "items": changed}).to_string(),
    )
    .unwrap();
    let arguments =
        ["suggest", "changed.json", "--namespaces", "objects.json", "--profile", "profile.json", "-o", "json"];
    let run = run_in(at.path(), &arguments, "");
    for (_, _, check) in changes {
        assert!(run.out.contains(&format!("Deployment/{}", check.to_lowercase())), "{check}: {}{}", run.out, run.err);
    }
}

#[test]
fn settings_for_the_fewest_workloads_are_omitted_within_the_budget() {
    let at = files(&objects());
    let found = json_of(&at, &["--outliers", "1", "--expires", "2026-12-01T00:00:00Z"]);
    assert_eq!(settings(&found["settings"]), [r#"images.allowedRegistries "registry.example""#]);
    assert_eq!(settings(&found["omitted"]), [r#"images.allowedRegistries "docker.io/bitnami""#]);
    let expected = ["Deployment/elsewhere", "Deployment/other-user", "Deployment/open"];
    assert_eq!(workloads(&found["exceptions"]["workloads"]), expected);
    assert_eq!(found["denied"], json!([]));
    let exceptions = found["profile"]["spec"]["exceptions"].as_array().unwrap();
    let of = |check: &str| exceptions.iter().find(|one| one["checks"] == json!([check])).unwrap();
    assert_eq!(of("imageRegistries")["namespaces"], json!(["tool-t3"]));
    assert_eq!(of("privileged")["expires"], "2026-12-01T00:00:00Z");
}

#[test]
fn levels_and_prices_are_printed() {
    let mut objects = objects();
    let none = json!({});
    // No hostPath volume, but in one.
    for one in objects.iter_mut().filter(|one| one["kind"] == "Deployment") {
        one["spec"]["template"]["spec"]["volumes"] = json!([]);
    }
    objects.push(deployment(8, "mounts", 50_008, &none, &none));
    let run = infer(&files(&objects), &[]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    for part in [
        "24 workloads in 20 namespaces were evaluated, as if they were created now.\n\n",
        "\nBaseline                                22         2\n",
        "\nRestricted                              0          24\n",
        "\nRestricted, mutation.defaults: Secure   22         2\n",
        "\nRestricted, mutation.defaults: Secure denies 2 workloads in 2 namespaces:\n",
        "\n$uid        annotation example.org/uid   spec.users.runAsUser   20 of 21\n",
        "\nThe strictest profile that was found admits 24 of 24; print it with -o yaml.\n",
        "\nspec.images.allowedRegistries += registry.example",
        "\n2 workloads in 2 namespaces with exceptions until 2027-02-23T08:00:00Z:\n",
    ] {
        assert!(run.out.contains(part), "{part:?}\n---\n{}", run.out);
    }
}

#[test]
fn parameter_needs_a_value_in_each_selected_namespace() {
    let mut objects = objects();
    objects.truncate(2 * TOOLS);
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tool-new", "labels": {"tenancy": "tool"}},
    });
    objects.push(namespace);
    let found = json_of(&files(&objects), &[]);
    let parameters: Vec<_> = found["parameters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(parameters, ["tenant"], "{found:#}");
}

/// Tenants and their namespaces write these texts. None of them ends the command.
#[test]
fn texts_of_tenants_that_no_profile_can_have_are_no_parameters() {
    let mut objects = Vec::new();
    let long = format!("example.org/{}", "k".repeat(63));
    for tool in 0..3 {
        let uid = 50_000 + tool;
        let annotations = json!({long.as_str(): uid.to_string(), "example.org/dir": format!("a/b{tool}")});
        objects.push(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": format!("tool-t{tool}"), "labels": {"tenancy": "tool"}, "annotations": annotations},
        }));
        for (index, path) in
            ["/data/../t{}", "/data/*/t{}", "/data/./t{}", "relative/t{}", "//data//a/b{}"].iter().enumerate()
        {
            let path = path.replace("{}", &tool.to_string());
            let volumes = json!({"volumes": [{"name": "v", "hostPath": {"path": path}}]});
            objects.push(deployment(tool, &format!("w{index}"), uid, &volumes, &json!({})));
        }
    }
    let found = json_of(&files(&objects), &[]);
    let parameters: Vec<_> = found["parameters"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(parameters, [&json!("k".repeat(48))], "{found:#}");
    assert_eq!(found["denied"], json!([]), "{found:#}");
}

#[test]
fn profile_is_printed_with_its_settings_as_comments() {
    let objects = objects();
    let run = infer(&files(&[&objects[..2], &objects[TOOLS * 2..]].concat()), &["-o", "yaml", "--name", "tools"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    for part in [
        "# Inferred from 1 workload in 1 namespace at 2026-11-25T08:00:00Z: it admits 1 of them.",
        "\n# spec.images.allowedRegistries += registry.example: 1 workload\n",
        "\nmetadata:\n  name: tools\nspec:\n",
        "\n    allowedRegistries:\n    - registry.example\n",
    ] {
        assert!(run.out.contains(part), "{part:?}\n---\n{}", run.out);
    }
}

#[test]
fn nothing_to_infer_from_is_no_answer() {
    let at = files(&objects());
    let run = |more: &[&str]| run_in(at.path(), &[&["infer", "objects.json"], more].concat(), "");
    for (arguments, expected) in [
        (&["-l", "tenancy=other"][..], "no namespace has the labels of --selector"),
        (&["-l", "tenancy in (tool), (x)"], "--selector"),
        (&[], "--selector"),
        (&["-l", "tenancy=tool", "--name", "Not a name"], "metadata.name"),
        (
            &["-l", "tenancy=tool", "--time", "2026-11-25T08:00:00Z", "--expires", "2026-11-25T08:00:00Z"],
            "--expires must be after",
        ),
    ] {
        let run = run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {}{}", run.out, run.err);
        assert!(run.err.contains(expected) && run.out.is_empty(), "{expected}: {}", run.err);
    }
    let namespaces: Vec<_> = objects().into_iter().filter(|one| one["kind"] == "Namespace").collect();
    let empty = infer(&files(&namespaces), &[]);
    assert!(empty.code == Some(2) && empty.err.contains("no pod or workload"), "{}{}", empty.out, empty.err);
}

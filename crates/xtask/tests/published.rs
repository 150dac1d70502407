//! A published crate documents its API, and leaves the version of `k8s-openapi` to the program that uses it.

use std::{fs, path::Path};

use serde_json::Value as Json;

use crate::purity::{cargo, dependencies};

/// Programs that users install: no other package chooses the version for them.
const PROGRAMS: [&str; 3] = ["palisade-cli", "palisade-controller", "palisade-webhook"];

fn packages() -> Vec<Json> {
    let metadata = cargo(&["metadata", "--offline", "--no-deps", "--format-version=1"]);
    let metadata: Json = serde_json::from_str(&metadata).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(package: &Json) -> &str {
    package["name"].as_str().unwrap()
}

/// True if a package can be published: `publish = false` is an empty list of registries.
fn is_published(package: &Json) -> bool {
    package["publish"].is_null()
}

/// True if a dependency of this kind on `k8s-openapi` chooses a version.
fn chooses(package: &Json, kind: &Json) -> bool {
    let mut dependencies = package["dependencies"].as_array().unwrap().iter();
    let is_version = |feature: &Json| {
        let feature = feature.as_str().unwrap();
        feature.starts_with("v1_") || ["earliest", "latest"].contains(&feature)
    };
    dependencies.any(|one| {
        one["name"] == "k8s-openapi"
            && one["kind"] == *kind
            && one["features"].as_array().unwrap().iter().any(is_version)
    })
}

/// Two libraries that choose different versions cannot be in one program.
#[test]
fn libraries_leave_the_version_of_k8s_openapi_to_programs() {
    let (normal, dev) = (Json::Null, Json::from("dev"));
    let mut libraries = 0;
    for package in packages() {
        let name = name(&package);
        if PROGRAMS.contains(&name) {
            assert!(chooses(&package, &normal), "{name}: add a version feature to its dependency on k8s-openapi");
        } else if is_published(&package) && dependencies(name).contains("k8s-openapi") {
            assert!(!chooses(&package, &normal), "{name}: move the version feature of k8s-openapi to dev-dependencies");
            assert!(chooses(&package, &dev), "{name}: its tests need k8s-openapi with a version in dev-dependencies");
            libraries += 1;
        }
    }
    assert!(libraries >= 12, "only {libraries} libraries use k8s-openapi");
}

#[test]
fn published_crates_require_documentation() {
    for package in packages().iter().filter(|package| is_published(package)) {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let library = fs::read_to_string(manifest.with_file_name("src").join("lib.rs")).unwrap();
        assert!(library.contains("#![warn(missing_docs)]"), "{}: src/lib.rs needs it", name(package));
    }
}

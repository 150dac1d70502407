//! The files of the catalogue are those of its checks.

use std::{collections::BTreeSet, fs, path::Path};

use palisade_api::{catalogue, objects};
use palisade_checks::Field;

/// Nothing would run a file of fixtures without a check.
#[test]
fn each_file_of_fixtures_belongs_to_a_check() {
    let of_pods: Vec<_> = catalogue::ALL.iter().map(|check| check.fixtures.to_owned()).collect();
    let of_objects: Vec<_> = objects::ALL.iter().map(|check| check.fixtures.to_owned()).collect();
    for (directory, fixtures) in [("catalogue", of_pods), ("objects", of_objects)] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checks/src").join(directory);
        let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
        let found: BTreeSet<_> = files.map(|file| fs::read_to_string(file).unwrap()).collect();
        let known: BTreeSet<_> = fixtures.iter().cloned().collect();
        assert_eq!(known.len(), fixtures.len(), "no two checks share fixtures");
        assert!(found == known, "{} files of fixtures, and {} checks with fixtures", found.len(), known.len());
    }
}

/// Random pods take the values of other fields from the fixtures.
#[test]
fn random_pods_use_every_volume_and_list_field() {
    let path = "crates/gate/tests/properties/pods.rs";
    let made_up = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap();
    let mut missing = Vec::new();
    for check in catalogue::ALL {
        for field in check.fields {
            let of = match field {
                Field::Volume(of) if *of != "*" => of,
                Field::Pod(of) | Field::Container(of) if of.contains("[*]") => of,
                _ => continue,
            };
            let last = of.rsplit('.').next().unwrap_or_default().trim_end_matches("[*]");
            if !made_up.contains(&format!("{last}\"")) {
                missing.push(format!("{path}: {of}"));
            }
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

/// The generated pages of checks do not list the settings of objects together.
#[test]
fn page_of_objects_names_every_check_and_setting() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/objects.md")).unwrap();
    for check in objects::ALL {
        let link = format!("[{id}](checks/{id}.md)", id = check.id);
        let row = page.lines().find(|line| line.starts_with('|') && line.contains(&link));
        let row = row.unwrap_or_else(|| panic!("docs/objects.md has no row of {}", check.id));
        for setting in check.settings {
            let name = setting.rsplit('.').next().unwrap_or_default();
            assert!(row.contains(&format!("{name}`")), "docs/objects.md, row of {}: {setting}", check.id);
        }
    }
}

/// Without permission, the scan and the command line would miss objects, and a rollout would promote no namespace.
#[test]
fn optional_permissions_include_every_kind_of_a_check() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for path in ["manifests/rbac.yaml", "manifests/rollout/rbac.yaml", "manifests/scan/rbac.yaml"] {
        let text = fs::read_to_string(root.join(path)).unwrap();
        let rules: Vec<_> = text.split("- apiGroups: [").skip(1).collect();
        for of in objects::ALL.iter().flat_map(|check| check.kinds).filter(|of| of.is_listed()) {
            let group = if of.group.is_empty() { "\"\"" } else { of.group };
            let names = |list: &str| list.split(']').next().unwrap().split(", ").any(|name| name == of.resource);
            let is_granted = |rule: &&str| {
                let (groups, rest) = rule.split_once(']').unwrap();
                groups == group && rest.split_once("resources: [").is_some_and(|(_, list)| names(list))
            };
            assert!(rules.iter().any(is_granted), "{path} has no rule for {} of {group}", of.resource);
        }
    }
}

//! The files of the catalogue are those of its checks.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests that read the project's files")]

use std::{collections::BTreeSet, fs, path::Path};

use palisade_api::catalogue;
use palisade_checks::{Field, Level, Settings, settings::standard::Version};

/// Nothing would run a file of fixtures without a check.
#[test]
fn each_file_of_fixtures_belongs_to_a_check() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../checks/src/catalogue"));
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let found: BTreeSet<_> = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    let known: BTreeSet<_> = catalogue::ALL.iter().map(|check| check.fixtures.to_owned()).collect();
    assert_eq!(known.len(), catalogue::ALL.len(), "no two checks share fixtures");
    assert!(found == known, "there are {} files of fixtures, and {} checks with fixtures", found.len(), known.len());
}

/// `runAsUser` as `run_as_user`.
fn snake(name: &str) -> String {
    let of = |c: char| if c.is_ascii_uppercase() { format!("_{}", c.to_ascii_lowercase()) } else { c.to_string() };
    name.chars().map(of).collect()
}

/// These files compile although they lack a setting or field, so whoever adds a check must know of them.
#[test]
fn each_setting_and_field_of_a_check_is_compared_made_up_and_measured() {
    let read = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap();
    let [cover, tighten, pods, cost] = [
        "crates/migrate/src/cover.rs",
        "crates/gate/tests/properties/tighten.rs",
        "crates/gate/tests/properties/pods.rs",
        "crates/gate/tests/cost.rs",
    ];
    let (covered, tightened, made_up, measured) = (read(cover), read(tighten), read(pods), read(cost));
    let seed = serde_json::to_value(Settings::seed(Level::Restricted, Version::default())).unwrap();
    let is_seeded = |setting: &str| seed.pointer(&format!("/{}", setting.replace('.', "/"))).is_some();
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().trim_end_matches("[*]").to_owned();
    let mut missing = Vec::new();
    for check in catalogue::ALL {
        for setting in check.settings {
            if !covered.contains(&format!(".{}", snake(&last(setting)))) {
                missing.push(format!("{cover}: {setting}"));
            }
            if !tightened.contains(&format!("\"{setting}\"")) {
                missing.push(format!("{tighten}: {setting}"));
            }
        }
        for field in check.fields {
            let (Field::Pod(path) | Field::Container(path) | Field::Volume(path)) = field else { continue };
            if *path != "*" && !made_up.contains(&format!("{}\"", last(path))) {
                missing.push(format!("{pods}: {path}"));
            }
        }
        // All policies are measured with the settings of the default level.
        if !check
            .settings
            .iter()
            .any(|setting| is_seeded(setting) || measured.contains(&format!("\"{}\"", last(setting))))
        {
            missing.push(format!("{cost}: a setting of {}", check.id));
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

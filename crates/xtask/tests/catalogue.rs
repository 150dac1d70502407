//! The files of the catalogue are those of its checks.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests that read the project's files")]

use std::{collections::BTreeSet, fs, path::Path};

use palisade_api::catalogue;

/// A file of fixtures that no check has would be run by nobody.
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

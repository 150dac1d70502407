//! The objects that Palisade reads in files, however they are spelt: compared with those that kubectl's own reader
//! found.
#![allow(clippy::disallowed_methods, reason = "objects are in files")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use palisade_agreement::{
    cases::Cases,
    oracle,
    spell::{Random, Tally, Text, file},
};
use palisade_manifest::{Source, objects};
use serde_json::Value as Json;

#[test]
fn yaml_is_parsed_like_kubectl() {
    let texts = Text::lines(&oracle().join("yaml/golden.jsonl.gz")).unwrap();
    let mut tally = Tally::default();
    for text in &texts {
        tally.add(text);
    }
    println!("{tally}");
    assert!(tally.different.is_empty(), "{tally}");
    assert!(tally.unread.is_empty() && tally.lenient.is_empty(), "{tally}");
    assert!(tally.alike > 1_700 && tally.refused > 800, "golden files are missing: {tally}");
}

fn read(name: &str, text: String) -> Vec<Json> {
    let source = Arc::new(Source::new(name, text));
    let found = objects(&source).unwrap_or_else(|problem| panic!("{name}: {problem}\n{}", source.text()));
    found.iter().map(|object| object.json().unwrap_or_else(|mistake| panic!("{name}: {mistake:?}"))).collect()
}

/// Each spelling of an object that is read at all is that object.
fn spelt(name: &str, wanted: &[Json], random: &mut Random, unread: &mut usize) {
    let text = file(wanted, random);
    let source = Arc::new(Source::new(name, text));
    // A text without quotes may be none, or not be allowed where it stands.
    let Ok(found) = objects(&source) else {
        *unread += 1;
        return;
    };
    let found: Vec<_> = found.iter().map(palisade_manifest::Object::json).collect();
    let Ok(found) = found.into_iter().collect::<Result<Vec<_>, _>>() else {
        *unread += 1;
        return;
    };
    assert_eq!(found, wanted, "{name}:\n{}", source.text());
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn every_yaml_spelling_of_an_object_parses_alike() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for directory in ["examples", "manifests", "crds"] {
        files(&root.join(directory), &mut paths);
    }
    let (mut count, mut unread) = (0, 0);
    let mut random = Random::new(1);
    for path in &paths {
        let wanted = read(&path.display().to_string(), fs::read_to_string(path).unwrap());
        // With lists in them, documents are more than objects.
        if wanted.is_empty() || wanted.iter().any(|one| one["kind"].as_str().is_none_or(|kind| kind.ends_with("List")))
        {
            continue;
        }
        for _ in 0..20 {
            spelt(&path.display().to_string(), &wanted, &mut random, &mut unread);
            count += 1;
        }
    }
    println!("{count} spellings of {} files, {unread} of them are no YAML", paths.len());
    assert!(count > 300 && unread * 3 < count, "{unread} of {count} are not read");
}

/// A file in another spelling that is read; as it is if none is found.
fn respelt(path: &Path, random: &mut Random) -> String {
    let text = fs::read_to_string(path).unwrap();
    let wanted = read(&path.display().to_string(), text.clone());
    for _ in 0..5 {
        let other = file(&wanted, random);
        let source = Arc::new(Source::new("spelt", other.clone()));
        let found =
            objects(&source).ok().map(|found| found.iter().map(|object| object.json().ok()).collect::<Vec<_>>());
        if found.is_some_and(|found| found.iter().all(Option::is_some)) {
            return other;
        }
    }
    text
}

fn copy(from: &Path, to: &Path, random: &mut Random, count: &mut usize) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target, random, count);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            fs::write(target, respelt(&path, random)).unwrap();
            *count += 1;
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

/// Skipped where the collection is not there: `PALISADE_CORPUS` names its directory, or it is `shared/corpus` beside the
/// clone.
#[test]
fn respelled_corpus_cases_get_the_api_server_verdicts() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let corpus = std::env::var_os("PALISADE_CORPUS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if !corpus.join("cases").is_dir() {
        println!("skipped: no directory {}; PALISADE_CORPUS names the one that has cases/ in it", corpus.display());
        return;
    }
    let mut random = Random::new(7);
    let (mut count, mut unread) = (0, 0);
    let mut workloads = Vec::new();
    files(&corpus.join("workloads"), &mut workloads);
    for path in &workloads {
        let name = path.display().to_string();
        let wanted = read(&name, fs::read_to_string(path).unwrap());
        for _ in 0..3 {
            spelt(&name, &wanted, &mut random, &mut unread);
            count += 1;
        }
    }
    assert!(unread * 3 < count, "{unread} of {count} are not read");
    let directory = tempfile::tempdir().unwrap();
    let mut cases = 0;
    copy(&corpus.join("cases"), directory.path(), &mut random, &mut cases);
    println!("{count} spellings of {} workloads, {unread} are no YAML; {cases} files of cases", workloads.len());
    let compared = Cases::compare(directory.path()).unwrap();
    assert!(compared.agree(), "{compared}");
}

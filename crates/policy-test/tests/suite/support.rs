//! What tests of suites have in common, those of profiles too (`crates/profiles/tests`).

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use palisade_admission::requests::Plugins;
use palisade_cel::Minor;
use palisade_manifest::{Problem, Source};
use palisade_policy_test::{Extension, Files, Server, Status, Suite, coverage};

/// Files in memory.
struct Memory(BTreeMap<&'static str, String>);

impl Files for Memory {
    fn read(&self, _: &str, path: &str) -> Result<Arc<Source>, String> {
        let text = self.0.get(path).ok_or("no such file")?;
        Ok(Arc::new(Source::new(path, text.clone())))
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// An API server of 1.36.
pub fn server(extension: Option<&'static dyn Extension>) -> Server {
    Server { minor: Minor::V1_36, plugins: Plugins::default(), extension }
}

pub fn try_load(
    extension: Option<&'static dyn Extension>,
    name: &str,
    text: &str,
    files: &[(&'static str, &str)],
) -> Result<Vec<Suite>, Vec<Problem>> {
    let files = Memory(files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect());
    palisade_policy_test::load(&Arc::new(Source::new(name, text.to_owned())), &files, &server(extension))
}

pub fn load(extension: Option<&'static dyn Extension>, text: &str, files: &[(&'static str, &str)]) -> Suite {
    let mut suites = try_load(extension, "a.test.yaml", text, files).unwrap();
    assert_eq!(suites.len(), 1);
    suites.remove(0)
}

pub fn run(suite: &Suite) -> Vec<(String, Status)> {
    let run = |case| palisade_policy_test::run(suite, case);
    suite.cases.iter().map(run).map(|result| (result.name, result.status)).collect()
}

pub fn assert_passes(suite: &Suite) {
    for (name, status) in run(suite) {
        assert_eq!(status, Status::Passed, "{name}");
    }
}

/// What no case exercises: line, column, of what, where and how.
pub fn missing(suite: &Suite) -> Vec<String> {
    let missing = coverage::measure(suite).missing().into_iter();
    let shown = missing.map(|coverage::Point { place, of, path, what, missing }| {
        format!("{}:{} {of} {path} {what}: {missing}", place.line, place.column)
    });
    shown.collect()
}

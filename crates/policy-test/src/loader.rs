//! Shared code to read suites of every format.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use palisade_cel::{Minor, NotAMinor};
use palisade_manifest::{Object, Problem, Source};

use crate::{
    cluster::{self, Member},
    test_cluster::Server,
};

/// Reads the files that suites name.
pub trait Files {
    /// The file that `path` names in a suite, relative to that suite's file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, suite: &str, path: &str) -> Result<Arc<Source>, String>;

    /// The time, because exceptions end.
    fn now(&self) -> Timestamp;
}

/// Reads one suite.
pub(crate) struct Loader<'a> {
    pub files: &'a dyn Files,
    pub source: &'a Arc<Source>,
    /// The index of the object in its file.
    pub index: usize,
    pub object: &'a Object<'a>,
    pub server: Server,
    /// Whether it belongs to another tool, which is not as strict as the API server.
    pub imported: bool,
    pub problems: Vec<Problem>,
    pub notes: Vec<String>,
}

impl Loader<'_> {
    pub fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(self.object.problem(path, message));
    }

    /// The objects of the file that is named at `path`.
    pub fn file(&mut self, path: &str, file: &str) -> Vec<Member> {
        match self.files.read(self.source.name(), file) {
            Err(error) => {
                let problem = self.object.problem(path, format!("{path}: cannot read {file:?}: {error}"));
                self.problems.push(problem.help("files are named relative to the suite's file"));
                Vec::new()
            }
            Ok(source) => cluster::members(&source).unwrap_or_else(|problems| {
                self.problems.extend(problems);
                Vec::new()
            }),
        }
    }

    pub fn minor(&mut self, path: &str, version: Option<&String>) -> Minor {
        let Some(version) = version else { return self.server.minor };
        version.parse().unwrap_or_else(|error: NotAMinor| {
            self.problem(path, format!("{path}: {version:?}: {error}"));
            self.server.minor
        })
    }
}

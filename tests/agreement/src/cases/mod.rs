//! Cases of other projects, each with what a real kube-apiserver answered: policies, bindings, parameters, and requests.
//!
//! A case is a directory with `policy.yaml`, `binding.yaml`, `params.yaml`, `crds.yaml`, `resources/*.yaml` (all but the
//! first may be missing), `expected.json` (the requests) and `apiserver.json` (the answers).

mod own;
mod policies;
mod requests;

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use palisade_manifest::{Source, objects};
use serde_json::Value as Json;

use crate::{Error, lines::read};

pub use own::{Ask, Own, own};

#[derive(Clone, Debug)]
pub struct Case {
    /// Which project it comes from.
    pub source: String,
    pub name: String,
    /// Where it stands.
    pub directory: PathBuf,
    /// The policies, in the version that was applied.
    pub policies: Vec<Json>,
    /// The bindings that the project wrote.
    pub bindings: Vec<Json>,
    /// The parameters, and what else was created before the requests.
    pub params: Vec<Json>,
    /// The definitions of kinds.
    pub crds: Vec<Json>,
    /// The requests: `expected.json`.
    pub expected: Json,
    /// The answers: `apiserver.json`.
    pub apiserver: Json,
}

/// How far Palisade agrees with the API server.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Answers that were compared.
    pub compared: usize,
    /// Answers that are the same.
    pub equal: usize,
    /// Those of them that the API server rejects before any policy judges them.
    pub refused_alike: usize,
    /// Answers that Palisade does not give, each in a line.
    pub no_verdict: Vec<String>,
    /// Answers that are different, each in a line.
    pub different: Vec<String>,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.equal += other.equal;
        self.refused_alike += other.refused_alike;
        self.no_verdict.extend(other.no_verdict);
        self.different.extend(other.different);
    }
}

/// All cases of a directory, compared.
#[derive(Clone, Debug, Default)]
pub struct Cases {
    /// The requests of each source, and how many cases it has.
    pub requests: BTreeMap<String, (usize, Tally)>,
    /// Policies and bindings, by the compared aspect.
    pub policies: BTreeMap<&'static str, Tally>,
}

impl Cases {
    /// Reads and compares all cases in a directory: `<source>/<case>/`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn compare(directory: &Path) -> Result<Self, Error> {
        let mut cases = Self::default();
        for source in directories(directory)? {
            for directory in directories(&source)? {
                let case = Case::read(&directory)?;
                let (count, tally) = cases.requests.entry(case.source.clone()).or_default();
                *count += 1;
                tally.add(requests::agree(&case));
                for (aspect, tally) in policies::agree(&case) {
                    cases.policies.entry(aspect).or_default().add(tally);
                }
            }
        }
        Ok(cases)
    }

    /// Whether nothing is different.
    pub fn agree(&self) -> bool {
        let requests = self.requests.values().map(|(_, tally)| tally);
        requests.chain(self.policies.values()).all(|tally| tally.different.is_empty() && tally.no_verdict.is_empty())
    }
}

impl fmt::Display for Cases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["requests of", "cases", "answers", "equal", "refused alike", "no verdict", "different"];
        let mut rows = vec![head.map(str::to_owned)];
        let mut all = (0, Tally::default());
        let row = |name: &str, count: usize, tally: &Tally| {
            let numbers = [
                count,
                tally.compared,
                tally.equal,
                tally.refused_alike,
                tally.no_verdict.len(),
                tally.different.len(),
            ];
            let mut row = [const { String::new() }; 7];
            name.clone_into(&mut row[0]);
            for (cell, number) in row[1..].iter_mut().zip(numbers) {
                *cell = number.to_string();
            }
            row
        };
        for (source, (count, tally)) in &self.requests {
            rows.push(row(source, *count, tally));
            all.0 += count;
            all.1.add(tally.clone());
        }
        rows.push(row("all", all.0, &all.1));
        for [name, cells @ ..] in rows {
            write!(f, "{name:16}")?;
            for cell in cells {
                write!(f, " {cell:>13}")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "\n{:24} {:>8} {:>8} {:>11} {:>10}", "policies", "answers", "equal", "no verdict", "different")?;
        for (aspect, Tally { compared, equal, no_verdict, different, .. }) in &self.policies {
            let (unknown, different) = (no_verdict.len(), different.len());
            writeln!(f, "{aspect:24} {compared:>8} {equal:>8} {unknown:>11} {different:>10}")?;
        }
        for tally in [&all.1].into_iter().chain(self.policies.values()) {
            for line in tally.no_verdict.iter().chain(&tally.different) {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let names: Vec<_> =
            directory.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
        let [name, source] =
            [0, 1].map(|index| names.get(index).map(std::string::ToString::to_string).unwrap_or_default());
        let json = |file: &str| -> Result<Json, Error> {
            let path = directory.join(file);
            let text = read(&path)?;
            serde_json::from_str(&text).map_err(|error| Error::Content { path, line: error.line(), error })
        };
        let mut policies = yaml(&directory.join("policy.yaml"))?;
        for policy in &mut policies {
            policy["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        }
        Ok(Self {
            source,
            name,
            policies,
            bindings: yaml(&directory.join("binding.yaml"))?,
            params: yaml(&directory.join("params.yaml"))?,
            crds: yaml(&directory.join("crds.yaml"))?,
            expected: json("expected.json")?,
            apiserver: json("apiserver.json")?,
            directory: directory.to_owned(),
        })
    }

    /// An object of the case, by its path as `expected.json` gives it.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn object(&self, path: &str) -> Result<Json, Error> {
        Ok(yaml(&self.directory.join(path))?.into_iter().next().unwrap_or_default())
    }
}

/// The objects in a file; none if there is no file.
fn yaml(path: &Path) -> Result<Vec<Json>, Error> {
    if !path.exists() {
        return Ok(vec![]);
    }
    let text = read(path)?;
    let source = Arc::new(Source::new(&path.display().to_string(), text));
    let bad = |message: &str| Error::Object { path: path.to_owned(), message: message.to_owned() };
    let found = objects(&source).map_err(|problem| bad(problem.message()))?;
    found.iter().map(|object| object.json().map_err(|mistake| bad(mistake.problem.message()))).collect()
}

fn directories(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = entries(directory)?;
    paths.retain(|path| path.is_dir());
    Ok(paths)
}

/// The entries of a directory, by name.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::Read { path: directory.to_owned(), error };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

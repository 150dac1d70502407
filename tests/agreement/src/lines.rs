//! Golden files and files of answers, as `tests/oracle/README.md` describes them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use palisade_cel::Minor;
use serde::Deserialize;
use serde_json::Value as Json;

/// The minor whose golden files are complete; those of the others have only what differs.
pub const COMPLETE: Minor = Minor::DEFAULT;

/// An expression with what the API server says of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Line {
    /// `category/…/number`.
    pub id: String,
    pub expr: String,
    pub(crate) expect: Option<String>,
    pub(crate) params: Option<bool>,
    pub(crate) authorizer: Option<bool>,
    #[serde(default)]
    pub(crate) mutation: bool,
    #[serde(default)]
    pub(crate) variables: Vec<Variable>,
    #[serde(default)]
    pub(crate) fixture: Json,
    #[serde(default)]
    pub(crate) typed: Vec<String>,
    #[serde(rename = "typedParams")]
    pub(crate) typed_params: Option<String>,
    pub(crate) answer: Answer,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) expr: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) new: Verdict,
    pub(crate) stored: Option<Verdict>,
    #[serde(default)]
    pub(crate) typed: BTreeMap<String, Vec<Problem>>,
    pub(crate) value: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) cost: Option<u64>,
    #[serde(rename = "variablesCost")]
    pub(crate) variables_cost: Option<u64>,
    pub(crate) estimate: Option<Vec<u64>>,
    #[serde(default)]
    pub(crate) varies: Vec<String>,
    #[serde(default)]
    pub(crate) unfinished: bool,
}

impl Answer {
    pub(crate) fn stored(&self) -> &Verdict {
        self.stored.as_ref().unwrap_or(&self.new)
    }

    pub(crate) fn varies(&self, what: &str) -> bool {
        self.varies.iter().any(|other| other == what)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) ok: bool,
    #[serde(rename = "type")]
    pub(crate) of: Option<String>,
    #[serde(default)]
    pub(crate) errors: Vec<Problem>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Problem {
    pub(crate) kind: String,
    pub(crate) line: i64,
    pub(crate) column: i64,
    pub(crate) text: String,
}

impl Line {
    /// What the report groups by: the first part of the id.
    pub fn category(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The request alone, of an expression without variables.
    pub fn request(&self) -> Json {
        let mut request = serde_json::json!({"id": self.id, "expr": self.expr});
        for (field, value) in [("params", self.params), ("authorizer", self.authorizer)] {
            if let Some(value) = value {
                request[field] = value.into();
            }
        }
        if self.mutation {
            request["mutation"] = true.into();
        }
        if let Some(expect) = &self.expect {
            request["expect"] = expect.as_str().into();
        }
        if !self.fixture.is_null() {
            request["fixture"] = self.fixture.clone();
        }
        request
    }
}

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    /// It is not what the other side writes (`tests/oracle/README.md`).
    #[error("{}:{line}: not an answer with its request: {error}", path.display())]
    Content {
        path: PathBuf,
        /// Counts from 1.
        line: usize,
        error: serde_json::Error,
    },
    #[error("{}: {message}", path.display())]
    Object { path: PathBuf, message: String },
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::Read { path: path.to_owned(), error })
}

/// The files of a directory whose names end in this way, sorted.
pub(crate) fn files(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::Read { path: directory.to_owned(), error };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, Error> {
    let content = |(index, text): (usize, &str)| {
        serde_json::from_str(text).map_err(|error| Error::Content { path: path.to_owned(), line: index + 1, error })
    };
    read(path)?.lines().enumerate().map(content).collect()
}

/// The lines of a file that has each request beside its answer.
///
/// # Errors
/// The file cannot be read.
pub fn file(path: &Path) -> Result<Vec<Line>, Error> {
    parse(path)
}

/// All lines of the golden files of a minor below `tests/oracle`, sorted by category.
///
/// # Errors
/// A file cannot be read.
pub fn goldens(oracle: &Path, minor: Minor) -> Result<Vec<Line>, Error> {
    #[derive(Deserialize)]
    struct Other {
        id: String,
        answer: Answer,
    }
    let directory = |minor: Minor| oracle.join(format!("golden/{minor}"));
    let mut others: BTreeMap<String, Answer> = BTreeMap::new();
    if minor != COMPLETE {
        for path in files(&directory(minor), "jsonl")? {
            others.extend(parse::<Other>(&path)?.into_iter().map(|other| (other.id, other.answer)));
        }
    }
    let mut lines = Vec::new();
    for path in files(&directory(COMPLETE), "jsonl")? {
        lines.extend(file(&path)?);
    }
    for line in &mut lines {
        if let Some(answer) = others.remove(&line.id) {
            line.answer = answer;
        }
    }
    Ok(lines)
}

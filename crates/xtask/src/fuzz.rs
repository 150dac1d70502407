//! Seeds for `cargo xtask fuzz`.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use palisade_agreement::{COMPLETE, goldens, oracle};
use palisade_cel::functions::LIBRARIES;
use palisade_checks::{catalogue, fixture::Fixture};
use palisade_kube_json::json::Change as _;
use serde_json::{Value as Json, json};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Golden(#[from] palisade_agreement::Error),
    #[error("fixtures of {check}: {error}")]
    Fixtures { check: &'static str, error: String },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// Words of the language that are not functions.
const WORDS: [&str; 44] = [
    "object",
    "params",
    "request",
    "authorizer",
    "variables",
    "metadata",
    "spec",
    "has",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "map",
    "filter",
    "transformList",
    "transformMap",
    "optMap",
    "optFlatMap",
    "sortBy",
    "true",
    "false",
    "null",
    "int",
    "string",
    "in",
    "&&",
    "||",
    "==",
    "!=",
    "<=",
    ">=",
    "?.",
    "[?",
    " ? ",
    " : ",
    "b'",
    "r'",
    "'''",
    "\\\\u00e9",
    "1u",
    "1.5e3",
    "0xff",
    "-9223372036854775808",
    "\\x00",
];

/// Writes into a directory: `expressions`, those of the golden files, and `reviews`, of the pods of the catalogue's
/// fixtures; and beside each, as `.dict`, the words that they consist of, as libFuzzer reads them.
pub(crate) fn seeds(directory: &Path) -> Result<(), Error> {
    let expressions: BTreeSet<String> = goldens(&oracle(), COMPLETE)?.into_iter().map(|line| line.expr).collect();
    let expressions = expressions.into_iter().filter(|expression| expression.len() < 1000);
    let functions = LIBRARIES.iter().flat_map(|library| library.iter().map(|function| function.name));
    write(&directory.join("expressions"), expressions, functions.chain(WORDS).map(str::to_owned).collect())?;
    let reviews = reviews()?;
    let mut words = BTreeSet::new();
    for review in &reviews {
        collect(review, &mut words);
    }
    write(&directory.join("reviews"), reviews.iter().map(Json::to_string), words)
}

fn write(directory: &Path, seeds: impl IntoIterator<Item = String>, words: BTreeSet<String>) -> Result<(), Error> {
    let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(|error| Error::Write { path, error });
    fs::create_dir_all(directory).map_err(|error| Error::Write { path: directory.to_owned(), error })?;
    for (index, seed) in seeds.into_iter().enumerate() {
        write(directory.join(format!("{index:05}")), &seed)?;
    }
    let dictionary: Vec<String> = words.into_iter().map(|word| format!("\"{word}\"\n")).collect();
    write(directory.with_extension("dict"), &dictionary.concat())
}

/// The pods of all fixtures, each once and on a line.
pub(crate) fn pods() -> Result<String, Error> {
    let (mut seen, mut text) = (BTreeSet::new(), String::new());
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures)
            .map_err(|error| Error::Fixtures { check: check.id, error: error.to_string() })?;
        for fixture in fixtures {
            let pod = fixture.pod().to_string();
            if seen.insert(pod.clone()) {
                text = text + &pod + "\n";
            }
        }
    }
    Ok(text)
}

/// Reviews of the pods of all fixtures: of each as a new one, and as one that gets an ephemeral container.
fn reviews() -> Result<Vec<Json>, Error> {
    let review = |request: [&str; 2], pod: &Json, old: &Json| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": request[0], "subResource": request[1],
                "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "tool-a",
                "userInfo": {"username": "user", "groups": ["system:authenticated"]}, "object": pod, "oldObject": old,
            },
        })
    };
    let mut reviews = Vec::new();
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures)
            .map_err(|error| Error::Fixtures { check: check.id, error: error.to_string() })?;
        for fixture in fixtures {
            let pod = fixture.pod();
            reviews.push(review(["CREATE", ""], &pod, &Json::Null));
            let mut debugged = pod.clone();
            let container = debugged["spec"]["containers"][0].clone();
            *debugged.at_mut(&["spec", "ephemeralContainers"]) = json!([container]);
            reviews.push(review(["UPDATE", "ephemeralcontainers"], &debugged, &pod));
        }
    }
    Ok(reviews)
}

/// The names and texts of some JSON that a dictionary of libFuzzer can have without escapes.
fn collect(value: &Json, words: &mut BTreeSet<String>) {
    let mut word = |text: &str| {
        let plain = |byte: u8| (b' '..=b'~').contains(&byte) && !matches!(byte, b'"' | b'\\');
        if !text.is_empty() && text.len() < 64 && text.bytes().all(plain) {
            words.insert(text.to_owned());
        }
    };
    match value {
        Json::String(text) => word(text),
        Json::Object(fields) => {
            fields.keys().for_each(|key| word(key));
            fields.values().for_each(|value| collect(value, words));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, words)),
        _ => {}
    }
}

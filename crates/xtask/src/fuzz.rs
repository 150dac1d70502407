//! What `make fuzz` begins with.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use palisade_agreement::{COMPLETE, goldens, oracle};
use palisade_cel::functions::LIBRARIES;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Golden(#[from] palisade_agreement::Error),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

/// Words of the language that are no functions.
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

/// Writes the expressions of the golden files into a directory, and the words that they consist of beside it, as
/// libFuzzer reads them.
pub(crate) fn seeds(directory: &Path) -> Result<(), Error> {
    let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(|error| Error::Write { path, error });
    fs::create_dir_all(directory).map_err(|error| Error::Write { path: directory.to_owned(), error })?;
    let expressions: BTreeSet<String> = goldens(&oracle(), COMPLETE)?.into_iter().map(|line| line.expr).collect();
    for (index, expression) in expressions.iter().filter(|expression| expression.len() < 1000).enumerate() {
        write(directory.join(format!("{index:05}")), expression)?;
    }
    let functions = LIBRARIES.iter().flat_map(|library| library.iter().map(|function| function.name));
    let words: BTreeSet<&str> = functions.chain(WORDS).collect();
    let dictionary: Vec<String> = words.into_iter().map(|word| format!("\"{word}\"\n")).collect();
    write(directory.with_extension("dict"), &dictionary.concat())
}

//! The project's files, and why one could not be generated.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Why generation failed.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{}: {message}", path.display())]
    Yaml { path: PathBuf, message: String },
    #[error("crates/checks/src/catalogue/{file}: {message}")]
    Check { file: String, message: String },
    #[error("the book: {0}")]
    Book(String),
    #[error("a metric cannot be encoded")]
    Metrics(#[from] std::fmt::Error),
    #[error("these generated files are out of date; run `make generate` and commit them:\n  {}", .0.join("\n  "))]
    Drift(Vec<String>),
}

/// The project's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

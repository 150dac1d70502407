//! Files and the Kubernetes objects in them.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

pub use palisade_manifest::{Object, objects};

use crate::report::{Failure, Problem, Source};

/// More than the namespaces of any cluster need. It bounds how much memory a file can take.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a file, or standard input if `path` is `-`.
pub fn read(path: &str) -> Result<Arc<Source>, Failure> {
    let name = if path == "-" { "<stdin>" } else { path };
    let failed = |what: &dyn std::fmt::Display| Failure::CouldNotRun(vec![Problem::new(format!("{name}: {what}"))]);
    let mut bytes = Vec::new();
    let read = if path == "-" {
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => failed(&"is a directory: name a file in it"),
        _ => failed(&error),
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failed(&format_args!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| failed(&format_args!("not UTF-8 text, from byte {} on", error.utf8_error().valid_up_to())))?;
    Ok(Arc::new(Source::new(name, text)))
}

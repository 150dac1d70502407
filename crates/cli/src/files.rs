//! The files to read.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::report::{Failure, Problem, Source};

/// More than the namespaces of any cluster need. It limits the memory for a file.
const MAX_BYTES: u64 = 64 << 20;

/// The files in directories, in order; other paths unchanged.
pub fn expand(paths: &[String]) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path != "-" && Path::new(path).is_dir() {
            walk(Path::new(path), &mut BTreeSet::new(), &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Whether a file in a directory is read, by its extension.
pub fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|one| ending == *one))
}

/// Adds the files of a directory. A link to a directory above it is not followed.
fn walk(directory: &Path, open: &mut BTreeSet<PathBuf>, found: &mut Vec<String>) -> Result<(), Failure> {
    let failed = |error: io::Error| could_not_read(&directory.display().to_string(), &error);
    let real = directory.canonicalize().map_err(failed)?;
    if !open.insert(real.clone()) {
        return Ok(());
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for path in entries {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden {
            continue;
        }
        if path.is_dir() {
            walk(&path, open, found)?;
        } else if is_manifest(&path) && path.is_file() {
            found.push(path.display().to_string());
        }
    }
    open.remove(&real);
    Ok(())
}

/// The content of files, and of the files in directories.
pub fn sources(paths: &[String]) -> Result<Vec<Arc<Source>>, Failure> {
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    for path in expand(paths)? {
        let (source, problem) = read_or_problem(&path)?;
        problems.extend(problem);
        sources.push(source);
    }
    if problems.is_empty() { Ok(sources) } else { Err(Failure::CouldNotRun(problems)) }
}

/// Reads a file, or standard input if `path` is `-`.
///
/// # Errors
/// It cannot be read, or is not UTF-8 text.
pub fn read(path: &str) -> Result<Arc<Source>, Failure> {
    let (source, problem) = read_or_problem(path)?;
    match problem {
        None => Ok(source),
        Some(problem) => Err(Failure::CouldNotRun(vec![problem])),
    }
}

/// The same: its source, and the problem if it is not UTF-8 text.
///
/// # Errors
/// It cannot be read.
pub fn read_or_problem(path: &str) -> Result<(Arc<Source>, Option<Problem>), Failure> {
    let name = if path == "-" { "<stdin>" } else { path };
    let mut bytes = Vec::new();
    let read = if path == "-" {
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => could_not_read(name, &"is a directory; specify a file"),
        _ => could_not_read(name, &error),
    })?;
    let bad = |message: String| {
        let source = Arc::new(Source::new(name, String::new()));
        let problem = Problem::new(message).at(&source, 0..0);
        (source, Some(problem))
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Ok(bad(format!("must be at most {} MiB", MAX_BYTES >> 20)));
    }
    Ok(match palisade_manifest::decode(bytes) {
        Ok(text) => (Arc::new(Source::new(name, text)), None),
        Err(at) => bad(format!("must be UTF-8 text: invalid at byte {at}")),
    })
}

fn could_not_read(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::CouldNotRun(vec![Problem::new(format!("{name}: {error}"))])
}

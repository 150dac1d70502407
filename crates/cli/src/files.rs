//! Which files are read.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::report::{Failure, Problem, Source};

/// More than any chart needs. It bounds how much memory a file can take.
const MAX_BYTES: u64 = 16 << 20;

/// The files of directories, in order; other paths as they are.
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

/// Whether a file in a directory is read, by its name.
pub fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|one| ending == *one))
}

/// Adds the files of a directory, unless a link leads into a directory on the way here.
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

/// The texts of files, and of those in directories.
pub fn sources(paths: &[String]) -> Result<Vec<Arc<Source>>, Failure> {
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    for path in expand(paths)? {
        let (source, problem) = read(&path)?;
        problems.extend(problem);
        sources.push(source);
    }
    if problems.is_empty() { Ok(sources) } else { Err(Failure::CouldNotRun(problems)) }
}

/// Reads a file or standard input: its source, and the problem if it is not text.
pub fn read(path: &str) -> Result<(Arc<Source>, Option<Problem>), Failure> {
    let name = if path == "-" { "<stdin>" } else { path };
    let mut bytes = Vec::new();
    let read = if path == "-" {
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| could_not_read(name, &error))?;
    let bad = |message: String| {
        let source = Arc::new(Source::new(name, String::new()));
        let problem = Problem::new(message).at(&source, 0..0);
        (source, Some(problem))
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Ok(bad(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => (Arc::new(Source::new(name, text)), None),
        Err(error) => bad(format!("not UTF-8 text, from byte {} on", error.utf8_error().valid_up_to())),
    })
}

fn could_not_read(name: &str, error: &io::Error) -> Failure {
    Failure::CouldNotRun(vec![Problem::new(format!("{name}: {error}"))])
}

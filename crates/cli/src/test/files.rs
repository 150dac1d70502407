//! The files of suites: finding, reading and watching them.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use k8s_openapi::jiff::Timestamp;
use palisade_manifest::Source;
use palisade_policy_test::Files;

use crate::{
    files,
    report::{Failure, Problem},
};

/// Deeper than any real directory.
const MAX_DEPTH: usize = 64;

/// The files that were read, so that `--watch` can watch them.
#[derive(Debug, Default)]
pub struct Disk {
    read: RefCell<BTreeSet<PathBuf>>,
}

impl Disk {
    /// Reads a file.
    pub fn source(&self, path: &Path) -> Result<Arc<Source>, Failure> {
        self.read.borrow_mut().insert(path.to_owned());
        files::read(&path.to_string_lossy())
    }

    /// The modification times of all files that were read, and of the current suites.
    pub fn stamps(&self, suites: &[PathBuf]) -> BTreeMap<PathBuf, Option<SystemTime>> {
        let read = self.read.borrow();
        let stamp = |path: &PathBuf| (path.clone(), fs::metadata(path).and_then(|found| found.modified()).ok());
        read.iter().chain(suites).map(stamp).collect()
    }
}

impl Files for Disk {
    fn read(&self, suite: &str, path: &str) -> Result<Arc<Source>, String> {
        let directory = Path::new(suite).parent().unwrap_or(Path::new(""));
        let path = clean(&directory.join(path));
        self.source(&path).map_err(|failure| {
            let (Failure::Wrong(problems) | Failure::CouldNotRun(problems)) = failure;
            let text = problems.first().map(ToString::to_string).unwrap_or_default();
            let name = path.to_string_lossy();
            text.strip_prefix(&format!("{name}: ")).map_or(text.clone(), str::to_owned)
        })
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The path without `.`, and without `..` if that is equivalent.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(cleaned.components().next_back(), Some(Component::Normal(_))) => {
                cleaned.pop();
            }
            component => cleaned.push(component),
        }
    }
    cleaned
}

/// The suites in directories and their subdirectories, sorted by name, and the files in the arguments.
pub fn discover(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        let failed = |error: std::io::Error| {
            Failure::CouldNotRun(vec![Problem::new(format!("{}: {error}", path.to_string_lossy()))])
        };
        let mut of_path = Vec::new();
        if fs::metadata(path).map_err(failed)?.is_dir() {
            walk(path, MAX_DEPTH, &mut of_path).map_err(failed)?;
        } else {
            of_path.push(path.clone());
        }
        of_path.sort();
        found.extend(of_path.into_iter().map(|path| clean(&path)).filter(|path| seen.insert(path.clone())));
    }
    Ok(found)
}

/// Skips links and hidden files.
fn walk(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if name.starts_with('.') {
            continue;
        }
        if kind.is_dir() && depth > 0 {
            // A directory that cannot be read has no suites.
            let _ = walk(&entry.path(), depth - 1, found);
        } else if kind.is_file() && is_suite(&name) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_suite(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml")) else { return false };
    matches!(stem, "palisade-test" | "kaptest" | "kyverno-test") || stem.strip_suffix(".test").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_files_are_recognized_by_name() {
        for name in ["palisade-test.yaml", "a.test.yml", "kaptest.yaml", "kyverno-test.yaml"] {
            assert!(is_suite(name), "{name}");
        }
        for name in ["test.yaml", "a.test.json", "palisade-test.yaml.bak", "atest.yaml"] {
            assert!(!is_suite(name), "{name}");
        }
    }

    #[test]
    fn paths_are_normalized() {
        for (path, expected) in
            [("./a/../b.yaml", "b.yaml"), ("../a", "../a"), ("a/../../b", "../b"), ("/../a", "/../a")]
        {
            assert_eq!(clean(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}

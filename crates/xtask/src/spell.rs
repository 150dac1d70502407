//! Objects in all spellings, for `oracle read`, and how Palisade reads them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use palisade_agreement::spell::{Random, Tally, Text, arbitrary, damaged, file};
use palisade_manifest::{Source, objects};
use serde_json::Value as Json;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Text(#[from] palisade_agreement::Error),
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

/// Writes a line for each spelling.
pub(crate) fn write(
    out: &mut dyn io::Write,
    paths: &[PathBuf],
    count: usize,
    seed: u64,
    damage: bool,
) -> Result<(), Error> {
    let mut random = Random::new(seed);
    let mut files = Vec::new();
    for path in paths {
        walk(path, &mut files)?;
    }
    let mut sets: Vec<(String, Vec<Json>)> = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(|error| Error::Read { path: path.clone(), error })?;
        let source = Arc::new(Source::new(&path.display().to_string(), text));
        // Other code reports files that are not YAML.
        let found: Vec<_> = objects(&source).into_iter().flatten().filter_map(|object| object.json().ok()).collect();
        if !found.is_empty() {
            sets.push((source.name().to_owned(), found));
        }
    }
    if paths.is_empty() {
        sets.push(("arbitrary".to_owned(), Vec::new()));
    }
    for (name, set) in sets {
        for index in 0..count {
            let set = if paths.is_empty() {
                (0..=random.below(2)).map(|_| arbitrary(&mut random)).collect()
            } else {
                set.clone()
            };
            let mut text = file(&set, &mut random);
            if damage && index % 2 == 1 {
                text = damaged(&text, &mut random);
            }
            let id = format!("{name}/{seed}/{index}");
            let line = serde_json::to_string(&Text { id, text, ..Text::default() }).map_err(io::Error::other)?;
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn walk(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |error| Error::Read { path: path.to_owned(), error };
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir()
            || path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|one| ending == *one))
        {
            walk(&path, found)?;
        }
    }
    Ok(())
}

/// Reads texts of files with answers, and prints how far they are read alike.
pub(crate) fn compare(files: &[PathBuf]) -> Result<bool, Error> {
    let mut tally = Tally::default();
    for file in files {
        Text::lines(file)?.iter().for_each(|text| tally.add(text));
    }
    print!("{tally}");
    Ok(tally.agrees())
}

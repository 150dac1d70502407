//! Texts, and what kubectl's reader says of them.

use std::{fmt, io::Read, path::Path, sync::Arc};

use flate2::read::GzDecoder;
use palisade_manifest::{Source, objects};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::Error;

/// A text, and the objects that are read in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Text {
    pub id: String,
    pub text: String,
    /// The documents that have something in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Json>,
    /// Why kubectl does not read on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// How many texts are read alike.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Texts that both read, with the same result.
    pub alike: usize,
    /// Texts that both refuse.
    pub refused: usize,
    /// Texts that kubectl reads, and Palisade does not.
    pub unread: Vec<String>,
    /// Texts that both read differently.
    pub different: Vec<String>,
    /// Texts that kubectl refuses, and Palisade reads.
    pub lenient: Vec<String>,
}

impl Text {
    /// The lines of a file, which may be compressed.
    ///
    /// # Errors
    /// It cannot be read, or is none of texts.
    pub fn lines(path: &Path) -> Result<Vec<Self>, Error> {
        let failed = |message: String| Error::Object { path: path.to_owned(), message };
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        if path.extension().is_some_and(|ending| ending == "gz") {
            GzDecoder::new(&*bytes).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        } else {
            text = String::from_utf8(bytes).map_err(|error| failed(error.to_string()))?;
        }
        text.lines().map(|line| serde_json::from_str(line).map_err(|error| failed(error.to_string()))).collect()
    }

    /// What Palisade reads in it.
    ///
    /// # Errors
    /// What it says of it, with the place.
    pub fn read(&self) -> Result<Vec<Json>, String> {
        let source = Arc::new(Source::new("text", self.text.clone()));
        let said = |problem: &palisade_manifest::Problem| {
            let place = problem.place().map(|(source, place)| source.position(place.start));
            format!("{place:?} {problem}")
        };
        let found = objects(&source).map_err(|problem| said(&problem))?;
        found.iter().map(|object| object.json().map_err(|mistake| said(&mistake.problem))).collect()
    }

    /// The documents as Palisade takes them: those of a list one by one.
    fn wanted(&self) -> Vec<Json> {
        let mut wanted = Vec::new();
        for document in &self.documents {
            let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
            match document["items"].as_array() {
                Some(items) if is_list => wanted.extend(items.iter().cloned()),
                _ => wanted.push(document.clone()),
            }
        }
        wanted
    }
}

impl Tally {
    /// Reads a text, and counts what came of it.
    pub fn add(&mut self, text: &Text) {
        let Text { id, error, .. } = text;
        match (text.read(), error.is_empty()) {
            (Err(_), false) => self.refused += 1,
            (Err(said), true) => self.unread.push(format!("{id}: {said}")),
            (Ok(_), false) => self.lenient.push(format!("{id}: {error}")),
            (Ok(found), true) => {
                let wanted = text.wanted();
                if found == wanted {
                    self.alike += 1;
                } else {
                    let (found, wanted) = (Json::Array(found), Json::Array(wanted));
                    self.different.push(format!("{id}:\n  kubectl: {wanted}\n  palisade: {found}"));
                }
            }
        }
    }

    /// Whether all that kubectl reads is read alike.
    pub fn agrees(&self) -> bool {
        self.unread.is_empty() && self.different.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alike, refused, unread, different, lenient } = self;
        writeln!(f, "{alike} texts are read alike, {refused} refused alike")?;
        for (what, found) in [
            ("that kubectl reads are not read", unread),
            ("are read differently", different),
            ("that kubectl refuses are read", lenient),
        ] {
            writeln!(f, "{} {what}", found.len())?;
            found.iter().take(100).try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        Ok(())
    }
}

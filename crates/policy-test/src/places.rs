//! The places of policies and their expressions in files.

use std::{ops::Range, sync::Arc};

use palisade_manifest::{Object, Source, objects};

/// The file of an object, and which of its objects it is.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file.
    pub source: Arc<Source>,
    /// The index of the object in the file.
    pub index: usize,
    /// The path to the object in that one, if it is a part of another: `policies[0]`.
    pub prefix: String,
    /// Whether the object is not in the file, but generated from an object that is: the policies of a profile.
    pub generated: bool,
}

impl Origin {
    /// The object at an index of a file.
    pub fn new(source: &Arc<Source>, index: usize) -> Self {
        Self { source: Arc::clone(source), index, prefix: String::new(), generated: false }
    }
}

/// A place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Place {
    /// Where a byte is.
    pub fn of(source: &Source, offset: usize) -> Self {
        let (line, column) = source.position(offset);
        Self { file: source.name().to_owned(), line, column }
    }
}

/// Finds places in one object; it reads the file once.
#[derive(Debug)]
pub struct Locator<'a> {
    origin: &'a Origin,
    object: Option<Object<'a>>,
}

impl<'a> Locator<'a> {
    /// For an object.
    pub fn new(origin: &'a Origin) -> Self {
        let object = objects(&origin.source).ok().and_then(|objects| objects.into_iter().nth(origin.index));
        Self { origin, object }
    }

    /// Where a field of the object is.
    pub fn field(&self, path: &str) -> Place {
        self.place(self.object.as_ref().map_or(0..0, |object| object.node.place(&self.path(path))))
    }

    /// Where a line and column (from 1, in characters) of the text of a field is.
    pub fn text(&self, path: &str, line: usize, column: usize) -> Place {
        let place = |object: &Object<'_>| object.place_in_text(&self.path(path), line, column);
        self.place(self.object.as_ref().map_or(0..0, place))
    }

    fn place(&self, range: Range<usize>) -> Place {
        Place::of(&self.origin.source, range.start)
    }

    fn path(&self, path: &str) -> String {
        let Origin { prefix, generated, .. } = self.origin;
        match (*generated, prefix.is_empty()) {
            (true, _) => "metadata.name".to_owned(),
            (false, true) => path.to_owned(),
            (false, false) => format!("{prefix}.{path}"),
        }
    }
}

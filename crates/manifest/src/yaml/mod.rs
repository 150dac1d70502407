//! YAML and JSON as kubectl and the API server read them: `sigs.k8s.io/yaml` on `go.yaml.in/yaml/v2`, documents as
//! apimachinery finds them. The scanner and the grammar are a port of that library (docs/adr/0030-parse-yaml-like-kubectl.md).

mod de;
mod json;
mod limits;
mod parse;
mod scalar;
mod scan;
mod split;
mod tree;
mod value;

use crate::node::Node;

pub(crate) use de::{Cause, Mistake, from_value};
pub(crate) use parse::{Anchors, Tree};
pub(crate) use value::{InvalidValue, Read, Value, read};

/// Why a file is not YAML, and where.
#[derive(Debug)]
pub struct Fault {
    /// The error message.
    pub message: String,
    /// Byte in the file.
    pub offset: usize,
}

impl Fault {
    fn moved(self, place: &dyn Fn(usize) -> usize) -> Self {
        Self { offset: place(self.offset), ..self }
    }
}

/// The documents of a text that have content.
pub(crate) fn trees(text: &str) -> Result<Vec<Tree<'_>>, Fault> {
    let mut left = limits::MAX_NODES;
    let documents = split::documents(text)?;
    let trees = documents.into_iter().map(|document| parse::tree(text, document.range, document.json, &mut left));
    trees.filter_map(Result::transpose).collect()
}

/// The root of each document: of YAML, or of JSON one after the other.
pub fn documents(text: &str) -> Result<Vec<Node<'_>>, Fault> {
    Ok(trees(text)?.into_iter().map(|tree| tree.root).collect())
}

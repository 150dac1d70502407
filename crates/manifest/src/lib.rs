//! Kubernetes objects in YAML and JSON, each with its places in the text, for all commands that read files.
//!
//! ```
//! use std::sync::Arc;
//! use palisade_manifest::{Source, objects};
//!
//! let source = Arc::new(Source::new("pod.yaml", "kind: Pod\nmetadata: {name: a}\n".to_owned()));
//! let objects = objects(&source).unwrap();
//! assert_eq!(objects[0].kind, "Pod");
//! assert_eq!(objects[0].json().unwrap()["metadata"]["name"], "a");
//! assert_eq!(source.position(objects[0].node.place("metadata.name").start), (2, 18));
//! ```
//!
//! This crate is pure: no I/O, no clock, no environment of the process.
//!
//! Each module uses only modules before it:
//!
//! 1. Texts, and the errors in them: `source`, `problem`, `suggest`.
//! 2. Documents: `scalar`, `node`, `yaml`.
//! 3. The content of documents: `refusal` (documents without an object), `object`.
#![warn(missing_docs)]

mod node;
mod object;
mod problem;
mod refusal;
mod scalar;
mod source;
mod suggest;
mod yaml;

pub use node::{Content, Node};
pub use object::{Mistake, Object, objects};
pub use problem::{Problem, Severity};
pub use source::{Source, decode, harmless, one_line};
pub use suggest::{nearest, suggestion};
pub use yaml::Fault;

/// The documents of a text, and the places of their parts.
pub mod locate {
    pub use crate::{
        node::{Content, Node},
        yaml::{Fault, documents},
    };
}

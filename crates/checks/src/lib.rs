//! The catalogue of pod security checks.
//!
//! One check is one file under [`catalogue`], with its fixtures in a YAML file beside it: its origin in
//! PodSecurityPolicy and the Pod Security Standards, the settings an admin writes in a profile, the CEL
//! that finds violations, the message a tenant reads, and a pod that complies. Everything else (the
//! compiler, the gate, the generated documentation, the tests against a real API server) is
//! derived from these.
//!
//! This crate is pure: no I/O, no clock, no environment.

pub mod bounds;
pub mod catalogue;
pub mod cel;
mod check;
pub mod coverage;
pub mod defaults;
mod diagnostic;
pub mod fixture;
pub mod image;
mod lower;
mod reference;
pub mod settings;
mod updates;
mod value;

/// With these the files of the catalogue build their examples.
pub(crate) use palisade_objects::{json, pod};

pub use check::{Check, Field, Finding, Level, Over, Pss, Rule};
pub use defaults::{Condition, Constant, DefaultValue, FieldDefault, Subject};
pub use diagnostic::Diagnostic;
pub use lower::{Lowering, Resolve, TextList};
pub use reference::{ParameterName, Piece, pieces};
pub use settings::Settings;
pub use value::{Flag, Integer, ParameterType, Resolved, Text, Values};

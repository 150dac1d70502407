//! The catalogue of pod security checks.
//!
//! One check is one file under [`catalogue`], with its fixtures in a YAML file beside it: its origin in
//! PodSecurityPolicy and the Pod Security Standards, the settings in a profile, the CEL that finds violations,
//! the message for the tenant, and a pod that complies. Everything else (the compiler, the gate, the generated
//! documentation, the tests against a real API server) is derived from these.
//!
//! This crate is pure: no I/O, no clock, no environment.
//!
//! Each module uses only modules before it:
//!
//! 1. Values that are constants or parameters, and errors in them: `diagnostic`, `reference`, `value`, `meaning`.
//! 2. Their translation to CEL, and their values in a namespace: `cel`, `texts`, `lower`, `resolve`, `image`.
//! 3. The settings of a profile: `settings`.
//! 4. The definition of a check: `defaults`, `inject`, `check`, `fixture`, `object_check`.
//! 5. The checks: `shared`, `catalogue`, and those of other objects: `objects`.
//! 6. Tables over all checks and fields: `bounds`, `updates`, `coverage`.
#![warn(missing_docs)]

pub mod bounds;
pub mod catalogue;
pub mod cel;
mod check;
pub mod coverage;
pub mod defaults;
mod diagnostic;
pub mod fixture;
pub mod image;
pub mod inject;
mod lower;
mod meaning;
mod object_check;
pub mod objects;
mod reference;
mod resolve;
pub mod settings;
mod shared;
mod texts;
mod updates;
mod value;

/// With these the files of the catalogue build their examples.
pub(crate) use palisade_kube_json::{json, pod};

pub use check::{Check, Field, Finding, FindingScope, Pss, Rule};
pub use defaults::{Condition, Constant, DefaultValue, FieldDefault, Subject};
pub use diagnostic::{Diagnostic, Location, Origin};
pub use lower::{Lowering, Uses};
pub use meaning::{Author, Meaning, Place, Use};
pub use object_check::{
    CHANGES, CONNECTION, CREATION, FixtureRequest, FixtureUser, Kinds, ObjectCheck, ObjectFinding, ObjectFixture,
    ObjectLimit, ObjectResource, ObjectRule, SHARES, WRITES, is_confidential,
};
pub use reference::{ParameterName, Piece, pieces};
pub use resolve::{Resolve, matches};
pub use settings::{Settings, standard::Level};
pub use texts::{Patterns, Template, TextList, Wildcard};
pub use value::{Flag, Integer, ParameterType, Resolved, Text, Values};

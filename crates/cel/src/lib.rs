//! Kubernetes' CEL, offline: parses, checks, estimates and evaluates expressions as kube-apiserver does, without a
//! server.
//!
//! ```text
//! source --parse--> Ast --check(Environment)--> Checked --plan--> Program --evaluate(Activation)--> value, cost
//! ```
//!
//! ```
//! use palisade_cel::{Admission, Environment, Minor, Mode, ResultType, eval::{Activation, PER_CALL_LIMIT}, value::Value};
//!
//! let environment = Environment::kubernetes(Minor::DEFAULT, Mode::New).with_admission(&Admission::default());
//! let program = environment.compile("object.spec.replicas <= 3", ResultType::Bool).unwrap();
//!
//! let object = serde_json::json!({"spec": {"replicas": 5}});
//! let activation = Activation::new().bind("object", Value::from_json(&object));
//! let evaluation = program.evaluate(&activation, PER_CALL_LIMIT);
//! assert_eq!(evaluation.result.unwrap().as_bool(), Some(false));
//!
//! let issues = environment.compile("object.spec.hostNetwrok", ResultType::Bool).unwrap_err();
//! assert_eq!(issues[0].message, "must evaluate to bool but got dyn");
//! ```
//!
//! Verdicts, types, places of errors, results and costs are compared with those of the API server's own code
//! (`tests/oracle`), for each [`Minor`]. An expression that this crate cannot evaluate gives an issue of the kind
//! [`IssueKind::Unsupported`], never a "yes".
//!
//! This crate is pure: no I/O, no clock, no environment of the process.
//!
//! Each module uses only modules before it:
//!
//! 1. Basic definitions: `stack`, `minor`, `ast`, `issue`, `types`, `names`, `structural`.
//! 2. Source text: `parse`, `format`, `mutate`.
//! 3. Values and functions: `library`, `value`, `authorizer`, `functions`.
//! 4. Environments and type checks: `environment`, `mutation`, `check`.
//! 5. Evaluation and cost: `eval`, `compile`, `estimate`.
//! 6. Types of the variables of policies: `schema`.
#![warn(missing_docs)]

pub mod ast;
pub mod authorizer;
pub mod check;
mod compile;
pub mod environment;
pub mod estimate;
pub mod eval;
pub mod format;
pub mod functions;
mod issue;
pub(crate) mod library;
mod minor;
pub mod mutate;
mod mutation;
mod names;
pub mod parse;
pub mod schema;
mod stack;
mod structural;
pub mod types;
pub mod value;

pub use ast::Position;
pub use check::ResultType;
pub use environment::{Environment, Mode};
pub use issue::{Issue, IssueKind};
pub use library::{
    double::{to_fixed as float_digits, to_string as float_text},
    quantity::Quantity,
    quote::{is_printable, quote},
    re2::Regex,
    strfmt,
};
pub use minor::{Minor, NotAMinor};
pub use schema::Admission;
pub use stack::with_stack;

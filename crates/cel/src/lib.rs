//! Kubernetes CEL, offline, on the crate `cel`.
//!
//! This crate is the only one that knows the crate `cel`, whose API changes with each minor version. It parses
//! within the API server's limits, tells which names an expression uses, and evaluates it. It has no type
//! checker: an expression that passes here may still be refused by an API server for its types.
//!
//! This crate is pure: no I/O, no clock, no environment.

pub mod ast;
pub mod authorizer;
pub mod check;
pub mod env;
mod environment;
pub mod eval;
mod expression;
pub mod functions;
mod issue;
#[allow(dead_code, reason = "the tables of functions that call it are built on it")]
pub(crate) mod library;
pub mod parse;
mod plain;
mod references;
pub mod schema;
mod stack;
pub mod types;
pub mod value;

pub use environment::{Environment, EvalError};
pub use expression::{Expression, Position, SyntaxError};
pub use issue::{Issue, IssueKind};
pub use plain::Value;
pub use references::References;

//! Proofs about CEL expressions for every object of a kind, without a solver to install.
//!
//! ```text
//! CEL --symbolic--> formulas --clauses--> SAT and conflicts of texts and numbers --> certificate, or a request
//! ```
//!
//! This crate is pure: no I/O, no clock, no environment.
//!
//! Each module uses only modules before it:
//!
//! 1. Formulas: `path`, `formula`, `atom`, `scope`.
//! 2. The types of requests, and expressions as formulas: `universe`, `symbolic`.
//! 3. Clauses: `rup`, `clauses`.
//! 4. Texts and numbers: `property`, `text`, `theory`.
//! 5. Answers: `search`, `decide`, `concrete`, `model`, `question`.

#![warn(missing_docs)]

mod atom;
pub mod clauses;
pub mod concrete;
mod decide;
pub mod formula;
pub mod model;
pub mod path;
pub mod property;
pub mod question;
pub mod rup;
pub mod scope;
pub mod search;
pub mod symbolic;
pub mod text;
pub mod theory;
pub mod universe;

pub use model::Request;
pub use question::{Answer, Operation, Policy, Requests};

#[cfg(test)]
mod tests;

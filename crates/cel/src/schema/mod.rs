//! The types of what policies see: the admission request, the namespace, the composed variables, and objects by their
//! schemas.

mod admission;
mod escape;
mod openapi;
mod warnings;

pub use admission::Admission;
pub use escape::{escape, unescape};
pub use openapi::{Kind, Schemas};
pub use warnings::{Rule, TypeCheck, kinds_to_check};

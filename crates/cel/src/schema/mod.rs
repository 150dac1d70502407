//! The types of the variables of policies: the admission request, the namespace, the composed variables, and objects by
//! their schemas.

mod admission;
mod escape;
mod openapi;
mod structural;
mod warnings;

pub use admission::Admission;
pub use escape::{escape, unescape};
pub use openapi::{Kind, Schemas};
pub use structural::{DeclType, with_metadata};
pub(crate) use structural::{flag, part, properties};
pub use warnings::{Rule, TypeCheck, kinds_to_check};

//! The types of the variables of policies: the admission request, the namespace, the composed variables, and objects by
//! their schemas.

mod admission;
mod decl;
mod openapi;
mod warnings;

pub use crate::{
    names::{escape, unescape},
    structural::with_metadata,
};
pub use admission::Admission;
pub use decl::DeclType;
pub use openapi::{Kind, Schemas};
pub use warnings::{Rule, TypeCheck, kinds_to_check};

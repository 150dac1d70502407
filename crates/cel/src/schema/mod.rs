//! The types of what policies see: the admission request, the namespace, the composed variables, and objects by their
//! schemas.

mod admission;

pub use admission::Admission;

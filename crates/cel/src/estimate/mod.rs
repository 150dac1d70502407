//! What an expression may cost at least and at most, told before it is evaluated: cel-go's estimate (`checker/cost.go`)
//! as kube-apiserver makes it for the rules of CustomResourceDefinitions.
//!
//! The estimate goes by how large values may be. What the expression itself says of sizes is known; those of the input a
//! [`Sizes`] knows, by the way into it. What calls cost is in the tables of functions
//! ([`Function::estimate`](crate::functions::Function::estimate)), beside what they cost when they are evaluated.
//!
//! Where cel-go's own estimate is odd, this one is as odd: it decides which rules an API server takes.

mod coster;

use crate::check::Checked;
pub use crate::functions::estimate::{Call, CallEstimate, Range, Sizes, UnknownSizes};

/// What an expression may cost, in the units of the API server's limits.
///
/// `minor` is the server's.
pub fn estimate(checked: &Checked, minor: u8, sizes: &dyn Sizes) -> Range {
    coster::Coster::new(checked, minor, sizes).cost(&checked.ast.root)
}

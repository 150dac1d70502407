//! The lowest and the highest cost of an expression, before it is evaluated: cel-go's estimate (`checker/cost.go`) as
//! kube-apiserver makes it for the rules of CustomResourceDefinitions.
//!
//! The estimate depends on how large values may be. The expression determines some sizes; a [`Sizes`] knows those of
//! the input, by the path into it. The tables of functions have the estimates of calls
//! ([`Function::estimate`](crate::functions::Function::estimate)), beside their costs.
//!
//! Where cel-go's own estimate is odd, this one is as odd: it decides which rules an API server accepts.

mod coster;
mod variables;

pub use crate::functions::estimate::{Call, CallEstimate, Range, Sizes, UnknownSizes};
use crate::{Minor, check::Checked};

/// The range of an expression's cost, in the units of the API server's limits.
///
/// `minor` is the server's minor version.
pub fn estimate(checked: &Checked, minor: Minor, sizes: &dyn Sizes) -> Range {
    coster::Coster::new(checked, minor, sizes).cost(&checked.ast.root)
}

//! The function library as tables. One row is one overload: its types, the Kubernetes minor that brought it, how it is
//! evaluated and what that costs. The checker, the evaluator and the documentation read the same rows; adding a
//! function means adding rows in one file of this folder.

use crate::types::Decl;

/// A function by name, with all its overloads.
#[derive(Debug)]
pub struct Function {
    /// The name as the syntax tree has it (`size`, `_+_`, `ip.isCanonical`).
    pub name: &'static str,
    /// In the order in which cel-go declares them: it is the order of inference and of error messages.
    pub overloads: &'static [Overload],
}

/// One overload of a function.
#[derive(Debug)]
pub struct Overload {
    /// cel-go's id (`size_string`).
    pub id: &'static str,
    /// Whether it is called on a receiver (`x.f()`), which is then the first of `args`.
    pub member: bool,
    /// The types of the arguments, the receiver first.
    pub args: &'static [Decl],
    /// The type of the result.
    pub result: Decl,
    /// The first minor of Kubernetes 1.x whose environment has it.
    pub since: u8,
    /// The last minor that has it, if one took it away.
    pub until: Option<u8>,
}

//! The function library as tables. One row is one overload: its types, the Kubernetes minor that brought it, how it is
//! evaluated and what that costs. The checker, the evaluator and the documentation read the same rows; adding a
//! function means adding rows in one file of this folder.

pub mod authorizer;
pub mod cidr;
pub mod comprehensions;
pub mod ext_lists;
pub mod format;
pub mod ip;
pub mod lists;
pub mod lists_v1;
pub mod optionals;
pub mod quantity;
pub mod regex;
pub mod semver;
pub mod sets;
pub mod stdlib;
pub mod strings;
pub mod url;

use crate::types::Decl;

/// All functions, library by library in the order in which the API server adds them (apiserver
/// `pkg/cel/environment/base.go`). A name may come in several libraries: its overloads follow one another in this order.
pub const LIBRARIES: &[&[Function]] = &[
    stdlib::FUNCTIONS,
    url::FUNCTIONS,
    regex::FUNCTIONS,
    lists::FUNCTIONS,
    authorizer::FUNCTIONS,
    optionals::FUNCTIONS,
    quantity::FUNCTIONS,
    strings::FUNCTIONS,
    sets::FUNCTIONS,
    ip::FUNCTIONS,
    cidr::FUNCTIONS,
    format::FUNCTIONS,
    comprehensions::FUNCTIONS,
    semver::FUNCTIONS,
    ext_lists::FUNCTIONS,
    lists_v1::FUNCTIONS,
];

/// A function by name, with its overloads in one library.
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
    /// The first minor of Kubernetes 1.x whose environment has it; the environment for new expressions is that of the
    /// minor before the server's. 0 is "always".
    pub since: u8,
    /// The last minor of the server itself that has it, if its cel-go took it away, whatever the environment.
    pub until: Option<u8>,
}

impl Overload {
    const fn new(id: &'static str, member: bool, args: &'static [Decl], result: Decl) -> Self {
        Self { id, member, args, result, since: 0, until: None }
    }

    const fn since(mut self, minor: u8) -> Self {
        self.since = minor;
        self
    }

    const fn until(mut self, minor: u8) -> Self {
        self.until = Some(minor);
        self
    }
}

/// A row: an overload that is called as `f(x)`.
const fn function(id: &'static str, args: &'static [Decl], result: Decl) -> Overload {
    Overload::new(id, false, args, result)
}

/// A row: an overload that is called as `x.f()`.
const fn member(id: &'static str, args: &'static [Decl], result: Decl) -> Overload {
    Overload::new(id, true, args, result)
}

/// Type parameters by the names that cel-go gives them.
const A: Decl = Decl::Param("A");
const B: Decl = Decl::Param("B");
const K: Decl = Decl::Param("K");
const T: Decl = Decl::Param("T");
const V: Decl = Decl::Param("V");

//! The plan of an evaluation: a tree in which names, overloads and constants are resolved (cel-go
//! `interpreter/planner.go`).

use std::sync::Arc;

use crate::{
    functions::{Cost, Eval, Overload},
    library::re2::Regex,
    value::{Entries, Value},
};

use super::{Error, Watch};

/// A step that has a value.
#[derive(Debug)]
pub(super) enum Node {
    Const(Result<Value<'static>, Error>),
    Attribute(Box<Attribute>),
    /// `has(x.f)`. The attribute's last qualifier is the test.
    Test(Box<Attribute>),
    And(Vec<Node>),
    Or(Vec<Node>),
    /// `==`, or `!=` if negated.
    Equal(Box<[Node; 2]>, bool),
    Call(Box<Call>),
    NotStrictlyFalse(Box<Node>),
    /// `x.or(y)`, or `x.orValue(y)` if the value is wanted.
    OrElse {
        sides: Box<[Node; 2]>,
        unwrap: bool,
        /// Whether what is not an optional is rejected, as from cel-go 0.29 on, or the result.
        strict: bool,
    },
    /// `x in [...]` of constants.
    Member(Box<Node>, Box<Entries<'static>>),
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Struct(Arc<str>, Vec<(Arc<str>, Node, bool)>),
    Fold(Box<Fold>),
    /// A part whose outcomes are remembered.
    Watched(Box<Node>, Arc<Watch>),
}

/// A value and how to get at something in it (cel-go `interpreter/attributes.go`).
#[derive(Debug)]
pub(super) struct Attribute {
    pub base: Base,
    pub qualifiers: Vec<Qualifier>,
}

#[derive(Debug)]
pub(super) enum Base {
    Global(Arc<str>),
    Local(usize),
    Relative(Node),
    /// `c ? x : y`
    Conditional(Node, Box<[Attribute; 2]>),
}

#[derive(Debug)]
pub(super) struct Qualifier {
    pub key: Key,
    pub optional: bool,
}

#[derive(Debug)]
pub(super) enum Key {
    Const(Value<'static>),
    /// Only whether it is there.
    Test(Value<'static>),
    /// A field of what the checker knows to be an `Object`.
    Field(Arc<str>),
    /// Only whether that is there.
    TestField(Arc<str>),
    Dynamic(Attribute),
}

#[derive(Debug)]
pub(super) struct Call {
    pub function: Arc<str>,
    pub target: Target,
    pub args: Vec<Node>,
    /// Whether arguments behind one that fails are not evaluated.
    pub sequential: bool,
    pub cost: Cost,
    /// Whether the first argument is the accumulator of a fold, which is not used again.
    pub consumes: Option<usize>,
}

/// The function that a call evaluates.
#[derive(Debug)]
pub(super) enum Target {
    /// A function that looks at the types itself.
    Dynamic(Eval),
    /// The only overload that the checker thinks possible.
    Exact(&'static Overload),
    /// The first overload that fits the arguments.
    ByName(Vec<&'static Overload>),
    Regex(RegexFunction, Regex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegexFunction {
    Matches,
    Find,
    FindAll,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct Fold {
    pub range: Node,
    pub init: Node,
    pub condition: Node,
    pub step: Node,
    pub result: Node,
    /// The slot of the accumulator; the variables follow.
    pub slot: usize,
    pub two: bool,
}

//! The outcomes of the parts of an expression, over all its evaluations, to measure coverage.
//!
//! An expression is watched if it was compiled in an [`Environment`](crate::Environment) that is
//! [`watching`](crate::Environment::watching). Otherwise its plan has no watches, and evaluating it takes no extra
//! time. The CEL cost is the same in both cases.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use crate::{
    ast::{NodeId, Position},
    value::{Error, Value},
};

/// The kind of a watched part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// The whole expression.
    Whole,
    /// An operand of `&&`, or what `all` asks of each element. It decides if it is false.
    And,
    /// An operand of `||`, or what `exists` asks of each element. It decides if it is true.
    Or,
    /// The condition before a `?`, and the filters of macros: which branch is taken.
    Condition,
}

/// A part of an expression, and what it came to so far.
#[derive(Debug)]
pub struct Watch {
    /// The part.
    pub node: NodeId,
    /// Where it begins, or for a condition where its operator is.
    pub position: Position,
    /// The kind of part.
    pub kind: WatchKind,
    seen: AtomicU8,
}

/// The outcomes that a part had at least once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// True, or a value that is not a bool.
    pub yes: bool,
    /// False.
    pub no: bool,
    /// An error.
    pub error: bool,
}

impl Seen {
    /// Whether it was evaluated at all.
    pub fn any(self) -> bool {
        self.yes || self.no || self.error
    }
}

const YES: u8 = 1;
const NO: u8 = 2;
const ERROR: u8 = 4;

impl Watch {
    pub(super) fn new(node: NodeId, position: Position, kind: WatchKind) -> Arc<Self> {
        Arc::new(Self { node, position, kind, seen: AtomicU8::new(0) })
    }

    /// The outcomes so far, in all threads that have evaluated the expression.
    pub fn seen(&self) -> Seen {
        let seen = self.seen.load(Ordering::Relaxed);
        Seen { yes: seen & YES != 0, no: seen & NO != 0, error: seen & ERROR != 0 }
    }

    pub(super) fn note(&self, outcome: &Result<Value<'_>, Error>) {
        let seen = match outcome {
            Ok(Value::Bool(false)) => NO,
            Ok(_) => YES,
            Err(_) => ERROR,
        };
        self.seen.fetch_or(seen, Ordering::Relaxed);
    }
}

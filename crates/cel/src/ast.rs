//! The syntax tree: CEL after macro expansion (cel-spec `syntax.proto`, message `Expr`).
//!
//! It is a tree of our own, so that checker and evaluator do not depend on the parser's crate, and so that each node
//! has the position that cel-go reports for it.

use std::{fmt, sync::Arc};

/// The number of a node in its expression, dense from 0: side tables are vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index into a side table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place in a source, both counted from 1 (cel-go prints columns so, and counts code points).
///
/// [`Position::NONE`] is before all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in code points.
    pub column: usize,
}

impl Position {
    /// Where what concerns the whole source is reported (cel-go `common.NoLocation`, printed `-1:0`).
    pub const NONE: Self = Self { line: 0, column: 0 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("-1:0");
        }
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The root of the tree.
    pub root: Node,
    /// The position that cel-go reports for each node, by [`NodeId`].
    pub positions: Vec<Position>,
}

impl Ast {
    /// Where a node is.
    pub fn position(&self, id: NodeId) -> Position {
        self.positions.get(id.index()).copied().unwrap_or(Position { line: 1, column: 1 })
    }
}

/// A node. Two are equal that are the same expression, wherever they stand.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// The expression.
    pub expr: Expr,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr
    }
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A scalar constant.
    Literal(Literal),
    /// A variable, or the name of a type. A leading dot (`.x`) is kept.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)` if `test`.
    Select {
        /// The operand of the selection.
        operand: Box<Node>,
        /// The field as it is written, not unescaped.
        field: Arc<str>,
        /// Whether only its presence is asked.
        test: bool,
    },
    /// A call of a function or operator; operators by their internal names (`_+_`, `_?._`, `@in`).
    Call {
        /// The function.
        function: Arc<str>,
        /// The receiver of a member call.
        target: Option<Box<Node>>,
        /// The arguments, without the receiver.
        args: Vec<Node>,
    },
    /// `[a, ?b]`.
    List {
        /// The elements.
        elements: Vec<Node>,
        /// The indices of those that are optional, ascending.
        optional: Vec<usize>,
    },
    /// `{k: v, ?k: v}`.
    Map(Vec<Entry>),
    /// `Name{field: v}`.
    Struct {
        /// The name of the message type.
        name: Arc<str>,
        /// The fields.
        fields: Vec<FieldInit>,
    },
    /// The expansion of a macro such as `all`.
    Comprehension(Box<Comprehension>),
}

/// A scalar constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true`.
    Bool(bool),
    /// `1`.
    Int(i64),
    /// `1u`.
    Uint(u64),
    /// `1.0`.
    Double(f64),
    /// `'a'`.
    String(Arc<str>),
    /// `b'a'`.
    Bytes(Arc<[u8]>),
}

/// An entry of a map literal.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The entry's own number.
    pub id: NodeId,
    /// The key.
    pub key: Node,
    /// The value.
    pub value: Node,
    /// Whether the value is an optional whose absence omits the entry.
    pub optional: bool,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.value, self.optional) == (&other.key, &other.value, other.optional)
    }
}

/// A field of a message literal.
#[derive(Clone, Debug)]
pub struct FieldInit {
    /// The field's own number.
    pub id: NodeId,
    /// The field's name.
    pub field: Arc<str>,
    /// The value.
    pub value: Node,
    /// Whether the value is an optional whose absence omits the field.
    pub optional: bool,
}

impl PartialEq for FieldInit {
    fn eq(&self, other: &Self) -> bool {
        (&self.field, &self.value, self.optional) == (&other.field, &other.value, other.optional)
    }
}

/// A fold over a list or map (cel-spec `Expr.Comprehension`).
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map that it iterates over.
    pub range: Node,
    /// The element of a list, or the key of a map; with `second` the index of a list.
    pub variable: Arc<str>,
    /// The element of a list, or the value of a map, in two-variable comprehensions.
    pub second: Option<Arc<str>>,
    /// The accumulator (`@result`).
    pub accumulator: Arc<str>,
    /// The accumulator's first value.
    pub init: Node,
    /// Whether to go on.
    pub condition: Node,
    /// The accumulator's next value.
    pub step: Node,
    /// The value of the whole.
    pub result: Node,
}

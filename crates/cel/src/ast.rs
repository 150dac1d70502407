//! The syntax tree: CEL after macro expansion (cel-spec `syntax.proto`, message `Expr`).
//!
//! It is a tree of our own, so that checker and evaluator do not depend on the parser's crate, and so that each node
//! has the position that cel-go reports for it.

use std::{fmt, mem, sync::Arc};

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

impl Node {
    /// The nodes one level below, in the order of the source. Those of a comprehension are its range, first value,
    /// condition, step and result.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = &Self> {
        let none = [None; 5];
        let (some, list, entries, fields): (_, &[Self], &[Entry], &[FieldInit]) = match &self.expr {
            Expr::Literal(_) | Expr::Ident(_) => (none, &[], &[], &[]),
            Expr::Select { operand, .. } => ([Some(&**operand), None, None, None, None], &[], &[], &[]),
            Expr::Call { target, args, .. } => ([target.as_deref(), None, None, None, None], args, &[], &[]),
            Expr::List { elements, .. } => (none, elements, &[], &[]),
            Expr::Map(entries) => (none, &[], entries, &[]),
            Expr::Struct { fields, .. } => (none, &[], &[], fields),
            Expr::Comprehension(of) => {
                ([&of.range, &of.init, &of.condition, &of.step, &of.result].map(Some), &[], &[], &[])
            }
        };
        let entries = entries.iter().flat_map(|entry| [&entry.key, &entry.value]);
        some.into_iter().flatten().chain(list).chain(entries).chain(fields.iter().map(|field| &field.value))
    }

    /// As [`Self::children`], to change them.
    pub fn children_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        let none = || [None, None, None, None, None];
        let one = |node| [node, None, None, None, None];
        let (some, list, entries, fields): (_, &mut [Self], &mut [Entry], &mut [FieldInit]) = match &mut self.expr {
            Expr::Literal(_) | Expr::Ident(_) => (none(), &mut [], &mut [], &mut []),
            Expr::Select { operand, .. } => (one(Some(&mut **operand)), &mut [], &mut [], &mut []),
            Expr::Call { target, args, .. } => (one(target.as_deref_mut()), args, &mut [], &mut []),
            Expr::List { elements, .. } => (none(), elements, &mut [], &mut []),
            Expr::Map(entries) => (none(), &mut [], entries, &mut []),
            Expr::Struct { fields, .. } => (none(), &mut [], &mut [], fields),
            Expr::Comprehension(of) => {
                let Comprehension { range, init, condition, step, result, .. } = &mut **of;
                ([range, init, condition, step, result].map(Some), &mut [], &mut [], &mut [])
            }
        };
        let entries = entries.iter_mut().flat_map(|entry| [&mut entry.key, &mut entry.value]);
        some.into_iter().flatten().chain(list).chain(entries).chain(fields.iter_mut().map(|field| &mut field.value))
    }

    /// This node and all nodes below, each before its children.
    pub fn descendants(&self) -> impl Iterator<Item = &Self> {
        let mut open = vec![self];
        std::iter::from_fn(move || {
            let node = open.pop()?;
            open.extend(node.children().rev());
            Some(node)
        })
    }

    /// This node with each child changed.
    #[must_use]
    pub fn map_children(mut self, change: &mut dyn FnMut(Self) -> Self) -> Self {
        for child in self.children_mut() {
            let taken = mem::replace(child, Self { id: child.id, expr: Expr::Literal(Literal::Null) });
            *child = change(taken);
        }
        self
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Minor, Mode, parse::parse};

    /// Names and literals, in the order in which they are visited.
    fn leaves(root: &Node) -> String {
        let leaf = |node: &Node| match &node.expr {
            Expr::Ident(name) => Some(name.to_string()),
            Expr::Literal(Literal::Int(value)) => Some(value.to_string()),
            _ => None,
        };
        root.descendants().filter_map(leaf).collect::<Vec<_>>().join(" ")
    }

    fn increment(node: Node) -> Node {
        match node.expr {
            Expr::Literal(Literal::Int(value)) => Node { expr: Expr::Literal(Literal::Int(value + 1)), ..node },
            expr => Node { expr, ..node }.map_children(&mut increment),
        }
    }

    #[test]
    fn nodes_are_visited_in_the_order_of_the_source() {
        let environment = Environment::kubernetes(Minor::DEFAULT, Mode::New);
        for (source, expected, incremented) in [
            ("a.b(1, c[2])", "a 1 c 2", "a 2 c 3"),
            ("[1, {2: a, 3: 4}, A{x: 5, y: b}]", "1 2 a 3 4 5 b", "2 3 a 4 5 6 b"),
            ("has(a.b) ? 1 : -a", "a 1 a", "a 2 a"),
            // Range, first value, condition, step, result.
            ("[1].map(x, x + 2)", "1 @result x 2 @result", "2 @result x 3 @result"),
        ] {
            let root = parse(source, environment.syntax()).unwrap().root;
            assert_eq!(leaves(&root), expected, "{source}");
            assert_eq!(root.children().rev().count(), root.children().count());
            assert_eq!(leaves(&increment(root)), incremented, "{source}");
        }
    }
}

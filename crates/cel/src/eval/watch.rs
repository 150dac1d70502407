//! The outcomes of the parts of an expression, over all its evaluations, to measure coverage.
//!
//! An expression is watched if it was compiled in an [`Environment`](crate::Environment) that is
//! [`watching`](crate::Environment::watching). Otherwise its plan has no watches, and evaluating it takes no extra
//! time. The CEL cost is the same in both cases.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use super::{machine::Outcome, node::Node};
use crate::{
    ast::{self, Ast, Expr, NodeId, Position},
    value::Value,
};

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// The whole expression.
    Whole,
    /// An operand of `&&`, or what `all` asks of each element. It decides if it is false.
    And,
    /// An operand of `||`, or what `exists` asks of each element. It decides if it is true.
    Or,
    /// What stands before a `?`, and the filters of macros: which branch is taken.
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

/// What a part came to at least once.
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
    fn new(node: NodeId, position: Position, kind: WatchKind) -> Arc<Self> {
        Arc::new(Self { node, position, kind, seen: AtomicU8::new(0) })
    }

    /// The outcomes so far, in all threads that have evaluated the expression.
    pub fn seen(&self) -> Seen {
        let seen = self.seen.load(Ordering::Relaxed);
        Seen { yes: seen & YES != 0, no: seen & NO != 0, error: seen & ERROR != 0 }
    }

    pub(super) fn note(&self, outcome: &Outcome<'_>) {
        let seen = match outcome {
            Ok(Value::Bool(false)) => NO,
            Ok(_) => YES,
            Err(_) => ERROR,
        };
        self.seen.fetch_or(seen, Ordering::Relaxed);
    }
}

/// The watches of an expression that is planned.
pub(super) struct Watches<'a> {
    ast: &'a Ast,
    all: Vec<Arc<Watch>>,
}

impl<'a> Watches<'a> {
    pub fn new(ast: &'a Ast) -> Self {
        Self { ast, all: Vec::new() }
    }

    /// The plan of the whole expression, watched, and all watches: by position, the whole first.
    pub fn finish(mut self, root: Node) -> (Node, Vec<Arc<Watch>>) {
        self.all.sort_by_key(|watch| (watch.position, watch.node));
        let whole = Watch::new(self.ast.root.id, start(self.ast, &self.ast.root), WatchKind::Whole);
        self.all.insert(0, Arc::clone(&whole));
        (Node::Watched(Box::new(root), whole), self.all)
    }

    /// The planned arguments of a call; it watches those with a meaningful outcome.
    pub fn arguments(&mut self, call: NodeId, function: &str, args: &[ast::Node], planned: Vec<Node>) -> Vec<Node> {
        let kind = match (function, args.len()) {
            ("_&&_", _) => WatchKind::And,
            ("_||_", _) => WatchKind::Or,
            ("_?_:_", 3) => WatchKind::Condition,
            _ => return planned,
        };
        let watched = if kind == WatchKind::Condition { 1 } else { args.len() };
        let each = planned.into_iter().zip(args).enumerate().map(|(index, (node, arg))| {
            if index >= watched || !tells(arg, kind) {
                return node;
            }
            let position = if kind == WatchKind::Condition { self.ast.position(call) } else { start(self.ast, arg) };
            let watch = Watch::new(arg.id, position, kind);
            self.all.push(Arc::clone(&watch));
            Node::Watched(Box::new(node), watch)
        });
        each.collect()
    }
}

/// Whether the outcomes of an operand say more than those of its own operands, or of nothing.
fn tells(arg: &ast::Node, kind: WatchKind) -> bool {
    match &arg.expr {
        Expr::Literal(_) => false,
        // The accumulator of a macro.
        Expr::Ident(name) => !name.starts_with('@'),
        Expr::Call { function, .. } => kind == WatchKind::Condition || !matches!(&**function, "_&&_" | "_||_"),
        _ => true,
    }
}

/// Where a node begins: cel-go places an operator's call at the operator.
fn start(ast: &Ast, node: &ast::Node) -> Position {
    let mut least = ast.position(node.id);
    // Calls without a receiver, and messages, are placed at their bracket, behind the name.
    let name = match &node.expr {
        Expr::Select { test: true, .. } => "has",
        Expr::Call { function, target: None, .. } if function.starts_with(char::is_alphabetic) => function,
        Expr::Struct { name, .. } => name,
        _ => "",
    };
    least.column = least.column.saturating_sub(name.chars().count()).max(least.column.min(1));
    let mut visit = |child: &ast::Node| least = least.min(start(ast, child));
    match &node.expr {
        Expr::Select { operand, .. } => visit(operand),
        Expr::Call { target, args, .. } => target.as_deref().into_iter().chain(args).for_each(visit),
        Expr::Comprehension(of) => visit(&of.range),
        // What is in brackets begins behind them.
        Expr::Literal(_) | Expr::Ident(_) | Expr::List { .. } | Expr::Map(_) | Expr::Struct { .. } => {}
    }
    least
}

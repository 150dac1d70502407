//! The watched parts of an expression.

use std::sync::Arc;

use super::{
    node::Node,
    watch::{Watch, WatchKind},
};
use crate::ast::{self, Ast, Expr, NodeId, Position};

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
        Expr::Select { .. } | Expr::Call { .. } => node.children().for_each(visit),
        Expr::Comprehension(of) => visit(&of.range),
        // What is in brackets begins behind them.
        Expr::Literal(_) | Expr::Ident(_) | Expr::List { .. } | Expr::Map(_) | Expr::Struct { .. } => {}
    }
    least
}

//! The grammar by recursive descent, and the tree that cel-go's visitor makes of it.

use std::sync::Arc;

use super::{
    MAX_DEPTH, MAX_NODES, Syntax,
    lexer::{self, Kind, Token, escape},
};
use crate::{
    ast::{Ast, Expr, Literal, Node, NodeId, Position},
    issue::{Issue, IssueKind},
    stack::with_stack,
};

/// How ANTLR lists what begins an operand.
pub(super) const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                       BYTES, IDENTIFIER}";

/// The parser gave up; why is among the issues.
pub(super) struct Stop;

/// A node, and how deep cel-go's visitor goes to its leaves.
pub(super) struct Parsed {
    pub node: Node,
    pub height: u32,
}

/// How often each recursive rule is entered and not left.
#[derive(Clone, Copy, Default)]
pub(super) struct Depth {
    expr: u32,
    relation: u32,
    calc: u32,
}

pub(super) struct Parser<'a> {
    pub source: &'a str,
    pub tokens: Vec<Token<'a>>,
    pub at: usize,
    positions: Vec<Position>,
    pub issues: Vec<Issue>,
    syntax: Syntax,
    /// Whether macros become what they stand for.
    pub expands: bool,
}

pub(super) type Result<T> = std::result::Result<T, Stop>;

impl<'a> Parser<'a> {
    pub fn new(source: &'a str, syntax: Syntax) -> Self {
        let (tokens, issues) = lexer::tokens(source, !syntax.before_1_33);
        Self { source, tokens, at: 0, positions: Vec::new(), issues, syntax, expands: true }
    }

    pub fn parse(mut self) -> std::result::Result<Ast, Vec<Issue>> {
        let parsed = self.expr(Depth::default()).and_then(|parsed| {
            self.end()?;
            Ok(parsed)
        });
        match parsed {
            Ok(parsed) if self.issues.is_empty() => Ok(Ast { root: parsed.node, positions: self.positions }),
            _ => Err(self.issues),
        }
    }

    pub fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// An error that does not keep cel-go from reading on.
    fn report(&mut self, position: Position, message: impl Into<String>) {
        self.issues.push(Issue::new(IssueKind::Syntax, position, message));
    }

    /// The placeholder for a macro with an error; no macro takes it for a name.
    pub fn macro_error(&mut self, position: Position, message: impl Into<String>) -> Node {
        self.issues.push(Issue::new(IssueKind::Macro, position, message));
        self.node(position, Expr::Literal(Literal::Null))
    }

    /// Reports something that the API server accepts and this crate does not.
    pub(super) fn unsupported(&mut self, position: Position, message: &str) -> Node {
        self.issues.push(Issue::new(IssueKind::Unsupported, position, message));
        self.node(position, Expr::Literal(Literal::Null))
    }

    /// The placeholder for a reported error; no macro takes it for a name.
    pub(super) fn error(&mut self, position: Position, message: impl Into<String>) -> Node {
        self.report(position, message);
        self.node(position, Expr::Literal(Literal::Null))
    }

    pub fn id(&mut self, position: Position) -> NodeId {
        let id = NodeId(u32::try_from(self.positions.len()).unwrap_or(u32::MAX));
        self.positions.push(position);
        id
    }

    pub fn node(&mut self, position: Position, expr: Expr) -> Node {
        Node { id: self.id(position), expr }
    }

    pub fn position(&self, node: &Node) -> Position {
        self.positions[node.id.index()]
    }

    pub fn call(&mut self, position: Position, function: &str, args: Vec<Node>) -> Node {
        self.node(position, Expr::Call { function: function.into(), target: None, args })
    }

    /// A node that cel-go's visitor counts.
    fn counted(&mut self, node: Node, below: u32) -> Result<Parsed> {
        let height = below + 1;
        if height > MAX_DEPTH {
            return Err(self.limit("max recursion depth exceeded".to_owned()));
        }
        if self.positions.len() > MAX_NODES {
            let message = format!("the expression has more than {MAX_NODES} nodes after macro expansion");
            self.issues.push(Issue::new(IssueKind::Unsupported, Position::NONE, message));
            return Err(Stop);
        }
        Ok(Parsed { node, height })
    }

    fn binary(&mut self, operator: Token<'_>, left: Parsed, right: Parsed) -> Result<Parsed> {
        let node = self.call(operator.position, &function_of(operator.text), vec![left.node, right.node]);
        self.counted(node, left.height.max(right.height))
    }

    fn enter(&mut self, depth: &mut u32) -> Result<()> {
        *depth += 1;
        if *depth > MAX_DEPTH {
            return Err(self.limit(format!("expression recursion limit exceeded: {MAX_DEPTH}")));
        }
        Ok(())
    }

    // Rules.

    pub(super) fn expr(&mut self, depth: Depth) -> Result<Parsed> {
        with_stack(|| self.conditional(depth))
    }

    fn conditional(&mut self, mut depth: Depth) -> Result<Parsed> {
        self.enter(&mut depth.expr)?;
        let condition = self.or(depth)?;
        let Some(operator) = self.take("?") else { return Ok(condition) };
        let yes = self.or(depth)?;
        self.expect(":", "':'")?;
        let no = self.expr(depth)?;
        let height = condition.height.max(yes.height).max(no.height);
        let node = self.call(operator.position, "_?_:_", vec![condition.node, yes.node, no.node]);
        self.counted(node, height)
    }

    fn or(&mut self, depth: Depth) -> Result<Parsed> {
        self.logic("||", "_||_", |parser| parser.logic("&&", "_&&_", |parser| parser.relation(depth)))
    }

    /// Terms between equal operators, as the balanced tree that cel-go makes of them (`parser/helper.go`
    /// `logicManager`).
    fn logic(
        &mut self,
        operator: &'static str,
        function: &str,
        mut term: impl FnMut(&mut Self) -> Result<Parsed>,
    ) -> Result<Parsed> {
        let first = term(self)?;
        let mut height = first.height;
        let mut operators = Vec::new();
        let mut terms = vec![Some(first.node)];
        while let Some(token) = self.take(operator) {
            operators.push(token.position);
            let next = term(self)?;
            height = height.max(next.height);
            terms.push(Some(next.node));
        }
        let node = self.balance(function, &operators, &mut terms);
        Ok(Parsed { node, height })
    }

    /// `terms` has one more than `operators`, and each is taken once.
    fn balance(&mut self, function: &str, operators: &[Position], terms: &mut [Option<Node>]) -> Node {
        if operators.is_empty() {
            let term = terms.first_mut().and_then(Option::take);
            return term.unwrap_or_else(|| self.node(Position::NONE, Expr::Literal(Literal::Null)));
        }
        let middle = operators.len() / 2;
        let left = self.balance(function, &operators[..middle], &mut terms[..=middle]);
        let right = self.balance(function, &operators[middle + 1..], &mut terms[middle + 1..]);
        self.call(operators[middle], function, vec![left, right])
    }

    fn relation(&mut self, mut depth: Depth) -> Result<Parsed> {
        self.enter(&mut depth.relation)?;
        let mut left = self.calc(depth, 0)?;
        while let Kind::Fixed("<" | "<=" | ">=" | ">" | "==" | "!=" | "in") = self.peek(0) {
            let operator = self.next();
            let mut inner = depth;
            self.enter(&mut inner.relation)?;
            let right = self.calc(inner, 0)?;
            left = self.binary(operator, left, right)?;
        }
        Ok(left)
    }

    /// Operators that bind at least as tightly as `least`: 1 for `+ -`, 2 for `* / %`.
    fn calc(&mut self, mut depth: Depth, least: u32) -> Result<Parsed> {
        self.enter(&mut depth.calc)?;
        let mut left = self.unary(depth)?;
        loop {
            let strength = match self.peek(0) {
                Kind::Fixed("*" | "/" | "%") => 2,
                Kind::Fixed("+" | "-") => 1,
                _ => return Ok(left),
            };
            if strength < least {
                return Ok(left);
            }
            let operator = self.next();
            let right = self.calc(depth, strength + 1)?;
            left = self.binary(operator, left, right)?;
        }
    }

    fn unary(&mut self, depth: Depth) -> Result<Parsed> {
        if !starts_operand(self.peek(0)) {
            if !starts_operand(self.peek(1)) {
                return Err(self.mismatch(OPERAND));
            }
            // ANTLR drops one token if it can go on with the next.
            let token = self.next();
            let _ = self.syntax_error(token, format!("extraneous input '{}' expecting {OPERAND}", escape(token.text)));
        }
        let (sign, function) = match (self.peek(0), self.peek(1)) {
            (Kind::Fixed("!"), _) => ("!", "!_"),
            // A minus before a number is part of it.
            (Kind::Fixed("-"), next) if !matches!(next, Kind::Int | Kind::Double) => ("-", "-_"),
            _ => return self.member(depth),
        };
        let first = self.token().position;
        let mut odd = false;
        while self.take(sign).is_some() {
            odd = !odd;
        }
        let operand = self.member(depth)?;
        if !odd {
            return Ok(operand);
        }
        let node = self.call(first, function, vec![operand.node]);
        Ok(Parsed { node, height: operand.height })
    }

    fn member(&mut self, depth: Depth) -> Result<Parsed> {
        let mut operand = self.primary(depth)?;
        loop {
            operand = match self.peek(0) {
                Kind::Fixed(".") => self.dot(operand, depth)?,
                Kind::Fixed("[") => self.index(operand, depth)?,
                _ => return Ok(operand),
            };
        }
    }

    fn dot(&mut self, operand: Parsed, depth: Depth) -> Result<Parsed> {
        let dot = self.next();
        let optional = self.take("?").is_some();
        let name = self.token();
        if !matches!(name.kind, Kind::Ident | Kind::Escaped) {
            let message = match name.text {
                "true" | "false" | "null" if !optional => {
                    format!("mismatched input '{}' expecting IDENTIFIER", name.text)
                }
                text if optional => {
                    format!("mismatched input '{}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}", escape(text))
                }
                _ => self.no_alternative(dot),
            };
            return Err(self.syntax_error(name, message));
        }
        self.next();
        if !optional && name.kind == Kind::Ident && self.peek(0) == Kind::Fixed("(") {
            let open = self.next();
            let (args, height) = self.args(depth)?;
            let height = height.max(operand.height);
            let node = self.call_or_macro(open.position, name.text, Some(operand.node), args);
            return self.counted(node, height);
        }
        let field: Arc<str> = self.field_name(name);
        let node = if optional {
            let field = self.node(name.position, Expr::Literal(Literal::String(field)));
            self.call(dot.position, "_?._", vec![operand.node, field])
        } else {
            self.node(dot.position, Expr::Select { operand: Box::new(operand.node), field, test: false })
        };
        self.counted(node, operand.height)
    }

    pub(super) fn field_name(&mut self, token: Token<'_>) -> Arc<str> {
        if token.kind != Kind::Escaped {
            return token.text.into();
        }
        if !self.syntax.escaped_names {
            self.report(token.position, "unsupported syntax: '`'");
        }
        token.text.trim_matches('`').into()
    }

    fn index(&mut self, operand: Parsed, depth: Depth) -> Result<Parsed> {
        let open = self.next();
        let function = if self.take("?").is_some() { "_[?_]" } else { "_[_]" };
        let index = self.expr(depth)?;
        self.expect("]", "']'")?;
        let node = self.call(open.position, function, vec![operand.node, index.node]);
        self.counted(node, operand.height.max(index.height))
    }

    /// Arguments up to and with the closing parenthesis, and their height.
    pub(super) fn args(&mut self, depth: Depth) -> Result<(Vec<Node>, u32)> {
        let (mut args, mut height) = (Vec::new(), 0);
        if self.take(")").is_some() {
            return Ok((args, height));
        }
        loop {
            let arg = self.expr(depth)?;
            height = height.max(arg.height);
            args.push(arg.node);
            if self.take(",").is_none() {
                self.expect(")", "{')', ','}")?;
                return Ok((args, height));
            }
        }
    }
}

/// The function that an operator calls (`common/operators`).
fn function_of(operator: &str) -> String {
    if operator == "in" { "@in".to_owned() } else { format!("_{operator}_") }
}

fn starts_operand(kind: Kind) -> bool {
    match kind {
        Kind::Fixed(text) => matches!(text, "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null"),
        Kind::End | Kind::Escaped => false,
        _ => true,
    }
}

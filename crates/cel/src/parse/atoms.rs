//! The parts of expressions: literals, names, calls, lists, maps and messages.

use super::{
    lexer::{Kind, Token},
    literal,
    parser::{Depth, OPERAND, Parsed, Parser, Result},
};
use crate::{
    ast::{Entry, Expr, FieldInit, Literal, Node, Position},
    names::RESERVED,
};

impl Parser<'_> {
    pub(super) fn primary(&mut self, depth: Depth) -> Result<Parsed> {
        let token = self.token();
        let node = match token.kind {
            Kind::Fixed("(") => {
                self.next();
                let inner = self.expr(depth)?;
                self.expect(")", "')'")?;
                return Ok(inner);
            }
            Kind::Fixed("[") => return self.list(depth),
            Kind::Fixed("{") => return self.map(depth),
            Kind::Fixed(".") | Kind::Ident => return self.name(depth),
            Kind::Fixed("-") if matches!(self.peek(1), Kind::Int | Kind::Double) => {
                self.next();
                let number = self.next();
                self.number(token.position, true, number)
            }
            Kind::Fixed("-") => {
                self.next();
                let message = self.no_alternative(token);
                return Err(self.syntax_error(self.token(), message));
            }
            Kind::End | Kind::Escaped | Kind::Fixed(_) if !matches!(token.text, "true" | "false" | "null") => {
                return Err(self.mismatch(OPERAND));
            }
            _ => {
                self.next();
                self.literal(token)
            }
        };
        Ok(Parsed { node, height: 0 })
    }

    fn number(&mut self, start: Position, negative: bool, token: Token<'_>) -> Node {
        let (value, message) = match token.kind {
            Kind::Int => (literal::int(negative, token.text), "invalid int literal"),
            Kind::Uint => (literal::uint(token.text), "invalid uint literal"),
            _ => (literal::double(negative, token.text), "invalid double literal"),
        };
        match value {
            Some(value) => self.node(start, Expr::Literal(value)),
            None => self.error(start, message),
        }
    }

    fn literal(&mut self, token: Token<'_>) -> Node {
        let value = match token.kind {
            Kind::Int | Kind::Uint | Kind::Double => return self.number(token.position, false, token),
            Kind::String => literal::string(token.text, self.syntax().before_1_33),
            Kind::Bytes => literal::bytes(token.text),
            _ if token.text == "null" => Ok(Literal::Null),
            _ => Ok(Literal::Bool(token.text == "true")),
        };
        match value {
            Ok(value) => self.node(token.position, Expr::Literal(value)),
            Err(message) => self.error(token.position, message),
        }
    }

    /// A variable, a call or a message: what begins with a name.
    fn name(&mut self, depth: Depth) -> Result<Parsed> {
        let first = self.token();
        let start = first.position;
        let dot = if self.take(".").is_some() { "." } else { "" };
        let name = self.token();
        if name.kind != Kind::Ident {
            let message = self.no_alternative(first);
            return Err(self.syntax_error(name, message));
        }
        // Names and dots up to a brace are the name of a message.
        let mut ahead = 1;
        while self.peek(ahead) == Kind::Fixed(".") && self.peek(ahead + 1) == Kind::Ident {
            ahead += 2;
        }
        if self.peek(ahead) == Kind::Fixed("{") {
            return self.message(dot, ahead, depth);
        }
        self.next();
        let before = self.mark();
        let open = self.take("(");
        let (args, height) = if open.is_some() { self.args(depth)? } else { (Vec::new(), 0) };
        let node = if RESERVED.contains(&name.text) {
            // cel-go does not look at the arguments then.
            self.forget(before);
            self.error(start, format!("reserved identifier: {}", name.text))
        } else if let Some(open) = open {
            self.call_or_macro(open.position, &format!("{dot}{}", name.text), None, args)
        } else {
            self.node(name.position, Expr::Ident(format!("{dot}{}", name.text).into()))
        };
        Ok(Parsed { node, height })
    }

    fn message(&mut self, dot: &str, tokens: usize, depth: Depth) -> Result<Parsed> {
        let name: String = (0..tokens).map(|_| self.next().text).collect();
        let open = self.next();
        let (mut fields, mut height) = (Vec::new(), 0);
        while !matches!(self.peek(0), Kind::Fixed("}")) {
            if self.take(",").is_some() {
                break;
            }
            let optional = self.take("?").is_some();
            let field = self.token();
            if !matches!(field.kind, Kind::Ident | Kind::Escaped) {
                return Err(self.mismatch("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"));
            }
            self.next();
            let colon = self.expect(":", "':'")?;
            let id = self.id(colon.position);
            let field = self.field_name(field);
            let value = self.expr(depth)?;
            height = height.max(value.height);
            fields.push(FieldInit { id, field, value: value.node, optional });
            if !self.more("}") {
                break;
            }
        }
        self.expect("}", "'}'")?;
        let node = self.node(open.position, Expr::Struct { name: format!("{dot}{name}").into(), fields });
        Ok(Parsed { node, height })
    }

    /// Whether another element follows; takes the comma before it.
    fn more(&mut self, close: &'static str) -> bool {
        if self.peek(0) == Kind::Fixed(",") && self.peek(1) != Kind::Fixed(close) {
            self.next();
            return true;
        }
        self.take(",");
        false
    }

    fn list(&mut self, depth: Depth) -> Result<Parsed> {
        let open = self.next();
        let (mut elements, mut optional, mut height) = (Vec::new(), Vec::new(), 0);
        if self.take(",").is_none() && self.peek(0) != Kind::Fixed("]") {
            loop {
                if self.take("?").is_some() {
                    optional.push(elements.len());
                }
                let element = self.expr(depth)?;
                height = height.max(element.height);
                elements.push(element.node);
                if !self.more("]") {
                    break;
                }
            }
        }
        self.expect("]", "{']', ','}")?;
        let node = self.node(open.position, Expr::List { elements, optional });
        Ok(Parsed { node, height })
    }

    fn map(&mut self, depth: Depth) -> Result<Parsed> {
        let open = self.next();
        let (mut entries, mut height) = (Vec::new(), 0);
        if self.take(",").is_none() && self.peek(0) != Kind::Fixed("}") {
            loop {
                let optional = self.take("?").is_some();
                let key = self.expr(depth)?;
                let colon = self.expect(":", "':'")?;
                let id = self.id(colon.position);
                let value = self.expr(depth)?;
                height = height.max(key.height).max(value.height);
                entries.push(Entry { id, key: key.node, value: value.node, optional });
                if !self.more("}") {
                    break;
                }
            }
        }
        self.expect("}", "{'}', ','}")?;
        let node = self.node(open.position, Expr::Map(entries));
        Ok(Parsed { node, height })
    }
}

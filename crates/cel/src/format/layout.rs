//! Where the lines of a tree may break, and where it needs parentheses.

use super::{
    Verbatim,
    doc::{Doc, bracketed, group, indent, text},
    literal::literal,
};
use crate::{
    ast::{Expr, Literal, Node},
    stack::with_stack,
};

/// How tightly an expression holds together, by the rules of the grammar.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Conditional,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

/// Macros whose first arguments are the names of variables.
const BINDERS: [&str; 12] = [
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "map",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// An operator between two operands: how it is written, and how tightly it binds.
fn binary(function: &str) -> Option<(&'static str, Strength)> {
    Some(match function {
        "_||_" => ("||", Strength::Or),
        "_&&_" => ("&&", Strength::And),
        "_==_" => ("==", Strength::Relation),
        "_!=_" => ("!=", Strength::Relation),
        "_<_" => ("<", Strength::Relation),
        "_<=_" => ("<=", Strength::Relation),
        "_>_" => (">", Strength::Relation),
        "_>=_" => (">=", Strength::Relation),
        "@in" => ("in", Strength::Relation),
        "_+_" => ("+", Strength::Sum),
        "_-_" => ("-", Strength::Sum),
        "_*_" => ("*", Strength::Product),
        "_/_" => ("/", Strength::Product),
        "_%_" => ("%", Strength::Product),
        _ => return None,
    })
}

/// The operator, strength and operands of a call of a binary operator.
fn operation(node: &Node) -> Option<(&'static str, Strength, &Node, &Node)> {
    match &node.expr {
        Expr::Call { function, target: None, args } => match args.as_slice() {
            [left, right] => binary(function).map(|(operator, strength)| (operator, strength, left, right)),
            _ => None,
        },
        _ => None,
    }
}

fn strength(node: &Node) -> Strength {
    match &node.expr {
        Expr::Call { function, target: None, args } => match (&**function, args.len()) {
            ("_?_:_", 3) => Strength::Conditional,
            ("!_" | "-_", 1) => Strength::Unary,
            (function, 2) => binary(function).map_or(Strength::Member, |(_, strength)| strength),
            _ => Strength::Member,
        },
        _ => Strength::Member,
    }
}

pub(super) struct Layout<'a> {
    pub verbatim: &'a [Verbatim<'a>],
}

impl Layout<'_> {
    pub fn of(&self, node: &Node) -> Option<Doc> {
        with_stack(|| self.node(node))
    }

    /// In parentheses, if it holds together less than that.
    fn at_least(&self, least: Strength, node: &Node) -> Option<Doc> {
        let inner = self.of(node)?;
        Some(if strength(node) < least { bracketed("(", vec![inner], ")") } else { inner })
    }

    fn all(&self, nodes: &[Node]) -> Option<Vec<Doc>> {
        nodes.iter().map(|node| self.of(node)).collect()
    }

    fn node(&self, node: &Node) -> Option<Doc> {
        if let Some((operator, strength, left, right)) = operation(node) {
            return match strength {
                Strength::Or | Strength::And => self.logic(node, operator, strength),
                Strength::Sum => self.sum(node),
                _ => {
                    let right_least = if strength == Strength::Relation { Strength::Sum } else { Strength::Unary };
                    let (left, right) = (self.at_least(strength, left)?, self.at_least(right_least, right)?);
                    Some(Doc::All(vec![left, text(format!(" {operator} ")), right]))
                }
            };
        }
        Some(match &node.expr {
            Expr::Literal(value) => text(literal(value)),
            Expr::Ident(name) => match self.verbatim.iter().position(|one| one.name == &**name) {
                Some(index) => Doc::Verbatim(index),
                None => text(&**name),
            },
            Expr::Select { operand, field, test } => {
                let selected = vec![self.at_least(Strength::Member, operand)?, text(format!(".{}", name(field)))];
                if *test { bracketed("has(", selected, ")") } else { Doc::All(selected) }
            }
            Expr::Call { function, target, args } => return self.call(function, target.as_deref(), args),
            Expr::List { elements, optional } => {
                let mut all = self.all(elements)?;
                for index in optional {
                    if let Some(element) = all.get_mut(*index) {
                        *element = Doc::All(vec![text("?"), std::mem::replace(element, Doc::Soft)]);
                    }
                }
                list(all, elements.iter().all(|element| matches!(element.expr, Expr::Literal(_))))
            }
            Expr::Map(entries) => {
                let entry = |entry: &crate::ast::Entry| {
                    let key = self.at_least(Strength::Or, &entry.key)?;
                    Some(pair(entry.optional, key, self.of(&entry.value)?))
                };
                braced("{", entries.iter().map(entry).collect::<Option<_>>()?)
            }
            Expr::Struct { name: of, fields } => {
                let field = |one: &crate::ast::FieldInit| {
                    Some(pair(one.optional, text(name(&one.field)), self.of(&one.value)?))
                };
                braced(&format!("{of}{{"), fields.iter().map(field).collect::<Option<_>>()?)
            }
            Expr::Comprehension(_) => return None,
        })
    }

    /// Terms between equal operators, each on a line of its own if they do not fit on one.
    fn logic(&self, node: &Node, operator: &str, strength: Strength) -> Option<Doc> {
        let mut terms = Vec::new();
        collect(node, operator, &mut terms);
        if !is_balanced(node, operator, terms.len()) {
            let (_, _, left, right) = operation(node)?;
            terms = vec![left, right];
        }
        // Whoever reads need not know whether `&&` or `||` binds tighter.
        let least = if strength == Strength::Or { Strength::Relation } else { Strength::Relation.max(strength) };
        let mut parts = Vec::new();
        for (index, term) in terms.into_iter().enumerate() {
            if index > 0 {
                parts.extend([Doc::Line, text(format!("{operator} "))]);
            }
            parts.push(self.at_least(least, term)?);
        }
        Some(group(parts))
    }

    /// Sums and differences from left to right, as many on a line as fit.
    fn sum(&self, node: &Node) -> Option<Doc> {
        let mut terms = Vec::new();
        let mut first = node;
        while let Some((operator, Strength::Sum, left, right)) = operation(first) {
            terms.push(Doc::All(vec![text(format!("{operator} ")), self.at_least(Strength::Product, right)?]));
            first = left;
        }
        terms.push(self.at_least(Strength::Product, first)?);
        terms.reverse();
        Some(Doc::Group(Box::new(Doc::Fill(terms))))
    }

    fn call(&self, function: &str, target: Option<&Node>, args: &[Node]) -> Option<Doc> {
        let member = |of: &Node| self.at_least(Strength::Member, of);
        Some(match (function, target, args) {
            ("_?_:_", None, [condition, yes, no]) => return self.conditional(condition, yes, no),
            ("!_", None, [of]) => Doc::All(vec![text("!"), member(of)?]),
            ("-_", None, [of]) => match &of.expr {
                // A minus and a number would be one literal.
                Expr::Literal(_) => Doc::All(vec![text("-("), self.of(of)?, text(")")]),
                _ => Doc::All(vec![text("-"), member(of)?]),
            },
            ("_?._", None, [of, field]) => match &field.expr {
                Expr::Literal(Literal::String(field)) => {
                    Doc::All(vec![member(of)?, text(format!(".?{}", name(field)))])
                }
                _ => return None,
            },
            ("_[_]" | "_[?_]", None, [of, index]) => {
                let open = if function == "_[_]" { "[" } else { "[?" };
                // A key, however long, stays beside the brackets.
                let short = is_short(index) || matches!(index.expr, Expr::Literal(_));
                Doc::All(vec![member(of)?, enclosed(open, vec![self.of(index)?], short, "]")])
            }
            (function, None, args) => arguments(format!("{function}("), self.all(args)?, args, 0),
            (function, Some(target), args) => {
                let named = args.iter().take_while(|arg| matches!(arg.expr, Expr::Ident(_))).count();
                let names = if BINDERS.contains(&function) { named.min(args.len().saturating_sub(1)) } else { 0 };
                Doc::All(vec![member(target)?, arguments(format!(".{function}("), self.all(args)?, args, names)])
            }
        })
    }

    /// A chain of choices, read as "if, else if, else".
    fn conditional(&self, condition: &Node, yes: &Node, no: &Node) -> Option<Doc> {
        let mut parts = Vec::new();
        let (mut condition, mut yes, mut no) = (condition, yes, no);
        loop {
            let chosen = vec![Doc::Line, text("? "), indent(vec![self.at_least(Strength::Or, yes)?])];
            parts.extend([indent(vec![self.at_least(Strength::Or, condition)?]), indent(chosen)]);
            parts.extend([Doc::Line, text(": ")]);
            match &no.expr {
                Expr::Call { function, target: None, args } if &**function == "_?_:_" => {
                    let [next, then, otherwise] = args.as_slice() else { return None };
                    (condition, yes, no) = (next, then, otherwise);
                }
                _ => break,
            }
        }
        parts.push(indent(vec![self.of(no)?]));
        Some(group(parts))
    }
}

/// All operands of equal operators, whatever parentheses they stood in.
fn collect<'a>(node: &'a Node, operator: &str, terms: &mut Vec<&'a Node>) {
    match operation(node) {
        Some((found, _, left, right)) if found == operator => {
            collect(left, operator, terms);
            collect(right, operator, terms);
        }
        _ => terms.push(node),
    }
}

/// Whether the parser makes this tree of so many operands without parentheses.
fn is_balanced(node: &Node, operator: &str, count: usize) -> bool {
    match operation(node) {
        Some((found, _, left, right)) if found == operator && count > 1 => {
            let of_left = (count - 1) / 2 + 1;
            is_balanced(left, operator, of_left) && is_balanced(right, operator, count - of_left)
        }
        Some((found, ..)) => found != operator && count == 1,
        None => count == 1,
    }
}

fn separated(parts: Vec<Doc>) -> Vec<Doc> {
    let last = parts.len().saturating_sub(1);
    let mut out = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        out.push(part);
        if index < last {
            out.extend([text(","), Doc::Line]);
        }
    }
    out
}

/// Whether a node is too short for a separate line.
fn is_short(node: &Node) -> bool {
    match &node.expr {
        Expr::Literal(Literal::String(text)) => text.chars().count() < 24,
        Expr::Literal(_) | Expr::Ident(_) => true,
        Expr::List { elements, .. } => elements.is_empty(),
        Expr::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

fn enclosed(open: &str, inner: Vec<Doc>, short: bool, close: &str) -> Doc {
    if !short {
        return bracketed(open, inner, close);
    }
    let mut parts = vec![text(open)];
    parts.extend(inner);
    parts.push(text(close));
    Doc::All(parts)
}

/// Arguments, of which the first are names that stay beside the opening parenthesis.
fn arguments(open: String, mut docs: Vec<Doc>, args: &[Node], names: usize) -> Doc {
    let rest = docs.split_off(names);
    if names == 0 {
        return enclosed(&open, separated(rest), args.iter().all(is_short) && args.len() < 2, ")");
    }
    let mut parts = vec![text(open)];
    parts.extend(docs.into_iter().enumerate().flat_map(|(index, name)| {
        let before = if index == 0 { "" } else { " " };
        [text(before), name, text(",")]
    }));
    let mut inner = vec![Doc::Line];
    inner.extend(separated(rest));
    parts.extend([indent(inner), Doc::Soft, text(")")]);
    group(parts)
}

/// A list; constants share lines, and a single element stays beside the brackets.
fn list(mut elements: Vec<Doc>, constants: bool) -> Doc {
    match elements.len() {
        0 => text("[]"),
        1 => {
            elements.insert(0, text("["));
            elements.push(text("]"));
            Doc::All(elements)
        }
        count if constants => {
            let comma = |(index, element)| {
                let after = if index + 1 < count { "," } else { "" };
                Doc::All(vec![element, text(after)])
            };
            bracketed("[", vec![Doc::Fill(elements.into_iter().enumerate().map(comma).collect())], "]")
        }
        _ => bracketed("[", separated(elements), "]"),
    }
}

fn pair(optional: bool, key: Doc, value: Doc) -> Doc {
    Doc::All(vec![text(if optional { "?" } else { "" }), key, text(": "), value])
}

fn braced(open: &str, pairs: Vec<Doc>) -> Doc {
    if pairs.is_empty() { text(format!("{open}}}")) } else { bracketed(open, separated(pairs), "}") }
}

/// The name of a field, in backticks if it is none that the grammar takes.
fn name(field: &str) -> String {
    let plain = field.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !matches!(field, "in" | "true" | "false" | "null");
    if plain { field.to_owned() } else { format!("`{field}`") }
}

//! Checks of well-typed trees (cel-go `cel/validator.go` and `ext/formatting.go`): literals that functions reject, and
//! literals of lists and maps with elements of different types.

use super::Checked;
use crate::{
    ast::{Entry, Expr, Literal, Node, NodeId},
    issue::{Issue, IssueKind},
    library::{
        printf::{self, Clause},
        re2::Regex,
        time::{Duration, Timestamp},
    },
    stack::with_stack,
    types::Type,
};

/// The issues that the validators find.
pub(super) fn validate(checked: &Checked) -> Vec<Issue> {
    let mut validator = Validator { checked, issues: Vec::new(), in_format: 0 };
    validator.visit(&checked.ast.root);
    validator.issues
}

struct Validator<'a> {
    checked: &'a Checked,
    issues: Vec<Issue>,
    /// In how many calls of `format` this is: its arguments may be of several types.
    in_format: usize,
}

impl Validator<'_> {
    fn report(&mut self, id: NodeId, kind: IssueKind, message: String) {
        self.issues.push(Issue::new(kind, self.checked.ast.position(id), message));
    }

    fn visit(&mut self, node: &Node) {
        with_stack(|| self.visit_node(node));
    }

    fn visit_node(&mut self, node: &Node) {
        let in_format = usize::from(matches!(&node.expr, Expr::Call { function, .. } if &**function == "format"));
        self.in_format += in_format;
        for child in node.children() {
            self.visit(child);
        }
        match &node.expr {
            Expr::Call { function, target, args } => self.call(node, function, target.as_deref(), args),
            Expr::List { elements, optional } if self.in_format == 0 => self.list(elements, optional),
            Expr::Map(entries) if self.in_format == 0 => self.map(entries),
            _ => {}
        }
        self.in_format -= in_format;
    }

    fn call(&mut self, node: &Node, function: &str, target: Option<&Node>, args: &[Node]) {
        // Of `matches(text, pattern)` cel-go takes the text for the pattern.
        if let ("duration" | "timestamp" | "matches", Some(Node { id, expr: Expr::Literal(value) })) =
            (function, args.first())
            && !accepts(function, value)
        {
            self.report(*id, IssueKind::InvalidLiteral, format!("invalid {function} argument"));
        }
        if let (
            "format",
            Some(Node { expr: Expr::Literal(Literal::String(format)), .. }),
            [Node { expr: Expr::List { elements, .. }, .. }],
        ) = (function, target, args)
        {
            self.format(node.id, format, elements);
        }
    }

    fn list(&mut self, elements: &[Node], optional: &[usize]) {
        let mut first: Option<&Type> = None;
        for (index, element) in elements.iter().enumerate() {
            let Some(of) = self.element_type(element.id, optional.binary_search(&index).is_ok()) else { return };
            match first {
                None => first = Some(of),
                Some(first) if first == of => {}
                Some(first) => {
                    self.mismatch(element.id, first, of);
                    return;
                }
            }
        }
    }

    fn map(&mut self, entries: &[Entry]) {
        let mut first: Option<(&Type, &Type)> = None;
        for Entry { key, value, optional, .. } in entries {
            if matches!(key.expr, Expr::Literal(Literal::Bytes(_))) {
                self.report(key.id, IssueKind::Unsupported, "the API server fails on a key of bytes".to_owned());
                return;
            }
            let key_type = self.checked.type_of(key.id);
            let Some(value_type) = self.element_type(value.id, *optional) else { return };
            let Some((first_key, first_value)) = first else {
                first = Some((key_type, value_type));
                continue;
            };
            if first_key != key_type {
                self.mismatch(key.id, first_key, key_type);
            }
            if first_value != value_type {
                self.mismatch(value.id, first_value, value_type);
            }
        }
    }

    fn mismatch(&mut self, id: NodeId, expected: &Type, found: &Type) {
        let message = format!("expected type '{expected}' but found '{found}'");
        self.report(id, IssueKind::TypeMismatch, message);
        if let Some(issue) = self.issues.last_mut() {
            issue.help = Some(format!("wrap each element in `dyn(...)`, or convert '{found}'"));
        }
    }
}

impl<'a> Validator<'a> {
    /// The type of an element; of an optional one what it holds. cel-go panics where that is not known.
    fn element_type(&mut self, id: NodeId, optional: bool) -> Option<&'a Type> {
        let checked: &'a Checked = self.checked;
        match checked.type_of(id) {
            Type::Optional(of) if optional => Some(of),
            _ if optional => {
                let message = "the API server fails on an optional element whose type is not known".to_owned();
                self.report(id, IssueKind::Unsupported, message);
                None
            }
            of => Some(of),
        }
    }
}

impl Validator<'_> {
    fn format(&mut self, call: NodeId, format: &str, args: &[Node]) {
        let refused = |index: usize, clause: Clause| self.misfit(args.get(index)?, clause);
        if let Err(error) = printf::check_literal(format, args.len(), refused) {
            self.report(error.place.unwrap_or(call), IssueKind::InvalidLiteral, error.text);
        }
    }

    /// The first part of an argument that a clause cannot format, and the type of this part.
    fn misfit(&self, arg: &Node, clause: Clause) -> Option<(NodeId, String)> {
        let of = self.checked.type_of(arg.id);
        let name = of.erased();
        if !clause.accepts().contains(&&*name) && *of != Type::Dyn {
            return Some((arg.id, name));
        }
        match &arg.expr {
            Expr::List { elements, .. } if clause == Clause::String => {
                elements.iter().find_map(|element| self.misfit(element, clause))
            }
            Expr::Map(entries) if clause == Clause::String => entries
                .iter()
                .find_map(|Entry { key, value, .. }| self.misfit(key, clause).or_else(|| self.misfit(value, clause))),
            _ => None,
        }
    }
}

/// Whether the function takes the literal.
fn accepts(function: &str, value: &Literal) -> bool {
    match (function, value) {
        ("matches", Literal::String(pattern)) => Regex::new(pattern).is_ok(),
        ("duration", Literal::String(text)) => Duration::parse(text).is_ok(),
        ("timestamp", Literal::String(text)) => Timestamp::parse(text).is_ok(),
        ("timestamp", Literal::Int(seconds)) => Timestamp::from_seconds(*seconds).is_ok(),
        ("duration" | "timestamp", _) => false,
        _ => true,
    }
}

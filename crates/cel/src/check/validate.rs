//! Checks of well-typed trees (cel-go `cel/validator.go` and `ext/formatting.go`): literals that functions refuse, and
//! literals of lists and maps whose elements are not all of exactly one type.

use super::Checked;
use crate::{
    ast::{Entry, Expr, Literal, Node, NodeId},
    issue::{Issue, IssueKind},
    stack::with_stack,
    types::Type,
};

/// What the validators say.
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
        match &node.expr {
            Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => self.visit(operand),
            Expr::Call { function, target, args } => {
                target.iter().for_each(|target| self.visit(target));
                args.iter().for_each(|arg| self.visit(arg));
                self.call(node, function, target.as_deref(), args);
            }
            Expr::List { elements, optional } => {
                elements.iter().for_each(|element| self.visit(element));
                if self.in_format == 0 {
                    self.list(elements, optional);
                }
            }
            Expr::Map(entries) => {
                for Entry { key, value, .. } in entries {
                    self.visit(key);
                    self.visit(value);
                }
                if self.in_format == 0 {
                    self.map(entries);
                }
            }
            Expr::Struct { fields, .. } => fields.iter().for_each(|field| self.visit(&field.value)),
            Expr::Comprehension(of) => {
                for part in [&of.range, &of.init, &of.condition, &of.step, &of.result] {
                    self.visit(part);
                }
            }
        }
        self.in_format -= in_format;
    }

    fn call(&mut self, node: &Node, function: &str, target: Option<&Node>, args: &[Node]) {
        // Of `matches(text, pattern)` cel-go takes the text for the pattern.
        if let ("duration" | "timestamp" | "matches", Some(Node { id, expr: Expr::Literal(value) })) =
            (function, args.first())
            && !crate::library_accepts(function, value)
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

// Format strings.

/// What is wrong with an argument of `format`, and which.
struct Misfit(NodeId, String);

impl Validator<'_> {
    fn format(&mut self, call: NodeId, format: &str, args: &[Node]) {
        let mut used = 0;
        let mut rest = format.as_bytes();
        while let Some(at) = rest.iter().position(|b| *b == b'%') {
            rest = &rest[at + 1..];
            if rest.first() == Some(&b'%') {
                rest = &rest[1..];
                continue;
            }
            used += 1;
            let clause = match (rest.first(), args.get(used - 1)) {
                (None, _) => Err(Misfit(call, "unexpected end of string".to_owned())),
                (_, None) => Err(Misfit(call, format!("index {} out of range", used - 1))),
                (_, Some(arg)) => clause(rest)
                    .map_err(|message| Misfit(call, format!("could not parse formatting clause: {message}")))
                    .and_then(|(letter, length)| {
                        self.fits(letter, arg)
                            .map_err(|Misfit(id, message)| Misfit(id, format!("error during formatting: {message}")))?;
                        Ok(length)
                    }),
            };
            match clause {
                Ok(length) => rest = &rest[length..],
                Err(Misfit(id, message)) => {
                    self.report(id, IssueKind::InvalidLiteral, message);
                    return;
                }
            }
        }
        if args.len() > used {
            let message = format!("too many arguments supplied to string.format (expected {used}, got {})", args.len());
            self.report(call, IssueKind::InvalidLiteral, message);
        }
    }

    fn fits(&self, letter: u8, arg: &Node) -> Result<(), Misfit> {
        let of = self.checked.type_of(arg.id);
        let (fits, wants) = match letter {
            b's' => return self.fits_string(arg),
            b'd' => (matches!(of, Type::Int | Type::Uint), "decimal clause can only be used on integers"),
            b'o' => (matches!(of, Type::Int | Type::Uint), "octal clause can only be used on integers"),
            b'f' => (matches!(of, Type::Double | Type::String), "fixed-point clause can only be used on doubles"),
            b'e' => (matches!(of, Type::Double | Type::String), "scientific clause can only be used on doubles"),
            b'b' => (
                matches!(of, Type::Int | Type::Uint | Type::Bool),
                "only integers and bools can be formatted as binary",
            ),
            _ => (
                matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
                "only integers, byte buffers, and strings can be formatted as hex",
            ),
        };
        if fits || *of == Type::Dyn {
            return Ok(());
        }
        Err(Misfit(arg.id, format!("{wants}, was given {}", of.erased())))
    }

    fn fits_string(&self, arg: &Node) -> Result<(), Misfit> {
        let of = self.checked.type_of(arg.id);
        if matches!(of, Type::Object(_) | Type::Opaque(_) | Type::Optional(_) | Type::Error) {
            let message = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                           durations, and timestamps";
            return Err(Misfit(arg.id, format!("{message}, was given {}", of.erased())));
        }
        match &arg.expr {
            Expr::List { elements, .. } => elements.iter().try_for_each(|element| self.fits_string(element)),
            Expr::Map(entries) => entries.iter().try_for_each(|Entry { key, value, .. }| {
                self.fits_string(key)?;
                self.fits_string(value)
            }),
            _ => Ok(()),
        }
    }
}

/// The letter of a clause whose percent sign is dropped, and the length of all.
fn clause(text: &[u8]) -> Result<(u8, usize), String> {
    let mut length = 0;
    if text.first() == Some(&b'.') {
        let digits = text[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        length = 1 + digits;
        if length >= text.len() {
            return Err("error while parsing precision: could not find end of precision specifier".to_owned());
        }
        let digits = String::from_utf8_lossy(&text[1..length]);
        if let Err(problem) = digits.parse::<i64>() {
            let problem = if digits.is_empty() { "invalid syntax".to_owned() } else { problem.to_string() };
            return Err(format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                 \"{digits}\": {problem}"
            ));
        }
    }
    match text.get(length) {
        Some(letter @ (b's' | b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o')) => Ok((*letter, length + 1)),
        letter => Err(format!("unrecognized formatting clause \"{}\"", letter.map_or(' ', |b| char::from(*b)))),
    }
}

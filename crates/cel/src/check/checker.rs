//! Types of nodes, from the leaves up (cel-go `checker/checker.go`).

use std::sync::Arc;

use super::{Checked, Reference, help, unify::Mapping};
use crate::{
    Minor,
    ast::{Ast, Comprehension, Expr, Literal, Node, NodeId, Position},
    environment::{Environment, Lookup},
    issue::{Issue, IssueKind},
    names::RESERVED,
    parse::{OLD_ACCUMULATOR, UNSUPPORTED_ACCUMULATOR},
    stack::with_stack,
    types::Type,
};

/// The most parts of one type. cel-go has no such limit, but nested literals can double a type with each level.
const MAX_TYPE_SIZE: usize = 10_000;

/// Types that are known like structs, but have no fields (apiserver `findScalar`).
const SCALARS: &[&str] = &["bool", "bytes", "double", "int", "null_type", "string", "uint", "list"];

pub(super) struct Checker<'e> {
    pub environment: &'e Environment,
    pub mapping: Mapping,
    positions: Vec<Position>,
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
    /// The variables of macros, the innermost last.
    locals: Vec<(Arc<str>, Type)>,
    issues: Vec<Issue>,
}

impl<'e> Checker<'e> {
    pub fn new(ast: &Ast, environment: &'e Environment) -> Self {
        Self {
            environment,
            mapping: Mapping::default(),
            positions: ast.positions.clone(),
            types: vec![Type::Error; ast.positions.len()],
            references: vec![None; ast.positions.len()],
            locals: Vec::new(),
            issues: Vec::new(),
        }
    }

    pub fn run(mut self, mut ast: Ast) -> Result<Checked, Vec<Issue>> {
        self.check(&mut ast.root);
        if !self.issues.is_empty() {
            return Err(self.issues);
        }
        let types = self.types.iter().map(|of| self.mapping.substitute(of, true)).collect();
        Ok(Checked { ast, types, references: self.references })
    }

    // Results.

    pub fn type_of(&self, node: &Node) -> Type {
        self.types[node.id.index()].clone()
    }

    pub fn set_type(&mut self, id: NodeId, of: Type) {
        if size(&of) > MAX_TYPE_SIZE {
            let message = format!("a type has more than {MAX_TYPE_SIZE} parts");
            self.report(id, IssueKind::Unsupported, message);
            self.types[id.index()] = Type::Dyn;
        } else {
            self.types[id.index()] = of;
        }
    }

    pub fn set_reference(&mut self, id: NodeId, reference: Reference) {
        self.references[id.index()] = Some(reference);
    }

    pub fn report(&mut self, id: NodeId, kind: IssueKind, message: String) {
        self.report_with(id, kind, message, None);
    }

    pub fn report_with(&mut self, id: NodeId, kind: IssueKind, message: String, help: Option<String>) {
        let position = self.positions[id.index()];
        self.issues.push(Issue { kind, position, message, help });
    }

    pub fn mismatch(&mut self, id: NodeId, expected: &Type, found: &Type) {
        let message = format!("expected type '{expected}' but found '{found}'");
        self.report_with(id, IssueKind::TypeMismatch, message, help::mismatch(expected, found));
    }

    pub fn undeclared(&mut self, id: NodeId, name: &str, help: Option<String>) {
        let message = format!("undeclared reference to '{name}' (in container '')");
        self.set_type(id, Type::Error);
        self.report_with(id, IssueKind::UndeclaredReference, message, help);
    }

    fn locals(&self) -> impl Iterator<Item = &str> {
        self.locals.iter().map(|(name, _)| &**name)
    }

    // Nodes.

    pub fn check(&mut self, node: &mut Node) {
        with_stack(|| self.check_node(node));
    }

    fn check_node(&mut self, node: &mut Node) {
        match &mut node.expr {
            Expr::Literal(value) => self.set_type(node.id, literal(value)),
            Expr::Ident(_) => self.ident(node),
            Expr::Select { .. } => self.select(node),
            Expr::Call { function, args, target } if &**function == "_?._" => {
                // The parser makes such a call only of two arguments, the second a literal.
                if let ([operand, Node { expr: Expr::Literal(Literal::String(field)), .. }], None) =
                    (&mut args[..], target)
                {
                    let field = Arc::clone(field);
                    let of = self.field(node.id, operand, &field, true);
                    self.set_type(node.id, of);
                    let overloads = self.environment.function("_?._").map(<[_]>::to_vec);
                    self.set_reference(node.id, Reference::Overloads(overloads.unwrap_or_default()));
                }
            }
            Expr::Call { .. } => self.call(node),
            Expr::List { elements, optional } => self.list(node.id, elements, optional),
            Expr::Map(entries) => self.map(node.id, entries),
            Expr::Struct { name, fields } => self.message(node.id, name, fields),
            Expr::Comprehension(of) => self.comprehension(node.id, of),
        }
    }

    fn ident(&mut self, node: &mut Node) {
        let Expr::Ident(name) = &mut node.expr else { return };
        if let Some(found) = self.lookup(name) {
            self.resolve(node.id, name, found);
        } else if name.trim_start_matches('.') == OLD_ACCUMULATOR
            && !self.locals.is_empty()
            && self.environment.minor() < Minor::V1_33
        {
            self.report(node.id, IssueKind::Unsupported, UNSUPPORTED_ACCUMULATOR.to_owned());
        } else {
            let (name, help) = (Arc::clone(name), help::variable(name, self.locals(), self.environment));
            self.undeclared(node.id, &name, help);
        }
    }

    /// Notes what a name means, and writes it in full.
    fn resolve(&mut self, id: NodeId, name: &mut Arc<str>, found: Lookup) {
        match found {
            Lookup::Variable(full, of) => {
                *name = Arc::clone(&full);
                self.set_type(id, of);
                self.set_reference(id, Reference::Variable(full));
            }
            Lookup::Type(full, of) => {
                *name = Arc::clone(&full);
                self.set_type(id, Type::Type(Arc::new(of.clone())));
                // cel-go's planner does not find the types of schemas again (`reference to undefined type`).
                let declared = matches!(of, Type::Object(_));
                self.set_reference(id, if declared { Reference::Variable(full) } else { Reference::Type(of) });
            }
            Lookup::Unsupported(full) => {
                let message = format!("this crate does not know messages of protocol buffers, such as '{full}'");
                self.report(id, IssueKind::Unsupported, message);
            }
        }
    }

    /// The meaning of a simple or qualified name in this scope.
    pub fn lookup(&self, name: &str) -> Option<Lookup> {
        let absolute = name.strip_prefix('.');
        let plain = absolute.unwrap_or(name);
        let local = self.locals.iter().rev().find(|(local, _)| **local == *plain);
        if !self.environment.locals_shadow() {
            let local = local.map(|(name, of)| Lookup::Variable(Arc::clone(name), of.clone()));
            return local.or_else(|| self.environment.lookup(plain));
        }
        match (local, absolute) {
            (Some((name, of)), None) => Some(Lookup::Variable(Arc::clone(name), of.clone())),
            // Kept apart from the local one by its dot.
            (Some(_), Some(_)) => match self.environment.lookup(plain)? {
                Lookup::Variable(_, of) => Some(Lookup::Variable(name.into(), of)),
                other => Some(other),
            },
            (None, _) => self.environment.lookup(plain),
        }
    }

    /// The meaning of a name before a brace.
    pub fn lookup_message(&self, name: &str) -> Option<Lookup> {
        if self.environment.locals_shadow() {
            return self.environment.lookup_message(name.strip_prefix('.').unwrap_or(name));
        }
        self.lookup(name)
    }

    /// Whether macros bind the first part of a qualified name in a way that keeps it from being one.
    fn shadowed(&self, first: &str) -> bool {
        self.environment.locals_shadow() && self.locals.iter().any(|(local, _)| **local == *first)
    }

    fn select(&mut self, node: &mut Node) {
        if let Some(name) = qualified_name(node, |first| self.environment.is_namespace(first))
            && !self.shadowed(name.split('.').next().unwrap_or_default())
            && let Some(found) = self.lookup(&name)
        {
            let mut full: Arc<str> = name.into();
            self.resolve(node.id, &mut full, found);
            node.expr = Expr::Ident(full);
            return;
        }
        let Expr::Select { operand, field, test } = &mut node.expr else { return };
        let (field, test) = (Arc::clone(field), *test);
        let of = self.field(node.id, operand, &field, false);
        self.set_type(node.id, if test { Type::Bool } else { of });
    }

    /// The type of a field of `operand`; an optional if `operand` or the selection is one.
    fn field(&mut self, id: NodeId, operand: &mut Node, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.mapping.substitute(&self.type_of(operand), false);
        let (target, was_optional) = unwrap_optional(&operand_type);
        let of = match target {
            Type::Map(_, value) => Type::clone(value),
            Type::Object(_) | Type::Opaque(_) if !target.is_untyped() => self.struct_field(id, target, field),
            Type::Var(_) => {
                self.mapping.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            _ => {
                self.no_fields(id, target);
                Type::Dyn
            }
        };
        let of = if was_optional || optional { Type::Optional(Arc::new(of)) } else { of };
        self.mapping.substitute(&of, false)
    }

    fn no_fields(&mut self, id: NodeId, of: &Type) {
        let message = format!("type '{of}' does not support field selection");
        self.report_with(id, IssueKind::NoFieldSelection, message, help::no_fields(of));
    }

    /// The type of a field of a struct, or the error type.
    pub fn struct_field(&mut self, id: NodeId, of: &Type, field: &str) -> Type {
        let name = of.to_string();
        if matches!(of, Type::Opaque("net.IP" | "net.CIDR")) {
            self.no_fields(id, of);
            return Type::Dyn;
        }
        if let Some(of) = self.environment.constructed_field(&name, field) {
            return of;
        }
        let Some(fields) = self.environment.fields(&name) else {
            if SCALARS.contains(&&*name) {
                self.report(id, IssueKind::UndefinedField, format!("undefined field '{field}'"));
                return Type::Error;
            }
            let message = format!("unexpected failed resolution of '{name}'");
            self.report_with(id, IssueKind::FailedResolution, message, help::failed_resolution(&name, field));
            return Type::Error;
        };
        // Schemas have such names escaped.
        let escaped = || RESERVED.contains(&field).then(|| fields.get(&*format!("__{field}__"))).flatten();
        if let Some(of) = fields.get(field).or_else(escaped) {
            return of.clone();
        }
        let help = help::field(field, &name, fields, self.environment);
        self.report_with(id, IssueKind::UndefinedField, format!("undefined field '{field}'"), help);
        Type::Error
    }

    fn comprehension(&mut self, id: NodeId, of: &mut Comprehension) {
        self.check(&mut of.range);
        self.check(&mut of.init);
        let range = self.mapping.substitute(&self.type_of(&of.range), false);
        let accumulator = self.type_of(&of.init);
        let outer = self.locals.len();
        self.locals.push((Arc::clone(&of.accumulator), accumulator.clone()));
        let two = of.second.is_some();
        // Before 1.33, cel-go left the second variable without a type unless the range was a list or a map.
        let second_of = |of| if self.environment.minor() < Minor::V1_33 { Type::untyped() } else { of };
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, Type::clone(element)),
            Type::List(element) => (Type::clone(element), Type::Error),
            Type::Map(key, value) => (Type::clone(key), Type::clone(value)),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.mapping.assignable(&Type::Dyn, &range);
                (Type::Dyn, second_of(Type::Dyn))
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report_with(of.range.id, IssueKind::NotARange, message, help::not_a_range(&range));
                (Type::Error, second_of(Type::Error))
            }
        };
        self.locals.push((Arc::clone(&of.variable), first));
        if let Some(name) = &of.second {
            self.locals.push((Arc::clone(name), second));
        }
        self.check(&mut of.condition);
        self.assert_type(&of.condition, &Type::Bool);
        self.check(&mut of.step);
        self.assert_type(&of.step, &accumulator);
        self.locals.truncate(outer + 1);
        self.check(&mut of.result);
        self.locals.truncate(outer);
        let result = self.mapping.substitute(&self.type_of(&of.result), false);
        self.set_type(id, result);
    }

    fn assert_type(&mut self, node: &Node, expected: &Type) {
        let found = self.type_of(node);
        if !self.mapping.assignable(expected, &found) {
            self.mismatch(node.id, expected, &found);
        }
    }
}

fn literal(value: &Literal) -> Type {
    match value {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// The type inside of an optional, and whether there was one.
pub(super) fn unwrap_optional(of: &Type) -> (&Type, bool) {
    match of {
        Type::Optional(of) => (of, true),
        _ => (of, false),
    }
}

/// `a.b.c`, if the expression has that form and `wanted` accepts names that begin with `a`.
pub(super) fn qualified_name(node: &Node, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut fields = Vec::new();
    let mut node = node;
    loop {
        match &node.expr {
            Expr::Select { operand, field, test: false } => {
                fields.push(&**field);
                node = operand;
            }
            Expr::Ident(first) if wanted(first.strip_prefix('.').unwrap_or(first)) => {
                fields.push(&**first);
                fields.reverse();
                return Some(fields.join("."));
            }
            _ => return None,
        }
    }
}

/// The number of parts of a type, or more than [`MAX_TYPE_SIZE`].
fn size(of: &Type) -> usize {
    fn count(of: &Type, left: usize) -> usize {
        if left == 0 {
            return 0;
        }
        match of {
            Type::List(of) | Type::Optional(of) | Type::Type(of) => count(of, left - 1),
            Type::Map(key, value) => {
                let left = count(key, left - 1);
                if left == 0 { 0 } else { count(value, left) }
            }
            _ => left - 1,
        }
    }
    MAX_TYPE_SIZE + 1 - count(of, MAX_TYPE_SIZE + 1)
}

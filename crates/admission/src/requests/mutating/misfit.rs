//! Finds the parts of a mutation's expression that the API server cannot apply to objects of a kind, by its schema. The API
//! server itself reports them only when it evaluates the mutation.

use std::collections::BTreeSet;

use palisade_cel::{
    ast::{Comprehension, Expr, FieldInit, Literal, Node, NodeId},
    check::Checked,
    schema::{Kind as ObjectKind, Schemas},
    types::Type,
    value::{JSON_PATCH, OBJECT},
};

use super::{
    schema::{Atom, Kind, ListType, MapType, Scalar, TypeRef, deduce},
    value::{MAX_SAFE, unexpected_name},
};

/// The operations of JSON patches.
const OPERATIONS: [&str; 6] = ["add", "copy", "move", "remove", "replace", "test"];

/// A part of a mutation that does not fit the schema of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Where it is in the expression.
    pub node: NodeId,
    /// The error, in the API server's words if the server reports it.
    pub message: String,
    /// The cause.
    pub cause: MisfitCause,
}

/// Why a part of a mutation does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MisfitCause {
    /// There is no such field, but these.
    Unknown(Vec<String>),
    /// There is no such operation of a JSON patch.
    Operation,
    /// A list or map that is only replaced as a whole, which is not possible in an `applyConfiguration`.
    Atomic,
    /// A value of another type, or the name of another type.
    Type,
}

/// The parts of a mutation's expression that do not fit objects of a kind; none if its schema is not known.
///
/// A value that only a request decides counts by its type. If that is dynamic, it fits. An unknown field in a JSON patch is
/// dropped if the kind is one of a CustomResourceDefinition; otherwise the API server denies the request for each misfit.
pub fn misfits(schemas: &Schemas, kind: &ObjectKind, mutation: &Checked) -> Vec<Misfit> {
    let Some(schema) = schemas.of_kind(kind) else { return Vec::new() };
    let mut walk = Walk { schemas, mutation, merged: true, atomics: true, seen: BTreeSet::new(), found: Vec::new() };
    let of = TypeRef::of(schema);
    if matches!(mutation.output_type(), Type::List(_)) {
        (walk.merged, walk.atomics) = (false, false);
        walk.operations(&mutation.ast.root, of);
    } else {
        walk.value(&mutation.ast.root, of, Place { path: "", name: OBJECT });
    }
    walk.found
}

/// Where a value is in the object, and the name of the type that an `Object` there has; empty if it may have any.
#[derive(Clone, Copy)]
struct Place<'p> {
    path: &'p str,
    name: &'p str,
}

struct Walk<'s, 'a> {
    schemas: &'s Schemas,
    mutation: &'a Checked,
    /// Whether the value is merged into the object, and not put in the place of a part of it.
    merged: bool,
    /// Whether atomic parts count: they do not in fields that the schema does not declare by name.
    atomics: bool,
    /// The atomic parts that were found.
    seen: BTreeSet<String>,
    found: Vec<Misfit>,
}

impl<'s> Walk<'s, '_> {
    fn add(&mut self, node: NodeId, cause: MisfitCause, message: String) {
        self.found.push(Misfit { node, message, cause });
    }

    /// Whether a part is atomic, which is reported once.
    fn is_atomic(&mut self, atomic: bool, node: NodeId, path: &str) -> bool {
        let found = atomic && self.atomics;
        if found && self.seen.insert(path.to_owned()) {
            let message = format!("may not mutate atomic arrays, maps or structs: {path}");
            self.add(node, MisfitCause::Atomic, message);
        }
        found
    }

    fn value(&mut self, node: &Node, of: TypeRef<'s>, at: Place<'_>) {
        match &node.expr {
            Expr::Call { function, target, args } => match (&**function, args.as_slice()) {
                ("_?_:_", [_, then, other]) => {
                    self.value(then, of, at);
                    self.value(other, of, at);
                }
                ("_+_", [one, other]) if matches!(self.mutation.type_of(node.id), Type::List(_)) => {
                    self.value(one, of, at);
                    self.value(other, of, at);
                }
                ("orValue" | "or", [other]) => {
                    for part in target.as_deref().into_iter().chain([other]) {
                        self.value(part, of, at);
                    }
                }
                ("optional.of" | "optional.ofNonZeroValue" | "dyn", [value]) => self.value(value, of, at),
                _ => self.typed(node, of, at),
            },
            Expr::Comprehension(comprehension) => match result(comprehension) {
                Some(parts) => {
                    for part in parts {
                        self.value(part, of, at);
                    }
                }
                None => self.typed(node, of, at),
            },
            Expr::Struct { name, fields } => self.object(node, name, fields, of, at),
            Expr::Map(entries) => {
                let Some(map) = self.map(node, of, at) else { return };
                for entry in entries {
                    let Expr::Literal(Literal::String(key)) = &entry.key.expr else { continue };
                    let path = format!("{}.{key}", at.path);
                    self.field(entry.id, key, &entry.value, &map, Place { path: &path, name: at.name });
                }
            }
            Expr::List { elements, .. } => {
                let Some(list) = self.list(node, of, at) else { return };
                for (index, element) in elements.iter().enumerate() {
                    let path = format!("{}[{index}]", at.path);
                    self.value(element, list.element, Place { path: &path, name: at.name });
                }
            }
            Expr::Literal(_) | Expr::Ident(_) | Expr::Select { .. } => self.typed(node, of, at),
        }
    }

    fn object(&mut self, node: &Node, name: &str, fields: &[FieldInit], of: TypeRef<'s>, at: Place<'_>) {
        if name != at.name && !at.name.is_empty() {
            return self.add(node.id, MisfitCause::Type, unexpected_name(name, at.name));
        }
        let Some(map) = self.map(node, of, at) else { return };
        for FieldInit { id, field, value, .. } in fields {
            let (path, name) = (format!("{}.{field}", at.path), format!("{name}.{field}"));
            self.field(*id, field, value, &map, Place { path: &path, name: &name });
        }
    }

    fn field(&mut self, id: NodeId, field: &str, value: &Node, map: &MapType<'s>, at: Place<'_>) {
        if let Some(of) = map.field(field) {
            let atomics = self.atomics;
            self.atomics &= map.declared(field).is_some();
            self.value(value, of, at);
            self.atomics = atomics;
        } else {
            let known = map.names().map(str::to_owned).collect();
            self.add(id, MisfitCause::Unknown(known), format!("{}: field not declared in schema", at.path));
        }
    }

    /// The type of a map; none if a map is not allowed here, is only replaced as a whole, or has no schema.
    fn map(&mut self, node: &Node, of: TypeRef<'s>, at: Place<'_>) -> Option<MapType<'s>> {
        let atom = deduce(of.resolve(self.schemas)?, Kind::Map);
        let Some(map) = atom.map else {
            self.unexpected(node.id, &atom, "map", at);
            return None;
        };
        (!self.is_atomic(map.atomic, node.id, at.path)).then_some(map)
    }

    /// The same for a list.
    fn list(&mut self, node: &Node, of: TypeRef<'s>, at: Place<'_>) -> Option<ListType<'s>> {
        let atom = deduce(of.resolve(self.schemas)?, Kind::List);
        let Some(list) = atom.list else {
            self.unexpected(node.id, &atom, "list", at);
            return None;
        };
        (!self.is_atomic(list.atomic, node.id, at.path)).then_some(list)
    }

    fn unexpected(&mut self, node: NodeId, atom: &Atom<'_>, got: &str, at: Place<'_>) {
        let expected = match atom {
            Atom { map: Some(_), .. } => "map",
            Atom { list: Some(_), .. } => "list",
            Atom { scalar: Some(Scalar::Numeric), .. } => "numeric (int or float)",
            Atom { scalar: Some(Scalar::String), .. } => "string",
            Atom { scalar: Some(Scalar::Boolean), .. } => "boolean",
            _ => "any scalar",
        };
        self.add(node, MisfitCause::Type, format!("{}: expected {expected}, got {got}", at.path));
    }

    /// A value of which only the type is known.
    fn typed(&mut self, node: &Node, of: TypeRef<'s>, at: Place<'_>) {
        let mut found = self.mutation.type_of(node.id);
        while let Type::Optional(inner) = found {
            found = inner;
        }
        let got = match found {
            Type::Map(..) => {
                self.map(node, of, at);
                return;
            }
            Type::List(_) => {
                self.list(node, of, at);
                return;
            }
            Type::Object(name) if !name.starts_with(OBJECT) => {
                self.map(node, of, at);
                return;
            }
            Type::String => "string",
            Type::Bool => "bool",
            // A JSON patch has it as any number, and a number that is too large for JSON as a string.
            Type::Uint if self.merged => "uint64",
            Type::Int if !self.merged && is_large(node) => "string",
            Type::Int | Type::Uint => "int64",
            Type::Double => "float64",
            _ => return,
        };
        let Some(atom) = of.resolve(self.schemas) else { return };
        let atom = deduce(atom, Kind::Scalar);
        let fits = match (atom.scalar, got) {
            (Some(Scalar::Untyped), "uint64") | (None, _) => false,
            (Some(Scalar::Untyped), _)
            | (Some(Scalar::String), "string")
            | (Some(Scalar::Boolean), "bool")
            | (Some(Scalar::Numeric), "int64" | "float64") => true,
            (Some(_), _) => false,
        };
        if !fits {
            self.unexpected(node.id, &atom, got, at);
        }
    }

    /// The operations in an expression of a JSON patch.
    fn operations(&mut self, node: &Node, of: TypeRef<'s>) {
        match &node.expr {
            Expr::Struct { name, fields } if &**name == JSON_PATCH => self.operation(fields, of),
            Expr::Call { .. } | Expr::List { .. } => node.children().for_each(|part| self.operations(part, of)),
            Expr::Comprehension(part) => {
                for node in [&part.init, &part.step, &part.result] {
                    self.operations(node, of);
                }
            }
            _ => {}
        }
    }

    fn operation(&mut self, fields: &[FieldInit], of: TypeRef<'s>) {
        let field = |name: &str| fields.iter().find(|field| &*field.field == name).map(|field| &field.value);
        let op = field("op").and_then(literal);
        if let (Some(op), Some(node)) = (op.filter(|op| !OPERATIONS.contains(op)), field("op")) {
            return self.add(node.id, MisfitCause::Operation, format!("Unexpected kind: {op}"));
        }
        for node in ["path", "from"].into_iter().filter_map(field) {
            self.pointer(node, of);
        }
        let written = field("path").map(start).filter(|(_, whole)| *whole);
        if let (Some((path, _)), Some(value)) = (written, field("value"))
            && let Ok(Some(of)) = self.at(of, &path, true)
        {
            self.value(value, of, Place { path: &path.replace('/', "."), name: "" });
        }
    }

    /// A path that names a field that does not exist.
    fn pointer(&mut self, node: &Node, of: TypeRef<'s>) {
        let (path, whole) = start(node);
        if let Err((path, known)) = self.at(of, &path, whole) {
            self.add(node.id, MisfitCause::Unknown(known), format!("{path}: field not declared in schema"));
        }
    }

    /// The type of what a path names; none if that is not known. Without its end, the last step of a path may go on.
    fn at(&self, of: TypeRef<'s>, path: &str, whole: bool) -> Result<Option<TypeRef<'s>>, (String, Vec<String>)> {
        let (mut of, mut walked) = (of, String::new());
        let steps: Vec<_> = path.split('/').skip(1).collect();
        let known = if whole { steps.len() } else { steps.len().saturating_sub(1) };
        for step in &steps[..known] {
            walked.push('/');
            walked.push_str(step);
            let Some(atom) = of.resolve(self.schemas) else { return Ok(None) };
            of = match atom {
                Atom { map: Some(map), list: None, scalar: None } => {
                    let name = step.replace("~1", "/").replace("~0", "~");
                    let unknown = || (walked.clone(), map.names().map(str::to_owned).collect());
                    map.field(&name).ok_or_else(unknown)?
                }
                Atom { list: Some(list), map: None, scalar: None } => list.element,
                _ => return Ok(None),
            };
        }
        Ok((known == steps.len()).then_some(of))
    }
}

/// The parts of a comprehension of which one is its value: those of a list that is built, or the value of `optMap`.
fn result(of: &Comprehension) -> Option<Vec<&Node>> {
    match (&of.init.expr, &of.range.expr) {
        (Expr::List { .. }, _) => Some(vec![&of.init, &of.step]),
        (_, Expr::List { elements, .. }) if elements.is_empty() => Some(vec![&of.result]),
        _ => None,
    }
}

/// Whether a literal is too large for a number in JSON.
fn is_large(node: &Node) -> bool {
    matches!(node.expr, Expr::Literal(Literal::Int(value)) if value.unsigned_abs() > MAX_SAFE)
}

fn literal(node: &Node) -> Option<&str> {
    match &node.expr {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    }
}

/// The text with which a concatenation begins, and whether that is all of it.
fn start(node: &Node) -> (String, bool) {
    match &node.expr {
        Expr::Literal(Literal::String(text)) => ((**text).to_owned(), true),
        Expr::Call { function, args, .. } if &**function == "_+_" => match args.as_slice() {
            [one, other] => match start(one) {
                (text, true) => {
                    let (rest, whole) = start(other);
                    (text + &rest, whole)
                }
                begun => begun,
            },
            _ => (String::new(), false),
        },
        _ => (String::new(), false),
    }
}

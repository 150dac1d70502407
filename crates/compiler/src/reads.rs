//! The fields of an object that the expressions of a custom check read, as far as an update can change them.
//!
//! An update is exempt only if it changes no field that a check reads. Administrators write the expressions, so this
//! module finds the fields in the syntax tree. If it cannot determine them, it assumes the whole object.

use std::{collections::BTreeSet, sync::Arc};

use palisade_api::names::Shape;
use palisade_cel::{
    ast::{Expr, Literal, Node},
    parse::parse,
};
use palisade_checks::cel;

use crate::style::SYNTAX;

/// Fields of `metadata` that a client can change by an update, other than finalizers. The API server sets the others,
/// or keeps them (`ValidateObjectMetaAccessorUpdate` in apimachinery `pkg/api/validation/objectmeta.go`).
const CHANGEABLE: [&str; 5] = ["annotations", "generateName", "labels", "ownerReferences", "selfLink"];
/// Fields of `metadata` that no update changes.
const FIXED: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "name",
    "__namespace__",
    "namespace",
    "uid",
];
/// Fields of `metadata` that are maps of texts.
const MAPS: [&str; 2] = ["annotations", "labels"];
/// Words that cannot be selected as they are, and that a workload could have as a field.
const RESERVED: [&str; 4] = ["as", "in", "namespace", "package"];
/// Maximum number of fields of an object that are compared one by one.
const MAX_FIELDS: usize = 64;
/// Maximum number of finalizers that are compared one by one.
const MAX_FINALIZERS: usize = 100;

/// The parts of an object that an expression reads. If an update does not change them, the result of the expression
/// stays the same. The spec of the pod or of the template is not part of this: each update that changes it is
/// evaluated. The same holds for the spec of other objects, whose fields are parts like others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    shape: Shape,
    parts: BTreeSet<Part>,
}

/// A part of an object outside of the pod's spec or template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A field of `metadata`.
    Metadata(Arc<str>),
    /// A key of a map in `metadata`.
    Key(Arc<str>, Arc<str>),
    /// A field of a workload or another object.
    Field(Arc<str>),
    /// All fields of an object except its metadata.
    Fields,
    /// A field of a workload's spec.
    Spec(Arc<str>),
}

impl Reads {
    /// The parts that the expressions of a check read. An expression that does not parse is assumed to read all parts.
    pub fn of<'a>(expressions: impl IntoIterator<Item = &'a str>, shape: Shape) -> Self {
        let mut walk = Walk { shape, parts: BTreeSet::new(), bound: Vec::new() };
        for expression in expressions {
            match parse(expression, SYNTAX) {
                Ok(tree) => walk.walk(&tree.root),
                Err(_) => walk.everything(),
            }
        }
        let whole = walk.parts.clone();
        walk.parts.retain(|part| match part {
            Part::Key(map, _) => !whole.contains(&Part::Metadata(Arc::clone(map))),
            Part::Spec(_) => !whole.contains(&Part::Field("spec".into())),
            Part::Metadata(_) | Part::Field(_) | Part::Fields => true,
        });
        // Whatever else a check reads, each update that changes the spec is evaluated.
        if shape == Shape::Objects {
            walk.read(Part::Field("spec".into()));
        }
        if walk.parts.contains(&Part::Fields) {
            walk.parts.retain(|part| !matches!(part, Part::Field(_)));
        }
        Self { shape, parts: walk.parts }
    }

    /// Whether some of it is in `metadata`.
    pub fn some_metadata(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Metadata(_) | Part::Key(..)))
    }

    /// Terms of CEL of type bool that all hold if an update changes none of it. They cannot fail.
    pub fn unchanged(&self) -> Vec<String> {
        let same = |path: &str| match self.shape {
            Shape::Pods | Shape::Workloads => format!("object{path} == oldObject{path}"),
            Shape::Objects => format!("dyn(object){path} == dyn(oldObject){path}"),
        };
        let of_workload = |path: &str| format!("dyn(object){path} == dyn(oldObject){path}");
        self.parts
            .iter()
            .map(|part| match part {
                Part::Metadata(field) if &**field == "finalizers" => finalizers(self.shape),
                Part::Metadata(field) => same(&format!(".metadata.?{field}")),
                Part::Key(map, key) => same(&format!(".metadata.?{map}[?{}]", cel::quote(key))),
                Part::Fields => fields(),
                Part::Field(field) => of_workload(&optional(field)),
                Part::Spec(field) => of_workload(&format!(".?spec{}", optional(field))),
            })
            .collect()
    }
}

/// The selection of a field that may be absent, after an operand.
fn optional(field: &str) -> String {
    let name = field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let plain = name && field.starts_with(|first: char| first.is_ascii_lowercase()) && !RESERVED.contains(&field);
    if plain { format!(".?{field}") } else { format!("[?{}]", cel::quote(field)) }
}

/// Finalizers can always be removed: without that, an object could stay forever.
fn finalizers(shape: Shape) -> String {
    let of = |object: &str| format!("{object}.metadata.?finalizers.orValue([])");
    let (new, old) = match shape {
        Shape::Pods | Shape::Workloads => (of("object"), of("oldObject")),
        Shape::Objects => (of("dyn(object)"), of("dyn(oldObject)")),
    };
    format!(
        "({new} == {old} || ({new}.size() <= {MAX_FINALIZERS} && {old}.size() <= {MAX_FINALIZERS} \
         && {new}.all(f, f in {old})))"
    )
}

/// All fields except metadata. An object with more fields than any kind of Kubernetes has is evaluated.
fn fields() -> String {
    let (new, old) = ("dyn(object)", "dyn(oldObject)");
    format!(
        "{new}.size() == {old}.size() && {new}.size() <= {MAX_FIELDS} \
         && {new}.all(f, f == 'metadata' || {old}[?f] == optional.of({new}[f]))"
    )
}

struct Walk {
    shape: Shape,
    parts: BTreeSet<Part>,
    /// The names that enclosing loops bind.
    bound: Vec<Arc<str>>,
}

/// A variable of the policy's environment, and the path of fields and keys that an expression selects from it.
struct Place<'a> {
    root: &'a str,
    keys: Vec<&'a Arc<str>>,
    /// Whether all fields and keys so far are known.
    known: bool,
    /// Other expressions in it: computed keys, and the values that replace missing ones.
    others: Vec<&'a Node>,
}

impl Walk {
    fn walk(&mut self, node: &Node) {
        if let Some(place) = self.place(node) {
            self.note(&place);
            place.others.into_iter().for_each(|other| self.walk(other));
            return;
        }
        match &node.expr {
            Expr::Call { function, args, .. } if &**function == "@in" && args.len() == 2 => {
                self.member(&args[0], &args[1]);
            }
            Expr::Comprehension(fold) => {
                self.walk(&fold.range);
                self.walk(&fold.init);
                let outside = self.bound.len();
                self.bound.extend([&fold.variable, &fold.accumulator].into_iter().chain(&fold.second).cloned());
                self.walk(&fold.condition);
                self.walk(&fold.step);
                self.bound.truncate(outside);
                // The result knows the accumulator alone.
                self.bound.push(Arc::clone(&fold.accumulator));
                self.walk(&fold.result);
                self.bound.truncate(outside);
            }
            _ => node.children().for_each(|part| self.walk(part)),
        }
    }

    /// `'key' in map`.
    fn member(&mut self, key: &Node, map: &Node) {
        let text = match &key.expr {
            Expr::Literal(Literal::String(text)) => Some(text),
            _ => None,
        };
        match (text, self.place(map)) {
            (Some(text), Some(mut place)) if place.is_map() => {
                place.keys.push(text);
                self.note(&place);
                place.others.into_iter().for_each(|other| self.walk(other));
            }
            _ => [key, map].into_iter().for_each(|part| self.walk(part)),
        }
    }

    /// The place that an expression reads; `None` if it is not just that.
    fn place<'a>(&self, node: &'a Node) -> Option<Place<'a>> {
        match &node.expr {
            Expr::Ident(name) => {
                let root = name.strip_prefix('.').unwrap_or(name);
                // With a dot, it is never the variable of a loop.
                let of_loop = root.len() == name.len() && self.bound.contains(name);
                (!of_loop).then_some(Place { root, keys: Vec::new(), known: true, others: Vec::new() })
            }
            Expr::Select { operand, field, .. } => Some(self.place(operand)?.below(Some(field))),
            Expr::Call { function, target, args } => match (&**function, target, args.as_slice()) {
                ("_?._" | "_[_]" | "_[?_]", None, [operand, key]) => {
                    let mut place = self.place(operand)?;
                    if let Expr::Literal(Literal::String(key)) = &key.expr {
                        return Some(place.below(Some(key)));
                    }
                    place.others.push(key);
                    Some(place.below(None))
                }
                ("orValue", Some(of), [other]) => {
                    let mut place = self.place(of)?;
                    place.others.push(other);
                    Some(place)
                }
                ("value" | "hasValue", Some(of), []) => self.place(of),
                ("dyn", None, [of]) => self.place(of),
                _ => None,
            },
            _ => None,
        }
    }

    fn note(&mut self, place: &Place<'_>) {
        let keys: Vec<&str> = place.keys.iter().map(|key| &***key).collect();
        match (place.root, keys.as_slice()) {
            ("object", keys) => self.of_object(keys),
            ("variables", ["object", rest @ ..]) if self.shape == Shape::Objects => self.of_object(rest),
            ("variables", ["annotations", rest @ ..]) if self.shape == Shape::Pods => {
                self.of_metadata("annotations", rest);
            }
            // The spec, or the template, and parts of it; and what a request always says of an object. Of the rest of a
            // request, each update can change it: who sends it, say.
            ("request", ["kind" | "name" | "namespace" | "__namespace__" | "resource" | "subResource", ..]) => {}
            (
                "variables",
                ["spec" | "containers" | "volumes" | "podSecurityContext" | "template" | "annotations", ..],
            ) if self.shape != Shape::Objects => {}
            ("oldObject" | "request" | "variables" | "authorizer", _) => self.everything(),
            // `params` and `namespaceObject` are not part of the object; nothing else has data of the request, and
            // `container` and `volume` are in the spec.
            _ => {}
        }
    }

    fn of_object(&mut self, keys: &[&str]) {
        match keys {
            [] => self.everything(),
            ["metadata"] => self.all_metadata(),
            ["metadata", field, rest @ ..] => self.of_metadata(field, rest),
            ["spec", ..] if self.shape == Shape::Pods => {}
            ["apiVersion" | "kind", ..] if self.shape == Shape::Objects => {}
            [field, ..] if self.shape == Shape::Objects => self.read(Part::Field((*field).into())),
            // No update of the object changes the first three. In the others a kind has its template, and no other kind has
            // such a field.
            ["apiVersion" | "kind" | "status" | "template", ..] | ["spec", "template", ..] => {}
            ["spec", field, ..] => self.read(Part::Spec((*field).into())),
            [field, ..] => self.read(Part::Field((*field).into())),
        }
    }

    fn of_metadata(&mut self, field: &str, rest: &[&str]) {
        match (field, rest) {
            (field, _) if FIXED.contains(&field) => {}
            // A key with underscores may be escaped.
            (map, [key, ..]) if MAPS.contains(&map) && !key.starts_with("__") => {
                self.read(Part::Key(map.into(), (*key).into()));
            }
            (field, _) if CHANGEABLE.contains(&field) || field == "finalizers" => {
                self.read(Part::Metadata(field.into()));
            }
            // The API server sets it in each update.
            _ => self.everything(),
        }
    }

    fn all_metadata(&mut self) {
        self.parts.extend(CHANGEABLE.into_iter().chain(["finalizers"]).map(|field| Part::Metadata(field.into())));
    }

    fn everything(&mut self) {
        self.all_metadata();
        match self.shape {
            Shape::Pods => {}
            Shape::Workloads => self.read(Part::Field("spec".into())),
            Shape::Objects => self.read(Part::Fields),
        }
    }

    fn read(&mut self, part: Part) {
        self.parts.insert(part);
    }
}

impl<'a> Place<'a> {
    /// One field or key further; `None` for one that is computed.
    fn below(mut self, key: Option<&'a Arc<str>>) -> Self {
        self.known &= key.is_some();
        if self.known {
            self.keys.extend(key);
        }
        self
    }

    /// Whether it is a map in `metadata`.
    fn is_map(&self) -> bool {
        let keys: Vec<&str> = self.keys.iter().map(|key| &***key).collect();
        self.known
            && match (self.root, keys.as_slice()) {
                ("object", ["metadata", field]) => MAPS.contains(field),
                ("variables", ["annotations"]) => true,
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests;

//! Schemas to types (apiserver `pkg/cel/common/schemas.go` and `pkg/cel/openapi/resolver`).

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    sync::Arc,
};

use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use crate::{
    Minor,
    environment::{Environment, Fields},
    names::{escape, unescape},
    structural::flag,
    types::Type,
};

/// The schema of the metadata of any object.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// The same in the definitions of Kubernetes 1.33 and 1.34.
const OBJECT_META_BEFORE_35: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta";
const REF: &str = "#/components/schemas/";

/// Schemas that refer to one another by name, as `/openapi/v3` publishes them in `components.schemas`.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    by_name: BTreeMap<String, Value>,
    by_kind: BTreeMap<Kind, String>,
}

/// The schemas of the built-in kinds, as `tests/oracle` writes them.
#[derive(serde::Deserialize)]
struct Extract {
    kinds: BTreeMap<String, String>,
    schemas: BTreeMap<String, Value>,
}

/// A kind of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Its API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Kind {
    /// Reads `v1/Pod` or `apps/v1/Deployment`.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, kind) = text.rsplit_once('/')?;
        let (group, version) = rest.rsplit_once('/').unwrap_or(("", rest));
        Some(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }
}

impl std::fmt::Display for Kind {
    /// As Go writes a `GroupVersionKind`: `apps/v1, Kind=Deployment`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

impl Schemas {
    /// The schemas of the kinds that are built into a minor, as kube-controller-manager has them.
    ///
    /// # Errors
    /// The compiled-in file is damaged, which a test excludes.
    pub fn builtin(minor: Minor) -> io::Result<Self> {
        static PACKED: [&[u8]; Minor::ALL.len()] = [
            include_bytes!("../../openapi/1.32.json.gz"),
            include_bytes!("../../openapi/1.33.json.gz"),
            include_bytes!("../../openapi/1.34.json.gz"),
            include_bytes!("../../openapi/1.35.json.gz"),
            include_bytes!("../../openapi/1.36.json.gz"),
            include_bytes!("../../openapi/1.37.json.gz"),
        ];
        let packed = PACKED[minor.index()];
        let mut text = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut text)?;
        let Extract { kinds, schemas } = serde_json::from_slice(&text)?;
        let by_kind = kinds.into_iter().filter_map(|(kind, name)| Some((Kind::parse(&kind)?, name))).collect();
        Ok(Self { by_name: schemas, by_kind })
    }

    /// Adds the schemas of a document of `/openapi/v3`. Kinds are known by `x-kubernetes-group-version-kind`.
    pub fn add_document(&mut self, document: &Value) {
        let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object) else { return };
        for (name, schema) in schemas {
            self.add(name, schema.clone());
        }
    }

    fn add(&mut self, name: &str, schema: Value) {
        let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        for kind in kinds.into_iter().flatten() {
            let part = |name: &str| kind.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let kind = Kind { group: part("group"), version: part("version"), kind: part("kind") };
            self.by_kind.insert(kind, name.to_owned());
        }
        self.by_name.insert(name.to_owned(), schema);
    }

    /// Adds the kinds of a CustomResourceDefinition, as the API server publishes them (apiextensions-apiserver
    /// `pkg/controller/openapi/builder`): with the metadata of all objects.
    pub fn add_crd(&mut self, crd: &Value) {
        let text = |at: &str| crd.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            let name = version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let schema = version.pointer("/schema/openAPIV3Schema").map(|schema| {
                let mut schema = schema.clone();
                publish(&mut schema, true);
                schema
            });
            let schema = schema.unwrap_or_else(|| serde_json::json!({ "type": "object" }));
            let key = Kind { group: group.clone(), version: name, kind: kind.clone() };
            let name = format!("{key}");
            self.by_name.insert(name.clone(), schema);
            self.by_kind.insert(key, name);
        }
    }

    /// The kinds with a known schema.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.by_kind.keys()
    }

    /// Whether the schema of a kind is known.
    pub fn has(&self, kind: &Kind) -> bool {
        self.by_kind.contains_key(kind)
    }

    /// Whether an object of a kind has to have a field, or gets it from its schema: of the struct that
    /// [`Self::declare`] named by its `path` the field that expressions call `field`. None if there is no such.
    pub fn is_required(&self, kind: &Kind, path: &str, field: &str) -> Option<bool> {
        let mut schema = self.by_name.get(self.by_kind.get(kind)?)?;
        for step in path.split('.').skip(1) {
            schema = self.resolve(schema);
            schema = match step {
                "@idx" => schema.get("items")?,
                "@elem" => schema.get("additionalProperties")?,
                step => schema.get("properties")?.get(&*unescape(step)?)?,
            };
        }
        schema = self.resolve(schema);
        let name = unescape(field)?;
        let property = schema.get("properties")?.get(&*name)?;
        let required = schema.get("required").and_then(Value::as_array);
        let named = required.is_some_and(|required| required.iter().any(|one| *one == *name));
        Some(named || property.get("default").is_some())
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        self.referred(schema).map_or(schema, |(_, referred)| referred)
    }

    /// The schema of a kind. References in it (`$ref`) are read with [`Self::named`].
    pub fn of_kind(&self, kind: &Kind) -> Option<&Value> {
        self.by_name.get(self.by_kind.get(kind)?)
    }

    /// The schema that a reference names, with or without `#/components/schemas/` before it.
    pub fn named(&self, name: &str) -> Option<&Value> {
        let name = name.strip_prefix(REF).unwrap_or(name);
        let name = if name == OBJECT_META && !self.by_name.contains_key(name) { OBJECT_META_BEFORE_35 } else { name };
        self.by_name.get(name)
    }

    /// Declares the struct of a kind, and of all that is in it, each named by its path (`Pod.spec.containers.@idx`);
    /// the type of the kind's objects, dynamic if the schema is not exposed. None if it is not known.
    pub fn declare(&self, environment: Environment, kind: &Kind) -> Option<(Environment, Type)> {
        self.declare_as(environment, kind, &kind.kind)
    }

    /// As [`Self::declare`], with another name than the kind's.
    pub(super) fn declare_as(
        &self,
        environment: Environment,
        kind: &Kind,
        as_name: &str,
    ) -> Option<(Environment, Type)> {
        let name = self.by_kind.get(kind)?;
        let schema = self.by_name.get(name)?;
        let mut declaring = Declaring { schemas: self, environment, visited: vec![name] };
        let of = declaring.of(schema, as_name, true).unwrap_or(Type::Dyn);
        Some((declaring.environment, of))
    }

    /// The schema that another refers to. A reference may be wrapped in `allOf` to have a description of its own.
    fn referred<'a>(&'a self, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.strip_prefix(REF).unwrap_or(name);
            return Some((name, self.named(name)?));
        }
        schema.get("allOf").and_then(Value::as_array)?.iter().find_map(|inner| self.referred(inner))
    }
}

/// Adds what every object, and every object inside of another, has.
fn publish(schema: &mut Value, root: bool) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|property| publish(property, false));
    }
    for part in ["items", "additionalProperties"] {
        if let Some(part) = schema.get_mut(part) {
            publish(part, false);
        }
    }
    if root || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            properties.insert("metadata".to_owned(), serde_json::json!({ "$ref": format!("{REF}{OBJECT_META}") }));
            for name in ["apiVersion", "kind"] {
                properties.insert(name.to_owned(), serde_json::json!({ "type": "string" }));
            }
        }
    }
}

struct Declaring<'a> {
    schemas: &'a Schemas,
    environment: Environment,
    /// The references on the way here.
    visited: Vec<&'a str>,
}

impl<'a> Declaring<'a> {
    /// The type of what a schema describes, unless it is not exposed.
    fn of(&mut self, schema: &'a Value, path: &str, root: bool) -> Option<Type> {
        let Some((name, referred)) = self.schemas.referred(schema) else { return self.resolved(schema, path, root) };
        if self.visited.contains(&name) {
            // An object without fields stands for what contains itself.
            self.declare(path, Fields::new());
            return Some(Type::Object(path.into()));
        }
        self.visited.push(name);
        let of = self.resolved(referred, path, root);
        self.visited.pop();
        of
    }

    fn resolved(&mut self, schema: &'a Value, path: &str, root: bool) -> Option<Type> {
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("format") == "int-or-string" || flag(schema, "x-kubernetes-int-or-string") {
            return Some(Type::Dyn);
        }
        match type_name(schema) {
            "array" => {
                let items = schema.get("items").filter(|items| items.is_object())?;
                let of = self.of(items, &format!("{path}.@idx"), embedded(items))?;
                Some(Type::List(Arc::new(of)))
            }
            "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
                Some(values) => {
                    let of = self.of(values, &format!("{path}.@elem"), embedded(values))?;
                    Some(Type::Map(Arc::new(Type::String), Arc::new(of)))
                }
                _ => Some(self.object(schema, path, root)),
            },
            "string" => Some(match text("format") {
                "byte" => Type::Bytes,
                "duration" => Type::Duration,
                "date" | "date-time" => Type::Timestamp,
                _ => Type::String,
            }),
            "boolean" => Some(Type::Bool),
            "number" => Some(Type::Double),
            "integer" => Some(Type::Int),
            _ => None,
        }
    }

    fn object(&mut self, schema: &'a Value, path: &str, root: bool) -> Type {
        let mut fields = Fields::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let Some(field) = escape(name) else { continue };
            if let Some(of) = self.of(property, &format!("{path}.{field}"), embedded(property)) {
                fields.insert(field.into(), of);
            }
        }
        if root && !self.has_metadata(schema) {
            let metadata = format!("{path}.metadata");
            for field in ["apiVersion", "kind"] {
                fields.insert(field.into(), Type::String);
            }
            let names = ["name", "generateName"].map(|name| (name.into(), Type::String));
            self.declare(&metadata, names.into_iter().collect());
            fields.insert("metadata".into(), Type::Object(metadata.into()));
        }
        self.declare(path, fields);
        Type::Object(path.into())
    }

    /// Whether a schema of an object says itself what each object has (`WithTypeAndObjectMeta`).
    fn has_metadata(&self, schema: &Value) -> bool {
        let is = |of: Option<&Value>, expected: &str| of.is_some_and(|of| type_name(of) == expected);
        let metadata = self.property(schema, "metadata");
        let inner = |name: &str| metadata.and_then(|metadata| self.property(metadata, name));
        is(self.property(schema, "kind"), "string")
            && is(self.property(schema, "apiVersion"), "string")
            && is(metadata, "object")
            && is(inner("name"), "string")
            && is(inner("generateName"), "string")
    }

    /// A property's own schema, or the one that it refers to.
    fn property<'s>(&'s self, schema: &'s Value, name: &str) -> Option<&'s Value> {
        let property = schema.get("properties")?.get(name)?;
        Some(self.schemas.referred(property).map_or(property, |(_, referred)| referred))
    }

    fn declare(&mut self, path: &str, fields: Fields) {
        self.environment.add_struct(path, fields);
    }
}

fn embedded(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}

/// The type of a schema, the first if there are several.
fn type_name(schema: &Value) -> &str {
    let of = schema.get("type");
    of.and_then(Value::as_array).and_then(|all| all.first()).or(of).and_then(Value::as_str).unwrap_or_default()
}

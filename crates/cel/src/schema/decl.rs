//! Declarations for rules, from the schemas of CustomResourceDefinitions (apiserver `pkg/cel/common/schemas.go`,
//! apiextensions-apiserver `pkg/apiserver/schema/cel`).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    Minor,
    environment::{Environment, Fields},
    estimate::Sizes,
    names::escape,
    structural::{flag, part, properties, text},
    types::Type,
};

/// The most bytes that a request may have (`pkg/apis/cel/config.go`, `MaxRequestSizeBytes`).
const MAX_REQUEST: u64 = 3 * 1024 * 1024;
/// The longest text in a request, without its quotes.
const MAX_TEXT: u64 = MAX_REQUEST - 2;

/// The declared type, for rules, of the values that a schema describes, with limits on their size.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclType {
    kind: Kind,
    /// The most elements, entries or bytes; 0 of what has no size.
    most: u64,
    /// The fewest bytes that such a value has as JSON.
    least_bytes: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Simple(Type),
    List(Box<DeclType>),
    Map(Box<DeclType>),
    Object(BTreeMap<Arc<str>, DeclType>),
}

impl DeclType {
    /// The type of what a schema describes, unless rules cannot see it: a schema without a type, a list of what cannot be
    /// seen. The schema is one that [`with_metadata`](crate::schema::with_metadata) was applied to. `minor` is the
    /// server's.
    pub fn new(schema: &Value, minor: Minor) -> Option<Self> {
        let number = |key: &str| schema.get(key).and_then(Value::as_i64).map(|most| u64::try_from(most).unwrap_or(0));
        let format = text(schema, "format");
        let simple = |of: Type, most: u64, least_bytes: u64| Some(Self { kind: Kind::Simple(of), most, least_bytes });
        // A character has at most four bytes.
        let text_length = || number("maxLength").map(|most| most.saturating_mul(4));
        if flag(schema, "x-kubernetes-int-or-string") {
            let most = if minor >= Minor::V1_34 { text_length() } else { None };
            return simple(Type::Dyn, most.unwrap_or(MAX_TEXT), 1);
        }
        match text(schema, "type") {
            "array" => {
                let items = Self::new(part(schema, "items")?, minor)?;
                let most = number("maxItems").unwrap_or((MAX_REQUEST - 2) / (items.least_bytes + 1));
                Some(Self { kind: Kind::List(Box::new(items)), most, least_bytes: 2 })
            }
            "object" => match part(schema, "additionalProperties") {
                Some(values) => {
                    let values = Self::new(values, minor)?;
                    // A key, quotes, a colon and a comma.
                    let most = number("maxProperties").unwrap_or((MAX_REQUEST - 2) / (values.least_bytes + 6));
                    Some(Self { kind: Kind::Map(Box::new(values)), most, least_bytes: 2 })
                }
                None => Some(Self::object(schema, minor)),
            },
            "string" => match format {
                "byte" => simple(Type::Bytes, number("maxLength").unwrap_or(MAX_TEXT), 2),
                "duration" => simple(Type::Duration, 32, 3),
                "date" => simple(Type::Timestamp, 12, 12),
                "date-time" => simple(Type::Timestamp, 32, 21),
                _ => simple(Type::String, text_length().unwrap_or_else(|| longest(schema).unwrap_or(MAX_TEXT)), 2),
            },
            "boolean" => simple(Type::Bool, 0, 4),
            "number" => simple(Type::Double, 0, 1),
            "integer" => simple(Type::Int, 0, 1),
            _ => None,
        }
    }

    fn object(schema: &Value, minor: Minor) -> Self {
        let required: BTreeSet<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let (mut fields, mut least_bytes) = (BTreeMap::new(), 2);
        for (name, property) in properties(schema).into_iter().flatten() {
            let Some(of) = Self::new(property, minor) else { continue };
            // The server sets defaults.
            if required.contains(name.as_str()) && property.get("default").is_none_or(Value::is_null) {
                least_bytes += name.len() as u64 + of.least_bytes + 4;
            }
            if let Some(name) = escape(name) {
                fields.insert(name.into(), of);
            }
        }
        Self { kind: Kind::Object(fields), most: 0, least_bytes }
    }

    /// Declares the structs that it has in it, named by their path in the one of this name; the type.
    pub fn declare(&self, environment: Environment, name: &str) -> (Environment, Type) {
        let mut environment = environment;
        let of = self.declare_in(&mut environment, name);
        (environment, of)
    }

    fn declare_in(&self, environment: &mut Environment, name: &str) -> Type {
        match &self.kind {
            Kind::Simple(of) => of.clone(),
            Kind::List(of) => Type::List(Arc::new(of.declare_in(environment, &format!("{name}.@idx")))),
            Kind::Map(of) => {
                Type::Map(Arc::new(Type::String), Arc::new(of.declare_in(environment, &format!("{name}.@elem"))))
            }
            Kind::Object(of) => {
                let declared: Fields = of
                    .iter()
                    .map(|(field, of)| (Arc::clone(field), of.declare_in(environment, &format!("{name}.{field}"))))
                    .collect();
                environment.add_struct(name, declared);
                Type::Object(name.into())
            }
        }
    }

    /// How many such values fit into a request, unless something else limits their number.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST / (self.least_bytes + 1)
    }
}

/// The longest of the texts that a schema allows, if it says which.
fn longest(schema: &Value) -> Option<u64> {
    let values = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty())?;
    Some(values.iter().filter_map(Value::as_str).map(|text| text.len() as u64).max().unwrap_or(0))
}

impl Sizes for DeclType {
    /// Every path begins at this type, whatever its first step is.
    fn most(&self, path: &[Arc<str>]) -> Option<u64> {
        let (_, steps) = path.split_first()?;
        let mut of = self;
        for (index, step) in steps.iter().enumerate() {
            of = match (&**step, &of.kind) {
                ("@items" | "@values", Kind::List(inner) | Kind::Map(inner)) => inner,
                // A key has no size that is known, nor anything in it.
                ("@keys", Kind::Map(_)) => return (index + 1 == steps.len()).then_some(0),
                ("@items" | "@values" | "@keys", _) => return None,
                (field, Kind::Object(fields)) => fields.get(field)?,
                _ => return None,
            };
        }
        Some(of.most)
    }
}

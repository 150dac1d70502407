//! The Go types that the API server decodes the built-in kinds into, as `tests/oracle` read them by reflection.

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    sync::{Arc, OnceLock},
};

use flate2::read::GzDecoder;
use palisade_cel::Minor;
use serde::Deserialize;
use serde_json::Value;

/// What `tests/oracle types` writes.
#[derive(Deserialize)]
struct Extract {
    resources: Vec<BuiltinResource>,
    structs: BTreeMap<String, Vec<Vec<Value>>>,
    named: BTreeMap<String, String>,
}

/// A resource of the list of discovery.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BuiltinResource {
    #[serde(default)]
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    #[serde(default)]
    pub namespaced: bool,
    pub verbs: Vec<String>,
    /// The name of its struct; empty where kube-apiserver's schemes do not have it.
    #[serde(default, rename = "type")]
    pub go_type: String,
    /// The warning for clients that use it; empty if it is not deprecated.
    #[serde(default)]
    pub deprecated: String,
    #[serde(default)]
    pub subresources: Vec<BuiltinSubresource>,
}

/// A subresource of the list of discovery.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BuiltinSubresource {
    pub name: String,
    #[serde(default)]
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<String>,
    #[serde(default, rename = "type")]
    pub go_type: String,
}

/// A type of Go.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// A struct, by its name: `core/v1.Pod`.
    Struct(Arc<str>),
    /// A type with a custom form in JSON, by its name: `resource.Quantity`.
    Own(Own),
    /// Another type that has a name: `core/v1.PullPolicy`.
    Named(Arc<str>, Box<Type>),
    Pointer(Box<Type>),
    List(Box<Type>),
    /// The keys are strings.
    Map(Box<Type>),
    Bytes,
    Text,
    Bool,
    /// Of so many bits.
    Int(u8),
    Float,
}

/// Types with their own code for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// Any JSON: `RawExtension`, `FieldsV1`, and the parts of schemas that take more than one form.
    Any,
}

impl Type {
    fn parse(text: &str, named: &BTreeMap<String, String>) -> Option<Self> {
        let inner = |text: &str| Self::parse(text, named).map(Box::new);
        if let Some(rest) = text.strip_prefix('*') {
            return Some(Self::Pointer(inner(rest)?));
        }
        if text == "[]uint8" {
            return Some(Self::Bytes);
        }
        if let Some(rest) = text.strip_prefix("[]") {
            return Some(Self::List(inner(rest)?));
        }
        if let Some(rest) = text.strip_prefix("map[string]") {
            return Some(Self::Map(inner(rest)?));
        }
        if let Some(under) = named.get(text) {
            return Some(Self::Named(text.into(), inner(under)?));
        }
        Some(match text {
            "string" => Self::Text,
            "bool" => Self::Bool,
            "int32" => Self::Int(32),
            "int64" | "int" => Self::Int(64),
            "float64" => Self::Float,
            "resource.Quantity" => Self::Own(Own::Quantity),
            "intstr.IntOrString" => Self::Own(Own::IntOrString),
            "meta/v1.Time" => Self::Own(Own::Time),
            "meta/v1.MicroTime" => Self::Own(Own::MicroTime),
            "meta/v1.Duration" => Self::Own(Own::Duration),
            "meta/v1.FieldsV1"
            | "runtime.RawExtension"
            | "apiextensions/v1.JSON"
            | "apiextensions/v1.JSONSchemaPropsOrBool"
            | "apiextensions/v1.JSONSchemaPropsOrArray"
            | "apiextensions/v1.JSONSchemaPropsOrStringArray" => Self::Own(Own::Any),
            name if name.contains('.') => Self::Struct(name.into()),
            _ => return None,
        })
    }

    /// The type that it is defined as, without its name.
    pub(super) fn under(&self) -> &Self {
        match self {
            Self::Named(_, under) => under.under(),
            other => other,
        }
    }

    /// As Go writes it in messages: `v1.PullPolicy`, `[]v1.Container`.
    pub(super) fn go_name(&self) -> String {
        let short = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
        match self {
            Self::Struct(name) | Self::Named(name, _) => short(name),
            Self::Own(own) => match own {
                Own::Quantity => "resource.Quantity",
                Own::IntOrString => "intstr.IntOrString",
                Own::Time => "v1.Time",
                Own::MicroTime => "v1.MicroTime",
                Own::Duration => "v1.Duration",
                Own::Any => "runtime.RawExtension",
            }
            .to_owned(),
            Self::Pointer(inner) => format!("*{}", inner.go_name()),
            Self::List(inner) => format!("[]{}", inner.go_name()),
            Self::Map(inner) => format!("map[string]{}", inner.go_name()),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int(bits) => format!("int{bits}"),
            Self::Float => "float64".to_owned(),
        }
    }
}

/// A field of a struct; those of inlined structs are fields of the outer one.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// The key in JSON.
    pub name: String,
    pub of: Type,
    /// `omitempty`
    pub omit_empty: bool,
    /// `omitzero`
    pub omit_zero: bool,
    /// What `+default` declares.
    pub default: Option<Value>,
    /// The Go names of the inlined structs between: messages name them.
    pub through: Vec<String>,
}

/// A struct.
#[derive(Clone, Debug, Default)]
pub(super) struct Struct {
    pub fields: Vec<Field>,
    /// Its name and those of the structs that are inlined into it, the outermost first.
    pub parts: Vec<String>,
}

impl Struct {
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// All of a minor.
#[derive(Debug)]
pub(super) struct Table {
    pub minor: Minor,
    pub resources: Vec<BuiltinResource>,
    structs: BTreeMap<String, Struct>,
}

impl Table {
    /// That of a minor, read once in a process.
    pub(super) fn of(minor: Minor) -> Arc<Self> {
        static PACKED: [&[u8]; Minor::ALL.len()] = [
            include_bytes!("../../types/1.32.json.gz"),
            include_bytes!("../../types/1.33.json.gz"),
            include_bytes!("../../types/1.34.json.gz"),
            include_bytes!("../../types/1.35.json.gz"),
            include_bytes!("../../types/1.36.json.gz"),
            include_bytes!("../../types/1.37.json.gz"),
        ];
        static TABLES: [OnceLock<Arc<Table>>; Minor::ALL.len()] = [const { OnceLock::new() }; Minor::ALL.len()];
        let index = minor.index();
        let packed = PACKED[index];
        // An empty table has no kinds, which a test excludes.
        let read = || Self::read(minor, packed).unwrap_or_else(|_| Self::empty(minor));
        TABLES[index].get_or_init(|| Arc::new(read())).clone()
    }

    /// A table without types, for objects whose fields only a schema describes.
    pub(super) fn empty(minor: Minor) -> Self {
        Self { minor, resources: Vec::new(), structs: BTreeMap::new() }
    }

    fn read(minor: Minor, packed: &[u8]) -> io::Result<Self> {
        let mut text = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut text)?;
        let extract: Extract = serde_json::from_slice(&text)?;
        let mut structs = BTreeMap::new();
        for name in extract.structs.keys() {
            let mut of = Struct::default();
            flatten(&extract, name, &[], &mut of)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, name.clone()))?;
            // The decoder of those minors does not name them in errors.
            if minor < Minor::V1_35 {
                of.fields.iter_mut().for_each(|field| field.through.clear());
            }
            structs.insert(name.clone(), of);
        }
        Ok(Self { minor, resources: extract.resources, structs })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Struct> {
        self.structs.get(name)
    }
}

/// Adds the fields of a struct to those of another that it is part of. None if the table is not as it should be.
fn flatten(extract: &Extract, name: &str, through: &[String], into: &mut Struct) -> Option<()> {
    into.parts.push(name.to_owned());
    for field in extract.structs.get(name)? {
        let text = |i: usize| field.get(i).and_then(Value::as_str);
        let (key, of, flags) = (text(0)?, text(1)?, text(2)?);
        if flags.contains('i') {
            let mut inner = through.to_vec();
            inner.push(of.rsplit('.').next()?.to_owned());
            flatten(extract, of, &inner, into)?;
            continue;
        }
        into.fields.push(Field {
            name: key.to_owned(),
            of: Type::parse(of, &extract.named)?,
            omit_empty: flags.contains('e'),
            omit_zero: flags.contains('z'),
            default: field.get(3).cloned(),
            through: through.to_vec(),
        });
    }
    Some(())
}

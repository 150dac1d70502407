//! The names that an expression may use: the language's extensions, functions, variables and types, as in
//! kube-apiserver (`k8s.io/apiserver/pkg/cel/environment`).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    Minor,
    functions::{LIBRARIES, Overload},
    parse::Syntax,
    types::Type,
};

pub use crate::names::RESERVED;

/// One of the API server's two environments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// For expressions that are created or changed: what the minor before the server's has as well, so that a server
    /// can be rolled back.
    New,
    /// For expressions that are stored already, for evaluation and for type checking: all that the server has.
    Stored,
}

/// The fields of a struct, by their names as expressions write them.
pub type Fields = BTreeMap<Arc<str>, Type>;

/// The variables, types and functions that an expression may use.
#[derive(Clone, Debug)]
pub struct Environment {
    minor: Minor,
    level: u8,
    /// Whether the types of mutations are known.
    pub(crate) mutation: bool,
    pub(crate) functions: Arc<BTreeMap<&'static str, Vec<&'static Overload>>>,
    variables: BTreeMap<Arc<str>, Type>,
    structs: BTreeMap<Arc<str>, Arc<Fields>>,
    /// The prefixes of declared names with dots.
    pub(crate) namespaces: BTreeSet<Arc<str>>,
    watches: bool,
}

/// The meaning of a name.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    /// A variable, its full name and type.
    Variable(Arc<str>, Type),
    /// A type, by its name.
    Type(Arc<str>, Type),
    /// Something that the API server knows and this crate does not.
    Unsupported(Arc<str>),
}

impl Environment {
    /// The environment of a minor's kube-apiserver, without variables.
    pub fn kubernetes(minor: Minor, mode: Mode) -> Self {
        let level = match mode {
            Mode::New => minor.number() - 1,
            Mode::Stored => minor.number(),
        };
        let mut functions: BTreeMap<&'static str, Vec<&'static Overload>> = BTreeMap::new();
        let mut namespaces: BTreeSet<Arc<str>> = BTreeSet::new();
        for function in LIBRARIES.iter().copied().flatten() {
            let present = |overload: &&'static Overload| overload.is_present(level, minor.number());
            let overloads: Vec<_> = function.overloads.iter().filter(present).collect();
            if overloads.is_empty() {
                continue;
            }
            if let Some((namespace, _)) = function.name.split_once('.') {
                namespaces.insert(namespace.into());
            }
            functions.entry(function.name).or_default().extend(overloads);
        }
        // Of the names of types.
        namespaces.extend(["google".into(), "net".into()]);
        let (variables, structs) = (BTreeMap::new(), BTreeMap::new());
        Self {
            minor,
            level,
            mutation: false,
            functions: Arc::new(functions),
            variables,
            structs,
            namespaces,
            watches: false,
        }
    }

    /// Has programs remember what their parts came to: [`Program::watches`](crate::eval::Program::watches). It changes
    /// neither values nor costs.
    #[must_use]
    pub fn watching(mut self) -> Self {
        self.watches = true;
        self
    }

    /// Whether programs remember what their parts came to.
    pub(crate) fn is_watching(&self) -> bool {
        self.watches
    }

    /// Declares a variable, or declares it anew. Its name may have dots in it, as `authorizer.requestResource`.
    #[must_use]
    pub fn declare(mut self, name: &str, of: Type) -> Self {
        self.note_namespace(name);
        self.variables.insert(name.into(), of);
        self
    }

    /// Takes a variable away.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.variables.remove(name);
        self
    }

    /// Declares a struct by its name, or declares it anew.
    #[must_use]
    pub fn declare_struct(mut self, name: &str, fields: Fields) -> Self {
        self.add_struct(name, fields);
        self
    }

    pub(crate) fn add_struct(&mut self, name: &str, fields: Fields) {
        self.note_namespace(name);
        self.structs.insert(name.into(), Arc::new(fields));
    }

    fn note_namespace(&mut self, name: &str) {
        if let Some((namespace, _)) = name.split_once('.') {
            self.namespaces.insert(namespace.into());
        }
    }

    /// The minor version of the server.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// The syntax that the parser accepts.
    pub fn syntax(&self) -> Syntax {
        Syntax {
            two_variables: self.level >= 32,
            sort_by: self.level >= 34,
            // Not a matter of the environment, but of cel-go 0.29.
            escaped_names: self.minor >= Minor::V1_37,
            before_1_33: self.minor < Minor::V1_33,
        }
    }

    /// Whether what a macro binds hides qualified names that begin with it, as from cel-go 0.29 on.
    pub(crate) fn locals_shadow(&self) -> bool {
        self.minor >= Minor::V1_37
    }

    /// The overloads of a function, in the order of their declaration.
    pub(crate) fn function(&self, name: &str) -> Option<&[&'static Overload]> {
        self.functions.get(name).map(Vec::as_slice)
    }

    /// The names of all functions, operators among them.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &'static str> {
        self.functions.keys().copied()
    }

    /// The names of all variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(|name| &**name)
    }

    /// Whether names with dots that begin so are declared.
    pub(crate) fn is_namespace(&self, first: &str) -> bool {
        self.namespaces.contains(first)
    }

    /// The fields of a declared struct.
    pub fn fields(&self, name: &str) -> Option<&Fields> {
        self.structs.get(name).map(|fields| &**fields)
    }

    /// All declared structs.
    pub(crate) fn structs(&self) -> impl Iterator<Item = (&str, &Fields)> {
        self.structs.iter().map(|(name, fields)| (&**name, &**fields))
    }

    /// The meaning of a global name.
    pub(crate) fn lookup(&self, name: &str) -> Option<Lookup> {
        match self.variables.get_key_value(name) {
            Some((name, of)) => Some(Lookup::Variable(Arc::clone(name), of.clone())),
            None => self.lookup_type(name),
        }
    }

    /// The meaning of a name before a brace.
    pub(crate) fn lookup_message(&self, name: &str) -> Option<Lookup> {
        // cel-go 0.29 looks for types only.
        if self.locals_shadow() { self.lookup_type(name) } else { self.lookup(name) }
    }

    fn lookup_type(&self, name: &str) -> Option<Lookup> {
        let list = |of: &str| Type::Param(of.into());
        let of = match name {
            "bool" => Type::Bool,
            "bytes" => Type::Bytes,
            "double" => Type::Double,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "string" => Type::String,
            "null_type" => Type::Null,
            "optional_type" => Type::Opaque("optional_type"),
            "net.IP" if self.level >= 30 => Type::Opaque("net.IP"),
            "net.CIDR" if self.level >= 30 => Type::Opaque("net.CIDR"),
            "google.protobuf.Timestamp" => Type::Timestamp,
            "google.protobuf.Duration" => Type::Duration,
            "list" => Type::List(Arc::new(list("A"))),
            "map" => Type::Map(Arc::new(list("A")), Arc::new(list("B"))),
            // The type of types has no parameter.
            "type" => Type::Opaque("type"),
            // The checker knows these names of types, the evaluator does not (apiserver `findScalar`).
            "duration" => return Some(Lookup::Variable(name.into(), Type::Type(Arc::new(Type::Duration)))),
            "timestamp" => return Some(Lookup::Variable(name.into(), Type::Type(Arc::new(Type::Timestamp)))),
            _ => {
                if name.starts_with("google.protobuf.") {
                    return PROTOBUF.contains(&name).then(|| Lookup::Unsupported(name.into()));
                }
                if let Some(of) = self.constructed(name) {
                    return Some(Lookup::Type(name.into(), of));
                }
                let (name, _) = self.structs.get_key_value(name)?;
                return Some(Lookup::Type(Arc::clone(name), Type::Object(Arc::clone(name))));
            }
        };
        Some(Lookup::Type(name.into(), of))
    }
}

/// Messages and enum values that cel-go always knows (`common/types/pb`).
const PROTOBUF: &[&str] = &[
    "google.protobuf.Any",
    "google.protobuf.BoolValue",
    "google.protobuf.BytesValue",
    "google.protobuf.DoubleValue",
    "google.protobuf.Empty",
    "google.protobuf.FloatValue",
    "google.protobuf.Int32Value",
    "google.protobuf.Int64Value",
    "google.protobuf.ListValue",
    "google.protobuf.NullValue.NULL_VALUE",
    "google.protobuf.StringValue",
    "google.protobuf.Struct",
    "google.protobuf.Struct.FieldsEntry",
    "google.protobuf.UInt32Value",
    "google.protobuf.UInt64Value",
    "google.protobuf.Value",
];

//! Types: those of expressions ([`Type`]), and how the tables of functions write them ([`Decl`]).

use std::{fmt, sync::Arc};

/// The type of an expression (cel-go `common/types.Type`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Known at run time only.
    Dyn,
    /// The type of an expression with an error.
    Error,
    /// `null_type`.
    Null,
    /// `bool`.
    Bool,
    /// `int`, 64 bits.
    Int,
    /// `uint`, 64 bits.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// `list(T)`.
    List(Arc<Type>),
    /// `map(K, V)`.
    Map(Arc<Type>, Arc<Type>),
    /// `optional_type(T)`.
    Optional(Arc<Type>),
    /// A struct known by its name: two are the same type only if their names are.
    Object(Arc<str>),
    /// A type that only functions make and read (`kubernetes.Quantity`).
    Opaque(&'static str),
    /// The type of types: `type(T)`.
    Type(Arc<Type>),
    /// A type parameter of a declaration.
    Param(Arc<str>),
    /// A type variable of an inference, `_var0` in messages. No checked expression has it in its type.
    Var(u32),
}

impl Type {
    /// As cel-go's `Type.String` writes it, which the API server's messages about results quote: the names that types
    /// have at run time.
    pub fn declared(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Error => "error".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::List(of) => format!("list({})", of.declared()),
            Self::Map(key, value) => format!("map({}, {})", key.declared(), value.declared()),
            Self::Optional(of) => format!("optional_type({})", of.declared()),
            Self::Type(of) => format!("type({})", of.declared()),
            Self::Param(name) => format!("<{name}>"),
            other => other.to_string(),
        }
    }
}

impl Type {
    /// The type for a field that the API server knows without its type. It has no name, only dynamic values are
    /// assignable to it, and it occurs in no expression that the API server accepts.
    pub(crate) fn missing() -> Self {
        Self::Object("".into())
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Object(name) if name.is_empty()) || self.is_untyped()
    }

    /// The type of a variable that cel-go declares without a type. It has no name, and only dynamic values are assignable
    /// to it.
    pub(crate) const fn untyped() -> Self {
        Self::Opaque("")
    }

    pub(crate) fn is_untyped(&self) -> bool {
        *self == Self::untyped()
    }

    /// Whether the type is, or contains, that of a variable without a type.
    pub(crate) fn has_untyped(&self) -> bool {
        match self {
            Self::List(of) | Self::Optional(of) | Self::Type(of) => of.has_untyped(),
            Self::Map(key, value) => key.has_untyped() || value.has_untyped(),
            of => of.is_untyped(),
        }
    }

    /// The name without parameters, as values have it at run time.
    pub fn erased(&self) -> String {
        match self {
            Self::List(_) => "list".to_owned(),
            Self::Map(..) => "map".to_owned(),
            Self::Optional(_) => "optional_type".to_owned(),
            Self::Type(_) => "type".to_owned(),
            other => other.declared(),
        }
    }
}

impl fmt::Display for Type {
    /// As cel-go's error messages write it (`checker/format.go`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Object(name) | Self::Param(name) => f.write_str(name),
            Self::Opaque(name) => f.write_str(name),
            Self::Type(of) => write!(f, "type({of})"),
            Self::Var(number) => write!(f, "_var{number}"),
        }
    }
}

/// A type in a table of functions: like [`Type`], but a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decl {
    /// See [`Type::Dyn`]; so on for the others.
    Dyn,
    /// `null_type`.
    Null,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `uint`.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// `list(T)`.
    List(&'static Decl),
    /// `map(K, V)`.
    Map(&'static Decl, &'static Decl),
    /// `optional_type(T)`.
    Optional(&'static Decl),
    /// A struct known by its name.
    Object(&'static str),
    /// An opaque type.
    Opaque(&'static str),
    /// `type(T)`.
    Type(&'static Decl),
    /// A type parameter of the overload.
    Param(&'static str),
}

impl Decl {
    /// The type that is declared.
    pub fn to_type(self) -> Type {
        match self {
            Self::Dyn => Type::Dyn,
            Self::Null => Type::Null,
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Uint => Type::Uint,
            Self::Double => Type::Double,
            Self::String => Type::String,
            Self::Bytes => Type::Bytes,
            Self::Timestamp => Type::Timestamp,
            Self::Duration => Type::Duration,
            Self::List(of) => Type::List(Arc::new(of.to_type())),
            Self::Map(key, value) => Type::Map(Arc::new(key.to_type()), Arc::new(value.to_type())),
            Self::Optional(of) => Type::Optional(Arc::new(of.to_type())),
            Self::Object(name) => Type::Object(name.into()),
            Self::Opaque(name) => Type::Opaque(name),
            Self::Type(of) => Type::Type(Arc::new(of.to_type())),
            Self::Param(name) => Type::Param(name.into()),
        }
    }
}

//! Values of types that only functions make and read.

use std::{fmt, net::IpAddr, sync::Arc};

use super::{Error, Value};
use crate::library::{
    authorization::{Attributes, Authorizer, Decision, User},
    cidr::Cidr,
    format::Format,
    quantity::Quantity,
    semver::Version,
    url::Url,
};

/// A value of a type that only functions make and read.
#[derive(Clone, Debug)]
pub struct Opaque(Arc<Kind>);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Quantity(Quantity),
    /// A quantity that was computed. It is of another type in Go, and a quantity that was not refuses to equal it.
    Computed(Quantity),
    Url(Url),
    Ip(IpAddr),
    Cidr(Cidr),
    Semver(Version),
    Format(Format),
    Authorizer(Authorization),
    PathCheck(Authorization, Arc<str>),
    GroupCheck(Authorization, Arc<str>),
    ResourceCheck(ResourceCheck),
    Decision(Decision),
    /// An error in an optional.
    Failure(Error),
}

/// A user and the authorizer for the user's checks.
#[derive(Clone)]
pub(crate) struct Authorization {
    pub user: Arc<User>,
    pub authorizer: Arc<dyn Authorizer>,
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A check of a resource under way. The verb is not known yet.
#[derive(Clone, Debug)]
pub(crate) struct ResourceCheck {
    pub by: Authorization,
    pub attributes: Attributes,
}

/// The type in Go of an error.
const FAILURE: &str = "*types.Err";

impl Opaque {
    pub(crate) fn new(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.0
    }

    /// The value after cel-go 0.26 has taken it out of an optional and converted it from Go again.
    pub(crate) fn converted(&self) -> Self {
        let name = match self.kind() {
            Kind::Format(_) | Kind::Failure(_) => return self.clone(),
            _ => self.native_type(),
        };
        if name == FAILURE {
            return Self::new(Kind::Failure(Error::no_such_overload()));
        }
        let text = self.text().unwrap_or_default();
        Self::new(Kind::Failure(Error::new(format!("unsupported conversion to ref.Val: ({name}){text}"))))
    }

    /// The name of its Go type.
    pub(crate) fn native_type(&self) -> &'static str {
        match self.kind() {
            Kind::Quantity(_) | Kind::Computed(_) => "*resource.Quantity",
            Kind::Url(_) => "*url.URL",
            Kind::Ip(_) => "netip.Addr",
            Kind::Cidr(_) => "netip.Prefix",
            Kind::Semver(_) => "semver.Version",
            Kind::Format(_) => "*cel.Format",
            _ => FAILURE,
        }
    }

    /// The name of the type.
    pub fn type_name(&self) -> &'static str {
        match self.kind() {
            Kind::Quantity(_) | Kind::Computed(_) => "kubernetes.Quantity",
            Kind::Url(_) => "kubernetes.URL",
            Kind::Ip(_) => "net.IP",
            Kind::Cidr(_) => "net.CIDR",
            Kind::Semver(_) => "kubernetes.Semver",
            Kind::Format(_) => "kubernetes.NamedFormat",
            Kind::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Kind::PathCheck(..) => "kubernetes.authorization.PathCheck",
            Kind::GroupCheck(..) => "kubernetes.authorization.GroupCheck",
            Kind::ResourceCheck(_) => "kubernetes.authorization.ResourceCheck",
            Kind::Decision(_) => "kubernetes.authorization.Decision",
            Kind::Failure(_) => "error",
        }
    }

    pub(super) fn go_type(&self) -> &'static str {
        match self.kind() {
            Kind::Quantity(_) => "cel.Quantity",
            Kind::Computed(_) => "*cel.Quantity",
            Kind::Url(_) => "cel.URL",
            Kind::Ip(_) => "cel.IP",
            Kind::Cidr(_) => "cel.CIDR",
            Kind::Semver(_) => "cel.Semver",
            Kind::Format(_) => "cel.Format",
            Kind::Authorizer(_) => "library.authorizerVal",
            Kind::PathCheck(..) => "library.pathCheckVal",
            Kind::GroupCheck(..) => "library.groupCheckVal",
            Kind::ResourceCheck(_) => "library.resourceCheckVal",
            Kind::Decision(_) => "library.decisionVal",
            Kind::Failure(_) => "*types.Err",
        }
    }

    /// The text of the value, of types that have one.
    pub fn text(&self) -> Option<String> {
        match self.kind() {
            Kind::Quantity(value) | Kind::Computed(value) => Some(value.to_string()),
            Kind::Url(value) => Some(value.to_string()),
            Kind::Ip(value) => Some(value.to_string()),
            Kind::Cidr(value) => Some(value.to_string()),
            Kind::Semver(value) => Some(value.to_string()),
            Kind::Format(value) => Some(format_name(*value).to_owned()),
            _ => None,
        }
    }

    /// Bytes of an address, bytes that a prefix touches (apiserver `pkg/cel/ip.go`, `cidr.go`).
    pub(super) fn size(&self) -> Option<usize> {
        match self.kind() {
            Kind::Ip(IpAddr::V4(_)) => Some(4),
            Kind::Ip(IpAddr::V6(_)) => Some(16),
            Kind::Cidr(cidr) => Some(usize::try_from(cidr.prefix_length()).unwrap_or(0).div_ceil(8)),
            _ => None,
        }
    }

    /// These types cannot be compared with others, and those of authorization with nothing at all.
    pub(super) fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        if let Kind::Failure(error) = self.kind() {
            return Err(error.clone());
        }
        let Value::Opaque(other) = other else { return Err(Error::no_such_overload()) };
        match (self.kind(), other.kind()) {
            (Kind::Quantity(a) | Kind::Computed(a), Kind::Quantity(b)) => Ok(a == b),
            (Kind::Url(a), Kind::Url(b)) => Ok(a.to_string() == b.to_string()),
            (Kind::Ip(a), Kind::Ip(b)) => Ok(a == b),
            (Kind::Cidr(a), Kind::Cidr(b)) => Ok(a == b),
            (Kind::Semver(a), Kind::Semver(b)) => Ok(a == b),
            (Kind::Format(a), Kind::Format(b)) => Ok(a == b),
            _ => Err(Error::no_such_overload()),
        }
    }
}

/// The name that a format carries, which is not that of its function.
fn format_name(format: Format) -> &'static str {
    match format {
        Format::Dns1123Label { prefix: false } => "DNS1123Label",
        Format::Dns1123Label { prefix: true } => "DNS1123LabelPrefix",
        Format::Dns1123Subdomain { prefix: false } => "DNS1123Subdomain",
        Format::Dns1123Subdomain { prefix: true } => "DNS1123SubdomainPrefix",
        Format::Dns1035Label { prefix: false } => "DNS1035Label",
        Format::Dns1035Label { prefix: true } => "DNS1035LabelPrefix",
        Format::QualifiedName => "QualifiedName",
        Format::LabelValue => "LabelValue",
        Format::Uri => "URI",
        Format::Uuid => "uuid",
        Format::Byte => "byte",
        Format::Date => "date",
        Format::Datetime => "datetime",
    }
}

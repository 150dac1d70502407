//! The variables of admission policies (apiserver `pkg/admission/plugin/cel/compile.go` and `composition.go`).

use std::sync::Arc;

use crate::{
    environment::{Environment, Fields},
    functions::authorizer::{AUTHORIZER, RESOURCE_CHECK},
    types::Type,
};

/// The name of the type of `variables`.
const VARIABLES: &str = "kubernetes.variables";

/// The variables of an expression in a policy.
///
/// All expressions see `object`, `oldObject`, `request` and `namespaceObject`.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The type of `object` and `oldObject`: dynamic when a policy is created or evaluated.
    pub object: Type,
    /// The type of `params`, declared if the policy has a paramKind: dynamic like `object`.
    pub params: Option<Type>,
    /// Whether `authorizer` and `authorizer.requestResource` are declared. Message expressions do not have them.
    pub authorizer: bool,
    /// Whether `variables` is declared. Match conditions do not have it.
    pub variables: bool,
}

impl Default for Admission {
    /// As validations of a policy without parameters see them when it is created.
    fn default() -> Self {
        Self { object: Type::Dyn, params: None, authorizer: true, variables: true }
    }
}

impl Environment {
    /// Declares the variables of an admission policy.
    #[must_use]
    pub fn with_admission(self, admission: &Admission) -> Self {
        let object = |name: &str| Type::Object(name.into());
        let mut environment = STRUCTS.iter().fold(self, |environment, (name, fields)| {
            let fields = fields.iter().map(|(field, of)| ((*field).into(), of.to_type()));
            environment.declare_struct(name, fields.collect())
        });
        environment = environment
            .declare("object", admission.object.clone())
            .declare("oldObject", admission.object.clone())
            .declare("namespaceObject", object("kubernetes.Namespace"))
            .declare("request", object("kubernetes.AdmissionRequest"));
        if let Some(params) = &admission.params {
            environment = environment.declare("params", params.clone());
        }
        if admission.authorizer {
            environment = environment
                .declare("authorizer", AUTHORIZER.to_type())
                .declare("authorizer.requestResource", RESOURCE_CHECK.to_type());
        }
        if admission.variables {
            environment = environment.declare("variables", object(VARIABLES)).declare_struct(VARIABLES, Fields::new());
        }
        environment
    }

    /// Adds a field to `variables`: a variable of the policy, of the type that its expression has, or none if that
    /// does not compile. Later variables and all validations see it.
    #[must_use]
    pub fn compose(self, name: &str, output: Option<&Type>) -> Self {
        let mut fields = self.fields(VARIABLES).cloned().unwrap_or_default();
        fields.insert(name.into(), output.map_or(Type::Dyn, composed));
        self.declare_struct(VARIABLES, fields)
    }
}

/// The type of a variable in `variables` (`convertCelTypeToDeclType`): scalars, lists and maps are kept, other types
/// become dyn.
fn composed(of: &Type) -> Type {
    match of {
        Type::List(of) => Type::List(Arc::new(composed(of))),
        Type::Map(key, value) => Type::Map(Arc::new(composed(key)), Arc::new(composed(value))),
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        _ => Type::Dyn,
    }
}

use crate::types::Decl::{self, Bool, Dyn, Int, List, Map, Object, String, Timestamp};

/// The hand-written types: not all of what the API has (`BuildRequestType`, `BuildNamespaceType`).
const STRUCTS: &[(&str, &[(&str, Decl)])] = &[
    ("kubernetes.GroupVersionKind", &[("group", String), ("version", String), ("kind", String)]),
    ("kubernetes.GroupVersionResource", &[("group", String), ("version", String), ("resource", String)]),
    (
        "kubernetes.UserInfo",
        &[("username", String), ("uid", String), ("groups", List(&String)), ("extra", Map(&String, &List(&String)))],
    ),
    (
        "kubernetes.AdmissionRequest",
        &[
            ("kind", Object("kubernetes.GroupVersionKind")),
            ("resource", Object("kubernetes.GroupVersionResource")),
            ("subResource", String),
            ("requestKind", Object("kubernetes.GroupVersionKind")),
            ("requestResource", Object("kubernetes.GroupVersionResource")),
            ("requestSubResource", String),
            ("name", String),
            ("namespace", String),
            ("operation", String),
            ("userInfo", Object("kubernetes.UserInfo")),
            ("dryRun", Bool),
            ("options", Dyn),
        ],
    ),
    (
        "kubernetes.Namespace",
        &[
            ("metadata", Object("kubernetes.NamespaceMetadata")),
            ("spec", Object("kubernetes.NamespaceSpec")),
            ("status", Object("kubernetes.NamespaceStatus")),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", List(&String))]),
    (
        "kubernetes.NamespaceStatus",
        &[("conditions", List(&Object("kubernetes.NamespaceCondition"))), ("phase", String)],
    ),
    (
        "kubernetes.NamespaceCondition",
        &[
            ("status", String),
            ("type", String),
            ("lastTransitionTime", Timestamp),
            ("message", String),
            ("reason", String),
        ],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", String),
            ("generateName", String),
            ("namespace", String),
            ("labels", Map(&String, &String)),
            ("annotations", Map(&String, &String)),
            ("UID", String),
            ("creationTimestamp", Timestamp),
            ("deletionGracePeriodSeconds", Int),
            ("deletionTimestamp", Timestamp),
            ("generation", Int),
            ("resourceVersion", String),
            ("finalizers", List(&String)),
        ],
    ),
];

//! Authorization checks (apiserver `pkg/cel/library/authz.go`).

use super::{Function, member};
use crate::types::Decl::{self, Bool, Object, String};

/// The type of the variable `authorizer`.
pub const AUTHORIZER: Decl = Object("kubernetes.authorization.Authorizer");
/// The type of a check of a path under way.
pub const PATH_CHECK: Decl = Object("kubernetes.authorization.PathCheck");
/// The type of a check of a resource whose API group is known.
pub const GROUP_CHECK: Decl = Object("kubernetes.authorization.GroupCheck");
/// The type of a check of a resource under way.
pub const RESOURCE_CHECK: Decl = Object("kubernetes.authorization.ResourceCheck");
/// The type of what an authorizer says.
pub const DECISION: Decl = Object("kubernetes.authorization.Decision");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "path", overloads: &[member("authorizer_path", &[AUTHORIZER, String], PATH_CHECK).since(27)] },
    Function { name: "group", overloads: &[member("authorizer_group", &[AUTHORIZER, String], GROUP_CHECK).since(27)] },
    Function {
        name: "serviceAccount",
        overloads: &[member("authorizer_serviceaccount", &[AUTHORIZER, String, String], AUTHORIZER).since(27)],
    },
    Function {
        name: "resource",
        overloads: &[member("groupcheck_resource", &[GROUP_CHECK, String], RESOURCE_CHECK).since(27)],
    },
    Function {
        name: "subresource",
        overloads: &[member("resourcecheck_subresource", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(27)],
    },
    Function {
        name: "namespace",
        overloads: &[member("resourcecheck_namespace", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(27)],
    },
    Function {
        name: "name",
        overloads: &[member("resourcecheck_name", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(27)],
    },
    Function {
        name: "check",
        overloads: &[
            member("pathcheck_check", &[PATH_CHECK, String], DECISION).since(27),
            member("resourcecheck_check", &[RESOURCE_CHECK, String], DECISION).since(27),
        ],
    },
    Function { name: "errored", overloads: &[member("decision_errored", &[DECISION], Bool).since(27)] },
    Function { name: "error", overloads: &[member("decision_error", &[DECISION], String).since(27)] },
    Function { name: "allowed", overloads: &[member("decision_allowed", &[DECISION], Bool).since(27)] },
    Function { name: "reason", overloads: &[member("decision_reason", &[DECISION], String).since(27)] },
    Function {
        name: "fieldSelector",
        overloads: &[member("authorizer_fieldselector", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(31)],
    },
    Function {
        name: "labelSelector",
        overloads: &[member("authorizer_labelselector", &[RESOURCE_CHECK, String], RESOURCE_CHECK).since(31)],
    },
];

//! Semantic versions (apiserver `pkg/cel/library/semverlib.go`, version 1).

use super::{Function, function, member};
use crate::types::Decl::{self, Bool, Int, Object, String};

/// The type of a semantic version.
pub const SEMVER: Decl = Object("kubernetes.Semver");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "semver",
        overloads: &[
            function("string_to_semver", &[String], SEMVER).since(33),
            function("string_bool_to_semver", &[String, Bool], SEMVER).since(33),
        ],
    },
    Function {
        name: "isSemver",
        overloads: &[
            function("is_semver_string", &[String], Bool).since(33),
            function("is_semver_string_bool", &[String, Bool], Bool).since(33),
        ],
    },
    Function {
        name: "isGreaterThan",
        overloads: &[member("semver_is_greater_than", &[SEMVER, SEMVER], Bool).since(33)],
    },
    Function { name: "isLessThan", overloads: &[member("semver_is_less_than", &[SEMVER, SEMVER], Bool).since(33)] },
    Function { name: "compareTo", overloads: &[member("semver_compare_to", &[SEMVER, SEMVER], Int).since(33)] },
    Function { name: "major", overloads: &[member("semver_major", &[SEMVER], Int).since(33)] },
    Function { name: "minor", overloads: &[member("semver_minor", &[SEMVER], Int).since(33)] },
    Function { name: "patch", overloads: &[member("semver_patch", &[SEMVER], Int).since(33)] },
];

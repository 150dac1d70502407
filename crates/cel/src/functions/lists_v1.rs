//! What version 1 of the library of lists adds (apiserver `pkg/cel/library/lists.go` of Kubernetes 1.37).

use super::{Function, member};
use crate::types::Decl::{Bool, Dyn};

/// The functions.
pub const FUNCTIONS: &[Function] =
    &[Function { name: "includes", overloads: &[member("list_includes_dyn_dyn", &[Dyn, Dyn], Bool).since(37)] }];

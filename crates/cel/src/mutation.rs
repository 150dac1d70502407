//! The parts of the environment for the kind `MutatingAdmissionPolicy`: `Object{…}`, `JSONPatch{…}` and
//! `jsonpatch.escapeKey` (apiserver `pkg/cel/mutation`, and `hasPatchTypes` in `pkg/admission/plugin/cel/compile.go`).

use std::sync::Arc;

use crate::{
    environment::Environment,
    functions::jsonpatch,
    types::Type,
    value::{JSON_PATCH, OBJECT},
};

impl Environment {
    /// Adds what the expressions of mutations may use, which are not the policy's variables and match conditions: the
    /// types `Object`, `Object.<field>…` and `JSONPatch`, and `jsonpatch.escapeKey`.
    ///
    /// The fields of `Object` and its kind are not declared anywhere: any name will do, of a value of any type.
    #[must_use]
    pub fn with_mutation(mut self) -> Self {
        self.mutation = true;
        let functions = Arc::make_mut(&mut self.functions);
        for function in jsonpatch::FUNCTIONS {
            functions.insert(function.name, function.overloads.iter().collect());
        }
        self.namespaces.extend([OBJECT.into(), "jsonpatch".into()]);
        self
    }

    /// The type of this name, if it is one that mutations construct.
    pub(crate) fn constructed(&self, name: &str) -> Option<Type> {
        (self.mutation && (name == JSON_PATCH || is_object(name))).then(|| Type::Object(name.into()))
    }

    /// The type of a field of a type that mutations construct.
    pub(crate) fn constructed_field(&self, name: &str, field: &str) -> Option<Type> {
        self.constructed(name)?;
        Some(match (name, field) {
            (JSON_PATCH, "op" | "path" | "from") => Type::String,
            // The API server's resolver says of any other field that it exists, and gives no type for it.
            (JSON_PATCH, field) if field != "value" => Type::missing(),
            _ => Type::Dyn,
        })
    }
}

/// Whether this is `Object` or begins with `Object.`.
pub(crate) fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

//! Evaluation.

use std::{collections::BTreeMap, sync::Arc, sync::LazyLock};

use cel::{Context, Env, extensions};
use thiserror::Error;

use crate::{Expression, Value};

/// An expression that failed to evaluate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EvalError(pub String);

/// The operators and macro helpers of CEL, which every environment has.
const OPERATORS: &[&str] = &[
    "_&&_",
    "_||_",
    "!_",
    "_?_:_",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_+_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "@in",
    "_[_]",
    "_?._",
    "_[?_]",
    "@not_strictly_false",
];

/// The functions that kube-apiserver has from 1.33 on and that this crate can evaluate like it. A function that
/// is not listed gets no verdict.
const FUNCTIONS: &[&str] = &[
    // the standard library (cel-go/common/stdlib)
    "size",
    "string",
    "int",
    "bool",
    "bytes",
    "dyn",
    "contains",
    "startsWith",
    "endsWith",
    "timestamp",
    // strings v2 (cel-go/ext/strings.go)
    "charAt",
    "indexOf",
    "lastIndexOf",
    "lowerAscii",
    "upperAscii",
    "replace",
    "split",
    "substring",
    "trim",
    "join",
    // optional types
    "hasValue",
    "value",
    "or",
    "orValue",
    "optional.of",
    "optional.none",
    "optional.ofNonZeroValue",
];

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // The API server keeps the last of two equal keys.
    env.set_error_on_duplicate_map_keys(false);
    // Declared once in an environment of its own: it cannot conflict.
    let added = env.add_extension(extensions::strings);
    debug_assert!(added.is_ok());
    Arc::new(env)
});

pub(crate) fn parser() -> &'static Env {
    &ENV
}

/// The variables that expressions see.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, Value>,
}

impl Environment {
    /// An environment without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an expression may call the function, and gets the API server's answer.
    pub fn has_function(name: &str) -> bool {
        OPERATORS.contains(&name) || FUNCTIONS.contains(&name)
    }

    /// Declares a variable, or gives it another value.
    pub fn set(&mut self, name: &str, value: Value) {
        self.variables.insert(name.to_owned(), value);
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// The error that the expression ends in.
    pub fn evaluate(&self, expression: &Expression) -> Result<Value, EvalError> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        for (name, value) in &self.variables {
            context.add_variable_from_value(name, value.0.clone());
        }
        expression.program.execute(&context).map(Value).map_err(|error| EvalError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(source: &str) -> Value {
        let mut environment = Environment::new();
        let pod =
            json!({"spec": {"replicas": 3, "containers": [{"name": "a", "sc": {"privileged": true}}, {"name": "b"}]}});
        environment.set("object", (&pod).into());
        environment.evaluate(&Expression::parse(source).unwrap()).unwrap()
    }

    #[test]
    fn evaluates_the_idioms_of_policies() {
        for (source, expected) in [
            ("object.spec.replicas + 1 == 4", json!(true)),
            ("object.spec.?missing.?deep.orValue(7)", json!(7)),
            ("object.spec.containers.map(c, c.?sc.?privileged.orValue(false), 'c ' + c.name)", json!(["c a"])),
            ("string(object.spec.?x.orValue('unset')) + string(1)", json!("unset1")),
            ("object.spec.?x.or(object.spec.?replicas).value()", json!(3)),
            ("bytes('é').size()", json!(2)),
            ("object.spec.containers[0].filter(k, k != 'name')", json!(["sc"])),
            ("'a/b'.split('/').exists(s, s == 'b') && 'x'.lowerAscii() == 'x'", json!(true)),
            ("['b', 'a'].join(', ').replace('\\n', ' ')", json!("b, a")),
            ("false ? [] : ['a'] + []", json!(["a"])),
        ] {
            assert_eq!(evaluate(source), (&expected).into(), "{source}");
        }
    }
}

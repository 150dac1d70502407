//! Objects on which expressions may differ: one object with other values in the fields that they read.

use std::{collections::BTreeSet, sync::Arc};

use palisade_cel::{
    Environment, Minor, Mode,
    ast::{Comprehension, Expr, Literal, Node},
    parse,
};
use serde_json::{Value as Json, json};

use crate::patch;

/// Objects with one field changed, then with two; at most so many.
pub(super) fn candidates(base: &Json, expressions: &[(Option<String>, String)], most: usize) -> Vec<Json> {
    let mut reader = Reader::default();
    let syntax = Environment::kubernetes(Minor::DEFAULT, Mode::Stored).syntax();
    let mut scope = Vec::new();
    for (variable, expression) in expressions {
        if let Ok(ast) = parse::parse(expression, syntax) {
            reader.node(&ast.root, &mut scope);
            if let Some(variable) = variable {
                scope.push((format!("variables.{variable}").into(), path(&ast.root, &scope)));
            }
        }
    }
    let mut edits: Vec<(String, Option<Json>)> = Vec::new();
    for path in &reader.paths {
        let field = path.rsplit(['.', '[']).next().unwrap_or_default();
        let samples = SAMPLES.iter().filter(|(known, _)| *known == field);
        edits.extend(samples.map(|(_, sample)| (path.clone(), serde_json::from_str(sample).ok())));
        edits.extend(reader.values.iter().map(|value| (path.clone(), serde_json::from_str(value).ok())));
        edits.push((path.clone(), None));
    }
    let apply = |object: &Json, (path, value): &(String, Option<Json>)| {
        let mut object = object.clone();
        match value {
            Some(value) => patch::set(&mut object, path, value.clone()).ok()?,
            None => patch::unset(&mut object, path).ok()?,
        }
        Some(object)
    };
    let once: Vec<Json> = edits.iter().filter_map(|edit| apply(base, edit)).take(most).collect();
    let twice = once.iter().flat_map(|object| edits.iter().filter_map(move |edit| apply(object, edit)));
    let twice: Vec<Json> = twice.take(most - once.len()).collect();
    once.into_iter().chain(twice).collect()
}

/// Values of fields that are more than a scalar, as JSON.
const SAMPLES: &[(&str, &str)] = &[
    ("annotations", r#"{"example": "x"}"#),
    ("capabilities", r#"{"add": ["SYS_ADMIN"]}"#),
    ("capabilities", r#"{"drop": ["ALL"]}"#),
    ("hostPath", r#"{"path": "/"}"#),
    ("labels", r#"{"example": "x"}"#),
    ("livenessProbe", r#"{"tcpSocket": {"port": 80}}"#),
    ("ports", r#"[{"containerPort": 80, "hostPort": 80}]"#),
    ("ports", r#"[{"name": "example", "port": 22}]"#),
    ("readinessProbe", r#"{"tcpSocket": {"port": 80}}"#),
    ("resources", r#"{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}"#),
    ("seccompProfile", r#"{"type": "RuntimeDefault"}"#),
    ("securityContext", r#"{"runAsNonRoot": true, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true}"#),
    ("securityContext", r#"{"privileged": true, "allowPrivilegeEscalation": true, "runAsUser": 0}"#),
    ("securityContext", r#"{"capabilities": {"drop": ["ALL"]}}"#),
    ("volumes", r#"[{"name": "example", "hostPath": {"path": "/"}}]"#),
];

/// The parts of `object` that expressions read, and the values that they compare them with.
#[derive(Default)]
struct Reader {
    /// In the notation of [`patch::set`].
    paths: BTreeSet<String>,
    /// As JSON.
    values: BTreeSet<String>,
}

/// The values of the variables of macros: paths, if they are known.
type Scope = Vec<(Arc<str>, Option<String>)>;

impl Reader {
    fn value(&mut self, value: &Json) {
        self.values.insert(value.to_string());
    }

    fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Bool(_) => [json!(true), json!(false)].iter().for_each(|value| self.value(value)),
            Literal::Int(value) => {
                for near in [value.saturating_sub(1), *value, value.saturating_add(1)] {
                    self.value(&json!(near));
                }
            }
            Literal::String(text) => {
                for value in [json!(**text), json!([**text]), json!(format!("{text}x")), json!(format!("x{text}"))] {
                    self.value(&value);
                }
            }
            Literal::Null | Literal::Uint(_) | Literal::Double(_) | Literal::Bytes(_) => {}
        }
    }

    fn node(&mut self, node: &Node, scope: &mut Scope) {
        if let Some(path) = path(node, scope).filter(|path| !path.is_empty()) {
            self.paths.insert(path);
            for value in [json!(true), json!(false), json!("x"), json!(1)] {
                self.value(&value);
            }
        }
        match &node.expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Comprehension(of) => self.comprehension(of, scope),
            _ => node.children().for_each(|child| self.node(child, scope)),
        }
    }

    fn comprehension(&mut self, of: &Comprehension, scope: &mut Scope) {
        self.node(&of.range, scope);
        self.node(&of.init, scope);
        let element = path(&of.range, scope).map(|range| format!("{range}[0]"));
        // What `optMap` binds is the accumulator.
        scope.push((Arc::clone(&of.accumulator), path(&of.init, scope)));
        scope.push((Arc::clone(&of.variable), element));
        for part in [&of.condition, &of.step, &of.result] {
            self.node(part, scope);
        }
        scope.truncate(scope.len() - 2);
    }
}

/// The path that a node reads: empty for the object itself; none if it does not read a part of it.
fn path(node: &Node, scope: &Scope) -> Option<String> {
    let below = |operand: &Node, field: &str| {
        let path = path(operand, scope)?;
        let plain = field.chars().all(|c| c.is_alphanumeric() || c == '_');
        Some(match (path.is_empty(), plain) {
            (true, true) => field.to_owned(),
            (false, true) => format!("{path}.{field}"),
            (_, false) => format!("{path}['{field}']"),
        })
    };
    match &node.expr {
        Expr::Ident(name) => {
            let bound = scope.iter().rev().find(|(bound, _)| bound == name);
            bound.map_or_else(|| (**name == *"object").then(String::new), |(_, path)| path.clone())
        }
        Expr::Select { operand, field, .. } => match &operand.expr {
            Expr::Ident(name) if **name == *"variables" => {
                let name = format!("variables.{field}");
                scope.iter().find(|(bound, _)| **bound == *name).and_then(|(_, path)| path.clone())
            }
            _ => below(operand, field),
        },
        Expr::Call { function, target, args } => match (&**function, target, args.as_slice()) {
            ("_?._" | "_[_]" | "_[?_]", None, [operand, Node { expr: Expr::Literal(Literal::String(key)), .. }]) => {
                below(operand, key)
            }
            ("_[_]" | "_[?_]", None, [operand, Node { expr: Expr::Literal(Literal::Int(index)), .. }]) => {
                Some(format!("{}[{index}]", path(operand, scope)?))
            }
            ("orValue" | "value", Some(target), _) => path(target, scope),
            _ => None,
        },
        _ => None,
    }
}

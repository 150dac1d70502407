//! The rules of a schema, compiled (`pkg/apiserver/schema/cel/validation.go`, `NewValidator`).

use std::collections::BTreeMap;

use palisade_cel::{
    Environment, Minor, Mode,
    eval::Program,
    schema::{DeclType, with_metadata},
};
use serde_json::Value as Json;

use super::schema::{additional, items};
use crate::validation::{
    field_path, list,
    rule::{Compiled, Failure, Scope},
    text,
};

/// The rules of a schema, compiled.
#[derive(Debug)]
pub(super) struct Rules {
    /// The schema, with metadata where objects have it.
    pub(super) schema: Json,
    pub(super) root: Option<Node>,
    pub(super) minor: Minor,
    /// Why the API server's answer is unknown.
    pub(super) unknown: Option<String>,
}

/// Those of a part of the schema, and below it.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) rules: Vec<Rule>,
    pub(super) items: Option<Box<Node>>,
    pub(super) values: Option<Box<Node>>,
    pub(super) properties: BTreeMap<String, Node>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) of: Json,
    /// None if the rule is empty; or why it does not compile.
    pub(super) compiled: Option<Result<Compiled, String>>,
    pub(super) message: Option<Program>,
    /// Where errors are reported, below the value.
    pub(super) path: Option<String>,
}

impl Rules {
    /// Compiles the rules of a schema, as those of a definition that is stored.
    pub(super) fn new(schema: &Json, minor: Minor, watches: bool) -> Self {
        Self::compile(schema, minor, true, watches)
    }

    /// Those of a part of a schema.
    pub(super) fn of_part(schema: &Json, minor: Minor) -> Self {
        Self::compile(schema, minor, false, false)
    }

    fn compile(schema: &Json, minor: Minor, root: bool, watches: bool) -> Self {
        let mut rules = Self { schema: with_metadata(schema, root, minor), root: None, minor, unknown: None };
        if has_rules(schema) {
            let environment = Environment::kubernetes(minor, Mode::Stored);
            let environment = if watches { environment.watching() } else { environment };
            let root = rules.node(schema, &rules.schema, &environment);
            match root {
                Ok(root) => rules.root = root,
                Err(why) => rules.unknown = Some(why),
            }
        }
        rules
    }

    fn node(&self, schema: &Json, typed: &Json, base: &Environment) -> Result<Option<Node>, String> {
        let mut node = Node::default();
        let rules = list(schema, "x-kubernetes-validations");
        if !rules.is_empty() {
            // A definition with rules on what they cannot see is refused.
            let Some(of) = DeclType::new(typed, self.minor) else { return Ok(None) };
            let scope = Scope::new(base, &of);
            node.rules = rules.iter().map(|rule| compile(&scope, rule, schema)).collect::<Result<_, _>>()?;
        }
        let inner = |schema, typed: Option<&Json>| match typed {
            Some(typed) => Ok(self.node(schema, typed, base)?.map(Box::new)),
            None => Ok::<_, String>(None),
        };
        if let Some(of) = items(schema) {
            node.items = inner(of, items(typed))?;
        }
        if let Some(of) = additional(schema) {
            node.values = inner(of, additional(typed))?;
        }
        for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let typed = typed.get("properties").and_then(|of| of.get(name)).unwrap_or(property);
            if let Some(of) = self.node(property, typed, base)? {
                node.properties.insert(name.clone(), of);
            }
        }
        let is_empty = node.rules.is_empty() && node.items.is_none() && node.values.is_none();
        Ok((!is_empty || !node.properties.is_empty()).then_some(node))
    }

    /// The rules that compile, each with the steps to it in the schema and its number among the rules there.
    pub(super) fn all(&self) -> Vec<(Vec<String>, usize, &Rule)> {
        let mut found = Vec::new();
        if let Some(root) = &self.root {
            root.all(&mut Vec::new(), &mut found);
        }
        found
    }

    /// Whether there are any.
    pub(super) fn are_there(&self) -> bool {
        self.root.is_some()
    }
}

impl Node {
    fn all<'n>(&'n self, steps: &mut Vec<String>, found: &mut Vec<(Vec<String>, usize, &'n Rule)>) {
        let compiled = |(_, rule): &(usize, &Rule)| matches!(rule.compiled, Some(Ok(_)));
        found.extend(self.rules.iter().enumerate().filter(compiled).map(|(index, rule)| (steps.clone(), index, rule)));
        let named = self.properties.iter().map(|(name, node)| (vec!["properties", name.as_str()], node));
        let inner = [("items", &self.items), ("additionalProperties", &self.values)];
        let inner = inner.into_iter().filter_map(|(step, node)| Some((vec![step], node.as_deref()?)));
        for (added, node) in named.chain(inner) {
            let before = steps.len();
            steps.extend(added.into_iter().map(str::to_owned));
            node.all(steps, found);
            steps.truncate(before);
        }
    }
}

fn has_rules(schema: &Json) -> bool {
    let properties = schema.get("properties").and_then(Json::as_object).into_iter().flatten().map(|(_, of)| of);
    !list(schema, "x-kubernetes-validations").is_empty()
        || items(schema).into_iter().chain(additional(schema)).chain(properties).any(has_rules)
}

fn compile(scope: &Scope<'_>, rule: &Json, schema: &Json) -> Result<Rule, String> {
    let known = |compiled| match compiled {
        Ok(compiled) => Ok(Ok(compiled)),
        Err(Failure::Refused(detail)) => Ok(Err(detail)),
        Err(Failure::Unsupported(why)) => Err(why),
    };
    let compiled = if text(rule, "rule").trim().is_empty() { None } else { Some(known(scope.rule(rule))?) };
    let message = match text(rule, "messageExpression") {
        "" => None,
        _ => known(scope.message(rule))?.ok().map(|compiled| compiled.program),
    };
    let path = Some(text(rule, "fieldPath")).filter(|path| !path.is_empty());
    Ok(Rule { of: rule.clone(), compiled, message, path: path.and_then(|path| field_path(path, schema)) })
}

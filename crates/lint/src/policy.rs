//! A policy, as rules see it.

use std::cell::OnceCell;

use palisade_admission::create::{self, Names};
use palisade_cel::{
    Environment, Minor, Mode,
    ast::{Ast, Node},
    parse,
    schema::{Schemas, TypeCheck},
};
use serde_json::Value as Json;

use crate::item::Item;

/// The role of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `matchConditions`.
    Condition,
    /// `variables`, by name.
    Variable(String),
    /// `validations[].expression`.
    Validation,
    /// `validations[].messageExpression`.
    Message,
    /// `auditAnnotations`.
    Annotation,
    /// `mutations`.
    Mutation,
}

/// One expression of a policy.
#[derive(Debug)]
pub(crate) struct Expression {
    pub path: String,
    pub source: String,
    pub role: Role,
    pub ast: Ast,
}

/// A policy that the API server accepts.
#[derive(Debug)]
pub(crate) struct Policy<'a> {
    pub item: Item<'a>,
    /// Match conditions, variables, validations and the others, each in their order.
    pub expressions: Vec<Expression>,
    check: OnceCell<Option<TypeCheck>>,
}

/// A rule of `matchConstraints.resourceRules`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceRule {
    pub index: usize,
    pub groups: Vec<String>,
    pub versions: Vec<String>,
    pub operations: Vec<String>,
    pub resources: Vec<String>,
    pub scope: String,
    pub names: Vec<String>,
}

impl<'a> Policy<'a> {
    pub fn new(item: Item<'a>, minor: Minor) -> Self {
        let syntax = Environment::kubernetes(minor, Mode::Stored).syntax();
        let spec = &item.json["spec"];
        let mut expressions = Vec::new();
        let mut add = |path: String, source: &Json, role: Role| {
            let Some(source) = source.as_str().filter(|source| !source.trim().is_empty()) else { return };
            if let Ok(ast) = parse::parse(source, syntax) {
                expressions.push(Expression { path, source: source.to_owned(), role, ast });
            }
        };
        let list = |key: &str| spec[key].as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        for (index, one) in list("matchConditions") {
            add(format!("spec.matchConditions[{index}].expression"), &one["expression"], Role::Condition);
        }
        for (index, one) in list("variables") {
            let name = one["name"].as_str().unwrap_or_default().to_owned();
            add(format!("spec.variables[{index}].expression"), &one["expression"], Role::Variable(name));
        }
        for (index, one) in list("validations") {
            add(format!("spec.validations[{index}].expression"), &one["expression"], Role::Validation);
            add(format!("spec.validations[{index}].messageExpression"), &one["messageExpression"], Role::Message);
        }
        for (index, one) in list("auditAnnotations") {
            add(format!("spec.auditAnnotations[{index}].valueExpression"), &one["valueExpression"], Role::Annotation);
        }
        for (index, one) in list("mutations") {
            for key in ["applyConfiguration", "jsonPatch"] {
                add(format!("spec.mutations[{index}].{key}.expression"), &one[key]["expression"], Role::Mutation);
            }
        }
        Self { item, expressions, check: OnceCell::new() }
    }

    /// `spec`.
    pub fn spec(&self) -> &Json {
        &self.item.json["spec"]
    }

    /// Whether a failing expression denies.
    pub fn fails_closed(&self) -> bool {
        self.spec()["failurePolicy"] != "Ignore"
    }

    /// `apiVersion` and `kind` of the parameters.
    pub fn param_kind(&self) -> Option<(String, String)> {
        let kind = &self.spec()["paramKind"];
        Some((kind["apiVersion"].as_str()?.to_owned(), kind["kind"].as_str()?.to_owned()))
    }

    /// The resource rules.
    pub fn rules(&self) -> Vec<ResourceRule> {
        let strings = |of: &Json| {
            of.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let rules = self.spec()["matchConstraints"]["resourceRules"].as_array();
        let rule = |(index, rule): (usize, &Json)| ResourceRule {
            index,
            groups: strings(&rule["apiGroups"]),
            versions: strings(&rule["apiVersions"]),
            operations: strings(&rule["operations"]),
            resources: strings(&rule["resources"]),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
            names: strings(&rule["resourceNames"]),
        };
        rules.into_iter().flatten().enumerate().map(rule).collect()
    }

    /// Whether any expression contains a text.
    pub fn mentions(&self, text: &str) -> bool {
        self.expressions.iter().any(|expression| expression.source.contains(text))
    }

    /// All nodes of all expressions.
    pub fn nodes(&self) -> impl Iterator<Item = (&Expression, &Node)> {
        self.expressions
            .iter()
            .flat_map(|expression| expression.ast.root.descendants().map(move |node| (expression, node)))
    }

    /// The check of its types, by what kinds there are.
    pub fn type_check(&self, minor: Minor, schemas: &Schemas, names: &Names) -> Option<&TypeCheck> {
        let check = || create::checker(minor, schemas, names, &self.item.json);
        self.check.get_or_init(check).as_ref()
    }
}

impl ResourceRule {
    /// Whether it covers a resource, which may have a subresource after a slash.
    pub fn covers(&self, group: &str, resource: &str) -> bool {
        let groups = self.groups.iter().any(|one| one == "*" || one == group);
        let (of, subresource) = resource.split_once('/').map_or((resource, None), |(of, sub)| (of, Some(sub)));
        groups
            && self.resources.iter().any(|one| match (one.split_once('/'), subresource) {
                (None, None) => one == "*" || one == of,
                (Some((found, sub)), Some(subresource)) => {
                    (found == "*" || found == of) && (sub == "*" || sub == subresource)
                }
                (Some(("*", "*")), None) => true,
                _ => false,
            })
    }

    /// Whether it covers everything.
    pub fn is_everything(&self) -> bool {
        self.groups.iter().any(|one| one == "*") && self.resources.iter().any(|one| one == "*" || one == "*/*")
    }

    /// Whether it covers an operation.
    pub fn on(&self, operation: &str) -> bool {
        self.operations.iter().any(|one| one == "*" || one == operation)
    }

    /// Its path.
    pub fn path(&self) -> String {
        format!("spec.matchConstraints.resourceRules[{}]", self.index)
    }
}

//! `x-kubernetes-validations` of CRDs (`k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`).
//!
//! Rules are compiled against the types of their schema. What the API server estimates they cost is not: of a CRD that
//! has rules and no mistake there is no verdict.

use palisade_cel::{
    Environment, Mode, ResultType,
    schema::{Kind, Schemas, escape},
    types::Type,
};
use serde_json::{Value as Json, json};

use super::{Checking, expressions, field::Error, list, meta, names, part, text};

/// Checks a `CustomResourceDefinition`.
pub(super) fn definition(checking: &mut Checking<'_>, object: &Json) {
    meta::check(checking, object, names::subdomain);
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    let (group, plural) =
        (text(spec, "group"), spec.pointer("/names/plural").and_then(Json::as_str).unwrap_or_default());
    let name = meta::name(object);
    if !name.is_empty() && name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        checking.errors.push(Error::invalid("metadata.name", &name, detail));
    }
    let kind = spec.pointer("/names/kind").and_then(Json::as_str).unwrap_or_default();
    let versions = list(spec, "versions");
    let schemas: Vec<_> = versions.iter().map(|version| version.pointer("/schema/openAPIV3Schema")).collect();
    // The API server keeps a schema that all versions share in one place.
    let shared = schemas.iter().all(|schema| *schema == schemas[0]);
    let mut types = Schemas::default();
    types.add_crd(object);
    let mut rules = 0;
    for (index, (version, schema)) in versions.iter().zip(&schemas).enumerate() {
        let Some(schema) = schema else { continue };
        let kind = Kind { group: group.to_owned(), version: text(version, "name").to_owned(), kind: kind.to_owned() };
        let base = Environment::kubernetes(checking.minor, Mode::New);
        let Some((environment, of)) = types.declare(base, &kind) else { continue };
        let field = if shared {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{index}].schema.openAPIV3Schema")
        };
        let mut walk = Walk { checking, environment: &environment, rules: 0 };
        walk.schema(schema, Some(&of), &field);
        rules += walk.rules;
        if shared {
            break;
        }
    }
    if rules > 0 {
        checking.unknown.get_or_insert_with(|| {
            format!("no verdict on the estimated cost of {rules} rules in x-kubernetes-validations")
        });
    }
}

struct Walk<'a, 'b> {
    checking: &'a mut Checking<'b>,
    environment: &'a Environment,
    rules: usize,
}

impl Walk<'_, '_> {
    /// Checks a schema whose values are of a type, if they are exposed at all.
    fn schema(&mut self, schema: &Json, of: Option<&Type>, field: &str) {
        for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
            self.rules += 1;
            if let Some(of) = of {
                self.rule(rule, of, &format!("{field}.x-kubernetes-validations[{index}]"));
            }
        }
        for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let of = match of {
                Some(Type::Object(object)) => escape(name)
                    .and_then(|name| self.environment.fields(object).and_then(|fields| fields.get(&*name)).cloned()),
                _ => None,
            };
            self.schema(property, of.as_ref(), &format!("{field}.properties[{name}]"));
        }
        if let Some(items) = part(schema, "items") {
            let of = if let Some(Type::List(of)) = of { Some(&**of) } else { None };
            self.schema(items, of, &format!("{field}.items"));
        }
        if let Some(values) = part(schema, "additionalProperties").filter(|values| values.is_object()) {
            let of = if let Some(Type::Map(_, of)) = of { Some(&**of) } else { None };
            self.schema(values, of, &format!("{field}.additionalProperties"));
        }
    }

    fn rule(&mut self, rule: &Json, of: &Type, field: &str) {
        let optional = rule.get("optionalOldSelf") == Some(&Json::Bool(true));
        let old = if optional { Type::Optional(std::sync::Arc::new(of.clone())) } else { of.clone() };
        let environment = self.environment.clone().declare("self", of.clone()).declare("oldSelf", old);
        for (key, result) in [("rule", ResultType::Bool), ("messageExpression", ResultType::String)] {
            let source = text(rule, key);
            let at = format!("{field}.{key}");
            if source.trim().is_empty() {
                if key == "rule" {
                    self.checking.errors.push(Error::required(at, "rule is not specified"));
                }
                continue;
            }
            if let Err(issues) = environment.compile(source, result) {
                let before = self.checking.errors.len();
                expressions::report(self.checking, &at, source, source, &issues);
                // The API server shows the whole rule, in the words of its internal type.
                for error in &mut self.checking.errors[before..] {
                    let detail = error.body.rsplit_once(&super::quote(source)).map(|(_, detail)| detail.to_owned());
                    if let Some(detail) = detail {
                        *error = Error::invalid_value(&at, &shown(rule), detail.trim_start_matches(": "));
                    }
                }
            }
        }
    }
}

fn shown(rule: &Json) -> Json {
    json!({
        "Rule": text(rule, "rule"),
        "Message": text(rule, "message"),
        "MessageExpression": text(rule, "messageExpression"),
        "Reason": rule.get("reason"),
        "FieldPath": text(rule, "fieldPath"),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    })
}

//! `status.typeChecking` of a policy (apiserver `pkg/admission/plugin/policy/validating/typechecking.go`).

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::{
    Minor,
    schema::{Kind, Rule, Schemas, TypeCheck, kinds_to_check},
};
use serde_json::Value as Json;

use crate::validation::{list, part, text};

/// One element of `status.typeChecking.expressionWarnings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// The path of the expression.
    pub field_ref: String,
    /// The API server's text, without the digits that it adds to the names of types.
    pub warning: String,
}

/// The resources of kinds: what the API server's `RESTMapper` knows.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_resource: BTreeMap<String, BTreeSet<Kind>>,
}

impl Names {
    /// Adds a kind under its plural; its name in lower case is understood, too.
    pub fn add(&mut self, kind: Kind, plural: &str) {
        self.by_resource.entry(kind.kind.to_lowercase()).or_default().insert(kind.clone());
        self.by_resource.entry(plural.to_lowercase()).or_default().insert(kind);
    }

    /// Adds built-in kinds by the plurals that their names have in English (`meta.UnsafeGuessKindToResource`), as all
    /// built-in resources do.
    pub fn add_builtin(&mut self, kinds: impl IntoIterator<Item = Kind>) {
        for kind in kinds {
            let singular = kind.kind.to_lowercase();
            let plural = match singular.strip_suffix('y') {
                _ if singular == "endpoints" => singular.clone(),
                Some(stem) => format!("{stem}ies"),
                None if singular.ends_with('s') => format!("{singular}es"),
                None => format!("{singular}s"),
            };
            self.add(kind, &plural);
        }
    }

    /// Adds what a CRD defines.
    pub fn add_crd(&mut self, crd: &Json) {
        let spec = |path: &str| crd.pointer(path).and_then(Json::as_str).unwrap_or_default();
        for version in crd.pointer("/spec/versions").and_then(Json::as_array).into_iter().flatten() {
            let kind = Kind {
                group: spec("/spec/group").to_owned(),
                version: text(version, "name").to_owned(),
                kind: spec("/spec/names/kind").to_owned(),
            };
            self.add(kind, spec("/spec/names/plural"));
        }
    }

    /// The kinds of a resource. Without a group those of all groups: so the API server does, for whom the core group
    /// has no name (`meta.DefaultRESTMapper.KindsFor`).
    pub fn kinds_of(&self, group: &str, version: &str, resource: &str) -> Vec<Kind> {
        let found = self.by_resource.get(&resource.to_lowercase()).into_iter().flatten();
        found.filter(|kind| kind.version == version && (group.is_empty() || kind.group == group)).cloned().collect()
    }
}

/// The API server's warnings about a policy's types after its creation, by the schemas of the kinds that it matches.
pub fn type_check(minor: Minor, schemas: &Schemas, names: &Names, policy: &Json) -> Vec<ExpressionWarning> {
    let Some(check) = checker(minor, schemas, names, policy) else { return vec![] };
    let mut warnings = Vec::new();
    let validations = policy.get("spec").map(|spec| list(spec, "validations")).unwrap_or_default();
    for (index, validation) in validations.iter().enumerate() {
        for key in ["expression", "messageExpression"] {
            let expression = text(validation, key);
            if key == "messageExpression" && expression.is_empty() {
                continue;
            }
            if let Some(warning) = check.warning(expression) {
                warnings.push(ExpressionWarning { field_ref: format!("spec.validations[{index}].{key}"), warning });
            }
        }
    }
    warnings
}

/// The check of a policy against the schemas of the kinds that it matches; None if it names none.
pub fn checker(minor: Minor, schemas: &Schemas, names: &Names, policy: &Json) -> Option<TypeCheck> {
    let spec = policy.get("spec")?;
    let strings =
        |of: &Json, key: &str| list(of, key).iter().filter_map(Json::as_str).map(str::to_owned).collect::<Vec<_>>();
    let rules: Vec<Rule> = part(spec, "matchConstraints")
        .map(|constraints| list(constraints, "resourceRules"))
        .unwrap_or_default()
        .iter()
        .map(|rule| Rule {
            groups: strings(rule, "apiGroups"),
            versions: strings(rule, "apiVersions"),
            resources: strings(rule, "resources"),
        })
        .collect();
    let kinds = kinds_to_check(&rules, |group, version, resource| names.kinds_of(group, version, resource));
    let params = part(spec, "paramKind")
        .and_then(|kind| Kind::parse(&format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind"))));
    let variables: Vec<_> = list(spec, "variables")
        .iter()
        .map(|one| (text(one, "name").to_owned(), text(one, "expression").to_owned()))
        .collect();
    Some(TypeCheck::new(minor, schemas, &kinds, params.as_ref(), &variables))
}

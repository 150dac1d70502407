//! The warnings in `status.typeChecking` of a policy (apiserver
//! `pkg/admission/plugin/policy/validating/typechecking.go`).

use std::collections::BTreeSet;

use super::{Admission, Kind, Schemas};
use crate::{
    Minor,
    environment::{Environment, Mode},
    issue::Issue,
    types::Type,
};

/// The most kinds of one rule.
const MAX_KINDS: usize = 10;

/// A rule of `spec.matchConstraints.resourceRules`.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// `apiGroups`.
    pub groups: Vec<String>,
    /// `apiVersions`.
    pub versions: Vec<String>,
    /// `resources`.
    pub resources: Vec<String>,
}

/// The kinds that a policy is checked against, in the API server's order: those of rules without `*` in groups and
/// versions. `kinds_of` returns the kinds of a group, version and resource.
pub fn kinds_to_check(rules: &[Rule], kinds_of: impl Fn(&str, &str, &str) -> Vec<Kind>) -> BTreeSet<Kind> {
    // A name that is given twice counts twice.
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let mut kinds = BTreeSet::new();
    for rule in rules {
        let wild = |names: &[String]| names.iter().any(|name| name.contains('*'));
        if wild(&rule.groups) || wild(&rule.versions) {
            continue;
        }
        let mut count = 0;
        for group in sorted(&rule.groups) {
            for version in sorted(&rule.versions) {
                for resource in sorted(&rule.resources).into_iter().filter(|name| !name.contains(['*', '/'])) {
                    for kind in kinds_of(&group, &version, &resource) {
                        kinds.insert(kind);
                        count += 1;
                        // The rules after it are not looked at any more.
                        if count == MAX_KINDS {
                            return kinds;
                        }
                    }
                }
            }
        }
    }
    kinds
}

/// Checks expressions of a policy against the schemas of what it matches.
#[derive(Clone, Debug)]
pub struct TypeCheck {
    kinds: Vec<(Kind, Environment)>,
}

impl TypeCheck {
    /// Prepares the check for the kinds with known schemas, with the policy's variables, name and expression, in their
    /// order. `params` is the policy's paramKind; without a schema it is dynamic, and before 1.36 undeclared.
    pub fn new<'a>(
        minor: Minor,
        schemas: &Schemas,
        kinds: impl IntoIterator<Item = &'a Kind>,
        params: Option<&Kind>,
        variables: &[(String, String)],
    ) -> Self {
        let environment = |kind: &Kind| {
            let base = Environment::kubernetes(minor, Mode::Stored);
            let (mut base, object) = schemas.declare(base, kind)?;
            let mut admission = Admission { object, ..Admission::default() };
            if let Some(params) = params {
                // The API server numbers the types: of one kind, those of the object and of the parameters differ.
                let name = if params.kind == kind.kind { format!("{}1", params.kind) } else { params.kind.clone() };
                let declared = schemas.declare_as(base.clone(), params, &name);
                // Before 1.36 params without a schema are not declared.
                admission.params = (minor >= Minor::V1_36).then_some(Type::Dyn);
                if let Some((with_params, of)) = declared {
                    (base, admission.params) = (with_params, Some(of));
                }
            }
            let mut environment = base.with_admission(&admission).without("authorizer.requestResource");
            for (name, expression) in variables {
                let checked = environment.check(expression).ok();
                environment = environment.compose(name, checked.as_ref().map(crate::check::Checked::output_type));
            }
            Some((kind.clone(), environment))
        };
        Self { kinds: kinds.into_iter().filter_map(environment).collect() }
    }

    /// The kinds that are checked, each with the environment of the policy's expressions for it.
    pub fn environments(&self) -> impl Iterator<Item = (&Kind, &Environment)> {
        self.kinds.iter().map(|(kind, environment)| (kind, environment))
    }

    /// The errors of an expression, by kind; kinds without are left out.
    pub fn issues<'a>(&'a self, expression: &'a str) -> impl Iterator<Item = (&'a Kind, Vec<Issue>)> + 'a {
        self.kinds.iter().filter_map(move |(kind, environment)| Some((kind, environment.check(expression).err()?)))
    }

    /// The warning that the API server writes into `status.typeChecking.expressionWarnings` for an expression, if any.
    /// The server also adds digits to the names of types; this text omits them.
    pub fn warning(&self, expression: &str) -> Option<String> {
        let kinds: Vec<String> = self
            .issues(expression)
            .map(|(kind, issues)| {
                let issues: Vec<String> = issues.iter().map(|issue| issue.display(expression).to_string()).collect();
                format!("{kind}: {}\n", issues.join("\n"))
            })
            .collect();
        (!kinds.is_empty()).then(|| kinds.join("\n"))
    }
}

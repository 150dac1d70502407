//! Expressions of policies, compiled as the API server does when a policy is created (apiserver
//! `pkg/admission/plugin/cel/compile.go`): new expressions in the environment for new ones, existing ones in that for
//! stored ones.

use std::collections::BTreeSet;

use palisade_cel::{Admission, Environment, Issue, IssueKind, Minor, Mode, ResultType, types::Type};
use serde_json::Value as Json;

use crate::validation::{Checking, FieldError as Error};

/// The place of an expression, which determines the variables and functions that it can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A variable, a validation, an audit annotation.
    Main,
    /// A message expression, which has no authorizer.
    Message,
    /// A match condition, which has no variables.
    Condition,
    /// A mutation, which can construct patches.
    Mutation,
}

/// The environments of a policy.
pub(super) struct Expressions {
    /// For new expressions, and for those that are there already.
    modes: [Environments; 2],
    /// The expressions of the policy that is updated.
    stored: BTreeSet<String>,
}

struct Environments {
    main: Environment,
    message: Environment,
    condition: Environment,
}

impl Expressions {
    /// `variables` says whether the policy has any: without them, the name `variables` does not exist.
    pub(super) fn new(minor: Minor, params: bool, variables: bool, old: Option<&Json>) -> Self {
        let environments = |mode| {
            let environment = |authorizer, variables| {
                let params = params.then_some(Type::Dyn);
                let admission = Admission { params, authorizer, variables, ..Admission::default() };
                Environment::kubernetes(minor, mode).with_admission(&admission)
            };
            Environments {
                main: environment(true, variables),
                message: environment(false, variables),
                condition: environment(true, false),
            }
        };
        let mut stored = BTreeSet::new();
        if let Some(spec) = old.and_then(|old| old.get("spec")) {
            texts(spec, &mut stored);
        }
        Self { modes: [environments(Mode::New), environments(Mode::Stored)], stored }
    }

    /// Compiles an expression that is `shown` to the user as another if it was trimmed.
    pub(super) fn compile(
        &self,
        checking: &mut Checking<'_>,
        field: &str,
        place: Place,
        (source, shown): (&str, &str),
        result: ResultType,
    ) -> Option<Type> {
        let environments = &self.modes[usize::from(self.stored.contains(shown))];
        let mutation;
        let environment = match place {
            Place::Mutation => {
                mutation = environments.main.clone().with_mutation();
                &mutation
            }
            Place::Main => &environments.main,
            Place::Message => &environments.message,
            Place::Condition => &environments.condition,
        };
        match environment.compile(source, result) {
            Ok(program) => Some(program.output_type().clone()),
            Err(issues) => {
                report(checking, field, source, shown, &issues);
                None
            }
        }
    }

    /// Adds a variable, which the expressions after it see.
    pub(super) fn compose(&mut self, name: &str, output: Option<&Type>) {
        for environments in &mut self.modes {
            environments.main = environments.main.clone().compose(name, output);
            environments.message = environments.message.clone().compose(name, output);
        }
    }
}

/// The API server's errors for an expression that does not compile.
pub(super) fn report(checking: &mut Checking<'_>, field: &str, source: &str, shown: &str, issues: &[Issue]) {
    if let Some(issue) = issues.iter().find(|issue| issue.kind == IssueKind::Unsupported) {
        checking.unknown.get_or_insert_with(|| format!("{field}: {}", issue.message));
        return;
    }
    checking.errors.push(
        match issues {
            [issue] if issue.kind == IssueKind::Fold => Error::internal(field, &issue.message),
            [issue] if issue.kind == IssueKind::ResultType => Error::invalid(field, shown, &issue.message),
            issues => {
                let issues: Vec<_> = issues.iter().map(|issue| issue.display(source).to_string()).collect();
                Error::invalid(field, shown, &format!("compilation failed: {}", issues.join("\n")))
            }
        }
        .with_help(issues.iter().find_map(help)),
    );
}

/// Advice on an error: also on names that only some expressions of some policies have.
fn help(issue: &Issue) -> Option<String> {
    let hint = |name: &str| {
        Some(match name {
            "params" => "`params` is declared if the policy has a paramKind",
            "variables" => "match conditions are evaluated before the variables of a policy",
            "authorizer" => "message expressions have no authorizer",
            "now" => "CEL in the API server has no clock",
            _ => return None,
        })
    };
    let named = || issue.message.strip_prefix("undeclared reference to '")?.split('\'').next().and_then(hint);
    issue.help.clone().or_else(|| named().map(str::to_owned))
}

/// All expressions of a policy. The API server keeps those of validations, messages and so on apart, which makes a
/// difference only to one that moves.
fn texts(of: &Json, found: &mut BTreeSet<String>) {
    match of {
        Json::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Json::String(text) if key.to_lowercase().ends_with("expression") => {
                        found.insert(text.clone());
                    }
                    value => texts(value, found),
                }
            }
        }
        Json::Array(elements) => elements.iter().for_each(|element| texts(element, found)),
        _ => {}
    }
}

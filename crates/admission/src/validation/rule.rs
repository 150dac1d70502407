//! Compiling a rule (`pkg/apiserver/schema/cel/compilation.go`).

use std::sync::Arc;

use palisade_cel::{
    Environment, Issue, IssueKind,
    ast::Expr,
    check::{Checked, Reference},
    estimate::estimate,
    eval::Program,
    schema::DeclType,
    types::Type,
};
use serde_json::Value as Json;

use super::text;

/// A rule that compiles.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) program: Program,
    /// Whether it reads `oldSelf`: then it is evaluated only if there is such a value.
    pub(crate) uses_old_self: bool,
    /// Its estimated maximum cost.
    pub(crate) cost: u64,
}

/// Why there is no program.
pub(crate) enum Failure {
    /// The API server's text.
    Refused(String),
    /// The API server's text is unknown, for this reason.
    Unsupported(String),
}

/// The environments of the rules of a schema.
pub(crate) struct Scope<'t> {
    of: &'t DeclType,
    plain: Environment,
    /// Where `oldSelf` is an optional.
    optional: Environment,
}

impl<'t> Scope<'t> {
    pub(crate) fn new(base: &Environment, of: &'t DeclType) -> Self {
        // The API server appends digits, other ones each time.
        let (environment, self_type) = of.declare(base.clone(), "selfType");
        let environment = environment.declare("self", self_type.clone());
        let optional = environment.clone().declare("oldSelf", Type::Optional(Arc::new(self_type.clone())));
        Self { of, plain: environment.declare("oldSelf", self_type), optional }
    }

    fn environment(&self, rule: &Json) -> &Environment {
        if rule.get("optionalOldSelf") == Some(&Json::Bool(true)) { &self.optional } else { &self.plain }
    }

    /// Compiles the rule itself.
    pub(crate) fn rule(&self, rule: &Json) -> Result<Compiled, Failure> {
        self.compile(rule, "rule", &Type::Bool, ["compilation", "cel expression must evaluate to a bool", "program"])
    }

    /// Compiles its message.
    pub(crate) fn message(&self, rule: &Json) -> Result<Compiled, Failure> {
        let words =
            ["messageExpression compilation", "messageExpression must evaluate to a string", "messageExpression"];
        self.compile(rule, "messageExpression", &Type::String, words)
    }

    fn compile(&self, rule: &Json, key: &str, of: &Type, words: [&str; 3]) -> Result<Compiled, Failure> {
        let source = text(rule, key);
        let environment = self.environment(rule);
        let [compilation, result, program] = words;
        let checked = environment.check(source).map_err(|issues| {
            failure(&issues, |issues| {
                let issues: Vec<_> = issues.iter().map(|issue| issue.display(source).to_string()).collect();
                format!("{compilation} failed: {}", issues.join("\n"))
            })
        })?;
        if checked.output_type() != of {
            return Err(Failure::Refused(result.to_owned()));
        }
        let program = Program::new(&checked, environment).map_err(|issue| {
            let text = issue.message.trim_start_matches("program instantiation failed: ").to_owned();
            failure(&[issue], |_| format!("{program} instantiation failed: {text}"))
        })?;
        let cost = estimate(&checked, environment.minor(), self.of).max;
        Ok(Compiled { program, uses_old_self: uses_old_self(&checked), cost })
    }
}

fn failure(issues: &[Issue], text: impl FnOnce(&[Issue]) -> String) -> Failure {
    match issues.iter().find(|issue| issue.kind == IssueKind::Unsupported) {
        Some(issue) => Failure::Unsupported(issue.message.clone()),
        None => Failure::Refused(text(issues)),
    }
}

/// Whether anything in an expression refers to `oldSelf`, be it what a macro binds by that name.
fn uses_old_self(checked: &Checked) -> bool {
    checked.ast.root.descendants().any(|node| {
        matches!(&node.expr, Expr::Ident(_))
            && matches!(checked.reference(node.id), Some(Reference::Variable(name)) if &**name == "oldSelf")
    })
}

//! A mutation that does not fit the schema.

use std::collections::{BTreeMap, BTreeSet};

use palisade_admission::requests::{Misfit, MisfitCause, misfits};
use palisade_cel::{
    Admission, Environment, Issue, IssueKind, Mode, Position, check::Checked, schema::Kind, types::Type,
};
use palisade_manifest::{Severity, suggestion};

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
    policy::{Expression, Policy, Role},
};

pub(super) static RULE: Rule = Rule {
    id: "mutation-type",
    severity: Severity::Error,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A mutation that does not fit the schema",
    why: "\
The API server accepts the policy and checks no types in its mutations. It finds the error when it evaluates the mutation,
and then rejects the request with `failurePolicy: Fail`, or leaves the object as it is with `Ignore`. This rule finds fields
that the kind does not have, values of another type, and atomic lists, maps and structs: an `applyConfiguration` cannot
change these, so use a `JSONPatch`. In a `JSONPatch`, the rule checks literal paths and values.

The finding is a warning if it concerns only some of the matched kinds, or if an expression reads a field that the schema
does not have.",
    bad: include_str!("mutation_type.bad.yaml"),
    good: include_str!("mutation_type.good.yaml"),
};

/// Maximum length of advice.
const MAX_ADVICE_BYTES: usize = 120;

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| policy.item.kind.starts_with("Mutating")) {
        let Some(check) = cluster.type_check(policy) else { continue };
        let kinds: Vec<_> = check.environments().collect();
        for expression in policy.expressions.iter().filter(|one| one.role == Role::Mutation) {
            let mut mistakes = BTreeMap::<_, Mistake>::new();
            for (kind, environment) in &kinds {
                for mistake in of_kind(cluster, policy, expression, kind, environment) {
                    let key = (mistake.position, mistake.message.clone());
                    mistakes.entry(key).or_insert(mistake).kinds.insert((*kind).clone());
                }
            }
            for mistake in mistakes.into_values() {
                found.put(&policy.item, mistake.found(policy, expression, kinds.len()));
            }
        }
    }
}

struct Mistake {
    position: Position,
    message: String,
    help: Option<String>,
    /// Whether the mutation fails wherever it is.
    fails: bool,
    kinds: BTreeSet<Kind>,
}

/// The errors of an expression for a kind.
fn of_kind(
    cluster: &Cluster<'_>,
    policy: &Policy<'_>,
    expression: &Expression,
    kind: &Kind,
    environment: &Environment,
) -> Vec<Mistake> {
    let (checked, issues) = match environment.clone().with_mutation().check(&expression.source) {
        Ok(checked) => (Some(checked), Vec::new()),
        Err(issues) => (untyped(cluster, policy, expression), issues),
    };
    let read = issues.into_iter().filter(|issue| issue.kind == IssueKind::UndefinedField).map(read);
    let is_custom = cluster.crds.iter().any(|crd| crd.json["spec"]["group"] == *kind.group);
    let drops = is_custom && expression.path.ends_with(".jsonPatch.expression");
    let misfits = checked.iter().flat_map(|checked| {
        misfits(&cluster.schemas, kind, checked).into_iter().map(|misfit| written(misfit, checked, drops))
    });
    read.chain(misfits).collect()
}

/// The expression without the types of the object, as the API server compiles it.
fn untyped(cluster: &Cluster<'_>, policy: &Policy<'_>, expression: &Expression) -> Option<Checked> {
    let admission = Admission { params: policy.param_kind().map(|_| Type::Dyn), ..Admission::default() };
    let base = Environment::kubernetes(cluster.minor, Mode::Stored).with_admission(&admission);
    let variables = policy.expressions.iter().filter_map(|one| match &one.role {
        Role::Variable(name) => Some(name),
        _ => None,
    });
    let environment = variables.fold(base, |environment, name| environment.compose(name, None));
    environment.with_mutation().check(&expression.source).ok()
}

fn read(Issue { position, message, help, .. }: Issue) -> Mistake {
    Mistake { position, message, help, fails: false, kinds: BTreeSet::new() }
}

/// `drops` is whether the API server drops unknown fields.
fn written(misfit: Misfit, checked: &Checked, drops: bool) -> Mistake {
    let dropped = drops && matches!(misfit.cause, MisfitCause::Unknown(_));
    let help = match &misfit.cause {
        MisfitCause::Unknown(known) => {
            let name = misfit.message.split(':').next().unwrap_or_default().rsplit(['.', '/']).next();
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            // Advice with all fields of a long list is not read.
            Some(suggestion(name.unwrap_or_default(), &known)).filter(|help| help.len() <= MAX_ADVICE_BYTES)
        }
        MisfitCause::Atomic => Some("replace the whole value with a mutation of patchType JSONPatch".to_owned()),
        MisfitCause::Operation => Some("write add, copy, move, remove, replace or test".to_owned()),
        MisfitCause::Type => None,
    };
    let position = checked.ast.position(misfit.node);
    let message = if dropped { misfit.message + ": the API server drops it" } else { misfit.message };
    Mistake { position, message, help, fails: !dropped, kinds: BTreeSet::new() }
}

impl Mistake {
    fn found(self, policy: &Policy<'_>, expression: &Expression, matched: usize) -> Found {
        let effect = match (self.fails, policy.fails_closed()) {
            (true, true) => ": the API server rejects each request for which it evaluates this expression",
            (true, false) => ": the mutation fails; failurePolicy: Ignore hides this",
            (false, _) => "",
        };
        let all = self.kinds.len() == matched;
        let severity = if self.fails && all { Severity::Error } else { Severity::Warning };
        let kinds: Vec<_> = self.kinds.iter().map(super::readable).collect();
        let named = if matched == 1 { String::new() } else { super::named(&kinds, all) };
        Found {
            path: expression.path.clone(),
            position: self.position,
            message: format!("{}{effect}{named}", self.message),
            help: self.help,
            severity: Some(severity),
            kinds,
        }
    }
}

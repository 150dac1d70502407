//! A validation that denies no object, by a proof for all objects.

use std::collections::BTreeMap;

use palisade_admission::objects::Kinds;
use palisade_cel::schema::Kind;
use palisade_manifest::Severity;
use palisade_prove::{
    Answer, Operation, Policy as Proved, Requests,
    universe::{self, Type},
};

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::Findings,
    policy::{Policy, Role},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "never-denies",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A validation that denies no object",
    why: "\
The validation is true for every object of the matched kinds, on creation and update, whatever their fields, parameters and
users are. Often an operator is the wrong one: `seconds >= 10 || seconds <= 300` is always true. Or the match conditions exclude
each object that the validation would deny.

The finding is proved: the expressions become formulas, a search finds no object for which the validation is false or fails,
and the steps of the search are checked. There is no finding if an expression is not understood, or the search takes too many
steps. Policies that also match deletions, subresources or custom resources, or have parameters of such a kind, are not examined.",
    bad: include_str!("never_denies.bad.yaml"),
    good: include_str!("never_denies.good.yaml"),
};

/// The most questions about a policy: one for each validation, kind and operation.
const MAX_QUESTIONS: usize = 64;
/// The most nodes of the expressions of a policy.
const MAX_NODES: usize = 2000;

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        // The offline check examines the policies of a product.
        if policy.item.generated || !policy.item.kind.starts_with("Validating") {
            continue;
        }
        let Some(questions) = Questions::about(cluster, policy) else { continue };
        for expression in policy.expressions.iter().filter(|one| one.role == Role::Validation) {
            if tree::constant(&expression.ast.root).is_none() && questions.never_denies(&expression.source) {
                found.add(&policy.item, &expression.path, "is true for every object");
            }
        }
    }
}

/// The requests that a policy matches, and its expressions without validations.
struct Questions {
    kinds: Vec<(Kind, Type)>,
    operations: Vec<Operation>,
    params: Option<Type>,
    policy: Proved,
}

impl Questions {
    /// `None` if it matches requests that are not understood.
    fn about(cluster: &Cluster<'_>, policy: &Policy<'_>) -> Option<Self> {
        // Fields of custom resources may be null, or may not be declared.
        let builtin = Kinds::builtin(cluster.minor);
        let (mut kinds, mut operations) = (BTreeMap::new(), Vec::new());
        for rule in policy.rules() {
            for operation in &rule.operations {
                let operation = match &**operation {
                    "CREATE" => Operation::Create,
                    "UPDATE" => Operation::Update,
                    _ => return None,
                };
                if !operations.contains(&operation) {
                    operations.push(operation);
                }
            }
            for group in &rule.groups {
                for version in &rule.versions {
                    for plural in &rule.resources {
                        // A wildcard and a subresource are the names of no resource.
                        let resource = builtin.by_plural(group, version, plural)?;
                        // An object without a namespace has no namespaceObject.
                        if !resource.namespaced && policy.mentions("namespaceObject") {
                            return None;
                        }
                        let kind = Kind::parse(&format!("{}/{}", resource.api_version(), resource.kind))?;
                        let of = universe::of_kind(&cluster.schemas, &kind)?;
                        kinds.insert(kind, of);
                    }
                }
            }
        }
        let params = match policy.param_kind() {
            None => None,
            Some((version, kind)) => {
                builtin.by_kind(&version, &kind)?;
                Some(universe::of_kind(&cluster.schemas, &Kind::parse(&format!("{version}/{kind}"))?)?)
            }
        };
        let validations = policy.expressions.iter().filter(|one| one.role == Role::Validation).count();
        let nodes: usize = policy.expressions.iter().map(|one| one.ast.root.descendants().count()).sum();
        if validations * kinds.len() * operations.len() > MAX_QUESTIONS || nodes > MAX_NODES {
            return None;
        }
        let variables = policy.expressions.iter().filter_map(|one| match &one.role {
            Role::Variable(name) => Some((name.as_str(), one.source.as_str())),
            _ => None,
        });
        let conditions = policy.expressions.iter().filter(|one| one.role == Role::Condition);
        let policy = Proved::parse(variables, conditions.map(|one| one.source.as_str()), [])?;
        Some(Self { kinds: kinds.into_iter().collect(), operations, params, policy })
    }

    /// Whether each matched request passes this validation.
    fn never_denies(&self, validation: &str) -> bool {
        let Some(validation) = palisade_prove::question::expression(validation) else { return false };
        let policy = [Proved { validations: vec![validation], ..self.policy.clone() }];
        self.kinds.iter().all(|(kind, object)| {
            self.operations.iter().all(|&operation| {
                let requests = Requests { object, kind: &kind.kind, operation, params: self.params.as_ref() };
                matches!(requests.admitted_are_admitted_by(&[], &policy), Answer::Proved(_))
            })
        })
    }
}

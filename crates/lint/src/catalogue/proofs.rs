//! Proofs about the policies of a product, for all objects.

use std::collections::BTreeMap;

use palisade_admission::objects::Kinds;
use palisade_cel::schema::Kind;
use palisade_prove::{
    Answer, Operation, Policy as Proved, Requests,
    universe::{self, Type},
};

use crate::{
    cluster::Cluster,
    policy::{Policy, Role},
};

/// The most questions about a policy: one for each validation, kind and operation.
const MAX_QUESTIONS: usize = 64;
/// The most nodes of the expressions of a policy.
const MAX_NODES: usize = 2000;

/// The requests that a policy matches, and its expressions without validations.
pub(super) struct Questions {
    kinds: Vec<(Kind, Type)>,
    operations: Vec<Operation>,
    params: Option<Type>,
    policy: Proved,
}

impl Questions {
    /// `None` if it matches requests that are not understood, or is no policy of a product.
    pub(super) fn about(cluster: &Cluster<'_>, policy: &Policy<'_>) -> Option<Self> {
        // The offline check examines the policies of a product.
        if policy.item.generated || !policy.item.kind.starts_with("Validating") {
            return None;
        }
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
    pub(super) fn never_denies(&self, validation: &str) -> bool {
        self.with(validation).is_some_and(|policy| self.imply(&[], &[policy]))
    }

    /// Whether no object of the matched kinds passes this validation, whatever the match conditions are.
    pub(super) fn always_denies(&self, validation: &str) -> bool {
        let unconditional = |policy: Proved| Proved { conditions: Vec::new(), ..policy };
        let policies = self.with(validation).map(unconditional).zip(self.with("false").map(unconditional));
        policies.is_some_and(|(policy, none)| self.imply(&[policy], &[none]))
    }

    /// Whether the match conditions exclude every object.
    pub(super) fn never_match(&self) -> bool {
        !self.policy.conditions.is_empty() && self.never_denies("false")
    }

    fn with(&self, validation: &str) -> Option<Proved> {
        Some(Proved { validations: vec![palisade_prove::question::expression(validation)?], ..self.policy.clone() })
    }

    /// Whether it is proved that each request that some policies admit is admitted by others.
    fn imply(&self, policies: &[Proved], others: &[Proved]) -> bool {
        self.kinds.iter().all(|(kind, object)| {
            self.operations.iter().all(|&operation| {
                let requests = Requests { object, kind: &kind.kind, operation, params: self.params.as_ref() };
                matches!(requests.admitted_are_admitted_by(policies, others), Answer::Proved(_))
            })
        })
    }
}

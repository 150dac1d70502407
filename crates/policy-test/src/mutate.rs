//! Mutation testing: small mistakes in policies and in the objects that become policies. Some case should notice each
//! mistake. Messages of denials count apart: a case notices them only if it expects them.

mod make;

use std::collections::{BTreeMap, btree_map::Entry};

use palisade_admission::requests::{Evaluation, PolicyKind, Review};
use serde_json::Value as Json;

use crate::{
    Case, Suite,
    places::Place,
    run::{Status, judge},
    test_cluster::TestCluster,
};

/// A mistake in an expression, or in a message or reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mutant {
    /// Where it is.
    pub place: Place,
    /// The policy, or the object that becomes policies.
    pub policy: String,
    /// The field: `validations[0].expression`, `spec.customChecks[0].expression`.
    pub path: String,
    /// Whether it only changes the messages about a denial.
    pub of_message: bool,
    /// The mistake in words.
    pub description: String,
    /// The lines that it changes, as they are.
    pub before: String,
    /// The lines with the mistake.
    pub after: String,
    changes: Vec<Change>,
}

/// A text to replace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// One of a policy.
    Policy {
        kind: PolicyKind,
        policy: String,
        path: String,
        source: String,
        /// The path of the expression: a case that evaluates it may notice the mistake.
        noticed_by: String,
    },
    /// A rule of a CustomResourceDefinition, in each version that has it.
    Definition { name: String, pointers: Vec<String>, source: String },
}

impl Mutant {
    /// Whether a review depends on the change: it evaluates the expression, or shows the message. Each object of a definition
    /// counts, since a review does not have the rules that were evaluated.
    fn concerns(&self, case: &Case, review: &Review) -> bool {
        let shows = |one: &Evaluation| match one.json() {
            Json::Bool(holds) => !holds,
            Json::Array(violations) => !violations.is_empty(),
            _ => false,
        };
        self.changes.iter().any(|change| match change {
            Change::Policy { kind, policy, noticed_by, .. } => {
                let is_of = |one: &&Evaluation| (one.kind, &one.policy, &one.path) == (*kind, policy, noticed_by);
                review.evaluations.iter().filter(is_of).any(|one| !self.of_message || shows(one))
            }
            Change::Definition { name, .. } => !case.decoded && case.request.resource.group_resource() == *name,
        })
    }

    /// The cluster with the mistake; none if it does not compile.
    fn apply(&self, cluster: &TestCluster) -> Option<TestCluster> {
        let cluster = (!self.changes.is_empty()).then(|| cluster.clone());
        self.changes.iter().try_fold(cluster?, |cluster, change| match change {
            Change::Policy { kind, policy, path, source, .. } => {
                cluster.with_expression(*kind, policy, path, source).ok()
            }
            Change::Definition { name, pointers, source } => cluster.with_definition(name, pointers, source),
        })
    }
}

/// The outcome of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MutantOutcome {
    /// It does not compile, so the API server would reject that mistake.
    Invalid,
    /// This case fails with it.
    Killed(String),
    /// No case fails with it.
    Survived {
        /// How many cases evaluate the expression, or are denied with the message.
        cases: usize,
    },
}

/// The outcomes of all mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MutationReport {
    outcomes: BTreeMap<Mutant, MutantOutcome>,
}

impl MutationReport {
    /// Adds the outcome of a mutant in one suite. It is killed if some suite kills it.
    pub fn add(&mut self, mutant: Mutant, outcome: MutantOutcome) {
        match self.outcomes.entry(mutant) {
            Entry::Vacant(entry) => drop(entry.insert(outcome)),
            Entry::Occupied(mut entry) => match (entry.get_mut(), outcome) {
                (MutantOutcome::Survived { cases }, MutantOutcome::Survived { cases: more }) => *cases += more,
                (known @ MutantOutcome::Survived { .. }, outcome) => *known = outcome,
                _ => {}
            },
        }
    }

    /// How many were killed.
    pub fn killed(&self) -> usize {
        self.outcomes.values().filter(|outcome| matches!(outcome, MutantOutcome::Killed(_))).count()
    }

    /// How many there are that compile.
    pub fn total(&self) -> usize {
        self.outcomes.values().filter(|outcome| **outcome != MutantOutcome::Invalid).count()
    }

    /// The percentage of mutants that compile and were killed; 100 if there are none.
    #[expect(clippy::cast_precision_loss, reason = "there are not that many mutants")]
    pub fn percent(&self) -> f64 {
        if self.total() == 0 { 100.0 } else { 100.0 * self.killed() as f64 / self.total() as f64 }
    }

    /// Those that survived, by place, with the number of cases that evaluate their expression.
    pub fn survivors(&self) -> impl Iterator<Item = (&Mutant, usize)> {
        self.outcomes.iter().filter_map(|(mutant, outcome)| match outcome {
            MutantOutcome::Survived { cases } => Some((mutant, *cases)),
            _ => None,
        })
    }

    /// All mutants with their outcomes, by place.
    pub fn outcomes(&self) -> impl Iterator<Item = (&Mutant, &MutantOutcome)> {
        self.outcomes.iter()
    }
}

/// The passing cases of a suite, with the expressions that each evaluates: mutants are tried on these.
pub struct Baseline<'a> {
    suite: &'a Suite,
    passing: Vec<(&'a Case, Review)>,
}

impl<'a> Baseline<'a> {
    /// Runs all cases.
    pub fn new(suite: &'a Suite) -> Self {
        let run = |case: &'a Case| (case, case.ask(&suite.clusters[case.cluster]));
        let passes = |(case, review): &(&Case, Review)| judge(case, review) == Status::Passed;
        Self {
            suite,
            passing: suite.cases.iter().filter(|case| case.unjudged.is_none()).map(run).filter(passes).collect(),
        }
    }

    /// Tries a mutant on the cases that it concerns, up to the first that notices it.
    pub fn outcome(&self, mutant: &Mutant) -> MutantOutcome {
        let concerned: Vec<_> = self.passing.iter().filter(|(case, review)| mutant.concerns(case, review)).collect();
        let mut changed = BTreeMap::new();
        // A mutant that concerns no case must still compile to count.
        let first = concerned.first().map_or(0, |(case, _)| case.cluster);
        for index in std::iter::once(first).chain(concerned.iter().map(|(case, _)| case.cluster)) {
            if let Entry::Vacant(entry) = changed.entry(index) {
                let cluster = self.suite.clusters.get(index).and_then(|cluster| mutant.apply(cluster));
                let Some(cluster) = cluster else { return MutantOutcome::Invalid };
                entry.insert(cluster);
            }
        }
        let notices = |(case, _): &&&(&Case, Review)| judge(case, &case.ask(&changed[&case.cluster])) != Status::Passed;
        match concerned.iter().find(notices) {
            Some((case, _)) => MutantOutcome::Killed(case.name.clone()),
            None => MutantOutcome::Survived { cases: concerned.len() },
        }
    }
}

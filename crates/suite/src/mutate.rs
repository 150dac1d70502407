//! Mutation testing: small mistakes in the expressions of policies, of which some case should notice each.

use std::collections::{BTreeMap, btree_map::Entry};

use palisade_cel::mutate::mutants;
use palisade_harness::admission::Review;

use crate::{
    Case, Suite,
    places::{Locator, Place},
    run::{Status, judge},
};

/// A mistake in an expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mutant {
    /// Where it is.
    pub place: Place,
    /// The policy.
    pub policy: String,
    /// The field: `validations[0].expression`.
    pub path: String,
    /// The mistake in words.
    pub description: String,
    /// The lines that it changes, as they are.
    pub before: String,
    /// The lines with the mistake.
    pub after: String,
    source: String,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does not compile, so that nobody could make that mistake.
    Invalid,
    /// This case fails with it.
    Killed(String),
    /// No case fails with it.
    Survived {
        /// How many cases evaluate the expression.
        cases: usize,
    },
}

/// What became of all mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mutation {
    fates: BTreeMap<Mutant, Fate>,
}

impl Mutation {
    /// Adds what became of a mutant in one suite. It is killed if some suite kills it.
    pub fn add(&mut self, mutant: Mutant, fate: Fate) {
        match self.fates.entry(mutant) {
            Entry::Vacant(entry) => drop(entry.insert(fate)),
            Entry::Occupied(mut entry) => match (entry.get_mut(), fate) {
                (Fate::Survived { cases }, Fate::Survived { cases: more }) => *cases += more,
                (known @ Fate::Survived { .. }, fate) => *known = fate,
                _ => {}
            },
        }
    }

    /// How many were killed.
    pub fn killed(&self) -> usize {
        self.fates.values().filter(|fate| matches!(fate, Fate::Killed(_))).count()
    }

    /// How many there are that compile.
    pub fn total(&self) -> usize {
        self.fates.values().filter(|fate| **fate != Fate::Invalid).count()
    }

    /// The share of those that compile that were killed, in percent; all of none.
    #[expect(clippy::cast_precision_loss, reason = "there are not that many mutants")]
    pub fn percent(&self) -> f64 {
        if self.total() == 0 { 100.0 } else { 100.0 * self.killed() as f64 / self.total() as f64 }
    }

    /// Those that survived, by place, with the number of cases that evaluate their expression.
    pub fn survivors(&self) -> impl Iterator<Item = (&Mutant, usize)> {
        self.fates.iter().filter_map(|(mutant, fate)| match fate {
            Fate::Survived { cases } => Some((mutant, *cases)),
            _ => None,
        })
    }

    /// All mutants with what became of them, by place.
    pub fn fates(&self) -> impl Iterator<Item = (&Mutant, &Fate)> {
        self.fates.iter()
    }
}

/// The cases of a suite that pass, with what each evaluates: what mutants are tried on.
pub struct Baseline<'a> {
    suite: &'a Suite,
    passing: Vec<(&'a Case, Review)>,
}

impl<'a> Baseline<'a> {
    /// Runs all cases.
    pub fn new(suite: &'a Suite) -> Self {
        let run = |case: &'a Case| (case, case.ask(&suite.worlds[case.world]));
        let passes = |(case, review): &(&Case, Review)| judge(case, review) == Status::Passed;
        Self {
            suite,
            passing: suite.cases.iter().filter(|case| case.unjudged.is_none()).map(run).filter(passes).collect(),
        }
    }

    /// The mutants of all validations, match conditions and variables of the suite's policies. Messages and audit
    /// annotations have none, nor has what profiles become.
    pub fn mutants(&self) -> Vec<Mutant> {
        let mut found = Vec::new();
        for policy in self.suite.policies().filter(|policy| !policy.origin.generated) {
            let locator = Locator::new(&policy.origin);
            let Some(world) = self.suite.worlds.first() else { continue };
            let expressions = world.expressions().filter(|one| one.policy == policy.name());
            for expression in expressions.filter(|one| one.path.ends_with("].expression")) {
                for mutant in mutants(expression.source) {
                    let field = format!("spec.{}", expression.path);
                    let (before, after) = lines(expression.source, &mutant);
                    found.push(Mutant {
                        place: locator.text(&field, mutant.position.line, mutant.position.column),
                        policy: policy.name().to_owned(),
                        path: expression.path.to_owned(),
                        source: mutant.apply(expression.source),
                        description: mutant.description,
                        before,
                        after,
                    });
                }
            }
        }
        found
    }

    /// Tries a mutant on the cases that evaluate its expression, up to the first that notices it.
    pub fn fate(&self, mutant: &Mutant) -> Fate {
        let evaluates = |(_, review): &&(&Case, Review)| {
            review.evaluations.iter().any(|one| one.policy == mutant.policy && one.path == mutant.path)
        };
        let mut cases = 0;
        let mut changed = BTreeMap::new();
        // A mutant that nothing evaluates must compile all the same to count.
        let worlds = self.passing.iter().find(evaluates).map_or(0, |(case, _)| case.world);
        let Some(world) = self.suite.worlds.get(worlds) else { return Fate::Invalid };
        let Ok(cluster) = world.with_expression(&mutant.policy, &mutant.path, &mutant.source) else {
            return Fate::Invalid;
        };
        changed.insert(worlds, cluster);
        for (case, _) in self.passing.iter().filter(evaluates) {
            cases += 1;
            let cluster = match changed.entry(case.world) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let world = &self.suite.worlds[case.world];
                    let Ok(cluster) = world.with_expression(&mutant.policy, &mutant.path, &mutant.source) else {
                        return Fate::Invalid;
                    };
                    entry.insert(cluster)
                }
            };
            let review = case.ask(cluster);
            if judge(case, &review) != Status::Passed {
                return Fate::Killed(case.name.clone());
            }
        }
        Fate::Survived { cases }
    }
}

/// The lines that an edit changes, before and after.
fn lines(source: &str, mutant: &palisade_cel::mutate::Mutant) -> (String, String) {
    let start = source[..mutant.range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = source[mutant.range.end..].find('\n').map_or(source.len(), |at| mutant.range.end + at);
    let (head, tail) = (&source[start..mutant.range.start], &source[mutant.range.end..end]);
    (source[start..end].to_owned(), [head, &mutant.replacement, tail].concat())
}

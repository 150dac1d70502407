//! Decides whether formulas exclude each other, case by case: each case first only with the parts that speak of the same
//! fields. Fewer parts say less, so their contradiction is one of all.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::{
    formula::{Formula, Formulas, Node, Path, schema},
    scope::{Scopes, cases},
    search::{Outcome, Proved, Session, search},
};

/// The most parts of a premise that is compared with the parts that cases have in common.
const FEW_PARTS: usize = 12;

/// Decides questions, and keeps what it has proved.
#[derive(Debug, Default)]
pub(crate) struct Decider {
    scopes: Scopes,
    fields: BTreeMap<Formula, Rc<BTreeSet<usize>>>,
    paths: BTreeMap<Path, usize>,
    proved: BTreeMap<Vec<Formula>, Option<Proved>>,
}

impl Decider {
    /// Whether no request satisfies both formulas.
    pub fn decide(&mut self, formulas: &mut Formulas, always: Formula, one_of: Formula) -> Outcome {
        let [always, one_of] = [always, one_of].map(|of| {
            let of = formulas.normal(of, true);
            self.scopes.smaller(formulas, of)
        });
        let mut session = Session::new(formulas, &[always, one_of]);
        let split = |of: Formula| -> Vec<Vec<Formula>> {
            cases(formulas, of).into_iter().map(|case| parts(formulas, case)).collect()
        };
        let (premises, wanted) = (split(always), split(one_of));
        let mut counts: BTreeMap<Formula, usize> = BTreeMap::new();
        wanted.iter().flatten().for_each(|part| *counts.entry(*part).or_default() += 1);
        let mut proved = Proved::nothing();
        for premise in &premises {
            for case in &wanted {
                let (mut common, mut own): (Vec<_>, Vec<_>) = case.iter().partition(|part| counts[*part] > 1);
                if own.is_empty() {
                    std::mem::swap(&mut common, &mut own);
                }
                match self.case(formulas, &mut session, premise, &common, &own) {
                    Outcome::Nothing(also) => proved = proved.and(&also),
                    other => return other,
                }
            }
        }
        Outcome::Nothing(proved)
    }

    fn case(
        &mut self,
        formulas: &mut Formulas,
        session: &mut Session,
        premise: &[Formula],
        common: &[Formula],
        own: &[Formula],
    ) -> Outcome {
        // The cases may have in common that the premise does not hold.
        if premise.len() <= FEW_PARTS
            && let Some(proved) = self.related(formulas, session, premise, common)
        {
            return Outcome::Nothing(proved);
        }
        let all: Vec<Formula> = premise.iter().chain(common).copied().collect();
        if let Some(proved) = self.related(formulas, session, own, &all) {
            return Outcome::Nothing(proved);
        }
        let (all, own) = (formulas.and(all), formulas.and(own.iter().copied()));
        search(formulas, session, all, &[own])
    }

    /// A proof that these formulas exclude some of the others: those that speak of the same fields.
    fn related(
        &mut self,
        formulas: &mut Formulas,
        session: &mut Session,
        own: &[Formula],
        others: &[Formula],
    ) -> Option<Proved> {
        let fields: BTreeSet<usize> = own.iter().flat_map(|part| (*self.fields(formulas, *part)).clone()).collect();
        let mut chosen: Vec<Formula> = others
            .iter()
            .copied()
            .filter(|part| !self.fields(formulas, *part).is_disjoint(&fields))
            .collect();
        chosen.sort_unstable();
        let mut key = own.to_vec();
        key.sort_unstable();
        key.push(crate::formula::TRUE);
        key.extend(&chosen);
        if let Some(known) = self.proved.get(&key) {
            return known.clone();
        }
        let (always, case) = (formulas.and(chosen), formulas.and(own.iter().copied()));
        let found = match search(formulas, session, always, &[case]) {
            Outcome::Nothing(proved) => Some(proved),
            _ => None,
        };
        self.proved.insert(key, found.clone());
        found
    }

    /// The fields of which a formula speaks, by number.
    fn fields(&mut self, formulas: &Formulas, of: Formula) -> Rc<BTreeSet<usize>> {
        if let Some(known) = self.fields.get(&of) {
            return Rc::clone(known);
        }
        let mut all = BTreeSet::new();
        match formulas.node(of) {
            Node::Constant(_) => {}
            Node::Atom(atom) => atom.paths(&mut |path| {
                let next = self.paths.len();
                all.insert(*self.paths.entry(schema(path)).or_insert(next));
            }),
            Node::Not(of) | Node::Exists(_, _, of) | Node::Forall(_, _, of) => all.extend(self.fields(formulas, *of).iter()),
            Node::And(of) | Node::Or(of) => {
                for part in of.iter() {
                    all.extend(self.fields(formulas, *part).iter());
                }
            }
        }
        let all = Rc::new(all);
        self.fields.insert(of, Rc::clone(&all));
        all
    }
}

/// The formulas of which a formula in normal form is the conjunction.
fn parts(formulas: &Formulas, of: Formula) -> Vec<Formula> {
    match formulas.node(of) {
        Node::And(parts) => parts.to_vec(),
        _ => vec![of],
    }
}

//! Decides whether formulas exclude each other, case by case: each case first only with the parts that speak of the same
//! fields. Fewer parts say less, so their contradiction is one of all.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::{
    formula::{Formula, Formulas, Node, Path, TRUE, schema},
    scope::{Scopes, cases},
    search::{Outcome, Proved, Session, search, trial},
};

/// The most cases of a short search.
const MOST_CASES: usize = 2000;
/// A field of which so few parts speak is a rare one.
const FEW_MENTIONS: usize = 2;
/// The most parts of a premise that is compared with the parts that cases have in common.
const FEW_PARTS: usize = 12;

/// Decides questions, and keeps what it has proved.
#[derive(Debug, Default)]
pub(crate) struct Decider {
    /// Whether only short searches are made.
    pub brief: bool,
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
        // Without anything to compare with, the premise is what has cases.
        let (always, one_of) = if one_of == TRUE { (one_of, always) } else { (always, one_of) };
        let split = |of: Formula| -> Vec<Vec<Formula>> {
            cases(formulas, of).into_iter().map(|case| parts(formulas, case)).collect()
        };
        let (premises, wanted) = (split(always), split(one_of));
        let mut counts: BTreeMap<Formula, usize> = BTreeMap::new();
        wanted.iter().flatten().for_each(|part| *counts.entry(*part).or_default() += 1);
        if self.brief && premises.len() * wanted.len() > MOST_CASES {
            return Outcome::GaveUp("too many cases");
        }
        let mut proved = Proved::nothing();
        for premise in &premises {
            let mut mentions: BTreeMap<usize, usize> = BTreeMap::new();
            for part in premise {
                self.fields(formulas, *part).iter().for_each(|field| *mentions.entry(*field).or_default() += 1);
            }
            let mut open = Vec::new();
            for case in &wanted {
                let (mut common, mut own): (Vec<_>, Vec<_>) = case.iter().partition(|part| counts[*part] > 1);
                if own.is_empty() {
                    std::mem::swap(&mut common, &mut own);
                }
                match self.case(formulas, &mut session, (premise, &mentions), &common, &own) {
                    Some(also) => proved = proved.and(&also),
                    None => open.push(formulas.and(case.iter().copied())),
                }
            }
            if open.is_empty() {
                continue;
            }
            if self.brief {
                return Outcome::GaveUp("a short search finds no proof");
            }
            // All cases without a short proof together: they share the elements that they need.
            let premise = formulas.and(premise.iter().copied());
            match search(formulas, &mut session, premise, &open) {
                Outcome::Nothing(also) => proved = proved.and(&also),
                other => return other,
            }
        }
        Outcome::Nothing(proved)
    }

    fn case(
        &mut self,
        formulas: &mut Formulas,
        session: &mut Session,
        (premise, mentions): (&[Formula], &BTreeMap<usize, usize>),
        common: &[Formula],
        own: &[Formula],
    ) -> Option<Proved> {
        // The cases may have in common that the premise does not hold.
        if premise.len() <= FEW_PARTS {
            let fields = self.all_fields(formulas, premise);
            if let Some(proved) = self.related(formulas, session, premise, (common, &fields), &[]) {
                return Some(proved);
            }
        }
        let fields = self.all_fields(formulas, own);
        let count = |field: &usize| mentions.get(field).copied().filter(|count| *count > 0);
        let most = fields.iter().filter_map(count).min().unwrap_or_default().max(FEW_MENTIONS);
        let rare = fields.iter().copied().filter(|field| count(field).is_some_and(|count| count <= most)).collect();
        [rare, fields].iter().find_map(|fields| self.related(formulas, session, own, (premise, fields), common))
    }

    /// A proof that these formulas exclude some of the others: those that speak of one of these fields.
    fn related(
        &mut self,
        formulas: &mut Formulas,
        session: &mut Session,
        own: &[Formula],
        (others, fields): (&[Formula], &BTreeSet<usize>),
        common: &[Formula],
    ) -> Option<Proved> {
        let mut chosen = self.speaking(formulas, others, fields);
        // The conditions of these and of the case itself are among the parts that several cases have.
        let mut fields = self.all_fields(formulas, &chosen);
        fields.extend(self.all_fields(formulas, own));
        chosen.extend(self.speaking(formulas, common, &fields));
        chosen.sort_unstable();
        let mut key = own.to_vec();
        key.sort_unstable();
        key.push(TRUE);
        key.extend(&chosen);
        if let Some(known) = self.proved.get(&key) {
            return known.clone();
        }
        let (always, case) = (formulas.and(chosen), formulas.and(own.iter().copied()));
        let found = trial(formulas, session, always, case);
        self.proved.insert(key, found.clone());
        found
    }

    /// Those of some formulas that speak of one of these fields.
    fn speaking(&mut self, formulas: &Formulas, of: &[Formula], fields: &BTreeSet<usize>) -> Vec<Formula> {
        of.iter().copied().filter(|part| !self.fields(formulas, *part).is_disjoint(fields)).collect()
    }

    fn all_fields(&mut self, formulas: &Formulas, of: &[Formula]) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        of.iter().for_each(|part| all.extend(self.fields(formulas, *part).iter()));
        all
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
            Node::Not(of) | Node::Exists(_, _, of) | Node::Forall(_, _, of) => {
                all.extend(self.fields(formulas, *of).iter())
            }
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

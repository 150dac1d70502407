//! Searches a request that satisfies a formula, or a certificate that there is none.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface as _, SolverOpts, Var as Variable, lbool};

use crate::{
    clauses::Clauses,
    formula::{Atom, FALSE, Formula, Formulas, Path, Var},
    property::Property,
    rup::{self, Literal},
    text::Texts,
    theory::{self, Assignment, Values},
};

/// The most conflicts of atoms that are learnt, and the most steps of a search.
const MOST_ROUNDS: usize = 3000;
const MOST_STEPS: usize = 200_000;

/// Shows that no request satisfies a formula.
#[derive(Clone, Debug, Default)]
pub struct Certificate {
    /// The clauses of the formula.
    pub clauses: Vec<Vec<Literal>>,
    /// Clauses of which each says that some atoms exclude each other.
    pub conflicts: Vec<(Vec<Literal>, Assignment)>,
    /// The steps from these to a contradiction.
    pub proof: Vec<Vec<Literal>>,
}

/// That no request satisfies a formula. Only a certificate that was checked makes one, or a formula that is a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    cases: usize,
    clauses: usize,
}

impl Proved {
    /// How many cases were searched, none of which is a constant.
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// How many clauses their certificates have.
    pub fn clauses(&self) -> usize {
        self.clauses
    }

    /// That no request satisfies one of no formulas.
    const fn nothing() -> Self {
        Self { cases: 0, clauses: 0 }
    }

    /// That no request satisfies one of two formulas.
    fn and(&self, other: &Self) -> Self {
        Self { cases: self.cases + other.cases, clauses: self.clauses + other.clauses }
    }

    /// Of a formula that never holds.
    pub fn constant(of: Formula) -> Option<Self> {
        (of == FALSE).then_some(Self::nothing())
    }
}

impl Certificate {
    /// Checks it: each conflict once more, and the proof step by step.
    pub fn check(&self) -> Option<Proved> {
        let mut texts = Texts::new(&theory::properties(self.conflicts.iter().flat_map(|(_, atoms)| atoms.keys())));
        let sound = self.conflicts.iter().all(|(_, atoms)| theory::is_conflict(atoms, &mut texts));
        let conflicts = self.conflicts.iter().map(|(clause, _)| clause.clone());
        let clauses: Vec<_> = self.clauses.iter().cloned().chain(conflicts).collect();
        (sound && rup::check(&clauses, &self.proof)).then_some(Proved { cases: 1, clauses: clauses.len() })
    }
}

/// A solution of the clauses of a formula.
#[derive(Debug)]
pub struct Solution {
    /// The values of atoms.
    pub atoms: Assignment,
    /// Values of texts and numbers.
    pub values: Values,
    /// The named elements of each list.
    pub elements: BTreeMap<Path, Vec<Var>>,
    /// Whether everything was said of each element.
    pub complete: bool,
}

/// The result of a search.
#[derive(Debug)]
pub enum Outcome {
    /// There is none.
    Nothing(Proved),
    /// Perhaps this one: whether it is depends on what is not understood.
    Perhaps(Box<Solution>),
    /// The limit that stopped the search.
    GaveUp(&'static str),
}

/// The clauses that the solver learns.
#[derive(Default)]
struct Learnt {
    proof: RefCell<Vec<Vec<Literal>>>,
}

#[derive(Clone, Default)]
struct Recorder(Rc<Learnt>);

fn literal(of: Lit) -> Literal {
    let variable = of.var().idx().cast_signed() + 1;
    if of.sign() { variable } else { -variable }
}

impl Callbacks for Recorder {
    fn on_new_clause(&mut self, clause: &[Lit], kind: ClauseKind) {
        if kind == ClauseKind::Learnt {
            self.0.proof.borrow_mut().push(clause.iter().map(|one| literal(*one)).collect());
        }
    }

    fn stop(&self) -> bool {
        self.0.proof.borrow().len() > MOST_STEPS
    }
}

/// Searches a request that satisfies a formula and one of several cases, all in normal form, without free variables.
pub fn search(formulas: &mut Formulas, always: Formula, cases: &[Formula]) -> Outcome {
    if let Some(proved) = Proved::constant(always) {
        return Outcome::Nothing(proved);
    }
    let cases: Vec<_> = cases.iter().copied().filter(|case| formulas.and([always, *case]) != FALSE).collect();
    // With few names, some cases only seem to be possible.
    let mut seeming = Vec::new();
    let easy = one_search(formulas, always, &cases, true, &mut seeming);
    let Outcome::Nothing(proved) = easy else { return easy };
    if seeming.is_empty() {
        return Outcome::Nothing(proved);
    }
    let cases: Vec<_> = seeming.into_iter().filter_map(|case| cases.get(case).copied()).collect();
    match one_search(formulas, always, &cases, false, &mut Vec::new()) {
        Outcome::Nothing(also) => Outcome::Nothing(proved.and(&also)),
        other => other,
    }
}

/// With `few` names, it leaves cases out that seem to be possible, and adds their indices to `seeming`.
fn one_search(
    formulas: &mut Formulas,
    always: Formula,
    cases: &[Formula],
    few: bool,
    seeming: &mut Vec<usize>,
) -> Outcome {
    if cases.is_empty() {
        return Outcome::Nothing(Proved::nothing());
    }
    let clauses = Clauses::new(formulas, always, cases, few);
    let learnt = Recorder::default();
    let mut solver = Solver::new(SolverOpts::default(), learnt.clone());
    for _ in 0..clauses.variables() {
        solver.new_var_default();
    }
    let lit = |literal: Literal| Lit::new(Variable::unsafe_from_idx(literal.unsigned_abs() - 1), literal > 0);
    for clause in &clauses.clauses {
        solver.add_clause_reuse(&mut clause.iter().map(|one| lit(*one)).collect());
    }
    let mut texts = Texts::new(&theory::properties(clauses.atoms.keys()));
    let places = places(clauses.atoms.keys());
    let mut certificate = Certificate { clauses: clauses.clauses.clone(), ..Certificate::default() };
    let mut known = BTreeSet::new();
    for _ in 0..MOST_ROUNDS {
        let result = solver.solve_limited(&[]);
        if result == lbool::FALSE {
            certificate.proof.clone_from(&learnt.0.proof.borrow());
            return match certificate.check() {
                Some(proved) => Outcome::Nothing(Proved { cases: cases.len() - seeming.len(), ..proved }),
                None => Outcome::GaveUp("the certificate was not accepted"),
            };
        }
        if result != lbool::TRUE {
            return Outcome::GaveUp("the search takes too many steps");
        }
        let model = solver.get_model();
        let value = |literal: Literal| {
            let value = model.get(literal.unsigned_abs() as usize - 1) == Some(&lbool::TRUE);
            value == (literal > 0)
        };
        let atoms: Assignment = clauses.atoms.iter().map(|(atom, literal)| (atom.clone(), value(*literal))).collect();
        let conflicts = match theory::judge(&atoms, &mut texts) {
            Ok(values) => {
                let complete = clauses.is_complete();
                let possible = clauses.cases.iter().position(|case| value(*case));
                if let Some(case) = possible.filter(|_| few && !complete) {
                    let Some(left_out) = clauses.cases.get(case).map(|case| -case) else { continue };
                    seeming.push(case);
                    solver.add_clause_reuse(&mut vec![lit(left_out)]);
                    certificate.clauses.push(vec![left_out]);
                    continue;
                }
                let elements = clauses.elements.clone();
                return Outcome::Perhaps(Box::new(Solution { atoms, values, elements, complete }));
            }
            Err(conflicts) => conflicts,
        };
        let mut new = false;
        for conflict in conflicts.into_iter().flat_map(|conflict| elsewhere(conflict, &places)) {
            let of = |(atom, value): (&Atom, &bool)| {
                let literal = clauses.atoms.get(atom).copied()?;
                Some(if *value { -literal } else { literal })
            };
            let Some(clause) = conflict.iter().map(of).collect::<Option<Vec<_>>>() else { continue };
            if known.insert(clause.clone()) {
                new = true;
                solver.add_clause_reuse(&mut clause.iter().map(|one| lit(*one)).collect());
                certificate.conflicts.push((clause, conflict));
            }
        }
        if !new {
            return Outcome::GaveUp("a conflict without atoms");
        }
    }
    Outcome::GaveUp("too many conflicts of texts and numbers")
}

/// The atoms that say of texts that they have a property, by path.
type Places = BTreeMap<Property, BTreeMap<Path, Atom>>;

fn places<'a>(atoms: impl Iterator<Item = &'a Atom>) -> Places {
    let mut places = Places::new();
    for atom in atoms {
        if let Atom::Text(test, term) = atom
            && let Some((path, property)) = Property::new(test, term)
        {
            places.entry(property).or_default().insert(path, atom.clone());
        }
    }
    places
}

/// A conflict of the properties of one text, of each text of which they are asked; any other as it is.
fn elsewhere(conflict: Assignment, places: &Places) -> Vec<Assignment> {
    let property = |(atom, value): (&Atom, &bool)| match atom {
        Atom::Text(test, term) => Property::new(test, term).map(|(path, property)| (path, property, *value)),
        _ => None,
    };
    let Some(properties) = conflict.iter().map(property).collect::<Option<Vec<_>>>() else { return vec![conflict] };
    let Some((path, first, _)) = properties.first() else { return vec![conflict] };
    if properties.iter().any(|(other, _, _)| other != path) {
        return vec![conflict];
    }
    let at = |path: &Path| -> Option<Assignment> {
        let atom =
            |(_, property, value): &(Path, Property, bool)| Some((places.get(property)?.get(path)?.clone(), *value));
        properties.iter().map(atom).collect()
    };
    places.get(first).into_iter().flatten().filter_map(|(path, _)| at(path)).collect()
}

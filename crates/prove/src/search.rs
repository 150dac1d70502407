//! Searches a request that satisfies a formula, or a certificate that there is none.

use std::{
    cell::RefCell,
    collections::{BTreeMap, btree_map::Entry},
    rc::Rc,
};

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface as _, SolverOpts, Var as Variable, lbool};

use crate::{
    clauses::Clauses,
    formula::{Assignment, Atom, FALSE, Formula, Formulas, Path, Var},
    property::Property,
    rup::{self, Literal},
    text::Texts,
    theory::{self, Values},
};

/// The most solutions that are tried, clauses of a formula, and steps of a search.
const MOST_ROUNDS: usize = 20_000;
const MOST_CLAUSES: usize = 400_000;
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
    clauses: usize,
}

impl Proved {
    /// How many clauses the certificate has.
    pub fn clauses(&self) -> usize {
        self.clauses
    }

    /// Of a formula that never holds.
    pub fn constant(of: Formula) -> Option<Self> {
        (of == FALSE).then_some(Self { clauses: 0 })
    }
}

impl Certificate {
    /// Checks it: each conflict once more, and the proof step by step.
    pub fn check(&self) -> Option<Proved> {
        let mut texts = Texts::new(&theory::properties(self.conflicts.iter().flat_map(|(_, atoms)| atoms.keys())));
        let sound = self.conflicts.iter().all(|(_, atoms)| theory::is_conflict(atoms, &mut texts));
        let conflicts = self.conflicts.iter().map(|(clause, _)| clause.clone());
        let clauses: Vec<_> = self.clauses.iter().cloned().chain(conflicts).collect();
        (sound && rup::check(&clauses, &self.proof)).then_some(Proved { clauses: clauses.len() })
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

/// Searches a request that satisfies a formula in normal form without free variables.
pub fn search(formulas: &mut Formulas, of: Formula) -> Outcome {
    if let Some(proved) = Proved::constant(of) {
        return Outcome::Nothing(proved);
    }
    let mut texts = Texts::new(&theory::properties(&formulas.atoms(of)));
    let mut clauses = Clauses::new(formulas, of);
    let learnt = Recorder::default();
    let mut solver = Solver::new(SolverOpts::default(), learnt.clone());
    let lit = |literal: &Literal| Lit::new(Variable::unsafe_from_idx(literal.unsigned_abs() - 1), *literal > 0);
    let mut places = Places::new();
    let (mut variables, mut given) = (0, 0);
    let mut conflicts: BTreeMap<Vec<Literal>, Assignment> = BTreeMap::new();
    let mut cases = clauses.cases.clone();
    cases.reverse();
    for _ in 0..MOST_ROUNDS {
        for variable in variables + 1..=clauses.variables() {
            let is_choice = clauses.is_choice(variable);
            solver.new_var(if is_choice { lbool::TRUE } else { lbool::UNDEF }, is_choice);
            if let Some(atom) = clauses.atom_of(variable) {
                place(&mut places, atom);
            }
        }
        variables = clauses.variables();
        for clause in &clauses.clauses[given..] {
            solver.add_clause_reuse(&mut clause.iter().map(lit).collect());
        }
        given = clauses.clauses.len();
        if given > MOST_CLAUSES {
            return Outcome::GaveUp("the formula has too many clauses");
        }
        // One case after the other, so that the search is about few formulas at a time.
        let case = cases.last().copied();
        let result = solver.solve_limited(&case.iter().map(lit).collect::<Vec<_>>());
        if result == lbool::FALSE
            && let Some(case) = cases.pop()
        {
            learnt.0.proof.borrow_mut().push(vec![-case]);
            solver.add_clause_reuse(&mut vec![lit(&-case)]);
            continue;
        }
        if result == lbool::FALSE {
            let proof = learnt.0.proof.borrow().clone();
            let conflicts = conflicts.into_iter().collect();
            return match (Certificate { clauses: clauses.clauses, conflicts, proof }).check() {
                Some(proved) => Outcome::Nothing(proved),
                None => Outcome::GaveUp("the certificate was not accepted"),
            };
        }
        if result != lbool::TRUE {
            return Outcome::GaveUp("the search takes too many steps");
        }
        let model = solver.get_model();
        let value = |literal: Literal| {
            let value = *model.get(literal.unsigned_abs() as usize - 1)?;
            (value != lbool::UNDEF).then_some((value == lbool::TRUE) == (literal > 0))
        };
        let Some(atoms) = clauses.reasons(value) else { continue };
        let found = match theory::judge(&atoms, &mut texts) {
            Ok(values) => {
                let elements = clauses.elements;
                return Outcome::Perhaps(Box::new(Solution { atoms, values, elements }));
            }
            Err(found) => found,
        };
        let mut new = false;
        for conflict in found.into_iter().flat_map(|conflict| elsewhere(conflict, &places)) {
            let of = |(atom, value): (&Atom, &bool)| {
                let literal = clauses.atoms.get(atom).copied()?;
                Some(if *value { -literal } else { literal })
            };
            let Some(clause) = conflict.iter().map(of).collect::<Option<Vec<_>>>() else { continue };
            if let Entry::Vacant(entry) = conflicts.entry(clause) {
                new = true;
                solver.add_clause_reuse(&mut entry.key().iter().map(lit).collect());
                entry.insert(conflict);
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

fn place(places: &mut Places, atom: &Atom) {
    if let Atom::Text(test, term) = atom
        && let Some((path, property)) = Property::new(test, term)
    {
        places.entry(property).or_default().insert(path, atom.clone());
    }
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

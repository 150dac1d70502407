//! A formula as clauses. An element that exists gets a name, and a statement about each element becomes one about each name.
//!
//! These clauses follow from the formula, up to the names: so if they contradict each other, no request satisfies it. That
//! does not depend on how many elements are named. If all of them are named ([`Clauses::is_complete`]), a solution of the
//! clauses is a request.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use crate::{
    formula::{Atom, Formula, Formulas, Node, Path, Step, TRUE, Var, child},
    rup::Literal,
};

/// The most names of elements, and the most clauses.
const MOST_NAMES: usize = 600;
const MOST_CLAUSES: usize = 400_000;

/// Names of elements of which one case at a time uses some.
#[derive(Debug, Default)]
struct Pool {
    names: BTreeMap<Path, Vec<Var>>,
    /// How many cases have a part.
    shared: BTreeMap<Formula, usize>,
}

/// The clauses of a formula.
#[derive(Debug)]
pub struct Clauses<'a> {
    formulas: &'a mut Formulas,
    /// The clauses.
    pub clauses: Vec<Vec<Literal>>,
    /// The variables of atoms.
    pub atoms: BTreeMap<Atom, Literal>,
    /// The named elements of each list.
    pub elements: BTreeMap<Path, Vec<Var>>,
    literals: BTreeMap<Formula, Literal>,
    /// Statements about each element of a list: if the literal holds, the formula of this variable does.
    universal: BTreeMap<Path, Vec<(Literal, Var, Formula)>>,
    open: VecDeque<(Path, Var, Literal, Var, Formula)>,
    witnesses: BTreeMap<Path, Var>,
    next: Literal,
    names: usize,
    /// The literals of the cases.
    pub cases: Vec<Literal>,
    needs: BTreeMap<Formula, bool>,
    few: bool,
    complete: bool,
}

impl<'a> Clauses<'a> {
    /// Those of a formula and of one of several cases, all in normal form, which are satisfiable if these are. If `few`,
    /// only elements of the cases themselves get names, which is nearly always enough for a contradiction.
    pub fn new(formulas: &'a mut Formulas, always: Formula, cases: &[Formula], few: bool) -> Self {
        let mut all = Self {
            formulas,
            clauses: Vec::new(),
            atoms: BTreeMap::new(),
            elements: BTreeMap::new(),
            literals: BTreeMap::new(),
            universal: BTreeMap::new(),
            open: VecDeque::new(),
            witnesses: BTreeMap::new(),
            next: 0,
            names: 0,
            cases: Vec::new(),
            needs: BTreeMap::new(),
            few,
            complete: true,
        };
        let always = all.literal(always);
        let one = all.one_case(cases, true);
        all.clauses.extend([vec![always], vec![one]]);
        while let Some((list, element, holds, var, body)) = all.open.pop_front() {
            if all.clauses.len() > MOST_CLAUSES {
                all.complete = false;
                break;
            }
            let exists = all.exists(&list, element);
            let body = all.formulas.rename(body, &BTreeMap::from([(var, element)]));
            if body != TRUE {
                let body = all.literal(body);
                all.clauses.push(vec![-holds, -exists, body]);
            }
        }
        all
    }

    /// Whether each name has all statements about the elements.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The number of variables.
    pub fn variables(&self) -> Literal {
        self.next
    }

    fn fresh(&mut self) -> Literal {
        self.next += 1;
        self.next
    }

    /// The variable of an atom.
    pub fn atom(&mut self, atom: Atom) -> Literal {
        if let Some(found) = self.atoms.get(&atom) {
            return *found;
        }
        let literal = self.fresh();
        self.atoms.insert(atom, literal);
        literal
    }

    fn exists(&mut self, list: &Path, element: Var) -> Literal {
        self.atom(Atom::Present(child(list, Step::Element(element))))
    }

    /// A new name of an element of a list.
    fn element(&mut self, list: &Path) -> Option<Var> {
        if self.names >= MOST_NAMES {
            self.complete = false;
            return None;
        }
        self.names += 1;
        let element = self.formulas.fresh();
        self.elements.entry(Rc::clone(list)).or_default().push(element);
        for (literal, var, body) in self.universal.get(list).into_iter().flatten() {
            self.open.push_back((Rc::clone(list), element, *literal, *var, *body));
        }
        // A list with an element is not empty.
        let exists = self.exists(list, element);
        let long = self.atom(Atom::Long([Rc::clone(list)].into(), 1));
        self.clauses.push(vec![-exists, long]);
        Some(element)
    }

    /// A literal that implies a formula, which is in normal form and has no free variables but names of elements.
    fn literal(&mut self, of: Formula) -> Literal {
        if let Some(found) = self.literals.get(&of) {
            return *found;
        }
        let literal = match self.formulas.node(of).clone() {
            Node::Constant(value) => {
                let literal = self.fresh();
                self.clauses.push(vec![if value { literal } else { -literal }]);
                literal
            }
            Node::Atom(atom) => self.asserted(atom),
            Node::Not(of) => match self.formulas.node(of).clone() {
                Node::Atom(atom) => -self.atom(atom),
                // The form is normal, so there is no such; a free variable says nothing, which is safe.
                _ => self.fresh(),
            },
            Node::And(parts) => {
                let literal = self.fresh();
                for part in parts.iter() {
                    let part = self.literal(*part);
                    self.clauses.push(vec![-literal, part]);
                }
                literal
            }
            Node::Or(parts) => self.one_case(&parts, false),
            Node::Exists(list, var, body) => {
                let element = if self.few { None } else { self.element(&list) };
                self.complete &= element.is_some();
                self.named(&list, var, body, element)
            }
            Node::Forall(list, var, body) => {
                let literal = self.fresh();
                self.universal.entry(Rc::clone(&list)).or_default().push((literal, var, body));
                for element in self.elements.get(&list).into_iter().flatten() {
                    self.open.push_back((Rc::clone(&list), *element, literal, var, body));
                }
                literal
            }
        };
        self.literals.insert(of, literal);
        self.opposed(of, literal);
        literal
    }

    /// A formula and its opposite do not both hold, whatever is known of their elements.
    fn opposed(&mut self, of: Formula, literal: Literal) {
        let opposite = self.formulas.normal(of, false);
        if let Some(other) = self.literals.get(&opposite) {
            self.clauses.push(vec![-literal, -*other]);
        }
    }

    /// Of several formulas one holds. Only one must, so that all use the same names for the elements that they need. A part
    /// that several of them have keeps names of its own.
    fn one_case(&mut self, cases: &[Formula], outermost: bool) -> Literal {
        let literal = self.fresh();
        let mut pool = Pool::default();
        for case in cases {
            if let Node::And(parts) = self.formulas.node(*case) {
                parts.iter().for_each(|part| *pool.shared.entry(*part).or_default() += 1);
            }
        }
        let mut clause = vec![-literal];
        for case in cases {
            let case = if self.few && !outermost {
                self.literal(*case)
            } else {
                self.pooled(*case, &mut pool, &mut BTreeMap::new())
            };
            if outermost {
                // A literal of its own, so that a case can be left out without saying anything else.
                let own = self.fresh();
                self.clauses.push(vec![-own, case]);
                self.cases.push(own);
                clause.push(own);
            } else {
                clause.push(case);
            }
        }
        self.clauses.push(clause);
        literal
    }

    /// Whether it says that an element exists.
    fn needs_names(&mut self, of: Formula) -> bool {
        if let Some(found) = self.needs.get(&of) {
            return *found;
        }
        let found = match self.formulas.node(of).clone() {
            Node::Exists(..) => true,
            Node::And(parts) | Node::Or(parts) => parts.iter().any(|part| self.needs_names(*part)),
            _ => false,
        };
        self.needs.insert(of, found);
        found
    }

    /// As [`Self::literal`], with names of a pool, of which so many are used on the way here.
    fn pooled(&mut self, of: Formula, pool: &mut Pool, used: &mut BTreeMap<Path, usize>) -> Literal {
        if pool.shared.get(&of).is_some_and(|count| *count > 1) {
            return self.literal(of);
        }
        if self.literals.contains_key(&of) || !self.needs_names(of) {
            return self.literal(of);
        }
        match self.formulas.node(of).clone() {
            Node::And(parts) => {
                let literal = self.fresh();
                self.opposed(of, literal);
                for part in parts.iter() {
                    let part = self.pooled(*part, pool, used);
                    self.clauses.push(vec![-literal, part]);
                }
                literal
            }
            Node::Or(parts) => {
                let literal = self.fresh();
                self.opposed(of, literal);
                let mut clause = vec![-literal];
                let mut most = used.clone();
                for part in parts.iter() {
                    let mut own = used.clone();
                    clause.push(self.pooled(*part, pool, &mut own));
                    for (list, count) in own {
                        let most = most.entry(list).or_default();
                        *most = count.max(*most);
                    }
                }
                *used = most;
                self.clauses.push(clause);
                literal
            }
            Node::Exists(list, var, body) => {
                let literal = self.fresh();
                self.opposed(of, literal);
                let index = used.entry(Rc::clone(&list)).or_default();
                let number = *index;
                *index += 1;
                let known = pool.names.get(&list).and_then(|names| names.get(number)).copied();
                let Some(element) = known.or_else(|| self.element(&list)) else { return literal };
                if known.is_none() {
                    pool.names.entry(Rc::clone(&list)).or_default().push(element);
                }
                let exists = self.exists(&list, element);
                let body = self.formulas.rename(body, &BTreeMap::from([(var, element)]));
                let body = self.pooled(body, pool, used);
                self.clauses.extend([vec![-literal, exists], vec![-literal, body]]);
                literal
            }
            _ => self.literal(of),
        }
    }

    /// A literal that implies a formula of a named element. Without a name it says nothing.
    fn named(&mut self, list: &Path, var: Var, body: Formula, element: Option<Var>) -> Literal {
        let literal = self.fresh();
        let Some(element) = element else { return literal };
        let exists = self.exists(list, element);
        self.clauses.push(vec![-literal, exists]);
        let body = self.formulas.rename(body, &BTreeMap::from([(var, element)]));
        let body = self.literal(body);
        self.clauses.push(vec![-literal, body]);
        literal
    }

    /// The variable of an atom that is asserted. A list that must be long has an element.
    fn asserted(&mut self, atom: Atom) -> Literal {
        let list = match &atom {
            Atom::Long(lists, least) if *least > 0 => match &**lists {
                [list] => Some(Rc::clone(list)),
                _ => None,
            },
            _ => None,
        };
        let literal = self.atom(atom);
        if self.few && list.is_some() {
            self.complete = false;
        } else if let Some(list) = list {
            let element = match self.witnesses.get(&list) {
                Some(element) => Some(*element),
                None => self.element(&list),
            };
            if let Some(element) = element {
                self.witnesses.insert(Rc::clone(&list), element);
                let exists = self.exists(&list, element);
                self.clauses.push(vec![-literal, exists]);
            }
        }
        literal
    }
}

//! A formula as clauses, as far as a search needs them.
//!
//! An element gets a name when a solution says that it exists, and a statement about each element becomes one about each
//! named element that exists in a solution. All clauses follow from the formula, up to the names: so if they contradict each
//! other, no request satisfies it. That does not depend on how many elements are named. A solution that asks for no more
//! clauses is a request.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::{
    formula::{Assignment, Atom, Formula, Formulas, Node, Path, Step, Var, child},
    rup::Literal,
};

/// The case of which a formula is a part, if it is a part of nothing else. Only one case must hold, so all cases use the same
/// names for the elements that they need, but a case uses no name twice.
type Case = Option<(u32, u32)>;

/// The statement of a variable that is true.
#[derive(Clone, Debug)]
enum Meaning {
    Atom(Atom),
    All(Rc<[Literal]>),
    One(Rc<[Literal]>),
    /// With the element that exists, once it has a name, and its formula.
    Exists(Case, Path, Var, Formula, Option<[Literal; 2]>),
    /// With the formula of each named element that matters.
    Forall(Case, Path, Var, Formula, BTreeMap<Var, Literal>),
    /// The second literal makes the first one true.
    Choice,
}

/// The clauses of a formula.
#[derive(Debug)]
pub struct Clauses<'a> {
    formulas: &'a mut Formulas,
    /// The clauses.
    pub clauses: Vec<Vec<Literal>>,
    /// The cases of the alternative with the most. One of them is true.
    pub cases: Vec<Literal>,
    /// The variables of atoms.
    pub atoms: BTreeMap<Atom, Literal>,
    /// The named elements of each list.
    pub elements: BTreeMap<Path, Vec<Var>>,
    /// By variable; the first one is 1.
    meanings: Vec<Meaning>,
    literals: BTreeMap<(Formula, Case), Literal>,
    /// Whether a formula says that an element exists.
    needs: BTreeMap<Formula, bool>,
    /// The names of all cases of an alternative, and how many of them a case uses.
    pools: BTreeMap<(u32, Path), Vec<(Var, Literal)>>,
    used: BTreeMap<((u32, u32), Path), usize>,
    /// An element of each list that is not empty.
    some: BTreeMap<Path, Literal>,
    /// The alternatives that the search decides about.
    choices: BTreeSet<(Literal, Literal)>,
    root: Literal,
}

/// The statements that make a solution satisfy the formula.
#[derive(Debug, Default)]
struct Reasons {
    open: Vec<Literal>,
    seen: BTreeSet<Literal>,
    /// The elements of each list that exist, and the statements about each.
    elements: BTreeMap<Path, Vec<Var>>,
    universal: BTreeMap<Path, Vec<Literal>>,
}

impl<'a> Clauses<'a> {
    /// Those of a formula in normal form without free variables.
    pub fn new(formulas: &'a mut Formulas, of: Formula) -> Self {
        let mut all = Self {
            formulas,
            clauses: Vec::new(),
            cases: Vec::new(),
            atoms: BTreeMap::new(),
            elements: BTreeMap::new(),
            meanings: Vec::new(),
            literals: BTreeMap::new(),
            needs: BTreeMap::new(),
            pools: BTreeMap::new(),
            used: BTreeMap::new(),
            some: BTreeMap::new(),
            choices: BTreeSet::new(),
            root: 0,
        };
        let parts = match all.formulas.node(of) {
            Node::And(parts) => Rc::clone(parts),
            _ => [of].into(),
        };
        let parts: Vec<_> = (0..).zip(parts.iter()).map(|(number, part)| all.alternative(number, *part)).collect();
        all.root = all.fresh(Meaning::All(parts.iter().copied().collect()));
        all.clauses.extend(parts.into_iter().map(|part| vec![part]));
        all.clauses.push(vec![all.root]);
        all
    }

    /// The number of variables.
    pub fn variables(&self) -> usize {
        self.meanings.len()
    }

    /// Whether the search decides about a variable. The values of all others follow, as far as they matter.
    pub fn is_choice(&self, variable: usize) -> bool {
        matches!(self.meanings.get(variable.wrapping_sub(1)), Some(Meaning::Choice))
    }

    /// The atom of a variable.
    pub fn atom_of(&self, variable: usize) -> Option<&Atom> {
        match self.meanings.get(variable.checked_sub(1)?)? {
            Meaning::Atom(atom) => Some(atom),
            _ => None,
        }
    }

    fn fresh(&mut self, meaning: Meaning) -> Literal {
        self.meanings.push(meaning);
        // There are at most as many as fit: the search gives up long before.
        Literal::try_from(self.meanings.len()).unwrap_or(Literal::MAX)
    }

    fn atom(&mut self, atom: Atom) -> Literal {
        if let Some(found) = self.atoms.get(&atom) {
            return *found;
        }
        let literal = self.fresh(Meaning::Atom(atom.clone()));
        // A list with an element is not empty, nor is a map with a key.
        let whole = match &atom {
            Atom::Present(path) => match path.split_last() {
                Some((Step::Element(_), [map @ .., Step::EntryKey])) => vec![map, &path[..path.len() - 1]],
                Some((Step::Element(_) | Step::Key(_), whole)) => vec![whole],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let whole: Vec<Path> = whole.into_iter().map(Into::into).collect();
        self.atoms.insert(atom, literal);
        for whole in whole {
            let long = self.atom(Atom::Long([whole].into(), 1));
            self.clauses.push(vec![-literal, long]);
        }
        literal
    }

    /// A literal that implies a formula, of which each alternative is a case.
    fn alternative(&mut self, number: u32, of: Formula) -> Literal {
        let Node::Or(cases) = self.formulas.node(of).clone() else { return self.literal(of, None) };
        let cases = (0..).zip(cases.iter()).map(|(case, of)| self.literal(*of, Some((number, case))));
        let cases: Rc<[Literal]> = cases.collect();
        if cases.len() > self.cases.len() {
            self.cases = cases.to_vec();
        }
        let literal = self.fresh(Meaning::One(Rc::clone(&cases)));
        self.clauses.push([-literal].into_iter().chain(cases.iter().copied()).collect());
        literal
    }

    /// Whether a formula says that an element exists.
    fn needs_names(&mut self, of: Formula) -> bool {
        if let Some(found) = self.needs.get(&of) {
            return *found;
        }
        let found = match self.formulas.node(of).clone() {
            Node::Constant(_) | Node::Atom(_) | Node::Not(_) => false,
            Node::And(parts) | Node::Or(parts) => parts.iter().any(|part| self.needs_names(*part)),
            Node::Exists(..) => true,
            Node::Forall(_, _, body) => self.needs_names(body),
        };
        self.needs.insert(of, found);
        found
    }

    /// A literal that implies a formula, which is a part of a case.
    fn literal(&mut self, of: Formula, case: Case) -> Literal {
        let case = case.filter(|_| self.needs_names(of));
        if let Some(found) = self.literals.get(&(of, case)) {
            return *found;
        }
        let literal = match self.formulas.node(of).clone() {
            Node::Constant(value) => {
                let literal = self.fresh(Meaning::All([].into()));
                self.clauses.push(vec![if value { literal } else { -literal }]);
                literal
            }
            Node::Atom(atom) => self.atom(atom),
            Node::Not(of) => match self.formulas.node(of).clone() {
                Node::Atom(atom) => -self.atom(atom),
                // The form is normal, so there is no such; a variable of its own says nothing, which is safe.
                _ => self.fresh(Meaning::All([].into())),
            },
            Node::And(parts) => {
                let parts: Rc<[Literal]> = parts.iter().map(|part| self.literal(*part, case)).collect();
                let literal = self.fresh(Meaning::All(Rc::clone(&parts)));
                self.clauses.extend(parts.iter().map(|part| vec![-literal, *part]));
                literal
            }
            Node::Or(parts) => {
                let parts: Rc<[Literal]> = parts.iter().map(|part| self.literal(*part, case)).collect();
                let literal = self.fresh(Meaning::One(Rc::clone(&parts)));
                self.clauses.push([-literal].into_iter().chain(parts.iter().copied()).collect());
                literal
            }
            Node::Exists(list, var, body) => {
                let literal = self.fresh(Meaning::Exists(case, list, var, body, None));
                self.oppose(of, literal);
                literal
            }
            Node::Forall(list, var, body) => {
                let literal = self.fresh(Meaning::Forall(case, list, var, body, BTreeMap::new()));
                self.oppose(of, literal);
                literal
            }
        };
        self.literals.insert((of, case), literal);
        literal
    }

    /// A formula and its opposite do not both hold, whatever is known of their elements.
    fn oppose(&mut self, of: Formula, literal: Literal) {
        let opposite = self.formulas.normal(of, false);
        if let Some(other) = self.literals.get(&(opposite, None)) {
            self.clauses.push(vec![-literal, -*other]);
        }
    }

    /// A new name of an element of a list: that it exists.
    fn element(&mut self, list: &Path) -> (Var, Literal) {
        let element = self.formulas.fresh();
        self.elements.entry(Rc::clone(list)).or_default().push(element);
        let exists = self.atom(Atom::Present(child(list, Step::Element(element))));
        (element, exists)
    }

    /// A name of an element of a list that a part of a case needs.
    fn element_for(&mut self, case: Case, list: &Path) -> (Var, Literal) {
        let Some(case) = case else { return self.element(list) };
        let used = self.used.entry((case, Rc::clone(list))).or_default();
        let number = *used;
        *used += 1;
        let pool = (case.0, Rc::clone(list));
        if let Some(found) = self.pools.get(&pool).and_then(|names| names.get(number)) {
            return *found;
        }
        let made = self.element(list);
        self.pools.entry(pool).or_default().push(made);
        made
    }

    fn about(&mut self, case: Case, body: Formula, var: Var, element: Var) -> Literal {
        let body = self.formulas.rename(body, &BTreeMap::from([(var, element)]));
        self.literal(body, case)
    }

    /// The atoms that make a solution satisfy the formula. `None` if it asks for clauses that did not exist, which this adds.
    pub fn reasons(&mut self, value: impl Fn(Literal) -> Option<bool>) -> Option<Assignment> {
        let before = self.clauses.len();
        let mut reasons = Reasons { open: vec![self.root], ..Reasons::default() };
        while let Some(literal) = reasons.open.pop() {
            // A clause that was just added demands what is not true.
            if value(literal) == Some(true) && reasons.seen.insert(literal) {
                self.reason(literal, &value, &mut reasons);
            }
        }
        let atom = |literal: &Literal| {
            let atom = self.atom_of(literal.unsigned_abs() as usize)?;
            Some((atom.clone(), *literal > 0))
        };
        (self.clauses.len() == before).then(|| reasons.seen.iter().filter_map(atom).collect())
    }

    /// The literals that follow from a literal that is true.
    fn reason(&mut self, literal: Literal, value: &impl Fn(Literal) -> Option<bool>, reasons: &mut Reasons) {
        let index = literal.unsigned_abs() as usize - 1;
        match self.meanings[index].clone() {
            Meaning::Atom(Atom::Long(lists, least)) if literal > 0 && least > 0 => {
                if let [list] = &*lists {
                    let exists = self.some_element(list);
                    if value(exists) != Some(true) {
                        self.clauses.push(vec![-literal, exists]);
                    }
                    reasons.open.push(exists);
                }
            }
            Meaning::Atom(Atom::Present(path)) if literal > 0 => {
                let Some((Step::Element(element), list)) = path.split_last() else { return };
                let list: Path = list.into();
                for each in reasons.universal.get(&list).into_iter().flatten().copied() {
                    reasons.open.push(self.instance(each, *element, literal));
                }
                reasons.elements.entry(list).or_default().push(*element);
            }
            Meaning::Atom(_) | Meaning::Choice => {}
            Meaning::All(parts) => reasons.open.extend(parts.iter()),
            Meaning::One(parts) => {
                let known = parts.iter().find(|part| reasons.seen.contains(part));
                match known.or_else(|| parts.iter().find(|part| value(**part) == Some(true))) {
                    Some(part) => reasons.open.push(*part),
                    None => self.choose(literal, parts.iter().copied().filter(|part| value(*part).is_none())),
                }
            }
            Meaning::Exists(case, list, var, body, named) => {
                let [exists, about] = named.unwrap_or_else(|| {
                    let (element, exists) = self.element_for(case, &list);
                    let about = self.about(case, body, var, element);
                    self.clauses.extend([vec![-literal, exists], vec![-literal, about]]);
                    self.meanings[index] = Meaning::Exists(case, list, var, body, Some([exists, about]));
                    [exists, about]
                });
                reasons.open.extend([about, exists]);
            }
            Meaning::Forall(_, list, ..) => {
                for element in reasons.elements.get(&list).into_iter().flatten().copied() {
                    let exists = self.atom(Atom::Present(child(&list, Step::Element(element))));
                    reasons.open.push(self.instance(literal, element, exists));
                }
                reasons.universal.entry(list).or_default().push(literal);
            }
        }
    }

    /// The search decides about one alternative more.
    fn choose(&mut self, one: Literal, open: impl Iterator<Item = Literal>) {
        let Some(part) = open.into_iter().find(|part| !self.choices.contains(&(one, *part))) else { return };
        self.choices.insert((one, part));
        let choice = self.fresh(Meaning::Choice);
        self.clauses.extend([vec![-one, -choice, part], vec![-one, choice, -part]]);
    }

    /// That a list has some element.
    fn some_element(&mut self, list: &Path) -> Literal {
        if let Some(found) = self.some.get(list) {
            return *found;
        }
        let (_, exists) = self.element(list);
        self.some.insert(Rc::clone(list), exists);
        exists
    }

    /// A statement about each element, of one that exists.
    fn instance(&mut self, each: Literal, element: Var, exists: Literal) -> Literal {
        let index = each.unsigned_abs() as usize - 1;
        let Meaning::Forall(case, _, var, body, known) = &self.meanings[index] else { return each };
        if let Some(found) = known.get(&element) {
            return *found;
        }
        let (case, var, body) = (*case, *var, *body);
        let about = self.about(case, body, var, element);
        self.clauses.push(vec![-each, -exists, about]);
        if let Meaning::Forall(_, _, _, _, known) = &mut self.meanings[index] {
            known.insert(element, about);
        }
        about
    }
}

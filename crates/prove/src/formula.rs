//! Formulas about one request: hash-consed, two-valued, with quantifiers over the elements of its lists and maps.
//!
//! A bound variable is named when its quantifier is made: by the list and by the number of quantifiers over this list
//! below. So equal formulas are one formula, and no quantifier binds a name that is bound outside of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

pub use crate::path::{Path, Step, Var, child, elements, path_renamed, schema};

/// A text or a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// A constant text.
    Text(Rc<str>),
    /// A constant number.
    Int(i64),
    /// A constant.
    Bool(bool),
    /// The value at a path.
    At(Path),
    /// Two texts, one after the other.
    Concat(Rc<Term>, Rc<Term>),
    /// The text before the first occurrence of a character. It occurs where this is used.
    Before(Rc<Term>, char),
    /// The text without its first characters. It has as many where this is used.
    Skip(Rc<Term>, usize),
    /// In lower case, as far as it is ASCII.
    Lower(Rc<Term>),
    /// The result of a function that is not understood.
    Call(Rc<str>, Rc<[Term]>),
}

/// A property of one text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextTest {
    /// It is this text.
    Equals(Rc<str>),
    /// It begins with this text.
    StartsWith(Rc<str>),
    /// It ends with this text.
    EndsWith(Rc<str>),
    /// It contains this text.
    Contains(Rc<str>),
    /// It has at least as many characters.
    AtLeast(usize),
}

/// A question about a request without a structure of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// A field, key or element exists in its parent.
    Present(Path),
    /// A bool is true.
    Holds(Path),
    /// A property of a text.
    Text(TextTest, Term),
    /// Two texts are the same.
    SameText(Term, Term),
    /// A number is at most another.
    AtMost(Term, Term),
    /// These lists or maps together have at least so many elements. None is named twice.
    Long(Rc<[Path]>, u64),
    /// A function that is not understood returns true.
    Opaque(Rc<str>, Rc<[Term]>),
}

/// Atoms with their values.
pub type Assignment = BTreeMap<Atom, bool>;

/// A formula of a [`Formulas`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Formula(u32);

/// A formula, with its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// Always true, or never.
    Constant(bool),
    /// A question.
    Atom(Atom),
    /// The opposite.
    Not(Formula),
    /// All hold.
    And(Rc<[Formula]>),
    /// One holds.
    Or(Rc<[Formula]>),
    /// It holds for one element.
    Exists(Path, Var, Formula),
    /// It holds for each element.
    Forall(Path, Var, Formula),
}

/// All formulas of a question.
#[derive(Debug)]
pub struct Formulas {
    /// A formula is the index of its node.
    nodes: IndexSet<Node, FxBuildHasher>,
    free: Vec<Rc<BTreeSet<Var>>>,
    names: BTreeMap<(Path, u32), Var>,
    levels: BTreeMap<Var, (Path, u32)>,
    /// By list and formula, the level above all quantifiers over such a list in it.
    above: BTreeMap<Path, BTreeMap<Formula, u32>>,
    next: u32,
    negated: BTreeMap<(Formula, bool), Formula>,
}

/// Never true.
pub const FALSE: Formula = Formula(0);
/// Always true.
pub const TRUE: Formula = Formula(1);

impl Default for Formulas {
    fn default() -> Self {
        let mut all = Self {
            nodes: IndexSet::default(),
            free: Vec::new(),
            names: BTreeMap::new(),
            levels: BTreeMap::new(),
            above: BTreeMap::new(),
            next: 0,
            negated: BTreeMap::new(),
        };
        all.make(Node::Constant(false));
        all.make(Node::Constant(true));
        all
    }
}

impl Formulas {
    /// The parts of a formula.
    pub fn node(&self, of: Formula) -> &Node {
        // A formula is only made by `make`, which pushes its node.
        &self.nodes[of.0 as usize]
    }

    /// How many formulas there are.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// A name that nothing has yet.
    pub fn fresh(&mut self) -> Var {
        self.next += 1;
        Var(self.next)
    }

    fn make(&mut self, node: Node) -> Formula {
        let (index, is_new) = self.nodes.insert_full(node);
        let made = Formula(u32::try_from(index).unwrap_or(u32::MAX));
        if is_new {
            let free = self.free_of(self.node(made));
            self.free.push(Rc::new(free));
        }
        made
    }

    fn free_of(&self, node: &Node) -> BTreeSet<Var> {
        let mut free = BTreeSet::new();
        match node {
            Node::Constant(_) => {}
            Node::Atom(atom) => atom.paths(&mut |path| free.extend(elements(path))),
            Node::Not(of) => free.extend(self.free(*of)),
            Node::And(of) | Node::Or(of) => of.iter().for_each(|of| free.extend(self.free(*of))),
            Node::Exists(list, var, of) | Node::Forall(list, var, of) => {
                free.extend(self.free(*of));
                free.remove(var);
                free.extend(elements(list));
            }
        }
        free
    }

    /// The elements in it that no quantifier in it binds.
    pub fn free(&self, of: Formula) -> &BTreeSet<Var> {
        &self.free[of.0 as usize]
    }

    /// The questions in a formula.
    pub fn atoms(&self, of: Formula) -> BTreeSet<Atom> {
        let (mut open, mut seen, mut atoms) = (vec![of], BTreeSet::new(), BTreeSet::new());
        while let Some(of) = open.pop() {
            if !seen.insert(of) {
                continue;
            }
            match self.node(of) {
                Node::Constant(_) => {}
                Node::Atom(atom) => {
                    atoms.insert(atom.clone());
                }
                Node::Not(part) | Node::Exists(_, _, part) | Node::Forall(_, _, part) => open.push(*part),
                Node::And(parts) | Node::Or(parts) => open.extend(parts.iter()),
            }
        }
        atoms
    }

    /// A question.
    pub fn atom(&mut self, atom: Atom) -> Formula {
        self.make(Node::Atom(atom))
    }

    /// A constant.
    pub const fn constant(value: bool) -> Formula {
        if value { TRUE } else { FALSE }
    }

    /// The opposite.
    pub fn not(&mut self, of: Formula) -> Formula {
        match self.node(of) {
            Node::Constant(value) => Self::constant(!value),
            Node::Not(of) => *of,
            _ => self.make(Node::Not(of)),
        }
    }

    /// All hold.
    pub fn and(&mut self, parts: impl IntoIterator<Item = Formula>) -> Formula {
        self.join(parts, true)
    }

    /// One holds.
    pub fn or(&mut self, parts: impl IntoIterator<Item = Formula>) -> Formula {
        self.join(parts, false)
    }

    /// The first implies the second.
    pub fn implies(&mut self, one: Formula, other: Formula) -> Formula {
        let not = self.not(one);
        self.or([not, other])
    }

    /// `all`: whether it is a conjunction.
    fn join(&mut self, parts: impl IntoIterator<Item = Formula>, all: bool) -> Formula {
        let (unit, zero) = (Self::constant(all), Self::constant(!all));
        let mut open: Vec<Formula> = parts.into_iter().collect();
        open.reverse();
        let (mut seen, mut kept) = (BTreeSet::new(), Vec::new());
        while let Some(part) = open.pop() {
            if part == unit {
                continue;
            }
            if part == zero {
                return zero;
            }
            match self.node(part) {
                Node::And(of) if all => open.extend(of.iter().rev()),
                Node::Or(of) if !all => open.extend(of.iter().rev()),
                _ => {
                    let not = self.not(part);
                    if seen.contains(&not) {
                        return zero;
                    }
                    if seen.insert(part) {
                        kept.push(part);
                    }
                }
            }
        }
        kept.sort_unstable();
        match kept.as_slice() {
            [] => unit,
            [one] => *one,
            _ if all => self.make(Node::And(kept.into())),
            _ => self.make(Node::Or(kept.into())),
        }
    }

    /// It holds for an element of a list (`exists`), or for each. The variable is free in the body and nowhere else.
    pub fn quantify(&mut self, exists: bool, list: &Path, var: Var, body: Formula) -> Formula {
        if body == Self::constant(!exists) {
            return body;
        }
        if !self.free(body).contains(&var) {
            let some = self.atom(Atom::Long([Rc::clone(list)].into(), 1));
            let none = self.not(some);
            return if exists { self.and([some, body]) } else { self.or([none, body]) };
        }
        let schema = schema(list);
        let mut above = self.above.remove(&schema).unwrap_or_default();
        let level = self.level(body, &schema, &mut above);
        self.above.insert(Rc::clone(&schema), above);
        let name = self.name(schema, level);
        let body = self.rename(body, &BTreeMap::from([(var, name)]));
        let list = Rc::clone(list);
        self.make(if exists { Node::Exists(list, name, body) } else { Node::Forall(list, name, body) })
    }

    fn name(&mut self, schema: Path, level: u32) -> Var {
        let key = (schema, level);
        if let Some(found) = self.names.get(&key) {
            return *found;
        }
        let name = self.fresh();
        self.levels.insert(name, key.clone());
        self.names.insert(key, name);
        name
    }

    /// A level above all quantifiers over such a list in it.
    fn level(&self, of: Formula, schema: &Path, known: &mut BTreeMap<Formula, u32>) -> u32 {
        if let Some(level) = known.get(&of) {
            return *level;
        }
        let level = match self.node(of) {
            Node::Constant(_) | Node::Atom(_) => 0,
            Node::Not(of) => self.level(*of, schema, known),
            Node::And(parts) | Node::Or(parts) => {
                parts.iter().map(|part| self.level(*part, schema, known)).max().unwrap_or(0)
            }
            Node::Exists(_, var, body) | Node::Forall(_, var, body) => {
                let own = match self.levels.get(var) {
                    Some((list, level)) if list == schema => level + 1,
                    _ => 0,
                };
                own.max(self.level(*body, schema, known))
            }
        };
        known.insert(of, level);
        level
    }

    /// The formula with other elements. None of the new ones is bound in it.
    pub fn rename(&mut self, of: Formula, names: &BTreeMap<Var, Var>) -> Formula {
        self.renamed(of, names, &mut BTreeMap::new())
    }

    fn renamed(&mut self, of: Formula, names: &BTreeMap<Var, Var>, done: &mut BTreeMap<Formula, Formula>) -> Formula {
        if !self.free(of).iter().any(|var| names.contains_key(var)) {
            return of;
        }
        if let Some(found) = done.get(&of) {
            return *found;
        }
        let result = match self.node(of).clone() {
            Node::Constant(_) => of,
            Node::Atom(atom) => self.atom(atom.renamed(names)),
            Node::Not(part) => {
                let part = self.renamed(part, names, done);
                self.not(part)
            }
            Node::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.renamed(*part, names, done)).collect();
                self.and(parts)
            }
            Node::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.renamed(*part, names, done)).collect();
                self.or(parts)
            }
            Node::Exists(list, var, body) => {
                let body = self.renamed(body, names, done);
                self.make(Node::Exists(path_renamed(&list, names), var, body))
            }
            Node::Forall(list, var, body) => {
                let body = self.renamed(body, names, done);
                self.make(Node::Forall(path_renamed(&list, names), var, body))
            }
        };
        done.insert(of, result);
        result
    }

    /// The formula, or its opposite, with `Not` only at atoms.
    pub fn normal(&mut self, of: Formula, positive: bool) -> Formula {
        if let Some(found) = self.negated.get(&(of, positive)) {
            return *found;
        }
        let result = match self.node(of).clone() {
            Node::Constant(value) => Self::constant(value == positive),
            Node::Atom(_) if positive => of,
            Node::Atom(_) => self.not(of),
            Node::Not(part) => self.normal(part, !positive),
            Node::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.normal(*part, positive)).collect();
                self.join(parts, positive)
            }
            Node::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.normal(*part, positive)).collect();
                self.join(parts, !positive)
            }
            Node::Exists(list, var, body) => {
                let body = self.normal(body, positive);
                self.make(if positive { Node::Exists(list, var, body) } else { Node::Forall(list, var, body) })
            }
            Node::Forall(list, var, body) => {
                let body = self.normal(body, positive);
                self.make(if positive { Node::Forall(list, var, body) } else { Node::Exists(list, var, body) })
            }
        };
        self.negated.insert((of, positive), result);
        result
    }
}

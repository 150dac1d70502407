//! The value of a formula for one request: its definition, without any of the steps of a search.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use serde_json::Value as Json;

use crate::formula::{Atom, Formula, Formulas, Node, Path, Step, Term, Var};

/// A request.
#[derive(Clone, Debug)]
pub struct Concrete<'a> {
    /// The values of names such as `object`.
    pub variables: &'a BTreeMap<String, Json>,
    /// The named keys of maps.
    pub keys: &'a BTreeSet<Rc<str>>,
}

/// The elements that are bound: each by its place in its list.
type Bound = BTreeMap<Var, usize>;

enum Place<'a> {
    Value(&'a Json),
    /// All entries of a map with none of the named keys.
    Entries(&'a Json),
    Entry(&'a str, &'a Json),
    Key(&'a str),
}

impl Concrete<'_> {
    /// Whether a formula holds; `None` if that depends on an expression that is not understood.
    pub fn holds(&self, formulas: &Formulas, of: Formula) -> Option<bool> {
        self.with(formulas, of, &mut Bound::new())
    }

    fn with(&self, formulas: &Formulas, of: Formula, bound: &mut Bound) -> Option<bool> {
        match formulas.node(of) {
            Node::Constant(value) => Some(*value),
            Node::Atom(atom) => self.atom(atom, bound),
            Node::Not(of) => self.with(formulas, *of, bound).map(|holds| !holds),
            Node::And(parts) => decided(false, parts.iter().map(|part| self.with(formulas, *part, bound))),
            Node::Or(parts) => decided(true, parts.iter().map(|part| self.with(formulas, *part, bound))),
            Node::Exists(list, var, body) | Node::Forall(list, var, body) => {
                let exists = matches!(formulas.node(of), Node::Exists(..));
                let count = self.count(list, bound);
                let each = (0..count).map(|index| {
                    bound.insert(*var, index);
                    let holds = self.with(formulas, *body, bound);
                    bound.remove(var);
                    holds
                });
                decided(exists, each)
            }
        }
    }

    fn atom(&self, atom: &Atom, bound: &Bound) -> Option<bool> {
        let text = |term: &Term| self.text(term, bound);
        match atom {
            Atom::Present(path) => Some(self.place(path, bound).is_some()),
            Atom::Holds(path) => match self.place(path, bound) {
                Some(Place::Value(Json::Bool(value))) => Some(*value),
                _ => Some(false),
            },
            Atom::Text(test, term) => {
                if term.opaque().is_some() {
                    return None;
                }
                Some(text(term).is_some_and(|text| test.holds(&text)))
            }
            Atom::SameText(one, other) => {
                if one.opaque().or(other.opaque()).is_some() {
                    return None;
                }
                Some(text(one).zip(text(other)).is_some_and(|(one, other)| one == other))
            }
            Atom::AtMost(one, other) => {
                if one.opaque().or(other.opaque()).is_some() {
                    return None;
                }
                let number = |term: &Term| match term {
                    Term::Int(value) => Some(*value),
                    Term::At(path) => match self.place(path, bound)? {
                        Place::Value(value) => value.as_i64(),
                        _ => None,
                    },
                    _ => None,
                };
                Some(number(one).zip(number(other)).is_some_and(|(one, other)| one <= other))
            }
            Atom::Long(lists, least) => {
                let sum: usize = lists.iter().map(|list| self.count(list, bound)).sum();
                Some(sum as u64 >= *least)
            }
            Atom::Opaque(..) => None,
        }
    }

    fn count(&self, list: &Path, bound: &Bound) -> usize {
        match self.place(list, bound) {
            Some(Place::Value(Json::Array(list))) => list.len(),
            Some(Place::Value(Json::Object(map))) => map.len(),
            Some(Place::Entries(map)) => self.unnamed(map).count(),
            _ => 0,
        }
    }

    fn unnamed<'j>(&self, map: &'j Json) -> impl Iterator<Item = (&'j String, &'j Json)> {
        map.as_object().into_iter().flatten().filter(|(key, _)| !self.keys.contains(key.as_str()))
    }

    fn place(&self, path: &Path, bound: &Bound) -> Option<Place<'_>> {
        let (Step::Field(name), rest) = path.split_first()? else { return None };
        let mut at = Place::Value(self.variables.get(&**name)?);
        for step in rest {
            at = match (step, at) {
                (Step::Field(name) | Step::Key(name), Place::Value(value)) => Place::Value(value.get(&**name)?),
                (Step::EntryKey, Place::Value(map)) => Place::Entries(map),
                (Step::Element(var), Place::Value(list)) => Place::Value(list.get(*bound.get(var)?)?),
                (Step::Element(var), Place::Entries(map)) => {
                    let (key, value) = self.unnamed(map).nth(*bound.get(var)?)?;
                    Place::Entry(key, value)
                }
                (Step::EntryKey, Place::Entry(key, _)) => Place::Key(key),
                (Step::EntryValue, Place::Entry(_, value)) => Place::Value(value),
                _ => return None,
            };
        }
        if matches!(at, Place::Value(Json::Null)) { None } else { Some(at) }
    }

    fn text(&self, term: &Term, bound: &Bound) -> Option<String> {
        match term {
            Term::Text(text) => Some(text.to_string()),
            Term::At(path) => match self.place(path, bound)? {
                Place::Value(value) => value.as_str().map(str::to_owned),
                Place::Key(key) => Some(key.to_owned()),
                _ => None,
            },
            Term::Concat(one, other) => Some(self.text(one, bound)? + &self.text(other, bound)?),
            Term::Before(of, end) => Some(self.text(of, bound)?.split_once(*end)?.0.to_owned()),
            Term::Skip(of, count) => {
                let of = self.text(of, bound)?;
                (of.chars().count() >= *count).then(|| of.chars().skip(*count).collect())
            }
            Term::Lower(of) => Some(self.text(of, bound)?.to_ascii_lowercase()),
            Term::Int(_) | Term::Bool(_) | Term::Call(..) => None,
        }
    }
}

/// The disjunction of these (`any`), or their conjunction, unless it depends on one that is not known.
fn decided(any: bool, parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(!any);
    for part in parts {
        match part {
            Some(value) if value == any => return Some(any),
            Some(_) => {}
            None => known = None,
        }
    }
    known
}

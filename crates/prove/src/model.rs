//! A solution as a request.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use serde_json::{Map, Value as Json};

use crate::{
    formula::{Atom, Path, Step, child},
    search::Solution,
    universe::Type,
};

/// The longest list that a request is given.
const LONGEST: u64 = 5000;

/// A request, as far as a formula speaks of it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `object`, `oldObject`, `request`, `params` and `namespaceObject`.
    pub variables: BTreeMap<String, Json>,
    /// The expressions whose values it assumes.
    pub doubts: BTreeSet<String>,
}

/// Reads a solution.
pub(crate) struct Decoder<'a> {
    pub solution: &'a Solution,
    /// Texts that each request has, by path.
    pub known: &'a BTreeMap<Path, Rc<str>>,
}

impl Decoder<'_> {
    fn is(&self, atom: &Atom) -> bool {
        self.solution.atoms.get(atom) == Some(&true)
    }

    /// The value at a path of a type.
    pub fn value(&self, of: &Type, path: &Path) -> Json {
        let values = &self.solution.values;
        match of {
            Type::Text => match self.known.get(path) {
                Some(text) => Json::from(&**text),
                None => Json::from(values.texts.get(path).cloned().unwrap_or_default()),
            },
            Type::Int => Json::from(values.numbers.get(path).copied().unwrap_or_default()),
            Type::Bool => Json::from(self.is(&Atom::Holds(Rc::clone(path)))),
            Type::Other => Json::from(""),
            Type::Object(fields) => {
                let mut object = Map::new();
                for (name, field) in fields.iter() {
                    let at = child(path, Step::Field(Rc::clone(name)));
                    if field.always || self.is(&Atom::Present(Rc::clone(&at))) {
                        object.insert(name.to_string(), self.value(&field.of, &at));
                    }
                }
                Json::Object(object)
            }
            Type::List(of) => {
                let elements = self.elements(path);
                let mut list: Vec<Json> = elements.iter().map(|at| self.value(of, at)).collect();
                let more = list.last().cloned().unwrap_or_else(|| self.value(of, &child(path, Step::EntryValue)));
                while (list.len() as u64) < self.least(path) {
                    list.push(more.clone());
                }
                Json::Array(list)
            }
            Type::Map(of) => {
                let mut map = Map::new();
                for (atom, present) in &self.solution.atoms {
                    if let Atom::Present(at) = atom
                        && *present
                        && let Some((Step::Key(key), parent)) = at.split_last()
                        && *parent == **path
                    {
                        map.insert(key.to_string(), self.value(of, at));
                    }
                }
                for entry in self.elements(&child(path, Step::EntryKey)) {
                    let key = values.texts.get(&child(&entry, Step::EntryKey)).cloned().unwrap_or_default();
                    map.insert(key, self.value(of, &child(&entry, Step::EntryValue)));
                }
                let mut number = 0;
                while (map.len() as u64) < self.least(path) {
                    number += 1;
                    map.insert(format!("k{number}"), self.value(of, &child(path, Step::EntryValue)));
                }
                Json::Object(map)
            }
        }
    }

    fn elements(&self, list: &Path) -> Vec<Path> {
        let all = self.solution.elements.get(list).into_iter().flatten();
        let paths = all.map(|element| child(list, Step::Element(*element)));
        paths.filter(|at| self.is(&Atom::Present(Rc::clone(at)))).collect()
    }

    /// How many elements a list must have.
    fn least(&self, list: &Path) -> u64 {
        let least = |(atom, holds): (&Atom, &bool)| match atom {
            Atom::Long(lists, least) if *holds && **lists == [Rc::clone(list)] => Some(*least),
            _ => None,
        };
        self.solution.atoms.iter().filter_map(least).max().unwrap_or(0).min(LONGEST)
    }
}

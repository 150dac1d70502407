//! Which atoms exclude each other by what they say of texts, numbers and lengths.

mod groups;
mod order;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::{
    formula::{Atom, Path, Term, TextTest},
    property::Property,
    text::{Found, Texts, Wanted},
};

use groups::{Groups, Known, pairs};
use order::{Edge, distances};

/// An atom by its number, with its value.
pub type Valued = (usize, bool);
/// Atoms with their values that no request has so.
pub type Conflict = Vec<Valued>;

/// The values that texts and numbers can have.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// The texts at paths.
    pub texts: BTreeMap<Path, String>,
    /// The numbers at paths.
    pub numbers: BTreeMap<Path, i64>,
    /// Why a value may not fit: nothing is known of a text, or two texts should differ and do not.
    pub doubt: Option<String>,
}

/// The number of a path.
type Place = usize;

/// The meaning of an atom.
#[derive(Debug)]
enum Meaning {
    /// A property of the text at a path.
    Text(Place, usize),
    /// Two texts are the same: each a constant and the text at a path; `None` if one is computed otherwise.
    Same(Option<[(Rc<str>, Place); 2]>),
    /// A number and a constant are at most another number and a constant. Number 0 is 0.
    AtMost([(usize, i128); 2]),
    /// These lists together are so long.
    Long(Vec<Place>, u64),
    /// Nothing that excludes another atom.
    Free,
}

/// The meaning of atoms.
#[derive(Debug)]
pub struct Theory<'t> {
    meanings: Vec<Meaning>,
    places: Vec<Path>,
    numbers: Vec<Term>,
    texts: &'t mut Texts,
    /// By property: the texts of which it is asked, with the atom.
    asked: Vec<BTreeMap<Place, usize>>,
}

/// The property of a text that begins with a constant.
fn begins(constant: &Rc<str>) -> Option<Property> {
    Some(Property::new(&TextTest::StartsWith(Rc::clone(constant)), &Term::At([].into()))?.1)
}

/// The parts of a constant and a path after it.
fn prefixed(term: &Term) -> Option<(Rc<str>, Path)> {
    match term {
        Term::At(path) => Some(("".into(), Rc::clone(path))),
        Term::Concat(prefix, path) => match (&**prefix, &**path) {
            (Term::Text(prefix), Term::At(path)) => Some((Rc::clone(prefix), Rc::clone(path))),
            _ => None,
        },
        _ => None,
    }
}

/// Numbers for values, in the order in which they come.
fn numbered<Of: Ord + Clone>(of: &Of, known: &mut BTreeMap<Of, usize>, all: &mut Vec<Of>) -> usize {
    if let Some(number) = known.get(of) {
        return *number;
    }
    all.push(of.clone());
    known.insert(of.clone(), all.len() - 1);
    all.len() - 1
}

/// The properties of texts in atoms: with their characters, [`Texts`] can search for texts with each of these.
pub fn properties<'a>(atoms: impl IntoIterator<Item = &'a Atom>) -> Vec<Property> {
    let of = |atom: &Atom| -> Vec<Property> {
        match atom {
            Atom::Text(test, term) => Property::new(test, term).map(|(_, property)| property).into_iter().collect(),
            Atom::SameText(one, other) => {
                [one, other].into_iter().filter_map(|term| begins(&prefixed(term)?.0)).collect()
            }
            _ => Vec::new(),
        }
    };
    atoms.into_iter().flat_map(of).collect()
}

impl<'t> Theory<'t> {
    /// That of these atoms, by their place. `texts` has the characters of all of them.
    pub fn new(atoms: &[Atom], texts: &'t mut Texts) -> Self {
        let (mut places, mut known) = (Vec::new(), BTreeMap::new());
        let (mut numbers, mut terms) = (vec![Term::Int(0)], BTreeMap::new());
        let mut asked: Vec<BTreeMap<Place, usize>> = Vec::new();
        let mut meanings = Vec::new();
        for (index, atom) in atoms.iter().enumerate() {
            let mut place = |path: &Path| numbered(path, &mut known, &mut places);
            meanings.push(match atom {
                Atom::Text(test, term) => match Property::new(test, term) {
                    None => Meaning::Free,
                    Some((path, property)) => {
                        let (place, number) = (place(&path), texts.number(&property));
                        asked.resize_with(asked.len().max(number + 1), BTreeMap::new);
                        asked[number].insert(place, index);
                        Meaning::Text(place, number)
                    }
                },
                Atom::SameText(one, other) => {
                    let both = prefixed(one).zip(prefixed(other));
                    Meaning::Same(
                        both.map(|((before, one), (after, other))| [(before, place(&one)), (after, place(&other))]),
                    )
                }
                Atom::AtMost(one, other) => Meaning::AtMost([one, other].map(|term| match term {
                    Term::Int(value) => (0, i128::from(*value)),
                    term => (numbered(term, &mut terms, &mut numbers), 0),
                })),
                Atom::Long(lists, least) => Meaning::Long(lists.iter().map(place).collect(), *least),
                Atom::Present(_) | Atom::Holds(_) | Atom::Opaque(..) => Meaning::Free,
            });
        }
        Self { meanings, places, numbers, texts, asked }
    }

    /// All conflicts among atoms, each without atoms that it does not need; or values.
    pub fn judge(&mut self, atoms: &[Valued]) -> Result<Values, Vec<Conflict>> {
        let mut values = Values::default();
        let mut conflicts = self.lengths(atoms);
        match self.numbers(atoms) {
            Ok(numbers) => values.numbers = numbers,
            Err(conflict) => conflicts.push(conflict),
        }
        conflicts.extend(self.of_texts(atoms, &mut values));
        if conflicts.is_empty() { Ok(values) } else { Err(conflicts) }
    }

    /// Whether these atoms exclude each other: what [`Self::judge`] said, once more.
    pub fn is_conflict(&mut self, atoms: &[Valued]) -> bool {
        self.judge(atoms).is_err()
    }

    /// A conflict of the properties of one text, of each text of which they are asked; any other as it is.
    pub fn elsewhere(&self, conflict: Conflict) -> Vec<Conflict> {
        let property = |(atom, value): &Valued| match self.meanings[*atom] {
            Meaning::Text(place, property) => Some((place, property, *value)),
            _ => None,
        };
        let Some(properties) = conflict.iter().map(property).collect::<Option<Vec<_>>>() else { return vec![conflict] };
        let Some((place, first, _)) = properties.first() else { return vec![conflict] };
        if properties.iter().any(|(other, _, _)| other != place) {
            return vec![conflict];
        }
        let at = |place: &Place| -> Option<Conflict> {
            properties.iter().map(|(_, property, value)| Some((*self.asked[*property].get(place)?, *value))).collect()
        };
        self.asked[*first].keys().filter_map(at).collect()
    }

    fn lengths(&self, atoms: &[Valued]) -> Vec<Conflict> {
        // The least and the greatest length, each with the atom that says so.
        let mut limits: BTreeMap<Place, [(u64, Option<usize>); 2]> = BTreeMap::new();
        for (atom, value) in atoms {
            if let Meaning::Long(lists, least) = &self.meanings[*atom]
                && let [list] = lists.as_slice()
            {
                let [low, high] = limits.entry(*list).or_insert([(0, None), (u64::MAX, None)]);
                let most = least.saturating_sub(1);
                if *value && *least > low.0 {
                    *low = (*least, Some(*atom));
                } else if !value && most < high.0 {
                    *high = (most, Some(*atom));
                }
            }
        }
        let mut conflicts = Vec::new();
        for [low, high] in limits.values() {
            if low.0 > high.0
                && let (Some(low), Some(high)) = (low.1, high.1)
            {
                conflicts.push(vec![(low, true), (high, false)]);
            }
        }
        for (atom, value) in atoms {
            let Meaning::Long(lists, least) = &self.meanings[*atom] else { continue };
            if lists.len() < 2 {
                continue;
            }
            let limit = |list: &Place| {
                let [low, high] = limits.get(list).copied().unwrap_or([(0, None), (u64::MAX, None)]);
                if *value { high } else { low }
            };
            let sum = lists.iter().map(|list| limit(list).0).fold(0_u64, u64::saturating_add);
            if (sum >= *least) == *value {
                continue;
            }
            let of = |list: &Place| Some((limit(list).1?, !value));
            conflicts.push(lists.iter().filter_map(of).chain([(*atom, *value)]).collect());
        }
        conflicts
    }

    fn numbers(&self, atoms: &[Valued]) -> Result<BTreeMap<Path, i64>, Conflict> {
        let (mut nodes, mut edges) = (BTreeSet::new(), Vec::new());
        for (atom, value) in atoms {
            let Meaning::AtMost([(one, before), (other, after)]) = self.meanings[*atom] else { continue };
            nodes.extend([one, other].into_iter().filter(|node| *node != 0));
            // one + before <= other + after, or other + after <= one + before - 1.
            let because = Some((*atom, *value));
            edges.push(if *value {
                Edge { from: other, to: one, most: after - before, because }
            } else {
                Edge { from: one, to: other, most: before - after - 1, because }
            });
        }
        if nodes.is_empty() && edges.is_empty() {
            return Ok(BTreeMap::new());
        }
        for node in &nodes {
            edges.push(Edge { from: 0, to: *node, most: i128::from(i64::MAX), because: None });
            edges.push(Edge { from: *node, to: 0, most: -i128::from(i64::MIN), because: None });
        }
        let distance = distances(&edges, self.numbers.len(), nodes.len() + 1)?;
        let number = |node: &usize| match &self.numbers[*node] {
            Term::At(path) => Some((Rc::clone(path), i64::try_from(distance[*node] - distance[0]).ok()?)),
            _ => None,
        };
        Ok(nodes.iter().filter_map(number).collect())
    }

    fn of_texts(&mut self, atoms: &[Valued], values: &mut Values) -> Vec<Conflict> {
        let groups = Groups::new(self, atoms);
        let mut known: BTreeMap<Place, Vec<Known>> = BTreeMap::new();
        for (atom, value) in atoms {
            if let Meaning::Text(place, property) = self.meanings[*atom] {
                let (group, prefix) = groups.find(place);
                let property = if prefix.is_empty() { property } else { self.texts.after(property, &prefix) };
                known.entry(group).or_default().push(Known {
                    place,
                    wanted: (property, *value),
                    atom: (*atom, *value),
                });
            }
        }
        let mut conflicts = Vec::new();
        let mut found: BTreeMap<Place, String> = BTreeMap::new();
        for (group, known) in &known {
            let wanted: Vec<Wanted> = known.iter().map(|known| known.wanted).collect();
            let mut found_here = pairs(&wanted, self.texts);
            if found_here.is_empty() {
                match self.texts.search(&wanted) {
                    Found::Text(text) => {
                        found.insert(*group, text);
                    }
                    Found::GaveUp => values.doubt = Some("the properties of a text are too many".to_owned()),
                    Found::Nothing => {
                        let needed = self.texts.needed(&wanted);
                        found_here
                            .push(needed.iter().filter_map(|one| wanted.iter().position(|of| of == one)).collect());
                    }
                }
            }
            for conflict in found_here {
                let mut atoms: Conflict = conflict.iter().map(|index| known[*index].atom).collect();
                let first = conflict.first().map(|index| known[*index].place);
                let own = first.is_some_and(|first| groups.find(first).0 == first);
                if !own || conflict.iter().any(|index| Some(known[*index].place) != first) {
                    atoms.extend(groups.because(*group));
                }
                conflicts.push(atoms);
            }
        }
        if conflicts.is_empty() {
            conflicts = self.differences(atoms, &groups, &known, &mut found, values);
        }
        // Each member of a group has the group's text after its own constant.
        for (place, (group, prefix)) in &groups.of {
            let text = found.get(group).cloned().unwrap_or_default();
            values.texts.insert(Rc::clone(&self.places[*place]), format!("{prefix}{text}"));
        }
        for (group, text) in found {
            values.texts.entry(Rc::clone(&self.places[group])).or_insert(text);
        }
        conflicts
    }

    /// Texts that must differ.
    fn differences(
        &mut self,
        atoms: &[Valued],
        groups: &Groups,
        known: &BTreeMap<Place, Vec<Known>>,
        found: &mut BTreeMap<Place, String>,
        values: &mut Values,
    ) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for (atom, value) in atoms {
            let both = match &self.meanings[*atom] {
                Meaning::Same(both) => both.clone(),
                _ => continue,
            };
            let Some([(before, one), (after, other)]) = both else {
                values.doubt = Some("a comparison of computed texts".to_owned());
                continue;
            };
            let ((group, own), (also, others)) = (groups.find(one), groups.find(other));
            let (left, right) = (format!("{before}{own}"), format!("{after}{others}"));
            if group == also && (left == right) != *value {
                conflicts.push(groups.because(group).into_iter().chain([(*atom, *value)]).collect());
            }
            if group == also || *value {
                if group != also {
                    values.doubt = Some("a comparison of computed texts".to_owned());
                }
                continue;
            }
            // Both are the same constant.
            if let (Some((one, first)), Some((other, second))) =
                (self.constant(group, known), self.constant(also, known))
                && format!("{left}{one}") == format!("{right}{other}")
            {
                let because = groups.because(group).into_iter().chain(groups.because(also));
                conflicts.push(because.chain([first, second, (*atom, false)]).collect());
                continue;
            }
            let same = |found: &BTreeMap<Place, String>| {
                let text = |group: Place| found.get(&group).cloned().unwrap_or_default();
                format!("{left}{}", text(group)) == format!("{right}{}", text(also))
            };
            for group in [group, also] {
                if same(found) {
                    self.another(group, known, found);
                }
            }
            if same(found) {
                values.doubt = Some("two texts that must differ".to_owned());
            }
        }
        conflicts
    }

    /// The constant that the text of a group is, and the atom that says so.
    fn constant(&self, group: Place, known: &BTreeMap<Place, Vec<Known>>) -> Option<(Rc<str>, Valued)> {
        let mut all = known.get(&group).into_iter().flatten().filter(|one| one.place == group && one.atom.1);
        all.find_map(|one| match &self.meanings[one.atom.0] {
            Meaning::Text(_, property) => Some((Rc::clone(self.texts.constant(*property)?), one.atom)),
            _ => None,
        })
    }

    /// Another text with the properties of a group.
    fn another(&mut self, group: Place, known: &BTreeMap<Place, Vec<Known>>, found: &mut BTreeMap<Place, String>) {
        let mut wanted: Vec<Wanted> = known.get(&group).into_iter().flatten().map(|known| known.wanted).collect();
        let text = found.get(&group).cloned().unwrap_or_default();
        let taken = TextTest::Equals(text.into());
        if let Some((_, property)) = Property::new(&taken, &Term::At([].into())) {
            wanted.push((self.texts.number(&property), false));
        }
        if let Found::Text(text) = self.texts.search(&wanted) {
            found.insert(group, text);
        }
    }
}

//! Which atoms exclude each other by what they say of texts, numbers and lengths.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::{
    formula::{Assignment, Atom, Path, Term, TextTest},
    property::Property,
    text::{Found, Texts},
};

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

/// The properties of all texts in atoms.
pub fn properties<'a>(atoms: impl IntoIterator<Item = &'a Atom>) -> Vec<Property> {
    let of = |atom: &Atom| match atom {
        Atom::Text(test, term) => Some(Property::new(test, term)?.1),
        Atom::SameText(one, other) => {
            let constant = [one, other].into_iter().find_map(|term| prefixed(term).map(|(prefix, _)| prefix))?;
            Some(Property::new(&TextTest::StartsWith(constant), &Term::At([].into()))?.1)
        }
        _ => None,
    };
    atoms.into_iter().filter_map(of).collect()
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

/// All conflicts among atoms, each without atoms that it does not need; or values.
pub fn judge(assignment: &Assignment, texts: &mut Texts) -> Result<Values, Vec<Assignment>> {
    let mut values = Values::default();
    let mut conflicts = lengths(assignment);
    match numbers(assignment) {
        Ok(numbers) => values.numbers = numbers,
        Err(conflict) => conflicts.push(conflict),
    }
    conflicts.extend(of_texts(assignment, texts, &mut values));
    if conflicts.is_empty() { Ok(values) } else { Err(conflicts) }
}

/// Whether these atoms exclude each other: what [`judge`] said, once more.
pub fn is_conflict(atoms: &Assignment, texts: &mut Texts) -> bool {
    judge(atoms, texts).is_err()
}

fn lengths(assignment: &Assignment) -> Vec<Assignment> {
    let mut limits: BTreeMap<&Path, (u64, u64)> = BTreeMap::new();
    for (atom, value) in assignment {
        if let Atom::Long(lists, least) = atom
            && let [list] = &**lists
        {
            let (low, high) = limits.entry(list).or_insert((0, u64::MAX));
            if *value { *low = (*low).max(*least) } else { *high = (*high).min(least.saturating_sub(1)) }
        }
    }
    let long = |list: &Path, least: u64, value: bool| (Atom::Long([Rc::clone(list)].into(), least), value);
    let mut conflicts = Vec::new();
    for (list, (low, high)) in &limits {
        if low > high {
            conflicts.push(Assignment::from([long(list, *low, true), long(list, *high + 1, false)]));
        }
    }
    for (atom, value) in assignment {
        let Atom::Long(lists, least) = atom else { continue };
        if lists.len() < 2 {
            continue;
        }
        let limit = |list: &Path| limits.get(list).copied().unwrap_or((0, u64::MAX));
        let sum = lists.iter().map(|list| if *value { limit(list).1 } else { limit(list).0 });
        let sum = sum.fold(0_u64, u64::saturating_add);
        if (sum >= *least) == *value {
            continue;
        }
        let of = |list: &Path| match (value, limit(list)) {
            (true, (_, u64::MAX)) | (false, (0, _)) => None,
            (true, (_, high)) => Some(long(list, high + 1, false)),
            (false, (low, _)) => Some(long(list, low, true)),
        };
        conflicts.push(lists.iter().filter_map(of).chain([(atom.clone(), *value)]).collect());
    }
    conflicts
}

/// Numbers in their order: `to - from <= most`, because of an atom, or because numbers have 64 bits.
struct Edge<'a> {
    from: usize,
    to: usize,
    most: i128,
    because: Option<(&'a Atom, bool)>,
}

fn numbers(assignment: &Assignment) -> Result<BTreeMap<Path, i64>, Assignment> {
    let mut nodes: BTreeMap<&Term, usize> = BTreeMap::new();
    let mut edges = Vec::new();
    for (atom, value) in assignment {
        let Atom::AtMost(one, other) = atom else { continue };
        // Node 0 is the number 0, from which constants are counted.
        let (mut at, mut offset) = ([0, 0], [0_i128, 0]);
        for (index, term) in [one, other].into_iter().enumerate() {
            if let Term::Int(value) = term {
                offset[index] = i128::from(*value);
            } else {
                let next = nodes.len() + 1;
                at[index] = *nodes.entry(term).or_insert(next);
            }
        }
        // one + offset <= other + offset, or other + offset <= one + offset - 1.
        let because = Some((atom, *value));
        edges.push(if *value {
            Edge { from: at[1], to: at[0], most: offset[1] - offset[0], because }
        } else {
            Edge { from: at[0], to: at[1], most: offset[0] - offset[1] - 1, because }
        });
    }
    for node in nodes.values() {
        edges.push(Edge { from: 0, to: *node, most: i128::from(i64::MAX), because: None });
        edges.push(Edge { from: *node, to: 0, most: -i128::from(i64::MIN), because: None });
    }
    // Shortest paths from a node before all (Bellman and Ford); where one still gets shorter, there is a cycle.
    let count = nodes.len() + 1;
    let (mut distance, mut through) = (vec![0_i128; count], vec![None; count]);
    for round in 0..=count {
        let mut changed = None;
        for (index, edge) in edges.iter().enumerate() {
            if distance[edge.from] + edge.most < distance[edge.to] {
                distance[edge.to] = distance[edge.from] + edge.most;
                through[edge.to] = Some(index);
                changed = Some(edge.to);
            }
        }
        let Some(mut node) = changed else { break };
        if round == count {
            for _ in 0..count {
                node = through[node].map_or(node, |edge: usize| edges[edge].from);
            }
            let (mut conflict, start) = (Assignment::new(), node);
            while let Some(edge) = through[node].map(|edge| &edges[edge]) {
                conflict.extend(edge.because.map(|(atom, value)| (atom.clone(), value)));
                node = edge.from;
                if node == start {
                    break;
                }
            }
            return Err(conflict);
        }
    }
    let number = |(term, node): (&&Term, &usize)| match term {
        Term::At(path) => Some((Rc::clone(path), i64::try_from(distance[*node] - distance[0]).ok()?)),
        _ => None,
    };
    Ok(nodes.iter().filter_map(number).collect())
}

/// A property that the text of a group has or lacks, and the atom that says so.
type Known = ((Property, bool), (Atom, bool));

/// Texts that are equal by atoms: each is a constant and the text of the group.
#[derive(Default)]
struct Groups {
    /// By path: the path of the group, the constant before it, and the atoms that say so.
    of: BTreeMap<Path, (Path, Rc<str>)>,
    because: BTreeMap<Path, Assignment>,
}

impl Groups {
    fn new(assignment: &Assignment) -> Self {
        let mut groups = Self::default();
        for (atom, value) in assignment {
            let Atom::SameText(one, other) = atom else { continue };
            let (Some((before, one)), Some((after, other))) = (prefixed(one), prefixed(other)) else { continue };
            if !value || (!before.is_empty() && !after.is_empty()) {
                continue;
            }
            // `whole` is `prefix` and then `rest`.
            let (whole, prefix, rest) = if before.is_empty() { (one, after, other) } else { (other, before, one) };
            groups.join(&whole, &prefix, &rest, atom);
        }
        groups
    }

    fn find(&self, path: &Path) -> (Path, Rc<str>) {
        self.of.get(path).cloned().unwrap_or_else(|| (Rc::clone(path), "".into()))
    }

    /// Joins two groups, where that keeps the form; others stay apart, which only makes less known.
    fn join(&mut self, whole: &Path, prefix: &Rc<str>, rest: &Path, atom: &Atom) {
        let ((one, before), (other, after)) = (self.find(whole), self.find(rest));
        if one == other || !before.is_empty() {
            return;
        }
        let prefix: Rc<str> = format!("{prefix}{after}").into();
        let mut because = self.because.remove(&one).unwrap_or_default();
        because.extend(self.because.remove(&other).unwrap_or_default());
        because.insert(atom.clone(), true);
        self.because.insert(Rc::clone(&other), because);
        let members = self.of.iter().filter(|(_, (group, _))| *group == one).map(|(path, _)| Rc::clone(path));
        let members: BTreeSet<Path> = members.chain([Rc::clone(whole), Rc::clone(&one)]).collect();
        for path in members {
            let (_, own) = self.find(&path);
            self.of.insert(path, (Rc::clone(&other), format!("{own}{prefix}").into()));
        }
        self.of.entry(Rc::clone(&other)).or_insert((other, "".into()));
    }
}

fn of_texts(assignment: &Assignment, texts: &mut Texts, values: &mut Values) -> Vec<Assignment> {
    let groups = Groups::new(assignment);
    let mut known: BTreeMap<Path, Vec<(Path, Known)>> = BTreeMap::new();
    for (atom, value) in assignment {
        if let Atom::Text(test, term) = atom {
            let Some((path, property)) = Property::new(test, term) else { continue };
            let (group, prefix) = groups.find(&path);
            let property = if prefix.is_empty() { property } else { property.after(&prefix) };
            known.entry(group).or_default().push((path, ((property, *value), (atom.clone(), *value))));
        }
    }
    let mut conflicts = Vec::new();
    let mut found: BTreeMap<Path, String> = BTreeMap::new();
    for (group, known) in &known {
        let wanted: Vec<_> = known.iter().map(|(_, (property, _))| property.clone()).collect();
        let mut found_here = pairs(&wanted, texts);
        if found_here.is_empty() {
            match texts.search(&wanted) {
                Found::Text(text) => {
                    found.insert(Rc::clone(group), text);
                }
                Found::GaveUp => values.doubt = Some("the properties of a text are too many".to_owned()),
                Found::Nothing => found_here.push(needed(&wanted, texts)),
            }
        }
        for conflict in found_here {
            let mut atoms: Assignment = conflict.iter().map(|index| known[*index].1.1.clone()).collect();
            let first = conflict.first().map(|index| &known[*index].0);
            let own = first.is_some_and(|first| groups.find(first).0 == *first);
            if !own || conflict.iter().any(|index| Some(&known[*index].0) != first) {
                atoms.extend(groups.because.get(group).cloned().unwrap_or_default());
            }
            conflicts.push(atoms);
        }
    }
    if conflicts.is_empty() {
        conflicts = differences(assignment, &groups, texts, &known, &mut found, values);
    }
    // Each member of a group has the group's text after its own constant.
    for (path, (group, prefix)) in &groups.of {
        let text = found.get(group).cloned().unwrap_or_default();
        values.texts.insert(Rc::clone(path), format!("{prefix}{text}"));
    }
    for (group, text) in found {
        values.texts.entry(group).or_insert(text);
    }
    conflicts
}

/// All pairs of these that exclude each other.
fn pairs(wanted: &[(Property, bool)], texts: &mut Texts) -> Vec<Vec<usize>> {
    let mut pairs = Vec::new();
    for one in 0..wanted.len() {
        for other in 0..wanted.len() {
            // Of two that are there, each pair once.
            let asked = wanted[one].1 && (!wanted[other].1 || one < other);
            if asked && texts.exclusive(&wanted[one], &wanted[other]) {
                pairs.push(vec![one, other]);
            }
        }
    }
    pairs
}

/// Of these, which exclude each other, as many as are needed for that.
fn needed(wanted: &[(Property, bool)], texts: &mut Texts) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..wanted.len()).collect();
    for index in 0..wanted.len() {
        let fewer: Vec<usize> = kept.iter().copied().filter(|one| *one != index).collect();
        let rest: Vec<_> = fewer.iter().map(|index| wanted[*index].clone()).collect();
        if texts.search(&rest) == Found::Nothing {
            kept = fewer;
        }
    }
    kept
}

/// Texts that must differ.
fn differences(
    assignment: &Assignment,
    groups: &Groups,
    texts: &mut Texts,
    known: &BTreeMap<Path, Vec<(Path, Known)>>,
    found: &mut BTreeMap<Path, String>,
    values: &mut Values,
) -> Vec<Assignment> {
    let mut conflicts = Vec::new();
    for (atom, value) in assignment {
        let Atom::SameText(one, other) = atom else { continue };
        let (Some((before, one)), Some((after, other))) = (prefixed(one), prefixed(other)) else {
            values.doubt = Some("a comparison of computed texts".to_owned());
            continue;
        };
        let ((group, own), (also, others)) = (groups.find(&one), groups.find(&other));
        let (left, right) = (format!("{before}{own}"), format!("{after}{others}"));
        if group == also && (left == right) != *value {
            let mut conflict = groups.because.get(&group).cloned().unwrap_or_default();
            conflict.insert(atom.clone(), *value);
            conflicts.push(conflict);
        }
        if group == also || *value {
            if group != also {
                values.doubt = Some("a comparison of computed texts".to_owned());
            }
            continue;
        }
        // Both are the same constant.
        let constant = |path: &Path| {
            let mut equal = known.get(path).into_iter().flatten().filter_map(|(of, (_, (atom, value)))| match atom {
                Atom::Text(TextTest::Equals(text), Term::At(_)) if *value && of == path => {
                    Some((text.clone(), atom.clone()))
                }
                _ => None,
            });
            equal.next()
        };
        if let (Some((one, first)), Some((other, second))) = (constant(&group), constant(&also))
            && format!("{left}{one}") == format!("{right}{other}")
        {
            let mut conflict = groups.because.get(&group).cloned().unwrap_or_default();
            conflict.extend(groups.because.get(&also).cloned().unwrap_or_default());
            conflict.extend([(first, true), (second, true), (atom.clone(), false)]);
            conflicts.push(conflict);
            continue;
        }
        let same = |found: &BTreeMap<Path, String>| {
            let text = |group: &Path| found.get(group).cloned().unwrap_or_default();
            format!("{left}{}", text(&group)) == format!("{right}{}", text(&also))
        };
        if same(found) {
            another(&group, texts, known, found);
        }
        if same(found) {
            another(&also, texts, known, found);
        }
        if same(found) {
            values.doubt = Some("two texts that must differ".to_owned());
        }
    }
    conflicts
}

/// Another text with the properties of a group.
fn another(
    group: &Path,
    texts: &mut Texts,
    known: &BTreeMap<Path, Vec<(Path, Known)>>,
    found: &mut BTreeMap<Path, String>,
) {
    let mut wanted: Vec<_> =
        known.get(group).into_iter().flatten().map(|(_, (property, _))| property.clone()).collect();
    let text = found.get(group).cloned().unwrap_or_default();
    let taken = TextTest::Equals(text.into());
    if let Some((_, property)) = Property::new(&taken, &Term::At([].into())) {
        wanted.push((property, false));
    }
    if let Found::Text(text) = texts.search(&wanted) {
        found.insert(Rc::clone(group), text);
    }
}

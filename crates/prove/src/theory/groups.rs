//! Texts that are equal by atoms, and pairs of properties that exclude each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{Conflict, Meaning, Place, Theory, Valued};
use crate::text::{Texts, Wanted};

/// A property that the text of a group has or lacks, the text of which that is said, and the atom that says so.
pub(super) struct Known {
    pub place: Place,
    pub wanted: Wanted,
    pub atom: Valued,
}

/// Texts that are equal by atoms: each is a constant and the text of the group.
#[derive(Default)]
pub(super) struct Groups {
    /// By text: the text of the group, and the constant before it.
    pub of: BTreeMap<Place, (Place, Rc<str>)>,
    /// The atoms that say so.
    because: BTreeMap<Place, BTreeSet<Valued>>,
}

impl Groups {
    pub fn new(of: &Theory<'_>, atoms: &[Valued]) -> Self {
        let mut groups = Self::default();
        for (atom, value) in atoms {
            let Meaning::Same(Some([(before, one), (after, other)])) = &of.meanings[*atom] else { continue };
            if !value || (!before.is_empty() && !after.is_empty()) {
                continue;
            }
            // `whole` is `prefix` and then `rest`.
            let (whole, prefix, rest) = if before.is_empty() { (one, after, other) } else { (other, before, one) };
            groups.join(*whole, prefix, *rest, *atom);
        }
        groups
    }

    pub fn find(&self, place: Place) -> (Place, Rc<str>) {
        self.of.get(&place).cloned().unwrap_or_else(|| (place, "".into()))
    }

    /// The atoms that make a group.
    pub fn because(&self, group: Place) -> Conflict {
        self.because.get(&group).into_iter().flatten().copied().collect()
    }

    /// Joins two groups, where that keeps the form; others stay apart, which only makes less known.
    fn join(&mut self, whole: Place, prefix: &Rc<str>, rest: Place, atom: usize) {
        let ((one, before), (other, after)) = (self.find(whole), self.find(rest));
        if one == other || !before.is_empty() {
            return;
        }
        let prefix: Rc<str> = format!("{prefix}{after}").into();
        let mut because = self.because.remove(&one).unwrap_or_default();
        because.extend(self.because.remove(&other).unwrap_or_default());
        because.insert((atom, true));
        self.because.insert(other, because);
        let members = self.of.iter().filter(|(_, (group, _))| *group == one).map(|(place, _)| *place);
        let members: BTreeSet<Place> = members.chain([whole, one]).collect();
        for place in members {
            let (_, own) = self.find(place);
            self.of.insert(place, (other, format!("{own}{prefix}").into()));
        }
        self.of.entry(other).or_insert((other, "".into()));
    }
}

/// All pairs of these that exclude each other, by their place.
pub(super) fn pairs(wanted: &[Wanted], texts: &mut Texts) -> Vec<Vec<usize>> {
    let mut pairs = Vec::new();
    for one in 0..wanted.len() {
        if !wanted[one].1 {
            continue;
        }
        for other in 0..wanted.len() {
            // Of two that the text has, each pair once.
            if (!wanted[other].1 || one < other) && texts.exclusive(wanted[one], wanted[other]) {
                pairs.push(vec![one, other]);
            }
        }
    }
    pairs
}

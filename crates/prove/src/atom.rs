//! The parts of atoms: their paths, and the same with other elements.

use std::{collections::BTreeMap, rc::Rc};

use crate::formula::{Atom, Path, Term, Var, path_renamed};

impl Term {
    /// Visits each path in it.
    pub fn paths(&self, visit: &mut dyn FnMut(&Path)) {
        match self {
            Self::Text(_) | Self::Int(_) | Self::Bool(_) => {}
            Self::At(path) => visit(path),
            Self::Concat(one, other) => {
                one.paths(visit);
                other.paths(visit);
            }
            Self::Before(of, _) | Self::Skip(of, _) | Self::Lower(of) => of.paths(visit),
            Self::Call(_, args) => args.iter().for_each(|arg| arg.paths(visit)),
        }
    }

    /// The same of other elements.
    #[must_use]
    pub fn renamed(&self, names: &BTreeMap<Var, Var>) -> Self {
        let inner = |of: &Rc<Self>| Rc::new(of.renamed(names));
        match self {
            Self::Text(_) | Self::Int(_) | Self::Bool(_) => self.clone(),
            Self::At(path) => Self::At(path_renamed(path, names)),
            Self::Concat(one, other) => Self::Concat(inner(one), inner(other)),
            Self::Before(of, end) => Self::Before(inner(of), *end),
            Self::Skip(of, count) => Self::Skip(inner(of), *count),
            Self::Lower(of) => Self::Lower(inner(of)),
            Self::Call(name, args) => Self::Call(Rc::clone(name), args.iter().map(|arg| arg.renamed(names)).collect()),
        }
    }

    /// The name of a function in it that is not understood.
    pub fn opaque(&self) -> Option<&Rc<str>> {
        match self {
            Self::Text(_) | Self::Int(_) | Self::Bool(_) | Self::At(_) => None,
            Self::Concat(one, other) => one.opaque().or_else(|| other.opaque()),
            Self::Before(of, _) | Self::Skip(of, _) | Self::Lower(of) => of.opaque(),
            Self::Call(name, _) => Some(name),
        }
    }
}

impl Atom {
    /// Visits each path in it.
    pub fn paths(&self, visit: &mut dyn FnMut(&Path)) {
        match self {
            Self::Present(path) | Self::Holds(path) => visit(path),
            Self::Text(_, term) => term.paths(visit),
            Self::SameText(one, other) | Self::AtMost(one, other) => {
                one.paths(visit);
                other.paths(visit);
            }
            Self::Long(lists, _) => lists.iter().for_each(visit),
            Self::Opaque(_, args) => args.iter().for_each(|arg| arg.paths(visit)),
        }
    }

    /// The same of other elements.
    #[must_use]
    pub fn renamed(&self, names: &BTreeMap<Var, Var>) -> Self {
        match self {
            Self::Present(path) => Self::Present(path_renamed(path, names)),
            Self::Holds(path) => Self::Holds(path_renamed(path, names)),
            Self::Text(test, term) => Self::Text(test.clone(), term.renamed(names)),
            Self::SameText(one, other) => {
                let (one, other) = (one.renamed(names), other.renamed(names));
                // As it was made: so that it does not depend on the names.
                if one <= other { Self::SameText(one, other) } else { Self::SameText(other, one) }
            }
            Self::AtMost(one, other) => Self::AtMost(one.renamed(names), other.renamed(names)),
            Self::Long(lists, least) => {
                Self::Long(lists.iter().map(|list| path_renamed(list, names)).collect(), *least)
            }
            Self::Opaque(name, args) => {
                Self::Opaque(Rc::clone(name), args.iter().map(|arg| arg.renamed(names)).collect())
            }
        }
    }
}

//! Places in a request.

use std::{collections::BTreeMap, rc::Rc};

/// An element of a list or an entry of a map: bound by a quantifier, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(pub u32);

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A field of an object.
    Field(Rc<str>),
    /// The value of a named key of a map.
    Key(Rc<str>),
    /// An element of a list, or an entry of a map with none of the named keys.
    Element(Var),
    /// The key of such an entry.
    EntryKey,
    /// The value of such an entry.
    EntryValue,
}

/// A place in a request; the first step names a variable such as `object`.
pub type Path = Rc<[Step]>;

/// A path with one step more.
pub fn child(path: &Path, step: Step) -> Path {
    path.iter().cloned().chain([step]).collect()
}

/// The elements that a path leads through.
pub fn elements(path: &Path) -> impl Iterator<Item = Var> + '_ {
    path.iter().filter_map(|step| if let Step::Element(var) = step { Some(*var) } else { None })
}

/// The path without its elements: where the schema describes it.
pub fn schema(path: &Path) -> Path {
    let step = |step: &Step| if let Step::Element(_) = step { Step::Element(Var(0)) } else { step.clone() };
    path.iter().map(step).collect()
}

/// The path through other elements.
pub fn path_renamed(path: &Path, names: &BTreeMap<Var, Var>) -> Path {
    if !elements(path).any(|var| names.contains_key(&var)) {
        return Rc::clone(path);
    }
    let step = |step: &Step| match step {
        Step::Element(var) => Step::Element(names.get(var).copied().unwrap_or(*var)),
        step => step.clone(),
    };
    path.iter().map(step).collect()
}

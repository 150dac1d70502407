//! Values of expressions, as far as they are known for every request.

use std::{collections::BTreeMap, rc::Rc};

use crate::{
    formula::{FALSE, Formula, Formulas, Path, TRUE, Term, Var, path_renamed},
    universe::{Object, Type},
};

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// A bool that is known.
    Constant(bool),
    /// The bool at a path.
    Holds(Path),
    /// A text.
    Text(Term),
    /// A text that is only printed: its content is not known.
    Message,
    /// A number.
    Int(Term),
    /// The number of elements of a list.
    Length(Rc<[Elements]>),
    /// The number of characters of a text.
    TextLength(Term),
    /// The index of the first occurrence of a character in a text.
    Index(Term, char),
    /// The value at a path, whose type is not known.
    Other(Path),
    /// An object.
    Object(Path, Rc<Object>),
    /// A list.
    List(Rc<[Elements]>),
    /// A map.
    Map(Path, Rc<Type>),
    /// A map literal.
    Record(Rc<BTreeMap<Rc<str>, Choice>>),
    /// An optional without a value.
    None,
    /// An optional with a value.
    Some(Rc<Value>),
    /// The result of an expression that is not understood.
    Opaque(Term),
}

/// Elements of a list: one for each choice of these elements of other lists for which the guard holds.
#[derive(Clone, Debug)]
pub struct Elements {
    /// The lists and the names of their elements.
    pub over: Rc<[(Path, Var)]>,
    /// When there is such an element.
    pub guard: Formula,
    /// Its content.
    pub item: Item,
}

/// The content of elements.
#[derive(Clone, Debug)]
pub enum Item {
    /// A value.
    One(Value),
    /// All elements of a list of the request.
    All(Path, Rc<Type>),
}

impl Elements {
    /// One element, if the guard holds.
    pub fn one(guard: Formula, value: Value) -> Self {
        Self { over: [].into(), guard, item: Item::One(value) }
    }
}

/// The value of an expression: one of several, or an error. Exactly one of the guards and the error holds.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Each value with when it is this one.
    pub values: Vec<(Formula, Value)>,
    /// When the evaluation fails; `None` if never.
    pub error: Option<Formula>,
}

impl Choice {
    /// A value.
    pub fn of(value: Value) -> Self {
        Self { values: vec![(TRUE, value)], error: None }
    }

    /// When it fails.
    pub fn error(&self) -> Formula {
        self.error.unwrap_or(FALSE)
    }

    /// One of these, or an error.
    pub fn new(values: Vec<(Formula, Value)>, error: Formula) -> Self {
        let values = values.into_iter().filter(|(guard, _)| *guard != FALSE).collect();
        Self { values, error: (error != FALSE).then_some(error) }
    }
}

/// A bool: when it is true, false and an error.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    /// When it is true.
    pub yes: Formula,
    /// When it is false.
    pub no: Formula,
    /// When its evaluation fails.
    pub error: Formula,
}

impl Truth {
    /// As a value.
    pub fn choice(self) -> Choice {
        Choice::new(vec![(self.yes, Value::Constant(true)), (self.no, Value::Constant(false))], self.error)
    }

    /// The opposite.
    #[must_use]
    pub fn opposite(self) -> Self {
        Self { yes: self.no, no: self.yes, error: self.error }
    }
}

impl Value {
    /// The same with other elements.
    #[must_use]
    pub fn renamed(&self, names: &BTreeMap<Var, Var>, formulas: &mut Formulas) -> Self {
        let all = |of: &Rc<[Elements]>, formulas: &mut Formulas| -> Rc<[Elements]> {
            of.iter().map(|one| one.renamed(names, formulas)).collect()
        };
        match self {
            Self::Null | Self::Constant(_) | Self::Message | Self::None => self.clone(),
            Self::Holds(path) => Self::Holds(path_renamed(path, names)),
            Self::Text(term) => Self::Text(term.renamed(names)),
            Self::Int(term) => Self::Int(term.renamed(names)),
            Self::Length(of) => Self::Length(all(of, formulas)),
            Self::TextLength(term) => Self::TextLength(term.renamed(names)),
            Self::Index(term, found) => Self::Index(term.renamed(names), *found),
            Self::Other(path) => Self::Other(path_renamed(path, names)),
            Self::Object(path, of) => Self::Object(path_renamed(path, names), Rc::clone(of)),
            Self::List(of) => Self::List(all(of, formulas)),
            Self::Map(path, of) => Self::Map(path_renamed(path, names), Rc::clone(of)),
            Self::Record(of) => {
                let entry = |(key, value): (&Rc<str>, &Choice)| (Rc::clone(key), value.renamed(names, formulas));
                Self::Record(Rc::new(of.iter().map(entry).collect()))
            }
            Self::Some(of) => Self::Some(Rc::new(of.renamed(names, formulas))),
            Self::Opaque(term) => Self::Opaque(term.renamed(names)),
        }
    }
}

impl Elements {
    fn renamed(&self, names: &BTreeMap<Var, Var>, formulas: &mut Formulas) -> Self {
        Self {
            over: self.over.iter().map(|(list, var)| (path_renamed(list, names), *var)).collect(),
            guard: formulas.rename(self.guard, names),
            item: self.item.renamed(names, formulas),
        }
    }
}

impl Item {
    /// The same with other elements.
    pub fn renamed(&self, names: &BTreeMap<Var, Var>, formulas: &mut Formulas) -> Self {
        match self {
            Self::One(value) => Self::One(value.renamed(names, formulas)),
            Self::All(path, of) => Self::All(path_renamed(path, names), Rc::clone(of)),
        }
    }
}

impl Choice {
    fn renamed(&self, names: &BTreeMap<Var, Var>, formulas: &mut Formulas) -> Self {
        let value =
            |(guard, value): &(Formula, Value)| (formulas.rename(*guard, names), value.renamed(names, formulas));
        let values = self.values.iter().map(value).collect();
        Self { values, error: self.error.map(|error| formulas.rename(error, names)) }
    }
}

//! CEL to formulas. A bool becomes three formulas: when it is true, when it is false, and when its evaluation fails.
//!
//! An expression that has no rule here becomes a value of its own, the same one for the same arguments, of which nothing
//! else is assumed. So what is proved holds whatever such an expression returns.

mod access;
mod calls;
mod compare;
mod lists;
mod opaque;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use palisade_cel::ast::{Expr, Literal, Node};

use crate::{
    formula::{Atom, FALSE, Formula, Formulas, Path, Step, TRUE, Term, child},
    universe::Type,
};

pub use value::{Choice, Truth, Value};
use value::{Elements, Item};

/// Why an expression has no formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String);

pub(crate) type Result<T> = std::result::Result<T, Unsupported>;

/// The names that macros bind, the last one first.
type Scope = Vec<(Arc<str>, Value)>;

/// How deep expressions are nested, variables of the policy included.
const MOST_DEEP: usize = 2000;

pub(crate) fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Unsupported(what.into()))
}

/// Evaluates expressions for every request.
#[derive(Debug)]
pub struct Evaluator<'a> {
    /// The formulas.
    pub formulas: &'a mut Formulas,
    /// The values of names such as `object`.
    pub roots: BTreeMap<&'static str, Choice>,
    /// The policy's variables.
    pub definitions: &'a BTreeMap<String, Node>,
    /// Texts that the request has, by path.
    pub known: BTreeMap<Path, Rc<str>>,
    /// The keys of maps that an expression names. Where one is missing here, it is added, and the evaluation must begin
    /// anew.
    pub keys: &'a mut BTreeSet<Rc<str>>,
    /// Whether a key was added.
    pub grown: bool,
    /// The expressions that are not understood.
    pub opaque: BTreeSet<String>,
    variables: BTreeMap<String, Result<Choice>>,
    deep: usize,
}

impl<'a> Evaluator<'a> {
    /// One with these roots and variables.
    pub fn new(
        formulas: &'a mut Formulas,
        roots: BTreeMap<&'static str, Choice>,
        definitions: &'a BTreeMap<String, Node>,
        keys: &'a mut BTreeSet<Rc<str>>,
    ) -> Self {
        Self {
            formulas,
            roots,
            definitions,
            known: BTreeMap::new(),
            keys,
            grown: false,
            opaque: BTreeSet::new(),
            variables: BTreeMap::new(),
            deep: 0,
        }
    }

    /// When an expression of type bool is true, false and fails.
    ///
    /// # Errors
    /// Something in it that cannot even be a value of its own.
    pub fn condition(&mut self, of: &Node) -> Result<Truth> {
        self.truth_of(of, &Scope::new())
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// As [`Self::condition`].
    pub fn evaluate(&mut self, of: &Node) -> Result<Choice> {
        self.value(of, &Scope::new())
    }

    /// The value at a path of a type.
    pub fn at(&mut self, path: Path, of: &Type) -> Value {
        match of {
            Type::Text => match self.known.get(&path) {
                Some(text) => Value::Text(Term::Text(Rc::clone(text))),
                None => Value::Text(Term::At(path)),
            },
            Type::Int => Value::Int(Term::At(path)),
            Type::Bool => Value::Holds(path),
            Type::Other => Value::Other(path),
            Type::Object(fields) => Value::Object(path, Rc::clone(fields)),
            Type::List(of) => {
                let all = Elements { over: [].into(), guard: TRUE, item: Item::All(path, Rc::clone(of)) };
                Value::List([all].into())
            }
            Type::Map(of) => Value::Map(path, Rc::clone(of)),
        }
    }

    /// The value of an expression; if it has no rule, a value of its own.
    fn value(&mut self, of: &Node, scope: &Scope) -> Result<Choice> {
        if self.deep > MOST_DEEP {
            return unsupported("an expression that is nested too deeply");
        }
        self.deep += 1;
        let found = palisade_cel::with_stack(|| self.known_value(of, scope));
        self.deep -= 1;
        match found {
            Err(Unsupported(why)) => self.opaque_value(of, scope, &why),
            found => found,
        }
    }

    fn truth_of(&mut self, of: &Node, scope: &Scope) -> Result<Truth> {
        let value = self.value(of, scope)?;
        self.truth(&value)
    }

    /// A bool from a value.
    fn truth(&mut self, of: &Choice) -> Result<Truth> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for (guard, value) in &of.values {
            let holds = match value {
                Value::Constant(value) => Formulas::constant(*value),
                Value::Holds(path) => self.formulas.atom(Atom::Holds(Rc::clone(path))),
                Value::Opaque(term) => self.formulas.atom(Atom::Opaque("is true".into(), [term.clone()].into())),
                Value::Other(path) => {
                    self.formulas.atom(Atom::Opaque("is true".into(), [Term::At(Rc::clone(path))].into()))
                }
                _ => return unsupported("a value that is no bool"),
            };
            let not = self.formulas.not(holds);
            yes.push(self.formulas.and([*guard, holds]));
            no.push(self.formulas.and([*guard, not]));
        }
        Ok(Truth { yes: self.formulas.or(yes), no: self.formulas.or(no), error: of.error() })
    }

    fn known_value(&mut self, of: &Node, scope: &Scope) -> Result<Choice> {
        match &of.expr {
            Expr::Literal(literal) => match literal {
                Literal::Null => Ok(Choice::of(Value::Null)),
                Literal::Bool(value) => Ok(Choice::of(Value::Constant(*value))),
                Literal::Int(value) => Ok(Choice::of(Value::Int(Term::Int(*value)))),
                Literal::String(text) => Ok(Choice::of(Value::Text(Term::Text((&**text).into())))),
                _ => unsupported("a literal that is neither null, bool, int nor string"),
            },
            Expr::Ident(name) => match lookup(scope, name) {
                Some(value) => Ok(Choice::of(value.clone())),
                None => self.roots.get(&**name).cloned().map_or_else(|| unsupported(format!("the name {name}")), Ok),
            },
            Expr::Select { operand, field, test } => self.select(operand, field, *test, scope),
            Expr::List { elements, optional } => self.list(elements, optional, scope),
            Expr::Map(entries) => {
                let (mut record, mut errors) = (BTreeMap::new(), Vec::new());
                for entry in entries {
                    let Expr::Literal(Literal::String(key)) = &entry.key.expr else {
                        return unsupported("a map with computed keys");
                    };
                    if entry.optional {
                        return unsupported("a map with optional entries");
                    }
                    let value = self.value(&entry.value, scope)?;
                    errors.push(value.error());
                    record.insert(Rc::from(&**key), value);
                }
                let error = self.formulas.or(errors);
                let fine = self.formulas.not(error);
                Ok(Choice::new(vec![(fine, Value::Record(Rc::new(record)))], error))
            }
            Expr::Call { function, target, args } => self.call(function, target.as_deref(), args, scope),
            Expr::Struct { .. } => unsupported("a message"),
            Expr::Comprehension(_) => unsupported("an expanded macro"),
        }
    }

    /// The value of a policy's variable.
    fn variable(&mut self, name: &str) -> Result<Choice> {
        if let Some(found) = self.variables.get(name) {
            return found.clone();
        }
        let Some(definition) = self.definitions.get(name) else {
            return unsupported(format!("the variable {name}"));
        };
        let found = self.value(definition, &Scope::new());
        self.variables.insert(name.to_owned(), found.clone());
        found
    }

    /// The values of both, each with each.
    fn pairs(&mut self, one: &Choice, other: &Choice) -> (Vec<(Formula, Value, Value)>, Formula) {
        let mut pairs = Vec::new();
        for (guard, left) in &one.values {
            for (also, right) in &other.values {
                let guard = self.formulas.and([*guard, *also]);
                if guard != FALSE {
                    pairs.push((guard, left.clone(), right.clone()));
                }
            }
        }
        (pairs, self.formulas.or([one.error(), other.error()]))
    }

    /// A bool that is decided for each of several cases.
    fn decided(&mut self, cases: Vec<(Formula, Formula)>, error: Formula) -> Truth {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for (guard, holds) in cases {
            let not = self.formulas.not(holds);
            yes.push(self.formulas.and([guard, holds]));
            no.push(self.formulas.and([guard, not]));
        }
        Truth { yes: self.formulas.or(yes), no: self.formulas.or(no), error }
    }
}

/// The value of a name that a macro binds.
fn lookup<'s>(scope: &'s Scope, name: &str) -> Option<&'s Value> {
    scope.iter().rev().find(|(bound, _)| **bound == *name).map(|(_, value)| value)
}

/// A scope with one name more.
fn with(scope: &Scope, name: &Arc<str>, value: Value) -> Scope {
    scope.iter().cloned().chain([(Arc::clone(name), value)]).collect()
}

/// The path of a name such as `object`.
pub fn root(name: &str) -> Path {
    [Step::Field(name.into())].into()
}

/// The name of a field below a path.
fn field(path: &Path, name: &str) -> Path {
    child(path, Step::Field(name.into()))
}

//! Evaluates a plan, and counts its cost (cel-go `interpreter/interpretable.go` and `runtimecost.go`).
//!
//! cel-go's cost tracker observes each step and keeps a stack of values. The effect is that a call costs something if
//! all its arguments were evaluated, with or without errors.

use super::{
    Activation, Error, Evaluation, Program,
    node::{Fold, Node},
};
use crate::{
    functions::equality_cost,
    stack::with_stack,
    value::{Entries, Str, Value},
};

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

pub(super) type EvalResult<'a> = Result<Value<'a>, Error>;

/// Evaluates a program.
pub(super) fn run<'a>(program: &'a Program, activation: &Activation<'a>, limit: u64) -> Evaluation<'a> {
    let slots = std::iter::repeat_with(|| Slot::Empty).take(program.slots).collect();
    let mut machine = Machine { activation, slots, boxed: program.boxed, cost: 0, limit };
    let result = machine.eval(&program.root);
    Evaluation { result, cost: machine.cost }
}

/// Evaluates a node with constant parts.
pub(super) fn run_constant(node: &Node) -> EvalResult<'static> {
    let activation = Activation::new();
    let mut machine = Machine { activation: &activation, slots: Vec::new(), boxed: true, cost: 0, limit: u64::MAX };
    machine.eval(node).map(Value::into_owned)
}

/// The value of a variable that a fold binds.
pub(super) enum Slot<'a> {
    Empty,
    /// An accumulator that was not used yet.
    Lazy(&'a Node),
    Known(EvalResult<'a>),
}

pub(super) struct Machine<'a, 'r> {
    pub(super) activation: &'r Activation<'a>,
    pub(super) slots: Vec<Slot<'a>>,
    /// See [`Program`].
    pub(super) boxed: bool,
    pub(super) cost: u64,
    pub(super) limit: u64,
}

impl<'a> Machine<'a, '_> {
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Error::cost_limit()) } else { Ok(()) }
    }

    pub(super) fn eval(&mut self, node: &'a Node) -> EvalResult<'a> {
        match node {
            Node::Const(value) => constant(value),
            Node::Attribute(attribute) => self.attribute(attribute),
            _ => with_stack(|| self.eval_node(node)),
        }
    }

    fn eval_node(&mut self, node: &'a Node) -> EvalResult<'a> {
        match node {
            Node::Const(value) => constant(value),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Test(attribute) => self.test(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal(sides, negated) => self.equal(sides, *negated),
            Node::Call(call) => self.call(call),
            Node::NotStrictlyFalse(argument) => {
                let value = self.operand(argument)?;
                self.charge(1)?;
                Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false)))))
            }
            Node::OrElse { sides, unwrap, strict } => match self.eval(&sides[0])? {
                Value::Optional(None) => self.eval(&sides[1]),
                Value::Optional(Some(value)) if *unwrap => Value::unwrapped(&value),
                value if *strict && !matches!(value, Value::Optional(_)) => Err(Error::no_such_overload()),
                value => Ok(value),
            },
            Node::Member(element, set) => {
                let element = self.eval(element)?;
                hashable(&element)?;
                Ok(Value::Bool(set.find_exact(&element).is_some()))
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Struct(name, fields) => self.construct(name, fields),
            Node::Fold(fold) => self.fold(fold),
            Node::Watched(node, watch) => {
                let outcome = self.eval(node);
                watch.note(&outcome);
                outcome
            }
        }
    }

    /// `&&` and `||`: one term decides, whatever the errors of others.
    fn logical(&mut self, terms: &'a [Node], decisive: bool) -> EvalResult<'a> {
        let mut failure = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => {
                    failure.get_or_insert_with(Error::no_such_overload);
                }
                Err(error) if error.fatal => return Err(error),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn equal(&mut self, sides: &'a [Node; 2], negated: bool) -> EvalResult<'a> {
        let (left, right) = (self.operand(&sides[0])?, self.operand(&sides[1])?);
        let cost =
            equality_cost(left.as_ref().unwrap_or(&Value::Null), right.as_ref().unwrap_or(&Value::Null), negated);
        self.charge(cost)?;
        let equal = left?.equals(&right?);
        if negated { Ok(Value::Bool(equal != Ok(true))) } else { equal.map(Value::Bool) }
    }

    /// An operand that may have failed, if the evaluation goes on.
    pub(super) fn operand(&mut self, node: &'a Node) -> Result<EvalResult<'a>, Error> {
        match self.eval(node) {
            Err(error) if error.fatal => Err(error),
            outcome => Ok(outcome),
        }
    }

    fn list(&mut self, elements: &'a [(Node, bool)]) -> EvalResult<'a> {
        let mut values = Vec::with_capacity(elements.len());
        let filled = elements.iter().try_for_each(|(element, optional)| {
            match self.eval(element)? {
                Value::Optional(None) if *optional => {}
                Value::Optional(Some(value)) if *optional => values.push(Value::unwrapped(&value)?),
                value if *optional => {
                    let text = format!("cannot initialize optional list element from non-optional value {value}");
                    return Err(Error::new(text));
                }
                value => values.push(value),
            }
            Ok(())
        });
        self.constructed(filled, LIST_COST)?;
        Ok(values.into())
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> EvalResult<'a> {
        let mut values = Entries::default();
        let filled = entries.iter().try_for_each(|(key, value, optional)| {
            let (key, value) = (self.eval(key)?, self.eval(value)?);
            let value = match value {
                Value::Optional(value) if *optional => value.map(|value| Value::unwrapped(&value)).transpose()?,
                value if *optional => {
                    let text = format!("cannot initialize optional entry '{key}' from non-optional value {value}");
                    return Err(Error::new(text));
                }
                value => Some(value),
            };
            hashable(&key)?;
            match value {
                Some(value) => values.insert(key, value),
                None => values.remove(&key),
            }
            Ok(())
        });
        self.constructed(filled, MAP_COST)?;
        Ok(values.into())
    }

    /// Making a list or map costs even if it fails.
    pub(super) fn constructed(&mut self, filled: Result<(), Error>, cost: u64) -> Result<(), Error> {
        if !matches!(&filled, Err(error) if error.fatal) {
            self.charge(cost)?;
        }
        filled
    }

    fn fold(&mut self, fold: &'a Fold) -> EvalResult<'a> {
        let range = self.eval(&fold.range)?;
        self.slots[fold.slot] = Slot::Lazy(&fold.init);
        match range {
            Value::List(list) => {
                for (index, element) in list.iter().enumerate() {
                    let (first, second) = if fold.two {
                        (Value::Int(i64::try_from(index).unwrap_or(i64::MAX)), element)
                    } else {
                        (element, Value::Null)
                    };
                    if !self.iterate(fold, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, value) in map.entries() {
                    if !self.iterate(fold, key, value)? {
                        break;
                    }
                }
            }
            other if fold.two => {
                return Err(Error::new(format!("unsupported comprehension range type: {}", other.go_type())));
            }
            other => return Err(Error::new(format!("got '{}', expected iterable type", other.go_type()))),
        }
        self.slots[fold.slot + 1] = Slot::Empty;
        self.slots[fold.slot + 2] = Slot::Empty;
        self.eval(&fold.result)
    }

    /// Whether to go on.
    fn iterate(&mut self, fold: &'a Fold, first: Value<'a>, second: Value<'a>) -> Result<bool, Error> {
        self.slots[fold.slot + 1] = Slot::Known(Ok(first));
        if fold.two {
            self.slots[fold.slot + 2] = Slot::Known(Ok(second));
        }
        if let Ok(Value::Bool(false)) = self.operand(&fold.condition)? {
            return Ok(false);
        }
        let next = self.operand(&fold.step)?;
        self.slots[fold.slot] = Slot::Known(next);
        Ok(true)
    }
}

fn constant<'a>(value: &'a Result<Value<'static>, Error>) -> EvalResult<'a> {
    match value {
        Ok(Value::String(text)) => Ok(Value::String(Str::Borrowed(text))),
        value => value.clone(),
    }
}

/// Go panics if bytes are to be the key of a map.
fn hashable(key: &Value<'_>) -> Result<(), Error> {
    match key {
        Value::Bytes(_) => Err(Error::fatal("internal error: runtime error: hash of unhashable type types.Bytes")),
        _ => Ok(()),
    }
}

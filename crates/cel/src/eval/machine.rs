//! Evaluating a plan, and counting what it costs (cel-go `interpreter/interpretable.go` and `runtimecost.go`).
//!
//! cel-go's cost tracker observes each step and keeps a stack of values. What comes of it is: a call costs if all its
//! arguments were evaluated, errors or not.

use super::{
    Activation, Error, Evaluation,
    node::{Attribute, Base, Call, Fold, Key, Node, Qualifier, RegexFunction, Target},
};
use crate::{
    functions::{Cost, Overload, equality_cost},
    library::re2::Regex,
    stack::with_stack,
    value::{Entries, List, Map, Str, Value, lossless_int},
};

const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

type Outcome<'a> = Result<Value<'a>, Error>;

/// Evaluates a program.
pub(super) fn run<'a>(root: &'a Node, slots: usize, activation: &Activation<'a>, limit: u64) -> Evaluation<'a> {
    let slots = std::iter::repeat_with(|| Slot::Empty).take(slots).collect();
    let mut machine = Machine { activation, slots, cost: 0, limit };
    let result = machine.eval(root);
    Evaluation { result, cost: machine.cost }
}

/// Evaluates a node whose parts are constants.
pub(super) fn run_constant(node: &Node) -> Outcome<'static> {
    run(node, 0, &Activation::new(), u64::MAX).result.map(Value::into_owned)
}

/// The value of a variable that a fold binds.
enum Slot<'a> {
    Empty,
    /// An accumulator that was not used yet.
    Lazy(&'a Node),
    Known(Outcome<'a>),
}

struct Machine<'a, 'r> {
    activation: &'r Activation<'a>,
    slots: Vec<Slot<'a>>,
    cost: u64,
    limit: u64,
}

impl<'a> Machine<'a, '_> {
    fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Error::cost_limit()) } else { Ok(()) }
    }

    fn eval(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Const(value) => constant(value),
            Node::Attribute(attribute) => self.attribute(attribute),
            _ => with_stack(|| self.eval_node(node)),
        }
    }

    fn eval_node(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Const(value) => constant(value),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::Test(attribute) => self.test(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal(sides, negated) => self.equal(sides, *negated),
            Node::Call(call) => self.call(call),
            Node::NotStrictlyFalse(argument) => {
                let value = self.eval(argument);
                self.charge(1)?;
                match value {
                    Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
                    Err(error) if error.fatal => Err(error),
                    _ => Ok(Value::Bool(true)),
                }
            }
            Node::OrElse(sides, unwrap) => match self.eval(&sides[0])? {
                Value::Optional(None) => self.eval(&sides[1]),
                Value::Optional(Some(value)) if *unwrap => Ok(Value::clone(&value)),
                value => Ok(value),
            },
            Node::Member(element, set) => {
                let element = self.eval(element)?;
                hashable(&element)?;
                Ok(Value::Bool(set.find_exact(&element).is_some()))
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// `&&` and `||`: one term decides, whatever the errors of others.
    fn logical(&mut self, terms: &'a [Node], decisive: bool) -> Outcome<'a> {
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

    fn equal(&mut self, sides: &'a [Node; 2], negated: bool) -> Outcome<'a> {
        let (left, right) = (self.operand(&sides[0])?, self.operand(&sides[1])?);
        let cost =
            equality_cost(left.as_ref().unwrap_or(&Value::Null), right.as_ref().unwrap_or(&Value::Null), negated);
        self.charge(cost)?;
        let equal = left?.equals(&right?);
        if negated { Ok(Value::Bool(equal != Ok(true))) } else { equal.map(Value::Bool) }
    }

    /// An operand that may have failed, if the evaluation goes on.
    fn operand(&mut self, node: &'a Node) -> Result<Outcome<'a>, Error> {
        match self.eval(node) {
            Err(error) if error.fatal => Err(error),
            outcome => Ok(outcome),
        }
    }

    fn list(&mut self, elements: &'a [(Node, bool)]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        let mut failure = None;
        for (index, (element, optional)) in elements.iter().enumerate() {
            let value = match self.eval(element) {
                Ok(value) => value,
                Err(error) => return self.constructed(error, index + 1 == elements.len(), LIST_COST),
            };
            match value {
                Value::Optional(None) if *optional => {}
                Value::Optional(Some(value)) if *optional => values.push(Value::clone(&value)),
                value if *optional => {
                    let text = format!("cannot initialize optional list element from non-optional value {value}");
                    failure = Some((Error::new(text), index));
                    break;
                }
                value => values.push(value),
            }
        }
        if let Some((error, index)) = failure {
            return self.constructed(error, index + 1 == elements.len(), LIST_COST);
        }
        self.charge(LIST_COST)?;
        Ok(values.into())
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Outcome<'a> {
        let mut values = Entries::default();
        for (index, (key, value, optional)) in entries.iter().enumerate() {
            let last = index + 1 == entries.len();
            let key = match self.eval(key) {
                Ok(key) => key,
                Err(error) => return self.constructed(error, false, MAP_COST),
            };
            let value = match self.eval(value) {
                Ok(value) => value,
                Err(error) => return self.constructed(error, last, MAP_COST),
            };
            let value = match value {
                Value::Optional(None) if *optional => {
                    hashable(&key)?;
                    values.remove(&key);
                    continue;
                }
                Value::Optional(Some(value)) if *optional => Value::clone(&value),
                value if *optional => {
                    let text = format!("cannot initialize optional entry '{key}' from non-optional value {value}");
                    return self.constructed(Error::new(text), last, MAP_COST);
                }
                value => value,
            };
            hashable(&key)?;
            values.insert(key, value);
        }
        self.charge(MAP_COST)?;
        Ok(Value::Map(Map::Entries(values.into())))
    }

    /// Making a list or map costs even if it fails.
    fn constructed(&mut self, error: Error, _complete: bool, cost: u64) -> Outcome<'a> {
        if !error.fatal {
            self.charge(cost)?;
        }
        Err(error)
    }

    // Attributes.

    fn attribute(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let value = self.resolve(attribute);
        if matches!(&value, Err(error) if error.fatal) {
            return value;
        }
        // A conditional has no cost of its own.
        if !matches!(attribute.base, Base::Conditional(..)) {
            self.charge(1)?;
        }
        value
    }

    fn test(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let value = self.resolve(attribute);
        if matches!(&value, Err(error) if error.fatal) {
            return value;
        }
        if matches!(attribute.base, Base::Conditional(..)) {
            self.cost = self.cost.wrapping_sub(1);
        }
        match value? {
            Value::Optional(value) => Ok(Value::Bool(value.is_some())),
            value => Ok(value),
        }
    }

    fn resolve(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let base = match &attribute.base {
            Base::Global(name) => {
                self.activation.get(name).ok_or_else(|| Error::new(format!("no such attribute(s): {name}")))?
            }
            Base::Local(slot) => self.local(*slot)?,
            Base::Relative(node) => self.eval(node)?,
            Base::Conditional(condition, branches) => match self.eval(condition)? {
                Value::Bool(true) => self.resolve_deep(&branches[0])?,
                Value::Bool(false) => self.resolve_deep(&branches[1])?,
                _ => return Err(Error::no_such_overload()),
            },
        };
        if attribute.qualifiers.is_empty() { Ok(base) } else { self.qualify_all(base, &attribute.qualifiers) }
    }

    fn resolve_deep(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        with_stack(|| self.resolve(attribute))
    }

    fn qualify_all(&mut self, mut value: Value<'a>, qualifiers: &'a [Qualifier]) -> Outcome<'a> {
        let mut optional = false;
        if let Value::Optional(inner) = &value {
            let Some(inner) = inner else { return Ok(value) };
            optional = true;
            value = Value::clone(inner);
        }
        for qualifier in qualifiers {
            optional |= qualifier.optional;
            match self.qualify(&value, &qualifier.key, optional)? {
                Some(found) => value = found,
                None => return Ok(Value::Optional(None)),
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// One step into a value. With an optional step, what is absent is not an error and costs nothing.
    fn qualify(&mut self, value: &Value<'a>, key: &'a Key, optional: bool) -> Result<Option<Value<'a>>, Error> {
        let found = match key {
            Key::Const(key) => self.find(value, key, optional),
            Key::Test(key) => {
                let found = self.find(value, key, true);
                if optional { found } else { found.map(|found| Some(Value::Bool(found.is_some()))) }
            }
            Key::Dynamic(key) => match self.resolve_deep(key) {
                Ok(key) => qualifier(&key).and_then(|()| self.find(value, &key, optional)),
                Err(error) => Err(error),
            },
        };
        if matches!(&found, Err(error) if error.fatal) {
            return found;
        }
        if !optional || matches!(found, Ok(Some(_))) {
            self.charge(1)?;
        }
        found
    }

    /// What a list or map has at a key (cel-go `refQualify`).
    fn find(&mut self, value: &Value<'a>, key: &Value<'_>, optional: bool) -> Result<Option<Value<'a>>, Error> {
        let found = match value {
            Value::Map(Map::Variables) => self.activation.composed(key)?,
            Value::Map(map) => map.get(key),
            Value::List(list) => {
                let index = index(key)?;
                let found = usize::try_from(index).ok().and_then(|index| list.get(index));
                if found.is_none() && !optional {
                    return Err(Error::new(format!("index out of bounds: {key}")));
                }
                found
            }
            _ => None,
        };
        if found.is_none() && !optional {
            return Err(Error::new(format!("no such key: {key}")));
        }
        Ok(found)
    }

    fn local(&mut self, slot: usize) -> Outcome<'a> {
        self.force(slot)?;
        match &self.slots[slot] {
            Slot::Known(outcome) => outcome.clone(),
            _ => Err(Error::new("no such attribute(s): ")),
        }
    }

    /// Evaluates an accumulator's first value, if nobody has.
    fn force(&mut self, slot: usize) -> Result<(), Error> {
        if let Slot::Lazy(init) = &self.slots[slot] {
            let init: &'a Node = init;
            let outcome = self.operand(init)?;
            self.slots[slot] = Slot::Known(outcome);
        }
        Ok(())
    }

    // Calls.

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        let mut few: [Value<'a>; 4] = Default::default();
        let mut many;
        let args = if call.args.len() <= few.len() {
            &mut few[..call.args.len()]
        } else {
            many = vec![Value::Null; call.args.len()];
            &mut many[..]
        };
        let mut failure = None;
        for (index, (node, arg)) in call.args.iter().zip(args.iter_mut()).enumerate() {
            let outcome = match call.consumes {
                Some(slot) if index == 0 => self.consume(slot),
                _ => self.eval(node),
            };
            match outcome {
                Ok(value) => *arg = value,
                Err(error) if error.fatal => return Err(error),
                // Without the values of all arguments cel-go's tracker knows no cost.
                Err(error) if call.sequential && index + 1 < call.args.len() => return Err(error),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        let cost = match call.cost {
            Cost::Fixed(cost) => cost,
            Cost::Arguments(cost) => cost(args),
            Cost::Result(_) => 0,
        };
        let result = match failure {
            Some(error) => Err(error),
            None => dispatch(call, args),
        };
        if matches!(&result, Err(error) if error.fatal) {
            return result;
        }
        let cost = match call.cost {
            Cost::Result(cost) => cost(result.as_ref().unwrap_or(&Value::Null)),
            _ => cost,
        };
        self.charge(cost)?;
        result
    }

    /// The value of an accumulator, which its slot loses: the call makes the next one of it, in place if it can.
    fn consume(&mut self, slot: usize) -> Outcome<'a> {
        self.force(slot)?;
        self.charge(1)?;
        match std::mem::replace(&mut self.slots[slot], Slot::Empty) {
            Slot::Known(outcome) => outcome,
            _ => Err(Error::new("no such attribute(s): @result")),
        }
    }

    // Comprehensions.

    fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
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
                for (key, value) in map.iter() {
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

fn constant<'a>(value: &'a Result<Value<'static>, Error>) -> Outcome<'a> {
    match value {
        Ok(Value::String(text)) => Ok(Value::String(Str::Borrowed(text))),
        value => value.clone(),
    }
}

fn index(key: &Value<'_>) -> Result<i64, Error> {
    let index = match key {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) => lossless_int(*index),
        other => {
            return Err(Error::new(format!("unsupported index type '{}' in list", other.type_name())));
        }
    };
    index.ok_or_else(|| Error::new(format!("unsupported index value {key} in list")))
}

/// Whether a value that was computed may be a key or index.
fn qualifier(key: &Value<'_>) -> Result<(), Error> {
    let name = match key {
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => return Ok(()),
        Value::Null => "<nil>",
        Value::List(List::Json(_)) => "[]interface {}",
        Value::Map(Map::Json(_)) => "map[string]interface {}",
        other => other.go_type(),
    };
    Err(Error::new(format!("invalid qualifier type: {name}")))
}

/// Go panics if bytes are to be the key of a map.
fn hashable(key: &Value<'_>) -> Result<(), Error> {
    match key {
        Value::Bytes(_) => Err(Error::fatal("internal error: runtime error: hash of unhashable type types.Bytes")),
        _ => Ok(()),
    }
}

fn dispatch<'a>(call: &'a Call, args: &mut [Value<'a>]) -> Outcome<'a> {
    let overload = match &call.target {
        Target::Dynamic(eval) => return eval(args),
        Target::Regex(function, regex) => return matched(*function, regex, args),
        Target::Exact(overload) => overload.accepts(args).then_some(overload),
        Target::ByName(overloads) => overloads.iter().find(|overload| overload.accepts(args)),
    };
    match overload {
        Some(Overload { eval: Some(eval), .. }) => eval(args),
        _ => {
            let types: Vec<&str> = args.iter().map(Value::type_name).collect();
            Err(Error::new(format!("no such overload: {}({})", call.function, types.join(", "))))
        }
    }
}

/// A call with a regular expression that was compiled before.
fn matched<'a>(function: RegexFunction, regex: &Regex, args: &[Value<'a>]) -> Outcome<'a> {
    let Some(text) = args.first().and_then(Value::as_str) else { return Err(Error::no_such_overload()) };
    match (function, args.get(2)) {
        (RegexFunction::Matches, None) => Ok(Value::Bool(regex.is_match(text))),
        (RegexFunction::Find, None) => Ok(regex.find(text).unwrap_or_default().to_owned().into()),
        (RegexFunction::FindAll, None) => Ok(texts(regex.find_all(text, -1))),
        (RegexFunction::FindAll, Some(Value::Int(limit))) => Ok(texts(regex.find_all(text, *limit))),
        _ => Err(Error::no_such_overload()),
    }
}

fn texts<'a>(texts: Vec<&str>) -> Value<'a> {
    texts.into_iter().map(|text| Value::from(text.to_owned())).collect::<Vec<_>>().into()
}

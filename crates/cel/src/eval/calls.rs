//! Calls of functions.

use super::{
    Error,
    machine::{EvalResult, Machine, Slot},
    node::{Call, RegexFunction, Target},
};
use crate::{
    functions::{Cost, Overload, texts},
    library::re2::Regex,
    value::Value,
};

/// Types of Go with a method Add.
const ADDERS: &[&str] =
    &["types.Bytes", "types.Double", "types.Duration", "types.Int", "types.String", "types.Timestamp", "types.Uint"];

impl<'a> Machine<'a, '_> {
    pub(super) fn call(&mut self, call: &'a Call) -> EvalResult<'a> {
        let mut few: [Value<'a>; 4] = Default::default();
        let mut many;
        let args = if call.args.len() <= few.len() {
            &mut few[..call.args.len()]
        } else {
            many = vec![Value::Null; call.args.len()];
            &mut many[..]
        };
        let (mut failure, mut failed) = (None, 0_u32);
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
                    failed |= 1 << index.min(31);
                    failure.get_or_insert(error);
                }
            }
        }
        let cost = match call.cost {
            Cost::Fixed(cost) => Ok(cost),
            Cost::Arguments(cost) => Ok(cost(args)),
            Cost::List(index, cost) => match args.get(index) {
                Some(Value::List(list)) => Ok(cost(list)),
                value => Err(match value {
                    Some(value) if failed & (1 << index) == 0 => value.go_type(),
                    _ => "*types.Err",
                }),
            },
            Cost::Result(_) => Ok(0),
        };
        let result = match failure {
            Some(error) => Err(error),
            None => dispatch(call, args),
        };
        if matches!(&result, Err(error) if error.fatal) {
            return result;
        }
        let cost = match (call.cost, cost) {
            (Cost::Result(cost), _) => cost(result.as_ref().unwrap_or(&Value::Null)),
            (_, Ok(cost)) => cost,
            (_, Err(name)) => {
                // Go names the first method that the type does not have.
                let method = if ADDERS.contains(&name) { "Contains" } else { "Add" };
                let text = format!(
                    "internal error: interface conversion: {name} is not traits.Lister: missing method {method}"
                );
                return Err(Error::fatal(text));
            }
        };
        self.charge(cost)?;
        result
    }

    /// The value of an accumulator, which its slot loses: the call makes the next one of it, in place if it can.
    pub(super) fn consume(&mut self, slot: usize) -> EvalResult<'a> {
        self.force(slot)?;
        self.charge(1)?;
        match std::mem::replace(&mut self.slots[slot], Slot::Empty) {
            Slot::Known(outcome) => outcome,
            _ => Err(Error::new("no such attribute(s): @result")),
        }
    }
}

fn dispatch<'a>(call: &'a Call, args: &mut [Value<'a>]) -> EvalResult<'a> {
    let overload = match &call.target {
        Target::Dynamic(eval) => return eval(args),
        Target::Regex(function, regex) => return matched(*function, regex, args),
        Target::Exact(overload) => overload.accepts(args).then_some(overload),
        Target::ByName(overloads) => overloads.iter().find(|overload| overload.accepts(args)),
    };
    if let Some(Overload { eval: Some(eval), .. }) = overload {
        return eval(args);
    }
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    Err(Error::new(format!("no such overload: {}({})", call.function, types.join(", "))))
}

/// A call with a regular expression that was compiled before.
fn matched<'a>(function: RegexFunction, regex: &Regex, args: &[Value<'a>]) -> EvalResult<'a> {
    let Some(text) = args.first().and_then(Value::as_str) else { return Err(Error::no_such_overload()) };
    match (function, args.get(2)) {
        (RegexFunction::Matches, None) => Ok(Value::Bool(regex.is_match(text))),
        (RegexFunction::Find, None) => Ok(regex.find(text).unwrap_or_default().to_owned().into()),
        (RegexFunction::FindAll, None) => Ok(texts(regex.find_all(text, -1))),
        (RegexFunction::FindAll, Some(Value::Int(limit))) => Ok(texts(regex.find_all(text, *limit))),
        _ => Err(Error::no_such_overload()),
    }
}

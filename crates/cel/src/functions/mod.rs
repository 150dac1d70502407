//! The function library as tables. One row is one overload: its types, the Kubernetes minor that brought it, how it is
//! evaluated and what that costs. The checker, the evaluator and the documentation read the same rows; adding a
//! function means adding rows in one file of this folder.

#![expect(clippy::unnecessary_wraps, reason = "the functions of all rows have the same type")]

pub mod authorizer;
pub mod cidr;
pub mod comprehensions;
mod conversions;
mod cost;
pub(crate) mod estimate;
pub mod ext_lists;
pub mod format;
pub mod ip;
pub mod jsonpatch;
pub mod lists;
pub mod lists_v1;
mod operators;
pub mod optionals;
pub mod quantity;
pub mod regex;
pub mod semver;
pub mod sets;
pub mod stdlib;
pub mod strings;
mod time;
pub mod url;

use std::{collections::BTreeMap, sync::OnceLock};

pub(crate) use cost::equality as equality_cost;
pub use estimate::Estimate;

use crate::{
    types::Decl,
    value::{Error, List, Value},
};

/// The functions that compare two values of a type, given how an argument is taken for one.
macro_rules! comparisons {
    ($argument:ident) => {
        fn compared(args: &[Value<'_>]) -> Result<std::cmp::Ordering, Error> {
            Ok($argument(args, 0)?.compare($argument(args, 1)?))
        }

        fn is_greater_than<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
            Ok(compared(args)?.is_gt().into())
        }

        fn is_less_than<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
            Ok(compared(args)?.is_lt().into())
        }

        fn compare_to<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
            Ok(Value::Int(compared(args)? as i64))
        }
    };
}
use comparisons;

/// All functions, library by library in the order in which the API server adds them (apiserver
/// `pkg/cel/environment/base.go`). A name may come in several libraries: its overloads follow one another in this order.
pub const LIBRARIES: &[&[Function]] = &[
    stdlib::FUNCTIONS,
    url::FUNCTIONS,
    regex::FUNCTIONS,
    lists::FUNCTIONS,
    authorizer::FUNCTIONS,
    optionals::FUNCTIONS,
    quantity::FUNCTIONS,
    strings::FUNCTIONS,
    sets::FUNCTIONS,
    ip::FUNCTIONS,
    cidr::FUNCTIONS,
    format::FUNCTIONS,
    comprehensions::FUNCTIONS,
    semver::FUNCTIONS,
    ext_lists::FUNCTIONS,
    lists_v1::FUNCTIONS,
];

/// How a call is evaluated: from the arguments, which it may take, the receiver first.
pub type Eval = for<'a> fn(&mut [Value<'a>]) -> Result<Value<'a>, Error>;

type EvalResult<'a> = Result<Value<'a>, Error>;

/// The cost of a call at run time. Failed arguments and results are null here.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// Always the same.
    Fixed(u64),
    /// By the arguments.
    Arguments(fn(&[Value<'_>]) -> u64),
    /// By the argument at an index, which must be a list: cel-go's tracker panics if it is not.
    List(usize, fn(&List<'_>) -> u64),
    /// By the result.
    Result(fn(&Value<'_>) -> u64),
}

/// A function by name, with its overloads in one library.
#[derive(Debug)]
pub struct Function {
    /// The name as the syntax tree has it (`size`, `_+_`, `ip.isCanonical`).
    pub name: &'static str,
    /// In the order in which cel-go declares them: it is the order of inference and of error messages.
    pub overloads: &'static [Overload],
    /// If the function looks at the types of its arguments itself, whatever overload the checker found: its evaluation
    /// (cel-go's singleton bindings, and those without type guards).
    pub dynamic: Option<Eval>,
    /// The cost of a call, whatever the overload (apiserver `pkg/cel/library/cost.go`); `None` means 1.
    pub cost: Option<Cost>,
    /// The estimated cost of a call, whatever the overload; `None` means 1, or that the estimate itself handles the
    /// function.
    pub estimate: Option<Estimate>,
}

impl Function {
    const fn new(name: &'static str, overloads: &'static [Overload]) -> Self {
        Self { name, overloads, dynamic: None, cost: None, estimate: None }
    }

    const fn dynamic(mut self, eval: Eval) -> Self {
        self.dynamic = Some(eval);
        self
    }

    const fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    const fn estimate(mut self, estimate: Estimate) -> Self {
        self.estimate = Some(estimate);
        self
    }
}

/// One overload of a function.
#[derive(Debug)]
pub struct Overload {
    /// cel-go's id (`size_string`).
    pub id: &'static str,
    /// Whether it is called on a receiver (`x.f()`), which is then the first of `args`.
    pub member: bool,
    /// The types of the arguments, the receiver first.
    pub args: &'static [Decl],
    /// The type of the result.
    pub result: Decl,
    /// The first minor of Kubernetes 1.x with it; the environment for new expressions is that of the minor before the
    /// server's. 0 means "always".
    pub since: u8,
    /// The last minor of the server itself with it, if its cel-go removed it, whatever the environment.
    pub until: Option<u8>,
    /// The first minor of the server itself that has it in this form. 0 is "always".
    pub from: u8,
    /// Whether arguments behind one that fails are not evaluated, as of all with more than two arguments.
    pub sequential: bool,
    /// The implementation for arguments of these types; `None` if the function is [`Function`]`::dynamic`, or a part of
    /// the language that the evaluator implements directly.
    pub eval: Option<Eval>,
    /// The cost of a call if the checker has selected this overload (cel-go `interpreter/runtimecost.go`, `ext`).
    pub cost: Option<Cost>,
}

impl Overload {
    const fn new(id: &'static str, member: bool, args: &'static [Decl], result: Decl) -> Self {
        Self { id, member, args, result, since: 0, until: None, from: 0, sequential: false, eval: None, cost: None }
    }

    const fn since(mut self, minor: u8) -> Self {
        self.since = minor;
        self
    }

    const fn until(mut self, minor: u8) -> Self {
        self.until = Some(minor);
        self
    }

    const fn from(mut self, minor: u8) -> Self {
        self.from = minor;
        self
    }

    const fn sequential(mut self) -> Self {
        self.sequential = true;
        self
    }

    const fn eval(mut self, eval: Eval) -> Self {
        self.eval = Some(eval);
        self
    }

    const fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Whether the environment of a minor (`level`) has it on a server of a minor.
    pub fn is_present(&self, level: u8, server: u8) -> bool {
        self.since <= level && self.from <= server && self.until.is_none_or(|until| server <= until)
    }

    /// Whether the arguments have its types, as far as these are known at run time: for lists and maps only the first
    /// element counts (cel-go `Type.IsAssignableRuntimeType`).
    pub(crate) fn accepts(&self, args: &[Value<'_>]) -> bool {
        self.args.len() == args.len() && self.args.iter().zip(args).all(|(decl, value)| decl.accepts(value))
    }
}

impl Decl {
    fn accepts(self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Dyn | Self::Param(_), _)
            | (Self::Null, Value::Null)
            | (Self::Bool, Value::Bool(_))
            | (Self::Int, Value::Int(_))
            | (Self::Uint, Value::Uint(_))
            | (Self::Double, Value::Double(_))
            | (Self::String, Value::String(_))
            | (Self::Bytes, Value::Bytes(_))
            | (Self::Timestamp, Value::Timestamp(_))
            | (Self::Duration, Value::Duration(_))
            | (Self::Optional(_), Value::Optional(_))
            | (Self::Type(_), Value::Type(_)) => true,
            (Self::List(of), Value::List(list)) => list.get(0).is_none_or(|element| of.accepts(&element)),
            (Self::Map(key, of), Value::Map(map)) => {
                map.entries().next().is_none_or(|(first, value)| key.accepts(&first) && of.accepts(&value))
            }
            (Self::Object(name) | Self::Opaque(name), Value::Opaque(opaque)) => opaque.type_name() == name,
            _ => false,
        }
    }
}

/// The properties that all overloads of a function share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Properties {
    pub dynamic: Option<Eval>,
    pub cost: Option<Cost>,
    pub estimate: Option<Estimate>,
}

/// The properties of a function of any library.
pub(crate) fn properties(name: &str) -> Properties {
    static ALL: OnceLock<BTreeMap<&'static str, Properties>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut all: BTreeMap<&'static str, Properties> = BTreeMap::new();
        for function in LIBRARIES.iter().copied().flatten() {
            let known = all.entry(function.name).or_default();
            known.dynamic = known.dynamic.or(function.dynamic);
            known.cost = known.cost.or(function.cost);
            known.estimate = known.estimate.or(function.estimate);
        }
        all
    });
    all.get(name).copied().unwrap_or_default()
}

/// A row: an overload that is called as `f(x)`.
const fn function(id: &'static str, args: &'static [Decl], result: Decl) -> Overload {
    Overload::new(id, false, args, result)
}

/// A row: an overload that is called as `x.f()`.
const fn member(id: &'static str, args: &'static [Decl], result: Decl) -> Overload {
    Overload::new(id, true, args, result)
}

/// Type parameters by the names that cel-go gives them.
const A: Decl = Decl::Param("A");
const B: Decl = Decl::Param("B");
const K: Decl = Decl::Param("K");
const T: Decl = Decl::Param("T");
const V: Decl = Decl::Param("V");

// Arguments, whose types were looked at before a call.

fn take<'a>(args: &mut [Value<'a>], index: usize) -> Value<'a> {
    std::mem::take(&mut args[index])
}

fn text<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v str, Error> {
    args[index].as_str().ok_or_else(Error::no_such_overload)
}

fn int(args: &[Value<'_>], index: usize) -> Result<i64, Error> {
    match args[index] {
        Value::Int(value) => Ok(value),
        _ => Err(Error::no_such_overload()),
    }
}

fn list<'v, 'a>(args: &'v [Value<'a>], index: usize) -> Result<&'v List<'a>, Error> {
    match &args[index] {
        Value::List(list) => Ok(list),
        _ => Err(Error::no_such_overload()),
    }
}

/// A list of texts.
pub(crate) fn texts<'a>(texts: Vec<&str>) -> Value<'a> {
    texts.into_iter().map(|text| Value::from(text.to_owned())).collect::<Vec<_>>().into()
}

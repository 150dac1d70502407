//! A call whose cost is estimated: what is known of its arguments.

use std::sync::Arc;

use super::{path::Path, range::Range};
use crate::{Minor, ast::Node, functions::Overload, types::Type};

/// How large the values of the input are.
pub trait Sizes {
    /// The maximum number of elements, entries or characters of the value at a path, if it is known.
    ///
    /// The first step of the path is a variable, each other step is a field, `@items`, `@keys`, `@values` or
    /// `@indices`. The path of a field of a call's result begins with that field, which cel-go mistakes for a variable.
    fn most(&self, path: &[Arc<str>]) -> Option<u64>;
}

/// Nothing is known of the input: any text may have any length.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownSizes;

impl Sizes for UnknownSizes {
    fn most(&self, _: &[Arc<str>]) -> Option<u64> {
        None
    }
}

/// The cost of a call without its arguments, and the size of its result, if it is known.
#[derive(Clone, Copy, Debug)]
pub struct CallEstimate {
    pub(crate) cost: Range,
    pub(crate) size: Option<Range>,
}

impl CallEstimate {
    /// An estimate with the size of the result.
    pub(crate) fn sized(cost: Range, size: Range) -> Self {
        Self { cost, size: Some(size) }
    }
}

impl From<Range> for CallEstimate {
    fn from(cost: Range) -> Self {
        Self { cost, size: None }
    }
}

/// An argument of a call whose cost is estimated, or its receiver.
#[derive(Debug)]
pub(crate) struct Arg<'c> {
    /// The node; none for the elements of a list.
    pub(crate) node: Option<&'c Node>,
    pub(crate) of: &'c Type,
    pub(crate) path: Option<Path>,
    /// Its size, as far as the expression and the input determine it; before Kubernetes 1.33 only the expression.
    pub(crate) size: Option<Range>,
}

impl Arg<'_> {
    /// An element of this list, known only by its path; none if it is not a list. The key of a map, and the value of an
    /// optional, count as well.
    pub(crate) fn element(&self) -> Option<Arg<'_>> {
        let (Type::List(of) | Type::Map(of, _) | Type::Optional(of) | Type::Type(of)) = self.of else { return None };
        Some(Arg { node: None, of, path: self.path.as_ref().map(|path| path.copied("@items")), size: None })
    }
}

/// A call to estimate.
pub struct Call<'c> {
    pub(crate) overload: &'static Overload,
    pub(crate) minor: Minor,
    pub(crate) target: Option<&'c Arg<'c>>,
    pub(crate) args: &'c [Arg<'c>],
    pub(crate) sizes: &'c dyn Sizes,
}

impl Call<'_> {
    /// The size of an argument, as kube-apiserver determines it. If the expression does not determine it, the input may.
    pub(crate) fn size(&self, arg: &Arg<'_>) -> Range {
        arg.size.or_else(|| self.asked(arg)).unwrap_or(Range::UNKNOWN)
    }

    /// The size of an argument, as cel-go determines it.
    pub(crate) fn known(&self, arg: &Arg<'_>) -> Range {
        let missing = || {
            let is_older = self.minor < Minor::V1_33;
            let of_type = || is_scalar(arg.of, self.minor).then_some(Range::fixed(1));
            is_older.then(|| self.asked(arg).or_else(of_type)).flatten()
        };
        arg.size.or_else(missing).unwrap_or(Range::UNKNOWN)
    }

    fn asked(&self, arg: &Arg<'_>) -> Option<Range> {
        Some(Range { min: 0, max: self.sizes.most(&arg.path.as_ref()?.steps())? })
    }
}

/// Whether all values of a type are of the same size.
pub(crate) fn is_scalar(of: &Type, minor: Minor) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(of) => minor >= Minor::V1_33 && is_scalar(of, minor),
        _ => false,
    }
}

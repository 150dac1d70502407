//! The variables of macros, and what is known of them.

use crate::{
    ast::{Comprehension, Expr, Literal},
    functions::estimate::{Path, Range},
};

/// How large keys and values of a container are.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    pub is_list: bool,
    pub key: Range,
    pub value: Range,
}

#[derive(Clone, Default)]
pub(super) struct Local {
    pub path: Option<Path>,
    /// The step from the path of the range; each use of the variable takes it anew. Before 1.33.
    pub step: Option<&'static str>,
    pub size: Option<Range>,
    pub entries: Option<Entries>,
}

impl Local {
    pub fn path(&self) -> Option<Path> {
        match self.step {
            Some(step) => Some(self.path.as_ref().map_or_else(|| Path::new(step), |path| path.then(step))),
            None => self.path.clone(),
        }
    }
}

/// The part of an iterated value that a variable is bound to.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Key,
    Value,
    /// The element of a list, the key of a map.
    Single,
}

/// Whether this is the expansion of `optMap`: it binds a name without iteration.
pub(super) fn is_bind(of: &Comprehension) -> bool {
    matches!(&of.range.expr, Expr::List { elements, .. } if elements.is_empty())
        && matches!(of.condition.expr, Expr::Literal(Literal::Bool(false)))
        && &*of.accumulator != "__result__"
}

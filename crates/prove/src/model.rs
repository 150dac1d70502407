//! A solution as a request.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use crate::{
    formula::{Atom, Path, Step},
    search::Solution,
};

/// A request, as far as a formula speaks of it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `object`, `oldObject`, `request`, `params` and `namespaceObject`.
    pub variables: Map<String, Json>,
    /// The expressions whose values it assumes.
    pub doubts: BTreeSet<String>,
}

impl Request {
    pub(crate) fn of(_solution: &Solution) -> Self {
        Self::default()
    }
}

#[allow(dead_code, reason = "the steps of the decoder")]
fn step(_: &Path, _: &Step, _: &Atom) {}

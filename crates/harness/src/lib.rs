//! What kube-apiserver would do, offline: with policies and requests ([`admission`]), and with a compiled profile.
//!
//! `Compiled -> Checked<Compiled>`: each supported API server would take every object that is generated, of each kind;
//! every expression compiles as in the API server (syntax, names, types, results,
//! constants), also against the schemas of what it matches, and evaluates without an error on the catalogue's
//! fixtures; a pod that complies passes, and one that does not is denied for its reason. Only [`check`] can make a
//! [`Checked`], and only a `Checked` can be applied, so that nothing unchecked reaches an API server.
//!
//! This crate is pure: no I/O, no clock, no environment.

pub mod admission;
pub mod create;
mod custom;
mod defaults;
mod fills;
mod gate;
mod generated;
pub mod objects;
mod policy;
mod types;

use std::{fmt, ops::Deref};

use palisade_api::Diagnostic;
use thiserror::Error;

pub use admission::{BUDGET, Operation};
pub use gate::check;
pub use policy::{Decision, Judgement, Policy, Request, Violation};

/// Something that passed the offline check. Only [`check`] makes one.
#[derive(Clone, Debug)]
pub struct Checked<T>(T);

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Why the offline check refused something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Rejected {
    /// What is wrong, each with its place in the policy generated for pods (`policy.spec.variables[3].expression:1:7`)
    /// or for workloads (`workloads.policy.spec...`).
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.diagnostics.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

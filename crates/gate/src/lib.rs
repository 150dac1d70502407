//! The offline check of what a profile compiles to: `Compiled -> Checked<Compiled>`.
//!
//! It ensures that each supported API server would accept every generated object; that every expression compiles as in
//! the API server (syntax, names, types, results, constants), also against the schemas of the kinds that it matches,
//! and evaluates without an error on the catalogue's fixtures; and that complying pods pass, and violating ones are
//! denied for the right reason. Only [`check`] can make a [`Checked`], and only a `Checked` can be applied, so nothing
//! unchecked reaches an API server.
//!
//! [`cluster`] is the offline API server with the product's parts plugged in: the catalogue evaluates pods by the Pod
//! Security Standards, and [`register`] adds Palisade's webhook.
//!
//! This crate is pure: no I/O, no clock, no environment.
#![warn(missing_docs)]

mod custom;
mod defaults;
mod gate;
mod generated;
mod guard;
mod mutating;
mod objects;
mod place;
mod standards;
mod types;
mod validator;
mod webhook;

use std::{fmt, ops::Deref, sync::Arc};

use palisade_admission::requests::Cluster;
use palisade_api::Diagnostic;
use thiserror::Error;

pub use gate::{check, check_for};
pub use palisade_admission::requests::{BUDGET, Operation};
pub use palisade_cel::{Minor, NotAMinor};
pub use place::part_of;
pub use standards::Standards;
pub use validator::{Decision, Judgement, ValidationRequest, Validator, Violation, namespace};
pub use webhook::{register, webhook};

/// Profiles without `minimumKubeVersion` are checked for this minor and later ones, so that they are portable. Older
/// clusters have stricter limits: [`check_for`].
pub const PORTABLE: Minor = Minor::V1_33;

/// A cluster of this minor of Kubernetes with only its own namespaces. Its admission plugin `PodSecurity` evaluates
/// pods by the catalogue.
pub fn cluster(minor: Minor) -> Cluster {
    Cluster::new(minor).with_pod_security(Arc::new(Standards))
}

/// Something that passed the offline check. Only [`check`] makes one.
#[derive(Clone, Debug)]
pub struct Checked<T>(T);

impl<T> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Why the offline check rejected something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Rejected {
    /// The errors, each with its place in the policy generated for pods (`policy.spec.variables[3].expression:1:7`) or
    /// for workloads (`workloads.policy.spec...`) or other objects (`objects.policy.spec...`), in those of checks with a
    /// separate stage (`checks.policy.spec...`, `workloads.checks.policy.spec...`, `objects.checks.policy.spec...`), or
    /// in the guard (`guard.policy.spec...`).
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.diagnostics.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

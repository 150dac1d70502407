//! How a profile mutates pods. It is built only from what passed the gate.

use palisade_api::ToolSecurityParamsSpec;
use palisade_compiler::{Compiled, Mutation};
use palisade_gate::Checked;
use palisade_mutation::mutate::mutate;

pub use palisade_mutation::mutate::Mutated;

use crate::review::Call;

/// Mutates pods as specified in a profile.
#[derive(Debug)]
pub struct Mutator(Mutation);

impl Mutator {
    /// The mutator of a profile that passed the gate; `None` if it mutates nothing.
    pub fn new(compiled: &Checked<Compiled>) -> Option<Self> {
        compiled.mutation.clone().map(Self)
    }

    /// Mutates the pod of a call, with the parameters of its namespace.
    pub fn mutate(&self, call: &Call, params: Option<&ToolSecurityParamsSpec>) -> Mutated {
        mutate(&self.0, call, params)
    }
}

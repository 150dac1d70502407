//! What a profile fills in, made of nothing but what passed the gate.

use palisade_api::ToolSecurityParamsSpec;
use palisade_compiler::{Compiled, Mutation};
use palisade_gate::Checked;
use palisade_mutation::filler::fill;

pub use palisade_mutation::filler::Filled;

use crate::review::Call;

/// What a profile changes in pods.
#[derive(Debug)]
pub struct Filler(Mutation);

impl Filler {
    /// That of a profile that passed the gate; `None` if it changes nothing.
    pub fn new(compiled: &Checked<Compiled>) -> Option<Self> {
        compiled.mutation.clone().map(Self)
    }

    /// Changes the pod of a call, with the parameters of its namespace.
    pub fn fill(&self, call: &Call, params: Option<&ToolSecurityParamsSpec>) -> Filled {
        fill(&self.0, call, params)
    }
}

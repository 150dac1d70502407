//! Cases of others, with the verdicts of a real kube-apiserver.

pub mod policies;

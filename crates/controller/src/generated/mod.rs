//! Generated objects in the cluster: whether they are as desired, and requests that make them so. Each stage that
//! writes policies, parameters or reports uses it.

pub mod compare;
pub mod converge;
pub mod mutating_policies;

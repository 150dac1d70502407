//! Mutation of pods: which engine mutates them, and whether the observed pods are as declared.

pub mod mutate;
pub mod redirects;

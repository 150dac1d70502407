//! The offline API server, compared with kube-apiserver: with golden files of its code, with its answers to the cases of the
//! end-to-end tests, and with its messages. All modules are in one test binary, which is linked once.
//! `cargo test -p palisade-admission --test offline -- objects::` runs the tests of objects.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod around;
mod create;
mod customs;
mod definitions;
mod mutants;
mod mutation;
mod objects;
mod objects_requests;
mod oracle;
mod plugins;
mod rules;
mod stored;
mod warnings;

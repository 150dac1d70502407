//! Comparisons with answers of kube-apiserver and kubectl, in one test binary, which is linked once.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod cases;
mod goldens;
mod spellings;

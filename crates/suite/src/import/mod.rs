//! Suites of other tools.

pub mod kaptest;
pub mod kyverno;

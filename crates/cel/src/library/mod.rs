//! The functions of Kubernetes' CEL environment, over plain Rust types, without CEL values, types or syntax trees.
//!
//! Results and error texts are those of kube-apiserver 1.36: `k8s.io/apiserver` v0.36.1 (`pkg/cel/library`) with cel-go
//! v0.26.0 (`ext`, `common/types`), built with Go 1.26. The tables in `testdata` were written by that code
//! (`testdata/generate`), and the tests of each module compare with them call by call.
//!
//! An error is the text that the API server shows. CEL strings are UTF-8; Go strings need not be, so the few functions
//! that could make others (percent decoding) replace invalid UTF-8 by U+FFFD.

pub(crate) mod authorization;
pub(crate) mod cidr;
pub mod double;
pub(crate) mod english;
pub(crate) mod format;
pub(crate) mod ip;
pub(crate) mod printf;
pub(crate) mod quantity;
pub(crate) mod quote;
pub(crate) mod re2;
pub(crate) mod selector;
pub(crate) mod semver;
pub mod strfmt;
pub(crate) mod strings;
pub(crate) mod time;
#[cfg(test)]
mod truth;
pub(crate) mod url;

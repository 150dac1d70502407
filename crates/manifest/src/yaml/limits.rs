//! How much of a document is read.

/// More nodes than 15,000 namespaces have, with all fields that an API server adds.
pub(super) const MAX_NODES: usize = 2_000_000;
/// Deeper values would overflow the stack of code that walks them. The API server reads 10,000 (`sigs.k8s.io/json`,
/// `encoding/json`).
pub(super) const MAX_DEPTH: usize = 256;

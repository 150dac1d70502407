//! API servers that end by a fault of their own.

use std::ops::RangeInclusive;

/// The minors whose API server can end when policies are written while it evaluates others (kubernetes#135757): the types of
/// variables of all policies are in one map without a lock.
const CONCURRENT_TYPES: RangeInclusive<u8> = 32..=33;

/// The known fault by which an API server of this minor ended, from the end of its log.
pub fn known_fault(minor: u8, log: &str) -> Option<&'static str> {
    (CONCURRENT_TYPES.contains(&minor) && log.contains("fatal error: concurrent map")).then_some("kubernetes#135757")
}

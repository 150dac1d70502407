//! Room for recursion.

/// What one level of any recursion over a syntax tree needs at most, with a wide margin, in bytes.
const RED_ZONE: usize = 128 * 1024;
/// What is added when less is left, in bytes.
const GROWTH: usize = 1024 * 1024;

/// Runs one level of a recursion over a syntax tree, on a new stack if this one is nearly used up.
///
/// The depth of a tree is bounded ([`crate::parse::MAX_DEPTH`]), but not how many bytes the recursion takes, and threads of
/// tests and servers have small stacks. The recursion itself must be bounded: each new stack takes memory.
pub fn with_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, GROWTH, level)
}

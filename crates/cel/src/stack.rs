//! Room for recursion.

/// The maximum size of one level of any recursion over a syntax tree, with a wide margin, in bytes.
const RED_ZONE: usize = 128 * 1024;
/// The size of a new stack, in bytes. It is allocated if less than the red zone is left.
const GROWTH: usize = 1024 * 1024;

/// Runs one level of a recursion over a syntax tree, on a new stack if this one is nearly used up.
///
/// The depth of a tree is bounded ([`crate::parse::MAX_DEPTH`]), but not how many bytes the recursion takes, and threads of
/// tests and servers have small stacks. The recursion itself must be bounded: each new stack takes memory.
pub fn with_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, GROWTH, level)
}

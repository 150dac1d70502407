//! The parts of an expression while it is read.

use regex_syntax::hir::Hir;

#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "these are the flags of the syntax")]
pub(super) struct Flags {
    /// `i`: case does not matter.
    pub(super) fold_case: bool,
    /// `m`: `^` and `$` match at line breaks.
    pub(super) multi_line: bool,
    /// `s`: `.` matches a line break.
    pub(super) dot_matches_newline: bool,
    /// `U`: repetitions prefer less.
    pub(super) swap_greed: bool,
}

/// A part of the expression.
pub(super) struct Node {
    pub(super) hir: Hir,
    /// The instructions that Go would make of it.
    pub(super) size: u64,
    pub(super) height: u32,
    /// The most copies that repetitions make of something within.
    pub(super) copies: u64,
}

impl Node {
    pub(super) fn leaf(hir: Hir) -> Self {
        Self { hir, size: 1, height: 1, copies: 1 }
    }

    pub(super) fn join(mut parts: Vec<Self>, join: impl Fn(Vec<Hir>) -> Hir, extra: u64) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        Self {
            size: (parts.iter().map(|part| part.size).sum::<u64>() + extra).max(1),
            height: parts.iter().map(|part| part.height).max().unwrap_or(0) + 1,
            copies: parts.iter().map(|part| part.copies).max().unwrap_or(1),
            hir: join(parts.into_iter().map(|part| part.hir).collect()),
        }
    }
}

/// The parsed part of a group in parentheses.
#[derive(Default)]
pub(super) struct Group {
    /// Alternatives that are complete.
    pub(super) alternatives: Vec<Node>,
    /// The parts of the last one.
    pub(super) sequence: Vec<Node>,
    /// The flags before the group.
    pub(super) outside: Flags,
    pub(super) captures: bool,
}

impl Group {
    pub(super) fn alternative(&mut self) {
        let sequence = std::mem::take(&mut self.sequence);
        self.alternatives.push(if sequence.is_empty() {
            Node::leaf(Hir::empty())
        } else {
            Node::join(sequence, Hir::concat, 0)
        });
    }

    pub(super) fn close(mut self) -> Node {
        self.alternative();
        let extra = self.alternatives.len() as u64 - 1;
        Node::join(self.alternatives, Hir::alternation, extra)
    }
}

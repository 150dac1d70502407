//! Regular expressions as Go's `regexp` understands them, for `matches`, `find` and `findAll`.
//!
//! A parser of RE2's syntax in front of the engine of the crate `regex`: `docs/adr/0013-use-a-parser-for-re2-syntax.md`.
//! `matches` shows an error as it is; `find` and `findAll` say `Illegal regex: ` before it.

mod class;
mod lexer;
mod parser;
mod tree;

use regex_automata::{
    Input,
    meta::{self, BuildError},
    nfa::thompson::WhichCaptures,
};

/// The most memory for a compiled expression. Go has a limit on instructions instead; what one rejects and the other
/// does not are large Unicode classes that are repeated hundreds of times.
const MAX_MEMORY: usize = 128 << 20;

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Regex(meta::Regex);

impl Regex {
    /// Compiles an expression.
    ///
    /// # Errors
    /// `error parsing regexp: ...`, in the words of Go.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let hir = parser::parse(pattern)?;
        let config = meta::Config::new().nfa_size_limit(Some(MAX_MEMORY)).which_captures(WhichCaptures::Implicit);
        let too_large = |_: BuildError| format!("error parsing regexp: expression too large: `{pattern}`");
        meta::Builder::new().configure(config).build_from_hir(&hir).map(Self).map_err(too_large)
    }

    /// `string.matches(string)`: whether it matches anywhere.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The first match. `string.find(string)` is empty if nothing matches.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| &text[found.range()])
    }

    /// `string.findAll(string, int)`: the matches that do not overlap; a negative limit means no limit. An empty match
    /// right behind another match does not count.
    pub(crate) fn find_all<'t>(&self, text: &'t str, limit: i64) -> Vec<&'t str> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut position, mut previous, mut matches) = (0, None, Vec::new());
        while matches.len() < limit && position <= text.len() {
            let Some(found) = self.0.search(&Input::new(text).range(position..)) else { break };
            let empty = found.end() == position;
            if !(empty && previous == Some(found.start())) {
                matches.push(&text[found.range()]);
            }
            let step = || text[position..].chars().next().map_or(1, char::len_utf8);
            position = if empty { position + step() } else { found.end() };
            previous = Some(found.end());
        }
        matches
    }
}

#[cfg(test)]
mod tests;

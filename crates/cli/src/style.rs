//! Appearance of output: for a terminal or a file, with or without color.

use std::{
    cell::Cell,
    env,
    ffi::{OsStr, OsString},
    io::IsTerminal,
};

use clap::ValueEnum;

/// When to color output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is dumb.
    #[default]
    Auto,
    /// Always, also in a pipe.
    Always,
    /// Never.
    Never,
}

thread_local! {
    /// The option of this thread. Tests run several commands within one process.
    static COLOR: Cell<Color> = const { Cell::new(Color::Auto) };
}

impl Color {
    /// The option in the arguments before they are parsed, because help and errors have color, too.
    pub fn of(args: &[OsString]) -> Self {
        let mut color = Self::Auto;
        let mut words = args.iter().map(OsString::as_os_str).take_while(|word| *word != "--").peekable();
        while let Some(word) = words.next() {
            let value = match word.to_str().and_then(|word| word.strip_prefix("--color")) {
                Some("") => words.peek().and_then(|next| next.to_str()),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            };
            color = value.and_then(|value| Self::from_str(value, false).ok()).unwrap_or(color);
        }
        color
    }

    /// Applies it to the output of this thread.
    pub fn set(self) {
        COLOR.set(self);
    }

    /// The same for clap.
    pub fn of_clap(self) -> clap::ColorChoice {
        match self {
            Self::Auto => clap::ColorChoice::Auto,
            Self::Always => clap::ColorChoice::Always,
            Self::Never => clap::ColorChoice::Never,
        }
    }

    fn is_on(self, terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
        match self {
            Self::Auto => terminal && no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb"),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// The appearance of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether lines are wrapped, and drawn with more than ASCII.
    pub terminal: bool,
    /// Whether it has color.
    pub color: bool,
}

impl Style {
    /// For a file that programs read.
    pub const PLAIN: Self = Self { terminal: false, color: false };

    /// For a stream.
    pub fn of(stream: &impl IsTerminal) -> Self {
        let terminal = stream.is_terminal();
        let (no_color, term) = (env::var_os("NO_COLOR"), env::var_os("TERM"));
        Self { terminal, color: COLOR.get().is_on(terminal, no_color.as_deref(), term.as_deref()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_says_when_there_is_color() {
        for (line, expected) in [
            ("palisade lint -", Color::Auto),
            ("palisade --color always lint -", Color::Always),
            ("palisade lint --color=never -", Color::Never),
            ("palisade lint --color=never --color always -", Color::Always),
            ("palisade lint --color", Color::Auto),
            ("palisade lint --color=blue", Color::Auto),
            ("palisade lint --colors=never", Color::Auto),
            ("palisade lint -- --color=never", Color::Auto),
        ] {
            let args: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert_eq!(Color::of(&args), expected, "{line}");
        }
    }

    #[test]
    fn no_color_and_dumb_terminals_count_only_for_auto() {
        let set = Some(OsStr::new("1"));
        let (empty, dumb) = (Some(OsStr::new("")), Some(OsStr::new("dumb")));
        for (color, terminal, no_color, term, expected) in [
            (Color::Auto, true, None, None, true),
            (Color::Auto, true, empty, set, true),
            (Color::Auto, true, set, None, false),
            (Color::Auto, true, None, dumb, false),
            (Color::Auto, false, None, None, false),
            (Color::Always, false, set, dumb, true),
            (Color::Never, true, None, None, false),
        ] {
            assert_eq!(color.is_on(terminal, no_color, term), expected, "{color:?} {terminal} {no_color:?} {term:?}");
        }
    }
}

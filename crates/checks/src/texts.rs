//! Lists of strings and patterns, lowered to CEL.
//!
//! The structure of a string with parameters comes from the profile alone: a wildcard is a wildcard only where the
//! profile writes it. A value is compared as it is, so that `.` or `*` in it matches only itself, and an empty value
//! matches nothing.

use crate::{cel, reference::Piece};

/// A string with parameters, lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// CEL of type string.
    pub cel: String,
    /// CEL of type bool: whether no value in it is empty; `true` if none can be.
    pub filled: String,
}

impl Template {
    /// The string changed by an expression.
    #[must_use]
    pub fn map(self, change: impl FnOnce(&str) -> String) -> Self {
        Self { cel: change(&self.cel), filled: self.filled }
    }
}

/// A list of texts, lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextList {
    /// The elements that are the same in every namespace.
    pub constants: Vec<String>,
    /// The elements that differ by namespace.
    pub templates: Vec<Template>,
    /// CEL lists of strings to append.
    pub lists: Vec<String>,
}

impl TextList {
    /// Adds the elements of another list.
    pub fn append(&mut self, other: Self) {
        self.constants.extend(other.constants);
        self.templates.extend(other.templates);
        self.lists.extend(other.lists);
    }

    /// Whether it has no element in any namespace.
    pub fn is_empty(&self) -> bool {
        self.constants.is_empty() && self.is_constant()
    }

    /// Whether its elements are the same in every namespace.
    pub fn is_constant(&self) -> bool {
        self.templates.is_empty() && self.lists.is_empty()
    }

    /// CEL of type list(string).
    pub fn cel(&self) -> String {
        let mut elements: Vec<_> = self.constants.iter().map(|text| cel::quote(text)).collect();
        let mut conditional: Vec<(&str, Vec<&str>)> = Vec::new();
        for Template { cel, filled } in &self.templates {
            match conditional.iter_mut().find(|(condition, _)| condition == filled) {
                _ if filled == "true" => elements.push(cel.clone()),
                Some((_, some)) => some.push(cel),
                None => conditional.push((filled, vec![cel])),
            }
        }
        let mut lists = Vec::new();
        if !elements.is_empty() || (conditional.is_empty() && self.lists.is_empty()) {
            lists.push(format!("[{}]", elements.join(", ")));
        }
        lists.extend(conditional.iter().map(|(filled, some)| format!("({filled} ? [{}] : [])", some.join(", "))));
        lists.extend(self.lists.iter().cloned());
        if lists.len() == 1 { lists.remove(0) } else { format!("({})", lists.join(" + ")) }
    }

    /// CEL of type string that names the elements, for a message; `none` for an empty list.
    pub fn says(&self) -> String {
        if self.is_constant() {
            let text = self.constants.join(", ");
            return cel::quote(if text.is_empty() { "none" } else { &text });
        }
        format!("{}.join(', ')", self.cel())
    }

    /// The same, where the empty string means an unset field.
    pub fn says_unset(&self) -> String {
        let named = |text: &String| if text.is_empty() { "(unset)".to_owned() } else { text.clone() };
        Self { constants: self.constants.iter().map(named).collect(), ..self.clone() }.says()
    }

    /// The list with each element changed: a constant at once, another one by an expression.
    fn map(self, constant: &impl Fn(&str) -> String, expression: &impl Fn(&str) -> String) -> Self {
        Self {
            constants: self.constants.iter().map(|text| constant(text)).collect(),
            templates: self.templates.into_iter().map(|template| template.map(expression)).collect(),
            lists: self.lists.iter().map(|list| format!("{list}.map(t, {})", expression("t"))).collect(),
        }
    }
}

/// The wildcard that a string of a setting may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wildcard {
    /// `*` at the end: any suffix.
    End,
    /// `*.` at the beginning: one or more labels of a host name. `*` alone: any.
    Host,
}

impl Wildcard {
    /// The pieces that are compared, and how. Only text of the profile is read: a value is never a wildcard.
    pub(crate) fn split<'a>(self, pieces: &[Piece<'a>]) -> (Comparison, Vec<Piece<'a>>) {
        let mut pieces = pieces.to_vec();
        let comparison = match (self, pieces.as_mut_slice()) {
            (Self::End, [.., Piece::Literal(last)]) if last.ends_with('*') => {
                *last = &last[..last.len() - 1];
                Comparison::StartsWith
            }
            (Self::Host, [Piece::Literal(first), ..]) if first.starts_with("*.") => {
                *first = &first[1..];
                Comparison::EndsWith
            }
            (Self::Host, [Piece::Literal(first @ "*")]) => {
                *first = "";
                Comparison::EndsWith
            }
            _ => Comparison::Equals,
        };
        (comparison, pieces)
    }
}

/// How a string is compared with the rest of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equals,
    StartsWith,
    EndsWith,
}

/// A list of strings with wildcards, lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// The patterns as the profile writes them, with values.
    pub shown: TextList,
    pub(crate) equal: TextList,
    pub(crate) starts: TextList,
    pub(crate) ends: TextList,
}

impl Patterns {
    /// CEL of type bool: whether the string `text` matches one of the patterns. `text` is evaluated several times, so
    /// it should be a name or a field, and must not contain the name `w`.
    pub fn matches(&self, text: &str) -> String {
        let some = |list: &TextList, function: &str| match list.constants.as_slice() {
            [one] if list.is_constant() => format!("{text}.{function}({})", cel::quote(one)),
            _ => format!("{}.exists(w, {text}.{function}(w))", list.cel()),
        };
        let mut terms = Vec::new();
        if !self.equal.is_empty() {
            terms.push(format!("{text} in {}", self.equal.cel()));
        }
        if !self.starts.is_empty() {
            terms.push(some(&self.starts, "startsWith"));
        }
        if !self.ends.is_empty() {
            terms.push(some(&self.ends, "endsWith"));
        }
        cel::any(&terms)
    }

    /// CEL of type string that names the patterns, for a message; `none` for an empty list.
    pub fn says(&self) -> String {
        self.shown.says()
    }

    /// The patterns with each compared string changed: a constant at once, another one by an expression.
    #[must_use]
    pub fn map(self, constant: impl Fn(&str) -> String, expression: impl Fn(&str) -> String) -> Self {
        let change = |list: TextList| list.map(&constant, &expression);
        Self { shown: self.shown, equal: change(self.equal), starts: change(self.starts), ends: change(self.ends) }
    }
}

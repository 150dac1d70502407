//! The values of settings in a namespace.

use crate::{
    Flag, Integer, Resolved, Text, Values,
    reference::{Piece, pieces},
    texts::{Comparison, Wildcard},
};

/// The value of a setting in a namespace. References must have been checked by a [`Lowering`]; an unknown
/// one reads as zero, false or empty.
pub trait Resolve {
    /// The type of the resolved value.
    type Output;
    /// The value in the namespace that has these parameters.
    fn resolve(&self, values: &Values) -> Self::Output;
}

impl Resolve for Integer {
    type Output = i64;
    fn resolve(&self, values: &Values) -> i64 {
        match self {
            Self::Constant(value) => *value,
            Self::Parameter(name) => match values.get(name) {
                Some(Resolved::Integer(value)) => *value,
                _ => 0,
            },
        }
    }
}

impl Resolve for Flag {
    type Output = bool;
    fn resolve(&self, values: &Values) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Parameter(name) => matches!(values.get(name), Some(Resolved::Boolean(true))),
        }
    }
}

impl Resolve for Text {
    type Output = String;
    fn resolve(&self, values: &Values) -> String {
        pieces(&self.0).unwrap_or_default().iter().map(|piece| resolved(piece, values)).collect()
    }
}

impl Resolve for [Text] {
    type Output = Vec<String>;
    fn resolve(&self, values: &Values) -> Vec<String> {
        self.iter().flat_map(|text| strings(&pieces(&text.0).unwrap_or_default(), values)).collect()
    }
}

/// Whether a string matches one of the patterns in the namespace that has these parameters.
pub fn matches(patterns: &[Text], wildcard: Wildcard, values: &Values, text: &str) -> bool {
    patterns.iter().any(|pattern| {
        let (comparison, rest) = wildcard.split(&pieces(&pattern.0).unwrap_or_default());
        strings(&rest, values).iter().any(|rest| match comparison {
            Comparison::Equals => text == rest,
            Comparison::StartsWith => text.starts_with(rest),
            Comparison::EndsWith => text.ends_with(rest),
        })
    })
}

/// The strings that these pieces are, one after another: several, if the only one is a list, and none with an empty
/// value.
fn strings(pieces: &[Piece<'_>], values: &Values) -> Vec<String> {
    if let [Piece::Reference(name)] = pieces
        && let Some(Resolved::StringList(list)) = values.get(*name)
    {
        return list.clone();
    }
    let parts: Vec<_> = pieces.iter().map(|piece| (piece, resolved(piece, values))).collect();
    let is_empty = |(piece, part): &(&Piece<'_>, String)| matches!(piece, Piece::Reference(_)) && part.is_empty();
    if parts.iter().any(is_empty) { vec![] } else { vec![parts.into_iter().map(|(_, part)| part).collect()] }
}

fn resolved(piece: &Piece<'_>, values: &Values) -> String {
    match piece {
        Piece::Literal(text) => (*text).to_owned(),
        Piece::Reference(name) => match values.get(*name) {
            Some(Resolved::String(value)) => value.clone(),
            Some(Resolved::Integer(value)) => value.to_string(),
            _ => String::new(),
        },
    }
}

//! Lowering of settings to CEL: constants become part of the policy; references read the namespace's
//! `ToolSecurityParams`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Diagnostic, Flag, Integer, Meaning, ParameterType, Text, cel,
    meaning::{Place, Use},
    reference::{ParameterName, Piece, pieces},
    texts::{Comparison, Patterns, Template, TextList, Wildcard},
    value::whole_reference,
};

/// Translates settings into CEL, and collects the errors in them.
pub struct Lowering<'a> {
    declared: &'a BTreeMap<ParameterName, ParameterType>,
    diagnostics: Vec<Diagnostic>,
    reads_parameters: bool,
    uses: Uses,
}

/// The uses of each parameter in texts.
pub type Uses = BTreeMap<ParameterName, BTreeSet<Use>>;

impl<'a> Lowering<'a> {
    /// A lowering with these declared parameters.
    pub fn new(declared: &'a BTreeMap<ParameterName, ParameterType>) -> Self {
        Self { declared, diagnostics: Vec::new(), reads_parameters: false, uses: Uses::new() }
    }

    /// The declared parameters.
    pub fn declared(&self) -> &'a BTreeMap<ParameterName, ParameterType> {
        self.declared
    }

    /// The errors found.
    pub fn finish(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// The uses of the parameters in all strings that were lowered since the last call.
    pub fn take_uses(&mut self) -> Uses {
        std::mem::take(&mut self.uses)
    }

    /// Reports an error at `path`.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Whether anything that was lowered since the last call reads a parameter.
    pub fn take_reads_parameters(&mut self) -> bool {
        std::mem::take(&mut self.reads_parameters)
    }

    /// CEL that reads a parameter; reports one that is not declared or of none of these types.
    fn parameter(&mut self, path: &str, name: &str, wanted: &[ParameterType]) -> String {
        let found = self.declared.get(name).copied();
        match found {
            None => self
                .diagnostics
                .push(Diagnostic::new(path, format!("${name} is not a declared parameter")).help(self.known(wanted))),
            Some(found) if !wanted.contains(&found) => self.diagnostics.push(
                Diagnostic::new(path, format!("${name} is of type {found}, must be {}", either(wanted)))
                    .help(self.known(wanted)),
            ),
            Some(_) => {}
        }
        self.reads_parameters = true;
        read(found.filter(|found| wanted.contains(found)).unwrap_or(wanted[0]), name)
    }

    fn known(&self, wanted: &[ParameterType]) -> String {
        let fits = |(_, found): &(&String, &ParameterType)| wanted.contains(*found);
        let names: Vec<_> = self.declared.iter().filter(fits).map(|(name, _)| format!("${name}")).collect();
        if names.is_empty() {
            format!("declare a parameter of type {} in spec.parameters", either(wanted))
        } else {
            format!("parameters of type {}: {}", either(wanted), names.join(", "))
        }
    }

    /// CEL of type int.
    pub fn integer(&mut self, path: &str, value: &Integer) -> String {
        match value {
            Integer::Constant(value) => value.to_string(),
            Integer::Parameter(name) => self.parameter(path, name, &[ParameterType::Integer]),
        }
    }

    /// CEL of type bool with the value of the flag; `Ok` for a constant.
    ///
    /// # Errors
    /// The expression, if the flag differs by namespace.
    pub fn flag(&mut self, path: &str, value: &Flag) -> Result<bool, String> {
        match value {
            Flag::Constant(value) => Ok(*value),
            Flag::Parameter(name) => Err(self.parameter(path, name, &[ParameterType::Boolean])),
        }
    }

    /// `violated`, if the flag forbids it: `None` if the flag allows it everywhere.
    pub fn unless(&mut self, path: &str, allowed: &Flag, violated: &str) -> Option<String> {
        match self.flag(path, allowed) {
            Ok(true) => None,
            Ok(false) => Some(violated.to_owned()),
            Err(cel) => Some(format!("!{cel} && {violated}")),
        }
    }

    /// `violated`, if the flag requires it: `None` if the flag requires it nowhere.
    pub fn when(&mut self, path: &str, required: &Flag, violated: &str) -> Option<String> {
        match self.flag(path, required) {
            Ok(false) => None,
            Ok(true) => Some(violated.to_owned()),
            Err(cel) => Some(format!("{cel} && {violated}")),
        }
    }

    /// A list of strings with this meaning.
    pub fn texts(&mut self, path: &str, texts: &[Text], meaning: Meaning) -> TextList {
        let mut out = TextList::default();
        for (index, text) in texts.iter().enumerate() {
            let path = format!("{path}[{index}]");
            match self.element(&path, text, meaning) {
                Element::Constant(text) => out.constants.push(text),
                Element::One(template) => out.templates.push(template),
                Element::Many(cel) => out.lists.push(cel),
            }
        }
        out
    }

    /// A list of strings that may have a wildcard.
    pub fn patterns(&mut self, path: &str, texts: &[Text], meaning: Meaning, wildcard: Wildcard) -> Patterns {
        let mut out = Patterns { shown: self.texts(path, texts, meaning), ..Patterns::default() };
        for text in texts {
            // Reported above.
            let Ok(pieces) = pieces(&text.0) else { continue };
            let (comparison, rest) = wildcard.split(&pieces);
            let list = match comparison {
                Comparison::Equals => &mut out.equal,
                Comparison::StartsWith => &mut out.starts,
                Comparison::EndsWith => &mut out.ends,
            };
            match self.joined(&rest) {
                Element::Constant(text) => list.constants.push(text),
                Element::One(template) => list.templates.push(template),
                Element::Many(cel) => list.lists.push(cel),
            }
        }
        out
    }

    /// A string with this meaning; `Ok` for a constant.
    ///
    /// # Errors
    /// The string, if it differs by namespace.
    pub fn text(&mut self, path: &str, text: &Text, meaning: Meaning) -> Result<String, Template> {
        match self.lowered(path, text, meaning, &[ParameterType::String, ParameterType::Integer]) {
            Element::Constant(constant) => Ok(constant),
            Element::One(template) => Err(template),
            Element::Many(_) => Ok(String::new()),
        }
    }

    fn element(&mut self, path: &str, text: &Text, meaning: Meaning) -> Element {
        let types = [ParameterType::String, ParameterType::Integer, ParameterType::StringList];
        // Only a whole element can be a list.
        let most = if whole_reference(&text.0).is_some() { 3 } else { 2 };
        self.lowered(path, text, meaning, &types[..most])
    }

    /// A string, with errors reported and the uses of parameters noted.
    fn lowered(&mut self, path: &str, text: &Text, meaning: Meaning, types: &[ParameterType]) -> Element {
        let pieces = match pieces(&text.0) {
            Ok(pieces) => pieces,
            Err(message) => {
                self.report(Diagnostic::new(path, message).help("write $$ for a dollar sign"));
                return Element::Constant(String::new());
            }
        };
        for (index, piece) in pieces.iter().enumerate() {
            if let Piece::Reference(name) = piece {
                self.using(path, name, meaning, place(&pieces, index, meaning));
                self.parameter(path, name, types);
            }
        }
        self.joined(&pieces)
    }

    /// The pieces one after another. One value may be a list, if it is the only piece.
    fn joined(&self, pieces: &[Piece<'_>]) -> Element {
        let (mut parts, mut filled) = (Vec::new(), Vec::new());
        for piece in pieces {
            parts.push(match piece {
                Piece::Literal(text) => cel::quote(text),
                Piece::Reference(name) => match self.declared.get(*name) {
                    Some(ParameterType::Integer) => format!("string({})", read(ParameterType::Integer, name)),
                    Some(ParameterType::StringList) if pieces.len() == 1 => {
                        return Element::Many(read(ParameterType::StringList, name));
                    }
                    _ => {
                        let value = read(ParameterType::String, name);
                        let condition = format!("{value} != ''");
                        if !filled.contains(&condition) {
                            filled.push(condition);
                        }
                        value
                    }
                },
            });
        }
        if pieces.iter().all(|piece| matches!(piece, Piece::Literal(_))) {
            return Element::Constant(literal(pieces));
        }
        // A parameter has no static type, and a list literal needs one.
        let cel = format!("string({})", cel::concat(&parts));
        let filled = if filled.is_empty() { "true".to_owned() } else { filled.join(" && ") };
        Element::One(Template { cel, filled })
    }

    fn using(&mut self, path: &str, name: &str, meaning: Meaning, place: Place) {
        let one = Use { path: path.to_owned(), meaning, place };
        self.uses.entry(name.to_owned()).or_default().insert(one);
    }
}

/// The position of the piece at this index in a string.
fn place(pieces: &[Piece<'_>], index: usize, meaning: Meaning) -> Place {
    let is_directory = matches!(pieces.get(index + 1), Some(Piece::Literal(next)) if next.starts_with('/'));
    match index {
        0 if pieces.len() == 1 => Place::Whole,
        // What a path begins with is absolute, whatever follows.
        0 if is_directory || meaning == Meaning::Path => Place::Begin,
        _ => Place::Within,
    }
}

enum Element {
    Constant(String),
    One(Template),
    Many(String),
}

fn literal(pieces: &[Piece<'_>]) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Literal(text) | Piece::Reference(text) => *text,
        })
        .collect()
}

/// The types, for a message.
fn either(types: &[ParameterType]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// CEL that reads a parameter of a namespace, by index, because a name may be a reserved word.
fn read(wanted: ParameterType, name: &str) -> String {
    let map = match wanted {
        ParameterType::Integer => "integers",
        ParameterType::String => "strings",
        ParameterType::Boolean => "booleans",
        ParameterType::StringList => "stringLists",
    };
    format!("params.spec.{map}['{name}']")
}

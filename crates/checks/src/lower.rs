//! Lowering of settings to CEL: constants become part of the policy; references read the namespace's
//! `ToolSecurityParams`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Diagnostic, Flag, Integer, Meaning, ParameterType, Resolved, Text, Values, cel,
    meaning::{Place, Use},
    reference::{ParameterName, Piece, pieces},
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

/// A list of texts, lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextList {
    /// The elements that are the same in every namespace.
    pub constants: Vec<String>,
    /// CEL strings, one for each element that differs by namespace.
    pub elements: Vec<String>,
    /// CEL lists of strings to append.
    pub lists: Vec<String>,
}

impl TextList {
    /// Adds the elements of another list.
    pub fn append(&mut self, other: Self) {
        self.constants.extend(other.constants);
        self.elements.extend(other.elements);
        self.lists.extend(other.lists);
    }

    /// CEL of type list(string).
    pub fn cel(&self) -> String {
        let mut elements: Vec<_> = self.constants.iter().map(|text| cel::quote(text)).collect();
        elements.extend(self.elements.iter().cloned());
        let mut lists = Vec::new();
        if !elements.is_empty() || self.lists.is_empty() {
            lists.push(format!("[{}]", elements.join(", ")));
        }
        lists.extend(self.lists.iter().cloned());
        if lists.len() == 1 { lists.remove(0) } else { format!("({})", lists.join(" + ")) }
    }

    /// CEL of type string that names the elements, for a message; `none` for an empty list.
    pub fn says(&self) -> String {
        if self.elements.is_empty() && self.lists.is_empty() {
            let text = self.constants.join(", ");
            return cel::quote(if text.is_empty() { "none" } else { &text });
        }
        format!("{}.join(', ')", self.cel())
    }
}

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

    /// CEL that reads a parameter; reports one that is not declared or of another type.
    fn parameter(&mut self, path: &str, name: &str, wanted: ParameterType) -> String {
        match self.declared.get(name) {
            None => self
                .diagnostics
                .push(Diagnostic::new(path, format!("${name} is not a declared parameter")).help(self.known(wanted))),
            Some(&found) if found != wanted => self.diagnostics.push(
                Diagnostic::new(path, format!("${name} is of type {found}, must be {wanted}")).help(self.known(wanted)),
            ),
            Some(_) => {}
        }
        self.reads_parameters = true;
        read(wanted, name)
    }

    fn known(&self, wanted: ParameterType) -> String {
        let names: Vec<_> =
            self.declared.iter().filter(|(_, found)| **found == wanted).map(|(name, _)| format!("${name}")).collect();
        if names.is_empty() {
            format!("declare a parameter of type {wanted} in spec.parameters")
        } else {
            format!("parameters of type {wanted}: {}", names.join(", "))
        }
    }

    /// CEL of type int.
    pub fn integer(&mut self, path: &str, value: &Integer) -> String {
        match value {
            Integer::Constant(value) => value.to_string(),
            Integer::Parameter(name) => self.parameter(path, name, ParameterType::Integer),
        }
    }

    /// CEL of type bool with the value of the flag; `Ok` for a constant.
    ///
    /// # Errors
    /// The expression, if the flag differs by namespace.
    pub fn flag(&mut self, path: &str, value: &Flag) -> Result<bool, String> {
        match value {
            Flag::Constant(value) => Ok(*value),
            Flag::Parameter(name) => Err(self.parameter(path, name, ParameterType::Boolean)),
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
                Element::One(cel) => out.elements.push(cel),
                Element::Many(cel) => out.lists.push(cel),
            }
        }
        out
    }

    /// CEL of type string, for a string with this meaning; `Ok` for a constant.
    ///
    /// # Errors
    /// The expression, if the string differs by namespace.
    pub fn text(&mut self, path: &str, text: &Text, meaning: Meaning) -> Result<String, String> {
        match pieces(&text.0) {
            Err(message) => {
                self.report(Diagnostic::new(path, message).help("write $$ for a dollar sign"));
                Ok(String::new())
            }
            Ok(pieces) => {
                if pieces.iter().all(|piece| matches!(piece, Piece::Literal(_))) {
                    return Ok(literal(&pieces));
                }
                let mut parts = Vec::new();
                for (index, piece) in pieces.iter().enumerate() {
                    parts.push(match piece {
                        Piece::Literal(text) => cel::quote(text),
                        Piece::Reference(name) => {
                            self.using(path, name, meaning, place(&pieces, index, meaning));
                            self.parameter(path, name, ParameterType::String)
                        }
                    });
                }
                // A parameter has no static type, and a list literal needs one.
                Err(format!("string({})", cel::concat(&parts)))
            }
        }
    }

    fn using(&mut self, path: &str, name: &str, meaning: Meaning, place: Place) {
        let one = Use { path: path.to_owned(), meaning, place };
        self.uses.entry(name.to_owned()).or_default().insert(one);
    }

    fn element(&mut self, path: &str, text: &Text, meaning: Meaning) -> Element {
        if let Some(name) = whole_reference(&text.0)
            && self.declared.get(name) == Some(&ParameterType::StringList)
        {
            self.using(path, name, meaning, Place::Whole);
            return Element::Many(self.parameter(path, name, ParameterType::StringList));
        }
        match self.text(path, text, meaning) {
            Ok(constant) => Element::Constant(constant),
            Err(cel) => Element::One(cel),
        }
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
    One(String),
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
        let resolved = |piece: &Piece<'_>| match piece {
            Piece::Literal(text) => (*text).to_owned(),
            Piece::Reference(name) => match values.get(*name) {
                Some(Resolved::String(value)) => value.clone(),
                _ => String::new(),
            },
        };
        pieces(&self.0).unwrap_or_default().iter().map(resolved).collect()
    }
}

impl Resolve for [Text] {
    type Output = Vec<String>;
    fn resolve(&self, values: &Values) -> Vec<String> {
        self.iter()
            .flat_map(|text| match whole_reference(&text.0).and_then(|name| values.get(name)) {
                Some(Resolved::StringList(list)) => list.clone(),
                _ => vec![text.resolve(values)],
            })
            .collect()
    }
}

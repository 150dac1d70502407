//! Equality and order, and properties of texts.

use std::rc::Rc;

use super::{Choice, Evaluator, Result, Truth, Value, unsupported};
use crate::formula::{Atom, FALSE, Formula, Formulas, TRUE, Term, TextTest};

/// Two texts, one after the other, in one form: constants are joined, and the first part is no concatenation.
pub(super) fn concat(one: Term, other: Term) -> Term {
    match (one, other) {
        (Term::Text(one), other) if one.is_empty() => other,
        (one, Term::Text(other)) if other.is_empty() => one,
        (Term::Text(one), Term::Text(other)) => Term::Text(format!("{one}{other}").into()),
        (Term::Concat(first, second), other) => concat((*first).clone(), concat((*second).clone(), other)),
        (Term::Text(one), Term::Concat(first, second)) => match &*first {
            Term::Text(first) => concat(Term::Text(format!("{one}{first}").into()), (*second).clone()),
            _ => Term::Concat(Rc::new(Term::Text(one)), Rc::new(Term::Concat(first, second))),
        },
        (one, other) => Term::Concat(Rc::new(one), Rc::new(other)),
    }
}

impl Evaluator<'_> {
    /// A property of a text.
    pub(super) fn text(&mut self, test: TextTest, of: &Term) -> Formula {
        if let Term::Text(text) = of {
            return Formulas::constant(test.holds(text));
        }
        let certain = match &test {
            TextTest::StartsWith(part) | TextTest::EndsWith(part) | TextTest::Contains(part) => part.is_empty(),
            TextTest::AtLeast(count) => *count == 0,
            TextTest::Equals(_) => false,
        };
        if certain { TRUE } else { self.formulas.atom(Atom::Text(test, of.clone())) }
    }

    fn same_text(&mut self, one: &Term, other: &Term) -> Formula {
        match (one, other) {
            _ if one == other => TRUE,
            (Term::Text(text), term) | (term, Term::Text(text)) => self.text(TextTest::Equals(Rc::clone(text)), term),
            _ if one <= other => self.formulas.atom(Atom::SameText(one.clone(), other.clone())),
            _ => self.formulas.atom(Atom::SameText(other.clone(), one.clone())),
        }
    }

    /// Whether a number is at most another.
    fn at_most(&mut self, one: &Term, other: &Term) -> Formula {
        match (one, other) {
            (Term::Int(one), Term::Int(other)) => Formulas::constant(one <= other),
            _ if one == other => TRUE,
            _ => self.formulas.atom(Atom::AtMost(one.clone(), other.clone())),
        }
    }

    fn bool(&mut self, of: &Value) -> Option<Formula> {
        match of {
            Value::Constant(value) => Some(Formulas::constant(*value)),
            Value::Holds(path) => Some(self.formulas.atom(Atom::Holds(Rc::clone(path)))),
            _ => None,
        }
    }

    /// When two values are equal.
    pub(super) fn same(&mut self, one: &Value, other: &Value) -> Result<Formula> {
        if let (Some(one), Some(other)) = (self.bool(one), self.bool(other)) {
            let (not, neither) = (self.formulas.not(one), self.formulas.not(other));
            let both = self.formulas.and([one, other]);
            let neither = self.formulas.and([not, neither]);
            return Ok(self.formulas.or([both, neither]));
        }
        match (one, other) {
            (Value::Text(one), Value::Text(other)) => Ok(self.same_text(one, other)),
            (Value::None, Value::None) | (Value::Null, Value::Null) => Ok(TRUE),
            (Value::None, Value::Some(_)) | (Value::Some(_), Value::None) => Ok(FALSE),
            (Value::Some(one), Value::Some(other)) => self.same(one, other),
            (Value::Null, Value::Object(..) | Value::Map(..) | Value::List(_) | Value::Text(_) | Value::Int(_))
            | (Value::Object(..) | Value::Map(..) | Value::List(_) | Value::Text(_) | Value::Int(_), Value::Null) => {
                Ok(FALSE)
            }
            (Value::Int(_) | Value::Length(_) | Value::TextLength(_) | Value::Index(..), _) => {
                let less = self.in_order(one, other)?;
                let more = self.in_order(other, one)?;
                Ok(self.formulas.and([less, more]))
            }
            (Value::Opaque(_) | Value::Object(..) | Value::Map(..) | Value::Other(_), _)
            | (_, Value::Opaque(_) | Value::Other(_)) => {
                let mut terms = [Self::term(one)?, Self::term(other)?];
                terms.sort();
                Ok(self.formulas.atom(Atom::Opaque("==".into(), terms.into())))
            }
            _ => unsupported("an equality of values of different types"),
        }
    }

    /// When a number is at most another.
    pub(super) fn in_order(&mut self, one: &Value, other: &Value) -> Result<Formula> {
        match (one, other) {
            (Value::Int(one), Value::Int(other)) => Ok(self.at_most(one, other)),
            // As many as there are at most are not one more.
            (counted, Value::Int(Term::Int(most))) => {
                let more = self.reaches(counted, most.saturating_add(1))?;
                Ok(self.formulas.not(more))
            }
            (Value::Int(Term::Int(least)), counted) => self.reaches(counted, *least),
            _ => unsupported("an order of values that are not numbers"),
        }
    }

    /// When a number that is counted is at least this one.
    fn reaches(&mut self, of: &Value, least: i64) -> Result<Formula> {
        match of {
            Value::Length(elements) => self.at_least(elements, u64::try_from(least).unwrap_or(0)),
            Value::TextLength(term) => Ok(self.text(TextTest::AtLeast(usize::try_from(least).unwrap_or(0)), term)),
            Value::Index(term, found) => {
                if least <= -1 {
                    return Ok(TRUE);
                }
                let contains = self.text(TextTest::Contains(found.to_string().into()), term);
                let before = Term::Before(Rc::new(term.clone()), *found);
                let long = self.text(TextTest::AtLeast(usize::try_from(least).unwrap_or(0)), &before);
                Ok(self.formulas.and([contains, long]))
            }
            _ => unsupported("an order of values that are not numbers"),
        }
    }

    pub(super) fn equal(&mut self, one: &Choice, other: &Choice) -> Result<Truth> {
        let (pairs, error) = self.pairs(one, other);
        let mut cases = Vec::new();
        for (guard, one, other) in pairs {
            cases.push((guard, self.same(&one, &other)?));
        }
        Ok(self.decided(cases, error))
    }

    /// `one <= other`.
    pub(super) fn ordered(&mut self, one: &Choice, other: &Choice) -> Result<Truth> {
        let (pairs, error) = self.pairs(one, other);
        let mut cases = Vec::new();
        for (guard, one, other) in pairs {
            cases.push((guard, self.in_order(&one, &other)?));
        }
        Ok(self.decided(cases, error))
    }

    /// `one.startsWith(other)` and the like.
    pub(super) fn text_test(&mut self, function: &str, one: &Choice, other: &Choice) -> Result<Truth> {
        let (pairs, error) = self.pairs(one, other);
        let mut cases = Vec::new();
        for (guard, one, other) in pairs {
            let holds = match (&one, &other) {
                (Value::Text(of), Value::Text(Term::Text(part))) => {
                    let part = Rc::clone(part);
                    let test = match function {
                        "startsWith" => TextTest::StartsWith(part),
                        "endsWith" => TextTest::EndsWith(part),
                        _ => TextTest::Contains(part),
                    };
                    self.text(test, of)
                }
                (Value::Text(of), Value::Text(part)) => {
                    self.formulas.atom(Atom::Opaque(function.into(), [of.clone(), part.clone()].into()))
                }
                _ => return unsupported(format!("{function}() of a value other than a string")),
            };
            cases.push((guard, holds));
        }
        Ok(self.decided(cases, error))
    }
}

impl TextTest {
    /// Whether a text has the property.
    pub fn holds(&self, text: &str) -> bool {
        match self {
            Self::Equals(other) => text == &**other,
            Self::StartsWith(part) => text.starts_with(&**part),
            Self::EndsWith(part) => text.ends_with(&**part),
            Self::Contains(part) => text.contains(&**part),
            Self::AtLeast(count) => text.chars().count() >= *count,
        }
    }
}

//! Properties of a text, as automata that read it character by character.

use std::{collections::BTreeSet, rc::Rc};

use crate::formula::{Path, Term, TextTest};

/// A property of the text at a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Property {
    test: TextTest,
    /// The term that is tested; [`Term::At`] with an empty path is the text.
    of: Term,
}

impl Property {
    /// A test of a term as a property of the text at the only path in it; `None` if it has none, or several.
    pub fn new(test: &TextTest, term: &Term) -> Option<(Path, Self)> {
        let mut found = None;
        let of = Self::around(term, &mut found)?;
        Some((found?, Self { test: test.clone(), of }))
    }

    fn around(term: &Term, found: &mut Option<Path>) -> Option<Term> {
        let mut inner = |of: &Rc<Term>| Some(Rc::new(Self::around(of, found)?));
        Some(match term {
            Term::At(path) => {
                *found = Some(Rc::clone(path));
                Term::At([].into())
            }
            Term::Concat(one, other) => match (&**one, &**other) {
                (Term::Text(_), _) => Term::Concat(Rc::clone(one), inner(other)?),
                (_, Term::Text(_)) => Term::Concat(inner(one)?, Rc::clone(other)),
                _ => return None,
            },
            Term::Before(of, end) => Term::Before(inner(of)?, *end),
            Term::Skip(of, count) => Term::Skip(inner(of)?, *count),
            Term::Lower(of) => Term::Lower(inner(of)?),
            _ => return None,
        })
    }

    /// The property of another text, which follows this constant in the first one.
    #[must_use]
    pub fn after(&self, prefix: &Rc<str>) -> Self {
        fn put(of: &Term, prefix: &Rc<str>) -> Term {
            let inner = |of: &Rc<Term>| Rc::new(put(of, prefix));
            match of {
                Term::At(_) => Term::Concat(Rc::new(Term::Text(Rc::clone(prefix))), Rc::new(of.clone())),
                Term::Concat(one, other) if matches!(&**one, Term::Text(_)) => {
                    Term::Concat(Rc::clone(one), inner(other))
                }
                Term::Concat(one, other) => Term::Concat(inner(one), Rc::clone(other)),
                Term::Before(of, end) => Term::Before(inner(of), *end),
                Term::Skip(of, count) => Term::Skip(inner(of), *count),
                Term::Lower(of) => Term::Lower(inner(of)),
                other => other.clone(),
            }
        }
        Self { test: self.test.clone(), of: put(&self.of, prefix) }
    }

    /// The number of characters that a text must have for this property, if it is one about its length.
    pub fn least(&self) -> Option<usize> {
        let TextTest::AtLeast(count) = self.test else { return None };
        let mut count = i64::try_from(count).ok()?;
        let mut of = &self.of;
        loop {
            match of {
                Term::At(_) => return usize::try_from(count).or(Ok::<_, ()>(0)).ok(),
                Term::Concat(one, other) => {
                    let (constant, inner) = if let Term::Text(text) = &**one {
                        (text, other)
                    } else {
                        let Term::Text(text) = &**other else { return None };
                        (text, one)
                    };
                    count -= i64::try_from(constant.chars().count()).ok()?;
                    of = inner;
                }
                Term::Skip(inner, skipped) => {
                    count += i64::try_from(*skipped).ok()?;
                    of = inner;
                }
                Term::Lower(inner) => of = inner,
                _ => return None,
            }
        }
    }

    /// Whether a text has the property: by its definition, without automata.
    pub fn holds(&self, text: &str) -> bool {
        fn value(of: &Term, text: &str) -> Option<String> {
            Some(match of {
                Term::At(_) => text.to_owned(),
                Term::Text(constant) => constant.to_string(),
                Term::Concat(one, other) => value(one, text)? + &value(other, text)?,
                Term::Before(of, end) => value(of, text)?.split_once(*end)?.0.to_owned(),
                Term::Skip(of, count) => {
                    let of = value(of, text)?;
                    if of.chars().count() < *count {
                        return None;
                    }
                    of.chars().skip(*count).collect()
                }
                Term::Lower(of) => value(of, text)?.to_ascii_lowercase(),
                _ => return None,
            })
        }
        value(&self.of, text).is_some_and(|value| self.test.holds(&value))
    }

    /// The characters that it names.
    pub(crate) fn characters(&self, to: &mut BTreeSet<char>) {
        fn of_term(of: &Term, to: &mut BTreeSet<char>) {
            match of {
                Term::Text(text) => to.extend(text.chars()),
                Term::Concat(one, other) => {
                    of_term(one, to);
                    of_term(other, to);
                }
                Term::Before(of, end) => {
                    to.insert(*end);
                    of_term(of, to);
                }
                Term::Skip(of, _) | Term::Lower(of) => of_term(of, to),
                _ => {}
            }
        }
        if let Some(part) = self.part() {
            to.extend(part.chars());
        }
        of_term(&self.of, to);
    }

    fn part(&self) -> Option<&Rc<str>> {
        match &self.test {
            TextTest::Equals(part)
            | TextTest::StartsWith(part)
            | TextTest::EndsWith(part)
            | TextTest::Contains(part) => Some(part),
            TextTest::AtLeast(_) => None,
        }
    }

    /// The state before the first character: one number for the test and one for each part of the term.
    pub(crate) fn start(&self) -> Vec<u32> {
        let mut state = vec![0; 1 + depth(&self.of)];
        self.begin(&self.of, 1, &mut state);
        state
    }

    /// Feeds the constants that come before the text, the outermost first.
    fn begin(&self, of: &Term, at: usize, state: &mut [u32]) {
        match of {
            Term::Concat(one, other) => match &**one {
                Term::Text(text) => {
                    for char in text.chars() {
                        self.feed_outer(at, state, char);
                    }
                    self.begin(other, at + 1, state);
                }
                _ => self.begin(one, at + 1, state),
            },
            Term::Before(of, _) | Term::Skip(of, _) | Term::Lower(of) => self.begin(of, at + 1, state),
            _ => {}
        }
    }

    /// A character that is the next one of the part of the term at a depth.
    fn feed_outer(&self, depth_of: usize, state: &mut [u32], char: char) {
        let mut outer = Vec::new();
        let mut of = &self.of;
        for _ in 1..depth_of {
            outer.push(of);
            of = inner(of);
        }
        self.feed(&outer, state, char);
    }

    /// The state after the next character of the text.
    pub(crate) fn read(&self, state: &mut [u32], char: char) {
        let mut parts = Vec::new();
        let mut term = &self.of;
        while !matches!(term, Term::At(_)) {
            parts.push(term);
            term = inner(term);
        }
        self.feed(&parts, state, char);
    }

    /// A character passes the parts of the term from the inside to the outside, then the test.
    fn feed(&self, outer: &[&Term], state: &mut [u32], mut char: char) {
        for (index, part) in outer.iter().enumerate().rev() {
            let own = index + 1;
            match part {
                Term::Before(_, end) if state[own] == 1 || char == *end => {
                    state[own] = 1;
                    return;
                }
                Term::Skip(_, count) if (state[own] as usize) < *count => {
                    state[own] += 1;
                    return;
                }
                Term::Lower(_) => char = char.to_ascii_lowercase(),
                _ => {}
            }
        }
        state[0] = self.tested(state[0], char);
    }

    /// The next state of the test: how many characters of its text are found. For `Equals`, one more than its length
    /// means that it differs.
    fn tested(&self, state: u32, char: char) -> u32 {
        let Some(part) = self.part() else {
            let TextTest::AtLeast(count) = self.test else { return state };
            return state.saturating_add(1).min(u32::try_from(count).unwrap_or(u32::MAX));
        };
        let part: Vec<char> = part.chars().collect();
        let found = state as usize;
        let next = match &self.test {
            TextTest::StartsWith(_) | TextTest::Contains(_) if found == part.len() => found,
            TextTest::Equals(_) | TextTest::StartsWith(_) => {
                if part.get(found) == Some(&char) {
                    found + 1
                } else {
                    part.len() + 1
                }
            }
            // The longest beginning of the part that ends here.
            _ => {
                let seen: Vec<char> = part[..found].iter().copied().chain([char]).collect();
                (0..=part.len().min(seen.len())).rev().find(|count| seen.ends_with(&part[..*count])).unwrap_or(0)
            }
        };
        u32::try_from(next).unwrap_or(u32::MAX)
    }

    /// Whether the text may end in a state.
    pub(crate) fn accepts(&self, state: &[u32]) -> bool {
        let mut state = state.to_vec();
        let mut outer = Vec::new();
        let mut of = &self.of;
        // The constants that come after the text, the innermost first.
        let mut parts = Vec::new();
        while !matches!(of, Term::At(_)) {
            parts.push(of);
            of = inner(of);
        }
        for (index, part) in parts.iter().enumerate().rev() {
            outer.clear();
            outer.extend(&parts[..index]);
            match part {
                Term::Concat(_, other) => {
                    if let Term::Text(text) = &**other {
                        for char in text.chars() {
                            self.feed(&outer, &mut state, char);
                        }
                    }
                }
                Term::Before(..) if state[index + 1] == 0 => return false,
                Term::Skip(_, count) if (state[index + 1] as usize) < *count => return false,
                _ => {}
            }
        }
        let found = state[0] as usize;
        match &self.test {
            TextTest::AtLeast(count) => found >= *count,
            _ => self.part().is_some_and(|part| found == part.chars().count()),
        }
    }
}

/// The part of a term in which the text is.
fn inner(of: &Term) -> &Term {
    match of {
        Term::Concat(one, other) if matches!(&**one, Term::Text(_)) => other,
        Term::Concat(of, _) | Term::Before(of, _) | Term::Skip(of, _) | Term::Lower(of) => of,
        other => other,
    }
}

fn depth(of: &Term) -> usize {
    if matches!(of, Term::At(_)) { 0 } else { 1 + depth(inner(of)) }
}

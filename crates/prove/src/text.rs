//! Whether a text can have some properties and lack others: properties as automata, texts as paths through all of them.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use crate::formula::{Path, Term, TextTest};

/// The most states of an automaton, and of several together.
const MOST_STATES: usize = 60_000;

/// A property of the text at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    test: TextTest,
    /// What is tested, of the text; [`Term::At`] with an empty path stands for it.
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

    fn characters(&self, to: &mut BTreeSet<char>) {
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
    fn start(&self) -> Vec<u32> {
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

    /// A character passes the parts of the term from the inside to the outside, then the test.
    fn feed(&self, outer: &[&Term], state: &mut [u32], mut char: char) {
        for (index, part) in outer.iter().enumerate().rev() {
            let own = index + 1;
            match part {
                Term::Before(_, end) => {
                    if state[own] == 1 || char == *end {
                        state[own] = 1;
                        return;
                    }
                }
                Term::Skip(_, count) => {
                    if (state[own] as usize) < *count {
                        state[own] += 1;
                        return;
                    }
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
            TextTest::Equals(_) => {
                if part.get(found) == Some(&char) {
                    found + 1
                } else {
                    part.len() + 1
                }
            }
            TextTest::StartsWith(_) if found == part.len() => found,
            TextTest::StartsWith(_) => {
                if part.get(found) == Some(&char) {
                    found + 1
                } else {
                    part.len() + 1
                }
            }
            TextTest::Contains(_) if found == part.len() => found,
            // The longest beginning of the part that ends here.
            _ => {
                let seen: Vec<char> = part[..found].iter().copied().chain([char]).collect();
                (0..=part.len().min(seen.len())).rev().find(|count| seen.ends_with(&part[..*count])).unwrap_or(0)
            }
        };
        u32::try_from(next).unwrap_or(u32::MAX)
    }

    /// Whether the text may end in a state.
    fn accepts(&self, state: &[u32]) -> bool {
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

/// A property as a table.
#[derive(Debug)]
struct Automaton {
    /// The next state, by state and character.
    next: Vec<u32>,
    accepts: Vec<bool>,
    /// Whether a state that accepts can be reached, and one that does not.
    reaches: [Vec<bool>; 2],
}

impl Automaton {
    fn new(of: &Property, alphabet: &[char]) -> Option<Self> {
        let start = of.start();
        let mut numbers = HashMap::from([(start.clone(), 0_u32)]);
        let (mut states, mut next) = (vec![start], Vec::new());
        let mut at = 0;
        while at < states.len() {
            for char in alphabet {
                let mut parts = Vec::new();
                let mut term = &of.of;
                while !matches!(term, Term::At(_)) {
                    parts.push(term);
                    term = inner(term);
                }
                let mut state = states[at].clone();
                of.feed(&parts, &mut state, *char);
                let number = match numbers.get(&state) {
                    Some(number) => *number,
                    None => {
                        let number = u32::try_from(states.len()).ok()?;
                        numbers.insert(state.clone(), number);
                        states.push(state);
                        number
                    }
                };
                next.push(number);
            }
            at += 1;
            if states.len() > MOST_STATES {
                return None;
            }
        }
        let accepts: Vec<bool> = states.iter().map(|state| of.accepts(state)).collect();
        let reaches = [false, true].map(|wanted| {
            let mut reaches: Vec<bool> = accepts.iter().map(|accepts| *accepts == wanted).collect();
            loop {
                let mut changed = false;
                for state in 0..reaches.len() {
                    let row = &next[state * alphabet.len()..(state + 1) * alphabet.len()];
                    if !reaches[state] && row.iter().any(|next| reaches[*next as usize]) {
                        reaches[state] = true;
                        changed = true;
                    }
                }
                if !changed {
                    return reaches;
                }
            }
        });
        Some(Self { next, accepts, reaches })
    }
}

/// Searches texts over an alphabet.
#[derive(Debug, Default)]
pub struct Texts {
    alphabet: Vec<char>,
    automata: HashMap<Property, Option<Rc<Automaton>>>,
    pairs: HashMap<[(Property, bool); 2], bool>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A text.
    Text(String),
    /// That there is none.
    Nothing,
    /// Nothing, within its limits.
    GaveUp,
}

impl Texts {
    /// Searches for texts with these properties. No property tells two characters apart that none of them names, except
    /// by their case.
    pub fn new<'p>(properties: impl IntoIterator<Item = &'p Property>) -> Self {
        let mut named = BTreeSet::new();
        for property in properties {
            property.characters(&mut named);
        }
        for char in named.clone() {
            named.extend([char.to_ascii_lowercase(), char.to_ascii_uppercase()]);
        }
        // One stands for all that are not named. There are more of these than an expression has characters.
        let letters = "xyzwqkjvubtrsnmlhgfedcpaoi0123456789-_".chars();
        let unnamed = letters.chain('\u{e000}'..='\u{10ffff}').find(|char| !named.contains(char));
        let alphabet = unnamed.into_iter().chain(named.iter().copied()).collect();
        Self { alphabet, ..Self::default() }
    }

    fn automaton(&mut self, of: &Property) -> Option<Rc<Automaton>> {
        let alphabet = &self.alphabet;
        self.automata.entry(of.clone()).or_insert_with(|| Automaton::new(of, alphabet).map(Rc::new)).clone()
    }

    /// Whether two of these exclude each other.
    pub fn exclusive(&mut self, one: &(Property, bool), other: &(Property, bool)) -> bool {
        let key = [one.clone(), other.clone()];
        if let Some(found) = self.pairs.get(&key) {
            return *found;
        }
        let found = self.search(&key) == Found::Nothing;
        self.pairs.insert(key, found);
        found
    }

    /// A text that has, or lacks, each of these properties: the shortest one.
    pub fn search(&mut self, wanted: &[(Property, bool)]) -> Found {
        let (mut least, mut most) = (0, usize::MAX);
        let mut automata = Vec::new();
        for (property, has) in wanted {
            match (property.least(), has) {
                (Some(count), true) => least = least.max(count),
                (Some(0), false) => return Found::Nothing,
                (Some(count), false) => most = most.min(count - 1),
                (None, has) => match self.automaton(property) {
                    Some(automaton) => automata.push((automaton, *has)),
                    None => return Found::GaveUp,
                },
            }
        }
        if least > most { Found::Nothing } else { self.walk(&automata, least, most) }
    }

    /// A shortest path through all automata, of a length within limits. Once no new states come, a longer path only
    /// repeats them.
    fn walk(&self, automata: &[(Rc<Automaton>, bool)], least: usize, most: usize) -> Found {
        let width = self.alphabet.len();
        let alive = |state: &[u32]| {
            automata.iter().zip(state).all(|((of, has), state)| of.reaches[usize::from(*has)][*state as usize])
        };
        let ends =
            |state: &[u32]| automata.iter().zip(state).all(|((of, has), state)| of.accepts[*state as usize] == *has);
        let start = vec![0_u32; automata.len()];
        if !alive(&start) {
            return Found::Nothing;
        }
        // The states after each number of characters, each with its state before and the character.
        let mut layers: Vec<HashMap<Vec<u32>, (Vec<u32>, char)>> = vec![HashMap::from([(start.clone(), (start, ' '))])];
        let mut seen: std::collections::HashSet<Vec<u32>> =
            if least == 0 { layers[0].keys().cloned().collect() } else { std::collections::HashSet::new() };
        let mut work = 0;
        loop {
            let length = layers.len() - 1;
            let Some(last) = layers.last() else { return Found::GaveUp };
            if length >= least
                && let Some(end) = last.keys().filter(|state| ends(state)).min()
            {
                return Found::Text(spelled(&layers, end));
            }
            if length == most {
                return Found::Nothing;
            }
            let mut next: HashMap<Vec<u32>, (Vec<u32>, char)> = HashMap::new();
            let mut from: Vec<_> = last.keys().collect();
            from.sort();
            for state in from {
                for (index, char) in self.alphabet.iter().enumerate() {
                    work += 1;
                    let after: Vec<u32> = automata
                        .iter()
                        .zip(state)
                        .map(|((of, _), state)| of.next[*state as usize * width + index])
                        .collect();
                    // Below the least length, a state is reached at several lengths.
                    if !alive(&after)
                        || next.contains_key(&after)
                        || (length + 1 > least && !seen.insert(after.clone()))
                    {
                        continue;
                    }
                    next.insert(after, (state.clone(), *char));
                }
            }
            if next.is_empty() {
                return Found::Nothing;
            }
            if work > MOST_STATES * 100 {
                return Found::GaveUp;
            }
            layers.push(next);
        }
    }
}

/// The characters on the way to a state of the last layer.
fn spelled(layers: &[HashMap<Vec<u32>, (Vec<u32>, char)>], end: &[u32]) -> String {
    let (mut text, mut state) = (Vec::new(), end.to_vec());
    for layer in layers.iter().skip(1).rev() {
        let Some((before, char)) = layer.get(&state) else { break };
        text.push(*char);
        state = before.clone();
    }
    text.iter().rev().collect()
}

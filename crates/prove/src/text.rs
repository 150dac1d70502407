//! Whether a text can have some properties and lack others: a text is a path through the automata of all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use crate::property::Property;

/// The most states of an automaton, and of several together.
const MOST_STATES: usize = 60_000;

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
        let mut numbers = BTreeMap::from([(start.clone(), 0_u32)]);
        let (mut states, mut next) = (vec![start], Vec::new());
        let mut at = 0;
        while at < states.len() {
            for char in alphabet {
                let mut state = states[at].clone();
                of.read(&mut state, *char);
                let number = if let Some(number) = numbers.get(&state) {
                    *number
                } else {
                    let number = u32::try_from(states.len()).ok()?;
                    numbers.insert(state.clone(), number);
                    states.push(state);
                    number
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

/// States of several automata, each with the states before it and the character between them.
type Layer = BTreeMap<Vec<u32>, (Vec<u32>, char)>;

/// Searches texts over an alphabet.
#[derive(Debug, Default)]
pub struct Texts {
    alphabet: Vec<char>,
    automata: BTreeMap<Property, Option<Rc<Automaton>>>,
    pairs: BTreeMap<[(Property, bool); 2], bool>,
}

/// The result of a search.
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
        let mut layers: Vec<Layer> = vec![BTreeMap::from([(start.clone(), (start, ' '))])];
        let mut seen: BTreeSet<Vec<u32>> =
            if least == 0 { layers[0].keys().cloned().collect() } else { BTreeSet::new() };
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
            let mut next: Layer = BTreeMap::new();
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
fn spelled(layers: &[Layer], end: &[u32]) -> String {
    let (mut text, mut state) = (Vec::new(), end.to_vec());
    for layer in layers.iter().skip(1).rev() {
        let Some((before, char)) = layer.get(&state) else { break };
        text.push(*char);
        state = before.clone();
    }
    text.iter().rev().collect()
}

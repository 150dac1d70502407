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
    /// By character of the alphabet: its class. The property does not tell the characters of a class apart.
    classes: Vec<u16>,
    /// How many classes there are.
    width: usize,
    /// The next state, by state and class.
    next: Vec<u32>,
    accepts: Vec<bool>,
    /// Whether a state that does not accept can be reached, and one that does.
    reaches: [Vec<bool>; 2],
}

impl Automaton {
    /// `alphabet`: its first character is named by no property, so it stands for all that this one does not name.
    fn new(of: &Property, alphabet: &[char]) -> Option<Self> {
        let mut named = BTreeSet::new();
        of.characters(&mut named);
        let mut letters: Vec<char> = alphabet.iter().copied().take(1).collect();
        let mut classes = Vec::new();
        for char in alphabet {
            let is_named = [*char, char.to_ascii_lowercase(), char.to_ascii_uppercase()];
            if is_named.iter().any(|char| named.contains(char)) {
                classes.push(u16::try_from(letters.len()).ok()?);
                letters.push(*char);
            } else {
                classes.push(0);
            }
        }
        let start = of.start();
        let mut numbers = BTreeMap::from([(start.clone(), 0_u32)]);
        let (mut states, mut next) = (vec![start], Vec::new());
        let mut at = 0;
        while at < states.len() {
            for char in &letters {
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
        let width = letters.len();
        let accepts: Vec<bool> = states.iter().map(|state| of.accepts(state)).collect();
        let reaches = [false, true].map(|wanted| {
            let mut reaches: Vec<bool> = accepts.iter().map(|accepts| *accepts == wanted).collect();
            loop {
                let mut changed = false;
                // Most transitions lead to a later state.
                for state in (0..reaches.len()).rev() {
                    let row = &next[state * width..(state + 1) * width];
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
        Some(Self { classes, width, next, accepts, reaches })
    }
}

/// States of several automata, each with the states before it and the character between them.
type Layer = BTreeMap<Vec<u32>, (Vec<u32>, char)>;

/// A property by its number, and whether a text has it.
pub type Wanted = (usize, bool);

/// Searches texts over an alphabet.
#[derive(Debug, Default)]
pub struct Texts {
    alphabet: Vec<char>,
    numbers: BTreeMap<Property, usize>,
    properties: Vec<Property>,
    automata: Vec<Option<Option<Rc<Automaton>>>>,
    pairs: BTreeMap<[Wanted; 2], bool>,
    found: BTreeMap<Vec<Wanted>, (Found, Vec<Wanted>)>,
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
    /// Searches for texts with these properties, and with others that name no other characters. No property tells two
    /// characters apart that none of them names, except by their case.
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

    /// The number of a property.
    pub fn number(&mut self, of: &Property) -> usize {
        if let Some(found) = self.numbers.get(of) {
            return *found;
        }
        let number = self.properties.len();
        self.properties.push(of.clone());
        self.automata.push(None);
        self.numbers.insert(of.clone(), number);
        number
    }

    /// The property of another text, which follows this constant in the first one.
    pub fn after(&mut self, of: usize, prefix: &Rc<str>) -> usize {
        let after = self.properties[of].after(prefix);
        self.number(&after)
    }

    /// The text, if the property is to be this one.
    pub fn constant(&self, of: usize) -> Option<&Rc<str>> {
        self.properties[of].constant()
    }

    fn automaton(&mut self, of: usize) -> Option<Rc<Automaton>> {
        if self.automata[of].is_none() {
            self.automata[of] = Some(Automaton::new(&self.properties[of], &self.alphabet).map(Rc::new));
        }
        self.automata[of].clone().flatten()
    }

    /// Whether two of these exclude each other.
    pub fn exclusive(&mut self, one: Wanted, other: Wanted) -> bool {
        let key = [one.min(other), one.max(other)];
        if let Some(found) = self.pairs.get(&key) {
            return *found;
        }
        let found = self.shortest(&key) == Found::Nothing;
        self.pairs.insert(key, found);
        found
    }

    /// A text that has, or lacks, each of these properties: one of the shortest.
    pub fn search(&mut self, wanted: &[Wanted]) -> Found {
        self.searched(wanted).0.clone()
    }

    /// Of these, which exclude each other, those that are needed for that.
    pub fn needed(&mut self, wanted: &[Wanted]) -> Vec<Wanted> {
        let mut kept = self.searched(wanted).1.clone();
        for one in kept.clone() {
            let fewer: Vec<Wanted> = kept.iter().copied().filter(|other| *other != one).collect();
            if self.shortest(&fewer) == Found::Nothing {
                kept = fewer;
            }
        }
        kept
    }

    /// A shortest text with some of these properties; while it lacks another one, this is added.
    fn searched(&mut self, wanted: &[Wanted]) -> &(Found, Vec<Wanted>) {
        let mut key = wanted.to_vec();
        key.sort_unstable();
        key.dedup();
        if !self.found.contains_key(&key) {
            let mut few: Vec<Wanted> = Vec::new();
            let found = loop {
                let found = self.shortest(&few);
                let Found::Text(text) = &found else { break found };
                let lacking = key.iter().copied().find(|(of, has)| self.properties[*of].holds(text) != *has);
                match lacking {
                    None => break found,
                    Some(one) if few.contains(&one) => break Found::GaveUp,
                    Some(one) => few.push(one),
                }
            };
            self.found.insert(key.clone(), (found, few));
        }
        &self.found[&key]
    }

    /// A shortest text with all of these properties.
    fn shortest(&mut self, wanted: &[Wanted]) -> Found {
        let (mut least, mut most) = (0, usize::MAX);
        let mut automata = Vec::new();
        for (property, has) in wanted {
            match (self.properties[*property].least(), has) {
                (Some(count), true) => least = least.max(count),
                (Some(0), false) => return Found::Nothing,
                (Some(count), false) => most = most.min(count - 1),
                (None, has) => match self.automaton(*property) {
                    Some(automaton) => automata.push((automaton, *has)),
                    None => return Found::GaveUp,
                },
            }
        }
        if least > most { Found::Nothing } else { self.walk(&automata, least, most) }
    }

    /// The characters that some of these automata tell apart: of each class one, with its class in each of them.
    fn letters(&self, automata: &[(Rc<Automaton>, bool)]) -> Vec<(char, Vec<u16>)> {
        let mut seen = BTreeSet::new();
        let of = |(index, char): (usize, &char)| {
            let classes: Vec<u16> = automata.iter().map(|(of, _)| of.classes[index]).collect();
            seen.insert(classes.clone()).then_some((*char, classes))
        };
        self.alphabet.iter().enumerate().filter_map(of).collect()
    }

    /// A shortest path through all automata, of a length within limits. Once no new states come, a longer path only
    /// repeats them.
    fn walk(&self, automata: &[(Rc<Automaton>, bool)], least: usize, most: usize) -> Found {
        let letters = self.letters(automata);
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
                && let Some(end) = last.keys().find(|state| ends(state))
            {
                return Found::Text(spelled(&layers, end));
            }
            if length == most {
                return Found::Nothing;
            }
            let mut next: Layer = BTreeMap::new();
            for state in last.keys() {
                for (char, classes) in &letters {
                    work += 1;
                    let after: Vec<u32> = automata
                        .iter()
                        .zip(state.iter().zip(classes))
                        .map(|((of, _), (state, class))| of.next[*state as usize * of.width + usize::from(*class)])
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

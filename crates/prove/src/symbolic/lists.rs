//! Lists: their elements, loops over them, and their sizes.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use palisade_cel::ast::{Expr, Node};

use super::{
    Choice, Evaluator, Result, Scope, Truth, Value, unsupported,
    value::{Elements, Item},
    with,
};
use crate::formula::{Atom, FALSE, Formula, Path, Step, TRUE, Term, Var, child};

/// The most elements that are counted one by one.
const MOST_COUNTED: usize = 10;

/// The list of a map's entries with none of the named keys.
pub(super) fn entries(map: &Path) -> Path {
    child(map, Step::EntryKey)
}

/// Elements of a list, with names of their own.
pub(super) struct Named {
    /// The lists and the names of their elements.
    pub over: Vec<(Path, Var)>,
    /// When there is such an element.
    pub guard: Formula,
    /// Its value.
    pub value: Value,
}

impl Evaluator<'_> {
    pub(super) fn list(&mut self, elements: &[Node], optional: &[usize], scope: &Scope) -> Result<Choice> {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for (index, element) in elements.iter().enumerate() {
            let value = self.value(element, scope)?;
            errors.push(value.error());
            for (guard, value) in value.values {
                match value {
                    Value::Some(value) if optional.contains(&index) => {
                        all.push(Elements::one(guard, (*value).clone()));
                    }
                    Value::None if optional.contains(&index) => {}
                    _ if optional.contains(&index) => return unsupported("an optional element of unknown type"),
                    value => all.push(Elements::one(guard, value)),
                }
            }
        }
        let error = self.formulas.or(errors);
        let fine = self.formulas.not(error);
        Ok(Choice::new(vec![(fine, Value::List(all.into()))], error))
    }

    /// All elements of what a loop runs over, and when there is no list.
    pub(super) fn elements(&mut self, of: &Choice) -> Result<(Vec<Elements>, Formula)> {
        let mut all = Vec::new();
        for (guard, value) in &of.values {
            match value {
                Value::List(elements) => {
                    for one in elements.iter() {
                        let guard = self.formulas.and([*guard, one.guard]);
                        all.push(Elements { over: Rc::clone(&one.over), guard, item: one.item.clone() });
                    }
                }
                Value::Map(path, _) => {
                    let keys: Vec<_> = self.keys.iter().cloned().collect();
                    for key in keys {
                        let present = Atom::Present(child(path, Step::Key(Rc::clone(&key))));
                        let present = self.formulas.atom(present);
                        let guard = self.formulas.and([*guard, present]);
                        all.push(Elements::one(guard, Value::Text(Term::Text(key))));
                    }
                    let list = entries(path);
                    let var = self.formulas.fresh();
                    let entry = child(&list, Step::Element(var));
                    let key = Value::Text(Term::At(child(&entry, Step::EntryKey)));
                    all.push(Elements { over: [(list, var)].into(), guard: *guard, item: Item::One(key) });
                }
                Value::Object(path, fields) => {
                    for (name, of) in fields.iter() {
                        let present = Atom::Present(super::field(path, name));
                        let present = if of.always { TRUE } else { self.formulas.atom(present) };
                        let guard = self.formulas.and([*guard, present]);
                        all.push(Elements::one(guard, Value::Text(Term::Text(Rc::clone(name)))));
                    }
                }
                Value::Record(entries) => {
                    all.extend(
                        entries.keys().map(|key| Elements::one(*guard, Value::Text(Term::Text(Rc::clone(key))))),
                    );
                }
                _ => return unsupported("a loop over a value other than a list"),
            }
        }
        Ok((all, of.error()))
    }

    /// The elements with names that nothing else has, so that a loop within a loop over the same list has its own.
    pub(super) fn named(&mut self, elements: &[Elements]) -> Vec<Named> {
        let mut all = Vec::new();
        for one in elements {
            let mut names = BTreeMap::new();
            let mut over = Vec::new();
            for (list, var) in one.over.iter() {
                let list = crate::formula::path_renamed(list, &names);
                let fresh = self.formulas.fresh();
                names.insert(*var, fresh);
                over.push((list, fresh));
            }
            let guard = self.formulas.rename(one.guard, &names);
            let value = match one.item.renamed(&names, self.formulas) {
                Item::One(value) => value,
                Item::All(list, of) => {
                    let fresh = self.formulas.fresh();
                    let at = child(&list, Step::Element(fresh));
                    over.push((list, fresh));
                    self.at(at, &of)
                }
            };
            if guard != FALSE {
                all.push(Named { over, guard, value });
            }
        }
        all
    }

    /// A formula for one element, or for each.
    fn quantified(&mut self, exists: bool, over: &[(Path, Var)], mut body: Formula) -> Formula {
        for (list, var) in over.iter().rev() {
            body = self.formulas.quantify(exists, list, *var, body);
        }
        body
    }

    fn some(&mut self, of: &Named, body: Formula) -> Formula {
        let body = self.formulas.and([of.guard, body]);
        self.quantified(true, &of.over, body)
    }

    fn every(&mut self, of: &Named, body: Formula) -> Formula {
        let body = self.formulas.implies(of.guard, body);
        self.quantified(false, &of.over, body)
    }

    /// `of.all(name, body)`, or `exists`.
    pub(super) fn loops(&mut self, of: &Choice, args: &[Node], scope: &Scope, all: bool) -> Result<Truth> {
        let [Node { expr: Expr::Ident(name), .. }, body] = args else {
            return unsupported("a loop with two variables");
        };
        let (elements, missing) = self.elements(of)?;
        let (mut holds, mut fails, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for one in self.named(&elements) {
            let body = self.truth_of(body, &with(scope, name, one.value.clone()))?;
            let (each, any) = if all { (body.yes, body.no) } else { (body.no, body.yes) };
            holds.push(self.every(&one, each));
            fails.push(self.some(&one, any));
            errors.push(self.some(&one, body.error));
        }
        let fine = self.formulas.not(missing);
        holds.push(fine);
        let each = self.formulas.and(holds);
        let any = self.formulas.or(fails);
        let any = self.formulas.and([fine, any]);
        let error = self.formulas.or(errors);
        let not = self.formulas.not(any);
        let error = self.formulas.and([fine, error, not]);
        let error = self.formulas.or([missing, error]);
        Ok(if all { Truth { yes: each, no: any, error } } else { Truth { yes: any, no: each, error } })
    }

    /// `of.map(name, condition, value)` or `of.filter(name, condition)`.
    pub(super) fn mapped(
        &mut self,
        of: &Choice,
        name: &Arc<str>,
        condition: Option<&Node>,
        value: Option<&Node>,
        scope: &Scope,
    ) -> Result<Choice> {
        let (elements, missing) = self.elements(of)?;
        let (mut all, mut errors) = (Vec::new(), vec![missing]);
        for one in self.named(&elements) {
            let scope = with(scope, name, one.value.clone());
            let kept = match condition {
                Some(condition) => self.truth_of(condition, &scope)?,
                None => Truth { yes: TRUE, no: FALSE, error: FALSE },
            };
            let found = match value {
                Some(value) if kept.yes != FALSE => self.value(value, &scope)?,
                Some(_) => Choice::default(),
                None => Choice::of(one.value.clone()),
            };
            let failed = self.formulas.and([kept.yes, found.error()]);
            let failed = self.formulas.or([kept.error, failed]);
            errors.push(self.some(&one, failed));
            for (guard, value) in found.values {
                let guard = self.formulas.and([one.guard, kept.yes, guard]);
                all.push(Elements { over: one.over.clone().into(), guard, item: Item::One(value) });
            }
        }
        all.retain(|one| one.guard != FALSE);
        let error = self.formulas.or(errors);
        let fine = self.formulas.not(error);
        Ok(Choice::new(vec![(fine, Value::List(all.into()))], error))
    }

    /// Several lists as one, of which each has its elements only where it is the value.
    pub(super) fn merged(&mut self, of: Choice) -> Choice {
        let lists = of.values.iter().all(|(_, value)| matches!(value, Value::List(_)));
        if of.values.len() < 2 || !lists {
            return of;
        }
        let Ok((all, error)) = self.elements(&of) else { return of };
        let fine = self.formulas.not(error);
        Choice::new(vec![(fine, Value::List(all.into()))], error)
    }

    /// Whether a value is an element, or the key of a map.
    pub(super) fn contains(&mut self, one: &Choice, list: &Choice) -> Result<Truth> {
        let (pairs, error) = self.pairs(one, list);
        let mut cases = Vec::new();
        for (guard, value, list) in pairs {
            if let (Value::Text(Term::Text(key)), Value::Map(path, _)) = (&value, &list) {
                // It is one of the map's named keys from now on.
                self.grown |= self.keys.insert(Rc::clone(key));
                let present = self.formulas.atom(Atom::Present(child(path, Step::Key(Rc::clone(key)))));
                cases.push((guard, present));
                continue;
            }
            let (elements, _) = self.elements(&Choice::of(list))?;
            let mut found = Vec::new();
            for element in self.named(&elements) {
                let same = self.same(&value, &element.value)?;
                found.push(self.some(&element, same));
            }
            cases.push((guard, self.formulas.or(found)));
        }
        Ok(self.decided(cases, error))
    }

    /// The number of elements.
    pub(super) fn length(&mut self, of: &Choice) -> Result<Choice> {
        let (mut values, mut elements) = (Vec::new(), Vec::new());
        for (guard, value) in &of.values {
            match value {
                Value::Text(Term::Text(text)) => {
                    let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
                    values.push((*guard, Value::Int(Term::Int(count))));
                }
                Value::Text(term) => values.push((*guard, Value::TextLength(term.clone()))),
                Value::Message | Value::Opaque(_) => return unsupported("the size of a value of unknown type"),
                // Its named keys and its other entries are counted together.
                Value::Map(path, _) => {
                    let item = Item::All(Rc::clone(path), Rc::new(crate::universe::Type::Other));
                    elements.push(Elements { over: [].into(), guard: *guard, item });
                }
                value => {
                    elements.extend(self.elements(&Choice { values: vec![(*guard, value.clone())], error: None })?.0);
                }
            }
        }
        match (values.is_empty(), elements.is_empty()) {
            (true, _) => {
                let fine = self.formulas.not(of.error());
                Ok(Choice::new(vec![(fine, Value::Length(elements.into()))], of.error()))
            }
            (_, true) => Ok(Choice::new(values, of.error())),
            _ => unsupported("the size of a text or a list"),
        }
    }

    /// Whether a list has at least so many elements.
    pub(super) fn at_least(&mut self, elements: &[Elements], count: u64) -> Result<Formula> {
        if count == 0 {
            return Ok(TRUE);
        }
        let whole = |one: &Elements| match &one.item {
            Item::All(list, _) if one.over.is_empty() => Some((one.guard, Rc::clone(list))),
            _ => None,
        };
        if let Some(lists) = elements.iter().map(whole).collect::<Option<Vec<_>>>() {
            return self.lists_at_least(&lists, count);
        }
        if count == 1 {
            let mut found = Vec::new();
            for element in self.named(elements) {
                found.push(self.some(&element, TRUE));
            }
            return Ok(self.formulas.or(found));
        }
        let single = elements.iter().all(|one| one.over.is_empty() && matches!(one.item, Item::One(_)));
        if !single || elements.len() > MOST_COUNTED {
            return unsupported("the size of a computed list");
        }
        let mut found = Vec::new();
        for chosen in 0..1_u32 << elements.len() {
            if u64::from(chosen.count_ones()) == count {
                let guards = elements.iter().enumerate().filter(|(index, _)| chosen >> index & 1 == 1);
                let guards: Vec<_> = guards.map(|(_, one)| one.guard).collect();
                found.push(self.formulas.and(guards));
            }
        }
        Ok(self.formulas.or(found))
    }

    /// Whether lists, each of which counts if its guard holds, have together at least so many elements.
    fn lists_at_least(&mut self, lists: &[(Formula, Path)], count: u64) -> Result<Formula> {
        let (fixed, open): (Vec<_>, Vec<_>) =
            lists.iter().filter(|(guard, _)| *guard != FALSE).partition(|(guard, _)| *guard == TRUE);
        if open.len() > MOST_COUNTED {
            return unsupported("the size of many lists together");
        }
        let mut found = Vec::new();
        for chosen in 0..1_u32 << open.len() {
            let mut counted: Vec<Path> = fixed.iter().map(|(_, list)| Rc::clone(list)).collect();
            let mut guards = Vec::new();
            for (index, (guard, list)) in open.iter().enumerate() {
                if chosen >> index & 1 == 1 {
                    guards.push(*guard);
                    counted.push(Rc::clone(list));
                } else {
                    guards.push(self.formulas.not(*guard));
                }
            }
            counted.sort();
            if counted.windows(2).any(|two| two[0] == two[1]) {
                return unsupported("the size of a list with itself");
            }
            if !counted.is_empty() {
                guards.push(self.formulas.atom(Atom::Long(counted.into(), count)));
                found.push(self.formulas.and(guards));
            }
        }
        Ok(self.formulas.or(found))
    }
}

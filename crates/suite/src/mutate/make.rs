//! What mistakes there are to make: in the policies of a suite, and in the custom checks of its profiles.

use palisade_api::CustomCheck;
use palisade_apiserver::admission::PolicyKind;
use palisade_cel::mutate::{self, mutants};

use super::{Baseline, Change, Mutant};
use crate::{
    cluster::{Member, Profile},
    places::{Locator, Place},
};

/// What is written for a message.
const OTHER_MESSAGE: &str = "another message";

/// A text with a mistake in it.
struct Edit {
    line: usize,
    column: usize,
    description: String,
    before: String,
    after: String,
    text: String,
}

impl Baseline<'_> {
    /// The mutants of the suite: those of all validations, match conditions, variables and mutations of its policies and
    /// of the custom checks of its profiles, and those of messages and reasons. Audit annotations have none, nor has
    /// what a profile becomes besides its custom checks.
    pub fn mutants(&self) -> Vec<Mutant> {
        let mut found = Vec::new();
        for policy in self.suite.policies().filter(|policy| !policy.origin.generated) {
            self.of_expressions(policy, &mut found);
            of_messages(policy, &mut found);
        }
        for profile in self.suite.profiles.iter() {
            of_profile(profile, &mut found);
        }
        found
    }

    fn of_expressions(&self, policy: &Member, found: &mut Vec<Mutant>) {
        let Some(world) = self.suite.worlds.first() else { return };
        let own = world.expressions().filter(|one| (one.kind, one.policy) == (policy.policy_kind(), policy.name()));
        for expression in own.filter(|one| one.path.ends_with(".expression")) {
            found.extend(of_policy(policy, expression.path, expression.path, false, edits(expression.source)));
        }
    }
}

fn of_messages(policy: &Member, found: &mut Vec<Mutant>) {
    let validations = policy.object["spec"]["validations"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, validation) in validations.iter().enumerate() {
        let text = |field: &str| validation[field].as_str().filter(|text| !text.is_empty());
        let mut add = |field: &str, edits| {
            let (path, of) = (format!("validations[{index}].{field}"), format!("validations[{index}].expression"));
            found.extend(of_policy(policy, &path, &of, true, edits));
        };
        // Of the two the expression is shown.
        match (text("message"), text("messageExpression")) {
            (_, Some(expression)) => add("messageExpression", edits_of_message(expression)),
            (Some(message), None) => add("message", vec![whole(message, OTHER_MESSAGE)]),
            (None, None) => {}
        }
        if let Some(reason) = text("reason") {
            add("reason", vec![whole(reason, if reason == "Forbidden" { "Invalid" } else { "Forbidden" })]);
        }
    }
}

/// Mutants of a text of a policy.
fn of_policy(policy: &Member, path: &str, noticed_by: &str, of_message: bool, edits: Vec<Edit>) -> Vec<Mutant> {
    let locator = Locator::new(&policy.origin);
    let mutant = |edit: Edit| {
        let place = locator.text(&format!("spec.{path}"), edit.line, edit.column);
        let change = Change {
            kind: policy.policy_kind(),
            policy: policy.name().to_owned(),
            path: path.to_owned(),
            source: edit.text.clone(),
            noticed_by: noticed_by.to_owned(),
        };
        edit.mutant(place, policy.name(), path, of_message, vec![change])
    };
    edits.into_iter().map(mutant).collect()
}

/// Mutants of the custom checks of a profile, each in all policies that the profile becomes.
fn of_profile(profile: &Profile, found: &mut Vec<Mutant>) {
    let locator = Locator::new(&profile.member.origin);
    for (index, custom) in profile.compiled.customs.iter().enumerate() {
        let mut add = |field: &str, of_message: bool, edits: Vec<Edit>, set: fn(&mut CustomCheck, String)| {
            for edit in edits {
                let path = format!("{}.{field}", custom.path);
                let changes = changes(profile, index, |check| set(check, edit.text.clone()));
                let place = locator.text(&path, edit.line, edit.column);
                found.push(edit.mutant(place, profile.member.name(), &path, of_message, changes));
            }
        };
        let check = &custom.check;
        add("expression", false, edits(&check.expression), |check, text| check.expression = text);
        if let Some(expression) = &check.message_expression {
            let edits = edits_of_message(expression);
            add("messageExpression", true, edits, |check, text| check.message_expression = Some(text));
        }
        if let Some(message) = &check.message {
            add("message", true, vec![whole(message, OTHER_MESSAGE)], |check, text| check.message = Some(text));
        }
    }
}

/// What another custom check changes in the policies of a profile.
fn changes(profile: &Profile, index: usize, set: impl FnOnce(&mut CustomCheck)) -> Vec<Change> {
    let mut changed = profile.typed.clone();
    if let Some(check) = changed.spec.custom_checks.get_mut(index) {
        set(check);
    }
    let Ok(compiled) = palisade_compiler::compile(&changed) else { return Vec::new() };
    let Some(custom) = compiled.customs.get(index) else { return Vec::new() };
    let variable = custom.variable();
    let changed = Profile { compiled, ..profile.clone() };
    let change = |(policy, path, source): (&str, String, &str)| Change {
        kind: PolicyKind::Validating,
        policy: policy.to_owned(),
        noticed_by: path.clone(),
        path,
        source: source.to_owned(),
    };
    changed.variables(&variable).into_iter().map(change).collect()
}

impl Edit {
    fn mutant(self, place: Place, of: &str, path: &str, of_message: bool, changes: Vec<Change>) -> Mutant {
        let Self { description, before, after, .. } = self;
        let (policy, path) = (of.to_owned(), path.to_owned());
        Mutant { place, policy, path, of_message, description, before, after, changes }
    }
}

/// The mistakes in an expression.
fn edits(source: &str) -> Vec<Edit> {
    let edit = |mutant: mutate::Mutant| {
        let (before, after) = lines(source, &mutant);
        let (line, column) = (mutant.position.line, mutant.position.column);
        Edit { line, column, before, after, text: mutant.apply(source), description: mutant.description }
    };
    mutants(source).into_iter().map(edit).collect()
}

/// The mistakes in the expression of a message; if no text stands in it, that it says something else.
fn edits_of_message(source: &str) -> Vec<Edit> {
    let mut found = edits(source);
    if !source.contains(['\'', '"']) {
        found.insert(0, whole(source, &format!("'{OTHER_MESSAGE}'")));
    }
    found
}

/// Another text in the place of one.
fn whole(before: &str, after: &str) -> Edit {
    let description = format!("write `{after}`");
    let (before, after) = (before.to_owned(), after.to_owned());
    Edit { line: 1, column: 1, description, before, text: after.clone(), after }
}

/// The lines that an edit changes, before and after.
fn lines(source: &str, mutant: &mutate::Mutant) -> (String, String) {
    let start = source[..mutant.range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = source[mutant.range.end..].find('\n').map_or(source.len(), |at| mutant.range.end + at);
    let (head, tail) = (&source[start..mutant.range.start], &source[mutant.range.end..end]);
    (source[start..end].to_owned(), [head, &mutant.replacement, tail].concat())
}

//! The mistakes to make: in the policies of a suite, and in the objects that become policies.

use palisade_admission::requests::PolicyKind;
use palisade_cel::mutate::{self, mutants};

use super::{Baseline, Change, Mutant};
use crate::{
    Replaced, Text, TextKind,
    cluster::{Member, Source},
    places::{Locator, Place},
};

/// The text that replaces a message.
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
    /// The mutants of the suite: those of all validations, match conditions, variables and mutations of its policies,
    /// of the rules of its definitions and of the custom checks of its profiles, and those of messages and reasons. Audit annotations have none, and
    /// neither has the rest of a profile.
    pub fn mutants(&self) -> Vec<Mutant> {
        let mut found = Vec::new();
        for policy in self.suite.policies().filter(|policy| !policy.origin.generated) {
            self.of_expressions(policy, &mut found);
            of_messages(policy, &mut found);
        }
        for definition in self.suite.definitions() {
            self.of_rules(definition, &mut found);
        }
        for source in self.suite.sources.iter() {
            of_source(source, &mut found);
        }
        found
    }

    /// Mutants of the rules of a definition.
    fn of_rules(&self, definition: &Member, found: &mut Vec<Mutant>) {
        let Some(cluster) = self.suite.clusters.first() else { return };
        let locator = Locator::new(&definition.origin);
        for rule in cluster.rules().into_iter().filter(|rule| rule.definition == definition.name()) {
            for edit in edits(rule.source) {
                let place = locator.text(&rule.path, edit.line, edit.column);
                let (name, pointers) = (definition.name().to_owned(), rule.pointers.clone());
                let change = Change::Definition { name, pointers, source: edit.text.clone() };
                found.push(edit.mutant(place, definition.name(), &rule.path, false, vec![change]));
            }
        }
    }

    fn of_expressions(&self, policy: &Member, found: &mut Vec<Mutant>) {
        let Some(cluster) = self.suite.clusters.first() else { return };
        let own = cluster.expressions().filter(|one| (one.kind, one.policy) == (policy.policy_kind(), policy.name()));
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
        // If there are both, the API server shows the expression.
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
        let change = Change::Policy {
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

/// Mutants of the texts in an object that becomes policies, each in all of these.
fn of_source(source: &Source, found: &mut Vec<Mutant>) {
    let Source { member, made } = source;
    let locator = Locator::new(&member.origin);
    for Text { path, kind, text } in made.texts() {
        let edits = match kind {
            TextKind::Expression => edits(&text),
            TextKind::MessageExpression => edits_of_message(&text),
            TextKind::Message => vec![whole(&text, OTHER_MESSAGE)],
        };
        for edit in edits {
            let change = |Replaced { policy, path, source }: Replaced| Change::Policy {
                kind: PolicyKind::Validating,
                policy,
                noticed_by: path.clone(),
                path,
                source,
            };
            let changes = made.with_text(&path, &edit.text).into_iter().map(change).collect();
            let place = locator.text(&path, edit.line, edit.column);
            found.push(edit.mutant(place, member.name(), &path, kind != TextKind::Expression, changes));
        }
    }
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

/// The mistakes in the expression of a message; if it has no literal text, another message instead.
fn edits_of_message(source: &str) -> Vec<Edit> {
    let mut found = edits(source);
    if !source.contains(['\'', '"']) {
        found.insert(0, whole(source, &format!("'{OTHER_MESSAGE}'")));
    }
    found
}

/// A text in place of another.
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

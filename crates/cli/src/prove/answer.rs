//! The answers, as text and as JSON.

use std::{collections::BTreeMap, fmt::Write as _};

use palisade_cel::Minor;
use serde_json::{Value as Json, json};

use super::{example::Example, found::Found};

/// The answer about one profile.
pub enum Answer {
    /// The difference of two versions.
    Change {
        /// The version before the change.
        before: String,
        /// The version after it.
        after: String,
        /// The pods that are newly admitted.
        admitted: Found,
        /// The pods that are newly denied.
        denied: Found,
    },
    /// The profile is missing before the change, or after it.
    Only {
        /// The version before the change.
        before: Option<String>,
        /// The version after it.
        after: Option<String>,
    },
    /// Whether a statement holds.
    Statement {
        /// The profile.
        profile: String,
        /// The statement about it.
        statement: String,
        /// The pods that refute it.
        found: Found,
    },
}

impl Answer {
    /// Two versions that cannot be compared.
    pub fn not_compared([before, after]: [&str; 2], why: &str) -> Self {
        let found = || Found { examples: Vec::new(), undecided: Some(why.to_owned()) };
        Self::Change { before: before.to_owned(), after: after.to_owned(), admitted: found(), denied: found() }
    }

    /// Whether a pod refutes the statement, or the statement that the change admits nothing new.
    pub fn is_refuted(&self) -> bool {
        match self {
            Self::Change { admitted: found, .. } | Self::Statement { found, .. } => !found.examples.is_empty(),
            Self::Only { after, .. } => after.is_none(),
        }
    }

    /// Why that is not known.
    pub fn undecided(&self) -> Option<String> {
        match self {
            Self::Change { before, after, admitted, .. } => {
                let why = admitted.undecided.as_ref()?;
                Some(format!("{before} -> {after}: not decided whether a pod is newly admitted: {why}"))
            }
            Self::Statement { profile, statement, found } => {
                let why = found.undecided.as_ref()?;
                Some(format!("{profile} {statement}: not decided whether the statement holds: {why}"))
            }
            Self::Only { .. } => None,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        match self {
            Self::Change { before, after, admitted, denied } => {
                let _ = writeln!(text, "{before} -> {after}: {}", verdict(admitted, denied));
                for (what, found) in [("newly admitted", admitted), ("newly denied", denied)] {
                    if found.examples.is_empty() && found.undecided.is_none() {
                        let _ = writeln!(text, "\n{what}: no pod (proved)");
                    }
                    text.push_str(&pods(&format!("{what}: "), found));
                }
            }
            Self::Only { before, after } => {
                let _ = writeln!(text, "{}", only(before.as_deref(), after.as_deref()));
            }
            Self::Statement { profile, statement, found } => {
                let verdict = match found {
                    Found { examples, .. } if !examples.is_empty() => "refuted",
                    Found { undecided: Some(_), .. } => "not decided",
                    Found { .. } => "proved",
                };
                let _ = writeln!(text, "{profile} {statement}: {verdict}");
                text.push_str(&pods("admitted: ", found));
            }
        }
        text
    }

    /// The answer in a few lines: the first message of each check that differs.
    pub fn summary(&self) -> String {
        let (mut text, changes) = match self {
            Self::Change { after, admitted, denied, .. } => (
                format!("{after}: {}\n", verdict(admitted, denied)),
                vec![("newly admitted", admitted), ("newly denied", denied)],
            ),
            Self::Only { before, after } => (format!("{}\n", only(before.as_deref(), after.as_deref())), Vec::new()),
            Self::Statement { .. } => (self.text(), Vec::new()),
        };
        for (what, found) in changes {
            let mut checks = BTreeMap::new();
            for violation in found.examples.iter().flat_map(|example| &example.violations) {
                checks.entry(&violation.check).or_insert(&violation.message);
            }
            for (check, message) in &checks {
                let _ = writeln!(text, "  {what}: [{check}] {message}");
            }
            match &found.undecided {
                Some(why) => {
                    let _ = writeln!(text, "  {what}: not decided: {why}");
                }
                None if checks.is_empty() => {
                    let _ = writeln!(text, "  {what}: no pod (proved)");
                }
                None => {}
            }
        }
        text
    }

    /// The answer as an object.
    pub fn json(&self, version: Minor) -> Json {
        let version = version.to_string();
        match self {
            Self::Change { before, after, admitted, denied } => json!({
                "before": before, "after": after, "kubeVersion": version, "change": change(admitted, denied),
                "newlyAdmitted": json_of(admitted), "newlyDenied": json_of(denied),
            }),
            Self::Only { before, after } => json!({
                "before": before, "after": after, "kubeVersion": version,
                "change": if after.is_none() { "loosening" } else { "tightening" },
            }),
            Self::Statement { profile, statement, found } => json!({
                "profile": profile, "statement": statement, "kubeVersion": version, "refutedBy": json_of(found),
            }),
        }
    }
}

/// The kind of a change.
fn change(admitted: &Found, denied: &Found) -> &'static str {
    let is_some = |found: &Found| !found.examples.is_empty();
    match (is_some(admitted), is_some(denied)) {
        (true, true) => "both",
        _ if admitted.undecided.is_some() || denied.undecided.is_some() => "undecided",
        (false, false) => "equivalent",
        (false, true) => "tightening",
        (true, false) => "loosening",
    }
}

/// The kind of a change, in words.
fn verdict(admitted: &Found, denied: &Found) -> &'static str {
    match change(admitted, denied) {
        "equivalent" => "the same pods are admitted",
        "tightening" => "a tightening",
        "loosening" => "a loosening",
        "both" => "a loosening and a tightening",
        _ => "not decided",
    }
}

/// The answer about a profile that was added or removed.
fn only(before: Option<&str>, after: Option<&str>) -> String {
    let name = before.or(after).unwrap_or_default();
    let verdict = match after {
        None => "removed: a loosening, because it no longer denies any pod",
        Some(_) => "added: it admits no pod that was denied before",
    };
    format!("{name}: {verdict}")
}

/// The answers as text.
pub fn text(answers: &[Answer], version: Minor) -> String {
    let answers: Vec<_> = answers.iter().map(Answer::text).collect();
    format!("{}\n{}\n", answers.join("\n"), scope(version))
}

/// The answers as JSON, each an object of its own.
pub fn json(answers: &[Answer], version: Minor) -> String {
    answers.iter().fold(String::new(), |mut text, answer| {
        let _ = writeln!(text, "{:#}", answer.json(version));
        text
    })
}

/// The pods that were found, and whether there may be others.
fn pods(verdict: &str, found: &Found) -> String {
    let mut text = String::new();
    for example in &found.examples {
        let _ = writeln!(text, "\n{verdict}pods such as this one ({})", example.operation.name());
        text.push_str(&shown(example));
    }
    if let Some(why) = &found.undecided {
        let _ = writeln!(text, "\n{verdict}not decided: {why}");
    }
    text
}

fn json_of(found: &Found) -> Json {
    let examples: Vec<_> = found.examples.iter().map(Example::json).collect();
    json!({"examples": examples, "undecided": found.undecided})
}

/// The requests that an answer is about.
fn scope(version: Minor) -> String {
    format!(
        "For pods of any size with the fields of Kubernetes {version}, any user, and all values of \
         parameters between their minimum and maximum, at the stage Deny. Not compared: mutation, stages, selected namespaces, limits of lists (check bounds), workloads, other objects."
    )
}

/// The parts of an example that make the difference, as YAML, and its violations.
fn shown(example: &Example) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: &Json| {
        if !value.is_null() {
            let yaml = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
            if !name.is_empty() {
                let _ = writeln!(text, "  {name}:");
            }
            let indent = if name.is_empty() { "  " } else { "    " };
            for line in yaml.lines() {
                let _ = writeln!(text, "{indent}{line}");
            }
        }
    };
    add("", &example.object);
    add("before the update", &example.old_object);
    add("parameters", &example.params["spec"]);
    for violation in &example.violations {
        let _ = writeln!(text, "  [{}] {}", violation.check, violation.message);
    }
    text
}

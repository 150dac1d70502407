//! The answers, as text and as JSON.

use std::fmt::Write as _;

use palisade_cel::Minor;
use serde_json::{Value as Json, json};

use super::{example::Example, found::Found, side::Side};

/// The difference of two versions.
pub struct Change {
    /// The pods that are newly admitted.
    pub admitted: Found,
    /// The pods that are newly denied.
    pub denied: Found,
}

impl Change {
    fn name(&self) -> &'static str {
        let is_some = |found: &Found| !found.examples.is_empty();
        match (is_some(&self.admitted), is_some(&self.denied)) {
            (true, true) => "both",
            _ if self.admitted.undecided.is_some() || self.denied.undecided.is_some() => "undecided",
            (false, false) => "equivalent",
            (false, true) => "tightening",
            (true, false) => "loosening",
        }
    }

    /// As text.
    pub fn text(&self, before: &Side, after: &Side, version: Minor) -> String {
        let verdict = match self.name() {
            "equivalent" => "the same pods are admitted",
            "tightening" => "a tightening",
            "loosening" => "a loosening",
            "both" => "a loosening and a tightening",
            _ => "not decided",
        };
        let mut text = format!("{} -> {}: {verdict}\n", before.name, after.name);
        for (what, found) in [("newly admitted", &self.admitted), ("newly denied", &self.denied)] {
            if found.examples.is_empty() && found.undecided.is_none() {
                let _ = writeln!(text, "\n{what}: no pod (proved)");
            }
            for example in &found.examples {
                let _ = writeln!(text, "\n{what}: pods such as this one ({})", example.operation.name());
                text.push_str(&shown(example));
            }
            if let Some(why) = &found.undecided {
                let _ = writeln!(text, "\n{what}: not decided: {why}");
            }
        }
        let _ = writeln!(text, "\n{}", scope(version));
        text
    }

    /// As JSON.
    pub fn json(&self, before: &Side, after: &Side, version: Minor) -> String {
        let json = json!({
            "before": before.name, "after": after.name, "kubeVersion": version.to_string(), "change": self.name(),
            "newlyAdmitted": json_of(&self.admitted), "newlyDenied": json_of(&self.denied),
        });
        format!("{json:#}\n")
    }
}

/// Whether a statement about a profile holds, as text. `found` are pods that refute it.
pub fn statement(profile: &Side, statement: &Side, found: &Found, version: Minor) -> String {
    let verdict = match found {
        Found { examples, .. } if !examples.is_empty() => "refuted",
        Found { undecided: Some(_), .. } => "not decided",
        Found { .. } => "proved",
    };
    let mut text = format!("{} {}: {verdict}\n", profile.name, statement.name);
    for example in &found.examples {
        let _ = writeln!(text, "\nadmitted: pods such as this one ({})", example.operation.name());
        text.push_str(&shown(example));
    }
    if let Some(why) = &found.undecided {
        let _ = writeln!(text, "\nnot decided: {why}");
    }
    let _ = writeln!(text, "\n{}", scope(version));
    text
}

/// The same as JSON.
pub fn statement_json(profile: &Side, statement: &Side, found: &Found, version: Minor) -> String {
    let json = json!({
        "profile": profile.name, "statement": statement.name, "kubeVersion": version.to_string(), "refutedBy": json_of(found),
    });
    format!("{json:#}\n")
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

//! The output of `palisade prove`.

use std::collections::BTreeSet;

use palisade_gate::comparison::{Example, Rows, Verdict};
use serde_json::{Value as Json, json};

use super::Compared;
use crate::output;

/// Statements that a result depends on.
const SCOPE: &str = "The result is for new pods of any size, of any user, in each namespace that both profiles select, with \
any parameters and at the stage Deny. The pods are those that policies see, after mutation. It does not cover updates, \
workloads, other objects and the cost limits of the API server.";

/// For people.
pub fn text(compared: &[Compared]) -> String {
    let mut text: String = compared.iter().map(one_text).collect();
    text.push_str(&format!("{SCOPE}\n"));
    text
}

fn differs(rows: &Rows) -> bool {
    rows.iter().any(|(_, verdict)| matches!(verdict, Verdict::Differs(_)))
}

fn is_proved(rows: &Rows) -> bool {
    rows.iter().all(|(_, verdict)| matches!(verdict, Verdict::Proved(_)))
}

/// The kind of the change.
fn kind(of: &Compared) -> &'static str {
    let admitted = &of.newly_admitted;
    let Some(denied) = &of.newly_denied else {
        return if is_proved(admitted) { "implied" } else if differs(admitted) { "not implied" } else { "not decided" };
    };
    match (differs(admitted), differs(denied)) {
        (true, true) => "both",
        (true, false) if is_proved(denied) => "loosening",
        (false, true) if is_proved(admitted) => "tightening",
        (false, false) if is_proved(admitted) && is_proved(denied) => "neither",
        _ => "not decided",
    }
}

fn one_text(of: &Compared) -> String {
    let [old, new] = &of.names;
    let summary = match kind(of) {
        "implied" => format!("{new} implies {old}: it admits no pod that {old} denies"),
        "not implied" => format!("{new} does not imply {old}: it admits pods that {old} denies"),
        "tightening" => "tightening: NEW admits no pod that OLD denies, and denies more pods".to_owned(),
        "loosening" => "loosening: NEW denies no pod that OLD admits, and admits more pods".to_owned(),
        "both" => "both: NEW admits some pods that OLD denies, and denies some pods that OLD admits".to_owned(),
        "neither" => "neither: OLD and NEW admit the same pods".to_owned(),
        _ => "not decided: some checks have neither a proof nor an example".to_owned(),
    };
    let mut text = if of.newly_denied.is_some() && old == new { format!("{new}: {summary}\n") } else { format!("{old}, {new}: {summary}\n") };
    if of.newly_denied.is_none() {
        text = format!("{summary}\n");
    }
    let no_rows = Rows::new();
    let denied = of.newly_denied.as_ref().unwrap_or(&no_rows);
    let ids: BTreeSet<&String> = of.newly_admitted.iter().chain(denied).map(|(check, _)| check).collect();
    let cell = |rows: &Rows, id: &String| match rows.iter().find(|(check, _)| check == id) {
        None => "-",
        Some((_, Verdict::Proved(_))) => "no (proved)",
        Some((_, Verdict::Differs(_))) => "yes",
        Some((_, Verdict::Unknown(_))) => "not decided",
    };
    let mut table = vec![["CHECK", "NEWLY ADMITTED", "NEWLY DENIED"].map(str::to_owned).to_vec()];
    let mut same = 0;
    for id in ids {
        let row = [cell(&of.newly_admitted, id), cell(denied, id)];
        if row.iter().all(|cell| ["-", "no (proved)"].contains(cell)) && row.contains(&"no (proved)") {
            same += 1;
        } else {
            table.push(vec![id.clone(), row[0].to_owned(), row[1].to_owned()]);
        }
    }
    if of.newly_denied.is_none() {
        table.iter_mut().for_each(|row| row.truncate(2));
    }
    if table.len() > 1 {
        text.push_str(&format!("\n{}", output::table(&table)));
    }
    text.push_str(&format!("\n{same} checks are proved to deny the same pods, or more pods in NEW.\n"));
    for (title, rows) in [("Newly admitted", &of.newly_admitted), ("Newly denied", denied)] {
        for (check, verdict) in rows {
            match verdict {
                Verdict::Differs(example) => text.push_str(&example_text(title, check, example)),
                Verdict::Unknown(why) => text.push_str(&format!("\n{title}, {check}: not decided: {why}\n")),
                Verdict::Proved(_) => {}
            }
        }
    }
    text.push('\n');
    text
}

/// A pod as a document that can be applied, with the rest of the request as comments.
fn example_text(title: &str, check: &str, example: &Example) -> String {
    let mut text = format!("\n# {title}, {check}: {}\n", example.message);
    if let Some(why) = &example.invalid {
        text.push_str(&format!("# No API server accepts this pod: {}\n", why.replace('\n', " ")));
    }
    if example.user.0 != "tenant" || !example.user.1.is_empty() {
        text.push_str(&format!("# The user is {}, with the groups {}\n", example.user.0, json!(example.user.1)));
    }
    if !example.params.is_null() {
        text.push_str(&format!("# The parameters of the namespace: {}\n", parameters(&example.params)));
    }
    text.push_str(&output::yaml(&[pod(example)]).unwrap_or_default());
    text
}

/// The pod as a client sends it.
fn pod(example: &Example) -> Json {
    let mut pod = example.pod.clone();
    if let Some(metadata) = pod.pointer_mut("/metadata").and_then(Json::as_object_mut) {
        metadata.remove("creationTimestamp");
        metadata.remove("namespace");
    }
    pod
}

/// The values of parameters.
fn parameters(of: &Json) -> Json {
    let maps = ["integers", "strings", "booleans", "stringLists"];
    let values = maps.into_iter().filter_map(|map| of[map].as_object()).flatten();
    Json::Object(values.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// For programs.
pub fn json(compared: &[Compared]) -> Json {
    let verdict = |(check, verdict): &(String, Verdict)| match verdict {
        Verdict::Proved(proved) => json!({
            "check": check, "result": "Proved", "cases": proved.cases(), "clauses": proved.clauses(),
        }),
        Verdict::Differs(example) => json!({
            "check": check, "result": "Differs", "message": example.message, "pod": pod(example),
            "user": {"name": example.user.0, "groups": example.user.1},
            "parameters": parameters(&example.params), "invalid": example.invalid,
        }),
        Verdict::Unknown(why) => json!({"check": check, "result": "Unknown", "reason": why}),
    };
    let rows = |rows: &Rows| rows.iter().map(verdict).collect::<Vec<_>>();
    let one = |of: &Compared| {
        json!({
            "old": of.names[0], "new": of.names[1], "change": kind(of),
            "newlyAdmitted": rows(&of.newly_admitted), "newlyDenied": of.newly_denied.as_ref().map(rows),
        })
    };
    json!({"comparisons": compared.iter().map(one).collect::<Vec<_>>(), "scope": SCOPE})
}

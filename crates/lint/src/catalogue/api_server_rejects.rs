//! An object that the API server rejects.

use palisade_admission::create::{FieldError, Refused};
use palisade_cel::Position;
use palisade_manifest::Severity;
use serde_json::Value as Json;

use super::newer_function::IntroducedIn;
use crate::{Category, Rule, cluster::Cluster, finding::Findings, item::Item, tree};

pub(super) static RULE: Rule = Rule {
    id: "api-server-rejects",
    severity: Severity::Error,
    category: Category::Rejected,
    precedes_extension: true,
    title: "An object that the API server rejects",
    why: "\
The API server rejects this policy, binding, webhook configuration, CustomResourceDefinition or parameter object. The
message is the text of the API server; the caret shows the position in the expression or the field. Fix this first: other
findings on the object may change.

A CustomResourceDefinition is validated in full, as on creation: group, scope, names, versions and the storage version,
schemas with their rules and defaults, subresources, printer columns, selectable fields, conversion,
`preserveUnknownFields`, deprecation warnings and the approval of protected groups. Defaults inside metadata are not
checked. Two cases have no verdict offline and are not reported: the URL of a conversion webhook with characters that a URL
escapes, and selectable fields whose schema makes the API server fail.",
    bad: include_str!("api_server_rejects.bad.yaml"),
    good: include_str!("api_server_rejects.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, said) in cluster.said.iter().chain(&cluster.said_of_params) {
        let Err(Refused::Status(status)) = said else { continue };
        if status.causes.is_empty() {
            found.add(item, "", &status.message);
        }
        let introduced_in = IntroducedIn::of(cluster, item, &status.causes);
        for cause in status.causes.iter().filter(|cause| introduced_in.accepts(cause).is_none()) {
            let (position, text) = position(item, cause);
            let value = tree::value_at(&item.json, &cause.field).and_then(Json::as_str).unwrap_or_default();
            let help = if value.contains("{{") { Some(RENDER) } else { cause.help.as_deref() };
            found.add_at(item, &cause.field, position, format!("{}: {text}", cause.field), help);
        }
    }
}

const RENDER: &str = "render the template first: helm template CHART | palisade lint -";

/// The place in the expression that the text of a cause names, and the text without the excerpt that the API server
/// appends: the caret shows it.
fn position(item: &Item<'_>, cause: &FieldError) -> (Position, String) {
    const MARK: &str = "ERROR: <input>:";
    let Some(at) = cause.body.find(MARK) else { return (Position::NONE, cause.body.clone()) };
    let mut numbers = cause.body[at + MARK.len()..].splitn(3, ':').map(|part| part.trim().parse::<usize>());
    let (Some(Ok(line)), Some(Ok(column))) = (numbers.next(), numbers.next()) else {
        return (Position::NONE, cause.body.clone());
    };
    // The value that is quoted before is the expression, which the caret shows, too.
    let said: Vec<_> = cause.body[at..].lines().filter(|line| !line.starts_with(" | ")).collect();
    let text = said.join("; ").replace("ERROR: <input>:", "");
    // Match conditions and audit annotations are compiled without the white space before them.
    let source = tree::value_at(&item.json, &cause.field).and_then(Json::as_str).unwrap_or_default();
    let trimmed = ["matchConditions", "auditAnnotations"].iter().any(|part| cause.field.contains(part));
    let skipped = if trimmed { &source[..source.len() - source.trim_start().len()] } else { "" };
    let lines = skipped.matches('\n').count();
    let columns = if line == 1 { skipped.rsplit('\n').next().unwrap_or_default().chars().count() } else { 0 };
    (Position { line: line + lines, column: column + columns }, format!("does not compile: {text}"))
}

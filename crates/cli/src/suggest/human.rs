//! Suggestions as text.

use std::{collections::BTreeMap, fmt::Write as _};

use super::data::{Count, NotJudged, RemainingWorkload, Suggested, Suggestion};
use crate::{output::counted, report::one_line};

/// The maximum number of listed workloads of a namespace with the same reason.
const MAX_NAMES: usize = 3;

/// The text. It lists at most `top` workloads for each suggestion.
pub(super) fn text(all: &Suggested, top: usize) -> String {
    let mut out = String::new();
    let Suggested { objects, violating, admitted, .. } = all;
    if violating.workloads == 0 && all.not_judged.is_empty() {
        let _ = writeln!(out, "No suggestions: none of {} violates a profile.", counted(*objects, "object"));
    } else if violating.workloads == 0 {
        let _ = writeln!(out, "No suggestions. Some objects were not evaluated, or not tried with changes:");
    } else if all.suggestions.is_empty() {
        let _ = writeln!(
            out,
            "No suggestions: {} in {} {} a profile, and no profile change is proposed for them.",
            counted(violating.workloads, "workload"),
            counted(violating.namespaces, "namespace"),
            if violating.workloads == 1 { "violates" } else { "violate" },
        );
    } else {
        let changes = all.suggestions.iter().map(|one| one.changes.len()).sum();
        let _ = writeln!(
            out,
            "{} of {} that violate a profile comply after {}.",
            admitted.workloads,
            counted(violating.workloads, "workload"),
            counted(changes, "change"),
        );
    }
    for (index, one) in all.suggestions.iter().enumerate() {
        suggestion(&mut out, index, one, top);
    }
    if all.more > 0 {
        let _ = writeln!(out, "\nFurther changes admit {}: list more with --top.", counted(all.more, "more workload"));
    }
    left(&mut out, &all.left, top);
    not_judged(&mut out, &all.not_judged, top);
    if !all.patches.is_empty() {
        out.push_str("\nPrint the changed profiles with -o yaml, or a merge patch for kubectl patch --type merge with -o json.\n");
    }
    out
}

fn suggestion(out: &mut String, index: usize, one: &Suggestion, top: usize) {
    let number = format!("{}. ", index + 1);
    let indent = " ".repeat(number.len());
    out.push('\n');
    for (index, change) in one.changes.iter().enumerate() {
        let head = if index == 0 { &number } else { &indent };
        let _ = writeln!(out, "{head}profile {}: {}", one_line(&change.of.profile), change.text);
    }
    let Count { workloads, namespaces } = one.count;
    let together = if one.changes.len() > 1 { "together " } else { "" };
    let noun = if index == 0 { "workload" } else { "more workload" };
    let _ = writeln!(
        out,
        "{indent}{together}{} {} in {}",
        if one.changes.len() > 1 { "admit" } else { "admits" },
        counted(workloads, noun),
        counted(namespaces, "namespace"),
    );
    for change in &one.changes {
        let _ = writeln!(out, "{indent}Newly allowed: {}", one_line(&change.of.change.allows));
        if !change.of.change.caution.is_empty() {
            let _ = writeln!(out, "{indent}Caution: {}", one_line(&change.of.change.caution));
        }
    }
    if let Some(namespace) = &one.only {
        let _ = writeln!(
            out,
            "{indent}Caution: Only namespace {namespace} needs it. An exception for this namespace would allow less."
        );
    }
    for place in one.admits.iter().take(top) {
        let _ = writeln!(out, "{indent}  {} {}", place.namespace, place.workload);
    }
    more(out, &indent, one.admits.len(), top);
}

fn more(out: &mut String, indent: &str, count: usize, top: usize) {
    if let Some(more) = count.checked_sub(top).filter(|more| *more > 0) {
        let _ = writeln!(out, "{indent}  and {more} more");
    }
}

fn left(out: &mut String, all: &[RemainingWorkload], top: usize) {
    if all.is_empty() {
        return;
    }
    let mut namespaces: Vec<_> = all.iter().map(|one| &one.place.namespace).collect();
    namespaces.dedup();
    let _ = writeln!(
        out,
        "\n{} in {} {} a change by the owner: no profile change is proposed.",
        counted(all.len(), "workload"),
        counted(namespaces.len(), "namespace"),
        if all.len() == 1 { "needs" } else { "need" },
    );
    // A problem of a namespace is a problem of each of its workloads.
    let mut groups = BTreeMap::<(&str, String), Vec<&str>>::new();
    for one in all {
        groups.entry((&one.place.namespace, reasons(one))).or_default().push(&one.place.workload);
    }
    for ((namespace, reasons), workloads) in groups.iter().take(top) {
        let first = workloads.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
        let more = workloads.len().saturating_sub(MAX_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = write!(out, "  {namespace} {first}{more}\n{reasons}");
    }
    if let Some(more) = groups.len().checked_sub(top).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {more} more like these");
    }
}

/// The violations of a workload, and the reasons why no change is proposed.
fn reasons(one: &RemainingWorkload) -> String {
    let mut out = String::new();
    for why in &one.why {
        let check = why.split(':').next().unwrap_or_default();
        for violation in one.violations.iter().filter(|one| one.check == check) {
            let _ = writeln!(out, "    [{}] {}", violation.check, violation.message);
        }
        let why = why.strip_prefix(check).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(why);
        let _ = writeln!(out, "      Not proposed: {why}.");
    }
    out
}

fn not_judged(out: &mut String, all: &[NotJudged], top: usize) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nNot evaluated:");
    for one in all.iter().take(top) {
        let workload = if one.place.workload.is_empty() { "all workloads" } else { &one.place.workload };
        let _ = writeln!(out, "  {} {workload}: {}", one.place.namespace, one.why);
    }
    more(out, "", all.len(), top);
}

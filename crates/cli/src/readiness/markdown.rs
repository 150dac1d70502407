//! A report as Markdown: for a pull request, a wiki or a chat.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    data::{Readiness, Report, ViolatingWorkload},
    page::{lead, outcome},
};
use crate::{
    evaluator::page_of,
    markdown::{plain, table},
    report::one_line,
};

/// The maximum number of workloads, for a comment or a chat.
const MAX_ROWS: usize = 50;

/// The text.
pub(super) fn text(report: &Report) -> String {
    let mut out =
        format!("# {}\n\n{}, Kubernetes {}. ", plain(&report.title), plain(&report.time), plain(&report.server));
    let _ = writeln!(out, "{}\n", lead(&report.summary));
    for (profile, own) in report.profiles.iter().filter_map(|one| Some((&one.name, one.own_stage()?))) {
        let _ = writeln!(out, "Profile {}: {}.\n", plain(profile), plain(&own));
    }
    for (index, one) in report.suggestions.iter().enumerate() {
        let changes: Vec<_> = one.changes.iter().map(|one| plain(&one.change)).collect();
        let _ = writeln!(out, "{} {}. See `palisade suggest`.\n", plain(&one.sentence(index)), changes.join("; "));
    }
    if let Some(since) = &report.since {
        let _ = writeln!(
            out,
            "Since {}: {} fixed or deleted, {} new.\n",
            plain(&since.time),
            since.gone.len(),
            since.new.len()
        );
    }
    let counted = Readiness::ALL.map(|one| (one.title(), report.summary.count(one)));
    let counted = counted.into_iter().chain([("Currently in Deny", report.summary.in_deny)]);
    let rows = counted.map(|(title, count)| vec![title.to_owned(), count.to_string()]);
    out.push_str(&table(&["Namespaces", "#Count"], rows));
    if !report.checks.is_empty() {
        out.push_str("\n## Checks\n\n");
        let rows = report.checks.iter().map(|one| {
            vec![linked(&one.check), plain(&one.title), one.workloads.to_string(), one.namespaces.to_string()]
        });
        out.push_str(&table(&["Check", "Description", "#Workloads", "#Namespaces"], rows));
    }
    if !report.workloads.is_empty() {
        out.push_str("\n## Changes\n");
        let owners: BTreeMap<_, _> =
            report.namespaces.iter().map(|one| (one.name.as_str(), one.owner.as_str())).collect();
        for one in report.workloads.iter().take(MAX_ROWS) {
            workload(&mut out, one, owners.get(one.namespace.as_str()).copied().unwrap_or_default());
        }
        if let Some(more) = report.workloads.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
            let _ = writeln!(out, "\nAnd {more} more: use `-o html` or `-o json` for all.");
        }
    }
    if !report.not_judged.is_empty() {
        out.push_str("\n## Not evaluated\n\n");
        for one in report.not_judged.iter().take(MAX_ROWS) {
            let _ = writeln!(out, "- {} {}: {}", plain(&one.namespace), plain(&one.workload), plain(&one.why));
        }
        if let Some(more) = report.not_judged.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
            let _ = writeln!(out, "- and {more} more");
        }
    }
    out
}

/// A check with a link to its page, if it has one.
fn linked(check: &str) -> String {
    page_of(check).map_or_else(|| plain(check), |page| format!("[{}]({page})", plain(check)))
}

fn workload(out: &mut String, one: &ViolatingWorkload, owner: &str) {
    let owner = if owner.is_empty() { String::new() } else { format!(" ({})", plain(owner)) };
    let _ = writeln!(out, "\n### {} in {}{owner}\n", plain(&one.workload), plain(&one.namespace));
    for violation in &one.violations {
        let _ = writeln!(out, "- {}: {}", plain(&violation.check), plain(&violation.message));
    }
    let _ = writeln!(out, "\n{}", plain(&outcome(one)));
    if let Some(change) = &one.change {
        // Four spaces make a code block, which no line in it can end.
        out.push('\n');
        for line in &change.lines {
            let _ = writeln!(out, "    {}", one_line(line));
        }
    }
}

//! A report as Markdown: for a pull request, a wiki or a chat.

use std::fmt::Write as _;

use super::{
    data::{OfWorkload, Readiness, Report},
    page::{lead, outcome},
};
use crate::report::one_line;

/// How many workloads it names: what a comment or a chat takes.
const MOST: usize = 50;

/// The text.
pub(super) fn text(report: &Report) -> String {
    let mut out =
        format!("# {}\n\n{}, Kubernetes {}. ", plain(&report.title), plain(&report.time), plain(&report.server));
    let _ = writeln!(out, "{}\n", lead(&report.summary));
    if let Some(since) = &report.since {
        let _ = writeln!(
            out,
            "Since {}: {} fixed or gone, {} new.\n",
            plain(&since.time),
            since.gone.len(),
            since.new.len()
        );
    }
    out.push_str("| Namespaces | Count |\n|---|---:|\n");
    for one in Readiness::ALL {
        let _ = writeln!(out, "| {} | {} |", one.title(), report.summary.count(one));
    }
    let _ = writeln!(out, "| In Deny now | {} |", report.summary.in_deny);
    if !report.checks.is_empty() {
        out.push_str("\n## Checks\n\n| Check | About | Workloads | Namespaces |\n|---|---|---:|---:|\n");
        for one in &report.checks {
            let (check, title) = (plain(&one.check), plain(&one.title));
            let _ = writeln!(out, "| {check} | {title} | {} | {} |", one.workloads, one.namespaces);
        }
    }
    if !report.workloads.is_empty() {
        out.push_str("\n## What to change\n");
        for one in report.workloads.iter().take(MOST) {
            workload(&mut out, one);
        }
        if let Some(more) = report.workloads.len().checked_sub(MOST).filter(|more| *more > 0) {
            let _ = writeln!(out, "\nAnd {more} more: `-o html` and `-o json` have all.");
        }
    }
    if !report.not_judged.is_empty() {
        out.push_str("\n## Not judged\n\n");
        for one in report.not_judged.iter().take(MOST) {
            let _ = writeln!(out, "- {} {}: {}", plain(&one.namespace), plain(&one.workload), plain(&one.why));
        }
        if let Some(more) = report.not_judged.len().checked_sub(MOST).filter(|more| *more > 0) {
            let _ = writeln!(out, "- and {more} more");
        }
    }
    out
}

fn workload(out: &mut String, one: &OfWorkload) {
    let _ = writeln!(out, "\n### {} in {}\n", plain(&one.workload), plain(&one.namespace));
    for violation in &one.violations {
        let _ = writeln!(out, "- {}: {}", plain(&violation.check), plain(&violation.message));
    }
    let _ = writeln!(out, "\n{}", plain(&outcome(one)));
    if let Some(change) = &one.change {
        // Four spaces make a block of code, which no line of it can end.
        out.push('\n');
        for line in &change.lines {
            let _ = writeln!(out, "    {}", one_line(line));
        }
    }
}

/// Text in which nothing is Markdown or HTML.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A mention or a link of a forge.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '!' | '|' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_tenants_is_no_markdown() {
        assert_eq!(
            plain("a|b\n<img src=x> [l](http://x) @all `c`"),
            "a\\|b &lt;img src=x&gt; \\[l\\]\\(http://x\\) &#64;all \\`c\\`"
        );
    }
}

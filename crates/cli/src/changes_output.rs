//! Output of changes of admission: text, Markdown for a pull request, and JSON.

use std::fmt::{Display, Write as _};

use clap::ValueEnum;
use serde_json::Value as Json;

use crate::{
    admission_changes::{AdmissionChanges, Change, Line, NoVerdict},
    markdown::{plain, table},
    options::OUTPUT,
    output,
    report::{harmless, one_line},
};

/// The format of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChangesFormat {
    /// Tables.
    Human,
    /// Markdown, for a pull request.
    Markdown,
    /// One object with everything, for programs.
    Json,
}

/// The arguments for the output.
#[derive(Debug, clap::Args)]
pub struct ChangesArgs {
    /// Number of workloads and checks to list.
    #[arg(long, value_name = "COUNT", default_value_t = 20, help_heading = OUTPUT)]
    pub top: usize,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human", help_heading = OUTPUT)]
    pub output: ChangesFormat,
}

/// The head of the proved differences.
const ANY_POD: &str =
    "The checks of pods, for any pod without mutation at the stage Deny (palisade prove has examples)";

/// Output in addition to the changes.
#[derive(Debug, Default)]
pub struct About {
    /// The evaluated items: `objects` or `requests`.
    pub what: &'static str,
    /// A sentence before everything else.
    pub head: String,
    /// How the generated objects differ, each with its name.
    pub diffs: Vec<(String, String)>,
    /// The proved differences of profiles, for any pod.
    pub proofs: Vec<String>,
    /// More for programs.
    pub json: serde_json::Map<String, Json>,
}

/// The text. `changes` is missing if nothing was evaluated.
pub fn text(&ChangesArgs { top, output }: &ChangesArgs, about: &About, changes: Option<&AdmissionChanges>) -> String {
    let text = match output {
        ChangesFormat::Human => human(about, changes, top),
        ChangesFormat::Markdown => markdown(about, changes, top),
        ChangesFormat::Json => {
            let mut all = about.json.clone();
            if let Some(Json::Object(changes)) = changes.map(AdmissionChanges::json) {
                all.extend(changes);
            }
            return format!("{:#}\n", Json::Object(all));
        }
    };
    // Names and messages come from objects of tenants.
    text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
}

fn human(about: &About, changes: Option<&AdmissionChanges>, top: usize) -> String {
    let mut text = format!("{}\n", about.head);
    for (_, diff) in &about.diffs {
        let _ = write!(text, "\n{diff}");
    }
    if !about.proofs.is_empty() {
        let _ = write!(text, "\n{ANY_POD}:\n{}", about.proofs.concat());
    }
    let Some(changes) = changes else { return text };
    let _ = writeln!(text, "\n{}", counted(about, changes));
    for change in Change::ALL {
        let total = changes.total(change);
        if total.objects == 0 {
            if change == Change::NewlyDenied {
                let _ = writeln!(text, "\nno newly denied {}", about.what);
            }
            continue;
        }
        let (workloads, namespaces) = (plural(total.workloads, "workload"), plural(total.namespaces, "namespace"));
        let judged = plural(total.objects, about.what.trim_end_matches('s'));
        let _ = writeln!(text, "\n{}: {judged} of {workloads} in {namespaces}", change.title());
        let head =
            ["PROFILE", "CHECK", &about.what.to_uppercase(), "WORKLOADS", "NAMESPACES"].map(str::to_owned).to_vec();
        let checks = changes.by_check(change);
        let rows = checks.iter().take(top).map(|((profile, check), total)| {
            let counts = [total.objects.to_string(), total.workloads.to_string(), total.namespaces.to_string()];
            [or_none(profile), (*check).to_owned()].into_iter().chain(counts).collect()
        });
        text.push_str(&output::table(&[head].into_iter().chain(rows).collect::<Vec<_>>()));
        text.push_str(&more(checks.len(), top, "checks"));
        let head = ["NAMESPACE", "WORKLOAD", &about.what.to_uppercase(), "CHECKS"].map(str::to_owned).to_vec();
        let rows = changes.of(change).take(top).map(|(place, line)| {
            vec![
                one_line(&place.namespace),
                one_line(&place.workload),
                line.objects.to_string(),
                checks_of(line).join(", "),
            ]
        });
        let _ = write!(text, "\n{}", output::table(&[head].into_iter().chain(rows).collect::<Vec<_>>()));
        text.push_str(&more(total.workloads, top, "workloads"));
    }
    if !changes.no_verdict.is_empty() {
        let head = ["NO VERDICT", "REASON", "FIRST"].map(str::to_owned).to_vec();
        let rows = changes
            .no_verdict
            .iter()
            .map(|(why, NoVerdict { count, first })| vec![count.to_string(), one_line(why), one_line(first)]);
        let _ = write!(text, "\n{}", output::table(&[head].into_iter().chain(rows).collect::<Vec<_>>()));
    }
    text
}

fn counted(about: &About, changes: &AdmissionChanges) -> String {
    let unknown: u64 = changes.no_verdict.values().map(|one| one.count).sum();
    let mut text = format!("{} evaluated", plural(changes.judged, about.what.trim_end_matches('s')));
    if changes.still_denied > 0 {
        let _ = write!(text, ", {} of them denied before and after", changes.still_denied);
    }
    if unknown > 0 {
        let _ = write!(text, "; {unknown} without a verdict");
    }
    text
}

fn markdown(about: &About, changes: Option<&AdmissionChanges>, top: usize) -> String {
    let mut text = format!("### Palisade: effect of the change\n\n{}\n", plain(&about.head));
    if !about.proofs.is_empty() {
        let _ = writeln!(text, "\n{ANY_POD}:\n");
        for line in about.proofs.iter().flat_map(|proof| proof.lines()) {
            let indent = if line.starts_with(' ') { "  " } else { "" };
            let _ = writeln!(text, "{indent}- {}", plain(line.trim()));
        }
    }
    if let Some(changes) = changes {
        let _ = writeln!(text, "\n{}.\n", plain(&counted(about, changes)));
        let what = format!("#{}", about.what);
        let rows = Change::ALL.into_iter().map(|change| {
            let total = changes.total(change);
            let bold = if change == Change::NewlyDenied && total.objects > 0 { "**" } else { "" };
            let [workloads, namespaces] = [total.workloads, total.namespaces].map(|count| count.to_string());
            vec![format!("{bold}{}{bold}", change.title()), total.objects.to_string(), workloads, namespaces]
        });
        text.push_str(&table(&["", &what, "#workloads", "#namespaces"], rows));
        for change in Change::ALL.into_iter().filter(|change| changes.total(*change).objects > 0) {
            let _ = writeln!(text, "\n#### {}\n", capital(change.title()));
            let rows = changes.of(change).take(top).map(|(place, line)| {
                let (namespace, workload) = (plain(&place.namespace), plain(&place.workload));
                vec![namespace, workload, line.objects.to_string(), plain(&checks_of(line).join(", "))]
            });
            text.push_str(&table(&["namespace", "workload", &what, "checks"], rows));
            let more = more(changes.of(change).count(), top, "workloads");
            if !more.is_empty() {
                let _ = write!(text, "\n{more}");
            }
        }
        if !changes.no_verdict.is_empty() {
            text.push_str("\n#### No verdict\n\n");
            let rows = changes
                .no_verdict
                .iter()
                .map(|(why, NoVerdict { count, first })| vec![count.to_string(), plain(why), plain(first)]);
            text.push_str(&table(&[&what, "reason", "first"], rows));
        }
    }
    for (name, diff) in &about.diffs {
        // A fence that is longer than any in the text.
        let fence = "`".repeat(3.max(longest_run(diff) + 1));
        let _ =
            write!(text, "\n<details><summary>{}</summary>\n\n{fence}diff\n{diff}{fence}\n\n</details>\n", plain(name));
    }
    text
}

fn checks_of(line: &Line) -> Vec<String> {
    let profiles: std::collections::BTreeSet<_> = line.checks.keys().map(|(profile, _)| profile).collect();
    let name = |(profile, check): &(String, String)| {
        if profiles.len() > 1 { format!("{}: {check}", or_none(profile)) } else { check.clone() }
    };
    line.checks.keys().map(name).collect()
}

fn or_none(profile: &str) -> String {
    if profile.is_empty() { "(none)".to_owned() } else { profile.to_owned() }
}

fn more(all: usize, top: usize, what: &str) -> String {
    if all > top {
        format!("and {} more {what}; list more with --top, or all with -o json\n", all - top)
    } else {
        String::new()
    }
}

fn plural<Count: Copy + Display + PartialEq + From<u8>>(count: Count, what: &str) -> String {
    let ending = if count == Count::from(1) { "" } else { "s" };
    format!("{count} {what}{ending}")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{admission_changes::Place, evaluator::Violation};

    fn changes() -> AdmissionChanges {
        let mut changes = AdmissionChanges::default();
        for (namespace, workload) in [("a", "Deployment/web"), ("a", "Deployment/web"), ("b", "Pod/<b>|`x`")] {
            let violation = Violation {
                profile: "tools".to_owned(),
                check: "privileged".to_owned(),
                message: "container \"a\" is privileged".to_owned(),
                denied: true,
            };
            let place = Place { namespace: namespace.to_owned(), workload: workload.to_owned() };
            changes.add(place, &[], &[violation]);
        }
        changes.unknown("too large", || "a Pod/p".to_owned());
        changes
    }

    fn about() -> About {
        let diffs = vec![("policy".to_owned(), "--- a\n+++ b\n-```\n+x\n".to_owned())];
        About { what: "objects", head: "one profile changes".to_owned(), diffs, ..About::default() }
    }

    #[test]
    fn people_see_checks_and_workloads() {
        let expected = "\
one profile changes

--- a
+++ b
-```
+x

3 objects evaluated; 1 without a verdict

newly denied: 3 objects of 2 workloads in 2 namespaces
PROFILE   CHECK        OBJECTS   WORKLOADS   NAMESPACES
tools     privileged   3         2           2

NAMESPACE   WORKLOAD         OBJECTS   CHECKS
a           Deployment/web   2         privileged
and 1 more workloads; list more with --top, or all with -o json

NO VERDICT   REASON      FIRST
1            too large   a Pod/p
";
        assert_eq!(text(&ChangesArgs { output: ChangesFormat::Human, top: 1 }, &about(), Some(&changes())), expected);
    }

    #[test]
    fn texts_mean_nothing_in_markdown() {
        let shown = text(&ChangesArgs { output: ChangesFormat::Markdown, top: 9 }, &about(), Some(&changes()));
        assert!(shown.contains("| **newly denied** | 3 | 2 | 2 |\n"), "{shown}");
        assert!(shown.contains("| b | Pod/&lt;b&gt;\\|\\`x\\` | 1 | privileged |\n"), "{shown}");
        assert!(shown.contains("\n````diff\n--- a\n+++ b\n-```\n+x\n````\n"), "{shown}");
    }

    #[test]
    fn programs_get_everything() {
        let shown: Json = serde_json::from_str(&text(
            &ChangesArgs { output: ChangesFormat::Json, top: 1 },
            &about(),
            Some(&changes()),
        ))
        .unwrap();
        assert_eq!(shown["newlyDenied"]["workloads"].as_array().map(Vec::len), Some(2));
        assert_eq!(shown["newlyDenied"]["total"]["objects"], 3);
    }
}

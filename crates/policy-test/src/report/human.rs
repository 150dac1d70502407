//! The report for people.

use std::fmt::Write as _;

use palisade_kube_json::text::one_line;
use palisade_manifest::harmless;

use super::{Report, reasons};
use crate::{
    Status,
    coverage::Coverage,
    mutate::{Mutant, MutationReport},
};

/// The report for people, without control characters for terminals.
pub fn human(report: &Report, verbose: bool) -> String {
    let mut text = String::new();
    for suite in &report.suites {
        let failed = suite.results.iter().filter(|result| result.status != Status::Passed).count();
        let word = if failed == 0 { "ok  " } else { "FAIL" };
        let named = if suite.name == suite.file { String::new() } else { format!(" ({})", suite.name) };
        let count = suite.results.len();
        let cases = if count == 1 { "1 case".to_owned() } else { format!("{count} cases") };
        let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        line(&mut text, &format!("{word} {}{named}: {cases}{failed}", suite.file));
        for note in &suite.notes {
            line(&mut text, &format!("     note: {}", one_line(note)));
        }
        for result in &suite.results {
            match result.status {
                Status::Passed if verbose => line(&mut text, &format!("     ok   {}", result.name)),
                Status::Passed => {}
                _ => {
                    line(&mut text, &format!("     FAIL {} ({})", result.name, result.place));
                    for reason in reasons(result) {
                        line(&mut text, &format!("            {reason}"));
                    }
                }
            }
        }
    }
    if let Some(coverage) = &report.coverage {
        of_coverage(coverage, &mut text);
    }
    if let Some(mutation) = &report.mutation {
        of_mutation(mutation, &mut text);
    }
    if let Some(messages) = report.messages.as_ref().filter(|messages| messages.total() > 0) {
        of_messages(messages, &mut text);
    }
    line(&mut text, &format!("\n{}", report.counts()));
    text
}

fn of_coverage(coverage: &Coverage, text: &mut String) {
    let (covered, total) = (coverage.covered(), coverage.total());
    line(text, &format!("\ncoverage: {:.1} % ({covered} of {total})", coverage.percent()));
    for point in coverage.missing() {
        let what = if point.what.is_empty() { String::new() } else { format!("{} ", point.what) };
        line(text, &format!("     {}: {} {}: {what}{}", point.place, point.of, point.path, point.missing));
    }
}

fn of_mutation(mutation: &MutationReport, text: &mut String) {
    let (killed, total) = (mutation.killed(), mutation.total());
    line(text, &format!("\nmutants: {:.1} % killed ({killed} of {total})", mutation.percent()));
    for (mutant, cases) in mutation.survivors() {
        let cases = match cases {
            0 => "no case evaluates it".to_owned(),
            1 => "1 case evaluates it and does not notice".to_owned(),
            cases => format!("{cases} cases evaluate it and do not notice"),
        };
        line(
            text,
            &format!("     {}: {} {}: {}: {cases}", mutant.place, mutant.policy, mutant.path, mutant.description),
        );
        for (sign, lines) in [('-', &mutant.before), ('+', &mutant.after)] {
            for changed in lines.lines() {
                line(text, &format!("       {sign} {changed}"));
            }
        }
    }
}

/// One line each: many suites do not expect messages.
fn of_messages(messages: &MutationReport, text: &mut String) {
    let (killed, total) = (messages.killed(), messages.total());
    line(text, &format!("\nmutants of messages: {:.1} % killed ({killed} of {total})", messages.percent()));
    for (mutant, cases) in messages.survivors() {
        let cases = match cases {
            0 => "no case reads it".to_owned(),
            1 => "1 case reads it and does not expect it".to_owned(),
            cases => format!("{cases} cases read it and do not expect it"),
        };
        let Mutant { place, policy, path, description, .. } = mutant;
        line(text, &format!("     {place}: {policy} {path}: {description}: {cases}"));
    }
}

fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{}", line.chars().map(harmless).collect::<String>().trim_end());
}

//! A report as one HTML page: without network, fonts and frameworks. It is complete without its script.
//!
//! All names and messages are a tenant's. The template escapes each of them. The page's policy allows only its own
//! script and style, by their digests.

use std::fmt::Write as _;

use askama::Template;
use palisade_api::Stage;

use super::data::{
    CheckCounts, NamespaceReadiness, NotJudged, Point, ProfileReadiness, Readiness, Report, Since, SuggestedChanges,
    Summary, ViolatingWorkload, WorkloadViolation,
};
use crate::{evaluator::page_of, report::one_line};

const STYLE: &str = include_str!("../../templates/report.css");
const SCRIPT: &str = include_str!("../../templates/report.js");
/// SHA-256 of [`STYLE`] and [`SCRIPT`] in the notation of a Content-Security-Policy. A test prints them.
const STYLE_DIGEST: &str = "sha256-UgFTz11A3ts2eu8A37n/d/qe373T7Wz06FttZQinxuQ=";
/// See [`STYLE_DIGEST`].
const SCRIPT_DIGEST: &str = "sha256-LAi3hfiPwmDvC0O9sJk/HlAgmQRQ31wpThnx58feTDk=";

/// Up to this number of namespaces, their changes are unfolded.
const UNFOLDED: usize = 12;
/// Width of a bar, in the units of its picture.
const WIDTH: usize = 1000;
/// Maximum width of a column of the trend, with the gap after it.
const WIDEST: usize = 80;
/// Height of the trend, in the same units.
const HEIGHT: usize = 100;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    policy: String,
    title: String,
    time: String,
    server: String,
    by: String,
    sections: Vec<(&'static str, &'static str)>,
    lead: String,
    suggestions: Vec<Suggestion>,
    bar: Vec<Part>,
    bar_text: String,
    shares: Vec<Figure>,
    facts: Vec<Figure>,
    profiles: Vec<ProfileRow>,
    trend: Option<Trend>,
    checks: Vec<CheckRow>,
    /// Whether namespaces have owners.
    owned: bool,
    groups: Vec<Group>,
    changes: Vec<Changes>,
    not_judged: Vec<NotJudged>,
    not_selected: Vec<String>,
}

/// Changes of profiles that admit many workloads.
struct Suggestion {
    sentence: String,
    changes: Vec<String>,
}

/// A part of a bar.
struct Part {
    word: &'static str,
    begin: usize,
    width: usize,
}

struct Figure {
    word: &'static str,
    title: &'static str,
    count: String,
    meaning: String,
}

struct ProfileRow {
    name: String,
    counts: [String; 5],
}

struct CheckRow {
    check: String,
    /// The address of its page.
    page: Option<String>,
    title: String,
    workloads: String,
    namespaces: String,
    width: usize,
}

struct Trend {
    lead: String,
    columns: Vec<Column>,
    rows: Vec<TrendRow>,
    lists: Vec<NameList>,
}

struct Column {
    word: &'static str,
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

struct TrendRow {
    time: String,
    counts: Vec<String>,
}

struct NameList {
    title: String,
    names: Vec<String>,
}

struct Group {
    word: &'static str,
    title: &'static str,
    meaning: &'static str,
    count: String,
    open: bool,
    explained: bool,
    rows: Vec<NamespaceRow>,
}

struct NamespaceRow {
    name: String,
    owner: String,
    link: Option<usize>,
    stages: Vec<Chip>,
    workloads: String,
    violating: String,
    what: String,
}

struct Chip {
    class: &'static str,
    text: String,
}

/// The changes in a namespace.
struct Changes {
    id: usize,
    /// The original name, and the shown one.
    namespace: String,
    name: String,
    count: String,
    open: bool,
    workloads: Vec<Change>,
}

struct Change {
    workload: String,
    denied: bool,
    violations: Vec<ViolationRow>,
    /// The effect of the change, or the reason why there is none.
    with: String,
    lines: Vec<Line>,
}

struct ViolationRow {
    check: String,
    message: String,
    of: String,
}

struct Line {
    class: &'static str,
    text: String,
}

/// The page.
///
/// # Errors
/// It cannot be written.
pub(super) fn html(report: &Report) -> Result<String, askama::Error> {
    let summary = &report.summary;
    let changes = changes(report);
    let shares = best_first().map(|one| Figure {
        word: one.word(),
        title: one.title(),
        count: number(summary.count(one)),
        meaning: one.meaning().to_owned(),
    });
    let not_judged: Vec<_> = report.not_judged.iter().map(shown).collect();
    let not_selected: Vec<_> = report.not_selected.iter().map(|name| one_line(name)).collect();
    let mut sections = vec![("summary", "Summary")];
    if !report.trend.is_empty() {
        sections.push(("trend", "Trend"));
    }
    sections.extend([("checks", "Checks"), ("namespaces", "Namespaces"), ("changes", "Changes")]);
    if !not_judged.is_empty() || !not_selected.is_empty() {
        sections.push(("outside", "Not covered"));
    }
    let page = Page {
        policy: format!(
            "default-src 'none'; style-src '{STYLE_DIGEST}'; script-src '{SCRIPT_DIGEST}'; base-uri 'none'; form-action 'none'"
        ),
        title: one_line(&report.title),
        time: time(&report.time),
        server: one_line(&report.server),
        by: counted(report.profiles.len(), "profile"),
        sections,
        lead: lead(summary),
        suggestions: report.suggestions.iter().enumerate().map(suggestion).collect(),
        bar: parts(summary),
        bar_text: bar_text(summary),
        shares: shares.collect(),
        facts: facts(summary),
        profiles: profiles(report),
        trend: report.since.as_ref().map(|since| trend(&report.trend, since)),
        checks: checks(report),
        owned: report.namespaces.iter().any(|one| !one.owner.is_empty()),
        groups: groups(report, &changes),
        changes,
        not_judged,
        not_selected,
    };
    page.render()
}

/// In the order of urgency.
fn best_first() -> impl Iterator<Item = Readiness> {
    Readiness::ALL.into_iter().rev()
}

/// With commas between thousands.
fn number(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", number(count), if count == 1 { "" } else { "s" })
}

/// `2026-11-25T08:00:00Z` in a shorter form.
fn time(of: &str) -> String {
    let minutes = of.get(..16).filter(|_| of.ends_with('Z') && of.is_ascii());
    minutes.map_or_else(|| one_line(of), |minutes| format!("{} UTC", minutes.replace('T', " ")))
}

fn shown(one: &NotJudged) -> NotJudged {
    let workload = if one.workload.is_empty() { "all workloads".to_owned() } else { one_line(&one.workload) };
    NotJudged { namespace: one_line(&one.namespace), workload, why: one_line(&one.why) }
}

/// The summary in a sentence or two.
pub(super) fn lead(summary: &Summary) -> String {
    let Summary { namespaces, ready, nearly, needs_work, not_judged, .. } = summary;
    if *namespaces == 0 {
        return "No profile selects a namespace, so no object was evaluated.".to_owned();
    }
    let verb = |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
    let mut text = if ready == namespaces {
        match namespaces {
            1 => "The one namespace is ready for Deny.".to_owned(),
            _ => format!("All {} namespaces are ready for Deny.", number(*namespaces)),
        }
    } else if *ready == 0 {
        format!("None of {} is ready for Deny yet.", counted(*namespaces, "namespace"))
    } else {
        let is = verb(*ready, "is", "are");
        format!("{} of {} {is} ready for Deny.", number(*ready), counted(*namespaces, "namespace"))
    };
    if *nearly > 0 {
        let comply = verb(*nearly, "complies", "comply");
        let _ = write!(text, " {} {comply} after the changes listed below.", number(*nearly));
    }
    if *needs_work > 0 {
        let _ = write!(text, " {} {} work.", number(*needs_work), verb(*needs_work, "needs", "need"));
    }
    if *not_judged > 0 {
        let _ = write!(text, " {} could not be fully evaluated.", number(*not_judged));
    }
    text
}

/// Begin and width of each share, which together are the whole width.
fn parts(summary: &Summary) -> Vec<Part> {
    let mut before = 0;
    let at = |count: usize| count * WIDTH / summary.namespaces.max(1);
    let all = best_first().map(|one| {
        let begin = at(before);
        before += summary.count(one);
        Part { word: one.word(), begin, width: at(before) - begin }
    });
    all.filter(|part| part.width > 0).collect()
}

fn bar_text(summary: &Summary) -> String {
    let parts = Readiness::ALL.map(|one| format!("{} {}", number(summary.count(one)), one.title().to_lowercase()));
    format!("Of {}: {}", counted(summary.namespaces, "namespace"), parts.join(", "))
}

fn facts(summary: &Summary) -> Vec<Figure> {
    let Summary { namespaces, in_deny, workloads, violating, with_change, objects, .. } = summary;
    let objects = counted(*objects, "object");
    vec![
        Figure {
            word: "inDeny",
            title: "Currently in Deny",
            count: number(*in_deny),
            meaning: format!("of {} selected by a profile", counted(*namespaces, "namespace")),
        },
        Figure {
            word: "violating",
            title: "Workloads that violate a profile",
            count: number(*violating),
            meaning: format!("of {}, from {objects}", counted(*workloads, "workload")),
        },
        Figure {
            word: "withChange",
            title: "With a known change",
            count: number(*with_change),
            meaning: "of these; each change was tested, and the workload complies with it".to_owned(),
        },
    ]
}

fn profiles(report: &Report) -> Vec<ProfileRow> {
    let row = |one: &ProfileReadiness| ProfileRow {
        name: one_line(&one.own_stage().map_or_else(|| one.name.clone(), |own| format!("{}: {own}", one.name))),
        counts: [one.namespaces, one.deny, one.warn, one.audit, one.violating].map(number),
    };
    report.profiles.iter().map(row).collect()
}

fn checks(report: &Report) -> Vec<CheckRow> {
    let row = |one: &CheckCounts| CheckRow {
        check: one_line(&one.check),
        page: page_of(&one.check),
        title: one_line(&one.title),
        workloads: number(one.workloads),
        namespaces: number(one.namespaces),
        width: one.workloads * WIDTH / report.summary.violating.max(1),
    };
    report.checks.iter().map(row).collect()
}

fn groups(report: &Report, changes: &[Changes]) -> Vec<Group> {
    let group = |readiness: Readiness| {
        let of: Vec<_> = report.namespaces.iter().filter(|one| one.readiness == readiness).collect();
        (!of.is_empty()).then(|| Group {
            word: readiness.word(),
            title: readiness.title(),
            meaning: readiness.meaning(),
            count: number(of.len()),
            open: readiness != Readiness::Ready,
            explained: readiness != Readiness::Ready,
            rows: of.into_iter().map(|one| row(one, report, changes)).collect(),
        })
    };
    Readiness::ALL.into_iter().filter_map(group).collect()
}

fn row(one: &NamespaceReadiness, report: &Report, changes: &[Changes]) -> NamespaceRow {
    // If there is only one profile, its name is omitted.
    let chip = |(profile, stage): (&String, &Stage)| Chip {
        class: stage.into(),
        text: if report.profiles.len() == 1 { stage.to_string() } else { format!("{}: {stage}", one_line(profile)) },
    };
    let mut what: Vec<_> =
        one.problems.iter().map(|(profile, why)| one_line(&format!("every pod violates {profile}: {why}"))).collect();
    what.extend(one.checks.iter().map(|(check, count)| format!("{} {}", one_line(check), number(*count))));
    let unjudged = report.not_judged.iter().filter(|other| other.namespace == one.name).count();
    if unjudged > 0 {
        what.push(format!("{} not evaluated", number(unjudged)));
    }
    NamespaceRow {
        link: changes.binary_search_by(|other| other.namespace.cmp(&one.name)).ok(),
        stages: one.stages.iter().map(chip).collect(),
        workloads: number(one.workloads),
        violating: number(one.violating),
        what: what.join(", "),
        name: one_line(&one.name),
        owner: one_line(&one.owner),
    }
}

fn suggestion((index, one): (usize, &SuggestedChanges)) -> Suggestion {
    let changes = one.changes.iter().map(|one| one_line(&one.change)).collect();
    Suggestion { sentence: one_line(&one.sentence(index)), changes }
}

fn changes(report: &Report) -> Vec<Changes> {
    let mut all: Vec<Changes> = Vec::new();
    for workload in &report.workloads {
        if all.last().is_none_or(|last| last.namespace != workload.namespace) {
            let (namespace, name) = (workload.namespace.clone(), one_line(&workload.namespace));
            all.push(Changes { id: all.len(), namespace, name, count: String::new(), open: false, workloads: vec![] });
        }
        if let Some(last) = all.last_mut() {
            last.workloads.push(change(workload));
        }
    }
    let open = all.len() <= UNFOLDED;
    for one in &mut all {
        (one.open, one.count) = (open, counted(one.workloads.len(), "workload"));
    }
    all
}

fn change(of: &ViolatingWorkload) -> Change {
    let violation = |one: &WorkloadViolation| ViolationRow {
        check: one_line(&one.check),
        message: one_line(&one.message),
        of: one_line(&format!("{}, {}", one.profile, counted(one.objects, "object"))),
    };
    let lines = of.change.iter().flat_map(|change| &change.lines).map(|line| Line {
        class: match line.chars().next() {
            Some('+') => "add",
            Some('-') => "cut",
            _ => "swap",
        },
        text: one_line(line),
    });
    Change {
        workload: one_line(&of.workload),
        denied: of.denied,
        violations: of.violations.iter().map(violation).collect(),
        with: outcome(of),
        lines: lines.collect(),
    }
}

/// The effect of the change of a workload, or the reason why there is none.
pub(super) fn outcome(of: &ViolatingWorkload) -> String {
    let left = |checks: &[String]| one_line(&checks.join(", "));
    let text = match &of.change {
        Some(change) if change.complies => "With this change it complies:".to_owned(),
        Some(change) => format!(
            "This change fixes a part. No compliant value is known for {}; its owner must decide. The change:",
            left(&change.without_known_value)
        ),
        None if of.note.is_empty() => "No change is known that fixes it; its owner must decide.".to_owned(),
        None => String::new(),
    };
    let between = if text.is_empty() || of.note.is_empty() { "" } else { " " };
    format!("{}{between}{text}", one_line(&of.note))
}

fn trend(points: &[Point], since: &Since) -> Trend {
    let most = points.iter().map(|point| point.summary.namespaces).max().unwrap_or_default().max(1);
    let step = WIDEST.min(WIDTH / points.len().max(1));
    let mut columns = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let mut below = 0;
        for one in best_first() {
            let at = |count: usize| count * HEIGHT / most;
            let begin = at(below);
            below += point.summary.count(one);
            let (height, word) = (at(below) - begin, one.word());
            if height > 0 {
                columns.push(Column { word, x: index * step, y: HEIGHT - begin - height, width: step * 4 / 5, height });
            }
        }
    }
    let rows = points.iter().map(|point| {
        let summary = &point.summary;
        let counts = best_first().map(|one| summary.count(one));
        TrendRow {
            time: time(&point.time),
            counts: counts.chain([summary.in_deny, summary.violating]).map(number).collect(),
        }
    });
    let same = points.windows(2).all(|pair| pair[0].profiles == pair[1].profiles);
    let mut lead = format!(
        "Since {}: {} fixed or deleted, {} new.",
        time(&since.time),
        counted(since.gone.len(), "violating workload"),
        number(since.new.len()),
    );
    if !same {
        lead.push_str(" The reports were not all generated with the same profiles.");
    }
    let list = |title: &str, names: &[String]| NameList {
        title: title.to_owned(),
        names: names.iter().map(|name| one_line(name)).collect(),
    };
    let lists = [list("New violating workloads", &since.new), list("Fixed or deleted workloads", &since.gone)];
    Trend {
        lead,
        columns,
        rows: rows.collect(),
        lists: lists.into_iter().filter(|list| !list.names.is_empty()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    #[test]
    fn the_policy_names_the_digests_of_style_and_script() {
        for (text, digest) in [(STYLE, STYLE_DIGEST), (SCRIPT, SCRIPT_DIGEST)] {
            let found = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
            assert_eq!(digest, format!("sha256-{}", STANDARD.encode(found)));
            // Either would end before its end.
            assert!(!text.contains("</") && !text.contains("<!--"), "{text}");
        }
    }

    #[test]
    fn nothing_but_style_and_script_is_taken_as_it_is() {
        let template = include_str!("../../templates/report.html");
        assert_eq!(template.matches("safe").collect::<Vec<_>>().len(), 2);
        assert!(template.contains("{{ STYLE|safe }}") && template.contains("{{ SCRIPT|safe }}"));
    }

    #[test]
    fn numbers_have_commas() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(count), text);
        }
    }

    #[test]
    fn a_bar_is_full() {
        for (ready, nearly, needs_work, not_judged) in [(1, 1, 1, 0), (3499, 0, 0, 1), (7, 11, 13, 17), (0, 0, 1, 0)] {
            let namespaces = ready + nearly + needs_work + not_judged;
            let parts = parts(&Summary { namespaces, ready, nearly, needs_work, not_judged, ..Summary::default() });
            assert_eq!(parts.iter().map(|part| part.width).sum::<usize>(), WIDTH);
            assert!(parts.windows(2).all(|pair| pair[0].begin + pair[0].width == pair[1].begin));
        }
    }

    #[test]
    fn times_are_short() {
        assert_eq!(time("2026-11-25T08:00:00Z"), "2026-11-25 08:00 UTC");
        assert_eq!(time("ü"), "ü");
    }
}

//! The answer as text, as JSON, and as a profile.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use k8s_openapi::jiff::Timestamp;
use palisade_cel::Minor;
use palisade_kube_json::json::set;
use serde_json::{Value as Json, json};

use super::{
    args::InferFormat,
    evidence::Denied,
    frontier::{Frontier, Needed, checks},
};
use crate::{
    output::{self, could_not_print, counted},
    profiles,
    proposal::Place,
    report::{Failure, one_line},
};

/// The number of workloads that are named for each row.
const NAMED: usize = 3;

/// The question.
pub(super) struct About {
    /// The time of the evaluation.
    pub time: Timestamp,
    /// The end of exceptions.
    pub expires: Timestamp,
    /// The version of the API server.
    pub version: Minor,
    /// The selector of namespaces.
    pub selector: Json,
    /// The evaluated workloads.
    pub workloads: BTreeSet<Place>,
    /// The workloads without a verdict, with the reason.
    pub not_judged: BTreeMap<Place, String>,
    /// The budget of outliers.
    pub outliers: usize,
}

/// The answer in a format.
pub(super) fn text(about: &About, frontier: &Frontier, format: InferFormat, top: usize) -> Result<String, Failure> {
    match format {
        InferFormat::Human => Ok(human(about, frontier, top)),
        InferFormat::Json => {
            let text = serde_json::to_string_pretty(&json(about, frontier)).map_err(|error| could_not_print(&error))?;
            Ok(text + "\n")
        }
        InferFormat::Yaml => yaml(about, frontier),
    }
}

fn human(about: &About, frontier: &Frontier, top: usize) -> String {
    let all = about.workloads.len();
    let mut out = format!("{} were evaluated, as if they were created now.\n\n", count(&about.workloads));
    let mut rows = vec![["LEVEL", "ADMITTED", "DENIED"].map(str::to_owned).to_vec()];
    for level in &frontier.levels {
        let denied = level.denied.len();
        rows.push(vec![level.name.to_owned(), (all - denied).to_string(), denied.to_string()]);
    }
    out.push_str(&output::table(&rows));
    if let Some(level) = frontier.levels.last().filter(|level| !level.denied.is_empty()) {
        let _ = writeln!(out, "\n{} denies {}:", level.name, count(&level.denied.keys().cloned().collect()));
        out.push_str(&by_check(&level.denied));
        out.push_str(&by_namespace(&level.denied, top));
    }
    parameters(&mut out, frontier);
    let admitted = all - frontier.denied.len();
    let _ = writeln!(out, "\nThe strictest profile that was found admits {admitted} of {all}; print it with -o yaml.");
    needed(&mut out, "SETTING", &frontier.needed);
    if !frontier.omitted.is_empty() {
        let _ =
            writeln!(out, "\nOmitted, because at most {} may need an exception:", counted(about.outliers, "workload"));
        needed(&mut out, "SETTING", &frontier.omitted);
    }
    for (what, denied) in [
        (format!("with exceptions until {}", about.expires), &frontier.excepted),
        ("denied, because no setting and no exception admits them".to_owned(), &frontier.denied),
    ] {
        if !denied.is_empty() {
            let _ = writeln!(out, "\n{} {what}:", count(&denied.keys().cloned().collect()));
            out.push_str(&by_check(denied));
            out.push_str(&by_namespace(denied, top));
        }
    }
    if !about.not_judged.is_empty() {
        let _ = writeln!(out, "\nNot evaluated:");
        for ((namespace, workload), why) in about.not_judged.iter().take(top) {
            let _ = writeln!(out, "  {} {}: {}", one_line(namespace), one_line(workload), one_line(why));
        }
        out.push_str(&more(about.not_judged.len(), top));
    }
    out
}

fn parameters(out: &mut String, frontier: &Frontier) {
    if frontier.parameters.is_empty() {
        return;
    }
    out.push_str("\nParameters that the namespaces have:\n");
    let mut rows = vec![["PARAMETER", "SOURCE", "SETTING", "EQUAL"].map(str::to_owned).to_vec()];
    for one in &frontier.parameters {
        for setting in &one.settings {
            rows.push(vec![
                format!("${}", one.name),
                one_line(&one.source),
                format!("spec.{}", setting.path),
                format!("{} of {}", setting.equal, setting.pairs),
            ]);
        }
    }
    out.push_str(&output::table(&rows));
}

/// The settings, each with the workloads that it admits.
fn needed(out: &mut String, title: &str, all: &[Needed]) {
    if all.is_empty() {
        return;
    }
    let mut rows = vec![[title, "WORKLOADS", "NAMESPACES", "FIRST"].map(str::to_owned).to_vec()];
    for one in all {
        let places: BTreeSet<_> = one.workloads.iter().collect();
        for (index, change) in one.changes.iter().enumerate() {
            let mut row = vec![one_line(&change.to_string())];
            if index == 0 {
                row.extend([
                    places.len().to_string(),
                    namespaces(places.iter().copied()).to_string(),
                    first(places.iter().copied()),
                ]);
            } else {
                row.extend(["", "", ""].map(str::to_owned));
            }
            rows.push(row);
        }
    }
    out.push_str(&output::table(&rows));
    for caution in all.iter().flat_map(|one| &one.changes).filter(|one| !one.caution.is_empty()) {
        let _ = writeln!(out, "{}: {}", one_line(&caution.to_string()), one_line(&caution.caution));
    }
}

fn by_check(denied: &Denied) -> String {
    let mut rows = vec![["CHECK", "WORKLOADS", "NAMESPACES", "FIRST"].map(str::to_owned).to_vec()];
    let mut places = BTreeMap::<&str, BTreeSet<&Place>>::new();
    for (place, violations) in denied {
        for check in checks(violations) {
            places.entry(check).or_default().insert(place);
        }
    }
    let mut sorted: Vec<_> = places.into_iter().collect();
    sorted.sort_by_key(|(check, places)| (std::cmp::Reverse(places.len()), *check));
    for (check, places) in sorted {
        let namespaces = namespaces(places.iter().copied()).to_string();
        rows.push(vec![check.to_owned(), places.len().to_string(), namespaces, first(places.into_iter())]);
    }
    output::table(&rows)
}

fn by_namespace(denied: &Denied, top: usize) -> String {
    let mut found = BTreeMap::<&str, (usize, BTreeSet<&str>)>::new();
    for ((namespace, _), violations) in denied {
        let (workloads, of_namespace) = found.entry(namespace).or_default();
        *workloads += 1;
        of_namespace.extend(checks(violations));
    }
    let mut rows = vec![["NAMESPACE", "WORKLOADS", "CHECKS"].map(str::to_owned).to_vec()];
    let mut sorted: Vec<_> = found.into_iter().collect();
    sorted.sort_by_key(|(namespace, (workloads, _))| (std::cmp::Reverse(*workloads), *namespace));
    for (namespace, (workloads, checks)) in sorted.iter().take(top) {
        let checks = checks.iter().copied().collect::<Vec<_>>().join(", ");
        rows.push(vec![one_line(namespace), workloads.to_string(), checks]);
    }
    format!("\n{}{}", output::table(&rows), more(sorted.len(), top))
}

fn more(all: usize, top: usize) -> String {
    if all > top { format!("and {} more; list more with --top\n", all - top) } else { String::new() }
}

fn namespaces<'a>(places: impl Iterator<Item = &'a Place>) -> usize {
    places.map(|(namespace, _)| namespace).collect::<BTreeSet<_>>().len()
}

fn first<'a>(places: impl Iterator<Item = &'a Place>) -> String {
    let named: Vec<_> = places.take(NAMED).map(|(namespace, name)| one_line(&format!("{namespace} {name}"))).collect();
    named.join(", ")
}

fn count(places: &BTreeSet<Place>) -> String {
    format!("{} in {}", counted(places.len(), "workload"), counted(namespaces(places.iter()), "namespace"))
}

fn json(about: &About, frontier: &Frontier) -> Json {
    let place = |(namespace, workload): &Place| json!({"namespace": namespace, "workload": workload});
    let places = |all: &Denied| -> Vec<Json> {
        let one = |(at, violations): (&Place, _)| {
            let mut json = place(at);
            set(&mut json, &["violations"], json!(violations));
            json
        };
        all.iter().map(one).collect()
    };
    let needed = |all: &[Needed]| -> Vec<Json> {
        let one = |one: &Needed| json!({"changes": one.changes, "workloads": one.workloads.iter().map(place).collect::<Vec<_>>()});
        all.iter().map(one).collect()
    };
    let levels: Vec<_> = frontier
        .levels
        .iter()
        .map(|level| json!({"name": level.name, "admitted": about.workloads.len() - level.denied.len(), "denied": places(&level.denied)}))
        .collect();
    let not_judged = about.not_judged.iter().map(|(at, why)| {
        let mut json = place(at);
        set(&mut json, &["why"], json!(why));
        json
    });
    json!({
        "apiVersion": "report.toolsecurity.dev/v1alpha1",
        "kind": "InferredProfile",
        "time": about.time.to_string(),
        "server": about.version.to_string(),
        "namespaceSelector": about.selector,
        "workloads": about.workloads.len(),
        "levels": levels,
        "parameters": frontier.parameters,
        "settings": needed(&frontier.needed),
        "omitted": needed(&frontier.omitted),
        "exceptions": {"expires": about.expires.to_string(), "workloads": places(&frontier.excepted)},
        "denied": places(&frontier.denied),
        "notJudged": not_judged.collect::<Vec<_>>(),
        "profile": profiles::written(&frontier.profile),
    })
}

fn yaml(about: &About, frontier: &Frontier) -> Result<String, Failure> {
    let admitted = about.workloads.len() - frontier.denied.len();
    let mut text = format!(
        "# Inferred from {} at {}: it admits {admitted} of them. Each other pod may be denied: preview it with palisade diff.\n",
        count(&about.workloads),
        about.time,
    );
    for one in &frontier.needed {
        for change in &one.changes {
            let _ =
                writeln!(text, "# {}", one_line(&format!("{change}: {}", counted(one.workloads.len(), "workload"))));
        }
    }
    text.push_str(&output::yaml(&[profiles::written(&frontier.profile)]).map_err(|error| could_not_print(&error))?);
    Ok(text)
}

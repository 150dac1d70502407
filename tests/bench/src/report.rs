//! The figures as a table and as JSON.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;

use crate::{Result, measure::Figures};

/// The reported figures of an arm.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    pub name: &'a str,
    pub about: &'a str,
    /// CPU milliseconds of the API server for one request: median of the rounds, least and most.
    pub cpu: [f64; 3],
    /// The median of the ratios to what it is compared with, round by round, with the least and the most.
    pub ratio: Option<[f64; 3]>,
    /// Milliseconds until the answer.
    pub p50: f64,
    pub p99: f64,
    /// The ratio of the 99th percentiles.
    pub p99_ratio: Option<f64>,
}

/// The rows, in the order of the arms.
pub(crate) fn rows(all: &[Figures]) -> Vec<Row<'_>> {
    let of = |figures: &'_ Figures| figures.against.and_then(|name| all.iter().find(|other| other.name == name));
    all.iter()
        .map(|figures| {
            let against = of(figures);
            let ratio = against.map(|other| {
                let ratios = figures.cpu.iter().zip(&other.cpu);
                spread(ratios.map(|(one, other)| one.as_secs_f64() / other.as_secs_f64().max(1e-9)).collect())
            });
            let p99 = percentile(&figures.latencies, 99);
            Row {
                name: &figures.name,
                about: &figures.about,
                cpu: spread(figures.cpu.iter().map(|time| time.as_secs_f64() * 1e3).collect()),
                ratio,
                p50: percentile(&figures.latencies, 50),
                p99,
                p99_ratio: against.map(|other| p99 / percentile(&other.latencies, 99).max(1e-9)),
            }
        })
        .collect()
}

/// Middle, least and most.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().map_or(0.0, |value| (value * 1e3).round() / 1e3);
    [at(values.len() / 2), at(0), at(values.len().saturating_sub(1))]
}

fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let index = sorted.len() * percent / 100;
    let value = sorted.get(index.min(sorted.len().saturating_sub(1))).map_or(0.0, Duration::as_secs_f64);
    (value * 1e5).round() / 1e2
}

/// The figures as Markdown.
pub(crate) fn table(all: &[Figures]) -> String {
    let mut out = String::from("| | CPU of a request | ratio | p50 | p99 | ratio |\n|---|---|---|---|---|---|\n");
    for row in rows(all) {
        let [cpu, least, most] = row.cpu;
        let ratio = row
            .ratio
            .map_or_else(String::new, |[ratio, least, most]| format!("**{ratio:.2}** ({least:.2} to {most:.2})"));
        let p99_ratio = row.p99_ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            out,
            "| {} | {cpu:.2} ms ({least:.2} to {most:.2}) | {ratio} | {:.1} ms | {:.1} ms | {p99_ratio} |",
            row.about, row.p50, row.p99
        );
    }
    out
}

/// The figures as JSON, with the machine.
pub(crate) fn json(all: &[Figures]) -> Result<String> {
    let cpus = std::thread::available_parallelism()?.get();
    let rounds = all.first().map_or(0, |figures| figures.cpu.len());
    let requests = all.first().map_or(0, |figures| figures.latencies.len() / rounds.max(1));
    let whole = serde_json::json!({
        "machine": {"cpus": cpus}, "rounds": rounds, "requests": requests, "arms": rows(all),
    });
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}

//! The figures as a table and as JSON.

use std::{fmt::Write as _, iter, time::Duration};

use serde::Serialize;

use crate::{
    Result,
    measure::{Applied, Figures},
};

/// The reported figures of an arm.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    pub name: &'a str,
    pub about: &'a str,
    /// CPU milliseconds of the API server for one request: median of the rounds, least and most.
    pub cpu: [f64; 3],
    /// The same of the process that judges beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_cpu: Option<[f64; 3]>,
    /// The median of the ratios to what was measured next to it, round by round, with the least and the most: of the CPU
    /// of both.
    pub ratio: Option<[f64; 3]>,
    /// The same, to Palisade's arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_palisade: Option<[f64; 3]>,
    /// Milliseconds until the answer.
    pub p50: f64,
    pub p99: f64,
    /// The ratio of the 99th percentiles.
    pub p99_ratio: Option<f64>,
    /// The resident megabytes of the API server in the end, which are the same for all arms on it.
    pub memory: u64,
    /// Those of the process beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_memory: Option<u64>,
    /// What was applied for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
}

/// The rows, in the order of the arms.
pub(crate) fn rows(all: &[Figures]) -> Vec<Row<'_>> {
    let named = |name| all.iter().find(|other| other.name == name);
    all.iter()
        .map(|figures| {
            let beside = figures.beside.as_ref();
            let multiple = |other: &Figures| spread(quotients(figures.whole(), other.whole()));
            let p99 = percentile(&figures.latencies, 99);
            Row {
                name: &figures.name,
                about: &figures.about,
                cpu: milliseconds(&figures.cpu),
                engine_cpu: figures.engine.as_deref().map(milliseconds),
                ratio: ratios(figures).map(spread),
                times_palisade: figures.multiple_of.and_then(named).map(multiple),
                p50: percentile(&figures.latencies, 50),
                p99,
                p99_ratio: beside.map(|beside| p99 / percentile(&beside.latencies, 99).max(1e-9)),
                memory: figures.memory.0 >> 20,
                engine_memory: figures.memory.1.map(|bytes| bytes >> 20),
                applied: figures.applied,
            }
        })
        .collect()
}

/// The ratios of an arm to what was measured next to it, round by round.
pub(crate) fn ratios(figures: &Figures) -> Option<Vec<f64>> {
    let beside = figures.beside.as_ref()?;
    Some(quotients(figures.whole(), beside.cpu.iter().map(Duration::as_secs_f64)))
}

fn quotients(these: impl Iterator<Item = f64>, others: impl Iterator<Item = f64>) -> Vec<f64> {
    these.zip(others).map(|(this, other)| this / other.max(1e-9)).collect()
}

impl Figures {
    /// The CPU seconds of one request, of the API server and of the process beside it, round by round.
    fn whole(&self) -> impl Iterator<Item = f64> {
        let engine = self.engine.iter().flatten().chain(iter::repeat(&Duration::ZERO));
        self.cpu.iter().zip(engine).map(|(cpu, engine)| (*cpu + *engine).as_secs_f64())
    }
}

fn milliseconds(times: &[Duration]) -> [f64; 3] {
    spread(times.iter().map(|time| time.as_secs_f64() * 1e3).collect())
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

/// The figures as Markdown. Only figures with a process beside the API server have columns for it.
pub(crate) fn table(all: &[Figures]) -> String {
    let peers = all.iter().any(|figures| figures.engine.is_some());
    let (titles, line) = if peers {
        (
            " of an engine | ratio | times Palisade | p50 | p99 | ratio | memory | of an engine | objects | in force |",
            "---|---|---|",
        )
    } else {
        (" ratio | p50 | p99 | ratio | memory | objects | in force |", "")
    };
    let mut out = format!("| | CPU of a request |{titles}\n|---|---|---|---|---|---|---|---|---|{line}\n");
    let bold = |spread: Option<[f64; 3]>| {
        spread.map_or_else(String::new, |[ratio, least, most]| format!("**{ratio:.2}** ({least:.2} to {most:.2})"))
    };
    for row in rows(all) {
        let [cpu, least, most] = row.cpu;
        let _ = write!(out, "| {} | {cpu:.2} ms ({least:.2} to {most:.2}) |", row.about);
        if peers {
            let engine = row.engine_cpu.map(|[cpu, least, most]| format!("{cpu:.2} ms ({least:.2} to {most:.2})"));
            let _ = write!(out, " {} |", engine.unwrap_or_default());
        }
        let _ = write!(out, " {} |", bold(row.ratio));
        if peers {
            let _ = write!(out, " {} |", bold(row.times_palisade));
        }
        let p99_ratio = row.p99_ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let _ = write!(out, " {:.1} ms | {:.1} ms | {p99_ratio} | {} MB |", row.p50, row.p99, row.memory);
        if peers {
            let _ = write!(out, " {} |", row.engine_memory.map(|memory| format!("{memory} MB")).unwrap_or_default());
        }
        let applied = row.applied.map(|Applied { objects, bytes, seconds }| {
            format!("{objects}, {} KB | {seconds:.1} s |", bytes.div_ceil(1000))
        });
        let _ = writeln!(out, " {}", applied.unwrap_or_else(|| "| |".to_owned()));
    }
    out
}

/// The figures as JSON, with the machine: those of the API server alone, and those of each
/// engine beside it, with what was measured in turn with it.
pub(crate) fn json(groups: &[Vec<Figures>]) -> Result<String> {
    let cpus = std::thread::available_parallelism()?.get();
    let first = groups.first().map_or(&[][..], Vec::as_slice);
    let compared = first.iter().find(|figures| figures.beside.is_some());
    let rounds = compared.map_or(0, |figures| figures.cpu.len());
    let requests = compared.map_or(0, |figures| figures.latencies.len() / rounds.max(1));
    let (arms, engines): (Vec<_>, Vec<_>) =
        groups.iter().partition(|group| group.iter().all(|figures| figures.engine.is_none()));
    let arms: Vec<_> = arms.into_iter().flat_map(|group| rows(group)).collect();
    let engines: Vec<_> = engines.into_iter().map(|group| rows(group)).collect();
    let whole = serde_json::json!({
        "machine": {"cpus": cpus}, "rounds": rounds, "requests": requests, "arms": arms, "engines": engines,
    });
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}

//! `cargo xtask bench`: what a request costs the API server, judged in each of several ways, in one run.
//!
//! All ways take turns, round by round, so that what else the machine does falls on all of them. Each is compared with the
//! same request in a namespace that nothing selects, sent right before or after it.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod arms;
mod bounds;
mod curve;
mod engine;
mod ingresses;
mod measure;
mod peers;
mod plot;
mod report;
mod webhook;

use std::{error::Error, path::PathBuf, process::ExitCode};

use clap::Parser;
use palisade_tests::Cluster;

use curve::{containers, edits, namespaces::Way, profiles};
use measure::Plan;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Measures what a request costs the API server, judged in each of several ways.
#[derive(Parser)]
struct Arguments {
    /// How often all ways take turns.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How many requests each way gets in a round: enough for several garbage collections, or else one more or less decides.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    requests: u32,
    /// Measure only the ways whose name has one of these texts in it, and what they are compared with.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Also measure peers, whose programs are in this directory.
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Also measure Palisade's webhook, which is this program.
    #[arg(long)]
    webhook: Option<PathBuf>,
    /// Measure these numbers of namespaces instead, each by a profile and by a policy for each namespace.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    namespaces: Vec<u32>,
    /// Measure more namespaces than this by the profile only.
    #[arg(long, default_value_t = 1000)]
    policies: u32,
    /// Measure pods with these numbers of containers instead.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000))]
    containers: Vec<u32>,
    /// Measure these numbers of profiles that select the same namespace instead, the smallest first.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100))]
    profiles: Vec<u32>,
    /// Edit a constant, an annotation and a parameter with these numbers of namespaces instead.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    edits: Vec<u32>,
    /// Write the figures to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draw the figures of the JSON file, as SVG.
    #[arg(long, requires = "json")]
    plot: Option<PathBuf>,
    /// Fail if a ratio is beyond its bound.
    #[arg(long)]
    check: bool,
}

/// The texts of which one must be in the name of what is measured; none for everything.
struct Only(Vec<String>);

impl Only {
    fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|text| name.contains(text))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(arguments: &Arguments) -> Result<ExitCode> {
    let curves = [&arguments.namespaces, &arguments.containers, &arguments.profiles, &arguments.edits];
    if curves.iter().any(|counts| !counts.is_empty()) {
        return self::curves(arguments).await;
    }
    let plan = Plan { rounds: arguments.rounds, requests: arguments.requests };
    let only = Only(arguments.only.clone());
    let arms = arms::selected([arms::of_pods()?, ingresses::arms()?].into_iter().flatten().collect(), &only);
    let mut groups = vec![];
    if !arms.is_empty() {
        println!("==> starting etcd, kube-apiserver and kube-controller-manager");
        let cluster = Cluster::start(None).await?;
        let figures = measure::run(&cluster, &arms, plan).await;
        println!("==> stopping everything");
        cluster.stop().await?;
        groups.push(figures?);
    }
    if let Some(program) = arguments.webhook.as_ref().filter(|_| only.has("webhook")) {
        groups.push(webhook::measure(program, plan).await?);
    }
    if let Some(directory) = &arguments.peers {
        groups.extend(peers::all(directory, &only, plan).await?);
    }
    for group in &groups {
        println!("\n{}", report::table(group));
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, report::json(&groups)?)?;
    }
    let figures = groups.first().map_or(&[][..], Vec::as_slice);
    if let Some(path) = &arguments.plot {
        plot::draw(figures, path)?;
    }
    let beyond = if arguments.check { bounds::beyond(figures) } else { vec![] };
    for text in &beyond {
        eprintln!("error: {text}");
    }
    Ok(if beyond.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn curves(arguments: &Arguments) -> Result<ExitCode> {
    let mut points = Vec::new();
    for count in &arguments.namespaces {
        points.push(curve::namespaces::measure(Way::Profile, *count).await?);
        if *count <= arguments.policies {
            points.push(curve::namespaces::measure(Way::PolicyEach, *count).await?);
        }
    }
    let mut of_containers = vec![];
    if !arguments.containers.is_empty() {
        of_containers = containers::measure(&arguments.containers).await?;
    }
    let mut of_profiles = vec![];
    if !arguments.profiles.is_empty() {
        of_profiles = profiles::measure(&arguments.profiles).await?;
    }
    let mut of_edits = vec![];
    for count in &arguments.edits {
        of_edits.extend(edits::measure(*count).await?);
    }
    let tables = [
        (!points.is_empty()).then(|| curve::namespaces::table(&points)),
        (!of_containers.is_empty()).then(|| containers::table(&of_containers)),
        (!of_profiles.is_empty()).then(|| profiles::table(&of_profiles)),
        (!of_edits.is_empty()).then(|| edits::table(&of_edits)),
    ];
    for table in tables.into_iter().flatten() {
        println!("\n{table}");
    }
    if let Some(path) = &arguments.json {
        let all = serde_json::json!({
            "namespaces": points, "containers": of_containers, "profiles": of_profiles, "edits": of_edits,
        });
        std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

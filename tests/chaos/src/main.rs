//! `cargo xtask chaos`: breaks a real control plane with Palisade on it for some time, and watches what must always hold.
//!
//! What is broken, and when, follows from a seed ([`schedule`]). Meanwhile violating and complying pods and workloads are sent
//! in several namespaces ([`watch`]). In the end everything must be in order by itself, and equal to what a fresh controller
//! makes of the same namespaces and profiles ([`compare`]).
#![allow(clippy::disallowed_methods, reason = "it starts processes, measures time and keeps logs")]

mod ask;
mod child;
mod compare;
mod faults;
mod links;
mod profiles;
mod report;
mod schedule;
mod site;
mod timeline;
mod users;
mod watch;

use std::{error::Error, fs, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use report::Report;
use site::Site;
use timeline::Timeline;
use users::Users;
use watch::{Prober, Shape, Sort, Watch};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Breaks a real control plane with Palisade on it, as a seed says, and watches what must always hold.
#[derive(Parser)]
struct Arguments {
    /// Of what is broken, and when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For how long things are broken.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(10..=86_400))]
    seconds: u64,
    /// Where logs, the time line and the figures are kept. What a former run has left there is removed.
    #[arg(long, default_value = "target/chaos")]
    directory: PathBuf,
    /// Prints the schedule only.
    #[arg(long)]
    schedule: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let steps = schedule::schedule(arguments.seed, arguments.seconds);
    println!("seed {}: {} faults in {} s", arguments.seed, steps.len(), arguments.seconds);
    for step in &steps {
        println!(
            "{:>9.3} s  {:<12} {}",
            Duration::from_millis(step.at).as_secs_f64(),
            format!("{:?}", step.lane),
            step.fault
        );
    }
    if arguments.schedule {
        return ExitCode::SUCCESS;
    }
    let run = async {
        tokio::select! {
            result = run(&arguments, &steps) => result,
            () = interrupted() => Err("interrupted".into()),
        }
    };
    match run.await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// A signal to end. Whoever ignored it would leave programs behind.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// Those who ask all the time.
fn probers() -> Vec<Prober> {
    let mut probers = Vec::new();
    for (namespace, parameters) in [("tools-0", true), ("tools-1", true), ("webhook-0", true), ("staged-deny", false)] {
        for shape in [Shape::Pod, Shape::Deployment] {
            for sort in [Sort::Hostile, Sort::Complying] {
                probers.push(Prober { namespace, sort, shape, parameters });
            }
        }
    }
    for shape in [Shape::Pod, Shape::Deployment] {
        // Its parameter is wrong at times.
        probers.push(Prober { namespace: "broken-0", sort: Sort::Hostile, shape, parameters: true });
    }
    for namespace in ["tools-0", "webhook-0"] {
        probers.push(Prober { namespace, sort: Sort::Bare, shape: Shape::Pod, parameters: true });
    }
    probers
}

/// Whether nothing was wrong.
async fn run(arguments: &Arguments, steps: &[schedule::Step]) -> Result<bool> {
    let directory = arguments.directory.join(format!("seed-{}", arguments.seed));
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let timeline = Arc::new(Timeline::new(&directory.join("timeline.tsv"))?);
    let mut report = Report::new(arguments.seed, arguments.seconds);

    timeline.note("starting everything");
    let site = Site::start(&directory.join("site"), 2, &timeline).await?;
    let users = Users::new(site.admin.clone(), Arc::clone(&timeline));
    users.prepare().await?;
    compare::converge(&site.admin, &timeline).await;
    let watch = Watch::start(&site.admin, &probers(), &users.definition, &timeline);

    timeline.note("from here on, things break");
    faults::run(steps, Duration::from_secs(arguments.seconds), &site, &users, &timeline).await;
    timeline.note("nothing is broken from here on");
    site.parts.heal();
    users.mend_namespaces().await?;
    users.put_right().await?;
    report.converged = compare::converge(&site.admin, &timeline).await.map(|took| took.as_secs_f64());
    report.emptied = compare::emptied(&site.admin, &timeline).await.map(|took| took.as_secs_f64());
    report.probes = watch.stop().await;
    for (sort, tally) in &report.probes {
        if (*sort == Sort::Hostile && tally.denied == 0) || (*sort != Sort::Hostile && tally.admitted == 0) {
            timeline.finding(format!("{sort:?}: nothing was shown: {tally:?}"));
        }
    }

    let inputs = compare::inputs(&site.admin).await?;
    let outputs = compare::outputs(&site.admin).await?;
    report.leaders = timeline.leaders();
    (report.namespaces_created, report.namespaces_at_the_end) = (users.created(), inputs.namespaces.len());
    for (log, starts) in site.parts.programs() {
        report.starts.insert(log.file_stem().unwrap_or_default().to_string_lossy().into_owned(), starts);
        for line in fs::read_to_string(&log)?.lines().filter(|line| line.contains("panicked at")) {
            timeline.finding(format!("{}: {line}", log.display()));
        }
    }
    site.stop().await?;

    timeline.note(format!("a fresh controller gets {} namespaces and the profiles", inputs.namespaces.len()));
    let fresh = compare::fresh(&inputs, &directory.join("fresh"), &timeline).await?;
    report.compared = fresh.len();
    for difference in compare::differences(&outputs, &fresh) {
        timeline.finding(difference);
    }
    report.take(&timeline);
    fs::write(directory.join("report.json"), serde_json::to_string_pretty(&report)? + "\n")?;
    println!("\n{}", report.table());
    for finding in timeline.findings().iter().take(5) {
        println!("WRONG at {:.1} s: {}\n{}", finding.at.as_secs_f64(), finding.what, timeline.around(finding.at));
    }
    if !report.wrong.is_empty() {
        println!(
            "seed {0}: `cargo xtask chaos --seconds {1} --seed {0}` breaks the same things at the same times",
            arguments.seed, arguments.seconds
        );
    }
    println!("logs, the time line and the figures are in {}", directory.display());
    Ok(report.wrong.is_empty())
}

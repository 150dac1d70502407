//! `palisade check`: judges the manifests of a tenant by profiles, in CI.

mod args;
mod config;
mod manifests;
mod show;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

pub use args::CheckArgs;
use args::FailOn;
use k8s_openapi::jiff::Timestamp;
use manifests::Manifest;
use palisade_cel::Minor;

use crate::{
    cluster::could_not_run,
    files,
    findings::Format,
    input,
    judge::{Judge, Violation},
    namespaces::{self, Tenant},
    profiles,
    report::{self, Failure, Problem},
    smallest::Least,
    style::Style,
};

/// A pod or workload that was judged.
struct Judged<'a> {
    manifest: Manifest<'a>,
    violations: Vec<Violation>,
    change: Option<Least>,
}

/// What was judged, and what was not.
struct Checked<'a> {
    objects: Vec<Judged<'a>>,
    /// How many objects no profile judges, by their kinds.
    others: BTreeMap<String, usize>,
    version: Minor,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let config = config::read(args)?;
    let stdin = args.files.iter().chain(&args.profiles).chain(&args.namespaces).filter(|path| *path == "-").count();
    if stdin > 1 {
        return Err(could_not_run("only one FILE can be standard input"));
    }
    if !args.live && config.profiles.is_empty() {
        let help = "--profile names files with profiles, as does profiles in .palisade.yaml; --live reads a cluster's";
        return Err(Failure::CouldNotRun(vec![Problem::new("there is no profile to judge by").help(help)]));
    }
    let sources = files::sources(&args.files)?;
    let objects = manifests::objects(&sources)?;
    if objects.is_empty() {
        return Err(could_not_run("no object found in the manifests"));
    }
    let (mut tenants, problems) = namespaces::among(&objects);
    if !problems.is_empty() {
        return Err(Failure::CouldNotRun(problems));
    }
    if let Some(path) = &config.namespaces {
        let given = namespaces::read(&input::read(path)?)?;
        tenants.retain(|one| !given.iter().any(|other| other.name == one.name));
        tenants.extend(given);
    }
    let namespace = match config.namespace.clone().or_else(|| only(&tenants)) {
        None if args.live => Some(args.cluster.namespace()?),
        namespace => namespace,
    };
    let (manifests, others) = manifests::judged(objects, namespace.as_deref())?;
    let names: BTreeSet<_> = manifests.iter().map(|one| one.namespace.clone()).collect();
    let ground = manifests::ground(args, &config, tenants, &names)?;
    profiles::tell(&ground.accepted, &ground.tenants);
    let judge = Judge::new(&ground.accepted, &ground.tenants, ground.version, Timestamp::now())?;
    for name in names.iter().filter(|name| !judge.selects(name)) {
        report::note(&format!("note: no profile selects namespace {name}"));
    }
    let mut judged = Vec::new();
    let mut problems = Vec::new();
    for manifest in manifests {
        match judge.judge(manifest.kind, &manifest.json) {
            Ok(violations) => {
                let change = if violations.is_empty() { None } else { judge.smallest(manifest.kind, &manifest.json) };
                judged.push(Judged { manifest, violations, change });
            }
            Err(why) => problems.push(manifest.object.problem("", format!("cannot be judged: {why}"))),
        }
    }
    let checked = Checked { objects: judged, others, version: ground.version };
    let shared = show::shared(&checked, &ground.accepted);
    for output in &config.output {
        let shown = output.format == Format::Human && output.file.is_none();
        let style = if shown { Style::of(&io::stdout()) } else { Style::PLAIN };
        output.write(&shared, [&|| show::human(&checked, style), &|| show::json(&checked)])?;
    }
    if !problems.is_empty() {
        return Err(Failure::CouldNotRun(problems));
    }
    verdict(&checked, config.fail_on)
}

fn verdict(checked: &Checked<'_>, fail_on: FailOn) -> Result<(), Failure> {
    let mut violations = checked.objects.iter().flat_map(|one| &one.violations);
    let fails = match fail_on {
        FailOn::Error => violations.any(|one| one.denied),
        FailOn::Warning => violations.next().is_some(),
        FailOn::Never => false,
    };
    if fails { Err(Failure::Wrong(Vec::<Problem>::new())) } else { Ok(()) }
}

/// The namespace of objects that name none, if there is only one.
fn only(tenants: &[Tenant]) -> Option<String> {
    match tenants {
        [one] => Some(one.name.clone()),
        _ => None,
    }
}

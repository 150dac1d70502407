//! `palisade check`: evaluates the manifests of a tenant against profiles, in CI.

mod args;
mod config;
mod manifests;
mod place;
mod show;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

pub use args::CheckArgs;
use args::FailOn;
use k8s_openapi::jiff::Timestamp;
use manifests::{Manifest, Manifests};
use palisade_cel::Minor;

use crate::{
    cluster::could_not_run,
    evaluator::ProfileEvaluator,
    explained::Explained,
    files,
    findings::Format,
    input::{self, Found},
    namespaces::{self, Tenant},
    profiles,
    report::{self, Failure, Problem},
    style::Style,
};

/// An evaluated object.
struct Judged<'a> {
    manifest: Manifest<'a>,
    explained: Explained,
}

/// The evaluated objects and the others.
struct Checked<'a> {
    objects: Vec<Judged<'a>>,
    /// The number of objects that profiles do not evaluate, by kind.
    others: BTreeMap<String, usize>,
    version: Minor,
    /// Whether mutations and admitted objects are shown.
    explain: bool,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let config = config::read(args)?;
    let stdin = args.files.iter().chain(&args.profiles).chain(&args.namespaces).filter(|path| *path == "-").count();
    if stdin > 1 {
        return Err(could_not_run("only one FILE can be standard input"));
    }
    if !args.live && args.dump.is_none() && config.profiles.is_empty() {
        let help = "specify files with --profile or `profiles` in .palisade.yaml, or read those of a cluster with --live or --dump";
        return Err(Failure::CouldNotRun(vec![Problem::new("at least one profile is required").help(help)]));
    }
    let sources = files::sources(&args.files)?;
    let Found { objects, unread: mut problems } = input::all(&sources);
    let (mut tenants, wrong) = namespaces::among(&objects);
    problems.extend(wrong);
    if let Some(path) = &config.namespaces {
        let given = namespaces::read(&files::read(path)?)?;
        tenants.retain(|one| !given.iter().any(|other| other.name == one.name));
        tenants.extend(given);
    }
    let namespace = match config.namespace.clone().or_else(|| only(&tenants)) {
        None if args.live => Some(args.cluster.namespace()?),
        namespace => namespace,
    };
    let mut manifests = manifests::judged(objects, namespace.as_deref());
    problems.append(&mut manifests.problems);
    let all = manifests.judged.iter().chain(&manifests.candidates);
    let inputs = manifests::inputs(args, &config, tenants, &all.map(|one| one.namespace.clone()).collect())?;
    let judge = ProfileEvaluator::new(&inputs.accepted, &inputs.tenants, inputs.version, Timestamp::now())?;
    problems.extend(manifests::promote(&mut manifests, &judge));
    let Manifests { judged: manifests, others, .. } = manifests;
    let names: BTreeSet<_> = manifests.iter().map(|one| one.namespace.clone()).collect();
    problems.extend(inputs.unknown.iter().filter(|(name, _)| names.contains(*name)).map(|(_, why)| why.clone()));
    profiles::tell(&inputs.accepted, &inputs.tenants);
    for name in names.iter().filter(|name| !judge.selects(name) && !inputs.unknown.contains_key(*name)) {
        report::note(&format!("note: no profile selects namespace {name}"));
    }
    let mut judged = Vec::new();
    for manifest in manifests.into_iter().filter(|one| !inputs.unknown.contains_key(&one.namespace)) {
        match judge.explain(manifest.kind, &manifest.json) {
            Ok(explained) => judged.push(Judged { manifest, explained }),
            Err(why) => problems.push(manifest.object.problem("", format!("cannot be evaluated: {why}"))),
        }
    }
    let checked = Checked { objects: judged, others, version: inputs.version, explain: args.explain };
    let shared = show::shared(&checked, &inputs.accepted);
    for output in &config.output {
        let shown = output.format == Format::Human && output.file.is_none();
        let style = if shown { Style::of(&io::stdout()) } else { Style::PLAIN };
        output.write(&shared, [&|| show::human(&checked, style), &|| show::json(&checked)])?;
    }
    if checked.objects.is_empty() && problems.is_empty() {
        problems.push(Problem::new(nothing(&checked.others)));
    }
    args.unevaluated.settle(problems)?;
    verdict(&checked, config.fail_on)
}

/// The reason why no object was evaluated.
fn nothing(others: &BTreeMap<String, usize>) -> String {
    if others.is_empty() {
        return "no object was evaluated: the manifests have no objects".to_owned();
    }
    let kinds: Vec<_> = others.iter().take(10).map(|(kind, count)| format!("{count} {kind}")).collect();
    format!(
        "no object was evaluated: the profiles do not evaluate the kinds of the manifests, which are {}",
        kinds.join(", ")
    )
}

fn verdict(checked: &Checked<'_>, fail_on: FailOn) -> Result<(), Failure> {
    let mut violations = checked.objects.iter().flat_map(|one| &one.explained.violations);
    let fails = match fail_on {
        FailOn::Error => violations.any(|one| one.denied),
        FailOn::Warning => violations.next().is_some(),
        FailOn::Never => false,
    };
    if fails { Err(Failure::Wrong(Vec::<Problem>::new())) } else { Ok(()) }
}

/// The namespace of objects that do not specify one, if there is only one.
fn only(tenants: &[Tenant]) -> Option<String> {
    match tenants {
        [one] => Some(one.name.clone()),
        _ => None,
    }
}

//! What a report is about: profiles, namespaces, and what is in them; of a cluster, of a dump or of files.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{NamespaceStages, Stage, WorkloadStage};
use palisade_cel::Minor;
use serde_json::Value as Json;

use super::{
    args::ReportArgs,
    found::{All, Objects},
};
use crate::{
    cluster::could_not_run,
    dumped::Dump,
    files, input,
    input::Object,
    judge::{self, Judge},
    live,
    namespaces::{self, Tenant},
    profiles::{self, Accepted},
    progress::Progress,
    report::{Failure, Problem, Source},
};

/// What is judged, by what, and what was found.
pub(super) struct Judged {
    pub accepted: Vec<Accepted>,
    pub tenants: Vec<Tenant>,
    pub version: Minor,
    pub judge: Judge,
    pub all: All,
}

impl Judged {
    /// Judges all objects.
    pub fn new(args: &ReportArgs, now: Timestamp) -> Result<Self, Failure> {
        let given =
            if args.profiles.is_empty() { None } else { Some(profiles::all(&files::sources(&args.profiles)?)?) };
        let mut progress = Progress::new();
        if args.live {
            return args.cluster.ask(async |client| {
                let version = match args.kube_version {
                    Some(version) => version,
                    None => live::version(&client).await?,
                };
                let accepted = if let Some(given) = given {
                    given
                } else {
                    let found = live::profiles(&client).await?.into_iter();
                    found.map(profiles::accept_live).collect::<Result<Vec<_>, _>>().map_err(Failure::CouldNotRun)?
                };
                live::permitted(&client, live::judged().chain([live::NAMESPACES, live::EXCEPTIONS])).await?;
                let tenants = live::all_tenants(&client, &mut progress).await?;
                let base = Base::new(accepted, tenants, version, now)?;
                let mut objects = base.objects();
                for kind in live::judged() {
                    live::each(&client, kind, &mut progress, |page| {
                        objects.judge(page);
                        Ok(())
                    })
                    .await?;
                }
                let all = objects.end();
                Ok(base.end(all))
            });
        }
        if let Some(directory) = &args.dump {
            let mut dump = Dump::open(directory)?;
            let accepted = given.unwrap_or_else(|| std::mem::take(&mut dump.profiles));
            let tenants = std::mem::take(&mut dump.tenants);
            let base = Base::new(accepted, tenants, args.kube_version.unwrap_or(dump.version), now)?;
            let mut objects = base.objects();
            dump.each(&mut progress, |page| {
                objects.judge(page);
                Ok(())
            })?;
            let all = objects.end();
            return Ok(base.end(all));
        }
        let sources = files::sources(&args.files)?;
        let (accepted, tenants, found) = read(&sources, args, given)?;
        let base = Base::new(accepted, tenants, args.kube_version.unwrap_or(Minor::DEFAULT), now)?;
        let mut objects = base.objects();
        objects.judge(found);
        let all = objects.end();
        Ok(base.end(all))
    }
}

/// What is judged by.
struct Base {
    accepted: Vec<Accepted>,
    tenants: Vec<Tenant>,
    version: Minor,
    judge: Judge,
    names: BTreeSet<String>,
}

impl Base {
    fn new(accepted: Vec<Accepted>, tenants: Vec<Tenant>, version: Minor, now: Timestamp) -> Result<Self, Failure> {
        if accepted.is_empty() {
            let help = "--profile names files with profiles";
            return Err(Failure::CouldNotRun(vec![Problem::new("there is no profile to judge by").help(help)]));
        }
        let denying = accepted.iter().map(in_deny).collect::<Result<Vec<_>, _>>().map_err(Failure::CouldNotRun)?;
        let judge = Judge::new(&denying, &tenants, version, now)?;
        let names = tenants.iter().map(|one| one.name.clone()).collect();
        Ok(Self { accepted, tenants, version, judge, names })
    }

    fn objects(&self) -> Objects<'_> {
        Objects::new(&self.judge, &self.names)
    }

    fn end(self, all: All) -> Judged {
        let Self { accepted, tenants, version, judge, .. } = self;
        Judged { accepted, tenants, version, judge, all }
    }
}

/// A profile as it would be in the stage Deny everywhere: only then everything that is wrong is a denial, also what is no
/// violation of a check, such as a parameter that is missing.
fn in_deny(one: &Accepted) -> Result<Accepted, Vec<Problem>> {
    let mut profile = one.profile.clone();
    let enforcement = &mut profile.spec.enforcement;
    enforcement.pods = Stage::Deny;
    enforcement.namespace_stages = NamespaceStages::Uniform;
    if enforcement.workloads != WorkloadStage::Off {
        enforcement.workloads = WorkloadStage::Deny;
    }
    // Its waves need namespaces with stages of their own.
    profile.spec.rollout = None;
    profiles::accept_live(profile)
}

/// What is in files: profiles, namespaces, pods and workloads.
type Files = (Vec<Accepted>, Vec<Tenant>, Vec<Json>);

/// The profiles, the namespaces, and the pods and workloads in files: these in the order in which they are judged.
fn read(sources: &[Arc<Source>], args: &ReportArgs, given: Option<Vec<Accepted>>) -> Result<Files, Failure> {
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    for source in sources {
        match input::objects(source) {
            Ok(found) => objects.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    let (mut tenants, wrong) = namespaces::among(&objects);
    problems.extend(wrong);
    if let Some(path) = &args.namespaces {
        let more = namespaces::read(&input::read(path)?)?;
        tenants.retain(|one| !more.iter().any(|other| other.name == one.name));
        tenants.extend(more);
    }
    let mut accepted = Vec::<Accepted>::new();
    let own = |object: &&Object<'_>| object.kind == profiles::KIND;
    for object in objects.iter().filter(own).filter(|_| given.is_none()) {
        match profiles::accept(object) {
            Ok(one) if accepted.iter().any(|other| other.checked.profile == one.checked.profile) => {
                problems.push(object.problem("metadata.name", "a second profile with this name"));
            }
            Ok(one) => accepted.push(one),
            Err(found) => problems.extend(found),
        }
    }
    let (mut workloads, mut pods) = (Vec::new(), Vec::new());
    for object in &objects {
        let into = if judge::is_pod(&object.api_version, &object.kind) {
            &mut pods
        } else if judge::workload(&object.api_version, &object.kind).is_some() {
            &mut workloads
        } else {
            continue;
        };
        match object.json() {
            Ok(json) if json["metadata"]["namespace"].as_str().is_none_or(str::is_empty) => {
                problems.push(object.problem("metadata", format!("{} names no namespace", object.kind)));
            }
            Ok(json) => into.push(json),
            Err(mistake) => problems.push(mistake.problem),
        }
    }
    if !problems.is_empty() {
        return Err(Failure::CouldNotRun(problems));
    }
    if objects.is_empty() {
        return Err(could_not_run("no object found in the files"));
    }
    workloads.append(&mut pods);
    Ok((given.unwrap_or(accepted), tenants, workloads))
}

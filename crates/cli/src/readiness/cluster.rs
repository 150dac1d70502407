//! What a report is about: profiles, namespaces, and what is in them; of a cluster, of a dump or of files.

use k8s_openapi::jiff::Timestamp;
use palisade_api::{NamespaceStages, Stage, WorkloadStage};
use palisade_cel::Minor;

use super::{
    args::ReportArgs,
    found::{All, Objects as Found},
};
use crate::{
    dumped::Dump,
    files,
    ground::{Manifests, Objects, Reading},
    judge::Judge,
    live,
    namespaces::Tenant,
    profiles::{self, Accepted},
    progress::Progress,
    report::{Failure, Problem},
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
        let ground = &args.ground;
        let mut progress = Progress::new();
        let (accepted, tenants, version, objects) = if ground.live {
            let (found, tenants, version) = ground.cluster.ask(async |client| {
                let rights = live::judged().chain([live::NAMESPACES, live::EXCEPTIONS]);
                live::permitted(&client, rights.chain(given.is_none().then_some(live::PROFILES))).await?;
                let found = if given.is_none() { live::profiles(&client).await? } else { Vec::new() };
                Ok((found, live::all_tenants(&client, &mut progress).await?, live::version(&client).await?))
            })?;
            let live = || found.into_iter().map(profiles::accept_live).collect::<Result<_, _>>();
            let accepted = given.map_or_else(live, Ok).map_err(Failure::CouldNotRun)?;
            (accepted, tenants, version, Objects::Cluster(&ground.cluster))
        } else if let Some(directory) = &ground.dump {
            let mut dump = Dump::open(directory)?;
            let accepted = given.unwrap_or_else(|| std::mem::take(&mut dump.profiles));
            (accepted, std::mem::take(&mut dump.tenants), dump.version, Objects::Dump(dump))
        } else {
            let reading =
                Reading { namespaces: ground.namespaces.as_deref(), profiles: given.is_none(), ..Reading::default() };
            let found = Manifests::read(&args.files, reading)?;
            (given.unwrap_or(found.profiles), found.tenants, Minor::DEFAULT, Objects::Files(found.objects))
        };
        if accepted.is_empty() {
            let help = "--profile names files with profiles";
            return Err(Failure::CouldNotRun(vec![Problem::new("there is no profile to judge by").help(help)]));
        }
        let version = ground.kube_version.unwrap_or(version);
        let denying = accepted.iter().map(in_deny).collect::<Result<Vec<_>, _>>().map_err(Failure::CouldNotRun)?;
        let judge = Judge::new(&denying, &tenants, version, now)?;
        let names = tenants.iter().map(|one| one.name.clone()).collect();
        let mut found = Found::new(&judge, &names);
        objects.each(&mut progress, |page| found.judge(page))?;
        let all = found.end();
        Ok(Self { accepted, tenants, version, judge, all })
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

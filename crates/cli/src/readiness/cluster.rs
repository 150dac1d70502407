//! What a report is about: profiles, namespaces, and what is in them; of a cluster, of a dump or of files.

use k8s_openapi::jiff::Timestamp;
use palisade_cel::Minor;
use palisade_objects::selector::matches;

use super::{
    args::{ReportArgs, Sort},
    found::{All, Objects as Found},
};
use crate::{
    cluster::could_not_run,
    ground::Ground,
    judge::Judge,
    namespaces::Tenant,
    profiles::{self, Accepted},
    progress::Progress,
    report::Failure,
};

/// What is judged, by what, and what was found.
pub(super) struct Judged {
    pub accepted: Vec<Accepted>,
    pub tenants: Vec<Tenant>,
    pub version: Minor,
    pub judge: Judge,
    pub all: All,
    /// What of the cluster may change pods in admission, other than Palisade.
    pub mutators: Vec<String>,
    /// Whether only some namespaces were asked for.
    pub is_narrowed: bool,
    /// The annotation of namespaces that names their owner.
    pub owner: Option<String>,
    /// How namespaces are sorted.
    pub sort: Sort,
}

impl Judged {
    /// Judges all objects.
    pub fn new(args: &ReportArgs, now: Timestamp) -> Result<Self, Failure> {
        let mut progress = Progress::new();
        let Ground { accepted, mut tenants, version, objects, mutators } =
            Ground::open(&args.ground, &args.files, &args.profiles, &mut progress)?;
        let names = tenants.iter().map(|one| one.name.clone()).collect();
        let is_narrowed = narrow(args, &mut tenants)?;
        let denying = accepted.iter().map(|one| profiles::in_deny(&one.profile)).collect::<Result<Vec<_>, _>>();
        let denying = denying.map_err(Failure::CouldNotRun)?;
        let judge = Judge::new(&denying, &tenants, version, now)?;
        let mut found = Found::new(&judge, &names);
        objects.each(&mut progress, |page| found.judge(page))?;
        let mut all = found.end();
        if is_narrowed {
            // Others than those that were asked for.
            all.unknown.clear();
        }
        let (owner, sort) = (args.owner_annotation.clone(), args.sort);
        Ok(Self { accepted, tenants, version, judge, all, mutators, is_narrowed, owner, sort })
    }
}

/// Keeps the namespaces that were asked for. Whether any were.
fn narrow(args: &ReportArgs, tenants: &mut Vec<Tenant>) -> Result<bool, Failure> {
    if let Some(name) = args.only.iter().find(|name| !tenants.iter().any(|one| one.name == **name)) {
        return Err(could_not_run(format!("--namespace: there is no namespace {name}")));
    }
    if !args.only.is_empty() {
        tenants.retain(|one| args.only.contains(&one.name));
    }
    if let Some(selector) = &args.selector {
        tenants.retain(|one| matches(selector, &one.labels));
        if tenants.is_empty() {
            return Err(could_not_run("--selector: no namespace has these labels"));
        }
    }
    Ok(!args.only.is_empty() || args.selector.is_some())
}

//! The subject of a report: profiles, namespaces, and their objects; of a cluster, of a dump or of files.

use k8s_openapi::jiff::Timestamp;
use palisade_cel::Minor;
use palisade_kube_json::selector::matches;

use super::{
    args::{ReportArgs, Sort},
    found::{All, Objects as Found},
};
use crate::{
    cluster::could_not_run,
    evaluation_inputs::EvaluationInputs,
    evaluator::ProfileEvaluator,
    namespaces::Tenant,
    profiles::{self, Accepted},
    progress::Progress,
    report::{Failure, Problem},
};

/// The profiles and objects, with the results.
pub(super) struct Judged {
    pub accepted: Vec<Accepted>,
    pub tenants: Vec<Tenant>,
    pub version: Minor,
    pub judge: ProfileEvaluator,
    pub all: All,
    /// Objects in the cluster that may change pods in admission, except those of Palisade.
    pub mutators: Vec<String>,
    /// Whether the report is limited to some namespaces.
    pub is_narrowed: bool,
    /// The annotation of namespaces with their owner.
    pub owner: Option<String>,
    /// The order of namespaces.
    pub sort: Sort,
    /// Objects in the manifests that cannot be evaluated.
    pub problems: Vec<Problem>,
}

impl Judged {
    /// Evaluates all objects.
    pub fn new(args: &ReportArgs, now: Timestamp) -> Result<Self, Failure> {
        let mut progress = Progress::new();
        let EvaluationInputs { accepted, mut tenants, version, objects, mutators, problems } =
            EvaluationInputs::open(&args.source, &args.files, &args.profiles, &args.params, &mut progress)?;
        let names = tenants.iter().map(|one| one.name.clone()).collect();
        let is_narrowed = narrow(args, &mut tenants)?;
        let denying = accepted.iter().map(|one| profiles::in_deny(&one.profile)).collect::<Result<Vec<_>, _>>();
        let denying = denying.map_err(Failure::CouldNotRun)?;
        let judge = ProfileEvaluator::new(&denying, &tenants, version, now)?;
        let mut found = Found::new(&judge, &names);
        objects.each(&mut progress, |page| found.judge(page))?;
        let mut all = found.end();
        if is_narrowed {
            // Namespaces outside of the report.
            all.unknown.clear();
        }
        let (owner, sort) = (args.owner_annotation.clone(), args.sort);
        Ok(Self { accepted, tenants, version, judge, all, mutators, is_narrowed, owner, sort, problems })
    }
}

/// Keeps the namespaces of the report. Whether there are any.
fn narrow(args: &ReportArgs, tenants: &mut Vec<Tenant>) -> Result<bool, Failure> {
    if let Some(name) = args.only.iter().find(|name| !tenants.iter().any(|one| one.name == **name)) {
        return Err(could_not_run(format!("--namespace: namespace {name} not found")));
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

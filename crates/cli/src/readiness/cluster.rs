//! What a report is about: profiles, namespaces, and what is in them; of a cluster, of a dump or of files.

use k8s_openapi::jiff::Timestamp;
use palisade_cel::Minor;

use super::{
    args::ReportArgs,
    found::{All, Objects as Found},
};
use crate::{
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
}

impl Judged {
    /// Judges all objects.
    pub fn new(args: &ReportArgs, now: Timestamp) -> Result<Self, Failure> {
        let mut progress = Progress::new();
        let Ground { accepted, tenants, version, objects } =
            Ground::open(&args.ground, &args.files, &args.profiles, &mut progress)?;
        let denying = accepted.iter().map(|one| profiles::in_deny(&one.profile)).collect::<Result<Vec<_>, _>>();
        let denying = denying.map_err(Failure::CouldNotRun)?;
        let judge = Judge::new(&denying, &tenants, version, now)?;
        let names = tenants.iter().map(|one| one.name.clone()).collect();
        let mut found = Found::new(&judge, &names);
        objects.each(&mut progress, |page| found.judge(page))?;
        let all = found.end();
        Ok(Self { accepted, tenants, version, judge, all })
    }
}

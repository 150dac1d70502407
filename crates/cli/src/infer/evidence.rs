//! The existing objects, and the answers of profiles to them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use palisade_api::ToolSecurityProfile;
use palisade_cel::Minor;

use crate::{
    evaluator::{ProfileEvaluator, REJECTED, Violation},
    namespaces::Tenant,
    parallel::{parallel, threads},
    profiles,
    proposal::{Case, Found, Place},
    report::Failure,
};

/// Workloads with their violations.
pub(super) type Denied = BTreeMap<Place, BTreeSet<Violation>>;

/// The workloads of tenants.
pub(super) struct Evidence<'a> {
    /// The workloads, with one object for all equal ones.
    pub workloads: BTreeMap<Place, Vec<Case>>,
    /// The namespaces.
    pub tenants: &'a [Tenant],
    /// The version of the API server.
    pub version: Minor,
    /// The time of the evaluation.
    pub now: Timestamp,
}

impl Evidence<'_> {
    /// The workloads that a profile denies. An object without a verdict counts as denied.
    pub fn denied(&self, profile: &ToolSecurityProfile) -> Result<Denied, Failure> {
        let judge = self.evaluator(profile)?;
        let cases: Vec<_> =
            self.workloads.iter().flat_map(|(place, cases)| cases.iter().map(move |case| (place, case))).collect();
        let verdicts = parallel(threads(), &cases, |(_, case)| violations(&judge, case));
        let mut denied = Denied::new();
        for ((place, _), violations) in cases.into_iter().zip(verdicts).filter(|(_, found)| !found.is_empty()) {
            denied.entry(place.clone()).or_default().extend(violations);
        }
        Ok(denied)
    }

    /// Whether a profile denies one of these workloads.
    pub fn denies_any(&self, profile: &ToolSecurityProfile, places: &[Place]) -> Result<bool, Failure> {
        let judge = self.evaluator(profile)?;
        let mut cases = places.iter().filter_map(|place| self.workloads.get(place)).flatten();
        Ok(cases.any(|case| !violations(&judge, case).is_empty()))
    }

    /// The evaluator of a profile at the stage Deny.
    pub fn evaluator(&self, profile: &ToolSecurityProfile) -> Result<ProfileEvaluator, Failure> {
        let accepted = profiles::in_deny(profile).map_err(Failure::CouldNotRun)?;
        ProfileEvaluator::new(&[accepted], self.tenants, self.version, self.now)
    }

    /// The denied workloads, for a search of changes.
    pub fn found(&self, judge: &ProfileEvaluator) -> Found {
        let mut found = Found::default();
        for (place, cases) in &self.workloads {
            let judged = parallel(threads(), cases, |case| violations(judge, case));
            let cases: Vec<_> = cases
                .iter()
                .zip(judged)
                .filter(|(_, violations)| !violations.is_empty())
                .map(|(case, violations)| case.with(violations))
                .collect();
            if !cases.is_empty() {
                found.violating.insert(place.clone(), cases);
            }
        }
        found
    }
}

fn violations(judge: &ProfileEvaluator, case: &Case) -> Vec<Violation> {
    judge.denials(case.kind, &case.object()).unwrap_or_else(|why| {
        vec![Violation { profile: String::new(), check: REJECTED.to_owned(), message: why, denied: true }]
    })
}

//! The strictest profile that admits existing workloads, and the price of each setting.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{ToolSecurityProfile, catalogue};
use palisade_kube_json::json::{Change as _, set};
use serde_json::{Value as Json, json};

use super::{
    evidence::{Denied, Evidence},
    parameters::{self, Inferred},
};
use crate::{
    evaluator::Violation,
    parallel::{parallel, threads},
    profiles,
    progress::Progress,
    proposal::{self, Change, Place, Trial},
    report::Failure,
};

/// The maximum number of searches: each tries a limited number of values of a list.
const SEARCHES: usize = 8;
/// No registry has this name (RFC 2606): a list must not be empty.
const NO_REGISTRY: &str = "registry.invalid";
/// The largest number of namespaces of an exception.
const EXCEPTION_NAMESPACES: usize = 256;
/// The largest number of exceptions of a profile.
const MAX_EXCEPTIONS: usize = 64;

/// A level, and the workloads that it would deny.
pub(super) struct Level {
    /// The settings.
    pub name: &'static str,
    /// The denied workloads.
    pub denied: Denied,
}

/// Settings that belong together, and the workloads that need them.
pub(super) struct Needed {
    /// The settings.
    pub changes: Vec<Change>,
    /// The workloads.
    pub workloads: Vec<Place>,
}

/// How strict a profile can be.
pub(super) struct Frontier {
    /// The levels of the Pod Security Standards, the last with secure defaults.
    pub levels: Vec<Level>,
    /// The parameters by data.
    pub parameters: Vec<Inferred>,
    /// The settings of the profile that are looser than the strictest ones, those with the most workloads first.
    pub needed: Vec<Needed>,
    /// Settings that are omitted for the budget of outliers.
    pub omitted: Vec<Needed>,
    /// The workloads with exceptions.
    pub excepted: Denied,
    /// The workloads that the profile denies in spite of exceptions.
    pub denied: Denied,
    /// The profile.
    pub profile: ToolSecurityProfile,
}

/// The settings of the strictest profile, below `spec`, without the selector of namespaces.
fn strictest() -> Json {
    json!({
        "enforcement": {"pods": "Audit"},
        "volumes": {"hostPaths": [], "csiDrivers": [], "flexVolumes": []},
        "images": {"allowedRegistries": [NO_REGISTRY]},
        "scheduling": {"runtimeClasses": [""], "priorityClasses": [""], "schedulers": ["default-scheduler"], "tolerations": []},
        "mutation": {"defaults": "Secure"},
    })
}

/// The profile with the strictest settings.
pub(super) fn base(name: &str, selector: &Json) -> Result<ToolSecurityProfile, Failure> {
    profile(name, selector, strictest())
}

fn profile(name: &str, selector: &Json, mut spec: Json) -> Result<ToolSecurityProfile, Failure> {
    set(&mut spec, &["namespaceSelector"], selector.clone());
    let spec = serde_json::from_value(spec).map_err(|error| crate::cluster::could_not_run(error.to_string()))?;
    Ok(ToolSecurityProfile::new(name, spec))
}

/// Finds the profile.
pub(super) fn find(
    evidence: &Evidence<'_>,
    (name, selector): (&str, &Json),
    outliers: usize,
    expires: Timestamp,
    progress: &mut Progress,
) -> Result<Frontier, Failure> {
    let mut levels = Vec::new();
    for (level, spec) in [
        ("Baseline", json!({"baseline": "Baseline"})),
        ("Restricted", json!({})),
        ("Restricted, mutation.defaults: Secure", json!({"mutation": {"defaults": "Secure"}})),
    ] {
        levels.push(Level { name: level, denied: evidence.denied(&profile(name, selector, spec)?)? });
    }
    let parameters = parameters::infer(&evidence.workloads, evidence.tenants);
    let base = with_parameters(&base(name, selector)?, &parameters)?;
    let mut needed = loosened(evidence, &base, progress)?;
    minimize(evidence, &base, &mut needed)?;
    let omitted = omit(evidence, &base, &mut needed, outliers)?;
    needed.sort_by_key(|one| std::cmp::Reverse(one.workloads.len()));
    let loosened = with(&base, &needed)?;
    let excepted = evidence.denied(&loosened)?;
    let profile = with_exceptions(&loosened, &excepted, expires)?;
    let denied = evidence.denied(&profile)?;
    let excepted = excepted.into_iter().filter(|(place, _)| !denied.contains_key(place)).collect();
    Ok(Frontier { levels, parameters, needed, omitted, excepted, denied, profile: without_placeholder(&profile)? })
}

fn edited(profile: &ToolSecurityProfile, edit: impl FnOnce(&mut Json)) -> Result<ToolSecurityProfile, Failure> {
    let failed = |error: serde_json::Error| crate::cluster::could_not_run(error.to_string());
    let mut spec = serde_json::to_value(&profile.spec).map_err(failed)?;
    edit(&mut spec);
    Ok(ToolSecurityProfile { spec: serde_json::from_value(spec).map_err(failed)?, ..profile.clone() })
}

fn with_parameters(base: &ToolSecurityProfile, parameters: &[Inferred]) -> Result<ToolSecurityProfile, Failure> {
    let declared: Vec<_> = parameters.iter().map(|one| one.declaration.clone()).collect();
    let base = edited(base, |spec| {
        if !declared.is_empty() {
            set(spec, &["parameters"], Json::Array(declared));
        }
        for one in parameters.iter().flat_map(|one| &one.settings).filter(|one| one.path.starts_with("users.")) {
            set(spec, &one.path.split('.').collect::<Vec<_>>(), one.value.clone());
        }
    })?;
    let paths: Vec<_> =
        parameters.iter().flat_map(|one| &one.settings).filter(|one| !one.path.starts_with("users.")).collect();
    let kind = paths.first().map(|_| Change::add("volumes.allowed", "hostPath", ""));
    let changes: Vec<_> =
        kind.into_iter().chain(paths.into_iter().map(|one| Change::add(one.path, one.value.clone(), ""))).collect();
    applied(&base, &changes)
}

fn applied<'a>(
    profile: &ToolSecurityProfile,
    changes: impl IntoIterator<Item = &'a Change>,
) -> Result<ToolSecurityProfile, Failure> {
    proposal::applied(profile, changes)
        .ok_or_else(|| crate::cluster::could_not_run("a proposed setting does not fit into a profile"))
}

fn with(base: &ToolSecurityProfile, needed: &[Needed]) -> Result<ToolSecurityProfile, Failure> {
    applied(base, needed.iter().flat_map(|one| &one.changes))
}

/// Searches the settings that existing workloads need.
fn loosened(
    evidence: &Evidence<'_>,
    base: &ToolSecurityProfile,
    progress: &mut Progress,
) -> Result<Vec<Needed>, Failure> {
    let mut needed: Vec<Needed> = Vec::new();
    for _ in 0..SEARCHES {
        let profile = with(base, &needed)?;
        let accepted = [profiles::in_deny(&profile).map_err(Failure::CouldNotRun)?];
        let judge = evidence.evaluator(&profile)?;
        let found = evidence.found(&judge);
        let trial = Trial::new(&accepted, evidence.tenants, evidence.version, evidence.now);
        let suggestions = proposal::search(&trial, &judge, &found, usize::MAX, progress);
        if suggestions.steps.is_empty() {
            break;
        }
        needed.extend(suggestions.steps.into_iter().map(|step| Needed {
            changes: step.changes.into_iter().map(|one| one.change).collect(),
            workloads: step.admits,
        }));
    }
    Ok(needed)
}

/// Drops settings without which all workloads that needed them are admitted, by later settings.
fn minimize(evidence: &Evidence<'_>, base: &ToolSecurityProfile, needed: &mut Vec<Needed>) -> Result<(), Failure> {
    let is_needed = |needed: &[Needed], index: usize| {
        evidence.denies_any(&applied(base, others(needed, index))?, &needed[index].workloads)
    };
    let indices: Vec<_> = (0..needed.len()).collect();
    let are_needed = parallel(threads(), &indices, |&index| is_needed(needed, index));
    for (index, first) in indices.into_iter().zip(are_needed).rev() {
        // Of two settings that make each other redundant, one stays.
        if !first? && !is_needed(needed, index)? {
            needed.remove(index);
        }
    }
    Ok(())
}

/// All settings but one.
fn others(needed: &[Needed], without: usize) -> impl Iterator<Item = &Change> {
    needed.iter().enumerate().filter(move |(index, _)| *index != without).flat_map(|(_, one)| &one.changes)
}

/// Omits the settings that the fewest workloads need, as long as at most this number of workloads are denied without them.
fn omit(
    evidence: &Evidence<'_>,
    base: &ToolSecurityProfile,
    needed: &mut Vec<Needed>,
    outliers: usize,
) -> Result<Vec<Needed>, Failure> {
    let mut omitted = Vec::new();
    if outliers == 0 {
        return Ok(omitted);
    }
    let already = evidence.denied(&with(base, needed)?)?;
    needed.sort_by_key(|one| std::cmp::Reverse(one.workloads.len()));
    for index in (0..needed.len()).rev() {
        if needed[index].workloads.len() > outliers {
            continue;
        }
        let denied = evidence.denied(&applied(base, others(needed, index))?)?;
        if denied.keys().filter(|place| !already.contains_key(*place)).count() <= outliers {
            omitted.push(needed.remove(index));
        }
    }
    Ok(omitted)
}

/// The profile with an exception for each violated check.
fn with_exceptions(
    profile: &ToolSecurityProfile,
    denied: &Denied,
    expires: Timestamp,
) -> Result<ToolSecurityProfile, Failure> {
    let mut namespaces = BTreeMap::<&str, BTreeSet<&str>>::new();
    for ((namespace, _), violations) in denied {
        for check in checks(violations).into_iter().filter(|check| catalogue::ALL.iter().any(|one| one.id == *check)) {
            namespaces.entry(check).or_default().insert(namespace);
        }
    }
    let reason = "existing workloads that no setting of the profile admits";
    let mut exceptions = Vec::new();
    for (check, namespaces) in namespaces {
        let namespaces: Vec<_> = namespaces.into_iter().collect();
        exceptions.extend(namespaces.chunks(EXCEPTION_NAMESPACES).map(
            |some| json!({"namespaces": some, "checks": [check], "reason": reason, "expires": expires.to_string()}),
        ));
    }
    exceptions.truncate(MAX_EXCEPTIONS);
    edited(profile, |spec| {
        if !exceptions.is_empty() {
            set(spec, &["exceptions"], Json::Array(exceptions));
        }
    })
}

/// The profile without the registry that does not exist, if it lists another one.
fn without_placeholder(profile: &ToolSecurityProfile) -> Result<ToolSecurityProfile, Failure> {
    edited(profile, |spec| {
        if let Some(list) = spec.at_mut(&["images", "allowedRegistries"]).as_array_mut().filter(|list| list.len() > 1) {
            list.retain(|one| one != NO_REGISTRY);
        }
    })
}

/// The checks of violations.
pub(super) fn checks(violations: &BTreeSet<Violation>) -> BTreeSet<&str> {
    violations.iter().map(|one| one.check.as_str()).collect()
}

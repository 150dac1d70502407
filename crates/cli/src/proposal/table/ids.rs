//! Ids of users and groups, and ports of the node.

use palisade_api::settings::Range;
use palisade_checks::{Integer, Resolve};
use serde_json::{Value as Json, json};

use super::{Change, Found, Subject, items};

/// Changes that add the numbers outside of ranges.
pub(super) fn outside(
    path: &'static str,
    ranges: &[Range],
    subject: &Subject<'_>,
    found: impl Iterator<Item = i64>,
    allows: impl Fn(i64) -> String,
) -> Found {
    let inside = |id: i64| {
        ranges.iter().any(|one| one.min.resolve(subject.values) <= id && id <= one.max.resolve(subject.values))
    };
    let mut missing: Vec<_> = found.filter(|&id| !inside(id)).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.contains(&0) {
        return Err("0 is root".to_owned());
    }
    let is_constant = |one: &Integer| matches!(one, Integer::Constant(_));
    if !missing.is_empty() && !ranges.iter().all(|one| is_constant(&one.min) && is_constant(&one.max)) {
        return Err("each namespace has a separate range of numbers, and another number may belong to another tenant"
            .to_owned());
    }
    let change = |id: i64| Change::add(path, json!({"min": id, "max": id}), allows(id));
    Ok(missing.into_iter().filter(|id| *id > 0).map(change).collect())
}

fn ids<'a>(contexts: impl Iterator<Item = &'a Json>, field: &'a str) -> impl Iterator<Item = i64> {
    contexts.filter_map(move |context| context[field].as_i64())
}

/// `users.runAsUser`
pub(super) fn user(subject: &Subject<'_>) -> Found {
    let Some(rules) = &subject.settings.users.run_as_user else { return Ok(vec![]) };
    let found = ids(subject.contexts(), "runAsUser");
    if rules.ranges.is_empty() {
        return Err("0 is root".to_owned());
    }
    outside("users.runAsUser.ranges", &rules.ranges, subject, found, |id| {
        format!("Any pod may run as user {id}, and access the files of that user on shared file systems.")
    })
}

/// `users.runAsGroup`
pub(super) fn group(subject: &Subject<'_>) -> Found {
    let Some(rules) = &subject.settings.users.run_as_group else { return Ok(vec![]) };
    let found = ids(subject.contexts(), "runAsGroup");
    outside("users.runAsGroup.ranges", &rules.ranges, subject, found, of_group)
}

/// `users.fsGroup`
pub(super) fn fs_group(subject: &Subject<'_>) -> Found {
    let Some(rules) = &subject.settings.users.fs_group else { return Ok(vec![]) };
    let found = ids(subject.contexts().take(1), "fsGroup");
    outside("users.fsGroup.ranges", &rules.ranges, subject, found, of_group)
}

/// `users.supplementalGroups`
pub(super) fn supplemental(subject: &Subject<'_>) -> Found {
    let Some(rules) = &subject.settings.users.supplemental_groups else { return Ok(vec![]) };
    let found = items(&subject.spec()["securityContext"]["supplementalGroups"]).filter_map(Json::as_i64);
    outside("users.supplementalGroups.ranges", &rules.ranges, subject, found, of_group)
}

fn of_group(id: i64) -> String {
    format!("Any pod may have group {id}, and access the files of that group on shared file systems.")
}

/// `host.ports`
pub(super) fn ports(subject: &Subject<'_>) -> Found {
    let Some(ranges) = &subject.settings.host.ports else { return Ok(vec![]) };
    let ports = subject.containers().flat_map(|one| items(&one["ports"])).filter_map(|port| port["hostPort"].as_i64());
    outside("host.ports", ranges, subject, ports.filter(|port| *port != 0), |port| {
        format!("Any pod may listen on port {port} of its node.")
    })
}

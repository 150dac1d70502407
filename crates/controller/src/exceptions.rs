//! The lane of exception requests: writes their conditions, and triggers an update of the parameters of a namespace
//! when an exception expires. It processes one namespace at a time, and never writes an approval.
//!
//! The effect of an exception is decided where parameters are computed (`Compiled::params`); this lane only reports it.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use palisade_api::{
    ApprovalState, MAX_CONTAINERS, MAX_WORKLOADS, ToolSecurityException,
    conditions::{ExceptionCondition, ExceptionReason},
    names,
};
use palisade_compiler::{Exceptions, selects};
use serde_json::json;

use crate::{
    api_request::{ApiError, call},
    context::Context,
    generations::accepted::AcceptedProfile,
    object_name::{NamespaceName, ProfileName},
    queue::{MinDelay, Requeue},
    status::ConditionStatus,
    watch::{
        exception_store::{ObservedException, Reported},
        watch_cache::version,
    },
};

/// How long after a failed write it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The longest message, in characters.
const MAX_MESSAGE_CHARS: usize = 1000;

pub fn work(cx: Arc<Context>, namespace: NamespaceName) -> BoxFuture<'static, Requeue> {
    async move { report_all(&cx, &namespace).await }.boxed()
}

async fn report_all(cx: &Context, namespace: &str) -> Requeue {
    let now = Timestamp::now();
    let mut later = MinDelay::default();
    for exception in cx.store.exceptions.in_namespace(namespace) {
        if cx.stop.is_cancelled() {
            return Requeue::Change;
        }
        let Some((reason, message)) = standing(cx, namespace, &exception, now) else { continue };
        if let Ok(rest) = Duration::try_from(exception.request.expires.duration_since(now)) {
            // A second later, so that it has certainly expired.
            later.at((!rest.is_zero()).then(|| rest + Duration::from_secs(1)));
        }
        let need = match cx.store.exceptions.is_needed(&exception) {
            _ if !cx.scans => Need::ScanOff,
            None => Need::Unknown,
            Some(is) => Need::Known(is),
        };
        let reported = Reported {
            conditions: conditions(&exception, reason, message, need, now),
            generation: Some(exception.generation),
        };
        if reported == exception.reported {
            continue;
        }
        let profile = &exception.request.profile;
        if reason == ExceptionReason::Expired {
            cx.store.touch(profile, namespace);
            cx.queues.params.trigger([ProfileName::new(profile)]);
        }
        match write(cx, namespace, &exception, &reported).await {
            Ok(()) => {
                if reason == ExceptionReason::Expired && exception.reported.reason() != Some(reason) {
                    announce_end(cx, namespace, &exception);
                }
                // The status of the profile counts it.
                cx.queue.trigger([ProfileName::new(profile)]);
            }
            // It was deleted or recreated, and the watch shows that.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => {
                tracing::warn!(namespace, exception = exception.name, %error, "could not write the status of an exception");
                later.at(Some(RETRY_INTERVAL));
            }
        }
    }
    later.next()
}

/// The reason of the condition `Ready` of an exception; `None` if it is not known yet.
fn standing(
    cx: &Context,
    namespace: &str,
    exception: &ObservedException,
    now: Timestamp,
) -> Option<(ExceptionReason, String)> {
    let (profile, request) = (&exception.request.profile, &exception.request);
    if cx.store.profile(profile).is_none() {
        return Some((ExceptionReason::ProfileNotFound, format!("ToolSecurityProfile {profile} does not exist")));
    }
    let target: Arc<AcceptedProfile> = cx.states.get(profile)?.params().target.clone()?;
    let (found, observed) = cx.store.tenant(profile, namespace);
    let found = found?.namespace.get();
    if !selects(&target.profile.spec, &found) {
        let message = format!("profile {profile} does not select this namespace");
        return Some((ExceptionReason::NamespaceNotSelected, message));
    }
    let (reason, message) = target.compiled.exceptions.standing(request, now);
    if reason != ExceptionReason::InForce {
        return Some((reason, message));
    }
    let all = cx.store.exceptions.of(profile, namespace);
    let desired = target.compiled.params(&found, all.iter().map(|one| &one.request), now)?.spec;
    if !desired.problem.is_empty() {
        let message = format!("every pod in this namespace violates profile {profile}: {}", desired.problem);
        return Some((ExceptionReason::Pending, message));
    }
    if !Exceptions::has_room(request, &desired) {
        let message = format!(
            "too many exceptions in the namespace: at most {MAX_WORKLOADS} workloads and {MAX_CONTAINERS} single \
             containers can have exceptions"
        );
        return Some((ExceptionReason::TooMany, message));
    }
    let written = observed.as_ref().and_then(|observed| observed.spec.as_ref());
    if !written.is_some_and(|spec| Exceptions::has(request, &spec.get())) {
        let message = "approved, but not yet written into the parameters of the namespace";
        return Some((ExceptionReason::Pending, message.to_owned()));
    }
    Some((reason, message))
}

/// Result of the background scan for an exception.
#[derive(Clone, Copy, Debug)]
enum Need {
    ScanOff,
    /// The scan has no result yet. The reported condition is kept until then.
    Unknown,
    /// True if an existing object needs the exception.
    Known(bool),
}

/// The conditions of an exception. Times of transitions that were reported before stay.
fn conditions(
    exception: &ObservedException,
    reason: ExceptionReason,
    message: String,
    need: Need,
    now: Timestamp,
) -> Vec<Condition> {
    let condition = |type_: ExceptionCondition, holds: bool, reason: ExceptionReason, message: String| {
        let status = if holds { ConditionStatus::True } else { ConditionStatus::False }.text();
        let before = exception.reported.condition(type_).filter(|before| before.status == status);
        Condition {
            type_: type_.to_string(),
            status: status.to_owned(),
            reason: reason.to_string(),
            message: message.chars().take(MAX_MESSAGE_CHARS).collect(),
            observed_generation: Some(exception.generation),
            last_transition_time: before.map_or(Time(now), |before| before.last_transition_time.clone()),
        }
    };
    let approved = match exception.request.approval {
        ApprovalState::Current => ExceptionReason::Approved,
        ApprovalState::Missing => ExceptionReason::AwaitingApproval,
        ApprovalState::Outdated => ExceptionReason::ApprovalOutdated,
    };
    let in_force = reason == ExceptionReason::InForce;
    let mut all = vec![
        condition(ExceptionCondition::Approved, approved == ExceptionReason::Approved, approved, String::new()),
        condition(ExceptionCondition::Ready, in_force, reason, message),
        condition(ExceptionCondition::Stalled, reason.is_final(), reason, String::new()),
    ];
    let known = exception.reported.condition(ExceptionCondition::InUse);
    all.extend(match need {
        _ if !in_force => None,
        Need::ScanOff => None,
        Need::Unknown => known.filter(|one| one.observed_generation == Some(exception.generation)).cloned(),
        Need::Known(true) => {
            Some(condition(ExceptionCondition::InUse, true, ExceptionReason::ExemptsObjects, String::new()))
        }
        Need::Known(false) => {
            let message = "no existing object would violate the profile without it; delete it if that does not change";
            Some(condition(ExceptionCondition::InUse, false, ExceptionReason::ExemptsNothing, message.to_owned()))
        }
    });
    all
}

/// Announces once that an exception has expired, because its objects may be denied from now on.
fn announce_end(cx: &Context, namespace: &str, exception: &ObservedException) {
    let meta = ObjectMeta {
        name: Some(exception.name.clone()),
        namespace: Some(namespace.to_owned()),
        uid: Some(exception.uid.clone()),
        ..ObjectMeta::default()
    };
    let (checks, profile) = (exception.request.checks.join(", "), &exception.request.profile);
    let note = format!("the exception has expired: new objects are evaluated by {checks} of profile {profile}");
    cx.events.exception_ended(&meta, &note);
}

/// Writes the conditions only.
async fn write(
    cx: &Context,
    namespace: &str,
    exception: &ObservedException,
    reported: &Reported,
) -> Result<(), ApiError> {
    let api: Api<ToolSecurityException> = Api::namespaced(cx.client.clone(), namespace);
    let parameters = PatchParams { field_manager: Some(names::field_manager::EXCEPTION.into()), ..Default::default() };
    let Reported { conditions, generation } = reported;
    let patch = Patch::Merge(json!({
        // Another object of the same name is not meant.
        "metadata": {"uid": exception.uid},
        "status": {"conditions": conditions, "observedGeneration": generation},
    }));
    let written = call(api.patch_status(&exception.name, &parameters, &patch)).await?;
    cx.metrics.writes.wrote("ToolSecurityException", "patch");
    cx.store.exceptions.wrote(namespace, exception, version(&written.metadata), reported.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use palisade_api::{ExceptionScope, ScopeKind};
    use palisade_compiler::Request;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn exception(approval: ApprovalState) -> ObservedException {
        let scope = ExceptionScope {
            kind: ScopeKind::Namespace,
            resource: None,
            name: None,
            container: None,
            image_prefix: None,
        };
        let checks = vec!["privileged".to_owned()];
        ObservedException {
            name: "driver".to_owned(),
            uid: "u".to_owned(),
            generation: 2,
            request: Request { profile: "tools".to_owned(), checks, scope, expires: at(9), approval },
            reported: Reported::default(),
        }
    }

    fn texts(all: &[Condition]) -> Vec<String> {
        all.iter().map(|one| format!("{} {} {}", one.type_, one.status, one.reason)).collect()
    }

    #[test]
    fn transition_times_and_scan_results_are_kept_until_they_change() {
        let mut of = exception(ApprovalState::Current);
        let next =
            |of: &ObservedException, reason, need, second| conditions(of, reason, "why".to_owned(), need, at(second));
        let mut report = |reason, need, second| {
            let all = next(&of, reason, need, second);
            of.reported = Reported { conditions: all.clone(), generation: Some(2) };
            all
        };
        let first = report(ExceptionReason::Pending, Need::Unknown, 1);
        assert_eq!(texts(&first), ["Approved True Approved", "Ready False Pending", "Stalled False Pending"]);
        let all = report(ExceptionReason::InForce, Need::Known(false), 2);
        assert_eq!(
            texts(&all),
            ["Approved True Approved", "Ready True InForce", "Stalled False InForce", "InUse False ExemptsNothing"]
        );
        let times: Vec<_> = all.iter().map(|one| one.last_transition_time.0.as_second()).collect();
        assert_eq!(times, [1, 2, 1, 2]);
        assert_eq!(report(ExceptionReason::InForce, Need::Unknown, 3), all);
        assert_eq!(report(ExceptionReason::InForce, Need::Known(false), 4), all);
        let used = report(ExceptionReason::InForce, Need::Known(true), 5);
        assert_eq!((texts(&used)[3].as_str(), used[3].last_transition_time.0), ("InUse True ExemptsObjects", at(5)));
        assert_eq!(report(ExceptionReason::InForce, Need::ScanOff, 6).len(), 3);
        // An exception that is not in effect is neither in use nor unused.
        report(ExceptionReason::InForce, Need::Known(true), 7);
        let over = report(ExceptionReason::Expired, Need::Known(true), 8);
        assert_eq!(texts(&over), ["Approved True Approved", "Ready False Expired", "Stalled True Expired"]);
        // Conditions of another generation do not count for this one.
        report(ExceptionReason::InForce, Need::Known(true), 9);
        of.generation = 3;
        assert_eq!(next(&of, ExceptionReason::InForce, Need::Unknown, 10).len(), 3);
    }

    /// The statuses that tests/kstatus evaluates with the libraries of Argo CD and Flux. `UPDATE_GOLDEN=1` writes them
    /// again.
    #[test]
    fn the_statuses_of_exceptions_for_other_tools_are_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kstatus/exceptions.json");
        let reported = |(approval, reason, kstatus): (ApprovalState, ExceptionReason, &str)| {
            let all = conditions(&exception(approval), reason, "why".to_owned(), Need::ScanOff, at(1));
            json!({"kstatus": kstatus, "status": {"observedGeneration": 2, "conditions": all}})
        };
        let all: Vec<_> = [
            (ApprovalState::Current, ExceptionReason::InForce, "Current"),
            (ApprovalState::Current, ExceptionReason::Pending, "InProgress"),
            (ApprovalState::Missing, ExceptionReason::AwaitingApproval, "InProgress"),
            (ApprovalState::Outdated, ExceptionReason::ApprovalOutdated, "InProgress"),
            (ApprovalState::Current, ExceptionReason::Expired, "Failed"),
            (ApprovalState::Missing, ExceptionReason::NotCovered, "Failed"),
            (ApprovalState::Missing, ExceptionReason::NamespaceNotSelected, "Failed"),
            (ApprovalState::Missing, ExceptionReason::ProfileNotFound, "Failed"),
            (ApprovalState::Current, ExceptionReason::TooMany, "Failed"),
        ]
        .map(reported)
        .into();
        let text = serde_json::to_string_pretty(&all).expect("JSON") + "\n";
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &text).expect("a file that can be written");
        }
        assert!(std::fs::read_to_string(path).expect("a file") == text, "UPDATE_GOLDEN=1 writes {path} anew");
    }
}

//! Exceptions as text. Tenants write most of it: none of their text can look like a line of this program.

use k8s_openapi::jiff::Timestamp;
use palisade_api::{
    ApprovalState, ExceptionScope, ScopeKind, ToolSecurityException,
    conditions::{ExceptionCondition, ExceptionReason},
};

use crate::{output, report::one_line};

/// The reason and message of the controller for an exception; `None` if it has not processed the current spec and
/// approval.
fn state(exception: &ToolSecurityException) -> Option<(ExceptionReason, &str)> {
    let ready = exception.condition(ExceptionCondition::Ready)?;
    let reason = ready.reason.parse().ok()?;
    let outdated = match reason {
        ExceptionReason::AwaitingApproval | ExceptionReason::ApprovalOutdated => exception.is_approved(),
        ExceptionReason::InForce | ExceptionReason::Pending => !exception.is_approved(),
        _ => false,
    };
    (!outdated).then_some((reason, ready.message.as_str()))
}

/// The time since which no existing object needs it, if the background scan reports that.
fn unused_since(exception: &ToolSecurityException) -> Option<Timestamp> {
    let in_use = exception.condition(ExceptionCondition::InUse).filter(|one| one.status == "False")?;
    exception.is_approved().then_some(in_use.last_transition_time.0)
}

/// Whether it has no approval yet, and could have an effect.
pub fn is_pending(exception: &ToolSecurityException) -> bool {
    !exception.is_approved() && !state(exception).is_some_and(|(reason, _)| reason.is_final())
}

/// Its scope.
fn scope(scope: &ExceptionScope) -> String {
    let mut text = match (scope.kind, &scope.name) {
        (ScopeKind::Namespace, _) => "the whole namespace".to_owned(),
        (ScopeKind::Object, name) => {
            let [resource, name] = [&scope.resource, name].map(|text| text.as_deref().unwrap_or_default());
            format!("{resource} {name}")
        }
        (kind, name) => format!("{kind} {}", name.as_deref().unwrap_or_default()),
    };
    if let Some(container) = &scope.container {
        text = format!("{text}, container {container}");
    }
    if let Some(prefix) = &scope.image_prefix {
        text = format!("{text}, images {prefix}...");
    }
    one_line(&text)
}

/// Everything that an approver must know about one.
pub fn details(exception: &ToolSecurityException, now: Timestamp) -> String {
    let (meta, spec) = (&exception.metadata, &exception.spec);
    let named = |text: &Option<String>| one_line(text.as_deref().unwrap_or_default());
    let generation = meta.generation.unwrap_or_default();
    let over = if spec.expires.0 <= now { ", expired" } else { "" };
    let approval = exception.status.as_ref().and_then(|status| status.approval.as_ref());
    let by = approval.and_then(|one| one.by.as_ref()).map(|by| format!(" by {}", one_line(by))).unwrap_or_default();
    let approved = match (exception.approval_state(), approval) {
        (ApprovalState::Current, _) => format!("yes{by}"),
        (ApprovalState::Outdated, Some(before)) if Some(&before.uid) != meta.uid.as_ref() => {
            format!("no: another object with this name was approved{by}")
        }
        (ApprovalState::Outdated, Some(before)) if meta.deletion_timestamp.is_none() => {
            format!("no: generation {} was approved{by}, but the spec has changed", before.generation)
        }
        (ApprovalState::Outdated, _) => "no: the exception is being deleted".to_owned(),
        (ApprovalState::Missing, _) => "no".to_owned(),
    };
    let stands = match state(exception) {
        Some((reason, message)) => format!("{reason}: {}", one_line(message)),
        None => "the controller has not processed it yet".to_owned(),
    };
    let unused =
        unused_since(exception).map(|since| ("in use", format!("no: unused by existing objects since {since}")));
    [
        ("exception", format!("{}/{}", named(&meta.namespace), named(&meta.name))),
        ("profile", one_line(&spec.profile)),
        ("checks", one_line(&spec.checks.join(", "))),
        ("for", scope(&spec.scope)),
        ("until", format!("{}{over}", spec.expires.0)),
        ("reason", one_line(&spec.reason)),
        ("version", format!("generation {generation}, uid {}", named(&meta.uid))),
        ("approved", approved),
        ("state", stands),
    ]
    .into_iter()
    .chain(unused)
    .map(|(what, text)| format!("{:12}{text}\n", format!("{what}:")))
    .collect::<Vec<_>>()
    .concat()
}

/// One line for each.
pub fn table(exceptions: &[ToolSecurityException], with_namespace: bool) -> String {
    let head = ["NAMESPACE", "NAME", "PROFILE", "CHECKS", "FOR", "UNTIL", "APPROVED", "STATE"].map(str::to_owned);
    let row = |exception: &ToolSecurityException| {
        let (meta, spec) = (&exception.metadata, &exception.spec);
        let approval = exception.status.as_ref().and_then(|status| status.approval.as_ref());
        let approved = match exception.approval_state() {
            ApprovalState::Missing => "no".to_owned(),
            ApprovalState::Outdated => "outdated".to_owned(),
            ApprovalState::Current => {
                approval.and_then(|one| one.by.as_deref()).map_or_else(|| "yes".to_owned(), |by| format!("by {by}"))
            }
        };
        [
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
            spec.profile.clone(),
            spec.checks.join(","),
            scope(&spec.scope),
            spec.expires.0.to_string(),
            approved,
            match state(exception) {
                Some((reason, _)) if unused_since(exception).is_some() => format!("{reason}, unused"),
                Some((reason, _)) => reason.to_string(),
                None => "-".to_owned(),
            },
        ]
        .map(|cell| one_line(&cell))
    };
    let rows = std::iter::once(head).chain(exceptions.iter().map(row));
    let shown = |row: [String; 8]| row.into_iter().skip(usize::from(!with_namespace)).collect();
    output::table(&rows.map(shown).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use palisade_kube_json::json;
    use serde_json::{Value as Json, json};

    use super::*;

    fn condition(type_: &str, status: &str, reason: &str, generation: i64) -> Json {
        json!({
            "type": type_, "status": status, "reason": reason, "message": "why", "observedGeneration": generation,
            "lastTransitionTime": "2026-02-03T04:05:06Z",
        })
    }

    fn ready(reason: &str, generation: i64) -> Json {
        condition("Ready", if reason == "InForce" { "True" } else { "False" }, reason, generation)
    }

    fn conditions(all: &[Json]) -> (&'static [&'static str], Json) {
        (&["status", "conditions"], json!(all))
    }

    fn exception(change: &[(&[&str], Json)]) -> ToolSecurityException {
        let mut object = json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
            "metadata": {"name": "gpu", "namespace": "tool-a", "uid": "u", "generation": 2},
            "spec": {
                "profile": "tools", "checks": ["privileged", "hostPorts"],
                "scope": {"kind": "Deployment", "name": "encoder", "container": "driver"},
                "reason": "ticket 7", "expires": "2027-01-31T00:00:00Z",
            },
            "status": {"conditions": [ready("AwaitingApproval", 2)], "observedGeneration": 2},
        });
        for (path, value) in change {
            json::set(&mut object, path, value.clone());
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn details_say_what_would_be_approved_and_that_nobody_has() {
        let expected = "\
exception:  tool-a/gpu
profile:    tools
checks:     privileged, hostPorts
for:        Deployment encoder, container driver
until:      2027-01-31T00:00:00Z
reason:     ticket 7
version:    generation 2, uid u
approved:   no
state:      AwaitingApproval: why
";
        assert_eq!(details(&exception(&[]), Timestamp::UNIX_EPOCH), expected);
        let over = details(&exception(&[]), Timestamp::MAX);
        assert!(over.contains("until:      2027-01-31T00:00:00Z, expired\n"), "{over}");
    }

    #[test]
    fn an_approval_of_an_earlier_version_is_shown_as_none() {
        for (approval, expected) in [
            (json!({"uid": "u", "generation": 2, "by": "eve"}), "approved:   yes by eve\n"),
            (
                json!({"uid": "u", "generation": 1, "by": "eve"}),
                "approved:   no: generation 1 was approved by eve, but the spec has changed\n",
            ),
            (json!({"uid": "v", "generation": 2}), "approved:   no: another object with this name was approved\n"),
        ] {
            let shown = details(&exception(&[(&["status", "approval"], approval.clone())]), Timestamp::UNIX_EPOCH);
            assert!(shown.contains(expected), "{approval}: {shown}");
        }
    }

    #[test]
    fn state_of_an_earlier_version_is_not_shown() {
        let approved = json!({"uid": "u", "generation": 2});
        let changed = exception(&[conditions(&[ready("AwaitingApproval", 1)])]);
        let fresh = exception(&[(&["status", "approval"], approved)]);
        let taken = exception(&[conditions(&[ready("InForce", 2)])]);
        for one in [changed, fresh, taken] {
            let shown = details(&one, Timestamp::UNIX_EPOCH);
            assert!(shown.contains("state:      the controller has not processed it yet\n"), "{shown}");
        }
    }

    #[test]
    fn no_text_of_a_tenant_looks_like_a_line_of_the_command() {
        let reason = "x\napproved:   yes\u{1b}[2K\u{202e}";
        let shown = details(&exception(&[(&["spec", "reason"], json!(reason))]), Timestamp::UNIX_EPOCH);
        assert_eq!(shown.lines().count(), 9, "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }

    #[test]
    fn list_has_a_line_for_each() {
        let all = exception(&[
            (&["spec", "scope"], json!({"kind": "Namespace"})),
            (&["status", "approval"], json!({"uid": "u", "generation": 2, "by": "eve"})),
            conditions(&[ready("InForce", 2)]),
        ]);
        let changed = exception(&[(&["status", "approval"], json!({"uid": "u", "generation": 1}))]);
        let expected = "\
NAME   PROFILE   CHECKS                 FOR                                    UNTIL                  APPROVED   STATE
gpu    tools     privileged,hostPorts   the whole namespace                    2027-01-31T00:00:00Z   by eve     InForce
gpu    tools     privileged,hostPorts   Deployment encoder, container driver   2027-01-31T00:00:00Z   outdated   AwaitingApproval
";
        assert_eq!(table(&[all.clone(), changed.clone()], false), expected);
        assert!(table(&[], true).starts_with("NAMESPACE   NAME   "));
        assert!(is_pending(&changed) && !is_pending(&all));
        assert!(!is_pending(&exception(&[conditions(&[ready("NotCovered", 2)])])));
    }

    #[test]
    fn what_nothing_needs_is_shown_as_unused() {
        let all = [ready("InForce", 2), condition("InUse", "False", "ExemptsNothing", 2)];
        let unused = exception(&[(&["status", "approval"], json!({"uid": "u", "generation": 2})), conditions(&all)]);
        let shown = details(&unused, Timestamp::UNIX_EPOCH);
        assert!(shown.ends_with("in use:     no: unused by existing objects since 2026-02-03T04:05:06Z\n"), "{shown}");
        assert!(table(&[unused], false).ends_with("InForce, unused\n"));
    }
}

//! Exceptions as people read them. Tenants write most of it: no text of theirs can look like a line of this program.

use k8s_openapi::jiff::Timestamp;
use palisade_api::{ExceptionScope, ExceptionState, ScopeKind, ToolSecurityException};

use crate::{output, report::one_line};

/// Whether an exception is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has approved it.
    None,
    /// As it is now.
    Now,
    /// As it was, and it has changed since: that is no approval.
    Before,
}

impl Standing {
    pub fn of(exception: &ToolSecurityException) -> Self {
        match exception.status.as_ref().and_then(|status| status.approval.as_ref()) {
            None => Self::None,
            Some(_) if exception.is_approved() => Self::Now,
            Some(_) => Self::Before,
        }
    }
}

/// What the controller says of an exception; `None` if it has yet to look at what the spec and the approval say now.
fn state(exception: &ToolSecurityException) -> Option<ExceptionState> {
    let status = exception.status.as_ref()?;
    let state = status.state.filter(|_| status.observed_generation == exception.metadata.generation)?;
    let outdated = match state {
        ExceptionState::Pending => exception.is_approved(),
        ExceptionState::Approved => !exception.is_approved(),
        ExceptionState::Expired | ExceptionState::Invalid => false,
    };
    (!outdated).then_some(state)
}

/// Whether it waits for an approval that could have an effect.
pub fn is_pending(exception: &ToolSecurityException) -> bool {
    Standing::of(exception) != Standing::Now
        && !matches!(state(exception), Some(ExceptionState::Expired | ExceptionState::Invalid))
}

/// For what it is.
fn scope(scope: &ExceptionScope) -> String {
    let mut text = match (scope.kind, &scope.name) {
        (ScopeKind::Namespace, _) => "the whole namespace".to_owned(),
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

/// All that an approver must know of one.
pub fn details(exception: &ToolSecurityException, now: Timestamp) -> String {
    let (meta, spec) = (&exception.metadata, &exception.spec);
    let named = |text: &Option<String>| one_line(text.as_deref().unwrap_or_default());
    let generation = meta.generation.unwrap_or_default();
    let over = if spec.expires.0 <= now { ", which is over" } else { "" };
    let approval = exception.status.as_ref().and_then(|status| status.approval.as_ref());
    let by = approval.and_then(|one| one.by.as_ref()).map(|by| format!(" by {}", one_line(by))).unwrap_or_default();
    let approved = match (Standing::of(exception), approval) {
        (Standing::Now, _) => format!("yes{by}"),
        (Standing::Before, Some(before)) if Some(&before.uid) != meta.uid.as_ref() => {
            format!("no: another object of this name was approved{by}")
        }
        (Standing::Before, Some(before)) if meta.deletion_timestamp.is_none() => {
            format!("no: generation {} was approved{by}, and the spec has changed since", before.generation)
        }
        (Standing::Before, _) => "no: it is being deleted".to_owned(),
        (Standing::None, _) => "no".to_owned(),
    };
    let message = exception.status.as_ref().and_then(|status| status.message.as_deref()).map(one_line);
    let stands = match (state(exception), message) {
        (Some(state), Some(message)) => format!("{state}: {message}"),
        (Some(state), None) => state.to_string(),
        (None, _) => "the controller has not looked at it yet".to_owned(),
    };
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
    .map(|(what, text)| format!("{:12}{text}\n", format!("{what}:")))
    .collect::<Vec<_>>()
    .concat()
}

/// A line for each.
pub fn table(exceptions: &[ToolSecurityException], with_namespace: bool) -> String {
    let head = ["NAMESPACE", "NAME", "PROFILE", "CHECKS", "FOR", "UNTIL", "APPROVED", "STATE"].map(str::to_owned);
    let row = |exception: &ToolSecurityException| {
        let (meta, spec) = (&exception.metadata, &exception.spec);
        let approval = exception.status.as_ref().and_then(|status| status.approval.as_ref());
        let approved = match Standing::of(exception) {
            Standing::None => "no".to_owned(),
            Standing::Before => "changed since".to_owned(),
            Standing::Now => {
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
            state(exception).map_or_else(|| "-".to_owned(), |state| state.to_string()),
        ]
        .map(|cell| one_line(&cell))
    };
    let rows = std::iter::once(head).chain(exceptions.iter().map(row));
    let shown = |row: [String; 8]| row.into_iter().skip(usize::from(!with_namespace)).collect();
    output::table(&rows.map(shown).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use palisade_objects::json;
    use serde_json::{Value as Json, json};

    use super::*;

    fn exception(change: &[(&[&str], Json)]) -> ToolSecurityException {
        let mut object = json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
            "metadata": {"name": "gpu", "namespace": "tool-a", "uid": "u", "generation": 2},
            "spec": {
                "profile": "tools", "checks": ["privileged", "hostPorts"],
                "scope": {"kind": "Deployment", "name": "encoder", "container": "driver"},
                "reason": "ticket 7", "expires": "2027-01-31T00:00:00Z",
            },
            "status": {"state": "Pending", "message": "nobody has approved it", "observedGeneration": 2},
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
state:      Pending: nobody has approved it
";
        assert_eq!(details(&exception(&[]), Timestamp::UNIX_EPOCH), expected);
        let over = details(&exception(&[]), Timestamp::MAX);
        assert!(over.contains("until:      2027-01-31T00:00:00Z, which is over\n"), "{over}");
    }

    #[test]
    fn an_approval_of_an_earlier_version_is_shown_as_none() {
        for (approval, expected) in [
            (json!({"uid": "u", "generation": 2, "by": "eve"}), "approved:   yes by eve\n"),
            (
                json!({"uid": "u", "generation": 1, "by": "eve"}),
                "approved:   no: generation 1 was approved by eve, and the spec has changed since\n",
            ),
            (json!({"uid": "v", "generation": 2}), "approved:   no: another object of this name was approved\n"),
        ] {
            let shown = details(&exception(&[(&["status", "approval"], approval.clone())]), Timestamp::UNIX_EPOCH);
            assert!(shown.contains(expected), "{approval}: {shown}");
        }
    }

    #[test]
    fn state_of_an_earlier_version_is_not_shown() {
        let approved = json!({"uid": "u", "generation": 2});
        let changed = exception(&[(&["status", "observedGeneration"], json!(1))]);
        let fresh = exception(&[(&["status", "approval"], approved)]);
        let taken = exception(&[(&["status", "state"], json!("Approved"))]);
        for one in [changed, fresh, taken] {
            let shown = details(&one, Timestamp::UNIX_EPOCH);
            assert!(shown.contains("state:      the controller has not looked at it yet\n"), "{shown}");
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
            (&["status", "state"], json!("Approved")),
        ]);
        let changed = exception(&[(&["status", "approval"], json!({"uid": "u", "generation": 1}))]);
        let expected = "\
NAME   PROFILE   CHECKS                 FOR                                    UNTIL                  APPROVED        STATE
gpu    tools     privileged,hostPorts   the whole namespace                    2027-01-31T00:00:00Z   by eve          Approved
gpu    tools     privileged,hostPorts   Deployment encoder, container driver   2027-01-31T00:00:00Z   changed since   Pending
";
        assert_eq!(table(&[all.clone(), changed.clone()], false), expected);
        assert!(table(&[], true).starts_with("NAMESPACE   NAME   "));
        assert!(is_pending(&changed) && !is_pending(&all));
        assert!(!is_pending(&exception(&[(&["status", "state"], json!("Invalid"))])));
    }
}

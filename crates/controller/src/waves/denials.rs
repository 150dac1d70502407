//! Denied pods of workloads. The API server admits the workload itself; it denies the requests of the controller that
//! creates the pods, which reports the denial in an event of the namespace.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::Event, jiff::Timestamp};
use kube::{Api, Client, api::ListParams};
use palisade_api::names::{self, Shape};

use crate::api_request::{ApiError, call};

/// How many events one request lists at most.
const PAGE_SIZE: u32 = 500;
/// The longest message, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// The namespaces in which the pods policy of a profile has denied a pod since then, with the message of an event.
///
/// # Errors
///
/// If the API server returned no list.
pub async fn since(client: &Client, profile: &str, then: Timestamp) -> Result<BTreeMap<String, String>, ApiError> {
    let api: Api<Event> = Api::all(client.clone());
    let (mut found, mut page) = (BTreeMap::new(), ListParams::default().fields("reason=FailedCreate").limit(PAGE_SIZE));
    loop {
        let list = call(api.list(&page)).await?;
        let denials = list.items.into_iter().filter(|event| is_denial(event, profile, then));
        found.extend(denials.filter_map(|event| {
            let message = event.message?.chars().take(MAX_MESSAGE_CHARS).collect();
            Some((event.involved_object.namespace?, message))
        }));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn is_denial(event: &Event, profile: &str, then: Timestamp) -> bool {
    let policy = format!("'{}'", names::policy(profile, Shape::Pods));
    last_seen(event).is_some_and(|last| last >= then)
        && event.message.as_ref().is_some_and(|message| message.contains(&policy))
}

/// The last time of the event. The field depends on the client that wrote it.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| Some(series.last_observed_time.as_ref()?.0));
    let times = [
        series,
        event.last_timestamp.as_ref().map(|time| time.0),
        event.event_time.as_ref().map(|time| time.0),
        event.metadata.creation_timestamp.as_ref().map(|time| time.0),
    ];
    times.into_iter().flatten().max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn older_and_foreign_denials_are_ignored() {
        let event = |policy: &str, last: &str| -> Event {
            serde_json::from_value(json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "reason": "FailedCreate",
                "involvedObject": {"namespace": "a"}, "lastTimestamp": last,
                "message": format!("Error creating: pods \"x-1\" is forbidden: ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: x"),
            }))
            .expect("an event")
        };
        let then = "2026-01-02T00:00:00Z".parse().expect("a time");
        let is = |policy: &str, last: &str| is_denial(&event(policy, last), "tools", then);
        assert!(is("palisade-tools-pods", "2026-01-02T00:00:00Z"));
        assert!(!is("palisade-tools-pods", "2026-01-01T23:59:59Z"));
        assert!(!is("palisade-tools-2-pods", "2026-01-03T00:00:00Z"));
        assert!(!is("palisade-my-palisade-tools-pods", "2026-01-03T00:00:00Z"));
    }
}

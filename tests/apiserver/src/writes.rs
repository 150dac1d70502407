//! What replicas of the controller wrote, by the audit log of the API server.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use palisade_api::names;
use serde_json::Value as Json;

use crate::TestResult;

/// What the line of an event begins with.
const EVENT: &str = "{\"kind\":\"Event\"";

/// A request of a replica that changed something.
#[derive(Clone, Debug)]
pub struct Write {
    /// When the API server received it.
    pub at: Timestamp,
    /// When it had answered.
    pub done: Timestamp,
    /// The id of the token: each replica has one of its own.
    pub token: String,
    /// The verb and the path.
    pub what: String,
    /// Whether it took or renewed the Lease, or released it.
    pub election: bool,
}

/// Who led when, and who wrote.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How many leaders there were, one after the other.
    pub leaders: usize,
    /// How many writes there were, besides those of the Lease.
    pub writes: usize,
    /// The writes by a replica that did not lead.
    pub foreign: Vec<Write>,
    /// The longest time between two writes of the Lease.
    pub longest_gap: Duration,
}

/// The writes of the controller's service account in an audit log.
///
/// # Errors
/// An event has no time.
pub fn writes(log: &str) -> TestResult<Vec<Write>> {
    let user = format!("system:serviceaccount:{}:{}", names::OPERATOR_NAMESPACE, names::CONTROLLER);
    let mut writes = Vec::new();
    for event in log.lines().filter(|line| line.contains(&user)).filter_map(event) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
        let reads = ["get", "list", "watch"].contains(&text("/verb"));
        let done = event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
        if text("/user/username") != user || reads || text("/requestURI").contains("dryRun=All") || !done {
            continue;
        }
        writes.push(Write {
            at: text("/requestReceivedTimestamp").parse()?,
            done: text("/stageTimestamp").parse()?,
            token: text("/user/extra/authentication.kubernetes.io~1credential-id/0").to_owned(),
            election: text("/objectRef/resource") == "leases",
            what: format!("{} {}", text("/verb"), text("/requestURI")),
        });
    }
    Ok(writes)
}

/// The event in a line. One that was killed leaves half a line, on which the next one goes on.
fn event(line: &str) -> Option<Json> {
    serde_json::from_str(line).ok().or_else(|| serde_json::from_str(&line[line.rfind(EVENT)?..]).ok())
}

/// Compares each write with the Lease: it must be of the replica that had written the Lease last.
pub fn terms(mut writes: Vec<Write>) -> Terms {
    writes.sort_by_key(|write| write.done);
    let (elections, others): (Vec<_>, Vec<_>) = writes.into_iter().partition(|write| write.election);
    let leads = |write: &Write| {
        let last = elections.iter().rfind(|election| election.done <= write.at);
        // The API server says when it has answered, not when it has stored: one of the two may lead already.
        let begins =
            |election: &Write| election.token == write.token && election.at <= write.at && election.done >= write.at;
        last.is_some_and(|last| last.token == write.token) || elections.iter().any(begins)
    };
    let foreign = others.iter().filter(|write| !leads(write)).cloned().collect();
    let pairs = elections.windows(2);
    let gap = |pair: &[Write]| Duration::try_from(pair[1].done.duration_since(pair[0].done)).unwrap_or_default();
    Terms {
        leaders: 1 + pairs.clone().filter(|pair| pair[0].token != pair[1].token).count(),
        writes: others.len(),
        foreign,
        longest_gap: pairs.map(gap).max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(second: i64, token: &str, election: bool) -> Write {
        let at = Timestamp::from_second(second).unwrap();
        Write { at, done: at, token: token.to_owned(), what: "update".to_owned(), election }
    }

    #[test]
    fn writes_of_a_former_leader_are_found() {
        let elections = [write(1, "a", true), write(5, "b", true), write(30, "a", true)];
        let good = [write(2, "a", false), write(6, "b", false), write(31, "a", false)];
        let of = |more: &[Write]| terms([&elections[..], &good, more].concat());
        let fine = of(&[]);
        assert_eq!((fine.leaders, fine.writes, fine.foreign.len()), (3, 3, 0));
        assert_eq!(fine.longest_gap, Duration::from_secs(25));
        assert_eq!(of(&[write(7, "a", false)]).foreign.len(), 1);
        assert_eq!(of(&[write(0, "a", false)]).foreign.len(), 1, "nobody had led");
    }

    #[test]
    fn event_after_half_a_line_is_read() {
        let half = format!("{EVENT},\"level\":\"Meta{EVENT},\"verb\":\"update\"}}");
        assert_eq!(event(&half).unwrap()["verb"], "update");
        assert_eq!(event("{\"kind\":\"Ev"), None);
    }
}

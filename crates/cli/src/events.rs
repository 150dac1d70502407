//! Audit logs of API servers: the events in files, directories and standard input, one at a time, and what profiles said
//! of each request.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    cluster::could_not_run,
    report::{self, Failure},
};

/// The annotation of a request that a binding with the action Audit leaves (KEP-3488).
pub const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// More than an API server writes about one request.
const MAX_LINE: u64 = 16 << 20;

/// What an event says, as far as it counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// How much the audit policy has the API server write.
    pub level: String,
    stage: String,
    /// `create`, `update`, `patch` and so on.
    pub verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    /// Who asked.
    pub user: User,
    /// As whom, if not as himself.
    pub impersonated_user: Option<User>,
    /// What was asked for.
    pub object_ref: ObjectRef,
    /// What the API server answered.
    pub response_status: ResponseStatus,
    /// The object as it was sent, with the API server's defaults and before admission.
    pub request_object: Json,
    annotations: BTreeMap<String, String>,
    /// When it was asked.
    pub request_received_timestamp: Option<Timestamp>,
}

/// A user.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct User {
    /// The name.
    pub username: String,
    /// What else identifies it.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What the authenticator adds.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An object, by its address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Empty for the core group.
    pub api_group: String,
    /// The version.
    pub api_version: String,
    /// The namespace.
    pub namespace: String,
    /// The plural name of the kind.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty if the API server makes the name.
    pub name: String,
}

/// An answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseStatus {
    /// What the client was told.
    pub message: String,
    /// The status of HTTP.
    pub code: u16,
}

/// A failure as the annotation has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Noted {
    #[serde(default)]
    message: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    validation_actions: Vec<String>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Action {
    /// It was denied.
    Denied,
    /// It was done, and the client warned.
    Warned,
    /// It was done, and a violation noted in the log.
    Noted,
}

impl Action {
    /// As a label of metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Warned => "warned",
            Self::Noted => "noted",
        }
    }
}

/// One profile's answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The profile.
    pub profile: String,
    /// What became of the request by it.
    pub action: Action,
    /// The checks that it violates.
    pub checks: Vec<String>,
}

/// Reads the events of requests that were answered, in the order of the logs.
///
/// # Errors
/// A log that cannot be read.
pub fn each(paths: &[PathBuf], mut found: impl FnMut(Event)) -> Result<(), Failure> {
    for path in files(paths)? {
        let name = path.display().to_string();
        if name == "-" {
            read("<stdin>", io::stdin().lock(), &mut found)?;
        } else {
            let file = File::open(&path).map_err(|error| could_not_run(format!("{name}: {error}")))?;
            read(&name, BufReader::new(file), &mut found)?;
        }
    }
    Ok(())
}

/// The files, and those in directories in the order of their names.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let failed = |error: io::Error| could_not_run(format!("{}: {error}", path.display()));
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
        let mut found: Vec<_> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        let is_packed = |path: &Path| path.extension().is_some_and(|extension| extension == "gz");
        for packed in found.iter().filter(|path| is_packed(path)) {
            report::note(&format!("note: {} is left out: unpack it first", packed.display()));
        }
        found.retain(|path| !is_packed(path));
        found.sort();
        if found.is_empty() {
            return Err(could_not_run(format!("{}: no files in this directory", path.display())));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Reads one log: an event in JSON on each line. Lines that are none are counted, and reported.
///
/// # Errors
/// It cannot be read.
pub fn read(name: &str, mut from: impl BufRead, found: &mut impl FnMut(Event)) -> Result<(), Failure> {
    let (mut number, mut unreadable, mut first) = (0_u64, 0_u64, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| could_not_run(format!("{name}: {error}")))? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if let Ok(event) = serde_json::from_slice::<Event>(&line) {
            if event.is_answered() {
                found(event);
            }
        } else {
            // The last line of a log may be half written.
            unreadable += 1;
            first = if unreadable == 1 { number } else { first };
        }
    }
    if unreadable > 0 {
        let lines = if unreadable == 1 { "line is not an audit event" } else { "lines are not audit events" };
        report::note(&format!("note: {name}: {unreadable} {lines}, the first is line {first}"));
    }
    Ok(())
}

impl Event {
    /// What the profiles said of the request, and whether another policy denied it.
    pub fn findings(&self) -> (Vec<Finding>, bool) {
        let (mut found, mut others) = (Vec::new(), false);
        if let Some((policy, text)) = denial(&self.response_status) {
            match profile_of(policy) {
                Some(profile) => {
                    found.push(Finding { checks: checks(text, &profile), profile, action: Action::Denied });
                }
                None => others = true,
            }
        }
        let noted = self.annotations.get(FAILURE).and_then(|text| serde_json::from_str::<Vec<Noted>>(text).ok());
        for Noted { message, policy, validation_actions } in noted.into_iter().flatten() {
            let Some(profile) = profile_of(&policy) else { continue };
            let warned = validation_actions.iter().any(|action| action == "Warn");
            let action = if warned { Action::Warned } else { Action::Noted };
            let finding = Finding { checks: checks(&message, &profile), profile, action };
            // The bindings for creation and for updates are of one policy.
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
        (found, others)
    }

    /// What the request was about, as well as the log knows.
    pub fn workload(&self) -> String {
        let metadata = &self.request_object["metadata"];
        let owners = metadata["ownerReferences"].as_array();
        if let Some(owner) = owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
            let text = |key: &str| owner[key].as_str().unwrap_or_default();
            return format!("{}/{}", text("kind"), text("name"));
        }
        let named = [metadata["name"].as_str(), Some(self.object_ref.name.as_str()), metadata["generateName"].as_str()];
        let name = named.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("(not named)");
        format!("{}/{name}", self.object_ref.resource)
    }

    /// Whether the request was answered; of most requests there are events from before that.
    pub fn is_answered(&self) -> bool {
        !matches!(self.stage.as_str(), "RequestReceived" | "ResponseStarted")
    }

    /// Whether it was a dry run. The controller asks by these whether a profile is in force.
    pub fn is_dry_run(&self) -> bool {
        self.request_uri.contains("dryRun=")
    }
}

/// The policy that denied a request, and its message. The API server begins such an answer with `pods "a" is forbidden: `;
/// another answer may quote a text of the request that looks like a denial.
fn denial(status: &ResponseStatus) -> Option<(&str, &str)> {
    let (before, rest) = status.message.split_once("ValidatingAdmissionPolicy '").filter(|_| status.code >= 400)?;
    before.strip_suffix(" is forbidden: ").filter(|about| about.split(' ').count() <= 2)?;
    let (policy, rest) = rest.split_once('\'')?;
    Some((policy, rest.split_once("denied request: ").map_or("", |(_, text)| text)))
}

/// The profile that a policy was made for.
pub fn profile_of(policy: &str) -> Option<String> {
    let rest = policy.strip_prefix("palisade-")?;
    let name = rest.strip_suffix("-pods").or_else(|| rest.strip_suffix("-workloads"))?;
    Some(name.to_owned())
}

/// The checks that a message of a profile names. A text of the request that a message quotes may look like a check: then
/// it is counted, too.
fn checks(message: &str, profile: &str) -> Vec<String> {
    let text = message.split_once(&format!("ToolSecurityProfile {profile}: ")).map_or(message, |(_, text)| text);
    let is_id = |id: &str| {
        id.starts_with(|c: char| c.is_ascii_alphabetic()) && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let parts = std::iter::once(text).chain(text.match_indices("; [").map(|(at, _)| &text[at + 2..]));
    let ids = parts.filter_map(|part| part.strip_prefix('[')?.split_once("] ").map(|(id, _)| id));
    let mut ids: Vec<_> = ids.filter(|id| is_id(id)).map(str::to_owned).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() { vec!["(unknown)".to_owned()] } else { ids }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_quotes_brackets_names_no_check() {
        assert_eq!(checks("1 violation of ToolSecurityProfile t: [a] spec.containers[0] is [x y] z", "t"), ["a"]);
        assert_eq!(checks("parameters are missing", "t"), ["(unknown)"]);
    }

    #[test]
    fn policies_of_others_are_no_profiles() {
        assert_eq!(profile_of("palisade-my-pods-pods").as_deref(), Some("my-pods"));
        assert_eq!(profile_of("palisade-tools-workloads").as_deref(), Some("tools"));
        assert_eq!(profile_of("tools-pods"), None);
    }

    #[test]
    fn only_an_answer_that_begins_as_a_denial_is_one() {
        let of = |code: u16, message: &str| {
            denial(&ResponseStatus { message: message.to_owned(), code }).map(|(policy, _)| policy.to_owned())
        };
        let denied = "ValidatingAdmissionPolicy 'palisade-x-pods' with binding 'b' denied request: no";
        for about in ["pods \"a\" is forbidden: ", "pods is forbidden: "] {
            assert_eq!(of(403, &format!("{about}{denied}")).as_deref(), Some("palisade-x-pods"));
        }
        let quoted = format!("Pod \"a\" is invalid: spec.x: Invalid value: \"is forbidden: {denied}\"");
        assert_eq!(of(422, &quoted), None);
        assert_eq!(of(200, &format!("pods \"a\" is forbidden: {denied}")), None);
    }
}

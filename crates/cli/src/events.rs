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
    denial::{Requested, denial},
    report::{self, Failure},
};

/// The annotation of a request that a binding with the action Audit leaves (KEP-3488).
pub const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The annotation with what authorization said. The API server writes it for each request that got so far. Admission, and
/// so policies, come later, and only if it is `allow`.
pub const DECISION: &str = "authorization.k8s.io/decision";
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

/// What an event says of policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What the profiles said of the request.
    pub of_profiles: Vec<Finding>,
    /// Whether another policy denied it.
    pub of_others: bool,
    /// Whether it looks like an answer of a policy, and does not say that authorization allowed the request. Nothing of
    /// it counts.
    pub undecided: bool,
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
    /// The policy that denied the request, and its message.
    fn denial(&self) -> Option<(&str, &str)> {
        let ObjectRef { api_group, resource, name, .. } = &self.object_ref;
        denial(Requested { group: api_group, resource, name }, self.response_status.code, &self.response_status.message)
    }

    /// What policies said of the request. An answer of authorization may quote a name of the request that looks like a
    /// denial: only requests that were allowed got to policies.
    pub fn findings(&self) -> Findings {
        let mut found = Findings::default();
        let noted = self.annotations.get(FAILURE);
        match self.annotations.get(DECISION).map(String::as_str) {
            Some("allow") => {}
            Some(_) => return found,
            None => {
                found.undecided = noted.is_some() || self.denial().is_some();
                return found;
            }
        }
        if let Some((policy, text)) = self.denial() {
            match profile_of(policy) {
                Some(profile) => {
                    let checks = checks(text, &profile);
                    found.of_profiles.push(Finding { checks, profile, action: Action::Denied });
                }
                None => found.of_others = true,
            }
        }
        let noted = noted.and_then(|text| serde_json::from_str::<Vec<Noted>>(text).ok());
        for Noted { message, policy, validation_actions } in noted.into_iter().flatten() {
            let Some(profile) = profile_of(&policy) else { continue };
            let warned = validation_actions.iter().any(|action| action == "Warn");
            let action = if warned { Action::Warned } else { Action::Noted };
            let finding = Finding { checks: checks(&message, &profile), profile, action };
            // The bindings for creation and for updates are of one policy.
            if !found.of_profiles.contains(&finding) {
                found.of_profiles.push(finding);
            }
        }
        found
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
    use serde_json::json;

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

    const DENIED: &str = "ValidatingAdmissionPolicy 'palisade-x-pods' with binding 'b' denied request: 1 violation of \
                          ToolSecurityProfile x: [privileged] y";

    fn event(name: &str, code: u16, message: &str, decision: Option<&str>) -> Event {
        let annotations = decision.map(|decision| (DECISION.to_owned(), decision.to_owned())).into_iter().collect();
        let object_ref = ObjectRef { resource: "pods".to_owned(), name: name.to_owned(), ..ObjectRef::default() };
        let response_status = ResponseStatus { message: message.to_owned(), code };
        Event { object_ref, response_status, annotations, ..Event::default() }
    }

    /// Names of objects that do not exist, in requests of users without any right and with some.
    #[test]
    fn a_name_that_looks_like_a_denial_is_none() {
        for name in [
            format!("x\" is forbidden: {DENIED}"),
            format!("\" is forbidden: {DENIED}"),
            format!(" is forbidden: {DENIED}"),
            format!("x\\\" is forbidden: {DENIED}"),
            format!("x\n\" is forbidden: {DENIED}"),
            format!("x\" is forbidden: x\" is forbidden: {DENIED}"),
            DENIED.to_owned(),
        ] {
            // As Go quotes these.
            let quoted = format!("{name:?}");
            for (code, decision, rest) in [
                (403, "forbid", "is forbidden: User \"nobody\" cannot delete resource \"pods\""),
                (404, "allow", "not found"),
                (422, "allow", "is invalid: metadata.name: Invalid value"),
                (403, "allow", "is forbidden: exceeded quota: x"),
            ] {
                let message = format!("pods {quoted} {rest}");
                for named in [name.as_str(), ""] {
                    let found = event(named, code, &message, Some(decision)).findings();
                    assert_eq!(found, Findings::default(), "{message}");
                }
                assert!(!event(&name, code, &message, None).findings().undecided, "{message}");
            }
            // A policy that denies an object of that name is counted all the same.
            let message = format!("pods {quoted} is forbidden: {DENIED}");
            assert_eq!(event(&name, 422, &message, Some("allow")).findings().of_profiles.len(), 1, "{message}");
        }
    }

    #[test]
    fn only_requests_that_were_allowed_got_to_policies() {
        let message = format!("pods \"a\" is forbidden: {DENIED}");
        let of = |decision| event("a", 422, &message, decision).findings();
        assert_eq!(of(Some("allow")).of_profiles[0].checks, ["privileged"]);
        assert_eq!(of(Some("forbid")), Findings::default());
        assert_eq!(of(None), Findings { undecided: true, ..Findings::default() });
        let mut noted = event("a", 201, "", None);
        let text = json!([{"message": "[a] b", "policy": "palisade-x-pods", "validationActions": ["Audit"]}]);
        noted.annotations.insert(FAILURE.to_owned(), text.to_string());
        assert_eq!(noted.findings(), Findings { undecided: true, ..Findings::default() });
        noted.annotations.insert(DECISION.to_owned(), "allow".to_owned());
        assert_eq!(noted.findings().of_profiles[0].action, Action::Noted);
    }
}

//! `palisade status`: shows the state of all profiles in a cluster.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client, ResourceExt, api::ListParams};
use palisade_api::{OptionalStage, Stage, ToolSecurityProfile, ToolSecurityProfileStatus};
use palisade_runtime::lists;
use serde_json::{Value as Json, json};

use crate::{
    cluster::{ClusterArgs, failed},
    output::{self, Format, FormatArgs},
    report::{Failure, one_line},
};

const EXAMPLES: &str = "\
Examples:
  palisade status
  palisade status --watch
  palisade status -o json | jq '.profiles[] | select(.ready != \"True\")'

Requires only permission to list toolsecurityprofiles.

Exit codes: 0 shown, 2 could not run. Profiles that are not ready do not affect the exit code; in scripts, use -o \
json.";

/// The interval of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// Clears a terminal and moves to its top (ECMA-48: CUP, ED).
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// The arguments of `palisade status`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// Names of ToolSecurityProfiles. The default is all.
    #[arg(value_name = "PROFILE")]
    pub profiles: Vec<String>,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Poll every two seconds and print changes, until Ctrl-C.
    #[arg(short, long)]
    pub watch: bool,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Runs the command.
pub fn run(args: &StatusArgs) -> Result<(), Failure> {
    args.cluster.ask(async |client| {
        let mut shown = String::new();
        loop {
            let (server, profiles) = read(&client, &args.profiles).await?;
            let human = || table(&server, &profiles, Timestamp::now());
            let text = args.format.text(human, || as_json(&server, &profiles))?;
            if text != shown {
                let clear = args.watch && args.format.output == Format::Human && io::stdout().is_terminal();
                output::print(&if clear { format!("{CLEAR}{text}") } else { text.clone() })?;
                shown = text;
            }
            if !args.watch {
                return Ok(());
            }
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    })
}

/// The version of the API server, and the profiles.
async fn read(client: &Client, names: &[String]) -> Result<(String, Vec<ToolSecurityProfile>), Failure> {
    let version = client
        .apiserver_version()
        .await
        .map_err(|error| failed("cannot read the version of the API server", &error))?;
    let api = Api::<ToolSecurityProfile>::all(client.clone());
    let list = lists::all(&api, &ListParams::default()).await;
    let mut profiles = list.map_err(|error| failed("cannot list profiles", &error))?;
    if let Some(missing) = names.iter().find(|name| profiles.iter().all(|profile| profile.name_any() != **name)) {
        let known: Vec<_> = profiles.iter().map(ResourceExt::name_any).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("ToolSecurityProfile {missing:?} not found in this cluster; existing profiles: {known}");
        return Err(crate::cluster::could_not_run(message));
    }
    profiles.retain(|profile| names.is_empty() || names.contains(&profile.name_any()));
    Ok((version.git_version, profiles))
}

/// Status and message of a condition; `Unknown` if there is none for this generation.
fn condition(profile: &ToolSecurityProfile, type_: &str) -> (String, String) {
    let conditions = profile.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition.type_ == type_);
    let current =
        found.filter(|found| found.observed_generation.is_none_or(|seen| Some(seen) == profile.metadata.generation));
    match (current, found) {
        (Some(condition), _) => (condition.status.clone(), condition.message.clone()),
        (None, Some(_)) => ("Unknown".to_owned(), "the controller has not processed the latest change yet".to_owned()),
        (None, None) => {
            ("Unknown".to_owned(), "the controller has not reported a status yet: check that it is running".to_owned())
        }
    }
}

fn as_json(server: &str, profiles: &[ToolSecurityProfile]) -> Json {
    let profiles: Vec<_> = profiles
        .iter()
        .map(|profile| {
            json!({
                "name": profile.name_any(), "generation": profile.metadata.generation,
                "stage": profile.spec.enforcement.pods,
                "stages": {
                    "pods": profile.spec.enforcement.pods,
                    "workloads": stage_or_off(profile.spec.enforcement.workloads.stage()),
                    "objects": stage_of_objects(profile),
                },
                "ready": condition(profile, "Ready").0,
                "status": profile.status,
            })
        })
        .collect();
    json!({"server": server, "profiles": profiles})
}

fn table(server: &str, profiles: &[ToolSecurityProfile], now: Timestamp) -> String {
    let mut text = format!("API server {server}, ");
    if profiles.is_empty() {
        text.push_str("no ToolSecurityProfile\n");
        return text;
    }
    let _ = writeln!(text, "{} {}\n", profiles.len(), if profiles.len() == 1 { "profile" } else { "profiles" });
    let head = ["PROFILE", "PODS", "WORKLOADS", "OBJECTS", "READY", "NAMESPACES", "FAILED", "DENY", "WARN", "AUDIT"];
    let mut rows =
        vec![head.into_iter().chain(["MUTATED BY", "ROLLOUT", "HELD", "VIOLATING"]).map(str::to_owned).collect()];
    rows.extend(profiles.iter().map(row));
    text.push_str(&output::table(&rows));
    for (title, lines) in [
        ("NOT READY", not_ready(profiles)),
        ("FAILED NAMESPACES", failed_namespaces(profiles)),
        ("HELD NAMESPACES", held(profiles)),
        ("VIOLATIONS BY CHECK", violations(profiles)),
        ("EXCEPTIONS TO REVIEW", exceptions(profiles, now)),
    ] {
        if !lines.is_empty() {
            let _ = write!(text, "\n{title}\n{}", output::table(&lines));
        }
    }
    text
}

fn row(profile: &ToolSecurityProfile) -> Vec<String> {
    let unreported = ToolSecurityProfileStatus::default();
    let status = profile.status.as_ref().unwrap_or(&unreported);
    let none = || "-".to_owned();
    let (counts, stages) = (&status.namespaces, &status.namespaces.by_stage);
    let rollout = status.rollout.as_ref();
    vec![
        profile.name_any(),
        profile.spec.enforcement.pods.to_string(),
        stage_or_off(profile.spec.enforcement.workloads.stage()),
        stage_of_objects(profile).unwrap_or_else(none),
        condition(profile, "Ready").0,
        format!("{}/{}", counts.ready, counts.selected),
        counts.failed.to_string(),
        stages.deny.to_string(),
        stages.warn.to_string(),
        stages.audit.to_string(),
        status.mutation.as_ref().map_or_else(none, |mutation| mutation.engine.to_string()),
        rollout.map_or_else(none, |rollout| format!("{} {}/{}", rollout.phase, rollout.wave, rollout.waves)),
        rollout.map_or_else(none, |rollout| rollout.held.to_string()),
        status.scan.as_ref().map_or_else(none, |scan| scan.workloads.to_string()),
    ]
}

fn stage_or_off(stage: Option<Stage>) -> String {
    stage.map_or_else(|| OptionalStage::Off.to_string(), |stage| stage.to_string())
}

/// The stage of objects other than pods and workloads; `None` if the profile has no check of them.
fn stage_of_objects(profile: &ToolSecurityProfile) -> Option<String> {
    let stage = profile.spec.enforcement.objects();
    // A profile with an error has the stage that it states.
    let evaluates = match palisade_compiler::compile(profile) {
        Ok(compiled) => compiled.has_object_checks(),
        Err(_) => true,
    };
    evaluates.then(|| stage_or_off(stage))
}

fn not_ready(profiles: &[ToolSecurityProfile]) -> Vec<Vec<String>> {
    let waiting = profiles.iter().filter_map(|profile| {
        let (status, message) = condition(profile, "Ready");
        (status != "True").then(|| vec![profile.name_any(), one_line(&message)])
    });
    waiting.collect()
}

fn failed_namespaces(profiles: &[ToolSecurityProfile]) -> Vec<Vec<String>> {
    let of = |profile: &ToolSecurityProfile| {
        let status = profile.status.clone().unwrap_or_default();
        let shown = i64::try_from(status.failed_namespaces.len()).unwrap_or(i64::MAX);
        let name = profile.name_any();
        let lines =
            status.failed_namespaces.into_iter().map(|one| vec![name.clone(), one.name, one_line(&one.message)]);
        let more = more(&name, status.namespaces.failed - shown);
        lines.chain(more).collect::<Vec<_>>()
    };
    profiles.iter().flat_map(of).collect()
}

fn held(profiles: &[ToolSecurityProfile]) -> Vec<Vec<String>> {
    let of = |profile: &ToolSecurityProfile| {
        let rollout = profile.status.clone().unwrap_or_default().rollout.unwrap_or_default();
        let shown = i64::try_from(rollout.held_namespaces.len()).unwrap_or(i64::MAX);
        let name = profile.name_any();
        let lines = rollout.held_namespaces.into_iter().map(|one| vec![name.clone(), one.name, one_line(&one.message)]);
        let more = more(&name, rollout.held - shown);
        lines.chain(more).collect::<Vec<_>>()
    };
    profiles.iter().flat_map(of).collect()
}

/// The line for namespaces that are not listed in the status.
fn more(profile: &str, count: i64) -> Option<Vec<String>> {
    (count > 0).then(|| vec![profile.to_owned(), format!("and {count} more")])
}

fn violations(profiles: &[ToolSecurityProfile]) -> Vec<Vec<String>> {
    let of = |profile: &ToolSecurityProfile| {
        let scan = profile.status.clone().unwrap_or_default().scan.unwrap_or_default();
        let name = profile.name_any();
        let mut checks: Vec<_> = scan.checks.into_iter().collect();
        checks.sort_by_key(|(check, count)| (std::cmp::Reverse(*count), check.clone()));
        let message = (!scan.message.is_empty()).then(|| vec![name.clone(), one_line(&scan.message)]);
        let lines = checks.into_iter().map(|(check, count)| {
            let workloads = if count == 1 { "workload" } else { "workloads" };
            vec![name.clone(), check, format!("{count} {workloads}")]
        });
        lines.chain(message).collect::<Vec<_>>()
    };
    profiles.iter().flat_map(of).collect()
}

/// Exceptions of profiles that have ended, and requests of tenants that are not approved or not used.
fn exceptions(profiles: &[ToolSecurityProfile], now: Timestamp) -> Vec<Vec<String>> {
    let of = |profile: &ToolSecurityProfile| {
        let name = profile.name_any();
        let line = |which: String, what: String| vec![name.clone(), which, what];
        let ended = profile.spec.exceptions.iter().enumerate().filter(|(_, one)| one.expires.0 <= now);
        let ended = ended.map(|(index, one)| {
            let of = format!("{} in {}", one.checks.join(", "), one.namespaces.join(", "));
            line(format!("spec.exceptions[{index}]"), one_line(&format!("ended at {}: {of}", one.expires.0)))
        });
        let status = profile.status.as_ref().and_then(|status| status.exceptions);
        let requested = status.and_then(|counts| counts.requested).unwrap_or_default();
        let counts = [
            (requested.pending, "not approved"),
            (requested.unused, "unused"),
            (requested.expired, "expired"),
            (requested.invalid, "without effect"),
        ];
        let counts: Vec<_> = counts.iter().filter(|(count, _)| *count > 0).collect();
        let texts: Vec<_> = counts.iter().map(|(count, what)| format!("{count} {what}")).collect();
        let requested = (!texts.is_empty()).then(|| line("requests".to_owned(), texts.join(", ")));
        ended.chain(requested).collect::<Vec<_>>()
    };
    profiles.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str, generation: i64, status: &Json) -> ToolSecurityProfile {
        serde_json::from_value(json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
            "metadata": {"name": name, "generation": generation},
            "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
            "status": status,
        }))
        .expect("a profile")
    }

    fn ready(status: &str, message: &str) -> Json {
        json!({
            "type": "Ready", "status": status, "reason": "X", "message": message, "observedGeneration": 2,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    }

    #[test]
    fn one_screen_names_what_is_wrong() {
        let tools = profile(
            "tools",
            2,
            &json!({
                "conditions": [ready("True", "fine")],
                "namespaces": {"selected": 30, "ready": 18, "failed": 12, "byStage": {"deny": 20, "warn": 0, "audit": 10}},
                "failedNamespaces": [{"name": "tool-a", "message": "parameter uid is missing"}],
                "mutation": {"engine": "Native", "message": "x"},
                "rollout": {"phase": "Soaking", "wave": 2, "waves": 3, "promoted": 20, "pending": 9, "held": 1,
                    "heldNamespaces": [{"name": "tool-b", "message": "1 object violates the profile"}]},
                "scan": {"workloads": 4, "namespaces": 2, "checks": {"hostPorts": 1, "privileged": 3}},
            }),
        );
        let broken = profile("broken", 3, &json!({"conditions": [ready("True", "of the generation before")]}));
        let expected = "\
API server v1.36.2, 2 profiles

PROFILE   PODS   WORKLOADS   OBJECTS   READY     NAMESPACES   FAILED   DENY   WARN   AUDIT   MUTATED BY   ROLLOUT       HELD   VIOLATING
tools     Deny   Warn        -         True      18/30        12       20     0      10      Native       Soaking 2/3   1      4
broken    Deny   Warn        -         Unknown   0/0          0        0      0      0       -            -             -      -

NOT READY
broken   the controller has not processed the latest change yet

FAILED NAMESPACES
tools   tool-a        parameter uid is missing
tools   and 11 more

HELD NAMESPACES
tools   tool-b   1 object violates the profile

VIOLATIONS BY CHECK
tools   privileged   3 workloads
tools   hostPorts    1 workload
";
        assert_eq!(table("v1.36.2", &[tools, broken], Timestamp::UNIX_EPOCH), expected);
        assert_eq!(table("v1.36.2", &[], Timestamp::UNIX_EPOCH), "API server v1.36.2, no ToolSecurityProfile\n");
    }

    #[test]
    fn exceptions_that_somebody_should_look_at_are_named() {
        let counts = json!({"pending": 1, "approved": 4, "expired": 0, "invalid": 0, "unused": 2});
        let status = json!({
            "conditions": [ready("True", "fine")], "exceptions": {"active": 1, "expired": 1, "requested": counts},
        });
        let mut tools = profile("tools", 2, &status);
        let exception = |end: &str| {
            serde_json::from_value(json!({
                "namespaces": ["tool-a", "tool-b"], "checks": ["hostPorts"], "reason": "x", "expires": end,
            }))
            .expect("an exception")
        };
        tools.spec.exceptions = vec![exception("2027-01-31T00:00:00Z"), exception("2026-01-31T00:00:00Z")];
        let text = table("v1", &[tools], "2026-06-01T00:00:00Z".parse().expect("a time"));
        let expected = "
EXCEPTIONS TO REVIEW
tools   spec.exceptions[1]   ended at 2026-01-31T00:00:00Z: hostPorts in tool-a, tool-b
tools   requests             1 not approved, 2 unused
";
        assert!(text.ends_with(expected), "{text}");
    }

    /// The cells about stages, for profiles with and without a check of other objects.
    #[test]
    fn stages_of_pods_workloads_and_objects_are_shown() {
        for (spec, expected) in [
            (json!({}), ["Deny", "Warn", "-"]),
            (json!({"network": {"allowedServiceTypes": ["ClusterIP"]}}), ["Deny", "Warn", "Deny"]),
            (
                json!({
                    "network": {"allowedServiceTypes": ["ClusterIP"]},
                    "enforcement": {"pods": "Audit", "workloads": "Off", "objects": "Warn"},
                }),
                ["Audit", "Off", "Warn"],
            ),
            (
                json!({"network": {"allowedServiceTypes": ["ClusterIP"]}, "enforcement": {"objects": "Off"}}),
                ["Deny", "Warn", "Off"],
            ),
            // It does not compile.
            (json!({"network": {"allowedExternalIPs": ["nonsense"]}}), ["Deny", "Warn", "Deny"]),
        ] {
            let mut all = json!(profile("tools", 1, &Json::Null));
            let fields = spec.as_object().expect("an object").clone();
            all["spec"].as_object_mut().expect("a spec").extend(fields);
            let one: ToolSecurityProfile = serde_json::from_value(all).expect("a profile");
            assert_eq!(row(&one)[1..4], expected, "{spec}");
            let stages = &as_json("v1", std::slice::from_ref(&one))["profiles"][0]["stages"];
            let objects = if expected[2] == "-" { Json::Null } else { json!(expected[2]) };
            assert_eq!(*stages, json!({"pods": expected[0], "workloads": expected[1], "objects": objects}), "{spec}");
        }
    }

    #[test]
    fn a_controller_that_does_not_run_is_suspected() {
        let text = table("v1", &[profile("tools", 1, &Json::Null)], Timestamp::UNIX_EPOCH);
        assert!(text.contains("check that it is running"), "{text}");
    }
}

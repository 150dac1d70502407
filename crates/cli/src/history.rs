//! `palisade history`: lists the recorded revisions of a profile.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::{
    cluster::ClusterArgs,
    output::{self, FormatArgs},
    report::{self, Failure},
    revisions::{self, History, Recorded},
};

const EXAMPLES: &str = "\
Examples:
  palisade history toolforge
  palisade diff toolforge@3 toolforge
  palisade rollback toolforge --to 3

A revision is a generation of the profile's spec that was active. The last ten revisions are kept, as \
ControllerRevisions in namespace palisade-system. To read them, a user needs permission to list those and to get the \
profile.

Exit codes: 0 listed, 2 could not run.";

/// How many changed fields the table lists.
const NAMED: usize = 3;

/// The arguments of `palisade history`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct HistoryArgs {
    /// Name of a ToolSecurityProfile in the cluster.
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Runs the command.
pub fn run(args: &HistoryArgs) -> Result<(), Failure> {
    let history = args.cluster.ask(async |client| History::read(&client, &args.profile).await)?;
    let object = || json!({"profile": history.name(), "revisions": items(&history)});
    output::print(&args.format.text(|| table(&history, Timestamp::now()), object)?)?;
    if let Some(pending) = pending(&history) {
        report::note(&pending);
    }
    Ok(())
}

/// A note about the current spec, if it is not active.
fn pending(history: &History) -> Option<String> {
    let generation = history.profile.metadata.generation.unwrap_or_default();
    if history.revisions.first().is_some_and(|newest| newest.revision.generation == generation) {
        return None;
    }
    let conditions = history.profile.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready" && condition.status != "True");
    let why = ready.map(|ready| format!(": {}", ready.message)).unwrap_or_default();
    Some(format!("note: generation {generation} (the current spec) is not active{why}"))
}

fn items(history: &History) -> Vec<Json> {
    let item = |recorded: &Recorded| {
        json!({
            "revision": recorded.revision.generation,
            "recorded": recorded.at.map(|at| at.to_string()),
            "spec": revisions::json(&recorded.revision.spec),
        })
    };
    history.revisions.iter().map(item).collect()
}

fn table(history: &History, now: Timestamp) -> String {
    let mut rows = vec![["REVISION", "AGE", "STATE", "CHANGED"].map(str::to_owned).to_vec()];
    for (index, recorded) in history.revisions.iter().enumerate() {
        let changed = history.revisions.get(index + 1).map(|earlier| {
            let [one, other] = [earlier, recorded].map(|of| revisions::json(&of.revision.spec));
            shortened(&revisions::changed(&one, &other))
        });
        rows.push(vec![
            recorded.revision.generation.to_string(),
            recorded.at.map_or_else(|| "unknown".to_owned(), |at| output::age(now.as_second() - at.as_second())),
            if index == 0 { "active" } else { "" }.to_owned(),
            changed.unwrap_or_default(),
        ]);
    }
    output::table(&rows)
}

/// The first paths, and the number of the others.
fn shortened(paths: &[String]) -> String {
    match paths.split_at_checked(NAMED) {
        Some((named, rest)) if !rest.is_empty() => format!("{} and {} more", named.join(", "), rest.len()),
        _ => paths.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use palisade_api::{ToolSecurityProfile, revision::Revision};

    use super::*;

    fn profile(generation: i64, spec: &Json) -> ToolSecurityProfile {
        let mut whole = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let mut profile = ToolSecurityProfile::new("p", serde_json::from_value(whole).unwrap());
        (profile.metadata.uid, profile.metadata.generation) = (Some("u".to_owned()), Some(generation));
        profile
    }

    fn history() -> History {
        let recorded = |generation, second, spec: Json| {
            let mut object = Revision::of(&profile(generation, &spec)).object("p", None);
            object.metadata.creation_timestamp = Timestamp::from_second(second).ok().map(Time);
            object
        };
        let ports = |port: i64| json!({"host": {"ports": [{"min": port, "max": port}]}});
        let all = vec![
            recorded(1, 0, ports(1)),
            recorded(2, 100_000, ports(2)),
            recorded(
                5,
                200_000,
                json!({
                    "images": {"allowedRegistries": ["a"]},
                }),
            ),
        ];
        History::of(profile(6, &json!({})), all)
    }

    #[test]
    fn newest_revision_comes_first_and_is_in_force() {
        let expected = "\
REVISION   AGE   STATE    CHANGED
5          90s   active   spec.host.ports, spec.images.allowedRegistries
2          27h            spec.host.ports
1          2d
";
        assert_eq!(table(&history(), Timestamp::from_second(200_090).unwrap()), expected);
    }

    #[test]
    fn spec_that_is_not_in_force_is_noted() {
        assert_eq!(pending(&history()).as_deref(), Some("note: generation 6 (the current spec) is not active"));
        let mut same = history();
        same.profile.metadata.generation = Some(5);
        assert_eq!(pending(&same), None);
    }

    #[test]
    fn many_changed_fields_are_counted() {
        let paths = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(shortened(&paths), "a, b, c and 2 more");
        assert_eq!(shortened(&paths[..3]), "a, b, c");
    }
}

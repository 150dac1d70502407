//! `palisade rollback`: rolls a profile back to an earlier revision.

use kube::{Api, Client, api::PostParams};
use palisade_api::ToolSecurityProfile;

use crate::{
    cluster::{ClusterArgs, could_not_run, failed},
    diff::{self, CONTEXT},
    output,
    profiles::guarded,
    report::{self, Failure, Problem},
    revisions::{self, History, Recorded},
};

const EXAMPLES: &str = "\
Examples:
  palisade rollback toolforge
  palisade rollback toolforge --to 3 --dry-run

Edits the spec of the profile, which becomes a new generation; the controller applies it like any other edit. \
If GitOps applies the profile, roll back in Git: otherwise the next sync reverts this.

Exit codes: 0 rolled back, or nothing to do, 1 this version of Palisade rejects the revision, 2 could not run.";

/// The field manager of the change.
const MANAGER: &str = "palisade-rollback";

/// The arguments of `palisade rollback`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RollbackArgs {
    /// Name of a ToolSecurityProfile in the cluster.
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    /// Revision to restore, as listed by palisade history. The default is the newest revision that differs from the
    /// current spec.
    #[arg(long, value_name = "REVISION")]
    pub to: Option<i64>,
    /// Show the changes without applying them.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Runs the command.
pub fn run(args: &RollbackArgs) -> Result<(), Failure> {
    args.cluster.ask(async |client| roll_back(&client, args).await)
}

async fn roll_back(client: &Client, args: &RollbackArgs) -> Result<(), Failure> {
    let history = History::read(client, &args.profile).await?;
    let chosen = target(&history, args.to)?;
    let (name, number) = (history.name(), chosen.revision.generation);
    if chosen.revision.spec == history.profile.spec {
        return output::print(&format!("profile {name} unchanged: its spec is equal to revision {number}\n"));
    }
    accepted(name, chosen)?;
    let mut profile = history.profile.clone();
    profile.spec = chosen.revision.spec.clone();
    profile.status = None;
    // The request has the resource version that was read: a concurrent edit is a conflict.
    let parameters = PostParams { dry_run: args.dry_run, field_manager: Some(MANAGER.to_owned()) };
    let api = Api::<ToolSecurityProfile>::all(client.clone());
    api.replace(name, &parameters, &profile).await.map_err(|error| match &error {
        kube::Error::Api(status) if status.is_conflict() => could_not_run(format!(
            "profile {name} was edited at the same time: no change was made; run the command again"
        )),
        error => failed("cannot write the profile", error),
    })?;
    let [before, after] = [&history.profile.spec, &profile.spec].map(revisions::json);
    let change = diff::between((name, &before), (&format!("{name}@{number}"), &after), CONTEXT)?;
    let what = if args.dry_run { "would be rolled back" } else { "rolled back" };
    output::print(&format!("{change}profile {name} {what} to revision {number}\n"))?;
    if !args.dry_run {
        report::note(&format!("note: wait until it is active: kubectl wait --for=condition=Ready tsp/{name}"));
    }
    Ok(())
}

/// The revision to restore.
fn target(history: &History, to: Option<i64>) -> Result<&Recorded, Failure> {
    if let Some(number) = to {
        return history.get(number);
    }
    let other = history.revisions.iter().find(|recorded| recorded.revision.spec != history.profile.spec);
    other.ok_or_else(|| {
        could_not_run(format!("no revision of profile {} differs from its current spec", history.name()))
    })
}

/// Checks the revision before the write: an older version of Palisade may have recorded it.
fn accepted(name: &str, recorded: &Recorded) -> Result<(), Failure> {
    let rejected = |why: String| {
        let message = format!("revision {} of profile {name} is rejected: {why}", recorded.revision.generation);
        Failure::Wrong(vec![Problem::new(message).help("no change was made")])
    };
    let profile = recorded.revision.profile(name);
    let checked = guarded(|| {
        let compiled = palisade_compiler::compile(&profile)
            .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        palisade_gate::check(compiled).map(drop).map_err(|why| why.to_string())
    });
    checked.map_err(|problem| Failure::Wrong(vec![problem]))?.map_err(rejected)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kube::client::Body;
    use palisade_api::revision::Revision;
    use serde_json::json;

    use super::*;

    fn profile(generation: i64, port: i64) -> ToolSecurityProfile {
        let spec = json!({
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "host": {"ports": [{"min": port, "max": port}]},
        });
        let mut profile = ToolSecurityProfile::new("p", serde_json::from_value(spec).unwrap());
        (profile.metadata.uid, profile.metadata.generation) = (Some("u".to_owned()), Some(generation));
        profile
    }

    /// What a rollback of a profile with port 20 to the revision with this port says, and what it sent to be written,
    /// where the API server answers a write with a conflict.
    fn conflicting(recorded: &ToolSecurityProfile) -> (String, Vec<(String, serde_json::Value)>) {
        let mut now = profile(2, 20);
        now.metadata.resource_version = Some("77".to_owned());
        let revisions = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevisionList", "metadata": {},
            "items": [Revision::of(recorded).object("p", None)],
        });
        let conflict = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409, "message": "x",
        });
        let written = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&written);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (now, revisions, conflict, log) = (json!(now), revisions.clone(), conflict.clone(), Arc::clone(&log));
            async move {
                let (parts, body) = request.into_parts();
                let (code, answer) = if parts.method == http::Method::PUT {
                    let sent = serde_json::from_slice(&body.collect_bytes().await?)?;
                    log.lock().unwrap().push((parts.uri.to_string(), sent));
                    (409, conflict)
                } else if parts.uri.path().ends_with("/controllerrevisions") {
                    (200, revisions)
                } else {
                    (200, now)
                };
                let answer = Body::from(serde_json::to_vec(&answer)?);
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(http::Response::builder().status(code).body(answer)?)
            }
        });
        let args = RollbackArgs { profile: "p".to_owned(), to: None, dry_run: false, cluster: ClusterArgs::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(async { roll_back(&Client::new(service, "default"), &args).await });
        let Err(Failure::CouldNotRun(problems) | Failure::Wrong(problems)) = result else { panic!("it was written") };
        let sent = written.lock().unwrap().clone();
        (problems[0].to_string(), sent)
    }

    #[test]
    fn edit_at_the_same_time_is_reported_as_a_conflict() {
        let (said, sent) = conflicting(&profile(1, 10));
        assert_eq!(said, "profile p was edited at the same time: no change was made; run the command again");
        let [(_, sent)] = sent.as_slice() else { panic!("{sent:?}") };
        assert_eq!(sent["metadata"]["resourceVersion"], json!("77"));
        assert_eq!(sent["spec"]["host"]["ports"], json!([{"min": 10, "max": 10}]));
    }

    #[test]
    fn revision_that_is_rejected_now_is_not_written() {
        let mut recorded = profile(1, 10);
        recorded.spec.namespace_selector.match_labels = Some([("a b".to_owned(), "c".to_owned())].into());
        let (said, sent) = conflicting(&recorded);
        assert!(said.starts_with("revision 1 of profile p is rejected: spec.namespaceSelector"), "{said}");
        assert!(sent.is_empty(), "{sent:?}");
    }

    /// The number of the revision that is chosen, of these generations with these ports.
    fn chosen(now: &ToolSecurityProfile, recorded: &[(i64, i64)], to: Option<i64>) -> Option<i64> {
        let objects =
            recorded.iter().map(|(generation, port)| Revision::of(&profile(*generation, *port)).object("p", None));
        let history = History::of(now.clone(), objects.collect());
        target(&history, to).ok().map(|recorded| recorded.revision.generation)
    }

    #[test]
    fn newest_revision_with_another_spec_is_the_default() {
        let recorded = [(1, 10), (2, 20), (5, 50)];
        assert_eq!(chosen(&profile(5, 50), &recorded, None), Some(2));
        // What is not accepted is not recorded: it goes back to what is in force.
        assert_eq!(chosen(&profile(6, 60), &recorded, None), Some(5));
        assert_eq!(chosen(&profile(5, 50), &recorded, Some(1)), Some(1));
        assert_eq!(chosen(&profile(5, 50), &recorded, Some(3)), None);
        assert_eq!(chosen(&profile(1, 10), &recorded[..1], None), None);
    }
}

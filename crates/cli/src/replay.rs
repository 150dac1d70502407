//! `palisade replay`: evaluates requests of audit logs against other profiles.

use std::path::PathBuf;

use k8s_openapi::jiff::Timestamp;
use palisade_admission::requests;
use palisade_api::names;
use palisade_cel::Minor;
use palisade_kube_json::{
    existing::anew,
    json::set,
    owners::{Owners, Reference},
};
use serde_json::{Value as Json, json};

use crate::{
    admission_changes::{AdmissionChanges, Place},
    changes_output::{self, About, ChangesArgs},
    cluster::could_not_run,
    dump_files::Dump,
    evaluation_inputs::SourceArgs,
    evaluator::{self, ProfileEvaluator, Violation},
    events::{Action, Event, Finding, Findings, User},
    files, live, log,
    namespaces::{self, Tenant},
    object_comparison::{NOT_KNOWN, NOT_TAKEN},
    options::{self, INPUT},
    output,
    parallel::{parallel, threads},
    parameters::ParamArgs,
    profiles,
    progress::Progress,
    report::{Failure, Problem},
};

const EXAMPLES: &str = "\
Examples:
  palisade replay -p profile.yaml --dump cluster/ /var/log/kubernetes/audit
  palisade replay -p profile.yaml --live audit.log --since 2026-11-24T00:00:00Z
  palisade replay -p profile.yaml --namespaces namespaces.yaml audit-2026-11-23.log.gz

Requires an audit policy at level Request for pods and workloads. These requests have no verdict, and are counted \
with the reason: requests without an object in the log; updates and patches, because the log does not have the \
previous object, except updates that pass regardless of it and objects that server-side apply created; dry runs; and \
subresources.

Exit codes: 0 no request would newly be denied, 1 a request would newly be denied, 2 could not run, or a log has an \
invalid audit event, or no request could be evaluated.";

/// The reason why most updates have no verdict.
const UPDATE: &str = "it is an update, and the previous object is not in the log";
/// The number of requests that are evaluated in parallel.
const BATCH: usize = 512;

/// The arguments of `palisade replay`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("live", |arg| arg.help("Use the namespaces and exceptions of the cluster. Requires permission to list them")),
    mut_arg("dump", |arg| arg.help("Use the namespaces and exceptions in a directory from palisade dump")),
    mut_arg("namespaces", |arg| arg.help("File with Namespaces and ToolSecurityExceptions")),
)]
pub struct ReplayArgs {
    /// Audit logs in JSON, plain or compressed with gzip: files, directories, or - for standard input.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub paths: Vec<PathBuf>,
    /// File or directory with the profiles to replay against. Repeatable.
    #[arg(
        short = 'p',
        long = "profile",
        value_name = "FILE|DIR",
        required = true,
        help_heading = INPUT
    )]
    pub profiles: Vec<String>,
    #[command(flatten)]
    pub params: ParamArgs,
    /// Only requests in this namespace.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Only requests from this time on, for example 2026-11-24T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub since: Option<Timestamp>,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub shown: ChangesArgs,
}

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let stdin = args.paths.iter().filter(|path| path.as_os_str() == "-").count()
        + args.profiles.iter().chain(&args.source.namespaces).filter(|path| *path == "-").count();
    if stdin > 1 {
        return Err(could_not_run("only one FILE can be standard input"));
    }
    let accepted = profiles::all(&files::sources(&args.profiles)?).map_err(Failure::fatal)?;
    let (tenants, version) = inputs(&args.source)?;
    let version = args.source.kube_version.unwrap_or(version);
    let accepted = profiles::on(args.params.set(accepted)?, version).map_err(Failure::fatal)?;
    let judge = ProfileEvaluator::new(&accepted, &tenants, version, Timestamp::now())?;
    let mut replay = Replay {
        judge: &judge,
        profiles: accepted.iter().map(|one| one.checked.profile.clone()).collect(),
        tenants: &tenants,
        owners: Owners::default(),
        batch: Vec::new(),
        changes: AdmissionChanges::default(),
    };
    let (mut events, mut span) = (0, Span::default());
    let mut progress = Progress::new();
    let mut problems = log::each(&args.paths, |event| {
        events += 1;
        if events % 1000 == 0 {
            progress.show("audit events", events, None);
        }
        let at = event.request_received_timestamp;
        let early = args.since.is_some_and(|since| at.is_none_or(|at| at < since));
        let elsewhere = args.namespace.as_ref().is_some_and(|name| *name != event.object_ref.namespace);
        if !early && !elsewhere {
            span.add(at);
            replay.add(event);
        }
    })?;
    replay.flush();
    drop(progress);
    let changes = replay.changes;
    let names: Vec<_> = accepted.iter().map(|one| one.checked.profile.as_str()).collect();
    let fields = json!({
        "profiles": names, "kubeVersion": version.to_string(), "events": events, "from": span.from, "to": span.to,
    });
    let about = About {
        what: "requests",
        head: format!("{events} events{span} against profile {}", names.join(", ")),
        json: fields.as_object().cloned().unwrap_or_default(),
        ..About::default()
    };
    output::print(&changes_output::text(&args.shown, &about, Some(&changes)))?;
    if changes.judged == 0 && problems.is_empty() {
        problems.push(Problem::new(
            "no request could be evaluated: the log has no request for objects that the profiles evaluate, with the object",
        ));
    }
    args.source.unevaluated.settle(problems)?;
    if changes.denies() { Err(Failure::Wrong(Vec::new())) } else { Ok(()) }
}

/// The namespaces, and the version of the API server.
fn inputs(args: &SourceArgs) -> Result<(Vec<Tenant>, Minor), Failure> {
    if let Some(directory) = &args.dump {
        let dump = Dump::open(directory)?;
        return Ok((dump.tenants, dump.version));
    }
    if let Some(path) = &args.namespaces {
        return Ok((namespaces::read(&files::read(path)?)?, Minor::DEFAULT));
    }
    if !args.live {
        let problem = Problem::new("namespaces are required, because profiles select them by their labels");
        return Err(Failure::CouldNotRun(vec![
            problem.help("specify them with --dump DIR, --namespaces FILE or --live"),
        ]));
    }
    args.cluster.ask(async |client| {
        live::permitted(&client, [live::NAMESPACES, live::EXCEPTIONS]).await?;
        Ok((live::all_tenants(&client, &mut Progress::new()).await?, live::version(&client).await?))
    })
}

/// The first and the last time of requests.
#[derive(Debug, Default)]
struct Span {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Span {
    fn add(&mut self, at: Option<Timestamp>) {
        self.from = [self.from, at].into_iter().flatten().min();
        self.to = self.to.max(at);
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.from, self.to) {
            (Some(from), Some(to)) => write!(f, " from {from} to {to}"),
            _ => Ok(()),
        }
    }
}

/// Requests that are replayed.
struct Replay<'a> {
    judge: &'a ProfileEvaluator,
    profiles: Vec<String>,
    tenants: &'a [Tenant],
    owners: Owners,
    batch: Vec<AuditedRequest>,
    changes: AdmissionChanges,
}

/// A request that can be evaluated.
struct AuditedRequest {
    object: Json,
    user: requests::User,
    /// The recorded answer of the profiles.
    before: Vec<Violation>,
    place: Place,
    /// Whether it replaces an object, which is unknown: then only a request that passes regardless of it has a verdict.
    replaces: bool,
}

impl Replay<'_> {
    /// Takes a request of the log.
    fn add(&mut self, event: Event) {
        match self.asked(event) {
            Ok(Some(asked)) => {
                self.batch.push(asked);
                if self.batch.len() >= BATCH {
                    self.flush();
                }
            }
            Ok(None) => {}
            Err((why, which)) => self.changes.unknown(&why, || which),
        }
    }

    /// The part of a request that can be evaluated; none if profiles do not apply to it. An error is the reason why
    /// there is no verdict, and the request.
    fn asked(&mut self, event: Event) -> Result<Option<AuditedRequest>, (String, String)> {
        let of = &event.object_ref;
        let own = event.request_object["kind"].as_str().unwrap_or_default();
        let resource = [of.api_group.as_str(), &of.api_version, &of.resource];
        let Some(kind) = self.judge.clusters.kind_of(resource, own) else { return Ok(None) };
        let [group, version, _] = resource;
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let asks = matches!(event.verb.as_str(), "create" | "update" | "patch");
        // The controller sends its probes there, as dry runs.
        if !asks || of.namespace == names::PROBE_NAMESPACE || !is_judged(&kind, &of.subresource) {
            return Ok(None);
        }
        let which = format!(
            "{} {} at {}",
            of.namespace,
            event.workload(),
            event.request_received_timestamp.unwrap_or_default()
        );
        let no = |why: String| Err((why, which.clone()));
        if event.is_dry_run() {
            return no("it is a dry run".to_owned());
        }
        if !of.subresource.is_empty() {
            return no(format!(
                "it is a request to {}/{}, and the object is not in the log",
                of.resource, of.subresource
            ));
        }
        if !self.tenants.iter().any(|tenant| tenant.name == of.namespace) {
            return no("its namespace is unknown".to_owned());
        }
        let Findings { of_profiles: findings, of_others: others, .. } = event.findings();
        let denied = findings.iter().find(|one| one.action == Action::Denied);
        if others || denied.is_some_and(|one| !self.profiles.contains(&one.profile)) {
            return no("another policy or profile denied it".to_owned());
        }
        let code = event.response_status.code;
        if denied.is_none() && !(200..300).contains(&code) {
            return no(format!("it failed with status {code} for another reason than a profile"));
        }
        // The log has the object that server-side apply created.
        if event.verb == "patch" && code != 201 {
            return no("it is a patch, and the object is not in the log".to_owned());
        }
        if event.request_object.is_null() {
            return no(format!("the object is not in the log: the audit level is {}", or_unknown(&event.level)));
        }
        let replaces = event.verb == "update";
        // They are not created with a pod. Each update of them is evaluated.
        let ephemeral = event.request_object["spec"]["ephemeralContainers"].as_array();
        // The answer may depend on the previous object, for any check.
        let is_other = kind != "Pod" && evaluator::workload(&api_version, &kind).is_none();
        if replaces && (is_other || ephemeral.is_some_and(|containers| !containers.is_empty())) {
            return no(UPDATE.to_owned());
        }
        let mut object = event.request_object.clone();
        set(&mut object, &["apiVersion"], api_version);
        set(&mut object, &["kind"], kind.as_str());
        set(&mut object, &["metadata", "namespace"], of.namespace.as_str());
        if replaces {
            object = anew(object);
        }
        let place = self.place(&kind, &of.namespace, &event);
        let before =
            findings.into_iter().filter(|one| self.profiles.contains(&one.profile)).flat_map(violations).collect();
        Ok(Some(AuditedRequest {
            object,
            user: user(event.impersonated_user.unwrap_or(event.user)),
            before,
            place,
            replaces,
        }))
    }

    /// The owner of the object of a request. Objects in a log have no uid: their names are used instead.
    fn place(&mut self, kind: &str, namespace: &str, event: &Event) -> Place {
        let mut object = json!({"metadata": event.request_object["metadata"]});
        let address = |kind: &Json, name: &Json| {
            format!("{namespace}/{}/{}", kind.as_str().unwrap_or_default(), name.as_str().unwrap_or_default())
        };
        let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Json::as_array_mut);
        for owner in owners.into_iter().flatten() {
            let address = address(&owner["kind"], &owner["name"]);
            set(owner, &["uid"], address);
        }
        let metadata = &object["metadata"];
        let named = [&metadata["name"], &json!(event.object_ref.name), &metadata["generateName"]];
        let name = named.into_iter().filter_map(Json::as_str).find(|name| !name.is_empty());
        let itself = Reference { name: name.unwrap_or("(not named)").to_owned(), ..Reference::to(kind, &object) };
        let owner = Reference::to_controller(&object);
        if kind != "Pod" && owner.is_some() {
            set(&mut object, &["metadata", "uid"], address(&json!(kind), &json!(itself.name)));
            self.owners.learn(&object);
        }
        Place { namespace: namespace.to_owned(), workload: self.owners.workload(&itself, owner.as_ref()).to_string() }
    }

    /// Evaluates the remaining requests.
    fn flush(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let verdicts = parallel(threads(), &batch, |one| {
            let (object, user) = (&one.object, one.user.clone());
            // An update has no verdict unless it passes regardless of the previous object.
            if one.replaces {
                Ok(self.judge.surely_passes(object, user)?.then(Vec::new))
            } else {
                self.judge.answer(object, user).map(Some)
            }
        });
        for (asked, verdict) in batch.into_iter().zip(verdicts) {
            let which = |why: &str| format!("{} {}: {why}", asked.place.namespace, asked.place.workload);
            match verdict {
                Err(why) => self.changes.unknown(NOT_KNOWN, || which(&why)),
                Ok(None) => self.changes.unknown(UPDATE, || which("it passes only if its spec is unchanged")),
                Ok(Some(after)) => {
                    if let Some(rejected) = after.iter().find(|one| one.profile.is_empty()) {
                        self.changes.unknown(NOT_TAKEN, || which(&rejected.message));
                    } else {
                        self.changes.add(asked.place, &asked.before, &after);
                    }
                }
            }
        }
    }
}

/// Whether profiles evaluate requests to a subresource.
fn is_judged(kind: &str, subresource: &str) -> bool {
    subresource.is_empty() || kind == "Pod" && matches!(subresource, "ephemeralcontainers" | "resize")
}

fn or_unknown(level: &str) -> &str {
    if level.is_empty() { "unknown" } else { level }
}

/// The recorded answer as violations.
fn violations(finding: Finding) -> Vec<Violation> {
    let Finding { profile, action, checks } = finding;
    let denied = action == Action::Denied;
    let of = |check| Violation { profile: profile.clone(), check, message: "recorded in the log".to_owned(), denied };
    checks.into_iter().map(of).collect()
}

fn user(user: User) -> requests::User {
    requests::User { name: user.username, uid: user.uid, groups: user.groups, extra: user.extra }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_profiles_judge_is_replayed() {
        assert!(is_judged("Pod", "resize") && is_judged("Pod", "") && is_judged("Job", ""));
        assert!(!is_judged("Pod", "binding") && !is_judged("Deployment", "scale"));
    }
}

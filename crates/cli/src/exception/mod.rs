//! `palisade exception`: lists and approves the exception requests of tenants.
//!
//! An approval has the uid and the generation that were shown. It is written with the resource version that was read,
//! so the API server rejects it if the object has changed.

mod args;
mod shown;

use std::io::{self, BufRead as _, IsTerminal as _};

use k8s_openapi::{api::authentication::v1::SelfSubjectReview, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use palisade_api::{Approval, ApprovalState, ToolSecurityException};
use palisade_runtime::lists;
use serde_json::{Value as Json, json};

pub use self::args::ExceptionCommand;
use self::args::{ApproveArgs, ListArgs, NamespaceArgs, OneArgs};
use crate::{
    cluster::{could_not_run, failed},
    output::{self, Format, FormatArgs},
    report::{self, Failure, Problem},
};

/// The field manager of changes.
const MANAGER: &str = "palisade-exception";
/// How often a write is tried if another part of the object than the spec has changed.
const ATTEMPTS: usize = 5;

/// Runs the command.
pub fn run(command: &ExceptionCommand) -> Result<(), Failure> {
    match command {
        ExceptionCommand::List(args) => args.of.cluster.ask(async |client| list(&client, args).await),
        ExceptionCommand::Show(args) => args.of.cluster.ask(async |client| show(&client, args).await),
        ExceptionCommand::Approve(args) => args.one.of.cluster.ask(async |client| approve(&client, args).await),
        ExceptionCommand::Revoke(args) => args.of.cluster.ask(async |client| revoke(&client, args).await),
    }
}

/// The exceptions of a namespace.
struct Place {
    api: Api<ToolSecurityException>,
    namespace: String,
}

impl Place {
    fn of(client: &Client, args: &NamespaceArgs) -> Self {
        let namespace = args.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        Self { api: Api::namespaced(client.clone(), &namespace), namespace }
    }

    async fn get(&self, name: &str) -> Result<ToolSecurityException, Failure> {
        self.api.get(name).await.map_err(|error| match &error {
            kube::Error::Api(status) if status.is_not_found() && status.message.contains(name) => {
                let problem = Problem::new(format!("ToolSecurityException {}/{name} not found", self.namespace));
                Failure::CouldNotRun(vec![problem.help("list all with palisade exception list --all-namespaces")])
            }
            error => refused("cannot read the exception", error),
        })
    }

    /// Writes or removes the approval of the object that was read. If another part has changed, such as the
    /// controller's part of the status, it tries again.
    async fn write(&self, shown: &ToolSecurityException, approval: &Json) -> Result<ToolSecurityException, Failure> {
        let name = shown.metadata.name.as_deref().unwrap_or_default();
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let mut read = shown.clone();
        for _ in 0..ATTEMPTS {
            let meta = &read.metadata;
            let patch = json!({
                "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
                "status": {"approval": approval},
            });
            match self.api.patch_status(name, &parameters, &Patch::Merge(&patch)).await {
                Ok(written) => return Ok(written),
                Err(kube::Error::Api(status)) if status.is_conflict() => read = self.get(name).await?,
                Err(error) => return Err(refused("cannot write the approval", &error)),
            }
            let same = |one: &ToolSecurityException| (one.metadata.uid.clone(), one.metadata.generation);
            if same(&read) != same(shown) {
                return Err(changed(name));
            }
        }
        Err(could_not_run(format!(
            "exception {name} was modified during each attempt; no change was made: run the command again"
        )))
    }
}

fn changed(name: &str) -> Failure {
    let problem = Problem::new(format!("exception {name} was modified at the same time; no change was made"));
    Failure::CouldNotRun(vec![problem.help("run the command again to see the current request")])
}

/// The failure of a request, with the role that is required.
fn refused(what: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            let problem = Problem::new(format!("{what}: {}", status.message));
            Failure::CouldNotRun(vec![problem.help(
                "approving requires the ClusterRole palisade-exception-approver by a ClusterRoleBinding; a \
                 RoleBinding is not enough",
            )])
        }
        kube::Error::Api(status) if status.is_not_found() => {
            let problem = Problem::new(format!("{what}: {}", status.message));
            Failure::CouldNotRun(vec![
                problem.help(
                    "check that the CustomResourceDefinition toolsecurityexceptions.toolsecurity.dev is installed",
                ),
            ])
        }
        error => failed(what, error),
    }
}

async fn list(client: &Client, args: &ListArgs) -> Result<(), Failure> {
    let place = Place::of(client, &args.of);
    let api = if args.all_namespaces { Api::all(client.clone()) } else { place.api };
    let found = lists::all(&api, &ListParams::default()).await;
    let mut found = found.map_err(|error| refused("cannot list exceptions", &error))?;
    found.retain(|one| !args.pending || shown::is_pending(one));
    let human = || shown::table(&found, args.all_namespaces);
    output::print(&args.format.text(human, || json!({"exceptions": found}))?)
}

async fn show(client: &Client, args: &OneArgs) -> Result<(), Failure> {
    let found = Place::of(client, &args.of).get(&args.name).await?;
    output::print(&args.format.text(|| shown::details(&found, Timestamp::now()), || json!(found))?)
}

/// The last line of a command that writes.
fn done(format: FormatArgs, object: &ToolSecurityException, text: &str) -> Result<(), Failure> {
    let human = || format!("exception {} {text}\n", object.metadata.name.as_deref().unwrap_or_default());
    output::print(&format.text(human, || json!(object))?)
}

async fn approve(client: &Client, args: &ApproveArgs) -> Result<(), Failure> {
    let OneArgs { name, of, format } = &args.one;
    let place = Place::of(client, of);
    let found = place.get(name).await?;
    let details = shown::details(&found, Timestamp::now());
    if format.output == Format::Human {
        output::print(&details)?;
    } else {
        report::note(&details);
    }
    let generation = found.metadata.generation.unwrap_or_default();
    if let Some(wanted) = args.generation.filter(|wanted| *wanted != generation) {
        let problem = Problem::new(format!("exception {name} is at generation {generation}, not {wanted}"));
        return Err(Failure::CouldNotRun(vec![
            problem.help("no approval was written, because the request has changed"),
        ]));
    }
    if found.is_approved() {
        return done(*format, &found, "unchanged: already approved");
    }
    if !args.yes && !asked()? {
        return Err(could_not_run("no approval was written"));
    }
    let uid = found.metadata.uid.clone().unwrap_or_default();
    let approval = json!(Approval { uid, generation, by: user(client).await });
    let written = place.write(&found, &approval).await?;
    if !written.is_approved() {
        return Err(changed(name));
    }
    done(*format, &written, "approved")
}

/// Asks for confirmation.
///
/// # Errors
/// There is no terminal.
fn asked() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let problem = Problem::new("no approval was written: confirmation requires a terminal");
        return Err(Failure::CouldNotRun(vec![problem.help("approve without confirmation with --yes")]));
    }
    report::say("Approve this? [y/N] ");
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| could_not_run(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The user of the connection. The approval can omit it.
async fn user(client: &Client) -> Option<String> {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    review.status?.user_info?.username
}

async fn revoke(client: &Client, args: &OneArgs) -> Result<(), Failure> {
    let place = Place::of(client, &args.of);
    let found = place.get(&args.name).await?;
    if found.approval_state() == ApprovalState::Missing {
        return done(args.format, &found, "unchanged: not approved");
    }
    let written = place.write(&found, &Json::Null).await?;
    done(args.format, &written, "revoked")
}

#[cfg(test)]
mod tests;

//! `palisade exception`: what tenants ask for, and its approval.
//!
//! An approval names the uid and the generation that were shown. The API server takes it only if nothing has changed
//! since: the version that was read goes with it.

mod args;
mod shown;

use std::io::{self, BufRead as _, IsTerminal as _};

use k8s_openapi::{api::authentication::v1::SelfSubjectReview, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use palisade_api::{Approval, ApprovalState, ToolSecurityException};
use palisade_process::lists;
use serde_json::{Value as Json, json};

pub use self::args::ExceptionCommand;
use self::args::{ApproveArgs, ListArgs, ListFormat, NamespaceArgs, OneArgs, OneFormat};
use crate::{
    cluster::{could_not_run, failed},
    output,
    report::{self, Failure, Problem},
};

/// Who the API server says wrote it.
const MANAGER: &str = "palisade-exception";
/// How often it is written again, if something else than the spec has changed.
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
                let problem = Problem::new(format!("there is no ToolSecurityException {}/{name}", self.namespace));
                Failure::CouldNotRun(vec![problem.help("palisade exception list --all-namespaces lists all of them")])
            }
            error => refused("cannot read the exception", error),
        })
    }

    /// Writes the approval of what was read, or takes it away. If something else has changed meanwhile, as the
    /// controller's part of the status does, it tries again.
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
        Err(could_not_run(format!("exception {name} changes all the time; nothing was written: run it again")))
    }
}

fn changed(name: &str) -> Failure {
    let problem = Problem::new(format!("exception {name} was changed at the same time; nothing was written"));
    Failure::CouldNotRun(vec![problem.help("run it again to see what it asks for now")])
}

/// The failure of a request, and which role helps.
fn refused(what: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            let problem = Problem::new(format!("{what}: {}", status.message));
            Failure::CouldNotRun(vec![problem.help(
                "whoever approves needs the role palisade-exception-approver by a ClusterRoleBinding; a RoleBinding is not enough",
            )])
        }
        kube::Error::Api(status) if status.is_not_found() => {
            let problem = Problem::new(format!("{what}: {}", status.message));
            Failure::CouldNotRun(vec![
                problem.help("the CustomResourceDefinition toolsecurityexceptions.toolsecurity.dev may be missing"),
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
    output::print(&match args.output {
        ListFormat::Json => format!("{:#}\n", json!({"exceptions": found})),
        ListFormat::Table => shown::table(&found, args.all_namespaces),
    })
}

async fn show(client: &Client, args: &OneArgs) -> Result<(), Failure> {
    let found = Place::of(client, &args.of).get(&args.name).await?;
    output::print(&match args.output {
        OneFormat::Json => format!("{:#}\n", json!(found)),
        OneFormat::Text => shown::details(&found, Timestamp::now()),
    })
}

/// What a command that writes ends with.
fn done(format: OneFormat, object: &ToolSecurityException, text: &str) -> Result<(), Failure> {
    output::print(&match format {
        OneFormat::Json => format!("{:#}\n", json!(object)),
        OneFormat::Text => format!("exception {} {text}\n", object.metadata.name.as_deref().unwrap_or_default()),
    })
}

async fn approve(client: &Client, args: &ApproveArgs) -> Result<(), Failure> {
    let OneArgs { name, of, output } = &args.one;
    let place = Place::of(client, of);
    let found = place.get(name).await?;
    let details = shown::details(&found, Timestamp::now());
    if *output == OneFormat::Text {
        output::print(&details)?;
    } else {
        report::note(&details);
    }
    let generation = found.metadata.generation.unwrap_or_default();
    if let Some(wanted) = args.generation.filter(|wanted| *wanted != generation) {
        let problem = Problem::new(format!("exception {name} is at generation {generation}, not {wanted}"));
        return Err(Failure::CouldNotRun(vec![problem.help("nothing was approved; it asks for something else now")]));
    }
    if found.is_approved() {
        return done(*output, &found, "unchanged: it is approved already");
    }
    if !args.yes && !asked()? {
        return Err(could_not_run("nothing was approved"));
    }
    let uid = found.metadata.uid.clone().unwrap_or_default();
    let approval = json!(Approval { uid, generation, by: user(client).await });
    let written = place.write(&found, &approval).await?;
    if !written.is_approved() {
        return Err(changed(name));
    }
    done(*output, &written, "approved")
}

/// Asks whether to approve.
///
/// # Errors
/// There is nobody to ask.
fn asked() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        let problem = Problem::new("nothing was approved: there is no terminal to ask on");
        return Err(Failure::CouldNotRun(vec![problem.help("--yes approves what is shown without a question")]));
    }
    report::say("Approve this? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| could_not_run(format!("no answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Who is asking the API server. An approval need not say it.
async fn user(client: &Client) -> Option<String> {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    review.status?.user_info?.username
}

async fn revoke(client: &Client, args: &OneArgs) -> Result<(), Failure> {
    let place = Place::of(client, &args.of);
    let found = place.get(&args.name).await?;
    if found.approval_state() == ApprovalState::Missing {
        return done(args.output, &found, "unchanged: it is not approved");
    }
    let written = place.write(&found, &Json::Null).await?;
    done(args.output, &written, "revoked")
}

#[cfg(test)]
mod tests;

//! `palisade render`: prints the objects that the controller applies.

mod args;
mod fixed;
mod pods;

use k8s_openapi::jiff::Timestamp;
use palisade_compiler::ChangedBy;
use serde_json::{Value as Json, json};

pub use args::RenderArgs;
use args::RenderFormat;

use crate::{
    files, namespaces,
    output::{self, could_not_print, yaml},
    profiles,
    report::{self, Failure, Problem},
};

/// Runs the command.
pub fn run(args: &RenderArgs) -> Result<(), Failure> {
    let inputs = [Some(&args.profile), args.namespaces.as_ref(), args.pod.as_ref()];
    if inputs.into_iter().flatten().filter(|path| *path == "-").count() > 1 {
        let message = "only one of PROFILE, --namespaces and --pod can be standard input";
        return Err(Failure::CouldNotRun(vec![Problem::new(message)]));
    }
    let sources = files::sources(std::slice::from_ref(&args.profile))?;
    let accepted = profiles::on(args.params.set(profiles::all(&sources)?)?, args.kube_version)?;
    let namespaces = match &args.namespaces {
        Some(path) => namespaces::read(&files::read(path)?)?,
        None => Vec::new(),
    };
    profiles::warn(&accepted);
    if let Some(pod) = &args.pod {
        return pods::print(pod, args, &accepted, &namespaces);
    }
    if args.fixed {
        return print(&fixed::objects(&sources, &accepted, args.kube_version)?, args.output);
    }
    profiles::tell(&accepted, &namespaces);
    let objects = profiles::objects(&accepted, &namespaces, args.kube_version, Timestamp::now());
    let objects = objects.map_err(|error| could_not_print(&error))?;
    for one in &accepted {
        let needs = match profiles::changed_by(one, args.kube_version) {
            Some((_, ChangedBy::Webhook)) => "require the webhook",
            Some((_, ChangedBy::Nobody)) => "require an API server with MutatingAdmissionPolicy",
            _ => continue,
        };
        report::note(&format!("note: the defaults for pods in profile {} {needs}", one.checked.profile));
    }
    for one in &accepted {
        for (_, pair) in one.checked.bundle.pairs().filter(|(_, pair)| !pair.has_fast_path()) {
            let name = pair.policy.metadata.name.as_deref().unwrap_or_default();
            report::note(&format!(
                "note: policy {name} evaluates every request in full: no fast-path match condition fits into the API \
                 server's \
                 budget"
            ));
        }
    }
    print(&objects, args.output)
}

fn print(objects: &[Json], format: RenderFormat) -> Result<(), Failure> {
    let text = match format {
        RenderFormat::Yaml => yaml(objects).map_err(|error| could_not_print(&error))?,
        RenderFormat::Json => format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": objects})),
        RenderFormat::Diff => {
            return Err(Failure::CouldNotRun(vec![Problem::new("-o diff requires --pod FILE")]));
        }
    };
    output::print(&text)
}

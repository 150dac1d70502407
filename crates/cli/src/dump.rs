//! `palisade dump`: exports the cluster objects that offline evaluation needs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use kube::Client;
use palisade_kube_json::existing::is_current;
use serde_json::Value as Json;

use crate::{
    cluster::{ClusterArgs, could_not_run, failed},
    dump_files::{self, ListFile, OBJECTS, could_not_write},
    live::{self, EXCEPTIONS, Kind, NAMESPACES, PROFILES},
    object_kinds::ObjectKinds,
    output, profiles,
    progress::Progress,
    report::{Failure, Problem},
};

const EXAMPLES: &str = "\
Examples:
  palisade dump cluster/
  palisade diff --dump cluster/ profile.yaml
  palisade replay -p profile.yaml --dump cluster/ audit.log

Exports profiles, exceptions, namespaces, pods, workloads and other objects that the profiles evaluate. Secrets are \
never exported. Environment variables of pods that are set in plain text are in the dump. The ClusterRole palisade-reader grants the required permissions.

Exit codes: 0 written, 2 could not run.";

/// The arguments of `palisade dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DumpArgs {
    /// Directory to write to. It must be new or empty.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Runs the command.
pub fn run(args: &DumpArgs) -> Result<(), Failure> {
    let directory = &args.directory;
    fs::create_dir_all(directory).map_err(|error| could_not_write(directory, &error))?;
    let is_empty = fs::read_dir(directory).map(|mut entries| entries.next().is_none());
    if !is_empty.map_err(|error| could_not_write(directory, &error))? {
        let problem = Problem::new(format!("{}: the directory must be empty", directory.display()));
        let help = "choose a new or empty directory, so that dumps do not mix";
        return Err(Failure::CouldNotRun(vec![problem.help(help)]));
    }
    let counts = args.cluster.ask(async |client| write(&client, directory).await)?;
    let counted: Vec<_> = counts.iter().map(|(resource, count)| format!("{count} {resource}")).collect();
    output::print(&format!("wrote {}: {}\n", directory.display(), counted.join(", ")))
}

/// Writes all files. Returns the number of objects by kind.
async fn write(client: &Client, directory: &Path) -> Result<BTreeMap<String, usize>, Failure> {
    let kinds = [PROFILES, NAMESPACES, EXCEPTIONS];
    let version = client
        .apiserver_version()
        .await
        .map_err(|error| failed("cannot read the version of the API server", &error))?;
    live::permitted(client, kinds.into_iter().chain(live::judged())).await?;
    let (mut counts, mut progress, mut stored) = (BTreeMap::new(), Progress::new(), Vec::new());
    for kind in kinds {
        let mut list = ListFile::create(directory, kind.2)?;
        live::each(client, kind, &mut progress, |objects| {
            *counts.entry(kind.2.to_owned()).or_default() += objects.len();
            if kind == PROFILES {
                stored.extend(objects.iter().filter_map(|object| serde_json::from_value(object.clone()).ok()));
            }
            objects.into_iter().try_for_each(|object| list.add(&lean(object, kind.1)))
        })
        .await?;
        list.end()?;
    }
    // Profiles that are not accepted evaluate nothing.
    let accepted: Vec<_> = stored.into_iter().filter_map(|one| profiles::accept_live(one).ok()).collect();
    let others = live::others(client, &ObjectKinds::of(&accepted)).await?;
    // Secrets stay in the cluster, whatever evaluates them.
    let others = others.iter().filter(|(api_version, _, resource)| (&**api_version, &**resource) != ("v1", "secrets"));
    let others = others.map(|(api_version, kind, resource)| (&**api_version, &**kind, &**resource));
    let kinds = live::judged().map(|(api_version, kind, resource)| -> Kind<'_> { (api_version, kind, resource) });
    for kind in kinds.chain(others) {
        let mut into = ByNamespace { directory: directory.join(OBJECTS), kind, open: None };
        live::each(client, kind, &mut progress, |objects| {
            for object in objects.into_iter().filter(|object| is_needed(kind.1, object)) {
                *counts.entry(kind.2.to_owned()).or_default() += 1;
                into.add(object)?;
            }
            Ok(())
        })
        .await?;
        into.end()?;
    }
    dump_files::write_server(directory, &version.git_version)?;
    Ok(counts)
}

/// Whether an object is evaluated, or is an owner of such objects.
fn is_needed(kind: &str, object: &Json) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    is_current(kind, object) || kind != "Pod" && owners.is_some_and(|owners| !owners.is_empty())
}

/// The object without fields that no evaluation reads, and without those that change often.
fn lean(mut object: Json, kind: &str) -> Json {
    // The status of an exception has its approval.
    if let Some(fields) = object.as_object_mut().filter(|_| kind != EXCEPTIONS.1) {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    object
}

/// The objects of a kind, in a directory for each namespace.
struct ByNamespace<'a> {
    directory: PathBuf,
    kind: Kind<'a>,
    open: Option<(String, ListFile)>,
}

impl ByNamespace<'_> {
    fn add(&mut self, object: Json) -> Result<(), Failure> {
        let object = lean(object, self.kind.1);
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        if self.open.as_ref().is_none_or(|(of, list)| *of != namespace || list.is_large()) {
            if let Some((_, list)) = self.open.take() {
                list.end()?;
            }
            let list = ListFile::create(&self.directory.join(safe(&namespace)?), self.kind.2)?;
            self.open = Some((namespace, list));
        }
        self.open.as_mut().map_or(Ok(()), |(_, list)| list.add(&object))
    }

    fn end(self) -> Result<(), Failure> {
        self.open.map_or(Ok(()), |(_, list)| list.end())
    }
}

/// The name of a namespace as the name of a directory. The server that answers may not be an API server.
fn safe(namespace: &str) -> Result<&str, Failure> {
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !namespace.is_empty() && namespace.chars().all(is_label) {
        Ok(namespace)
    } else {
        Err(could_not_run(format!("invalid namespace name {namespace:?} in the answer of the API server")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_names_of_namespaces_become_directories() {
        assert!(safe("tool-a1").is_ok());
        for odd in ["", "..", "a/b", "A", "a\\b", "a.b"] {
            assert!(safe(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn keeps_owner_objects() {
        let owned = json!({"metadata": {"ownerReferences": [{"kind": "Deployment", "controller": true}]}});
        assert!(is_needed("ReplicaSet", &owned));
        assert!(!is_needed("Pod", &json!({"metadata": owned["metadata"], "status": {"phase": "Failed"}})));
    }
}

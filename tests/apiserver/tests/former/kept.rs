//! The fixtures: the objects that a release has left in an API server, one file for each kind.

use std::{collections::BTreeMap, fs, path::PathBuf};

use palisade_tests::root;
use serde_json::{Value as Json, json};

use super::Result;

/// A kind of object: where the API server serves it, and its name in paths and in etcd.
pub(super) struct Kind {
    /// What objects say that they are.
    pub(super) name: &'static str,
    /// The version with its group.
    pub(super) api_version: &'static str,
    /// The name in paths.
    pub(super) resource: &'static str,
}

const fn kind(name: &'static str, api_version: &'static str, resource: &'static str) -> Kind {
    Kind { name, api_version, resource }
}

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const TOOLSECURITY: &str = "toolsecurity.dev/v1alpha1";

/// What a release leaves: all that it makes, and what it is made for.
pub(super) const KINDS: [Kind; 12] = [
    kind("Namespace", "v1", "namespaces"),
    kind("Pod", "v1", "pods"),
    kind("Deployment", "apps/v1", "deployments"),
    kind("ControllerRevision", "apps/v1", "controllerrevisions"),
    kind("ValidatingAdmissionPolicy", ADMISSION, "validatingadmissionpolicies"),
    kind("ValidatingAdmissionPolicyBinding", ADMISSION, "validatingadmissionpolicybindings"),
    kind("MutatingAdmissionPolicy", ADMISSION, "mutatingadmissionpolicies"),
    kind("MutatingAdmissionPolicyBinding", ADMISSION, "mutatingadmissionpolicybindings"),
    kind("ToolSecurityProfile", TOOLSECURITY, "toolsecurityprofiles"),
    kind("ToolSecurityParams", TOOLSECURITY, "toolsecurityparams"),
    kind("ToolSecurityException", TOOLSECURITY, "toolsecurityexceptions"),
    kind("ToolSecurityReport", TOOLSECURITY, "toolsecurityreports"),
];

impl Kind {
    /// Where all of them are listed.
    pub(super) fn list(&self) -> String {
        let root = if self.api_version == "v1" { "/api" } else { "/apis" };
        format!("{root}/{}/{}", self.api_version, self.resource)
    }
}

fn kind_of(object: &Json) -> Result<&'static Kind> {
    let found = KINDS.iter().find(|one| object["kind"] == one.name && object["apiVersion"] == one.api_version);
    Ok(found.ok_or_else(|| format!("no fixture has this kind: {object}"))?)
}

fn meta<'a>(object: &'a Json, key: &str) -> &'a str {
    object["metadata"][key].as_str().unwrap_or_default()
}

/// Where the API server serves an object.
fn path(object: &Json) -> Result<String> {
    let (kind, namespace, name) = (kind_of(object)?, meta(object, "namespace"), meta(object, "name"));
    let list = kind.list();
    if namespace.is_empty() {
        return Ok(format!("{list}/{name}"));
    }
    let root = list.trim_end_matches(kind.resource);
    Ok(format!("{root}namespaces/{namespace}/{}/{name}", kind.resource))
}

/// Where the API server keeps an object in etcd.
pub(super) fn key(object: &Json) -> Result<String> {
    let kind = kind_of(object)?;
    let group = if kind.api_version == TOOLSECURITY { "toolsecurity.dev/" } else { "" };
    let namespace = match meta(object, "namespace") {
        "" => String::new(),
        some => format!("{some}/"),
    };
    Ok(format!("/registry/{group}{}/{namespace}{}", kind.resource, meta(object, "name")))
}

/// Resource, namespace and name, as the audit log has them; of a namespace, its name is both.
pub(super) fn name(object: &Json) -> String {
    let (resource, name) = (kind_of(object).map(|kind| kind.resource).unwrap_or_default(), meta(object, "name"));
    let namespace = if resource == "namespaces" { name } else { meta(object, "namespace") };
    format!("{resource} {namespace}/{name}")
}

/// What counts of an object: not when it was stored, and nothing that kube-controller-manager says of it.
pub(super) fn essence(object: &Json) -> Json {
    let mut object = object.clone();
    let own = object["apiVersion"] == TOOLSECURITY;
    if let Some(all) = object.as_object_mut() {
        all.retain(|key, _| own || key != "status");
    }
    if let Some(all) = object["metadata"].as_object_mut() {
        all.retain(|key, _| !["resourceVersion", "managedFields"].contains(&key.as_str()));
    }
    object
}

/// Whether an object has all that another has, with the same values.
pub(super) fn has_all_of(object: &Json, other: &Json) -> bool {
    match (object, other) {
        (Json::Object(one), Json::Object(two)) => {
            two.iter().all(|(key, value)| one.get(key).is_some_and(|found| has_all_of(found, value)))
        }
        (Json::Array(one), Json::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| has_all_of(one, two))
        }
        _ => object == other,
    }
}

fn directory() -> PathBuf {
    root().join("tests/apiserver/fixtures")
}

/// The release whose objects are kept: the newest.
pub(super) fn newest() -> Result<String> {
    let number = |name: &String| name.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    let all = fs::read_dir(directory())?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(all.max_by_key(number).ok_or("no fixtures")?)
}

/// The objects of a release, by where the API server serves them.
pub(super) fn kept(release: &str) -> Result<BTreeMap<String, Json>> {
    let mut all = BTreeMap::new();
    for kind in &KINDS {
        let file = directory().join(release).join(format!("{}.yaml", kind.resource));
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let list: Json = serde_saphyr::from_str(&text)?;
        for object in list["items"].as_array().into_iter().flatten() {
            all.insert(path(object)?, object.clone());
        }
    }
    Ok(all)
}

/// Writes the objects of a release, by kind.
pub(super) fn keep(release: &str, objects: &[Json]) -> Result<()> {
    let directory = directory().join(release);
    fs::create_dir_all(&directory)?;
    for kind in &KINDS {
        let items: Vec<_> = objects.iter().filter(|object| object["kind"] == kind.name).collect();
        if items.is_empty() {
            return Err(format!("there is no {}", kind.name).into());
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(directory.join(format!("{}.yaml", kind.resource)), serde_saphyr::to_string(&list)?)?;
    }
    Ok(())
}

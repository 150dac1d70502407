//! `ServiceAccount`: pods run as an account that exists, with its token in a volume and its secrets for pulling images
//! (`plugin/pkg/admission/serviceaccount`).

use serde_json::{Map, Value as Json, json};

use super::{Attributes, Found, PluginRemarks, items};
use crate::{
    objects::{INVENTED_SUFFIX, Refused},
    validation::quote,
};

/// Where the token of an account is mounted.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How the name of the volume with the token begins.
const VOLUME: &str = "kube-api-access-";
const DEFAULT: &str = "default";
/// An account with this annotation may only be used with secrets that it lists.
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// The lists of containers that secrets are looked for in, and what the messages call an element.
const LISTS: [(&str, &str); 2] = [("initContainers", "init container"), ("containers", "container")];

pub(super) fn mutate(attributes: &Attributes<'_>, pod: &mut Json) -> Result<(), Refused> {
    if !attributes.creates() || !attributes.is("", "pods", "") {
        return Ok(());
    }
    if is_mirror(pod) {
        return mirror(attributes, pod);
    }
    let Some(spec) = pod.get_mut("spec").and_then(Json::as_object_mut) else { return Ok(()) };
    if spec.get("serviceAccountName").and_then(Json::as_str).is_none_or(str::is_empty) {
        spec.insert("serviceAccountName".to_owned(), json!(DEFAULT));
        // The API server converts the one field into both.
        spec.insert("serviceAccount".to_owned(), json!(DEFAULT));
    }
    let account = account(attributes, spec)?;
    let own = spec.get("automountServiceAccountToken").and_then(Json::as_bool);
    if own.or_else(|| account["automountServiceAccountToken"].as_bool()).unwrap_or(true) {
        mount_token(spec);
    }
    let has_secrets = spec.get("imagePullSecrets").and_then(Json::as_array).is_some_and(|list| !list.is_empty());
    if let (Some(secrets), false) = (account["imagePullSecrets"].as_array(), has_secrets)
        && !secrets.is_empty()
    {
        let secrets = secrets.iter().map(|secret| json!({"name": secret["name"]})).collect();
        spec.insert("imagePullSecrets".to_owned(), Json::Array(secrets));
    }
    check(attributes, pod)
}

pub(super) fn validate(attributes: &Attributes<'_>, pod: Option<&Json>, _: &mut PluginRemarks) -> Result<(), Refused> {
    let Some(pod) = pod else { return Ok(()) };
    if attributes.updates() && attributes.is("", "pods", "ephemeralcontainers") {
        return check_ephemeral(attributes, pod);
    }
    if !attributes.creates() || !attributes.is("", "pods", "") {
        return Ok(());
    }
    if is_mirror(pod) { mirror(attributes, pod) } else { check(attributes, pod) }
}

fn is_mirror(pod: &Json) -> bool {
    !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null()
}

/// Rejects references that a mirror pod, which a node creates, must not have.
fn mirror(attributes: &Attributes<'_>, pod: &Json) -> Result<(), Refused> {
    let spec = &pod["spec"];
    let why = if spec["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty()) {
        "a mirror pod may not reference service accounts"
    } else if names_secret(spec) {
        "a mirror pod may not reference secrets"
    } else if items(&spec["volumes"])
        .flat_map(|volume| items(&volume["projected"]["sources"]))
        .any(|source| !source["serviceAccountToken"].is_null())
    {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(attributes.forbidden(why))
}

/// Whether a pod names a secret in any field (`VisitPodSecretNames` in `pkg/api/pod`).
fn names_secret(value: &Json) -> bool {
    const KEYS: [&str; 6] =
        ["secret", "secretRef", "secretKeyRef", "imagePullSecrets", "nodePublishSecretRef", "secretName"];
    match value {
        Json::Object(fields) => fields.iter().any(|(key, value)| {
            let given = match value {
                Json::Null => false,
                Json::Array(list) => !list.is_empty(),
                _ => true,
            };
            (KEYS.contains(&key.as_str()) && given) || names_secret(value)
        }),
        Json::Array(list) => list.iter().any(names_secret),
        _ => false,
    }
}

/// The account that a pod names.
fn account<'a>(attributes: &Attributes<'a>, spec: &Map<String, Json>) -> Result<&'a Json, Refused> {
    let name = spec.get("serviceAccountName").and_then(Json::as_str).unwrap_or_default();
    let namespace = attributes.namespace();
    match attributes.find("", "ServiceAccount", namespace, name) {
        Found::Object(account) => Ok(account),
        // The controller manager creates it, and creates it again.
        _ if name == DEFAULT => Ok(&Json::Null),
        Found::Missing => Err(attributes.forbidden(format!(
            "error looking up service account {namespace}/{name}: serviceaccount {} not found",
            quote(name)
        ))),
        Found::Unknown => {
            let depends = ", and else takes from it what policies see";
            Err(Attributes::unknown("ServiceAccount", "ServiceAccount", name, depends))
        }
    }
}

fn mount_token(spec: &mut Map<String, Json>) {
    let volumes = spec.get("volumes").and_then(Json::as_array);
    let mut names = volumes.into_iter().flatten().filter_map(|volume| volume["name"].as_str());
    let existing = names.find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let name = existing.clone().unwrap_or_else(|| format!("{VOLUME}{INVENTED_SUFFIX}"));
    let mut needed = false;
    for (containers, _) in LISTS {
        for container in spec.get_mut(containers).and_then(Json::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            if mounts.is_null() {
                *mounts = json!([]);
            }
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if !mounts.iter().any(|mount| mount["mountPath"] == TOKEN) {
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN}));
                needed = true;
            }
        }
    }
    if !needed || existing.is_some() {
        return;
    }
    let volume = json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ]}});
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.push(volume);
    }
}

fn check(attributes: &Attributes<'_>, pod: &Json) -> Result<(), Refused> {
    let Some(spec) = pod["spec"].as_object() else { return Ok(()) };
    if spec.get("serviceAccountName").and_then(Json::as_str).is_none_or(str::is_empty) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = attributes.namespace();
        return Err(attributes.forbidden(format!("no service account specified for pod {namespace}/{name}")));
    }
    let account = account(attributes, spec)?;
    match Secrets::of(account).and_then(|secrets| secrets.unlisted(&pod["spec"])) {
        Some(why) => Err(attributes.forbidden(why)),
        None => Ok(()),
    }
}

fn check_ephemeral(attributes: &Attributes<'_>, pod: &Json) -> Result<(), Refused> {
    let Some(spec) = pod["spec"].as_object() else { return Ok(()) };
    if spec.get("serviceAccountName").and_then(Json::as_str).is_none_or(str::is_empty) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = attributes.namespace();
        return Err(attributes.forbidden(format!("no service account specified for pod {namespace}/{name}")));
    }
    let Some(secrets) = Secrets::of(account(attributes, spec)?) else { return Ok(()) };
    match secrets.unlisted_in(&pod["spec"]["ephemeralContainers"], "ephemeral container") {
        // The error of this one the API server does not make a refusal of its own.
        Some(why) => Err(Refused::NoVerdict(format!("admission plugin ServiceAccount: {why}"))),
        None => Ok(()),
    }
}

/// The secrets that an account lists, if only those may be used with it.
struct Secrets<'a> {
    account: &'a str,
    mountable: Vec<&'a Json>,
    pull: Vec<&'a Json>,
}

impl<'a> Secrets<'a> {
    fn of(account: &'a Json) -> Option<Self> {
        let value = account["metadata"]["annotations"][ENFORCE].as_str()?;
        // What Go's ParseBool takes for true.
        let enforced = ["1", "t", "T", "true", "TRUE", "True"].contains(&value);
        enforced.then(|| Self {
            account: account["metadata"]["name"].as_str().unwrap_or_default(),
            mountable: items(&account["secrets"]).map(|secret| &secret["name"]).collect(),
            pull: items(&account["imagePullSecrets"]).map(|secret| &secret["name"]).collect(),
        })
    }

    /// The error in the secrets that a pod names.
    fn unlisted(&self, spec: &Json) -> Option<String> {
        let by = self.account;
        let volumes = items(&spec["volumes"]).map(|volume| &volume["secret"]).filter(|secret| !secret.is_null());
        let mut of_volumes = volumes.map(|secret| &secret["secretName"]);
        if let Some(secret) = of_volumes.find(|name| !self.mountable.contains(name)) {
            let name = secret.as_str().unwrap_or_default();
            return Some(format!(
                "volume with secret.secretName=\"{name}\" is not allowed because service account {by} does not \
                 reference that secret"
            ));
        }
        let in_containers = LISTS.iter().find_map(|(list, what)| self.unlisted_in(&spec[*list], what));
        in_containers.or_else(|| {
            let mut pull = items(&spec["imagePullSecrets"]).enumerate();
            let (index, secret) = pull.find(|(_, secret)| !self.pull.contains(&&secret["name"]))?;
            let name = secret["name"].as_str().unwrap_or_default();
            Some(format!(
                "imagePullSecrets[{index}].name=\"{name}\" is not allowed because service account {by} does not \
                 reference that imagePullSecret"
            ))
        })
    }

    fn unlisted_in(&self, containers: &Json, what: &str) -> Option<String> {
        let by = self.account;
        let not_allowed = |place: String, secret: &Json| {
            let name = secret.as_str().unwrap_or_default();
            format!(
                "{place} referencing secret.secretName=\"{name}\" is not allowed because service account {by} does not \
                 reference that secret"
            )
        };
        items(containers).find_map(|container| {
            let of = container["name"].as_str().unwrap_or_default();
            let unlisted = |name: &&Json| !name.is_null() && !self.mountable.contains(name);
            let by_variable = items(&container["env"]).find_map(|variable| {
                let secret = Some(&variable["valueFrom"]["secretKeyRef"]["name"]).filter(unlisted)?;
                let name = variable["name"].as_str().unwrap_or_default();
                Some(not_allowed(format!("{what} {of} with envVar {name}"), secret))
            });
            by_variable.or_else(|| {
                let mut sources = items(&container["envFrom"]).map(|source| &source["secretRef"]["name"]);
                sources.find(unlisted).map(|secret| not_allowed(format!("{what} {of} with envFrom"), secret))
            })
        })
    }
}

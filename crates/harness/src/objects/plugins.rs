//! The built-in admission plugins that change objects, in their order, before any policy does
//! (`pkg/kubeapiserver/options/plugins.go`). Of those that are on by default: `ServiceAccount`, `TaintNodesByCondition`,
//! Priority, `DefaultTolerationSeconds`, `StorageObjectInUseProtection`, `RuntimeClass`, `DefaultIngressClass` and
//! `DefaultStorageClass`. `LimitRanger` is not here: with a `LimitRange` in the namespace there is no verdict on a new pod.

use palisade_checks::json::Change as _;
use serde_json::{Map, Value, json};

use super::{Kinds, Refused, Sent};
use crate::create::quote;

type Object = Map<String, Value>;

/// What the outcome depends on besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The time of the request, as RFC 3339 in UTC without a fraction: it becomes `metadata.creationTimestamp`.
    pub now: &'a str,
    /// Is the admission plugin `ServiceAccount` on, as it is by default? It names the account, and mounts its token.
    pub service_account: bool,
    /// Who makes the request, as `userInfo` of an `AdmissionReview`: what a `CertificateSigningRequest` then says.
    pub user: &'a Value,
    /// The `PriorityClasses`, `RuntimeClasses`, `IngressClasses`, `StorageClasses` and `LimitRanges` of the cluster.
    pub objects: &'a [Value],
}

impl Default for Surroundings<'_> {
    fn default() -> Self {
        Self { now: "2024-01-02T03:04:05Z", service_account: true, user: &Value::Null, objects: &[] }
    }
}

impl<'a> Surroundings<'a> {
    fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    fn named(&self, kind: &'static str, name: &str) -> Option<&'a Value> {
        self.of_kind(kind).find(|object| object["metadata"]["name"] == name)
    }

    /// The newest class that its annotation makes the default one.
    fn default_class(&self, kind: &'static str, annotation: &str) -> Option<&'a str> {
        let mut defaults: Vec<_> = self
            .of_kind(kind)
            .filter(|class| class["metadata"]["annotations"][annotation] == "true")
            .filter_map(|class| class["metadata"]["name"].as_str())
            .collect();
        defaults.sort_unstable();
        defaults.first().copied()
    }
}

impl Kinds {
    /// The decoded object after the built-in plugins that change objects. They run before mutating policies.
    ///
    /// # Errors
    /// A plugin refuses it (an unknown `PriorityClass`), or it cannot be told what a plugin would do.
    pub fn plugins(&self, sent: Sent<'_>, around: &Surroundings<'_>) -> Result<Value, Refused> {
        let mut value = sent.object.clone();
        let (group, plural) = (sent.resource.group.as_str(), sent.resource.plural.as_str());
        let Some(object) = value.as_object_mut() else { return Ok(value) };
        let creates = sent.old.is_none();
        match (group, plural, sent.subresource) {
            ("", "pods", "") if creates => pod(object, sent.namespace, around)?,
            ("", "pods", "" | "ephemeralcontainers" | "resize") => tolerate(object),
            ("", "nodes", "") if creates => taint(object),
            ("", "persistentvolumeclaims", "") if creates => {
                finalize(object, "kubernetes.io/pvc-protection");
                let class = around.default_class("StorageClass", "storageclass.kubernetes.io/is-default-class");
                let spec = object.get_mut("spec").and_then(Value::as_object_mut);
                if let (Some(class), Some(spec)) = (class, spec) {
                    spec.entry("storageClassName").or_insert_with(|| json!(class));
                }
            }
            ("", "persistentvolumes", "") if creates => finalize(object, "kubernetes.io/pv-protection"),
            ("networking.k8s.io", "ingresses", "") if creates => {
                let class = around.default_class("IngressClass", "ingressclass.kubernetes.io/is-default-class");
                let annotated = object
                    .get("metadata")
                    .is_some_and(|metadata| !metadata["annotations"]["kubernetes.io/ingress.class"].is_null());
                let spec = object.get_mut("spec").and_then(Value::as_object_mut);
                if let (Some(class), Some(spec), false) = (class, spec, annotated) {
                    spec.entry("ingressClassName").or_insert_with(|| json!(class));
                }
            }
            _ => {}
        }
        Ok(value)
    }
}

fn pod(pod: &mut Object, namespace: &str, around: &Surroundings<'_>) -> Result<(), Refused> {
    let limited = around.of_kind("LimitRange").any(|range| range["metadata"]["namespace"] == namespace);
    if limited {
        return Err(Refused::NoVerdict(format!(
            "namespace {namespace} has a LimitRange, which may change or deny the pod; that is not known here"
        )));
    }
    let mirror = pod.get("metadata").is_some_and(|m| !m["annotations"]["kubernetes.io/config.mirror"].is_null());
    let name = pod.get("metadata").and_then(|m| m["name"].as_str()).unwrap_or_default().to_owned();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    if around.service_account && !mirror {
        account(spec);
    }
    priority(&name, spec, around)?;
    overhead(&name, spec, around)?;
    tolerate(pod);
    Ok(())
}
/// `DefaultTolerationSeconds`.
fn tolerate(pod: &mut Object) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let list = spec.entry("tolerations").or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list.iter().any(|toleration| {
            let field = |name: &str| toleration[name].as_str().unwrap_or_default();
            (field("key") == key || field("key").is_empty()) && matches!(field("effect"), "NoExecute" | "")
        });
        if !tolerated {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

fn forbidden(pod: &str, why: &str) -> Refused {
    Refused::Forbidden(format!("pods {} is forbidden: {why}", quote(pod)))
}

fn missing(kind: &str, name: &str) -> Refused {
    Refused::NoVerdict(format!(
        "the pod names the {kind} {name}, which is not among the objects of the cluster: the API server denies the pod if \
         there is none, and else takes from it what policies see; add the {kind}"
    ))
}

const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Priority.
fn priority(name: &str, spec: &mut Object, around: &Surroundings<'_>) -> Result<(), Refused> {
    let asked = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (value, policy) = if asked.is_empty() {
        let default = around
            .of_kind("PriorityClass")
            .filter(|class| class["globalDefault"] == true)
            .min_by_key(|class| class["value"].as_i64().unwrap_or(0));
        if let Some(class) = default {
            spec.insert("priorityClassName".to_owned(), class["metadata"]["name"].clone());
        }
        default.map_or((0, "PreemptLowerPriority"), of_class)
    } else if let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(name, _)| *name == asked) {
        (*value, "PreemptLowerPriority")
    } else {
        let class = around.named("PriorityClass", &asked);
        of_class(class.ok_or_else(|| missing("PriorityClass", &asked))?)
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != value
    {
        return Err(forbidden(
            name,
            &format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
            ),
        ));
    }
    spec.insert("priority".to_owned(), json!(value));
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        return Err(forbidden(
            name,
            &format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
            ),
        ));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

fn of_class(class: &Value) -> (i64, &str) {
    (class["value"].as_i64().unwrap_or(0), class["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority"))
}

/// `RuntimeClass`: the overhead and scheduling of the class.
fn overhead(pod: &str, spec: &mut Object, around: &Surroundings<'_>) -> Result<(), Refused> {
    let Some(name) = spec.get("runtimeClassName").and_then(Value::as_str).map(str::to_owned) else { return Ok(()) };
    let class = around.named("RuntimeClass", &name);
    let class = class.ok_or_else(|| missing("RuntimeClass", &name))?;
    if let Some(fixed) = class.pointer("/overhead/podFixed") {
        let given = spec.get("overhead");
        if given.is_some_and(|given| given != fixed) {
            return Err(forbidden(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"));
        }
        spec.insert("overhead".to_owned(), fixed.clone());
    } else if spec.get("overhead").is_some_and(|given| given.as_object().is_some_and(|given| !given.is_empty())) {
        return Err(forbidden(
            pod,
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ));
    }
    let scheduling = &class["scheduling"];
    if let Some(selector) = scheduling["nodeSelector"].as_object() {
        let own = spec.entry("nodeSelector").or_insert_with(|| json!({}));
        for (key, value) in selector {
            if own.get(key).is_some_and(|own| own != value) {
                return Err(forbidden(
                    pod,
                    &format!(
                        "pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                        value.as_str().unwrap_or_default(),
                        own[key].as_str().unwrap_or_default()
                    ),
                ));
            }
            *own.at_mut(&[key]) = value.clone();
        }
    }
    if let Some(tolerations) = scheduling["tolerations"].as_array() {
        let own = spec.entry("tolerations").or_insert_with(|| json!([]));
        if let Some(own) = own.as_array_mut() {
            own.extend(tolerations.iter().filter(|t| !own.contains(t)).cloned().collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// Where the token of an account is mounted.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// `ServiceAccount`: the account `default`, and a volume with its token in each container.
fn account(spec: &mut Object) {
    if spec.get("serviceAccountName").and_then(Value::as_str).is_none_or(str::is_empty) {
        spec.insert("serviceAccountName".to_owned(), json!("default"));
        spec.insert("serviceAccount".to_owned(), json!("default"));
    }
    if spec.get("automountServiceAccountToken") == Some(&json!(false)) {
        return;
    }
    let name = format!("kube-api-access-{}", super::INVENTED_SUFFIX);
    let mut needed = false;
    for containers in ["initContainers", "containers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            let mounts = container.at_mut(&["volumeMounts"]);
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
    if !needed {
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

/// `TaintNodesByCondition`.
fn taint(node: &mut Object) {
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if let Some(taints) = taints.as_array_mut() {
        let key = "node.kubernetes.io/not-ready";
        if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == "NoSchedule") {
            taints.push(json!({"key": key, "effect": "NoSchedule"}));
        }
    }
}

/// `StorageObjectInUseProtection`.
fn finalize(object: &mut Object, finalizer: &str) {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let finalizers = metadata.at_mut(&["finalizers"]);
    if finalizers.is_null() {
        *finalizers = json!([]);
    }
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|have| have == finalizer)
    {
        finalizers.push(json!(finalizer));
    }
}

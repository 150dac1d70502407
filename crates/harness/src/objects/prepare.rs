//! Between mutating and validating admission: what the strategies of the resources set (`pkg/registry/*/*/strategy.go`),
//! and the validation of the object.

use palisade_checks::json::Change as _;
use serde_json::{Map, Value, json};

use super::{
    Kinds, Refused, Sent, Surroundings, convert, decode::Decoder, drop::drop_disabled, encode, gates::Gate,
    kinds::Source, pods, validate,
};

type Object = Map<String, Value>;

/// `metadata.uid` of every new object, in place of a random one.
pub const INVENTED_UID: &str = "00000000-0000-4000-8000-000000000000";
/// What follows `metadata.generateName`, in place of five random letters.
pub const INVENTED_SUFFIX: &str = "00000";
/// The first of the addresses and ports that a Service would get at random.
const INVENTED_CLUSTER_IP: &str = "10.96.0.10";
const INVENTED_NODE_PORT: usize = 30000;

/// Kinds whose `metadata.generation` counts changes of their content.
const GENERATED: &[&str] = &[
    "core/v1.Pod",
    "core/v1.PodTemplate",
    "core/v1.ReplicationController",
    "apps/v1.DaemonSet",
    "apps/v1.Deployment",
    "apps/v1.ReplicaSet",
    "apps/v1.StatefulSet",
    "batch/v1.CronJob",
    "batch/v1.Job",
    "discovery/v1.EndpointSlice",
    "networking/v1.Ingress",
    "networking/v1.IngressClass",
    "networking/v1.NetworkPolicy",
    "policy/v1.PodDisruptionBudget",
    "scheduling/v1.PriorityClass",
    "apiextensions/v1.CustomResourceDefinition",
    "flowcontrol/v1.FlowSchema",
    "flowcontrol/v1.PriorityLevelConfiguration",
];
/// Kinds whose status a client can set by creating them.
const STATUS_KEPT: &[&str] = &["core/v1.Node", "networking/v1.IPAddress", "core/v1.Event"];

fn is_generated(minor: u8, name: &str) -> bool {
    GENERATED.contains(&name)
        || (Gate::HPAGeneration.is_on(minor)
            && name.starts_with("autoscaling/")
            && name.ends_with("HorizontalPodAutoscaler"))
        || name.starts_with("admissionregistration/")
        || (name.starts_with("resource/")
            && ["DeviceClass", "ResourceSlice", "DeviceTaintRule"].iter().any(|kind| name.ends_with(kind)))
}

impl Kinds {
    /// What validating admission sees of what mutating admission let through, if [`Self::validate`] finds nothing wrong.
    ///
    /// # Errors
    /// It cannot be decoded any more, which a mutation can be the reason of.
    pub fn prepare(&self, sent: Sent<'_>, around: &Surroundings<'_>) -> Result<Value, Refused> {
        let (source, api_version, kind) = Self::source(sent)?;
        let Source::Struct(name) = source else {
            return Ok(prepare_custom(sent, around));
        };
        if !sent.subresource.is_empty() && *name != struct_of(sent) {
            return Ok(sent.object.clone());
        }
        let mut decoder = Decoder::new(&self.table);
        let mut object = decoder.object(name, sent.object).map_err(Refused::Decode)?;
        match sent.old {
            None => {
                drop_disabled(&self.table, self.minor, name, &mut object);
                create(self.minor, name, &mut object, around);
            }
            Some(old) => {
                let old = Decoder::new(&self.table).object(name, old).map_err(Refused::Decode)?;
                update(self.minor, name, sent.subresource, &mut object, &old);
            }
        }
        // Fills what resetting left out.
        let mut object = decoder.object(name, &Value::Object(object)).map_err(Refused::Decode)?;
        convert::convert(&self.table, name, &mut object);
        let mut object = Value::Object(encode::encode(&self.table, name, &object));
        *object.at_mut(&["apiVersion"]) = Value::from(api_version);
        *object.at_mut(&["kind"]) = Value::from(kind);
        Ok(object)
    }

    /// The validation of what [`Self::prepare`] made: it comes before validating admission.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate(&self, sent: Sent<'_>, prepared: &Value) -> Result<(), Refused> {
        match Self::source(sent)?.0 {
            Source::Custom => {
                self.custom(sent.resource).map_or(Ok(()), |custom| custom.validate(self.minor, sent, prepared))
            }
            _ => validate::check(self, sent, prepared),
        }
    }
}

fn prepare_custom(sent: Sent<'_>, around: &Surroundings<'_>) -> Value {
    let mut object = sent.object.clone();
    if sent.subresource == "scale" {
        return object;
    }
    let has_status = sent.resource.subresource("status").is_some();
    if let Some(fields) = object.as_object_mut() {
        match sent.old.and_then(Value::as_object) {
            None => {
                if has_status {
                    fields.remove("status");
                }
                system_fields(fields, around);
                metadata(fields).insert("generation".to_owned(), json!(1));
            }
            Some(old) => update_custom(fields, old, sent.subresource, has_status),
        }
    }
    object
}
/// The struct of the resource itself.
fn struct_of(sent: Sent<'_>) -> &str {
    match &sent.resource.source {
        Source::Struct(name) => name,
        _ => "",
    }
}

pub(super) fn metadata(object: &mut Object) -> &mut Object {
    let value = object.entry("metadata").or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(metadata) => metadata,
        _ => unreachable!("made an object above"),
    }
}

/// `rest.FillObjectMetaSystemFields`, and the generated name.
fn system_fields(object: &mut Object, around: &Surroundings<'_>) {
    let metadata = metadata(object);
    metadata.insert("uid".to_owned(), json!(INVENTED_UID));
    metadata.insert("creationTimestamp".to_owned(), json!(around.now));
    if metadata.get("name").and_then(Value::as_str).is_none_or(str::is_empty)
        && let Some(prefix) = metadata.get("generateName").and_then(Value::as_str).filter(|prefix| !prefix.is_empty())
    {
        // Cut to what leaves room for the random part of a name.
        let prefix: String = prefix.chars().take(58).collect();
        metadata.insert("name".to_owned(), json!(format!("{prefix}{INVENTED_SUFFIX}")));
    }
}

fn create(minor: u8, name: &str, object: &mut Object, around: &Surroundings<'_>) {
    system_fields(object, around);
    let status = if STATUS_KEPT.contains(&name) { None } else { object.remove("status") };
    if is_generated(minor, name) {
        metadata(object).insert("generation".to_owned(), json!(1));
    }
    match name {
        "core/v1.Pod" => pods::create(minor, object, status.as_ref(), around.now),
        "core/v1.Namespace" => namespace(object),
        "core/v1.Service" => service(object),
        "core/v1.ServiceAccount" => {
            for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
                *secret = json!({"name": secret["name"]});
            }
        }
        "core/v1.PersistentVolume" => {
            object.insert("status".to_owned(), json!({"phase": "Pending", "lastPhaseTransitionTime": around.now}));
        }
        "core/v1.PersistentVolumeClaim" => claim(minor, object),
        "apps/v1.DaemonSet" => {
            let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
            let generation = annotations.at_mut(&["deprecated.daemonset.template.generation"]);
            if generation.as_str().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0) < 1 {
                *generation = json!("1");
            }
        }
        "autoscaling/v1.HorizontalPodAutoscaler" => {
            if let Some(Value::Object(annotations)) = metadata(object).get_mut("annotations") {
                annotations.remove("autoscaling.alpha.kubernetes.io/current-metrics");
                annotations.remove("autoscaling.alpha.kubernetes.io/conditions");
            }
        }
        "certificates/v1.CertificateSigningRequest" => requester(object, around),
        "batch/v1.Job" => select_pods(object),
        _ => {}
    }
}

fn namespace(namespace: &mut Object) {
    namespace.insert("status".to_owned(), json!({"phase": "Active"}));
    let finalizers = &mut namespace.entry("spec").or_insert_with(|| json!({}))["finalizers"];
    if finalizers.is_null() {
        *finalizers = json!([]);
    }
    if let Some(list) = finalizers.as_array_mut().filter(|list| !list.contains(&json!("kubernetes"))) {
        list.push(json!("kubernetes"));
    }
    // The label of its name, which defaulting leaves to this where the name is generated.
    let metadata = metadata(namespace);
    let name = metadata.get("name").cloned().unwrap_or_default();
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    *labels.at_mut(&["kubernetes.io/metadata.name"]) = name;
}

/// Who asks for a certificate is whoever creates the request.
fn requester(request: &mut Object, around: &Surroundings<'_>) {
    let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for key in ["username", "uid", "groups", "extra"] {
        match around.user.get(key) {
            Some(value) => spec.insert(key.to_owned(), value.clone()),
            None => spec.remove(key),
        };
    }
}

/// What the allocators of addresses and ports would choose, for a cluster of IPv4.
fn service(service: &mut Object) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return;
    }
    let ip = spec.entry("clusterIP").or_insert_with(|| json!(INVENTED_CLUSTER_IP)).clone();
    spec.entry("clusterIPs").or_insert_with(|| json!([ip]));
    let headless_without_pods =
        ip == "None" && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty);
    let policy = if headless_without_pods { "RequireDualStack" } else { "SingleStack" };
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!(policy));
    let families = if headless_without_pods { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
    spec.entry("ipFamilies").or_insert(families);
    let ports = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        && spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false));
    if ports {
        let list = spec.get_mut("ports").and_then(Value::as_array_mut);
        for (i, port) in list.into_iter().flatten().enumerate() {
            if port["nodePort"].is_null() {
                *port.at_mut(&["nodePort"]) = json!(INVENTED_NODE_PORT + i);
            }
        }
    }
}

/// `dataSource` and `dataSourceRef` say the same where one is absent.
fn claim(minor: u8, claim: &mut Object) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if !Gate::CrossNamespaceVolumeDataSource.is_on(minor)
        && spec
            .get("dataSourceRef")
            .is_some_and(|source| source["namespace"].as_str().is_some_and(|name| !name.is_empty()))
    {
        spec.remove("dataSourceRef");
    }
    if !spec.contains_key("dataSourceRef")
        && let Some(source) = spec.get("dataSource")
    {
        let known = matches!(
            (source["kind"].as_str(), source["apiGroup"].as_str().unwrap_or_default()),
            (Some("PersistentVolumeClaim"), "") | (Some("VolumeSnapshot"), "snapshot.storage.k8s.io")
        );
        if !known {
            spec.remove("dataSource");
        }
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(mut source)) if source["namespace"].as_str().is_none_or(str::is_empty) => {
            if let Some(source) = source.as_object_mut() {
                source.remove("namespace");
            }
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// Labels of the template and a selector of a job that does not choose its own.
fn select_pods(job: &mut Object) {
    let name = metadata(job).get("name").cloned().unwrap_or_default();
    let spec = job.entry("spec").or_insert_with(|| json!({}));
    if spec["manualSelector"] == true {
        return;
    }
    let labels = spec.at_mut(&["template", "metadata", "labels"]);
    if labels.is_null() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        for (key, value) in [
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &json!(INVENTED_UID)),
            ("batch.kubernetes.io/controller-uid", &json!(INVENTED_UID)),
        ] {
            labels.entry(key).or_insert_with(|| value.clone());
        }
    }
    let matched = spec.at_mut(&["selector", "matchLabels", "batch.kubernetes.io/controller-uid"]);
    if matched.is_null() {
        *matched = json!(INVENTED_UID);
    }
}

/// `rest.BeforeUpdate`: what an update cannot change.
fn update(minor: u8, name: &str, subresource: &str, object: &mut Object, old: &Object) {
    let content = |object: &Object| -> Object {
        let mut content = object.clone();
        content.retain(|key, _| !["apiVersion", "kind", "metadata", "status"].contains(&key.as_str()));
        content
    };
    match subresource {
        "status" => {
            let status = object.get("status").cloned();
            for (key, value) in content(old) {
                object.insert(key, value);
            }
            if let Some(status) = status {
                object.insert("status".to_owned(), status);
            }
        }
        "ephemeralcontainers" => {
            let new = object.get("spec").map(|spec| spec["ephemeralContainers"].clone()).unwrap_or_default();
            object.clone_from(old);
            if let Some(spec) = object.get_mut("spec") {
                *spec.at_mut(&["ephemeralContainers"]) = new;
            }
        }
        "resize" => pods::resize(object, old),
        _ => {
            if let Some(status) = old.get("status") {
                object.insert("status".to_owned(), status.clone());
            }
        }
    }
    let changed =
        content(object) != content(old) || (name == "apps/v1.Deployment" && annotations(object) != annotations(old));
    keep_metadata(object, old, (is_generated(minor, name) && subresource != "status" && changed).then_some(1));
}

fn annotations(object: &Object) -> Option<&Value> {
    object.get("metadata").and_then(|metadata| metadata.get("annotations"))
}

/// The generation is the server's; some of the metadata never changes.
fn keep_metadata(object: &mut Object, old: &Object, more: Option<i64>) {
    let Some(before) = old.get("metadata").and_then(Value::as_object) else { return };
    let now = metadata(object);
    match before.get("generation").and_then(Value::as_i64).unwrap_or(0) + more.unwrap_or(0) {
        0 => now.remove("generation"),
        generation => now.insert("generation".to_owned(), json!(generation)),
    };
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = before.get(key).filter(|value| !value.is_null()) {
            now.insert(key.to_owned(), value.clone());
        }
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        if let Some(value) = before.get(key) {
            now.entry(key).or_insert_with(|| value.clone());
        }
    }
}

fn update_custom(object: &mut Object, old: &Object, subresource: &str, has_status: bool) {
    let before = old.get("status").cloned();
    if subresource == "status" {
        let status = object.remove("status");
        let kept = object.get("metadata").cloned();
        object.clone_from(old);
        object.remove("status");
        object.extend(status.map(|status| ("status".to_owned(), status)));
        object.extend(kept.map(|metadata| ("metadata".to_owned(), metadata)));
        keep_metadata(object, old, None);
        return;
    }
    if has_status {
        object.remove("status");
        object.extend(before.map(|status| ("status".to_owned(), status)));
    }
    let content = |object: &Object| -> Object {
        object.iter().filter(|(key, _)| *key != "metadata").map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let changed = content(object) != content(old);
    keep_metadata(object, old, changed.then_some(1));
}

//! Between mutating and validating admission: the fields that the strategies of the resources set
//! (`pkg/registry/*/*/strategy.go`), and the validation of the object.

use palisade_cel::Minor;
use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value, json};

use super::{
    Kinds, Refused, Stored, Submission, convert,
    decode::Decoder,
    drop::drop_disabled,
    encode, pods,
    resource::Source,
    service,
    strategy::{claim, clean_secrets, is_generated, metadata},
    update, validate,
};
use crate::validation::{FieldError, quote, text};

type Object = Map<String, Value>;

/// `metadata.uid` of every new object, in place of a random one.
pub const INVENTED_UID: &str = "00000000-0000-4000-8000-000000000000";
/// The suffix of names from `metadata.generateName`, in place of five random letters.
pub const INVENTED_SUFFIX: &str = "00000";
/// The values that become part of an object in addition to those that the client sends.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// The time of the request, as RFC 3339 in UTC without a fraction: it becomes `metadata.creationTimestamp`.
    pub now: &'a str,
    /// The user, as `userInfo` of an `AdmissionReview`: a `CertificateSigningRequest` records it.
    pub user: &'a Value,
}

impl Default for RequestContext<'_> {
    fn default() -> Self {
        Self { now: "2024-01-02T03:04:05Z", user: &Value::Null }
    }
}

/// Resources whose updates must specify `metadata.resourceVersion` (`AllowUnconditionalUpdate`), in addition to custom
/// resources and those of `admissionregistration.k8s.io`.
const CONDITIONAL: &[(&str, &str)] = &[
    ("certificates.k8s.io", "clustertrustbundles"),
    ("certificates.k8s.io", "podcertificaterequests"),
    ("coordination.k8s.io", "leasecandidates"),
    ("coordination.k8s.io", "leases"),
    ("internal.apiserver.k8s.io", "storageversions"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "poddisruptionbudgets"),
    ("resource.k8s.io", "resourcepoolstatusrequests"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "csistoragecapacities"),
    ("storage.k8s.io", "volumeattachments"),
    ("storagemigration.k8s.io", "storageversionmigrations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
];

/// Kinds whose status a client can set by creating them.
const STATUS_KEPT: &[&str] = &["core/v1.Node", "networking/v1.IPAddress", "core/v1.Event"];

impl Kinds {
    /// The object that validating admission sees after mutating admission, if [`Self::validate`] finds no error.
    ///
    /// # Errors
    /// It can no longer be decoded, because of a mutation.
    pub fn prepare(&self, sent: Submission<'_>, around: &RequestContext<'_>) -> Result<Value, Refused> {
        let (source, api_version, kind) = self.source(sent)?;
        if let Some(old) = sent.old {
            precondition(self.minor, sent, old)?;
        }
        if let (Some(old), "scale") = (sent.old, sent.subresource) {
            return Ok(scaled(sent, old));
        }
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
                drop_disabled(&self.table, self.minor, name, &mut object, None);
                create(self.minor, name, &mut object, around);
            }
            Some(stored) => {
                let old = Decoder::new(&self.table).object(name, stored).map_err(Refused::Decode)?;
                drop_disabled(&self.table, self.minor, name, &mut object, Some(&old));
                // A manifest in place of one: what creation made of the former it makes of the other.
                if stored.is_completed() && sent.subresource.is_empty() {
                    match name.as_str() {
                        "core/v1.Pod" => pods::create(self.minor, &mut object, None, around.now),
                        "batch/v1.Job" => select_pods(&mut object),
                        _ => {}
                    }
                }
                update::update(&self.table, self.minor, name, sent.subresource, &mut object, &old);
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

    /// Validates the result of [`Self::prepare`], before validating admission.
    ///
    /// # Errors
    /// The errors in it.
    pub fn validate(&self, sent: Submission<'_>, prepared: &Value) -> Result<(), Refused> {
        match self.source(sent)?.0 {
            Source::Custom => {
                self.custom(sent.resource).map_or(Ok(()), |custom| custom.validate(self.minor, sent, prepared))
            }
            _ => validate::check(self, sent, prepared),
        }
    }
}

/// Whether the client knows the object as it is now (`Store.Update` in apiserver `pkg/registry/generic/registry`).
fn precondition(minor: Minor, sent: Submission<'_>, old: &Stored) -> Result<(), Refused> {
    let version = |of: &Value| of.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or("").to_owned();
    let (now, before) = (version(sent.object), version(old));
    if !now.is_empty() && (now.parse::<u64>().is_err() || now.starts_with('+')) {
        let is_number = now.bytes().all(|byte| byte.is_ascii_digit());
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        return Err(Refused::Failed(format!("strconv.ParseUint: parsing {}: {why}", quote(&now))));
    }
    // Of a manifest it is not known which version it is about.
    if before.is_empty() || now == before {
        return Ok(());
    }
    let r = sent.resource;
    let name = text(&old["metadata"], "name");
    let qualified = if r.group.is_empty() { r.plural.clone() } else { format!("{}.{}", r.plural, r.group) };
    if !now.is_empty() {
        return Err(Refused::Conflict(format!(
            "Operation cannot be fulfilled on {qualified} {}: the object has been modified; please apply your changes \
             to the latest version and try again",
            quote(name)
        )));
    }
    let conditional = r.source == Source::Custom
        || CONDITIONAL.contains(&(r.group.as_str(), r.plural.as_str()))
        || r.group == "admissionregistration.k8s.io";
    if conditional && sent.subresource != "scale" {
        let (field, detail) = ("metadata.resourceVersion", "must be specified for an update");
        let error = FieldError::invalid_unsigned(minor, field, 0, detail);
        return Err(Refused::Validation { what: format!("{qualified} {}", quote(name)), causes: vec![error] });
    }
    Ok(())
}

/// The scale that validating admission sees: that of the changed object.
fn scaled(sent: Submission<'_>, old: &Stored) -> Value {
    let mut scale = Value::clone(old);
    *scale.at_mut(&["spec"]) = sent.object["spec"].clone();
    scale
}

fn prepare_custom(sent: Submission<'_>, around: &RequestContext<'_>) -> Value {
    let mut object = sent.object.clone();
    let has_status = sent.resource.subresource("status").is_some();
    if let Some(fields) = object.as_object_mut() {
        match sent.old.and_then(|old| old.as_object()) {
            None => {
                if has_status {
                    fields.remove("status");
                }
                system_fields(fields, around);
                metadata(fields).insert("generation".to_owned(), json!(1));
            }
            Some(old) => update::custom(fields, old, sent.subresource, has_status),
        }
    }
    object
}
/// The struct of the resource itself.
fn struct_of(sent: Submission<'_>) -> &str {
    match &sent.resource.source {
        Source::Struct(name) => name,
        _ => "",
    }
}

/// `rest.FillObjectMetaSystemFields`, and the generated name.
fn system_fields(object: &mut Object, around: &RequestContext<'_>) {
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

fn create(minor: Minor, name: &str, object: &mut Object, around: &RequestContext<'_>) {
    system_fields(object, around);
    let status = if STATUS_KEPT.contains(&name) { None } else { object.remove("status") };
    if is_generated(minor, name) {
        metadata(object).insert("generation".to_owned(), json!(1));
    }
    match name {
        "core/v1.Pod" => pods::create(minor, object, status.as_ref(), around.now),
        "core/v1.Namespace" => namespace(object),
        "core/v1.Service" => service::allocate(object),
        "core/v1.ServiceAccount" => clean_secrets(object),
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

/// Sets the requester of a certificate to the user of the request.
fn requester(request: &mut Object, around: &RequestContext<'_>) {
    let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for key in ["username", "uid", "groups", "extra"] {
        match around.user.get(key) {
            Some(value) => spec.insert(key.to_owned(), value.clone()),
            None => spec.remove(key),
        };
    }
}

/// Labels of the template and a selector of a job that does not choose its own.
fn select_pods(job: &mut Object) {
    let name = metadata(job).get("name").cloned().unwrap_or_default();
    let own = metadata(job).get("labels").cloned();
    let spec = job.entry("spec").or_insert_with(|| json!({}));
    if spec["manualSelector"] == true {
        return;
    }
    let labels = spec.at_mut(&["template", "metadata", "labels"]);
    // Labels that a job has by default are those of its template, not a copy of them.
    let shared = !labels.is_null() && own.as_ref() == Some(labels);
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
    let shared = shared.then(|| labels.clone());
    let matched = spec.at_mut(&["selector", "matchLabels", "batch.kubernetes.io/controller-uid"]);
    if matched.is_null() {
        *matched = json!(INVENTED_UID);
    }
    if let Some(labels) = shared {
        metadata(job).insert("labels".to_owned(), labels);
    }
}

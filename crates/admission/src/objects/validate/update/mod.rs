//! Fields that an update may not change (`ValidateUpdate` of the strategies in `pkg/registry/*/*/strategy.go`, and the
//! `Validate*Update` of `pkg/apis/*/validation/validation.go`).
//!
//! For kinds and subresources whose rules are missing here, a change of more than metadata has no verdict.

mod claims;
mod pods;
mod services;
mod status;
mod workloads;

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::{Value, json};

use super::{
    super::{Kinds, Refused, Stored, Submission, equal::DeepEqual, resource::Source, scale},
    kinds, metadata,
};
use crate::validation::{Checking, FieldError, IMMUTABLE, NOT_SHOWN, list, meta, quote, shown, text};

/// The objects that are compared.
#[derive(Clone, Copy)]
struct Change<'a> {
    same: DeepEqual<'a>,
    old: &'a Value,
    new: &'a Value,
}

/// How the API server shows a value that may not change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueDisplay {
    /// As it is here.
    Value,
    /// In a form of its own.
    Own,
}

impl Change<'_> {
    fn changed(&self, path: &[&str]) -> bool {
        !self.same.at(path, self.new, self.old)
    }

    /// `ValidateImmutableField`
    fn immutable(&self, checking: &mut Checking<'_>, path: &[&str], display: ValueDisplay) {
        self.immutable_as(checking, path, &path.join("."), display);
    }

    /// [`Self::immutable`] of a field that has another path in messages.
    fn immutable_as(&self, checking: &mut Checking<'_>, path: &[&str], field: &str, display: ValueDisplay) {
        if self.changed(path) {
            let value = path.iter().try_fold(self.new, |value, key| value.get(key)).unwrap_or(&Value::Null);
            checking.errors.push(invalid(checking.minor, field, value, display, IMMUTABLE));
        }
    }
}

/// A value that is not what it was.
fn invalid(minor: Minor, field: &str, value: &Value, display: ValueDisplay, detail: &str) -> FieldError {
    match value {
        Value::String(text) => FieldError::invalid(field, text, detail),
        // Go writes the fields of a selector in another order than that of their names.
        Value::Object(of)
            if display == ValueDisplay::Value && minor >= Minor::V1_34 && of.contains_key("matchExpressions") =>
        {
            let labels = of.get("matchLabels").map(|labels| format!("\"matchLabels\":{labels},")).unwrap_or_default();
            FieldError::invalid_shown(
                field,
                &format!("{{{labels}\"matchExpressions\":{}}}", of["matchExpressions"]),
                detail,
            )
        }
        Value::Object(_) | Value::Array(_) if display == ValueDisplay::Own || minor < Minor::V1_34 => {
            FieldError::invalid_shown(field, NOT_SHOWN, detail)
        }
        other => FieldError::invalid_shown(field, &shown(minor, other), detail),
    }
}

/// Rejects an update that changes such a field.
pub(super) fn check(
    checking: &mut Checking<'_>,
    api: &Kinds,
    sent: Submission<'_>,
    old: &Stored,
    object: &Value,
) -> Result<(), Refused> {
    let r = sent.resource;
    if sent.subresource == "scale" {
        return scaled(checking, api, sent, old, object);
    }
    let name = match &r.source {
        Source::Struct(name) => Some(name.as_str()),
        Source::Custom | Source::Unknown => None,
    };
    let change = Change { same: DeepEqual::of(&api.table, name), old, new: object };
    metadata(checking, r, object);
    meta::update(checking, old, object);
    let changed = !change.same.but(&["apiVersion", "kind", "metadata", "status"], object, old);
    // Some annotations mean what fields mean, and are validated with these.
    let create = |checking: &mut Checking<'_>| {
        if changed || change.changed(&["metadata", "annotations"]) {
            kinds::check(checking, r, object);
        }
    };
    match sent.subresource {
        // `create` validates these.
        "" if (r.group.as_str(), r.plural.as_str()) == ("apiextensions.k8s.io", "customresourcedefinitions") => {}
        "" => main(checking, sent, change, changed, create),
        "status" => status::check(checking, sent, change),
        "ephemeralcontainers" => {
            create(checking);
            pods::ephemeral(checking, change);
        }
        "resize" => {
            create(checking);
            pods::resize(checking, change);
        }
        // Only the finalizers of the specification are validated, by their form.
        "finalize" if (r.group.as_str(), r.plural.as_str()) == ("", "namespaces") => {}
        other => unknown(checking, &format!("{}/{other}", r.plural), "the object"),
    }
    Ok(())
}

/// There is no verdict.
fn unknown(checking: &mut Checking<'_>, what: &str, field: &str) {
    checking.unknown.get_or_insert_with(|| {
        format!("which changes of {field} the API server takes in an update of {what} is not checked here")
    });
}

/// The resource itself; `create` validates what creation does, where something changed that it looks at.
fn main(
    checking: &mut Checking<'_>,
    sent: Submission<'_>,
    change: Change<'_>,
    changed: bool,
    create: impl Fn(&mut Checking<'_>),
) {
    let r = sent.resource;
    let fixed = |checking: &mut Checking<'_>, fields: &[&[&str]]| {
        for path in fields {
            change.immutable(checking, path, ValueDisplay::Value);
        }
    };
    match (r.group.as_str(), r.plural.as_str()) {
        ("", "pods") => {
            create(checking);
            pods::update(checking, change);
        }
        ("", "services") => {
            services::update(checking, change);
            create(checking);
        }
        ("", "configmaps" | "secrets") => {
            claims::data(checking, r, change);
            create(checking);
        }
        ("", "persistentvolumeclaims") => {
            create(checking);
            claims::update(checking, change);
        }
        ("", "persistentvolumes") => {
            create(checking);
            claims::volume(checking, change);
        }
        ("", "nodes") => {
            create(checking);
            services::node(checking, change);
        }
        ("apps", "daemonsets") if checking.minor >= Minor::V1_34 => {
            fixed(checking, &[&["spec", "selector"]]);
            create(checking);
        }
        ("apps", "daemonsets" | "deployments" | "replicasets") => {
            create(checking);
            fixed(checking, &[&["spec", "selector"]]);
        }
        ("apps", "statefulsets") => {
            create(checking);
            workloads::stateful_set(checking, change);
        }
        ("batch", "jobs") => {
            create(checking);
            workloads::job(checking, change);
        }
        ("", "resourcequotas") => {
            let scopes = |of: &Value| -> BTreeSet<String> {
                let scopes = list(&of["spec"], "scopes").iter();
                scopes.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            if scopes(change.new) != scopes(change.old) {
                let (field, value) = ("spec.scopes", &change.new["spec"]["scopes"]);
                checking.errors.push(invalid(checking.minor, field, value, ValueDisplay::Value, IMMUTABLE));
            }
        }
        ("storage.k8s.io", "volumeattachments") | ("resource.k8s.io", "resourceclaims" | "resourceclaimtemplates") => {
            change.immutable(checking, &["spec"], ValueDisplay::Own);
        }
        ("apps", "controllerrevisions") => change.immutable(checking, &["data"], ValueDisplay::Own),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            create(checking);
            role_ref(checking, change);
        }
        (group, plural) if UNRESTRICTED.contains(&(group, plural)) => create(checking),
        // Nothing but metadata can change.
        ("certificates.k8s.io", "certificatesigningrequests") => {}
        _ if classes(checking, sent, change) => create(checking),
        _ if changed => unknown(checking, &r.plural, "anything but metadata"),
        _ => {}
    }
}

/// Classes and other kinds of which some fields may not change; whether it is one of them.
fn classes(checking: &mut Checking<'_>, sent: Submission<'_>, change: Change<'_>) -> bool {
    let fixed = |checking: &mut Checking<'_>, path: &[&str]| change.immutable(checking, path, ValueDisplay::Value);
    match (sent.resource.group.as_str(), sent.resource.plural.as_str()) {
        ("networking.k8s.io", "ingressclasses") => fixed(checking, &["spec", "controller"]),
        ("networking.k8s.io", "ipaddresses") => change.immutable(checking, &["spec", "parentRef"], ValueDisplay::Own),
        ("node.k8s.io", "runtimeclasses") => fixed(checking, &["handler"]),
        ("scheduling.k8s.io", "priorityclasses") => {
            if change.changed(&["value"]) {
                checking.errors.push(FieldError::forbidden("value", "may not be changed in an update."));
            }
            fixed(checking, &["preemptionPolicy"]);
        }
        ("storage.k8s.io", "storageclasses") => {
            for key in ["parameters", "provisioner", "reclaimPolicy"] {
                if checking.minor >= Minor::V1_36 {
                    fixed(checking, &[key]);
                } else if change.changed(&[key]) {
                    checking.errors.push(FieldError::forbidden(key, &format!("updates to {key} are forbidden.")));
                }
            }
            fixed(checking, &["volumeBindingMode"]);
        }
        ("storage.k8s.io", "volumeattributesclasses") => {
            for key in ["driverName", "parameters"] {
                if change.changed(&[key]) {
                    checking.errors.push(FieldError::forbidden(key, &format!("updates to {key} are forbidden.")));
                }
            }
        }
        ("storage.k8s.io", "csidrivers") => {
            change.immutable_as(checking, &["spec", "attachRequired"], "spec.attachedRequired", ValueDisplay::Value);
            fixed(checking, &["spec", "volumeLifecycleModes"]);
        }
        ("discovery.k8s.io", "endpointslices") => fixed(checking, &["addressType"]),
        _ => return false,
    }
    true
}

/// Resources of which an update may change all that creation takes.
const UNRESTRICTED: &[(&str, &str)] = &[
    ("", "endpoints"),
    ("", "limitranges"),
    ("", "namespaces"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("", "serviceaccounts"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("coordination.k8s.io", "leases"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// `ValidateRoleBindingUpdate` in `pkg/apis/rbac/validation`.
fn role_ref(checking: &mut Checking<'_>, change: Change<'_>) {
    if !change.changed(&["roleRef"]) {
        return;
    }
    let of = &change.new["roleRef"];
    let field = |key: &str| quote(text(of, key));
    let (group, kind, name) = (field("apiGroup"), field("kind"), field("name"));
    let shown = match checking.minor {
        minor if minor < Minor::V1_34 => format!("rbac.RoleRef{{APIGroup:{group}, Kind:{kind}, Name:{name}}}"),
        minor if minor < Minor::V1_37 => format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}"),
        _ => NOT_SHOWN.to_owned(),
    };
    let detail = if checking.minor < Minor::V1_37 { "cannot change roleRef" } else { IMMUTABLE };
    checking.errors.push(FieldError::invalid_shown("roleRef", &shown, detail));
}

/// A change by the subresource `scale`: of the scale (`ValidateScale` in `pkg/apis/autoscaling/validation`), or of the
/// custom resource that it makes.
fn scaled(
    checking: &mut Checking<'_>,
    api: &Kinds,
    sent: Submission<'_>,
    old: &Stored,
    scale: &Value,
) -> Result<(), Refused> {
    let Some(custom) = api.custom(sent.resource) else {
        let replicas = &scale["spec"]["replicas"];
        if replicas.as_i64().is_some_and(|number| number < 0) {
            let text = "must be greater than or equal to 0";
            checking.errors.push(FieldError::invalid_value(checking.minor, "spec.replicas", replicas, text));
        }
        return Ok(());
    };
    let Some(parent) = old.parent() else {
        let what = format!("{}/scale", sent.resource.plural);
        let why = format!(
            "the schema of {what} is that of the object itself, which is not given: name it as the old object in place \
             of its scale"
        );
        checking.unknown.get_or_insert(why);
        return Ok(());
    };
    let paths = scale::paths(Some(custom), &sent.resource.version);
    let object = scale::scaled(parent, &paths, scale);
    custom.validate_against(api.minor, sent, Some(parent), &object)
}

/// A part of an object that is there in both, or an empty one.
fn nothing() -> &'static Value {
    static NOTHING: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| json!({}));
    &NOTHING
}

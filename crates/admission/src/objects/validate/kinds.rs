//! The validation of each kind, without its metadata.

use serde_json::{Value, json};

use super::{
    super::Resource, autoscaling, claims, data, formats, jobs, networking, node::Node, pods, rbac, services, shown,
    workloads,
};
use crate::validation::Checking;

/// The kinds with complete validation of creation, by group and plural.
pub(super) const VALIDATED: &[(&str, &str)] = &[
    ("", "configmaps"),
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

pub(super) fn check(checking: &mut Checking<'_>, r: &Resource, object: &Value) {
    let node = Node::new(object, "");
    let spec = node.get("spec");
    match (r.group.as_str(), r.plural.as_str()) {
        ("", "pods") => pods::pod(checking, object),
        ("", "services") => services::service(checking, object),
        ("", "replicationcontrollers") => workloads::replication_controller(checking, &spec),
        ("", "podtemplates") => pods::template(checking, &node.get("template")),
        ("", "persistentvolumeclaims") => claims::spec(checking, &spec),
        ("", "configmaps") => data::config_map(checking, object),
        ("", "secrets") => data::secret(checking, object),
        ("", "namespaces") => namespace(checking, &spec),
        ("apps", "deployments") => workloads::deployment(checking, &spec),
        ("apps", "replicasets") => workloads::replica_set(checking, &spec),
        ("apps", "daemonsets") => workloads::daemon_set(checking, &spec, generation(&node)),
        ("apps", "statefulsets") => workloads::stateful_set(checking, &spec),
        ("batch", "jobs") => jobs::job(checking, object),
        ("batch", "cronjobs") => jobs::cron_job(checking, object),
        ("policy", "poddisruptionbudgets") => budget(checking, &spec),
        ("networking.k8s.io", "ingresses") => networking::ingress(checking, object),
        ("networking.k8s.io", "networkpolicies") => networking::policy(checking, &spec),
        ("rbac.authorization.k8s.io", "roles") => rbac::role(checking, object, true),
        ("rbac.authorization.k8s.io", "clusterroles") => rbac::role(checking, object, false),
        ("rbac.authorization.k8s.io", "rolebindings") => rbac::binding(checking, object, true),
        ("rbac.authorization.k8s.io", "clusterrolebindings") => rbac::binding(checking, object, false),
        ("autoscaling", "horizontalpodautoscalers") if r.version == "v1" => {
            let spec = in_second_version(spec.value);
            autoscaling::autoscaler(checking, &Node::new(&spec, "spec"));
        }
        ("autoscaling", "horizontalpodautoscalers") => {
            autoscaling::autoscaler(checking, &spec);
            if r.version == "v1" {
                autoscaling::annotated(checking, &node);
            }
        }
        _ => {}
    }
}

/// A number that the API server keeps as a field, and shows in an annotation.
fn generation(object: &Node<'_>) -> Option<i64> {
    let annotations = object.get("metadata").get("annotations");
    annotations.text("deprecated.daemonset.template.generation").parse().ok()
}

/// The API server's own form of what the first version has.
fn in_second_version(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut()
        && let Some(share) = fields.remove("targetCPUUtilizationPercentage")
    {
        let target = json!({"type": "Utilization", "averageUtilization": share});
        fields
            .insert("metrics".to_owned(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    spec
}

fn namespace(checking: &mut Checking<'_>, spec: &Node<'_>) {
    for finalizer in spec.list("finalizers") {
        let name = finalizer.string();
        formats::label_key(checking, spec.field("finalizers"), name);
        if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
            let text = "name is neither a standard finalizer name nor is it fully qualified";
            checking.invalid(spec.field("finalizers"), name, text);
        }
    }
}

fn budget(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let amounts = ["minAvailable", "maxUnavailable"];
    if amounts.iter().all(|key| spec.has(key)) {
        checking.invalid_shown(&spec.path, &shown::budget(spec), "minAvailable and maxUnavailable cannot be both set");
    }
    for amount in amounts.iter().filter_map(|key| spec.part(key)) {
        formats::amount(checking, &amount);
        formats::at_most_all(checking, &amount);
    }
    formats::selector(checking, &spec.get("selector"));
    if let Some(policy) = spec.part("unhealthyPodEvictionPolicy") {
        checking.one_of(&policy, &["AlwaysAllow", "IfHealthyBudget"]);
    }
}

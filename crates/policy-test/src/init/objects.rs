//! The smallest objects of some kinds that the API server accepts.

use palisade_admission::objects::{Kinds, Resource};
use palisade_kube_json::{json::Change as _, pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

/// Maximum number of kinds in a generated suite. Policies distinguish fewer.
const MAX_KINDS: usize = 12;

/// A minimal object of each kind that a policy matches, with the labels that it must have; at least one.
pub(super) fn of_policy(policy: &Json, kinds: &Kinds) -> Vec<Json> {
    let matched = &policy["spec"]["matchConstraints"];
    let rules = matched["resourceRules"].as_array().map_or(&[][..], Vec::as_slice);
    let mut resources: Vec<&Resource> = Vec::new();
    for resource in rules.iter().flat_map(|rule| of_rule(rule, kinds)) {
        if !resources.iter().any(|known| known.kind == resource.kind) {
            resources.push(resource);
        }
    }
    let mut objects: Vec<_> =
        resources.iter().take(MAX_KINDS).map(|one| minimal(&one.api_version(), &one.kind)).collect();
    if objects.is_empty() {
        objects.push(pod::minimal("example"));
    }
    for (key, value) in matched["objectSelector"]["matchLabels"].as_object().into_iter().flatten() {
        for object in &mut objects {
            *object.at_mut(&["metadata", "labels", key]) = value.clone();
        }
    }
    objects
}

/// The resources that a rule matches, pods first: they are what most policies are about.
fn of_rule<'k>(rule: &Json, kinds: &'k Kinds) -> Vec<&'k Resource> {
    let has = |list: &str, found: &str| {
        let mut items = rule[list].as_array().into_iter().flatten().filter_map(Json::as_str);
        items.any(|item| item == "*" || item.split('/').next() == Some(found))
    };
    let fits = |one: &&Resource| {
        one.by_default
            && has("apiGroups", &one.group)
            && has("apiVersions", &one.version)
            && has("resources", &one.plural)
    };
    let mut found: Vec<_> = kinds.resources().iter().filter(fits).collect();
    found.sort_by_key(|one| one.plural != "pods");
    found
}

/// A minimal object of a kind; of one that is not known here only the metadata.
pub(crate) fn minimal(api_version: &str, kind: &str) -> Json {
    let name = "example";
    if let Some(workload) = WORKLOADS.iter().find(|one| (one.api_version, one.kind) == (api_version, kind)) {
        return workload.around(name, &pod::minimal(name));
    }
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    match kind {
        "Pod" => object = pod::minimal(name),
        "Service" => *object.at_mut(&["spec"]) = json!({"selector": {"app": name}, "ports": [{"port": 80}]}),
        "Ingress" => {
            let backend = json!({"service": {"name": name, "port": {"number": 80}}});
            *object.at_mut(&["spec"]) = json!({
                "rules": [{"host": "example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}],
            });
        }
        "PersistentVolumeClaim" => {
            *object.at_mut(&["spec"]) =
                json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        }
        "HorizontalPodAutoscaler" => {
            let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
            *object.at_mut(&["spec"]) = json!({"scaleTargetRef": target, "maxReplicas": 2});
        }
        "CustomResourceDefinition" => {
            *object.at_mut(&["metadata", "name"]) = json!("examples.example.org");
            *object.at_mut(&["spec"]) = json!({
                "group": "example.org", "scope": "Namespaced", "names": {"plural": "examples", "kind": "Example"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            });
        }
        "NetworkPolicy" => *object.at_mut(&["spec"]) = json!({"podSelector": {}, "policyTypes": ["Ingress"]}),
        "Role" | "ClusterRole" => {
            *object.at_mut(&["rules"]) = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = kind.trim_end_matches("Binding");
            *object.at_mut(&["roleRef"]) = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name});
            *object.at_mut(&["subjects"]) =
                json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]);
        }
        _ => {}
    }
    object
}

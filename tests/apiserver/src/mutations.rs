//! Cases of mutation (`tests/apiserver/cases/mutation`): a policy, a request, and what becomes of the object. The same
//! are put to a real API server and to the harness.
//!
//! Each case has a namespace of its own, to which its binding is limited, so that all can be in force at once.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    name: String,
    mutations: Vec<Patch>,
    #[serde(default)]
    variables: Vec<Json>,
    #[serde(default)]
    match_conditions: Vec<Json>,
    #[serde(default = "fail")]
    failure_policy: String,
    #[serde(default = "never")]
    reinvocation_policy: String,
    param_ref: Option<Json>,
    /// `ConfigMaps`.
    #[serde(default)]
    params: Vec<Param>,
    /// The changes of the base: for an update the new object.
    #[serde(default)]
    object: Json,
    #[serde(default = "deployment")]
    base: String,
    #[serde(default = "create")]
    operation: String,
    #[serde(default)]
    subresource: String,
    /// By JSON pointer; null if nothing is there.
    expect: Option<Map<String, Json>>,
    /// A part of the text.
    denied: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Patch {
    Apply(String),
    Patch(String),
}

#[derive(Debug, Deserialize)]
struct Param {
    name: String,
    labels: Json,
    data: Json,
}

fn fail() -> String {
    "Fail".to_owned()
}

fn never() -> String {
    "Never".to_owned()
}

fn deployment() -> String {
    "deployment".to_owned()
}

fn create() -> String {
    "CREATE".to_owned()
}

#[derive(Clone, Debug)]
pub struct Case {
    /// File and name, which its namespace has as well.
    pub name: String,
    /// The namespace, parameters, the policy and its binding, in this order.
    pub cluster: Vec<Json>,
    /// `CREATE` or `UPDATE`.
    pub operation: String,
    /// `status`, or nothing.
    pub subresource: String,
    /// The resource's path below its namespace's: `apis/apps/v1`, `deployments`.
    pub resource: (&'static str, &'static str),
    /// The stored object, for an update.
    pub old: Option<Json>,
    pub object: Json,
    pub expected: Expected,
}

/// The expectation of a case.
#[derive(Clone, Debug)]
pub enum Expected {
    /// Values of the changed object by JSON pointer; null is absent.
    Object(Map<String, Json>),
    /// A part of the text of a refusal.
    Denied(String),
}

impl Expected {
    /// The unmet expectations. `Err` is the text of a denial.
    pub fn unmet(&self, found: &Result<Json, String>) -> Vec<String> {
        match (self, found) {
            (Self::Object(values), Ok(object)) => values
                .iter()
                .filter_map(|(pointer, wanted)| {
                    let found = object.pointer(pointer).unwrap_or(&Json::Null);
                    (found != wanted).then(|| format!("{pointer}: expected {wanted}, found {found}"))
                })
                .collect(),
            (Self::Denied(part), Err(text)) if text.replace('\u{a0}', " ").contains(part) => vec![],
            (expected, found) => vec![format!("expected {expected:?}, found {found:?}")],
        }
    }
}

/// A kind of objects for which there are no schemas but in a CustomResourceDefinition.
pub fn definition() -> Json {
    let text = json!({"type": "string"});
    let list = |of: &Json, extra: Json| {
        let mut list = json!({"type": "array", "items": of});
        if let (Some(list), Json::Object(extra)) = (list.as_object_mut(), extra) {
            list.extend(extra);
        }
        list
    };
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": text, "size": {"type": "integer"}, "color": {"type": "string", "default": "red"},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.mutation.example"},
        "spec": {
            "group": "mutation.example", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "parts": list(&part, json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})),
                    "tags": list(&text, json!({"x-kubernetes-list-type": "set"})),
                    "args": list(&text, json!({})),
                    "port": {"x-kubernetes-int-or-string": true},
                    "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}}}},
            }],
        },
    })
}

/// Reads all cases below a directory, by file and order.
///
/// # Panics
/// A file is not what it should be.
pub fn cases(directory: &Path) -> Vec<Case> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.expect("an entry of a directory").path())
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a file that can be read");
        let written: Vec<Written> =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let prefix = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        cases.extend(written.into_iter().map(|case| case.complete(&prefix)));
    }
    cases
}

impl Written {
    fn complete(self, prefix: &str) -> Case {
        let name = format!("{prefix}-{}", self.name);
        let (resource, base) = base(&self.base);
        let mut old = base;
        old["metadata"]["namespace"] = name.clone().into();
        let mut object = old.clone();
        merge(&mut object, &self.object);
        let updates = self.operation == "UPDATE";
        let mut cluster = vec![json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"case": name}},
        })];
        cluster.extend(self.params.iter().map(|param| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": param.data,
                "metadata": {"name": param.name, "namespace": name, "labels": param.labels},
            })
        }));
        let (group, version) = match resource.0.split('/').collect::<Vec<_>>()[..] {
            [_, group, version] => (group, version),
            [_, version] => ("", version),
            _ => ("", ""),
        };
        let path = if self.subresource.is_empty() {
            resource.1.to_owned()
        } else {
            format!("{}/{}", resource.1, self.subresource)
        };
        let mutations: Vec<Json> = self
            .mutations
            .iter()
            .map(|patch| match patch {
                Patch::Apply(expression) => {
                    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
                }
                Patch::Patch(expression) => json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}),
            })
            .collect();
        let mut spec = json!({
            "failurePolicy": self.failure_policy, "reinvocationPolicy": self.reinvocation_policy,
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": [version], "operations": [self.operation], "resources": [path],
            }]},
            "mutations": mutations,
        });
        for (field, items) in [("variables", self.variables), ("matchConditions", self.match_conditions)] {
            if !items.is_empty() {
                spec[field] = items.into();
            }
        }
        let mut binding = json!({
            "policyName": name,
            "matchResources": {"namespaceSelector": {"matchLabels": {"case": name}}},
        });
        if let Some(reference) = self.param_ref {
            spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
            binding["paramRef"] = reference;
        }
        let registration = |kind: &str, spec: Json| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec,
            })
        };
        cluster.push(registration("MutatingAdmissionPolicy", spec));
        cluster.push(registration("MutatingAdmissionPolicyBinding", binding));
        let expected = match (self.expect, self.denied) {
            (Some(values), None) => Expected::Object(values),
            (None, Some(text)) => Expected::Denied(text),
            _ => panic!("{name}: one of `expect` and `denied`"),
        };
        Case {
            operation: self.operation,
            subresource: self.subresource,
            resource,
            old: updates.then_some(old),
            object,
            expected,
            cluster,
            name,
        }
    }
}

fn base(name: &str) -> ((&'static str, &'static str), Json) {
    let container = json!({
        "name": "app", "image": "registry.example.org/app:1.0", "args": ["a", "b"],
        "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}], "ports": [{"containerPort": 80}],
    });
    match name {
        "deployment" => (
            ("apis/apps/v1", "deployments"),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
                "spec": {
                    "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"securityContext": {"fsGroup": 5}, "containers": [container]},
                    },
                },
            }),
        ),
        "pod" => (
            ("api/v1", "pods"),
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
                "spec": {"automountServiceAccountToken": false, "containers": [container]},
            }),
        ),
        "configmap" => (
            ("api/v1", "configmaps"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "1"}}),
        ),
        "gadget" => (
            ("apis/mutation.example/v1", "gadgets"),
            json!({
                "apiVersion": "mutation.example/v1", "kind": "Gadget", "metadata": {"name": "web"},
                "spec": {"parts": [{"name": "a", "size": 1}], "tags": ["x"], "args": ["z"], "any": {"kept": true}},
            }),
        ),
        other => panic!("no base {other:?}"),
    }
}

/// A merge patch (RFC 7386).
fn merge(target: &mut Json, patch: &Json) {
    let Some(fields) = patch.as_object() else {
        if !patch.is_null() {
            *target = patch.clone();
        }
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        merge(&mut target[key], value);
    }
}

/// An object without what an API server sets anew for each request.
pub fn comparable(mut object: Json) -> Json {
    if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
        for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields"] {
            metadata.remove(field);
        }
    }
    object
}

//! Updates: each one that changes what a check reads to what it forbids is denied, and one that changes nothing that a
//! check reads passes, whatever the object violates.
//!
//! The API server lets an update of a pod change few fields of its spec and nearly all metadata, and of a workload nearly
//! everything. A policy judges an update in the way of its binding: with parameters or without.

mod catalogue;
mod custom;
mod exceptions;

use palisade_api::{ToolSecurityProfile, names::Shape};
use palisade_compiler::{Compiled, Namespace, Request, compile};
use palisade_gate::{Decision, Operation, ValidationRequest, Validator, Violation, check};
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

pub(crate) const CREATED: &str = "2026-05-01T00:00:00Z";
pub(crate) const TENANT: &str = "tenant";

pub(crate) fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged"},
    });
    pod::merge(&mut profile["spec"], spec);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    compile(&profile).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"))
}

/// The policies of a profile, as they are bound.
pub(crate) struct BoundPolicies {
    policies: [Validator; 2],
    params: Option<Json>,
    /// Whether updates of pods have parameters.
    with: bool,
}

impl BoundPolicies {
    pub(crate) fn new(compiled: &Compiled, requests: &[Request]) -> Self {
        let policies =
            Shape::OF_PODS.map(|shape| Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap());
        let params = compiled.probes.params.as_ref().map(|spec| json!({"spec": spec}));
        let namespace = Namespace { name: TENANT.to_owned(), ..Namespace::default() };
        let asked = (!requests.is_empty()).then(|| {
            let params = compiled.params(&namespace, requests, CREATED.parse().unwrap()).unwrap();
            json!({"spec": params.spec})
        });
        let updates = compiled.bundle.pods.updates.as_ref();
        let with = updates.is_none_or(|updates| updates.spec.param_ref.is_some());
        Self { policies, params: asked.or(params), with }
    }

    pub(crate) fn decision(&self, object: &Json, old: &Json, user: &str) -> Decision {
        let kind = object["kind"].as_str().unwrap();
        let updated = !old.is_null();
        let [object, old] = [object, old].map(|one| {
            let mut one = one.clone();
            if !one.is_null() {
                one["metadata"]["creationTimestamp"] = CREATED.into();
            }
            one
        });
        let params = self.params.as_ref().filter(|_| self.with || !updated || kind != "Pod");
        let operation = if updated { Operation::Update } else { Operation::Create };
        let request = ValidationRequest {
            namespace: TENANT,
            user,
            operation,
            params,
            ..ValidationRequest::create(kind, &object)
        };
        let request = ValidationRequest { old_object: &old, ..request };
        self.policies[usize::from(kind != "Pod")].evaluate(&request).unwrap_or_else(|error| panic!("{error}\n{object}"))
    }

    pub(crate) fn creates(&self, object: &Json) -> bool {
        self.decision(object, &Json::Null, "alice") == Decision::Admit
    }

    #[track_caller]
    pub(crate) fn updates(&self, old: &Json, new: &Json, user: &str, admitted: bool, what: &str) {
        let decision = self.decision(new, old, user);
        assert_eq!(decision == Decision::Admit, admitted, "{what}: {decision:?}\nold: {old}\nnew: {new}");
    }
}

/// Metadata that no check of the catalogue reads.
pub(crate) fn neutral(object: &Json) -> Vec<Json> {
    let with = |field: &str, key: &str, value: Json| {
        let mut new = object.clone();
        new["metadata"][field][key] = value;
        new
    };
    let mut finalized = object.clone();
    finalized["metadata"]["finalizers"] = json!(["example.com/a"]);
    vec![with("labels", "neutral", json!("x")), with("annotations", "neutral", json!("x")), finalized]
}

pub(crate) const OTHER_LABEL: (&str, &str) = ("/metadata/labels/other", "\"x\"");
pub(crate) const OTHER_ANNOTATION: (&str, &str) = ("/metadata/annotations/other", "\"x\"");

/// Sets what JSON pointers lead to; null removes it.
pub(crate) fn set(object: &mut Json, changes: &[(&str, &str)]) {
    for (pointer, value) in changes {
        let value: Json = serde_json::from_str(value).unwrap();
        let mut keys: Vec<_> = pointer.split('/').skip(1).collect();
        let last = keys.pop().unwrap();
        let mut parent = object.as_object_mut().unwrap();
        for key in keys {
            parent = parent.entry(key).or_insert_with(|| json!({})).as_object_mut().unwrap();
        }
        if value.is_null() {
            parent.remove(last);
        } else {
            parent.insert(last.to_owned(), value);
        }
    }
}

/// Two checks of different labels: each is made where its own label changes, and neither for what it found before.
#[test]
fn a_check_is_made_only_where_what_it_reads_changes() {
    let own = |id: &str| json!({"id": id, "expression": format!("object.metadata.?labels[?'{id}'].orValue('') == ''"), "message": "no"});
    let compiled = compiled(&json!({
        "baseline": "Baseline",
        "customChecks": [own("a"), own("b"), {"id": "c", "expression": "!has(variables.spec.hostname)", "message": "no"}],
    }));
    check(compiled.clone()).unwrap();
    let judge = BoundPolicies::new(&compiled, &[]);
    let mut old = pod::minimal("x");
    set(&mut old, &[("/spec/hostname", "\"h\""), ("/spec/hostNetwork", "true"), ("/metadata/labels/a", "\"x\"")]);
    let found = |changes: &[(&str, &str)]| -> Vec<String> {
        let mut new = old.clone();
        set(&mut new, changes);
        match judge.decision(&new, &old, "alice") {
            Decision::Admit => vec![],
            Decision::Deny { violations, .. } => violations.into_iter().map(|Violation { check, .. }| check).collect(),
        }
    };
    assert_eq!(found(&[OTHER_LABEL, OTHER_ANNOTATION]), [""; 0]);
    assert_eq!(found(&[("/metadata/labels/b", "\"x\"")]), ["b"]);
    assert_eq!(found(&[("/metadata/labels/a", "\"y\"")]), ["a"]);
    assert_eq!(found(&[("/metadata/labels/a", "null")]), [""; 0]);
    let annotation = "/metadata/annotations/container.apparmor.security.beta.kubernetes.io~main";
    let unconfined = [(annotation, "\"unconfined\"")];
    let mut new = old.clone();
    set(&mut new, &unconfined);
    let annotations = new["metadata"]["annotations"].as_object_mut().unwrap();
    let value = annotations.values().next().unwrap().clone();
    annotations.clear();
    annotations.insert("container.apparmor.security.beta.kubernetes.io/main".to_owned(), value);
    let Decision::Deny { violations, .. } = judge.decision(&new, &old, "alice") else { panic!("admitted") };
    let checks: Vec<_> = violations.iter().map(|one| one.check.as_str()).collect();
    assert!(checks.contains(&"appArmorProfile") && !checks.contains(&"a"), "{checks:?}");
    // The spec is judged as a whole where it changes, and then the rest, too.
    let all = found(&[("/spec/containers", r#"[{"name": "main", "image": "other"}]"#)]);
    assert!(["a", "c", "hostNamespaces"].iter().all(|id| all.iter().any(|one| one == id)), "{all:?}");
}

/// A profile whose checks read the spec alone says so in one comparison.
#[test]
fn what_only_reads_the_spec_compares_the_spec_alone() {
    let text = |spec: &Json, shape| {
        let policy = compiled(spec).bundle.pair(shape).unwrap().policy.clone();
        let variables = policy.spec.unwrap().variables.unwrap();
        assert!(variables.iter().all(|one| one.name != "unchanged"), "{spec}");
        variables.into_iter().find(|one| one.name == "exempt").unwrap().expression
    };
    for spec in [
        json!({"privileges": {"privileged": false}}),
        json!({"customChecks": [
            {"id": "a", "expression": "variables.spec.?hostname.orValue('') == ''", "message": "no"},
            {"id": "b", "target": "Containers", "expression": "container.name != object.metadata.name", "message": "no"},
            {"id": "c", "target": "Volumes", "expression": "volume.name != request.namespace",
             "messageExpression": "volume.name + namespaceObject.metadata.name"},
            {"id": "d", "expression": "variables.containers.all(object, object.name != 'metadata')", "message": "no"},
        ]}),
    ] {
        let pods = text(&spec, Shape::Pods);
        assert!(pods.contains("(request.operation == 'UPDATE' && object.spec == oldObject.spec)\n"), "{pods}");
        assert!(!text(&spec, Shape::Workloads).contains("oldObject.metadata"), "{spec}");
    }
}

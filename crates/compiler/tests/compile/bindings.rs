//! Each request matches one binding.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{MatchResources, ValidatingAdmissionPolicyBinding};
use palisade_api::{
    Stage,
    names::{self, Shape},
};
use palisade_compiler::{Namespace, PolicyWithBindings};
use palisade_kube_json::selector::{self, Labels};
use serde_json::{Value as Json, json};

use super::compiled;

/// Updates of pods and of workloads: whether there is a binding for them, and with which parameters.
#[allow(clippy::option_option, reason = "no binding, and one that reads no parameters, are two answers")]
fn updates(spec: &Json) -> Vec<Option<Option<String>>> {
    let mut spec = spec.clone();
    spec["enforcement"] = json!({"workloads": "Deny"});
    let not_found = |pair: &PolicyWithBindings| {
        let updates = pair.updates.as_ref()?;
        Some(updates.spec.param_ref.as_ref().and_then(|param_ref| param_ref.parameter_not_found_action.clone()))
    };
    compiled(&spec).bundle.pairs().map(|(_, pair)| not_found(pair)).collect()
}

#[test]
fn update_binding_has_parameters_only_where_updates_need_them() {
    let exception = |check: &str| json!([{"namespaces": ["x"], "checks": [check], "reason": "a test", "expires": "2099-01-01T00:00:00Z"}]);
    let uid = json!({"users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
        "parameters": [{"name": "uid", "type": "Integer"}]});
    let with = |field: &str, value: Json| {
        let mut spec = uid.clone();
        spec[field] = value;
        spec
    };
    let custom = |expression: &str| json!([{"id": "own", "expression": expression, "message": "no"}]);
    let registries = json!([{"name": "registry", "type": "String"}]);
    let (none, without, allow) = (None, Some(None), Some(Some("Allow".to_owned())));
    for (spec, pods) in [
        (json!({}), &none),
        (uid.clone(), &without),
        (with("images", json!({"allowedRegistries": ["a.example"]})), &without),
        (json!({"images": {"allowedRegistries": ["$registry"]}, "parameters": registries}), &allow),
        (with("exceptions", exception("privileged")), &without),
        // It can be asked for an image, which an update changes.
        (with("exceptionRequests", json!({"checks": ["privileged"]})), &allow),
        (json!({"exceptionRequests": {"checks": ["privileged"]}}), &allow),
        (json!({"exceptionRequests": {"checks": ["hostNamespaces"]}}), &allow),
        // Annotations change, too.
        (with("exceptions", exception("appArmorProfile")), &allow),
        (json!({"exceptions": exception("privileged")}), &without),
        (with("customChecks", custom("object.spec.hostname != ''")), &without),
        (with("customChecks", custom("params.spec.integers['uid'] > 0")), &allow),
    ] {
        let workloads = pods.is_some().then(|| Some("Allow".to_owned()));
        assert_eq!(updates(&spec), [pods.clone(), workloads], "{spec}");
        let bundle = compiled(&spec).bundle;
        let text = serde_json::to_string(&bundle.pods.policy).unwrap();
        assert_eq!(text.contains("variables.updated"), *pods == without, "{spec}");
    }
    let mut excepted = with("images", json!({"allowedRegistries": ["a.example"]}));
    excepted["exceptions"] = exception("imageRegistries");
    assert_eq!(updates(&excepted)[0], allow);
}

#[test]
fn each_request_matches_one_binding() {
    let spec = json!({"parameters": [{"name": "x", "type": "String"}], "enforcement": {"workloads": "Deny"}});
    for (_, pair) in compiled(&spec).bundle.pairs() {
        let requests = |rules: Option<&MatchResources>| {
            let rules = rules.and_then(|of| of.resource_rules.clone()).unwrap_or_default();
            let mut requests = Vec::new();
            for rule in rules {
                for operation in rule.operations.iter().flatten() {
                    for resource in rule.resources.iter().flatten() {
                        requests.push((rule.api_groups.clone(), operation.clone(), resource.clone()));
                    }
                }
            }
            requests.sort();
            requests
        };
        let mut all = requests(pair.policy.spec.as_ref().and_then(|spec| spec.match_constraints.as_ref()));
        // The one thing that does not exist.
        all.retain(|(_, operation, resource)| !(operation == "CREATE" && resource.contains('/')));
        let mut bound: Vec<_> =
            pair.bindings().flat_map(|binding| requests(binding.spec.match_resources.as_ref())).collect();
        bound.sort();
        assert_eq!(all, bound);
    }
}

#[test]
fn each_request_matches_one_binding_of_the_stage_of_its_namespace() {
    let parameters = json!([{"name": "x", "type": "String"}]);
    for spec in [json!({}), json!({"parameters": parameters})] {
        let mut spec = spec;
        spec["enforcement"] = json!({"pods": "Warn", "workloads": "Audit", "namespaceStages": "ByLabel"});
        let compiled = compiled(&spec);
        for (shape, default) in [(Shape::Pods, Stage::Warn), (Shape::Workloads, Stage::Audit)] {
            let pair = compiled.bundle.pair(shape).unwrap();
            let names: BTreeSet<_> = pair.bindings().filter_map(|binding| binding.metadata.name.clone()).collect();
            let known: BTreeSet<_> = names::bindings(&compiled.profile, shape).collect();
            assert_eq!(names.len(), pair.bindings().count());
            assert!(names.is_subset(&known), "{names:?}");
            // What is probed is what holds where it is probed.
            let probed = Namespace { labels: compiled.probe_labels().unwrap(), ..Namespace::default() };
            assert_eq!(compiled.stages_in(&probed).pods, Stage::Deny);
            assert_eq!(compiled.probed_binding(shape.into()).unwrap().spec.validation_actions, ["Deny"]);
            for (label, stage) in [
                (None, default),
                (Some("Deny"), Stage::Deny),
                (Some("Warn"), Stage::Warn),
                (Some("Audit"), Stage::Audit),
                (Some("deny"), Stage::Deny),
                (Some(""), Stage::Deny),
            ] {
                let mut labels = Labels::from([("tenancy".to_owned(), "x".to_owned())]);
                labels.extend(label.map(|value| (names::stage_label(&compiled.profile), value.to_owned())));
                let matched = |binding: &&ValidatingAdmissionPolicyBinding| {
                    let matching = binding.spec.match_resources.as_ref().unwrap();
                    selector::matches(matching.namespace_selector.as_ref().unwrap(), &labels)
                };
                let bound: Vec<_> = pair.bindings().filter(matched).collect();
                // The one for updates, too, if there are parameters. Those two never match the same request.
                assert_eq!(bound.len(), if compiled.is_parameterized() { 2 } else { 1 }, "{label:?}");
                for binding in &bound {
                    let actions = binding.spec.validation_actions.first().map(String::as_str);
                    assert_eq!(actions, Some(<&str>::from(stage)), "{label:?}");
                }
                let namespace = Namespace { name: "n".into(), labels, ..Namespace::default() };
                let stages = compiled.stages_in(&namespace);
                let of_shape = match shape {
                    Shape::Pods => Some(stages.pods),
                    Shape::Workloads => stages.workloads,
                    Shape::Objects => stages.objects,
                };
                assert_eq!(of_shape, Some(stage), "{label:?}");
            }
        }
    }
}

//! Suites of other tools. They run as they are; the notes of the suite report what cannot be carried over.
//!
//! Both tools evaluate a policy on its own, so the comparison is on that, too: whether the policy finds a violation,
//! not what its binding makes of that. Unlike there, the policy must match the request.

pub mod kaptest;
pub mod kyverno;

use std::collections::BTreeMap;

use palisade_admission::objects::Kinds;
use palisade_kube_json::json::Change as _;
use serde_json::{Value as Json, json};

use crate::{cluster::Member, loader::Loader, places::Origin};

/// The text at a pointer; empty if there is none.
pub(crate) fn text<'j>(json: &'j Json, pointer: &str) -> &'j str {
    json.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

/// The texts of a list.
pub(crate) fn texts(json: &Json) -> Vec<String> {
    json.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

/// Notes the fields of a mapping that are not among `known`.
pub(crate) fn note_others(loader: &mut Loader<'_>, path: &str, json: &Json, known: &[&str]) {
    for (key, _) in json.as_object().into_iter().flatten().filter(|(key, _)| !known.contains(&key.as_str())) {
        let dot = if path.is_empty() { "" } else { "." };
        loader.notes.push(format!("{path}{dot}{key} is not carried over"));
    }
}

/// Adds the fields that the API server requires and the other tools do not, and notes that.
pub(crate) fn complete(loader: &mut Loader<'_>, members: &mut [Member]) {
    for member in members {
        let (kind, name) = (member.kind().to_owned(), member.name().to_owned());
        let mut note = |what: &str| loader.notes.push(format!("{kind} {name}: {what}"));
        let object = &mut member.object;
        if !object["spec"].is_object() {
            continue;
        }
        let api_version = text(object, "/apiVersion").to_owned();
        if api_version.starts_with("admissionregistration.k8s.io/v1")
            && api_version != "admissionregistration.k8s.io/v1"
        {
            note(&format!("read as v1, because {api_version} is no longer served"));
            *object.at_mut(&["apiVersion"]) = "admissionregistration.k8s.io/v1".into();
        }
        if kind == "ValidatingAdmissionPolicyBinding" {
            if object["spec"]["validationActions"].is_null() {
                note("validationActions are missing: [Deny] is assumed");
                *object.at_mut(&["spec", "validationActions"]) = json!(["Deny"]);
            }
            let param = object.at_mut(&["spec", "paramRef"]);
            if param.is_object() && param["parameterNotFoundAction"].is_null() {
                note("parameterNotFoundAction is missing: Deny is assumed");
                *param.at_mut(&["parameterNotFoundAction"]) = "Deny".into();
            }
        }
        let rules = object.pointer_mut("/spec/matchConstraints/resourceRules").and_then(Json::as_array_mut);
        for rule in rules.into_iter().flatten().filter(|rule| rule["operations"].is_null()) {
            note("operations are missing: all are assumed");
            *rule.at_mut(&["operations"]) = json!(["*"]);
        }
    }
}

/// Definitions that allow anything, for custom kinds without a definition: the other tools need none.
pub(crate) fn stub_crds(loader: &mut Loader<'_>, members: &[Member]) -> Vec<Member> {
    let kinds = Kinds::builtin(loader.server.minor);
    let mut custom: BTreeMap<(String, String), (Vec<String>, bool)> = BTreeMap::new();
    let mut add = |api_version: &str, kind: &str, namespaced: bool| {
        let Some((group, version)) = api_version.split_once('/') else { return };
        let defined = |member: &Member| {
            member.kind() == "CustomResourceDefinition"
                && text(&member.object, "/spec/group") == group
                && text(&member.object, "/spec/names/kind") == kind
        };
        if kinds.by_kind(api_version, kind).is_some() || kind.is_empty() || members.iter().any(defined) {
            return;
        }
        let (versions, scoped) = custom.entry((group.to_owned(), kind.to_owned())).or_default();
        if !versions.iter().any(|known| known == version) {
            versions.push(version.to_owned());
        }
        *scoped |= namespaced;
    };
    for member in members {
        let namespaced = !text(&member.object, "/metadata/namespace").is_empty();
        add(text(&member.object, "/apiVersion"), member.kind(), namespaced);
        add(text(&member.object, "/spec/paramKind/apiVersion"), text(&member.object, "/spec/paramKind/kind"), false);
    }
    let mut stubs = Vec::new();
    for ((group, kind), (versions, namespaced)) in custom {
        loader.notes.push(format!("no file defines {kind} of {group}: a CRD that allows anything is assumed"));
        let singular = kind.to_lowercase();
        let plural = match singular.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if singular.ends_with(['s', 'x']) => format!("{singular}es"),
            None => format!("{singular}s"),
        };
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let version = |(index, name): (usize, &String)| json!({"name": name, "served": true, "storage": index == 0, "schema": schema});
        let versions: Vec<_> = versions.iter().enumerate().map(version).collect();
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
                "scope": if namespaced { "Namespaced" } else { "Cluster" },
                "versions": versions,
            },
        });
        let origin = Origin { generated: true, ..Origin::new(loader.source, loader.index) };
        stubs.push(Member { object, origin });
    }
    stubs
}

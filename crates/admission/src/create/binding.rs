//! Bindings of policies.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::rules;
use crate::validation::{Checking, FieldError as Error, list, meta, names, part, text};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

/// Checks a `ValidatingAdmissionPolicyBinding`.
pub(super) fn validating(checking: &mut Checking<'_>, object: &Json) {
    common(checking, object);
    let field = "spec.validationActions";
    let actions: Vec<&str> = object
        .get("spec")
        .map(|spec| list(spec, "validationActions"))
        .unwrap_or_default()
        .iter()
        .filter_map(Json::as_str)
        .collect();
    let mut seen = BTreeSet::new();
    for (index, action) in actions.iter().enumerate() {
        let at = format!("{field}[{index}]");
        if !ACTIONS.contains(action) {
            checking.errors.push(Error::not_supported(checking.minor, &at, action, &ACTIONS));
        }
        if !seen.insert(*action) {
            checking.errors.push(Error::duplicate(at, action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        checking.errors.push(Error::invalid_list(
            checking.minor,
            field,
            ("admissionregistration.ValidationAction", &actions),
            "must not contain both Deny and Warn (repeating the same validation failure information in the API \
             response and headers serves no purpose)",
        ));
    }
    if seen.is_empty() {
        checking.errors.push(Error::required(field, "at least one validation action is required"));
    }
}

/// Checks a `MutatingAdmissionPolicyBinding`.
pub(super) fn mutating(checking: &mut Checking<'_>, object: &Json) {
    common(checking, object);
    if let Some(resources) = object.pointer("/spec/matchResources") {
        rules::no_deletion(checking, resources, "spec.matchResources");
    }
}

fn common(checking: &mut Checking<'_>, object: &Json) {
    meta::check(checking, object, names::subdomain);
    let empty = Json::Null;
    let spec = object.get("spec").unwrap_or(&empty);
    let policy = text(spec, "policyName");
    if policy.is_empty() {
        checking.errors.push(Error::required("spec.policyName", ""));
    } else {
        let wrong = names::subdomain(policy);
        checking.errors.extend(wrong.iter().map(|wrong| Error::invalid("spec.policyName", policy, wrong)));
    }
    if let Some(param_ref) = part(spec, "paramRef") {
        // `SetDefaults_ParamRef` of v1alpha1.
        let has_default = object["apiVersion"] == "admissionregistration.k8s.io/v1alpha1";
        params(checking, param_ref, "spec.paramRef", has_default);
    }
    if let Some(resources) = part(spec, "matchResources") {
        rules::match_resources(checking, resources, "spec.matchResources");
    }
}

fn params(checking: &mut Checking<'_>, param_ref: &Json, field: &str, has_default: bool) {
    let exclusive = "name and selector are mutually exclusive";
    let name = text(param_ref, "name");
    let selector = part(param_ref, "selector");
    if !name.is_empty() {
        let at = format!("{field}.name");
        checking.errors.extend(names::path_segment(name).iter().map(|wrong| Error::invalid(&at, name, wrong)));
        if selector.is_some() {
            checking.errors.push(Error::forbidden(at, exclusive));
        }
    }
    if let Some(selector) = selector {
        let at = format!("{field}.selector");
        meta::selector(checking, selector, &at);
        if !name.is_empty() {
            checking.errors.push(Error::forbidden(at, exclusive));
        }
    } else if name.is_empty() {
        checking.errors.push(Error::required(field, "one of name or selector must be specified"));
    }
    let at = format!("{field}.parameterNotFoundAction");
    match text(param_ref, "parameterNotFoundAction") {
        "" if has_default => {}
        "" => checking.errors.push(Error::required(at, "")),
        "Deny" | "Allow" => {}
        other => checking.errors.push(Error::not_supported(checking.minor, at, other, &["Deny", "Allow"])),
    }
}

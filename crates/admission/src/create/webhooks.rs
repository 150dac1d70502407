//! `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration` (`validateMutatingWebhook`,
//! `k8s.io/apiserver/pkg/util/webhook`).

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::Value as Json;

use super::{
    expressions::Expressions,
    rules::{self, strings},
    validating::conditions,
};
use crate::validation::{Checking, FieldError as Error, list, meta, names, part, text};

/// Versions of `AdmissionReview` of which a webhook must know one.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

/// Checks a configuration of either kind.
pub(super) fn configuration(checking: &mut Checking<'_>, object: &Json) {
    meta::check(checking, object, names::subdomain);
    if checking.old.is_some() {
        // What an update may keep that a new object may not have depends on all entries of the old one.
        checking.unknown.get_or_insert_with(|| "updates of webhook configurations are not validated".to_owned());
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in list(object, "webhooks").iter().enumerate() {
        let field = format!("webhooks[{index}]");
        webhook(checking, entry, &field);
        reviews(checking, &strings(entry, "admissionReviewVersions"), &format!("{field}.admissionReviewVersions"));
        let name = text(entry, "name");
        if !name.is_empty() && !seen.insert(name) {
            checking.errors.push(Error::duplicate(format!("{field}.name"), name));
        }
    }
}

fn webhook(checking: &mut Checking<'_>, entry: &Json, field: &str) {
    qualified(checking, text(entry, "name"), format!("{field}.name"));
    for (index, rule) in list(entry, "rules").iter().enumerate() {
        rules::rule(checking, rule, &format!("{field}.rules[{index}]"));
    }
    one_of(checking, entry, field, "failurePolicy", &["Fail", "Ignore"]);
    one_of(checking, entry, field, "matchPolicy", &["Equivalent", "Exact"]);
    if part(entry, "sideEffects").is_none() {
        let detail = format!("must specify one of {}", NO_SIDE_EFFECTS.join(", "));
        checking.errors.push(Error::required(format!("{field}.sideEffects"), &detail));
    }
    one_of(checking, entry, field, "sideEffects", &NO_SIDE_EFFECTS);
    if let Some(seconds) =
        part(entry, "timeoutSeconds").filter(|one| !one.as_i64().is_some_and(|s| (1..=30).contains(&s)))
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        checking.errors.push(Error::invalid_value(checking.minor, format!("{field}.timeoutSeconds"), seconds, detail));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = part(entry, key) {
            meta::selector(checking, selector, &format!("{field}.{key}"));
        }
    }
    one_of(checking, entry, field, "reinvocationPolicy", &["IfNeeded", "Never"]);
    let empty = Json::Null;
    client(checking, entry.get("clientConfig").unwrap_or(&empty), &format!("{field}.clientConfig"));
    let expressions = Expressions::new(checking.minor, false, false, None);
    conditions(checking, list(entry, "matchConditions"), &expressions, &format!("{field}.matchConditions"));
}

/// Says it of a text that is there and is none of these.
fn one_of(checking: &mut Checking<'_>, entry: &Json, field: &str, key: &str, known: &[&str]) {
    if let Some(found) = part(entry, key).and_then(Json::as_str).filter(|found| !known.contains(found)) {
        checking.errors.push(Error::not_supported(checking.minor, format!("{field}.{key}"), found, known));
    }
}

/// `IsFullyQualifiedName`.
fn qualified(checking: &mut Checking<'_>, name: &str, field: String) {
    let wrong = names::subdomain(name);
    checking.errors.extend(if name.is_empty() {
        Some(Error::required(field, ""))
    } else if !wrong.is_empty() {
        Some(Error::invalid(field, name, &wrong.join(",")))
    } else if name.split('.').count() < 3 {
        Some(Error::invalid(field, name, "should be a domain with at least three segments separated by dots"))
    } else {
        None
    });
}

fn reviews(checking: &mut Checking<'_>, versions: &[&str], field: &str) {
    let errors = &mut checking.errors;
    let known = REVIEWS.join(", ");
    if versions.is_empty() {
        return errors.push(Error::required(field, &format!("must specify one of {known}")));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = format!("{field}[{index}]");
        if !seen.insert(version) {
            errors.push(Error::invalid(at, version, "duplicate version"));
            continue;
        }
        errors.extend(names::label_1035(version).iter().map(|wrong| Error::invalid(&at, version, wrong)));
    }
    if !versions.iter().any(|version| REVIEWS.contains(version)) {
        let detail = format!("must include at least one of {known}");
        errors.push(Error::invalid_list(checking.minor, field, ("string", versions), &detail));
    }
}

/// Where a webhook is.
pub(super) fn client(checking: &mut Checking<'_>, client: &Json, field: &str) {
    match (part(client, "url").and_then(Json::as_str), part(client, "service")) {
        (Some(url), None) => self::url(checking, url, &format!("{field}.url")),
        (None, Some(service)) => self::service(checking, service, &format!("{field}.service")),
        _ => checking.errors.push(Error::required(field, "exactly one of url or service is required")),
    }
}

/// `ValidateWebhookURL`, for URLs without anything that would have to be decoded.
fn url(checking: &mut Checking<'_>, url: &str, field: &str) {
    const FORM: &str = "; desired format: https://host[/path]";
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=".contains(c);
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest_is_plain = rest.chars().all(plain) && !rest.contains(['[', ']']);
    if !rest_is_plain || scheme.is_empty() || !scheme.chars().all(|c| c.is_ascii_lowercase()) {
        checking.unknown.get_or_insert_with(|| format!("{field}: what Go makes of the URL {url:?} is not known"));
        return;
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let errors = &mut checking.errors;
    if scheme != "https" {
        errors.push(Error::invalid(field, scheme, &format!("'https' is the only allowed URL scheme{FORM}")));
    }
    if host.is_empty() {
        errors.push(Error::invalid(field, host, &format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        errors.push(Error::invalid(field, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(Error::invalid(field, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(Error::invalid(field, query, "query parameters are not permitted in the URL"));
    }
}

/// `ValidateWebhookService`.
fn service(checking: &mut Checking<'_>, service: &Json, field: &str) {
    let errors = &mut checking.errors;
    // The API server gives the two to its check in the wrong order.
    for (key, said) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, key).is_empty() {
            // Kubernetes 1.34 removed the detail.
            let detail =
                if checking.minor < Minor::V1_34 { format!("service {said} is required") } else { String::new() };
            errors.push(Error::required(format!("{field}.{said}"), &detail));
        }
    }
    let port = service.get("port").filter(|port| !port.is_null()).cloned().unwrap_or(443.into());
    if !port.as_i64().is_some_and(|port| (1..=65535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(Error::invalid_value(checking.minor, format!("{field}.port"), &port, detail));
    }
    let Some(path) = part(service, "path").and_then(Json::as_str).filter(|path| !matches!(*path, "" | "/")) else {
        return;
    };
    let at = format!("{field}.path");
    if path == "//" {
        return errors.push(Error::invalid(at, path, "segment[0] may not be empty"));
    }
    if !path.starts_with('/') {
        errors.push(Error::invalid(&at, path, "must start with a '/'"));
    }
    // The first character goes, whatever it is.
    let steps: String = path.chars().skip(1).collect();
    for (index, step) in steps.strip_suffix('/').unwrap_or(&steps).split('/').enumerate() {
        if step.is_empty() {
            errors.push(Error::invalid(&at, path, &format!("segment[{index}] may not be empty")));
            continue;
        }
        let wrong = names::subdomain(step);
        errors.extend(wrong.iter().map(|wrong| Error::invalid(&at, path, &format!("segment[{index}]: {wrong}"))));
    }
}

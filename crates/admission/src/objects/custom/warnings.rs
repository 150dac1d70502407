//! Warnings for clients of custom resources, apart from those of rules: deprecated versions, and names of finalizers.

use std::{cmp::Ordering, collections::BTreeSet};

use palisade_cel::Minor;
use serde_json::Value;

use crate::validation::{list, names, quote, text};

const STANDARD_FINALIZERS: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];

/// The warning of a version (`defaultDeprecationWarning` of `pkg/apiserver/customresource_handler.go`); empty if it is
/// not deprecated.
pub(super) fn deprecation(group: &str, kind: &str, version: &Value, versions: &[Value]) -> String {
    if version["deprecated"] != true {
        return String::new();
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return warning.to_owned();
    }
    let name = text(version, "name");
    let better = versions
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text(other, "name"))
        .filter(|other| compare(name, other).is_lt())
        .max_by(|a, b| compare(a, b));
    let is_deprecated = format!("{group}/{name} {kind} is deprecated");
    better.map_or(is_deprecated.clone(), |better| format!("{is_deprecated}; use {group}/{better} {kind}"))
}

/// How stable versions are, and then how new (`k8s.io/apimachinery/pkg/version.CompareKubeAwareVersionStrings`).
fn compare(a: &str, b: &str) -> Ordering {
    match (parsed(a), parsed(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Names that are none of versions come in the order of the alphabet.
        (None, None) => b.cmp(a),
    }
}

/// `v1`, `v1beta2`: how stable it is, and its numbers.
fn parsed(version: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    };
    let rest = version.strip_prefix('v')?;
    for (name, stability) in [("alpha", 0), ("beta", 1)] {
        if let Some((major, minor)) = rest.split_once(name) {
            return Some((stability, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

/// The warnings of finalizers that an object did not have before (`validateKubeFinalizerName`).
pub(super) fn finalizers(minor: Minor, object: &Value, old: Option<&Value>) -> Vec<String> {
    let of = |object: &Value| -> BTreeSet<String> {
        list(&object["metadata"], "finalizers").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = old.map(of).unwrap_or_default();
    let mut warnings = Vec::new();
    for finalizer in of(object).difference(&known) {
        let about = format!("metadata.finalizers: {}", quote(finalizer));
        let wrong = names::qualified(minor, finalizer);
        warnings.extend(wrong.iter().map(|wrong| format!("{about}: {wrong}")));
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
            warnings.push(format!(
                "{about}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other \
                 finalizer writers"
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deprecated_version_names_the_best_one_that_is_served() {
        let version = |name: &str, deprecated: bool| json!({"name": name, "served": true, "deprecated": deprecated});
        let versions = [
            version("v1alpha1", true),
            version("v1beta2", false),
            version("v1beta10", false),
            json!({"name": "v2", "served": false}),
            version("v10", true),
            version("foo", true),
        ];
        for (index, expected) in [
            (0, "ex.com/v1alpha1 W is deprecated; use ex.com/v1beta10 W"),
            (1, ""),
            (4, "ex.com/v10 W is deprecated"),
            (5, "ex.com/foo W is deprecated; use ex.com/v1beta10 W"),
        ] {
            assert_eq!(deprecation("ex.com", "W", &versions[index], &versions), expected);
        }
        let own = json!({"name": "v1", "deprecated": true, "deprecationWarning": "use v2"});
        assert_eq!(deprecation("ex.com", "W", &own, &versions), "use v2");
    }
}

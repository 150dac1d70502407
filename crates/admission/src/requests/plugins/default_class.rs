//! The default class of a kind.

use serde_json::Value as Json;

use super::Attributes;

/// The name of the class that one of these annotations makes the default; of several the newest, and of those as old the
/// first by name (`GetDefaultClass` in `pkg/volume/util/storageclass.go`, `getDefaultClass` in
/// `plugin/pkg/admission/network/defaultingressclass`).
pub(super) fn default_class<'a>(
    attributes: &Attributes<'a>,
    group: &str,
    kind: &str,
    annotations: &[&str],
) -> Option<&'a str> {
    let is_default =
        |class: &&Json| annotations.iter().any(|annotation| class["metadata"]["annotations"][*annotation] == "true");
    // Times of creation are written alike (RFC 3339 in UTC, to the second), so that they compare as texts.
    let created = |class: &'a Json| class["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
    let name = |class: &'a Json| class["metadata"]["name"].as_str();
    let defaults = attributes.all(group, kind, "").filter(is_default);
    defaults.min_by(|a, b| created(b).cmp(created(a)).then_with(|| name(a).cmp(&name(b)))).and_then(name)
}

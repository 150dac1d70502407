//! Documents that are not objects: their type, and how to get objects from them.

use crate::node::{Content, Node};

/// The type of a document that is not an object, and the recommended action.
type Refusal = (String, Option<&'static str>);

const HELM: &str = "Helm templates are not YAML; render them with helm template CHART";

/// The reason why a document is not an object for an API server; `None` if it is one.
pub(crate) fn refusal(root: &Node<'_>, kind: &str, api_version: &str, text: &str) -> Option<Refusal> {
    let entries = match &root.content {
        Content::Mapping(entries) => entries,
        Content::Sequence(_) => {
            let help = "write {apiVersion: v1, kind: List, items: [...]}";
            return Some(("this is a list, not an object; kubectl rejects it".to_owned(), Some(help)));
        }
        Content::Scalar(_) | Content::Alias(_) => {
            let help = text.contains("{{").then_some(HELM);
            return Some(("this is a string, not an object".to_owned(), help));
        }
    };
    // YAML takes {{ x }} for a mapping whose key is a mapping.
    if entries.iter().any(|(key, _)| key.text().is_none()) && text.contains("{{") {
        return Some(("this is not an object".to_owned(), Some(HELM)));
    }
    let has = |key: &str, is: fn(&Content<'_>) -> bool| root.get(key).is_some_and(|value| is(&value.content));
    let is_mapping = |key| has(key, |content| matches!(content, Content::Mapping(_)));
    let is_text = |key| has(key, |content| matches!(content, Content::Scalar(_)));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let (what, help) = match (kind, group) {
        ("Table", "meta.k8s.io") => {
            ("a Table, which does not contain the specs of its objects", "use kubectl get -o yaml")
        }
        ("AdmissionReview", "admission.k8s.io") => {
            ("an AdmissionReview, not an object", "palisade eval reads it; its object is in request.object")
        }
        ("Event", "audit.k8s.io") => ("an event of an audit log", "palisade replay and palisade audit read logs"),
        ("", _) if is_text("type") && is_mapping("object") => {
            ("a watch event, not an object", "its object is in the field object: jq .object")
        }
        ("", _) if is_mapping("object") && (is_text("operation") || is_text("uid")) => (
            "an admission request without its AdmissionReview",
            "write {apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: ...}",
        ),
        ("", _) if is_text("log") => ("a line of a container's log", "palisade replay and palisade audit read logs"),
        ("", _) if is_mapping("request") || is_mapping("response") => {
            ("an AdmissionReview without its kind", "write apiVersion: admission.k8s.io/v1 and kind: AdmissionReview")
        }
        ("", _) if api_version.is_empty() => {
            return Some(("this is not a Kubernetes object: it has no kind and no apiVersion".to_owned(), None));
        }
        ("", _) => return Some(("this is not a Kubernetes object: it has no kind".to_owned(), None)),
        (kind, _) if api_version.is_empty() => {
            return Some((format!("this {kind} has no apiVersion: it is not a Kubernetes object"), None));
        }
        _ => return None,
    };
    Some((format!("this is {what}"), Some(help)))
}

/// True if a document is a kustomization, which no API server receives. Kustomize knows it by the name of its file, so
/// that it need not have a kind.
pub(crate) fn is_kustomization(name: &str, root: &Node<'_>) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let named = matches!(file, "kustomization.yaml" | "kustomization.yml" | "Kustomization");
    named && matches!(root.content, Content::Mapping(_)) && root.get("kind").is_none()
}

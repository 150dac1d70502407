//! Selectors of labels, and whether they match.

use palisade_cel::Minor;
use palisade_kube_json::selector;
use serde_json::Value;

use super::{formats, node::Node, shown};
use crate::validation::{Checking, quote, shown as value_shown};

/// Does the selector match the labels?
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    selector::read(selector).is_some_and(|selector| selector::matches(&selector, &selector::strings(labels)))
}

pub(super) fn is_empty(selector: &Node<'_>) -> bool {
    selector.map("matchLabels").is_none_or(serde_json::Map::is_empty)
        && selector.elements("matchExpressions").is_empty()
}

/// Can a selector be made of it (`metav1.LabelSelectorAsSelector`)? Only what its validation finds wrong cannot.
pub(super) fn is_selector(minor: Minor, selector: &Node<'_>) -> bool {
    let mut checking = Checking { minor, old: None, errors: Vec::new(), unknown: None };
    formats::selector(&mut checking, selector);
    checking.errors.is_empty()
}

/// The labels of a template that its selector does not match; in Go they are a map of texts.
pub(super) fn mismatch(checking: &mut Checking<'_>, template: &Node<'_>) {
    let labels = template.get("metadata").get("labels");
    let shown = match labels.value {
        Value::Null if checking.minor < Minor::V1_34 => "map[string]string(nil)".to_owned(),
        labels if checking.minor < Minor::V1_34 => {
            value_shown(checking.minor, labels).replacen("interface {}", "string", 1)
        }
        labels => value_shown(checking.minor, labels),
    };
    let text = "`selector` does not match template `labels`";
    checking.invalid_shown(template.field("metadata.labels"), &shown, text);
}

pub(super) fn wrong_selector(checking: &mut Checking<'_>, selector: &Node<'_>, text: &str) {
    let shown = if checking.minor >= Minor::V1_34 {
        shown::selector(selector.value)
    } else {
        // What is empty is the only one that is shown here and has a form that does not depend on addresses.
        go_selector(selector)
    };
    checking.invalid_shown(&selector.path, &shown, text);
}

fn go_selector(selector: &Node<'_>) -> String {
    let labels = match selector.map("matchLabels") {
        None => "map[string]string(nil)".to_owned(),
        Some(map) => value_shown(Minor::V1_33, &Value::Object(map.clone())).replacen("interface {}", "string", 1),
    };
    let requirements: Vec<_> = selector
        .list("matchExpressions")
        .map(|one| {
            let values = match one.get("values").value {
                Value::Array(list) => format!("[]string{{{}}}", joined(list)),
                _ => "[]string(nil)".to_owned(),
            };
            format!(
                "v1.LabelSelectorRequirement{{Key:{}, Operator:{}, Values:{values}}}",
                quote(one.text("key")),
                quote(one.text("operator"))
            )
        })
        .collect();
    let expressions = if selector.has("matchExpressions") {
        format!("[]v1.LabelSelectorRequirement{{{}}}", requirements.join(", "))
    } else {
        "[]v1.LabelSelectorRequirement(nil)".to_owned()
    };
    format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{expressions}}}")
}

fn joined(list: &[Value]) -> String {
    let texts: Vec<_> = list.iter().filter_map(Value::as_str).map(quote).collect();
    texts.join(", ")
}

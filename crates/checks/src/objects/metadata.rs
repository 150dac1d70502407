//! # metadata
//!
//! Labels and annotations decide to whom an object belongs: who pays for it, which dashboards and alerts include it, and
//! which controllers serve it. A rule requires keys, restricts their values, also to the values of the namespace, and denies
//! other keys. Rules name the kinds that they evaluate, including custom resources.
//!
//! An update is evaluated if it changes the spec, or a label or annotation that the rules restrict. Controllers must be able to
//! write the labels and annotations that they need: allow their keys. Pods are not evaluated by these rules: a controller
//! creates them with the metadata of a template, for example `spec.template.metadata` of a Deployment. Use a
//! [custom check](../custom-checks.md) for pods.
//!
//! ## If your object was denied
//!
//! Set the labels and annotations that the message requires to a value that it lists, and remove those that it forbids.

use super::BY_KUBECTL;
use crate::{
    Diagnostic, Lowering, Meaning, ObjectCheck, ObjectRule, Text, cel,
    settings::{MetadataKey, MetadataRule, ObjectKind, any},
    texts::Wildcard,
};

/// The most labels, and the most annotations, that are evaluated.
const MOST: usize = 256;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "metadata",
    title: "Labels and annotations of objects",
    settings: &["metadata.rules"],
    kinds: &[],
    fields: &["metadata.labels", "metadata.annotations"],
    exempt: None,
    fixtures: include_str!("metadata.yaml"),
    compile: |settings, cx| {
        let mut rule = ObjectRule::default();
        for (index, one) in settings.metadata.rules.iter().flatten().enumerate() {
            let path = format!("spec.metadata.rules[{index}]");
            let MetadataRule { kinds, labels, allowed_labels, annotations, allowed_annotations } = one;
            let mut map = |field: &'static str, keys: &[MetadataKey], allowed: Option<&[Text]>| {
                Map { field, kinds, path: &path }.restrict(keys, allowed, cx, &mut rule);
            };
            map("labels", labels, allowed_labels.as_deref());
            map("annotations", annotations, allowed_annotations.as_deref());
        }
        rule.unless_empty()
    },
};

/// The labels or the annotations of objects.
struct Map<'a> {
    field: &'static str,
    kinds: &'a [ObjectKind],
    path: &'a str,
}

impl Map<'_> {
    fn restrict(&self, keys: &[MetadataKey], allowed: Option<&[Text]>, cx: &mut Lowering<'_>, rule: &mut ObjectRule) {
        let Self { field, kinds, path } = *self;
        let map = format!("variables.object.metadata.?{field}");
        for (index, MetadataKey { key, required, values }) in keys.iter().enumerate() {
            let path = format!("{path}.{field}[{index}]");
            if !is_key(key) {
                let message = format!("{key:?} is not a key of labels and annotations");
                cx.report(Diagnostic::new(format!("{path}.key"), message).help("write a key such as example.org/team"));
            }
            let value = format!("{map}[?{}]", cel::quote(key));
            let at = format!("metadata.{field}['{key}']");
            let values = values.as_ref().filter(|values| !any(values));
            let allowed = values.map(|values| cx.texts(&format!("{path}.values"), values, Meaning::Word));
            if *required {
                let mut says = cel::quote(&format!("{at} is required"));
                if let Some(allowed) = &allowed {
                    says = format!("{} + {}", cel::quote(&format!("{at} is required, allowed: ")), allowed.says());
                }
                rule.finding(kinds, format!("!{value}.hasValue()"), says);
            }
            if let Some(allowed) = allowed {
                let bad =
                    format!("[string({value}.orValue(''))].filter(v, {value}.hasValue() && !(v in {}))", allowed.cel());
                rule.forbid(kinds, (&at, "values"), &bad, &allowed.says());
            }
        }
        let Some(allowed) = allowed.filter(|allowed| !any(allowed)) else { return };
        let setting = if field == "labels" { "allowedLabels" } else { "allowedAnnotations" };
        let allowed = cx.patterns(&format!("{path}.{setting}"), allowed, Meaning::Pattern, Wildcard::End);
        let found = format!("{map}.orValue({{}})");
        let at = format!("metadata.{field}");
        rule.limit(kinds, &at, &found, MOST);
        let by_kubectl = (field == "annotations").then_some(BY_KUBECTL);
        let listed: Vec<_> = keys.iter().map(|one| one.key.as_str()).chain(by_kubectl).collect();
        let others = if listed.is_empty() { String::new() } else { format!("!(k in {}) && ", cel::list(listed)) };
        let bad = format!("{found}.map(k, string(k)).filter(k, {others}!({}))", allowed.matches("k"));
        rule.forbid(kinds, (&at, "keys"), &bad, &allowed.says());
    }
}

/// Whether it can be a key of labels and annotations: a name, or a domain, a slash and a name.
fn is_key(key: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_alphanumeric();
    let is_part = |part: &str, most: usize, signs: &[char]| {
        (1..=most).contains(&part.len())
            && part.chars().all(|c| is_alphanumeric(c) || signs.contains(&c))
            && part.starts_with(is_alphanumeric)
            && part.ends_with(is_alphanumeric)
    };
    let is_name = |name: &str| is_part(name, 63, &['-', '_', '.']);
    match key.split_once('/') {
        Some((domain, name)) => domain.split('.').all(|label| is_part(label, 63, &['-'])) && is_name(name),
        None => is_name(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_of_labels_and_annotations_are_accepted() {
        for key in ["team", "a", "A_b.c-d", "example.org/team", "app.kubernetes.io/name"] {
            assert!(is_key(key), "{key}");
        }
        for key in ["", "a/b/c", "/a", "a/", "-a", "a-", "a b", "a*", "$team", "example..org/a", "a'b", &"a".repeat(64)]
        {
            assert!(!is_key(key), "{key}");
        }
    }
}

//! Label selectors: matching, and labels that match.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::Value as Json;

/// Labels by key.
pub type Labels = BTreeMap<String, String>;

/// The selector of a field, where null is the empty selector. `None` if the JSON is not a selector.
pub fn read(selector: &Json) -> Option<LabelSelector> {
    serde_json::from_value::<Option<_>>(selector.clone()).ok().map(Option::unwrap_or_default)
}

/// The labels of an object.
pub fn labels(object: &Json) -> Labels {
    strings(&object["metadata"]["labels"])
}

/// A JSON object as labels. A value that is not a string is the empty string.
pub fn strings(map: &Json) -> Labels {
    let entries = map.as_object().into_iter().flatten();
    entries.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// True if the selector has no requirement: it matches all labels.
pub fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

/// True if the selector matches the labels, by the rules of `metav1.LabelSelectorAsSelector`. With an
/// unknown operator that function returns an error, and the selector matches nothing.
pub fn matches(selector: &LabelSelector, labels: &Labels) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    equal && selector.match_expressions.iter().flatten().all(|requirement| fulfilled(requirement, labels))
}

fn fulfilled(requirement: &LabelSelectorRequirement, labels: &Labels) -> bool {
    let found = labels.get(&requirement.key);
    let listed = found.is_some_and(|value| requirement.values.iter().flatten().any(|wanted| wanted == value));
    match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

/// Labels that the selector matches when `fixed` labels are already there, or `None` if there are none.
pub fn satisfying(selector: &LabelSelector, fixed: &Labels) -> Option<Labels> {
    let mut labels = Labels::new();
    labels.extend(selector.match_labels.clone().unwrap_or_default());
    for requirement in selector.match_expressions.iter().flatten() {
        if labels.contains_key(&requirement.key) || fixed.contains_key(&requirement.key) {
            continue;
        }
        match requirement.operator.as_str() {
            "In" => {
                let value = first_in(selector, &requirement.key)?;
                labels.insert(requirement.key.clone(), value);
            }
            "Exists" => drop(labels.insert(requirement.key.clone(), "palisade-probe".to_owned())),
            _ => {}
        }
    }
    let mut all = labels.clone();
    all.extend(fixed.clone());
    matches(selector, &all).then_some(labels)
}

/// True if some labels match both selectors.
pub fn overlap(one: &LabelSelector, other: &LabelSelector) -> bool {
    let mut both: Vec<_> = [one, other].iter().flat_map(|of| of.match_expressions.iter().flatten()).cloned().collect();
    both.extend([one, other].iter().flat_map(|of| of.match_labels.iter().flatten()).map(|(key, value)| {
        let (key, operator, values) = (key.clone(), "In".to_owned(), Some(vec![value.clone()]));
        LabelSelectorRequirement { key, operator, values }
    }));
    // A requirement that names values determines more than one that only needs some value.
    both.sort_by_key(|requirement| requirement.operator != "In");
    let both = LabelSelector { match_labels: None, match_expressions: Some(both) };
    satisfying(&both, &Labels::new()).is_some()
}

/// The first value of `key` that every `In` and `NotIn` requirement on it accepts.
fn first_in(selector: &LabelSelector, key: &str) -> Option<String> {
    let on_key: Vec<_> = selector.match_expressions.iter().flatten().filter(|r| r.key == key).collect();
    let candidates = on_key.iter().find(|r| r.operator == "In")?.values.iter().flatten();
    candidates
        .map(|value| Labels::from([(key.to_owned(), value.clone())]))
        .find(|labels| on_key.iter().all(|requirement| fulfilled(requirement, labels)))
        .and_then(|mut labels| labels.remove(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn requirement(key: &str, operator: &str, values: &[&str]) -> LabelSelectorRequirement {
        LabelSelectorRequirement {
            key: key.into(),
            operator: operator.into(),
            values: (!values.is_empty()).then(|| values.iter().map(|&v| v.into()).collect()),
        }
    }

    fn selector(labels: &[(&str, &str)], expressions: Vec<LabelSelectorRequirement>) -> LabelSelector {
        let labels = labels.iter().map(|&(k, v)| (k.into(), v.into())).collect();
        LabelSelector { match_labels: Some(labels), match_expressions: Some(expressions) }
    }

    #[test]
    fn selector_operators_match_kubernetes_semantics() {
        let labels = Labels::from([("a".into(), "1".into())]);
        for (operator, values, expected) in [
            ("In", &["1", "2"][..], true),
            ("In", &["2"], false),
            ("NotIn", &["1"], false),
            ("NotIn", &["2"], true),
            ("Exists", &[], true),
            ("DoesNotExist", &[], false),
            ("Bogus", &[], false),
        ] {
            assert_eq!(
                matches(&selector(&[], vec![requirement("a", operator, values)]), &labels),
                expected,
                "{operator}"
            );
        }
        assert!(matches(&selector(&[], vec![requirement("b", "NotIn", &["1"])]), &labels));
        assert!(!matches(&selector(&[], vec![requirement("b", "Bogus", &[])]), &labels));
        assert!(!matches(&selector(&[("a", "2")], vec![]), &labels));
    }

    #[test]
    fn selectors_and_labels_are_read_from_json() {
        for empty in [json!(null), json!({}), json!({"matchLabels": null, "matchExpressions": []})] {
            assert!(read(&empty).is_some_and(|selector| is_empty(&selector)), "{empty}");
        }
        let exists = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
        assert_eq!(
            read(&exists),
            Some(LabelSelector { match_labels: None, ..selector(&[], vec![requirement("a", "Exists", &[])]) })
        );
        assert!(!is_empty(&read(&exists).unwrap()));
        assert_eq!(read(&json!({"matchLabels": {"a": 1}})), None);
        let object = json!({"metadata": {"labels": {"a": "b", "c": null}}});
        assert_eq!(labels(&object), Labels::from([("a".into(), "b".into()), ("c".into(), String::new())]));
        assert_eq!(labels(&json!(null)), Labels::new());
    }

    #[test]
    fn selectors_overlap_unless_they_contradict_each_other() {
        let tools = selector(&[("tenancy", "tool")], vec![requirement("name", "NotIn", &["x"])]);
        for (other, expected) in [
            (selector(&[], vec![]), true),
            (selector(&[("tenancy", "tool"), ("tier", "a")], vec![]), true),
            (selector(&[("tenancy", "job")], vec![]), false),
            (selector(&[], vec![requirement("tenancy", "In", &["job", "tool"])]), true),
            (selector(&[], vec![requirement("tenancy", "NotIn", &["tool"])]), false),
            (selector(&[], vec![requirement("tenancy", "Exists", &[])]), true),
            (selector(&[], vec![requirement("tenancy", "DoesNotExist", &[])]), false),
            (selector(&[("name", "x")], vec![]), false),
            (selector(&[("name", "y")], vec![requirement("name", "Exists", &[])]), true),
        ] {
            assert_eq!(overlap(&tools, &other), expected, "{other:?}");
            assert_eq!(overlap(&other, &tools), expected, "{other:?}");
        }
    }

    #[test]
    fn satisfying_labels_are_found_unless_impossible() {
        let fixed = Labels::from([("kubernetes.io/metadata.name".into(), "palisade-probe".into())]);
        let found = satisfying(
            &selector(
                &[("tenancy", "tool")],
                vec![
                    requirement("tier", "In", &["a", "b"]),
                    requirement("tier", "NotIn", &["a"]),
                    requirement("any", "Exists", &[]),
                    requirement("old", "DoesNotExist", &[]),
                    requirement("kubernetes.io/metadata.name", "Exists", &[]),
                ],
            ),
            &fixed,
        );
        let expected = [("any", "palisade-probe"), ("tenancy", "tool"), ("tier", "b")];
        assert_eq!(found, Some(expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into()));

        let by_name = selector(&[], vec![requirement("kubernetes.io/metadata.name", "In", &["x"])]);
        assert_eq!(satisfying(&by_name, &fixed), None);
        let contradiction = selector(&[("a", "1")], vec![requirement("a", "In", &["2"])]);
        assert_eq!(satisfying(&contradiction, &fixed), None);
    }
}

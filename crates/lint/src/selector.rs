//! Label selectors.

use serde_json::Value as Json;

/// Whether a label selector selects an object with exactly these labels.
pub(crate) fn selects(selector: &Json, labels: &[(&str, &str)]) -> bool {
    let value = |key: &str| labels.iter().find(|(found, _)| *found == key).map(|(_, value)| *value);
    let equal = selector.get("matchLabels").and_then(Json::as_object);
    let expressions = selector.get("matchExpressions").and_then(Json::as_array);
    equal.into_iter().flatten().all(|(key, expected)| value(key) == expected.as_str())
        && expressions.into_iter().flatten().all(|requirement| {
            let found = requirement["key"].as_str().and_then(value);
            let listed = found.is_some_and(|found| {
                requirement["values"].as_array().is_some_and(|values| values.iter().any(|value| value == found))
            });
            match requirement["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => found.is_some(),
                Some("DoesNotExist") => found.is_none(),
                _ => false,
            }
        })
}

/// Whether a selector selects everything.
pub(crate) fn is_empty(selector: Option<&Json>) -> bool {
    selector.is_none_or(|selector| {
        let empty = |key: &str| match &selector[key] {
            Json::Object(labels) => labels.is_empty(),
            Json::Array(requirements) => requirements.is_empty(),
            _ => true,
        };
        empty("matchLabels") && empty("matchExpressions")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selection() {
        let system = [("kubernetes.io/metadata.name", "kube-system")];
        let requirement = |operator: &str, values: Json| json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"a": "b"}}), false),
            (json!({"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}), true),
            (requirement("NotIn", json!(["kube-system", "b"])), false),
            (requirement("NotIn", json!(["b"])), true),
            (requirement("In", json!(["b"])), false),
            (requirement("Exists", json!([])), true),
            (requirement("DoesNotExist", json!([])), false),
        ] {
            assert_eq!(selects(&selector, &system), expected, "{selector}");
        }
        assert!(is_empty(None) && is_empty(Some(&json!({}))) && !is_empty(Some(&requirement("Exists", json!([])))));
    }
}

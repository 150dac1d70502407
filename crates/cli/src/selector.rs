//! Label selectors in the notation of kubectl.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Parses a selector such as `team=a,stage!=test,tier in (x, y),canary,!old`.
///
/// # Errors
/// The error in it.
pub fn parse(text: &str) -> Result<LabelSelector, String> {
    let requirements = split(text).into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
    Ok(LabelSelector { match_expressions: Some(requirements), match_labels: None })
}

/// The parts between commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .collect()
}

fn requirement(part: &str) -> Result<LabelSelectorRequirement, String> {
    let one = |key: &str, operator: &str, values: Option<Vec<&str>>| {
        let key = key.trim();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
            return Err(format!("{part:?} must be key=value, key!=value, key in (a,b), key or !key"));
        }
        let values = values.map(|values| values.into_iter().map(|value| value.trim().to_owned()).collect());
        Ok(LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values })
    };
    if let Some((head, list)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let values = Some(list.split(',').collect());
        return match head.trim().rsplit_once(char::is_whitespace) {
            Some((key, "in")) => one(key, "In", values),
            Some((key, "notin")) => one(key, "NotIn", values),
            _ => Err(format!("{part:?}: a list is allowed only after in or notin")),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return one(key, "NotIn", Some(vec![value]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return one(key, "In", Some(vec![value]));
    }
    match part.strip_prefix('!') {
        Some(key) => one(key, "DoesNotExist", None),
        None => one(part, "Exists", None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use palisade_kube_json::selector::matches;

    use super::*;

    #[test]
    fn selectors_are_those_of_kubectl() {
        let labels =
            BTreeMap::from([("team", "a"), ("example.org/tier", "x")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        for (text, expected) in [
            ("team=a", true),
            ("team==a", true),
            ("team = a", true),
            ("team!=a", false),
            ("other!=a", true),
            ("team", true),
            ("!team", false),
            ("!other,team=a", true),
            ("example.org/tier in (x, y),team=a", true),
            ("example.org/tier notin (x,y)", false),
            ("team=b", false),
        ] {
            assert_eq!(parse(text).map(|selector| matches(&selector, &labels)), Ok(expected), "{text}");
        }
        for bad in ["", "team=a,", "=a", "team (a)", "a b", "!"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}

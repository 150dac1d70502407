//! Differences of objects in the format of `kubectl diff`: a unified diff of YAML with the object in the file names.

use serde_json::Value as Json;
use similar::TextDiff;

use crate::{
    output::could_not_print,
    report::{self, Failure},
};

/// The lines around a change, like `diff -u`.
pub const CONTEXT: usize = 3;
/// Enough lines for the whole object.
pub const WHOLE: usize = usize::MAX / 4;

/// The diff of an object before and after mutation; empty if they are equal.
pub fn unified(before: &Json, after: &Json, context: usize) -> Result<String, Failure> {
    let name = file_name(before);
    between((&format!("SENT/{name}"), before), (&format!("MUTATED/{name}"), after), context)
}

/// The diff of two objects with these names; empty if they are equal. Null is no object.
pub fn between(before: (&str, &Json), after: (&str, &Json), context: usize) -> Result<String, Failure> {
    let yaml = |object: &Json| match object {
        Json::Null => Ok(String::new()),
        object => serde_saphyr::to_string(object).map_err(|error| could_not_print(&error)),
    };
    let (one, other) = (yaml(before.1)?, yaml(after.1)?);
    let diff = TextDiff::from_lines(&one, &other);
    let mut diff = diff.unified_diff();
    let diff = diff.context_radius(context).header(before.0, after.0).to_string();
    // Text of a file must not move the terminal's cursor.
    Ok(diff.chars().map(|c| if c == '\n' { c } else { report::harmless(c) }).collect())
}

/// `apps.v1.Deployment.tool-a.web`, as `kubectl diff` names the files that it compares.
fn file_name(object: &Json) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).filter(|text| !text.is_empty());
    let name = text("/metadata/name").or(text("/metadata/generateName"));
    let parts = [text("/apiVersion"), text("/kind"), text("/metadata/namespace"), name];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".").replace(['/', '\n'], ".")
}

/// The changes as a JSON patch (RFC 6902).
pub fn patch(before: &Json, after: &Json) -> Json {
    serde_json::to_value(json_patch::diff(before, after)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn diff_is_in_unified_format() {
        let object = |replicas: u32| {
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"},
                "spec": {"a": 1, "b": 2, "c": 3, "d": 4, "replicas": replicas},
            })
        };
        let diff = unified(&object(1), &object(2), CONTEXT).unwrap_or_default();
        let expected = "--- SENT/apps.v1.Deployment.n.web\n+++ MUTATED/apps.v1.Deployment.n.web\n@@ -8,4 +8,4 @@\n   b: 2\n   c: 3\n   \
                        d: 4\n-  replicas: 1\n+  replicas: 2\n";
        assert_eq!(diff, expected);
        let whole = unified(&object(1), &object(2), WHOLE).unwrap_or_default();
        assert!(whole.contains("@@ -1,11 +1,11 @@\n apiVersion: apps/v1\n"), "{whole}");
        assert_eq!(unified(&object(1), &object(1), CONTEXT).unwrap_or_default(), "");
    }
}

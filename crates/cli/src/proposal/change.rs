//! A change of one setting of a profile, and profiles with such changes.

use std::fmt;

use palisade_api::ToolSecurityProfile;
use palisade_kube_json::json::{Change as _, set};
use serde::Serialize;
use serde_json::{Map, Value as Json};

/// The kind of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Edit {
    /// A value is added to a list.
    Add(Json),
    /// A value is set.
    Set(Json),
}

/// A change of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The path below `spec`: `volumes.hostPaths`.
    pub path: &'static str,
    /// The change.
    #[serde(flatten)]
    pub edit: Edit,
    /// A sentence about objects that it admits in addition to the intended ones.
    pub allows: String,
    /// The risk of the change, as a sentence; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caution: String,
}

impl Change {
    /// Adds a value to a list.
    pub fn add(path: &'static str, value: impl Into<Json>, allows: impl Into<String>) -> Self {
        Self { path, edit: Edit::Add(value.into()), allows: allows.into(), caution: String::new() }
    }

    /// Sets a setting.
    pub fn set(path: &'static str, value: impl Into<Json>, allows: impl Into<String>) -> Self {
        Self { path, edit: Edit::Set(value.into()), allows: allows.into(), caution: String::new() }
    }

    /// The same with a caution.
    #[must_use]
    pub fn but(self, caution: impl Into<String>) -> Self {
        Self { caution: caution.into(), ..self }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.edit {
            Edit::Add(value) => write!(f, "spec.{} += {}", self.path, flow(value)),
            Edit::Set(value) => write!(f, "spec.{}: {}", self.path, flow(value)),
        }
    }
}

/// A value as YAML in one line.
fn flow(value: &Json) -> String {
    match value {
        Json::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether YAML reads a text without quotes as this text.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str())
}

/// The profile with changes. None if a change cannot be applied.
pub fn applied<'a>(
    profile: &ToolSecurityProfile,
    changes: impl IntoIterator<Item = &'a Change>,
) -> Option<ToolSecurityProfile> {
    let mut spec = serde_json::to_value(&profile.spec).ok()?;
    let meant = serde_json::to_value(profile.spec.effective_settings()).ok()?;
    for change in changes {
        let path: Vec<_> = change.path.split('.').collect();
        let setting = path.get(..2)?;
        // An omitted list has a default, and a written list replaces it.
        if spec.at_mut(setting).is_null() {
            let value = setting.iter().try_fold(&meant, |at, key| at.get(*key)).cloned().unwrap_or_default();
            set(&mut spec, setting, value);
        }
        match (&change.edit, spec.at_mut(&path)) {
            (Edit::Set(value), at) => value.clone_into(at),
            (Edit::Add(value), Json::Array(items)) if items.contains(value) => {}
            (Edit::Add(value), Json::Array(items)) => items.push(value.clone()),
            (Edit::Add(value), at) => *at = Json::Array(vec![value.clone()]),
        }
    }
    Some(ToolSecurityProfile { spec: serde_json::from_value(spec).ok()?, ..profile.clone() })
}

/// The merge patch (RFC 7386) from one profile to the other, for `kubectl patch --type merge`.
pub fn merge_patch(before: &ToolSecurityProfile, after: &ToolSecurityProfile) -> Json {
    let spec = |profile: &ToolSecurityProfile| serde_json::to_value(&profile.spec).unwrap_or_default();
    let spec = difference(&spec(before), &spec(after)).unwrap_or(Json::Object(Map::new()));
    Json::Object(Map::from_iter([("spec".to_owned(), spec)]))
}

fn difference(before: &Json, after: &Json) -> Option<Json> {
    match (before, after) {
        (Json::Object(old), Json::Object(new)) => {
            let mut fields = Map::new();
            for (key, value) in new {
                if let Some(changed) = difference(old.get(key).unwrap_or(&Json::Null), value) {
                    fields.insert(key.clone(), changed);
                }
            }
            fields.extend(old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Json::Null)));
            (!fields.is_empty()).then_some(Json::Object(fields))
        }
        (old, new) => (old != new).then(|| new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profile(spec: &Json) -> ToolSecurityProfile {
        let object = json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "a"}, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_change_is_shown_as_it_is_written_in_a_profile() {
        let path = json!({"pathPrefix": "/etc/openstack/clouds.yaml", "readOnly": true});
        let change = Change::add("volumes.hostPaths", path, "");
        let shown = "spec.volumes.hostPaths += {pathPrefix: /etc/openstack/clouds.yaml, readOnly: true}";
        assert_eq!(change.to_string(), shown);
        assert_eq!(Change::set("mutation.defaults", "Secure", "").to_string(), "spec.mutation.defaults: Secure");
        for (text, shown) in [("true", "\"true\""), ("a: b", "\"a: b\""), ("", "\"\""), ("7", "\"7\"")] {
            assert_eq!(flow(&json!([text])), format!("[{shown}]"));
        }
    }

    #[test]
    fn a_list_that_is_absent_keeps_what_it_means() {
        let selector = json!({"matchLabels": {"a": "b"}});
        let before = profile(&json!({"namespaceSelector": selector}));
        let changes = [
            Change::add("volumes.allowed", "nfs", ""),
            Change::add("privileges.capabilities.allowedAdd", "CHOWN", ""),
            Change::set("mutation.defaults", "Secure", ""),
        ];
        let after = applied(&before, &changes).unwrap();
        let kinds = after.spec.volumes.allowed.clone().unwrap_or_default();
        assert!(kinds.contains(&"secret".into()) && kinds.contains(&"nfs".into()), "{kinds:?}");
        assert_eq!(
            merge_patch(&before, &after)["spec"]["privileges"]["capabilities"]["allowedAdd"],
            json!(["NET_BIND_SERVICE", "CHOWN"])
        );
        assert_eq!(merge_patch(&before, &after)["spec"]["mutation"], json!({"defaults": "Secure"}));
        // A value that the list has is not added again.
        assert_eq!(applied(&after, &changes).unwrap(), after);
        assert_eq!(merge_patch(&after, &after), json!({"spec": {}}));
        let mut patched = serde_json::to_value(&before).unwrap();
        json_patch::merge(&mut patched, &merge_patch(&before, &after));
        assert_eq!(serde_json::from_value::<ToolSecurityProfile>(patched).unwrap(), after);
    }

    #[test]
    fn a_change_that_does_not_fit_is_none() {
        let before = profile(&json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}));
        assert!(applied(&before, &[Change::add("volumes.allowed", 7, "")]).is_none());
    }
}

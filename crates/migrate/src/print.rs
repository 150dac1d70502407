//! A profile as an admin would write it: without fields that say nothing new.

use palisade_api::ToolSecurityProfile;
use palisade_kube_json::json::Change as _;
use serde_json::{Value as Json, json};

/// Fields that may be left out: a path below `spec`, and the value that its absence means.
fn implied() -> [(&'static str, Json); 10] {
    [
        ("/privileges/capabilities/defaultAdd", json!([])),
        ("/privileges/seccomp/localhostProfiles", json!(["*"])),
        ("/privileges/seccomp/annotations", json!(false)),
        ("/privileges/appArmor/localhostProfiles", json!(["*"])),
        ("/privileges/seLinux/users", json!([])),
        ("/privileges/seLinux/roles", json!([])),
        ("/privileges/sysctls/forbidden", json!([])),
        ("/baselineVersion", json!("latest")),
        ("/mutation/engine", json!("Auto")),
        ("/mutation/failurePolicy", json!("Ignore")),
    ]
}

/// The profile as JSON, without fields that have the value of an absent one.
///
/// # Errors
/// None that is known.
pub fn concise(profile: &ToolSecurityProfile) -> Result<Json, serde_json::Error> {
    let mut profile = serde_json::to_value(profile)?;
    let mut remove = |path: &str, value: &Json| {
        let (parent, key) = path.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = profile.at_mut(&["spec"]).pointer_mut(parent).and_then(Json::as_object_mut)
            && parent.get(key) == Some(value)
        {
            parent.remove(key);
        }
    };
    for (path, value) in implied() {
        remove(path, &value);
    }
    if let Some(paths) = profile.at_mut(&["spec"]).pointer_mut("/volumes/hostPaths").and_then(Json::as_array_mut) {
        for path in paths.iter_mut().filter_map(Json::as_object_mut) {
            path.retain(|_, value| *value != json!(false));
        }
    }
    for part in ["spec", "metadata"] {
        if let Some(groups) = profile[part].as_object_mut() {
            groups.retain(|_, value| *value != json!({}));
        }
    }
    Ok(profile)
}

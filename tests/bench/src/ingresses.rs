//! Ingresses by a profile that also has settings for them, and pods by the same profile.

use palisade_kube_json::json::Change as _;
use palisade_tests::tool_pod;
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arms::{Arm, Request, TOOL, UID, Variant, arm, toolforge},
};

/// The arms. That of pods is compared with the pods of other arms.
pub(crate) fn arms() -> Result<Vec<Arm>> {
    let request = Request { method: "POST", path: "apis/networking.k8s.io/v1/ingresses", body: ingress() };
    let arm_of = |name: &str, about: &str, variant| {
        arm(name, about, Some("ingress-none"), Some(profile()?), variant, request.clone())
    };
    let none = arm("ingress-none", "an Ingress, not selected", None, None, Variant::AsCompiled, request.clone())?;
    let pod = Request::create(tool_pod("job", UID));
    let about = "Toolforge's profile with allowed hosts of Ingresses";
    Ok(vec![
        none,
        arm_of("ingress-palisade", "allowed hosts", Variant::AsCompiled)?,
        arm_of("ingress-full", "allowed hosts without the fast path", Variant::Full)?,
        arm("tool-objects", about, Some("tool-none"), Some(profile()?), Variant::AsCompiled, pod)?,
    ])
}

fn profile() -> Result<Json> {
    let mut profile = toolforge()?;
    let parameters = profile["spec"]["parameters"].as_array_mut().ok_or("the profile has parameters")?;
    parameters.retain(|parameter| parameter["name"] != "tool");
    parameters.push(json!({"name": "tool", "type": "String", "sources": [{"namespaceLabel": "tool"}]}));
    *profile.at_mut(&["spec", "network", "allowedHosts"]) = json!(["$tool.toolforge.org"]);
    *profile.at_mut(&["spec", "enforcement", "objects"]) = "Deny".into();
    Ok(profile)
}

fn ingress() -> Json {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": TOOL},
        "spec": {"rules": [{"host": format!("{TOOL}.toolforge.org"), "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": TOOL, "port": {"number": 8000}}},
        }]}}]},
    })
}

//! The bounds of the CRD: a profile beyond them compiles, but the API server would reject it.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSONSchemaProps, JSONSchemaPropsOrArray};
use palisade_api::Diagnostic;
use palisade_kube_json::field_path::FieldPath;
use serde_json::Value as Json;

static SCHEMA: LazyLock<Option<JSONSchemaProps>> = LazyLock::new(|| {
    let crd = palisade_api::crd::all().into_iter().find(|crd| crd.spec.names.kind == "ToolSecurityProfile")?;
    let schema = crd.spec.versions.into_iter().next()?.schema?.open_api_v3_schema?;
    schema.properties?.remove("spec")
});

/// The lists and texts in the `spec` of a profile that are longer or shorter than the CRD allows.
pub(crate) fn exceeded(spec: &Json) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if let Some(schema) = &*SCHEMA {
        visit(spec, schema, "spec", &mut found);
    }
    found
}

fn visit(value: &Json, schema: &JSONSchemaProps, path: &str, found: &mut Vec<Diagnostic>) {
    let mut bound = |size: usize, unit: &str, min: Option<i64>, max: Option<i64>| {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        if let Some(max) = max.filter(|&max| size > max) {
            found.push(Diagnostic::new(path, format!("has {size} {unit}; must have at most {max} in a profile")));
        }
        if let Some(min) = min.filter(|&min| size < min) {
            found.push(Diagnostic::new(path, format!("has {size} {unit}; must have at least {min} in a profile")));
        }
    };
    match value {
        Json::String(text) => bound(text.chars().count(), "characters", schema.min_length, schema.max_length),
        Json::Array(elements) => {
            bound(elements.len(), "elements", schema.min_items, schema.max_items);
            if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
                for (index, element) in elements.iter().enumerate() {
                    visit(element, items, &format!("{path}[{index}]"), found);
                }
            }
        }
        Json::Object(fields) => {
            for (name, field) in fields {
                if let Some(schema) = schema.properties.as_ref().and_then(|properties| properties.get(name)) {
                    visit(field, schema, &format!("{path}.{name}"), found);
                }
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The field of a `PodSecurityPolicy` that a field of the profile comes from.
pub(crate) fn origin(path: &FieldPath) -> &'static str {
    const ORIGINS: [(&str, &str); 17] = [
        ("spec.users.runAsUser", "spec.runAsUser.ranges"),
        ("spec.users.runAsGroup", "spec.runAsGroup.ranges"),
        ("spec.users.fsGroup", "spec.fsGroup.ranges"),
        ("spec.users.supplementalGroups", "spec.supplementalGroups.ranges"),
        ("spec.privileges.capabilities.allowedAdd", "spec.allowedCapabilities"),
        ("spec.privileges.capabilities.requiredDrop", "spec.requiredDropCapabilities"),
        ("spec.privileges.capabilities.defaultAdd", "spec.defaultAddCapabilities"),
        ("spec.privileges.procMount", "spec.allowedProcMountTypes"),
        ("spec.privileges.seLinux", "spec.seLinux.seLinuxOptions"),
        ("spec.privileges.sysctls.allowed", "spec.allowedUnsafeSysctls"),
        ("spec.privileges.sysctls.forbidden", "spec.forbiddenSysctls"),
        ("spec.host.ports", "spec.hostPorts"),
        ("spec.volumes.allowed", "spec.volumes"),
        ("spec.volumes.hostPaths", "spec.allowedHostPaths"),
        ("spec.volumes.csiDrivers", "spec.allowedCSIDrivers"),
        ("spec.volumes.flexVolumes", "spec.allowedFlexVolumes"),
        ("spec.scheduling.runtimeClasses", "spec.runtimeClass"),
    ];
    let found = ORIGINS.iter().find(|&&(of_profile, _)| path.is_at_or_below(&of_profile.into()));
    found.map_or("spec", |(_, origin)| origin)
}

//! # runtimeClasses
//!
//! The runtime class determines how a container is isolated from the node: by the default runtime, or for example by a
//! sandbox or a virtual machine. With a list, you can require a sandbox for a tenant, or forbid it.
//!
//! ## If your pod was denied
//!
//! Set the pod's `runtimeClassName` to a class that the message lists. If it lists `(unset)`, you can remove the field.

use crate::json::Change as _;
use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, FindingScope, Meaning, Resolve, Rule, cel, pod};

const FIELD: &str = "variables.spec.?runtimeClassName.orValue('')";

/// The check.
pub static CHECK: Check = Check {
    id: "runtimeClasses",
    title: "Runtime classes",
    settings: &["scheduling.runtimeClasses"],
    psp: Some("runtimeClass"),
    pss: &[],
    fields: &[Field::Pod("runtimeClassName")],
    fixtures: include_str!("runtime_classes.yaml"),
    compile: |settings, cx| {
        let classes = settings.scheduling.runtime_classes.as_ref().filter(|classes| !any(classes))?;
        let allowed = cx.texts("spec.scheduling.runtimeClasses", classes, Meaning::Word);
        let says = allowed.says_unset();
        Some(Rule::one(
            FindingScope::Pod,
            format!("!({FIELD} in {})", allowed.cel()),
            format!(
                "'spec.runtimeClassName is ' + ({FIELD} == '' ? {} : {FIELD}) + ', allowed: ' + {says}",
                cel::quote("unset")
            ),
        ))
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let classes = settings.scheduling.runtime_classes.as_ref().map(|classes| classes.resolve(values));
        let classes = classes.unwrap_or_default();
        if let Some(first) = classes.first()
            && !classes.iter().any(|class| class.is_empty() || class == "*")
        {
            pod::set(pod, &["runtimeClassName"], json!(first));
        }
    },
    violate: |settings, values, pod| {
        // Only by no class: the API server rejects a class that does not exist before policies run.
        let classes = settings.scheduling.runtime_classes.as_ref().map(|classes| classes.resolve(values));
        let forbidden = classes.is_some_and(|classes| !classes.iter().any(|class| class.is_empty() || class == "*"));
        if forbidden && let Some(spec) = pod.at_mut(&["spec"]).as_object_mut() {
            spec.remove("runtimeClassName");
        }
        forbidden
    },
};

//! `DefaultTolerationSeconds`: pods tolerate for five minutes that their node is not ready or not reachable
//! (`plugin/pkg/admission/defaulttolerationseconds`).

use serde_json::{Value as Json, json};

use super::Attributes;
use crate::objects::Refused;

pub(super) fn mutate(attributes: &Attributes<'_>, pod: &mut Json) -> Result<(), Refused> {
    if !(attributes.creates() || attributes.updates()) || !attributes.is("", "pods", "") {
        return Ok(());
    }
    let Some(spec) = pod.get_mut("spec").and_then(Json::as_object_mut) else { return Ok(()) };
    let list = spec.entry("tolerations").or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return Ok(()) };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list.iter().any(|toleration| {
            let field = |name: &str| toleration[name].as_str().unwrap_or_default();
            (field("key") == key || field("key").is_empty()) && matches!(field("effect"), "NoExecute" | "")
        });
        if !tolerated {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    Ok(())
}

//! Pods to be defaulted.

use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

use super::Result;

/// What says which workloads of other projects there are, in their collection.
pub(crate) const INDEX: &str = "workloads/INDEX.json";

/// A pod of the cases.
pub(crate) fn own(case: &Json) -> Json {
    let mut pod = pod::minimal("case");
    let mut case = case.clone();
    let container = case.as_object_mut().and_then(|fields| fields.remove("c"));
    pod::merge(&mut pod, &case);
    if let Some(container) = container {
        pod::merge(&mut pod["spec"]["containers"][0], &container);
    }
    pod
}

/// Pods of workloads of other projects.
pub(crate) fn third_party() -> Result<Vec<Json>> {
    let path = super::others().path()?;
    let directory = path.ancestors().nth(2).ok_or("no directory of the collection")?;
    let index: Vec<Json> = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let mut pods = Vec::new();
    for entry in &index {
        let text = std::fs::read_to_string(directory.join(entry["file"].as_str().unwrap_or_default()))?;
        let Ok(object) = serde_saphyr::from_str::<Json>(&text) else { continue };
        let workload = WORKLOADS.iter().find(|workload| object["kind"] == workload.kind);
        let template = match workload {
            Some(workload) => object.pointer(workload.template),
            None if object["kind"] == "Pod" => Some(&object),
            None => None,
        };
        let Some(template) = template else { continue };
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "case", "annotations": template["metadata"]["annotations"]},
            "spec": template["spec"],
        });
        // Of things that are not in this cluster.
        if let Some(spec) = pod["spec"].as_object_mut() {
            for key in ["serviceAccount", "serviceAccountName", "priorityClassName", "priority", "runtimeClassName"] {
                spec.remove(key);
            }
            spec.insert("automountServiceAccountToken".to_owned(), json!(false));
        }
        pods.push(pod);
    }
    Ok(pods)
}

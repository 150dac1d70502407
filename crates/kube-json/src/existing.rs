//! Existing pods and workloads, converted for an evaluation as if they were created now.

use serde_json::Value as Json;

/// The labels that only the Job controller may add to the template of a Job.
const OF_JOBS: [&str; 4] =
    ["controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"];

/// True if a new object can be created from it: it has not ended, and it does not belong to another workload.
pub fn is_current(kind: &str, object: &Json) -> bool {
    let metadata = &object["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return false;
    }
    if kind == "Pod" {
        return !matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    }
    let owners = metadata["ownerReferences"].as_array();
    let is_owned = owners.into_iter().flatten().any(|owner| owner["controller"] == true);
    let conditions = object["status"]["conditions"].as_array();
    let has_ended = kind == "Job"
        && conditions.into_iter().flatten().any(|condition| {
            matches!(condition["type"].as_str(), Some("Complete" | "Failed")) && condition["status"] == "True"
        });
    !is_owned && !has_ended
}

/// An existing object as a client would create it now: without the fields that the API server or a controller has added
/// since, and that the API server would not accept from a client.
pub fn anew(mut object: Json) -> Json {
    let fields = |object: &mut Json, pointer: &str, remove: &[&str]| {
        for key in remove {
            if let Some(fields) = object.pointer_mut(pointer).and_then(Json::as_object_mut) {
                fields.remove(*key);
            }
        }
    };
    fields(&mut object, "", &["status"]);
    let set_by_the_server = [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    ];
    fields(&mut object, "/metadata", &set_by_the_server);
    match object["kind"].as_str() {
        // They are added to a pod that runs.
        Some("Pod") => fields(&mut object, "/spec", &["ephemeralContainers"]),
        Some("Job") if object["spec"]["manualSelector"] != true => {
            fields(&mut object, "/spec", &["selector"]);
            fields(&mut object, "/metadata/labels", &OF_JOBS);
            fields(&mut object, "/spec/template/metadata/labels", &OF_JOBS);
        }
        _ => {}
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_ended_or_belongs_to_a_workload_is_not_judged() {
        let owned = json!({"metadata": {"ownerReferences": [{"kind": "Deployment", "controller": true}]}});
        let ended = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
        let suspended = json!({"status": {"conditions": [{"type": "Suspended", "status": "True"}]}});
        assert!(!is_current("ReplicaSet", &owned) && is_current("Pod", &owned));
        assert!(!is_current("Job", &ended) && is_current("Job", &suspended) && is_current("Deployment", &ended));
        assert!(!is_current("Pod", &json!({"status": {"phase": "Succeeded"}})));
        assert!(is_current("Pod", &json!({"status": {"phase": "Running"}})));
        assert!(!is_current("Pod", &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})));
    }

    #[test]
    fn what_a_client_cannot_send_is_left_out() {
        let job = |selector: Json, labels: Json, more: Json| {
            let mut metadata = json!({"name": "j", "labels": labels});
            if let (Some(metadata), Json::Object(more)) = (metadata.as_object_mut(), more) {
                metadata.extend(more);
            }
            let mut job = json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
                "spec": {"template": {"metadata": {"labels": labels}}},
            });
            if !selector.is_null() {
                job["spec"]["selector"] = selector;
            }
            job
        };
        let stored = job(
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}),
            json!({"app": "a", "controller-uid": "u", "job-name": "j"}),
            json!({"uid": "u", "resourceVersion": "7", "managedFields": []}),
        );
        assert_eq!(anew(stored), job(json!(null), json!({"app": "a"}), json!({})));
        let pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"ephemeralContainers": []}, "status": {}});
        assert_eq!(anew(pod), json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}));
        for odd in [json!(null), json!([1]), json!({"metadata": 7, "spec": "x", "kind": "Job"})] {
            anew(odd);
        }
    }
}

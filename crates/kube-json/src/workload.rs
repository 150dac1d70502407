//! Workloads: Small helpers that build them as JSON around a pod.

use crate::json::Change as _;
use serde_json::{Value as Json, json};

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its `apiVersion`.
    pub api_version: &'static str,
    /// Its `kind`.
    pub kind: &'static str,
    /// Its name in paths of the API.
    pub resource: &'static str,
    /// Where the pod template is, as a JSON pointer.
    pub template: &'static str,
}

/// Every kind of workload that Kubernetes itself brings.
pub static WORKLOADS: [Workload; 8] = [
    Workload { api_version: "apps/v1", kind: "Deployment", resource: "deployments", template: "/spec/template" },
    Workload { api_version: "apps/v1", kind: "ReplicaSet", resource: "replicasets", template: "/spec/template" },
    Workload { api_version: "apps/v1", kind: "DaemonSet", resource: "daemonsets", template: "/spec/template" },
    Workload { api_version: "apps/v1", kind: "StatefulSet", resource: "statefulsets", template: "/spec/template" },
    Workload { api_version: "batch/v1", kind: "Job", resource: "jobs", template: "/spec/template" },
    Workload {
        api_version: "batch/v1",
        kind: "CronJob",
        resource: "cronjobs",
        template: "/spec/jobTemplate/spec/template",
    },
    Workload {
        api_version: "v1",
        kind: "ReplicationController",
        resource: "replicationcontrollers",
        template: "/spec/template",
    },
    Workload { api_version: "v1", kind: "PodTemplate", resource: "podtemplates", template: "/template" },
];

impl Workload {
    /// A workload, named `name`, whose template is the pod, and which the API server accepts if it accepts the pod as
    /// a template: with a selector and a restart policy where they must be set, and without ephemeral containers.
    pub fn around(&self, name: &str, pod: &Json) -> Json {
        let labels = json!({"app": name});
        let mut template = json!({"metadata": {"labels": labels}, "spec": pod["spec"]});
        if let Some(annotations) = pod["metadata"].get("annotations") {
            *template.at_mut(&["metadata", "annotations"]) = annotations.clone();
        }
        if let Some(spec) = template.at_mut(&["spec"]).as_object_mut() {
            spec.remove("ephemeralContainers");
            if matches!(self.kind, "Job" | "CronJob") {
                spec.insert("restartPolicy".to_owned(), "Never".into());
            }
        }
        let mut object = json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}});
        match self.kind {
            "Job" => *object.at_mut(&["spec"]) = json!({"template": template}),
            "CronJob" => {
                *object.at_mut(&["spec"]) =
                    json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}});
            }
            "PodTemplate" => *object.at_mut(&["template"]) = template,
            "ReplicationController" => *object.at_mut(&["spec"]) = json!({"selector": labels, "template": template}),
            _ => *object.at_mut(&["spec"]) = json!({"selector": {"matchLabels": labels}, "template": template}),
        }
        if self.kind == "StatefulSet" {
            *object.at_mut(&["spec", "serviceName"]) = name.into();
        }
        object
    }
}

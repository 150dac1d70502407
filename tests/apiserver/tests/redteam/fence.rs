//! What an API server enforces is what it has read, and not what it was asked last. A fence is enforced once the API server
//! has read all that was written before it.

use std::sync::atomic::{AtomicUsize, Ordering};

use palisade_tests::{TestResult, within};
use serde_json::{Value as Json, json};

use crate::{
    arena::{Arena, LIMIT},
    pods::complying,
    wire::{Request, send},
};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

impl Arena {
    /// Waits until the API server enforces what was last written of policies and bindings.
    ///
    /// An API server reads each of these kinds in the order in which they were written. So a policy and its binding that are
    /// written now deny a pod only after it has read all earlier ones.
    pub(crate) async fn fence(&self, namespace: &str) -> TestResult {
        // Each has a name of its own: a former one may still be enforced.
        static FENCES: AtomicUsize = AtomicUsize::new(0);
        let name = &format!("fence-{}", FENCES.fetch_add(1, Ordering::Relaxed));
        let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
        let objects: [(String, Json); 2] = [
            (
                format!("{ADMISSION}/{policies}"),
                json!({
                    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                    "metadata": {"name": name},
                    "spec": {
                        "matchConstraints": {"resourceRules": [{
                            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                        }]},
                        "validations": [{
                            "expression": format!("object.metadata.name != '{name}'"),
                            "message": "the fence stands",
                        }],
                    },
                }),
            ),
            (
                format!("{ADMISSION}/{bindings}"),
                json!({
                    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                    "metadata": {"name": name},
                    "spec": {
                        "policyName": name,
                        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
                        "validationActions": ["Deny"],
                    },
                }),
            ),
        ];
        for (path, object) in &objects {
            self.demand(&Request::create(path, object)).await?;
        }
        let stands = within(LIMIT, "a fence to be enforced", || async {
            let answer = send(self.admin(), &Request::pod(namespace, &complying(name))).await;
            if answer.message().contains("the fence stands") { Ok(()) } else { Err(answer.short()) }
        })
        .await;
        for (path, _) in &objects {
            self.demand(&Request::delete(format!("{path}/{name}"))).await?;
        }
        stands?;
        Ok(())
    }
}

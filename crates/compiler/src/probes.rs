//! Probes: objects whose dry runs show whether the policies are in force. One complies with them, one violates them.

use palisade_api::{
    Settings, ToolSecurityParamsSpec, ToolSecurityProfile, catalogue,
    names::{self, Shape},
};
use palisade_objects::{
    json::Change as _,
    pod,
    selector::Labels,
    workload::{WORKLOADS, Workload},
};
use serde_json::{Value as Json, json};

use crate::Resolver;

/// What the controller needs to probe whether a profile is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Probes {
    /// Labels by which the profile selects the probe namespace; `None` if no labels do it.
    pub labels: Option<Labels>,
    /// The parameters in the probe namespace; `None` if the policies read none.
    pub params: Option<ToolSecurityParamsSpec>,
    /// A pod that must be admitted.
    pub compliant: Probe,
    /// A pod that must be denied; `None` if the profile allows everything.
    pub violating: Option<Probe>,
}

/// A probe of the policy for one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Where objects of this kind are created in the probe namespace, as a path of the API.
    pub path: String,
    /// The kind.
    pub kind: &'static str,
    /// An object that must be admitted.
    pub compliant: Json,
    /// An object that violates the profile.
    pub violating: Json,
    /// The check that it violates.
    pub check: &'static str,
}

/// A pod to probe with.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The check that it violates.
    pub check: Option<&'static str>,
    /// The pod, without a namespace.
    pub pod: Json,
}

impl Probes {
    pub(crate) fn new(
        profile: &ToolSecurityProfile,
        settings: &Settings,
        resolver: &Resolver,
        parameterized: bool,
    ) -> Self {
        let fixed = [("kubernetes.io/metadata.name".to_owned(), names::PROBE_NAMESPACE.to_owned())].into();
        let values = resolver.sample();
        let mut compliant = pod::minimal("palisade-probe-compliant");
        let name = profile.metadata.name.as_deref().unwrap_or_default();
        let subject = names::probe_subject(name, profile.metadata.generation);
        *compliant.at_mut(&["metadata", "labels"]) = json!({names::PROFILE_LABEL: subject});
        for check in catalogue::ALL {
            (check.comply)(settings, &values, &mut compliant);
        }
        // Last check first: the first ones forbid what an API server may deny on its own (--allow-privileged=false),
        // which would show nothing about the policy.
        let violating = catalogue::ALL.iter().rev().find_map(|check| {
            let mut pod = compliant.clone();
            *pod.at_mut(&["metadata", "name"]) = "palisade-probe-violating".into();
            (check.violate)(settings, &values, &mut pod).then_some(Probe { check: Some(check.id), pod })
        });
        Self {
            labels: palisade_objects::selector::satisfying(&profile.spec.namespace_selector, &fixed),
            params: parameterized.then(|| ToolSecurityParamsSpec::of(&values)),
            compliant: Probe { check: None, pod: compliant },
            violating,
        }
    }
    /// The probe of the policy for a shape; `None` if no object can show that it is in force: the profile allows
    /// everything, or a dry run in the probe namespace cannot create this shape.
    pub fn question(&self, shape: Shape) -> Option<Question> {
        let violating = self.violating.as_ref()?;
        let check = violating.check?;
        let namespace = names::PROBE_NAMESPACE;
        match shape {
            Shape::Pods => Some(Question {
                path: format!("/api/v1/namespaces/{namespace}/pods"),
                kind: "pod",
                compliant: self.compliant.pod.clone(),
                violating: violating.pod.clone(),
                check,
            }),
            // One policy judges all kinds. No controller acts on this kind, even if one were created.
            Shape::Workloads => Some(Question {
                path: format!("/api/v1/namespaces/{namespace}/{}", pod_template()?.resource),
                kind: "pod template",
                compliant: template("palisade-probe-compliant", &self.compliant.pod)?,
                violating: template("palisade-probe-violating", &violating.pod)?,
                check,
            }),
        }
    }
}

fn pod_template() -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.kind == "PodTemplate")
}

/// A probe pod as a pod template, with its label on the object itself.
fn template(name: &str, pod: &Json) -> Option<Json> {
    let mut object = pod_template()?.around(name, pod);
    *object.at_mut(&["metadata", "labels"]) = pod["metadata"]["labels"].clone();
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile;

    #[test]
    fn probes_of_every_shape_carry_the_generation() {
        let profile: ToolSecurityProfile = serde_json::from_value(json!({
            "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile",
            "metadata": {"name": "tools", "generation": 7},
            "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "enforcement": {"workloads": "Deny"}},
        }))
        .unwrap();
        let compiled = compile(&profile).unwrap();
        for (shape, kind, spec) in [(Shape::Pods, "Pod", "/spec"), (Shape::Workloads, "PodTemplate", "/template/spec")]
        {
            let question = compiled.probes.question(shape).unwrap();
            for (object, pod) in [
                (&question.compliant, &compiled.probes.compliant.pod),
                (&question.violating, &compiled.probes.violating.as_ref().unwrap().pod),
            ] {
                assert_eq!(object["kind"], kind);
                assert_eq!(object["metadata"]["labels"], json!({names::PROFILE_LABEL: "tools.7"}), "{object}");
                assert_eq!(object.pointer(spec), Some(&pod["spec"]), "{object}");
            }
            let policy = &compiled.bundle.pair(shape).unwrap().policy;
            let variables = policy.spec.as_ref().unwrap().variables.as_ref().unwrap();
            let exempt = variables.iter().find(|variable| variable.name == "exempt").unwrap();
            assert!(exempt.expression.contains("!= 'tools.7'"), "{}", exempt.expression);
        }
    }
}

//! Probes: objects whose dry runs show whether the policies are active. One complies with them, one violates them.

use palisade_api::{
    Settings, ToolSecurityParamsSpec, ToolSecurityProfile, catalogue,
    names::{self, Part, Shape},
};
use palisade_kube_json::{
    json::Change as _,
    pod,
    selector::Labels,
    workload::{WORKLOADS, Workload},
};
use serde_json::{Value as Json, json};

use crate::{
    Resolver,
    metadata::{PROBE_NAMES as NAMES, PROBE_VIOLATION},
    own_stage::OwnStage,
};

/// The objects with which the controller probes whether a profile is active.
#[derive(Clone, Debug, PartialEq)]
pub struct Probes {
    /// Labels by which the profile selects the probe namespace; `None` if no labels do it.
    pub labels: Option<Labels>,
    /// The parameters in the probe namespace; `None` if the policies read none.
    pub params: Option<ToolSecurityParamsSpec>,
    /// A pod that must be admitted.
    pub compliant: Probe,
    /// A pod that violates what the policies of shapes evaluate; `None` if they allow everything. If the catalogue has
    /// none, for example because all checks are custom, the policies deny it by its name.
    pub violating: Option<Probe>,
    /// A pod that must be admitted by the policies of checks with a separate stage.
    pub compliant_checks: Probe,
    /// A pod that violates one of these checks; `None` if there are none.
    pub violating_checks: Option<Probe>,
    /// For the policy for objects other than pods and workloads, and for that of their checks with a separate stage: an
    /// object that must be admitted, and one that must be denied.
    of_objects: [[Json; 2]; 2],
}

/// A probe of one policy.
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
    /// `checks` are the ids of all checks of pods that the profile makes.
    pub(crate) fn new(
        profile: &ToolSecurityProfile,
        settings: &Settings,
        resolver: &Resolver,
        parameterized: bool,
        checks: &[&str],
    ) -> Self {
        let fixed = [("kubernetes.io/metadata.name".to_owned(), names::PROBE_NAMESPACE.to_owned())].into();
        let values = resolver.sample();
        let mut compliant = pod::minimal(NAMES[0]);
        let name = profile.metadata.name.as_deref().unwrap_or_default();
        let subject = |part| names::probe_subject(name, profile.metadata.generation, part);
        *compliant.at_mut(&["metadata", "labels"]) = json!({names::PROFILE_LABEL: subject(Part::Judge(Shape::Pods))});
        for check in catalogue::ALL {
            (check.comply)(settings, &values, &mut compliant);
        }
        let compliant = Probe { check: None, pod: compliant };
        // Last check first: the first ones forbid what an API server may deny on its own (--allow-privileged=false),
        // which would show nothing about the policy.
        let violating = |is_candidate: &dyn Fn(&str) -> bool| {
            let mut pod = compliant.pod.clone();
            *pod.at_mut(&["metadata", "name"]) = NAMES[1].into();
            let of_catalogue = catalogue::ALL.iter().rev().filter(|check| is_candidate(check.id)).find_map(|check| {
                let mut pod = pod.clone();
                (check.violate)(settings, &values, &mut pod).then_some(Probe { check: Some(check.id), pod })
            });
            of_catalogue.or_else(|| {
                let evaluates = checks.iter().any(|id| is_candidate(id));
                evaluates.then_some(Probe { check: Some(PROBE_VIOLATION), pod })
            })
        };
        let of_checks = |mut probe: Probe| {
            let subject = subject(Part::Checks(Shape::Pods));
            *probe.pod.at_mut(&["metadata", "labels", names::PROFILE_LABEL]) = subject.into();
            probe
        };
        let own = OwnStage::of(&profile.spec.enforcement);
        let of_objects = Part::judging(Shape::Objects).map(|part| of_objects(&compliant.pod, &subject(part)));
        Self {
            labels: palisade_kube_json::selector::satisfying(&profile.spec.namespace_selector, &fixed),
            params: parameterized.then(|| ToolSecurityParamsSpec::of(&values)),
            violating: violating(&|check| own.is_none_or(|own| own.shape_judges(check))),
            violating_checks: own.and_then(|own| violating(&|check| own.has(check))).map(of_checks),
            compliant_checks: of_checks(compliant.clone()),
            compliant,
            of_objects,
        }
    }

    /// Whether the policy for a part of pods or workloads denies the violating probe by its name.
    pub(crate) fn is_denied_by_name(&self, part: Part) -> bool {
        let probe = match part {
            Part::Judge(_) => &self.violating,
            Part::Checks(_) => &self.violating_checks,
            Part::Guard => &None,
        };
        probe.as_ref().is_some_and(|probe| probe.check == Some(PROBE_VIOLATION))
    }

    /// The probe of the policy for a part; `None` if no object can show that it is active: the policy allows
    /// everything, or a dry run in the probe namespace cannot create this shape.
    pub fn question(&self, part: Part) -> Option<Question> {
        let namespace = names::PROBE_NAMESPACE;
        let templates = || Some(format!("/api/v1/namespaces/{namespace}/{}", pod_template()?.resource));
        if part.shape() == Some(Shape::Objects) {
            let [compliant, violating] = self.of_objects[usize::from(matches!(part, Part::Checks(_)))].clone();
            let (kind, check) = ("probe object", PROBE_VIOLATION);
            return Some(Question { path: templates()?, kind, compliant, violating, check });
        }
        let (compliant, violating) = match part {
            Part::Judge(_) => (&self.compliant, self.violating.as_ref()?),
            Part::Checks(_) => (&self.compliant_checks, self.violating_checks.as_ref()?),
            Part::Guard => return None,
        };
        let (shape, check) = (part.shape()?, violating.check?);
        match shape {
            Shape::Pods => Some(Question {
                path: format!("/api/v1/namespaces/{namespace}/pods"),
                kind: "pod",
                compliant: compliant.pod.clone(),
                violating: violating.pod.clone(),
                check,
            }),
            // One policy judges all kinds. No controller acts on this kind, even if one were created.
            Shape::Workloads => Some(Question {
                path: templates()?,
                kind: "pod template",
                compliant: template(NAMES[0], &compliant.pod)?,
                violating: template(NAMES[1], &violating.pod)?,
                check,
            }),
            Shape::Objects => None,
        }
    }
}

/// The probes of a policy for objects: its match constraints have these names, so it needs no objects of the kinds that
/// it evaluates, which the API server may not have. They differ in the name alone.
fn of_objects(pod: &Json, subject: &str) -> [Json; 2] {
    NAMES.map(|name| {
        let mut object = template(name, pod).unwrap_or_default();
        *object.at_mut(&["metadata", "labels"]) = json!({names::PROFILE_LABEL: subject});
        object
    })
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
            let question = compiled.probes.question(shape.into()).unwrap();
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

//! Pods that tell whether a policy is in force: one that complies and one that violates it.

use palisade_api::{Settings, ToolSecurityParamsSpec, ToolSecurityProfileSpec, catalogue, names, selector::Labels};
use palisade_checks::pod;
use serde_json::{Value as Json, json};

use crate::Resolver;

/// What it takes to ask an API server whether a profile is in force.
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

/// A pod to ask about.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The check that it violates.
    pub check: Option<&'static str>,
    /// The pod, without a namespace.
    pub pod: Json,
}

impl Probes {
    pub(crate) fn new(
        profile: &str,
        spec: &ToolSecurityProfileSpec,
        settings: &Settings,
        resolver: &Resolver,
        parameterized: bool,
    ) -> Self {
        let fixed = [("kubernetes.io/metadata.name".to_owned(), names::PROBE_NAMESPACE.to_owned())].into();
        let values = resolver.sample();
        let mut compliant = pod::minimal("palisade-probe-compliant");
        compliant["metadata"]["labels"] = json!({names::PROFILE_LABEL: profile});
        for check in catalogue::ALL {
            (check.comply)(settings, &values, &mut compliant);
        }
        // Last check first: the first ones forbid what an API server may refuse on its own
        // (--allow-privileged=false), and then nothing is learned of the policy.
        let violating = catalogue::ALL.iter().rev().find_map(|check| {
            let mut pod = compliant.clone();
            pod["metadata"]["name"] = "palisade-probe-violating".into();
            (check.violate)(settings, &values, &mut pod).then_some(Probe { check: Some(check.id), pod })
        });
        Self {
            labels: palisade_api::selector::satisfying(&spec.namespace_selector, &fixed),
            params: parameterized.then(|| ToolSecurityParamsSpec::of(&values)),
            compliant: Probe { check: None, pod: compliant },
            violating,
        }
    }
}

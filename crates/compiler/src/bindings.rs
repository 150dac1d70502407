//! The bindings that activate a policy, each for some of the requests that the policy matches. A request matches one of
//! them.

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchResources, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use palisade_api::{
    NamespaceStages, Stage, ToolSecurityProfile,
    names::{self, Part, Shape},
};

use crate::{
    matching::{RequestRules, matching, stage_selector},
    metadata::{metadata, param_ref, profile_name},
    updates::PodUpdates,
};

/// Makes the bindings of a profile's policy for a part, which evaluates objects of this shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bindings<'a> {
    pub profile: &'a ToolSecurityProfile,
    pub part: Part,
    pub shape: Shape,
    pub rules: &'a RequestRules,
    pub updates: PodUpdates,
    /// Whether a check evaluates some updates without parameters.
    pub without: bool,
}

/// The bindings of a policy.
pub(crate) struct Bound {
    pub binding: ValidatingAdmissionPolicyBinding,
    /// For updates, if they have a separate binding.
    pub updates: Option<ValidatingAdmissionPolicyBinding>,
    /// For namespaces with a separate stage, and for updates without parameters.
    pub others: Vec<ValidatingAdmissionPolicyBinding>,
}

impl Bindings<'_> {
    /// All of them. Namespaces are at this stage if they have none of their own; for checks with a separate stage,
    /// all are.
    pub fn all(self, stage: Stage) -> Bound {
        let namespaces = if self.is_by_label() {
            stage_selector(profile_name(self.profile), None)
        } else {
            LabelSelector::default()
        };
        let (binding, updates) = self.bindings(stage, &namespaces, |name| name);
        let mut others = self.labelled();
        others.extend(self.unparameterized(stage, &namespaces, |name| name));
        Bound { binding, updates, others }
    }

    fn is_by_label(self) -> bool {
        let stages = self.profile.spec.enforcement.namespace_stages;
        matches!((self.part, stages), (Part::Judge(_), NamespaceStages::ByLabel))
    }

    fn labelled(self) -> Vec<ValidatingAdmissionPolicyBinding> {
        let of = |stage| {
            let namespaces = stage_selector(profile_name(self.profile), Some(stage));
            let (binding, updates) = self.bindings(stage, &namespaces, |name| names::staged(&name, stage));
            let third = self.unparameterized(stage, &namespaces, |name| names::staged(&name, stage));
            // The second leaves updates to the first.
            updates.into_iter().chain([binding]).chain(third)
        };
        if self.is_by_label() { Stage::ALL.into_iter().flat_map(of).collect() } else { Vec::new() }
    }

    /// The binding by which the stage Deny evaluates updates of objects also where parameters are missing: by the checks
    /// that read none, and by the others in a namespace that is being deleted. Where there are parameters, the first are
    /// evaluated twice, with the same result.
    fn unparameterized(
        self,
        stage: Stage,
        namespaces: &LabelSelector,
        name: impl Fn(String) -> String,
    ) -> Option<ValidatingAdmissionPolicyBinding> {
        let Self { profile, part, shape, rules, updates, without } = self;
        let is_needed = (shape, updates, stage) == (Shape::Objects, PodUpdates::WithParameters, Stage::Deny);
        let owner = profile_name(profile);
        (is_needed && without && !rules.updates.is_empty()).then(|| ValidatingAdmissionPolicyBinding {
            metadata: metadata(profile, name(names::unparameterized(owner, part))),
            spec: ValidatingAdmissionPolicyBindingSpec {
                policy_name: names::policy(owner, part),
                param_ref: None,
                match_resources: Some(matching(namespaces.clone(), rules.updates.clone())),
                validation_actions: actions(stage),
            },
        })
    }

    fn bindings(
        self,
        stage: Stage,
        namespaces: &LabelSelector,
        name: impl Fn(String) -> String,
    ) -> (ValidatingAdmissionPolicyBinding, Option<ValidatingAdmissionPolicyBinding>) {
        let Self { profile, part, shape, rules, updates, without: _ } = self;
        let owner = profile_name(profile);
        let binding = |name, param_ref, match_resources: Option<MatchResources>| ValidatingAdmissionPolicyBinding {
            metadata: metadata(profile, name),
            spec: ValidatingAdmissionPolicyBindingSpec {
                policy_name: names::policy(owner, part),
                param_ref,
                match_resources,
                validation_actions: actions(stage),
            },
        };
        let main = name(names::policy(owner, part));
        if updates == PodUpdates::AsCreation {
            let some = *namespaces != LabelSelector::default();
            return (binding(main, None, some.then(|| matching(namespaces.clone(), rules.all.clone()))), None);
        }
        // Deny closes a namespace without parameters. Other stages must let it through: the API server denies a request
        // for which it cannot configure the policy, whatever the binding's actions are.
        let not_found = if stage == Stage::Deny { "Deny" } else { "Allow" };
        let without = (shape, updates) == (Shape::Pods, PodUpdates::WithoutParameters);
        let of = |rules: &[_]| Some(matching(namespaces.clone(), rules.to_vec()));
        // A binding without rules would match all requests of the policy.
        if rules.updates.is_empty() || rules.others.is_empty() {
            let not_found = if rules.updates.is_empty() { not_found } else { "Allow" };
            return (binding(main, Some(param_ref(owner, not_found)), of(&rules.all)), None);
        }
        (
            binding(main, Some(param_ref(owner, not_found)), of(&rules.others)),
            Some(binding(
                name(names::updates(owner, part)),
                (!without).then(|| param_ref(owner, "Allow")),
                of(&rules.updates),
            )),
        )
    }
}

fn actions(stage: Stage) -> Vec<String> {
    let actions: &[&str] = match stage {
        Stage::Deny => &["Deny"],
        Stage::Warn => &["Warn", "Audit"],
        Stage::Audit => &["Audit"],
    };
    actions.iter().map(|&action| action.to_owned()).collect()
}

//! The next status of a profile, from its observed state and the previous status. Pure.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time},
    jiff::Timestamp,
};
use palisade_api::{
    ExceptionCounts, FailedNamespace, GeneratedStatus, MutationStatus, NamespaceCounts, PssEquivalent, RolloutStatus,
    ScanStatus, ToolSecurityProfileStatus, conditions::ConditionType,
};

use super::condition::Condition;

/// Observed state of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    /// The generation this is about.
    pub generation: Option<i64>,
    /// In the order of [`ConditionType::ALL`]; the last ones only with a rollout and with templates.
    pub conditions: Vec<Condition>,
    pub namespaces: NamespaceCounts,
    /// The first ten that failed.
    pub failed: Vec<FailedNamespace>,
    /// The level of the Pod Security Standards that the profile in effect implies.
    pub implied: Option<PssEquivalent>,
    /// How many exceptions the profile in effect has.
    pub exceptions: Option<ExceptionCounts>,
    /// The engine that mutates pods, if the profile in effect mutates any.
    pub mutation: Option<MutationStatus>,
    pub rollout: Option<RolloutStatus>,
    /// Results of the background scan.
    pub scan: Option<ScanStatus>,
    /// Objects of spec.generate.
    pub generated: Option<GeneratedStatus>,
    /// The policies in the cluster.
    pub policies: Vec<String>,
}

/// The new status, and the conditions that differ from the previous status; `None` if nothing differs.
pub fn next<'a>(
    previous: Option<&ToolSecurityProfileStatus>,
    observations: &'a Observations,
    now: Timestamp,
) -> Option<(ToolSecurityProfileStatus, Vec<&'a Condition>)> {
    let known = |type_: ConditionType| {
        previous.and_then(|status| status.conditions.iter().find(|condition| condition.type_ == type_.to_string()))
    };
    let mut transitions = Vec::new();
    let mut conditions = Vec::new();
    for observed in &observations.conditions {
        let known = known(observed.type_);
        let mut condition = MetaCondition {
            type_: observed.type_.to_string(),
            status: observed.status.text().to_owned(),
            reason: observed.reason.to_string(),
            message: observed.message.clone(),
            observed_generation: observations.generation,
            last_transition_time: Time(now),
        };
        if let Some(known) = known.filter(|known| known.status == condition.status) {
            condition.last_transition_time = known.last_transition_time.clone();
        }
        if known.is_none_or(|known| known.status != condition.status || known.reason != condition.reason) {
            transitions.push(observed);
        }
        conditions.push(condition);
    }
    let status = ToolSecurityProfileStatus {
        observed_generation: observations.generation,
        conditions,
        namespaces: observations.namespaces.clone(),
        failed_namespaces: observations.failed.clone(),
        pss_equivalent: observations.implied.clone(),
        exceptions: observations.exceptions,
        mutation: observations.mutation.clone(),
        rollout: observations.rollout.clone(),
        scan: observations.scan.clone(),
        generated: observations.generated.clone(),
        generated_policies: observations.policies.clone(),
    };
    let same = previous.is_some_and(|previous| is_same(previous, &status));
    (!same).then_some((status, transitions))
}

/// True if `previous` contains all of `status`. Conditions of other writers do not matter.
fn is_same(previous: &ToolSecurityProfileStatus, status: &ToolSecurityProfileStatus) -> bool {
    let ToolSecurityProfileStatus {
        observed_generation,
        conditions,
        namespaces,
        failed_namespaces,
        pss_equivalent,
        exceptions,
        mutation,
        rollout,
        scan,
        generated,
        generated_policies,
    } = status;
    previous.observed_generation == *observed_generation
        && previous.namespaces == *namespaces
        && previous.failed_namespaces == *failed_namespaces
        && previous.pss_equivalent == *pss_equivalent
        && previous.exceptions == *exceptions
        && previous.mutation == *mutation
        && previous.rollout == *rollout
        && previous.scan == *scan
        && previous.generated == *generated
        && previous.generated_policies == *generated_policies
        && conditions.iter().all(|condition| previous.conditions.contains(condition))
}

//! Metrics of the status of a profile: its namespaces and conditions.

use palisade_api::{NamespaceCounts, Stage, conditions::ConditionType};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::states::StateCounts;
use crate::status::{Condition, ConditionStatus};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StageLabels {
    profile: String,
    stage: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConditionLabels {
    profile: String,
    r#type: &'static str,
    status: &'static str,
}

const STATES: [&str; 3] = ["selected", "ready", "failed"];

/// Namespaces and conditions of profiles.
#[derive(Debug, Default)]
pub struct ProfileMetrics {
    namespaces: StateCounts,
    by_stage: Family<StageLabels, Gauge>,
    conditions: Family<ConditionLabels, Gauge>,
}

impl ProfileMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        self.namespaces.register(registry, "palisade_namespaces", "Namespaces of a profile by state");
        registry.register(
            "palisade_namespaces_by_stage",
            "Namespaces that a profile selects, by the stage of pods",
            self.by_stage.clone(),
        );
        registry.register(
            "palisade_profile_condition",
            "1 if the condition of the profile has the status",
            self.conditions.clone(),
        );
    }

    pub(super) fn count_once(&self, profile: &str) {
        self.namespaces.set(profile, [STATES[0]], [1]);
        self.by_stage.get_or_create(&StageLabels { profile: profile.to_owned(), stage: Stage::Deny.into() }).set(1);
        let (r#type, status) = (ConditionType::Ready.into(), ConditionStatus::True.text());
        self.conditions.get_or_create(&ConditionLabels { profile: profile.to_owned(), r#type, status }).set(1);
    }

    pub(super) fn set_namespaces(&self, profile: &str, namespaces: &NamespaceCounts) {
        self.namespaces.set(profile, STATES, [namespaces.selected, namespaces.ready, namespaces.failed]);
        for (stage, count) in Stage::ALL.into_iter().zip(namespaces.by_stage.counts()) {
            self.by_stage.get_or_create(&StageLabels { profile: profile.to_owned(), stage: stage.into() }).set(count);
        }
    }

    /// Sets the conditions of a profile, and forgets those that it no longer has.
    pub(super) fn set_conditions(&self, profile: &str, conditions: &[Condition]) {
        for type_ in ConditionType::ALL {
            let reported = conditions.iter().find(|condition| condition.type_ == type_);
            for status in ConditionStatus::ALL {
                let labels =
                    ConditionLabels { profile: profile.to_owned(), r#type: type_.into(), status: status.text() };
                match reported {
                    Some(condition) => {
                        self.conditions.get_or_create(&labels).set(i64::from(condition.status == status));
                    }
                    None => drop(self.conditions.remove(&labels)),
                }
            }
        }
    }

    pub(super) fn forget(&self, profile: &str) {
        self.namespaces.forget(profile, STATES);
        for stage in Stage::ALL {
            self.by_stage.remove(&StageLabels { profile: profile.to_owned(), stage: stage.into() });
        }
        self.set_conditions(profile, &[]);
    }
}

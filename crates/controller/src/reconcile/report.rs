//! Stage report: status, metrics and events of a profile.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api,
    api::{Patch, PatchParams},
    runtime::events::EventType,
};
use palisade_api::{
    ExceptionCounts, FailedNamespace, GeneratedStatus, MutationStatus, NamespaceCounts, RolloutStatus, ScanStatus,
    StageCounts, ToolSecurityProfile, ToolSecurityProfileStatus, conditions::ConditionType, names,
};
use serde_json::json;

use crate::{
    api_request::{ApiError, call},
    context::Context,
    generations::accepted::AcceptedProfile,
    message::few,
    param_plan::profile_params::Summary,
    status::{self, Condition, ConditionStatus, Observations},
    watch::{store::ObservedProfile, watch_cache::version},
};

/// The longest message about a namespace, in characters.
const MAX_MESSAGE_CHARS: usize = 1000;

/// State of this stage for a profile.
#[derive(Debug, Default)]
pub struct ReportState {
    /// The namespaces that were reported as failed.
    failed: Option<BTreeSet<String>>,
    /// The status that was written last.
    written: Option<ToolSecurityProfileStatus>,
}

/// The report about a profile.
#[derive(Debug)]
pub struct Report<'a> {
    /// Accepted, Programmed and Enforced.
    pub conditions: [Condition; 3],
    /// The namespaces of a profile: how many, and which failed.
    pub namespaces: Namespaces,
    /// The generation in effect, which may be the last good one.
    pub in_force: Option<&'a AcceptedProfile>,
    /// Which engine mutates pods.
    pub mutation: Option<MutationStatus>,
    pub rollout: Option<RolloutStatus>,
    pub rolled_out: Option<Condition>,
    /// Results of the background scan.
    pub scan: Option<ScanStatus>,
    /// Objects of spec.generate.
    pub generated: Option<GeneratedStatus>,
    /// The condition about them.
    pub objects_ready: Option<Condition>,
}

impl Report<'_> {
    /// The report about a profile without a generation in effect.
    pub fn of(conditions: [Condition; 3]) -> Self {
        Self {
            conditions,
            namespaces: Namespaces::default(),
            in_force: None,
            mutation: None,
            rollout: None,
            rolled_out: None,
            scan: None,
            generated: None,
            objects_ready: None,
        }
    }
}

/// The namespaces of a profile: how many, and which failed.
#[derive(Debug, Default)]
pub struct Namespaces {
    counts: NamespaceCounts,
    /// Why, by name.
    failed: BTreeMap<String, String>,
    /// Those with parameters that could not be written. In the others every pod violates the profile.
    not_written: BTreeSet<String>,
}

impl Namespaces {
    pub fn of(summary: Summary) -> Self {
        let Summary { selected, by_stage, ready, problems, unwritten, missing: _ } = summary;
        let mut failed = problems;
        let mut not_written = BTreeSet::new();
        for (namespace, message) in unwritten {
            if namespace != names::PROBE_NAMESPACE && !failed.contains_key(&namespace) {
                not_written.insert(namespace.clone());
                failed.insert(namespace, format!("the parameters could not be written: {message}"));
            }
        }
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let [deny, warn, audit] = by_stage.map(number);
        let counts = NamespaceCounts {
            summary: format!("{ready}/{selected}"),
            selected: number(selected),
            ready: number(ready),
            failed: number(failed.len()),
            by_stage: StageCounts { deny, warn, audit },
        };
        Self { counts, failed, not_written }
    }

    fn first(&self) -> Vec<FailedNamespace> {
        let shown = |(name, message): (&String, &String)| FailedNamespace {
            name: name.clone(),
            message: message.chars().take(MAX_MESSAGE_CHARS).collect(),
        };
        self.failed.iter().take(10).map(shown).collect()
    }
}

/// Writes the status, if it differs, and sends events.
pub async fn report(
    cx: &Context,
    observed: &ObservedProfile,
    state: &mut ReportState,
    report: Report<'_>,
) -> Result<(), ApiError> {
    let Report { conditions, namespaces, in_force, mutation, rollout, rolled_out, scan, generated, objects_ready } =
        report;
    let profile = observed.meta.name.clone().unwrap_or_default();
    let mut conditions = status::with_summary(conditions).to_vec();
    conditions.extend(rolled_out);
    conditions.extend(objects_ready);
    let observations = Observations {
        generation: observed.meta.generation,
        conditions,
        namespaces: namespaces.counts.clone(),
        failed: namespaces.first(),
        implied: in_force.map(|in_force| in_force.compiled.implied.clone()),
        exceptions: in_force.and_then(|in_force| exceptions(cx, in_force)),
        mutation,
        rollout,
        scan,
        generated,
        policies: cx.store.pairs(&profile).into_iter().filter_map(|pair| pair.policy?.metadata.name.clone()).collect(),
    };
    cx.metrics.report(&profile, &observations);
    let previous = match &observed.profile {
        // The observed profile may be older than this process's own last write.
        Ok(_) => cx.store.profile(&profile).and_then(|now| now.profile.as_ref().ok().and_then(|p| p.status.clone())),
        Err(_) => state.written.clone(),
    };
    let known_failures = previous.as_ref().map(|status| status.namespaces.failed);
    if let Some((status, transitions)) = status::next(previous.as_ref(), &observations, Timestamp::now()) {
        let patch = json!({
            "apiVersion": names::API_VERSION,
            "kind": "ToolSecurityProfile",
            "metadata": {"name": profile, "uid": observed.meta.uid},
            "status": status,
        });
        let api: Api<kube::core::PartialObjectMeta<ToolSecurityProfile>> = Api::all(cx.client.clone());
        let apply = PatchParams::apply(names::field_manager::STATUS).force();
        let written = call(api.patch_status(&profile, &apply, &Patch::Apply(&patch))).await?;
        cx.store.wrote_status(observed, version(&written.metadata), status.clone());
        state.written = Some(status);
        announce(cx, observed, &transitions);
    }
    announce_failures(cx, observed, state, &namespaces, known_failures);
    Ok(())
}

/// How many exceptions a profile has, and how many tenants ask for.
fn exceptions(cx: &Context, in_force: &AcceptedProfile) -> Option<ExceptionCounts> {
    let listed = in_force.compiled.exceptions.counts(Timestamp::now());
    let requested = cx.store.exceptions.counts(&in_force.compiled.profile);
    if listed.is_none() && requested.is_none() {
        return None;
    }
    Some(ExceptionCounts { requested, ..listed.unwrap_or_default() })
}

fn announce(cx: &Context, observed: &ObservedProfile, transitions: &[&Condition]) {
    for (severity, reason, note) in news(transitions) {
        cx.events.profile(&observed.meta, severity, &reason, note);
    }
}

/// The events about conditions that have changed: type, reason and note of each.
fn news<'a>(transitions: &[&'a Condition]) -> Vec<(EventType, String, &'a str)> {
    // The lane of rollouts announces what it does itself.
    let has_events = |type_: ConditionType| !type_.is_summary() && type_ != ConditionType::RolledOut;
    let is_news = |condition: &&&Condition| !condition.is_transient() && has_events(condition.type_);
    let event = |condition: &&'a Condition| {
        let reason = match condition.status {
            ConditionStatus::True => condition.type_.to_string(),
            _ => condition.reason.to_string(),
        };
        let severity = if condition.is_alarming() { EventType::Warning } else { EventType::Normal };
        (severity, reason, condition.message.as_str())
    };
    let mut news: Vec<_> = transitions.iter().filter(is_news).map(event).collect();
    // A profile that was never accepted is neither programmed nor enforced, for one reason.
    news.dedup_by(|(_, reason, note), (_, earlier, same)| reason == earlier && note == same);
    news
}

/// Sends events about namespaces that have failed since the last report; after a restart, none if the status counts as
/// many.
fn announce_failures(
    cx: &Context,
    observed: &ObservedProfile,
    state: &mut ReportState,
    namespaces: &Namespaces,
    known: Option<i64>,
) {
    let now: BTreeSet<String> = namespaces.failed.keys().cloned().collect();
    let before = state.failed.replace(now.clone());
    let new: Vec<_> = match &before {
        Some(before) => now.difference(before).collect(),
        None if known == Some(namespaces.counts.failed) => Vec::new(),
        None => now.iter().collect(),
    };
    let (not_written, violating): (Vec<&String>, Vec<&String>) =
        new.into_iter().partition(|name| namespaces.not_written.contains(*name));
    for (what, names) in
        [("every pod violates the profile in", violating), ("parameters could not be written in", not_written)]
    {
        if let Some(first) = names.first() {
            let note = format!("{what} {}; {first}: {}", few(&names), namespaces.failed[*first]);
            cx.events.profile(&observed.meta, EventType::Warning, "NamespaceFailed", &note);
        }
    }
}

#[cfg(test)]
mod tests {
    use palisade_api::conditions::Reason;

    use super::*;
    use crate::status::conditions::not_accepted;

    #[test]
    fn a_profile_that_was_never_accepted_has_one_event_for_each_reason() {
        let refused = Condition::new(ConditionType::Accepted, ConditionStatus::False, Reason::InvalidSpec, "why");
        let (programmed, enforced) = (not_accepted(ConditionType::Programmed), not_accepted(ConditionType::Enforced));
        let reasons =
            |transitions: &[&Condition]| news(transitions).into_iter().map(|(_, reason, _)| reason).collect::<Vec<_>>();
        assert_eq!(reasons(&[&refused, &programmed, &enforced]), ["InvalidSpec", "NotAccepted"]);
        assert_eq!(reasons(&[&enforced]), ["NotAccepted"]);
    }
}

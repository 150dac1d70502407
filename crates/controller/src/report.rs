//! Stage report: status, metrics and events of a profile.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use palisade_api::{FailedNamespace, NamespaceCounts, ToolSecurityProfile, names};
use serde_json::json;

use crate::{
    apply::few,
    call::{ApiError, call},
    context::Context,
    events::Tone,
    memory::Memory,
    params::Summary,
    redirects,
    status::{self, Facts, Judgement, Truth},
    world::{ObservedProfile, version},
};

/// The longest message about a namespace, in characters.
const LONGEST: usize = 1000;

/// How it stands in the namespaces.
#[derive(Debug, Default)]
pub struct Namespaces {
    counts: NamespaceCounts,
    /// Why, by name.
    failed: BTreeMap<String, String>,
    /// Those of them whose parameters could not be written. In the others all pods are denied.
    not_written: BTreeSet<String>,
}

impl Namespaces {
    /// As they were found.
    pub fn of(summary: Summary) -> Self {
        let Summary { selected, ready, problems, unwritten } = summary;
        let mut failed = problems;
        let mut not_written = BTreeSet::new();
        for (namespace, message) in unwritten {
            if namespace != names::PROBE_NAMESPACE && !failed.contains_key(&namespace) {
                not_written.insert(namespace.clone());
                failed.insert(namespace, format!("the parameters could not be written: {message}"));
            }
        }
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let counts = NamespaceCounts { selected: number(selected), ready: number(ready), failed: number(failed.len()) };
        Self { counts, failed, not_written }
    }

    fn first(&self) -> Vec<FailedNamespace> {
        let shown = |(name, message): (&String, &String)| FailedNamespace {
            name: name.clone(),
            message: message.chars().take(LONGEST).collect(),
        };
        self.failed.iter().take(10).map(shown).collect()
    }
}

/// Says how it stands, if that is not said already.
pub async fn report(
    cx: &Context,
    observed: &ObservedProfile,
    memory: &mut Memory,
    conditions: [Judgement; 3],
    namespaces: Namespaces,
) -> Result<(), ApiError> {
    let profile = observed.meta.name.clone().unwrap_or_default();
    let facts = Facts {
        generation: observed.meta.generation,
        conditions,
        namespaces: namespaces.counts,
        failed: namespaces.first(),
        // Of the profile that is in force, which may be the last good one.
        implied: memory.last_good.as_ref().map(|good| good.compiled.implied.clone()),
        exceptions: memory.last_good.as_ref().and_then(|good| good.compiled.exceptions.counts(Timestamp::now())),
        mutation: match &memory.mutating {
            Some(turn) => turn.status.clone().map(|status| match &memory.last_good {
                Some(good) => redirects::told(&cx.world, &good.profile, status),
                None => status,
            }),
            // What was found by an earlier process holds until somebody is asked.
            None => observed.profile.as_ref().ok().and_then(|known| known.status.as_ref()?.mutation.clone()),
        },
        policies: cx.world.pairs(&profile).into_iter().filter_map(|pair| pair.policy?.metadata.name.clone()).collect(),
    };
    cx.metrics.report(&profile, &facts);
    let previous = match &observed.profile {
        // What was seen may be older than this process's own last word.
        Ok(_) => cx.world.profile(&profile).and_then(|now| now.profile.as_ref().ok().and_then(|p| p.status.clone())),
        Err(_) => memory.reported.clone(),
    };
    let known_failures = previous.as_ref().map(|status| status.namespaces.failed);
    if let Some((status, transitions)) = status::next(previous.as_ref(), &facts, Timestamp::now()) {
        let patch = json!({
            "apiVersion": names::API_VERSION,
            "kind": "ToolSecurityProfile",
            "metadata": {"name": profile, "uid": observed.meta.uid},
            "status": status,
        });
        let api: Api<kube::core::PartialObjectMeta<ToolSecurityProfile>> = Api::all(cx.client.clone());
        let apply = PatchParams::apply(names::field_manager::STATUS).force();
        let written = call(api.patch_status(&profile, &apply, &Patch::Apply(&patch))).await?;
        cx.world.wrote_status(observed, version(&written.metadata), status.clone());
        memory.reported = Some(status);
        announce(cx, observed, &transitions);
    }
    announce_failures(cx, observed, memory, &namespaces, known_failures);
    Ok(())
}

fn announce(cx: &Context, observed: &ObservedProfile, transitions: &[&Judgement]) {
    for judgement in transitions.iter().filter(|judgement| !judgement.is_transient()) {
        let reason = match judgement.status {
            Truth::True => judgement.type_.to_string(),
            _ => judgement.reason.to_string(),
        };
        let tone = if judgement.is_alarming() { Tone::Warning } else { Tone::Normal };
        cx.events.profile(&observed.meta, tone, &reason, &judgement.message);
    }
}

/// Says which namespaces have failed since the last time. After a restart, nothing if there are as many as before.
fn announce_failures(
    cx: &Context,
    observed: &ObservedProfile,
    memory: &mut Memory,
    namespaces: &Namespaces,
    known: Option<i64>,
) {
    let now: BTreeSet<String> = namespaces.failed.keys().cloned().collect();
    let before = memory.failed.replace(now.clone());
    let new: Vec<_> = match &before {
        Some(before) => now.difference(before).collect(),
        None if known == Some(namespaces.counts.failed) => Vec::new(),
        None => now.iter().collect(),
    };
    let (not_written, denied): (Vec<&String>, Vec<&String>) =
        new.into_iter().partition(|name| namespaces.not_written.contains(*name));
    for (what, names) in [("all pods are denied in", denied), ("parameters could not be written in", not_written)] {
        if let Some(first) = names.first() {
            let note = format!("{what} {}; {first}: {}", few(&names), namespaces.failed[*first]);
            cx.events.profile(&observed.meta, Tone::Warning, "NamespaceFailed", &note);
        }
    }
}

//! The registration of the webhook: the profiles for which API servers call it.
//!
//! There is one `MutatingWebhookConfiguration` with an entry for each profile. An entry is built only from a generation
//! that passed the gate and is in effect, and from the `ConfigMap` that the webhook publishes. While that is empty, no
//! webhook is running, and the controller adds no entry. The manifests create both objects. Without them, there is no
//! webhook.
//!
//! An error in one entry must not affect all profiles: dry runs find an entry that the API server rejects, which the
//! gate should have caught. That profile keeps its previous entry, the controller writes the others, and the status of
//! the profile reports the error.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration},
    core::v1::ConfigMap,
};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::{
        WatchStreamExt,
        watcher::{Config, watcher},
    },
};
use palisade_api::{
    EngineInForce, Published,
    names::{self, OPERATOR_NAMESPACE, WEBHOOK, WEBHOOK_CA},
    settings::mutation::Engine,
};
use palisade_runtime::{Supervisor, watch_backoff};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    api_request::{ApiError, call},
    generations::accepted::AcceptedProfile,
    object_name::ProfileName,
    queue::ProfileQueue,
    watch::store::{ProfileNames, Store},
};

/// How often the registration is checked when nothing is known to have changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two turns, so that changes of many profiles become one write.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Tells if the API server must call the webhook for the pods of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    No,
    Yes,
    /// Only if it does already: a policy shall replace it, but no probe has observed the policy mutating pods yet.
    UntilReplaced,
}

impl Wanted {
    /// Determines if a profile needs the webhook, given the engine that last mutated its pods.
    pub fn of(accepted: &AcceptedProfile, observed: Option<EngineInForce>) -> Self {
        let by_policy = observed == Some(EngineInForce::Native);
        match accepted.compiled.mutation.as_ref().map(|mutation| mutation.engine) {
            Some(Engine::Webhook) => Self::Yes,
            // Until a probe has observed the API server mutating pods.
            Some(Engine::Auto) if !by_policy => Self::Yes,
            Some(Engine::Native) if !by_policy => Self::UntilReplaced,
            Some(Engine::Auto | Engine::Native | Engine::Off) | None => Self::No,
        }
    }
}

/// The entry that a profile shall have.
#[derive(Clone, Debug)]
struct Desired {
    /// The state in effect; `None` means no entry.
    accepted: Option<Arc<AcceptedProfile>>,
    wanted: Wanted,
}

/// Maintains the registration.
#[derive(Debug, Default)]
pub struct Registration {
    desired: Mutex<BTreeMap<String, Desired>>,
    /// By profile, why its entry is not as desired.
    problems: Mutex<BTreeMap<String, String>>,
    /// Held while the registration is read and written.
    turn: tokio::sync::Mutex<()>,
    changed: Notify,
}

impl Registration {
    /// Puts this state of a profile in effect.
    pub fn want(&self, accepted: &Arc<AcceptedProfile>, wanted: Wanted) {
        let desired = Desired { accepted: Some(Arc::clone(accepted)), wanted };
        let before = self.lock().insert(accepted.compiled.profile.clone(), desired);
        let same = before.is_some_and(|before| {
            before.wanted == wanted && before.accepted.is_some_and(|before| Arc::ptr_eq(&before, accepted))
        });
        if !same {
            self.changed.notify_one();
        }
    }

    /// The profile was deleted or replaced by another one of the same name: no generation is in effect.
    pub fn forget(&self, profile: &str) {
        self.lock().insert(profile.to_owned(), Desired { accepted: None, wanted: Wanted::No });
        self.changed.notify_one();
    }

    /// Why the entry of a profile is not as desired.
    pub fn problem(&self, profile: &str) -> Option<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).get(profile).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Desired>> {
        self.desired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the registration as desired. Returns the profiles with a new problem, or without a former one.
    ///
    /// # Errors
    /// It could not be read or written, for a reason that no single profile causes.
    pub async fn keep(&self, client: &Client, profiles: &ProfileNames) -> Result<ProfileNames, ApiError> {
        let _turn = self.turn.lock().await;
        let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        // Read before the ConfigMap, so that the desired entries are never older than those in the registration.
        let Some(mut found) = call(api.get_opt(WEBHOOK)).await? else { return Ok(self.report(BTreeMap::new())) };
        let config: Api<ConfigMap> = Api::namespaced(client.clone(), OPERATOR_NAMESPACE);
        let published = call(config.get_opt(WEBHOOK_CA)).await?;
        let published = published.and_then(|config| Published::read(&config.data.unwrap_or_default()));
        let known = found.webhooks.take().unwrap_or_default();
        found.metadata.managed_fields = None;
        let desired = entries(&self.lock(), profiles, published.as_ref(), &known);
        self.lock().retain(|profile, desired| desired.accepted.is_some() || profiles.contains(profile.as_str()));
        if desired == known {
            return Ok(self.report(BTreeMap::new()));
        }
        let with = |webhooks: &[MutatingWebhook]| MutatingWebhookConfiguration {
            webhooks: Some(webhooks.to_vec()),
            ..found.clone()
        };
        let manager = |dry_run| PostParams { dry_run, field_manager: Some(names::CONTROLLER.to_owned()) };
        let mut problems = BTreeMap::new();
        match call(api.replace(WEBHOOK, &manager(false), &with(&desired))).await {
            Ok(_) => tracing::info!(entries = desired.len(), "wrote the registration of the webhook"),
            // Another writer was faster. The next turn reads the result.
            Err(error) if error.is_conflict() => self.changed.notify_one(),
            Err(error) if is_rejected(&error) => {
                let mut acceptable = Vec::new();
                for entry in desired {
                    let before = known.iter().find(|before| before.name == entry.name);
                    if before != Some(&entry)
                        && let Err(error) =
                            call(api.replace(WEBHOOK, &manager(true), &with(std::slice::from_ref(&entry)))).await
                    {
                        tracing::warn!(entry = entry.name, %error, "the API server rejected an entry; the previous one remains");
                        let profile = names::profile_of_webhook_entry(&entry.name).unwrap_or_default().to_owned();
                        problems.insert(profile, error.to_string());
                        acceptable.extend(before.cloned());
                    } else {
                        acceptable.push(entry);
                    }
                }
                if acceptable != known {
                    call(api.replace(WEBHOOK, &manager(false), &with(&acceptable))).await?;
                    tracing::info!(entries = acceptable.len(), "wrote the registration of the webhook");
                }
            }
            Err(error) => return Err(error),
        }
        Ok(self.report(problems))
    }

    /// Remembers the problems. Returns the profiles with another problem than before.
    fn report(&self, problems: BTreeMap<String, String>) -> ProfileNames {
        let mut known = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        let names = known.keys().chain(problems.keys());
        let changed = names.filter(|name| known.get(*name) != problems.get(*name)).map(ProfileName::new).collect();
        *known = problems;
        changed
    }
}

/// True if the API server rejects the object itself, and not its author, and not for lack of time.
fn is_rejected(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused(status) if matches!(status.code, 400 | 403 | 413 | 422))
}

/// The entries, in the order of the names of the profiles.
///
/// A profile that is not checked yet, for example after a restart, keeps its entry. So does each profile that needs one
/// while no webhook publishes how to reach it: older webhooks did not.
fn entries(
    desired: &BTreeMap<String, Desired>,
    profiles: &ProfileNames,
    published: Option<&Published>,
    found: &[MutatingWebhook],
) -> Vec<MutatingWebhook> {
    let entry = |profile: &ProfileName| {
        let known = found.iter().find(|found| found.name == names::webhook_entry(profile)).cloned();
        let Some(Desired { accepted, wanted }) = desired.get(profile.as_str()) else { return known };
        let accepted = accepted.as_ref()?;
        if *wanted == Wanted::No || (*wanted == Wanted::UntilReplaced && known.is_none()) {
            return None;
        }
        let Some(published) = published else { return known };
        let mut entry = accepted.compiled.mutation.as_ref()?.webhook(published);
        if entry.client_config.ca_bundle.is_none() {
            entry.client_config.ca_bundle = known.and_then(|known| known.client_config.ca_bundle);
        }
        Some(entry)
    };
    profiles.iter().filter_map(entry).collect()
}

/// Maintains the registration until the controller stops.
pub fn start(
    registration: &Arc<Registration>,
    client: &Client,
    store: &Arc<Store>,
    queue: &Arc<ProfileQueue>,
    tasks: &Supervisor,
) {
    let config: Api<ConfigMap> = Api::namespaced(client.clone(), OPERATOR_NAMESPACE);
    let (watching, stopped) = (Arc::clone(registration), tasks.stop().clone());
    tasks.spawn("watch of the ConfigMap of the webhook", async move {
        let own = Config::default().fields(&format!("metadata.name={WEBHOOK_CA}"));
        let mut events = std::pin::pin!(watcher(config, own).backoff(watch_backoff()));
        while let Some(Some(event)) = stopped.run_until_cancelled(events.next()).await {
            match event {
                Ok(_) => watching.changed.notify_one(),
                Err(error) => {
                    let error = ApiError::from(error);
                    tracing::warn!(%error, "watch of {WEBHOOK_CA} failed; will retry");
                }
            }
        }
    });
    let (registration, client, store, queue) =
        (Arc::clone(registration), client.clone(), Arc::clone(store), Arc::clone(queue));
    let stop = tasks.stop().clone();
    tasks.spawn("registration of the webhook", async move {
        let turns = async {
            loop {
                // Until all lists are read, a profile that seems to be gone may only be unknown.
                if store.synced() {
                    match registration.keep(&client, &store.profiles()).await {
                        Ok(concerned) => queue.trigger(concerned),
                        Err(error) => {
                            tracing::warn!(%error, "could not write the registration of the webhook; will retry");
                        }
                    }
                }
                sleep(MIN_CHECK_INTERVAL).await;
                let _ = timeout(CHECK_INTERVAL, registration.changed.notified()).await;
            }
        };
        let _: Option<()> = stop.run_until_cancelled(turns).await;
    });
}

#[cfg(test)]
mod tests {
    use palisade_api::ToolSecurityProfile;
    use palisade_compiler::compile;
    use palisade_gate::check;
    use serde_json::json;

    use super::*;

    fn accepted(name: &str, engine: &str) -> Arc<AcceptedProfile> {
        let profile: ToolSecurityProfile = serde_json::from_value(json!({
            "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {"matchLabels": {"a": "b"}},
                "mutation": {"defaults": "Secure", "engine": engine},
            },
        }))
        .unwrap();
        let compiled = check(compile(&profile).unwrap()).unwrap();
        Arc::new(AcceptedProfile { profile: Arc::new(profile), compiled })
    }

    fn published(authorities: Option<&str>) -> Published {
        Published { authorities: authorities.map(str::to_owned), url: None, timeout_seconds: 3 }
    }

    fn desired(all: &[(&Arc<AcceptedProfile>, Wanted)]) -> BTreeMap<String, Desired> {
        let one = |(accepted, wanted): &(&Arc<AcceptedProfile>, Wanted)| {
            (accepted.compiled.profile.clone(), Desired { accepted: Some(Arc::clone(accepted)), wanted: *wanted })
        };
        all.iter().map(one).collect()
    }

    fn names_of(entries: &[MutatingWebhook]) -> Vec<&str> {
        entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    #[test]
    fn webhook_entry_exists_while_served_and_wanted() {
        let (one, two, still) = (accepted("one", "Webhook"), accepted("two", "Auto"), accepted("still", "Native"));
        let all = desired(&[(&one, Wanted::Yes), (&two, Wanted::No), (&still, Wanted::UntilReplaced)]);
        let profiles: ProfileNames = ["one", "two", "still"].map(ProfileName::new).into();
        assert_eq!(entries(&all, &profiles, None, &[]), []);
        let now = published(Some("PEM"));
        let written = entries(&all, &profiles, Some(&now), &[]);
        assert_eq!(names_of(&written), ["one.mutate.toolsecurity.dev"]);
        assert_eq!(written[0].client_config.ca_bundle.as_ref().unwrap().0, b"PEM");
        // The entries of an older webhook remain until this one publishes its address.
        let before = |accepted: &Arc<AcceptedProfile>| {
            accepted.compiled.mutation.as_ref().unwrap().webhook(&published(Some("OLD")))
        };
        let found = [before(&one), before(&two), before(&still)];
        let kept = entries(&all, &profiles, None, &found);
        assert_eq!(kept, [found[0].clone(), found[2].clone()]);
        let names = ["one.mutate.toolsecurity.dev", "still.mutate.toolsecurity.dev"];
        assert_eq!(names_of(&entries(&all, &profiles, Some(&now), &found)), names);
    }

    #[test]
    fn unchecked_profile_keeps_its_webhook_entry_until_deleted() {
        let one = accepted("one", "Webhook");
        let found = [one.compiled.mutation.as_ref().unwrap().webhook(&published(Some("OLD")))];
        let profiles: ProfileNames = [ProfileName::new("one")].into();
        assert_eq!(entries(&BTreeMap::new(), &profiles, Some(&published(None)), &found), found);
        assert_eq!(entries(&BTreeMap::new(), &ProfileNames::new(), Some(&published(None)), &found), []);
        let none = BTreeMap::from([("one".to_owned(), Desired { accepted: None, wanted: Wanted::No })]);
        assert_eq!(entries(&none, &profiles, Some(&published(None)), &found), []);
    }

    #[test]
    fn injected_ca_bundles_are_kept() {
        let one = accepted("one", "Webhook");
        let all = desired(&[(&one, Wanted::Yes)]);
        let profiles: ProfileNames = [ProfileName::new("one")].into();
        let found = entries(&all, &profiles, Some(&published(Some("INJECTED"))), &[]);
        assert_eq!(entries(&all, &profiles, Some(&published(None)), &found), found);
    }

    #[test]
    fn observed_engine_decides_whether_a_webhook_is_wanted() {
        use EngineInForce::{Native, None as Nobody, Webhook};
        for (engine, seen, expected) in [
            ("Webhook", Some(Native), Wanted::Yes),
            ("Auto", None, Wanted::Yes),
            ("Auto", Some(Nobody), Wanted::Yes),
            ("Auto", Some(Webhook), Wanted::Yes),
            ("Auto", Some(Native), Wanted::No),
            ("Native", None, Wanted::UntilReplaced),
            ("Native", Some(Native), Wanted::No),
            ("Off", Some(Webhook), Wanted::No),
        ] {
            assert_eq!(Wanted::of(&accepted("x", engine), seen), expected, "{engine} {seen:?}");
        }
    }
}

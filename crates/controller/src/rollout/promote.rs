//! Evaluates the objects of namespaces, promotes compliant namespaces and holds the others.

use std::sync::Arc;

use futures::{FutureExt, StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};
use k8s_openapi::{api::core::v1::Namespace as CoreNamespace, jiff::Timestamp};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
    core::ObjectMeta,
    runtime::events::EventType,
};
use palisade_api::{OnViolation, Stage, names};
use palisade_compiler::Namespace;
use palisade_kube_json::{existing::is_current, json::set};
use serde_json::json;
use tokio::time::Instant;

use super::{error::RolloutError, step::RolloutStep};
use crate::{
    api_request::call,
    context::{
        discovery::{Discovered, NOT_SERVED, discover},
        pages::{Page, list_page},
    },
    evaluation::{Evaluator, Findings, ListedKind},
    message::few,
    waves::plan::Hold,
};

/// How many of them at the same time.
const MAX_CONCURRENT_NAMESPACES: usize = 8;
/// How many objects one request lists at most.
const PAGE_SIZE: u32 = 250;

impl RolloutStep<'_> {
    /// Evaluates some namespaces, promotes compliant ones and holds the others.
    pub async fn promote(&self, batch: &[(&Namespace, Stage)]) -> Result<(), RolloutError> {
        let evaluator = self.evaluator().await?;
        let kinds = self.kinds(&evaluator).await?;
        let verdicts = batch.iter().map(|(one, _)| self.verdict(Arc::clone(&evaluator), &kinds, one).boxed());
        let verdicts = together(verdicts.collect()).await?;
        let evaluated = || batch.iter().zip(&verdicts);
        let held: Vec<_> = evaluated().filter_map(|((one, _), why)| Some((*one, why.as_ref()?))).collect();
        for (one, _) in &held {
            self.state.rollout().evaluated.insert(one.name.clone(), Instant::now());
        }
        let stop = self.rollout.on_violation == OnViolation::Stop && !held.is_empty();
        let changes = evaluated().filter_map(|((one, stage), why)| match why {
            Some(why) => {
                let hold = Hold::Violations { why: why.clone(), generation: Some(self.accepted.generation()) };
                Some(self.change(one, None, Some(hold)).boxed())
            }
            None if stop => None,
            None => Some(self.change(one, Some(*stage), None).boxed()),
        });
        let written = together(changes.collect()).await?;
        if let Some((first, why)) = held.first().filter(|_| written.contains(&true)) {
            let names: Vec<_> = held.iter().map(|(one, _)| one.name.as_str()).collect();
            let note = format!("not promoted: {}; in {}: {why}", few(&names), first.name);
            self.announce(EventType::Warning, "NamespaceHeld", &note);
        }
        Ok(())
    }

    async fn evaluator(&self) -> Result<Arc<Evaluator>, RolloutError> {
        let (state, accepted) = (Arc::clone(self.state), Arc::clone(self.accepted));
        let evaluator = tokio::task::spawn_blocking(move || state.evaluator(&accepted)).await?;
        evaluator.map_err(RolloutError::Compile)
    }

    /// The kinds to evaluate. There are no objects of a kind that the API server does not have.
    async fn kinds(&self, evaluator: &Evaluator) -> Result<Vec<Arc<ListedKind>>, RolloutError> {
        let Discovered { listed, missing } = discover(&self.cx.client, evaluator.object_kinds()).await;
        if let Some((kind, why)) = missing.iter().find(|(_, why)| *why != NOT_SERVED) {
            return Err(RolloutError::Discovery { kind: kind.clone(), why: why.clone() });
        }
        let mut kinds: Vec<_> = evaluator.kinds().collect();
        let others = listed.into_iter().filter(|of| !kinds.contains(of)).collect::<Vec<_>>();
        kinds.extend(others);
        Ok(kinds.into_iter().map(Arc::new).collect())
    }

    /// The violations in a namespace, by current objects that belong to no other evaluated workload. Objects are
    /// evaluated a page at a time, and then dropped: those of one namespace can exceed the memory.
    async fn verdict(
        &self,
        evaluator: Arc<Evaluator>,
        kinds: &[Arc<ListedKind>],
        one: &Namespace,
    ) -> Result<Option<String>, RolloutError> {
        let (name, namespace) = (&one.name, Arc::new(one.clone()));
        let exceptions = self.cx.store.exceptions.of(self.profile, name);
        let params = self
            .accepted
            .compiled
            .params(one, exceptions.iter().map(|one| &one.request), Timestamp::now())
            .map(Arc::new);
        let mut findings = Findings::default();
        for of in kinds {
            let mut page = ListParams::default().limit(PAGE_SIZE);
            loop {
                let listed = list_page(self.cx, Some(name), of, &page).await;
                let Page { mut objects, next, room } =
                    listed.map_err(|error| RolloutError::List { namespace: name.clone(), error })?;
                objects.retain(|existing| is_current(&existing.of.kind, &existing.object));
                if !objects.is_empty() {
                    let (evaluator, accepted) = (Arc::clone(&evaluator), Arc::clone(self.accepted));
                    let (namespace, params) = (Arc::clone(&namespace), params.clone());
                    let _permit = self.cx.plans.acquire().await;
                    findings = tokio::task::spawn_blocking(move || {
                        findings
                            .evaluate(&evaluator.tenant(&accepted, &namespace, params.as_deref()).in_deny(), &objects);
                        drop((objects, room));
                        findings
                    })
                    .await?;
                }
                match next {
                    Some(token) => page = page.continue_token(&token),
                    None => break,
                }
            }
        }
        Ok(findings.end())
    }

    /// Changes the label and the annotation of a namespace. Returns whether a hold was written.
    async fn change(&self, one: &Namespace, stage: Option<Stage>, hold: Option<Hold>) -> Result<bool, RolloutError> {
        let name = &one.name;
        let known = one.annotations.get(&names::rollout_annotation(self.profile));
        let text = hold.as_ref().map(Hold::text);
        if stage.is_none() && known == text.as_ref() {
            return Ok(false);
        }
        let mut metadata = json!({});
        if let Some(stage) = stage {
            set(&mut metadata, &["labels", &names::stage_label(self.profile)], stage.to_string());
        }
        if known != text.as_ref() {
            set(&mut metadata, &["annotations", &names::rollout_annotation(self.profile)], text);
        }
        let api: Api<CoreNamespace> = Api::all(self.cx.client.clone());
        let parameters =
            PatchParams { field_manager: Some(names::field_manager::ROLLOUT.into()), ..Default::default() };
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match call(api.patch_metadata(name, &parameters, &patch)).await {
            Ok(written) => {
                let concerned = self.cx.store.wrote_namespace(written);
                // If another client has changed it since, other profiles may be affected, too.
                self.cx.queues.params.trigger(concerned.clone());
                self.cx.queues.rollouts.trigger(concerned);
            }
            // It was deleted meanwhile.
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(RolloutError::Write { namespace: name.clone(), error }),
        }
        self.cx.metrics.writes.wrote("Namespace", "patch");
        tracing::info!(profile = self.profile, namespace = name, ?stage, ?hold, "changed the stage of a namespace");
        let Some(Hold::Violations { why, .. }) = &hold else { return Ok(hold.is_some()) };
        // Another generation with the same result is no news.
        let is_news =
            !matches!(Hold::of(one, self.profile), Some(Hold::Violations { why: known, .. }) if known == *why);
        if is_news {
            // Where those who work in it look.
            self.tell(name, why);
        }
        Ok(is_news)
    }

    /// An event in a namespace that is held now, and was not or for another reason.
    fn tell(&self, namespace: &str, why: &str) {
        let params = ObjectMeta {
            name: Some(names::params(self.profile)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let note = format!("profile {} holds this namespace at its stage: {why}", self.profile);
        self.cx.events.params(&params, EventType::Warning, "NamespaceHeld", &note);
    }
}

/// Some requests, a few at the same time: their answers, or the first error.
async fn together<T>(requests: Vec<BoxFuture<'_, Result<T, RolloutError>>>) -> Result<Vec<T>, RolloutError> {
    stream::iter(requests).buffered(MAX_CONCURRENT_NAMESPACES).try_collect().await
}

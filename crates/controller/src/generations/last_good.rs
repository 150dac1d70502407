//! The last generation that took effect: in memory, and in a `ControllerRevision` for restarts.

use std::{sync::Arc, time::Duration};

use kube::Client;
use tokio::time::Instant;

use crate::{
    api_request::ApiError,
    generations::{
        accepted::AcceptedProfile,
        compile::{self, CompileState, Compiler},
        revision,
    },
    watch::store::ObservedProfile,
};

/// How long after a failure the revision is saved again.
const RETRY: Duration = Duration::from_secs(30);

/// The last generation that took effect.
#[derive(Debug, Default)]
pub struct LastGood {
    profile: Option<Arc<AcceptedProfile>>,
    /// True if the revision was read, or is not needed.
    read: bool,
    /// The generation for which the revision was saved.
    saved: Option<i64>,
    /// When saving may be tried again.
    retry_at: Option<Instant>,
}

impl LastGood {
    /// The remembered generation.
    pub fn get(&self) -> Option<&Arc<AcceptedProfile>> {
        self.profile.as_ref()
    }

    /// Remembers another one, or none.
    pub fn set(&mut self, profile: Option<Arc<AcceptedProfile>>) {
        self.profile = profile;
    }

    /// True if the revision of a generation was saved.
    pub fn is_saved(&self, generation: i64) -> bool {
        self.saved == Some(generation)
    }

    /// Puts an earlier one back: its revision is to be the newest again.
    pub fn put_back(&mut self, profile: &Arc<AcceptedProfile>) {
        (self.profile, self.saved, self.retry_at) = (Some(Arc::clone(profile)), None, None);
    }

    /// Loads it from memory, otherwise from the revision.
    ///
    /// # Errors
    ///
    /// If it could not be read. A missing revision is not an error.
    pub async fn load(
        &mut self,
        client: &Client,
        compiler: &Compiler,
        observed: &ObservedProfile,
        compiled: &mut CompileState,
    ) -> Result<Option<Arc<AcceptedProfile>>, ApiError> {
        if self.profile.is_none() && !self.read {
            if let Some(saved) = revision::load(client, &observed.meta).await? {
                let written =
                    observed.profile.as_ref().ok().filter(|written| {
                        observed.meta.generation == Some(saved.generation) && written.spec == saved.spec
                    });
                self.profile = if written.is_some() {
                    // Usually after a restart. The gate checks it once.
                    self.saved = Some(saved.generation);
                    compile::verdict(compiler, observed, compiled).await.ok()
                } else {
                    compile::earlier(compiler, observed, saved.generation, saved.spec).await.map(Arc::new)
                };
            }
            self.read = true;
        }
        Ok(self.profile.clone())
    }

    /// Stores the generation that is now in effect, and saves its revision. A failure does not stop the lane: the
    /// result is the time of the next attempt.
    pub async fn save(&mut self, client: &Client, accepted: &Arc<AcceptedProfile>) -> Option<Duration> {
        self.profile = Some(Arc::clone(accepted));
        self.read = true;
        let now = Instant::now();
        if self.is_saved(accepted.generation()) {
            return None;
        }
        if let Some(retry_at) = self.retry_at.filter(|retry_at| *retry_at > now) {
            return Some(retry_at.duration_since(now));
        }
        match revision::save(client, accepted).await {
            Ok(()) => {
                self.saved = Some(accepted.generation());
                None
            }
            Err(error) => {
                tracing::warn!(%error, "could not save the revision of the last good spec; a restart would lose it");
                self.retry_at = Some(now + RETRY);
                Some(RETRY)
            }
        }
    }
}

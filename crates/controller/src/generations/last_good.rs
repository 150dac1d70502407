//! The revision of the last generation that took effect: a `ControllerRevision` for restarts.

use std::{sync::Arc, time::Duration};

use kube::Client;
use tokio::time::Instant;

use super::{
    accepted::AcceptedProfile,
    compile::{self, CompileState, Compiler},
    revision,
    target::Generations,
};
use crate::{api_request::ApiError, watch::store::ObservedProfile};

/// Time between two attempts to save the revision.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct SavedRevision {
    /// True if the revision was read, or is not needed.
    read: bool,
    /// The generation for which the revision was saved.
    saved: Option<i64>,
    /// When saving may be tried again.
    retry_at: Option<Instant>,
}

impl SavedRevision {
    /// True if the revision of a generation was saved.
    pub fn is_of(&self, generation: i64) -> bool {
        self.saved == Some(generation)
    }

    /// Another generation was restored: its revision must be saved again, so that it is the newest.
    pub fn invalidate(&mut self) {
        (self.saved, self.retry_at) = (None, None);
    }

    /// Loads the last good generation from the revision, unless it is known.
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
        generations: &mut Generations,
    ) -> Result<(), ApiError> {
        if self.read || generations.last_good().is_some() {
            return Ok(());
        }
        if let Some(saved) = revision::load(client, &observed.meta).await? {
            let written = observed
                .profile
                .as_ref()
                .ok()
                .filter(|written| observed.meta.generation == Some(saved.generation) && written.spec == saved.spec);
            generations.set_last_good(if written.is_some() {
                // Usually after a restart. The gate checks it once.
                self.saved = Some(saved.generation);
                compile::verdict(compiler, observed, compiled).await.ok()
            } else {
                compile::earlier(compiler, observed, saved.generation, saved.spec).await.map(Arc::new)
            });
        }
        self.read = true;
        Ok(())
    }

    /// Saves the revision of the generation in effect. A failure does not stop the lane: the result is the time of the
    /// next attempt.
    pub async fn save(&mut self, client: &Client, accepted: &AcceptedProfile) -> Option<Duration> {
        self.read = true;
        let now = Instant::now();
        if self.is_of(accepted.generation()) {
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
                self.retry_at = Some(now + RETRY_INTERVAL);
                Some(RETRY_INTERVAL)
            }
        }
    }
}

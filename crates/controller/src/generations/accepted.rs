//! A profile that passed compile and check, or why it did not.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{Diagnostic, ToolSecurityProfile, conditions::Reason};
use palisade_compiler::Compiled;
use palisade_gate::Checked;

use crate::{api_request::ApiError, message};

/// The longest message of the API server in a condition, in characters.
const MAX_MESSAGE_CHARS: usize = 3000;

/// A profile that may be applied.
#[derive(Debug)]
pub struct AcceptedProfile {
    pub profile: Arc<ToolSecurityProfile>,
    pub compiled: Checked<Compiled>,
}

impl AcceptedProfile {
    /// The generation of the spec.
    pub fn generation(&self) -> i64 {
        self.profile.metadata.generation.unwrap_or_default()
    }

    /// True if it is the same generation, and has a fast path if this one has.
    pub fn is_same(&self, other: &Self) -> bool {
        self.generation() == other.generation()
            && palisade_compiler::fast_path(&self.profile) == palisade_compiler::fast_path(&other.profile)
    }

    /// How long until the next exception ends.
    pub fn exception_ends_in(&self, now: Timestamp) -> Option<Duration> {
        let end = self.compiled.exceptions.next_end(now)?;
        // A second later, so that the exception has certainly ended.
        Some(Duration::try_from(end.duration_since(now)).unwrap_or_default() + Duration::from_secs(1))
    }
}

/// Why a profile is not accepted.
#[derive(Debug, PartialEq)]
pub struct Rejection {
    /// `InvalidSpec`, `CheckFailed`, `RefusedByApiServer` or `InternalError`.
    pub reason: Reason,
    /// The first diagnostics.
    pub message: String,
}

impl Rejection {
    /// A rejection by the compiler or the gate.
    pub fn new(reason: Reason, diagnostics: &[Diagnostic]) -> Self {
        Self { reason, message: message::diagnostics(diagnostics) }
    }

    /// The compiler or the gate failed without a verdict. The profile is not applied.
    pub fn internal(why: &str) -> Self {
        let message = format!(
            "the profile could not be compiled: {why}; revert the last change of the profile and report this bug; \
             the controller retries every minute"
        );
        Self { reason: Reason::InternalError, message: message.chars().take(MAX_MESSAGE_CHARS).collect() }
    }

    /// A rejection by the API server, which does not accept `what`.
    pub fn by_api_server(what: &str, error: &ApiError) -> Self {
        let message = format!("the API server rejects {what}: {error}");
        Self { reason: Reason::RefusedByApiServer, message: message.chars().take(MAX_MESSAGE_CHARS).collect() }
    }
}

/// The verdict on the last generation of a profile.
pub type Verdict = Result<Arc<AcceptedProfile>, Arc<Rejection>>;

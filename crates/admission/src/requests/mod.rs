//! The admission of requests by kube-apiserver: its admission plugins, including ValidatingAdmissionPolicy at request
//! time (`k8s.io/apiserver/pkg/admission/plugin/policy`).
//!
//! A request that cannot be evaluated offline gets [`Outcome::NoVerdict`] with the reason.

mod admission_review;
mod authorizer;
mod chosen;
mod cluster;
mod compiled_policy;
mod convert;
mod dispatch;
mod expression;
mod inspect;
mod matching;
mod mutating;
mod namespace;
mod owners;
mod params;
mod plugins;
mod policy;
mod refusal;
mod request;
mod review;
mod send;
mod standards;
mod validate;
mod warnings;
mod webhook;

pub use authorizer::{PartialAuthorizer, Privileged};
pub use chosen::Plugins;
pub use cluster::{Cluster, Webhook, WebhookAnswer};
pub use compiled_policy::{CompiledPolicy, Objects, PolicyEvaluation};
pub use inspect::Inspected;
pub use matching::Trace;
pub use mutating::{Misfit, MisfitCause, misfits};
pub use namespace::completed as completed_namespace;
pub use plugins::{ALL as PLUGINS, Plugin, UnknownPlugin};
pub use request::{Operation, Request, ResourceId, User};
pub use review::{Denial, Evaluation, Mutated, Outcome, PolicyKind, Review};
pub use standards::{Level, PodSecurity, Violation};
pub use validate::{BUDGET, MATCH_CONDITIONS_BUDGET, MAX_MESSAGE};

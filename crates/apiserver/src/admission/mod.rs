//! What kube-apiserver does with a request: its admission plugins, ValidatingAdmissionPolicy at request time among them
//! (`k8s.io/apiserver/pkg/admission/plugin/policy`).
//!
//! A request that cannot be judged offline gets [`Outcome::NoVerdict`] with the reason.

mod admission_review;
mod alone;
mod authorizer;
mod cluster;
mod convert;
mod dispatch;
mod expression;
mod inspect;
mod matching;
mod mutating;
mod namespace;
mod params;
mod plugins;
mod policy;
mod request;
mod review;
mod send;
mod validate;
mod warnings;
mod webhook;

pub use alone::{Objects, PolicyAlone, Said};
pub use authorizer::{Answers, Privileged};
pub use cluster::Cluster;
pub use inspect::{Inspected, Trace};
pub use plugins::{ALL as PLUGINS, Level, Plugin, Plugins, PodSecurity, UnknownPlugin, Violation};
pub use request::{Operation, Request, ResourceId, User};
pub use review::{Denial, Evaluation, Mutated, Outcome, PolicyKind, Review};
pub use validate::{BUDGET, MATCH_CONDITIONS_BUDGET, MAX_MESSAGE};
pub use webhook::{Webhook, WebhookAnswer};

pub(crate) use authorizer::Asked;

//! Names, labels, annotations and field managers. Everything that another component could rely on is here.

use crate::Stage;

/// The API group.
pub const GROUP: &str = "toolsecurity.dev";
/// The API version of all kinds.
pub const API_VERSION: &str = "toolsecurity.dev/v1alpha1";

/// Label on every object that Palisade creates: `palisade`.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY: &str = "palisade";
/// Label on every object that Palisade creates for a profile: the profile's name. On probes in [`PROBE_NAMESPACE`]:
/// [`probe_subject`].
pub const PROFILE_LABEL: &str = "toolsecurity.dev/profile";
/// Annotation on generated policies: the profile's generation they were compiled from.
pub const GENERATION_ANNOTATION: &str = "toolsecurity.dev/profile-generation";
/// Annotation on generated policies: the parameters they read, as `name:Type` in order, separated by commas.
pub const PARAMETERS_ANNOTATION: &str = "toolsecurity.dev/parameters";
/// Annotation on a profile: `Off` compiles it without its fast path, `On` is the default.
pub const FAST_PATH_ANNOTATION: &str = "toolsecurity.dev/fast-path";
/// Finalizer on profiles: generated objects are removed in an order that never denies.
pub const FINALIZER: &str = "toolsecurity.dev/cleanup";

/// Where the operator runs, and the only namespace besides the system's that no profile can select.
pub const OPERATOR_NAMESPACE: &str = "palisade-system";
/// The namespace in which the controller probes API servers by dry runs.
pub const PROBE_NAMESPACE: &str = "palisade-probe";
/// Annotation on a pod in [`PROBE_NAMESPACE`], where only the controller may create any: mutate it as elsewhere, and
/// let the webhook answer with a warning.
pub const PROBE_MUTATION_ANNOTATION: &str = "toolsecurity.dev/probe-mutation";
/// Namespaces that no profile selects, whatever its selector: a mistake must not stop the control plane.
pub const PROTECTED_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", OPERATOR_NAMESPACE];

/// The controller's name in events and as the prefix of field managers.
pub const CONTROLLER: &str = "palisade-controller";

/// How the labels of namespaces begin that say at which stage of a profile they are ([`stage_label`]).
pub const STAGE_LABELS: &str = "stage.toolsecurity.dev/";

/// Field managers of server-side apply, one for each concern.
pub mod field_manager {
    /// For `ToolSecurityParams`.
    pub const PARAMS: &str = "palisade-controller/params";
    /// For policies and bindings.
    pub const POLICY: &str = "palisade-controller/policy";
    /// For the status of profiles.
    pub const STATUS: &str = "palisade-controller/status";
    /// For the finalizer of profiles.
    pub const FINALIZER: &str = "palisade-controller/finalizer";
    /// For the labels of the probe namespace.
    pub const PROBE: &str = "palisade-controller/probe";
    /// For the labels of the installation on the probe namespace that get their values back after a probe.
    pub const INSTALLED: &str = "palisade-controller/installed";
    /// For the stages of namespaces that a rollout promotes.
    pub const ROLLOUT: &str = "palisade-controller/rollout";
    /// For the state of exceptions.
    pub const EXCEPTION: &str = "palisade-controller/exception";
    /// For what the background scan found.
    pub const REPORT: &str = "palisade-controller/report";
    /// For the last good revision of a profile.
    pub const REVISION: &str = "palisade-controller/revision";
}

/// The kind of object that a policy judges. A profile has at most one policy for each shape. A policy has one binding,
/// or two if it reads parameters ([`updates`]), and as many for each stage if namespaces have stages of their own
/// ([`staged`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Pods.
    Pods,
    /// Workloads: Deployments, Jobs and the like.
    Workloads,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Pods, Self::Workloads];
}

/// What one of the validating policies of a profile does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It judges objects of a shape.
    Judge(Shape),
    /// It guards what the profile reads from namespaces. It has one binding.
    Guard,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Judge(Shape::Pods), Self::Judge(Shape::Workloads), Self::Guard];
}

impl From<Shape> for Part {
    fn from(shape: Shape) -> Self {
        Self::Judge(shape)
    }
}

/// The verb on a profile that lets somebody change what the profile reads from namespaces, where it guards that.
pub const ASSIGN: &str = "assign";
/// The plural of profiles, as RBAC names them.
pub const PROFILES: &str = "toolsecurityprofiles";

/// The name of a profile's policy for a part, and of its binding.
pub fn policy(profile: &str, part: impl Into<Part>) -> String {
    match part.into() {
        Part::Judge(Shape::Pods) => format!("palisade-{profile}-pods"),
        Part::Judge(Shape::Workloads) => format!("palisade-{profile}-workloads"),
        Part::Guard => format!("palisade-{profile}-guard"),
    }
}

/// The name of the second binding of a profile with parameters: for updates that can remove a finalizer, which must
/// pass after the parameters are gone.
pub fn updates(profile: &str, shape: Shape) -> String {
    format!("{}-updates", policy(profile, shape))
}

/// The name of the binding that does the same as `binding` in the namespaces with the label of a stage.
pub fn staged(binding: &str, stage: Stage) -> String {
    format!("{binding}-{}", stage.to_string().to_lowercase())
}

/// The names of all bindings that a profile may have for a part.
pub fn bindings(profile: &str, part: impl Into<Part>) -> impl Iterator<Item = String> {
    let part = part.into();
    let with_stages = |binding: String| {
        let staged = Stage::ALL.map(|stage| staged(&binding, stage));
        [binding].into_iter().chain(staged)
    };
    let unlabelled = match part {
        Part::Judge(shape) => vec![policy(profile, shape), updates(profile, shape)],
        Part::Guard => vec![],
    };
    // No stage holds for the guard.
    let guard = (part == Part::Guard).then(|| policy(profile, part));
    unlabelled.into_iter().flat_map(with_stages).chain(guard)
}

/// The label of a namespace that says at which stage of a profile it is.
pub fn stage_label(profile: &str) -> String {
    format!("{STAGE_LABELS}{profile}")
}

/// The annotation of a namespace that says why the rollout of a profile does not take it to a stricter stage.
pub fn rollout_annotation(profile: &str) -> String {
    format!("rollout.{GROUP}/{profile}")
}

/// The name of a profile's MutatingAdmissionPolicy and its binding.
pub fn mutation(profile: &str) -> String {
    format!("palisade-{profile}-mutation")
}

/// The webhook's warning about a pod with [`PROBE_MUTATION_ANNOTATION`] to which it had nothing to add.
pub fn probe_complete_warning(profile: &str) -> String {
    format!("palisade-webhook has nothing to change for ToolSecurityProfile {profile}.")
}

/// The [`PROFILE_LABEL`] of an object in [`PROBE_NAMESPACE`]: only the policies of this profile, compiled from this
/// generation, judge it. So the answer of an API server that still has the policies of an earlier generation does not
/// count for this generation.
pub fn probe_subject(profile: &str, generation: Option<i64>) -> String {
    generation.map_or_else(|| profile.to_owned(), |generation| format!("{profile}.{generation}"))
}

/// The name of a profile's `ToolSecurityParams`, the same in each namespace.
pub fn params(profile: &str) -> String {
    profile.to_owned()
}

/// The name of the `ControllerRevision` with the spec of a generation that was put in force. The part before the last
/// dot is the profile's name, so no two profiles share one; and no such name begins like those of earlier versions of
/// Palisade.
pub fn revision(profile: &str, generation: i64) -> String {
    format!("palisade.{profile}.{generation}")
}

/// The webhook's name: of its Service, and of its registration, the `MutatingWebhookConfiguration`.
pub const WEBHOOK: &str = "palisade-webhook";
/// The `ConfigMap` in which the webhook says how API servers reach and believe it.
pub const WEBHOOK_CA: &str = "palisade-webhook-ca";

/// The name of a profile's entry in the registration of the webhook.
pub fn webhook_entry(profile: &str) -> String {
    format!("{profile}.mutate.toolsecurity.dev")
}

/// The profile of an entry in the registration, by the entry's name.
pub fn profile_of_webhook_entry(entry: &str) -> Option<&str> {
    entry.strip_suffix(".mutate.toolsecurity.dev")
}

/// The path at which API servers call the webhook for the pods of a profile.
pub fn webhook_path(profile: &str) -> String {
    format!("/mutate/{profile}")
}

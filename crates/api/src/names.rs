//! Names, labels, annotations and field managers. Everything that another component could rely on is here.

/// The API group.
pub const GROUP: &str = "toolsecurity.dev";
/// The API version of both kinds.
pub const API_VERSION: &str = "toolsecurity.dev/v1alpha1";

/// Label on all that Palisade makes: `palisade`.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY: &str = "palisade";
/// Label on all that Palisade makes for a profile: the profile's name. On what is asked about in [`PROBE_NAMESPACE`]:
/// [`probe_subject`].
pub const PROFILE_LABEL: &str = "toolsecurity.dev/profile";
/// Annotation on generated policies: the profile's generation they were compiled from.
pub const GENERATION_ANNOTATION: &str = "toolsecurity.dev/profile-generation";
/// Annotation on generated policies: the parameters they read, as `name:Type` in order, separated by commas.
pub const PARAMETERS_ANNOTATION: &str = "toolsecurity.dev/parameters";
/// Finalizer on profiles: generated objects are removed in an order that never denies.
pub const FINALIZER: &str = "toolsecurity.dev/cleanup";

/// Where the operator runs, and the only namespace besides the system's that no profile can select.
pub const OPERATOR_NAMESPACE: &str = "palisade-system";
/// The namespace in which the controller asks the API server about pods, as dry runs.
pub const PROBE_NAMESPACE: &str = "palisade-probe";
/// Annotation on a pod in [`PROBE_NAMESPACE`], where nobody but the controller may create any: it is to be changed as
/// elsewhere, and the webhook says that it was asked.
pub const PROBE_MUTATION_ANNOTATION: &str = "toolsecurity.dev/probe-mutation";
/// Namespaces that no profile selects, whatever its selector says: a mistake must not stop the control plane.
pub const PROTECTED_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", OPERATOR_NAMESPACE];

/// The controller's name in events and as the prefix of field managers.
pub const CONTROLLER: &str = "palisade-controller";

/// Field managers of server-side apply, one for each concern.
pub mod field_manager {
    /// Of `ToolSecurityParams`.
    pub const PARAMS: &str = "palisade-controller/params";
    /// Of policies and bindings.
    pub const POLICY: &str = "palisade-controller/policy";
    /// Of the status of profiles.
    pub const STATUS: &str = "palisade-controller/status";
    /// Of the finalizer of profiles.
    pub const FINALIZER: &str = "palisade-controller/finalizer";
    /// Of the labels of the probe namespace.
    pub const PROBE: &str = "palisade-controller/probe";
    /// Of the last good revision of a profile.
    pub const REVISION: &str = "palisade-controller/revision";
}

/// What a policy judges. A profile has one policy for each shape at most. It has one binding, or two where the policy
/// reads parameters: [`updates`].
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

/// The name of the policy that a profile has for a shape, and of its binding.
pub fn policy(profile: &str, shape: Shape) -> String {
    match shape {
        Shape::Pods => format!("palisade-{profile}-pods"),
        Shape::Workloads => format!("palisade-{profile}-workloads"),
    }
}

/// The name of the second binding that a profile with parameters has for a shape: for updates that can remove a
/// finalizer, which must pass where there are no parameters any more.
pub fn updates(profile: &str, shape: Shape) -> String {
    format!("{}-updates", policy(profile, shape))
}

/// The name of the MutatingAdmissionPolicy and the binding that a profile has where the API server mutates pods.
pub fn mutation(profile: &str) -> String {
    format!("palisade-{profile}-mutation")
}

/// What the webhook says about a pod with [`PROBE_MUTATION_ANNOTATION`] if something else has defaulted all of it.
pub fn probe_complete_warning(profile: &str) -> String {
    format!("palisade-webhook has nothing to change for ToolSecurityProfile {profile}.")
}

/// Which policies judge an object in [`PROBE_NAMESPACE`], as its [`PROFILE_LABEL`] says: those of the profile,
/// compiled from the generation. So no answer of an API server that still judges by the policies of an earlier
/// generation is taken for one about this generation.
pub fn probe_subject(profile: &str, generation: Option<i64>) -> String {
    generation.map_or_else(|| profile.to_owned(), |generation| format!("{profile}.{generation}"))
}

/// The name of a profile's `ToolSecurityParams`, the same in each namespace.
pub fn params(profile: &str) -> String {
    profile.to_owned()
}

/// The name of the `ControllerRevision` that holds the spec of a generation that was put in force. What is before the last
/// dot is of the profile, so that no two have the same; and none begins as the one did that a profile had before.
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

/// The profile of an entry with this name.
pub fn profile_of_webhook_entry(entry: &str) -> Option<&str> {
    entry.strip_suffix(".mutate.toolsecurity.dev")
}

/// The path at which the webhook is asked about the pods of a profile.
pub fn webhook_path(profile: &str) -> String {
    format!("/mutate/{profile}")
}

//! Names, labels, annotations and field managers that other components can rely on.

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
/// Annotation on generated policies: the generation of the profile from which they were compiled.
pub const GENERATION_ANNOTATION: &str = "toolsecurity.dev/profile-generation";
/// Annotation on generated policies: the parameters they read, as `name:Type` in order, separated by commas.
pub const PARAMETERS_ANNOTATION: &str = "toolsecurity.dev/parameters";
/// Annotation on a profile: `Off` compiles it without its fast path, `On` is the default.
pub const FAST_PATH_ANNOTATION: &str = "toolsecurity.dev/fast-path";
/// Label on the objects of `spec.generate`: the name of their template.
pub const TEMPLATE_LABEL: &str = "toolsecurity.dev/template";
/// Annotation on the objects of `spec.generate`: a digest of the object as the template gives it.
pub const DIGEST_ANNOTATION: &str = "toolsecurity.dev/template-digest";
/// Annotation on the objects of `spec.generate` that remain when their profile no longer generates them: `Orphan`.
pub const DELETION_POLICY_ANNOTATION: &str = "toolsecurity.dev/deletion-policy";
/// Finalizer on profiles: generated objects are removed in an order that never denies.
pub const FINALIZER: &str = "toolsecurity.dev/cleanup";

/// The namespace of the operator. Apart from the system namespaces, it is the only one that no profile can select.
pub const OPERATOR_NAMESPACE: &str = "palisade-system";
/// The namespace in which the controller probes API servers by dry runs.
pub const PROBE_NAMESPACE: &str = "palisade-probe";
/// Annotation on a pod in [`PROBE_NAMESPACE`], where only the controller may create pods: the pod is mutated as in
/// other namespaces, and the webhook answers with a warning.
pub const PROBE_MUTATION_ANNOTATION: &str = "toolsecurity.dev/probe-mutation";
/// Namespaces that no profile selects, independent of its selector: an error must not stop the control plane.
pub const PROTECTED_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", OPERATOR_NAMESPACE];

/// The controller's name in events and as the prefix of field managers.
pub const CONTROLLER: &str = "palisade-controller";

/// Prefix of the namespace labels with the stage for a profile ([`stage_label`]).
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
    /// For labels on the probe namespace that belong to the installation and are restored after a probe.
    pub const INSTALLED: &str = "palisade-controller/installed";
    /// For the stages of namespaces that a rollout promotes.
    pub const ROLLOUT: &str = "palisade-controller/rollout";
    /// For the state of exceptions.
    pub const EXCEPTION: &str = "palisade-controller/exception";
    /// For the objects of `spec.generate`.
    pub const GENERATE: &str = "palisade-controller/generate";
    /// For the results of the background scan.
    pub const REPORT: &str = "palisade-controller/report";
    /// For the last good revision of a profile.
    pub const REVISION: &str = "palisade-controller/revision";
}

/// The kind of object that a policy evaluates. A profile has at most two policies for each shape ([`Part`]). A policy
/// has one binding, or two if it reads parameters ([`updates`]), and the same number for each stage if namespaces have
/// separate stages ([`staged`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Pods.
    Pods,
    /// Workloads, for example Deployments and Jobs.
    Workloads,
    /// Other namespaced objects, for example Ingresses.
    Objects,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pods, Self::Workloads, Self::Objects];
    /// The shapes with the spec of a pod. They are evaluated by the same checks.
    pub const OF_PODS: [Self; 2] = [Self::Pods, Self::Workloads];
}

/// Purpose of a validating policy of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It evaluates objects of a shape.
    Judge(Shape),
    /// It evaluates objects of a shape by the checks with a separate stage. Its bindings apply to all namespaces.
    Checks(Shape),
    /// It guards the labels and annotations that the profile reads from namespaces. It has one binding.
    Guard,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Judge(Shape::Pods),
        Self::Judge(Shape::Workloads),
        Self::Checks(Shape::Pods),
        Self::Checks(Shape::Workloads),
        Self::Judge(Shape::Objects),
        Self::Checks(Shape::Objects),
        Self::Guard,
    ];

    /// The parts that evaluate objects of a shape.
    pub fn judging(shape: Shape) -> [Self; 2] {
        [Self::Judge(shape), Self::Checks(shape)]
    }

    /// The shape of the objects that it evaluates; `None` for the guard.
    pub fn shape(self) -> Option<Shape> {
        match self {
            Self::Judge(shape) | Self::Checks(shape) => Some(shape),
            Self::Guard => None,
        }
    }
}

impl From<Shape> for Part {
    fn from(shape: Shape) -> Self {
        Self::Judge(shape)
    }
}

/// The verb on a profile that permits changes of the labels and annotations that its guard protects.
pub const ASSIGN: &str = "assign";
/// The plural of profiles, as in RBAC rules.
pub const PROFILES: &str = "toolsecurityprofiles";

/// The name of a profile's policy for a part, and of its binding.
pub fn policy(profile: &str, part: impl Into<Part>) -> String {
    match part.into() {
        Part::Judge(Shape::Pods) => format!("palisade-{profile}-pods"),
        Part::Judge(Shape::Workloads) => format!("palisade-{profile}-workloads"),
        Part::Judge(Shape::Objects) => format!("palisade-{profile}-objects"),
        Part::Checks(shape) => format!("{}-checks", policy(profile, shape)),
        Part::Guard => format!("palisade-{profile}-guard"),
    }
}

/// The name of the second binding of a profile with parameters. It is for updates that can remove a finalizer, which
/// must be admitted even after the parameters are deleted.
pub fn updates(profile: &str, part: impl Into<Part>) -> String {
    format!("{}-updates", policy(profile, part))
}

/// The name of the binding of a policy for objects by which updates are evaluated without parameters: by the checks that
/// are the same in all namespaces.
pub fn unparameterized(profile: &str, part: impl Into<Part>) -> String {
    format!("{}-unparameterized", policy(profile, part))
}

/// The profile of an evaluating policy, by the name of the policy.
pub fn profile_of_policy(policy: &str) -> Option<&str> {
    let rest = policy.strip_prefix("palisade-")?;
    let shape = rest.strip_suffix("-checks").unwrap_or(rest);
    ["-pods", "-workloads", "-objects"].into_iter().find_map(|suffix| shape.strip_suffix(suffix))
}

/// The name of the variant of `binding` for namespaces with the label of a stage.
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
    // The stage of a namespace does not hold for the others.
    let mut all = vec![policy(profile, part)];
    if part.shape().is_some() {
        all.push(updates(profile, part));
    }
    if part.shape() == Some(Shape::Objects) {
        all.push(unparameterized(profile, part));
    }
    let (by_stage, everywhere) = match part {
        Part::Judge(_) => (all, vec![]),
        Part::Checks(_) | Part::Guard => (vec![], all),
    };
    by_stage.into_iter().flat_map(with_stages).chain(everywhere)
}

/// The namespace label with its stage for a profile.
pub fn stage_label(profile: &str) -> String {
    format!("{STAGE_LABELS}{profile}")
}

/// The namespace annotation with the reason why the rollout of a profile does not promote it.
pub fn rollout_annotation(profile: &str) -> String {
    format!("rollout.{GROUP}/{profile}")
}

/// The name of a profile's MutatingAdmissionPolicy and its binding.
pub fn mutation(profile: &str) -> String {
    format!("palisade-{profile}-mutation")
}

/// The warning of the webhook for a pod with [`PROBE_MUTATION_ANNOTATION`] that needs no change.
pub fn probe_complete_warning(profile: &str) -> String {
    format!("palisade-webhook has nothing to change for ToolSecurityProfile {profile}.")
}

/// The [`PROFILE_LABEL`] of an object in [`PROBE_NAMESPACE`]: only this part of this profile, compiled from this
/// generation, evaluates the object. So the probe ignores API servers that still have the policies of an earlier
/// generation, and the answers of other parts.
pub fn probe_subject(profile: &str, generation: Option<i64>, part: impl Into<Part>) -> String {
    let subject = generation.map_or_else(|| profile.to_owned(), |generation| format!("{profile}.{generation}"));
    // Short, because the value of a label has 63 characters.
    match part.into() {
        Part::Judge(Shape::Pods | Shape::Workloads) | Part::Guard => subject,
        Part::Checks(Shape::Pods | Shape::Workloads) => format!("{subject}.c"),
        // The probes of policies for objects are pod templates, as those for workloads.
        Part::Judge(Shape::Objects) => format!("{subject}.o"),
        Part::Checks(Shape::Objects) => format!("{subject}.oc"),
    }
}

/// The name of a profile's `ToolSecurityParams`, the same in each namespace.
pub fn params(profile: &str) -> String {
    profile.to_owned()
}

/// The name of the `ControllerRevision` with the spec of a generation that took effect. The part before the last dot is
/// the profile's name, so names are unique. They never have the prefix of names of earlier versions of Palisade.
pub fn revision(profile: &str, generation: i64) -> String {
    format!("palisade.{profile}.{generation}")
}

/// The webhook's name: of its Service, and of its registration, the `MutatingWebhookConfiguration`.
pub const WEBHOOK: &str = "palisade-webhook";
/// The `ConfigMap` in which the webhook publishes its address and its certificate authorities.
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

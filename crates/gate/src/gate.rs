//! The offline check: the only way to a [`Checked`].

use std::{collections::BTreeSet, sync::LazyLock};

use palisade_admission::objects::{RequestContext, Submission, receive};
use palisade_api::{
    Diagnostic, Origin, ToolSecurityParamsSpec, catalogue,
    names::{self, Part, Shape},
};
use palisade_cel::Minor;
use palisade_checks::fixture::Fixture;
use palisade_compiler::{Compiled, Custom, PolicyWithBindings, Probe};
use palisade_kube_json::{
    json::Change as _,
    pod,
    workload::{WORKLOADS, Workload},
};
use serde_json::{Value as Json, json};

use crate::{
    Checked, Decision, Operation, PORTABLE, Rejected, ValidationRequest, Validator, custom, defaults, generated, guard,
    mutating, objects,
    place::{POLICY, located, part_of},
    types,
};

/// The pods of all fixtures of the catalogue, each once: many fixtures share a pod and differ in their parameters.
static PODS: LazyLock<Vec<Json>> = LazyLock::new(|| {
    let mut seen = BTreeSet::new();
    catalogue::ALL
        .iter()
        .flat_map(|check| serde_saphyr::from_str::<Vec<Fixture>>(check.fixtures).unwrap_or_default())
        .map(|fixture| fixture.pod())
        .filter(|pod| seen.insert(pod.to_string()))
        .collect()
});

/// A namespace like that of any tenant.
const TENANT: &str = "tenant";

/// Checks a compiled profile for all clusters that it is for: from its `minimumKubeVersion` on, or [`PORTABLE`].
///
/// # Errors
/// The first kind of error that it finds: expressions that do not parse or use unknown names; expressions that fail
/// on a pod; pods that get the wrong verdict.
pub fn check(compiled: Compiled) -> Result<Checked<Compiled>, Rejected> {
    let cluster = compiled.minimum.unwrap_or(PORTABLE);
    check_for(compiled, cluster)
}

/// Checks a compiled profile for a cluster, and for all clusters that it is for. A profile without `minimumKubeVersion`
/// is for clusters from [`PORTABLE`] on, and for this one.
///
/// # Errors
/// As [`check`], a cluster that is too old for the profile, and settings whose field an older API server removes from
/// pods.
pub fn check_for(mut compiled: Compiled, cluster: Minor) -> Result<Checked<Compiled>, Rejected> {
    if let Some(minimum) = compiled.minimum.filter(|minimum| cluster < *minimum) {
        let help = "upgrade the cluster, or lower the version";
        let message = format!("is {minimum}, and the version of the cluster is {cluster}");
        return Err(Rejected { diagnostics: vec![Diagnostic::new("spec.minimumKubeVersion", message).help(help)] });
    }
    let oldest = cluster.min(compiled.minimum.unwrap_or(PORTABLE));
    let mut diagnostics = diagnose(&compiled, oldest);
    // The fast path is derived: a mistake in it is none of the profile's, which is enforced without it.
    let in_fast_path = |Diagnostic { location, .. }: &Diagnostic| {
        part_of(location).is_some() && location.path.after("matchConditions").is_some()
    };
    if diagnostics.iter().any(in_fast_path) {
        compiled.bundle.remove_fast_path();
        diagnostics = diagnose(&compiled, oldest);
    }
    if diagnostics.is_empty() {
        return Ok(Checked(compiled));
    }
    for diagnostic in &mut diagnostics {
        custom::relocate(&compiled, diagnostic);
    }
    Err(Rejected { diagnostics })
}

fn diagnose(compiled: &Compiled, oldest: Minor) -> Vec<Diagnostic> {
    let bundle = &compiled.bundle;
    let typed = || {
        first(bundle.pairs().filter(|(part, _)| *part != Part::Guard), |part, pair| {
            located(part, types::mistakes(&pair.policy, oldest))
        })
    };
    let mut mistakes = objects::unknown_kinds(compiled);
    mistakes.extend(custom::diagnose(compiled, oldest, &PODS, typed));
    mistakes.extend(defaults::diagnose(compiled, oldest));
    // Mistakes with a place in the profile come first. Those in an admin's expression are reported above already.
    let (in_profile, generated): (Vec<_>, Vec<_>) = generated::diagnose(compiled, oldest)
        .into_iter()
        .partition(|diagnostic| diagnostic.location.origin == Origin::Written);
    mistakes.extend(in_profile);
    if !mistakes.is_empty() {
        return mistakes;
    }
    let mut diagnostics = first(bundle.pairs(), |part, pair| {
        let subjects: Vec<_> = match part.shape() {
            Some(Shape::Pods) => vec![Subject::Pod],
            Some(Shape::Workloads) => WORKLOADS.iter().map(Subject::Workload).collect(),
            Some(Shape::Objects) => return located(part, objects::diagnose(compiled, part, pair, oldest)),
            None => return Vec::new(),
        };
        located(part, diagnose_pair(compiled, oldest, part, pair, &subjects))
    });
    if diagnostics.is_empty() {
        diagnostics = guard::diagnose(compiled, oldest);
    }
    // The mistakes above say more about an expression than that an API server rejects it.
    if diagnostics.is_empty() {
        diagnostics = generated;
    }
    if diagnostics.is_empty()
        && let Ok(policies) = bundle
            .judging(Shape::Pods)
            .map(|(_, pair)| Validator::on(&pair.policy, oldest))
            .collect::<Result<Vec<_>, _>>()
    {
        let params = compiled.probes.params.as_ref().map(|spec| json!({"spec": spec}));
        let judges = policies.iter().map(|policy| BoundPolicy {
            policy,
            params: params.as_ref(),
            updated_without: false,
            subject: Subject::Pod,
            customs: &compiled.customs,
        });
        // Mutation is for the pods that comply with all checks, whatever their stages are.
        let judged = |pod: &Json| {
            judges.clone().map(|judge| judge.create(pod)).try_fold(Decision::Admit, |mut all, found| {
                match (&mut all, found?) {
                    (Decision::Deny { violations, .. }, Decision::Deny { violations: more, .. }) => {
                        violations.extend(more);
                    }
                    (_, Decision::Admit) => {}
                    (Decision::Admit, denied) => all = denied,
                }
                Ok(all)
            })
        };
        diagnostics = mutating::diagnose(compiled, &PODS, judged);
    }
    diagnostics
}

/// The errors in the first pair that has any.
fn first<'a>(
    mut pairs: impl Iterator<Item = (Part, &'a PolicyWithBindings)>,
    mistakes: impl Fn(Part, &'a PolicyWithBindings) -> Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    pairs.find_map(|(part, pair)| Some(mistakes(part, pair)).filter(|found| !found.is_empty())).unwrap_or_default()
}

fn diagnose_pair(
    compiled: &Compiled,
    oldest: Minor,
    part: Part,
    pair: &PolicyWithBindings,
    subjects: &[Subject],
) -> Vec<Diagnostic> {
    let policy = match Validator::on(&pair.policy, oldest) {
        Ok(policy) => policy,
        Err(diagnostics) => return diagnostics,
    };
    let mistakes = types::mistakes(&pair.policy, oldest);
    if !mistakes.is_empty() {
        return mistakes;
    }
    let params = compiled.probes.params.as_ref().map(|spec| json!({"spec": spec}));
    let updated_without = pair.updates.as_ref().is_some_and(|updates| updates.spec.param_ref.is_none());
    let judges = subjects.iter().map(|&subject| BoundPolicy {
        policy: &policy,
        params: params.as_ref(),
        updated_without,
        subject,
        customs: &compiled.customs,
    });
    // The policies for workloads have the checks of those for pods, so trying each of them on pods is enough.
    let on_pods = judges.clone().filter(|judge| matches!(judge.subject, Subject::Pod));
    let diagnostics: Vec<_> =
        on_pods.flat_map(|judge| PODS.iter().filter_map(move |pod| judge.evaluates(pod))).take(5).collect();
    if !diagnostics.is_empty() {
        return diagnostics;
    }
    let probes = &compiled.probes;
    let (complying, violating) = match part {
        Part::Checks(_) => (&probes.compliant_checks, &probes.violating_checks),
        Part::Judge(_) | Part::Guard => (&probes.compliant, &probes.violating),
    };
    let mut diagnostics = Vec::new();
    for judge in judges {
        diagnostics.extend(judge.complies(complying));
        if oldest < PORTABLE {
            diagnostics.extend(judge.complies_as_stored(complying, oldest));
        }
        if let Some(probe) = violating {
            diagnostics.extend(judge.violates(probe));
        }
        diagnostics.extend(judge.evaluates(&complying.pod));
        if pair.updates.is_some() {
            diagnostics.extend(judge.denies_a_problem());
        }
    }
    diagnostics
}

/// The form in which a policy gets a pod.
#[derive(Clone, Copy)]
enum Subject {
    Pod,
    Workload(&'static Workload),
}

#[derive(Clone, Copy)]
struct BoundPolicy<'a> {
    policy: &'a Validator,
    params: Option<&'a Json>,
    /// Whether updates are bound to no parameters.
    updated_without: bool,
    subject: Subject,
    /// The checks of the profile's own.
    customs: &'a [Custom],
}

impl BoundPolicy<'_> {
    fn evaluate(
        &self,
        namespace: &str,
        operation: Operation,
        subresource: &str,
        object: &Json,
        old: &Json,
    ) -> Result<Decision, Diagnostic> {
        let kind = match self.subject {
            Subject::Pod => "Pod",
            Subject::Workload(workload) => workload.kind,
        };
        let request = ValidationRequest::create(kind, object);
        let without = self.updated_without && operation == Operation::Update && subresource.is_empty();
        let params = self.params.filter(|_| !without);
        let request = ValidationRequest { namespace, operation, subresource, old_object: old, params, ..request };
        self.policy.evaluate(&request)
    }

    fn shown(&self, pod: &Json) -> Json {
        match self.subject {
            Subject::Pod => pod.clone(),
            Subject::Workload(workload) => workload.around("workload", pod),
        }
    }

    fn create(&self, pod: &Json) -> Result<Decision, Diagnostic> {
        self.evaluate(TENANT, Operation::Create, "", &self.shown(pod), &Json::Null)
    }

    /// Custom checks are not evaluated in the probe namespace: no pod is known to comply with them.
    fn create_probe(&self, probe: &Probe) -> Result<Decision, Diagnostic> {
        let mut object = self.shown(&probe.pod);
        for field in ["name", "labels"] {
            *object.at_mut(&["metadata", field]) = probe.pod["metadata"][field].clone();
        }
        self.evaluate(names::PROBE_NAMESPACE, Operation::Create, "", &object, &Json::Null)
    }

    /// Evaluates every expression on this pod, in every request that the policy can get for it.
    fn evaluates(&self, pod: &Json) -> Option<Diagnostic> {
        let mut older = pod.clone();
        *older.at_mut(&["spec", "activeDeadlineSeconds"]) = json!(1);
        let (object, older) = (self.shown(pod), self.shown(&older));
        let subresources: &[&str] = match self.subject {
            Subject::Pod => &["", "ephemeralcontainers", "resize"],
            Subject::Workload(_) => &[""],
        };
        let updates = subresources
            .iter()
            .map(|subresource| self.evaluate(TENANT, Operation::Update, subresource, &object, &older));
        if let Some(diagnostic) = updates.chain([self.create(pod)]).find_map(Result::err) {
            return Some(diagnostic);
        }
        // An update that changes nothing that a check reads passes, whatever the pod violates. No check keeps a finalizer
        // from being removed, and only a check of the profile's own reads labels.
        let mut finalized = object.clone();
        *finalized.at_mut(&["metadata", "finalizers"]) = json!(["example.com/a"]);
        let mut labelled = object.clone();
        *labelled.at_mut(&["metadata", "labels"]) = json!({"new": "label"});
        let updates = [("removes a finalizer", &object, &finalized), ("changes labels", &labelled, &object)];
        updates.into_iter().find_map(|(what, new, old)| match self.evaluate(TENANT, Operation::Update, "", new, old) {
            Ok(Decision::Admit) => None,
            Ok(Decision::Deny { violations, message, .. }) => {
                let own = |id: &str| self.customs.iter().any(|custom| custom.check.id == id);
                let by_labels =
                    new != &object && !violations.is_empty() && violations.iter().all(|one| own(&one.check));
                (!by_labels)
                    .then(|| Diagnostic::new(POLICY, format!("an update that only {what} is denied: {message}")))
            }
            Err(diagnostic) => Some(diagnostic),
        })
    }

    fn complies(&self, probe: &Probe) -> Vec<Diagnostic> {
        match self.create_probe(probe) {
            Ok(Decision::Admit) => vec![],
            Ok(Decision::Deny { message, .. }) => vec![
                Diagnostic::new("spec", format!("found no pod that complies; the closest one is denied: {message}"))
                    .help("two settings may contradict each other, or a list may allow nothing"),
            ],
            Err(diagnostic) => vec![diagnostic],
        }
    }

    /// The API server may remove a field before policies evaluate a pod. No pod complies if a setting requires the field.
    fn complies_as_stored(&self, probe: &Probe, minor: Minor) -> Option<Diagnostic> {
        let cluster = crate::cluster(minor);
        let resource = cluster.kinds().by_kind("v1", "Pod")?;
        let sent = Submission { resource, subresource: "", namespace: TENANT, object: &probe.pod, old: None };
        let pod = receive(cluster.kinds(), sent, &RequestContext::default()).ok()?.object;
        match self.create_probe(&Probe { pod, ..probe.clone() }) {
            Ok(Decision::Deny { message, .. }) => Some(
                Diagnostic::new(
                    "spec",
                    format!(
                        "every pod is denied, because Kubernetes {minor} removes a field that is required: {message}"
                    ),
                )
                .help("remove the setting, or upgrade the cluster"),
            ),
            // Errors are those of the pod that was sent.
            _ => None,
        }
    }

    fn violates(&self, probe: &Probe) -> Option<Diagnostic> {
        let check = probe.check.unwrap_or_default();
        match self.create_probe(probe) {
            Ok(Decision::Deny { message, .. }) if message.contains(&format!("[{check}]")) => None,
            Ok(decision) => {
                Some(Diagnostic::new(POLICY, format!("a pod that violates {check} is not denied for it: {decision:?}")))
            }
            Err(diagnostic) => Some(diagnostic),
        }
    }

    /// A namespace with a missing or malformed parameter denies every pod with the reason.
    fn denies_a_problem(&self) -> Option<Diagnostic> {
        let params = json!({"spec": ToolSecurityParamsSpec::denying("a problem")});
        let judge = BoundPolicy { params: Some(&params), ..*self };
        match judge.create(&pod::minimal("pod")) {
            Ok(Decision::Deny { message, .. }) if message.contains("a problem") => None,
            Ok(decision) => Some(Diagnostic::new(
                POLICY,
                format!("a namespace with a problem in its parameters does not deny pods for it: {decision:?}"),
            )),
            Err(diagnostic) => Some(diagnostic),
        }
    }
}

//! The answers of profiles to objects, as from an API server with these profiles: defaults, mutation, all
//! violations, and the smallest change that helps.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use palisade_admission::requests::{Operation, Outcome, Plugins, Review, User};
use palisade_api::{Settings, ToolSecurityParamsSpec, Values, catalogue, names::Shape, objects};
use palisade_cel::Minor;
use palisade_checks::Check;
use palisade_compiler::{ChangedBy, Mutation, VIOLATIONS, violation};
use palisade_kube_json::{
    json::set,
    workload::{WORKLOADS, Workload},
};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::{
    clusters::Clusters,
    namespaces::Tenant,
    object_kinds::ObjectKinds,
    offline,
    profiles::{self, Accepted},
    report::{Failure, Problem},
    smallest::{self, MinimalFix, PodValidator},
};

/// The check of denials without a check: by the API server's own validation, or by another plugin.
pub const REJECTED: &str = "rejected";

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// The profile; empty if the API server itself rejects the object.
    pub profile: String,
    /// The id of the check.
    pub check: String,
    /// The place, the found value and the allowed values.
    pub message: String,
    /// Whether the API server denies it at the stage of the namespace: the object, or the pods of its template.
    pub denied: bool,
}

/// Active profiles in namespaces.
pub struct ProfileEvaluator {
    /// API servers with the profiles.
    pub clusters: Clusters,
    /// By the name of a policy: its profile, and the path of its list of violations.
    policies: BTreeMap<String, (String, String)>,
    /// By the name of a namespace: the settings and values of each profile that selects it.
    demands: BTreeMap<String, Vec<Demand>>,
}

/// The requirements of a profile for the pods of a namespace.
pub struct Demand {
    /// The profile.
    pub profile: String,
    /// Its settings, with defaults for omitted ones.
    pub settings: Settings,
    /// The values of its parameters there.
    pub values: Values,
    /// The mutation of pods, if an engine in the cluster makes it.
    pub mutation: Option<Mutation>,
    /// The content of the parameter object there.
    pub params: Option<ToolSecurityParamsSpec>,
}

impl ProfileEvaluator {
    /// Activates the profiles, with the exceptions that have not ended at this time.
    ///
    /// # Errors
    /// The API server would reject an object.
    pub fn new(accepted: &[Accepted], tenants: &[Tenant], version: Minor, now: Timestamp) -> Result<Self, Failure> {
        let mut cluster = palisade_gate::cluster(version);
        offline::define(&mut cluster)?;
        for tenant in tenants {
            let mut object = palisade_gate::namespace(&tenant.name, &tenant.labels, &tenant.annotations);
            set(&mut object, &["apiVersion"], "v1");
            set(&mut object, &["kind"], "Namespace");
            cluster.apply(object).map_err(|refused| offline::refusal(&refused))?;
        }
        offline::enforce(&mut cluster, accepted, tenants, version, now)?;
        let none = Plugins::only(std::iter::empty::<&str>());
        let none = none.map_err(|error| Failure::CouldNotRun(vec![Problem::new(error.to_string())]))?;
        let (mut policies, mut demands) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for one @ Accepted { profile, checked } in accepted {
            let mutation = profiles::changed_by(one, version).filter(|(_, by)| *by != ChangedBy::Nobody);
            for (_, pair) in Shape::ALL.into_iter().flat_map(|shape| checked.bundle.judging(shape)) {
                let policy = &pair.policy;
                let variables = policy.spec.iter().flat_map(|spec| spec.variables.iter().flatten());
                let index = variables.into_iter().position(|variable| variable.name == VIOLATIONS);
                let path = format!("variables[{}].expression", index.unwrap_or_default());
                let name = policy.metadata.name.clone().unwrap_or_default();
                policies.insert(name, (checked.profile.clone(), path));
            }
            for tenant in tenants.iter().filter(|one| palisade_compiler::selects(&profile.spec, one)) {
                let requests = tenant.requests.iter().map(|(_, request)| request);
                let params = checked.params(tenant, requests, now).map(|params| params.spec);
                let values = params.as_ref().map(ToolSecurityParamsSpec::values).unwrap_or_default();
                demands.entry(tenant.name.clone()).or_default().push(Demand {
                    profile: checked.profile.clone(),
                    settings: profile.spec.effective_settings(),
                    values,
                    mutation: mutation.map(|(mutation, _)| mutation.clone()),
                    params,
                });
            }
        }
        let alone = cluster.clone().with_plugins(none);
        let clusters = Clusters::new(cluster, alone, ObjectKinds::of(accepted));
        Ok(Self { clusters, policies, demands })
    }

    /// Whether the profiles evaluate objects of a kind.
    pub fn evaluates(&self, api_version: &str, kind: &str) -> bool {
        is_judged(api_version, kind) || self.clusters.evaluate(api_version, kind)
    }

    /// Whether a profile selects a namespace.
    pub fn selects(&self, namespace: &str) -> bool {
        self.demands.contains_key(namespace)
    }

    /// The requirements of the profiles that select a namespace.
    pub fn demands(&self, namespace: &str) -> &[Demand] {
        self.demands.get(namespace).map(Vec::as_slice).unwrap_or_default()
    }

    /// The violations of a pod or workload that is created, and of the pods of its template.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    pub fn judge(&self, kind: Option<&Workload>, object: &Json) -> Result<Vec<Violation>, String> {
        let mut found = self.ask(object)?;
        // If the API server itself rejects a workload, its pods do not matter.
        let exists = found.iter().all(|one| one.check != REJECTED);
        if let Some(pod) = kind.filter(|_| exists).and_then(|kind| pod_of(kind, object)) {
            found.extend(self.ask(&pod)?);
        }
        Ok(distinct(found))
    }

    /// Those of the violations that the API server denies. If profiles are in Deny, the others are of checks with
    /// another stage.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    pub fn denials(&self, kind: Option<&Workload>, object: &Json) -> Result<Vec<Violation>, String> {
        let mut found = self.judge(kind, object)?;
        found.retain(|one| one.denied);
        Ok(found)
    }

    /// The smallest change of a pod or workload with which it has no violations, or fewer. None if no change is
    /// known to help.
    pub fn smallest(&self, kind: Option<&Workload>, object: &Json) -> Option<MinimalFix> {
        let pod = match kind {
            None if object["kind"] != "Pod" => return None,
            None => object.clone(),
            Some(kind) => object.pointer(kind.template)?.clone(),
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let one = One { judge: self, kind, object, demands: self.demands.get(namespace)?.as_slice() };
        let mut minimal_fix = smallest::minimal_fix(&pod, &one).ok()?;
        if minimal_fix.lines.is_empty() {
            return None;
        }
        let prefix = kind.map(|kind| kind.template).unwrap_or_default();
        for step in minimal_fix.patch.as_array_mut().into_iter().flatten() {
            for key in ["path", "from"] {
                if let Some(path) = step.get(key).and_then(Json::as_str).map(|path| format!("{prefix}{path}")) {
                    set(step, &[key], path);
                }
            }
        }
        let patch: json_patch::Patch = serde_json::from_value(minimal_fix.patch.clone()).ok()?;
        let mut changed = object.clone();
        json_patch::patch(&mut changed, &patch).ok()?;
        let left = self.judge(kind, &changed).ok()?;
        let before = self.judge(kind, object).ok()?;
        let is_better = left.iter().all(|one| minimal_fix.left.contains(&one.check)) && left.len() < before.len();
        is_better.then_some(minimal_fix)
    }

    /// The answer of the API server when an ordinary user creates an object.
    fn ask(&self, object: &Json) -> Result<Vec<Violation>, String> {
        let groups = vec!["system:authenticated".to_owned()];
        self.answer(object, User { name: "user".to_owned(), groups, ..User::default() })
    }

    /// The answer of the API server when this user creates an object: about the object alone, not about the pods of its
    /// template.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    pub fn answer(&self, object: &Json, user: User) -> Result<Vec<Violation>, String> {
        let clusters = self.clusters.with_kind_of(object)?;
        let mut request = clusters.all.request(Operation::Create, "", object, None)?;
        request.user = user;
        let mut review = clusters.all.admit(&request);
        if matches!(review.outcome, Outcome::NoVerdict(_)) {
            review = clusters.alone.admit(&request);
        }
        self.violations(&review)
    }

    /// Whether an update to this object violates no profile, regardless of the previous object: if it were created, it
    /// would have no violations, and nothing would mutate it first, because updates are not mutated.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    pub fn surely_passes(&self, object: &Json, user: User) -> Result<bool, String> {
        let clusters = self.clusters.with_kind_of(object)?;
        let mut request = clusters.alone.request(Operation::Create, "", object, None)?;
        request.user = user;
        let review = clusters.alone.admit(&request);
        Ok(self.violations(&review)?.is_empty() && review.mutated.is_none())
    }

    fn violations(&self, review: &Review) -> Result<Vec<Violation>, String> {
        let denials = match &review.outcome {
            Outcome::Allowed => &[][..],
            Outcome::Denied(denials) => denials,
            Outcome::NoVerdict(why) => return Err(why.clone()),
        };
        let denied: BTreeSet<_> = denials.iter().map(|denial| denial.policy.as_str()).collect();
        let mut found = Vec::new();
        for evaluation in &review.evaluations {
            let Some((profile, path)) = self.policies.get(&evaluation.policy) else { continue };
            if evaluation.path != *path {
                continue;
            }
            let list = evaluation.json();
            for text in list.as_array().into_iter().flatten().filter_map(Json::as_str) {
                let Some((check, message)) = violation(text) else { continue };
                found.push(Violation {
                    profile: profile.clone(),
                    check: check.to_owned(),
                    message: message.to_owned(),
                    denied: denied.contains(evaluation.policy.as_str()),
                });
            }
        }
        for denial in denials {
            let profile = self.policies.get(&denial.policy).map(|(profile, _)| profile.clone()).unwrap_or_default();
            if profile.is_empty() || !found.iter().any(|one| one.profile == profile) {
                let (check, message) = (REJECTED.to_owned(), denial.message.clone());
                found.push(Violation { profile, check, message, denied: true });
            }
        }
        Ok(distinct(found))
    }
}

/// Each violation once: a workload and its pods may have the same violation, and two policies may evaluate one check.
/// It is denied if one of them is denied.
fn distinct(mut found: Vec<Violation>) -> Vec<Violation> {
    found.sort_by(|a, b| {
        (&a.profile, &a.check, &a.message, b.denied).cmp(&(&b.profile, &b.check, &b.message, a.denied))
    });
    found.dedup_by(|later, kept| {
        (&later.profile, &later.check, &later.message) == (&kept.profile, &kept.check, &kept.message)
    });
    found
}

/// An object with a pod to change.
struct One<'a> {
    judge: &'a ProfileEvaluator,
    kind: Option<&'a Workload>,
    object: &'a Json,
    demands: &'a [Demand],
}

impl PodValidator for One<'_> {
    fn violated_checks(&self, pod: &Json) -> Result<BTreeSet<String>, String> {
        let mut object = self.object.clone();
        match self.kind.and_then(|kind| object.pointer_mut(kind.template)) {
            Some(template) => pod.clone_into(template),
            None => pod.clone_into(&mut object),
        }
        let found = self.judge.judge(self.kind, &object)?;
        if let Some(rejected) = found.iter().find(|one| one.check == REJECTED) {
            return Err(rejected.message.clone());
        }
        Ok(found.into_iter().map(|one| one.check).collect())
    }

    fn comply(&self, check: &Check, pod: &mut Json) {
        for Demand { settings, values, .. } in self.demands {
            (check.comply)(settings, values, pod);
        }
    }
}

/// The address of the pages of checks.
const PAGES: &str = "https://github.com/palisade-dev/palisade/blob/main/docs/checks";

/// The page of a check of the catalogue.
pub fn page_of(check: &str) -> Option<String> {
    catalogue::ALL.iter().any(|one| one.id == check).then(|| format!("{PAGES}/{check}.md"))
}

/// The title of a check of pods or of other objects.
pub fn title_of(check: &str) -> Option<&'static str> {
    let of_pods = catalogue::ALL.iter().map(|one| (one.id, one.title));
    of_pods
        .chain(objects::ALL.iter().map(|one| (one.id, one.title)))
        .find(|(id, _)| *id == check)
        .map(|(_, title)| title)
}

/// Whether an object is a pod.
pub fn is_pod(api_version: &str, kind: &str) -> bool {
    (api_version, kind) == ("v1", "Pod")
}

/// Whether it is the kind of pods or workloads.
fn is_judged(api_version: &str, kind: &str) -> bool {
    is_pod(api_version, kind) || workload(api_version, kind).is_some()
}

/// The reason why an object has no verdict although profiles evaluate its kind: no API server serves its version.
pub fn no_longer_served(api_version: &str, kind: &str) -> Option<String> {
    const FORMER: [&str; 5] = ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2", "batch/v1beta1", "batch/v2alpha1"];
    let now = WORKLOADS.iter().find(|one| one.kind == kind).filter(|_| FORMER.contains(&api_version))?;
    Some(format!("no API server serves {kind} in {api_version}: use apiVersion: {}", now.api_version))
}

/// The kind of a workload, if an object is one.
pub fn workload(api_version: &str, kind: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|one| (one.api_version, one.kind) == (api_version, kind))
}

/// A pod that a workload creates, with the owner that exceptions refer to. A PodTemplate creates none.
pub fn pod_of(kind: &Workload, object: &Json) -> Option<Json> {
    if kind.kind == "PodTemplate" {
        return None;
    }
    let template = object.pointer(kind.template).filter(|template| template.is_object())?;
    let text = |key: &str| object["metadata"][key].as_str().filter(|text| !text.is_empty());
    let name = text("name").or(text("generateName")).unwrap_or("workload");
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": template["spec"]});
    for key in ["labels", "annotations"] {
        if template["metadata"][key].is_object() {
            set(&mut pod, &["metadata", key], template["metadata"][key].clone());
        }
    }
    let (owner, owner_name) = match kind.kind {
        "Deployment" => {
            set(&mut pod, &["metadata", "labels", "pod-template-hash"], "5d4f8c7b9c");
            ("ReplicaSet", format!("{name}-5d4f8c7b9c"))
        }
        "CronJob" => ("Job", format!("{name}-29000000")),
        other => (other, name.to_owned()),
    };
    let api_version = if kind.kind == "CronJob" { "batch/v1" } else { kind.api_version };
    let reference = json!({
        "apiVersion": api_version, "kind": owner, "name": owner_name, "uid": "00000000-0000-4000-8000-000000000000",
        "controller": true, "blockOwnerDeletion": true,
    });
    set(&mut pod, &["metadata", "ownerReferences"], json!([reference]));
    set(&mut pod, &["metadata", "name"], format!("{owner_name}-x7x7x").to_lowercase());
    set(&mut pod, &["metadata", "namespace"], object["metadata"]["namespace"].clone());
    Some(pod)
}

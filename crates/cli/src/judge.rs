//! What profiles say of pods and workloads, as an API server would that has them: defaults, mutation, all violations,
//! and the smallest change that helps.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{Settings, Values, catalogue, names::Shape};
use palisade_apiserver::admission::{Cluster, Operation, Outcome, Plugins, Review, User};
use palisade_cel::Minor;
use palisade_checks::Check;
use palisade_compiler::VIOLATIONS;
use palisade_objects::{
    json::set,
    workload::{WORKLOADS, Workload},
};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::{
    namespaces::Tenant,
    offline,
    profiles::Accepted,
    report::{Failure, Problem},
    smallest::{self, Least, Refuses},
};

/// The check of what is denied by something else than a check: the API server's own validation, or another plugin.
pub const REJECTED: &str = "rejected";

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Violation {
    /// The profile; empty if the API server itself rejects the object.
    pub profile: String,
    /// The id of the check.
    pub check: String,
    /// The place, the value found and the allowed values.
    pub message: String,
    /// Whether the API server denies it at the stage that the namespace is at: the object, or the pods that it makes.
    pub denied: bool,
}

/// Profiles in force in namespaces.
pub struct Judge {
    cluster: Cluster,
    /// The same without admission plugins, which may need objects that are in no file.
    alone: Cluster,
    /// By the name of a policy: its profile, and the path of its list of violations.
    policies: BTreeMap<String, (String, String)>,
    /// By the name of a namespace: the settings and values of each profile that selects it.
    demands: BTreeMap<String, Vec<Demand>>,
}

/// The demands of a profile on the pods of a namespace.
pub struct Demand {
    /// The profile.
    pub profile: String,
    /// Its settings, with what absent ones mean.
    pub settings: Settings,
    /// The values of its parameters there.
    pub values: Values,
}

impl Judge {
    /// Puts the profiles in force, with the exceptions that have not ended by then.
    ///
    /// # Errors
    /// An object that no API server would have.
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
        for Accepted { profile, checked } in accepted {
            for policy in Shape::ALL.into_iter().filter_map(|shape| checked.bundle.pair(shape)).map(|pair| &pair.policy)
            {
                let variables = policy.spec.iter().flat_map(|spec| spec.variables.iter().flatten());
                let index = variables.into_iter().position(|variable| variable.name == VIOLATIONS);
                let path = format!("variables[{}].expression", index.unwrap_or_default());
                let name = policy.metadata.name.clone().unwrap_or_default();
                policies.insert(name, (checked.profile.clone(), path));
            }
            for tenant in tenants.iter().filter(|one| palisade_compiler::selects(&profile.spec, one)) {
                let requests = tenant.requests.iter().map(|(_, request)| request);
                let params = checked.params(tenant, requests, now);
                let values = params.map(|params| params.spec.values()).unwrap_or_default();
                demands.entry(tenant.name.clone()).or_default().push(Demand {
                    profile: checked.profile.clone(),
                    settings: profile.spec.effective_settings(),
                    values,
                });
            }
        }
        let alone = cluster.clone().with_plugins(none);
        Ok(Self { cluster, alone, policies, demands })
    }

    /// Whether a profile selects a namespace.
    pub fn selects(&self, namespace: &str) -> bool {
        self.demands.contains_key(namespace)
    }

    /// What the profiles that select a namespace ask of its pods.
    pub fn demands(&self, namespace: &str) -> &[Demand] {
        self.demands.get(namespace).map(Vec::as_slice).unwrap_or_default()
    }

    /// The violations of a pod or workload, which is to be created, and of the pods that it makes.
    ///
    /// # Errors
    /// Why there is no verdict.
    pub fn judge(&self, kind: Option<&Workload>, object: &Json) -> Result<Vec<Violation>, String> {
        let mut found = self.ask(object)?;
        // Pods of what the API server itself rejects are nobody's concern.
        let exists = found.iter().all(|one| one.check != REJECTED);
        if let Some(pod) = kind.filter(|_| exists).and_then(|kind| pod_of(kind, object)) {
            found.extend(self.ask(&pod)?);
        }
        // One violation of both is one; it counts as denied if either is.
        found.sort_by(|a, b| {
            (&a.profile, &a.check, &a.message, b.denied).cmp(&(&b.profile, &b.check, &b.message, a.denied))
        });
        found.dedup_by(|later, kept| {
            (&later.profile, &later.check, &later.message) == (&kept.profile, &kept.check, &kept.message)
        });
        Ok(found)
    }

    /// The smallest change of a pod or workload with which it has no violations, or fewer. None if there is none that is
    /// known to help.
    pub fn smallest(&self, kind: Option<&Workload>, object: &Json) -> Option<Least> {
        let pod = match kind {
            None => object.clone(),
            Some(kind) => object.pointer(kind.template)?.clone(),
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let one = One { judge: self, kind, object, demands: self.demands.get(namespace)?.as_slice() };
        let mut least = smallest::least(&pod, &one).ok()?;
        if least.lines.is_empty() {
            return None;
        }
        let prefix = kind.map(|kind| kind.template).unwrap_or_default();
        for step in least.patch.as_array_mut().into_iter().flatten() {
            for key in ["path", "from"] {
                if let Some(path) = step.get(key).and_then(Json::as_str).map(|path| format!("{prefix}{path}")) {
                    set(step, &[key], path);
                }
            }
        }
        let patch: json_patch::Patch = serde_json::from_value(least.patch.clone()).ok()?;
        let mut changed = object.clone();
        json_patch::patch(&mut changed, &patch).ok()?;
        let left = self.judge(kind, &changed).ok()?;
        let before = self.judge(kind, object).ok()?;
        let is_better = left.iter().all(|one| least.left.contains(&one.check)) && left.len() < before.len();
        is_better.then_some(least)
    }

    /// What the API server answers to the creation of an object by somebody.
    fn ask(&self, object: &Json) -> Result<Vec<Violation>, String> {
        let groups = vec!["system:authenticated".to_owned()];
        self.answer(object, User { name: "somebody".to_owned(), groups, ..User::default() })
    }

    /// What the API server answers to the creation of an object by this user: of the object alone, and not of the pods that
    /// it makes.
    ///
    /// # Errors
    /// Why there is no verdict.
    pub fn answer(&self, object: &Json, user: User) -> Result<Vec<Violation>, String> {
        let mut request = self.cluster.request(Operation::Create, "", object, None)?;
        request.user = user;
        let mut review = self.cluster.admit(&request);
        if matches!(review.outcome, Outcome::NoVerdict(_)) {
            review = self.alone.admit(&request);
        }
        self.violations(&review)
    }

    /// Whether an update to this object certainly violates no profile, whatever the object was before: created like this, it
    /// would violate none, and nothing would be changed in it first, as nothing is in an update.
    ///
    /// # Errors
    /// Why there is no verdict.
    pub fn surely_passes(&self, object: &Json, user: User) -> Result<bool, String> {
        let mut request = self.alone.request(Operation::Create, "", object, None)?;
        request.user = user;
        let review = self.alone.admit(&request);
        Ok(self.violations(&review)?.is_empty() && review.mutated.is_none())
    }

    fn violations(&self, review: &Review) -> Result<Vec<Violation>, String> {
        let denials = match &review.outcome {
            Outcome::Allowed => &[][..],
            Outcome::Denied(denials) => denials,
            Outcome::NoVerdict(why) => return Err(why.clone()),
        };
        let denied: BTreeSet<_> = denials.iter().map(|denial| denial.policy.as_str()).collect();
        let mut found = BTreeSet::new();
        for evaluation in &review.evaluations {
            let Some((profile, path)) = self.policies.get(&evaluation.policy) else { continue };
            if evaluation.path != *path {
                continue;
            }
            let list = evaluation.json();
            for text in list.as_array().into_iter().flatten().filter_map(Json::as_str) {
                let Some((check, message)) = text.strip_prefix('[').and_then(|text| text.split_once("] ")) else {
                    continue;
                };
                found.insert(Violation {
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
                found.insert(Violation { profile, check, message, denied: true });
            }
        }
        Ok(found.into_iter().collect())
    }
}

/// An object whose pod is changed.
struct One<'a> {
    judge: &'a Judge,
    kind: Option<&'a Workload>,
    object: &'a Json,
    demands: &'a [Demand],
}

impl Refuses for One<'_> {
    fn refuses(&self, pod: &Json) -> Result<BTreeSet<String>, String> {
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

/// Where the pages of checks are.
const PAGES: &str = "https://github.com/palisade-dev/palisade/blob/main/docs/checks";

/// The page of a check of the catalogue.
pub fn page_of(check: &str) -> Option<String> {
    catalogue::ALL.iter().any(|one| one.id == check).then(|| format!("{PAGES}/{check}.md"))
}

/// Whether an object is a pod.
pub fn is_pod(api_version: &str, kind: &str) -> bool {
    (api_version, kind) == ("v1", "Pod")
}

/// Whether profiles judge objects of a kind.
pub fn is_judged(api_version: &str, kind: &str) -> bool {
    is_pod(api_version, kind) || workload(api_version, kind).is_some()
}

/// The kind of a workload, if an object is one.
pub fn workload(api_version: &str, kind: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|one| (one.api_version, one.kind) == (api_version, kind))
}

/// A pod that a workload makes, with the owner by which exceptions know it. A PodTemplate makes none.
fn pod_of(kind: &Workload, object: &Json) -> Option<Json> {
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

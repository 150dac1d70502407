//! Objects that violate a profile, by workload, for which changes are tried.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use palisade_kube_json::{
    owners::{Owners, Reference},
    workload::Workload,
};
use serde_json::Value as Json;

use crate::{
    evaluation_inputs::Objects,
    evaluator::{ProfileEvaluator, REJECTED, Violation},
    namespaces::Tenant,
    parallel::{parallel, threads},
    present::{Current, Present},
    progress::Progress,
    report::{Failure, one_line},
};

/// The maximum number of bytes of violating objects that are kept as text.
const KEPT: usize = 48 << 20;
/// The maximum size of a kept object, in bytes. Few tenants have larger ones, and one of them could displace thousands.
const LARGEST: usize = 256 << 10;

/// Collects the objects that violate a profile. Compliant objects are dropped.
#[derive(Default)]
pub struct Cases {
    found: Vec<Violating>,
    not_judged: Vec<(String, Reference, Option<Reference>, String)>,
    objects: usize,
    kept: usize,
}

struct Violating {
    namespace: String,
    itself: Reference,
    owner: Option<Reference>,
    case: Case,
}

/// An object that violates a profile.
#[derive(Clone)]
pub struct Case {
    /// Its kind; none for a pod.
    pub kind: Option<&'static Workload>,
    /// The whole object.
    text: Arc<str>,
    /// Its violations.
    pub violations: Vec<Violation>,
}

impl Case {
    /// The same object with other violations.
    #[must_use]
    pub fn with(&self, violations: Vec<Violation>) -> Self {
        Self { violations, ..self.clone() }
    }

    /// The object.
    pub fn object(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The pod, or the template of one.
    pub fn pod(&self) -> Json {
        let object = self.object();
        self.kind.map_or_else(|| object.clone(), |kind| object.pointer(kind.template).cloned().unwrap_or_default())
    }
}

/// Namespace and workload, as `Deployment/web`.
pub type Place = (String, String);

/// All evaluated objects.
#[derive(Default)]
pub struct Found {
    /// The workloads that violate a profile, with their objects that do.
    pub violating: BTreeMap<Place, Vec<Case>>,
    /// The reason why an object of a workload was not evaluated.
    pub not_judged: BTreeMap<Place, String>,
    /// The number of evaluated objects.
    pub objects: usize,
}

/// Evaluates all objects. Also returns the namespaces of objects that are unknown.
///
/// # Errors
/// The objects cannot be read.
pub fn evaluated(
    objects: Objects<'_>,
    judge: &ProfileEvaluator,
    tenants: &[Tenant],
    progress: &mut Progress,
) -> Result<(Found, BTreeSet<String>), Failure> {
    let known = tenants.iter().map(|one| one.name.clone()).collect();
    let (mut present, mut cases) = (Present::new(judge, &known), Cases::default());
    objects.each(progress, |page| {
        let current = present.take(page);
        let verdicts = parallel(threads(), &current, |one| judge.denials(one.workload, &one.object));
        current.iter().zip(verdicts).for_each(|(one, verdict)| cases.add(one, verdict));
    })?;
    Ok((cases.end(&present.owners), present.unknown))
}

impl Cases {
    /// Adds an object with its verdict.
    pub fn add(&mut self, one: &Current, verdict: Result<Vec<Violation>, String>) {
        let Current { workload, namespace, object, itself, owner } = one;
        self.objects += 1;
        let not_judged = |why: String| (namespace.clone(), itself.clone(), owner.clone(), why);
        let violations = match verdict {
            Ok(violations) => violations,
            Err(why) => return self.not_judged.push(not_judged(why)),
        };
        if violations.is_empty() {
            return;
        }
        // It exists, so the API server accepted it once: profiles are not the cause.
        if let Some(one) = violations.iter().find(|one| one.check == REJECTED && one.profile.is_empty()) {
            let why = format!("the API server would reject it: {}", one.message);
            return self.not_judged.push(not_judged(why));
        }
        let text = object.to_string();
        if text.len() > LARGEST || self.kept.saturating_add(text.len()) > KEPT {
            let why = format!(
                "it violates a profile, but no change was tried: its size is {} KiB, and the limit is {} KiB per \
                 object and {} MiB in total",
                text.len() >> 10,
                LARGEST >> 10,
                KEPT >> 20
            );
            return self.not_judged.push(not_judged(why));
        }
        self.kept += text.len();
        let case = Case { kind: *workload, text: text.into(), violations };
        let (namespace, itself, owner) = (namespace.clone(), itself.clone(), owner.clone());
        self.found.push(Violating { namespace, itself, owner, case });
    }

    /// Groups them by workload.
    pub fn end(self, owners: &Owners) -> Found {
        let mut found = Found { objects: self.objects, ..Found::default() };
        for (namespace, itself, owner, why) in self.not_judged {
            let workload = owners.workload(&itself, owner.as_ref()).to_string();
            found.not_judged.entry((namespace, workload)).or_insert_with(|| one_line(&why));
        }
        let mut seen = BTreeSet::new();
        for Violating { namespace, itself, owner, case } in self.found {
            let place = (namespace, owners.workload(&itself, owner.as_ref()).to_string());
            // A hundred pods of one template are one case.
            if seen.insert((place.clone(), itself.kind, case.violations.clone(), case.pod()["spec"].to_string())) {
                found.violating.entry(place).or_default().push(case);
            }
        }
        found
    }
}

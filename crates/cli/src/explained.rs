//! The effect of profiles on a pod or workload: the fields that they set, its violations, and the smallest change that
//! fixes them.

use std::fmt::Write as _;

use palisade_kube_json::workload::Workload;
use palisade_mutation::{Change, MutationRequest, Plan};
use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    evaluator::{ProfileEvaluator, REJECTED, Violation, page_of, pod_of},
    report::{harmless, one_line},
    smallest::MinimalFix,
};

/// The explanation of one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// The kind of the object.
    pub kind: String,
    /// Its name, or the beginning of its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The profiles that select the namespace.
    pub profiles: Vec<String>,
    /// The fields that the profiles set in the pod, or in the pods of the workload.
    pub mutated: Vec<Change>,
    /// The violations after mutation.
    pub violations: Vec<Violation>,
    /// The smallest change of the object that fixes them, or some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<MinimalFix>,
}

impl ProfileEvaluator {
    /// Explains an object that is created.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    pub fn explain(&self, kind: Option<&Workload>, object: &Json) -> Result<Explained, String> {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let namespace = text(&metadata["namespace"]);
        let violations = self.judge(kind, object)?;
        // Only of pods, a change is known.
        let is_of_pods = kind.is_some() || object["kind"] == "Pod";
        let change = if violations.is_empty() || !is_of_pods { None } else { self.smallest(kind, object) };
        let demands = self.demands(&namespace);
        let pod = match kind {
            None => is_of_pods.then(|| object.clone()),
            Some(kind) => pod_of(kind, object),
        };
        let mutations = demands.iter().filter_map(|one| Some((one.mutation.as_ref()?, one.params.as_ref())));
        let plan = Plan::new(mutations);
        let mutated = pod.map(|pod| plan.patch(&MutationRequest::create(&namespace, &pod)).changes);
        Ok(Explained {
            kind: text(&object["kind"]),
            name: text(if metadata["name"].is_null() { &metadata["generateName"] } else { &metadata["name"] }),
            profiles: demands.iter().map(|one| one.profile.clone()).collect(),
            namespace,
            mutated: mutated.unwrap_or_default(),
            violations,
            change,
        })
    }
}

impl Explained {
    /// Whether the API server denies the object, or the pods of the workload.
    pub fn is_denied(&self) -> bool {
        self.violations.iter().any(|one| one.denied)
    }

    /// The first line: the object and the verdict.
    pub fn heading(&self) -> String {
        let profiles = if self.profiles.is_empty() { "none".to_owned() } else { self.profiles.join(", ") };
        let verdict = if self.is_denied() { "denied" } else { "admitted" };
        let Self { kind, name, namespace, .. } = self;
        one_line(&format!("{kind}/{name} in namespace {namespace}: {verdict} (profiles: {profiles})"))
    }

    /// The fields that profiles set.
    pub fn mutations(&self) -> String {
        let mut text = String::new();
        if !self.mutated.is_empty() {
            text.push_str(if self.kind == "Pod" { "  mutated:\n" } else { "  mutated in its pods:\n" });
        }
        for change in &self.mutated {
            let _ = writeln!(text, "    {}", one_line(&change.to_string()));
        }
        text
    }

    /// The change, and the violations for which none is known.
    pub fn fixes(&self, kind: Option<&Workload>) -> String {
        let mut text = String::new();
        if let Some(change) = &self.change {
            let after = if change.left.is_empty() { "it passes" } else { "it has fewer violations" };
            let _ =
                writeln!(text, "  {}: with this change {after}:", one_line(&format!("{}/{}", self.kind, self.name)));
            for line in change.lines_at(kind) {
                let _ = writeln!(text, "    {}", one_line(&line));
            }
        }
        let fixed = |check: &str| self.change.as_ref().is_some_and(|change| !change.left.contains(check));
        let violated = self.violations.iter().map(|one| &*one.check);
        let mut unknown: Vec<_> = violated.filter(|one| *one != REJECTED && !fixed(one)).collect();
        unknown.dedup();
        for check in unknown {
            let page = page_of(check).map(|page| format!(": see {page}")).unwrap_or_default();
            let _ = writeln!(text, "  [{check}] has no change that is known to fix it{page}");
        }
        text
    }

    /// All of it as text, for an object that is in no file.
    pub fn human(&self, kind: Option<&Workload>) -> String {
        let mut text = self.heading() + "\n" + &self.mutations();
        for Violation { profile, check, message, denied } in &self.violations {
            let consequence = if *denied { "denied" } else { "only reported" };
            let of = if profile.is_empty() { String::new() } else { format!(" (profile {profile})") };
            let _ = writeln!(text, "  {consequence}: [{check}] {}{of}", one_line(message));
        }
        text.push_str(&self.fixes(kind));
        // Text of a pod must not move the terminal's cursor.
        text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
    }
}

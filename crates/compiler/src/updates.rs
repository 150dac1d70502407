//! The evaluation of updates, also without parameters.
//!
//! An update that changes nothing that a check of the profile reads is exempt (ADR 48): otherwise an object that is
//! older than the profile could neither be labelled nor released from its finalizers.
//!
//! The API server looks up parameters before it evaluates a policy, and denies a request if there are none. This
//! includes the request that removes the last finalizer in a namespace that is being deleted, whose parameters were
//! deleted first or never created. So requests that can remove a finalizer have a separate binding (ADR 22).

use std::collections::BTreeSet;

use palisade_api::{ToolSecurityProfile, names::Shape};
use palisade_checks::{Field, cel};

use crate::{
    Custom, Lowered,
    exceptions::{ExemptionScope, excepted_checks},
    reads::Reads,
    workloads,
};

/// How updates of pods are evaluated. New pods, their ephemeral containers and resizes are always evaluated with
/// parameters, if the profile has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodUpdates {
    /// As creation: there are no parameters.
    AsCreation,
    /// Without parameters, by the checks that are the same in all namespaces. No update can change what the other
    /// checks read.
    WithoutParameters,
    /// By all checks where there are parameters: whether a check that reads them, or that they lift, is violated
    /// depends on what an update can change.
    WithParameters,
}

impl PodUpdates {
    pub fn new(profile: &ToolSecurityProfile, rules: &[Lowered], customs: &[Custom], parameterized: bool) -> Self {
        let spec = &profile.spec;
        let excepted = excepted_checks(spec);
        let by_parameters = rules.iter().any(|one| {
            // An exception that a tenant asks for is for some images, or for what belongs to a workload.
            ExemptionScope::of(spec, one.check.id) == ExemptionScope::Containers
                || (one.check.restricts_what_updates_change()
                    && (one.reads_parameters || excepted.contains(one.check.id)))
        });
        let by_customs = customs.iter().any(|one| one.mentions_params() || excepted.contains(one.check.id.as_str()));
        match (parameterized, by_parameters || by_customs) {
            (false, _) => Self::AsCreation,
            (true, false) => Self::WithoutParameters,
            (true, true) => Self::WithParameters,
        }
    }
}

/// The variable that holds for an update of an object whose spec or template stays.
const UNCHANGED: &str = "unchanged";
/// The variable that holds if no annotation changes that the catalogue's checks read.
const SAME_ANNOTATIONS: &str = "sameAnnotations";

/// The conditions under which an update is exempt, because the parts that checks read are unchanged.
pub(crate) struct Unchanged {
    /// CEL of type bool: whether the parts that most checks read are the same.
    subject: String,
    /// The prefixes of the keys of annotations that checks of the catalogue read.
    annotations: BTreeSet<&'static str>,
    /// For each custom check, terms of CEL that all hold if the other fields that it reads are the same; none for most.
    own: Vec<Vec<String>>,
}

impl Unchanged {
    pub fn new(profile: &ToolSecurityProfile, rules: &[Lowered], customs: &[Custom], shape: Shape) -> Self {
        let mut subject = match shape {
            Shape::Pods => "object.spec == oldObject.spec".to_owned(),
            Shape::Workloads | Shape::Objects => format!("variables.template == ({})", template("oldObject")),
        };
        if profile.spec.exception_requests.is_some() {
            subject = format!("{subject} && {}", workloads::unchanged(shape));
        }
        // Those of a workload's pods are in its template.
        let read = rules.iter().filter(|one| shape == Shape::Pods && reads_annotations(one));
        let annotations = read.flat_map(|one| one.check.fields).filter_map(|field| match field {
            Field::Annotation(prefix) => Some(*prefix),
            _ => None,
        });
        let own = customs.iter().map(|custom| Reads::of(custom.expressions(), shape).unchanged()).collect();
        Self { subject, annotations: annotations.collect(), own }
    }

    /// Whether checks read only the spec or the template.
    fn is_plain(&self) -> bool {
        self.annotations.is_empty() && self.own.iter().all(Vec::is_empty)
    }

    /// Variables of the policy: name, what it is, CEL.
    pub fn variables(&self) -> Vec<(&'static str, &'static str, String)> {
        let mut all = Vec::new();
        if !self.is_plain() {
            let about = "an update without changes to the fields that most checks read: docs/adr/0048-exempt-updates-of-unchecked-fields.md";
            all.push((UNCHANGED, about, format!("request.operation == 'UPDATE' && {}", self.subject)));
        }
        if !self.annotations.is_empty() {
            let begins: Vec<_> =
                self.annotations.iter().map(|prefix| format!("key.startsWith({})", cel::quote(prefix))).collect();
            let about = "no annotation that a check reads is set or changed";
            all.push((
                SAME_ANNOTATIONS,
                about,
                format!(
                    "variables.annotations.all(key, !{} \
                     || oldObject.metadata.?annotations[?key] == optional.of(variables.annotations[key]))",
                    cel::any(&begins)
                ),
            ));
        }
        all
    }

    /// CEL of type bool: whether a request is an update that changes nothing that a check reads. It loops over nothing
    /// that has no bound.
    pub fn exempt(&self) -> String {
        if self.is_plain() {
            return format!("(request.operation == 'UPDATE' && {})", self.subject);
        }
        let annotations = "object.metadata.?annotations == oldObject.metadata.?annotations".to_owned();
        let annotations = (!self.annotations.is_empty()).then_some(annotations);
        let mut terms = vec![format!("variables.{UNCHANGED}")];
        for term in annotations.iter().chain(self.own.iter().flatten()) {
            if !terms.contains(term) {
                terms.push(term.clone());
            }
        }
        format!("({})", terms.join(" && "))
    }

    /// CEL of type list(string): the violations that `all` finds, where an update is not exempt. `found` are the
    /// variables of the catalogue's checks, and those of the custom checks.
    pub fn judged(&self, found: &[String], customs: &[String], judged: impl FnOnce(String) -> String) -> String {
        let sum = |terms: &[String]| if terms.is_empty() { "[]".to_owned() } else { terms.join(" + ") };
        let all: Vec<_> = found.iter().chain(customs).cloned().collect();
        if self.is_plain() {
            return judged(sum(&all));
        }
        let mut still = vec![format!("variables.{UNCHANGED}")];
        if !self.annotations.is_empty() {
            still.push(format!("variables.{SAME_ANNOTATIONS}"));
        }
        let still = still.join(" && ");
        let (plain, own): (Vec<_>, Vec<_>) = customs.iter().zip(&self.own).partition(|(_, terms)| terms.is_empty());
        if own.is_empty() {
            return format!("{still} ? [] : {}", judged(sum(&all)));
        }
        let plain: Vec<_> = found.iter().chain(plain.into_iter().map(|(name, _)| name)).cloned().collect();
        let mut parts = Vec::new();
        if !plain.is_empty() {
            parts.push(format!("({still} ? [] : {})", sum(&plain)));
        }
        // What only one check reads has changed, or the update were exempt.
        let alone = self.annotations.is_empty() && own.len() == 1;
        parts.extend(own.into_iter().map(|(name, terms)| {
            let same = terms.join(" && ");
            if alone { name.clone() } else { format!("(variables.{UNCHANGED} && {same} ? [] : {name})") }
        }));
        judged(parts.join(" + "))
    }
}

/// Whether a rule looks at annotations, which its check may only do by some settings.
fn reads_annotations(one: &Lowered) -> bool {
    one.texts().any(|text| text.contains("variables.annotations"))
}

/// CEL of type dyn: the pod template in a workload. `dyn` keeps the API server from checking the path against the
/// schema of each kind that the policy matches.
pub(crate) fn template(object: &str) -> String {
    format!(
        "request.kind.kind == 'CronJob' ? dyn({object}).spec.jobTemplate.spec.template : request.kind.kind == \
         'PodTemplate' ? dyn({object}).template : dyn({object}).spec.?template.orValue({{}})"
    )
}

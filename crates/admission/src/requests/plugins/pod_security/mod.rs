//! `PodSecurity`: the Pod Security Standards, by the labels of namespaces (`plugin/pkg/admission/security/podsecurity`
//! and `k8s.io/pod-security-admission/admission`). The server is assumed to have no configuration file: there are no
//! exemptions, and a namespace without labels demands nothing.
//!
//! This module decides when pods are evaluated, and what follows from the verdict. The verdict itself comes from a
//! [judge](crate::requests::PodSecurity) that the caller plugs in; without one there is none.

mod labels;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use self::labels::{PREFIX, Standard, Wanted};
use super::{Attributes, PluginRemarks, items};
use crate::{
    objects::Refused,
    requests::{
        Operation,
        standards::{Level, Violation},
    },
    validation::quote,
};

/// Pods of a namespace whose labels change are looked at, but no more than these.
const MAX_PODS: usize = 3000;

/// Subresources that cannot change a pod's spec (`ignoredPodSubresources`).
const IGNORED: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

pub(super) fn validate(
    attributes: &Attributes<'_>,
    object: Option<&Json>,
    said: &mut PluginRemarks,
) -> Result<(), Refused> {
    let request = attributes.request;
    if !matches!(request.operation, Operation::Create | Operation::Update) {
        return Ok(());
    }
    let Some(object) = object else { return Ok(()) };
    let ids = (request.resource.group.as_str(), request.resource.resource.as_str());
    match (ids, request.subresource.as_str()) {
        (("", "namespaces"), "") => namespace(attributes, object, said),
        (("", "pods"), subresource) if !IGNORED.contains(&subresource) => {
            let same = attributes.old.is_some_and(|old| attributes.updates() && !is_significant(object, old));
            if same { Ok(()) } else { pod(attributes, object, true, said) }
        }
        (ids, "") => match template(ids, object) {
            Some(template) => pod(attributes, template, false, said),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether an update of a pod is one that the plugin evaluates: another image, or another number of containers.
fn is_significant(new: &Json, old: &Json) -> bool {
    let (new, old) = (&new["spec"], &old["spec"]);
    let list = |spec: &Json, key: &str| items(&spec[key]).map(|one| one["image"].clone()).collect::<Vec<_>>();
    if ["containers", "initContainers"].iter().any(|key| list(new, key) != list(old, key)) {
        return true;
    }
    items(&new["ephemeralContainers"]).any(|container| {
        let before = items(&old["ephemeralContainers"]).find(|before| before["name"] == container["name"]);
        before.is_none_or(|before| before["image"] != container["image"])
    })
}

/// The pod template of a workload, as a pod.
fn template<'a>((group, resource): (&str, &str), object: &'a Json) -> Option<&'a Json> {
    let place = match (group, resource) {
        ("", "podtemplates") => "/template",
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => "/spec/template",
        ("batch", "cronjobs") => "/spec/jobTemplate/spec/template",
        _ => return None,
    };
    object.pointer(place).filter(|template| template.is_object())
}

/// Evaluates a pod, or, of a template, only warns.
fn pod(attributes: &Attributes<'_>, pod: &Json, enforce: bool, said: &mut PluginRemarks) -> Result<(), Refused> {
    let namespace = attributes.cluster.namespace(attributes.namespace());
    let (wanted, mistakes) = namespace.map(Wanted::of).unwrap_or_default();
    let silent = wanted.warn.level == Level::Privileged && wanted.audit.level == Level::Privileged;
    if mistakes.is_empty() && (wanted.is_privileged() || (!enforce && silent)) {
        return Ok(());
    }
    if !mistakes.is_empty() {
        let text = format!("Failed to parse policy: {}", crate::validation::aggregate(&mistakes));
        said.annotations.insert(format!("{PREFIX}error"), text);
    }
    let mut refused = None;
    if enforce && let Some(violations) = judge(attributes, wanted.enforce, pod)? {
        refused = Some(format!("violates PodSecurity {}: {}", quote(&wanted.enforce.to_string()), detail(&violations)));
    }
    let would = |standard: Standard| -> Result<Option<String>, Refused> {
        let violations = judge(attributes, standard, pod)?;
        let text = |violations: Vec<Violation>| {
            format!("would violate PodSecurity {}: {}", quote(&standard.to_string()), detail(&violations))
        };
        Ok(violations.map(text))
    };
    if let Some(text) = would(wanted.audit)? {
        said.annotations.insert(format!("{PREFIX}audit-violations"), text);
    }
    if let Some(why) = refused {
        return Err(attributes.forbidden(why));
    }
    said.warnings.extend(would(wanted.warn)?);
    Ok(())
}

/// `reason (detail), reason (detail)`
fn detail(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The violations of a pod; none if it complies.
fn judge(attributes: &Attributes<'_>, standard: Standard, pod: &Json) -> Result<Option<Vec<Violation>>, Refused> {
    if standard.level == Level::Privileged {
        return Ok(None);
    }
    let (cluster, unjudged) = (attributes.cluster, |why: String| {
        Refused::NoVerdict(format!("admission plugin PodSecurity, {standard}: {why}"))
    });
    let Some(judge) = cluster.pod_security() else {
        return Err(unjudged("no evaluator of the Pod Security Standards is available".to_owned()));
    };
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]});
    let violations = judge.violations(standard.level, standard.version(cluster.minor()), &pod).map_err(unjudged)?;
    Ok(Some(violations).filter(|violations| !violations.is_empty()))
}

/// The labels of a namespace must be valid, and who enforces more than before is warned of the pods that are there.
fn namespace(attributes: &Attributes<'_>, object: &Json, said: &mut PluginRemarks) -> Result<(), Refused> {
    let (wanted, mistakes) = Wanted::of(object);
    let invalid = |causes| {
        let what = format!("Namespace {}", quote(&attributes.request.name));
        Err(Refused::Validation { what, causes })
    };
    if attributes.creates() {
        return if mistakes.is_empty() { Ok(()) } else { invalid(mistakes) };
    }
    let (before, mistakes_before) = attributes.old.map(Wanted::of).unwrap_or_default();
    if !mistakes.is_empty() && mistakes != mistakes_before {
        return invalid(mistakes);
    }
    let (new, old) = (wanted.enforce, before.enforce);
    let relaxed = new.minor == old.minor && new.level <= old.level;
    if new != old && new.level != Level::Privileged && !relaxed {
        said.warnings.extend(violating(attributes, new)?);
    }
    Ok(())
}

/// The message for pods that violate what a namespace is to enforce from now on.
fn violating(attributes: &Attributes<'_>, standard: Standard) -> Result<Vec<String>, Refused> {
    let namespace = attributes.request.name.as_str();
    let mut pods: Vec<&Json> = attributes.all("", "Pod", namespace).collect();
    let total = pods.len();
    // Of the pods of one controller the first one comes before all others.
    let mut seen = std::collections::BTreeSet::new();
    let controller = |pod: &Json| {
        let owner = items(&pod["metadata"]["ownerReferences"]).find(|owner| owner["controller"] == true);
        owner.map(|owner| owner["uid"].to_string())
    };
    pods.sort_by_cached_key(|pod| controller(pod).is_some_and(|uid| !seen.insert(uid)));
    pods.truncate(MAX_PODS);
    // By what is wrong, the first pod by name, and how many there are.
    let mut found: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for pod in &pods {
        let Some(violations) = judge(attributes, standard, pod)? else { continue };
        let reasons: Vec<_> = violations.into_iter().map(|violation| violation.reason).collect();
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let (first, count) = found.entry(reasons.join(", ")).or_insert((name, 0));
        *first = (*first).min(name);
        *count += 1;
    }
    let mut warnings = Vec::new();
    if pods.len() < total {
        let checked = pods.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
        ));
    }
    if !found.is_empty() {
        let (namespace, standard) = (quote(namespace), quote(&standard.to_string()));
        warnings.push(format!(
            "existing pods in namespace {namespace} violate the new PodSecurity enforce level {standard}"
        ));
    }
    let of_pod = |(reasons, (first, count)): (String, (&str, usize))| match count {
        1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        _ => format!("{first} (and {} other pods): {reasons}", count - 1),
    };
    let mut of_pods: Vec<_> = found.into_iter().map(of_pod).collect();
    of_pods.sort();
    Ok(warnings.into_iter().chain(of_pods).collect())
}

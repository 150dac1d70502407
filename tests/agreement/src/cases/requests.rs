//! The answers to the requests of a case.

use palisade_admission::requests::{Cluster, Operation, Outcome, Request, Review, User};
use palisade_cel::Minor;
use serde_json::{Map, Value as Json, json};

use super::{Case, Tally};

/// The minor of the API server that answered.
const MINOR: Minor = Minor::V1_36;

/// Compares the answers to all requests of a case.
pub fn agree(case: &Case) -> Tally {
    let mut tally = Tally::default();
    let all = cluster(case, None);
    let list = |of: &Json, key: &str| of[key].as_array().cloned().unwrap_or_default();
    for (index, (wanted, answer)) in
        list(&case.expected, "expectations").iter().zip(&list(&case.apiserver, "results")).enumerate()
    {
        let place = format!("{}/{} {index}", case.source, case.name);
        compare(case, &all, wanted, answer, answer, &place, &mut tally);
        if let Some(alone) = answer["policy_alone"].as_object() {
            let policy = wanted["policy"].as_str().unwrap_or_default();
            let alone = Json::Object(alone.clone());
            let place = format!("{place} ({policy} alone)");
            compare(case, &cluster(case, Some(policy)), wanted, answer, &alone, &place, &mut tally);
        }
    }
    tally
}

/// The cluster that was asked, with all policies of the case or with one.
fn cluster(case: &Case, only: Option<&str>) -> Cluster {
    // The server ran without the ServiceAccount plugin, which needs a controller.
    let mut cluster = palisade_gate::cluster(MINOR).without_service_accounts();
    let mut apply = |object: &Json| {
        // What is refused is not there; the acceptance of policies is compared elsewhere.
        let _ = cluster.apply(object.clone());
    };
    for (name, metadata) in case.apiserver["namespaces"].as_object().unwrap_or(&Map::new()) {
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        namespace["metadata"]["name"] = name.as_str().into();
        apply(&namespace);
    }
    for object in case.crds.iter().chain(&stubs(case)).chain(&case.params).chain(&created(case)) {
        apply(object);
    }
    for policy in &case.policies {
        if only.is_none_or(|only| policy["metadata"]["name"] == *only) {
            apply(policy);
        }
    }
    for binding in case.apiserver["bindings"].as_array().into_iter().flatten() {
        let written = case.bindings.iter().find(|written| written["metadata"]["name"] == binding["name"]);
        let object = match written {
            Some(written) => {
                let mut written = written.clone();
                written["apiVersion"] = "admissionregistration.k8s.io/v1".into();
                written
            }
            None => json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": binding["name"]},
                "spec": {"policyName": binding["policyName"], "validationActions": binding["validationActions"]},
            }),
        };
        apply(&object);
    }
    cluster
}

/// Definitions that were made up for the kinds of requests: all fields are kept as they are.
fn stubs(case: &Case) -> Vec<Json> {
    let generated =
        case.apiserver["crds"].as_object().into_iter().flatten().filter(|(_, crd)| crd["generated"].is_string());
    let objects: Vec<_> = case.expected["expectations"].as_array().into_iter().flatten().collect();
    let objects: Vec<_> = objects.iter().filter_map(|wanted| case.object(wanted["resource"].as_str()?).ok()).collect();
    generated
        .filter(|(name, _)| !case.crds.iter().any(|crd| crd["metadata"]["name"] == **name))
        .filter_map(|(name, _)| {
            let (plural, group) = name.split_once('.')?;
            let (kind, version) = objects.iter().find_map(|object| {
                let version = object["apiVersion"].as_str()?.strip_prefix(group)?.strip_prefix('/')?;
                Some((object["kind"].as_str()?, version))
            })?;
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            Some(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
                "spec": {
                    "group": group, "scope": "Namespaced",
                    "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                    "versions": [
                        {"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
                    ],
                },
            }))
        })
        .collect()
}

/// The objects of requests that were created for good before the requests were made.
fn created(case: &Case) -> Vec<Json> {
    let requests = case.expected["expectations"].as_array().into_iter().flatten();
    let objects = requests.filter_map(|wanted| case.object(wanted["resource"].as_str()?).ok());
    objects
        .filter(|object| {
            case.apiserver["params"].as_array().into_iter().flatten().any(|created| {
                created["accepted"] == true
                    && created["kind"] == object["kind"]
                    && created["name"] == object["metadata"]["name"]
            })
        })
        .collect()
}

fn compare(case: &Case, cluster: &Cluster, wanted: &Json, asked: &Json, answer: &Json, place: &str, tally: &mut Tally) {
    let kind = answer["no_verdict"]["kind"].as_str().unwrap_or_default();
    // The object that the request needs was refused: there is nothing to compare.
    if answer["http_status"].is_null() || matches!(kind, "old-object-rejected" | "missing-kind" | "not-found") {
        return;
    }
    tally.compared += 1;
    let request = match request(case, cluster, wanted, asked) {
        Ok(request) => request,
        Err(error) => return tally.no_verdict.push(format!("{place}: no verdict: {error}")),
    };
    let review = cluster.admit(&request);
    if let Outcome::NoVerdict(why) = &review.outcome {
        return tally.no_verdict.push(format!("{place}: no verdict: {why}"));
    }
    if let Some(difference) = difference(answer, &review) {
        tally.different.push(format!("{place}: {difference}"));
    } else {
        tally.equal += 1;
        let by_policy = review.outcome.denial().is_none_or(|denial| !denial.policy.is_empty());
        tally.refused_alike += usize::from(!by_policy);
    }
}

fn request(case: &Case, cluster: &Cluster, wanted: &Json, asked: &Json) -> Result<Request, String> {
    let text = |of: &Json, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    let object = |path: String| case.object(&path).map_err(|error| error.to_string());
    let operation = Operation::parse(&text(wanted, "operation")).ok_or("no operation")?;
    let mut sent = object(text(wanted, "resource"))?;
    let namespace = text(wanted, "namespace");
    if !namespace.is_empty() {
        sent["metadata"]["namespace"] = namespace.into();
    }
    let old = wanted["old_resource"].as_str().map(|path| object(path.to_owned())).transpose()?;
    let mut request = cluster.request(operation, "", &sent, old.as_ref())?;
    let mut groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    let user = [&wanted["user"], &case.expected["user"]].into_iter().find(|user| user.is_object());
    let own = user.and_then(|user| user["groups"].as_array()).into_iter().flatten();
    groups.extend(own.filter_map(|group| group.as_str().map(str::to_owned)));
    let name = asked["user"].as_str().unwrap_or("admin").to_owned();
    request.user = User { name, groups, ..User::default() };
    request.dry_run = true;
    request.options = Request::default_options(operation, true);
    Ok(request)
}

fn difference(answer: &Json, review: &Review) -> Option<String> {
    let status = answer["http_status"].as_u64().unwrap_or_default();
    // The API server reports that the object already exists after all policies have admitted it.
    let admitted = status < 300 || status == 409;
    // Of a policy alone there is only what it says.
    let message = ["/message", "/denial", "/no_verdict/detail"]
        .into_iter()
        .find_map(|part| answer.pointer(part)?.as_str())
        .filter(|_| !admitted);
    let alone = answer["message"].is_null() && message.is_some() || answer["index"].is_null();
    let found = review.outcome.denial();
    match (message, found) {
        (None, Some(denial)) => return Some(format!("is admitted, here denied: {}", denial.message)),
        (Some(message), None) => return Some(format!("is refused, here allowed: {message}")),
        _ => {}
    }
    if let (Some(message), Outcome::Denied(denials)) = (message, &review.outcome) {
        // Of several policies and bindings the server shows any; of one of them always the first denial.
        let mut shown = denials.iter().enumerate().filter(|(index, denial)| {
            let same = |other: &&palisade_admission::requests::Denial| {
                other.policy == denial.policy && other.binding == denial.binding
            };
            !denials[..*index].iter().any(|other| same(&other))
        });
        let Some((_, denial)) =
            shown.find(|(_, denial)| denial.message == message || (alone && denial.said == message))
        else {
            return Some(format!("is refused: {message}\n    here: {}", denials[0].message));
        };
        let reason = answer["reason"].as_str().unwrap_or(&denial.reason);
        if (u64::from(denial.code), denial.reason.as_str()) != (status, reason) {
            return Some(format!(
                "is refused with {status} {}, here {} {}",
                answer["reason"], denial.code, denial.reason
            ));
        }
    }
    if alone {
        return None;
    }
    let warnings = json!(review.warnings);
    let wanted = if answer["warnings"].is_null() { json!([]) } else { answer["warnings"].clone() };
    if warnings != wanted {
        return Some(format!("warns {wanted}, here {warnings}"));
    }
    let annotations = json!(review.audit_annotations);
    let wanted = if answer["audit_annotations"].is_null() { json!({}) } else { answer["audit_annotations"].clone() };
    (annotations != wanted).then(|| format!("annotates {wanted}, here {annotations}"))
}

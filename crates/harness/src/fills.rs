//! What a profile fills into pods, before it is applied: the API server takes the policy that does it, it fails on no
//! pod, it changes nothing a second time, and no pod that complied violates the profile afterwards.

use palisade_api::{Diagnostic, crd};
use palisade_compiler::{Compiled, MutatingPair};
use serde_json::{Value as Json, json};

use crate::{
    Decision,
    admission::{Cluster, Operation, Outcome, Review},
    create::{self, Refused},
};

/// The versions in which the pair may be written, each with the oldest minor that serves it.
const VERSIONS: [(&str, u8); 2] = [("v1beta1", 34), ("v1", 36)];

/// A namespace like that of any tenant.
const TENANT: &str = "tenant";

/// What is wrong with the policy that changes pods. `judge` is what the profile says of a pod.
pub(crate) fn diagnose(
    compiled: &Compiled,
    pods: &[Json],
    judge: impl Fn(&Json) -> Result<Decision, Diagnostic>,
) -> Vec<Diagnostic> {
    let Some(pair) = &compiled.bundle.mutation else { return vec![] };
    for (version, minor) in VERSIONS {
        for object in pair.objects(version) {
            if let Err(refused) = create::create(minor, &object, None) {
                return vec![diagnostic(format!("Kubernetes 1.{minor} would not have it: {}", text(&refused)))];
            }
        }
    }
    let cluster = match cluster(compiled, pair) {
        Ok(cluster) => cluster,
        Err(diagnostic) => return vec![diagnostic],
    };
    let mut pods = pods.iter().chain([&compiled.probes.compliant.pod]);
    pods.find_map(|pod| fails(&cluster, pod, &judge)).into_iter().collect()
}

/// A cluster in which the policy is in force everywhere, and an error in it denies.
fn cluster(compiled: &Compiled, pair: &MutatingPair) -> Result<Cluster, Diagnostic> {
    let (version, minor) = VERSIONS[1];
    let mut cluster = Cluster::new(minor).without_service_accounts();
    let [mut policy, binding] = pair.objects(version);
    policy["spec"]["failurePolicy"] = "Fail".into();
    policy["spec"]["matchConstraints"]["namespaceSelector"] = json!({});
    let mut objects = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}})];
    objects.extend(crd::all().into_iter().map(|crd| json!(crd)));
    objects.extend(compiled.probes.params.as_ref().map(|spec| {
        json!({
            "apiVersion": palisade_api::names::API_VERSION, "kind": "ToolSecurityParams",
            "metadata": {"name": palisade_api::names::params(&compiled.profile), "namespace": TENANT}, "spec": spec,
        })
    }));
    objects.extend([policy, binding]);
    for object in objects {
        cluster.apply(object).map_err(|refused| diagnostic(text(&refused)))?;
    }
    Ok(cluster)
}

/// What is wrong with what becomes of a pod.
fn fails(cluster: &Cluster, pod: &Json, judge: impl Fn(&Json) -> Result<Decision, Diagnostic>) -> Option<Diagnostic> {
    let create = |pod: &Json| -> Result<Review, Diagnostic> {
        let mut pod = pod.clone();
        pod["metadata"]["namespace"] = TENANT.into();
        let request = cluster.request(Operation::Create, "", &pod, None).map_err(diagnostic)?;
        Ok(cluster.admit(&request))
    };
    let said = |what: &str, object: &Json| {
        let spec: String = object["spec"].to_string().chars().take(300).collect();
        diagnostic(format!("{what}, on a pod with the spec {spec}"))
    };
    let review = match create(pod) {
        Ok(review) => review,
        Err(diagnostic) => return Some(diagnostic),
    };
    if let Some((path, error)) = review.evaluations.iter().find_map(|one| Some((&one.path, one.result.as_ref().err()?)))
    {
        return Some(said(&format!("{path} fails: {error}"), pod));
    }
    let filled = match (review.outcome, review.object) {
        (Outcome::Allowed, Some(filled)) => filled,
        // Some of the catalogue's pods are invalid in every cluster.
        (Outcome::Denied(denials), _) if denials.iter().all(|denial| denial.policy.is_empty()) => return None,
        (Outcome::Denied(denials), _) => {
            return Some(said(&denials.first().map(|denial| denial.message.clone()).unwrap_or_default(), pod));
        }
        (Outcome::NoVerdict(_) | Outcome::Allowed, _) => return None,
    };
    match create(&filled).map(|again| again.object) {
        Ok(Some(again)) if again["spec"] != filled["spec"] => {
            return Some(said("what is filled in once is changed when it is filled in again", pod));
        }
        Ok(_) => {}
        Err(diagnostic) => return Some(diagnostic),
    }
    match (judge(pod), judge(&filled)) {
        (Ok(Decision::Admit), Ok(Decision::Deny { message, .. })) => {
            Some(said(&format!("it complied before it was filled in: {message}"), pod))
        }
        (_, Err(diagnostic)) => Some(diagnostic),
        _ => None,
    }
}

fn text(refused: &Refused) -> String {
    match refused {
        Refused::Status(status) => status.message.clone(),
        Refused::NoVerdict(why) => why.clone(),
    }
}

fn diagnostic(message: String) -> Diagnostic {
    Diagnostic::new("mutation.policy", message)
}

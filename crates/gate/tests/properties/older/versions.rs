//! What a version makes of a profile, and what that answers to requests.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use palisade_admission::requests::{Cluster, User};
use palisade_api::{
    crd,
    names::{self, Shape},
};
use palisade_compiler::{ChangedBy, Compiled, Namespace};
use palisade_gate::{Decision, Operation, ValidationRequest, Validator};
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

use super::{
    binary::MINOR,
    cases::{Case, Subject},
};

/// All objects that this tree makes of a profile, as `palisade render` prints them.
pub(super) fn objects(compiled: &Compiled, case: &Case) -> Vec<Json> {
    let now = "2026-06-01T00:00:00Z".parse().unwrap();
    let texts = |value: &Json| serde_json::from_value::<BTreeMap<String, String>>(value.clone()).unwrap();
    let params = case.namespaces.iter().filter_map(|namespace| {
        let metadata = &namespace["metadata"];
        let namespace = Namespace {
            name: metadata["name"].as_str().unwrap().to_owned(),
            labels: texts(&metadata["labels"]),
            annotations: texts(&metadata["annotations"]),
        };
        compiled.params(&namespace, [], now).map(|params| json!(params))
    });
    let mut objects: Vec<_> = params.collect();
    for (_, pair) in compiled.bundle.pairs() {
        objects.push(json!(pair.policy));
        objects.extend(pair.bindings().map(|binding| json!(binding)));
    }
    let by = compiled.mutation.as_ref().map(|mutation| mutation.by(MINOR));
    if let (Some(ChangedBy::Policy(served)), Some(pair)) = (by, &compiled.bundle.mutation) {
        objects.extend(pair.objects(served));
    }
    objects
}

/// What a version makes of a profile.
pub(super) struct Version {
    objects: Vec<Json>,
    policies: Vec<(Shape, Validator)>,
    params: BTreeMap<String, Json>,
    /// Whether updates of pods are bound to no parameters.
    updated_without: bool,
    /// How many policies have match conditions.
    pub conditional: u64,
    /// All objects by their names, without expressions: what must be equal as it is.
    pub plain: BTreeMap<String, Json>,
}

/// The fields of a policy that have expressions, or stand for them.
const EXPRESSIONS: [&str; 4] = ["variables", "validations", "matchConditions", "mutations"];

impl Version {
    pub(super) fn new(profile: &str, objects: Vec<Json>) -> Self {
        let mut new = Self {
            objects: vec![],
            policies: vec![],
            params: BTreeMap::new(),
            updated_without: false,
            conditional: 0,
            plain: BTreeMap::new(),
        };
        let of_objects = names::policy(profile, Shape::Objects);
        for object in &objects {
            let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
            let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
            if [&name, &text("/spec/policyName")].contains(&&of_objects) {
                continue;
            }
            match kind.as_str() {
                "ToolSecurityParams" => drop(new.params.insert(namespace.clone(), object.clone())),
                "ValidatingAdmissionPolicy" => {
                    let shape = Shape::OF_PODS.into_iter().find(|&shape| names::policy(profile, shape) == name);
                    let shape = shape.unwrap_or_else(|| panic!("{name} is a policy of {profile}"));
                    let policy: ValidatingAdmissionPolicy = serde_json::from_value(object.clone()).unwrap();
                    new.conditional += u64::from(object["spec"].get("matchConditions").is_some());
                    let policy = Validator::new(&policy).unwrap_or_else(|error| panic!("{error:?}\n{object}"));
                    new.policies.push((shape, policy));
                }
                "ValidatingAdmissionPolicyBinding" if name == names::updates(profile, Shape::Pods) => {
                    new.updated_without = object["spec"].get("paramRef").is_none();
                }
                _ => {}
            }
            let mut plain = object.clone();
            let validation = plain.pointer("/spec/validations/0").cloned();
            if let Some(spec) = plain["spec"].as_object_mut() {
                spec.retain(|field, _| !EXPRESSIONS.contains(&field.as_str()));
            }
            if let Some(mut validation) = validation {
                validation["expression"].take();
                validation["messageExpression"].take();
                plain["spec"]["validations"] = validation;
            }
            new.plain.insert(format!("{kind} {namespace}/{name}"), plain);
        }
        new.objects = objects;
        new
    }

    /// The verdict on a request; `None` if no policy is for it.
    pub(super) fn judge(&self, case: &Case, namespace: usize, ask: &Ask) -> Option<PolicyAnswer> {
        let (_, policy) = self.policies.iter().find(|(shape, _)| *shape == ask.shape)?;
        let namespace = case.namespace(namespace);
        let without = self.updated_without && ask.operation == Operation::Update && ask.subresource.is_empty();
        let request = ValidationRequest {
            namespace,
            operation: ask.operation,
            kind: ask.kind,
            group: None,
            resource: None,
            subresource: ask.subresource,
            name: None,
            user: ask.user,
            groups: if ask.user == "member" { &["system:authenticated", "exempts"] } else { &["system:authenticated"] },
            object: &ask.object,
            old_object: &ask.old,
            params: self.params.get(namespace).filter(|_| !(without && ask.shape == Shape::Pods)),
            namespace_object: None,
        };
        Some(match policy.judge(&request) {
            Ok(judgement) => PolicyAnswer { decision: Ok(judgement.decision), left_out: !judgement.matched },
            Err(mistake) => PolicyAnswer { decision: Err(mistake.to_string()), left_out: false },
        })
    }

    fn cluster(&self, case: &Case) -> Cluster {
        let mut cluster = Cluster::new(MINOR).without_service_accounts();
        let crds = crd::all().into_iter().map(|crd| json!(crd));
        // Policies last, or they judge what comes after them.
        for object in case.namespaces.iter().cloned().chain(crds).chain(self.objects.iter().cloned()) {
            cluster.apply(object).unwrap_or_else(|refused| panic!("{refused:?}"));
        }
        cluster
    }
}

/// A policy's answer: its decision, or the mistake that it shows.
pub(super) struct PolicyAnswer {
    pub decision: Result<Decision, String>,
    /// Whether match conditions leave the request out.
    pub left_out: bool,
}

/// A request.
pub(super) struct Ask {
    pub what: &'static str,
    shape: Shape,
    operation: Operation,
    kind: &'static str,
    subresource: &'static str,
    user: &'static str,
    pub object: Json,
    old: Json,
}

/// All requests that are made of a pod.
pub(super) fn asks(case: &Case, subject: &Subject) -> Vec<Ask> {
    let created = |object: &mut Json| {
        let created = &subject.pod["metadata"]["creationTimestamp"];
        let created = if created.is_null() { &json!("2026-06-01T00:00:00Z") } else { created };
        pod::merge(
            object,
            &json!({"metadata": {"creationTimestamp": created, "namespace": case.namespace(subject.namespace)}}),
        );
    };
    let mut all = Vec::new();
    let mut object = subject.pod.clone();
    created(&mut object);
    let mut of_pod = |what, operation, subresource, user, old: Json| {
        let object = object.clone();
        all.push(Ask { what, shape: Shape::Pods, operation, kind: "Pod", subresource, user, object, old });
    };
    let mut old = object.clone();
    old["spec"]["activeDeadlineSeconds"] = json!(77);
    of_pod("creation of pods", Operation::Create, "", "tenant", Json::Null);
    of_pod("updates of pods", Operation::Update, "", "tenant", old);
    if object["spec"].get("ephemeralContainers").is_some() {
        let mut old = object.clone();
        old["spec"].as_object_mut().unwrap().remove("ephemeralContainers");
        of_pod("new ephemeral containers", Operation::Update, "ephemeralcontainers", "tenant", old);
    }
    if case.profile["spec"].get("exemptions").is_some() {
        of_pod("creation of pods by exempt users", Operation::Create, "", "exempt", Json::Null);
        of_pod("creation of pods by exempt groups", Operation::Create, "", "member", Json::Null);
    }
    for workload in &subject.workloads {
        let mut object = workload.around("random", &subject.pod);
        created(&mut object);
        let mut old = object.clone();
        *old.pointer_mut(workload.template).unwrap() = json!({"spec": {"containers": []}});
        for (what, operation, old) in
            [("creation of workloads", Operation::Create, Json::Null), ("updates of workloads", Operation::Update, old)]
        {
            let (kind, object) = (workload.kind, object.clone());
            all.push(Ask {
                what,
                shape: Shape::Workloads,
                operation,
                kind,
                subresource: "",
                user: "tenant",
                object,
                old,
            });
        }
    }
    all
}

/// What a cluster answers to the creation of pods and workloads where either version's objects are in force: outcome,
/// the object as it is mutated, warnings and notes in the audit log.
pub(super) fn in_clusters<'a>(
    case: &'a Case,
    versions: &[Version; 2],
) -> Vec<(&'a Subject, &'static str, [String; 2])> {
    let mut all = Vec::new();
    let mut clusters = None;
    for subject in case.pods.iter().filter(|subject| subject.in_cluster) {
        let clusters = clusters.get_or_insert_with(|| versions.each_ref().map(|version| version.cluster(case)));
        let workloads =
            subject.workloads.iter().map(|workload| (workload.kind, workload.around("random", &subject.pod)));
        for (what, mut object) in [("Pod", subject.pod.clone())].into_iter().chain(workloads) {
            object["metadata"]["namespace"] = json!(case.namespace(subject.namespace));
            let said = clusters.each_ref().map(|cluster| {
                let mut request = cluster.request(Operation::Create, "", &object, None).unwrap();
                let groups = vec!["system:authenticated".to_owned()];
                request.user = User { name: "tenant".to_owned(), groups, ..User::default() };
                let review = cluster.admit(&request);
                let object = review.object.map_or(String::new(), |object| object.to_string());
                format!("{:?} {object} {:?} {:?}", review.outcome, review.warnings, review.audit_annotations)
            });
            all.push((subject, what, said));
        }
    }
    all
}

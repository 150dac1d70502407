//! The admission plugins, offline: which there are, and what each does. What the API server says of the same requests is
//! asked in `tests/apiserver` (`plugins.rs`, with the cases in `cases/plugins`).
#![allow(clippy::disallowed_methods, reason = "golden files are files")]

use std::{fs, path::Path, sync::Arc};

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use palisade_admission::requests::{
    Cluster, Level, Operation, Outcome, PLUGINS, Plugins, PodSecurity, Request, Review, Violation, Webhook,
    WebhookAnswer,
};
use palisade_cel::Minor;
use serde_json::{Value as Json, json};

/// What the sources of each minor say is on by default (`make oracle`).
#[test]
fn default_plugins_match_the_sources_of_each_minor() {
    let mut compared = 0;
    for minor in Minor::ALL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/oracle/plugins/{minor}.json"));
        let wanted: Vec<String> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let found: Vec<_> = PLUGINS
            .iter()
            .filter(|one| (one.since..=one.until).contains(&minor.number()))
            .map(|one| one.name)
            .collect();
        assert_eq!(found, wanted, "{minor}");
        compared += wanted.len();
    }
    assert!(compared > 100, "{compared}");
}

fn pod(spec: &Json) -> Json {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "a", "image": "a"}]);
    }
    pod
}

/// Standards that reject only the namespaces of a node.
struct HostNamespaceStandards;

impl PodSecurity for HostNamespaceStandards {
    fn violations(&self, _: Level, _: u8, pod: &Json) -> Result<Vec<Violation>, String> {
        let set = ["hostNetwork", "hostPID"].into_iter().find(|field| pod["spec"][field] == true);
        let violation = |field| Violation { reason: "host namespaces".to_owned(), detail: format!("{field}=true") };
        Ok(set.map(violation).into_iter().collect())
    }
}

fn cluster(objects: &[Json]) -> Cluster {
    let mut cluster = Cluster::new(Minor::V1_36).with_pod_security(Arc::new(HostNamespaceStandards));
    for object in objects {
        cluster.apply(object.clone()).unwrap();
    }
    cluster
}

fn create(cluster: &Cluster, object: &Json) -> Review {
    cluster.admit(&cluster.request(Operation::Create, "", object, None).unwrap())
}

fn denied(review: &Review) -> &str {
    review.outcome.denial().map_or_else(|| panic!("{:?}", review.outcome), |denial| &denial.message)
}

fn unjudged(review: &Review) -> &str {
    match &review.outcome {
        Outcome::NoVerdict(why) => why,
        other => panic!("{other:?}"),
    }
}

fn namespace(labels: &Json) -> Json {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}})
}

fn class(kind: &str, name: &str, more: &Json) -> Json {
    let group = match kind {
        "PriorityClass" => "scheduling.k8s.io/v1",
        "RuntimeClass" => "node.k8s.io/v1",
        "StorageClass" => "storage.k8s.io/v1",
        _ => "networking.k8s.io/v1",
    };
    let mut class = json!({"apiVersion": group, "kind": kind, "metadata": {"name": name}});
    for (key, value) in more.as_object().unwrap() {
        class[key] = value.clone();
    }
    class
}

#[test]
fn plugins_set_service_account_priority_and_tolerations() {
    let cluster = cluster(&[class("PriorityClass", "high", &json!({"value": 7}))]);
    let review = create(&cluster, &pod(&json!({"priorityClassName": "high"})));
    assert_eq!(review.outcome, Outcome::Allowed);
    let spec = &review.object.unwrap()["spec"];
    assert_eq!((&spec["priority"], &spec["serviceAccountName"]), (&json!(7), &json!("default")));
    assert_eq!(spec["tolerations"].as_array().unwrap().len(), 2);
    assert_eq!(spec["volumes"].as_array().unwrap().len(), 1);
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["readOnly"], true);
}

/// Something that a request names is missing if the files have others of its kind, and unknown if they have none.
#[test]
fn missing_reference_is_denied_and_unknown_one_has_no_verdict() {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other"}});
    for (field, name, other, plugin, message) in [
        (
            "priorityClassName",
            "low",
            class("PriorityClass", "high", &json!({"value": 7})),
            "Priority",
            "no PriorityClass with name low was found",
        ),
        (
            "runtimeClassName",
            "sandbox",
            class("RuntimeClass", "other", &json!({"handler": "x"})),
            "RuntimeClass",
            "pod rejected: RuntimeClass \"sandbox\" not found",
        ),
        (
            "serviceAccountName",
            "builder",
            account,
            "ServiceAccount",
            "error looking up service account default/builder: serviceaccount \"builder\" not found",
        ),
    ] {
        let mut pod = pod(&json!({}));
        pod["spec"][field] = name.into();
        assert_eq!(denied(&create(&cluster(&[other]), &pod)), format!("pods \"a\" is forbidden: {message}"));
        let why = unjudged(&create(&cluster(&[]), &pod)).to_owned();
        assert!(why.starts_with(&format!("admission plugin {plugin}: ")), "{why}");
        let without = Cluster::new(Minor::V1_36).with_plugins(Plugins::default().without([plugin]).unwrap());
        assert_eq!(create(&without, &pod).outcome, Outcome::Allowed, "{plugin}");
    }
}

#[test]
fn plugin_runs_only_if_enabled() {
    let namespace = namespace(&json!({"pod-security.kubernetes.io/enforce": "baseline"}));
    let bad = pod(&json!({"hostNetwork": true}));
    let says = |plugins: Plugins| {
        let mut cluster =
            Cluster::new(Minor::V1_36).with_plugins(plugins).with_pod_security(Arc::new(HostNamespaceStandards));
        cluster.apply(namespace.clone()).unwrap();
        let review = create(&cluster, &bad);
        (review.outcome.is_allowed(), review.object.is_some_and(|pod| pod["spec"]["priority"] == 0))
    };
    assert_eq!(says(Plugins::default()), (false, true));
    assert_eq!(says(Plugins::only(["PodSecurity"]).unwrap()), (false, false));
    assert_eq!(says(Plugins::only(["Priority"]).unwrap()), (true, true));
    assert_eq!(says(Plugins::only([]).unwrap()), (true, false));
    assert_eq!(says(Plugins::default().without(["PodSecurity"]).unwrap()), (true, true));
    let error = Plugins::only(["PodSecurityPolicy"]).unwrap_err().to_string();
    assert!(error.contains("\"PodSecurityPolicy\"") && error.contains("NamespaceLifecycle, LimitRanger"), "{error}");
}

#[test]
fn policies_are_evaluated_unless_their_plugin_is_disabled() {
    let version = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]},
            ]},
            "validations": [{"expression": "false"}],
        },
    });
    let binding = json!({
        "apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    });
    for (plugins, allowed) in [
        (Plugins::only([]).unwrap(), false),
        (Plugins::default().without(["ValidatingAdmissionPolicy"]).unwrap(), true),
    ] {
        let mut cluster = Cluster::new(Minor::V1_36).with_plugins(plugins);
        for object in [&policy, &binding] {
            cluster.apply(object.clone()).unwrap();
        }
        assert_eq!(create(&cluster, &pod(&json!({}))).outcome.is_allowed(), allowed);
    }
}

/// `GetDefaultClass`: the newest, and of those as old the first by name.
#[test]
fn newest_default_storage_class_is_used() {
    let default = |name: &str, created: &str| {
        let mut class = class("StorageClass", name, &json!({"provisioner": "x"}));
        class["metadata"]["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        class["metadata"]["creationTimestamp"] = created.into();
        class
    };
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let (old, new) = ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
    for (classes, wanted) in [
        (vec![default("a", old), default("b", new), default("c", new)], json!("b")),
        (vec![default("a", new), default("b", old)], json!("a")),
        (vec![], Json::Null),
    ] {
        let review = create(&cluster(&classes), &claim);
        assert_eq!(review.outcome, Outcome::Allowed);
        assert_eq!(review.object.unwrap()["spec"]["storageClassName"], wanted);
    }
}

/// A webhook of the files is asked about what it matches, and what it answers is not known.
#[test]
fn request_matched_by_a_webhook_has_no_verdict() {
    for (kind, plugin) in [
        ("ValidatingWebhookConfiguration", "ValidatingAdmissionWebhook"),
        ("MutatingWebhookConfiguration", "MutatingAdmissionWebhook"),
    ] {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "hooks"},
            "webhooks": [{
                "name": "pods.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://example.com"},
                "objectSelector": {"matchLabels": {"checked": "yes"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            }],
        });
        let cluster = cluster(&[configuration]);
        let mut pod = pod(&json!({}));
        assert_eq!(create(&cluster, &pod).outcome, Outcome::Allowed, "the selector leaves it out");
        pod["metadata"]["labels"] = json!({"checked": "yes"});
        let why = unjudged(&create(&cluster, &pod)).to_owned();
        assert!(why.contains(plugin) && why.contains("pods.example.com"), "{why}");
    }
}

#[test]
fn device_quota_has_no_verdict() {
    let quota = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
            "spec": {"hard": {name: "0"}}, "status": {"hard": {name: "0"}, "used": {name: "0"}},
        })
    };
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu"}});
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a"},
        "spec": {"devices": {"requests": [request]}},
    });
    for name in ["gpu.deviceclass.resource.k8s.io/devices", "requests.example.com/gpu"] {
        let review = create(&cluster(&[quota(name)]), &claim);
        assert!(unjudged(&review).contains("the quota \"q\" limits devices"), "{name}: {}", unjudged(&review));
    }
    let review = create(&cluster(&[quota("count/resourceclaims.resource.k8s.io")]), &claim);
    assert!(denied(&review).contains("exceeded quota: q"), "{}", denied(&review));
}

#[test]
fn quota_has_no_verdict_only_if_unknown_usage_matters() {
    let quota = |hard: &Json, status: &Json| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
            "spec": {"hard": hard}, "status": status,
        })
    };
    let ask = |hard: Json, status: Json| create(&cluster(&[quota(&hard, &status)]), &pod(&json!({})));
    let none = ask(json!({"pods": "0"}), Json::Null);
    let exceeded = "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0";
    assert_eq!(denied(&none), exceeded);
    assert_eq!(ask(json!({"services": "0"}), Json::Null).outcome, Outcome::Allowed);
    let some = ask(json!({"pods": "3"}), Json::Null);
    assert!(unjudged(&some).contains("ResourceQuota: the quota \"q\" limits pods"), "{}", unjudged(&some));
    let status = |used: &str| json!({"hard": {"pods": "3"}, "used": {"pods": used}});
    assert_eq!(ask(json!({"pods": "3"}), status("2")).outcome, Outcome::Allowed);
    assert!(denied(&ask(json!({"pods": "3"}), status("3"))).ends_with("used: pods=3, limited: pods=3"));
    // Another plugin denies for sure.
    let mut cluster = cluster(&[quota(&json!({"pods": "3"}), &Json::Null)]);
    cluster.apply(namespace(&json!({"pod-security.kubernetes.io/enforce": "baseline"}))).unwrap();
    let message = denied(&create(&cluster, &pod(&json!({"hostPID": true})))).to_owned();
    assert!(message.ends_with("violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"), "{message}");
}

#[test]
fn deletion_of_required_namespaces_is_denied() {
    let cluster = cluster(&[]);
    for (name, allowed) in [("kube-system", false), ("default", false), ("kube-node-lease", true), ("mine", true)] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let review = cluster.admit(&cluster.request(Operation::Delete, "", &namespace, None).unwrap());
        assert_eq!(review.outcome.is_allowed(), allowed, "{name}: {:?}", review.outcome);
    }
}

/// Nobody who judges pods by the Pod Security Standards, so that the verdict depends on what nobody knows.
#[test]
fn pod_security_has_no_verdict_without_a_judge() {
    let with = |labels: &Json| {
        let mut cluster = Cluster::new(Minor::V1_36);
        cluster.apply(namespace(labels)).unwrap();
        cluster
    };
    let mut bad = pod(&json!({"hostNetwork": true}));
    for (labels, standard) in [
        (json!({"pod-security.kubernetes.io/enforce": "baseline"}), "baseline:latest"),
        (
            json!({
                "pod-security.kubernetes.io/enforce": "privileged", "pod-security.kubernetes.io/warn": "restricted",
                "pod-security.kubernetes.io/warn-version": "v1.30",
            }),
            "restricted:v1.30",
        ),
    ] {
        let why = unjudged(&create(&with(&labels), &bad)).to_owned();
        assert!(
            why.starts_with(&format!("admission plugin PodSecurity, {standard}: no evaluator of the Pod Security")),
            "{why}"
        );
    }
    // Nothing is asked of the pods.
    for labels in [json!({}), json!({"pod-security.kubernetes.io/enforce": "privileged"})] {
        assert_eq!(create(&with(&labels), &bad).outcome, Outcome::Allowed);
    }
    // Another plugin denies for sure.
    bad["spec"]["priority"] = json!(7);
    let message = denied(&create(&with(&json!({"pod-security.kubernetes.io/enforce": "baseline"})), &bad)).to_owned();
    assert!(message.contains("priority"), "{message}");
}

/// A webhook whose answers the caller gives: it labels pods that have no such label.
#[derive(Debug)]
struct Labels(MatchResources);

impl Webhook for Labels {
    fn constraints(&self) -> &MatchResources {
        &self.0
    }

    fn answer(&self, request: &Request, cluster: &Cluster) -> WebhookAnswer {
        let Some(mut object) = request.object.clone() else {
            return WebhookAnswer { object: Ok(None), warnings: vec![] };
        };
        let settings = cluster.object("", "ConfigMap", &request.namespace, "settings").unwrap();
        object["metadata"]["labels"]["team"] = settings["data"]["team"].clone();
        object["metadata"]["unknown"] = json!(true);
        WebhookAnswer { object: Ok(Some(object)), warnings: vec!["it has a team now".to_owned()] }
    }
}

#[test]
fn registered_webhook_mutates_and_warns() {
    let constraints = json!({"resourceRules": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
    ]});
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
        "data": {"team": "a"},
    });
    let mut cluster = cluster(std::slice::from_ref(&settings));
    cluster.register("labels", Arc::new(Labels(serde_json::from_value(constraints).unwrap())));
    let review = create(&cluster, &pod(&json!({})));
    assert_eq!((&review.outcome, &*review.warnings), (&Outcome::Allowed, &["it has a team now".to_owned()][..]));
    let metadata = &review.object.unwrap()["metadata"];
    assert_eq!((&metadata["labels"], &metadata["unknown"]), (&json!({"team": "a"}), &Json::Null));
    let mut other = settings;
    other["metadata"]["name"] = "other".into();
    assert_eq!(create(&cluster, &other).warnings, Vec::<String>::new(), "it is asked about pods");
}

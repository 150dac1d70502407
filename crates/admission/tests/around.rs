//! The rules of the API server around an object of any kind: its owners, its namespace, its name, its version, and the
//! methods of its resource.

use std::collections::BTreeSet;

use palisade_admission::requests::{Cluster, Operation, Outcome, Review, User};
use palisade_cel::Minor;
use serde_json::{Value as Json, json};

fn cluster(objects: &[Json]) -> Cluster {
    let mut cluster = Cluster::new(Minor::V1_36);
    for object in objects {
        let _ = cluster.apply(object.clone()).unwrap_or_else(|refused| panic!("{object}: {refused:?}"));
    }
    cluster
}

fn ask(cluster: &Cluster, object: &Json, old: Option<&Json>) -> Review {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let request = cluster.request(operation, "", object, old).unwrap_or_else(|why| panic!("{object}: {why}"));
    cluster.admit(&request)
}

/// The code and the message of a denial; 0 if it is allowed.
fn answer(review: &Review) -> (u16, String) {
    match &review.outcome {
        Outcome::Allowed => (0, String::new()),
        Outcome::Denied(denials) => (denials[0].code, denials[0].message.clone()),
        Outcome::NoVerdict(why) => panic!("no verdict: {why}"),
    }
}

fn config_map(metadata: &Json) -> Json {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}});
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    object
}

fn owner(kind: &str, name: &str, controller: Option<bool>) -> Json {
    let mut owner = json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": name});
    if let Some(controller) = controller {
        owner["controller"] = controller.into();
    }
    owner
}

#[test]
fn metadata_is_validated_for_each_kind() {
    let cluster = cluster(&[]);
    let controllers = json!({"ownerReferences": [owner("Pod", "a", Some(true)), owner("Pod", "b", None), owner("Pod", "d", Some(true))]});
    let shown = r#"[{"apiVersion":"v1","kind":"Pod","name":"a","uid":"a","controller":true},{"apiVersion":"v1","kind":"Pod","name":"b","uid":"b"},{"apiVersion":"v1","kind":"Pod","name":"d","uid":"d","controller":true}]"#;
    for (metadata, code, said) in [
        (controllers, 422, format!("ConfigMap \"c\" is invalid: metadata.ownerReferences: Invalid value: {shown}: Only one reference can have Controller set to true. Found \"true\" in references for Pod/a and Pod/d")),
        (json!({"ownerReferences": [owner("Event", "e", None)]}), 422, "/v1, Kind=Event is disallowed from being an owner".to_owned()),
        (json!({"ownerReferences": [owner("Pod", "a", Some(true)), owner("Pod", "b", Some(false))]}), 0, String::new()),
        (json!({"finalizers": ["orphan", "foregroundDeletion"]}), 422,
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set".to_owned()),
        (json!({"finalizers": ["orphan"]}), 0, String::new()),
        (json!({"resourceVersion": "5"}), 500, "resourceVersion should not be set on objects to be created".to_owned()),
        (json!({"resourceVersion": ""}), 0, String::new()),
        (json!({"namespace": "Bad_NS"}), 404, "namespaces \"Bad_NS\" not found".to_owned()),
        (json!({"namespace": "${NS}"}), 404, "namespaces \"${NS}\" not found".to_owned()),
    ] {
        let found = answer(&ask(&cluster, &config_map(&metadata), None));
        assert_eq!(found.0, code, "{metadata}: {}", found.1);
        assert!(found.1.contains(&said), "{metadata}: {}", found.1);
    }
    // Of an update, too.
    let twice = json!({"ownerReferences": [owner("Pod", "a", Some(true)), owner("Pod", "b", Some(true))]});
    assert_eq!(answer(&ask(&cluster, &config_map(&twice), Some(&config_map(&json!({}))))).0, 422);
    let wrong = config_map(&json!({"resourceVersion": "abc"}));
    let found = answer(&ask(&cluster, &wrong, Some(&config_map(&json!({"resourceVersion": "7"})))));
    assert_eq!(found, (500, "strconv.ParseUint: parsing \"abc\": invalid syntax".to_owned()));
    // The storage is not asked for a dry run.
    let mut request =
        cluster.request(Operation::Create, "", &config_map(&json!({"resourceVersion": "5"})), None).unwrap();
    request.dry_run = true;
    assert_eq!(cluster.admit(&request).outcome, Outcome::Allowed);
}

#[test]
fn an_owner_that_is_named_twice_counts_once() {
    let cluster = cluster(&[]);
    let object = config_map(&json!({"ownerReferences": [owner("Pod", "a", None), owner("Pod", "a", None)]}));
    let review = ask(&cluster, &object, None);
    assert_eq!(review.outcome, Outcome::Allowed);
    assert_eq!(review.object.unwrap()["metadata"]["ownerReferences"], json!([owner("Pod", "a", None)]));
    assert!(review.warnings[0].ends_with("duplicate UID(s) observed: a"), "{:?}", review.warnings);
}

#[test]
fn reviews_need_no_name_and_those_of_access_take_no_metadata() {
    let cluster = cluster(&[]);
    for (group, kind, named) in [
        ("authorization.k8s.io", "SubjectAccessReview", 422),
        ("authorization.k8s.io", "LocalSubjectAccessReview", 422),
        ("authorization.k8s.io", "SelfSubjectAccessReview", 422),
        ("authorization.k8s.io", "SelfSubjectRulesReview", 0),
        ("authentication.k8s.io", "SelfSubjectReview", 0),
        ("authentication.k8s.io", "TokenReview", 0),
    ] {
        let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {}, "spec": {}});
        if kind == "LocalSubjectAccessReview" {
            object["metadata"]["namespace"] = "n".into();
        }
        assert_eq!(answer(&ask(&cluster, &object, None)).0, 0, "{kind}");
        object["metadata"]["name"] = "x".into();
        assert_eq!(answer(&ask(&cluster, &object, None)).0, named, "{kind} with a name");
    }
}

#[test]
fn a_mutation_changes_neither_namespace_nor_kind() {
    for (expression, code, said) in [
        (
            "JSONPatch{op: 'replace', path: '/metadata/namespace', value: 'other'}",
            400,
            "does not match the namespace sent on the request",
        ),
        ("JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}", 500, "converting (v1.Secret) to (core.ConfigMap)"),
        ("JSONPatch{op: 'add', path: '/data', value: {'a': quantity('1Gi')}}", 403, "type conversion error"),
        ("JSONPatch{op: 'add', path: '/data', value: {'a': string('1Gi')}}", 0, ""),
    ] {
        let cluster = cluster(&[
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"},
                "spec": {
                    "failurePolicy": "Fail", "reinvocationPolicy": "Never",
                    "matchConstraints": {"resourceRules": [
                        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]},
                    ]},
                    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": format!("[{expression}]")}}],
                },
            }),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
                "metadata": {"name": "m"}, "spec": {"policyName": "m"},
            }),
        ]);
        let found = answer(&ask(&cluster, &config_map(&json!({})), None));
        assert_eq!(found.0, code, "{expression}: {}", found.1);
        assert!(found.1.contains(said), "{expression}: {}", found.1);
    }
}

fn service(kind: &str, more: &Json) -> Json {
    let mut spec = json!({"type": kind, "selector": {"a": "b"}, "ports": [{"port": 80}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}, "spec": spec})
}

/// A change of the type also removes the fields that depend on it, unless the client changes them at the same time.
#[test]
fn a_service_changes_its_type() {
    let cluster = cluster(&[]);
    let names = json!({"externalName": "x.example"});
    let none = json!({});
    let of = |kind: &str| service(kind, if kind == "ExternalName" { &names } else { &none });
    for from in ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] {
        let created = ask(&cluster, &of(from), None);
        let mut stored = created.object.unwrap_or_else(|| panic!("{from}: {:?}", created.outcome));
        stored["metadata"]["resourceVersion"] = "1".into();
        for to in ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"] {
            // As a client edits what it has read.
            let mut edited = stored.clone();
            edited["spec"]["type"] = to.into();
            if to == "ExternalName" {
                edited["spec"]["externalName"] = "x.example".into();
            }
            let review = ask(&cluster, &edited, Some(&stored));
            assert_eq!(review.outcome, Outcome::Allowed, "{from} to {to}");
            let object = review.object.unwrap();
            let spec = &object["spec"];
            let has = |value: &Json| !value.is_null();
            assert_eq!(has(&spec["clusterIP"]), to != "ExternalName", "{from} to {to}: {spec}");
            assert_eq!(
                has(&spec["ports"][0]["nodePort"]),
                ["NodePort", "LoadBalancer"].contains(&to),
                "{from} to {to}: {spec}"
            );
            assert_eq!(has(&spec["allocateLoadBalancerNodePorts"]), to == "LoadBalancer", "{from} to {to}: {spec}");
        }
    }
    // A port that the client adds is its own mistake.
    let stored = ask(&cluster, &of("NodePort"), None).object.unwrap();
    let mut edited = stored.clone();
    edited["spec"]["type"] = "ClusterIP".into();
    edited["spec"]["ports"][0]["nodePort"] = 31_111.into();
    assert_eq!(answer(&ask(&cluster, &edited, Some(&stored))).0, 422);
}

#[test]
fn a_resource_has_methods_of_its_own() {
    let cluster = cluster(&[]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let request = |operation, subresource: &str, object: &Json| cluster.request(operation, subresource, object, None);
    let exec = json!({"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]});
    for (operation, subresource, expected) in [
        (Operation::Connect, "exec", ""),
        (Operation::Connect, "pods/exec", ""),
        (Operation::Create, "exec", "the API server does not allow CREATE of pods/exec"),
        (Operation::Connect, "services/exec", "PodExecOptions is sent to a subresource"),
        (Operation::Connect, "", "PodExecOptions is sent to a subresource: name it, as pods/exec"),
    ] {
        let found = request(operation, subresource, &exec);
        let said = found.as_ref().err().map_or("", String::as_str);
        assert!(
            said.contains(expected) && said.is_empty() == expected.is_empty(),
            "{operation:?} {subresource}: {said}"
        );
        assert!(found.is_err() || found.is_ok_and(|request| request.subresource == "exec"));
    }
    for (operation, subresource) in [
        (Operation::Create, "status"),
        (Operation::Delete, "status"),
        (Operation::Create, "log"),
        (Operation::Connect, "log"),
        (Operation::Connect, ""),
    ] {
        assert!(request(operation, subresource, &pod).is_err(), "{operation:?} {subresource}");
    }
    for (operation, subresource) in
        [(Operation::Update, "status"), (Operation::Delete, ""), (Operation::Update, "resize")]
    {
        assert!(request(operation, subresource, &pod).is_ok(), "{operation:?} {subresource}");
    }
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {"name": "t"}, "spec": {}});
    assert!(request(Operation::Create, "", &review).is_ok());
    assert!(request(Operation::Update, "", &review).is_err());
}

/// A namespace that is in no file has a name, which is also its label.
#[test]
fn a_selector_on_the_name_of_a_namespace_is_decided_without_it() {
    let policy = |expressions: Json| {
        [
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "v"},
                "spec": {
                    "matchConstraints": {
                        "namespaceSelector": {"matchExpressions": expressions},
                        "resourceRules": [
                            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]},
                        ],
                    },
                    "validations": [{"expression": "false"}],
                },
            }),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": "v"}, "spec": {"policyName": "v", "validationActions": ["Deny"]},
            }),
        ]
    };
    let by = |key: &str, operator: &str, value: &str| json!([{"key": key, "operator": operator, "values": [value]}]);
    let name = "kubernetes.io/metadata.name";
    for (expressions, code) in
        [(by(name, "NotIn", "kube-system"), 422), (by(name, "In", "n"), 422), (by(name, "In", "m"), 0)]
    {
        let cluster = cluster(&policy(expressions.clone()));
        assert_eq!(answer(&ask(&cluster, &config_map(&json!({})), None)).0, code, "{expressions}");
    }
    let cluster = cluster(&policy(by("team", "NotIn", "x")));
    assert!(matches!(ask(&cluster, &config_map(&json!({})), None).outcome, Outcome::NoVerdict(_)));
}

#[test]
fn a_user_is_in_the_groups_that_all_such_users_are_in() {
    let groups = |name: &str, more: &[&str]| {
        let more: Vec<_> = more.iter().map(|&one| one.to_owned()).collect();
        User::authenticated(name, &more).groups.into_iter().collect::<BTreeSet<_>>()
    };
    let set = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(groups("jane", &["dev"]), set(&["dev", "system:authenticated"]));
    assert_eq!(groups("jane", &["system:authenticated"]), set(&["system:authenticated"]));
    assert_eq!(
        groups("system:serviceaccount:n:s", &[]),
        set(&["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"])
    );
    assert_eq!(groups("system:anonymous", &[]), set(&["system:unauthenticated"]));
}

//! Exceptions that tenants ask for: for what an approved one lifts its checks, and for what it does not.

use palisade_api::{
    MAX_CONTAINERS, MAX_WORKLOADS, ToolSecurityException, ToolSecurityParamsSpec, ToolSecurityProfile,
    conditions::ExceptionReason, names::Shape,
};
use palisade_compiler::{Compiled, Exceptions, Namespace, Request, compile};
use palisade_gate::{Decision, ValidationRequest, check};
use palisade_kube_json::{
    pod,
    workload::{WORKLOADS, Workload},
};
use serde_json::{Value as Json, json};

use crate::support::ShapePolicy;

const SENTENCE: &str = "Ask ops in #tools";

fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Baseline",
            "exceptionRequests": {"checks": ["privileged", "hostPathVolumes"], "message": SENTENCE},
        },
    });
    pod::merge(&mut profile["spec"], spec);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    let compiled = compile(&profile).unwrap();
    check(compiled.clone()).unwrap();
    compiled
}

fn privileged() -> Json {
    let mut pod = pod::minimal("bad");
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod
}

/// What is asked for, and approved unless `approval` says otherwise.
fn request(scope: &Json, change: &Json) -> Request {
    let mut exception = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
        "metadata": {"name": "x", "namespace": "tool", "uid": "u", "generation": 3},
        "spec": {
            "profile": "test", "checks": ["privileged"], "scope": scope, "reason": "x",
            "expires": "2026-06-01T00:00:00Z",
        },
        "status": {"approval": {"uid": "u", "generation": 3}},
    });
    pod::merge(&mut exception, change);
    Request::from(&serde_json::from_value::<ToolSecurityException>(exception).unwrap())
}

fn named(kind: &str, name: &str) -> Json {
    json!({"kind": kind, "name": name})
}

fn params(compiled: &Compiled, requests: &[Request]) -> Json {
    let namespace = Namespace { name: "tool".to_owned(), ..Namespace::default() };
    let now = "2026-05-01T00:00:00Z".parse().unwrap();
    json!({"spec": compiled.params(&namespace, requests, now).unwrap().spec})
}

/// The policies of a profile for pods and for workloads, with the parameters of one namespace.
struct Policies([ShapePolicy; 2]);

impl Policies {
    fn new(compiled: &Compiled, requests: &[Request]) -> Self {
        let params = params(compiled, requests);
        Self(Shape::OF_PODS.map(|shape| ShapePolicy::with(compiled, shape, Some(params.clone()))))
    }

    fn decision(&self, kind: &str, object: &Json, created: &str) -> Decision {
        let mut object = object.clone();
        object["metadata"]["creationTimestamp"] = created.into();
        let judge = &self.0[usize::from(kind != "Pod")];
        judge.judge(&ValidationRequest { namespace: "tool", ..ValidationRequest::create(kind, &object) }).decision
    }

    #[track_caller]
    fn admits(&self, kind: &str, object: &Json, expected: bool) {
        let decision = self.decision(kind, object, "2026-05-31T23:59:59Z");
        assert_eq!(decision == Decision::Admit, expected, "{kind} {object}: {decision:?}");
        // And nothing after the end.
        let after = self.decision(kind, object, "2026-06-01T00:00:00Z");
        assert_ne!(after, Decision::Admit, "{kind} {object}");
    }
}

/// A pod of a controller, as Kubernetes makes it.
fn pod_of(api_version: &str, kind: &str, name: &str, labels: &Json) -> Json {
    let mut pod = privileged();
    pod["metadata"]["labels"] = labels.clone();
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": "1", "controller": true}]);
    pod
}

fn workload(kind: &str) -> &'static Workload {
    WORKLOADS.iter().find(|one| one.kind == kind).unwrap()
}

#[test]
fn an_exception_for_a_workload_lifts_checks_for_it_and_its_pods_alone() {
    let compiled = compiled(&json!({}));
    for one in WORKLOADS.iter().filter(|one| one.kind != "PodTemplate") {
        let policies = Policies::new(&compiled, &[request(&named(one.kind, "app"), &json!({}))]);
        policies.admits(one.kind, &one.around("app", &privileged()), true);
        policies.admits(one.kind, &one.around("neighbour", &privileged()), false);
        policies.admits("Pod", &pod_of(one.api_version, one.kind, "app", &json!({})), true);
        policies.admits("Pod", &pod_of(one.api_version, one.kind, "neighbour", &json!({})), false);
        // A kind of the same name that is not Kubernetes' own.
        policies.admits("Pod", &pod_of("example.org/v1", one.kind, "app", &json!({})), false);
        policies.admits("Pod", &privileged(), false);
        for other in WORKLOADS.iter().filter(|other| other.kind != one.kind) {
            policies.admits(other.kind, &other.around("app", &privileged()), false);
        }
        // What has the workload among its owners, and is not made by it.
        let mut beside = pod_of(one.api_version, one.kind, "app", &json!({}));
        beside["metadata"]["ownerReferences"][0]["controller"] = json!(false);
        policies.admits("Pod", &beside, false);
        // Another check of the same object.
        let mut both = privileged();
        pod::set(&mut both, &["hostPID"], json!(true));
        policies.admits(one.kind, &one.around("app", &both), false);
    }
}

#[test]
fn pods_of_deployments_and_cron_jobs_are_known_by_the_names_of_their_controllers() {
    let compiled = compiled(&json!({}));
    let hash = json!({"pod-template-hash": "5d4f8c7b9"});
    let policies = Policies::new(&compiled, &[request(&named("Deployment", "app"), &json!({}))]);
    let of = |name: &str, labels: &Json| pod_of("apps/v1", "ReplicaSet", name, labels);
    policies.admits("Pod", &of("app-5d4f8c7b9", &hash), true);
    policies.admits("Pod", &of("app-5d4f8c7b9", &json!({})), false);
    policies.admits("Pod", &of("app-5d4f8c7b9", &json!({"pod-template-hash": ""})), false);
    policies.admits("Pod", &of("app-2-5d4f8c7b9", &hash), false);
    policies.admits("Pod", &of("app5d4f8c7b9", &hash), false);
    policies.admits("Pod", &of("app", &hash), false);
    let replica_set = workload("ReplicaSet");
    let mut made = replica_set.around("app-5d4f8c7b9", &privileged());
    policies.admits("ReplicaSet", &made, false);
    made["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "app", "uid": "1", "controller": true}]);
    policies.admits("ReplicaSet", &made, true);

    let policies = Policies::new(&compiled, &[request(&named("CronJob", "app"), &json!({}))]);
    let of = |name: &str| pod_of("batch/v1", "Job", name, &json!({}));
    policies.admits("Pod", &of("app-29384756"), true);
    for other in ["app", "app-2", "app-b-29384756", "app-293847561", "29384756", "-29384756"] {
        policies.admits("Pod", &of(other), false);
    }
    // A list of owners that is too long to be looked at.
    let mut many = of("app-29384756");
    let owner = many["metadata"]["ownerReferences"][0].clone();
    many["metadata"]["ownerReferences"] = vec![owner; 17].into();
    policies.admits("Pod", &many, false);

    let policies = Policies::new(&compiled, &[request(&named("Pod", "bad"), &json!({}))]);
    policies.admits("Pod", &privileged(), true);
    let mut other = privileged();
    other["metadata"]["name"] = "other".into();
    policies.admits("Pod", &other, false);
}

/// A pod with these containers, each privileged: name and image.
fn containers(all: &[(&str, &str)]) -> Json {
    let mut pod = privileged();
    let container = pod["spec"]["containers"][0].clone();
    let of = |(name, image): &(&str, &str)| {
        let mut container = container.clone();
        container["name"] = json!(name);
        container["image"] = json!(image);
        container
    };
    pod["spec"]["containers"] = all.iter().map(of).collect();
    pod
}

#[test]
fn an_exception_for_containers_lifts_checks_for_them_alone() {
    let own = json!({"customChecks": [
        {"id": "named", "target": "Containers", "expression": "container.name != 'main'", "message": "not main"},
    ]});
    let mut all = own.clone();
    all["exceptionRequests"] = json!({"checks": ["privileged", "hostPathVolumes", "seLinuxOptions", "named"]});
    let compiled = compiled(&all);
    let scope = |change: &Json| {
        let mut scope = json!({"kind": "Namespace"});
        pod::merge(&mut scope, change);
        request(&scope, &json!({"spec": {"checks": ["privileged", "seLinuxOptions", "named"]}}))
    };
    let deployment = workload("Deployment");
    let both = |policies: &Policies, pod: &Json, expected: bool| {
        policies.admits("Pod", pod, expected);
        policies.admits("Deployment", &deployment.around("app", pod), expected);
    };
    let main = ("main", "registry.example/drivers/gpu:1");

    let policies = Policies::new(&compiled, &[scope(&json!({"container": "main"}))]);
    both(&policies, &containers(&[main]), true);
    both(&policies, &containers(&[("side", main.1)]), false);
    let decision = policies.decision("Pod", &containers(&[main, ("side", main.1)]), "2026-05-01T00:00:00Z");
    let Decision::Deny { violations, .. } = decision else { panic!("{decision:?}") };
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(violations[0].message.contains("\"side\""), "{violations:?}");
    // A violation of the pod as a whole stays, also beside one of the container.
    let mut labelled = containers(&[main]);
    pod::set_container(&mut labelled, &["securityContext", "seLinuxOptions", "type"], json!("spc_t"));
    both(&policies, &labelled, true);
    pod::set(&mut labelled, &["securityContext", "seLinuxOptions", "type"], json!("spc_t"));
    both(&policies, &labelled, false);

    let policies = Policies::new(&compiled, &[scope(&json!({"imagePrefix": "registry.example/drivers/"}))]);
    both(&policies, &containers(&[main, ("side", "registry.example/drivers/net@sha256:0")]), true);
    for other in
        ["registry.example/drivers-2/gpu:1", "registry.example/drivers", "other.example/registry.example/drivers/x"]
    {
        both(&policies, &containers(&[main, ("side", other)]), false);
    }
    let narrow = json!({"container": "main", "imagePrefix": "registry.example/drivers/gpu:"});
    let policies = Policies::new(&compiled, &[scope(&narrow)]);
    both(&policies, &containers(&[main]), true);
    both(&policies, &containers(&[("main", "registry.example/drivers/net:1")]), false);
    both(&policies, &containers(&[("side", main.1)]), false);

    let of_app = json!({"kind": "Deployment", "name": "app", "container": "main"});
    let policies = Policies::new(&compiled, &[scope(&of_app)]);
    policies.admits("Deployment", &deployment.around("app", &containers(&[main])), true);
    policies.admits("Deployment", &deployment.around("app", &containers(&[("side", main.1)])), false);
    policies.admits("Deployment", &deployment.around("neighbour", &containers(&[main])), false);
    policies.admits("Pod", &containers(&[main]), false);

    // A check that does not look at containers.
    let of_volumes =
        request(&json!({"kind": "Namespace", "container": "main"}), &json!({"spec": {"checks": ["hostPathVolumes"]}}));
    let (reason, why) = compiled.exceptions.standing(&of_volumes, "2026-05-01T00:00:00Z".parse().unwrap());
    assert!(reason == ExceptionReason::NotCovered && why.contains("hostPathVolumes"), "{reason} {why}");
}

#[test]
fn only_what_is_approved_and_can_be_asked_for_has_an_effect() {
    let compiled = compiled(&json!({}));
    let everywhere = json!({"kind": "Namespace"});
    let now = "2026-05-01T00:00:00Z".parse().unwrap();
    for (change, expected) in [
        (json!({}), ExceptionReason::InForce),
        (json!({"status": {"approval": {"generation": 2}}}), ExceptionReason::ApprovalOutdated),
        (json!({"status": {"approval": {"uid": "v"}}}), ExceptionReason::ApprovalOutdated),
        (json!({"status": null}), ExceptionReason::AwaitingApproval),
        (json!({"metadata": {"deletionTimestamp": "2026-04-01T00:00:00Z"}}), ExceptionReason::ApprovalOutdated),
        (json!({"spec": {"expires": "2026-05-01T00:00:00Z"}}), ExceptionReason::Expired),
        (json!({"spec": {"checks": ["privileged", "hostNamespaces"]}}), ExceptionReason::NotCovered),
        (json!({"spec": {"checks": ["no-such-check"]}}), ExceptionReason::NotCovered),
    ] {
        let request = request(&everywhere, &change);
        assert_eq!(compiled.exceptions.standing(&request, now).0, expected, "{change}");
        let policies = Policies::new(&compiled, &[request]);
        let decision = policies.decision("Pod", &privileged(), "2026-05-01T00:00:00Z");
        assert_eq!(decision == Decision::Admit, expected == ExceptionReason::InForce, "{change}: {decision:?}");
    }
    let of_another = request(&everywhere, &json!({"spec": {"profile": "another"}}));
    Policies::new(&compiled, &[of_another]).admits("Pod", &privileged(), false);
}

#[test]
fn the_latest_end_counts_and_the_profile_may_except_more() {
    let compiled = compiled(&json!({"exceptions": [
        {"namespaces": ["tool"], "checks": ["privileged"], "reason": "x", "expires": "2026-05-20T00:00:00Z"},
    ]}));
    let until = |end: &str| json!({"spec": {"expires": end}});
    let everywhere = json!({"kind": "Namespace"});
    let params = params(
        &compiled,
        &[
            request(&everywhere, &until("2026-05-10T00:00:00Z")),
            request(&named("Deployment", "app"), &until("2026-05-11T00:00:00Z")),
            request(&named("Deployment", "app"), &until("2026-05-12T00:00:00Z")),
        ],
    );
    assert_eq!(params["spec"]["exceptions"], json!({"privileged": "2026-05-20T00:00:00Z"}));
    assert_eq!(params["spec"]["workloadExceptions"], json!({"Deployment/app": {"privileged": "2026-05-12T00:00:00Z"}}));
}

#[test]
fn a_namespace_has_no_more_workloads_with_exceptions_than_its_parameters_may() {
    let compiled = compiled(&json!({}));
    let requests: Vec<_> =
        (0..MAX_WORKLOADS + 9).map(|n| request(&named("Job", &format!("job-{n:04}")), &json!({}))).collect();
    let params = params(&compiled, &requests);
    assert_eq!(params["spec"]["workloadExceptions"].as_object().unwrap().len(), MAX_WORKLOADS);
    let scope = |n: usize| json!({"kind": "Namespace", "container": format!("container-{n}")});
    let requests: Vec<_> = (0..MAX_CONTAINERS + 9).map(|n| request(&scope(n), &json!({}))).collect();
    let found = self::params(&compiled, &requests);
    assert_eq!(found["spec"]["containerExceptions"].as_array().unwrap().len(), MAX_CONTAINERS);
    // Those that are left out are known.
    let spec = serde_json::from_value(found["spec"].clone()).unwrap();
    assert_eq!(requests.iter().filter(|one| Exceptions::has_room(one, &spec)).count(), MAX_CONTAINERS);
}

#[test]
fn parameters_have_an_exception_if_they_lift_all_of_it_until_its_end() {
    let compiled = compiled(&json!({}));
    let ends = |end: &str, checks: &Json| json!({"spec": {"expires": end, "checks": checks}});
    let (one, both) = (json!(["privileged"]), json!(["privileged", "hostPathVolumes"]));
    let (early, late) = ("2026-05-10T00:00:00Z", "2026-05-11T00:00:00Z");
    for (scope, of_containers) in [
        (json!({"kind": "Namespace"}), false),
        (named("Deployment", "app"), false),
        (json!({"kind": "Namespace", "container": "main"}), true),
    ] {
        let written = |request: Request| {
            serde_json::from_value::<ToolSecurityParamsSpec>(params(&compiled, &[request])["spec"].clone()).unwrap()
        };
        let spec = written(request(&scope, &ends(late, &one)));
        assert!(Exceptions::has(&request(&scope, &ends(late, &one)), &spec), "{scope}");
        assert!(!Exceptions::has(&request(&scope, &ends(late, &both)), &spec), "{scope}");
        assert!(!Exceptions::has(&request(&named("Job", "app"), &ends(late, &one)), &spec), "{scope}");
        // A longer one for the same has it, but for containers, which are entries of their own.
        assert_eq!(Exceptions::has(&request(&scope, &ends(early, &one)), &spec), !of_containers, "{scope}");
        let spec = written(request(&scope, &ends(early, &one)));
        assert!(!Exceptions::has(&request(&scope, &ends(late, &one)), &spec), "{scope}");
    }
}

#[test]
fn a_denial_says_how_to_ask_for_what_can_be_asked_for() {
    let compiled = compiled(&json!({}));
    let policies = Policies::new(&compiled, &[]);
    let said = |object: &Json| match policies.decision("Pod", object, "2026-05-01T00:00:00Z") {
        Decision::Deny { message, .. } => message,
        Decision::Admit => panic!("admitted"),
    };
    assert!(said(&privileged()).ends_with(&format!(". {SENTENCE}")), "{}", said(&privileged()));
    let mut host = pod::minimal("host");
    pod::set(&mut host, &["hostPID"], json!(true));
    assert!(!said(&host).contains(SENTENCE), "{}", said(&host));
    // A name cannot pretend to be a check.
    pod::set_container(&mut host, &["name"], json!("[privileged] "));
    assert!(!said(&host).contains(SENTENCE), "{}", said(&host));
    // A long message is cut, and this is not.
    for letter in ["x", "ä"] {
        let mut long = privileged();
        let container = long["spec"]["containers"][0].clone();
        let containers = (0..100).map(|n| {
            let mut container = container.clone();
            container["name"] = format!("{}{n}", letter.repeat(60)).into();
            container
        });
        long["spec"]["containers"] = containers.collect();
        let message = said(&long);
        assert!(message.len() <= 5120, "{} bytes", message.len());
        assert!(message.ends_with(&format!(" ... (truncated). {SENTENCE}")), "{message}");
    }
}

#[test]
fn what_cannot_be_asked_for_is_reported_at_its_place() {
    let profile = |requests: Json| -> ToolSecurityProfile {
        serde_json::from_value(json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
            "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "exceptionRequests": requests},
        }))
        .unwrap()
    };
    for (requests, path) in [
        (json!({"checks": ["privileged", "priviledged"]}), "spec.exceptionRequests.checks[1]"),
        (json!({"checks": ["privileged"], "message": "a\nb"}), "spec.exceptionRequests.message"),
        (json!({"checks": ["privileged"], "message": "x".repeat(257)}), "spec.exceptionRequests.message"),
    ] {
        let found = compile(&profile(requests)).unwrap_err();
        assert_eq!(found.iter().map(|one| one.location.to_string()).collect::<Vec<_>>(), [path]);
    }
}

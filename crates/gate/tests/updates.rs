//! Updates: each one that changes what a check reads to what it forbids is denied, and one that changes nothing that a
//! check reads passes, whatever the object violates.
//!
//! The API server lets an update of a pod change few fields of its spec and nearly all metadata, and of a workload nearly
//! everything. A policy judges an update in the way of its binding: with parameters or without.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use palisade_api::{ToolSecurityException, ToolSecurityProfile, catalogue, names::Shape};
use palisade_checks::{Field, fixture::Fixture};
use palisade_compiler::{Compiled, Namespace, Request, compile};
use palisade_gate::{Decision, Operation, ValidationRequest, Validator, Violation, check};
use palisade_objects::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

const CREATED: &str = "2026-05-01T00:00:00Z";
const TENANT: &str = "tenant";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged"},
    });
    pod::merge(&mut profile["spec"], spec);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    compile(&profile).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"))
}

/// The policies of a profile, as they are bound.
struct Judge {
    policies: [Validator; 2],
    params: Option<Json>,
    /// Whether updates of pods have parameters.
    with: bool,
}

impl Judge {
    fn new(compiled: &Compiled, requests: &[Request]) -> Self {
        let policies = Shape::ALL.map(|shape| Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap());
        let params = compiled.probes.params.as_ref().map(|spec| json!({"spec": spec}));
        let namespace = Namespace { name: TENANT.to_owned(), ..Namespace::default() };
        let asked = (!requests.is_empty()).then(|| {
            let params = compiled.params(&namespace, requests, CREATED.parse().unwrap()).unwrap();
            json!({"spec": params.spec})
        });
        let updates = compiled.bundle.pods.updates.as_ref();
        let with = updates.is_none_or(|updates| updates.spec.param_ref.is_some());
        Self { policies, params: asked.or(params), with }
    }

    fn decision(&self, object: &Json, old: &Json, user: &str) -> Decision {
        let kind = object["kind"].as_str().unwrap();
        let updated = !old.is_null();
        let [object, old] = [object, old].map(|one| {
            let mut one = one.clone();
            if !one.is_null() {
                one["metadata"]["creationTimestamp"] = CREATED.into();
            }
            one
        });
        let params = self.params.as_ref().filter(|_| self.with || !updated || kind != "Pod");
        let operation = if updated { Operation::Update } else { Operation::Create };
        let request = ValidationRequest { namespace: TENANT, user, operation, params, ..ValidationRequest::create(kind, &object) };
        let request = ValidationRequest { old_object: &old, ..request };
        self.policies[usize::from(kind != "Pod")].evaluate(&request).unwrap_or_else(|error| panic!("{error}\n{object}"))
    }

    fn creates(&self, object: &Json) -> bool {
        self.decision(object, &Json::Null, "alice") == Decision::Admit
    }

    #[track_caller]
    fn updates(&self, old: &Json, new: &Json, user: &str, admitted: bool, what: &str) {
        let decision = self.decision(new, old, user);
        assert_eq!(decision == Decision::Admit, admitted, "{what}: {decision:?}\nold: {old}\nnew: {new}");
    }
}

/// Fields of a pod's spec that updates can change: `palisade_checks` says so to the policies, and this again.
const OF_SPEC: [&str; 6] = [
    "activeDeadlineSeconds",
    "affinity",
    "nodeSelector",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
];

/// What an update can make of a pod to be like another one: the fields of its spec, the images, and the metadata.
fn updates_towards(old: &Json, other: &Json) -> Vec<Json> {
    let with = |pointer: &str| {
        let value = other.pointer(pointer).filter(|value| !value.is_null())?;
        let mut new = old.clone();
        let (parent, field) = pointer.rsplit_once('/')?;
        new.pointer_mut(parent)?[field] = value.clone();
        Some(new)
    };
    let mut places: Vec<_> = OF_SPEC.map(|field| format!("/spec/{field}")).into();
    for list in ["containers", "initContainers"] {
        places.extend((0..3).map(|index| format!("/spec/{list}/{index}/image")));
    }
    places.extend(["annotations", "labels"].map(|field| format!("/metadata/{field}")));
    places.iter().filter_map(|place| with(place)).filter(|new| new != old).collect()
}

/// Metadata that no check of the catalogue reads.
fn neutral(object: &Json) -> Vec<Json> {
    let with = |field: &str, key: &str, value: Json| {
        let mut new = object.clone();
        new["metadata"][field][key] = value;
        new
    };
    let mut finalized = object.clone();
    finalized["metadata"]["finalizers"] = json!(["example.com/a"]);
    vec![with("labels", "neutral", json!("x")), with("annotations", "neutral", json!("x")), finalized]
}

/// For each fixture of the catalogue that violates its check: the compliant pod is changed towards it.
#[test]
fn an_update_to_what_a_check_of_the_catalogue_forbids_is_denied() {
    let (mut denied, mut admitted) = (std::collections::BTreeMap::<&str, usize>::new(), 0);
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        for fixture in fixtures.iter().filter(|fixture| !fixture.violations.is_empty() && fixture.invalid.is_none()) {
            let compiled = compiled(&fixture.spec(&json!({"a": "b"})));
            let judge = Judge::new(&compiled, &[]);
            let mut old = compiled.probes.compliant.pod.clone();
            // Not what makes it a probe.
            old["metadata"]["labels"] = json!({});
            let bad = fixture.pod();
            for new in updates_towards(&old, &bad) {
                let complies = judge.creates(&new);
                judge.updates(&old, &new, "alice", complies, &format!("{}: {}", check.id, fixture.name));
                *denied.entry(check.id).or_default() += usize::from(!complies);
            }
            let mut workloads: Vec<_> = WORKLOADS.iter().map(|workload| workload.around("x", &bad)).collect();
            for (workload, new) in WORKLOADS.iter().zip(&workloads).filter(|(_, new)| !judge.creates(new)) {
                judge.updates(&workload.around("x", &old), new, "alice", false, &format!("{}: {}", check.id, fixture.name));
            }
            // What violates already: the fixture.
            workloads.push(bad);
            for object in &workloads {
                for new in neutral(object) {
                    judge.updates(object, &new, "alice", true, "neutral metadata");
                    judge.updates(&new, object, "alice", true, "neutral metadata removed");
                    admitted += 2;
                }
            }
        }
    }
    assert!(admitted > 5_000, "{admitted}");
    for (check, field) in [("imageRegistries", 0), ("tolerations", 0), ("nodeSelector", 0), ("appArmorProfile", 0), ("seccompProfile", 0)] {
        assert!(denied.get(check).is_some_and(|count| *count > field), "{check}: {denied:?}");
    }
}

/// The text of a check that reads annotations says so in its fields, and no rule reads other metadata.
#[test]
fn checks_of_the_catalogue_read_no_metadata_but_their_annotations() {
    for check in catalogue::ALL {
        let declared = check.fields.iter().any(|field| matches!(field, Field::Annotation(_)));
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        let mut reads = false;
        for fixture in fixtures {
            let compiled = compiled(&fixture.spec(&json!({"a": "b"})));
            let spec = compiled.bundle.pods.policy.spec.unwrap();
            let policy_itself = ["exempt", "unchanged", "sameAnnotations", "annotations", "spec", "withinBounds", "overBounds"];
            for variable in spec.variables.unwrap().iter().filter(|one| !policy_itself.contains(&one.name.as_str())) {
                assert!(!variable.expression.contains("object."), "{}", variable.expression);
                reads |= variable.expression.contains("variables.annotations");
            }
        }
        assert_eq!(reads, declared, "{}", check.id);
    }
}

/// A custom check, what complies with it, what an update makes of that, and what the update leaves alone.
struct Case {
    expression: &'static str,
    /// JSON pointers and values: what a complying object has, what violates it, and what an update may change.
    complies: &'static [(&'static str, &'static str)],
    violates: &'static [(&'static str, &'static str)],
    neutral: &'static [(&'static str, &'static str)],
}

const LABEL: (&str, &str) = ("/metadata/labels/debug", "\"on\"");
const OTHER_LABEL: (&str, &str) = ("/metadata/labels/other", "\"x\"");
const OTHER_ANNOTATION: (&str, &str) = ("/metadata/annotations/other", "\"x\"");

fn metadata_cases() -> Vec<Case> {
    let labels = |expression, neutral| Case { expression, complies: &[], violates: &[LABEL], neutral };
    let one = |expression| labels(expression, &[OTHER_LABEL, OTHER_ANNOTATION]);
    let all = |expression| labels(expression, &[OTHER_ANNOTATION]);
    vec![
        one("object.metadata.?labels[?'debug'].orValue('') == ''"),
        one("object.metadata.?labels.orValue({})[?'debug'].orValue('') == ''"),
        one("!has(object.metadata.labels) || !('debug' in object.metadata.labels)"),
        one("!has(object.metadata.labels) || !has(object.metadata.labels.debug)"),
        one("dyn(object).metadata.?labels[?'debug'].optMap(value, value == '').orValue(true)"),
        one("variables.containers.all(object, object.name != '') && object.metadata.?labels[?'debug'] == optional.none()"),
        all("object.metadata.?labels.orValue({}).all(key, key != 'debug')"),
        all("['debug'].all(key, !(key in object.metadata.?labels.orValue({})))"),
        all("['debug'].all(key, object.metadata.?labels[?key].orValue('') == '')"),
        labels("[object].all(o, o.metadata.?labels[?'debug'].orValue('') == '')", &[]),
        labels("[object.metadata].all(o, o.?labels[?'debug'].orValue('') == '')", &[]),
        labels("['metadata'].all(field, dyn(object)[field].?labels[?'debug'].orValue('') == '')", &[]),
        Case {
            expression: "object.metadata.?annotations[?'team'].orValue('') == 'a'",
            complies: &[("/metadata/annotations/team", "\"a\"")],
            violates: &[("/metadata/annotations/team", "\"b\""), ("/metadata/annotations/team", "null"), ("/metadata/annotations", "null")],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "object.metadata.?ownerReferences.orValue([]).size() == 0",
            complies: &[],
            violates: &[("/metadata/ownerReferences", r#"[{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]"#)],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "object.metadata.?generateName.orValue('') != 'bad-'",
            complies: &[],
            violates: &[("/metadata/generateName", "\"bad-\"")],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "object.metadata.?finalizers.orValue([]).all(one, one != 'example.com/bad')",
            complies: &[("/metadata/finalizers", r#"["example.com/a", "example.com/b"]"#)],
            violates: &[("/metadata/finalizers", r#"["example.com/a", "example.com/bad"]"#), ("/metadata/finalizers", r#"["example.com/bad"]"#)],
            neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
        },
        Case {
            expression: "request.operation != 'UPDATE' || object.metadata.?labels[?'tier'] == oldObject.metadata.?labels[?'tier']",
            complies: &[("/metadata/labels/tier", "\"low\"")],
            violates: &[("/metadata/labels/tier", "\"high\"")],
            neutral: &[],
        },
        Case {
            expression: "request.operation == 'CREATE' || request.userInfo.username != 'alice'",
            complies: &[],
            violates: &[OTHER_LABEL, OTHER_ANNOTATION],
            neutral: &[],
        },
    ]
}

/// Of pods alone, and of their templates in workloads.
const ANNOTATION: Case = Case {
    expression: "variables.annotations[?'team'].orValue('') == 'a'",
    complies: &[("/metadata/annotations/team", "\"a\"")],
    violates: &[("/metadata/annotations/team", "\"b\""), ("/metadata/annotations", "null")],
    neutral: &[OTHER_LABEL, OTHER_ANNOTATION],
};

fn set(object: &mut Json, changes: &[(&str, &str)]) {
    for (pointer, value) in changes {
        let value: Json = serde_json::from_str(value).unwrap();
        let mut keys: Vec<_> = pointer.split('/').skip(1).collect();
        let last = keys.pop().unwrap();
        let mut parent = object.as_object_mut().unwrap();
        for key in keys {
            parent = parent.entry(key).or_insert_with(|| json!({})).as_object_mut().unwrap();
        }
        if value.is_null() {
            parent.remove(last);
        } else {
            parent.insert(last.to_owned(), value);
        }
    }
}

/// Beside the custom check stands one of the catalogue, which an object that is older than the profile violates.
fn with_custom(case: &Case) -> Judge {
    let compiled = compiled(&json!({
        "privileges": {"privileged": false},
        "customChecks": [{"id": "own", "expression": case.expression, "message": "no"}],
    }));
    check(compiled.clone()).unwrap_or_else(|rejected| panic!("{}: {rejected}", case.expression));
    Judge::new(&compiled, &[])
}

fn tries(judge: &Judge, case: &Case, object: &Json) {
    let mut old = object.clone();
    set(&mut old, case.complies);
    let what = case.expression;
    assert!(judge.creates(&old), "{what} {old}");
    let mut older = old.clone();
    let template = WORKLOADS.iter().find(|one| one.kind == old["kind"]).map_or("", |one| one.template);
    older.pointer_mut(&format!("{template}/spec/containers/0")).unwrap()["securityContext"] = json!({"privileged": true});
    assert!(!judge.creates(&older), "{what} {older}");
    for object in [&old, &older] {
        for change in case.violates {
            let mut new = object.clone();
            set(&mut new, &[*change]);
            judge.updates(object, &new, "alice", false, what);
        }
        for change in case.neutral {
            let mut new = object.clone();
            set(&mut new, &[*change]);
            judge.updates(object, &new, "alice", true, what);
            judge.updates(&new, object, "alice", true, what);
        }
        // Whatever checks read, finalizers can be removed, also those of an object that is being deleted.
        for deleted in [false, true] {
            let mut held = object.clone();
            set(&mut held, &[("/metadata/finalizers", r#"["example.com/a", "example.com/b"]"#)]);
            if deleted {
                held["metadata"]["deletionTimestamp"] = CREATED.into();
            }
            let mut fewer = held.clone();
            set(&mut fewer, &[("/metadata/finalizers", r#"["example.com/b"]"#)]);
            let mut released = fewer.clone();
            set(&mut released, &[("/metadata/finalizers", "null"), ("/metadata/resourceVersion", "\"7\"")]);
            released["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Update"}]);
            judge.updates(&held, &fewer, "alice", true, what);
            judge.updates(&fewer, &released, "alice", true, what);
        }
    }
}

#[test]
fn an_update_to_what_a_custom_check_of_metadata_forbids_is_denied() {
    let pod = pod::minimal("x");
    for case in metadata_cases() {
        let judge = with_custom(&case);
        tries(&judge, &case, &pod);
        for workload in &WORKLOADS {
            tries(&judge, &case, &workload.around("x", &pod));
        }
    }
    let judge = with_custom(&ANNOTATION);
    tries(&judge, &ANNOTATION, &pod);
    for workload in &WORKLOADS {
        let mut annotated = pod.clone();
        set(&mut annotated, ANNOTATION.complies);
        let old = workload.around("x", &annotated);
        judge.updates(&old, &workload.around("x", &pod), "alice", false, workload.kind);
        for new in neutral(&old) {
            judge.updates(&old, &new, "alice", true, workload.kind);
        }
    }
}

#[test]
fn an_update_to_what_a_custom_check_of_a_workload_forbids_is_denied() {
    let of = |kind: &str| WORKLOADS.iter().find(|one| one.kind == kind).unwrap().around("x", &pod::minimal("x"));
    let cases = [
        (
            "Deployment",
            Case {
                expression: "request.kind.kind != 'Deployment' || dyn(object).spec.?replicas.orValue(1) <= 3",
                complies: &[("/spec/replicas", "3")],
                violates: &[("/spec/replicas", "4")],
                neutral: &[("/spec/paused", "true"), ("/spec/replicas", "2"), OTHER_LABEL],
            },
        ),
        (
            "Deployment",
            Case {
                expression: "request.kind.kind != 'Deployment' || dyn(object)['spec'].?strategy.?type.orValue('') != 'Recreate'",
                complies: &[],
                violates: &[("/spec/strategy", r#"{"type": "Recreate"}"#)],
                neutral: &[("/spec/replicas", "2")],
            },
        ),
        (
            "Deployment",
            Case {
                expression: "[dyn(object)].all(o, !has(o.spec) || o.spec.?replicas.orValue(1) <= 3)",
                complies: &[],
                violates: &[("/spec/replicas", "4")],
                neutral: &[],
            },
        ),
        (
            "CronJob",
            Case {
                expression: "request.kind.kind != 'CronJob' || !dyn(object).spec.schedule.startsWith('*')",
                complies: &[],
                violates: &[("/spec/schedule", "\"* * * * *\"")],
                neutral: &[("/spec/suspend", "true"), ("/spec/jobTemplate/metadata", r#"{"labels": {"a": "b"}}"#)],
            },
        ),
        (
            "CronJob",
            Case {
                expression: "request.kind.kind != 'CronJob' || !has(dyn(object).spec.jobTemplate.metadata)",
                complies: &[],
                violates: &[("/spec/jobTemplate/metadata", r#"{"labels": {"a": "b"}}"#)],
                neutral: &[("/spec/suspend", "true")],
            },
        ),
    ];
    for (kind, case) in cases {
        tries(&with_custom(&case), &case, &of(kind));
    }
}

/// Two checks of different labels: each is made where its own label changes, and neither for what it found before.
#[test]
fn a_check_is_made_only_where_what_it_reads_changes() {
    let own = |id: &str| json!({"id": id, "expression": format!("object.metadata.?labels[?'{id}'].orValue('') == ''"), "message": "no"});
    let compiled = compiled(&json!({
        "baseline": "Baseline",
        "customChecks": [own("a"), own("b"), {"id": "c", "expression": "!has(variables.spec.hostname)", "message": "no"}],
    }));
    check(compiled.clone()).unwrap();
    let judge = Judge::new(&compiled, &[]);
    let mut old = pod::minimal("x");
    set(&mut old, &[("/spec/hostname", "\"h\""), ("/spec/hostNetwork", "true"), ("/metadata/labels/a", "\"x\"")]);
    let found = |changes: &[(&str, &str)]| -> Vec<String> {
        let mut new = old.clone();
        set(&mut new, changes);
        match judge.decision(&new, &old, "alice") {
            Decision::Admit => vec![],
            Decision::Deny { violations, .. } => violations.into_iter().map(|Violation { check, .. }| check).collect(),
        }
    };
    assert_eq!(found(&[OTHER_LABEL, OTHER_ANNOTATION]), [""; 0]);
    assert_eq!(found(&[("/metadata/labels/b", "\"x\"")]), ["b"]);
    assert_eq!(found(&[("/metadata/labels/a", "\"y\"")]), ["a"]);
    assert_eq!(found(&[("/metadata/labels/a", "null")]), [""; 0]);
    let annotation = "/metadata/annotations/container.apparmor.security.beta.kubernetes.io~main";
    let unconfined = [(annotation, "\"unconfined\"")];
    let mut new = old.clone();
    set(&mut new, &unconfined);
    let annotations = new["metadata"]["annotations"].as_object_mut().unwrap();
    let value = annotations.values().next().unwrap().clone();
    annotations.clear();
    annotations.insert("container.apparmor.security.beta.kubernetes.io/main".to_owned(), value);
    let Decision::Deny { violations, .. } = judge.decision(&new, &old, "alice") else { panic!("admitted") };
    let checks: Vec<_> = violations.iter().map(|one| one.check.as_str()).collect();
    assert!(checks.contains(&"appArmorProfile") && !checks.contains(&"a"), "{checks:?}");
    // The spec is judged as a whole where it changes, and then the rest, too.
    let all = found(&[("/spec/containers", r#"[{"name": "main", "image": "other"}]"#)]);
    assert!(["a", "c", "hostNamespaces"].iter().all(|id| all.iter().any(|one| one == id)), "{all:?}");
}

fn asked(checks: &[&str], scope: &Json) -> Request {
    let exception = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
        "metadata": {"name": "x", "namespace": TENANT, "uid": "u", "generation": 3},
        "spec": {"profile": "test", "checks": checks, "scope": scope, "reason": "x", "expires": "2026-06-01T00:00:00Z"},
        "status": {"approval": {"uid": "u", "generation": 3}},
    });
    Request::from(&serde_json::from_value::<ToolSecurityException>(exception).unwrap())
}

fn privileged(image: &str) -> Json {
    let mut pod = pod::minimal("x");
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod::set_container(&mut pod, &["image"], json!(image));
    pod
}

#[test]
fn an_exception_for_an_image_is_for_no_other_image_of_an_update() {
    for registries in [json!({}), json!({"allowedRegistries": ["evil.example", "registry.example"]})] {
        for ids in [&["privileged"][..], &["privileged", "own"]] {
            let compiled = compiled(&json!({
                "baseline": "Baseline", "images": registries, "exceptionRequests": {"checks": ids},
                "customChecks": [{
                    "id": "own", "target": "Containers", "message": "no",
                    "expression": "!container.?securityContext.?privileged.orValue(false)",
                }][..usize::from(ids.len() > 1)].to_vec(),
            }));
            check(compiled.clone()).unwrap();
            let scope = json!({"kind": "Namespace", "imagePrefix": "registry.example/drivers/"});
            let judge = Judge::new(&compiled, &[asked(ids, &scope)]);
            let [approved, newer, evil] =
                ["registry.example/drivers/x:1", "registry.example/drivers/x:2", "evil.example/rootkit:1"].map(privileged);
            assert!(judge.creates(&approved) && !judge.creates(&evil));
            judge.updates(&approved, &newer, "alice", true, "another approved image");
            judge.updates(&approved, &evil, "alice", false, "an image that is not approved");
            let mut labelled = approved.clone();
            set(&mut labelled, &[OTHER_LABEL]);
            judge.updates(&approved, &labelled, "alice", true, "a label");
            let mut plain = approved.clone();
            pod::set_container(&mut plain, &["securityContext", "privileged"], json!(false));
            let mut other = plain.clone();
            pod::set_container(&mut other, &["image"], json!("evil.example/x"));
            judge.updates(&plain, &other, "alice", true, "a container that needs no exception");
        }
    }
}

#[test]
fn an_exception_for_a_workload_ends_with_what_makes_the_object_a_part_of_it() {
    let compiled = compiled(&json!({"baseline": "Baseline", "exceptionRequests": {"checks": ["privileged"]}}));
    let judge = Judge::new(&compiled, &[asked(&["privileged"], &json!({"kind": "Deployment", "name": "app"}))]);
    let owned = |object: &mut Json, kind: &str, name: &str| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true}]);
        object["metadata"]["ownerReferences"] = owner;
    };
    let mut pod = privileged("a");
    owned(&mut pod, "ReplicaSet", "app-abc");
    set(&mut pod, &[("/metadata/labels/pod-template-hash", "\"abc\"")]);
    let mut set_of = WORKLOADS[1].around("app-abc", &privileged("a"));
    owned(&mut set_of, "Deployment", "app");
    for object in [&pod, &set_of] {
        assert!(judge.creates(object));
        let mut freed = object.clone();
        set(&mut freed, &[("/metadata/ownerReferences", "null")]);
        judge.updates(object, &freed, "alice", false, "no owner");
        // Kubernetes releases what the tenant may not release, or a finalizer of the owner would stay.
        judge.updates(object, &freed, COLLECTOR, true, "no owner");
        let mut other = object.clone();
        owned(&mut other, "ReplicaSet", "other");
        judge.updates(object, &other, "alice", false, "another owner");
        let mut labelled = object.clone();
        set(&mut labelled, &[OTHER_LABEL, OTHER_ANNOTATION]);
        judge.updates(object, &labelled, "alice", true, "a label");
    }
    let mut relabelled = pod.clone();
    set(&mut relabelled, &[("/metadata/labels/pod-template-hash", "\"x\"")]);
    judge.updates(&pod, &relabelled, "alice", false, "another hash");
}

/// A profile whose checks read the spec alone says so in one comparison.
#[test]
fn what_only_reads_the_spec_compares_the_spec_alone() {
    let text = |spec: &Json, shape| {
        let policy = compiled(spec).bundle.pair(shape).unwrap().policy.clone();
        let variables = policy.spec.unwrap().variables.unwrap();
        assert!(variables.iter().all(|one| one.name != "unchanged"), "{spec}");
        variables.into_iter().find(|one| one.name == "exempt").unwrap().expression
    };
    for spec in [
        json!({"privileges": {"privileged": false}}),
        json!({"customChecks": [
            {"id": "a", "expression": "variables.spec.?hostname.orValue('') == ''", "message": "no"},
            {"id": "b", "target": "Containers", "expression": "container.name != object.metadata.name", "message": "no"},
            {"id": "c", "target": "Volumes", "expression": "volume.name != request.namespace",
             "messageExpression": "volume.name + namespaceObject.metadata.name"},
            {"id": "d", "expression": "variables.containers.all(object, object.name != 'metadata')", "message": "no"},
        ]}),
    ] {
        let pods = text(&spec, Shape::Pods);
        assert!(pods.contains("(request.operation == 'UPDATE' && object.spec == oldObject.spec)\n"), "{pods}");
        assert!(!text(&spec, Shape::Workloads).contains("oldObject.metadata"), "{spec}");
    }
}

//! The guard of what a profile reads from namespaces, on the offline API server of each minor: whom it denies what, and
//! what it lets everybody do.

use std::sync::Arc;

use palisade_admission::requests::{Cluster, Operation, Outcome, PartialAuthorizer, User};
use palisade_api::{
    ToolSecurityProfile,
    names::{self, Part, Shape},
};
use palisade_cel::{
    Minor,
    authorizer::{self, Attributes, Decision},
};
use palisade_compiler::{Compiled, compile};
use palisade_gate::check;
use serde_json::{Value as Json, json};

/// Only this user has the verb.
const ADMIN: &str = "admin";
const EDITOR: &str = "editor";
const NAME: &str = "kubernetes.io/metadata.name";
const SUBRESOURCES: [&str; 3] = ["", "status", "finalize"];

/// RBAC as far as the guard asks.
struct Rbac;

impl PartialAuthorizer for Rbac {
    fn answer(&self, user: &authorizer::User, asked: &Attributes) -> Option<Decision> {
        let wanted = (&*asked.verb, &*asked.group, &*asked.resource, &*asked.name);
        let allowed = user.name == ADMIN && wanted == ("assign", "toolsecurity.dev", "toolsecurityprofiles", "test");
        Some(Decision { allowed, ..Decision::default() })
    }
}

fn compiled(change: impl FnOnce(&mut Json)) -> Compiled {
    let mut spec = json!({
        "guardSources": true, "baseline": "Privileged", "excludeNamespaces": ["excluded"],
        "namespaceSelector": {
            "matchLabels": {"tenancy": "tool"},
            "matchExpressions": [
                {"key": "team", "operator": "NotIn", "values": ["infra"]},
                {"key": NAME, "operator": "Exists"},
                {"key": "stage.toolsecurity.dev/other", "operator": "NotIn", "values": ["Audit"]},
            ],
        },
        "parameters": [
            {"name": "uid", "type": "Integer", "default": 1, "sources": [
                {"namespaceAnnotation": "example.org/uid"}, {"namespaceLabel": "uid"}, {"namespaceNameTrimPrefix": "t-"},
            ]},
            {"name": "odd", "type": "String", "default": "x", "sources": [{"namespaceAnnotation": "it's \\ odd"}]},
        ],
    });
    change(&mut spec);
    let profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": spec,
    });
    let compiled = compile(&serde_json::from_value::<ToolSecurityProfile>(profile).unwrap()).unwrap();
    Compiled::clone(&check(compiled).unwrap_or_else(|rejected| panic!("{rejected}")))
}

fn cluster(minor: Minor) -> Cluster {
    let mut cluster = palisade_gate::cluster(minor).with_authorizer(Arc::new(Rbac));
    let guard = compiled(|_| {}).bundle.guard.unwrap();
    // Of a request for a subresource, the labels by which it is matched are those that the namespace has.
    for object in [namespace(&json!({}), &json!({})), json!(guard.policy), json!(guard.binding)] {
        cluster.apply(object).unwrap_or_else(|refused| panic!("{minor}: {refused:?}"));
    }
    cluster
}

fn namespace(labels: &Json, annotations: &Json) -> Json {
    named("tool", labels, annotations)
}

fn named(name: &str, labels: &Json, annotations: &Json) -> Json {
    let mut labels = labels.clone();
    labels[NAME] = name.into();
    json!({
        "apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
    })
}

/// Why a request of a user is denied; empty if it is not.
fn denial(
    cluster: &Cluster,
    user: &str,
    (operation, subresource): (Operation, &str),
    object: &Json,
    old: Option<&Json>,
) -> String {
    let mut request = cluster.request(operation, subresource, object, old).unwrap();
    let groups = vec!["system:authenticated".to_owned()];
    request.user = User { name: user.to_owned(), groups, ..User::default() };
    match cluster.review(&request).outcome {
        Outcome::Allowed => String::new(),
        Outcome::Denied(denials) => {
            assert_eq!((denials.len(), &*denials[0].reason, denials[0].code), (1, "Forbidden", 403), "{denials:?}");
            assert_eq!(denials[0].policy, "palisade-test-guard");
            denials[0].said.clone()
        }
        Outcome::NoVerdict(why) => panic!("no verdict: {why}"),
    }
}

/// For each key that the profile reads: what it is called, and a namespace with a value of it.
fn keys(value: &str) -> Vec<(&'static str, Json)> {
    vec![
        ("label team", namespace(&json!({"team": value}), &json!({}))),
        ("label tenancy", namespace(&json!({"tenancy": value}), &json!({}))),
        ("label uid", namespace(&json!({"uid": value}), &json!({}))),
        ("annotation example.org/uid", namespace(&json!({}), &json!({"example.org/uid": value}))),
        ("annotation it's \\ odd", namespace(&json!({}), &json!({"it's \\ odd": value}))),
    ]
}

#[test]
fn who_may_not_assign_cannot_set_change_or_remove_a_source() {
    let without = namespace(&json!({}), &json!({}));
    for minor in Minor::ALL {
        let cluster = cluster(minor);
        for ((key, one), ((_, other), (_, empty))) in keys("1").iter().zip(keys("2").iter().zip(&keys(""))) {
            let update = |user, subresource, object, old| {
                denial(&cluster, user, (Operation::Update, subresource), object, Some(old))
            };
            let changes =
                [(one, &without), (&without, one), (one, other), (empty, &without), (&without, empty), (one, empty)];
            for ((object, old), subresource) in changes.into_iter().flat_map(|of| SUBRESOURCES.map(|one| (of, one))) {
                let denied = update(EDITOR, subresource, object, old);
                let expected =
                    format!("changes {key} of namespace tool, which ToolSecurityProfile test reads; this requires");
                assert!(denied.starts_with(&expected), "{minor} {key} {subresource}: {denied}");
                assert_eq!(update(ADMIN, subresource, object, old), "", "{minor} {key} {subresource}");
            }
            assert!(denial(&cluster, EDITOR, (Operation::Create, ""), one, None).contains(key), "{minor} {key}");
            assert_eq!(denial(&cluster, ADMIN, (Operation::Create, ""), one, None), "", "{minor} {key}");
        }
        let both = namespace(&json!({"tenancy": "1"}), &json!({"example.org/uid": "1"}));
        let denied = denial(&cluster, EDITOR, (Operation::Create, ""), &both, None);
        assert!(denied.starts_with("changes label tenancy and others of namespace tool, which"), "{denied}");
        assert!(
            denied.ends_with(
                "requires the verb assign on toolsecurityprofiles/test: ask an administrator to change it or to grant the verb"
            ),
            "{denied}"
        );
    }
}

#[test]
fn whatever_changes_no_source_passes_the_guard() {
    let full = namespace(&json!({"team": "a", "tenancy": "tool", "uid": "1"}), &json!({"example.org/uid": "1"}));
    let changed = |change: fn(&mut Json)| {
        let mut changed = full.clone();
        change(&mut changed);
        changed
    };
    let leaving = changed(|one| {
        one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        one["metadata"]["finalizers"] = json!(["example.org/a"]);
        one["status"]["phase"] = "Terminating".into();
    });
    let (mut unlocked, mut finalized) = (leaving.clone(), leaving.clone());
    unlocked["metadata"]["finalizers"] = json!([]);
    finalized["spec"]["finalizers"] = json!([]);
    let other = changed(|one| {
        one["metadata"]["labels"]["other"] = "x".into();
        one["metadata"]["annotations"]["uid"] = "an annotation with the name of a label".into();
        one["metadata"]["labels"]["example.org/uid"] = "the-reverse".into();
        one["metadata"]["labels"]["stage.toolsecurity.dev/other"] = "Deny".into();
    });
    for minor in Minor::ALL {
        let cluster = cluster(minor);
        for (object, old) in
            [(&full, &full), (&other, &full), (&full, &other), (&leaving, &full), (&unlocked, &leaving)]
        {
            assert_eq!(denial(&cluster, EDITOR, (Operation::Update, ""), object, Some(old)), "", "{minor}");
        }
        assert_eq!(denial(&cluster, EDITOR, (Operation::Update, "finalize"), &finalized, Some(&leaving)), "");
        assert_eq!(denial(&cluster, EDITOR, (Operation::Update, "status"), &leaving, Some(&full)), "");
        assert_eq!(denial(&cluster, EDITOR, (Operation::Delete, ""), &full, Some(&full)), "");
        assert_eq!(denial(&cluster, EDITOR, (Operation::Create, ""), &namespace(&json!({}), &json!({})), None), "");
        // Where nothing is changed, nobody asks who may.
        let request = cluster.request(Operation::Update, "", &other, Some(&full)).unwrap();
        let evaluated = cluster.review(&request).evaluations;
        assert!(evaluated.iter().all(|one| one.path.starts_with("matchConditions")), "{evaluated:?}");
    }
}

#[test]
fn the_guard_leaves_namespaces_alone_that_the_profile_never_selects() {
    for minor in Minor::ALL {
        let cluster = cluster(minor);
        for name in names::PROTECTED_NAMESPACES.into_iter().chain([names::PROBE_NAMESPACE, "excluded"]) {
            let (labels, annotations) = (json!({"tenancy": "tool"}), json!({"example.org/uid": "0"}));
            let object = named(name, &labels, &annotations);
            assert_eq!(denial(&cluster, EDITOR, (Operation::Create, ""), &object, None), "", "{name}");
            let old = named(name, &json!({}), &json!({}));
            assert_eq!(denial(&cluster, EDITOR, (Operation::Update, ""), &object, Some(&old)), "", "{name}");
        }
    }
}

#[test]
fn a_profile_has_a_guard_only_if_it_asks_for_one_and_reads_something() {
    let guarded = compiled(|_| {});
    let parts = [Part::Judge(Shape::Pods), Part::Judge(Shape::Workloads), Part::Guard];
    assert_eq!(guarded.bundle.pairs().map(|(part, _)| part).collect::<Vec<_>>(), parts);
    let guard = guarded.bundle.guard.unwrap();
    assert_eq!(guard.policy.metadata.name.as_deref(), Some("palisade-test-guard"));
    // Whatever the stage is.
    for stage in ["Audit", "Warn", "Deny"] {
        let staged = compiled(|spec| spec["enforcement"] = json!({"pods": stage, "namespaceStages": "ByLabel"}));
        let bindings: Vec<_> = staged.bundle.guard.iter().flat_map(|pair| pair.bindings()).cloned().collect();
        assert_eq!(bindings, std::slice::from_ref(&guard.binding), "{stage}");
    }
    assert_eq!(compiled(|spec| spec["guardSources"] = false.into()).bundle.guard, None);
    let by_name = compiled(|spec| {
        spec["parameters"] = json!([]);
        spec["namespaceSelector"] = json!({"matchExpressions": [{"key": NAME, "operator": "Exists"}]});
    });
    assert_eq!(by_name.bundle.guard, None);
}

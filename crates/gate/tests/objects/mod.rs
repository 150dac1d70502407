//! Checks of objects other than pods and workloads, on the offline API server of each minor, with all policies and
//! bindings of the profile.

mod access;
mod catalogue;
mod custom;
mod exceptions;
mod fast;
mod metadata;
mod policies;
mod random;
mod updates;

use std::{
    collections::BTreeMap,
    sync::{LazyLock, Mutex},
};

use palisade_admission::requests::{Cluster, Operation, Outcome, Request, User};
use palisade_api::{ToolSecurityProfile, crd, names};
use palisade_cel::Minor;
use palisade_checks::{FixtureRequest, FixtureUser};
use palisade_compiler::{Compiled, compile};
use palisade_gate::check;
use serde_json::{Value as Json, json};

/// A profile that evaluates nothing of pods.
fn profile(spec: &Json) -> ToolSecurityProfile {
    let mut all = json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"tenancy": "tool"}}, "baseline": "Privileged"},
    });
    for (key, value) in spec.as_object().unwrap() {
        all["spec"][key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

/// A checked profile. Each is compiled and checked once: many fixtures share one.
fn compiled(spec: &Json) -> Compiled {
    static CHECKED: Mutex<BTreeMap<String, Compiled>> = Mutex::new(BTreeMap::new());
    let key = spec.to_string();
    let known = CHECKED.lock().unwrap().get(&key).cloned();
    known.unwrap_or_else(|| {
        let compiled = compile(&profile(spec)).unwrap_or_else(|found| panic!("{found:?}"));
        let checked = Compiled::clone(&check(compiled).unwrap_or_else(|rejected| panic!("{rejected}")));
        CHECKED.lock().unwrap().insert(key, checked.clone());
        checked
    })
}

/// The errors in a profile, by the compiler or by the gate.
fn rejected(spec: &Json) -> String {
    let found = match compile(&profile(spec)) {
        Err(found) => found,
        Ok(compiled) => check(compiled).map(|_| ()).unwrap_err().diagnostics,
    };
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A cluster without a profile: a namespace `tool-weather`, one named `other`, and the definitions of all kinds. Reading the
/// definitions takes longer than most tests, so it is done once.
fn without_profile(minor: Minor) -> Cluster {
    static OF_MINORS: LazyLock<BTreeMap<Minor, Cluster>> =
        LazyLock::new(|| Minor::ALL.into_iter().map(|minor| (minor, with_definitions(minor))).collect());
    OF_MINORS[&minor].clone()
}

fn with_definitions(minor: Minor) -> Cluster {
    let namespace = |name: &str, labels: Json| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let mut objects = vec![namespace("tool-weather", json!({"tenancy": "tool"})), namespace("other", json!({}))];
    objects.extend(crd::all().into_iter().map(|crd| json!(crd)));
    objects.push(widgets());
    let kinds = palisade_api::objects::ALL.iter().flat_map(|check| check.kinds);
    let extensions: BTreeMap<_, _> = kinds
        .filter(|kind| kind.group.contains("gateway") || kind.group.contains("snapshot"))
        .map(|kind| ((kind.group, kind.kind), kind.versions))
        .collect();
    objects.extend(extensions.into_iter().map(|((group, kind), versions)| definition(group, kind, versions)));
    let mut cluster = Cluster::new(minor).without_service_accounts();
    for object in objects {
        cluster.apply(object.clone()).unwrap_or_else(|refused| panic!("{refused:?}\n{object}"));
    }
    cluster
}

/// An API server that enforces a profile.
struct Enforced(Cluster);

impl Enforced {
    /// It selects the namespace `tool-weather`, and not `other`. `params` are the parameters in the former; none if they
    /// are not written yet.
    fn new(minor: Minor, compiled: &Compiled, params: Option<&Json>) -> Self {
        let mut cluster = without_profile(minor);
        let mut objects = Vec::new();
        objects.extend(params.map(|spec| {
            json!({
                "apiVersion": names::API_VERSION, "kind": "ToolSecurityParams",
                "metadata": {"name": names::params(&compiled.profile), "namespace": "tool-weather"}, "spec": spec,
            })
        }));
        for (_, pair) in compiled.bundle.pairs() {
            objects.push(json!(pair.policy));
            objects.extend(pair.bindings().map(|binding| json!(binding)));
        }
        for object in objects {
            cluster.apply(object.clone()).unwrap_or_else(|refused| panic!("{refused:?}\n{object}"));
        }
        Self(cluster)
    }

    /// With the parameters of the profile's probes.
    fn complete(minor: Minor, compiled: &Compiled) -> Self {
        let params = compiled.probes.params.as_ref().map(|spec| json!(spec));
        Self::new(minor, compiled, params.as_ref())
    }

    /// The namespace `tool-weather` is being deleted.
    fn end_namespace(&mut self) {
        self.0
            .apply(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": "tool-weather", "labels": {"tenancy": "tool"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"},
            }))
            .unwrap();
    }

    /// The message of the denial of a request; empty if it is admitted.
    fn denial(&self, operation: Operation, subresource: &str, object: &Json, old: Option<&Json>) -> String {
        let editor = FixtureUser { username: "editor".to_owned(), ..FixtureUser::default() };
        self.denial_of(&editor, operation, subresource, object, old)
    }

    /// The same for a user.
    fn denial_of(
        &self,
        user: &FixtureUser,
        operation: Operation,
        subresource: &str,
        object: &Json,
        old: Option<&Json>,
    ) -> String {
        let request = self.0.request(operation, subresource, object, old).unwrap();
        self.answer(user, request)
    }

    /// The same for the request of a fixture.
    fn denial_in(&self, user: &FixtureUser, sent: &FixtureRequest) -> String {
        let operation = match sent.stored {
            Some(_) => Operation::Update,
            None if sent.is_connection() => Operation::Connect,
            None => Operation::Create,
        };
        let mut request = self.0.request(operation, sent.subresource, &sent.object, sent.stored.as_ref()).unwrap();
        sent.name.clone_into(&mut request.name);
        "tool-weather".clone_into(&mut request.namespace);
        assert_eq!((&request.resource.resource, &*request.subresource), (&sent.resource, sent.subresource));
        self.answer(user, request)
    }

    fn answer(&self, user: &FixtureUser, mut request: Request) -> String {
        let FixtureUser { username, groups } = user.clone();
        request.user = User { name: username, groups, ..User::default() };
        match self.0.review(&request).outcome {
            Outcome::Allowed => String::new(),
            Outcome::Denied(denials) => denials[0].said.clone(),
            Outcome::NoVerdict(why) => panic!("no verdict: {why}\n{request:?}"),
        }
    }

    fn create(&self, object: &Json) -> String {
        self.denial(Operation::Create, "", object, None)
    }

    fn update(&self, object: &Json, old: &Json) -> String {
        self.denial(Operation::Update, "", object, Some(old))
    }
}

/// A kind that no minor has, with a status.
fn definition(group: &str, kind: &str, versions: &[&str]) -> Json {
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == versions[0], "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{singular}s.{group}"),
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
            "versions": versions.iter().map(|name| version(name)).collect::<Vec<_>>(),
        },
    })
}

/// A kind with two versions.
fn widgets() -> Json {
    definition("example.org", "Widget", &["v1", "v2"])
}

/// An object in the namespace that the profile selects, as it is stored.
fn object(api_version: &str, kind: &str, content: &Json) -> Json {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "x", "namespace": "tool-weather", "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    for (key, value) in content.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

/// The same object, changed.
fn with(object: &Json, pointer: &str, value: Json) -> Json {
    let mut object = object.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let mut at = &mut object;
    for key in parent.split('/').skip(1) {
        at = &mut at[key];
    }
    at[key] = value;
    object
}

fn service(kind: &str) -> Json {
    object(
        "v1",
        "Service",
        &json!({"spec": {"type": kind, "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}}),
    )
}

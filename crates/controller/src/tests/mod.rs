//! Each stage of the controller against an API server in memory that answers wrongly, slowly or not at all. The
//! scenarios in `tests/apiserver` use a real one.

mod exceptions;
mod generate;
mod generations;
mod lanes;
mod mock;
mod objects;
mod parameters;
mod policy_writes;
mod removal;
mod rollout;
mod stages;
mod transition;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::watcher::Event,
};
use mock::Mock;
use palisade_api::{ToolSecurityProfile, names};
use palisade_runtime::Supervisor;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::{
    apply::repair,
    context::Context,
    lanes::{health::Heartbeat, lane::Lane},
    options::Options,
    params,
    queue::Queues,
    reconcile, tenant_objects,
};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

const PROFILES: &str = "/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles";

/// A controller whose watches are the test.
struct Setup {
    mock: Arc<Mock>,
    cx: Arc<Context>,
    options: Options,
}

impl Setup {
    /// With some namespaces, and nothing else.
    fn new(namespaces: &[&str]) -> Self {
        Self::with(Mock::start().0, namespaces)
    }

    /// Another process, after its first lists.
    fn restarted(&self, namespaces: &[&str]) -> Self {
        let next = Self::with_options(Arc::clone(&self.mock), namespaces, &self.options);
        for params in self.mock.list("toolsecurityparams") {
            next.cx.store.observe_params(Event::Apply(serde_json::from_value(params).unwrap()));
        }
        for policy in self.mock.list("validatingadmissionpolicies") {
            next.cx
                .store
                .observe_object::<ValidatingAdmissionPolicy>(Event::Apply(serde_json::from_value(policy).unwrap()));
        }
        for binding in self.mock.list("validatingadmissionpolicybindings") {
            next.cx.store.observe_object::<ValidatingAdmissionPolicyBinding>(Event::Apply(
                serde_json::from_value(binding).unwrap(),
            ));
        }
        for mut profile in self.mock.list("toolsecurityprofiles") {
            let name = profile["metadata"]["name"].as_str().unwrap();
            let status = self.mock.get(&format!("{PROFILES}/{name}/status")).unwrap_or_default();
            profile["status"] = status["status"].clone();
            next.observe(&profile);
        }
        next
    }

    fn with(mock: Arc<Mock>, namespaces: &[&str]) -> Self {
        Self::with_options(mock, namespaces, &Options::default())
    }

    fn with_options(mock: Arc<Mock>, namespaces: &[&str], options: &Options) -> Self {
        let client = mock.client();
        let supervisor = Supervisor::new(CancellationToken::new());
        let cx = Arc::new(Context::new(client.into(), options, supervisor).expect("a client"));
        let store = &cx.store;
        store.observe_profile(Event::Init);
        store.observe_profile(Event::InitDone);
        store.observe_params(Event::Init);
        store.observe_params(Event::InitDone);
        store.observe_object::<ValidatingAdmissionPolicy>(Event::Init);
        store.observe_object::<ValidatingAdmissionPolicy>(Event::InitDone);
        store.observe_object::<ValidatingAdmissionPolicyBinding>(Event::Init);
        store.observe_object::<ValidatingAdmissionPolicyBinding>(Event::InitDone);
        store.exceptions.observe(Event::Init);
        store.exceptions.observe(Event::InitDone);
        store.observe_namespace(Event::Init);
        for name in namespaces {
            store.observe_namespace(Event::InitApply(namespace(name)));
        }
        store.observe_namespace(Event::InitDone);
        Self { mock, cx, options: options.clone() }
    }

    /// Writes a profile whose parameter is the namespace's annotation; `max` makes generations differ.
    fn write(&self, name: &str, generation: i64, max: i64) {
        self.observe(&profile(name, generation, max));
    }

    fn observe(&self, profile: &Json) {
        let name = profile["metadata"]["name"].as_str().unwrap();
        self.mock.put(&format!("{PROFILES}/{name}"), profile.clone());
        let profile: DeserializeGuard<ToolSecurityProfile> = serde_json::from_value(profile.clone()).unwrap();
        let concerned = self.cx.store.observe_profile(Event::Apply(profile));
        self.cx.queues.reconcile.trigger(concerned);
    }

    fn add_namespace(&self, name: &str) {
        let concerned = self.cx.store.observe_namespace(Event::Apply(namespace(name)));
        self.cx.queues.params.trigger(concerned);
    }

    /// The watch shows a policy or a binding.
    fn show(&self, kind: &str, profile: &str) {
        self.shown(kind, self.mock.get(&path(kind, profile)).unwrap(), Event::Apply, Event::Apply);
    }

    /// Another client deletes a policy or a binding.
    fn delete(&self, kind: &str, profile: &str) {
        self.shown(kind, self.mock.remove(&path(kind, profile)), Event::Delete, Event::Delete);
    }

    fn shown(
        &self,
        kind: &str,
        object: Json,
        policy: impl Fn(ValidatingAdmissionPolicy) -> Event<ValidatingAdmissionPolicy>,
        binding: impl Fn(ValidatingAdmissionPolicyBinding) -> Event<ValidatingAdmissionPolicyBinding>,
    ) {
        let concerned = if kind == POLICIES {
            self.cx.store.observe_object(policy(serde_json::from_value(object).unwrap()))
        } else {
            self.cx.store.observe_object(binding(serde_json::from_value(object).unwrap()))
        };
        self.cx.queues.repairs.trigger(concerned.clone());
        self.cx.queues.reconcile.trigger(concerned);
    }

    /// Starts the lanes, but the one of rollouts.
    fn run(&self) {
        let Queues { reconcile, repairs, params, exceptions, objects, .. } = &self.cx.queues;
        let heartbeat = || Arc::new(Heartbeat::new());
        Lane::start(&self.cx, "repairs", repairs, &heartbeat(), repair::work);
        Lane::start(&self.cx, "parameters", params, &heartbeat(), params::lane::work);
        Lane::start(&self.cx, "exceptions", exceptions, &heartbeat(), crate::exceptions::work);
        Lane::start(&self.cx, "objects", objects, &heartbeat(), tenant_objects::lane::work);
        Lane::start(&self.cx, "reconcile", reconcile, &heartbeat(), reconcile::work());
    }

    /// Waits until something holds, and returns how long that took. The clock is the test's.
    async fn until(&self, what: &str, holds: impl Fn(&Mock) -> bool) -> Duration {
        let start = tokio::time::Instant::now();
        while !holds(&self.mock) {
            assert!(start.elapsed() < Duration::from_mins(10), "{what} does not come");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        start.elapsed()
    }

    /// Waits until a condition of the status that was written last has a reason. Returns its status and message.
    async fn condition(&self, profile: &str, condition: &str, reason: &str) -> (String, String) {
        let path = format!("{PROFILES}/{profile}/status");
        let found = |mock: &Mock| {
            let status = mock.get(&path)?;
            let conditions = status["status"]["conditions"].as_array()?.clone();
            conditions.into_iter().find(|it| it["type"] == condition && it["reason"] == reason)
        };
        self.until(&format!("{condition} of {profile} because of {reason}"), |mock| found(mock).is_some()).await;
        let text = |it: &Json| it.as_str().unwrap_or_default().to_owned();
        found(&self.mock).map(|it| (text(&it["status"]), text(&it["message"]))).unwrap()
    }

    /// Waits until policy and binding for pods are of a generation.
    async fn in_force(&self, profile: &str, generation: i64) -> Duration {
        let (policy, binding) = (path(POLICIES, profile), path(BINDINGS, profile));
        let of = move |object: Option<Json>| {
            object.is_some_and(|it| {
                it["metadata"]["annotations"][names::GENERATION_ANNOTATION].as_str()
                    == Some(generation.to_string().as_str())
            })
        };
        self.until(&format!("generation {generation} of {profile}"), |mock| {
            of(mock.get(&policy)) && of(mock.get(&binding))
        })
        .await
    }
}

/// A controller with namespaces `n0`, `n1` and so on.
fn setup(namespaces: usize) -> Setup {
    let names: Vec<_> = (0..namespaces).map(|n| format!("n{n}")).collect();
    Setup::new(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn path(kind: &str, profile: &str) -> String {
    format!("{kind}/palisade-{profile}-pods")
}

fn params_path(profile: &str, namespace: &str) -> String {
    format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityparams/{profile}")
}

fn namespace(name: &str) -> PartialObjectMeta<Namespace> {
    let meta = json!({"name": name, "labels": {"tenancy": "tool"}, "annotations": {"uid": "50001"}});
    serde_json::from_value(json!({"metadata": meta})).unwrap()
}

fn profile(name: &str, generation: i64, max: i64) -> Json {
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "generation": generation, "finalizers": [names::FINALIZER],
        },
        "spec": {
            "namespaceSelector": {"matchLabels": {"tenancy": "tool"}},
            "parameters": [{"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "uid"}]}],
            "users": {
                "runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]},
                "supplementalGroups": {"rule": "MayRunAs", "ranges": [{"min": 1, "max": max}]},
            },
        },
    })
}

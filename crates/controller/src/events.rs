//! Kubernetes events. They are sent beside the work: none of it waits for them, and when too many come at once
//! some are lost, because each is also in a status or in parameters.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    core::ObjectMeta,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use palisade_api::{ToolSecurityParams, ToolSecurityProfile, names};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::call::call;

/// How many events wait.
const WAITING: usize = 256;
/// The longest note, in bytes. The API server takes up to 1024.
const LONGEST: usize = 1000;

/// Where events are handed in.
#[derive(Clone, Debug)]
pub struct Events {
    sender: mpsc::Sender<(Event, ObjectReference)>,
}

impl Events {
    /// Starts to send them.
    pub fn start(client: Client, instance: Option<String>, tasks: &TaskTracker, stop: CancellationToken) -> Self {
        let (sender, mut receiver) = mpsc::channel::<(Event, ObjectReference)>(WAITING);
        let reporter = Reporter { controller: names::CONTROLLER.to_owned(), instance };
        let recorder = Recorder::new(client, reporter);
        tasks.spawn(async move {
            while let Some(Some((event, regarding))) = stop.run_until_cancelled(receiver.recv()).await {
                if let Err(error) = call(recorder.publish(&event, &regarding)).await {
                    tracing::debug!(reason = event.reason, %error, "an event could not be sent");
                }
            }
        });
        Self { sender }
    }

    /// Something happened to a profile.
    pub fn profile(&self, meta: &ObjectMeta, alarming: bool, reason: &str, note: &str) {
        self.publish(reference::<ToolSecurityProfile>(meta), alarming, reason, note);
    }

    /// Something happened to the parameters of a namespace.
    pub fn params(&self, meta: &ObjectMeta, alarming: bool, reason: &str, note: &str) {
        self.publish(reference::<ToolSecurityParams>(meta), alarming, reason, note);
    }

    fn publish(&self, regarding: ObjectReference, alarming: bool, reason: &str, note: &str) {
        let mut note = note.to_owned();
        note.truncate(note.floor_char_boundary(LONGEST));
        let event = Event {
            type_: if alarming { EventType::Warning } else { EventType::Normal },
            reason: reason.to_owned(),
            note: Some(note),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if self.sender.try_send((event, regarding)).is_err() {
            tracing::debug!(reason, "too many events: one is lost");
        }
    }
}

fn reference<K: Resource<DynamicType = ()>>(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}

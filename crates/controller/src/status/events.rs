//! Kubernetes events. A separate task sends them, so no other work waits for them. Under load it drops events, because
//! the status and the parameters contain the same information.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    core::ObjectMeta,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use palisade_api::{ToolSecurityException, ToolSecurityParams, ToolSecurityProfile, names};
use palisade_runtime::Supervisor;
use tokio::sync::mpsc;

use crate::api_request::call;

/// How many events may wait to be sent.
const MAX_WAITING_EVENTS: usize = 256;
/// The longest note, in bytes. The API server takes up to 1024.
const MAX_NOTE_BYTES: usize = 1000;

/// Takes events to send.
#[derive(Clone, Debug)]
pub struct Events {
    sender: mpsc::Sender<Message>,
}

struct Message {
    event: Event,
    regarding: ObjectReference,
}

impl Events {
    pub fn start(client: Client, instance: Option<String>, supervisor: &Supervisor) -> Self {
        let (sender, mut receiver) = mpsc::channel::<Message>(MAX_WAITING_EVENTS);
        let reporter = Reporter { controller: names::CONTROLLER.to_owned(), instance };
        // A recorder merges events that differ only in their note into a series, and keeps the first note. That is
        // right for repetitions; a transition is a new event.
        let series = Recorder::new(client.clone(), reporter.clone());
        let stop = supervisor.stop().clone();
        // It also ends when all senders are dropped.
        supervisor.spawn_job("events", async move {
            while let Some(Some(Message { event, regarding })) = stop.run_until_cancelled(receiver.recv()).await {
                let sent = match event.secondary {
                    Some(_) => call(series.publish(&event, &regarding)).await,
                    None => call(Recorder::new(client.clone(), reporter.clone()).publish(&event, &regarding)).await,
                };
                if let Err(error) = sent {
                    tracing::debug!(reason = event.reason, %error, "could not send an event");
                }
            }
        });
        Self { sender }
    }

    /// A profile has changed its state.
    pub fn profile(&self, meta: &ObjectMeta, severity: EventType, reason: &str, note: &str) {
        self.publish(reference::<ToolSecurityProfile>(meta), None, severity, reason, note);
    }

    /// A generated object was repaired. That may happen again and again.
    pub fn repaired<K: Resource<DynamicType = ()>>(&self, profile: &ObjectMeta, repaired: &ObjectMeta, note: &str) {
        let (profile, repaired) = (reference::<ToolSecurityProfile>(profile), reference::<K>(repaired));
        self.publish(profile, Some(repaired), EventType::Warning, "DriftRepaired", note);
    }

    /// The parameters of a namespace have changed their state.
    pub fn params(&self, meta: &ObjectMeta, severity: EventType, reason: &str, note: &str) {
        self.publish(reference::<ToolSecurityParams>(meta), None, severity, reason, note);
    }

    /// The time of an exception that a tenant asked for is over.
    pub fn exception_ended(&self, meta: &ObjectMeta, note: &str) {
        self.publish(reference::<ToolSecurityException>(meta), None, EventType::Warning, "Expired", note);
    }

    fn publish(
        &self,
        regarding: ObjectReference,
        secondary: Option<ObjectReference>,
        severity: EventType,
        reason: &str,
        note: &str,
    ) {
        let mut note = note.to_owned();
        note.truncate(note.floor_char_boundary(MAX_NOTE_BYTES));
        let event = Event {
            type_: severity,
            reason: reason.to_owned(),
            note: Some(note),
            action: "Reconcile".to_owned(),
            secondary,
        };
        if self.sender.try_send(Message { event, regarding }).is_err() {
            tracing::debug!(reason, "dropped an event: too many events");
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

//! A manifest as the object that an API server stores when a client creates it.

use serde_json::{Map, Value};

use super::{Kinds, Refused, RequestContext, Resource, Stored, Submission, scale};

/// The metadata that a client cannot set when it creates an object. The client cannot set the status either.
const SYSTEM: &[&str] = &[
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "selfLink",
    "managedFields",
];

/// The object after the built-in admission plugins changed it at creation; none if that is unknown.
pub(crate) type Plugins<'p> = &'p dyn Fn(Submission<'_>) -> Option<Value>;

impl Kinds {
    /// A stored object, as a request to it, or to one of its subresources if that is not empty, finds it.
    ///
    /// An object with a `uid` came from a cluster and is used unchanged. An object without a `uid` is a manifest: the
    /// result is the object that was created from it, with the fields that creation adds and the status and metadata of
    /// the manifest, as if no admission plugin had changed it.
    ///
    /// # Errors
    /// It cannot be decoded, or its stored form is unknown.
    pub fn stored(
        &self,
        resource: &Resource,
        subresource: &str,
        namespace: &str,
        object: &Value,
        around: &RequestContext<'_>,
    ) -> Result<Stored, Refused> {
        let created = Submission { resource, subresource: "", namespace, object, old: None };
        self.stored_with(created, subresource, around, &|_| None)
    }

    /// [`Self::stored`], with what plugins added when the object was created.
    pub(crate) fn stored_with(
        &self,
        created: Submission<'_>,
        subresource: &str,
        around: &RequestContext<'_>,
        plugins: Plugins<'_>,
    ) -> Result<Stored, Refused> {
        let (resource, object) = (created.resource, created.object);
        if subresource == "scale" && object["kind"] == "Scale" {
            let value = self.decode_stored(Submission { subresource, ..created }).map_err(unreadable)?;
            return Ok(Stored { value, parent: None, completed: !has_uid(object) });
        }
        let decoded = self.decode_stored(created).map_err(unreadable)?;
        let completed = !has_uid(object);
        let value = if completed { self.completed(created, decoded, around, plugins) } else { decoded };
        if subresource != "scale" {
            return Ok(Stored { value, parent: None, completed });
        }
        let paths = scale::paths(self.custom(resource), &resource.version);
        let shown = scale::of(&value, &paths);
        let shown = self.decode_stored(Submission { subresource, object: &shown, ..created }).map_err(unreadable)?;
        Ok(Stored { value: shown, parent: Some(value), completed })
    }

    /// The new object of an update, with what plugins added to the old one when it was created, if both are manifests.
    /// So it is after `kubectl apply`.
    pub(crate) fn applied(sent: Submission<'_>, plugins: Plugins<'_>) -> Value {
        let manifest = sent.subresource.is_empty() && sent.old.is_some_and(Stored::is_completed);
        let created = manifest.then(|| plugins(Submission { old: None, ..sent })).flatten();
        created.unwrap_or_else(|| sent.object.clone())
    }

    /// A manifest as the object that was created from it. Where that cannot be told, the manifest is left as it is.
    fn completed(
        &self,
        sent: Submission<'_>,
        given: Value,
        around: &RequestContext<'_>,
        plugins: Plugins<'_>,
    ) -> Value {
        let created = self.decode(sent).and_then(|received| {
            let object = plugins(Submission { object: &received.object, ..sent }).unwrap_or(received.object);
            self.prepare(Submission { object: &object, ..sent }, around)
        });
        let Ok(mut created) = created else { return given };
        let (Some(fields), Some(said)) = (created.as_object_mut(), given.as_object()) else { return given };
        overlay(fields, "status", said, |_| true);
        overlay(fields, "metadata", said, |key| SYSTEM.contains(&key));
        created
    }
}

/// Puts what a manifest says into a part of the object that was made of it.
fn overlay(fields: &mut Map<String, Value>, part: &str, said: &Map<String, Value>, which: impl Fn(&str) -> bool) {
    let said = said.get(part).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in said.filter(|(key, value)| which(key) && !value.is_null()) {
        let part = fields.entry(part).or_insert_with(|| Value::Object(Map::new()));
        if let Some(part) = part.as_object_mut() {
            part.insert(key.clone(), value.clone());
        }
    }
}

fn has_uid(object: &Value) -> bool {
    object.pointer("/metadata/uid").and_then(Value::as_str).is_some_and(|uid| !uid.is_empty())
}

/// A stored object was decoded before, so an API server never answers that it cannot decode the object.
fn unreadable(refused: Refused) -> Refused {
    match refused {
        Refused::NoVerdict(why) => Refused::NoVerdict(why),
        other => Refused::NoVerdict(format!("the stored object cannot be read: {other}")),
    }
}

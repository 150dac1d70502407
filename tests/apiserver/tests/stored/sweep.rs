//! Changes, and removes, each single value of stored objects.

use std::{collections::BTreeMap, error::Error};

use palisade_admission::requests::{Cluster as Offline, Operation, Outcome, Request};
use palisade_tests::Cluster;
use serde_json::{Value as Json, json};

use super::{Case, Places, StoredCluster, USERS, is_like, put, request};
use crate::admission::ask_server;

/// Changes each single value of each object, and removes it. Nothing that the API server refuses is admitted offline, unless
/// it refuses to create such an object too: that is for the validation of new objects. What gets another verdict.
pub(super) async fn sweep(
    cluster: &Cluster,
    offline: &Offline,
    places: &Places,
    stored: &StoredCluster,
) -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
    let (mut counts, mut wrong) = ([0_usize; 4], Vec::new());
    for object in &stored.objects {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let (kind, name) = (kind.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
        let stored = cluster.answer_to("GET", &format!("{}/{name}", places[kind]), &Json::Null).await?;
        let mut pointers = Vec::new();
        leaves(&stored, "", &mut pointers);
        for (pointer, value) in
            pointers.iter().flat_map(|(pointer, value)| [(pointer, other(value)), (pointer, Json::Null)])
        {
            let case = Case {
                object: format!("{kind}/{name}"),
                operation: None,
                subresource: String::new(),
                set: BTreeMap::from([(pointer.clone(), value.clone())]),
                unknown: None,
                program: false,
            };
            let request = request(offline, &case, &stored, &stored, USERS[0])?;
            let found = ask_server(cluster, &request).await?;
            let (theirs, ours) = (found.refused.is_some(), offline.admit(&request).outcome);
            let index = match (&ours, theirs) {
                (Outcome::NoVerdict(_), _) => 1,
                (Outcome::Allowed, false) => 0,
                (Outcome::Denied(denials), true) => {
                    let same = denials
                        .first()
                        .zip(found.refused.as_ref())
                        .is_some_and(|(one, (text, ..))| is_like(&one.message, text));
                    if same { 0 } else { 2 }
                }
                _ => {
                    let mut new = request.clone();
                    (new.operation, new.old_object, new.name) = (Operation::Create, None, "another".to_owned());
                    new.options = Request::default_options(Operation::Create, true);
                    if let Some(object) = &mut new.object {
                        put(object, "/metadata/name", &json!("another"))?;
                        put(object, "/metadata/resourceVersion", &Json::Null)?;
                    }
                    let created = ask_server(cluster, &new).await?;
                    if !theirs || created.refused.is_none() {
                        wrong.push(format!(
                            "{kind}/{name} {pointer}: {value}: offline {ours:?}, the API server {found:?}"
                        ));
                    }
                    3
                }
            };
            counts[index] += 1;
        }
    }
    let [alike, unknown, other_words, invalid] = counts;
    println!(
        "changes of one value: {alike} answered alike, {unknown} have no verdict, {other_words} refused in other words, \
         {invalid} whose object could not be created either, or are answered differently"
    );
    Ok(wrong)
}

/// The values in an object, with their places, but for what the server writes about who wrote what.
fn leaves(value: &Json, pointer: &str, into: &mut Vec<(String, Json)>) {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Json::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "managedFields") {
                leaves(value, &format!("{pointer}/{}", escaped(key)), into);
            }
        }
        Json::Array(list) => {
            for (i, value) in list.iter().enumerate() {
                leaves(value, &format!("{pointer}/{i}"), into);
            }
        }
        _ if ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"].contains(&pointer) => {}
        _ => into.push((pointer.to_owned(), value.clone())),
    }
}

/// Another value of the same type.
fn other(value: &Json) -> Json {
    match value {
        Json::Bool(value) => json!(!value),
        Json::Number(number) => json!(number.as_i64().unwrap_or(0) + 1),
        Json::String(text) if text.ends_with('Z') && text.contains('T') => json!("2001-02-03T04:05:06Z"),
        Json::String(text) => {
            match text.strip_suffix(char::is_alphabetic).filter(|text| text.ends_with(|c: char| c.is_ascii_digit())) {
                Some(_) => json!(format!("1{text}")),
                None => json!(format!("{text}1")),
            }
        }
        other => other.clone(),
    }
}

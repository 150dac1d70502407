//! Pages of lists: the objects of a kind, some at a time, with bounded memory.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::{
    Resource as _,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
    core::Request,
};
use palisade_kube_json::json::set;
use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    api_request::{ApiError, call},
    context::{Context, MAX_PAGES_KIB},
    evaluation::{Existing, ListedKind},
};

/// Some objects of a kind.
#[derive(Debug)]
pub struct Page {
    pub objects: Vec<Existing>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<String>,
    /// Kept until the objects are dropped.
    pub room: OwnedSemaphorePermit,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Json>,
}

/// Lists one page of a kind: in a namespace, or in all of them. It waits until there is room for the objects.
///
/// # Errors
/// The API server gave no list.
pub async fn list_page(
    cx: &Context,
    namespace: Option<&str>,
    of: &Arc<ListedKind>,
    page: &ListParams,
) -> Result<Page, ApiError> {
    let ListedKind { api_version, kind, resource } = &**of;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), resource);
    let mut request = Request::new(DynamicObject::url_path(&of_kind, namespace))
        .list(page)
        .map_err(|error| ApiError::Unreachable(kube::Error::BuildRequest(error)))?;
    request.extensions_mut().insert("list");
    let text = call(cx.client.request_text(request)).await?;
    let needed = u32::try_from(text.len() >> 10).unwrap_or(MAX_PAGES_KIB).clamp(1, MAX_PAGES_KIB);
    let room = Arc::clone(&cx.pages).acquire_many_owned(needed).await.map_err(|_| ApiError::Stopped)?;
    let read = tokio::task::spawn_blocking({
        let of = Arc::clone(of);
        move || read(&text, &of)
    });
    let (objects, next) = read
        .await
        .unwrap_or_else(|error| Err(serde::de::Error::custom(error)))
        .map_err(|error| ApiError::Unreachable(kube::Error::SerdeError(error)))?;
    Ok(Page { objects, next, room })
}

fn read(text: &str, of: &Arc<ListedKind>) -> serde_json::Result<(Vec<Existing>, Option<String>)> {
    let List { metadata, items } = serde_json::from_str(text)?;
    let objects = items.into_iter().map(|mut object| {
        // Who wrote which field is of no use here, and is a third of many objects.
        if let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.remove("managedFields");
        }
        // Objects in lists do not say what they are.
        set(&mut object, &["apiVersion"], of.api_version.as_str());
        set(&mut object, &["kind"], of.kind.as_str());
        Existing { of: Arc::clone(of), object }
    });
    Ok((objects.collect(), metadata.continue_.filter(|token| !token.is_empty())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_of_a_list_get_kind_and_api_version() {
        let list = json!({
            "kind": "PodList", "metadata": {"resourceVersion": "7", "continue": "token"},
            "items": [{"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}, "spec": {}}],
        });
        let pods = Arc::new(ListedKind::new("v1", "Pod", "pods"));
        let (objects, next) = read(&list.to_string(), &pods).unwrap();
        let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}});
        assert_eq!(objects.iter().map(|one| &one.object).collect::<Vec<_>>(), [&expected]);
        assert_eq!(next.as_deref(), Some("token"));
        let last = json!({"metadata": {"continue": ""}, "items": []});
        assert_eq!(read(&last.to_string(), &pods).unwrap().1, None);
        assert!(read("{}", &pods).is_err());
    }
}

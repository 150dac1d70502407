//! Lists of an API server in pages with a limit in bytes: tenants can write objects of more than a megabyte, and five
//! hundred of them at once exceed the memory of a process.
//!
//! A client from [`bounded`] requests fewer objects than its caller, if responses are large. The caller continues with
//! the next page, as always. This applies to all paged lists, also those of a watch. A list without pages has only the
//! limit [`MAX_RESPONSE_BYTES`].

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http_body_util::BodyExt as _;
use hyper::{Method, Request, Response, Uri, http};
use kube::{
    Api, Client, Resource,
    api::ListParams,
    client::Body,
    core::{ObjectMeta, PartialObjectMeta},
};
use serde::de::DeserializeOwned;
use tower::Service;

/// The size of a page to aim at.
const AIM: usize = 2 << 20;
/// Maximum size of a page with more than one object. A larger page is not read completely.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// Maximum size of a response with one object: an object is a few megabytes at most, as etcd stores it.
pub const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// Number of objects in the first page of a kind. Its size determines the number in the next one.
const FIRST: usize = 16;
/// How many objects a page of [`all`] has at most.
const PAGE: u32 = 500;

/// An answer is too long to be read.
#[derive(Debug, thiserror::Error)]
#[error("the response of the API server to GET {path} is longer than {} MiB", MAX_RESPONSE_BYTES >> 20)]
pub struct TooLong {
    path: String,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A client whose lists come in pages that are bounded in bytes.
pub fn bounded(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let pages = Arc::new(Pages::default());
    Client::new(Bounded { client, pages }, namespace)
}

#[derive(Clone)]
struct Bounded {
    client: Client,
    pages: Arc<Pages>,
}

impl Service<Request<Body>> for Bounded {
    type Response = Response<Body>;
    type Error = AnyError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, pages) = (self.client.clone(), Arc::clone(&self.pages));
        Box::pin(async move { pages.send(&client, request).await })
    }
}

/// How many objects a page may have, by kind.
#[derive(Debug, Default)]
pub struct Pages {
    limits: Mutex<BTreeMap<String, usize>>,
}

impl Pages {
    /// Sends a request; a list, in a page that is bounded in bytes.
    ///
    /// # Errors
    /// Those of the client, and [`TooLong`].
    pub async fn send(&self, client: &Client, request: Request<Body>) -> Result<Response<Body>, AnyError> {
        let query = request.uri().query().unwrap_or_default();
        // A watch has no end, and each of its events is one object.
        if *request.method() != Method::GET || query.split('&').any(|pair| pair == "watch=true") {
            return Ok(client.send(request).await?);
        }
        let path = request.uri().path().to_owned();
        let Some(asked) = limit(query) else {
            let response = client.send(request).await?;
            return read(response, MAX_RESPONSE_BYTES).await?.ok_or_else(|| TooLong { path }.into());
        };
        let kind = path.rsplit('/').next().unwrap_or_default();
        loop {
            let now = self.limit(kind).min(asked).max(1);
            let response = client.send(with_limit(&request, now)?).await?;
            match read(response, if now > 1 { MAX_PAGE_BYTES } else { MAX_RESPONSE_BYTES }).await? {
                Some(page) => {
                    let bytes = hyper::body::Body::size_hint(page.body()).exact().unwrap_or_default();
                    self.was_read(kind, now, usize::try_from(bytes).unwrap_or(usize::MAX));
                    return Ok(page);
                }
                None if now > 1 => self.set(kind, now / 4),
                None => return Err(TooLong { path }.into()),
            }
        }
    }

    fn limit(&self, kind: &str) -> usize {
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.get(kind).copied().unwrap_or(FIRST)
    }

    fn set(&self, kind: &str, limit: usize) {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.insert(kind.to_owned(), limit.max(1));
    }

    /// A page of so many objects was so large: the next one has at most twice as many.
    fn was_read(&self, kind: &str, count: usize, bytes: usize) {
        let fitting = count.saturating_mul(AIM) / bytes.max(1);
        self.set(kind, fitting.clamp(1, count.saturating_mul(2)));
    }
}

fn limit(query: &str) -> Option<usize> {
    query.split('&').find_map(|pair| pair.strip_prefix("limit=")?.parse().ok())
}

/// The same request for other objects.
fn with_limit(request: &Request<Body>, limit: usize) -> Result<Request<Body>, http::Error> {
    let query = request.uri().query().unwrap_or_default();
    let others = query.split('&').filter(|pair| !pair.starts_with("limit="));
    let query = others.fold(format!("limit={limit}"), |query, pair| format!("{query}&{pair}"));
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(format!("{}?{query}", request.uri().path()).parse()?);
    let mut same = Request::builder().method(request.method()).uri(Uri::from_parts(parts)?).version(request.version());
    if let Some(headers) = same.headers_mut() {
        headers.clone_from(request.headers());
    }
    if let Some(extensions) = same.extensions_mut() {
        extensions.clone_from(request.extensions());
    }
    same.body(Body::empty())
}

/// The response, read; `None` if it is longer than `most`.
async fn read(response: Response<Body>, most: usize) -> Result<Option<Response<Body>>, AnyError> {
    let (parts, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(Response::from_parts(parts, Body::from(bytes))))
}

/// All objects of a list, read in pages.
///
/// # Errors
/// The API server gives no list.
pub async fn all<K: Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    parameters: &ListParams,
) -> kube::Result<Vec<K>> {
    let (mut found, mut page) = (Vec::new(), parameters.clone().limit(PAGE));
    loop {
        let list = api.list(&page).await?;
        found.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// The metadata of all objects of a list, read in pages; without who wrote which field.
///
/// # Errors
/// The API server gives no list.
pub async fn all_metadata<K: Resource + Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    parameters: &ListParams,
) -> kube::Result<Vec<ObjectMeta>> {
    let (mut found, mut page) = (Vec::new(), parameters.clone().limit(PAGE));
    loop {
        let list = api.list_metadata(&page).await?;
        let slim = |object: PartialObjectMeta<K>| ObjectMeta { managed_fields: None, ..object.metadata };
        found.extend(list.items.into_iter().map(slim));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// An API server that has objects of these sizes, and what it was asked.
    #[derive(Default)]
    struct Server {
        sizes: Vec<usize>,
        /// The sizes of its answers that could be sent to the end, and how many there were.
        largest: AtomicUsize,
        answers: AtomicUsize,
    }

    impl Server {
        fn client(sizes: Vec<usize>) -> (Arc<Self>, Client) {
            let server = Arc::new(Self { sizes, ..Self::default() });
            let own = Arc::clone(&server);
            let service = service_fn(move |request: Request<Body>| {
                let answer = own.answer(request.uri().query().unwrap_or_default());
                async move { Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes()))) }
            });
            (server, bounded(Client::new(service, "default")))
        }

        fn answer(&self, query: &str) -> String {
            let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<usize>().ok());
            let (from, limit) = (value("continue=").unwrap_or_default(), value("limit=").unwrap_or(usize::MAX));
            let to = from.saturating_add(limit).min(self.sizes.len());
            let item = |index: usize| json!({"metadata": {"name": format!("c{index}")}, "data": {"x": "x".repeat(self.sizes[index])}});
            let token = if to < self.sizes.len() { to.to_string() } else { String::new() };
            let items: Vec<_> = (from..to).map(item).collect();
            let text = json!({"metadata": {"continue": token}, "items": items}).to_string();
            self.answers.fetch_add(1, Ordering::Relaxed);
            if text.len() <= MAX_PAGE_BYTES {
                self.largest.fetch_max(text.len(), Ordering::Relaxed);
            }
            text
        }
    }

    async fn names(client: &Client) -> kube::Result<Vec<String>> {
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let found = all(&api, &ListParams::default()).await?;
        Ok(found.into_iter().filter_map(|one| one.metadata.name).collect())
    }

    #[tokio::test]
    async fn each_object_is_listed_once_however_large_others_are() {
        let small = vec![500; 3000];
        let large = vec![900_000; 40];
        for (sizes, most) in [
            (small.clone(), 20),
            (large.clone(), 60),
            // Large ones after many small ones: the page that would have been too large is not read.
            ([small.clone(), large.clone(), small].concat(), 120),
            (vec![3 << 20; 5], 15),
            (vec![], 1),
        ] {
            let expected: Vec<_> = (0..sizes.len()).map(|index| format!("c{index}")).collect();
            let (server, client) = Server::client(sizes);
            assert_eq!(names(&client).await.expect("a list"), expected);
            let answers = server.answers.load(Ordering::Relaxed);
            assert!(answers <= most, "{answers} answers for {} objects", expected.len());
            assert!(server.largest.load(Ordering::Relaxed) <= MAX_PAGE_BYTES);
        }
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read() {
        let (_, client) = Server::client(vec![MAX_RESPONSE_BYTES + 1]);
        let error = names(&client).await.expect_err("too long");
        assert!(error.to_string().contains("longer than 32 MiB"), "{error}");
    }

    #[test]
    fn only_the_limit_of_a_request_changes() {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "/api/v1/pods?a=b&limit=500&continue=x".parse().expect("a URI");
        request.headers_mut().insert("accept", "application/json".parse().expect("a header"));
        request.extensions_mut().insert("list");
        let same = with_limit(&request, 3).expect("a request");
        assert_eq!(same.uri(), "/api/v1/pods?limit=3&a=b&continue=x");
        assert_eq!(same.headers(), request.headers());
        assert_eq!(same.extensions().get::<&str>(), Some(&"list"));
    }
}

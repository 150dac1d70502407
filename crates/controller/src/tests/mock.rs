//! An API server in memory: it stores what is written, and a test decides how it responds to which request.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::pending,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body};
use palisade_api::names;
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub body: Json,
}

impl RecordedRequest {
    pub fn is_write(&self) -> bool {
        self.method != Method::GET && !self.query.contains("dryRun=All")
    }

    pub fn is_dry_run(&self) -> bool {
        self.query.contains("dryRun=All")
    }

    /// True if it is about a kind, by its plural.
    pub fn is_of(&self, plural: &str) -> bool {
        self.path.split('/').any(|part| part == plural)
    }

    fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Respond {
    /// As an API server that accepts everything.
    Normally,
    /// With this HTTP status.
    Error(u16),
    /// With a denial by this policy.
    Denied(String),
    /// Normally, after this time.
    After(Duration),
    /// Normally, but the answer is under way for this time.
    Late(Duration),
    Never,
    /// With these events of a watch.
    Events(Vec<Json>),
}

type Rule = Box<dyn Fn(&RecordedRequest) -> Respond + Send>;

pub struct Mock {
    objects: Mutex<BTreeMap<String, Json>>,
    asked: Mutex<Vec<RecordedRequest>>,
    rule: Mutex<Rule>,
    version: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mock {
    pub fn start() -> (Arc<Self>, Client) {
        let mock = Arc::new(Self {
            objects: Mutex::default(),
            asked: Mutex::default(),
            rule: Mutex::new(Box::new(|_| Respond::Normally)),
            version: AtomicU64::new(100),
        });
        let client = mock.client();
        (mock, client)
    }

    /// Another client of it.
    pub fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request| {
            let server = Arc::clone(&server);
            async move { Ok::<_, Infallible>(server.serve(request).await) }
        });
        Client::new(service, "default")
    }

    /// From now on it answers like this.
    pub fn rule(&self, rule: impl Fn(&RecordedRequest) -> Respond + Send + 'static) {
        *lock(&self.rule) = Box::new(rule);
    }

    /// The requests since the last time.
    pub fn asked(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut lock(&self.asked))
    }

    /// How many watches of a path were begun since the requests were taken last.
    pub fn watched(&self, path: &str) -> usize {
        lock(&self.asked).iter().filter(|asked| asked.path == path && asked.is_watch()).count()
    }

    /// The writes among them, as `PATCH path`.
    pub fn writes(&self) -> Vec<String> {
        let asked = self.asked();
        asked.iter().filter(|asked| asked.is_write()).map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }

    /// The objects of a kind, by its plural.
    pub fn list(&self, plural: &str) -> Vec<Json> {
        let objects = lock(&self.objects);
        let of_kind = |path: &&String| path.rsplit('/').nth(1) == Some(plural);
        objects.iter().filter(|(path, _)| of_kind(path)).map(|(_, object)| object.clone()).collect()
    }

    pub fn get(&self, path: &str) -> Option<Json> {
        lock(&self.objects).get(path).cloned()
    }

    /// Another client writes an object.
    pub fn put(&self, path: &str, object: Json) {
        lock(&self.objects).insert(path.to_owned(), object);
    }

    /// Another client deletes an object. Returns it as a watch shows that.
    pub fn remove(&self, path: &str) -> Json {
        let mut object = lock(&self.objects).remove(path).unwrap_or_else(|| panic!("there is no {path}"));
        object["metadata"]["resourceVersion"] = self.next_version().into();
        object
    }

    pub fn next_version(&self) -> String {
        self.version.fetch_add(1, Ordering::Relaxed).to_string()
    }

    async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect_bytes().await.unwrap_or_default();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let uri = parts.uri;
        let query = uri.query().unwrap_or_default().to_owned();
        let asked = RecordedRequest { method: parts.method, path: uri.path().to_owned(), query, body };
        lock(&self.asked).push(asked.clone());
        let respond = (lock(&self.rule))(&asked);
        match respond {
            Respond::Normally => self.respond_normally(&asked).await,
            Respond::Error(code) => status(code),
            Respond::Denied(policy) => failure(
                422,
                &format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: no"),
            ),
            Respond::After(after) => {
                tokio::time::sleep(after).await;
                self.respond_normally(&asked).await
            }
            Respond::Late(by) => {
                let answer = self.respond_normally(&asked).await;
                tokio::time::sleep(by).await;
                answer
            }
            Respond::Never => pending().await,
            Respond::Events(events) => {
                let lines = events.iter().map(|event| format!("{event}\n"));
                let text: String = lines.collect();
                answer(200, text.into_bytes())
            }
        }
    }

    async fn respond_normally(&self, asked: &RecordedRequest) -> Response<Body> {
        if asked.is_watch() {
            return pending().await;
        }
        // A status is kept beside its object.
        let path = asked.path.as_str();
        let last = path.rsplit('/').next().unwrap_or_default();
        let version = self.next_version();
        let mut objects = lock(&self.objects);
        match asked.method {
            Method::GET if last.chars().any(|c| c == '.') || KINDS.contains(&last) => {
                let (group, named) = (path.trim_end_matches(last), asked.query.split("metadata.name%3D").nth(1));
                let name = named.and_then(|named| named.split('&').next());
                let listed = |at: &str| {
                    let mut parts = at.rsplit('/');
                    at.starts_with(group)
                        && name.is_none_or(|name| at.ends_with(&format!("/{name}")))
                        && parts.nth(1) == Some(last)
                };
                let items: Vec<_> = objects.iter().filter(|(at, _)| listed(at)).map(|(_, object)| object).collect();
                let list = json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items});
                json_answer(&list)
            }
            Method::GET => objects.get(path).map_or_else(|| status(404), json_answer),
            Method::DELETE => match objects.remove(path) {
                Some(object) if !asked.is_dry_run() => json_answer(&object),
                Some(object) => {
                    let answer = json_answer(&object);
                    objects.insert(path.to_owned(), object);
                    answer
                }
                None => status(404),
            },
            _ => {
                let mut object = asked.body.clone();
                if asked.method == Method::PATCH && object["apiVersion"].is_null() {
                    // Not an apply, but a merge patch.
                    let Some(found) = objects.get(path) else { return status(404) };
                    object = found.clone();
                    pod::merge(&mut object, &asked.body);
                }
                if object["metadata"].is_null() {
                    object["metadata"] = json!({});
                }
                let name = object["metadata"]["name"].as_str().unwrap_or(last).to_owned();
                let at = if asked.method == Method::POST { format!("{path}/{name}") } else { path.to_owned() };
                object["metadata"]["name"] = name.into();
                object["metadata"]["resourceVersion"] = version.into();
                if asked.query.contains("fieldManager=palisade-controller%2Fgenerate") && asked.body["kind"].is_string()
                {
                    object["metadata"]["managedFields"] = json!([{
                        "manager": names::field_manager::GENERATE, "operation": "Apply", "fieldsV1": fields(&object),
                    }]);
                }
                if !asked.is_dry_run() {
                    objects.insert(at, object.clone());
                }
                json_answer(&object)
            }
        }
    }
}

/// The fields of an applied object, as in `managedFields`.
fn fields(value: &Json) -> Json {
    let of = value.as_object().into_iter().flatten();
    of.map(|(key, value)| (format!("f:{key}"), fields(value))).collect::<serde_json::Map<_, _>>().into()
}

/// Paths that end so are of lists.
const KINDS: [&str; 11] = [
    "pods",
    "toolsecurityparams",
    "toolsecurityprofiles",
    "namespaces",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "controllerrevisions",
    "replicasets",
    "jobs",
    "ingresses",
    "toolsecurityreports",
];

fn json_answer(body: &Json) -> Response<Body> {
    answer(200, body.to_string().into_bytes())
}

fn status(code: u16) -> Response<Body> {
    failure(code, &format!("the mock says {code}"))
}

fn failure(code: u16, message: &str) -> Response<Body> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        _ => "",
    };
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message});
    answer(code, body.to_string().into_bytes())
}

fn answer(code: u16, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

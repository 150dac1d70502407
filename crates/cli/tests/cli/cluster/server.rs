//! A simulated API server: objects and lists by path, over HTTP. It stores writes, so that a later command reads them.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value as Json, json};

use crate::{Run, directory, palisade};

/// The answers by path, and the requests.
#[derive(Default)]
struct State {
    answers: BTreeMap<String, (u16, Json)>,
    /// Method and path with query of each request, and its body.
    requests: Vec<(String, Json)>,
}

/// A simulated API server. Paths without an answer are not found.
pub struct ApiServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl ApiServer {
    /// A server without objects.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::<Mutex<State>>::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(&stream.unwrap(), &state));
            }
        });
        let server = Self { address, state };
        server.with(
            "/version",
            json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "c",
            "gitTreeState": "clean", "buildDate": "d", "goVersion": "g", "compiler": "gc", "platform": "linux/amd64"}),
        )
    }

    /// The object at a path.
    pub fn with(self, path: &str, object: Json) -> Self {
        self.answering(path, (200, object))
    }

    /// The objects of a list at a path, and each of them at its own path.
    pub fn with_list(self, path: &str, items: &[Json]) -> Self {
        let kind = items.first().map_or("", |one| one["kind"].as_str().unwrap());
        let list = json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {}, "items": items});
        let objects = items.iter().map(|one| (format!("{path}/{}", one["metadata"]["name"].as_str().unwrap()), one));
        objects.fold(self.with(path, list), |server, (path, object)| server.with(&path, object.clone()))
    }

    /// The HTTP status and answer at a path.
    pub fn answering(self, path: &str, answer: (u16, Json)) -> Self {
        self.state.lock().unwrap().answers.insert(path.to_owned(), answer);
        self
    }

    /// Runs the binary with a kubeconfig for this server, whose context has the namespace `tool-a`.
    pub fn run(&self, arguments: &[&str]) -> Run {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "simulated",
            "contexts": [{"name": "simulated", "context": {"cluster": "c", "user": "u", "namespace": "tool-a"}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "u", "user": {}}],
        });
        let files = directory(&[("kubeconfig", config.to_string())]);
        let mut command = palisade(files.path());
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(proxy).env_remove(proxy.to_lowercase());
        }
        let output = command.args(arguments).env("KUBECONFIG", "kubeconfig").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Method, path and query of each request until now.
    pub fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.iter().map(|(request, _)| request.clone()).collect()
    }

    /// The requests that write, with their bodies.
    pub fn writes(&self) -> Vec<(String, Json)> {
        let state = self.state.lock().unwrap();
        state.requests.iter().filter(|(request, _)| !request.starts_with("GET ")).cloned().collect()
    }
}

/// An error as an API server sends it.
pub fn failure(code: u16, reason: &str, message: &str) -> (u16, Json) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code,
        "message": message,
    });
    (code, status)
}

impl State {
    fn answer(&mut self, method: &str, target: &str, body: Json) -> (u16, Json) {
        self.requests.push((format!("{method} {target}"), body.clone()));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some((code, found)) = self.answers.get_mut(path) else {
            return failure(404, "NotFound", "the server could not find the requested resource");
        };
        if *code != 200 || method == "GET" {
            return (*code, found.clone());
        }
        let mut written = found.clone();
        match method {
            "PATCH" => json_patch::merge(&mut written, &body),
            "PUT" => written = body,
            _ => panic!("{method} {target} is not simulated"),
        }
        if !query.contains("dryRun=All") {
            *found = written.clone();
        }
        (200, written)
    }
}

/// Answers one request.
fn serve(stream: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let first = line();
    // A connection that is closed without a request.
    let [method, target, _] = first.split(' ').collect::<Vec<_>>()[..] else { return };
    let mut length = 0;
    loop {
        let header = line();
        match header.to_ascii_lowercase().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().unwrap(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (code, answer) = state.lock().unwrap().answer(method, target, body);
    let (kind, answer) = match answer {
        Json::String(text) => ("text/plain", text),
        object => ("application/json", object.to_string()),
    };
    let head = format!("HTTP/1.1 {code} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", answer.len());
    let _ = write!(&*stream, "{head}Connection: close\r\n\r\n{answer}");
}

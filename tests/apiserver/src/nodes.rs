//! What stands in for nodes: each pod of the operator's namespace runs as a process of this machine, with the arguments of
//! its container and a token of its service account. Ports are free ones of the loopback; images are not looked at, unless
//! one is unpacked.
//!
//! Everything else is Kubernetes': Deployments and Jobs get their pods from kube-controller-manager.

use std::{
    collections::BTreeMap,
    error::Error,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::Client;
use palisade_api::names;
use palisade_controlplane::free_address;
use serde_json::{Value as Json, json};
use tokio_util::task::AbortOnDropHandle;

use crate::{Cluster, WEBHOOK, requests::send, webhook::is_ready};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The controllers of kube-controller-manager that make pods of Deployments and Jobs, and keep disruption budgets.
pub const CONTROLLERS: [&str; 4] =
    ["deployment-controller", "replicaset-controller", "job-controller", "disruption-controller"];
/// The interval between two polls of the pods.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
const MERGE: &str = "application/merge-patch+json";

/// Runs the pods of the operator's namespace. Dropping it kills them.
pub struct Nodes {
    /// How many processes were started for a program, by the first word of what it does.
    started: Arc<Mutex<BTreeMap<String, usize>>>,
    idle: Arc<Mutex<bool>>,
    _task: AbortOnDropHandle<()>,
}

struct Pod {
    process: Child,
    health: std::net::SocketAddr,
    terminated: bool,
    _kubeconfig: tempfile::TempPath,
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Work {
    client: Client,
    kubeconfig: Json,
    /// What is in the image, if not the programs of this build run.
    image: Option<PathBuf>,
    pods: BTreeMap<String, Pod>,
    started: Arc<Mutex<BTreeMap<String, usize>>>,
    idle: Arc<Mutex<bool>>,
}

impl Nodes {
    /// Begins with the programs of this build, until it is dropped.
    pub fn start(cluster: &Cluster) -> Result<Self> {
        Self::with(cluster, None)
    }

    /// Begins with the programs of an image, which is unpacked in this directory.
    pub fn of_image(cluster: &Cluster, directory: &Path) -> Result<Self> {
        Self::with(cluster, Some(directory.to_owned()))
    }

    fn with(cluster: &Cluster, image: Option<PathBuf>) -> Result<Self> {
        let (started, idle) = <(Arc<Mutex<BTreeMap<_, _>>>, Arc<Mutex<bool>>)>::default();
        let mut work = Work {
            client: cluster.admin.clone(),
            kubeconfig: serde_saphyr::from_str(cluster.control_plane.kubeconfig())?,
            image,
            pods: BTreeMap::new(),
            started: Arc::clone(&started),
            idle: Arc::clone(&idle),
        };
        let task = tokio::spawn(async move {
            loop {
                if let Err(error) = work.turn().await {
                    eprintln!("nodes: {error}");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        Ok(Self { started, idle, _task: AbortOnDropHandle::new(task) })
    }

    /// How many processes were started so far that do this: `controller`, `webhook`, `cleanup`, `verify`.
    pub fn started(&self, what: &str) -> usize {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).get(what).copied().unwrap_or_default()
    }

    /// From now on controllers and webhooks are not started, and those that run are killed, as if their image could not be
    /// fetched any more.
    pub fn break_deployments(&self) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

fn namespaced(rest: &str) -> String {
    format!("/api/v1/namespaces/{}/{rest}", names::OPERATOR_NAMESPACE)
}

impl Work {
    async fn turn(&mut self) -> Result<()> {
        let list = send(&self.client, "GET", &namespaced("pods"), MERGE, &json!(null)).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let there: Vec<_> = items.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).collect();
        self.pods.retain(|uid, _| there.contains(&uid.as_str()));
        for pod in &items {
            // One that is gone meanwhile is looked at no more.
            if let Err(error) = self.keep(pod).await
                && !error.to_string().contains("not found")
            {
                return Err(error);
            }
        }
        Ok(())
    }

    async fn keep(&mut self, pod: &Json) -> Result<()> {
        let (uid, name) = (text(pod, "/metadata/uid"), text(pod, "/metadata/name"));
        let ends = pod["metadata"]["deletionTimestamp"].is_string();
        let done = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let idle =
            *self.idle.lock().unwrap_or_else(PoisonError::into_inner) && pod["spec"]["restartPolicy"] == "Always";
        let Some(process) = self.pods.get_mut(&uid).filter(|_| !idle) else {
            self.pods.remove(&uid);
            if ends {
                return self.forget(&name).await;
            }
            if idle {
                return self.report(&name, "Running", false).await;
            }
            return if done { Ok(()) } else { self.start(pod, uid, &name).await };
        };
        if ends && !process.terminated {
            process.terminated = true;
            signal(&process.process, "TERM")?;
        }
        let Some(status) = process.process.try_wait()? else {
            let ready = process.terminated || is_ready(process.health).await;
            let known = condition(pod) == Some(ready);
            return if ends || known { Ok(()) } else { self.report(&name, "Running", ready).await };
        };
        if ends {
            self.pods.remove(&uid);
            return self.forget(&name).await;
        }
        if pod["spec"]["restartPolicy"] == "Always" {
            return self.start(pod, uid, &name).await;
        }
        self.report(&name, if status.success() { "Succeeded" } else { "Failed" }, false).await?;
        self.pods.remove(&uid);
        Ok(())
    }

    async fn start(&mut self, pod: &Json, uid: String, name: &str) -> Result<()> {
        if pod["spec"]["nodeName"].is_null() {
            let bind = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "here"}});
            send(&self.client, "POST", &namespaced(&format!("pods/{name}/binding")), "application/json", &bind).await?;
        }
        let account = text(pod, "/spec/serviceAccountName");
        let path = namespaced(&format!("serviceaccounts/{account}/token"));
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}});
        let token = send(&self.client, "POST", &path, "application/json", &asked).await?;
        let mut kubeconfig = self.kubeconfig.clone();
        for user in kubeconfig["users"].as_array_mut().into_iter().flatten() {
            user["user"] = json!({"token": text(&token, "/status/token")});
        }
        let mut file = tempfile::NamedTempFile::new()?;
        std::io::Write::write_all(&mut file, kubeconfig.to_string().as_bytes())?;
        let container = &pod["spec"]["containers"][0];
        let webhook = container["command"][0] == WEBHOOK;
        let (health, https) = (free_address()?, free_address()?);
        let arguments = container["args"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let arguments: Vec<_> = arguments
            .map(|argument| match argument.split_once('=') {
                Some(("--listen", _)) if webhook => format!("--listen={https}"),
                Some((flag @ ("--listen" | "--listen-health"), _)) => format!("{flag}={health}"),
                _ => argument.to_owned(),
            })
            .chain(webhook.then(|| format!("--url=https://{https}")))
            .collect();
        let does = arguments.first().filter(|first| !first.starts_with("--"));
        let does = does.map_or(if webhook { "webhook" } else { "controller" }, String::as_str).to_owned();
        let kubeconfig = file.into_temp_path();
        let program = if webhook { WEBHOOK } else { names::CONTROLLER };
        let mut command = if let Some(image) = &self.image {
            Command::new(image.join("usr/local/bin").join(program))
        } else {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(program);
            command
        };
        let process = command
            .args(&arguments)
            .env("KUBECONFIG", &kubeconfig)
            .env("POD_NAME", name)
            .stdout(Stdio::null())
            .spawn()?;
        *self.started.lock().unwrap_or_else(PoisonError::into_inner).entry(does).or_default() += 1;
        self.pods.insert(uid, Pod { process, health, terminated: false, _kubeconfig: kubeconfig });
        self.report(name, "Running", false).await
    }

    async fn report(&self, name: &str, phase: &str, ready: bool) -> Result<()> {
        let ready = if ready { "True" } else { "False" };
        let conditions: Vec<_> = ["Ready", "ContainersReady"]
            .iter()
            .map(|kind| json!({"type": kind, "status": ready, "lastTransitionTime": now()}))
            .collect();
        let patch = json!({"status": {"phase": phase, "conditions": conditions, "startTime": now()}});
        send(&self.client, "PATCH", &namespaced(&format!("pods/{name}/status")), MERGE, &patch).await?;
        Ok(())
    }

    async fn forget(&self, name: &str) -> Result<()> {
        let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        send(&self.client, "DELETE", &namespaced(&format!("pods/{name}")), "application/json", &now).await?;
        Ok(())
    }
}

fn text(of: &Json, pointer: &str) -> String {
    of.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether it says that it is ready.
fn condition(pod: &Json) -> Option<bool> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready").map(|condition| condition["status"] == "True")
}

fn signal(process: &Child, signal: &str) -> Result<()> {
    Command::new("kill").args([format!("-{signal}"), process.id().to_string()]).status()?;
    Ok(())
}

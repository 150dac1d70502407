//! What is broken: a control plane, two controllers, a webhook, and the connections between them.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use palisade_api::names;
use palisade_controlplane::{Component, ControlPlane, free_address};
use palisade_tests::{Cluster, root};
use serde_json::Value as Json;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Result,
    child::{Program, Supervised},
    links::{Mode, Proxy},
    schedule::{CERTIFICATE_LIFE_MS, Link, Who},
    timeline::Timeline,
};

/// A control plane with Palisade on it, whose programs are the ones that are built beside this one.
pub(crate) struct Site {
    pub(crate) admin: Client,
    pub(crate) cluster: tokio::sync::Mutex<Cluster>,
    pub(crate) parts: Parts,
    directory: PathBuf,
}

/// Palisade's programs and their connections.
pub(crate) struct Parts {
    controllers: Vec<(Supervised, Proxy)>,
    pub(crate) webhook: Supervised,
    webhook_link: Proxy,
    calls: Proxy,
    /// Which of the controllers has led last.
    leader: Arc<AtomicUsize>,
    _following: AbortOnDropHandle<()>,
}

impl Site {
    /// Starts all of it, with logs in a directory.
    pub(crate) async fn start(directory: &Path, controllers: usize, timeline: &Arc<Timeline>) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let cluster = Cluster::start_on(ControlPlane::builder()).await?;
        let api_server: SocketAddr = cluster.control_plane.url().trim_start_matches("https://").parse()?;
        let mut running = Vec::new();
        for number in 0..controllers {
            let name = format!("replica-{number}");
            let link = Proxy::start(api_server).await?;
            let kubeconfig = kubeconfig(&cluster, names::CONTROLLER, link.address, &directory.join(&name))?;
            let mut arguments = arguments("manifests/deployment.yaml", names::CONTROLLER)?;
            arguments.push("--listen=127.0.0.1:0".to_owned());
            let program = program(names::CONTROLLER, name, arguments, kubeconfig, directory)?;
            running.push((Supervised::start(program, Arc::clone(timeline)), link));
        }
        let webhook_link = Proxy::start(api_server).await?;
        let [listen, health] = [free_address()?, free_address()?];
        let calls = Proxy::start(listen).await?;
        let kubeconfig = kubeconfig(&cluster, names::WEBHOOK, webhook_link.address, &directory.join(names::WEBHOOK))?;
        let mut arguments = arguments("manifests/webhook.yaml", names::WEBHOOK)?;
        arguments.extend([
            format!("--listen={listen}"),
            format!("--listen-health={health}"),
            format!("--url=https://{}", calls.address),
            format!("--certificate-life={CERTIFICATE_LIFE_MS}ms"),
            "--certificate-overlap=3s".to_owned(),
            "--interval=1s".to_owned(),
        ]);
        let program = program(names::WEBHOOK, names::WEBHOOK.to_owned(), arguments, kubeconfig, directory)?;
        let webhook = Supervised::start(program, Arc::clone(timeline));
        let (leader, admin) = (Arc::new(AtomicUsize::new(0)), cluster.admin.clone());
        let following = tokio::spawn(follow(admin.clone(), Arc::clone(&leader), Arc::clone(timeline)));
        let parts = Parts {
            controllers: running,
            webhook,
            webhook_link,
            calls,
            leader,
            _following: AbortOnDropHandle::new(following),
        };
        Ok(Self { admin, cluster: cluster.into(), parts, directory: directory.to_owned() })
    }

    /// Stops everything and keeps the logs.
    pub(crate) async fn stop(self) -> Result {
        drop(self.parts);
        let cluster = self.cluster.into_inner();
        for component in [Component::Etcd, Component::ApiServer, Component::ControllerManager] {
            std::fs::copy(cluster.control_plane.log_path(component), self.directory.join(format!("{component}.log")))?;
        }
        cluster.stop().await
    }
}

impl Parts {
    /// The controllers that are meant now.
    pub(crate) fn controllers(&self, who: Who) -> Vec<&Supervised> {
        let leader = self.leader.load(Ordering::Relaxed) % self.controllers.len();
        let all = self.controllers.iter().enumerate();
        all.filter(|(number, _)| match who {
            Who::Leader => *number == leader,
            Who::Follower => *number != leader,
            Who::Both => true,
        })
        .map(|(_, (controller, _))| controller)
        .collect()
    }

    /// The connections that are meant now.
    pub(crate) fn links(&self, link: Link) -> Vec<&Proxy> {
        let leader = self.leader.load(Ordering::Relaxed) % self.controllers.len();
        match link {
            Link::Leader => vec![&self.controllers[leader].1],
            Link::Controllers => self.controllers.iter().map(|(_, link)| link).collect(),
            Link::Webhook => vec![&self.webhook_link],
            Link::Calls => vec![&self.calls],
        }
    }

    /// All connections are as they should be.
    pub(crate) fn heal(&self) {
        for link in self.controllers.iter().map(|(_, link)| link).chain([&self.webhook_link, &self.calls]) {
            link.set(Mode::Open);
        }
    }

    /// How often programs were started, and where they log.
    pub(crate) fn programs(&self) -> Vec<(PathBuf, usize)> {
        let all = self.controllers.iter().map(|(controller, _)| controller).chain([&self.webhook]);
        all.map(|program| (program.log.clone(), program.starts())).collect()
    }
}

/// The arguments that the manifests give a program.
fn arguments(file: &str, name: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root().join(file))?;
    let objects: Vec<Json> = serde_saphyr::from_multiple(&text)?;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment" && object["metadata"]["name"] == name);
    let arguments = deployment.map(|found| &found["spec"]["template"]["spec"]["containers"][0]["args"]);
    let listed = arguments.and_then(Json::as_array).ok_or_else(|| format!("{file}: no arguments of {name}"))?;
    // Where one listens is different here.
    let listed = listed.iter().filter_map(Json::as_str).filter(|argument| !argument.starts_with("--listen"));
    Ok(listed.map(str::to_owned).collect())
}

/// A file with a kubeconfig of a service account, with a token of its own.
fn kubeconfig(cluster: &Cluster, account: &str, by: SocketAddr, file: &Path) -> Result<PathBuf> {
    let mut kubeconfig: Json = serde_json::from_str(&cluster.kubeconfig_of(account)?)?;
    if let Some(server) = kubeconfig.pointer_mut("/clusters/0/cluster/server") {
        *server = format!("https://{by}").into();
    }
    let file = file.with_extension("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    Ok(file)
}

fn program(
    binary: &str,
    name: String,
    arguments: Vec<String>,
    kubeconfig: PathBuf,
    directory: &Path,
) -> Result<Program> {
    let path = std::env::current_exe()?.with_file_name(binary);
    if !path.exists() {
        return Err(format!("{} is missing: start this with `cargo xtask chaos`", path.display()).into());
    }
    let log = directory.join(format!("{name}.log"));
    Ok(Program { name, path, arguments, kubeconfig, log })
}

/// Looks who leads, as long as it lives.
async fn follow(client: Client, leader: Arc<AtomicUsize>, timeline: Arc<Timeline>) {
    let leases: Api<Lease> = Api::namespaced(client, names::OPERATOR_NAMESPACE);
    let mut last = String::new();
    loop {
        let holder = match timeout(Duration::from_secs(10), leases.get(names::CONTROLLER)).await {
            Ok(Ok(lease)) => lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default(),
            _ => last.clone(),
        };
        if holder != last {
            if holder.is_empty() {
                timeline.note("nobody leads");
            } else {
                timeline.leads(&holder);
            }
            let number = holder.strip_prefix("replica-").and_then(|rest| rest.split('-').next()?.parse().ok());
            if let Some(number) = number {
                leader.store(number, Ordering::Relaxed);
            }
            last = holder;
        }
        // The interval between two reads: a watch would end with each fault of the API server.
        sleep(Duration::from_millis(300)).await;
    }
}

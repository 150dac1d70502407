//! A running control plane.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    Builder, Component, Error, Shutdown, Version,
    build::Binaries,
    flags::{self, ApiServer, ETCD_SOCKET, Minor},
    http::Client,
    peer::Peer,
    port,
    process::{Process, log_path},
    workdir::WorkDir,
};

const POLL: Duration = Duration::from_millis(25);

/// A control plane. [`stop`](Self::stop) ends it in good order; dropping it kills it at once. Either way its
/// processes have ended, and its directory is gone, when the call returns.
#[derive(Debug)]
#[must_use = "dropping it kills the control plane"]
pub struct ControlPlane {
    pub(crate) url: String,
    pub(crate) kubeconfig: String,
    pub(crate) kubeconfig_path: PathBuf,
    pub(crate) audit_log_path: Option<PathBuf>,
    pub(crate) admin_token: String,
    pub(crate) settings: Settings,
    // Fields are dropped in this order. etcd goes after those that use it, the directory after those that write to it.
    pub(crate) controller_manager: Option<Process>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) apiserver: Option<Process>,
    pub(crate) etcd: Process,
    pub(crate) dir: WorkDir,
}

/// The settings to start the API server again, and to send it requests.
pub(crate) struct Settings {
    pub(crate) port: u16,
    pub(crate) apiserver: ApiServer,
    pub(crate) client: Client,
    pub(crate) binaries: Binaries,
    pub(crate) limit: Duration,
    /// Controllers of kube-controller-manager in addition to its own.
    pub(crate) controllers: Vec<String>,
    /// Whether kube-controller-manager checks the types of policies.
    pub(crate) type_checks: bool,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The client holds the token.
        f.debug_struct("Settings").field("apiserver", &self.apiserver).finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Options for a new control plane.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The text of a kubeconfig for the admin. It names no other file.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A file with [`kubeconfig`](Self::kubeconfig), there as long as the control plane is.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// The address of the API server. A restart does not change it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bearer token of the user `admin` in the group `system:masters`.
    pub fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// The audit log, one JSON object a line, if [`Builder::audit`] is on.
    pub fn audit_log_path(&self) -> Option<&Path> {
        self.audit_log_path.as_deref()
    }

    /// The log of a component.
    pub fn log_path(&self, component: Component) -> PathBuf {
        log_path(self.dir.path(), component)
    }

    /// The process of etcd.
    pub fn etcd_pid(&self) -> u32 {
        self.etcd.id()
    }

    /// The process of the API server, unless it is stopped.
    pub fn apiserver_pid(&self) -> Option<u32> {
        self.apiserver.as_ref().map(Process::id)
    }

    /// The process of the controller manager. `KUBEBUILDER_ASSETS` may lack one.
    pub fn controller_manager_pid(&self) -> Option<u32> {
        self.controller_manager.as_ref().map(Process::id)
    }

    /// The resident memory of a component, in bytes.
    pub fn memory(&self, component: Component) -> Result<u64, Error> {
        let process = match component {
            Component::Etcd => Some(&self.etcd),
            Component::ApiServer => self.apiserver.as_ref(),
            Component::ControllerManager => self.controller_manager.as_ref(),
        };
        process.ok_or(Error::NotRunning(component))?.memory()
    }

    /// kubectl, set up as the admin of this control plane. `KUBEBUILDER_ASSETS` may lack it.
    pub fn kubectl(&self) -> Option<Command> {
        let mut command = Command::new(self.settings.binaries.kubectl.as_ref()?);
        command
            .env("KUBECONFIG", &self.kubeconfig_path)
            // Neither the settings of the user nor what kubectl remembers of an earlier server on this port count.
            .env("KUBERC", "off")
            .env("KUBECACHEDIR", self.dir.path().join("kubectl-cache"));
        Some(command)
    }

    /// What `kube-apiserver --help` prints.
    pub fn apiserver_help(&self) -> Result<String, Error> {
        let output = Command::new(&self.settings.binaries.apiserver).arg("--help").output();
        let output = output.map_err(Error::io("cannot run kube-apiserver --help"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The body of the API server's answer to a `GET` by the admin, for example of `/version`.
    pub async fn get(&self, path: &str) -> Result<String, Error> {
        let response = self
            .settings
            .client
            .get(self.settings.port, path)
            .await
            .map_err(|source| Error::Request { path: path.to_owned(), source })?;
        if response.status == 200 {
            return Ok(response.body);
        }
        Err(Error::Status { path: path.to_owned(), status: response.status, body: response.body })
    }

    /// Stops the API server and leaves the rest running.
    pub async fn stop_apiserver(&mut self, how: Shutdown) -> Result<(), Error> {
        let apiserver = self.apiserver.take().ok_or(Error::NotRunning(Component::ApiServer))?;
        apiserver.stop(how).await;
        Ok(())
    }

    /// An error with the end of its log if the API server has ended by itself.
    pub fn check_apiserver(&mut self) -> Result<(), Error> {
        self.apiserver.as_mut().map_or(Ok(()), Process::check)
    }

    /// Kills etcd, and leaves the rest running: the API server answers nothing that it does not remember.
    pub fn kill_etcd(&mut self) {
        self.etcd.kill();
    }

    /// Starts an etcd that was killed, with the same data, and waits until the API server is ready, if it runs.
    pub async fn start_etcd(&mut self) -> Result<(), Error> {
        self.etcd.kill();
        // The socket of the former one would look like that of the new one.
        let socket = self.dir.path().join(ETCD_SOCKET);
        if socket.exists() {
            fs::remove_file(&socket).map_err(Error::io("cannot remove the socket of etcd"))?;
        }
        self.etcd = Process::spawn(Component::Etcd, &self.settings.binaries.etcd, &flags::etcd(), self.dir.path())?;
        wait_for_etcd(&mut self.etcd, self.dir.path(), self.settings.limit).await?;
        match &mut self.apiserver {
            Some(apiserver) => {
                wait_until_ok(&self.settings, self.settings.port, "/readyz", &mut [apiserver, &mut self.etcd]).await
            }
            None => Ok(()),
        }
    }

    /// Starts a stopped API server, at the same address and with the same data, and waits until it is ready.
    pub async fn start_apiserver(&mut self) -> Result<(), Error> {
        if self.apiserver.is_some() {
            return Err(Error::AlreadyRunning);
        }
        let mut apiserver = Process::spawn(
            Component::ApiServer,
            &self.settings.binaries.apiserver,
            &self.settings.apiserver.flags(),
            self.dir.path(),
        )?;
        wait_until_ok(&self.settings, self.settings.port, "/readyz", &mut [&mut apiserver, &mut self.etcd]).await?;
        self.apiserver = Some(apiserver);
        Ok(())
    }

    /// Lets the API server serve another minor version from its next start on, as an upgrade does: `1.33` to `1.36`, or
    /// the binary's own if none.
    ///
    /// # Errors
    /// It is not a minor version.
    pub fn set_emulated_version(&mut self, version: Option<&str>) -> Result<(), Error> {
        self.settings.apiserver.emulated = version.map(Minor::parse).transpose()?;
        Ok(())
    }

    /// Replaces the API server and kube-controller-manager by those of another version, with the same data, and waits until
    /// they are ready. etcd stays as it is.
    ///
    /// # Errors
    /// The version cannot be built, or does not become ready.
    pub async fn replace_version(&mut self, version: &'static Version) -> Result<(), Error> {
        self.settings.binaries = Binaries::located(version).await?;
        self.settings.apiserver.minor = Minor::of(version);
        self.settings.apiserver.emulated = None;
        if let Some(process) = self.controller_manager.take() {
            process.stop(Shutdown::Graceful).await;
        }
        self.restart_apiserver(Shutdown::Graceful).await?;
        self.start_controller_manager().await
    }

    /// Stops the API server, starts it again and waits until it is ready.
    pub async fn restart_apiserver(&mut self, how: Shutdown) -> Result<(), Error> {
        self.stop_apiserver(how).await?;
        self.start_apiserver().await
    }

    /// Stops everything and removes its directory. A process that does not end in time is killed.
    pub async fn stop(self) -> Result<(), Error> {
        // From the users to the used: an API server that has lost etcd hangs.
        for peer in self.peers {
            peer.stop(Shutdown::Graceful).await;
        }
        for process in [self.controller_manager, self.apiserver, Some(self.etcd)].into_iter().flatten() {
            process.stop(Shutdown::Graceful).await;
        }
        self.dir.remove()
    }

    pub(crate) async fn start_controller_manager(&mut self) -> Result<(), Error> {
        let Settings { apiserver, controllers, type_checks, .. } = &self.settings;
        let Some(program) = &self.settings.binaries.controller_manager else {
            return Ok(());
        };
        let port = port::free().map_err(Error::io("cannot choose a port"))?;
        let mut process = Process::spawn(
            Component::ControllerManager,
            program,
            &flags::controller_manager(port, apiserver.emulated, controllers, *type_checks),
            self.dir.path(),
        )?;
        wait_until_ok(&self.settings, port, "/healthz", &mut [&mut process]).await?;
        self.controller_manager = Some(process);
        Ok(())
    }

    /// "Ready" says nothing of the namespace `default` and its service account, and pods need both.
    pub(crate) async fn wait_for_pods(&mut self) -> Result<(), Error> {
        let path = match self.controller_manager {
            Some(_) => "/api/v1/namespaces/default/serviceaccounts/default",
            None => "/api/v1/namespaces/default",
        };
        let mut processes: Vec<&mut Process> =
            [&mut self.controller_manager, &mut self.apiserver].into_iter().flatten().collect();
        wait_until_ok(&self.settings, self.settings.port, path, &mut processes).await
    }
}

/// Waits until etcd listens. The API server gives up on an etcd that it cannot reach for long, and backs off before it tries
/// again.
pub(crate) async fn wait_for_etcd(etcd: &mut Process, dir: &Path, limit: Duration) -> Result<(), Error> {
    let start = Instant::now();
    while !dir.join(ETCD_SOCKET).exists() {
        etcd.check()?;
        if start.elapsed() > limit {
            return Err(Error::NotReady {
                component: Component::Etcd,
                waited: start.elapsed(),
                answer: "it does not listen".into(),
                log: etcd.log_tail(),
            });
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// Waits for status 200, as long as the processes live. The first of them is the one that is waited for.
pub(crate) async fn wait_until_ok(
    settings: &Settings,
    port: u16,
    path: &str,
    processes: &mut [&mut Process],
) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        for process in processes.iter_mut() {
            process.check()?;
        }
        let answer = match settings.client.get(port, path).await {
            Ok(response) if response.status == 200 => return Ok(()),
            Ok(response) => response.body,
            Err(error) => error.to_string(),
        };
        if start.elapsed() > settings.limit
            && let Some(process) = processes.first()
        {
            return Err(Error::NotReady {
                component: process.component(),
                waited: start.elapsed(),
                answer,
                log: process.log_tail(),
            });
        }
        sleep(POLL).await;
    }
}

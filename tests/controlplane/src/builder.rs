//! The configuration of a control plane, and how it starts.

use std::{fs, path::Path, time::Duration};

use crate::{
    Component, ControlPlane, Error, Version,
    build::Binaries,
    cluster::{Settings, wait_for_etcd},
    flags::{self, AUDIT_LOG, AUDIT_POLICY, KUBECONFIG, Minor},
    http::Client,
    pki::Pki,
    port,
    process::Process,
    workdir::WorkDir,
};

/// Far above the three seconds it takes: the machine may be busy with other tests.
const START_LIMIT: Duration = Duration::from_mins(2);
const PORT_ATTEMPTS: usize = 5;

/// Options of a [`ControlPlane`], from [`ControlPlane::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    version: Option<&'static Version>,
    emulated_version: Option<String>,
    apiserver_flags: Vec<String>,
    controllers: Vec<String>,
    type_checks: bool,
    audit: bool,
    start_limit: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            version: None,
            emulated_version: None,
            apiserver_flags: Vec::new(),
            controllers: Vec::new(),
            type_checks: true,
            audit: false,
            start_limit: START_LIMIT,
        }
    }
}

impl Builder {
    /// Use the programs of this version. By default, `PALISADE_MINOR` selects it.
    pub fn version(mut self, version: &'static Version) -> Self {
        self.version = Some(version);
        self
    }

    /// Serve the APIs and the CEL environment of an older minor version, `1.33` to `1.36`.
    ///
    /// Such a server still calls itself by its own version: `/version` has the emulated one in `emulationMinor`.
    ///
    /// `1.34` and `1.35`, emulated or not, also serve `MutatingAdmissionPolicy` as `v1beta1`, but do not enforce it. They do
    /// with the flag `--feature-gates=MutatingAdmissionPolicy=true`. If the version is emulated, the flag
    /// `--emulation-forward-compatible=true` is required, too, and `v1` is served, which a server of that version does not
    /// serve.
    pub fn emulated_version(mut self, version: impl Into<String>) -> Self {
        self.emulated_version = Some(version.into());
        self
    }

    /// Adds flags of kube-apiserver, for example `--feature-gates=...`.
    pub fn apiserver_flags<S: Into<String>>(mut self, flags: impl IntoIterator<Item = S>) -> Self {
        self.apiserver_flags.extend(flags.into_iter().map(Into::into));
        self
    }

    /// Adds controllers of kube-controller-manager, for example `replicaset-controller`.
    pub fn controllers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.controllers.extend(names.into_iter().map(Into::into));
        self
    }

    /// Whether kube-controller-manager checks the types of policies (`status.typeChecking`). It does by default, and takes
    /// a processor for about a second each time that a large policy changes.
    pub fn type_checks(mut self, on: bool) -> Self {
        self.type_checks = on;
        self
    }

    /// Whether the API server writes an audit log (see [`ControlPlane::audit_log_path`]), with the objects that are sent of
    /// namespaces, pods and workloads. It does not by default.
    pub fn audit(mut self, on: bool) -> Self {
        self.audit = on;
        self
    }

    /// How long each step of a start may take. Two minutes by default.
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.start_limit = limit;
        self
    }

    /// Starts the control plane, building its binaries first if need be, and returns when it is ready for pods.
    pub async fn start(self) -> Result<ControlPlane, Error> {
        let emulated = self.emulated_version.as_deref().map(Minor::parse).transpose()?;
        let version = self.version.map_or_else(Version::of_environment, Ok)?;
        let binaries = Binaries::located(version).await?;
        let mut attempt = 1;
        loop {
            match self.attempt(version, &binaries, emulated).await {
                Err(error) if error.is_port_collision() && attempt < PORT_ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    async fn attempt(
        &self,
        version: &Version,
        binaries: &Binaries,
        emulated: Option<Minor>,
    ) -> Result<ControlPlane, Error> {
        let dir = WorkDir::create()?;
        let pki = Pki::create(dir.path())?;
        let port = port::free().map_err(Error::io("cannot choose a port"))?;
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = pki.kubeconfig(&url);
        write(dir.path(), KUBECONFIG, &kubeconfig)?;
        if self.audit {
            write(
                dir.path(),
                AUDIT_POLICY,
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                 - {level: Request, resources: [{group: '', resources: [namespaces, pods, pods/ephemeralcontainers]}, {group: apps}, \
                 {group: batch}]}\n- {level: Metadata}\n",
            )?;
        }
        let settings = Settings {
            port,
            apiserver: flags::ApiServer {
                port,
                minor: Minor::of(version),
                emulated,
                service_accounts: binaries.controller_manager.is_some(),
                audit: self.audit,
                extra: self.apiserver_flags.clone(),
            },
            client: Client::new(&pki.ca, &pki.admin_token)?,
            binaries: binaries.clone(),
            limit: self.start_limit,
            controllers: self.controllers.clone(),
            type_checks: self.type_checks,
        };

        let mut etcd = Process::spawn(Component::Etcd, &binaries.etcd, &flags::etcd(), dir.path())?;
        wait_for_etcd(&mut etcd, dir.path(), self.start_limit).await?;

        let mut cluster = ControlPlane {
            url,
            kubeconfig,
            kubeconfig_path: dir.path().join(KUBECONFIG),
            audit_log_path: self.audit.then(|| dir.path().join(AUDIT_LOG)),
            admin_token: pki.admin_token,
            settings,
            controller_manager: None,
            peers: Vec::new(),
            apiserver: None,
            etcd,
            dir,
        };
        cluster.start_apiserver().await?;
        cluster.start_controller_manager().await?;
        cluster.wait_for_pods().await?;
        Ok(cluster)
    }
}

fn write(dir: &Path, name: &str, text: &str) -> Result<(), Error> {
    fs::write(dir.join(name), text).map_err(Error::io(format!("cannot write {name}")))
}

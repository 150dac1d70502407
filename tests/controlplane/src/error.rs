//! What can go wrong, said so that the reader knows what to do next.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

use crate::Component;

/// Why a control plane could not be built, started or reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither prebuilt binaries nor a way to build them.
    #[error(
        "cannot run `go` to build the control plane: {0}; install Go 1.26 or newer, or set KUBEBUILDER_ASSETS \
         to a directory with etcd and kube-apiserver"
    )]
    GoMissing(#[source] io::Error),

    /// The Go toolchain ran and failed.
    #[error("`go {command}` failed ({status}):\n{output}")]
    Go {
        /// The subcommand.
        command: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote to standard error.
        output: String,
    },

    /// `KUBEBUILDER_ASSETS` lacks a binary that cannot be done without.
    #[error("KUBEBUILDER_ASSETS has no {}", .0.display())]
    AssetMissing(PathBuf),

    /// No directory to keep the built binary in.
    #[error("set PALISADE_CACHE, XDG_CACHE_HOME or HOME: there is no directory to keep the control plane in")]
    NoCacheDir,

    /// A minor without a [`Version`](crate::Version).
    #[error("there is no control plane of Kubernetes `{0}`: use {known}", known = crate::version::known())]
    UnknownMinor(String),

    /// A version that is not of the form `1.N`.
    #[error("`{0}` is not a Kubernetes version to emulate: expected, for example, `1.33`")]
    EmulatedVersion(String),

    /// A file, directory or process operation failed.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action.
        what: String,
        /// Why it failed.
        source: io::Error,
    },

    /// A key or certificate could not be made.
    #[error("cannot make the certificates: {0}")]
    Certificate(#[from] rcgen::Error),

    /// The TLS client could not be configured.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),

    /// The operating system gave no random bytes.
    #[error("no random bytes from the operating system")]
    Random,

    /// A component ended while it was expected to run.
    #[error("{component} ended ({status}); the end of its log:\n{log}")]
    Exited {
        /// The component.
        component: Component,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },

    /// A component runs and does not become ready.
    #[error("{component} is not ready after {waited:.1?} (last answer: {answer}); the end of its log:\n{log}")]
    NotReady {
        /// The component.
        component: Component,
        /// How long was waited.
        waited: Duration,
        /// What the last attempt to ask it gave.
        answer: String,
        /// The last lines of its log.
        log: String,
    },

    /// The component is not running.
    #[error("{0} is not running")]
    NotRunning(Component),

    /// The API server is running already.
    #[error("kube-apiserver is already running")]
    AlreadyRunning,

    /// A component could not be asked.
    #[error("{path}: {source}")]
    Request {
        /// The path.
        path: String,
        /// Why it failed.
        source: io::Error,
    },

    /// A component answered with an error.
    #[error("{path}: HTTP status {status}: {body}")]
    Status {
        /// The path.
        path: String,
        /// The HTTP status.
        status: u16,
        /// The body of the answer.
        body: String,
    },
}

impl Error {
    /// For `map_err`: an I/O error with the attempted action.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Somebody took the port between the moment it was found free and the moment the component bound it.
    pub(crate) fn is_port_collision(&self) -> bool {
        matches!(self, Self::Exited { log, .. } if log.contains("address already in use"))
    }
}

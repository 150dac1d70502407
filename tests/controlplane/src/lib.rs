//! A real Kubernetes control plane for tests and demos: etcd, kube-apiserver and kube-controller-manager.
//!
//! The components come from pinned Go modules, built once into one binary and cached (see [`build`]), or from the
//! directory in `KUBEBUILDER_ASSETS`. `PALISADE_MINOR` selects another [`Version`] than the default. Everything listens on loopback or on a socket in a private temporary directory,
//! and nothing survives: not a process, not a file, however the program that started it ends.
//!
//! ```no_run
//! # async fn example() -> Result<(), palisade_controlplane::Error> {
//! use palisade_controlplane::{ControlPlane, Shutdown};
//!
//! let mut cluster = ControlPlane::builder().emulated_version("1.33").start().await?;
//! println!("{}", cluster.kubeconfig());
//! cluster.restart_apiserver(Shutdown::Graceful).await?;
//! cluster.stop().await
//! # }
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "this crate starts processes: files, clock and environment are its business"
)]

pub mod build;
mod builder;
mod cluster;
mod component;
mod error;
mod feature;
mod flags;
mod http;
mod peer;
mod pki;
mod port;
mod process;
mod stored;
mod version;
mod workdir;

pub use builder::Builder;
pub use cluster::ControlPlane;
pub use component::{Component, Shutdown};
pub use error::Error;
pub use feature::{Feature, Source};
pub use port::{free as free_port, free_address};
pub use version::{MINOR, VERSIONS, Version};

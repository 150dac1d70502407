//! The command lines of the components.
//!
//! They run in the directory of the control plane: paths are relative to it, and so are etcd's sockets, because a
//! socket's path must be short and a temporary directory's need not be.

use crate::{
    Error, Version,
    pki::{CA, SERVICE_ACCOUNT_KEY, SERVICE_ACCOUNT_PUBLIC_KEY, SERVING_CERT, SERVING_KEY, TOKENS},
};

pub(crate) const ETCD_SOCKET: &str = "etcd.sock";
pub(crate) const KUBECONFIG: &str = "kubeconfig";
pub(crate) const AUDIT_POLICY: &str = "audit-policy.yaml";
pub(crate) const AUDIT_LOG: &str = "audit.log";

/// The controllers that the API alone cannot do without: namespaces get their `default` service account and can be
/// deleted, owned objects go with their owners, and a Secret gets the token of its service account. kube-controller-manager
/// 1.32 runs the last one only if it is listed.
const CONTROLLERS: [&str; 4] = [
    "namespace-controller",
    "serviceaccount-controller",
    "garbage-collector-controller",
    "serviceaccount-token-controller",
];
/// Policies get their `status.typeChecking`.
const TYPE_CHECKS: &str = "validatingadmissionpolicy-status-controller";

/// A minor version to serve, of the binary itself or another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Minor(u32);

impl Minor {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        text.strip_prefix("1.")
            .and_then(|minor| minor.parse().ok())
            .map(Self)
            .ok_or_else(|| Error::EmulatedVersion(text.to_owned()))
    }

    pub(crate) fn of(version: &Version) -> Self {
        Self(version.number.into())
    }

    fn flag(self) -> String {
        format!("--emulated-version=kube=1.{}", self.0)
    }

    /// `MutatingAdmissionPolicy` is a beta there, off by default. Serving it is one thing, for clients that look which
    /// version there is. Enforcing it takes more (see `Builder::emulated_version`): the plugin of a newer binary watches `v1`
    /// only and never becomes ready without it.
    fn has_beta_mutating_policies(self) -> bool {
        matches!(self.0, 34 | 35)
    }
}

pub(crate) fn etcd() -> Vec<String> {
    // etcd wants a host and a port in what it advertises. The only member of a cluster is never looked up by it.
    let nowhere = "http://127.0.0.1:1";
    vec![
        "--name=palisade".into(),
        "--data-dir=etcd".into(),
        format!("--listen-client-urls=unix://{ETCD_SOCKET}"),
        format!("--advertise-client-urls={nowhere}"),
        "--listen-peer-urls=unix://etcd-peer.sock".into(),
        format!("--initial-advertise-peer-urls={nowhere}"),
        format!("--initial-cluster=palisade={nowhere}"),
        // The data need not survive a power cut.
        "--unsafe-no-fsync".into(),
    ]
}

/// What differs from one API server to another.
#[derive(Debug, Clone)]
pub(crate) struct ApiServer {
    pub(crate) port: u16,
    /// The minor of the program.
    pub(crate) minor: Minor,
    pub(crate) emulated: Option<Minor>,
    pub(crate) service_accounts: bool,
    pub(crate) audit: bool,
    pub(crate) extra: Vec<String>,
}

impl ApiServer {
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers=unix://{ETCD_SOCKET}"),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.port),
            // It need not be found out from the machine's network, which may not exist.
            "--advertise-address=127.0.0.1".into(),
            // No client uses the `kubernetes` service.
            "--endpoint-reconciler-type=none".into(),
            format!("--tls-cert-file={SERVING_CERT}"),
            format!("--tls-private-key-file={SERVING_KEY}"),
            format!("--service-account-key-file={SERVICE_ACCOUNT_PUBLIC_KEY}"),
            format!("--service-account-signing-key-file={SERVICE_ACCOUNT_KEY}"),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--token-auth-file={TOKENS}"),
            "--authorization-mode=RBAC".into(),
            "--service-cluster-ip-range=10.0.0.0/16".into(),
            // As on most clusters: it is for policies, not for the server, to refuse privileged pods.
            "--allow-privileged=true".into(),
            // Without it, a server that ends gracefully waits a minute for its watchers to go away by themselves.
            "--shutdown-watch-termination-grace-period=2s".into(),
        ];
        flags.extend(self.emulated.map(Minor::flag));
        if self.emulated.unwrap_or(self.minor).has_beta_mutating_policies() {
            flags.push("--runtime-config=admissionregistration.k8s.io/v1beta1=true".into());
        }
        if !self.service_accounts {
            // Without a controller that creates them, no pod would be admitted at all.
            flags.push("--disable-admission-plugins=ServiceAccount".into());
        }
        if self.audit {
            flags.push(format!("--audit-policy-file={AUDIT_POLICY}"));
            flags.push(format!("--audit-log-path={AUDIT_LOG}"));
            // Tests read the whole log: after 100 MB, which is the default, it would begin anew in another file.
            flags.push("--audit-log-maxsize=100000".into());
        }
        flags.extend_from_slice(&self.extra);
        flags
    }
}

pub(crate) fn controller_manager(
    port: u16,
    emulated: Option<Minor>,
    extra: &[String],
    type_checks: bool,
) -> Vec<String> {
    let controllers = CONTROLLERS.into_iter().chain(type_checks.then_some(TYPE_CHECKS));
    let controllers: Vec<&str> = controllers.chain(extra.iter().map(String::as_str)).collect();
    let mut flags = vec![
        format!("--controllers={}", controllers.join(",")),
        format!("--kubeconfig={KUBECONFIG}"),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={SERVING_CERT}"),
        format!("--tls-private-key-file={SERVING_KEY}"),
        // For the extra controllers that make tokens or publish the certificate authority.
        format!("--service-account-private-key-file={SERVICE_ACCOUNT_KEY}"),
        format!("--root-ca-file={CA}"),
        "--leader-elect=false".into(),
        // Thousands of namespaces come and go at once in tests; by default each would wait for its turn.
        "--kube-api-qps=2000".into(),
        "--kube-api-burst=4000".into(),
        "--concurrent-namespace-syncs=50".into(),
        "--profiling=false".into(),
    ];
    flags.extend(emulated.map(Minor::flag));
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apiserver(minor: u32, emulated: Option<u32>) -> String {
        ApiServer {
            port: 1,
            minor: Minor(minor),
            emulated: emulated.map(Minor),
            service_accounts: true,
            audit: false,
            extra: vec!["--v=2".to_owned()],
        }
        .flags()
        .join(" ")
    }

    #[test]
    fn version_must_be_of_the_form_1_minor() {
        assert_eq!(Minor::parse("1.33").unwrap(), Minor(33));
        for text in ["", "1", "1.", "v1.33", "1.33.1", "2.0"] {
            assert!(Minor::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_enable_mutating_policies_only_where_they_are_beta() {
        for minor in 32..=37 {
            for emulated in (32..=minor).map(Some).chain([None]) {
                let flags = apiserver(minor, emulated);
                let beta = matches!(emulated.unwrap_or(minor), 34 | 35);
                assert_eq!(flags.contains("v1beta1=true"), beta, "{minor}, {emulated:?}");
                assert_eq!(flags.contains("--emulated-version"), emulated.is_some(), "{minor}, {emulated:?}");
            }
        }
    }

    #[test]
    fn caller_flags_come_last_and_take_precedence() {
        assert!(apiserver(36, None).ends_with(" --v=2"));
    }
}

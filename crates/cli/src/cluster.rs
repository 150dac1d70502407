//! The connection to a cluster, and the failures of requests to it.

use std::{error::Error, path::PathBuf, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use palisade_runtime::lists::bounded;

use crate::report::{Failure, Problem};

/// Timeout of a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Heading of these arguments.
const CONNECTION: &str = "Cluster connection";

/// Arguments for the connection to a cluster, like those of kubectl.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig file. The default is the files in $KUBECONFIG, or ~/.kube/config.
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. The default is the current context.
    #[arg(long, value_name = "NAME", help_heading = CONNECTION)]
    pub context: Option<String>,
    /// User to impersonate, like kubectl --as. Requires permission to impersonate this user.
    #[arg(long = "as", value_name = "USER", help_heading = CONNECTION)]
    pub as_user: Option<String>,
    /// Group to impersonate, with --as. Repeatable.
    #[arg(long = "as-group", value_name = "GROUP", help_heading = CONNECTION, requires = "as_user")]
    pub as_groups: Vec<String>,
    /// UID to impersonate, with --as.
    #[arg(long, value_name = "UID", help_heading = CONNECTION, requires = "as_user")]
    pub as_uid: Option<String>,
}

impl ClusterArgs {
    /// Runs `ask` with a client of the cluster.
    ///
    /// # Errors
    /// There is no usable kubeconfig, or `ask` fails.
    pub fn ask<T>(&self, ask: impl AsyncFnOnce(Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| could_not_run(format!("cannot start: {error}")))?;
        runtime.block_on(async {
            let client = self.config().await.and_then(|config| Client::try_from(config).map_err(|e| e.to_string()));
            let client = client.map_err(|error| {
                let problem = Problem::new(format!("cannot connect to a cluster: {error}"));
                Failure::CouldNotRun(vec![problem.help("select a cluster with --kubeconfig and --context")])
            })?;
            ask(bounded(client)).await
        })
    }

    /// The namespace of the context.
    ///
    /// # Errors
    /// There is no usable kubeconfig.
    pub fn namespace(&self) -> Result<String, Failure> {
        self.ask(async |client| Ok(client.default_namespace().to_owned()))
    }

    async fn config(&self) -> Result<Config, String> {
        let kubeconfig = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match kubeconfig {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| e.to_string())?,
            // In a pod, like kubectl.
            Err(error) if self.kubeconfig.is_none() && self.context.is_none() => {
                Config::incluster().map_err(|_| error.to_string())?
            }
            Err(error) => return Err(error.to_string()),
        };
        (config.connect_timeout, config.read_timeout) = (Some(TIMEOUT), Some(TIMEOUT));
        if let Some(user) = &self.as_user {
            let auth = &mut config.auth_info;
            (auth.impersonate, auth.impersonate_uid) = (Some(user.clone()), self.as_uid.clone());
            auth.impersonate_groups = Some(self.as_groups.clone());
            auth.impersonate_user_extra = None;
        }
        Ok(config)
    }
}

/// The failure of a request. If permission is missing, it names the permission and the role that grants it.
pub fn failed(what: &str, error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else {
        return could_not_run(format!("{what}: {}", with_causes(error)));
    };
    let problem = Problem::new(format!("{what}: {}", status.message));
    Failure::CouldNotRun(vec![match Right::missing(&status.message) {
        Some(right) => problem.help(right.help()),
        None => problem,
    }])
}

/// A permission of RBAC.
#[derive(Debug, PartialEq, Eq)]
struct Right<'a> {
    verb: &'a str,
    /// With its subresource, as RBAC writes it.
    resource: &'a str,
    group: &'a str,
    /// None for the whole cluster.
    namespace: Option<&'a str>,
}

/// The `ClusterRole` of `manifests/rbac.yaml` with permission to read everything that the command line reads.
const READER: &str = "palisade-reader";
/// Its permissions, by group and resource, each with get and list.
const READ: [(&str, &[&str]); 13] = [
    ("", &["namespaces", "pods", "podtemplates", "replicationcontrollers"]),
    ("apps", &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("batch", &["cronjobs", "jobs"]),
    ("", &["endpoints", "persistentvolumeclaims", "services"]),
    ("discovery.k8s.io", &["endpointslices"]),
    (
        "gateway.networking.k8s.io",
        &["gateways", "grpcroutes", "httproutes", "listenersets", "tcproutes", "tlsroutes", "udproutes"],
    ),
    ("gateway.networking.x-k8s.io", &["xlistenersets"]),
    ("groupsnapshot.storage.k8s.io", &["volumegroupsnapshots"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("rbac.authorization.k8s.io", &["rolebindings", "roles"]),
    ("snapshot.storage.k8s.io", &["volumesnapshots"]),
    (
        palisade_api::names::GROUP,
        &["toolsecurityexceptions", "toolsecurityparams", "toolsecurityprofiles", "toolsecurityreports"],
    ),
    ("admissionregistration.k8s.io", &["mutatingadmissionpolicies", "mutatingwebhookconfigurations"]),
];

impl<'a> Right<'a> {
    /// The missing permission, from the answer of the API server (`ForbiddenMessage` in apiserver
    /// `pkg/endpoints/handlers/responsewriters/errors.go`).
    fn missing(message: &'a str) -> Option<Self> {
        let (_, rest) = message.split_once("\" cannot ").or_else(|| message.split_once(" cannot "))?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let namespace = rest.strip_prefix(" in the namespace \"").and_then(|rest| rest.split_once('"'));
        Some(Self { verb, resource, group, namespace: namespace.map(|(name, _)| name) })
    }

    fn help(&self) -> String {
        let Self { verb, resource, group, namespace } = self;
        // In the notation of kubectl: `deployments.apps/scale`.
        let (plural, sub) = resource.split_at(resource.find('/').unwrap_or(resource.len()));
        let dot = if group.is_empty() { "" } else { "." };
        let named = format!("{plural}{dot}{group}{sub}");
        let place = namespace.map_or_else(|| "in the whole cluster".to_owned(), |name| format!("in namespace {name}"));
        let of_group = |(of, resources): &(&str, &[&str])| of == group && resources.contains(resource);
        let role = if matches!(*verb, "get" | "list") && READ.iter().any(of_group) {
            format!("the ClusterRole {READER} grants it")
        } else {
            let create = "kubectl create clusterrole";
            format!("create a ClusterRole that grants it: {create} palisade-user --verb={verb} --resource={named}")
        };
        format!("this requires permission to {verb} {named} {place}; {role}")
    }
}

/// An error with its causes: a failed connection has the reason there.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(found) = cause {
        let found_text = found.to_string();
        if !text.contains(&found_text) {
            text = format!("{text}: {found_text}");
        }
        cause = found.source();
    }
    text
}

/// A failure with one message.
pub fn could_not_run(message: impl Into<String>) -> Failure {
    Failure::CouldNotRun(vec![Problem::new(message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T>(result: Result<T, Failure>) -> String {
        match result {
            Err(Failure::CouldNotRun(problems)) => problems.iter().map(ToString::to_string).collect(),
            _ => panic!("another result"),
        }
    }

    #[test]
    fn missing_kubeconfig_and_unknown_context_are_reported() {
        let missing = ClusterArgs { kubeconfig: Some("/nonexistent".into()), ..ClusterArgs::default() };
        assert!(message(missing.ask(async |_| Ok(()))).starts_with("cannot connect to a cluster: "));
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = "{apiVersion: v1, kind: Config, clusters: [], contexts: [], users: [], current-context: a}";
        std::fs::write(file.path(), config).unwrap();
        let mut unknown = ClusterArgs { kubeconfig: Some(file.path().into()), ..ClusterArgs::default() };
        unknown.context = Some("b".to_owned());
        assert_eq!(
            message(unknown.ask(async |_| Ok(()))),
            "cannot connect to a cluster: failed to load current context: b"
        );
    }

    #[test]
    fn a_missing_right_is_named_with_the_role_that_gives_it() {
        let help = |message: &str| Right::missing(message).map(|right| right.help());
        let forbidden = |what: &str| format!("x is forbidden: User \"jane\" cannot {what}");
        let pods = "list resource \"pods\" in API group \"\" at the cluster scope";
        let expected =
            "this requires permission to list pods in the whole cluster; the ClusterRole palisade-reader grants it";
        assert_eq!(help(&forbidden(pods)).as_deref(), Some(expected));
        let own = "get resource \"toolsecurityprofiles\" in API group \"toolsecurity.dev\" in the namespace \"a\"";
        let expected =
            "get toolsecurityprofiles.toolsecurity.dev in namespace a; the ClusterRole palisade-reader grants it";
        assert!(help(&forbidden(own)).is_some_and(|help| help.ends_with(expected)));
        let write =
            "patch resource \"toolsecurityexceptions/status\" in API group \"toolsecurity.dev\" at the cluster scope";
        let expected = "--verb=patch --resource=toolsecurityexceptions.toolsecurity.dev/status";
        assert!(help(&forbidden(write)).is_some_and(|help| help.ends_with(expected)), "{:?}", help(&forbidden(write)));
        assert_eq!(help("pods \"a\" not found"), None);
        assert_eq!(help("it cannot be"), None);
    }

    #[test]
    fn the_role_permits_what_is_read() {
        let text = include_str!("../../../manifests/rbac.yaml");
        let source = std::sync::Arc::new(crate::report::Source::new("rbac.yaml", text.to_owned()));
        let roles = palisade_manifest::objects(&source).unwrap();
        let roles: Vec<_> = roles.iter().map(|role| role.json().unwrap()).collect();
        let role =
            roles.iter().find(|role| role["kind"] == "ClusterRole" && role["metadata"]["name"] == READER).unwrap();
        let rules: Vec<_> = READ
            .iter()
            .map(|(group, resources)| serde_json::json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]}))
            .collect();
        assert_eq!(role["rules"], serde_json::json!(rules));
    }

    #[test]
    fn another_user_is_asked_as() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a, \
                      namespace: tool-a}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], \
                      users: [{name: a, user: {as: somebody, as-groups: [all]}}]}";
        std::fs::write(file.path(), config).unwrap();
        let mut args = ClusterArgs { kubeconfig: Some(file.path().into()), ..ClusterArgs::default() };
        args.as_user = Some("jane".to_owned());
        args.as_groups = vec!["dev".to_owned()];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let config = runtime.block_on(args.config()).unwrap();
        assert_eq!(config.auth_info.impersonate.as_deref(), Some("jane"));
        assert_eq!(config.auth_info.impersonate_groups.as_deref(), Some(&["dev".to_owned()][..]));
        assert_eq!(config.default_namespace, "tool-a");
    }

    #[test]
    fn causes_are_named_once() {
        #[derive(Debug)]
        struct Outer(std::io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("connect failed")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let error = Outer(std::io::Error::other("refused"));
        assert_eq!(with_causes(&error), "connect failed: refused");
    }
}

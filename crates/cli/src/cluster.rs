//! A cluster, for the commands that ask one: which it is, and how a request to it fails.

use std::{error::Error, path::PathBuf, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::report::{Failure, Problem};

/// How long an API server may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments that choose a cluster, as kubectl has them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterArgs {
    /// The kubeconfig file. By default those that $KUBECONFIG lists, or ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArgs {
    /// Does something with the cluster.
    ///
    /// # Errors
    /// There is no usable kubeconfig, or what `ask` returns.
    pub fn ask<T>(&self, ask: impl AsyncFnOnce(Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| could_not_run(format!("cannot start: {error}")))?;
        runtime.block_on(async {
            let client = self.config().await.and_then(|config| Client::try_from(config).map_err(|e| e.to_string()));
            let client = client.map_err(|error| {
                let problem = Problem::new(format!("no cluster to ask: {error}"));
                Failure::CouldNotRun(vec![problem.help("--kubeconfig and --context choose one, as for kubectl")])
            })?;
            ask(client).await
        })
    }

    async fn config(&self) -> Result<Config, String> {
        let kubeconfig = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let kubeconfig = kubeconfig.map_err(|error| error.to_string())?;
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| error.to_string())?;
        (config.connect_timeout, config.read_timeout) = (Some(TIMEOUT), Some(TIMEOUT));
        Ok(config)
    }
}

/// The failure of a request.
pub fn failed(what: &str, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => could_not_run(format!("{what}: {}", status.message)),
        error => could_not_run(format!("{what}: {}", with_causes(error))),
    }
}

/// An error and what caused it: that a connection failed says nothing without its cause.
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
        let missing = ClusterArgs { kubeconfig: Some("/nonexistent".into()), context: None };
        assert!(message(missing.ask(async |_| Ok(()))).starts_with("no cluster to ask: "));
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = "{apiVersion: v1, kind: Config, clusters: [], contexts: [], users: [], current-context: a}";
        std::fs::write(file.path(), config).unwrap();
        let unknown = ClusterArgs { kubeconfig: Some(file.path().into()), context: Some("b".to_owned()) };
        assert_eq!(message(unknown.ask(async |_| Ok(()))), "no cluster to ask: failed to load current context: b");
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

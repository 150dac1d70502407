//! `palisade audit`: who was denied, warned or noted, by which check, as API servers say: in their audit logs, by events that
//! they send, or by their metrics.

mod server_metrics;
mod sink;
mod summary;

use std::path::PathBuf;

use clap::ValueEnum;

use self::{
    sink::SinkArgs,
    summary::{Filter, Summary},
};
use crate::{
    cluster::{ClusterArgs, could_not_run},
    events, output,
    report::Failure,
};

const EXAMPLES: &str = "\
Examples:
  palisade audit /var/log/kubernetes/audit
  palisade audit audit.log --since 2026-11-24T00:00:00Z --profile toolforge
  kubectl get --raw /logs/kube-apiserver/audit.log | palisade audit -
  palisade audit --listen 127.0.0.1:9443 --tls-cert-file crt --tls-private-key-file key --every 1m
  palisade audit --metrics

An audit policy at level Metadata is enough for profiles, checks and namespaces. Workloads have their names only at level \
Request, since a controller that creates pods lets the API server name them.

--metrics needs the right to get the path /metrics, which the ClusterRole system:monitoring grants.

Exit codes: 0 shown, 2 could not run.";

/// The arguments of `palisade audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AuditArgs {
    /// Audit logs, with one event in JSON on a line: files, directories of them, or - for standard input.
    #[arg(value_name = "FILE|DIR", required_unless_present_any = ["listen", "metrics"])]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub sink: SinkArgs,
    /// Show how often the API server of the kubeconfig denied, warned or noted since it started, by its own metrics. They
    /// know profiles, and neither checks nor namespaces; dry runs count, such as those of the controller.
    #[arg(long, conflicts_with_all = ["paths", "listen", "namespace", "since"])]
    pub metrics: bool,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    #[command(flatten)]
    pub filter: Filter,
    /// How many namespaces and workloads are named.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub top: usize,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: AuditFormat,
}

/// The format of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditFormat {
    /// Counts by check, and the namespaces and workloads with the most.
    Table,
    /// The same as one object; with --listen on one line.
    Json,
}

/// Runs the command.
pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    if args.metrics {
        return server_metrics::run(args);
    }
    if args.cluster.kubeconfig.is_some() || args.cluster.context.is_some() {
        return Err(could_not_run("--kubeconfig and --context are for --metrics, which asks a cluster"));
    }
    if let Some(listen) = args.sink.listen {
        return sink::run(args, listen);
    }
    let mut summary = Summary::default();
    events::each(&args.paths, |event| summary.add(&args.filter, &event))?;
    output::print(&match args.output {
        AuditFormat::Table => summary.table(args.top),
        AuditFormat::Json => format!("{:#}\n", summary.json(args.top)),
    })
}

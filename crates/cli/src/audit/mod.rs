//! `palisade audit`: counts requests that were denied, warned or audited, by check: from audit logs, or by profile from the
//! metrics of an API server.

mod server_metrics;
mod summary;

use std::path::PathBuf;

use self::summary::{Filter, Summary};
use crate::{
    cluster::{ClusterArgs, could_not_run},
    input::UnevaluatedArgs,
    log,
    options::{INPUT, OUTPUT},
    output::{self, FormatArgs},
    report::Failure,
};

const EXAMPLES: &str = "\
Examples:
  palisade audit /var/log/kubernetes/audit
  palisade audit audit.log --since 2026-11-24T00:00:00Z --profile-name toolforge
  kubectl get --raw /api/v1/nodes/cp-1/proxy/logs/kubernetes/audit/audit.log | palisade audit -
  palisade audit --metrics

An audit policy at level Metadata is enough for profiles, checks and namespaces. Names of workloads require level \
Request, because the API server generates the names of pods that controllers create.

--metrics requires permission to get the path /metrics, which the ClusterRole system:monitoring grants.

Exit codes: 0 shown, 2 could not run, or a log has an invalid audit event; the rest is shown.";

/// The arguments of `palisade audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct AuditArgs {
    /// Audit logs in JSON, plain or compressed with gzip: files, directories, or - for standard input.
    #[arg(value_name = "FILE|DIR", required_unless_present = "metrics")]
    pub paths: Vec<PathBuf>,
    /// Show how many requests the API server denied, warned or audited since it started, from its own metrics. Counts
    /// by profile only, without checks and namespaces; dry runs, such as probes of the controller, are included.
    #[arg(long, help_heading = INPUT, conflicts_with_all = ["paths", "namespace", "since"])]
    pub metrics: bool,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    #[command(flatten)]
    pub unevaluated: UnevaluatedArgs,
    #[command(flatten)]
    pub filter: Filter,
    /// Number of namespaces and workloads to list.
    #[arg(long, value_name = "COUNT", default_value_t = 10, help_heading = OUTPUT)]
    pub top: usize,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Runs the command.
pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    if args.metrics {
        return server_metrics::run(args);
    }
    if args.cluster.kubeconfig.is_some() || args.cluster.context.is_some() {
        return Err(could_not_run("--kubeconfig and --context require --metrics"));
    }
    let mut summary = Summary::default();
    let problems = log::each(&args.paths, |event| summary.add(&args.filter, &event))?;
    output::print(&args.format.text(|| summary.table(args.top), || summary.json(args.top))?)?;
    args.unevaluated.settle(problems)
}

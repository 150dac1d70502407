//! The arguments of `palisade exception`.

use clap::{Args, Subcommand, ValueEnum};

use crate::cluster::ClusterArgs;

const EXAMPLES: &str = "\
Examples:
  palisade exception list --all-namespaces
  palisade exception show gpu-driver -n tool-video
  palisade exception approve gpu-driver -n tool-video
  palisade exception approve gpu-driver -n tool-video --generation 2 --yes
  palisade exception revoke gpu-driver -n tool-video

Whoever approves needs the role palisade-exception-approver by a ClusterRoleBinding.

Exit codes: 0 done, or nothing to do; 2 could not run.";

/// What to do with ToolSecurityExceptions.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum ExceptionCommand {
    /// List what tenants ask for, and whether it is approved.
    List(ListArgs),
    /// Show what an exception asks for, how it stands, and whether it was changed since somebody approved it.
    Show(OneArgs),
    /// Show an exception and approve just what was shown.
    ///
    /// If somebody changes it meanwhile, nothing is approved. Without --yes it asks, on a terminal.
    Approve(ApproveArgs),
    /// Withdraw an approval: the checks are made again for what is created from then on.
    Revoke(OneArgs),
}

/// Where an exception is.
#[derive(Debug, Args)]
pub struct NamespaceArgs {
    /// The namespace. By default that of the context.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The arguments of `palisade exception list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    pub of: NamespaceArgs,
    /// Those of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Only those that wait for an approval.
    #[arg(long)]
    pub pending: bool,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: ListFormat,
}

/// The format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A line for each.
    Table,
    /// One object with a list of them, as the cluster has them.
    Json,
}

/// The arguments about one exception.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// The name of a ToolSecurityException.
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub of: NamespaceArgs,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OneFormat,
}

/// The format of one exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OneFormat {
    /// For people.
    Text,
    /// The object as the cluster has it, after the command.
    Json,
}

/// The arguments of `palisade exception approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Approve without a question.
    #[arg(long)]
    pub yes: bool,
    /// Approve only this version of the spec, which `palisade exception show` names.
    #[arg(long, value_name = "GENERATION")]
    pub generation: Option<i64>,
}

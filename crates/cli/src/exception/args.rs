//! The arguments of `palisade exception`.

use clap::{Args, Subcommand};

use crate::{cluster::ClusterArgs, output::FormatArgs};

const EXAMPLES: &str = "\
Examples:
  palisade exception list --all-namespaces
  palisade exception show gpu-driver -n tool-video
  palisade exception approve gpu-driver -n tool-video
  palisade exception approve gpu-driver -n tool-video --generation 2 --yes
  palisade exception revoke gpu-driver -n tool-video

To approve exceptions, a user needs the ClusterRole palisade-exception-approver by a ClusterRoleBinding.

Exit codes: 0 done, or nothing to do; 2 could not run.";

/// Commands for ToolSecurityExceptions.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum ExceptionCommand {
    /// List exception requests and their approvals.
    List(ListArgs),
    /// Show an exception request, its state and the changes since its approval.
    Show(OneArgs),
    /// Show an exception request and approve it.
    ///
    /// Fails if the request was modified in between. Without --yes, it asks for confirmation on the terminal.
    Approve(ApproveArgs),
    /// Revoke an approval
    ///
    /// The checks apply again to objects that are created afterwards.
    Revoke(OneArgs),
}

/// The namespace of an exception.
#[derive(Debug, Args)]
pub struct NamespaceArgs {
    /// Namespace. The default is the namespace of the context.
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
    /// List exceptions of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// List only exceptions that are not approved yet.
    #[arg(long)]
    pub pending: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// The arguments for one exception.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// Name of a ToolSecurityException.
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub of: NamespaceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// The arguments of `palisade exception approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    #[command(flatten)]
    pub one: OneArgs,
    /// Approve without confirmation.
    #[arg(long)]
    pub yes: bool,
    /// Approve only this generation of the spec, as printed by palisade exception show.
    #[arg(long, value_name = "GENERATION")]
    pub generation: Option<i64>,
}

//! The command line of `palisade new`.

use std::path::PathBuf;

use clap::Subcommand;
use palisade_cel::Minor;

use crate::options::kube_version_help;

const EXAMPLES: &str = "\
Examples:
  palisade new policy team-label                      for pods, in ./team-label
  palisade new policy https-only --kind Ingress --directory policies
  palisade test --coverage --mutate team-label        run the new suite
  palisade lint team-label

Writes policy.yaml, binding.yaml (with Warn and Audit), good.yaml, bad.yaml and a suite, palisade-test.yaml. The \
policy requires a label: replace this rule with your own. docs/policies.md lists policies to copy.

Exit codes: 0 written, 2 could not run.";

/// The kind of scaffold.
#[derive(Debug, Subcommand)]
pub enum NewCommand {
    /// Scaffold a ValidatingAdmissionPolicy and its tests.
    Policy(PolicyArgs),
}

/// The arguments of `palisade new policy`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PolicyArgs {
    /// Name of the policy, and of the new directory.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Kind that the policy evaluates, or its plural.
    #[arg(long, value_name = "KIND", default_value = "Pod")]
    pub kind: String,
    /// Parent of the new directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    #[arg(long, value_name = "VERSION", default_value_t = Minor::DEFAULT, help = kube_version_help())]
    pub kube_version: Minor,
}

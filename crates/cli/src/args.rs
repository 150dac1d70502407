//! The command line.

use std::collections::BTreeMap;

use clap::{Parser, Subcommand, ValueEnum};
use palisade_cel::Minor;

use crate::{eval::EvalArgs, explain::ExplainArgs, lint::LintArgs, test::TestArgs};

const EXAMPLES: &str = "\
Examples:
  palisade render profile.yaml
  palisade render profile.yaml --namespaces namespaces.yaml
  kubectl get namespaces -o yaml | palisade render profile.yaml --namespaces -
  palisade render profile.yaml | kubectl diff -f -
  palisade render profile.yaml --pod pod.yaml --namespaces namespace.yaml -o diff

Exit codes: 0 success, 1 a profile was rejected, 2 could not run.

A copy or link named kubectl-palisade in PATH makes this a plugin: kubectl palisade render profile.yaml";

/// Tenant security for Kubernetes, enforced by the API server itself.
///
/// Works offline: it asks no cluster and changes nothing. What it prints passed the check that the controller makes
/// before it applies anything.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, after_help = EXAMPLES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the objects that the controller would apply for a profile.
    ///
    /// They come in the order in which the controller applies them: parameters, policies, bindings. If one profile is
    /// rejected, nothing is printed.
    Render(RenderArgs),
    /// Test admission policies without a cluster, against the verdicts that you expect.
    ///
    /// For ValidatingAdmissionPolicies, MutatingAdmissionPolicies and profiles. A suite names the files with
    /// the objects of the cluster, and has cases: a request, whether the API server should admit or deny it, by which
    /// policy, and with which message.
    Test(TestArgs),
    /// Evaluate requests offline, as the API server would.
    ///
    /// The files hold the objects of the cluster: policies, bindings, parameters, CustomResourceDefinitions,
    /// namespaces, and profiles, which are compiled for those namespaces. A request is an object, or an
    /// `AdmissionReview` as the API server sends it to a webhook.
    Eval(EvalArgs),
    /// Explain how a profile mutates a pod, which checks deny it, and the smallest change with which it is admitted.
    ///
    /// Palisade tries each change before it suggests it: it mutates the changed pod and judges it again.
    Explain(ExplainArgs),
    /// Convert other policies to profiles.
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Find mistakes in admission policies, and what is valid but dangerous.
    ///
    /// Reads ValidatingAdmissionPolicies, MutatingAdmissionPolicies, their bindings and parameters,
    /// CustomResourceDefinitions, and profiles with the policies that they compile to. Reports what the API server
    /// rejects, in its words; what it warns about; and what it accepts although it can lock a cluster. Lint treats all
    /// files as one cluster; it skips and counts objects of other kinds.
    Lint(LintArgs),
    /// Print a script that completes commands and flags in a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for each command.
    Man {
        /// The directory to write into.
        #[arg(long, value_name = "DIR")]
        directory: Option<std::path::PathBuf>,
    },
}

/// What to migrate from.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Convert each PodSecurityPolicy to a profile, and report the differences.
    ///
    /// A profile allows what the PodSecurityPolicy allowed. Each difference is reported in a comment above the profile,
    /// and as a warning with its place. The roles and bindings in the files decide which namespaces a profile selects.
    /// Each profile passed the check that the controller makes.
    Psp(PspArgs),
}

const PSP_EXAMPLES: &str = "\
Examples:
  palisade migrate psp policies.yaml > profiles.yaml
  kubectl get psp,clusterroles,clusterrolebindings -o yaml > policies.yaml
  kubectl get roles,rolebindings -A -o yaml > grants.yaml
  palisade migrate psp policies.yaml grants.yaml --stage Warn
  palisade migrate psp restricted.yaml --namespace-selector tenancy=tool --strict

Exit codes: 0 migrated, 1 a file has mistakes (or, with --strict, something differs), 2 could not run.

Kinds of notes: stricter (pods that were admitted are denied), looser (pods that were denied are admitted), \
defaulted (a default is kept), default (a default is lost), selection (which namespaces), note (good to know). See \
docs/migrate-from-psp.md.";

/// The arguments of `palisade migrate psp`.
#[derive(Debug, clap::Args)]
#[command(after_help = PSP_EXAMPLES)]
pub struct PspArgs {
    /// YAML or JSON files with PodSecurityPolicies, and with the Roles, ClusterRoles and their bindings that say who
    /// may use them; - is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    pub output: Format,
    /// What happens to a pod that violates a profile. Audit shows what would be denied, and denies nothing.
    #[arg(long, value_name = "STAGE", default_value = "Audit")]
    pub stage: StageArg,
    /// Labels of the namespaces to select, as key=value[,key=value]; instead of those that the bindings name.
    #[arg(long, value_name = "LABELS", value_parser = labels)]
    pub namespace_selector: Option<BTreeMap<String, String>>,
    /// Exit with 1 if anything could not be carried over one to one. The profiles are printed all the same.
    #[arg(long)]
    pub strict: bool,
}

/// How far a profile is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    /// Violations are refused.
    #[value(name = "Deny")]
    Deny,
    /// Violations are admitted with a warning.
    #[value(name = "Warn")]
    Warn,
    /// Violations are admitted with a note in the audit log.
    #[value(name = "Audit")]
    Audit,
}

/// Labels as `kubectl -l` takes them, though only equal ones.
fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for pair in text.split(',') {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is not key=value"))?;
        let key_ok =
            !key.is_empty() && key.len() <= 317 && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        let value_ok = value.len() <= 63 && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !key_ok || !value_ok {
            return Err(format!("{pair:?} is not a valid label"));
        }
        if labels.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("{key} is given twice"));
        }
    }
    Ok(labels)
}

/// The arguments of `palisade render`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RenderArgs {
    /// YAML or JSON file with one or more profiles; - is standard input.
    #[arg(value_name = "PROFILE")]
    pub profile: String,
    /// YAML or JSON file with Namespaces, as kubectl get namespaces -o yaml prints them; - is standard input. For each one
    /// that the profile selects, its parameters are printed too.
    #[arg(long, value_name = "FILE")]
    pub namespaces: Option<String>,
    /// Print instead the Pods in this file as the profiles mutate them, with the differences as comments; - is standard
    /// input. A pod is in the namespace that it names, or else in the only one of --namespaces. Without --namespaces
    /// all profiles select it, with made-up values for their parameters.
    #[arg(long, value_name = "FILE")]
    pub pod: Option<String>,
    #[arg(long, value_name = "VERSION", default_value_t = Minor::DEFAULT, help = kube_version_help())]
    pub kube_version: Minor,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    pub output: RenderFormat,
}

/// How what a profile becomes is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RenderFormat {
    /// Documents separated by ---.
    Yaml,
    /// One List, which kubectl and jq both read.
    Json,
    /// With --pod: the difference only, as kubectl diff shows it.
    Diff,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Documents separated by ---.
    Yaml,
    /// One List, which kubectl and jq both read.
    Json,
}

/// What `--kube-version` is.
pub(crate) fn kube_version_help() -> String {
    format!("The API server's version: {}", Minor::supported())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn labels_are_pairs() {
        let expected = [("a.b/c", "d"), ("e", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(labels("a.b/c=d,e="), Ok(expected.into()));
        for text in ["", "a", "=b", "a=b,", "a=b,a=c", "a=b c", "a!=b"] {
            assert!(labels(text).is_err(), "{text}");
        }
    }
}

//! The command line.

use clap::{Parser, Subcommand};

use crate::{
    audit::AuditArgs, check::CheckArgs, compare::DiffArgs, dump::DumpArgs, eval::EvalArgs, exception::ExceptionCommand,
    explain::ExplainArgs, guard::GuardCommand, history::HistoryArgs, lint::LintArgs, migrate::PspArgs, new::NewCommand,
    readiness::ReportArgs, render::RenderArgs, replay::ReplayArgs, rollback::RollbackArgs, rollout::RolloutCommand,
    status::StatusArgs, style::Color, suggest::SuggestArgs, test::TestArgs, why::WhyArgs,
};

const EXAMPLES: &str = "\
Examples:
  palisade render profile.yaml | kubectl diff -f -
  palisade check deployment.yaml --profile profile.yaml
  palisade explain --pod pod.yaml --profile profile.yaml
  palisade lint policies/
  palisade test policies/
  palisade status
  palisade why tool-a

Exit codes: 0 nothing is wrong, 1 something is wrong with what was given, 2 could not run. The help of each command says more.

A copy or link named kubectl-palisade in PATH makes this a plugin: kubectl palisade status";

/// Tenant security for Kubernetes, enforced by the API server itself.
///
/// Works offline: only status, why, history, diff, dump, rollback, rollout, exception, audit --metrics, and check, replay, report
/// and suggest with --live ask a cluster, and only rollback, rollout and exception change anything. What render prints passed the
/// check that the controller makes before it applies anything.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, after_help = EXAMPLES)]
pub struct Args {
    /// When output has color: on a terminal (auto), always or never. The variable `NO_COLOR` turns auto off.
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_possible_values = true,
        display_order = 900
    )]
    pub color: Color,
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
    /// Start a policy with its suite in a directory of its own.
    #[command(subcommand)]
    New(NewCommand),
    /// Evaluate requests offline, as the API server would.
    ///
    /// The files hold the objects of the cluster: policies, bindings, parameters, CustomResourceDefinitions,
    /// namespaces, and profiles, which are compiled for those namespaces. A request is an object, or an
    /// `AdmissionReview` as the API server sends it to a webhook.
    Eval(EvalArgs),
    /// Judge manifests by profiles, for a tenant's CI: all violations, and the smallest change with which they pass.
    ///
    /// The manifests are files, directories, or the output of Helm or kustomize on standard input. Each pod and each
    /// workload is judged as an API server does it that has these profiles, after defaults and mutation; other objects
    /// are counted.
    Check(CheckArgs),
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
    /// List the revisions of a profile in a cluster that were put in force.
    History(HistoryArgs),
    /// Show what a change of profiles does before it is applied; or how two revisions of a profile differ.
    ///
    /// Compares profiles in files, in a commit or in the cluster: the generated objects, and who would newly be denied or
    /// admitted of the pods and workloads of the cluster, of a dump or of manifests.
    Diff(DiffArgs),
    /// Show what would have become of past requests under other profiles, by the audit logs of API servers.
    Replay(ReplayArgs),
    /// Write what is needed of a cluster to judge by it offline: profiles, namespaces, pods and workloads, and no Secret.
    Dump(DumpArgs),
    /// Give a profile in a cluster the spec of an earlier revision.
    ///
    /// Palisade compiles and checks the revision first, and writes nothing that it rejects.
    Rollback(RollbackArgs),
    /// Show how far the rollout of a profile to stricter stages is, or steer it.
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// List the exceptions that tenants ask for, and approve them.
    #[command(subcommand)]
    Exception(ExceptionCommand),
    /// Show the profiles of a cluster on one screen: conditions, stages, what failed, what is held, what violates them.
    Status(StatusArgs),
    /// Show what holds in a namespace and where it comes from: stage, parameters, exceptions, violations.
    ///
    /// With a pod, also what the profiles there do with it, and the smallest change with which it is admitted.
    Why(WhyArgs),
    /// Count who was denied, warned or noted by API servers: by profile, check, namespace and workload.
    ///
    /// By their audit logs, by audit events that they send here, or, without checks and namespaces, by the metrics of one of
    /// them.
    Audit(AuditArgs),
    /// Report how near namespaces are to Deny and what to change, as one page to share.
    ///
    /// All pods and workloads of a cluster, of a dump of it, or in files are judged as if they were created now. The
    /// report counts checks and namespaces, and has the smallest change of each workload with which it complies. The page
    /// needs no network.
    Report(ReportArgs),
    /// Propose the smallest changes of profiles that admit what exists, and say what else they would allow.
    ///
    /// Judges all pods and workloads of a cluster, of a dump of it, or in files, and looks for values that a profile would have to
    /// list for those that violate it. Each change was tried: the changed profile judged them again. Changes that admit the
    /// most workloads come first. No change is proposed that turns a check off, or that allows a path
    /// that is known as the node's own.
    Suggest(SuggestArgs),
    /// Print how to remove the guard of what a profile reads from namespaces.
    #[command(subcommand)]
    Guard(GuardCommand),
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        Args::command().debug_assert();
    }

    /// What the help of commands says of their exit codes, as rows of a table.
    fn exit_codes(command: &clap::Command, path: &str, rows: &mut String) {
        for command in command.get_subcommands() {
            let path = format!("{path} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            if let Some((_, rest)) = help.split_once("Exit codes: ") {
                let said = rest.split("\n\n").next().unwrap_or_default();
                let _ = writeln!(rows, "| `{path}` | {said} |");
            }
            exit_codes(command, &path, rows);
        }
    }

    #[test]
    fn page_of_exit_codes_says_what_help_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/exit-codes.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (head, rows) = page.split_once("\n| command | |\n|---|---|\n").unwrap();
        let mut expected = String::new();
        exit_codes(&Args::command(), "palisade", &mut expected);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, format!("{head}\n| command | |\n|---|---|\n{expected}")).unwrap();
        } else {
            assert_eq!(rows, expected, "UPDATE_GOLDEN=1 writes it");
        }
        for word in ["completions", "man", "guard"] {
            assert!(!expected.contains(&format!("`palisade {word}")) && head.contains(&format!("`palisade {word}`")));
        }
    }
}

//! The command line.

use std::fmt::Write as _;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{
    audit::AuditArgs, check::CheckArgs, compare::DiffArgs, dump::DumpArgs, eval::EvalArgs, exception::ExceptionCommand,
    history::HistoryArgs, infer::InferArgs, lint::LintArgs, migrate::PspArgs, new::NewCommand, prove::ProveArgs,
    readiness::ReportArgs, render::RenderArgs, replay::ReplayArgs, rollback::RollbackArgs, rollout::RolloutCommand,
    status::StatusArgs, style::Color, suggest::SuggestArgs, test::TestArgs, why::WhyArgs,
};

/// The commands by task, as the help of `palisade` lists them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Write and check", &["check", "render"]),
    ("Roll out", &["diff", "prove", "replay", "report", "suggest", "infer", "rollout"]),
    ("Operate", &["status", "why", "audit", "exception", "history", "rollback", "dump"]),
    ("Policies of any kind", &["new", "test", "lint", "eval"]),
    ("Migrate", &["migrate"]),
    ("Other", &["completions", "man"]),
];

const EXAMPLES: &str = "\
Examples:
  palisade render profile.yaml | kubectl diff -f -
  palisade check deployment.yaml --profile profile.yaml
  palisade lint policies/
  palisade test policies/
  palisade status
  palisade why tool-a

Exit codes: 0 success, 1 a violation or an invalid input was found, 2 could not run. See the help of each command.

To use this as a kubectl plugin, link it as kubectl-palisade into a directory in PATH: kubectl palisade status";

/// Tenant security for Kubernetes, enforced by the API server
///
/// These commands connect to a cluster: status, why, history, diff, dump, rollback, rollout, exception, audit
/// --metrics, and check, replay, report, suggest and infer with --live. Only rollback, rollout and exception change
/// objects. All other commands work offline. The output of render has passed the same check that the controller makes before it
/// applies objects.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, after_help = EXAMPLES)]
pub struct Args {
    /// When to color output: auto (on a terminal, unless `NO_COLOR` is set), always or never.
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_possible_values = true,
        display_order = 900
    )]
    pub color: Color,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command line, with a help that groups the commands by task.
pub fn definition() -> clap::Command {
    let root = Args::command();
    let heading = *root.get_styles().get_header();
    let literal = *root.get_styles().get_literal();
    let mut sections = String::new();
    for (title, names) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(sections, "{heading}{title}:{heading:#}");
        for command in names.iter().filter_map(|name| root.find_subcommand(name)) {
            let (name, about) = (command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default());
            let _ = writeln!(sections, "  {literal}{name:12}{literal:#} {about}");
        }
        if title == "Other" {
            let _ = writeln!(sections, "  {literal}help        {literal:#} Print the help of a command");
        }
        sections.push('\n');
    }
    root.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{sections}\
         {heading}Options:{heading:#}\n{{options}}{{after-help}}"
    ))
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the objects that the controller applies for a profile
    ///
    /// Prints them in the order in which the controller applies them: parameters, policies, bindings. If a profile is
    /// rejected, nothing is printed.
    Render(RenderArgs),
    /// Test admission policies and profiles offline, with suites of cases
    ///
    /// For ValidatingAdmissionPolicies, MutatingAdmissionPolicies and profiles. A suite lists the files with the
    /// objects of the cluster, and has cases: a request, the expected verdict, the policy that denies it, and the
    /// message.
    Test(TestArgs),
    /// Scaffold a policy and its tests in a new directory
    #[command(subcommand)]
    New(NewCommand),
    /// Evaluate requests offline, as the API server does
    ///
    /// The files contain the objects of the cluster: policies, bindings, parameters, CustomResourceDefinitions,
    /// namespaces, and profiles, which are compiled for those namespaces. A request is an object, or an
    /// `AdmissionReview` as the API server sends it to a webhook.
    Eval(EvalArgs),
    /// Check manifests against profiles, for CI, and suggest fixes
    ///
    /// The manifests are files, directories, or the output of Helm or kustomize on standard input. Each pod and each
    /// workload is evaluated as by an API server with these profiles, after defaults and mutation. All violations are
    /// printed, with the smallest change that fixes them: Palisade tries each change before it suggests it. With
    /// --explain, the fields that the profiles set are printed, too. Objects of other kinds are only counted.
    Check(CheckArgs),
    /// Convert other policies to profiles
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Find errors and dangerous settings in admission policies
    ///
    /// Reads ValidatingAdmissionPolicies, MutatingAdmissionPolicies, their bindings and parameters,
    /// CustomResourceDefinitions, and profiles with the policies that are generated from them. Reports what the API
    /// server rejects, with its messages; its warnings; and valid settings that can lock a cluster. All files together
    /// are one cluster. Objects of other kinds are skipped and counted.
    Lint(LintArgs),
    /// List the recorded revisions of a profile
    History(HistoryArgs),
    /// Preview the effect of a profile change, or compare revisions
    ///
    /// Compares profiles in files, in a commit or in the cluster: the generated objects, and the pods and workloads
    /// that are newly denied or admitted. These come from the cluster, from a dump or from manifests.
    Diff(DiffArgs),
    /// Prove that a profile change admits nothing new, for all pods
    ///
    /// Compares two versions of a profile for all pods that a tenant can send, not only for existing ones. For both
    /// directions it prints a proof, or a pod that only one of the versions admits. Each such pod is evaluated before it
    /// is printed. It compares the verdicts on pods at the stage Deny, before mutation: not the stages, the selected
    /// namespaces, the exemptions of namespaces, workloads and other objects.
    Prove(ProveArgs),
    /// Replay requests from API server audit logs against other profiles
    Replay(ReplayArgs),
    /// Export cluster objects for offline evaluation (no Secrets)
    ///
    /// Exports profiles, exceptions, namespaces, pods and workloads. Secrets are never exported.
    Dump(DumpArgs),
    /// Roll a profile back to an earlier revision
    ///
    /// Palisade compiles and checks the revision first. If it rejects the revision, nothing is changed.
    Rollback(RollbackArgs),
    /// Show and control the rollout of a profile to stricter stages
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// List, approve and revoke the exception requests of tenants
    #[command(subcommand)]
    Exception(ExceptionCommand),
    /// Show the state of all profiles in a cluster
    ///
    /// Shows conditions, stages, failed and held namespaces, violations and exceptions on one screen.
    Status(StatusArgs),
    /// Show the active stage, parameters and exceptions of a namespace
    ///
    /// Shows the source of each value and the violations in the namespace. With --pod, it also shows what the profiles
    /// do with that pod, and the smallest change with which it is admitted.
    Why(WhyArgs),
    /// Count denied, warned and audited requests by profile and check
    ///
    /// Counts by profile, check, namespace and workload, from audit logs. From the metrics of an API server, it counts by
    /// profile only.
    Audit(AuditArgs),
    /// Generate a readiness report: violations per namespace and fixes
    ///
    /// Evaluates all pods and workloads of a cluster, of a dump or in files as if they were created now. The report
    /// counts violations by check and namespace, and lists the smallest change with which each workload complies. The
    /// page is one file to share, and needs no network.
    Report(ReportArgs),
    /// Propose the smallest profile changes that admit existing workloads
    ///
    /// Evaluates all pods and workloads of a cluster, of a dump or in files, and finds the values that a profile would
    /// have to list to admit those that violate it. Reports what else each change would allow. Each change was tried:
    /// the objects were evaluated again with the changed profile. Changes that admit the most workloads come first. It
    /// never proposes to turn a check off, or to allow a path that is known to belong to the node.
    Suggest(SuggestArgs),
    /// Find the strictest profile that admits existing workloads
    ///
    /// Evaluates all pods and workloads of a cluster, of a dump or in files, and finds how strict a profile can be today:
    /// the workloads that the levels of the Pod Security Standards would deny, and the strictest profile that admits all
    /// workloads, with the workloads that need each of its settings. Labels and annotations of namespaces that equal the
    /// ids or paths of their pods become parameters. Workloads that no setting admits get exceptions with an end.
    Infer(InferArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for each command
    Man {
        /// Directory to write one page for each command to.
        #[arg(long, value_name = "DIR")]
        directory: Option<std::path::PathBuf>,
    },
}

/// The kind of policies to convert.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Convert PodSecurityPolicies to profiles, and report differences
    ///
    /// A profile allows what the PodSecurityPolicy allowed. Each difference is reported in a comment above the profile,
    /// and as a warning with its place in the file. The roles and bindings in the files determine the namespaces that a
    /// profile selects. Each profile has passed the check that the controller makes.
    Psp(PspArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
        definition().debug_assert();
    }

    #[test]
    fn help_lists_each_command_once() {
        let root = Args::command();
        let mut listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut commands: Vec<_> = root.get_subcommands().map(clap::Command::get_name).collect();
        listed.sort_unstable();
        commands.sort_unstable();
        assert_eq!(listed, commands);
        let help = definition().render_help().to_string();
        assert!(help.contains("\nRoll out:\n  diff         Preview"), "{help}");
        assert!(help.contains("\nOptions:\n      --color"), "{help}");
    }

    /// The first line of a command's help is short.
    #[test]
    fn first_lines_of_help_are_short() {
        fn long(command: &clap::Command) -> Vec<String> {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let own = (about.is_empty() || about.len() > 80).then(|| format!("{}: {about}", command.get_name()));
            own.into_iter().chain(command.get_subcommands().flat_map(long)).collect()
        }
        assert_eq!(long(&Args::command()), Vec::<String>::new());
    }

    /// The exit codes in the help of commands, as rows of a table.
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
        for word in ["completions", "man"] {
            assert!(!expected.contains(&format!("`palisade {word}")) && head.contains(&format!("`palisade {word}`")));
        }
    }
}

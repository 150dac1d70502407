//! The command line.

use std::{collections::BTreeMap, str::FromStr};

use clap::{Parser, Subcommand, ValueEnum};

use crate::test::TestArgs;

const EXAMPLES: &str = "\
Examples:
  palisade render profile.yaml
  palisade render profile.yaml --namespaces namespaces.yaml
  kubectl get namespaces -o yaml | palisade render profile.yaml --namespaces -
  palisade render profile.yaml | kubectl diff -f -
  palisade render profile.yaml --pod pod.yaml --namespaces namespace.yaml -o diff

Exit codes: 0 fine, 1 a profile is wrong, 2 could not run.

A copy or link named kubectl-palisade in PATH makes this a plugin: kubectl palisade render profile.yaml";

/// Tenant security for Kubernetes, enforced by the API server itself.
///
/// Works offline: no cluster is asked and nothing is changed. What is printed passed the same check without
/// which the controller applies nothing.
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
    /// Prints what the controller would apply for a profile.
    ///
    /// In the order in which it applies: parameters, policy, binding. If any profile is wrong, nothing is
    /// printed.
    Render(RenderArgs),
    /// Tests admission policies: requests and what the API server is to say of them, without a cluster.
    ///
    /// For ValidatingAdmissionPolicies, MutatingAdmissionPolicies and profiles. A suite names the files that are the
    /// cluster, and has cases: a request, and whether it is to be allowed or denied, by which policy, with which
    /// message.
    Test(TestArgs),
    /// Says what an API server would answer to requests.
    ///
    /// The files are the cluster: policies, bindings, parameters, definitions of kinds, namespaces, and
    /// profiles, which are compiled for those namespaces. Each request is an object, or an `AdmissionReview`
    /// as an API server sends it to a webhook.
    Eval(EvalArgs),
    /// Tells what is filled into a pod, what it is refused for, and the least change with which it is admitted.
    ///
    /// Each change was tried: the pod was filled in and judged again.
    Explain(ExplainArgs),
    /// Makes profiles of the policies that a cluster had before.
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Finds what is wrong with admission policies, and what will be regretted.
    ///
    /// Of validating and mutating admission policies, their bindings and parameters, of
    /// definitions of custom resources, and of profiles and what they become: what the API server refuses, in its
    /// words; what it warns about; and what it takes without a word though it can lock a cluster. All files together
    /// are taken for one cluster. Other kinds are skipped and counted.
    Lint(LintArgs),
    /// Prints a script that completes commands and flags in a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page, or writes one for each command.
    Man {
        /// The directory to write into.
        #[arg(long, value_name = "DIR")]
        directory: Option<std::path::PathBuf>,
    },
}

const LINT_EXAMPLES: &str = "\
Examples:
  palisade lint policies/
  helm template . | palisade lint -
  kustomize build . | palisade lint --kube-version 1.33 --fail-on warning -
  palisade lint -o human -o sarif=lint.sarif policies/
  palisade lint --allow blocks-finalizers --deny type-check policies/
  palisade lint --explain blocks-finalizers

A rule is silenced for an object by its annotation toolsecurity.dev/lint-ignore: \"id, id\".

Exit codes: 0 clean, 1 findings at or above --fail-on, 2 could not run.";

/// The arguments of `palisade lint`.
#[derive(Debug, clap::Args)]
#[command(after_help = LINT_EXAMPLES)]
pub struct LintArgs {
    /// YAML or JSON files, directories of which all *.yaml, *.yml and *.json are read, or - for standard input.
    #[arg(value_name = "FILE|DIR", required_unless_present_any = ["list", "explain"])]
    pub files: Vec<String>,
    /// The API server's version: 1.33 to 1.37.
    #[arg(long, value_name = "VERSION", default_value = "1.36")]
    pub kube_version: KubeVersion,
    /// How to print, and to which file instead of standard output: human, json, sarif, junit or github. May be given
    /// several times.
    #[arg(short, long, value_name = "FORMAT[=FILE]", default_value = "human")]
    pub output: Vec<LintOutput>,
    /// From which severity on the exit code is 1: error, warning, info, or never.
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub fail_on: FailOn,
    /// Rules that do not count.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Rules whose findings are warnings.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub warn: Vec<String>,
    /// Rules whose findings are errors.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub deny: Vec<String>,
    /// Prints all rules.
    #[arg(long)]
    pub list: bool,
    /// Prints what a rule is about, with an example.
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
}

/// From which severity on findings are a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// What the API server refuses, or what locks a cluster.
    Error,
    /// What should be looked at, too.
    Warning,
    /// Anything.
    Info,
    /// Nothing.
    Never,
}

/// A way to print findings, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintOutput {
    /// How.
    pub format: LintFormat,
    /// The file, or standard output.
    pub file: Option<String>,
}

/// A way to print findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// For people: each with an excerpt of the file.
    Human,
    /// One object, for programs.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// XML as `JUnit` writes it, for CI servers.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
}

impl FromStr for LintOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = text.split_once('=').map_or((text, None), |(format, file)| (format, Some(file)));
        if file == Some("") {
            return Err("no file after =".to_owned());
        }
        let format = LintFormat::from_str(format, false)
            .map_err(|_| "not a format; there are human, json, sarif, junit and github".to_owned())?;
        Ok(Self { format, file: file.map(str::to_owned) })
    }
}

const EVAL_EXAMPLES: &str = "\
Examples:
  palisade eval -f policies.yaml namespaces.yaml --request pod.yaml
  palisade eval -f policies.yaml --request pod.yaml --operation UPDATE --old before.yaml --user alice --group dev
  palisade eval -f profile.yaml namespaces.yaml --request pods/*.yaml -o json
  palisade eval -f policies.yaml --request review.json -v

Exit codes: 0 all are allowed, 1 something is denied or has no verdict, 2 could not run.

Objects are taken as a client sends them: decoded, filled with defaults and validated as the API server does it before
it asks its policies. The objects of an AdmissionReview are taken as they are. A namespaced object without a namespace
goes to default. What mutating policies, or Palisade's webhook for a profile, change in an object is shown as a diff; in
JSON as the object (mutated) and as a JSON patch (patch) of what the policies were shown, defaults and all. Checks of the
authorizer have no verdict, but for members of system:masters, who may do all.";

/// The arguments of `palisade eval`.
#[derive(Debug, clap::Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub struct EvalArgs {
    /// YAML or JSON files with the objects of the cluster; - is standard input.
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<String>,
    /// YAML or JSON files with the objects of requests, or `AdmissionReview`s; - is standard input.
    #[arg(long = "request", value_name = "FILE", required = true, num_args = 1..)]
    pub requests: Vec<String>,
    /// What is done with the objects of requests: CREATE, UPDATE (see --old), DELETE or CONNECT.
    #[arg(long, value_name = "OPERATION", default_value = "CREATE", ignore_case = true)]
    pub operation: OperationArg,
    /// The subresource that the objects of requests are sent to, as ephemeralcontainers.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub subresource: String,
    /// File with the objects as they are before an UPDATE, found by kind, namespace and name.
    #[arg(long, value_name = "FILE")]
    pub old: Option<String>,
    /// Who asks.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A group of who asks, besides system:authenticated; can be given several times.
    #[arg(long = "group", value_name = "NAME")]
    pub groups: Vec<String>,
    /// The namespace of objects that name none.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The API server's version: 1.33 to 1.37.
    #[arg(long, value_name = "VERSION", default_value = "1.36")]
    pub kube_version: KubeVersion,
    /// Prints the value and the cost of each expression and variable, and all of an object that was changed.
    #[arg(short, long)]
    pub verbose: bool,
    /// How to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub output: EvalFormat,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum OperationArg {
    /// It is new.
    Create,
    /// It takes the place of another one.
    Update,
    /// It goes.
    Delete,
    /// Somebody connects to it: its options are the object.
    Connect,
}

/// How verdicts are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EvalFormat {
    /// For people.
    Human,
    /// A list, one element for each request.
    Json,
}

/// What to migrate from.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Makes a profile of each PodSecurityPolicy, and says what is different.
    ///
    /// What pods may do is carried over by what Kubernetes made of each field. What cannot be is said: in a comment
    /// above the profile, and as a warning with its place. Roles and bindings in the files decide which namespaces
    /// a profile selects. Each profile passed the same check that the controller makes.
    Psp(PspArgs),
}

const PSP_EXAMPLES: &str = "\
Examples:
  palisade migrate psp policies.yaml > profiles.yaml
  kubectl get psp,clusterroles,clusterrolebindings -o yaml > policies.yaml
  kubectl get roles,rolebindings -A -o yaml > grants.yaml
  palisade migrate psp policies.yaml grants.yaml --stage Warn
  palisade migrate psp restricted.yaml --namespace-selector tenancy=tool --strict

Exit codes: 0 migrated, 1 a file is wrong (or, with --strict, something is not as it was), 2 could not run.

Kinds of notes: stricter (pods that were admitted are denied), looser (the other way round), default (what was filled
in no longer is), selection (which namespaces), note (good to know). See docs/migrate-from-psp.md.";

/// The arguments of `palisade migrate psp`.
#[derive(Debug, clap::Args)]
#[command(after_help = PSP_EXAMPLES)]
pub struct PspArgs {
    /// YAML or JSON files with PodSecurityPolicies, and with the Roles, ClusterRoles and their bindings that say who
    /// may use them; - is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// How to print.
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
            return Err(format!("{pair:?} is no label"));
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
    /// File with Namespaces, as kubectl get namespaces -o yaml prints them; - is standard input. For each one
    /// that the profile selects, its parameters are printed too.
    #[arg(long, value_name = "FILE")]
    pub namespaces: Option<String>,
    /// Print what the Pods in this file become instead, with the difference as comments; - is standard input. Each is
    /// taken to be in the namespace that it names, or else in the only one of --namespaces; without --namespaces it
    /// meets all profiles, with made-up values for their parameters.
    #[arg(long, value_name = "FILE")]
    pub pod: Option<String>,
    /// The API server's version: 1.33 to 1.37.
    #[arg(long, value_name = "VERSION", default_value = "1.36")]
    pub kube_version: KubeVersion,
    /// How to print.
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

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  palisade explain --pod pod.yaml --profile profile.yaml
  kubectl get namespace tool-a -o yaml | palisade explain --pod pod.yaml --profile profile.yaml --namespace -

Exit codes: 0 each pod is admitted, 1 one is refused or a profile is wrong, 2 could not run.";

/// The arguments of `palisade explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct ExplainArgs {
    /// YAML or JSON file with one or more Pods; - is standard input.
    #[arg(long, value_name = "FILE")]
    pub pod: String,
    /// File with the profiles.
    #[arg(long, value_name = "FILE")]
    pub profile: String,
    /// File with the pod's Namespace, which decides which profiles the pod meets and what their parameters are. Without
    /// it the pod meets all of them.
    #[arg(long, value_name = "FILE")]
    pub namespace: Option<String>,
    /// How to print.
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub output: ExplainFormat,
}

/// How an explanation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text.
    Human,
    /// A document for each pod.
    Yaml,
    /// One object with a list of pods.
    Json,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Documents separated by ---.
    Yaml,
    /// One List, which kubectl and jq both read.
    Json,
}

/// A supported version of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubeVersion {
    /// 36 of 1.36.
    pub minor: u8,
}

impl FromStr for KubeVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let minor = minor(text).ok_or("not a version of Kubernetes; supported are 1.33 to 1.37")?;
        if (33..=37).contains(&minor) {
            Ok(Self { minor })
        } else {
            Err(format!("Kubernetes 1.{minor} is not supported; supported are 1.33 to 1.37"))
        }
    }
}

/// 36 of `1.36`, `v1.36.1` and `v1.36.1-gke.100`.
fn minor(text: &str) -> Option<u8> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = |text: &str| text.parse::<u8>().ok().filter(|_| digits(text));
    let text = text.strip_prefix('v').unwrap_or(text);
    let (version, _build) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let mut parts = version.split('.');
    let (major, minor, patch) = (number(parts.next()?)?, number(parts.next()?)?, parts.next());
    let known = major == 1 && patch.is_none_or(digits) && parts.next().is_none();
    known.then_some(minor)
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

    #[test]
    fn outputs() {
        let output = |text: &str| text.parse::<LintOutput>();
        let expected = LintOutput { format: LintFormat::Sarif, file: Some("a=b".to_owned()) };
        assert_eq!(output("sarif=a=b"), Ok(expected));
        assert_eq!(output("json"), Ok(LintOutput { format: LintFormat::Json, file: None }));
        assert!(output("yaml").is_err() && output("json=").is_err());
    }

    #[test]
    fn versions() {
        for (text, expected) in
            [("1.33", 33), ("1.37", 37), ("v1.36.1", 36), ("1.36.1+k3s1", 36), ("v1.35.0-gke.1", 35)]
        {
            assert_eq!(text.parse(), Ok(KubeVersion { minor: expected }), "{text}");
        }
        for text in
            ["", "1", "1.", "v", "1.32", "1.38", "2.36", "1.36.x", "1.36.1.1", "1.+36", "latest", "1.99999999999"]
        {
            let error = text.parse::<KubeVersion>().expect_err(text);
            assert!(error.contains("1.33 to 1.37"), "{text}: {error}");
        }
    }
}

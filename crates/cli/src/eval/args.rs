//! The command line of `palisade eval`.

use std::fmt::Write as _;

use clap::ValueEnum;
use palisade_apiserver::objects;
use palisade_cel::Minor;

use crate::options::{PluginArgs, kube_version_help, plugins_help};

const EXAMPLES: &str = "\
Examples:
  palisade eval -f policies.yaml namespaces.yaml --request pod.yaml
  palisade eval -f policies/ --request pod.yaml --old stored.yaml --user alice
  palisade eval --request deployment.yaml
  palisade eval -f profile.yaml namespaces.yaml --request pods/*.yaml -o json
  palisade eval -f policies.yaml --request review.json -v

Exit codes: 0 all requests are admitted, 1 one is denied or has no verdict, 2 could not run.

Objects of requests:
  Palisade decodes, defaults, mutates and validates an object as the API server does, and then evaluates the policies. \
A namespaced object without a namespace goes to the namespace default.
  Objects of --old, of DELETE and of -f are stored objects, as kubectl get -o yaml prints them, with status, uid and \
deletion time. A manifest, which has no uid, stands for the object that was created from it.
  For an AdmissionReview, Palisade evaluates the policies only.
  A mutation is shown as a diff; in JSON as the mutated object (mutated) and as a JSON patch (patch) of the object with \
the API server's defaults.
  An expression that asks the authorizer has no verdict, unless the user is in the group system:masters, which may do \
everything.";

const IMPLICIT: &str = "\
Objects that are not in the files:
  Every Namespace exists, without labels, and so do its ServiceAccount default and the system's PriorityClasses.
  A ServiceAccount, PriorityClass or RuntimeClass that a request names is missing, and the request is denied, if the \
files have others of that kind (and namespace). If they have none, there is no verdict.
  There are no other LimitRanges, ResourceQuotas, default classes and webhooks than those in the files.";

/// What `palisade eval` validates in the objects of requests, and what it does not, by the lists that validation uses.
fn validated() -> String {
    let kinds = objects::validated().join(", ");
    let mut text = format!(
        "\
Palisade validates, with the API server's messages:
  the metadata of every object
  custom resources, by their schema and its rules
  {kinds}
  of an update, the fields that change, by the rules for new objects and by the rules for updates

Palisade does not validate:
"
    );
    for gap in objects::NOT_VALIDATED {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {gap}");
    }
    text
}

/// The arguments of `palisade eval`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{IMPLICIT}\n\n{}\n{}", validated(), plugins_help()))]
pub struct EvalArgs {
    /// The objects of the cluster: YAML or JSON files; directories, of which eval reads all *.yaml, *.yml and *.json; or -
    /// for standard input. Without them, there are no policies, and eval prints the API server's own answer.
    #[arg(short = 'f', long = "file", value_name = "FILE|DIR", num_args = 1..)]
    pub files: Vec<String>,
    /// The objects of requests, or `AdmissionReview`s: YAML or JSON files, directories of such files, or - for standard
    /// input.
    #[arg(long = "request", value_name = "FILE|DIR", required = true, num_args = 1..)]
    pub requests: Vec<String>,
    /// The operation of the requests: CREATE, UPDATE, DELETE or CONNECT. By default it is UPDATE with --old, and CREATE
    /// without.
    #[arg(long, value_name = "OPERATION", ignore_case = true)]
    pub operation: Option<OperationArg>,
    /// The subresource of the requests, such as ephemeralcontainers.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub subresource: String,
    /// The stored objects that an UPDATE replaces or a DELETE removes, found by kind, namespace and name: a YAML or JSON
    /// file, a directory of such files, or - for standard input.
    #[arg(long, value_name = "FILE|DIR")]
    pub old: Option<String>,
    /// The user who makes the requests.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A group of the user, besides system:authenticated; may be given several times.
    #[arg(long = "group", value_name = "NAME")]
    pub groups: Vec<String>,
    /// The namespace of objects that do not name one.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    #[arg(long, value_name = "VERSION", default_value_t = Minor::DEFAULT, help = kube_version_help())]
    pub kube_version: Minor,
    #[command(flatten)]
    pub plugins: PluginArgs,
    /// Print the value and the cost of each expression and variable, and mutated objects in full.
    #[arg(short, long)]
    pub verbose: bool,
    /// The output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    pub output: EvalFormat,
}

impl EvalArgs {
    /// The operation of the requests.
    pub fn operation(&self) -> OperationArg {
        let by_default = if self.old.is_some() { OperationArg::Update } else { OperationArg::Create };
        self.operation.unwrap_or(by_default)
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum OperationArg {
    /// Create the object.
    Create,
    /// Replace the object in --old.
    Update,
    /// Delete the stored object.
    Delete,
    /// Connect to it: the object is the options of the connection.
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

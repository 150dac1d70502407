//! The command line of `palisade eval`.

use std::fmt::Write as _;

use clap::ValueEnum;
use palisade_admission::objects;
use palisade_cel::Minor;

use crate::{
    options::{INPUT, OUTPUT, PluginArgs, kube_version_help, plugins_help},
    output::FormatArgs,
    parameters::ParamArgs,
};

const EXAMPLES: &str = "\
Examples:
  palisade eval pod.yaml --policies policies.yaml --policies namespaces.yaml
  palisade eval pod.yaml --policies policies/ --old stored.yaml --user alice
  palisade eval deployment.yaml
  palisade eval pods/ --policies profile.yaml --policies namespaces.yaml -o json
  palisade eval review.json --policies policies.yaml -v

Exit codes: 0 all requests are admitted, 1 one is denied or has no verdict, 2 could not run.

Objects of requests:
  Palisade decodes, defaults, mutates and validates an object as the API server does, and then evaluates the policies. \
A namespaced object without a namespace goes to the namespace default.
  Objects of --old, of DELETE and of --policies are stored objects, as kubectl get -o yaml prints them, with status, uid and \
deletion time. A manifest, which has no uid, represents the object that was created from it.
  For an AdmissionReview, Palisade evaluates only the policies.
  A mutation is shown as a diff; in JSON as the mutated object (mutated) and as a JSON patch (patch) of the object \
with the API server's defaults.
  An expression that calls the authorizer has no verdict, unless the user is in the group system:masters, which has \
all permissions.";

const IMPLICIT: &str = "\
Objects that are not in the files:
  Every Namespace exists, without labels. Its ServiceAccount default and the system's PriorityClasses exist, too.
  If the files have other ServiceAccounts of the namespace, other PriorityClasses or other RuntimeClasses than the \
one that a request refers to, the request is denied. If they have none of that kind, there is no verdict.
  There are no LimitRanges, ResourceQuotas, default classes and webhooks except those in the files.";

/// The objects and fields that `palisade eval` validates, and those that it does not, from the lists that validation
/// uses.
fn validated() -> String {
    let kinds = objects::validated().join(", ");
    let mut text = format!(
        "\
Palisade validates these with the API server's messages:
  the metadata of all objects
  custom resources, with their schema and its rules
  {kinds}
  for updates: the changed fields, with the rules for new objects and the rules for updates

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
    /// Objects of the cluster, such as policies, bindings, parameters, namespaces and profiles: a YAML or JSON file; a
    /// directory, of which all *.yaml, *.yml and *.json are read; or - for standard input. Repeatable. Without them
    /// there are no policies, and eval prints the API server's own answer.
    #[arg(long = "policies", value_name = "FILE|DIR", help_heading = INPUT)]
    pub files: Vec<String>,
    #[command(flatten)]
    pub params: ParamArgs,
    /// Objects to send, or `AdmissionReview`s: YAML or JSON files, directories of such files, or - for standard input.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub requests: Vec<String>,
    /// Operation of the requests: CREATE, UPDATE, DELETE or CONNECT. The default is UPDATE with --old, otherwise
    /// CREATE.
    #[arg(long, value_name = "OPERATION", ignore_case = true)]
    pub operation: Option<OperationArg>,
    /// Subresource of the requests, for example ephemeralcontainers.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub subresource: String,
    /// Stored objects that an UPDATE replaces or a DELETE removes, matched by kind, namespace and name: a YAML or JSON
    /// file, a directory of such files, or - for standard input.
    #[arg(long, value_name = "FILE|DIR", help_heading = INPUT)]
    pub old: Option<String>,
    /// User who sends the requests.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Group of the user, in addition to system:authenticated and the groups of service accounts. Repeatable.
    #[arg(long = "group", value_name = "NAME")]
    pub groups: Vec<String>,
    /// Namespace of objects that do not specify one.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    #[arg(long, value_name = "VERSION", default_value_t = Minor::DEFAULT, help = kube_version_help())]
    pub kube_version: Minor,
    #[command(flatten)]
    pub plugins: PluginArgs,
    /// Print the value and cost of each expression and variable, and complete mutated objects.
    #[arg(short, long, help_heading = OUTPUT)]
    pub verbose: bool,
    #[command(flatten)]
    pub format: FormatArgs,
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
    /// Connect to the object, which has the options of the connection.
    Connect,
}

//! The command line of `palisade eval`.

use std::fmt::Write as _;

use clap::ValueEnum;
use palisade_apiserver::objects;

use crate::{
    args::KubeVersion,
    plugins::{self, PluginArgs},
};

const EXAMPLES: &str = "\
Examples:
  palisade eval -f policies.yaml namespaces.yaml --request pod.yaml
  palisade eval -f policies.yaml --request pod.yaml --operation UPDATE --old before.yaml --user alice --group dev
  palisade eval -f profile.yaml namespaces.yaml --request pods/*.yaml -o json
  palisade eval -f policies.yaml --request review.json -v

Exit codes: 0 all are allowed, 1 something is denied or has no verdict, 2 could not run.

Objects are taken as a client sends them: decoded, defaulted, mutated and validated as the API server does it before it
asks its policies. Objects of --old, of DELETE and of -f are taken as they are stored, as kubectl get -o yaml prints
them, with status, uid and deletion time; one without a uid is a manifest, and stands for the object that was created
from it. The objects of an AdmissionReview are taken as they are, and the policies alone are asked. A namespaced object
without a namespace goes to default. What mutating policies, or Palisade's webhook for a profile, change in an object is shown as a diff; in
JSON as the object (mutated) and as a JSON patch (patch) of what the policies were shown, defaults and all. Checks of the
authorizer have no verdict, but for members of system:masters, who may do all.";

const IMPLICIT: &str = "\
What is not in the files: a Namespace that no file has exists, without labels, and so do the ServiceAccount default of each
namespace and the PriorityClasses of the system. An object that a request names (ServiceAccount, PriorityClass,
RuntimeClass) and no file has is missing if the files have others of its kind and namespace, and the API server's denial is
shown; if they have none of its kind, there is no verdict. LimitRanges, ResourceQuotas, default classes and webhooks that no
file has are not there.";

/// What is validated of the objects of requests and what is not, by the lists that validation itself goes by.
fn validated() -> String {
    let kinds = objects::validated().join(", ");
    let mut text = format!(
        "\
Validated are, with the texts of the API server: the metadata of every kind; custom resources by their schema and its rules;
and all of {kinds}. Of an update only what changed is validated, by the rules for new objects and by those for what may
change.
Not validated are:
"
    );
    for gap in objects::NOT_VALIDATED {
        // Writing to a string does not fail.
        let _ = writeln!(text, "- {gap}");
    }
    text
}

/// The arguments of `palisade eval`.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{IMPLICIT}\n\n{}\n{}", validated(), plugins::help()))]
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
    /// File with the objects as they are stored before an UPDATE, found by kind, namespace and name.
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
    #[command(flatten)]
    pub plugins: PluginArgs,
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

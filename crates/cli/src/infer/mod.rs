//! `palisade infer`: how strict a profile can be today, and the workloads that need each setting.
//!
//! ```text
//! objects --> evidence --> parameters by data --> search of settings --> fewer settings --> exceptions --> tried again
//! ```

mod args;
mod evidence;
mod frontier;
mod output;
mod parameters;

pub use args::InferArgs;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::LabelSelector,
    jiff::{SignedDuration, Timestamp},
};
use serde_json::{Map, Value as Json, json};

use self::evidence::Evidence;
use crate::{
    cluster::could_not_run, evaluation_inputs::EvaluationInputs, evaluator::ProfileEvaluator, namespaces::Tenant,
    profiles, progress::Progress, proposal, report::Failure,
};

/// The duration of exceptions.
const EXCEPTIONS_LAST: SignedDuration = SignedDuration::from_hours(24 * 90);

/// Runs the command.
pub fn run(args: &InferArgs) -> Result<(), Failure> {
    let paths = args.files.iter().chain(&args.source.namespaces);
    if paths.filter(|path| *path == "-").count() > 1 {
        return Err(could_not_run("only one FILE can be standard input"));
    }
    // A profile has times in seconds.
    let now = args.time.unwrap_or_else(Timestamp::now);
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let expires = args.expires.or_else(|| now.checked_add(EXCEPTIONS_LAST).ok());
    let expires = expires
        .filter(|end| *end > now)
        .ok_or_else(|| could_not_run("--expires must be after the time of the evaluation"))?;
    let selector = selector(&args.selector);
    let base = frontier::base(&args.name, &selector)?;
    let base = profiles::in_deny(&base).map_err(Failure::CouldNotRun)?;
    let mut progress = Progress::new();
    let inputs =
        EvaluationInputs::of_profiles(&args.source, &args.files, vec![base], &mut progress).map_err(Failure::fatal)?;
    let EvaluationInputs { accepted, tenants, version, objects, problems, .. } = inputs;
    let is_selected = |one: &&Tenant| accepted.iter().all(|base| palisade_compiler::selects(&base.profile.spec, one));
    let selected: Vec<_> = tenants.iter().filter(is_selected).cloned().collect();
    if selected.is_empty() {
        return Err(could_not_run("no namespace has the labels of --selector"));
    }
    let judge = ProfileEvaluator::new(&accepted, &selected, version, now)?;
    let (found, unknown) = proposal::evaluated(objects, &judge, &tenants, &mut progress)?;
    if found.violating.is_empty() && found.not_judged.is_empty() && problems.is_empty() {
        return Err(could_not_run("no pod or workload in the selected namespaces was found"));
    }
    let evidence = Evidence { workloads: found.violating, tenants: &selected, version, now };
    let frontier = frontier::find(&evidence, (&args.name, &selector), args.outliers, expires, &mut progress)?;
    drop(progress);
    let not_judged = found.not_judged.into_iter().chain(unknown.into_iter().map(|namespace| {
        (
            (namespace, "all workloads".to_owned()),
            "its labels are unknown, because its Namespace is not in the files".to_owned(),
        )
    }));
    let about = output::About {
        time: now,
        expires,
        version,
        selector,
        workloads: evidence.workloads.keys().cloned().collect(),
        not_judged: not_judged.collect(),
        outliers: args.outliers,
    };
    crate::output::print(&output::text(&about, &frontier, args.output, args.top)?)?;
    args.source.unevaluated.settle(problems)
}

/// A selector as in a profile: equalities as `matchLabels`.
fn selector(of: &LabelSelector) -> Json {
    let (mut labels, mut expressions) = (Map::new(), Vec::new());
    for one in of.match_expressions.iter().flatten() {
        match (one.operator.as_str(), one.values.as_deref()) {
            ("In", Some([value])) if !labels.contains_key(&one.key) => {
                labels.insert(one.key.clone(), json!(value));
            }
            _ => expressions.push(json!(one)),
        }
    }
    let mut selector = Map::new();
    if !labels.is_empty() {
        selector.insert("matchLabels".to_owned(), Json::Object(labels));
    }
    if !expressions.is_empty() {
        selector.insert("matchExpressions".to_owned(), Json::Array(expressions));
    }
    Json::Object(selector)
}

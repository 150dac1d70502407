//! The Kubernetes objects in files, for all commands. Documents that are not objects are never ignored: they are
//! reported with their place, and the exit code is 2.

use std::sync::Arc;

pub use palisade_manifest::Object;
use palisade_manifest::Problem;

use crate::report::{self, Failure, Source};

/// The objects in a file, with those in lists one by one.
///
/// # Errors
/// The file is neither YAML nor JSON, or has documents that are not objects. All of them are returned.
pub fn objects(source: &Arc<Source>) -> Result<Vec<Object<'_>>, Failure> {
    let objects =
        palisade_manifest::objects(source).map_err(|problem| Failure::Wrong(vec![of_helm(source, problem)]))?;
    let refused: Vec<_> = objects.iter().filter_map(Object::refusal).collect();
    if refused.is_empty() { Ok(objects) } else { Err(Failure::CouldNotRun(refused)) }
}

/// The content of files.
#[derive(Debug, Default)]
pub struct Found<'a> {
    /// The objects, with those in lists one by one.
    pub objects: Vec<Object<'a>>,
    /// Files that are neither YAML nor JSON, and documents that are not objects.
    pub unread: Vec<Problem>,
}

/// Reads all of some files.
pub fn all(sources: &[Arc<Source>]) -> Found<'_> {
    let mut found = Found::default();
    for source in sources {
        match palisade_manifest::objects(source) {
            Ok(all) => {
                for object in all {
                    match object.refusal() {
                        Some(problem) => found.unread.push(problem),
                        None => found.objects.push(object),
                    }
                }
            }
            Err(problem) => found.unread.push(of_helm(source, problem)),
        }
    }
    found
}

/// The problem of a file that is neither YAML nor JSON, with help if it is a template.
pub fn of_helm(source: &Source, problem: Problem) -> Problem {
    let is_template = source.text().contains("{{") && source.text().contains("}}");
    if is_template {
        problem.help("this looks like a Helm template; render it with helm template CHART")
    } else {
        problem
    }
}

/// The argument about objects without a verdict.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct UnevaluatedArgs {
    /// Accept input that cannot be evaluated: documents that are not Kubernetes objects, and empty input. A note has
    /// their number.
    #[arg(long)]
    pub allow_unevaluated: bool,
}

impl UnevaluatedArgs {
    /// Reports what could not be evaluated, after the results: a failure, unless it is accepted.
    ///
    /// # Errors
    /// The problems.
    pub fn settle(self, problems: Vec<Problem>) -> Result<(), Failure> {
        match problems.first() {
            None => Ok(()),
            Some(first) if self.allow_unevaluated => {
                report::note(&format!("note: not evaluated: {}, the first: {first}", problems.len()));
                Ok(())
            }
            Some(_) => Err(Failure::CouldNotRun(problems)),
        }
    }
}

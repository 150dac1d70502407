//! Pods, and single objects, in files.

use palisade_admission::objects::{Kinds, Submission};
use palisade_cel::Minor;
use serde_json::Value as Json;

use crate::{
    files, input, output,
    report::{Failure, Problem},
};

/// The pods in files and in the files of directories.
pub fn read(paths: &[String]) -> Result<Vec<Json>, Failure> {
    let (mut pods, mut problems) = (Vec::new(), Vec::new());
    // The newest minor version has all fields of the older ones.
    let kinds = Kinds::builtin(Minor::NEWEST);
    for source in files::sources(paths)? {
        let mut others = Vec::new();
        for object in input::objects(&source).map_err(Failure::fatal)? {
            if object.kind != "Pod" || object.api_version != "v1" {
                others.push(object.kind);
                continue;
            }
            match object.json() {
                Ok(pod) => match undecodable(&kinds, &pod) {
                    Some(why) => problems.push(object.problem("", why)),
                    None if pod["spec"]["containers"].as_array().is_none_or(Vec::is_empty) => {
                        problems.push(object.problem("spec", "at least one container is required"));
                    }
                    None => pods.push(pod),
                },
                Err(mistake) => problems.push(mistake.problem),
            }
        }
        output::ignored(&source, &others, "Pod");
    }
    if pods.is_empty() && problems.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| if path == "-" { "<stdin>" } else { path }).collect();
        problems.push(Problem::new(format!("{}: a Pod is required", names.join(", "))));
    }
    if problems.is_empty() { Ok(pods) } else { Err(Failure::CouldNotRun(problems)) }
}

/// The object of any kind in a file, or in the files of a directory.
///
/// # Errors
/// It has another number of objects, or one that cannot be read.
pub fn single(path: &str) -> Result<Json, Failure> {
    let mut found = Vec::new();
    for source in files::sources(&[path.to_owned()])? {
        for object in input::objects(&source).map_err(Failure::fatal)? {
            found.push(object.json().map_err(|mistake| Failure::CouldNotRun(vec![mistake.problem]))?);
        }
    }
    let count = found.len();
    found.pop().filter(|_| count == 1).ok_or_else(|| {
        let problem = Problem::new(format!("{path}: must have one object, not {count}"));
        Failure::CouldNotRun(vec![problem])
    })
}

/// The reason why the API server cannot decode it as a pod: a field has another type. No check could evaluate it
/// either.
fn undecodable(kinds: &Kinds, pod: &Json) -> Option<String> {
    let resource = kinds.by_kind("v1", "Pod")?;
    let sent = Submission { resource, subresource: "", namespace: "default", object: pod, old: None };
    kinds.decode(sent).err().map(|refused| refused.to_string())
}

//! `.palisade.yaml`: defaults for the options of `palisade check`.

use std::{collections::BTreeMap, path::Path};

use palisade_api::IntOrText;
use palisade_cel::{Minor, NotAMinor};
use serde::Deserialize;

use super::args::{CheckArgs, FailOn};
use crate::{
    findings::{Format, Output},
    input,
    report::{Failure, Problem},
};

/// The file that is read if no other is named.
const FILE: &str = ".palisade.yaml";

/// What `palisade check` does, from its arguments and the file.
#[derive(Debug)]
pub(super) struct Config {
    pub profiles: Vec<String>,
    pub namespace: Option<String>,
    pub namespaces: Option<String>,
    pub parameters: BTreeMap<String, IntOrText>,
    /// None if neither says.
    pub kube_version: Option<Minor>,
    pub output: Vec<Output>,
    pub fail_on: FailOn,
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    profiles: Vec<String>,
    namespace: Option<String>,
    namespaces: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, IntOrText>,
    kube_version: Option<String>,
    #[serde(default)]
    output: Vec<String>,
    fail_on: Option<FailOn>,
}

/// Reads the file, if there is one. An argument takes precedence over it.
pub(super) fn read(args: &CheckArgs) -> Result<Config, Failure> {
    let path = match &args.config {
        Some(path) => Some(path.as_str()),
        None => Path::new(FILE).is_file().then_some(FILE),
    };
    let mut file = File::default();
    let (mut outputs, mut kube_version) = (args.output.clone(), args.kube_version);
    if let Some(path) = path {
        let source = input::read(path)?;
        let failure = |problem: Problem| Failure::CouldNotRun(vec![problem]);
        if let Some(object) = input::objects(&source).map_err(failure)?.first() {
            file = object.parse_own().map_err(|mistake| failure(mistake.problem))?;
            if let (None, Some(text)) = (kube_version, &file.kube_version) {
                let not_one = |error: NotAMinor| {
                    failure(object.problem("kubeVersion", format!("kubeVersion: {text:?}: {error}")))
                };
                kube_version = Some(text.parse().map_err(not_one)?);
            }
            if outputs.is_empty() {
                for (index, text) in file.output.iter().enumerate() {
                    let place = format!("output[{index}]");
                    outputs
                        .push(text.parse().map_err(|why| failure(object.problem(&place, format!("{place}: {why}"))))?);
                }
            }
        }
    }
    for text in &args.params {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let problem = Problem::new(format!("--param {text}: is not NAME=VALUE, as uid=50001"));
            return Err(Failure::CouldNotRun(vec![problem]));
        };
        let value = value.parse().map_or_else(|_| IntOrText::Text(value.to_owned()), IntOrText::Int);
        file.parameters.insert(name.to_owned(), value);
    }
    if outputs.is_empty() {
        outputs.push(Output { format: Format::Human, file: None });
    }
    Ok(Config {
        profiles: if args.profiles.is_empty() { file.profiles } else { args.profiles.clone() },
        namespace: args.namespace.clone().or(file.namespace),
        namespaces: args.namespaces.clone().or(file.namespaces),
        parameters: file.parameters,
        kube_version,
        output: outputs,
        fail_on: args.fail_on.or(file.fail_on).unwrap_or(FailOn::Error),
    })
}

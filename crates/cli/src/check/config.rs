//! The options of `palisade check`, from its arguments and `.palisade.yaml`.

use std::collections::BTreeMap;

use palisade_api::IntOrText;
use palisade_cel::Minor;

use super::args::{CheckArgs, FailOn};
use crate::{
    config,
    findings::{Format, Output},
    report::{Failure, Problem},
};

/// The options; an argument takes precedence over the file.
#[derive(Debug)]
pub(super) struct Config {
    pub profiles: Vec<String>,
    pub namespace: Option<String>,
    pub namespaces: Option<String>,
    pub parameters: BTreeMap<String, IntOrText>,
    /// None if it is not specified.
    pub kube_version: Option<Minor>,
    pub output: Vec<Output>,
    pub fail_on: FailOn,
}

/// Reads the file, if there is one.
pub(super) fn read(args: &CheckArgs) -> Result<Config, Failure> {
    let file = config::Config::read(args.config.as_deref())?;
    let fail_on = file.value("failOn", file.content.fail_on.as_ref())?;
    let mut content = file.content;
    for text in &args.params {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let problem = Problem::new(format!("--param {text}: must be NAME=VALUE, for example uid=50001"));
            return Err(Failure::CouldNotRun(vec![problem]));
        };
        let value = value.parse().map_or_else(|_| IntOrText::Text(value.to_owned()), IntOrText::Int);
        content.parameters.insert(name.to_owned(), value);
    }
    let mut output = if args.output.is_empty() { file.output } else { args.output.clone() };
    if output.is_empty() {
        output.push(Output { format: Format::Human, file: None });
    }
    Ok(Config {
        profiles: if args.profiles.is_empty() { content.profiles } else { args.profiles.clone() },
        namespace: args.namespace.clone().or(content.namespace),
        namespaces: args.namespaces.clone().or(content.namespaces),
        parameters: content.parameters,
        kube_version: args.kube_version.or(file.kube_version),
        output,
        fail_on: args.fail_on.or(fail_on).unwrap_or(FailOn::Error),
    })
}

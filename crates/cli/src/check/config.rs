//! The options of `palisade check`, from its arguments and `.palisade.yaml`.

use std::collections::BTreeMap;

use palisade_api::IntOrText;
use palisade_cel::Minor;

use super::args::{CheckArgs, FailOn};
use crate::{
    config,
    findings::{Format, Output},
    report::Failure,
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
    content.parameters.extend(args.params.params.iter().cloned());
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

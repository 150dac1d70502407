//! Options that several commands have: the version of the API server, and which of its admission plugins run.

use std::fmt::Write as _;

use k8s_openapi::jiff::Timestamp;
use palisade_apiserver::admission::{PLUGINS, Plugins, UnknownPlugin};
use palisade_cel::Minor;

use crate::report::{Failure, Problem};

/// What `--kube-version` is.
pub fn kube_version_help() -> String {
    format!("The API server's version: {}", Minor::supported())
}

/// A time of the command line.
///
/// # Errors
/// It is none.
pub fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "not a time with its zone, as 2026-11-24T00:00:00Z".to_owned())
}

/// The arguments that choose admission plugins.
#[derive(Debug, Default, clap::Args)]
pub struct PluginArgs {
    /// The admission plugins to run besides the policies, separated by commas; "" for none. By default those that
    /// kube-apiserver enables by default.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = known)]
    pub admission_plugins: Option<Vec<String>>,
    /// Admission plugins not to run, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = known)]
    pub disable_admission_plugins: Vec<String>,
}

impl PluginArgs {
    /// The choice.
    pub fn plugins(&self) -> Result<Plugins, Failure> {
        let unknown = |error: UnknownPlugin| Failure::CouldNotRun(vec![Problem::new(error.to_string())]);
        let names =
            |list: &'_ [String]| -> Vec<String> { list.iter().filter(|name| !name.is_empty()).cloned().collect() };
        let chosen = match &self.admission_plugins {
            Some(list) => Plugins::only(names(list).iter().map(String::as_str)).map_err(unknown)?,
            None => Plugins::default(),
        };
        chosen.without(names(&self.disable_admission_plugins).iter().map(String::as_str)).map_err(unknown)
    }
}

/// A name of a plugin, or nothing.
fn known(name: &str) -> Result<String, UnknownPlugin> {
    if !name.is_empty() {
        Plugins::only([name])?;
    }
    Ok(name.to_owned())
}

/// What `--help` says about the plugins.
pub fn plugins_help() -> String {
    let mut text = "\
Admission plugins, in the order of kube-apiserver. By default those run that kube-apiserver enables by default in that \
version; --admission-plugins and --disable-admission-plugins choose others. Palisade does not know plugins that \
kube-apiserver disables by default.
"
    .to_owned();
    for plugin in PLUGINS {
        let minors = match (plugin.since, plugin.until) {
            (33, _) => String::new(),
            (since, until) if until == since => format!(" (1.{since} only)"),
            (since, _) => format!(" (since 1.{since})"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {}{minors}: {}", plugin.name, plugin.done);
    }
    text
}

//! Options of several commands: the version of the API server and its admission plugins.

use std::fmt::Write as _;

use k8s_openapi::jiff::Timestamp;
use palisade_admission::requests::{PLUGINS, Plugins, UnknownPlugin};
use palisade_cel::Minor;

pub use crate::output::OUTPUT;
use crate::report::{Failure, Problem};

/// Heading of options for input.
pub const INPUT: &str = "Input";

/// The help of `--kube-version`.
pub fn kube_version_help() -> String {
    format!("Version of the API server: {}", Minor::supported())
}

/// A time in an option.
///
/// # Errors
/// The text is not a time.
pub fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "must be a time with a zone, for example 2026-11-24T00:00:00Z".to_owned())
}

/// The arguments for admission plugins.
#[derive(Debug, Default, clap::Args)]
pub struct PluginArgs {
    /// Admission plugins to run in addition to the policies, separated by commas; "" for none. The default is the
    /// default of kube-apiserver.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = known)]
    pub admission_plugins: Option<Vec<String>>,
    /// Admission plugins to disable, separated by commas.
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

/// A name of a plugin, or an empty text.
fn known(name: &str) -> Result<String, UnknownPlugin> {
    if !name.is_empty() {
        Plugins::only([name])?;
    }
    Ok(name.to_owned())
}

/// The part of `--help` about plugins.
pub fn plugins_help() -> String {
    let mut text = "\
Admission plugins, in the order of kube-apiserver. The default is the set that kube-apiserver enables by default in \
that version; change it with --admission-plugins and --disable-admission-plugins. Palisade does not support plugins \
that kube-apiserver disables by default.
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

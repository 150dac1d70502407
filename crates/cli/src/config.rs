//! `.palisade.yaml`: defaults for the options of `palisade check` and `palisade lint`.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use clap::ValueEnum;
use palisade_api::IntOrText;
use palisade_cel::Minor;
use palisade_manifest::suggestion;
use serde::Deserialize;

use crate::{
    files,
    findings::Output,
    report::{Failure, Problem, Source},
};

/// The file that is read by default.
const FILE: &str = ".palisade.yaml";

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Content {
    /// Of check: files and directories with profiles.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Of check: the namespace of objects that do not specify one.
    pub namespace: Option<String>,
    /// Of check: a file with namespaces.
    pub namespaces: Option<String>,
    /// Of check: values of parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, IntOrText>,
    kube_version: Option<String>,
    #[serde(default)]
    output: Vec<String>,
    /// Of check: the lowest severity for which the exit code is 1.
    pub fail_on: Option<String>,
    /// Defaults for lint.
    #[serde(default)]
    pub lint: Lint,
}

/// Defaults for `palisade lint`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Lint {
    /// Rules to turn off.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Rules whose findings become warnings.
    #[serde(default)]
    pub warn: Vec<String>,
    /// Rules whose findings become errors.
    #[serde(default)]
    pub deny: Vec<String>,
    /// The lowest severity for which the exit code is 1.
    pub fail_on: Option<String>,
}

/// The file, if there is one.
#[derive(Debug, Default)]
pub struct Config {
    source: Option<Arc<Source>>,
    /// Its content.
    pub content: Content,
    /// The minor of Kubernetes.
    pub kube_version: Option<Minor>,
    /// The formats of the output.
    pub output: Vec<Output>,
}

impl Config {
    /// Reads the file with this name, or the default one in the working directory if it exists.
    ///
    /// # Errors
    /// It cannot be read, or a value in it is not valid.
    pub fn read(path: Option<&str>) -> Result<Self, Failure> {
        let failure = |problem: Problem| Failure::CouldNotRun(vec![problem]);
        let Some(path) = path.or_else(|| Path::new(FILE).is_file().then_some(FILE)) else { return Ok(Self::default()) };
        let source = files::read(path)?;
        let mut config = Self { source: Some(Arc::clone(&source)), ..Self::default() };
        let objects = palisade_manifest::objects(&source).map_err(failure)?;
        let Some(object) = objects.first() else { return Ok(config) };
        config.content = object.parse_own().map_err(|mistake| failure(mistake.problem))?;
        let wrong = |place: &str, why: String| failure(object.problem(place, format!("{place}: {why}")));
        if let Some(text) = &config.content.kube_version {
            let minor = text.parse().map_err(|error| wrong("kubeVersion", format!("{text:?}: {error}")))?;
            config.kube_version = Some(minor);
        }
        for (index, text) in config.content.output.iter().enumerate() {
            let output = text.parse().map_err(|why| wrong(&format!("output[{index}]"), why))?;
            config.output.push(output);
        }
        Ok(config)
    }

    /// A string in the file as a value of an option.
    ///
    /// # Errors
    /// It is not one of the values.
    pub fn value<T: ValueEnum>(&self, place: &str, text: Option<&String>) -> Result<Option<T>, Failure> {
        let Some(text) = text else { return Ok(None) };
        let name = |value: &T| value.to_possible_value().map(|value| value.get_name().to_owned());
        let known: Vec<_> = T::value_variants().iter().filter_map(name).collect();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        T::from_str(text, false).map(Some).map_err(|_| {
            let problem = self.problem(place, format!("{place}: unknown value {text:?}"));
            Failure::CouldNotRun(vec![problem.help(suggestion(text, &known))])
        })
    }

    /// A problem at a place in the file.
    pub fn problem(&self, place: &str, message: String) -> Problem {
        let objects = self.source.as_ref().and_then(|source| palisade_manifest::objects(source).ok());
        match objects.as_deref().and_then(<[_]>::first) {
            Some(object) => object.problem(place, message),
            None => Problem::new(message),
        }
    }
}

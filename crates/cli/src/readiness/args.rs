//! The command line of `palisade report`.

use std::{path::PathBuf, str::FromStr};

use clap::ValueEnum;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::LabelSelector, jiff::Timestamp};

use crate::{
    evaluation_inputs::SourceArgs,
    options::{self, INPUT, OUTPUT},
    parameters::ParamArgs,
    selector,
};

const EXAMPLES: &str = "\
Examples:
  palisade report --live -o html=report.html -o json=report.json
  palisade report --live --earlier october.json --earlier november.json -o html=report.html
  palisade report --dump cluster/ --profile next.yaml -o html=if-next.html
  palisade report --live -n tool-weather -o html=weather.html   # report for one tenant
  palisade report --live -l team=maps --owner-annotation example.org/contact --sort owner
  kubectl get tsp,ns,deploy,sts,cronjobs,pods -A -o yaml | palisade report -o markdown -

It is read-only. --live requires permission to list profiles, namespaces, exceptions, pods and workloads.

Exit codes: 0 success, also with violations, 2 could not run. In CI, use palisade check.";

/// The arguments of `palisade report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("namespaces", |arg| arg.requires("files")))]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false).args(["live", "dump", "files"]))]
pub struct ReportArgs {
    /// Files, directories, or - for standard input, with cluster objects: pods, workloads, Namespaces,
    /// ToolSecurityExceptions and profiles.
    #[arg(id = "files", value_name = "FILE|DIR")]
    pub files: Vec<String>,
    /// File or directory with profiles that replace those of the cluster or of the files. Repeatable.
    #[arg(short = 'p', long = "profile", value_name = "FILE|DIR", help_heading = INPUT)]
    pub profiles: Vec<String>,
    #[command(flatten)]
    pub params: ParamArgs,
    /// Earlier report in the format of -o json, for the trend. Repeatable.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub earlier: Vec<String>,
    /// Report only on this namespace. Repeatable.
    #[arg(short = 'n', long = "namespace", id = "only", value_name = "NAME")]
    pub only: Vec<String>,
    /// Report only on namespaces with these labels, like kubectl -l: team=a,stage!=test.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector::parse)]
    pub selector: Option<LabelSelector>,
    /// Annotation of namespaces with their owner, for a column of the report.
    #[arg(long, value_name = "KEY", help_heading = OUTPUT)]
    pub owner_annotation: Option<String>,
    /// Order of namespaces with equal readiness.
    #[arg(long, value_name = "COLUMN", default_value = "namespace", help_heading = OUTPUT)]
    pub sort: Sort,
    /// Title of the report.
    #[arg(long, value_name = "TEXT", default_value = "Readiness for Deny", help_heading = OUTPUT)]
    pub title: String,
    /// Time of the report, for example 2026-11-25T08:00:00Z. Exceptions that end before it are not applied. The default
    /// is now.
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub time: Option<Timestamp>,
    /// Output format: html (the default), json or markdown. Append =FILE to write to a file. Repeatable.
    #[arg(short, long, value_name = "FORMAT[=FILE]", default_value = "html", help_heading = OUTPUT)]
    pub output: Vec<Output>,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// The order of namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By name.
    Namespace,
    /// Most workloads first.
    Workloads,
    /// Most violating workloads first.
    Violating,
    /// By owner.
    Owner,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An HTML page.
    Html,
    /// One object, for programs and for `--earlier`.
    Json,
    /// For a pull request, a wiki or a chat.
    Markdown,
}

/// A format, and the file to write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it is written.
    pub format: Format,
    /// The file, or standard output.
    pub file: Option<PathBuf>,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((_, "")) => return Err("missing file name after `=`".to_owned()),
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = match format {
            "html" => Format::Html,
            "json" => Format::Json,
            "markdown" => Format::Markdown,
            _ => return Err("must be html, json or markdown".to_owned()),
        };
        Ok(Self { format, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_a_format_and_a_file() {
        let output = |format, file: Option<&str>| Ok(Output { format, file: file.map(PathBuf::from) });
        assert_eq!("html".parse::<Output>(), output(Format::Html, None));
        assert_eq!("json=a=b.json".parse::<Output>(), output(Format::Json, Some("a=b.json")));
        for text in ["", "pdf", "html="] {
            assert!(text.parse::<Output>().is_err(), "{text}");
        }
    }
}

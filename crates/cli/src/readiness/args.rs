//! The command line of `palisade report`.

use std::{path::PathBuf, str::FromStr};

use clap::ValueEnum;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::LabelSelector, jiff::Timestamp};

use crate::{ground::GroundArgs, options, selector};

const EXAMPLES: &str = "\
Examples:
  palisade report --live -o html=report.html -o json=report.json
  palisade report --live --earlier october.json --earlier november.json -o html=report.html
  palisade report --dump cluster/ --profile next.yaml -o html=if-next.html
  palisade report --live -n tool-weather -o html=weather.html   # the page of one tenant
  palisade report --live -l team=maps --owner-annotation example.org/contact --sort owner
  kubectl get tsp,ns,deploy,sts,cronjobs,pods -A -o yaml | palisade report -f - -o markdown

It reads; it changes nothing. --live needs the rights to list profiles, namespaces, exceptions, pods and workloads.

Exit codes: 0 reported, 2 could not run. Violations do not change it: palisade check is for CI.";

/// The arguments of `palisade report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("namespaces", |arg| arg.requires("files")))]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false).args(["live", "dump", "files"]))]
pub struct ReportArgs {
    /// Files, directories, or - for standard input, with the objects of a cluster: pods, workloads, Namespaces,
    /// ToolSecurityExceptions and profiles; may be given several times.
    #[arg(short, long = "file", id = "files", value_name = "FILE|DIR")]
    pub files: Vec<String>,
    /// A file with profiles, or a directory of such files, to judge by in place of those of the cluster or of the files;
    /// may be given several times.
    #[arg(long = "profile", value_name = "FILE|DIR")]
    pub profiles: Vec<String>,
    /// An earlier report, as -o json wrote it, for the trend; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub earlier: Vec<String>,
    /// Report on this namespace alone; may be given several times.
    #[arg(short = 'n', long = "namespace", id = "only", value_name = "NAMESPACE")]
    pub only: Vec<String>,
    /// Report on the namespaces with these labels alone, as kubectl takes them: team=a,stage!=test.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector::parse)]
    pub selector: Option<LabelSelector>,
    /// The annotation of namespaces that names their owner: the report has a column with it.
    #[arg(long, value_name = "KEY")]
    pub owner_annotation: Option<String>,
    /// How namespaces that are equally ready are sorted.
    #[arg(long, value_name = "COLUMN", default_value = "namespace")]
    pub sort: Sort,
    /// The title of the report.
    #[arg(long, value_name = "TEXT", default_value = "Readiness for Deny")]
    pub title: String,
    /// The time that the report is of, as 2026-11-25T08:00:00Z: exceptions that end before it count no longer. By default
    /// now.
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub time: Option<Timestamp>,
    /// The output format: html (the default), json or markdown; with =FILE written to a file. May be given several times.
    #[arg(short, long, value_name = "FORMAT[=FILE]", default_value = "html")]
    pub output: Vec<Output>,
    #[command(flatten)]
    pub ground: GroundArgs,
}

/// How namespaces are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By name.
    Namespace,
    /// Those with the most workloads first.
    Workloads,
    /// Those with the most violating workloads first.
    Violating,
    /// By owner.
    Owner,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One page, for a browser.
    Html,
    /// One object, for programs and for `--earlier`.
    Json,
    /// For a pull request, a wiki or a chat.
    Markdown,
}

/// A format, and the file that it goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it is written.
    pub format: Format,
    /// The file; standard output if there is none.
    pub file: Option<PathBuf>,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = match text.split_once('=') {
            Some((_, "")) => return Err("there is no file behind the =".to_owned()),
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let format = match format {
            "html" => Format::Html,
            "json" => Format::Json,
            "markdown" => Format::Markdown,
            _ => return Err("known are html, json and markdown".to_owned()),
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

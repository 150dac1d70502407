//! The formats of findings and their destinations.

use std::str::FromStr;

use clap::ValueEnum;

use super::{Findings, github, junit, sarif};
use crate::{
    output,
    report::{Failure, Problem},
};

/// A format and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The format.
    pub format: Format,
    /// The file, or standard output.
    pub file: Option<String>,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text: each finding with an excerpt of the file.
    Human,
    /// One object, for programs.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// XML in the format of `JUnit`, for CI servers.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = text.split_once('=').map_or((text, None), |(format, file)| (format, Some(file)));
        if file == Some("") {
            return Err("missing file name after `=`".to_owned());
        }
        let format =
            Format::from_str(format, false).map_err(|_| "must be human, json, sarif, junit or github".to_owned())?;
        Ok(Self { format, file: file.map(str::to_owned) })
    }
}

impl Output {
    /// Writes the findings to the file or to standard output. `own` has the formats that differ between commands: text
    /// and JSON.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, findings: &Findings, own: [&dyn Fn() -> String; 2]) -> Result<(), Failure> {
        let text = match self.format {
            Format::Human => own[0](),
            Format::Json => own[1](),
            Format::Sarif => sarif::text(findings),
            Format::Junit => junit::text(findings),
            Format::Github => github::text(findings),
        };
        match &self.file {
            None => output::print(&text),
            Some(file) => std::fs::write(file, text)
                .map_err(|error| Failure::CouldNotRun(vec![Problem::new(format!("{file}: {error}"))])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs() {
        let output = |text: &str| text.parse::<Output>();
        let expected = Output { format: Format::Sarif, file: Some("a=b".to_owned()) };
        assert_eq!(output("sarif=a=b"), Ok(expected));
        assert_eq!(output("json"), Ok(Output { format: Format::Json, file: None }));
        assert!(output("yaml").is_err() && output("json=").is_err());
    }
}

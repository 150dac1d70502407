//! Annotations of GitHub Actions (workflow commands).

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use palisade_manifest::Severity;

use super::{Findings, cleaned};

/// A line for each finding.
pub fn text(report: &Findings) -> String {
    let mut text = String::new();
    let workspace = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    for finding in &report.found {
        let at = finding.region();
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        // Annotations that span lines cannot have columns.
        let columns = if at.line == at.end_line {
            format!(",col={},endColumn={}", at.column, at.end_column)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "::{command} file={},line={},endLine={}{columns},title={}::{}",
            property(&path(finding.source.name(), workspace.as_deref(), here.as_deref())),
            at.line,
            at.end_line,
            property(&finding.rule),
            data(&finding.message),
        );
    }
    text
}

/// The path of a file from the root of the repository, for annotations of GitHub.
fn path(name: &str, workspace: Option<&Path>, here: Option<&Path>) -> String {
    let Some(workspace) = workspace else { return cleaned(name) };
    let whole = here.map_or_else(|| PathBuf::from(name), |here| here.join(name));
    let whole = cleaned(&whole.to_string_lossy());
    match Path::new(&whole).strip_prefix(workspace) {
        Ok(inside) => inside.to_string_lossy().into_owned(),
        // Standard input, or a file elsewhere.
        Err(_) => cleaned(name),
    }
}

/// The text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{data, path, property};

    #[test]
    fn a_path_is_that_from_the_root_of_the_repository() {
        for (name, workspace, here, expected) in [
            ("./a.yaml", None, "/r", "a.yaml"),
            ("a//b/./../c.yaml", None, "/r", "a/c.yaml"),
            ("../a.yaml", None, "/r", "../a.yaml"),
            ("<stdin>", None, "/r", "<stdin>"),
            ("./a.yaml", Some("/r"), "/r", "a.yaml"),
            ("./a.yaml", Some("/r"), "/r/sub", "sub/a.yaml"),
            ("../a.yaml", Some("/r"), "/r/sub", "a.yaml"),
            ("/r/sub/a.yaml", Some("/r/"), "/elsewhere", "sub/a.yaml"),
            ("/other/a.yaml", Some("/r"), "/r", "/other/a.yaml"),
        ] {
            assert_eq!(path(name, workspace.map(Path::new), Some(Path::new(here))), expected, "{name}");
        }
    }

    #[test]
    fn github_command_text_is_escaped() {
        assert_eq!(data("100%\n::error::x"), "100%25%0A::error::x");
        assert_eq!(property("a,b:c"), "a%2Cb%3Ac");
    }
}

//! Command lines in help, documents and `examples/ci`: a test checks that the command line accepts them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::CommandFactory as _;
use serde_json::Value as Json;

use crate::args::Args;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The words of a shell command, without comments, redirections and quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match c {
            _ if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ' ' if quote.is_none() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let is_end =
        |word: &String| word == "#" || word.starts_with('>') || word.starts_with("2>") || word.starts_with('<');
    let end = words.iter().position(is_end).unwrap_or(words.len());
    words.truncate(end);
    words
}

/// The `palisade` commands in a line of a shell.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    let parts = [" || ", " | ", " && ", "; "].iter().fold(vec![line], |parts, end| {
        parts.into_iter().flat_map(|part| part.split(end).collect::<Vec<_>>()).collect()
    });
    let of = |part: &str| {
        let part = part.trim();
        let part = part.strip_prefix("kubectl ").unwrap_or(part);
        part.starts_with("palisade ").then(|| words(part))
    };
    parts.into_iter().filter_map(of).collect()
}

/// The commands in the shell blocks of a document.
fn of_document(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for block in text.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap_or_default();
        let is_console = language == "console";
        if !is_console && language != "sh" {
            continue;
        }
        let text = text.replace("\\\n", " ");
        found.extend(text.lines().filter(|line| !is_console || line.starts_with("$ ")).flat_map(commands));
    }
    found
}

/// The commands in the help of a command and of its subcommands.
fn of_help(command: &clap::Command) -> Vec<Vec<String>> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // Spaces separate a comment.
    let line =
        |line: &'_ str| line.strip_prefix("  ").map(|line| line.split("   ").next().unwrap_or_default().to_owned());
    let lines: Vec<_> = help.lines().filter_map(line).filter(|line| !line.contains(" writes ")).collect();
    let own = lines.iter().flat_map(|line| commands(line));
    own.chain(command.get_subcommands().flat_map(of_help)).collect()
}

/// The commands in an example for CI: in `run` and `entry`, and after a pipe in comments.
fn of_example(text: &str) -> Vec<Vec<String>> {
    fn scripts(of: &Json, found: &mut Vec<String>) {
        match of {
            Json::Object(fields) => {
                found.extend(fields.get("run").and_then(Json::as_str).map(str::to_owned));
                let arguments =
                    fields.get("args").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
                let entry = fields.get("entry").and_then(Json::as_str);
                found.extend(entry.map(|entry| arguments.fold(entry.to_owned(), |all, one| all + " " + one)));
                fields.values().for_each(|value| scripts(value, found));
            }
            Json::Array(list) => list.iter().for_each(|value| scripts(value, found)),
            _ => {}
        }
    }
    let object: Json = serde_saphyr::from_str(text).unwrap();
    let mut found = Vec::new();
    scripts(&object, &mut found);
    let comments = text.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| line.contains("| palisade "));
    found.iter().flat_map(|script| script.lines()).chain(comments).flat_map(commands).collect()
}

fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    fn walk(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, ending, found);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(ROOT).join(directory), ending, &mut found);
    found
}

/// The error of the command line, if it rejects the words.
fn refused(words: &[String]) -> Option<String> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let error = Args::command().try_get_matches_from(words).err()?;
    (!matches!(error.kind(), DisplayHelp | DisplayVersion)).then(|| format!("{}: {error}", words.join(" ")))
}

#[test]
fn command_lines_that_are_written_somewhere_are_taken() {
    let documents: Vec<_> = [files("docs", ".md"), vec![Path::new(ROOT).join("README.md")]].concat();
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let written = [
        ("help", of_help(&Args::command()), 40),
        ("documents", documents.iter().flat_map(|path| of_document(&text(path))).collect(), 40),
        ("examples/ci", files("examples/ci", "ml").iter().flat_map(|path| of_example(&text(path))).collect(), 5),
    ];
    let mut wrong = Vec::new();
    for (place, lines, least) in written {
        assert!(lines.len() >= least, "{} command lines in {place}", lines.len());
        wrong.extend(
            lines
                .iter()
                .filter(|words| !words.iter().any(|word| word.contains("...")))
                .filter_map(|words| refused(words)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A terminal of 100 columns would break longer ones at an arbitrary place.
#[test]
fn examples_of_help_fit_a_terminal() {
    fn long(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = help
            .lines()
            .filter(|line| line.starts_with("  ") && !commands(line).is_empty() && line.len() > 100)
            .map(str::to_owned);
        own.chain(command.get_subcommands().flat_map(long)).collect()
    }
    assert_eq!(long(&Args::command()), Vec::<String>::new());
}

#[test]
fn command_lines_are_found_and_refused() {
    let text =
        "a\n```sh\nhelm template . | palisade check --profile 'a b' - > x   # why\nls\n```\n```yaml\npalisade x\n```\n";
    assert_eq!(of_document(text), [["palisade", "check", "--profile", "a b", "-"]]);
    assert!(refused(&["palisade".to_owned(), "check".to_owned(), "--nothing".to_owned()]).is_some());
}

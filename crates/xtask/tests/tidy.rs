//! What holds for every file of the project.

mod commands;
mod documents;
mod forgotten;
mod logs;
mod words;
mod workflows;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A Rust file with more lines is worth splitting, and with more than that it must be.
const LINES: (usize, usize) = (400, 800);

/// What is written down and not done: it belongs into an issue. In pieces, because this file is read as well.
const UNDONE: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The project's files with these endings, with their text; not what is built or fetched.
fn files(endings: &[&str]) -> Vec<(PathBuf, String)> {
    fn walk(directory: &Path, endings: &[&str], out: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if entry.file_type().unwrap().is_dir() {
                if !["target", ".git", ".palisade"].contains(&name.as_str()) {
                    walk(&path, endings, out);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                out.push((path.strip_prefix(root()).unwrap().to_owned(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut out = Vec::new();
    walk(root(), endings, &mut out);
    out.sort();
    out
}

fn check(endings: &[&str], problem: impl Fn(&Path, &str) -> Vec<String>) {
    let files = files(endings);
    assert!(!files.is_empty());
    let problems: Vec<_> = files
        .iter()
        .flat_map(|(path, text)| {
            problem(path, text).into_iter().map(|problem| format!("{}: {problem}", path.display()))
        })
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Whether a line changes JSON through an index, which panics where something else is on the way.
fn changes_through_an_index(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices('[').any(|(at, _)| {
        let before = &code[..at];
        let named = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ']');
        let key = code[at + 1..].split(']').next().unwrap_or_default();
        let is_text = key.starts_with('"') && key.ends_with('"') && key.len() > 1
            || ["key", "&key", "*key", "name", "&name", "field"].contains(&key);
        // What stands behind all indices.
        let mut rest = &code[at..];
        while let Some(inner) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            rest = inner.1;
        }
        let start = before.rfind(|c: char| !(c.is_alphanumeric() || "_.[]\"".contains(c))).map_or(0, |at| at + 1);
        let borrowed = before[..start].ends_with("&mut ");
        let assigned = rest.trim_start().strip_prefix('=').is_some_and(|rest| !rest.starts_with(['=', '>']));
        let changed = ["get_mut(", "pointer_mut(", "take()", "as_object_mut()", "as_array_mut()"];
        let method = rest.strip_prefix('.').is_some_and(|rest| changed.iter().any(|method| rest.starts_with(method)));
        named && is_text && (borrowed || assigned || method)
    })
}

#[test]
fn no_json_is_changed_through_an_index() {
    for (line, expected) in [
        ("object[\"a\"][\"b\"] = 1.into();", true),
        ("let x = &mut object[\"a\"];", true),
        ("object[\"a\"].as_object_mut()", true),
        ("container[key] = value;", true),
        ("at = &mut at[*key];", true),
        ("if object[\"a\"] == 1 {", false),
        ("Some(x) if x[\"a\"] => y,", false),
        ("items[index] = value;", false),
        ("let x = [\"a\"];", false),
        ("*object.at_mut(&[\"a\"]) = 1.into();", false),
    ] {
        assert_eq!(changes_through_an_index(line), expected, "{line}");
    }
    check(&[".rs"], |path, text| {
        let product = path.components().any(|part| part.as_os_str() == "src") && path.starts_with("crates");
        // There it is known to be an object.
        let allowed =
            path.ends_with("kube-json/src/json.rs") || path.components().any(|part| part.as_os_str() == "tests");
        if !product || allowed {
            return vec![];
        }
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let found = code.lines().enumerate().filter(|(_, line)| changes_through_an_index(line));
        found.map(|(at, _)| format!("line {}: use palisade_kube_json::json::Change: {}", at + 1, "at_mut")).collect()
    });
}

#[test]
fn rust_files_are_documented_and_short() {
    check(&[".rs"], |path, text| {
        let mut problems = Vec::new();
        if !text.starts_with("//! ") {
            problems.push("does not begin with module documentation (//!)".to_owned());
        }
        let lines = text.lines().count();
        if lines > LINES.1 {
            problems.push(format!("has {lines} lines, more than {}", LINES.1));
        } else if lines > LINES.0 {
            eprintln!("warning: {} has {lines} lines, more than {}", path.display(), LINES.0);
        }
        problems
    });
}

#[test]
fn comments_contain_no_todo_markers() {
    check(&[".rs", ".go", ".md", ".toml", "Makefile"], |_, text| {
        let undone = |line: &str| UNDONE.iter().find(|word| line.contains(**word));
        let found = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, undone(line)?)));
        found.map(|(line, word)| format!("line {line} says {word}")).collect()
    });
}

/// What is said, and the words that it replaced, in small letters.
const REPLACED: [(&str, &[&str]); 7] = [
    (
        "default, mutate",
        &["fill in ", "fills in", "filled in", "filling in", "filled into", "fills into", "_filled_in"],
    ),
    ("workload", &["what makes pods"]),
    ("panic", &["broke off", "breaks off"]),
    ("observe, or what it did", &["was seen to", "were seen to"]),
    ("dangerous", &["regret"]),
    ("report", &["is told of", "is said of", "was told of"]),
    (
        "is not a",
        &[
            "is no valid",
            "is no label",
            "is no name",
            "is no field",
            "is no path",
            "is no text",
            "is no list",
            "is no mapping",
            "is no range",
            "is no check",
            "is no registry",
            "is no number",
            "is no whole",
            "is no id",
        ],
    ),
];

/// Names of types that did not say what they are.
const RENAMED: [&str; 7] = ["World", "Court", "Scene", "Trouble", "Tone", "Told", "Regret"];

#[test]
fn wording_follows_the_glossary() {
    check(&[".rs", ".go", ".md", ".yaml", ".snap"], |path, text| {
        // Decisions of the past keep their words, and texts of API servers theirs; this list is no breach of itself.
        let apart = ["docs/adr", "tests/oracle", "crates/xtask/tests/tidy.rs"];
        if apart.iter().any(|apart| path.starts_with(apart)) {
            return Vec::new();
        }
        let mut problems = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let small = line.to_lowercase().replace("there is no", "");
            for (instead, words) in REPLACED {
                let hits = words.iter().filter(|word| small.contains(**word));
                problems.extend(hits.map(|word| format!("line {}: {word:?}: {instead}", index + 1)));
            }
            let mut names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(name) = names.find(|name| RENAMED.contains(name)) {
                problems.push(format!("line {}: {name} does not say what it is", index + 1));
            }
        }
        problems
    });
}

/// Links from a document to a file, without those to a place in the same document or on the web.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

#[test]
fn document_links_point_to_existing_files() {
    check(&[".md"], |path, text| {
        let directory = root().join(path.parent().unwrap());
        // What stands in a block of code is not a link.
        let prose: String = text.split("```").step_by(2).collect();
        let prose: String = prose.split('`').step_by(2).collect();
        links(&prose)
            .filter(|target| !directory.join(target).exists())
            .map(|target| format!("no file {target}"))
            .collect::<Vec<_>>()
    });
}

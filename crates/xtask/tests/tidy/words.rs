//! The words of `docs/style.md`: text that users and integrators read has none of the patterns that it forbids.

use std::{fs, path::Path, sync::LazyLock};

use regex::Regex;

use super::{files, root};

/// Words and phrases that `docs/style.md` replaces.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let words = "somebody|nobody|whoever|of use|by itself|as one likes|besides|surely|any more|all the same|stands|\
                 made anew";
    Regex::new(&format!(r"(?i)\b({words})\b")).unwrap()
});
/// Headings that are questions.
static HEADING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^#+ (What|Who|Whoever|Which|Where|Why) ").unwrap());
/// Sentences that begin with a clause in place of a noun.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(^|[.!] )(What|Whatever|Whoever) [a-z]").unwrap());
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`[^`]*`|\]\([^)]*\)").unwrap());
static STRING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""((?:[^"\\]|\\.)*)""#).unwrap());

/// Lines that are allowed, by file and a part of the line, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("docs/style.md", "somebody must change the profile", "an example of the pattern"),
    ("docs/style.md", "Nobody is denied", "an example of the pattern"),
    ("docs/style.md", "What violates the profile is listed", "an example of the pattern"),
    ("docs/style.md", "besides, all the same, any more, surely", "an example of the pattern"),
    ("docs/style.md", "| automatically | by itself |", "an example of the pattern"),
    ("docs/style.md", "somebody, nobody, whoever, who", "an example of the pattern"),
];
/// The longest that the list may become.
const MAX_ALLOWED: usize = 40;

#[derive(Clone, Copy)]
enum Kind {
    Markdown,
    Rust,
    Yaml,
}

/// The kind of text in a file; none for files whose text nobody but developers of that file reads.
fn kind(file: &str) -> Option<Kind> {
    let in_source = file.starts_with("crates/") && file.contains("/src/");
    let is_policy = file.starts_with("policies/") && !file.ends_with("palisade-test.yaml");
    let published = file.starts_with("crds/") || file.starts_with("charts/") || is_policy;
    match Path::new(file).extension()?.to_str()? {
        "md" => Some(Kind::Markdown),
        "rs" if in_source => Some(Kind::Rust),
        "yaml" | "txt" | "tpl" if published => Some(Kind::Yaml),
        _ => None,
    }
}

/// The text of each line that readers see, with its number.
fn prose(kind: Kind, text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let shown = match kind {
            Kind::Rust if trimmed == "#[cfg(test)]" => break,
            Kind::Rust => {
                match (trimmed.strip_prefix("///").or(trimmed.strip_prefix("//!")), trimmed.starts_with("//")) {
                    (Some(doc), _) => doc.trim().to_owned(),
                    (None, true) => continue,
                    (None, false) => {
                        STRING.captures_iter(line).map(|found| found[1].to_owned()).collect::<Vec<_>>().join(" ")
                    }
                }
            }
            Kind::Markdown if trimmed.starts_with("```") => {
                in_code = !in_code;
                continue;
            }
            Kind::Markdown if in_code => continue,
            Kind::Markdown | Kind::Yaml => line.to_owned(),
        };
        lines.push((index + 1, CODE.replace_all(&shown, "").into_owned()));
    }
    lines
}

/// The forbidden patterns of a file, each with its line.
fn findings(file: &str, text: &str) -> Vec<String> {
    let Some(kind) = kind(file) else { return Vec::new() };
    let mut found = Vec::new();
    for (number, line) in prose(kind, text) {
        let heading = matches!(kind, Kind::Markdown) && HEADING.is_match(&line);
        let pattern = WORDS.find(&line).map(|word| word.as_str().to_owned());
        let pattern = pattern.or_else(|| heading.then(|| "a heading that is a question".to_owned()));
        let pattern =
            pattern.or_else(|| SENTENCE.is_match(&line).then(|| "a sentence that begins with What".to_owned()));
        let original = text.lines().nth(number - 1).unwrap_or_default();
        let allowed = ALLOWED.iter().any(|(of, part, _)| *of == file && original.contains(part));
        if let Some(pattern) = pattern.filter(|_| !allowed) {
            found.push(format!("{file}:{number}: {pattern}: {}", original.trim()));
        }
    }
    found
}

#[test]
fn text_has_plain_words() {
    let files = files(&[".md", ".rs", ".yaml", ".txt", ".tpl"]);
    let found: Vec<_> = files.iter().flat_map(|(path, text)| findings(&path.to_string_lossy(), text)).collect();
    assert!(found.is_empty(), "docs/style.md forbids {} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn list_of_allowed_lines_is_short_and_needed() {
    assert!(ALLOWED.len() <= MAX_ALLOWED);
    for (file, part, reason) in ALLOWED {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(part), "{file} has no line with {part:?} ({reason})");
    }
}

#[test]
fn each_pattern_is_found_with_its_file_and_line() {
    for (file, text, wanted) in [
        ("docs/a.md", "# A page\n\nNobody is denied.", "docs/a.md:3: Nobody"),
        ("docs/a.md", "It retries by itself.", "docs/a.md:1: by itself"),
        ("docs/a.md", "# A page\n## What goes", "docs/a.md:2: a heading that is a question"),
        ("docs/a.md", "Whoever sets it", "docs/a.md:1: Whoever"),
        ("docs/a.md", "What it reads is listed.", "docs/a.md:1: a sentence that begins with What"),
        ("CHANGELOG.md", "- Done. What is new is below.", "CHANGELOG.md:1: a sentence that begins with What"),
        ("crds/a.yaml", "description: it is of use", "crds/a.yaml:1: of use"),
        ("charts/palisade/values.yaml", "a: b\n# it stands by", "charts/palisade/values.yaml:2: stands"),
        (
            "crates/a/src/lib.rs",
            "/// What is left.\nfn a() {}",
            "crates/a/src/lib.rs:1: a sentence that begins with What",
        ),
        ("crates/a/src/lib.rs", "let a = \"surely wrong\";", "crates/a/src/lib.rs:1: surely"),
    ] {
        let found = findings(file, text);
        assert!(found.len() == 1 && found[0].starts_with(wanted), "{file}: {text:?}: {found:?}");
    }
    for (file, text) in [
        ("docs/a.md", "```\nNobody\n```\nThe field `what it is` is unset."),
        ("crates/a/src/lib.rs", "// What is private.\n#[cfg(test)]\n/// Nobody"),
        ("tests/a.rs", "/// Nobody"),
    ] {
        assert_eq!(findings(file, text), Vec::<String>::new(), "{text}");
    }
}

//! Commands that documents and comments name: targets of make, verbs of `cargo xtask`, packages, their tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use super::{
    check,
    documents::{GUIDES, Test, tests},
    files, root,
};

/// Targets of the Makefile.
pub(crate) fn targets() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("Makefile")).unwrap();
    let rules = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, rest)| !rest.starts_with('=') && !name.contains(['=', '.', '$', '\t', '#']));
    rules.flat_map(|(names, _)| names.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Verbs of `cargo xtask` with their options, from its help.
static VERBS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let help = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let list = help(&["--help"]);
    let list = list.split("\nCommands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names =
        list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|name| !name.is_empty());
    let options = |verb: &str| {
        let help = help(&[verb, "--help"]);
        let words = help.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
    };
    names.map(|verb| (verb.to_owned(), options(verb))).collect()
});

/// Errors of a command `cargo xtask`: an unknown verb, or an option that the verb does not have.
pub(crate) fn wrong_task(words: &[&str]) -> Vec<String> {
    let ["cargo", "xtask", verb, arguments @ ..] = words else { return vec![] };
    if *verb == "--help" {
        return vec![];
    }
    let Some(options) = VERBS.get(*verb) else { return vec![format!("cargo xtask has no verb {verb}")] };
    let unknown = arguments.iter().filter(|word| word.starts_with("--") && !options.contains(**word));
    unknown.map(|option| format!("cargo xtask {verb} has no option {option}")).collect()
}

/// The packages of the project: name, directory and manifest.
fn packages() -> BTreeMap<String, (PathBuf, String)> {
    let of = |(path, text): (PathBuf, String)| {
        let name = text.split("name = \"").nth(1)?.split('"').next()?.to_owned();
        Some((name, (path.parent().unwrap().to_owned(), text)))
    };
    files(&["Cargo.toml"]).into_iter().filter_map(of).collect()
}

/// The path by which a filter selects a test of a package: its modules and its name. That of a test in `main.rs` of a
/// directory begins with the directory, which is the name of its binary.
fn path_of((file, name): &Test, package: &Path) -> Option<String> {
    let file = Path::new(file).strip_prefix(package).ok()?.with_extension("");
    let parts = file.iter().map(|part| part.to_string_lossy());
    let modules = parts.filter(|part| !["src", "tests", "lib", "main", "mod"].contains(&&**part));
    Some(modules.chain([name.into()]).collect::<Vec<_>>().join("::"))
}

/// What a command of Cargo names that is not there: packages, their tests, and names of tests behind `--`.
fn wrong_command(command: &str, packages: &BTreeMap<String, (PathBuf, String)>, tests: &BTreeSet<Test>) -> Vec<String> {
    let (command, filters) = command.split(" #").next().unwrap_or_default().split_once(" -- ").unwrap_or((command, ""));
    let words: Vec<_> = command.split_whitespace().take_while(|word| *word != "#").collect();
    let behind = |flag: &'static str| words.windows(2).filter(move |pair| pair[0] == flag).map(|pair| pair[1]);
    if words.first() != Some(&"cargo") {
        return vec![];
    }
    let unknown =
        behind("-p").filter(|name| !packages.contains_key(*name)).map(|name| format!("there is no package {name}"));
    let mut problems: Vec<_> = unknown.chain(wrong_task(&words)).collect();
    let named: Vec<_> = behind("-p").filter_map(|name| packages.get(name)).collect();
    for test in behind("--test") {
        let is_test = |(directory, manifest): &&(PathBuf, String)| {
            let tests = root().join(directory).join("tests");
            let declared = manifest.contains(&format!("[[test]]\nname = \"{test}\"\n"));
            let found = tests.join(test).with_extension("rs").exists() || tests.join(test).join("main.rs").exists();
            declared || found && !manifest.contains("\nautotests = false\n")
        };
        if !named.iter().copied().any(|package| is_test(&package)) {
            problems.push(format!("none of its packages has a test {test}"));
        }
    }
    for filter in filters.split_whitespace().take_while(|word| words.contains(&"test") && !word.starts_with("--")) {
        let fits = |test| {
            named.iter().any(|(directory, _)| path_of(test, directory).is_some_and(|path| path.contains(filter)))
        };
        if !tests.iter().any(fits) {
            problems.push(format!("none of its tests has {filter} in its name"));
        }
    }
    problems
}

#[test]
fn commands_of_the_guides_exist() {
    let (targets, packages, tests) = (targets(), packages(), tests());
    for (command, expected) in [
        ("cargo test -p xtask --test project", 0),
        ("cargo test -p xtask --test nothing", 1),
        ("cargo test -p xtask --test tidy", 1),
        ("cargo test -p xtask --test project -- tidy:: commands::commands_of", 0),
        ("cargo test -p xtask --test project -- project::", 1),
        ("cargo test -p nothing", 1),
        ("cargo test -p palisade-tests --test apiserver -- lifecycle   # why", 0),
        ("cargo test -p palisade-tests --test apiserver -- no_such_test", 1),
        ("git log -p --grep x", 0),
        ("cargo xtask mutants --files '**/simplify/*.rs'   # why", 0),
        ("cargo xtask oracle-check --minor 1.36", 0),
        ("cargo xtask oracle-check --minors 1.36", 1),
        ("cargo xtask nothing", 1),
    ] {
        assert_eq!(wrong_command(command, &packages, &tests).len(), expected, "{command}");
    }
    check(&[".md"], |path, text| {
        let is_guide = GUIDES.iter().any(|guide| path == Path::new(guide));
        let mut problems = Vec::new();
        let block: String = text.split("```").skip(1).step_by(2).collect();
        let inline = text.split("```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2));
        for code in inline.chain(block.lines()) {
            if !is_guide {
                let words: Vec<_> = code.split_whitespace().take_while(|word| *word != "#").collect();
                problems.extend(wrong_task(&words).into_iter().map(|wrong| format!("`{code}`: {wrong}")));
                continue;
            }
            let target = code.strip_prefix("make ").and_then(|rest| rest.split_whitespace().next());
            if let Some(target) = target.filter(|target| *target != "#" && !targets.contains(*target)) {
                problems.push(format!("`{code}`: the Makefile has no target {target}"));
            }
            problems
                .extend(wrong_command(code, &packages, &tests).into_iter().map(|wrong| format!("`{code}`: {wrong}")));
        }
        problems
    });
}

/// The words after each occurrence of a text.
fn following<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let rest = text.match_indices(start).map(move |(at, _)| &text[at + start.len()..]);
    let words = rest.map(|rest| rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap_or_default());
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// Documents, comments and messages name only targets and verbs that exist.
#[test]
fn targets_and_verbs_exist() {
    let targets = targets();
    assert!(
        targets.len() <= 20,
        "the Makefile has at most 20 targets; another task is a verb of cargo xtask: {targets:?}"
    );
    assert!(VERBS.len() > 40, "the verbs are found: {VERBS:?}");
    check(&[".md", ".rs", ".go", ".mod", ".toml", ".yaml", ".yml", ".sh"], |path, text| {
        if path.starts_with("crates/xtask/tests") {
            return vec![];
        }
        let target = following(text, "`make ").filter(|target| !targets.contains(*target));
        let verb = following(text, "cargo xtask ").filter(|verb| !VERBS.contains_key(*verb));
        let target = target.map(|target| format!("the Makefile has no target {target}"));
        target.chain(verb.map(|verb| format!("cargo xtask has no verb {verb}"))).collect()
    });
}

//! What the documents for contributors say is there: paths, tests, commands, crates and what these may use.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{
    check,
    commands::{targets, wrong_task},
    files, root,
};

/// The documents that say where things are.
pub(crate) const GUIDES: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/invariants.md"];

/// A test: the file in which it is, from the root, and its name.
pub(crate) type Test = (String, String);

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The functions in a file that are tests by an attribute.
fn by_attribute(text: &str) -> Vec<String> {
    let (mut tests, mut attributed) = (Vec::new(), false);
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            attributed = true;
        } else if let Some((before, rest)) = line.split_once("fn ")
            && before.split_whitespace().all(|word| word.starts_with("pub") || word == "async")
        {
            let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            if std::mem::take(&mut attributed) {
                tests.push(name.to_owned());
            }
        }
    }
    tests
}

/// The functions that a module registers as scenarios.
pub(crate) fn scenarios(text: &str) -> impl Iterator<Item = &str> {
    let lists = text.split("scenarios! {\n").skip(1).filter_map(|rest| rest.split("\n}").next());
    let names = lists.flat_map(str::lines).filter_map(|line| line.trim().split_once(": ")).map(|(name, _)| name);
    names.filter(|name| is_name(name))
}

/// The tests in lists: scenarios, attacks as `module::function`, trials as texts.
fn by_list(path: &Path, text: &str) -> Vec<Test> {
    let directory = path.parent().unwrap();
    let mut tests: Vec<_> = scenarios(text).map(|name| (path.display().to_string(), name.to_owned())).collect();
    let lists = text.split("kinds![").skip(1).filter_map(|rest| rest.split(']').next());
    for (module, name) in lists.flat_map(|list| list.split(',')).filter_map(|item| item.trim().split_once("::")) {
        if is_name(module) && is_name(name) {
            tests.push((directory.join(module).with_extension("rs").display().to_string(), name.to_owned()));
        }
    }
    for start in [".trial(\"", "Trial::test(\""] {
        let names = text.split(start).skip(1).filter_map(|rest| rest.split('"').next());
        tests.extend(names.map(|name| (path.display().to_string(), name.to_owned())));
    }
    tests
}

/// All tests of the project. One that is listed several times is one test.
pub(crate) fn tests() -> BTreeSet<Test> {
    let mut all = BTreeSet::new();
    for (path, text) in files(&[".rs"]) {
        all.extend(by_attribute(&text).into_iter().map(|name| (path.display().to_string(), name)));
        all.extend(by_list(&path, &text));
    }
    all
}

/// What is wrong with the name of a test: `name`, or `directory::name` where several tests have that name.
fn wrong_test(name: &str, tests: &BTreeSet<Test>) -> Option<String> {
    let (place, function) = name.rsplit_once("::").unwrap_or(("", name));
    let is_there = |file: &str| {
        place.is_empty() || file.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let named = tests.iter().filter(|(file, test)| test == function && is_there(file));
    let found: Vec<_> = named.map(|(file, _)| file.as_str()).collect();
    match found[..] {
        [] => Some(format!("there is no test {name}")),
        [_] => None,
        _ => Some(format!("{name} is in {}: say the directory or file, as `directory::name`", found.join(" and in "))),
    }
}

/// The names in the last column of a row: tests in backticks, targets of make and verbs of `cargo xtask`, with commas between
/// them.
fn shown_by(row: &str) -> Result<Vec<&str>, String> {
    let cells: Vec<_> = row.trim_end_matches(" |").trim_start_matches("| ").split(" | ").collect();
    let [_, shown_by] = cells[..] else { return Err(format!("has {} columns, not 2", cells.len())) };
    let names: Vec<_> = shown_by.split(", ").collect();
    let quoted = |name: &&str| name.len() > 2 && name.starts_with('`') && name.ends_with('`');
    match names.iter().find(|name| !quoted(name)) {
        Some(wrong) => Err(format!("{wrong:?} is not a `test`, `make target` or `cargo xtask verb`")),
        None => Ok(names.into_iter().map(|name| name.trim_matches('`')).collect()),
    }
}

/// Each row of the table of invariants names tests that show it, and each of them exists exactly once. A step of `.ci/run`
/// counts as a test.
#[test]
fn each_invariant_is_shown_by_tests_that_exist() {
    let (tests, targets) = (tests(), targets());
    assert!(tests.len() > 500, "the tests of the project are found: {}", tests.len());
    let text = fs::read_to_string(root().join("docs/invariants.md")).unwrap();
    let mut problems = Vec::new();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let steps = ci.split("for step in ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    let (mut rows, mut seen) = (0, BTreeMap::new());
    for (index, row) in text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        if row.starts_with("| always |") || row.starts_with("|---") {
            continue;
        }
        rows += 1;
        let mut problem = |what: String| problems.push(format!("docs/invariants.md:{}: {what}\n    {row}", index + 1));
        let always = row.split(" | ").next().unwrap_or_default();
        if let Some(earlier) = seen.insert(always, index + 1) {
            problem(format!("the same as line {earlier}"));
        }
        let names = match shown_by(row) {
            Ok(names) => names,
            Err(wrong) => {
                problem(wrong);
                continue;
            }
        };
        let mut shown = 0;
        for name in names {
            if let Some(target) = name.strip_prefix("make ") {
                shown += usize::from(steps.split(' ').any(|step| step == target));
                if !targets.contains(target) {
                    problem(format!("the Makefile has no target {target}"));
                }
            } else if name.starts_with("cargo ") {
                wrong_task(&name.split(' ').collect::<Vec<_>>()).into_iter().for_each(&mut problem);
            } else {
                shown += 1;
                wrong_test(name, &tests).into_iter().for_each(&mut problem);
            }
        }
        if shown == 0 {
            problem("no test shows it".to_owned());
        }
    }
    assert!(rows > 50, "the tables of invariants are there: {rows} rows");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Texts in backticks, with those in blocks of code word by word; the number of the line of each.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let (mut all, mut in_block) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            all.extend(line.split_whitespace().map(|word| (index + 1, word)));
        } else {
            all.extend(line.split('`').skip(1).step_by(2).map(|text| (index + 1, text)));
        }
    }
    all
}

/// Whether a quoted text is to be a path in this repository: it has a slash, or the ending of a file.
fn is_path(text: &str) -> bool {
    let of_path = |c: char| c.is_ascii_alphanumeric() || "._-/<>*".contains(c);
    let first = text.split('/').next().unwrap_or_default();
    // `k8s.io/api` is a Go module, `example.org/x` an image.
    let is_host = text.contains('/') && first.trim_start_matches('.').contains('.');
    let endings = ["rs", "md", "toml", "yaml", "yml", "json", "tsv", "go"];
    let ends = Path::new(text).extension().is_some_and(|ending| endings.iter().any(|one| ending == *one));
    text.chars().all(of_path) && !text.starts_with(['/', '-']) && !is_host && (text.contains('/') || ends)
}

/// Whether a path exists. `<check>` and `*` stand for a part of a name.
fn exists(path: &str) -> bool {
    fn matches(name: &str, pattern: &[&str]) -> bool {
        match pattern {
            [] => name.is_empty(),
            [last] => name == *last,
            [first, rest @ ..] => name.strip_prefix(first).is_some_and(|name| {
                (0..=name.len()).filter(|&at| name.is_char_boundary(at)).any(|at| matches(&name[at..], rest))
            }),
        }
    }
    let mut found = vec![root().to_owned()];
    for part in path.trim_end_matches('/').split('/') {
        // Of `<check>.rs` what is outside of the brackets.
        let pattern: Vec<_> = part.split(['<', '>']).step_by(2).flat_map(|text| text.split('*')).collect();
        if pattern.len() == 1 {
            found = found.into_iter().map(|directory| directory.join(part)).filter(|path| path.exists()).collect();
            continue;
        }
        let entries =
            found.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().map(|entry| entry.unwrap());
        found = entries
            .filter(|entry| matches(&entry.file_name().to_string_lossy(), &pattern))
            .map(|entry| entry.path())
            .collect();
    }
    !found.is_empty()
}

#[test]
fn paths_of_the_guides_exist() {
    for (path, expected) in [
        ("crates/checks/src/catalogue/<check>.rs", true),
        ("crates/<x>/Cargo.toml", true),
        ("crates/*/Cargo.toml", true),
        ("crates/checks/src/catalogue/<check>.go", false),
        ("crates/nothing", false),
        (".ci/run", true),
        ("crates/", true),
    ] {
        assert!(is_path(path) && exists(path) == expected, "{path}");
    }
    for text in ["k8s.io/api", "/livez", "a b", "--flag", "word", "a::b"] {
        assert!(!is_path(text), "{text}");
    }
    check(&[".md"], |path, text| {
        if !GUIDES.iter().any(|guide| path == Path::new(guide)) {
            return vec![];
        }
        let paths = quoted(text).into_iter().filter(|(_, text)| is_path(text));
        paths.filter(|(_, path)| !exists(path)).map(|(line, path)| format!("line {line}: there is no {path}")).collect()
    });
}

/// Names of four words and more in a document are those of tests, but for metrics.
#[test]
fn tests_that_documents_name_exist() {
    let tests = tests();
    check(&[".md"], |path, text| {
        let names = quoted(text).into_iter().filter(|(_, text)| {
            is_name(text)
                && text.matches('_').count() > 2
                && !["palisade_", "apiserver_", "process_", "leader_election_"]
                    .iter()
                    .any(|metric| text.starts_with(metric))
        });
        // The tables of invariants are compared more strictly.
        let names = names.filter(|_| path != Path::new("docs/invariants.md"));
        let known = |name: &str| tests.iter().any(|(_, test)| test == name);
        names
            .filter(|(_, name)| !known(name))
            .map(|(line, name)| format!("line {line}: there is no test {name}"))
            .collect()
    });
}

/// The crates that a manifest names among its dependencies, by their directories.
fn uses(manifest: &str) -> BTreeSet<String> {
    let dependencies = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let names = dependencies.lines().filter_map(|line| line.strip_prefix("palisade-"));
    names.filter_map(|name| name.split(['.', ' ']).next()).map(str::to_owned).collect()
}

/// The texts in backticks of the line of a section that begins so.
fn line<'a>(section: &'a str, start: &str) -> Option<Vec<&'a str>> {
    let line = section.lines().find_map(|line| line.strip_prefix(start))?;
    Some(line.split('`').skip(1).step_by(2).collect())
}

/// Whether a file defines a function, type or static of this name.
fn defines(text: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "trait", "static", "const", "type"].iter().any(|kind| {
        let definition = format!("{kind} {name}");
        text.match_indices(&definition)
            .any(|(at, _)| !text[at + definition.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[test]
fn architecture_document_describes_every_crate() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let sections: BTreeMap<_, _> =
        text.split("\n#### `crates/").skip(1).filter_map(|section| section.split_once("`\n")).collect();
    let purity = fs::read_to_string(root().join("crates/xtask/tests/purity.rs")).unwrap();
    let pure = purity.split("const PURE").nth(1).unwrap().split("];").next().unwrap();
    let mut crates: Vec<_> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    crates.sort();
    let mut problems = Vec::new();
    let mut wrong = |name: &str, what: String| problems.push(format!("ARCHITECTURE.md, crates/{name}: {what}"));
    for name in &crates {
        let Some(section) = sections.get(name.as_str()) else {
            wrong(name, "it has no section".to_owned());
            continue;
        };
        let section = section.split("\n#").next().unwrap_or_default();
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let used = uses(&manifest);
        let said: BTreeSet<_> = line(section, "Uses ").unwrap_or_default().into_iter().map(str::to_owned).collect();
        if said != used {
            wrong(name, format!("it says that it uses {said:?}, and its manifest names {used:?}"));
        }
        let is_pure = pure.contains(&format!("\"palisade-{name}\""));
        if section.starts_with("\nPure. ") != is_pure || section.starts_with("\nDoes I/O. ") == is_pure {
            wrong(name, format!("it is to say {}", if is_pure { "`Pure.`" } else { "`Does I/O.`" }));
        }
        match line(section, "Begin with ").as_deref() {
            Some([entry, path, ..]) => {
                let item = entry.rsplit("::").next().unwrap_or_default();
                let file = fs::read_to_string(root().join(path)).unwrap_or_default();
                if !path.starts_with(&format!("crates/{name}/")) || !defines(&file, item) {
                    wrong(name, format!("{path} does not define {entry}"));
                }
            }
            _ => wrong(name, "it does not say with what to begin, and in which file".to_owned()),
        }
        if !section.contains("\n- **Invariant:** ") {
            wrong(name, "it states no invariant".to_owned());
        }
    }
    let unknown = sections.keys().filter(|name| !crates.iter().any(|one| one == *name));
    unknown.for_each(|name| problems.push(format!("ARCHITECTURE.md: there is no crates/{name}")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

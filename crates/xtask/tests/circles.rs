//! Files that import each other in a circle: nobody can read one of them without all others. Each crate keeps an order of
//! its modules, in which a module uses only those before it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The path of a module, without `crate`.
type Module = Vec<String>;

#[derive(Debug, Default)]
struct File {
    /// All paths that it names, from the root of the crate.
    imports: BTreeSet<Module>,
    /// Its re-exports: the name, and the path of the item. The name `*` stands for all names.
    exports: Vec<(String, Module)>,
}

/// A crate by its modules, one for each file. Modules for tests are not in it.
type Files = BTreeMap<Module, File>;

/// The code without comments, texts and modules of tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let (mut code, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len()).filter(|hashes| {
            let named = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            !named && rest[1 + hashes..].starts_with('"')
        });
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(hashes) = raw {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 2;
            rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len())
        } else if first == '"' {
            quoted(rest, '"')
        } else if rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'') {
            quoted(rest, '\'')
        } else {
            code.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    code
}

/// The length of a quoted text with both quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !escaped && c == quote {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}

/// The paths of a tree as in `use a::{b, c::{self, d as e}, f::*}`, each with the name that it gets.
fn tree(text: &str, before: &[String], out: &mut Vec<(String, Vec<String>)>) {
    let text = text.trim();
    let (path, branches) = match text.find('{') {
        Some(at) => (&text[..at], Some(&text[at + 1..text.rfind('}').unwrap_or(text.len())])),
        None => (text, None),
    };
    let (path, alias) = path.split_once(" as ").map_or((path, None), |(path, alias)| (path, Some(alias.trim())));
    let mut segments = before.to_vec();
    let own = path.split("::").map(str::trim).filter(|segment| !segment.is_empty());
    segments.extend(own.map(str::to_owned));
    let Some(branches) = branches else {
        // `a::{self}` is `a`, while `self::a` begins with it.
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let name = alias.or(segments.last().map(String::as_str)).unwrap_or_default().to_owned();
        return out.push((name, segments));
    };
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in branches.char_indices().chain([(branches.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !branches[begin..at].trim().is_empty() {
                    tree(&branches[begin..at], &segments, out);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// A path from the root of the crate; `None` if it leads out of the crate.
fn absolute(path: &[String], module: &Module, children: &BTreeSet<String>) -> Option<Module> {
    let first = path.first()?.as_str();
    if first == "crate" {
        return Some(path[1..].to_vec());
    }
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    let own = usize::from(first == "self");
    if ups + own == 0 && !children.contains(first) {
        return None;
    }
    let base = &module[..module.len().checked_sub(ups)?];
    Some(base.iter().chain(&path[ups + own..]).cloned().collect())
}

fn read(text: &str, module: &Module, children: &BTreeSet<String>) -> File {
    let (code, mut file) = (code(text), File::default());
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    // Statements that import.
    for (at, _) in code.match_indices("use ") {
        if code[..at].ends_with(is_name) {
            continue;
        }
        let line = code[..at].rfind('\n').map_or(0, |at| at + 1);
        let statement = code[at + 4..].split(';').next().unwrap_or_default();
        let mut paths = Vec::new();
        tree(statement, &[], &mut paths);
        for (name, path) in paths {
            let Some(path) = absolute(&path, module, children) else { continue };
            if code[line..at].trim_start().starts_with("pub") {
                file.exports.push((name, path.clone()));
            }
            file.imports.insert(path);
        }
    }
    // Paths elsewhere.
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let path = code[at..].split(|c: char| !is_name(c) && c != ':').next().unwrap_or_default();
            let path: Vec<_> = path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            if !code[..at].ends_with(|c: char| is_name(c) || c == ':') && path.len() > 1 {
                file.imports.extend(absolute(&path, module, children));
            }
        }
    }
    file
}

/// The files of a crate below its `src`.
fn files(source: &Path) -> Files {
    fn walk(directory: &Path, module: &Module, texts: &mut BTreeMap<Module, String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let child: Module = module.iter().cloned().chain([name.clone()]).collect();
            if path.is_dir() {
                if !["tests", "bin"].contains(&name.as_str()) {
                    walk(&path, &child, texts);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests" {
                let is_root = ["lib", "main", "mod"].contains(&name.as_str());
                texts.insert(if is_root { module.clone() } else { child }, fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut texts = BTreeMap::new();
    walk(source, &Module::new(), &mut texts);
    if source.join("lib.rs").exists() {
        texts.insert(Module::new(), fs::read_to_string(source.join("lib.rs")).unwrap());
    }
    let children = |module: &Module| {
        let below = texts.keys().filter(|other| other.len() == module.len() + 1 && other.starts_with(module));
        below.filter_map(|child| child.last().cloned()).collect()
    };
    texts.iter().map(|(module, text)| (module.clone(), read(text, module, &children(module)))).collect()
}

/// The file in which a path leads: where the item is, and not where it is re-exported.
fn resolve(files: &Files, path: &[String], depth: usize) -> Module {
    let module = (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|module| files.contains_key(module));
    let module = module.unwrap_or_default();
    let (Some(name), Some(file)) = (path.get(module.len()), files.get(&module)) else { return module };
    let named = file.exports.iter().find(|(export, _)| export == name);
    match named.filter(|_| depth < 8) {
        Some((_, of)) => resolve(files, of, depth + 1),
        None => module,
    }
}

/// The nodes that are in circles.
fn circles(edges: impl IntoIterator<Item = (Module, Module)>) -> BTreeSet<Module> {
    let mut reach: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (from, to) in edges.into_iter().filter(|(from, to)| from != to) {
        reach.entry(from).or_default().insert(to);
    }
    // They are few, so it follows them step by step.
    loop {
        let before: usize = reach.values().map(BTreeSet::len).sum();
        let known = reach.clone();
        for next in reach.values_mut() {
            next.extend(next.clone().iter().filter_map(|node| known.get(node)).flatten().cloned());
        }
        if reach.values().map(BTreeSet::len).sum::<usize>() == before {
            break;
        }
    }
    reach.into_iter().filter(|(node, reached)| reached.contains(node)).map(|(node, _)| node).collect()
}

/// Which file imports which. A directory's own file, `lib.rs` or `mod.rs`, declares and re-exports those below it, and
/// they use what it declares: between them nothing is counted.
fn edges(files: &Files) -> BTreeSet<(Module, Module)> {
    let of = |(from, file): (&Module, &File)| {
        let from = from.clone();
        file.imports.iter().map(move |path| (from.clone(), resolve(files, path, 0))).collect::<Vec<_>>()
    };
    let counted = |(from, to): &(Module, Module)| !from.starts_with(to) && !to.starts_with(from);
    files.iter().flat_map(of).filter(counted).collect()
}

fn files_in_circles(files: &Files) -> BTreeSet<Module> {
    circles(edges(files))
}

/// The files in modules that are in circles: at each level, a module is one room with all that is below it. That shows
/// also a circle through several files of one directory.
fn rooms_in_circles(files: &Files) -> BTreeSet<Module> {
    let edges = edges(files);
    let mut found = BTreeSet::new();
    for directory in files.keys() {
        let room = |file: &Module| {
            let below = file.starts_with(directory) && file.len() > directory.len();
            below.then(|| file[..=directory.len()].to_vec())
        };
        let circles = circles(edges.iter().filter_map(|(from, to)| Some((room(from)?, room(to)?))));
        found.extend(files.keys().filter(|file| room(file).is_some_and(|room| circles.contains(&room))).cloned());
    }
    found
}

#[test]
fn files_import_each_other_in_no_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut problems = Vec::new();
    let directories = fs::read_dir(crates).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = directories.map(|entry| entry.file_name()).collect();
    names.sort();
    println!("{:<12} files  in circles  in rooms in circles", "crate");
    for name in names {
        let name = name.to_string_lossy().into_owned();
        let files = files(&crates.join(&name).join("src"));
        let found = [files_in_circles(&files), rooms_in_circles(&files)];
        println!("{name:<12} {:>5} {:>11} {:>20}", files.len(), found[0].len(), found[1].len());
        for (what, found) in ["files", "files of rooms"].into_iter().zip(found) {
            if !found.is_empty() {
                let list: Vec<_> = found.iter().map(|module| module.join("::")).collect();
                problems.push(format!("{name}: {} {what} in circles: {}", found.len(), list.join(" ")));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The order of modules that the documentation of a crate's root states, if it does: the names in its numbered list.
fn stated_order(root: &str) -> Option<Vec<String>> {
    let list = root.split("//! Each module uses only modules before it:").nth(1)?;
    let list: String = list.lines().take_while(|line| line.is_empty() || line.starts_with("//!")).collect();
    Some(list.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

#[test]
fn modules_are_in_the_order_that_the_root_states() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut problems, mut stated) = (Vec::new(), 0);
    for entry in fs::read_dir(crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        let roots = ["lib.rs", "main.rs"].map(|root| fs::read_to_string(source.join(root)));
        let Some(root) = roots.into_iter().find_map(Result::ok) else { continue };
        let Some(order) = stated_order(&root) else { continue };
        stated += 1;
        let (files, at) = (files(&source), |module: &Module| order.iter().position(|name| *name == module[0]));
        let missing = files.keys().filter(|file| file.len() == 1 && at(file).is_none());
        problems.extend(missing.map(|file| format!("{}: {} is not in the list", source.display(), file[0])));
        let modules = edges(&files).into_iter().filter(|(from, to)| from[0] != to[0]);
        let wrong: BTreeSet<_> =
            modules.filter(|(from, to)| at(from) < at(to)).map(|(from, to)| (from[0].clone(), to[0].clone())).collect();
        problems.extend(wrong.iter().map(|(from, to)| format!("{}: {from} uses {to}", source.display())));
    }
    assert!(stated > 0 && problems.is_empty(), "{}", problems.join("\n"));
}

fn crate_of(texts: &[(&str, &str)]) -> Files {
    let path = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Module>();
    let all: BTreeSet<_> = texts.iter().map(|(name, _)| path(name)).collect();
    let read = |(name, text): &(&str, &str)| {
        let module = path(name);
        let below = all.iter().filter(|other| other.len() == module.len() + 1 && other.starts_with(&module));
        let children = below.filter_map(|child| child.last().cloned()).collect();
        (module.clone(), read(text, &module, &children))
    };
    texts.iter().map(read).collect()
}

#[test]
fn import_cycles_are_found_and_re_exports_ignored() {
    let text = |found: BTreeSet<Module>| found.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(" ");
    for (files, in_circles, of_rooms) in [
        (vec![("", "mod a; mod b;"), ("a", "use crate::b::B;"), ("b", "use crate::{a::{self, A}};")], "a b", "a b"),
        // Neither a comment nor a text is an import.
        (vec![("", ""), ("a", "use crate::b::B;"), ("b", "// use crate::a;\nlet x = \"crate::a::A\";")], "", ""),
        // A path within code is.
        (vec![("", ""), ("a", "fn f() { crate::b::g() }"), ("b", "use super::a;")], "a b", "a b"),
        // A file that imports a re-export imports the file of the item.
        (vec![("", "pub use a::A;"), ("a", ""), ("b", "use crate::A;")], "", ""),
        (vec![("", "pub use b::B;"), ("a", "use crate::B;"), ("b", "use crate::a::A;")], "a b", "a b"),
        // A directory's own file and those below it are one room; those below are not, among each other.
        (vec![("", ""), ("a", "pub use self::b::B;\npub struct A;"), ("a::b", "use super::A;")], "", ""),
        (vec![("a", ""), ("a::b", "use super::c::C;"), ("a::c", "use super::b::B;")], "a::b a::c", "a::b a::c"),
        // A circle of two rooms that is none of files.
        (
            vec![("", ""), ("a", ""), ("a::b", "use crate::d;"), ("a::c", ""), ("d", "use crate::a::c::C;")],
            "",
            "a a::b a::c d",
        ),
    ] {
        let files = crate_of(&files);
        assert_eq!(text(files_in_circles(&files)), in_circles, "{files:?}");
        assert_eq!(text(rooms_in_circles(&files)), of_rooms, "{files:?}");
    }
}

//! The keys of log lines: those in the code, and those that `docs/logs.md` explains.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::{files, root};

const PAGE: &str = "docs/logs.md";

/// What every JSON line has already.
const TAKEN: [&str; 6] = ["message", "timestamp", "level", "target", "span", "spans"];

const MACROS: [&str; 10] = [
    "tracing::error!(",
    "tracing::warn!(",
    "tracing::info!(",
    "tracing::debug!(",
    "tracing::trace!(",
    "tracing::error_span!(",
    "tracing::warn_span!(",
    "tracing::info_span!(",
    "tracing::debug_span!(",
    "tracing::trace_span!(",
];

/// The arguments of a macro, whose opening bracket `text` is behind: up to the bracket that closes it.
fn arguments(text: &str) -> Vec<String> {
    let (mut all, mut one, mut depth, mut quoted, mut escaped) = (Vec::new(), String::new(), 0, false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted && depth > 0 => depth -= 1,
            ')' if !quoted => break,
            ',' if !quoted && depth == 0 => {
                all.push(std::mem::take(&mut one));
                continue;
            }
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        one.push(c);
    }
    all.push(one);
    all.iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

/// The keys of the lines that a file logs. What follows the text of a line are its arguments, and no keys.
fn keys(text: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for name in MACROS {
        for (at, _) in text.match_indices(name) {
            let mut arguments = arguments(&text[at + name.len()..]);
            if name.contains("_span!") {
                arguments.remove(0);
            }
            for argument in arguments.iter().take_while(|argument| !argument.starts_with('"')) {
                let key = argument.split_once('=').map_or(&**argument, |(key, _)| key);
                let key = key.trim().trim_start_matches(['%', '?']);
                // The conventions of OpenTelemetry, for traces.
                if key.starts_with("otel.") {
                    continue;
                }
                // A shorthand logs under its last name.
                keys.insert(key.rsplit('.').next().unwrap_or(key).to_owned());
            }
        }
    }
    keys
}

#[test]
fn keys_are_read_from_calls() {
    let text = "tracing::warn!(profile = f(a, \"(,\"), %error, ?after, \"failed, {x}; {}\", x = 1);\n\
                tracing::info_span!(\"reconcile\", profile, generation);\ntracing::debug!(\n    took = ?b.c(),\n    \"d\"\n);";
    let expected = ["after", "error", "generation", "profile", "took"].map(str::to_owned);
    assert_eq!(keys(text), BTreeSet::from(expected));
    assert_eq!(keys("tracing::info!(\"{what}\")"), BTreeSet::new());
}

#[test]
fn every_key_of_a_log_line_is_documented_and_none_else() {
    let mut used = BTreeMap::<String, String>::new();
    for (path, text) in files(&[".rs"]) {
        let programs = ["crates/controller/src", "crates/webhook/src", "crates/runtime/src"];
        if programs.iter().any(|program| path.starts_with(program)) {
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            used.extend(keys(code).into_iter().map(|key| (key, path.display().to_string())));
            // Else its calls would not be read.
            let imports = code.lines().map(str::trim).filter(|line| line.starts_with("use tracing::"));
            let others: Vec<_> = imports.filter(|line| *line != "use tracing::Instrument;").collect();
            assert!(others.is_empty(), "{}: write `tracing::warn!(...)`: {others:?}", path.display());
        }
    }
    assert!(used.len() > 20, "{used:?}");
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let table = page.split("| key | value |\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let documented: Vec<_> = rows.map(str::to_owned).collect();
    assert!(documented.is_sorted(), "{PAGE}: the keys are not in order");
    let documented: BTreeSet<_> = documented.into_iter().collect();
    let missing: Vec<_> = used.iter().filter(|(key, _)| !documented.contains(*key)).collect();
    let unused: Vec<_> = documented.iter().filter(|key| !used.contains_key(*key)).collect();
    assert!(missing.is_empty(), "{PAGE} does not explain these keys: {missing:?}. Is there one for the same thing?");
    assert!(unused.is_empty(), "{PAGE} explains keys that no line has: {unused:?}");
    for (key, path) in &used {
        assert!(!TAKEN.contains(&key.as_str()), "{path}: {key} would stand twice in a line");
        assert!(key.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{path}: {key} is not in snake case");
    }
}

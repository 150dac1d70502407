//! What can be forgotten when something is added, and neither the compiler nor another test would say so.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use palisade_api::{conditions::ConditionType, crd};
use palisade_cel::Minor;
use palisade_profiles::lint::options;

use super::{check, documents::scenarios, files, root};

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

/// What Cargo compiles by itself: directories all of whose files it finds, and files that a manifest names.
fn roots() -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let (mut directories, mut named) = (BTreeSet::new(), BTreeSet::new());
    for (path, text) in files(&["Cargo.toml"]) {
        let package = path.parent().unwrap();
        directories.extend(["benches", "src/bin"].map(|directory| package.join(directory)));
        if !text.contains("\nautotests = false\n") {
            directories.insert(package.join("tests"));
        }
        let paths = text.lines().filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
        named.extend(paths.map(|path| package.join(path)));
    }
    (directories, named)
}

#[test]
fn every_rust_file_is_declared_as_a_module() {
    let (directories, named) = roots();
    let sources = files(&[".rs"]);
    let is_root = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        let found = directories.contains(path.parent().unwrap());
        ["lib.rs", "main.rs", "build.rs"].contains(&&*name) || named.contains(path) || found
    };
    let mut declared = BTreeSet::new();
    for (path, text) in &sources {
        let directory = path.parent().unwrap();
        let is_directory = is_root(path) || path.ends_with("mod.rs");
        let below = if is_directory { directory.to_owned() } else { path.with_extension("") };
        let mut explicit = None;
        for line in text.lines().map(str::trim) {
            if let Some(path) = line.strip_prefix("#[path = \"").and_then(|rest| rest.split('"').next()) {
                explicit = Some(plain(&directory.join(path)));
            } else if let Some((before, module)) = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "))
                && (before.is_empty() || before.starts_with("pub"))
            {
                let usual = [below.join(module).with_extension("rs"), below.join(module).join("mod.rs")];
                declared.extend(explicit.take().map_or(usual.to_vec(), |path| vec![path]));
            }
        }
    }
    let orphans: Vec<_> =
        sources.iter().map(|(path, _)| path).filter(|path| !is_root(path) && !declared.contains(*path)).collect();
    assert!(orphans.is_empty(), "no file declares these as modules: {orphans:#?}");
}

/// A scenario of `tests/apiserver` runs only if its module registers it, `main.rs` has the module's list, and the group has a
/// control plane.
#[test]
fn every_scenario_of_the_end_to_end_tests_is_registered() {
    const DIRECTORY: &str = "tests/apiserver/tests";
    let (mut defined, mut registered) = (BTreeSet::new(), BTreeSet::new());
    for (path, text) in files(&[".rs"]) {
        let Ok(below) = path.strip_prefix(DIRECTORY) else { continue };
        let module = below.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
        let functions = text.lines().filter_map(|line| line.strip_suffix("(cluster: &mut Cluster) -> TestResult {"));
        let names = functions.filter_map(|line| line.rsplit_once("async fn ")).map(|(_, name)| name);
        defined.extend(names.map(|name| (module.clone(), name.to_owned())));
        registered.extend(scenarios(&text).map(|name| (module.clone(), name.to_owned())));
    }
    assert!(defined.len() > 100, "the scenarios are found: {}", defined.len());
    let forgotten: Vec<_> = defined.difference(&registered).collect();
    let unknown: Vec<_> = registered.difference(&defined).collect();
    assert!(forgotten.is_empty(), "no `scenarios!` of {DIRECTORY} registers {forgotten:?}");
    assert!(unknown.is_empty(), "not a scenario: {unknown:?}");
    let [main, groups] =
        ["main.rs", "groups.rs"].map(|file| fs::read_to_string(root().join(DIRECTORY).join(file)).unwrap());
    for module in registered.iter().map(|(module, _)| module) {
        assert!(
            main.contains(&format!("    {module}::SCENARIOS,\n")),
            "MODULES of {DIRECTORY}/main.rs has no {module}"
        );
    }
    let variants = groups.split("enum Group {\n").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let variants = variants.lines().map(str::trim).filter(|line| !line.starts_with("///"));
    for group in variants.map(|line| line.trim_end_matches(',')) {
        assert!(main.contains(&format!("Group::{group}")), "{DIRECTORY}/main.rs has no control plane for {group}");
    }
}

/// Of a rule that is not in the list, neither the examples nor the page would be missed.
#[test]
fn each_example_of_a_lint_rule_belongs_to_a_rule() {
    let rules = options().rules();
    let ids: BTreeSet<_> = rules.iter().map(|rule| rule.id.replace('-', "_")).collect();
    check(&[".bad.yaml", ".good.yaml"], |path, text| {
        let name = path.file_name().unwrap().to_string_lossy();
        let rule = name.split('.').next().unwrap_or_default();
        let listed = rules.iter().any(|rule| rule.bad == text || rule.good == text);
        if ids.contains(rule) && listed { vec![] } else { vec!["no rule that is listed has this example".to_owned()] }
    });
}

/// The names of an enum's variants.
fn variants(path: &str, name: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let body = text.split(&format!("pub enum {name} {{\n")).nth(1).and_then(|rest| rest.split("\n}").next());
    let lines = body.unwrap_or_else(|| panic!("{path} has no enum {name}")).lines();
    // Those of its fields are further in.
    let first = lines
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    first.map(|line| line.chars().take_while(|c| c.is_alphanumeric()).collect()).collect()
}

#[test]
fn every_subcommand_is_fuzzed_and_documented() {
    /// These read no files.
    const WITHOUT_FILES: [&str; 3] = ["completions", "man", "new"];
    /// These read a kubeconfig, which is kube's to read, and would connect to any address in it.
    const ASKING: [&str; 7] = ["history", "dump", "rollback", "rollout", "exception", "status", "why"];
    /// The help names every command on these.
    const OF_HELP: [&str; 2] = ["docs/commands.md", "docs/exit-codes.md"];
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let tried = read("crates/cli/tests/support/commands.rs");
    let is_written = |path: &Path| path.starts_with("docs") && !OF_HELP.iter().any(|page| path == Path::new(page));
    let pages: String =
        files(&[".md"]).into_iter().filter(|(path, _)| is_written(path)).map(|(_, text)| text).collect();
    let commands = variants("crates/cli/src/args.rs", "Command");
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands.iter().map(|name| name.to_lowercase()).filter(|name| !WITHOUT_FILES.contains(&&**name)) {
        let line = format!("line: \"{command} ");
        assert!(
            ASKING.contains(&&*command) || tried.contains(&line),
            "crates/cli/tests/support/commands.rs has no {line}"
        );
        assert!(pages.contains(&format!("palisade {command}")), "no page of docs says `palisade {command}`");
    }
}

/// The words of a text that are names of commands.
fn commands_in<'a>(text: &'a str, commands: &BTreeSet<String>) -> BTreeSet<&'a str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| commands.contains(*word)).collect()
}

/// Commands that connect to a cluster have the option `--kubeconfig`.
#[test]
fn commands_that_connect_to_a_cluster_are_listed() {
    fn connects(command: &clap::Command) -> bool {
        command.get_arguments().any(|argument| argument.get_long() == Some("kubeconfig"))
            || command.get_subcommands().any(connects)
    }
    let root_command = palisade_cli::definition();
    let (mut all, mut connecting) = (BTreeSet::new(), BTreeSet::new());
    for command in root_command.get_subcommands() {
        all.insert(command.get_name().to_owned());
        if connects(command) {
            connecting.insert(command.get_name());
        }
    }
    assert!(connecting.len() > 10 && connecting.len() < all.len(), "{connecting:?}");
    let help = root_command.get_long_about().unwrap().to_string();
    let help = help.split("connect to a cluster: ").nth(1).and_then(|rest| rest.split(". ").next()).unwrap();
    assert_eq!(commands_in(help, &all), connecting, "the help of palisade, in crates/cli/src/args.rs");
    let guide = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = guide.split("\n#### `crates/cli`").nth(1).unwrap();
    let sentence =
        section.split("\n#").next().and_then(|section| section.split(" connect to the cluster").next()).unwrap();
    let sentence = sentence.rsplit(". ").next().unwrap();
    assert_eq!(commands_in(sentence, &all), connecting, "ARCHITECTURE.md, crates/cli");
}

/// The number at the beginning of a text.
fn leading_number(text: &str) -> Option<u8> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Ranges of minors in a text, such as `1.35 to 1.36`.
fn ranges(text: &str) -> Vec<(u8, u8)> {
    let prose = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!', '#']).trim());
    let prose = prose.collect::<Vec<_>>().join(" ");
    let ends = prose.match_indices(" to 1.").filter_map(|(at, found)| {
        let from = prose[..at].rsplit(|c: char| c.is_whitespace()).next()?.trim_start_matches(['(', '`']);
        Some((leading_number(from.strip_prefix("1.")?)?, leading_number(&prose[at + found.len()..])?))
    });
    ends.collect()
}

#[test]
fn texts_name_the_range_of_supported_minors() {
    assert_eq!(ranges("/// Of 1.35 to\n/// 1.36, v1.3 to v1.4, (1.7 to 1.8."), [(35, 36), (7, 8)]);
    let [oldest, before_default, newest] =
        [Minor::OLDEST.number(), Minor::DEFAULT.number() - 1, Minor::NEWEST.number()];
    check(&[".md", ".rs"], |path, text| {
        // Decisions and releases keep the range of their time. The others have figures.
        let apart = ["docs/adr", "CHANGELOG.md", "docs/benchmarks.md", "docs/scale.md"];
        if apart.iter().any(|apart| path.starts_with(apart)) {
            return vec![];
        }
        // The minors before the default differ from it: mutation needs the webhook there.
        let is_outdated = |(from, to): &(u8, u8)| {
            *from == oldest && ![before_default, newest].contains(to) || *to == newest && *from != oldest
        };
        let outdated = ranges(text).into_iter().filter(is_outdated);
        outdated.map(|(from, to)| format!("1.{from} to 1.{to}: supported are {}", Minor::supported())).collect()
    });
}

/// The tests of golden files run in parallel because each has one minor. The control plane has a separate list of versions.
#[test]
fn each_minor_has_tests_and_a_control_plane() {
    let versions = fs::read_to_string(root().join("tests/controlplane/src/version.rs")).unwrap();
    let versions = versions.split("#[cfg(test)]").next().unwrap();
    for minor in Minor::ALL {
        assert!(versions.contains(&format!("\"{minor}\",")), "tests/controlplane/src/version.rs has no row of {minor}");
    }
    for path in ["crates/admission/tests/definitions.rs", "crates/admission/tests/mutants.rs"] {
        let text = fs::read_to_string(root().join(path)).unwrap();
        for minor in Minor::ALL {
            let call = format!("(Minor::V{});", minor.to_string().replace('.', "_"));
            assert!(text.contains(&call), "{path} has no test of {minor}");
        }
    }
}

#[test]
fn every_condition_is_printed_and_documented() {
    let all = ConditionType::ALL.map(|condition| condition.to_string());
    assert_eq!(variants("crates/api/src/conditions.rs", "ConditionType"), all, "ConditionType::ALL");
    let pages = ["README.md", "docs/rollout.md", "docs/generate.md", "docs/runbooks/conditions.md"];
    let [readme, rollout, generate, runbook] = pages.map(|path| fs::read_to_string(root().join(path)).unwrap());
    let introduction = runbook.split("\n## ").next().unwrap();
    let profiles = crd::all().into_iter().find(|crd| crd.spec.names.kind == "ToolSecurityProfile").unwrap();
    let columns = profiles.spec.versions[0].additional_printer_columns.clone().unwrap_or_default();
    let schema = serde_json::to_value(&profiles.spec.versions[0].schema).unwrap();
    let explained = schema.pointer("/openAPIV3Schema/properties/status/properties/conditions/description").unwrap();
    for condition in ConditionType::ALL {
        let is_column = columns.iter().any(|column| column.name == condition.to_string());
        // These are for tools. Ready shows what the first two amount to, and column Rollout more than the last.
        let for_tools =
            matches!(condition, ConditionType::Reconciling | ConditionType::Stalled | ConditionType::RolledOut);
        assert!(is_column || for_tools, "{condition} is no column of kubectl get");
        assert!(
            explained.as_str().unwrap().replace('`', "").contains(&format!("{condition}: ")),
            "the CRD does not explain {condition}"
        );
        assert!(introduction.contains(&format!("`{condition}`")), "the runbook does not name {condition}");
        // Most profiles have no rollout, and generate nothing.
        let page = match condition {
            ConditionType::RolledOut => &rollout,
            ConditionType::Generated => &generate,
            _ => &readme,
        };
        assert!(page.contains(&format!("\n| `{condition}` |")), "no page explains {condition}");
    }
}

/// Enums of reasons, each of which has a section for whoever meets it.
const REASONS: [(&str, &str); 2] =
    [("crates/api/src/conditions.rs", "Reason"), ("crates/api/src/conditions.rs", "ExceptionReason")];

#[test]
fn every_reason_of_a_condition_has_a_runbook() {
    const PAGE: &str = "docs/runbooks/conditions.md";
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let sections: BTreeSet<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
    let reasons: BTreeSet<_> = REASONS.iter().flat_map(|(path, name)| variants(path, name)).collect();
    assert!(reasons.len() > 15, "{reasons:?}");
    let missing: Vec<_> = reasons.difference(&sections).collect();
    let unknown: Vec<_> = sections.difference(&reasons).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{PAGE} has no section {missing:?}, and those of no reason {unknown:?}"
    );
}

//! One vocabulary of the command line: an option has the same name, letter and kind of value in each command.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use crate::args::Args;

/// The values that are output formats.
const FORMATS: [&str; 9] = ["human", "json", "yaml", "diff", "markdown", "html", "sarif", "junit", "github"];
/// Commands whose output is not text by default: objects, or a page.
const OTHER_DEFAULT: [&str; 3] = ["render", "migrate psp", "report"];
/// Options with another kind of value in one command, with the reason.
const DIFFERENT: [(&str, &str, &str); 2] = [
    ("lint", "explain", "explains a rule by its ID, like rustc; check --explain explains objects"),
    ("why", "pod", "also takes a pod of the cluster"),
];
/// Commands that evaluate pods and workloads of files or of a cluster.
const EVALUATE: [&str; 5] = ["check", "diff", "replay", "report", "suggest"];

/// All commands without subcommands, by their path.
fn commands() -> Vec<(String, Command)> {
    fn add(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        for one in command.get_subcommands() {
            let path = format!("{path} {}", one.get_name()).trim().to_owned();
            if one.has_subcommands() {
                add(one, &path, found);
            } else {
                found.push((path, one.clone()));
            }
        }
    }
    let mut found = Vec::new();
    add(&Args::command(), "", &mut found);
    found
}

fn value_name(arg: &Arg) -> String {
    if matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::Count) {
        return String::new();
    }
    arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn option<'c>(command: &'c Command, long: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(long))
}

#[test]
fn option_has_one_letter_and_one_kind_of_value() {
    let (mut values, mut letters) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for (path, command) in commands() {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            if DIFFERENT.iter().any(|(of, option, _)| (*of, *option) == (path.as_str(), long)) {
                continue;
            }
            // A command may write one format, or several to files.
            let value = value_name(arg).replace("[=FILE]", "");
            values.entry(long.to_owned()).or_default().insert((arg.get_short(), value));
            if let Some(short) = arg.get_short() {
                assert_ne!(short, 'f', "{path}: -f has meant three things");
                letters.entry(short).or_default().insert(long.to_owned());
            }
        }
    }
    values.retain(|_, kinds| kinds.len() > 1);
    letters.retain(|_, names| names.len() > 1);
    assert!(values.is_empty() && letters.is_empty(), "{values:#?} {letters:#?}");
}

#[test]
fn options_of_input_mean_the_same() {
    for (long, short, value) in [
        ("profile", Some('p'), "FILE|DIR"),
        ("namespaces", None, "FILE"),
        ("namespace", Some('n'), "NAME"),
        ("param", None, "NAME=VALUE"),
        ("live", None, ""),
        ("dump", None, "DIR"),
        ("kube-version", None, "VERSION"),
    ] {
        let commands = commands();
        let found = commands.iter().find_map(|(_, command)| option(command, long)).expect(long);
        assert_eq!((found.get_short(), value_name(found).as_str()), (short, value), "--{long}");
    }
}

#[test]
fn objects_are_arguments_without_an_option() {
    for (path, command) in commands() {
        let reads = EVALUATE.contains(&path.as_str()) || ["eval", "lint", "test", "audit"].contains(&path.as_str());
        let names: Vec<_> = command.get_positionals().map(value_name).collect();
        if reads && path != "diff" {
            assert_eq!(names, ["FILE|DIR"], "{path}");
        }
        for former in ["file", "request", "filename"] {
            assert!(option(&command, former).is_none(), "{path} --{former}");
        }
    }
}

#[test]
fn input_is_read_from_files_from_a_cluster_or_from_a_dump() {
    let commands: BTreeMap<_, _> = commands().into_iter().collect();
    for path in EVALUATE {
        for long in ["live", "dump", "namespaces", "kube-version", "allow-unevaluated"] {
            assert!(option(&commands[path], long).is_some(), "{path} --{long}");
        }
    }
    for path in ["check", "eval", "render", "replay", "report", "suggest"] {
        assert!(option(&commands[path], "param").is_some(), "{path} --param");
    }
}

#[test]
fn output_formats_have_the_same_names() {
    for (path, command) in commands() {
        let Some(output) = option(&command, "output") else { continue };
        assert_eq!(output.get_short(), Some('o'), "{path}");
        let formats: Vec<_> = output.get_possible_values().iter().map(|one| one.get_name().to_owned()).collect();
        assert!(formats.iter().all(|one| FORMATS.contains(&one.as_str())), "{path}: {formats:?}");
        let default = output.get_default_values().first().map(|value| value.to_string_lossy());
        let is_human = default.is_none_or(|default| default == "human");
        assert_ne!(is_human, OTHER_DEFAULT.contains(&path.as_str()), "{path}");
    }
}

#[test]
fn options_of_the_connection_are_alone_under_their_heading() {
    const CONNECTION: [&str; 5] = ["kubeconfig", "context", "as", "as-group", "as-uid"];
    for (path, command) in commands() {
        for arg in command.get_arguments() {
            let under = arg.get_help_heading().is_some_and(|heading| heading == "Cluster connection");
            let long = arg.get_long().unwrap_or_default();
            assert_eq!(under, CONNECTION.contains(&long), "{path} --{long}");
        }
    }
}

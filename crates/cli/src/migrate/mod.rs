//! `palisade migrate psp`: converts `PodSecurityPolicies` to profiles, and reports the differences.

mod args;

use std::{fmt::Write as _, sync::Arc};

use palisade_api::{Diagnostic, Stage};
use palisade_migrate::{
    ALWAYS, Migrated, Note, Options, concise,
    psp::PodSecurityPolicy,
    rbac::{self, Binding, Rbac, Role},
};
use serde_json::json;

pub use args::PspArgs;
use args::{Format, StageArg};

use crate::{
    files,
    input::{self, Object},
    output::{self, could_not_print},
    profiles::guarded,
    report::{self, Failure, Problem, Source},
};

const KIND: &str = "PodSecurityPolicy";
/// The versions that API servers served, and a common error.
const VERSIONS: [&str; 3] = ["policy/v1beta1", "extensions/v1beta1", "policy/v1"];
/// Comments are wrapped after this many characters.
const WIDTH: usize = 110;

/// The objects in the files.
#[derive(Default)]
struct Input<'a> {
    policies: Vec<PodSecurityPolicy>,
    /// The objects of the policies, in their order.
    objects: Vec<Object<'a>>,
    rbac: Rbac,
}

/// Runs the command.
pub fn run(args: &PspArgs) -> Result<(), Failure> {
    if args.files.iter().filter(|file| *file == "-").count() > 1 {
        return Err(Failure::CouldNotRun(vec![Problem::new("only one FILE can be standard input")]));
    }
    let sources = files::expand(&args.files)?.iter().map(|file| files::read(file)).collect::<Result<Vec<_>, _>>()?;
    let input = Input::read(&sources)?;
    let stage = match args.stage {
        StageArg::Deny => Stage::Deny,
        StageArg::Warn => Stage::Warn,
        StageArg::Audit => Stage::Audit,
    };
    let options = Options { stage, namespace_selector: args.namespace_selector.clone() };
    let wrong = |(index, mistake): (usize, Diagnostic)| located(&input.objects[index], &mistake);
    let migrated = palisade_migrate::migrate(&input.policies, &input.rbac, &options)
        .map_err(|mistakes| Failure::Wrong(mistakes.into_iter().map(wrong).collect()))?;
    check(&migrated, &input.objects)?;
    let text = match args.output {
        Format::Yaml => yaml(&migrated, &input),
        Format::Json => json(&migrated),
    };
    output::print(&text?)?;
    warn(&migrated, &input.objects);
    let differences = migrated.iter().flat_map(|one| &one.notes).filter(|note| note.is_difference()).count();
    if args.strict && differences > 0 {
        let message = format!("--strict: the profiles differ from the policies in {differences} of the notes above");
        return Err(Failure::Wrong(vec![Problem::new(message)]));
    }
    Ok(())
}

impl<'a> Input<'a> {
    fn read(sources: &'a [Arc<Source>]) -> Result<Self, Failure> {
        let mut input = Self::default();
        let mut problems = Vec::new();
        for source in sources {
            let mut others = Vec::new();
            for object in input::objects(source)? {
                let of_rbac = object.api_version.strip_prefix(rbac::GROUP).is_some_and(|rest| rest.starts_with('/'));
                if object.kind == KIND {
                    match policy(&object) {
                        Ok(policy) => {
                            input.policies.push(policy);
                            input.objects.push(object);
                        }
                        Err(problem) => problems.push(problem),
                    }
                } else if of_rbac && rbac::KINDS.contains(&object.kind.as_str()) {
                    problems.extend(input.grant(&object).err());
                } else {
                    others.push(object.kind);
                }
            }
            output::ignored(source, &others, &format!("{KIND}, role or binding"));
        }
        if !problems.is_empty() {
            return Err(Failure::Wrong(problems));
        }
        if input.policies.is_empty() {
            let names: Vec<_> = sources.iter().map(|source| source.name()).collect();
            let message = format!("{}: a {KIND} is required", names.join(", "));
            return Err(Failure::CouldNotRun(vec![Problem::new(message)]));
        }
        Ok(input)
    }

    fn grant(&mut self, object: &Object<'_>) -> Result<(), Problem> {
        let of_cluster = object.kind.starts_with("Cluster");
        let namespace = if object.kind.ends_with("Binding") {
            let binding: Binding = object.parse().map_err(|mistake| mistake.problem)?;
            let namespace = binding.metadata.namespace.clone();
            self.rbac.add_binding(of_cluster, binding);
            namespace
        } else {
            let role: Role = object.parse().map_err(|mistake| mistake.problem)?;
            let namespace = role.metadata.namespace.clone();
            self.rbac.add_role(of_cluster, role);
            namespace
        };
        if !of_cluster && namespace.is_empty() {
            let message = "metadata.namespace: is required";
            return Err(object.problem("metadata", message).help("add the namespace in which it grants permissions"));
        }
        Ok(())
    }
}

fn policy(object: &Object<'_>) -> Result<PodSecurityPolicy, Problem> {
    if !VERSIONS.contains(&object.api_version.as_str()) {
        let message = format!("apiVersion: unknown: {:?}", object.api_version);
        return Err(object.problem("apiVersion", message).help("must be policy/v1beta1"));
    }
    object.parse().map_err(|mistake| mistake.problem)
}

fn located(object: &Object<'_>, mistake: &Diagnostic) -> Problem {
    let path = mistake.location.to_string();
    let problem = object.problem(&path, format!("{path}: {}", mistake.message));
    match &mistake.help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// Each printed profile has passed the controller's check.
fn check(migrated: &[Migrated], objects: &[Object<'_>]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for (Migrated { profile, .. }, object) in migrated.iter().zip(objects) {
        let checked = guarded(|| {
            palisade_compiler::compile(profile)
                .and_then(|compiled| palisade_gate::check(compiled).map_err(|rejected| rejected.diagnostics))
        });
        let checked = match checked {
            Ok(checked) => checked,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        for diagnostic in checked.err().unwrap_or_default() {
            let message = format!("the converted profile is not accepted: {diagnostic}");
            problems.push(
                object
                    .problem("spec", message)
                    .help("two settings of the policy may contradict each other, so that it admits no pod"),
            );
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Wrong(problems)) }
}

fn json(migrated: &[Migrated]) -> Result<String, Failure> {
    let items = migrated.iter().map(|one| concise(&one.profile)).collect::<Result<Vec<_>, _>>();
    let items = items.map_err(|error| could_not_print(&error))?;
    Ok(format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": items})))
}

/// The profiles, each below the notes on its differences.
fn yaml(migrated: &[Migrated], input: &Input<'_>) -> Result<String, Failure> {
    let mut text = String::from("# Generated by palisade migrate psp. For each of these profiles:\n");
    for line in ALWAYS {
        comment(&mut text, "- ", line);
    }
    for (one, object) in migrated.iter().zip(&input.objects) {
        let profile = concise(&one.profile).map_err(|error| could_not_print(&error))?;
        let (line, _) = object.source.position(object.node.span.start);
        let name = input.policies.iter().zip(migrated).find(|(_, other)| std::ptr::eq(*other, one));
        let name = name.map_or("", |(policy, _)| policy.name());
        text.push_str("---\n");
        comment(&mut text, "", &format!("PodSecurityPolicy {name}, {}:{line}", object.source.name()));
        for note in &one.notes {
            comment(&mut text, "- ", &note.to_string());
        }
        text.push_str(&output::yaml(&[profile]).map_err(|error| could_not_print(&error))?);
    }
    Ok(text)
}

/// Adds a wrapped comment. Later lines are aligned with its text.
fn comment(out: &mut String, bullet: &str, text: &str) {
    let mut line = format!("# {bullet}");
    let indent = " ".repeat(bullet.len());
    let mut begun = false;
    // The key of a label may contain anything, and a comment ends with its line.
    let text: String = text.chars().map(report::harmless).collect();
    for word in text.split_whitespace() {
        if begun && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = format!("# {indent}");
            begun = false;
        }
        if begun {
            line.push(' ');
        }
        line.push_str(word);
        begun = true;
    }
    let _ = writeln!(out, "{line}");
}

/// Reports each difference at its place. Notes without an action are only in the comments.
fn warn(migrated: &[Migrated], objects: &[Object<'_>]) {
    let mut problems = Vec::new();
    let mut others = 0;
    for (one, object) in migrated.iter().zip(objects) {
        for note in &one.notes {
            if !note.is_difference() {
                others += 1;
                continue;
            }
            let Note { kind, path, message, .. } = note;
            let problem =
                Problem::warning(format!("{kind}: {path}: {message}")).at(object.source, object.node.place(path));
            problems.push(match note.help() {
                Some(help) => problem.help(help),
                None => problem,
            });
        }
    }
    report::tell(&problems);
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    report::note(&format!(
        "note: {}, {}, {}; all of them are in comments of the YAML",
        counted(migrated.len(), "profile"),
        counted(problems.len(), "difference"),
        counted(others, "further note")
    ));
}

//! Spellings of an earlier release, which work for one more release with a warning; and removed ones, with an error that
//! names the replacement.

use std::ffi::OsString;

use crate::report::Problem;

/// The present spelling of an option.
#[derive(Clone, Copy)]
enum Now {
    /// Its values are arguments without an option.
    Positional,
    Option(&'static str),
    /// It has no value.
    Flag(&'static str),
}

/// The former options of commands.
const RENAMED: [(&str, &[&str], Now); 10] = [
    ("rollout", &["--to"], Now::Option("--stage")),
    ("audit", &["--profile", "-p"], Now::Option("--profile-name")),
    ("eval", &["-f", "--file"], Now::Option("--policies")),
    ("eval", &["--request"], Now::Positional),
    ("explain", &["--pod"], Now::Positional),
    ("explain", &["--namespace"], Now::Option("--namespaces")),
    ("diff", &["-f", "--file"], Now::Option("--manifests")),
    ("replay", &["-f", "--file"], Now::Option("--profile")),
    ("report", &["-f", "--file"], Now::Positional),
    ("suggest", &["-f", "--file"], Now::Positional),
];
/// The former flags of all commands.
const FLAGS: [(&str, &str); 1] = [("--allow-unjudged", "--allow-unevaluated")];
/// The commands whose former options took several values.
const SEVERAL: [&str; 2] = ["eval", "diff"];
/// The former commands, and their present spelling.
const MOVED: [(&str, &[&str]); 1] = [("explain", &["check", "--explain"])];

/// The removed commands and options, with the replacement. Without an option, the command was removed.
const REMOVED: [(&str, Option<&str>, &str); 2] = [
    (
        "audit",
        Some("--listen"),
        "pipe the events of a log file or of a log shipper to palisade audit -, or use palisade audit --metrics \
         (docs/operate.md#audit-logs)",
    ),
    (
        "guard",
        None,
        "set guardSources: false in the profile; if no controller is running, also kubectl delete \
         validatingadmissionpolicybinding palisade-PROFILE-guard (docs/profiles.md#disable-the-guard)",
    ),
];

/// The arguments in the present spelling, and a warning for each former option.
///
/// # Errors
/// The command or an option was removed.
pub fn current(arguments: Vec<OsString>) -> Result<(Vec<OsString>, Vec<String>), Problem> {
    let Some((index, command)) = command(&arguments) else { return Ok((arguments, Vec::new())) };
    if let Some(removed) = removed(&command, &arguments) {
        return Err(removed);
    }
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let mut left = arguments.into_iter().peekable();
    if let Some((_, now)) = MOVED.iter().find(|(former, _)| *former == command) {
        warnings.push(format!("warning: palisade {command} is deprecated: use palisade {}", now.join(" ")));
        out.extend(left.by_ref().take(index));
        left.next();
        out.extend(now.iter().map(OsString::from));
    }
    while let Some(argument) = left.next() {
        if argument == "--" {
            out.push(argument);
            break;
        }
        let Some((old, now, value)) = renamed(&command, &argument) else {
            out.push(argument);
            continue;
        };
        let advice = match now {
            Now::Positional => "write the files without an option".to_owned(),
            Now::Option(new) | Now::Flag(new) => format!("use {new}"),
        };
        warnings.push(format!("warning: {old} of palisade {command} is deprecated: {advice}"));
        if let Now::Flag(new) = now {
            out.push(new.into());
            continue;
        }
        let mut values: Vec<OsString> = value.map(OsString::from).into_iter().collect();
        while values.is_empty() || SEVERAL.contains(&command.as_str()) {
            match left.next_if(|next| next == "-" || !next.to_string_lossy().starts_with('-')) {
                Some(next) => values.push(next),
                None => break,
            }
        }
        for value in values {
            if let Now::Option(new) = now {
                out.push(new.into());
            }
            out.push(value);
        }
    }
    out.extend(left);
    Ok((out, warnings))
}

/// The error if the command or one of its options was removed.
fn removed(command: &str, arguments: &[OsString]) -> Option<Problem> {
    let is_given = |option: &str| {
        let options = arguments.iter().skip(1).take_while(|argument| *argument != "--");
        options.filter_map(|argument| argument.to_str()?.split('=').next()).any(|name| name == option)
    };
    let mut of_command = REMOVED.iter().filter(|(of, ..)| *of == command);
    let (_, option, instead) = of_command.find(|(_, option, _)| option.is_none_or(is_given))?;
    let text = match option {
        Some(option) => format!("{option} of palisade {command} was removed"),
        None => format!("palisade {command} was removed"),
    };
    Some(Problem::new(text).help(*instead))
}

/// The command, the first argument that is not an option, and its index.
fn command(arguments: &[OsString]) -> Option<(usize, String)> {
    let mut rest = arguments.iter().map(|argument| argument.to_string_lossy()).enumerate().skip(1);
    while let Some((index, argument)) = rest.next() {
        if argument == "--color" {
            rest.next();
        } else if !argument.starts_with('-') {
            return Some((index, argument.into_owned()));
        }
    }
    None
}

/// A former option, its present spelling, and the value that is in the same argument.
fn renamed(command: &str, argument: &OsString) -> Option<(&'static str, Now, Option<String>)> {
    let text = argument.to_str()?;
    if let Some((name, new)) = FLAGS.iter().find(|(name, _)| *name == text) {
        return Some((*name, Now::Flag(new), None));
    }
    let of_command = RENAMED.iter().filter(|(of, ..)| *of == command);
    of_command.flat_map(|(_, names, now)| names.iter().map(|name| (*name, *now))).find_map(|(name, now)| {
        let rest = text.strip_prefix(name)?;
        match rest.strip_prefix('=') {
            Some(value) => Some((name, now, Some(value.to_owned()))),
            None if rest.is_empty() => Some((name, now, None)),
            // `-fFILE`
            None => (!name.starts_with("--")).then(|| (name, now, Some(rest.to_owned()))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<OsString> {
        std::iter::once("palisade").chain(text.split(' ')).map(OsString::from).collect()
    }

    #[test]
    fn former_options_are_rewritten_with_a_warning() {
        for (former, present, count) in [
            ("eval -f a b --request c -v", "eval --policies a --policies b c -v", 2),
            ("eval --request - --file=a", "eval - --policies a", 2),
            ("--color never eval -fa --request=c", "--color never eval --policies a c", 2),
            ("explain --pod p --profile f --namespace n", "check --explain p --profile f --namespaces n", 3),
            ("--color never explain p -p f", "--color never check --explain p -p f", 1),
            ("check --explain p -p f --namespace n", "check --explain p -p f --namespace n", 0),
            ("diff new.yaml -f m n --namespaces s", "diff new.yaml --manifests m --manifests n --namespaces s", 1),
            ("audit log -p tools", "audit log --profile-name tools", 1),
            ("rollout promote p n --to Warn", "rollout promote p n --stage Warn", 1),
            ("replay -f p log", "replay --profile p log", 1),
            ("report -f a -f b -o json", "report a b -o json", 2),
            ("suggest -f - --profile p", "suggest - --profile p", 1),
            ("lint --allow-unjudged a", "lint --allow-unevaluated a", 1),
            ("report -f a --allow-unjudged", "report a --allow-unevaluated", 2),
            ("eval a --policies b -n c", "eval a --policies b -n c", 0),
            ("lint -- -f", "lint -- -f", 0),
            ("eval -- -f", "eval -- -f", 0),
        ] {
            let (found, warnings) = current(split(former)).unwrap();
            assert_eq!(found, split(present), "{former}");
            assert_eq!(warnings.len(), count, "{former}: {warnings:?}");
        }
    }

    #[test]
    fn removed_commands_and_options_are_errors_that_name_the_replacement() {
        let (listen, audit) = ("--listen of palisade audit was removed", "docs/operate.md#audit-logs");
        let (guard, disable) = ("palisade guard was removed", "docs/profiles.md#disable-the-guard");
        for (line, message, page) in [
            ("audit --listen 127.0.0.1:9443", listen, audit),
            ("--color never audit --every 1m --listen=127.0.0.1:9443", listen, audit),
            ("guard off tools", guard, disable),
            ("--color=never guard", guard, disable),
        ] {
            let error = current(split(line)).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.advice().is_some_and(|help| help.contains(page)), "{error:?}");
        }
        assert!(current(split("audit -- --listen")).is_ok());
    }
}

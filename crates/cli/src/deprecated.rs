//! Spellings of an earlier release, which work for one more release with a warning.

use std::ffi::OsString;

/// The present spelling of an option.
#[derive(Clone, Copy)]
enum Now {
    /// Its values are arguments without an option.
    Positional,
    Option(&'static str),
}

/// The former options of commands.
const RENAMED: [(&str, &[&str], Now); 9] = [
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
/// The commands whose former options took several values.
const SEVERAL: [&str; 2] = ["eval", "diff"];
/// The former commands, and their present spelling.
const MOVED: [(&str, &[&str]); 1] = [("explain", &["check", "--explain"])];

/// The arguments in the present spelling, and a warning for each former option.
pub fn current(arguments: Vec<OsString>) -> (Vec<OsString>, Vec<String>) {
    let Some((index, command)) = command(&arguments) else { return (arguments, Vec::new()) };
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
            Now::Option(new) => format!("use {new}"),
        };
        warnings.push(format!("warning: {old} of palisade {command} is deprecated: {advice}"));
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
    (out, warnings)
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
            ("replay -f p log", "replay --profile p log", 1),
            ("report -f a -f b -o json", "report a b -o json", 2),
            ("suggest -f - --profile p", "suggest - --profile p", 1),
            ("eval a --policies b -n c", "eval a --policies b -n c", 0),
            ("lint -- -f", "lint -- -f", 0),
            ("eval -- -f", "eval -- -f", 0),
        ] {
            let split = |text: &str| -> Vec<OsString> {
                std::iter::once("palisade").chain(text.split(' ')).map(OsString::from).collect()
            };
            let (found, warnings) = current(split(former));
            assert_eq!(found, split(present), "{former}");
            assert_eq!(warnings.len(), count, "{former}: {warnings:?}");
        }
    }
}

//! Semantic versions (`pkg/cel/library/semverlib.go`, with `github.com/blang/semver` v4).

use std::{cmp::Ordering, fmt};

use super::{double::parse_unsigned, quote::quote};

/// A version. Build metadata does not count when versions are compared.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<Pre>,
    build: Vec<String>,
}

/// A part of what is behind the `-`. Numbers come before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pre {
    Number(u64),
    Text(String),
}

fn digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    if !digits(text) {
        return Err(format!("Invalid character(s) found in {} number {}", name.to_lowercase(), quote(text)));
    }
    if leading_zero(text) {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    parse_unsigned(text)
}

impl Pre {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if digits(text) {
            if leading_zero(text) {
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
            }
            return parse_unsigned(text).map(Self::Number);
        }
        if alphanumeric(text) {
            return Ok(Self::Text(text.to_owned()));
        }
        Err(format!("Invalid character(s) found in prerelease {}", quote(text)))
    }
}

fn build(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if !alphanumeric(text) {
        return Err(format!("Invalid character(s) found in build meta data {}", quote(text)));
    }
    Ok(text.to_owned())
}

impl Version {
    /// `semver(string)`; `isSemver(string)` is whether that succeeds.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, patch] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let (patch, metadata) = patch.split_once('+').map_or((patch, None), |(patch, rest)| (patch, Some(rest)));
        let (patch, pre) = patch.split_once('-').map_or((patch, None), |(patch, rest)| (patch, Some(rest)));
        let patch = number(patch, "Patch")?;
        let pre = pre.map_or(Ok(Vec::new()), |pre| pre.split('.').map(Pre::parse).collect())?;
        let build = metadata.map_or(Ok(Vec::new()), |metadata| metadata.split('.').map(build).collect())?;
        Ok(Self { major, minor, patch, pre, build })
    }

    /// `semver(string, true)`: also with a `v` before it, without minor and patch numbers, and with leading zeros.
    pub(crate) fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in parts.iter_mut().filter(|part| part.len() > 1) {
            let significant = part.trim_start_matches('0');
            let zero = if significant.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
            *part = format!("{zero}{significant}");
        }
        if parts.len() < 3 && parts.last().is_some_and(|part| part.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
        Self::parse(&parts.join("."))
    }

    /// `semver.major()`. Numbers above those of CEL wrap around, as in Go.
    pub(crate) fn major(&self) -> i64 {
        self.major.cast_signed()
    }

    /// `semver.minor()`.
    pub(crate) fn minor(&self) -> i64 {
        self.minor.cast_signed()
    }

    /// `semver.patch()`.
    pub(crate) fn patch(&self) -> i64 {
        self.patch.cast_signed()
    }

    /// `semver.compareTo(semver)`.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        // A version comes after its prereleases.
        let released = |version: &Self| version.pre.is_empty();
        (numbers(self).cmp(&numbers(other)))
            .then(released(self).cmp(&released(other)))
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, pre) in self.pre.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match pre {
                Pre::Number(number) => write!(f, "{number}")?,
                Pre::Text(text) => f.write_str(text)?,
            }
        }
        for (index, build) in self.build.iter().enumerate() {
            write!(f, "{}{build}", if index == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::truth::{check, string, texts};

    #[test]
    fn results_match_the_api_server() {
        check(include_str!("testdata/semver.jsonl"), |call, args| {
            let version = |index: usize| Version::parse(string(&args[index]));
            let normalized = || Version::parse_normalized(string(&args[0]));
            let compare = || Ok::<_, String>(version(0)?.compare(&version(1)?));
            Ok(match call {
                "semver(x0)" | "semver(x0, false)" => json!(version(0)?.to_string()),
                "isSemver(x0)" => json!(version(0).is_ok()),
                "semver(x0, true)" => json!(normalized()?.to_string()),
                "isSemver(x0, true)" => json!(normalized().is_ok()),
                "semver(x0).major()" => json!(version(0)?.major()),
                "semver(x0).minor()" => json!(version(0)?.minor()),
                "semver(x0).patch()" => json!(version(0)?.patch()),
                "semver(x0).compareTo(semver(x1))" => json!(compare()? as i8),
                "semver(x0).isLessThan(semver(x1))" => json!(compare()?.is_lt()),
                "semver(x0).isGreaterThan(semver(x1))" => json!(compare()?.is_gt()),
                "semver(x0) == semver(x1)" => json!(version(0)? == version(1)?),
                call => panic!("{call}"),
            })
        });
    }

    #[test]
    fn any_text_parses_as_a_version_or_is_rejected() {
        for text in texts(&["1", "0", "v", ".", "-", "+", "a", "é", "99999999999999999999"], 10_000) {
            let _ = (Version::parse(&text), Version::parse_normalized(&text));
        }
    }
}

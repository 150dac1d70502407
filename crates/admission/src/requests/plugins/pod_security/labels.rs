//! The demands of a namespace's labels (`k8s.io/pod-security-admission/api/helpers.go`).

use std::fmt;

use palisade_cel::Minor;
use serde_json::Value as Json;

use crate::{requests::standards::Level, validation::FieldError};

/// How all labels of the standards begin.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

/// A level of the standards in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standard {
    pub level: Level,
    /// The minor; none is the latest one.
    pub minor: Option<u32>,
}

impl Standard {
    const PRIVILEGED: Self = Self { level: Level::Privileged, minor: None };

    /// Its number on a server of a minor, which takes later versions for its own.
    pub fn version(self, server: Minor) -> u8 {
        let asked = self.minor.and_then(|asked| u8::try_from(asked).ok());
        asked.map_or(server.number(), |asked| asked.min(server.number()))
    }
}

/// As messages name it: `restricted:latest`.
impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = LEVELS.iter().find(|(level, _)| *level == self.level).map_or("", |(_, name)| name);
        match self.minor {
            None => write!(f, "{level}:latest"),
            Some(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

const LEVELS: [(Level, &str); 3] =
    [(Level::Privileged, "privileged"), (Level::Baseline, "baseline"), (Level::Restricted, "restricted")];

/// The standards that a namespace demands of its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub enforce: Standard,
    pub audit: Standard,
    pub warn: Standard,
}

impl Wanted {
    /// The demands of an object's labels, and the errors in them (`PolicyToEvaluate`, with the defaults of a server
    /// without a configuration of its own).
    pub fn of(object: &Json) -> (Self, Vec<FieldError>) {
        let labels = &object["metadata"]["labels"];
        let text = |mode: &str| labels[format!("{PREFIX}{mode}")].as_str();
        let mut mistakes = Vec::new();
        let mut level = |mode: &str, on_error: Level| {
            let text = text(mode)?;
            let found = LEVELS.iter().find(|(_, name)| *name == text).map(|(level, _)| *level);
            if found.is_none() {
                mistakes.push(invalid(mode, text, "must be one of privileged, baseline, restricted"));
            }
            Some((found.unwrap_or(on_error), found.is_some()))
        };
        let (enforce, audit, warn) =
            (level("enforce", Level::Restricted), level("audit", Level::Privileged), level("warn", Level::Privileged));
        let mut minor = |mode: &str| {
            let text = text(mode)?;
            let found = version(text);
            if found.is_err() {
                mistakes.push(invalid(mode, text, "must be \"latest\" or \"v1.x\""));
            }
            Some(found.unwrap_or_default())
        };
        let versions = [minor("enforce-version"), minor("audit-version"), minor("warn-version")];
        let of = |level: Option<(Level, bool)>, minor: Option<Option<u32>>| Standard {
            level: level.map_or(Level::Privileged, |(level, _)| level),
            minor: minor.flatten(),
        };
        let mut wanted =
            Self { enforce: of(enforce, versions[0]), audit: of(audit, versions[1]), warn: of(warn, versions[2]) };
        // Who enforces a level wants to be warned of it, too.
        let valid = enforce.is_some_and(|(_, valid)| valid);
        if warn.is_none() && valid && wanted.enforce.level > wanted.warn.level {
            wanted.warn.level = wanted.enforce.level;
            if versions[2].is_none() {
                wanted.warn.minor = wanted.enforce.minor;
            }
        }
        mistakes.sort_by_key(|mistake| order(&mistake.field));
        (wanted, mistakes)
    }

    /// Whether it demands nothing of pods.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|one| one.level == Level::Privileged)
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self { enforce: Standard::PRIVILEGED, audit: Standard::PRIVILEGED, warn: Standard::PRIVILEGED }
    }
}

/// The errors are told in this order.
fn order(field: &str) -> usize {
    let modes = ["enforce]", "enforce-version]", "audit]", "audit-version]", "warn]", "warn-version]"];
    modes.iter().position(|mode| field.ends_with(&format!("{PREFIX}{mode}"))).unwrap_or(modes.len())
}

fn invalid(mode: &str, value: &str, why: &str) -> FieldError {
    FieldError::invalid(format!("metadata.labels[{PREFIX}{mode}]"), value, why)
}

/// A minor; none for `latest`. It is an error to be neither (`^v1\.([0-9]|[1-9][0-9]*)$`).
fn version(text: &str) -> Result<Option<u32>, ()> {
    if text == "latest" {
        return Ok(None);
    }
    let digits = text.strip_prefix("v1.").ok_or(())?;
    let minor: u32 = digits.parse().map_err(drop)?;
    if digits == minor.to_string() { Ok(Some(minor)) } else { Err(()) }
}

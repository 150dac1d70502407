//! Checks that are not made in named namespaces until a date.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use palisade_api::{Diagnostic, Exception, ExceptionCounts, ToolSecurityProfile, ToolSecurityProfileSpec, catalogue};

/// The exceptions of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exceptions(Vec<Exception>);

impl Exceptions {
    /// The exceptions, and the mistakes in them.
    pub(crate) fn new(spec: &ToolSecurityProfileSpec) -> (Self, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        for (index, exception) in spec.exceptions.iter().enumerate() {
            for (position, id) in exception.checks.iter().enumerate() {
                let own = spec.custom_checks.iter().map(|check| check.id.as_str());
                let ids: Vec<_> = catalogue::ALL.iter().map(|check| check.id).chain(own).collect();
                if !ids.contains(&id.as_str()) {
                    diagnostics.push(
                        Diagnostic::new(
                            format!("spec.exceptions[{index}].checks[{position}]"),
                            format!("{id:?} is not a check"),
                        )
                        .help(format!("the checks are {}", ids.join(", "))),
                    );
                }
            }
        }
        (Self(spec.exceptions.clone()), diagnostics)
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The checks that a namespace is excepted from, each with the time at which the exception ends.
    pub fn of(&self, namespace: &str, now: Timestamp) -> BTreeMap<String, String> {
        let mut ends = BTreeMap::<&str, Timestamp>::new();
        for exception in self.active(now).filter(|exception| exception.namespaces.iter().any(|one| one == namespace)) {
            for check in &exception.checks {
                let end = ends.entry(check).or_insert(exception.expires.0);
                *end = exception.expires.0.max(*end);
            }
        }
        ends.into_iter().map(|(check, end)| (check.to_owned(), end.to_string())).collect()
    }

    /// All of them, as if one namespace had them all: an upper bound for every namespace.
    pub fn everywhere(&self) -> BTreeMap<String, String> {
        let all =
            self.0.iter().flat_map(|one| one.checks.iter().map(|check| (check.clone(), one.expires.0.to_string())));
        all.collect()
    }

    /// When the next exception ends.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.active(now).map(|exception| exception.expires.0).min()
    }

    /// How many there are; `None` if there are none.
    pub fn counts(&self, now: Timestamp) -> Option<ExceptionCounts> {
        let active = self.active(now).count();
        let counted = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let counts = ExceptionCounts { active: counted(active), expired: counted(self.0.len() - active) };
        (!self.is_empty()).then_some(counts)
    }

    fn active(&self, now: Timestamp) -> impl Iterator<Item = &Exception> {
        self.0.iter().filter(move |exception| exception.expires.0 > now)
    }
}

/// The ids of the checks that some exception lifts.
pub(crate) fn excepted_checks(profile: &ToolSecurityProfile) -> Vec<&str> {
    profile.spec.exceptions.iter().flat_map(|exception| &exception.checks).map(String::as_str).collect()
}

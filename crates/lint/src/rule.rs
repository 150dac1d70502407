//! The definition of a rule.

use palisade_manifest::Severity;

/// A rule, as data. The function that finds violations is in the same file of the catalogue, or in an
/// [`Extension`](crate::Extension).
pub struct Rule {
    /// The id that findings, flags and annotations use.
    pub id: &'static str,
    /// The severity of its findings, unless a flag overrides it.
    pub severity: Severity,
    /// Its category.
    pub category: Category,
    /// Whether its findings come before those of an [`Extension`](crate::Extension) at the same position. True for
    /// rules about objects of every kind.
    pub precedes_extension: bool,
    /// The title, one line.
    pub title: &'static str,
    /// Why it matters, and what to do, in Markdown.
    pub why: &'static str,
    /// Objects that violate this rule and no other.
    pub bad: &'static str,
    /// The same objects, corrected.
    pub good: &'static str,
}

/// The category of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// The API server rejects it.
    Rejected,
    /// The API server accepts it and warns.
    Warned,
    /// The API server accepts it without a warning, and it is dangerous.
    Dangerous,
    /// The API server accepts it without a warning, and it has no effect.
    Useless,
    /// The result is not known offline.
    Unknown,
}

impl Category {
    /// A short name that does not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Warned => "warned",
            Self::Dangerous => "dangerous",
            Self::Useless => "useless",
            Self::Unknown => "unknown",
        }
    }
}

impl Rule {
    /// A rule of an [`Extension`](crate::Extension), which reports its findings itself.
    pub const fn plugged(
        id: &'static str,
        severity: Severity,
        category: Category,
        title: &'static str,
        why: &'static str,
        bad: &'static str,
        good: &'static str,
    ) -> Self {
        Self { id, severity, category, precedes_extension: false, title, why, bad, good }
    }

    /// The address of the rule's page.
    pub fn help_uri(&self) -> String {
        format!("https://github.com/palisade-dev/palisade/blob/main/docs/lint/{}.md", self.id)
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

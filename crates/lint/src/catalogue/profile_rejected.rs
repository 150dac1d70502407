//! A profile that is not accepted.

use palisade_cel::Position;
use palisade_manifest::Severity;

use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "profile-rejected",
    severity: Severity::Error,
    category: Category::Rejected,
    title: "A profile that is not accepted",
    why: "\
The controller does not accept this ToolSecurityProfile; what was enforced before stays in force.",
    bad: include_str!("profile_rejected.bad.yaml"),
    good: include_str!("profile_rejected.good.yaml"),
    check: |cluster, found| {
        for (item, diagnostic) in &cluster.profiles {
            let message = format!("{}: {}", diagnostic.path, diagnostic.message);
            let help = diagnostic.help.as_deref();
            found.add_at(item, &diagnostic.path, Position::NONE, message, help);
        }
    },
};

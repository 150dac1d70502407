//! Where an error is in what a profile compiles to: its path begins with the part of the profile, and that of the
//! policy for pods with nothing else.

use palisade_api::{
    Diagnostic,
    names::{Part, Shape},
};

/// How the path of an error in a part begins.
const PREFIXES: [(&str, Part); 7] = [
    ("workloads.checks.", Part::Checks(Shape::Workloads)),
    ("workloads.", Part::Judge(Shape::Workloads)),
    ("objects.checks.", Part::Checks(Shape::Objects)),
    ("objects.", Part::Judge(Shape::Objects)),
    ("checks.", Part::Checks(Shape::Pods)),
    ("guard.", Part::Guard),
    ("", Part::Judge(Shape::Pods)),
];

/// How the path of an error in a part begins.
pub(crate) fn prefix(part: Part) -> &'static str {
    PREFIXES.into_iter().find(|(_, of)| *of == part).map(|(prefix, _)| prefix).unwrap_or_default()
}

/// The part in whose policy an error is, and its place in the pair of that part (`policy.spec.variables[3]`); `None` if
/// it is not in a policy that evaluates or guards.
pub fn part_of(path: &str) -> Option<(Part, &str)> {
    PREFIXES.into_iter().find_map(|(prefix, part)| {
        let rest = path.strip_prefix(prefix)?;
        rest.starts_with("policy").then_some((part, rest))
    })
}

/// The errors that were found in a part, each at its place.
pub(crate) fn located(part: Part, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.path.starts_with("policy")) {
        diagnostic.path.insert_str(0, prefix(part));
    }
    diagnostics
}

//! The objects that a profile compiles to, as the origins of errors.

use palisade_api::{
    Diagnostic, Location, Origin,
    names::{Part, Shape},
};

/// The policy of a part.
pub(crate) const fn policy(part: Part) -> Origin {
    Origin::Generated(match part {
        Part::Judge(Shape::Pods) => "policy",
        Part::Judge(Shape::Workloads) => "workloads.policy",
        Part::Checks(Shape::Pods) => "checks.policy",
        Part::Checks(Shape::Workloads) => "workloads.checks.policy",
        Part::Judge(Shape::Objects) => "objects.policy",
        Part::Checks(Shape::Objects) => "objects.checks.policy",
        Part::Guard => "guard.policy",
    })
}

/// The binding of a part.
pub(crate) const fn binding(part: Part) -> Origin {
    Origin::Generated(match part {
        Part::Judge(Shape::Pods) => "binding",
        Part::Judge(Shape::Workloads) => "workloads.binding",
        Part::Checks(Shape::Pods) => "checks.binding",
        Part::Checks(Shape::Workloads) => "workloads.checks.binding",
        Part::Judge(Shape::Objects) => "objects.binding",
        Part::Checks(Shape::Objects) => "objects.checks.binding",
        Part::Guard => "guard.binding",
    })
}

/// A policy whose part is not known: it counts as the one for pods until [`located`] says otherwise.
pub(crate) const POLICY: Origin = policy(Part::Judge(Shape::Pods));
/// The policy that mutates pods.
pub(crate) const MUTATING_POLICY: Origin = Origin::Generated("mutation.policy");
/// The binding of that policy.
pub(crate) const MUTATING_BINDING: Origin = Origin::Generated("mutation.binding");
/// The registration of the webhook that mutates pods.
pub(crate) const WEBHOOK: Origin = Origin::Generated("mutation.webhook");
/// The parameters of a namespace.
pub(crate) const PARAMS: Origin = Origin::Generated("params");

/// A field below the spec of a policy whose part is not known.
pub(crate) fn in_spec(path: &str) -> Location {
    POLICY.at(format!("spec.{path}"))
}

/// The part in whose policy an error is; `None` if it is not in a policy that evaluates or guards.
pub fn part_of(location: &Location) -> Option<Part> {
    Part::ALL.into_iter().find(|part| policy(*part) == location.origin)
}

/// The errors that were found in a part, each in the policy of that part.
pub(crate) fn located(part: Part, mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.location.origin == POLICY) {
        diagnostic.location.origin = policy(part);
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_in_a_policy_is_in_one_part() {
        for (part, of_policy, of_binding) in [
            (Part::Judge(Shape::Pods), "policy.spec.a", "binding.spec.a"),
            (Part::Judge(Shape::Workloads), "workloads.policy.spec.a", "workloads.binding.spec.a"),
            (Part::Checks(Shape::Pods), "checks.policy.spec.a", "checks.binding.spec.a"),
            (Part::Checks(Shape::Workloads), "workloads.checks.policy.spec.a", "workloads.checks.binding.spec.a"),
            (Part::Judge(Shape::Objects), "objects.policy.spec.a", "objects.binding.spec.a"),
            (Part::Checks(Shape::Objects), "objects.checks.policy.spec.a", "objects.checks.binding.spec.a"),
            (Part::Guard, "guard.policy.spec.a", "guard.binding.spec.a"),
        ] {
            let found = ["spec.a".into(), in_spec("a"), binding(part).at("spec.a")];
            let found = located(part, found.map(|at: Location| Diagnostic::new(at, "is wrong")).into());
            let texts: Vec<_> = found.iter().map(|one| one.location.to_string()).collect();
            assert_eq!(texts, ["spec.a", of_policy, of_binding]);
            let parts: Vec<_> = found.iter().map(|one| part_of(&one.location)).collect();
            assert_eq!(parts, [None, Some(part), None]);
        }
        for origin in [MUTATING_POLICY, MUTATING_BINDING, WEBHOOK, PARAMS] {
            assert_eq!(part_of(&origin.into()), None);
        }
    }
}

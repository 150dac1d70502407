//! The rule `blocks-finalizers`.

use palisade_cel::Minor;
use palisade_manifest::Severity;

use crate::precision::{findings, policy, reported, validations};

const DEPLOYMENTS: (&str, &str, &str, &str) = ("apps", "v1", "CREATE, UPDATE", "deployments");
const UPDATES: (&str, &str, &str, &str) = ("apps", "v1", "UPDATE", "deployments");
const SMALL: &str = "size(object.spec.template.spec.containers) < 5";

/// Violations of two checks, which an update is exempt from if an expression holds.
fn of_checks(unchanged: &str) -> String {
    format!(
        "  variables:\n  - {{name: applies, expression: \"!(request.operation == 'UPDATE' && {unchanged})\"}}\n  \
         - {{name: one, expression: \"!variables.applies ? [] : [{SMALL} ? [] : ['a']].map(l, l.size() > 0 ? l : \
         object.metadata.name == 'b' ? ['b'] : [])[0]\"}}\n  - {{name: other, expression: \"!variables.applies ? [] : \
         (object.kind == 'a' ? ['c'] : []) + ({SMALL} ? [] : ['d'])\"}}\n  - {{name: all, expression: \"request.namespace \
         == 'exempt' ? [] : variables.one + variables.other\"}}\n{}",
        validations(&["variables.all.size() == 0"])
    )
}

/// A check of all fields, and the exemption of updates that change only finalizers, of at most so many elements.
fn of_all(most: u8, kept: &str) -> String {
    let old = "dyn(oldObject).metadata.?finalizers.orValue([])";
    let kept = kept.replace("old", old);
    format!(
        "  variables:\n  - {{name: applies, expression: \"!(request.operation == 'UPDATE' && dyn(object).size() == \
         dyn(oldObject).size() && dyn(object).size() <= {most} && dyn(object).all(f, f == 'metadata' || \
         dyn(oldObject)[?f] == optional.of(dyn(object)[f])) && dyn(object).metadata.?labels == \
         dyn(oldObject).metadata.?labels && (dyn(object).metadata.?finalizers.orValue([]) == {old} || \
         (dyn(object).metadata.?finalizers.orValue([]).size() <= {most} && \
         dyn(object).metadata.?finalizers.orValue([]).all(f, {kept}))))\"}}\n  - {{name: all, expression: \
         \"!variables.applies || request.userInfo.username == 'admin' ? [] : ['a']\"}}\n{}",
        validations(&["variables.all.size() == 0"])
    )
}

/// Whether the removal of a finalizer can be denied, of what the policy admitted (a warning) or of what was there before
/// it (a note).
#[test]
fn blocked_finalizers_are_reported_only_where_removal_is_denied() {
    let (deployments, updates) = (DEPLOYMENTS, UPDATES);
    let (small, warning, note, none) = (SMALL, Some(Severity::Warning), Some(Severity::Info), None);
    let plain = |rule: (&'static str, &'static str, &'static str, &'static str), expression: &str, expected| {
        (vec![rule], validations(&[expression]), expected)
    };
    let conditional = |condition: &str, expression: &str, expected| {
        let conditions = format!("  matchConditions:\n  - {{name: a, expression: \"{condition}\"}}\n");
        (vec![deployments], conditions + &validations(&[expression]), expected)
    };
    let cases = [
        plain(deployments, small, note),
        plain(("apps", "v1", "CREATE", "deployments"), small, none),
        plain(updates, small, warning),
        (vec![("apps", "v1", "CREATE", "deployments"), updates], validations(&[small]), note),
        (vec![("apps", "v1", "CREATE", "daemonsets"), updates], validations(&[small]), warning),
        // What a subresource changes has no finalizers.
        plain(("apps", "v1", "'*'", "deployments/scale"), "object.spec.replicas < 5", none),
        plain(("''", "v1", "UPDATE", "pods/ephemeralcontainers"), "size(object.spec.containers) < 5", none),
        // Claims have a finalizer each.
        plain(("''", "v1", "CREATE, UPDATE", "persistentvolumeclaims"), "has(object.spec.storageClassName)", warning),
        // Guards, in whatever form.
        plain(deployments, &format!("has(object.metadata.deletionTimestamp) || {small}"), none),
        plain(deployments, &format!("object.metadata.?deletionTimestamp.hasValue() || {small}"), none),
        plain(deployments, &format!("'deletionTimestamp' in object.metadata || {small}"), none),
        plain(
            deployments,
            &format!("(request.operation == 'UPDATE' && object.spec == oldObject.spec) || {small}"),
            none,
        ),
        plain(deployments, &format!("request.operation != 'CREATE' || {small}"), none),
        plain(
            deployments,
            &format!("oldObject != null && object.spec.template == oldObject.spec.template ? true : {small}"),
            none,
        ),
        conditional("!has(object.metadata.deletionTimestamp)", small, none),
        conditional("request.operation == 'CREATE' || object.spec != oldObject.spec", small, none),
        conditional("oldObject == null || object.spec.template != oldObject.spec.template", small, none),
        plain(deployments, &format!("(has(request.operation) && request.operation == 'UPDATE') || {small}"), none),
        // What cannot be compared without an object may be the same.
        conditional("[object, oldObject].exists(o, o != null && o.metadata.name != 'a')", small, note),
        conditional("!('system:nodes' in request.userInfo.groups)", small, note),
        conditional("!('system:masters' in request.userInfo.groups)", small, warning),
        // Both objects, in loops.
        conditional("![[object.spec, oldObject.spec]].all(p, p[0] == p[1])", small, none),
        plain(
            deployments,
            &format!("oldObject != null && [[object.spec, oldObject.spec]].all(p, p[0] == p[1]) || {small}"),
            none,
        ),
        plain(updates, "object.metadata.?labels.orValue({}).all(k, k in oldObject.metadata.?labels.orValue({}))", none),
        plain(
            updates,
            "object.metadata.labels.all(k, oldObject.metadata.labels[k] == object.metadata.labels[k])",
            none,
        ),
        // The name that an inner loop binds is another one.
        plain(
            updates,
            "object.metadata.labels.all(k, ['a'].all(j, object.spec.x.all(k, k in oldObject.metadata.labels)))",
            warning,
        ),
        plain(updates, "[object.spec.a, object.spec.b].exists(k, k == oldObject.spec.b)", none),
        plain(updates, "[object.spec.a, object.spec.b].all(k, k == oldObject.spec.b)", warning),
        // What looks like a guard and is none: metadata changes with the finalizers.
        plain(deployments, &format!("has(object.metadata.deletionTimestamp) && {small}"), note),
        plain(deployments, &format!("object == oldObject || {small}"), note),
        plain(deployments, &format!("object.metadata.finalizers == oldObject.metadata.finalizers || {small}"), warning),
        plain(deployments, "request.operation == 'CREATE' || object.metadata == oldObject.metadata", warning),
        plain(
            deployments,
            "request.operation == 'CREATE' || object.metadata.labels == oldObject.metadata.labels",
            none,
        ),
        conditional("oldObject != null", small, warning),
        // By the form of our own policies.
        plain(
            deployments,
            &format!(
                "(request.operation == 'UPDATE' && dyn(object).spec == dyn(oldObject).spec ? [] : {small} ? [] : ['a']).size() == 0"
            ),
            none,
        ),
        // Mentioned, and no guard.
        plain(deployments, &format!("{small} && (oldObject == null || object.kind == oldObject.kind)"), note),
        // It depends on what is not the same when the finalizer is removed.
        plain(deployments, &format!("request.userInfo.username == 'admin' || {small}"), warning),
        plain(deployments, "authorizer.group('apps').resource('deployments').check('own').allowed()", warning),
        plain(deployments, &format!("object.status.?replicas.orValue(0) < 5 && {small}"), warning),
        // Every request says who asks.
        plain(deployments, "has(request.userInfo.username)", none),
        // Violations of several checks, each with a variable that says whether the request is evaluated.
        (vec![deployments], of_checks("dyn(object).?spec == dyn(oldObject).?spec"), none),
        (vec![deployments], of_checks("dyn(object).metadata.?labels == dyn(oldObject).metadata.?labels"), none),
        (vec![deployments], of_checks("object.metadata == oldObject.metadata"), note),
        (vec![deployments], of_checks("request.userInfo.username == 'admin'"), warning),
        // An update that changes nothing but finalizers, whatever the verdict depends on.
        (vec![deployments], of_all(64, "f in old"), none),
        (vec![deployments], of_all(16, "f in old"), warning),
        (vec![deployments], of_all(64, "f != ''"), warning),
        // Through a variable.
        (
            vec![deployments],
            format!(
                "  variables:\n  - {{name: same, expression: \"oldObject != null && object.spec == oldObject.spec\"}}\n{}",
                validations(&[&format!("variables.same || {small}")])
            ),
            none,
        ),
    ];
    for (rules, rest, expected) in cases {
        let found = findings(&policy(&rules, &rest), "blocks-finalizers", Minor::V1_36);
        assert_eq!(found.iter().map(|one| one.severity).max(), expected, "{rules:?} {rest}: {:#?}", reported(&found));
    }
}

//! # accessBindings
//!
//! A tenant that may create RoleBindings decides who has access to its namespace. RBAC lets it grant only permissions that
//! it has itself, but to any subject: to a service account of another tenant, to all authenticated users, or to
//! unauthenticated ones. With the verb `bind`, it can also grant roles with more permissions than it has.
//!
//! Service accounts in the namespace of the RoleBinding are always allowed as subjects.
//!
//! ## If your object was denied
//!
//! Set `roleRef` to a role, and `subjects` to users, groups and service accounts, that the message lists.

use super::kinds::ROLE_BINDING;
use crate::{Meaning, ObjectCheck, ObjectResource, ObjectRule, settings::any, texts::Wildcard};

const BINDINGS: &[ObjectResource] = &[ROLE_BINDING];
/// The most subjects that are evaluated.
const MOST: usize = 256;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "accessBindings",
    title: "Roles and subjects of RoleBindings",
    settings: &["access.allowedRoleRefs", "access.allowedSubjects"],
    kinds: BINDINGS,
    fields: &["roleRef", "subjects"],
    exempt: None,
    fixtures: include_str!("access_bindings.yaml"),
    compile: |settings, cx| {
        let access = &settings.access;
        let mut rule = ObjectRule::default();
        if let Some(roles) = access.allowed_role_refs.as_ref().filter(|roles| !any(roles)) {
            let allowed = cx.patterns("spec.access.allowedRoleRefs", roles, Meaning::Pattern, Wildcard::End);
            let found = "[string(variables.object.?roleRef.?kind.orValue('')) + '/' \
                         + string(variables.object.?roleRef.?name.orValue(''))]";
            let bad = format!("{found}.filter(r, !({}))", allowed.matches("r"));
            rule.forbid(BINDINGS, ("roleRef", "roles"), &bad, &allowed.says());
        }
        if let Some(subjects) = access.allowed_subjects.as_ref().filter(|subjects| !any(subjects)) {
            let allowed = cx.patterns("spec.access.allowedSubjects", subjects, Meaning::Pattern, Wildcard::End);
            let found = "variables.object.?subjects.orValue([])";
            rule.limit(BINDINGS, "subjects", found, MOST);
            let is_own = "s.kind == 'ServiceAccount' && s.?namespace.orValue('') == request.namespace";
            let named = "string(s.kind) + '/' + (s.kind == 'ServiceAccount' ? string(s.?namespace.orValue('')) + '/' : '') \
                         + string(s.name)";
            let bad = format!("{found}.filter(s, !({is_own})).map(s, {named}).filter(s, !({}))", allowed.matches("s"));
            rule.forbid(BINDINGS, ("subjects", "subjects"), &bad, &allowed.says());
        }
        rule.unless_empty()
    },
};

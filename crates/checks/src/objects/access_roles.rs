//! # accessRoles
//!
//! RBAC lets a tenant write Roles with permissions that it has itself. A tenant with the verb `escalate` can write a Role
//! with any permission in its namespace, and with `bind` it can bind any role. A verb of impersonation lets it act as
//! another service account. A wildcard also includes resources and verbs that are added to the cluster later.
//!
//! `allowedRoleVerbs` lists verbs that Roles may have, and denies all others, also those that future versions of
//! Kubernetes and extensions define, such as `impersonate:serviceaccount`. Verbs are compared as they are: RBAC
//! distinguishes upper and lower case.
//!
//! `allowRoleWildcards: false` denies every `*` in verbs, apiGroups and resources: `*`, `*/scale`, and also `pods/*`, which
//! RBAC compares as it is. In `resourceNames`, `*` is a name.
//!
//! The check does not evaluate ClusterRoles, which are not in a namespace. Restrict the roles that tenants may bind by the
//! check `accessBindings`.
//!
//! ## If your object was denied
//!
//! Set `verbs` to verbs that the message lists, and name the API groups and resources instead of using wildcards.

use super::kinds::ROLE;
use crate::{Meaning, ObjectCheck, ObjectResource, ObjectRule, settings::any};

const ROLES: &[ObjectResource] = &[ROLE];
/// The API server writes unset rules as null.
const RULES: &str = "dyn(variables.object.?rules.orValue(null) == null ? [] : variables.object.rules)";
/// The lists of a rule `r` in which RBAC knows wildcards (`VerbMatches`, `APIGroupMatches` and `ResourceMatches` in
/// Kubernetes `pkg/apis/rbac/v1/evaluation_helpers.go`).
const LISTS: &str = "(r.?verbs.orValue([]) + r.?apiGroups.orValue([]) + r.?resources.orValue([]))";
/// The most rules that are evaluated.
const MOST: usize = 64;
/// The most elements that are evaluated in each list of a rule.
const MOST_OF_RULE: [(&str, usize); 3] = [("verbs", 32), ("apiGroups", 64), ("resources", 64)];

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "accessRoles",
    title: "Verbs and wildcards of Roles",
    settings: &["access.allowRoleWildcards", "access.allowedRoleVerbs"],
    kinds: ROLES,
    fields: &["rules[*].verbs", "rules[*].apiGroups", "rules[*].resources"],
    exempt: None,
    fixtures: include_str!("access_roles.yaml"),
    compile: |settings, cx| {
        let access = &settings.access;
        let mut rule = ObjectRule::default();
        let found = |list: &str, bad: &str| {
            format!(
                "{RULES}.map(r, {list}.map(x, string(x)).filter(x, {bad}).join(', ')).filter(t, t != '').join(', ')"
            )
        };
        let has = |list: &str, bad: &str| format!("{RULES}.exists(r, {list}.exists(x, {bad}))");
        let wildcards = access.allow_role_wildcards.as_ref().and_then(|allowed| {
            cx.unless("spec.access.allowRoleWildcards", allowed, &has(LISTS, "string(x).contains('*')"))
        });
        if let Some(violated) = wildcards {
            rule.finding(
                ROLES,
                violated,
                format!("'rules: forbidden wildcards: ' + {}", found(LISTS, "x.contains('*')")),
            );
        }
        if let Some(verbs) = access.allowed_role_verbs.as_ref().filter(|verbs| !any(verbs)) {
            let allowed = cx.texts("spec.access.allowedRoleVerbs", verbs, Meaning::Word);
            let list = "r.?verbs.orValue([])";
            rule.finding(
                ROLES,
                has(list, &format!("!(string(x) in {})", allowed.cel())),
                format!(
                    "'rules: forbidden verbs: ' + {} + ', allowed: ' + {}",
                    found(list, &format!("!(x in {})", allowed.cel())),
                    allowed.says()
                ),
            );
        }
        if !rule.findings.is_empty() {
            rule.limit(ROLES, "rules", RULES, MOST);
            for (field, most) in MOST_OF_RULE {
                rule.limit_if(ROLES, &format!("rules[*].{field}"), most, |most| {
                    format!("{RULES}.size() <= {MOST} && {RULES}.exists(r, r.?{field}.orValue([]).size() > {most})")
                });
            }
        }
        rule.unless_empty()
    },
};

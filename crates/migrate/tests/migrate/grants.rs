//! Which namespaces a profile selects, by the grants of its policy.
use std::collections::BTreeSet;

use palisade_api::Stage;
use palisade_kube_json::selector;
use palisade_migrate::{Kind, Migrated, Options, psp::PodSecurityPolicy, rbac::Rbac};
use serde_json::json;

use crate::common::policy;

const NAMESPACES: [&str; 5] = ["a", "b", "c", "kube-system", "other"];

/// Grants, one a line: the policy (or * for all), the namespace of a `RoleBinding` or - for a `ClusterRoleBinding`, and
/// to whom.
fn rbac(grants: &str) -> Rbac {
    let mut rbac = Rbac::default();
    for (index, line) in grants.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let mut words = line.split(' ');
        let (policy, namespace, kind, name) =
            (words.next().unwrap(), words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let names = if policy == "*" { json!(null) } else { json!([policy]) };
        let role = json!({
            "metadata": {"name": format!("role-{index}")},
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
                {"apiGroups": ["extensions"], "resources": ["podsecuritypolicies"], "verbs": ["use"], "resourceNames": names},
            ],
        });
        rbac.add_role(true, serde_json::from_value(role).unwrap());
        let subject = match kind.split_once('/') {
            Some((kind, of)) => json!({"kind": kind, "name": name, "namespace": of}),
            None => json!({"kind": kind, "name": name}),
        };
        let binding = json!({
            "metadata": {"name": "binding", "namespace": if namespace == "-" { "" } else { namespace }},
            "roleRef": {"kind": "ClusterRole", "name": format!("role-{index}")},
            "subjects": [subject],
        });
        rbac.add_binding(namespace == "-", serde_json::from_value(binding).unwrap());
    }
    rbac
}

/// `privileged` allows everything, `restricted` less, `users` less in another way.
fn migrated(grants: &str, options: &Options) -> Vec<Migrated> {
    let policies = [
        ("privileged", ""),
        ("restricted", "{privileged: false, hostNetwork: false, volumes: [configMap, secret, projected]}"),
        ("users", "{hostPorts: [], runAsUser: {rule: MustRunAs, ranges: [{min: 1, max: 9}]}}"),
    ];
    let policies = policies.map(|(name, patch)| {
        let mut policy = policy(&json!({}), patch);
        policy["metadata"]["name"] = json!(name);
        serde_json::from_value::<PodSecurityPolicy>(policy).unwrap()
    });
    palisade_migrate::migrate(&policies, &rbac(grants), options).unwrap()
}

/// Asserts which namespaces each of the three policies' profiles select, and the kinds of notes on that.
fn selects(grants: &str, expected: [&[&str]; 3], notes: [&[Kind]; 3]) {
    for (index, migrated) in migrated(grants, &Options::default()).iter().enumerate() {
        let selected: Vec<_> = NAMESPACES
            .into_iter()
            .filter(|name| {
                let labels = [("kubernetes.io/metadata.name".to_owned(), (*name).to_owned())].into();
                selector::matches(&migrated.profile.spec.namespace_selector, &labels)
            })
            .collect();
        let found: BTreeSet<_> =
            migrated.notes.iter().filter(|note| note.path == "metadata.name").map(|note| note.kind).collect();
        let name = migrated.profile.metadata.name.as_deref().unwrap();
        assert_eq!(selected, expected[index], "{name} of {grants}\n{:#?}", migrated.notes);
        assert_eq!(found, notes[index].iter().copied().collect(), "{name} of {grants}\n{:#?}", migrated.notes);
    }
}

use Kind::{Looser, Note, Selection, Stricter};

#[test]
fn profile_without_grants_selects_namespaces_by_label() {
    selects("", [&[], &[], &[]], [&[Selection]; 3]);
    let migrated = migrated("", &Options::default());
    let labels = migrated[1].profile.spec.namespace_selector.match_labels.clone().unwrap();
    assert_eq!(labels, [("toolsecurity.dev/psp".to_owned(), "restricted".to_owned())].into());
}

#[test]
fn grants_to_all_pods_of_a_namespace_select_it() {
    for grant in [
        "restricted a Group system:serviceaccounts:a",
        "restricted - Group system:serviceaccounts:a",
        "restricted a Group system:authenticated",
        "restricted a Group system:serviceaccounts",
    ] {
        selects(grant, [&[], &["a"], &[]], [&[Selection], &[], &[Selection]]);
    }
    for grant in ["restricted - Group system:authenticated", "restricted - Group system:serviceaccounts"] {
        selects(grant, [&[], &NAMESPACES, &[]], [&[Selection], &[], &[Selection]]);
    }
}

#[test]
fn grants_to_only_some_accounts_are_noted() {
    for grant in [
        "users a ServiceAccount/a default",
        "users - ServiceAccount/a default",
        "users - User system:serviceaccount:a:default",
        "users a User alice",
        "users a Group system:serviceaccounts:b",
    ] {
        selects(grant, [&[], &[], &["a"]], [&[Selection], &[Selection], &[Looser]]);
    }
    // What somebody creates anywhere is in no namespace.
    selects("users - User alice", [&[], &[], &[]], [&[Selection]; 3]);
    let notes = |grant| migrated(grant, &Options::default()).remove(2).notes.into_iter().map(|note| note.message);
    assert!(notes("users - User alice").any(|message| message.contains("is granted to User alice")));
    // Administrators may do all.
    assert!(notes("users - Group system:masters").any(|message| message.contains("no binding")));
}

#[test]
fn most_permissive_granted_policy_stands_for_the_others() {
    selects(
        "restricted - Group system:authenticated\n privileged a Group system:serviceaccounts:a",
        [&["a"], &["b", "c", "kube-system", "other"], &[]],
        [&[], &[Note], &[Selection]],
    );
    // A rule without names grants all policies.
    selects("* - Group system:authenticated", [&NAMESPACES, &[], &[]], [&[], &[Note, Selection], &[Note, Selection]]);
}

#[test]
fn incomparable_policies_all_apply_and_are_noted_as_stricter() {
    selects(
        "restricted b Group system:serviceaccounts:b\n users b Group system:serviceaccounts:b",
        [&[], &["b"], &["b"]],
        [&[Selection], &[Stricter], &[Stricter]],
    );
}

#[test]
fn grant_to_a_single_account_widens_nothing_for_others() {
    selects(
        "restricted - Group system:authenticated\n privileged a ServiceAccount/a node-exporter",
        [&[], &NAMESPACES, &[]],
        [&[Stricter, Selection], &[], &[Selection]],
    );
    selects(
        "privileged - Group system:authenticated\n restricted a ServiceAccount/a web",
        [&NAMESPACES, &[], &[]],
        [&[], &[Note, Selection], &[Selection]],
    );
}

#[test]
fn grant_in_a_protected_namespace_selects_nothing() {
    selects("privileged kube-system Group system:serviceaccounts:kube-system", [&[], &[], &[]], [&[Selection]; 3]);
}

#[test]
fn unresolved_roles_are_reported() {
    let mut rbac = rbac("");
    let binding = json!({"metadata": {"namespace": "a"}, "roleRef": {"kind": "Role", "name": "psp"}, "subjects": []});
    rbac.add_binding(false, serde_json::from_value(binding).unwrap());
    assert_eq!(rbac.unresolved(), ["Role psp"]);
    let role = json!({"metadata": {"name": "psp", "namespace": "b"}, "rules": null});
    rbac.add_role(false, serde_json::from_value(role).unwrap());
    assert_eq!(rbac.unresolved(), ["Role psp"]);
    let role = json!({"metadata": {"name": "psp", "namespace": "a"}});
    rbac.add_role(false, serde_json::from_value(role).unwrap());
    assert!(rbac.unresolved().is_empty());
}

/// A controller fills the rules of such a role; a file may be from before that.
#[test]
fn an_aggregated_role_has_the_rules_of_those_that_it_selects() {
    let role = |name: &str, label: &str, selects: &str, grants: bool| {
        let rule = json!({"apiGroups": ["policy"], "resources": ["podsecuritypolicies"], "verbs": ["use"]});
        json!({
            "metadata": {"name": name, "labels": {label: "true"}}, "rules": if grants { json!([rule]) } else { json!(null) },
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {selects: "true"}}]},
        })
    };
    for (selects, grants) in [("of-parts", true), ("nothing", false)] {
        let mut rbac = Rbac::default();
        for one in [
            role("whole", "x", selects, false),
            role("part", "of-parts", "of-others", false),
            // Two that select each other.
            role("other", "of-others", "of-parts", true),
        ] {
            rbac.add_role(true, serde_json::from_value(one).unwrap());
        }
        let binding = json!({
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "whole"},
            "subjects": [{"kind": "Group", "name": "system:serviceaccounts"}],
        });
        rbac.add_binding(true, serde_json::from_value(binding).unwrap());
        assert_eq!(rbac.grants("restricted").everywhere, grants, "{selects}");
    }
}

#[test]
fn namespace_selector_option_applies_to_every_profile() {
    let labels = [("tenancy".to_owned(), "tool".to_owned())].into();
    let options = Options { stage: Stage::Warn, namespace_selector: Some(labels) };
    for one in migrated("restricted - Group system:authenticated", &options) {
        assert_eq!(one.profile.spec.namespace_selector.match_labels, options.namespace_selector);
        assert_eq!(one.profile.spec.enforcement.pods, Stage::Warn);
        let kinds: BTreeSet<_> = one.notes.iter().filter(|note| note.path == "metadata.name").map(|n| n.kind).collect();
        assert_eq!(kinds, [Stricter, Note].into());
    }
}

#[test]
fn long_names_are_shortened_the_same_way_each_time() {
    let name = |name: &str| {
        let mut policy = policy(&json!({}), "");
        policy["metadata"]["name"] = json!(name);
        crate::common::migrate(&policy).profile.metadata.name.unwrap()
    };
    assert_eq!(name(&"a".repeat(50)), "a".repeat(50));
    let long = format!("{}.x", "a".repeat(60));
    let short = name(&long);
    assert_eq!((short.len(), name(&long)), (50, short.clone()));
    assert_ne!(short, name(&format!("{}.y", "a".repeat(60))));
    // What is cut off leaves neither a dot nor a dash.
    assert!(name(&format!("{}.{}", "b".repeat(40), "c".repeat(40))).starts_with(&format!("{}-", "b".repeat(40))));
}

#[test]
fn invalid_or_duplicate_psp_names_are_rejected() {
    for bad in ["", "A", "a_b", "-a", "a..b"] {
        let mut policy = policy(&json!({}), "");
        policy["metadata"]["name"] = json!(bad);
        let typed: PodSecurityPolicy = serde_json::from_value(policy).unwrap();
        let mistakes = palisade_migrate::migrate(&[typed], &Rbac::default(), &Options::default()).unwrap_err();
        assert_eq!(mistakes[0].1.location.to_string(), "metadata.name", "{bad}");
    }
    let typed: PodSecurityPolicy = serde_json::from_value(policy(&json!({}), "")).unwrap();
    let mistakes =
        palisade_migrate::migrate(&[typed.clone(), typed], &Rbac::default(), &Options::default()).unwrap_err();
    assert_eq!((mistakes.len(), mistakes[0].0), (1, 1));
}

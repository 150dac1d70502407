//! Exemptions that exempt tenants from the profile, although they name no tenant.
//!
//! A profile with such an exemption is still accepted: in a cluster without tenants, it may be intended.

use palisade_api::{Diagnostic, Exemptions};

/// How the name of a service account in kube-system begins.
pub(crate) const KUBE_SYSTEM: &str = "system:serviceaccount:kube-system:";
/// The user of all controllers if kube-controller-manager does not give them separate service accounts.
pub(crate) const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The user of requests without credentials.
const ANONYMOUS: &str = "system:anonymous";

/// The exemptions that let tenants run pods that the profile denies, each with its place and the reason.
pub fn exempt_tenants(exemptions: &Exemptions) -> Vec<Diagnostic> {
    let Exemptions { users, groups, runtime_classes: _ } = exemptions;
    let users = users.iter().enumerate().map(|(index, name)| ("users", index, name, by_user(name)));
    let groups = groups.iter().enumerate().map(|(index, name)| ("groups", index, name, by_group(name)));
    users
        .chain(groups)
        .filter_map(|(field, index, name, risk)| {
            let (why, help) = risk?.texts();
            Some(Diagnostic::new(format!("spec.exemptions.{field}[{index}]"), format!("{name} {why}")).help(help))
        })
        .collect()
}

/// The reason why an exemption exempts tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Risk {
    /// It names a controller of Kubernetes.
    Controller,
    /// It names a group of all such controllers.
    Controllers,
    /// It includes all users.
    Everybody,
}

impl Risk {
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Controller => (
                "is a controller, which creates pods on behalf of all users with permission to write its DaemonSets, Jobs or \
                 other workloads: all of them are exempt",
                "exempt a user or service account that creates pods directly, not on behalf of others; move exempt workloads \
                 to a namespace that the profile does not select, or list them in spec.exceptions",
            ),
            Self::Controllers => (
                "includes the controllers of Kubernetes, which create pods on behalf of all users with permission to write a \
                 DaemonSet, Job or other workload: all of them are exempt",
                "exempt a user or service account that creates pods directly, not on behalf of others; move exempt workloads \
                 to a namespace that the profile does not select, or list them in spec.exceptions",
            ),
            Self::Everybody => (
                "includes all users, also tenants: the profile has no effect on their pods",
                "exempt a group without tenants, or delete the profile",
            ),
        }
    }
}

fn by_user(name: &str) -> Option<Risk> {
    // The controllers' accounts have this ending, by convention of Kubernetes.
    let of_kube_system = |name: &str| name.strip_prefix(KUBE_SYSTEM).is_some_and(|name| name.ends_with("-controller"));
    match name {
        ANONYMOUS => Some(Risk::Everybody),
        CONTROLLER_MANAGER => Some(Risk::Controller),
        name => of_kube_system(name).then_some(Risk::Controller),
    }
}

/// Members of `system:masters` and `system:nodes` are not tenants: the former may delete the profile, and the API
/// server lets the latter create only mirror pods, which are exempt anyway.
fn by_group(name: &str) -> Option<Risk> {
    match name {
        "system:serviceaccounts:kube-system" => Some(Risk::Controllers),
        "system:authenticated" | "system:unauthenticated" | "system:serviceaccounts" => Some(Risk::Everybody),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(users: &[&str], groups: &[&str]) -> Vec<String> {
        let texts = |of: &[&str]| of.iter().map(|&text| text.to_owned()).collect();
        let exemptions = Exemptions { users: texts(users), groups: texts(groups), ..Exemptions::default() };
        exempt_tenants(&exemptions).into_iter().map(|found| found.location.to_string()).collect()
    }

    #[test]
    fn exemptions_of_accounts_acting_for_tenants_are_found() {
        let users = [
            "system:serviceaccount:kube-system:daemon-set-controller",
            "system:serviceaccount:kube-system:coredns",
            "system:serviceaccount:tools:daemon-set-controller",
            "system:kube-controller-manager",
            "system:anonymous",
            "system:node:a",
            "alice",
        ];
        let expected = ["spec.exemptions.users[0]", "spec.exemptions.users[3]", "spec.exemptions.users[4]"];
        assert_eq!(found(&users, &[]), expected);
        let groups = [
            "system:masters",
            "system:serviceaccounts",
            "system:serviceaccounts:kube-system",
            "system:serviceaccounts:backup",
            "system:nodes",
            "system:authenticated",
            "system:unauthenticated",
            "storage-admins",
        ];
        let expected = [1, 2, 5, 6].map(|index| format!("spec.exemptions.groups[{index}]"));
        assert_eq!(found(&[], &groups), expected);
    }

    #[test]
    fn a_warning_names_the_exemption_and_what_to_do() {
        let exemptions = Exemptions { users: vec![format!("{KUBE_SYSTEM}job-controller")], ..Exemptions::default() };
        let [found] = exempt_tenants(&exemptions).try_into().unwrap();
        assert!(found.message.starts_with("system:serviceaccount:kube-system:job-controller is a controller"));
        assert!(found.help.is_some_and(|help| help.contains("spec.exceptions")));
    }
}

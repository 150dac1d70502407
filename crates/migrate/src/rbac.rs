//! Who may use which `PodSecurityPolicy`: the grants of the verb `use` in Roles and bindings.
//!
//! The API server judged a pod by the policies that its service account, or its creator, may use in its namespace. A
//! profile selects namespaces. So this module determines for each grant the namespaces of the pods, and whether it
//! covers all of their pods or only those of some accounts.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use palisade_kube_json::selector::{self, Labels};
use serde::Deserialize;

/// The kinds that grant permissions.
pub const KINDS: [&str; 4] = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
/// Their API group.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The part of metadata that counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The name.
    pub name: String,
    /// The namespace; empty if the object has none. A file may leave it to `kubectl -n`.
    pub namespace: String,
    /// The labels, by which roles are aggregated.
    pub labels: Option<Labels>,
}

/// A `Role` or `ClusterRole`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Its name and namespace.
    #[serde(default)]
    pub metadata: Metadata,
    /// Its rules.
    #[serde(default)]
    pub rules: Option<Vec<PolicyRule>>,
    /// Which other `ClusterRoles` a controller takes its rules from.
    #[serde(default)]
    pub aggregation_rule: Option<AggregationRule>,
}

/// The `ClusterRoles` whose rules a `ClusterRole` has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AggregationRule {
    /// Those that any of these selects.
    pub cluster_role_selectors: Option<Vec<LabelSelector>>,
}

/// A rule of a role.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// `policy`, `extensions` or *.
    pub api_groups: Option<Vec<String>>,
    /// `podsecuritypolicies` or *.
    pub resources: Option<Vec<String>>,
    /// Names of policies. None: all.
    pub resource_names: Option<Vec<String>>,
    /// `use` or *.
    pub verbs: Option<Vec<String>>,
}

/// A `RoleBinding` or `ClusterRoleBinding`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// Its name and namespace.
    #[serde(default)]
    pub metadata: Metadata,
    /// The role that it grants.
    pub role_ref: RoleRef,
    /// The subjects.
    #[serde(default)]
    pub subjects: Option<Vec<Subject>>,
}

/// The role that a binding grants.
#[derive(Clone, Debug, Deserialize)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// A subject of a binding.
#[derive(Clone, Debug, Deserialize)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The namespace of a service account.
    #[serde(default)]
    pub namespace: Option<String>,
}

/// Roles and bindings.
#[derive(Clone, Debug, Default)]
pub struct Rbac {
    /// By namespace, empty for `ClusterRoles`, and name.
    roles: BTreeMap<(String, String), Role>,
    /// With whether it is a `ClusterRoleBinding`.
    bindings: Vec<(bool, Binding)>,
}

/// The pods and creators that may use a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Whether each pod of each namespace may use it.
    pub everywhere: bool,
    /// Namespaces in which each pod may use it.
    pub whole: BTreeSet<String>,
    /// Namespaces in which some pods may use it, with those accounts.
    pub partly: BTreeMap<String, BTreeSet<String>>,
    /// Users, groups and accounts that may use it in every namespace, though only for pods that they create.
    pub creators: BTreeSet<String>,
}

impl Grants {
    /// Whether no pod and no creator may use it.
    pub fn is_empty(&self) -> bool {
        !self.everywhere && self.whole.is_empty() && self.partly.is_empty() && self.creators.is_empty()
    }
}

/// The pods that a grant to a subject applies to.
enum About<'a> {
    /// Every pod, because each has a service account.
    All,
    /// Every pod of a namespace.
    Namespace(&'a str),
    /// The pods of one service account: namespace and name.
    Account(&'a str, &'a str),
    /// Pods that a user or group creates.
    Creator,
}

impl Subject {
    fn about<'a>(&'a self, binding: &'a Binding) -> About<'a> {
        let name = self.name.as_str();
        match self.kind.as_str() {
            "ServiceAccount" => {
                let namespace = self.namespace.as_deref().filter(|namespace| !namespace.is_empty());
                About::Account(namespace.unwrap_or(&binding.metadata.namespace), name)
            }
            "Group" if matches!(name, "system:authenticated" | "system:serviceaccounts") => About::All,
            "Group" => name.strip_prefix("system:serviceaccounts:").map_or(About::Creator, About::Namespace),
            _ => match name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
                Some((namespace, name)) => About::Account(namespace, name),
                None => About::Creator,
            },
        }
    }
}

impl Rbac {
    /// Adds a `Role`, or a `ClusterRole`.
    pub fn add_role(&mut self, of_cluster: bool, role: Role) {
        let namespace = if of_cluster { String::new() } else { role.metadata.namespace.clone() };
        self.roles.insert((namespace, role.metadata.name.clone()), role);
    }

    /// Adds a `RoleBinding`, or a `ClusterRoleBinding`.
    pub fn add_binding(&mut self, of_cluster: bool, binding: Binding) {
        self.bindings.push((of_cluster, binding));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    /// Bindings that may grant a policy, but whose role is not in the files.
    pub fn unresolved(&self) -> Vec<String> {
        let missing = |of_cluster: bool, binding: &Binding| self.rules(of_cluster, binding).is_none();
        let named = |binding: &Binding| format!("{} {}", binding.role_ref.kind, binding.role_ref.name);
        let found: BTreeSet<_> = self
            .bindings
            .iter()
            .filter(|(of_cluster, binding)| missing(*of_cluster, binding))
            .map(|(_, binding)| named(binding))
            .collect();
        found.into_iter().collect()
    }

    /// The rules that a binding grants; none if its role is not in the files.
    fn rules(&self, of_cluster: bool, binding: &Binding) -> Option<Vec<&PolicyRule>> {
        let namespace = match binding.role_ref.kind.as_str() {
            "Role" if !of_cluster => binding.metadata.namespace.clone(),
            _ => String::new(),
        };
        let role = self.roles.get(&(namespace, binding.role_ref.name.clone()))?;
        let (mut rules, mut open, mut seen) = (Vec::new(), vec![role], BTreeSet::new());
        while let Some(role) = open.pop() {
            if !seen.insert(&role.metadata.name) {
                continue;
            }
            rules.extend(role.rules.iter().flatten());
            // A role that is aggregated may be aggregated itself; its controller writes what it selects.
            let selectors = role.aggregation_rule.iter().flat_map(|rule| rule.cluster_role_selectors.iter().flatten());
            for selector in selectors {
                let selected = self.roles.iter().filter(|((namespace, _), other)| {
                    let labels = other.metadata.labels.as_ref();
                    namespace.is_empty() && selector::matches(selector, labels.unwrap_or(&Labels::new()))
                });
                open.extend(selected.map(|(_, other)| other));
            }
        }
        Some(rules)
    }

    /// The grants of a policy.
    pub fn grants(&self, policy: &str) -> Grants {
        let mut grants = Grants::default();
        for (of_cluster, binding) in &self.bindings {
            if self.rules(*of_cluster, binding).is_some_and(|rules| rules.iter().any(|rule| rule.grants(policy))) {
                for subject in binding.subjects.iter().flatten() {
                    grants.add(*of_cluster, binding, subject);
                }
            }
        }
        // Each grant is reported once.
        for namespace in &grants.whole {
            grants.partly.remove(namespace);
        }
        grants
    }
}

impl Grants {
    fn add(&mut self, of_cluster: bool, binding: &Binding, subject: &Subject) {
        // Administrators of a cluster may do everything, in every cluster.
        if subject.kind == "Group" && subject.name == "system:masters" {
            return;
        }
        let about = subject.about(binding);
        let named = match &about {
            About::Account(namespace, name) => format!("ServiceAccount {namespace}/{name}"),
            _ => format!("{} {}", subject.kind, subject.name),
        };
        if !of_cluster {
            let here = binding.metadata.namespace.clone();
            let all = match about {
                About::All => true,
                About::Namespace(namespace) => namespace == here,
                About::Account(..) | About::Creator => false,
            };
            if all {
                self.whole.insert(here);
            } else {
                // Accounts of other namespaces count here, too, for pods that they create.
                self.partly.entry(here).or_default().insert(named);
            }
            return;
        }
        match about {
            About::All => self.everywhere = true,
            About::Namespace(namespace) => {
                self.whole.insert(namespace.to_owned());
            }
            About::Account(namespace, _) => {
                self.partly.entry(namespace.to_owned()).or_default().insert(named);
            }
            About::Creator => {
                self.creators.insert(named);
            }
        }
    }
}

impl PolicyRule {
    fn grants(&self, policy: &str) -> bool {
        let has = |list: &Option<Vec<String>>, wanted: &[&str]| {
            list.iter().flatten().any(|found| found == "*" || wanted.contains(&found.as_str()))
        };
        let names = self.resource_names.as_deref().unwrap_or_default();
        has(&self.verbs, &["use"])
            && has(&self.resources, &["podsecuritypolicies"])
            && has(&self.api_groups, &["policy", "extensions"])
            && (names.is_empty() || names.iter().any(|name| name == policy))
    }
}

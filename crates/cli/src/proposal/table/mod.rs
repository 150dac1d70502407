//! Finds profile changes for an object that violates a check. Each check of the catalogue has a row: a function that finds
//! changes, or the reason why none is proposed.
//!
//! A change allows a value for all namespaces of the profile. No change is proposed that opens the node, that gives one
//! namespace values of another, or that turns a check off.

mod ids;
mod names;
mod objects;
mod privileges;
mod volumes;

use palisade_api::{Settings, Values};
use palisade_checks::{Text, defaults::CONTAINER_LISTS};
use palisade_kube_json::text::truncated;
use serde_json::Value as Json;

use super::change::Change;
pub use volumes::{is_of_the_node, is_written};

/// The most of an invalid name in a message, in characters.
const MAX_NAME: usize = 80;

/// A pod or another object that violates a check, with the requirements of the profile.
pub struct Subject<'a> {
    /// The settings of the profile, with defaults for omitted ones.
    pub settings: &'a Settings,
    /// The values of its parameters in the namespace.
    pub values: &'a Values,
    /// The pod, or the template of one, or the object of a check of other objects.
    pub pod: &'a Json,
    /// The message of the violation: the API server adds fields to a pod that a template does not have.
    pub message: &'a str,
}

/// Changes with which the check is expected to admit the pod, or the reason why none is proposed.
type Found = Result<Vec<Change>, String>;

/// The knowledge about a check.
pub struct Row {
    /// Its id.
    pub check: &'static str,
    /// Whether `mutation.defaults: Secure` fixes pods that leave its field unset.
    pub defaults: bool,
    /// Finds changes of its settings; none if there is none to propose.
    pub find: Option<fn(&Subject<'_>) -> Found>,
    /// The reason if no change is found, as the end of a sentence.
    pub why_not: &'static str,
}

const fn row(check: &'static str, find: fn(&Subject<'_>) -> Found, why_not: &'static str) -> Row {
    Row { check, defaults: false, find: Some(find), why_not }
}

const fn never(check: &'static str, why_not: &'static str) -> Row {
    Row { check, defaults: false, find: None, why_not }
}

impl Row {
    const fn or_defaults(self) -> Self {
        Self { defaults: true, ..self }
    }
}

const DEMAND: &str = "the profile requires this value of every pod, and the pod sets another one";

/// The rows of checks of pods.
static TABLE: [Row; 36] = [
    never("privileged", "a privileged container has full control of the node"),
    never("windowsHostProcess", "a HostProcess container has full control of the node"),
    never("hostNamespaces", "a pod in a namespace of the node sees the network or the processes of all tenants"),
    never("allowPrivilegeEscalation", DEMAND).or_defaults(),
    row("capabilities", privileges::capabilities, DEMAND).or_defaults(),
    never("runAsNonRoot", DEMAND).or_defaults(),
    row("runAsUser", ids::user, DEMAND).or_defaults(),
    row("runAsGroup", ids::group, DEMAND).or_defaults(),
    row("fsGroup", ids::fs_group, DEMAND).or_defaults(),
    row("supplementalGroups", ids::supplemental, DEMAND).or_defaults(),
    never("supplementalGroupsPolicy", DEMAND).or_defaults(),
    row("seccompProfile", privileges::seccomp, DEMAND).or_defaults(),
    row("appArmorProfile", privileges::app_armor, "the pod sets it by an annotation, not by the field"),
    row("seLinuxOptions", privileges::se_linux, DEMAND).or_defaults(),
    row("procMount", privileges::proc_mount, "without the masks, a container can modify the node"),
    row("sysctls", privileges::sysctls, "the profile forbids this sysctl by its name"),
    never("readOnlyRootFilesystem", DEMAND).or_defaults(),
    row("shareProcessNamespace", privileges::share_process_namespace, DEMAND),
    row("hostPorts", ids::ports, "no port of the node was found in the pod"),
    never("hostProbesAndHostLifecycle", "the kubelet would connect to any address from the node's network"),
    row("hostAliases", names::aliases, DEMAND),
    row("restrictedVolumes", volumes::kinds, "no such volume was found in the pod"),
    row("hostPathVolumes", volumes::host_paths, "the profile allows the path, but not how the pod uses it"),
    row("csiDrivers", volumes::csi, "no such volume was found in the pod"),
    row("flexVolumes", volumes::flex, "no such volume was found in the pod"),
    row("mountPropagation", volumes::propagation, "no such mount was found in the pod"),
    never("automountServiceAccountToken", "the change would give all pods a token for the API server"),
    row("serviceAccountTokens", names::audiences, "the profile limits the lifetime of tokens"),
    row("runtimeClasses", names::runtime_classes, "no runtime class was found in the pod"),
    row("priorityClasses", names::priority_classes, "no priority class was found in the pod"),
    row("schedulers", names::schedulers, "no scheduler was found in the pod"),
    never("nodeName", "a pod with nodeName bypasses the scheduler and the taints of the node"),
    never("nodeSelector", "the profile assigns nodes to these namespaces"),
    row("tolerations", names::tolerations, "no such toleration was found in the pod"),
    row("imageRegistries", names::registries, "no such image was found in the pod"),
    row("serviceAccounts", names::service_accounts, "no service account was found in the pod"),
];

/// The row of a check of pods or of other objects.
pub fn row_of(check: &str) -> Option<&'static Row> {
    TABLE.iter().chain(&objects::TABLE).find(|row| row.check == check)
}

/// The reason for checks without a row.
pub fn why_not(check: &str) -> &'static str {
    match check {
        "parameters" => "the namespace has no value for a parameter, and an administrator must set it",
        "bounds" => "a list of the pod is longer than policies can evaluate",
        _ => "it is a custom rule of the profile",
    }
}

impl Subject<'_> {
    fn spec(&self) -> &Json {
        &self.pod["spec"]
    }

    /// All containers of all kinds.
    fn containers(&self) -> impl Iterator<Item = &Json> {
        CONTAINER_LISTS.iter().flat_map(|list| items(&self.spec()[*list]))
    }

    fn volumes(&self) -> impl Iterator<Item = &Json> {
        items(&self.spec()["volumes"])
    }

    /// The security contexts of the pod and its containers.
    fn contexts(&self) -> impl Iterator<Item = &Json> {
        [&self.spec()["securityContext"]].into_iter().chain(self.containers().map(|one| &one["securityContext"]))
    }
}

fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

/// A text of a pod in the notation of a profile. A pod must not supply a pattern or a reference to a parameter.
///
/// # Errors
/// It is not a valid name in a profile.
pub fn text(found: &str) -> Result<String, String> {
    if found.contains('*') || found.len() > 256 || found.chars().any(char::is_control) {
        return Err(format!("{:?} is not a valid name in a profile", truncated(found, MAX_NAME)));
    }
    Ok(found.replace('$', "$$"))
}

/// Whether a list has texts that differ by namespace.
fn differs(list: &[Text]) -> bool {
    list.iter().any(|text| text.0.replace("$$", "").contains('$'))
}

const OF_ONE: &str = "The profile has separate values for each namespace here; this value would apply to all of them.";

/// The same change, with a caution where the list differs by namespace.
fn for_all(change: Change, list: &[Text]) -> Change {
    if differs(list) && change.caution.is_empty() { change.but(OF_ONE) } else { change }
}

/// Whether a value is in the part of a list that is separate for each namespace: below the text before a parameter.
fn is_of_a_namespace<'a>(texts: impl IntoIterator<Item = &'a Text>, value: &str) -> bool {
    texts.into_iter().any(|text| {
        let text = text.0.replace("$$", "\u{0}");
        text.split_once('$').is_some_and(|(head, _)| {
            let head = head.replace('\u{0}', "$");
            !head.trim_matches('/').is_empty() && (value.starts_with(&head) || head.starts_with(&format!("{value}/")))
        })
    })
}

/// Values that are not in a list, without duplicates.
fn missing<'a>(found: impl Iterator<Item = &'a str>, allowed: &[String]) -> Vec<&'a str> {
    let mut missing: Vec<_> = found.filter(|one| !allowed.iter().any(|other| other == one || other == "*")).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use palisade_api::catalogue;
    use palisade_checks::settings::mutation::Defaults;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_check_has_a_row() {
        let rows: Vec<_> = TABLE.iter().map(|row| row.check).collect();
        let checks: Vec<_> = catalogue::ALL.iter().map(|check| check.id).collect();
        assert_eq!(rows, checks, "TABLE has a row for each check, in the order of the catalogue");
        let rows: Vec<_> = objects::TABLE.iter().map(|row| row.check).collect();
        let checks: Vec<_> = palisade_checks::objects::ALL.iter().map(|check| check.id).collect();
        assert_eq!(rows, checks, "objects::TABLE has a row for each check, in the order of the catalogue");
        for row in TABLE.iter().chain(&objects::TABLE) {
            assert!(!row.why_not.is_empty() && !row.why_not.ends_with('.'), "{}", row.check);
        }
    }

    /// Settings of a profile that demands all that a default can repair.
    fn demanding() -> Settings {
        let range = json!([{"min": 1000, "max": 2000}]);
        let rule = json!({"rule": "MustRunAs", "ranges": range});
        serde_json::from_value(json!({
            "users": {
                "runAsUser": rule, "runAsGroup": rule, "fsGroup": rule, "supplementalGroups": rule,
                "supplementalGroupsPolicy": "Strict", "requireRunAsNonRoot": true,
            },
            "privileges": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"requiredDrop": ["ALL"]}, "seccomp": {"required": true},
                "seLinux": {"required": true, "types": ["container_t"]},
            },
            "network": {
                "allowedHosts": [], "allowedIngressClasses": [], "allowedGateways": [], "allowedServiceTypes": [],
                "allowedLoadBalancerClasses": [], "allowedNodePorts": [],
            },
            "storage": {"allowedStorageClasses": [], "allowedAccessModes": [], "allowedSnapshotClasses": []},
            "access": {"allowedRoleRefs": [], "allowedRoleVerbs": []},
        }))
        .unwrap()
    }

    #[test]
    fn rows_know_which_checks_have_defaults() {
        let mut settings = demanding();
        settings.mutation.defaults = Defaults::Secure;
        let declared = std::collections::BTreeMap::new();
        let with_defaults = catalogue::ALL.iter().filter(|check| !(check.defaults)(&settings, &declared).is_empty());
        let expected: BTreeSet<_> = with_defaults.map(|check| check.id).collect();
        let found: BTreeSet<_> = TABLE.iter().filter(|row| row.defaults).map(|row| row.check).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn texts_of_pods_are_no_patterns_and_no_references() {
        assert_eq!(text("a$b"), Ok("a$$b".to_owned()));
        for bad in ["*", "net.*", "a\nb", &"x".repeat(300)] {
            assert!(text(bad).is_err(), "{bad}");
        }
        let list = [Text::from("/data/project/$tool"), Text::from("/price$$/x")];
        assert!(differs(&list) && !differs(&list[1..]));
        for (path, expected) in
            [("/data/project/other", true), ("/data/project", true), ("/data/scratch", false), ("/price$/x", false)]
        {
            assert_eq!(is_of_a_namespace(&list, path), expected, "{path}");
        }
    }

    #[test]
    fn rows_survive_any_pod() {
        let settings = demanding();
        let values = Values::new();
        for pod in [
            json!(null),
            json!({"spec": 7}),
            json!({"spec": {"containers": "x", "volumes": [1, null], "securityContext": []}}),
            json!({"spec": {"containers": [{"image": 7, "ports": [{"hostPort": -1}], "volumeMounts": 1}],
                "tolerations": [null], "volumes": [{"name": 1, "hostPath": {"path": 7}, "projected": {"sources": 1}}]}}),
            json!({"metadata": 1, "roleRef": [], "rules": [{"verbs": 1}, 2], "spec": {"rules": [{"host": 7}], "tls": [{"hosts": {}}],
                "parentRefs": [{"namespace": 1}], "ports": [{"nodePort": "x"}], "accessModes": 1, "hostnames": [null]}}),
        ] {
            for row in TABLE.iter().chain(&objects::TABLE) {
                if let Some(find) = row.find {
                    let _ = find(&Subject { settings: &settings, values: &values, pod: &pod, message: "" });
                }
            }
        }
    }
}

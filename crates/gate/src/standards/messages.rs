//! The plugin's wording of what is wrong with a pod (`k8s.io/pod-security-admission/policy/check_*.go`).
//!
//! The catalogue decides what a level and version demands ([`Settings::seed`]); this module only words a violation, and
//! names its containers.

use std::collections::BTreeSet;

use palisade_admission::{create::quote, requests::Violation};
use palisade_api::{Level, Settings};
use serde_json::Value as Json;

/// A pod, and the settings that it must meet.
pub(super) struct PssMessages<'a> {
    pub pod: &'a Json,
    pub settings: &'a Settings,
    pub level: Level,
}

/// A check: its name, which decides its place in the message, the level that it belongs to, and its wording.
type Check = (&'static str, Level, fn(&PssMessages<'_>) -> Option<PssMessage>);

/// The reason and the detail of a violation.
type PssMessage = (String, String);

/// All checks by level and name, which is the order of the message. A check of the restricted level replaces the one of
/// the baseline about the same field, so that each field is reported once.
const CHECKS: &[Check] = &[
    ("appArmorProfile", Level::Baseline, |pod| pod.app_armor()),
    ("capabilities_baseline", Level::Baseline, |pod| pod.added_capabilities()),
    ("hostNamespaces", Level::Baseline, |pod| pod.host_namespaces()),
    ("hostPathVolumes", Level::Baseline, |pod| pod.host_paths()),
    ("hostPorts", Level::Baseline, |pod| pod.host_ports()),
    ("hostProbesAndHostLifecycle", Level::Baseline, |pod| pod.probe_hosts()),
    ("privileged", Level::Baseline, |pod| pod.privileged()),
    ("procMount", Level::Baseline, |pod| pod.proc_mount()),
    ("seLinuxOptions", Level::Baseline, |pod| pod.se_linux()),
    ("seccompProfile_baseline", Level::Baseline, |pod| pod.seccomp()),
    ("sysctls", Level::Baseline, |pod| pod.sysctls()),
    ("windowsHostProcess", Level::Baseline, |pod| pod.host_process()),
    ("allowPrivilegeEscalation", Level::Restricted, |pod| pod.escalation()),
    ("capabilities_restricted", Level::Restricted, |pod| pod.dropped_capabilities()),
    ("procMount_restricted", Level::Restricted, |pod| pod.proc_mount_restricted()),
    ("restrictedVolumes", Level::Restricted, |pod| pod.volumes()),
    ("runAsNonRoot", Level::Restricted, |pod| pod.non_root()),
    ("runAsUser", Level::Restricted, |pod| pod.user()),
    ("seccompProfile_restricted", Level::Restricted, |pod| pod.seccomp_restricted()),
];

impl<'a> PssMessages<'a> {
    /// All violations, in the order of the message.
    pub fn violations(&self) -> Vec<Violation> {
        debug_assert!(CHECKS.is_sorted_by_key(|(name, level, _)| (*level, *name)), "the message has this order");
        let concerned = CHECKS.iter().filter(|(_, level, _)| *level <= self.level);
        let said = concerned.filter_map(|(_, _, words)| words(self));
        said.map(|(reason, detail)| Violation { reason, detail }).collect()
    }

    fn spec(&self) -> &'a Json {
        &self.pod["spec"]
    }

    fn annotations(&self) -> impl Iterator<Item = (&'a String, &'a str)> {
        let annotations = self.pod["metadata"]["annotations"].as_object();
        annotations.into_iter().flatten().filter_map(|(key, value)| Some((key, value.as_str()?)))
    }

    /// Init containers first, as the plugin visits them.
    fn containers(&self) -> impl Iterator<Item = &'a Json> {
        let spec = self.spec();
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| items(&spec[list]))
    }

    /// The names of the containers that something is wrong with.
    fn named(&self, wrong: impl FnMut(&&'a Json) -> bool) -> Vec<&'a str> {
        self.containers().filter(wrong).map(name).collect()
    }

    fn is_windows(&self) -> bool {
        self.settings.privileges.windows.is_some() && self.spec()["os"]["name"] == "windows"
    }

    /// Whether the pod runs in a user namespace of its own.
    fn in_user_namespace(&self) -> bool {
        self.spec()["hostUsers"] == false
    }

    fn app_armor(&self) -> Option<PssMessage> {
        const KEY: &str = "container.apparmor.security.beta.kubernetes.io/";
        let kind = |of: &'a Json| of["securityContext"]["appArmorProfile"].get("type").and_then(Json::as_str);
        let bad = |of: &'a Json| kind(of).filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"));
        let of_pod = bad(self.spec());
        let containers = self.named(|container| bad(container).is_some());
        let values: BTreeSet<&str> = of_pod.into_iter().chain(self.containers().filter_map(bad)).collect();
        let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
        let mut setters = setters(of_pod.is_some(), &containers);
        let mut annotations: Vec<String> = self
            .annotations()
            .filter(|(key, value)| key.starts_with(KEY) && !allowed_app_armor(value))
            .map(|(key, value)| format!("{key}={}", quote(value)))
            .collect();
        if !annotations.is_empty() {
            annotations.sort();
            setters.push(plural("annotation", "annotations", annotations.len()).to_owned());
            values.append(&mut annotations);
        }
        if setters.is_empty() {
            return None;
        }
        let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
        let detail = format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(&values));
        Some((reason.to_owned(), detail))
    }

    fn added_capabilities(&self) -> Option<PssMessage> {
        let capabilities = self.settings.privileges.capabilities.as_ref()?;
        if self.drops_all() {
            return None;
        }
        let (containers, added) = self.added(|name| capabilities.allowed_add.iter().any(|allowed| allowed.0 == name));
        let detail = must_not_add(&containers, &added)?;
        Some(("non-default capabilities".to_owned(), detail))
    }

    /// Whether all capabilities must be dropped, so that the check of the restricted level reports.
    fn drops_all(&self) -> bool {
        self.settings.privileges.capabilities.as_ref().is_some_and(|one| !one.required_drop.is_empty())
    }

    /// The containers that add a capability which is not allowed, and all of these.
    fn added(&self, allowed: impl Fn(&str) -> bool) -> (Vec<&'a str>, Vec<&'a str>) {
        let added = |container: &'a Json| {
            let added = items(&container["securityContext"]["capabilities"]["add"]).filter_map(Json::as_str);
            added.filter(|name| !allowed(name)).collect::<Vec<_>>()
        };
        let containers = self.named(|container| !added(container).is_empty());
        let all: BTreeSet<_> = self.containers().flat_map(added).collect();
        (containers, all.into_iter().collect())
    }

    fn dropped_capabilities(&self) -> Option<PssMessage> {
        if !self.drops_all() || self.is_windows() {
            return None;
        }
        let drops = |container: &Json| {
            items(&container["securityContext"]["capabilities"]["drop"]).any(|capability| capability == "ALL")
        };
        let keeping = self.named(|container| !drops(container));
        let (adding, added) = self.added(|name| name == "NET_BIND_SERVICE");
        let mut details = Vec::new();
        if !keeping.is_empty() {
            details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
        }
        details.extend(must_not_add(&adding, &added));
        (!details.is_empty()).then(|| ("unrestricted capabilities".to_owned(), details.join("; ")))
    }

    fn host_namespaces(&self) -> Option<PssMessage> {
        let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| self.spec()[*field] == true);
        let set: Vec<_> = fields.map(|field| format!("{field}=true")).collect();
        (!set.is_empty()).then(|| ("host namespaces".to_owned(), set.join(", ")))
    }

    fn host_paths(&self) -> Option<PssMessage> {
        // A list of allowed kinds of volumes does not contain hostPath.
        if self.settings.volumes.allowed.is_some() {
            return None;
        }
        let volumes: Vec<_> =
            items(&self.spec()["volumes"]).filter(|volume| !volume["hostPath"].is_null()).map(name).collect();
        let detail = format!("{} {}", plural("volume", "volumes", volumes.len()), quoted(&volumes));
        (!volumes.is_empty()).then(|| ("hostPath volumes".to_owned(), detail))
    }

    fn host_ports(&self) -> Option<PssMessage> {
        let ports = |container: &'a Json| {
            let ports = items(&container["ports"]).filter_map(|port| port["hostPort"].as_i64());
            ports.filter(|port| *port != 0).map(|port| port.to_string()).collect::<Vec<_>>()
        };
        let bad = self.named(|container| !ports(container).is_empty());
        let all: BTreeSet<String> = self.containers().flat_map(ports).collect();
        let detail = format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", all.len()),
            all.into_iter().collect::<Vec<_>>().join(", ")
        );
        (!bad.is_empty()).then(|| ("hostPort".to_owned(), detail))
    }

    fn probe_hosts(&self) -> Option<PssMessage> {
        self.settings.host.probe_hosts.as_ref()?;
        let hosts = |container: &'a Json| {
            let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &container[probe]);
            let hooks = ["postStart", "preStop"].map(|hook| &container["lifecycle"][hook]);
            let handlers = probes.into_iter().chain(hooks);
            let hosts = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|how| &handler[how]["host"]));
            hosts.filter_map(Json::as_str).filter(|host| !host.is_empty()).collect::<Vec<_>>()
        };
        let bad: BTreeSet<_> = self.named(|container| !hosts(container).is_empty()).into_iter().collect();
        let bad: Vec<_> = bad.into_iter().collect();
        let all: BTreeSet<_> = self.containers().flat_map(hosts).collect();
        let detail = format!(
            "{} {} {} {}",
            containers(&bad),
            plural("uses", "use", bad.len()),
            plural("probe or lifecycle host", "probe or lifecycle hosts", all.len()),
            quoted(&all.into_iter().collect::<Vec<_>>())
        );
        (!bad.is_empty()).then(|| ("probe or lifecycle host".to_owned(), detail))
    }

    fn privileged(&self) -> Option<PssMessage> {
        let bad = self.named(|container| container["securityContext"]["privileged"] == true);
        let detail = format!("{} must not set securityContext.privileged=true", containers(&bad));
        (!bad.is_empty()).then(|| ("privileged".to_owned(), detail))
    }

    fn proc_mount(&self) -> Option<PssMessage> {
        if self.is_restricted_35()
            || (self.settings.privileges.unmasked_in_user_namespaces.is_some() && self.in_user_namespace())
        {
            return None;
        }
        self.masked()
    }

    /// Since 1.35 the restricted level has a check of its own, because the baseline makes an exception.
    fn proc_mount_restricted(&self) -> Option<PssMessage> {
        if self.is_restricted_35() { self.masked() } else { None }
    }

    fn is_restricted_35(&self) -> bool {
        self.level == Level::Restricted && self.settings.users.relax_for_user_namespaces.is_some()
    }

    fn masked(&self) -> Option<PssMessage> {
        let other = |container: &'a Json| {
            container["securityContext"]["procMount"].as_str().filter(|mount| *mount != "Default")
        };
        let bad = self.named(|container| other(container).is_some());
        let types: BTreeSet<_> = self.containers().filter_map(other).collect();
        let types: Vec<_> = types.into_iter().collect();
        let detail = format!("{} must not set securityContext.procMount to {}", containers(&bad), quoted(&types));
        (!bad.is_empty()).then(|| ("procMount".to_owned(), detail))
    }

    fn se_linux(&self) -> Option<PssMessage> {
        let allowed = self.settings.privileges.se_linux.as_ref()?;
        let options = |of: &'a Json| &of["securityContext"]["seLinuxOptions"];
        let text = |options: &'a Json, key: &str| options[key].as_str().unwrap_or_default();
        let bad_type = |options: &'a Json| {
            let found = text(options, "type");
            (!found.is_empty() && !allowed.types.iter().any(|one| one.0 == found)).then_some(found)
        };
        let is_bad = |of: &'a Json| {
            let options = options(of);
            bad_type(options).is_some() || !text(options, "user").is_empty() || !text(options, "role").is_empty()
        };
        let bad = self.named(|container| is_bad(container));
        let setters = setters(is_bad(self.spec()), &bad);
        if setters.is_empty() {
            return None;
        }
        let all = || std::iter::once(self.spec()).chain(self.containers()).map(options);
        let types: BTreeSet<_> = all().filter_map(bad_type).collect();
        let types: Vec<_> = types.into_iter().collect();
        let mut data = Vec::new();
        if !types.is_empty() {
            data.push(format!("{} {}", plural("type", "types", types.len()), quoted(&types)));
        }
        for key in ["user", "role"] {
            if all().any(|options| !text(options, key).is_empty()) {
                data.push(format!("{key} may not be set"));
            }
        }
        let detail =
            format!("{} set forbidden securityContext.seLinuxOptions: {}", setters.join(" and "), data.join("; "));
        Some(("seLinuxOptions".to_owned(), detail))
    }

    fn seccomp(&self) -> Option<PssMessage> {
        if self.requires_seccomp() {
            return None;
        }
        let seccomp = self.settings.privileges.seccomp.as_ref()?;
        if seccomp.annotations == true.into() { self.seccomp_annotations() } else { self.seccomp_types() }
    }

    fn requires_seccomp(&self) -> bool {
        self.settings.privileges.seccomp.as_ref().is_some_and(|seccomp| seccomp.required == true.into())
    }

    fn seccomp_annotations(&self) -> Option<PssMessage> {
        const POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
        const CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
        let names: Vec<_> = self.containers().map(name).collect();
        let concerned = |key: &str| key == POD || key.strip_prefix(CONTAINER).is_some_and(|of| names.contains(&of));
        let valid =
            |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
        let bad: BTreeSet<String> = self
            .annotations()
            .filter(|(key, value)| concerned(key) && !valid(value))
            .map(|(key, value)| format!("{key}={}", quote(value)))
            .collect();
        let bad: Vec<_> = bad.into_iter().collect();
        let detail = format!("forbidden {} {}", plural("annotation", "annotations", bad.len()), bad.join(", "));
        (!bad.is_empty()).then(|| ("seccompProfile".to_owned(), detail))
    }

    fn seccomp_types(&self) -> Option<PssMessage> {
        let bad = |of: &'a Json| seccomp_type(of).filter(|kind| !is_confined(kind));
        let setting = self.named(|container| bad(container).is_some());
        let setters = setters(bad(self.spec()).is_some(), &setting);
        if setters.is_empty() {
            return None;
        }
        let values: BTreeSet<_> = std::iter::once(self.spec()).chain(self.containers()).filter_map(bad).collect();
        let detail = format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            setters.join(" and "),
            quoted(&values.into_iter().collect::<Vec<_>>())
        );
        Some(("seccompProfile".to_owned(), detail))
    }

    fn seccomp_restricted(&self) -> Option<PssMessage> {
        if !self.requires_seccomp() || self.is_windows() {
            return None;
        }
        self.seccomp_types().or_else(|| {
            let of_pod = seccomp_type(self.spec()).is_some();
            let unset = self.named(|container| !of_pod && seccomp_type(container).is_none());
            let detail = format!(
                "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
                containers(&unset)
            );
            (!unset.is_empty()).then(|| ("seccompProfile".to_owned(), detail))
        })
    }

    fn sysctls(&self) -> Option<PssMessage> {
        let allowed = &self.settings.privileges.sysctls.as_ref()?.allowed;
        let all = items(&self.spec()["securityContext"]["sysctls"]).map(name);
        let bad: Vec<_> = all.filter(|name| !allowed.iter().any(|one| one.0 == *name)).collect();
        (!bad.is_empty()).then(|| ("forbidden sysctls".to_owned(), bad.join(", ")))
    }

    fn host_process(&self) -> Option<PssMessage> {
        let is = |of: &Json| of["securityContext"]["windowsOptions"]["hostProcess"] == true;
        let setters = setters(is(self.spec()), &self.named(|container| is(container)));
        let detail = format!("{} must not set securityContext.windowsOptions.hostProcess=true", setters.join(" and "));
        (!setters.is_empty()).then(|| ("hostProcess".to_owned(), detail))
    }

    fn escalation(&self) -> Option<PssMessage> {
        self.settings.privileges.allow_privilege_escalation.as_ref()?;
        if self.is_windows() {
            return None;
        }
        let bad = self.named(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
        let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&bad));
        (!bad.is_empty()).then(|| ("allowPrivilegeEscalation != false".to_owned(), detail))
    }

    fn volumes(&self) -> Option<PssMessage> {
        let allowed = self.settings.volumes.allowed.as_ref()?;
        let is_allowed = |volume: &Json| allowed.iter().any(|kind| !volume[kind.0.as_str()].is_null());
        let bad: Vec<_> = items(&self.spec()["volumes"]).filter(|volume| !is_allowed(volume)).collect();
        let kinds: BTreeSet<_> = bad.iter().map(|volume| volume_kind(volume)).collect();
        let kinds: Vec<_> = kinds.into_iter().collect();
        let names: Vec<_> = bad.iter().map(|volume| name(volume)).collect();
        let detail = format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names),
            plural("uses", "use", names.len()),
            plural("restricted volume type", "restricted volume types", kinds.len()),
            quoted(&kinds)
        );
        (!bad.is_empty()).then(|| ("restricted volume types".to_owned(), detail))
    }

    fn non_root(&self) -> Option<PssMessage> {
        let users = &self.settings.users;
        users.require_run_as_non_root.as_ref()?;
        if users.relax_for_user_namespaces.is_some() && self.in_user_namespace() {
            return None;
        }
        let set = |of: &Json| of["securityContext"]["runAsNonRoot"].as_bool();
        let reason = "runAsNonRoot != true".to_owned();
        let of_pod = set(self.spec());
        let setters = setters(of_pod == Some(false), &self.named(|container| set(container) == Some(false)));
        if !setters.is_empty() {
            return Some((
                reason,
                format!("{} must not set securityContext.runAsNonRoot=false", setters.join(" and ")),
            ));
        }
        let unset = self.named(|container| of_pod != Some(true) && set(container).is_none());
        let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&unset));
        (!unset.is_empty()).then_some((reason, detail))
    }

    fn user(&self) -> Option<PssMessage> {
        let users = &self.settings.users;
        users.run_as_user.as_ref()?;
        if users.relax_for_user_namespaces.is_some() && self.in_user_namespace() {
            return None;
        }
        let is_root = |of: &Json| of["securityContext"]["runAsUser"].as_i64() == Some(0);
        let setters = setters(is_root(self.spec()), &self.named(|container| is_root(container)));
        let detail = format!("{} must not set runAsUser=0", setters.join(" and "));
        (!setters.is_empty()).then(|| ("runAsUser=0".to_owned(), detail))
    }
}

/// The elements of a list; none if it is not a list.
fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

fn name(of: &Json) -> &str {
    of["name"].as_str().unwrap_or_default()
}

fn allowed_app_armor(annotation: &str) -> bool {
    annotation.is_empty() || annotation == "runtime/default" || annotation.starts_with("localhost/")
}

fn seccomp_type(of: &Json) -> Option<&str> {
    let profile = &of["securityContext"]["seccompProfile"];
    (!profile.is_null()).then(|| profile["type"].as_str().unwrap_or_default())
}

fn is_confined(kind: &str) -> bool {
    matches!(kind, "RuntimeDefault" | "Localhost")
}

/// The kind of a volume, as the message names it.
fn volume_kind(volume: &Json) -> &str {
    const KINDS: [&str; 21] = [
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "gitRepo",
        "nfs",
        "iscsi",
        "glusterfs",
        "rbd",
        "flexVolume",
        "cinder",
        "cephfs",
        "flocker",
        "fc",
        "azureFile",
        "vsphereVolume",
        "quobyte",
        "azureDisk",
        "photonPersistentDisk",
        "portworxVolume",
        "scaleIO",
        "storageos",
    ];
    KINDS.into_iter().find(|kind| !volume[*kind].is_null()).unwrap_or("unknown")
}

fn plural<'t>(one: &'t str, many: &'t str, count: usize) -> &'t str {
    if count == 1 { one } else { many }
}

/// As the plugin joins them: without escapes.
fn quoted(texts: &[impl AsRef<str>]) -> String {
    texts.iter().map(|text| format!("\"{}\"", text.as_ref())).collect::<Vec<_>>().join(", ")
}

/// `containers "a", "b"`
fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names))
}

/// The setters of a field: the pod, or containers.
fn setters(pod: bool, names: &[&str]) -> Vec<String> {
    let pod = pod.then(|| "pod".to_owned());
    pod.into_iter().chain((!names.is_empty()).then(|| containers(names))).collect()
}

fn must_not_add(names: &[&str], added: &[&str]) -> Option<String> {
    (!names.is_empty()).then(|| {
        format!("{} must not include {} in securityContext.capabilities.add", containers(names), quoted(added))
    })
}

//! Which level of the Pod Security Standards settings imply.
//!
//! This is a promise, so it is careful: a level is implied only if each setting by itself is as strict as the
//! level, and alike in every namespace. Settings that together come to the same, or lists with parameters,
//! imply less than they may achieve.

use std::collections::{BTreeMap, BTreeSet};

use super::{Settings, UserRule, UserRules, WindowsRule, any, kind_refused, standard::Version};
use crate::{Flag, Integer, Level, ParameterName, Text};

/// A level that settings imply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implied {
    /// The strictest level that each setting satisfies.
    pub level: Level,
    /// Which settings keep it from the next stricter level; what it means, if there is none.
    pub reason: String,
}

/// The level that settings imply in a version of the standards. `minimums` are the lowest values of parameters
/// of type `Integer`.
pub fn implied(settings: &Settings, version: Version, minimums: &BTreeMap<ParameterName, i64>) -> Implied {
    let mut reason = "every setting is as strict as Restricted".to_owned();
    for level in [Level::Restricted, Level::Baseline] {
        let obstacles = obstacles(settings, &Settings::seed(level, version), minimums);
        if obstacles.is_empty() {
            return Implied { level, reason };
        }
        reason = format!("less strict than {level}: {}", obstacles.join(", "));
    }
    Implied { level: Level::Privileged, reason }
}

/// The settings that are not as strict as the standard's.
fn obstacles(found: &Settings, asked: &Settings, minimums: &BTreeMap<ParameterName, i64>) -> Vec<&'static str> {
    let mut out = Vec::new();
    let mut need = |holds: bool, setting: &'static str| {
        if !holds {
            out.push(setting);
        }
    };
    users(found, asked, minimums, &mut need);
    privileges(found, asked, &mut need);
    for (found, asked, setting) in [
        (&found.host.network, &asked.host.network, "host.network"),
        (&found.host.pid, &asked.host.pid, "host.pid"),
        (&found.host.ipc, &asked.host.ipc, "host.ipc"),
        (&found.host.probe_hosts, &asked.host.probe_hosts, "host.probeHosts"),
    ] {
        need(forbids(found.as_ref(), asked.as_ref()), setting);
    }
    need(asked.host.ports.is_none() || found.host.ports.as_ref().is_some_and(Vec::is_empty), "host.ports");
    need(within(found.volumes.allowed.as_deref(), asked.volumes.allowed.as_deref()), "volumes.allowed");
    need(
        asked.volumes.host_paths.is_none()
            || found.volumes.host_paths.as_ref().is_some_and(Vec::is_empty)
            || kind_refused(found, "hostPath"),
        "volumes.hostPaths",
    );
    out
}

fn users(
    found: &Settings,
    asked: &Settings,
    minimums: &BTreeMap<ParameterName, i64>,
    need: &mut impl FnMut(bool, &'static str),
) {
    let (found, asked) = (&found.users, &asked.users);
    let never_root = |rules: &UserRules| match rules.rule {
        UserRule::MustRunAsNonRoot => true,
        UserRule::RunAsAny => false,
        UserRule::MustRunAs | UserRule::MayRunAs => rules.ranges.iter().all(|range| {
            let lowest = match &range.min {
                Integer::Constant(value) => Some(*value),
                Integer::Parameter(name) => minimums.get(name).copied(),
            };
            lowest.is_some_and(|lowest| lowest > 0)
        }),
    };
    need(asked.run_as_user.is_none() || found.run_as_user.as_ref().is_some_and(never_root), "users.runAsUser");
    need(
        demands(found.require_run_as_non_root.as_ref(), asked.require_run_as_non_root.as_ref()),
        "users.requireRunAsNonRoot",
    );
    let relaxed = |flag: &Option<Flag>| !matches!(flag, None | Some(Flag::Constant(false)));
    // What is relaxed does not matter where nothing is demanded.
    let matters = asked.run_as_user.is_some() || asked.require_run_as_non_root.is_some();
    need(
        !matters || !relaxed(&found.relax_for_user_namespaces) || relaxed(&asked.relax_for_user_namespaces),
        "users.relaxForUserNamespaces",
    );
}

fn privileges(found: &Settings, asked: &Settings, need: &mut impl FnMut(bool, &'static str)) {
    let (found, asked) = (&found.privileges, &asked.privileges);
    for (found, asked, setting) in [
        (&found.privileged, &asked.privileged, "privileges.privileged"),
        (&found.allow_privilege_escalation, &asked.allow_privilege_escalation, "privileges.allowPrivilegeEscalation"),
        (&found.windows_host_process, &asked.windows_host_process, "privileges.windowsHostProcess"),
        (
            // Absent is false here, and what is true in the standard may be anything.
            &Some(found.unmasked_in_user_namespaces.clone().unwrap_or(Flag::Constant(false))),
            &Some(asked.unmasked_in_user_namespaces.clone().unwrap_or(Flag::Constant(false))),
            "privileges.unmaskedInUserNamespaces",
        ),
    ] {
        need(forbids(found.as_ref(), asked.as_ref()), setting);
    }
    if let Some(asked) = &asked.capabilities {
        let found = found.capabilities.as_ref();
        let adds = found.map(|found| [&found.allowed_add[..], &found.default_add[..]].concat());
        need(within(adds.as_deref(), Some(&asked.allowed_add)), "privileges.capabilities.allowedAdd");
        let drops = |text: &Text| found.is_some_and(|found| found.required_drop.contains(text));
        need(asked.required_drop.iter().all(drops), "privileges.capabilities.requiredDrop");
    }
    need(within(found.proc_mount.as_deref(), asked.proc_mount.as_deref()), "privileges.procMount");
    if let Some(asked) = &asked.seccomp {
        let found = found.seccomp.as_ref();
        need(within(found.map(|found| &found.allowed[..]), Some(&asked.allowed)), "privileges.seccomp.allowed");
        let flag =
            |of: fn(&crate::catalogue::seccomp_profile::Seccomp) -> &Flag| demands(found.map(of), Some(of(asked)));
        need(flag(|seccomp| &seccomp.required), "privileges.seccomp.required");
        need(flag(|seccomp| &seccomp.annotations), "privileges.seccomp.annotations");
    }
    if let Some(asked) = &asked.app_armor {
        let found = found.app_armor.as_ref();
        need(within(found.map(|found| &found.allowed[..]), Some(&asked.allowed)), "privileges.appArmor.allowed");
    }
    if let Some(asked) = &asked.se_linux {
        let found = found.se_linux.as_ref();
        need(within(found.map(|found| &found.types[..]), Some(&asked.types)), "privileges.seLinux.types");
        need(within(found.map(|found| &found.users[..]), Some(&asked.users)), "privileges.seLinux.users");
        need(within(found.map(|found| &found.roles[..]), Some(&asked.roles)), "privileges.seLinux.roles");
    }
    if let Some(asked) = &asked.sysctls {
        let found = found.sysctls.as_ref();
        need(within(found.map(|found| &found.allowed[..]), Some(&asked.allowed)), "privileges.sysctls.allowed");
    }
    need(
        found.windows != Some(WindowsRule::Exempt) || asked.windows == Some(WindowsRule::Exempt),
        "privileges.windows",
    );
}

/// Whether an allowance is refused where the standard refuses it.
fn forbids(found: Option<&Flag>, asked: Option<&Flag>) -> bool {
    asked != Some(&Flag::Constant(false)) || found == Some(&Flag::Constant(false))
}

/// Whether a demand is made where the standard makes it.
fn demands(found: Option<&Flag>, asked: Option<&Flag>) -> bool {
    asked != Some(&Flag::Constant(true)) || found == Some(&Flag::Constant(true))
}

/// Whether a list allows only what the standard's allows. A text with a parameter may be anything.
fn within(found: Option<&[Text]>, asked: Option<&[Text]>) -> bool {
    let Some(asked) = asked.filter(|asked| !any(asked)) else { return true };
    let asked: BTreeSet<_> = asked.iter().collect();
    found.is_some_and(|found| found.iter().all(|text| asked.contains(text)))
}

//! Whether one profile admits every pod that another one admits.

use palisade_api::{
    Settings,
    catalogue::{
        capabilities::Capabilities, host_path_volumes::HostPath, se_linux_options::SeLinux,
        supplemental_groups_policy::SupplementalGroupsPolicy, sysctls::Sysctls,
    },
    settings::{GroupRule, GroupRules, Range, UserRule, UserRules, WindowsRule},
};
use palisade_checks::{Flag, Integer, Text};

/// Whether `wide` admits every pod that `narrow` admits. False if the settings do not show it.
///
/// For settings without parameters, as a migration makes them.
pub fn covers(wide: &Settings, narrow: &Settings) -> bool {
    let (w, n) = (wide, narrow);
    let (wp, np) = (&w.privileges, &n.privileges);
    let allowances = [
        (&wp.privileged, &np.privileged),
        (&wp.allow_privilege_escalation, &np.allow_privilege_escalation),
        (&wp.windows_host_process, &np.windows_host_process),
        (&w.host.network, &n.host.network),
        (&w.host.pid, &n.host.pid),
        (&w.host.ipc, &n.host.ipc),
        (&w.host.probe_hosts, &n.host.probe_hosts),
        (&w.host.aliases, &n.host.aliases),
        (&wp.share_process_namespace, &np.share_process_namespace),
        (&w.identity.automount_service_account_token, &n.identity.automount_service_account_token),
        (&w.scheduling.node_name, &n.scheduling.node_name),
    ];
    let demands = [
        (&w.users.require_run_as_non_root, &n.users.require_run_as_non_root),
        (&wp.read_only_root_filesystem, &np.read_only_root_filesystem),
        (&w.volumes.recursive_read_only, &n.volumes.recursive_read_only),
    ];
    let lists = [
        (&wp.proc_mount, &np.proc_mount),
        (&w.volumes.allowed, &n.volumes.allowed),
        (&w.volumes.mount_propagation, &n.volumes.mount_propagation),
        (&w.identity.service_accounts, &n.identity.service_accounts),
        (&w.scheduling.runtime_classes, &n.scheduling.runtime_classes),
        (&w.scheduling.priority_classes, &n.scheduling.priority_classes),
        (&w.scheduling.schedulers, &n.scheduling.schedulers),
        (&w.images.allowed_registries, &n.images.allowed_registries),
    ];
    let exempt = Some(WindowsRule::Exempt);
    let windows = wp.windows == exempt || np.windows != exempt || !demands_of_windows(w);
    let relaxed = w.users.relax_for_user_namespaces == n.users.relax_for_user_namespaces
        && wp.unmasked_in_user_namespaces == np.unmasked_in_user_namespaces;
    let strict = Some(SupplementalGroupsPolicy::Strict);
    let groups_of_image = w.users.supplemental_groups_policy != strict || n.users.supplemental_groups_policy == strict;
    windows
        && relaxed
        && groups_of_image
        // For these, only equal settings are known to admit the same pods.
        && either(w.scheduling.node_selector.as_ref(), n.scheduling.node_selector.as_ref(), |w, n| w == n)
        && either(w.scheduling.tolerations.as_ref(), n.scheduling.tolerations.as_ref(), |w, n| w == n)
        && either(w.identity.service_account_tokens.as_ref(), n.identity.service_account_tokens.as_ref(), |w, n| w == n)
        && allowances.into_iter().all(|(w, n)| w.as_ref() != Some(&false.into()) || n.as_ref() == Some(&false.into()))
        && demands.into_iter().all(|(w, n)| w.as_ref() != Some(&true.into()) || n.as_ref() == Some(&true.into()))
        && lists.into_iter().all(|(w, n)| either(w.as_ref(), n.as_ref(), |w, n| within(n, w)))
        && either(w.users.run_as_user.as_ref(), n.users.run_as_user.as_ref(), users)
        && either(w.users.run_as_group.as_ref(), n.users.run_as_group.as_ref(), groups)
        && either(w.users.fs_group.as_ref(), n.users.fs_group.as_ref(), groups)
        && either(w.users.supplemental_groups.as_ref(), n.users.supplemental_groups.as_ref(), groups)
        && either(wp.capabilities.as_ref(), np.capabilities.as_ref(), capabilities)
        && either(wp.seccomp.as_ref(), np.seccomp.as_ref(), |w, n| {
            (w.required != true.into() || n.required == true.into())
                && profiles((&w.allowed, &w.localhost_profiles), (&n.allowed, &n.localhost_profiles))
        })
        && either(wp.app_armor.as_ref(), np.app_armor.as_ref(), |w, n| {
            profiles((&w.allowed, &w.localhost_profiles), (&n.allowed, &n.localhost_profiles))
        })
        && either(wp.se_linux.as_ref(), np.se_linux.as_ref(), se_linux)
        && either(wp.sysctls.as_ref(), np.sysctls.as_ref(), sysctls)
        && either(w.host.ports.as_ref(), n.host.ports.as_ref(), |w, n| inside(n, w))
        // The limits of a kind of volume do not matter where the kind is forbidden.
        && (kind_refused(n, "hostPath")
            || either(w.volumes.host_paths.as_ref(), n.volumes.host_paths.as_ref(), |w, n| host_paths(w, n)))
        && (kind_refused(n, "csi")
            || either(w.volumes.csi_drivers.as_ref(), n.volumes.csi_drivers.as_ref(), |w, n| within(n, w)))
        && (kind_refused(n, "flexVolume")
            || either(w.volumes.flex_volumes.as_ref(), n.volumes.flex_volumes.as_ref(), |w, n| within(n, w)))
}

/// Whether it demands something that a pod for Windows can only be exempt from.
fn demands_of_windows(settings: &Settings) -> bool {
    let privileges = &settings.privileges;
    privileges.allow_privilege_escalation == Some(false.into())
        || privileges.capabilities.as_ref().is_some_and(|capabilities| !capabilities.required_drop.is_empty())
        || privileges.seccomp.as_ref().is_some_and(|seccomp| seccomp.required != false.into())
        || settings.users.supplemental_groups_policy == Some(SupplementalGroupsPolicy::Strict)
}

/// An absent setting restricts nothing.
fn either<T: ?Sized>(wide: Option<&T>, narrow: Option<&T>, covers: impl Fn(&T, &T) -> bool) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => covers(wide, narrow),
    }
}

fn kind_refused(settings: &Settings, kind: &str) -> bool {
    settings.volumes.allowed.as_ref().is_some_and(|kinds| !kinds.iter().any(|k| k.0 == kind || k.0 == "*"))
}

fn within(narrow: &[Text], wide: &[Text]) -> bool {
    wide.iter().any(|text| text.0 == "*") || narrow.iter().all(|text| wide.contains(text))
}

fn inside(narrow: &[Range], wide: &[Range]) -> bool {
    let ends = |range: &Range| match (&range.min, &range.max) {
        (Integer::Constant(min), Integer::Constant(max)) => Some((*min, *max)),
        _ => None,
    };
    narrow.iter().all(|n| {
        let n = ends(n);
        n.is_some() && wide.iter().filter_map(ends).any(|w| n.is_some_and(|n| w.0 <= n.0 && n.1 <= w.1))
    })
}

fn users(wide: &UserRules, narrow: &UserRules) -> bool {
    let above_root = |ranges: &[Range]| inside(ranges, &[Range { min: 1.into(), max: i64::MAX.into() }]);
    match (wide.rule, narrow.rule) {
        (UserRule::RunAsAny, _) | (UserRule::MustRunAsNonRoot, UserRule::MustRunAsNonRoot) => true,
        (UserRule::MustRunAs, UserRule::MustRunAs) | (UserRule::MayRunAs, UserRule::MustRunAs | UserRule::MayRunAs) => {
            inside(&narrow.ranges, &wide.ranges)
        }
        // A pod with user 0 passes if its containers have other users, but it does not pass as non-root.
        (UserRule::MustRunAsNonRoot, UserRule::MustRunAs) => above_root(&narrow.ranges),
        _ => false,
    }
}

fn groups(wide: &GroupRules, narrow: &GroupRules) -> bool {
    match (wide.rule, narrow.rule) {
        (GroupRule::RunAsAny, _) => true,
        (GroupRule::MustRunAs, GroupRule::MustRunAs)
        | (GroupRule::MayRunAs, GroupRule::MustRunAs | GroupRule::MayRunAs) => inside(&narrow.ranges, &wide.ranges),
        _ => false,
    }
}

fn capabilities(wide: &Capabilities, narrow: &Capabilities) -> bool {
    let add = |of: &Capabilities| of.allowed_add.iter().chain(&of.default_add).cloned().collect::<Vec<_>>();
    let all = |of: &Capabilities| of.required_drop.iter().any(|name| name.0 == "ALL");
    // A pod that drops each required capability need not drop ALL, but one that drops ALL drops each.
    within(&add(narrow), &add(wide))
        && (all(narrow) || wide.required_drop.iter().all(|w| narrow.required_drop.contains(w)))
}

fn profiles(wide: (&[Text], &[Text]), narrow: (&[Text], &[Text])) -> bool {
    let local = |types: &[Text]| types.iter().any(|text| text.0 == "*" || text.0 == "Localhost");
    within(narrow.0, wide.0) && (!local(narrow.0) || within(narrow.1, wide.1))
}

fn se_linux(wide: &SeLinux, narrow: &SeLinux) -> bool {
    let parts = |of: &SeLinux| [of.types.clone(), of.users.clone(), of.roles.clone(), of.levels.clone()];
    let demanded = |list: &[Text]| !list.is_empty() && !list.iter().any(|text| text.0 == "*");
    let required = |of: &SeLinux| of.required != Flag::Constant(false);
    parts(wide)
        .iter()
        .zip(&parts(narrow))
        .all(|(w, n)| within(n, w) && (!required(wide) || !demanded(w) || (required(narrow) && demanded(n))))
}

fn sysctls(wide: &Sysctls, narrow: &Sysctls) -> bool {
    let covered = |name: &str, by: &[Text]| {
        by.iter().any(|w| w.0 == name || w.0.strip_suffix('*').is_some_and(|start| name.starts_with(start)))
    };
    narrow.allowed.iter().all(|n| covered(&n.0, &wide.allowed))
        && wide.forbidden.iter().all(|w| covered(&w.0, &narrow.forbidden))
}

fn host_paths(wide: &[HostPath], narrow: &[HostPath]) -> bool {
    let slashed = |path: &Text| format!("{}/", path.0.trim_end_matches('/'));
    let writable = |path: &HostPath| path.read_only == Flag::Constant(false);
    narrow.iter().all(|n| {
        wide.iter()
            .any(|w| slashed(&n.path_prefix).starts_with(&slashed(&w.path_prefix)) && (writable(w) || !writable(n)))
    })
}

//! Whether one profile admits every pod that another one admits.

use palisade_api::{
    Settings,
    settings::{
        self, At, Capabilities, GroupRule, GroupRules, HostPath, Kind, Range, SeLinux, Seccomp, Slot as _,
        SupplementalGroupsPolicy, Sysctls, UserRule, UserRules, WindowsRule,
    },
};
use palisade_checks::{Flag, Integer, Text};

/// Whether the first settings admit, as far as one of them says, every pod that the second ones admit.
type Covers = fn(&Settings, &Settings) -> bool;

/// Settings that are not compared by their kind alone. Of another one whose kind says nothing, only equal values are known
/// to admit the same pods.
const SPECIAL_COMPARISONS: &[(&str, Covers)] = &[
    ("users.runAsUser", |w, n| either(|s| s.users.run_as_user.as_ref(), w, n, users)),
    ("users.runAsGroup", |w, n| either(|s| s.users.run_as_group.as_ref(), w, n, groups)),
    ("users.fsGroup", |w, n| either(|s| s.users.fs_group.as_ref(), w, n, groups)),
    ("users.supplementalGroups", |w, n| either(|s| s.users.supplemental_groups.as_ref(), w, n, groups)),
    ("users.supplementalGroupsPolicy", |w, n| {
        let strict = Some(SupplementalGroupsPolicy::Strict);
        w.users.supplemental_groups_policy != strict || n.users.supplemental_groups_policy == strict
    }),
    ("privileges.capabilities", |w, n| either(|s| s.privileges.capabilities.as_ref(), w, n, capabilities)),
    ("privileges.seccomp", |w, n| either(|s| s.privileges.seccomp.as_ref(), w, n, seccomp)),
    ("privileges.appArmor", |w, n| {
        either(
            |s| s.privileges.app_armor.as_ref(),
            w,
            n,
            |w, n| profiles((&w.allowed, &w.localhost_profiles), (&n.allowed, &n.localhost_profiles)),
        )
    }),
    ("privileges.seLinux", |w, n| either(|s| s.privileges.se_linux.as_ref(), w, n, se_linux)),
    ("privileges.sysctls", |w, n| either(|s| s.privileges.sysctls.as_ref(), w, n, sysctls)),
    ("privileges.windows", |w, n| {
        let exempt = Some(WindowsRule::Exempt);
        w.privileges.windows == exempt || n.privileges.windows != exempt || !demands_of_windows(w)
    }),
    ("host.ports", |w, n| either(|s| s.host.ports.as_ref(), w, n, |w, n| inside(n, w))),
    // The limits of a kind of volume do not matter where the kind is forbidden.
    ("volumes.hostPaths", |w, n| {
        kind_refused(n, "hostPath") || either(|s| s.volumes.host_paths.as_ref(), w, n, |w, n| host_paths(w, n))
    }),
    ("volumes.csiDrivers", |w, n| {
        kind_refused(n, "csi") || either(|s| s.volumes.csi_drivers.as_ref(), w, n, |w, n| within(n, w))
    }),
    ("volumes.flexVolumes", |w, n| {
        kind_refused(n, "flexVolume") || either(|s| s.volumes.flex_volumes.as_ref(), w, n, |w, n| within(n, w))
    }),
];

/// Whether `wide` admits every pod that `narrow` admits. False if the settings do not show it.
///
/// For settings without parameters, as a migration makes them.
pub fn covers(wide: &Settings, narrow: &Settings) -> bool {
    settings::all().all(|setting| match SPECIAL_COMPARISONS.iter().find(|(path, _)| *path == setting.path) {
        Some((_, own)) => own(wide, narrow),
        None => by_kind(&setting.kind, wide, narrow),
    })
}

fn by_kind(kind: &Kind, wide: &Settings, narrow: &Settings) -> bool {
    let says = |at: &At<Flag>, settings: &Settings, flag: bool| (at.get)(settings) == &Some(flag.into());
    match kind {
        Kind::Allowance(at) => !says(at, wide, false) || says(at, narrow, false),
        Kind::Demand(at) => !says(at, wide, true) || says(at, narrow, true),
        Kind::Relaxation(at) => at.is_same(wide, narrow),
        Kind::Texts(at) => {
            (at.get)(wide).as_ref().is_none_or(|w| (at.get)(narrow).as_ref().is_some_and(|n| within(n, w)))
        }
        // An image that a profile cannot redirect, it denies.
        Kind::Other(slot) | Kind::Change(slot) => !slot.is_said(wide) || slot.is_same(wide, narrow),
    }
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
fn either<T>(
    of: fn(&Settings) -> Option<&T>,
    wide: &Settings,
    narrow: &Settings,
    covers: impl Fn(&T, &T) -> bool,
) -> bool {
    of(wide).is_none_or(|w| of(narrow).is_some_and(|n| covers(w, n)))
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

fn seccomp(wide: &Seccomp, narrow: &Seccomp) -> bool {
    (wide.required != true.into() || narrow.required == true.into())
        && profiles((&wide.allowed, &wide.localhost_profiles), (&narrow.allowed, &narrow.localhost_profiles))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_comparisons_name_existing_settings() {
        for (path, _) in SPECIAL_COMPARISONS {
            assert!(settings::all().any(|setting| setting.path == *path), "{path}");
        }
    }
}

//! What checks say of the Pod Security Standards is what the settings of the standards make of them.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::collections::BTreeMap;

use palisade_checks::{
    Check, Level, Lowering, Rule, Settings, catalogue,
    settings::standard::{LATEST, Version},
};

fn rule(check: &Check, level: Level, minor: u8) -> Option<Rule> {
    let types = BTreeMap::new();
    (check.compile)(&Settings::seed(level, Version::Minor(minor)), &mut Lowering::new(&types))
}

/// From a version on, a level has a rule that it did not have before, and that the level below does not have.
#[test]
fn level_gains_each_check_in_its_stated_version() {
    for check in catalogue::ALL {
        for pss in check.pss {
            let place = format!("{}: {} since v1.{}", check.id, pss.id, pss.since);
            let found = rule(check, pss.level, pss.since);
            assert!(found.is_some(), "{place}: there is no rule");
            if pss.since > 0 {
                let before = rule(check, pss.level, pss.since - 1);
                // The level below may be what changes, and this one stays.
                let below = |minor| rule(check, Level::Baseline, minor);
                let changes = found != before || below(pss.since) != below(pss.since - 1);
                assert!(changes, "{place}: nothing changes");
            }
            if pss.level == Level::Restricted {
                assert!(found != rule(check, Level::Baseline, pss.since), "{place}: Baseline has it, too");
            }
        }
    }
}

/// And before that version, or without such a check, the level restricts nothing.
#[test]
fn level_has_no_check_before_its_stated_version() {
    for check in catalogue::ALL {
        for (level, minor) in
            [Level::Baseline, Level::Restricted].into_iter().flat_map(|l| (0..=LATEST).map(move |m| (l, m)))
        {
            let known = check.pss.iter().any(|pss| pss.level <= level && pss.since <= minor);
            // Restricted refuses the kind as a whole, in another check.
            let elsewhere = check.id == "hostPathVolumes" && level == Level::Restricted;
            let found = rule(check, level, minor).is_some();
            assert_eq!(found, known && !elsewhere, "{} in {level} v1.{minor}", check.id);
        }
    }
}

/// The ids of `k8s.io/pod-security-admission/policy`, as its version 0.36 registers them: each is covered once.
#[test]
fn every_check_of_the_standards_is_covered() {
    let mut known = [
        "allowPrivilegeEscalation",
        "appArmorProfile",
        "capabilities_baseline",
        "capabilities_restricted",
        "hostNamespaces",
        "hostPathVolumes",
        "hostPorts",
        "hostProbesAndHostLifecycle",
        "privileged",
        "procMount",
        "procMount_restricted",
        "restrictedVolumes",
        "runAsNonRoot",
        "runAsUser",
        "seLinuxOptions",
        "seccompProfile_baseline",
        "seccompProfile_restricted",
        "sysctls",
        "windowsHostProcess",
    ];
    known.sort_unstable();
    let mut found: Vec<_> = catalogue::ALL.iter().flat_map(|check| check.pss).map(|pss| pss.id).collect();
    found.sort_unstable();
    assert_eq!(found, known);
}

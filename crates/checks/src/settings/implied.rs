//! The level of the Pod Security Standards that settings imply.
//!
//! The result is conservative: a level is implied only if each single setting is as strict as the level, and the same
//! in every namespace. Settings that are as strict only in combination, and lists with parameters, imply a lower level
//! than they may achieve.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Kind, Seccomp, Setting, Settings, UserRule, UserRules, WindowsRule, all, any, kind_refused,
    standard::{Level, Version},
};
use crate::{Flag, Integer, ParameterName, Text};

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
pub fn implied(settings: &Settings, version: Version, minimums: &Minimums) -> Implied {
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

/// The lowest values of parameters.
type Minimums = BTreeMap<ParameterName, i64>;

/// Which parts of a setting are not as strict as the standard's.
type Obstacles = fn(&Settings, &Settings, &Minimums) -> Vec<&'static str>;

/// Settings that are not compared by their kind alone. Another one whose kind says nothing must be the standard's,
/// where the standard asks for something.
const SPECIAL_COMPARISONS: &[(&str, Obstacles)] = &[
    ("users.runAsUser", run_as_user),
    ("users.relaxForUserNamespaces", relax_for_user_namespaces),
    ("privileges.capabilities", capabilities),
    ("privileges.seccomp", seccomp),
    ("privileges.appArmor", app_armor),
    ("privileges.seLinux", se_linux),
    ("privileges.sysctls", sysctls),
    ("privileges.windows", |found, asked, _| {
        let exempt = Some(WindowsRule::Exempt);
        unless(found.privileges.windows != exempt || asked.privileges.windows == exempt, "privileges.windows")
    }),
    ("host.ports", |found, asked, _| {
        let none = found.host.ports.as_ref().is_some_and(Vec::is_empty);
        unless(asked.host.ports.is_none() || none, "host.ports")
    }),
    ("volumes.hostPaths", |found, asked, _| {
        let none = found.volumes.host_paths.as_ref().is_some_and(Vec::is_empty) || kind_refused(found, "hostPath");
        unless(asked.volumes.host_paths.is_none() || none, "volumes.hostPaths")
    }),
];

/// The settings that are not as strict as the standard's.
fn obstacles(found: &Settings, asked: &Settings, minimums: &Minimums) -> Vec<&'static str> {
    let of = |setting: &Setting| match SPECIAL_COMPARISONS.iter().find(|(path, _)| *path == setting.path) {
        Some((_, own)) => own(found, asked, minimums),
        None => unless(holds(setting, found, asked), setting.path),
    };
    all().flat_map(of).collect()
}

/// Whether a setting is as strict as the standard's, by its kind.
fn holds(setting: &Setting, found: &Settings, asked: &Settings) -> bool {
    match setting.kind {
        Kind::Allowance(at) => forbids((at.get)(found).as_ref(), (at.get)(asked).as_ref()),
        Kind::Demand(at) => demands((at.get)(found).as_ref(), (at.get)(asked).as_ref()),
        // What is relaxed in the standard may be anything.
        Kind::Relaxation(at) => (at.get)(asked) == &Some(Flag::Constant(true)) || !is_relaxed((at.get)(found).as_ref()),
        Kind::Texts(at) => within((at.get)(found).as_deref(), (at.get)(asked).as_deref()),
        Kind::Other(slot) => !slot.is_said(asked) || slot.is_same(found, asked),
        Kind::Change(_) => true,
    }
}

fn unless(holds: bool, name: &'static str) -> Vec<&'static str> {
    if holds { vec![] } else { vec![name] }
}

fn run_as_user(found: &Settings, asked: &Settings, minimums: &Minimums) -> Vec<&'static str> {
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
    let holds = asked.users.run_as_user.is_none() || found.users.run_as_user.as_ref().is_some_and(never_root);
    unless(holds, "users.runAsUser")
}

fn relax_for_user_namespaces(found: &Settings, asked: &Settings, _: &Minimums) -> Vec<&'static str> {
    let (found, asked) = (&found.users, &asked.users);
    // What is relaxed does not matter where nothing is demanded.
    let matters = asked.run_as_user.is_some() || asked.require_run_as_non_root.is_some();
    let is_relaxed = |flag: &Option<Flag>| is_relaxed(flag.as_ref());
    unless(
        !matters || !is_relaxed(&found.relax_for_user_namespaces) || is_relaxed(&asked.relax_for_user_namespaces),
        "users.relaxForUserNamespaces",
    )
}

fn capabilities(found: &Settings, asked: &Settings, _: &Minimums) -> Vec<&'static str> {
    let Some(asked) = &asked.privileges.capabilities else { return vec![] };
    let found = found.privileges.capabilities.as_ref();
    let adds = found.map(|found| [&found.allowed_add[..], &found.default_add[..]].concat());
    let drops = |text: &Text| found.is_some_and(|found| found.required_drop.contains(text));
    [
        unless(within(adds.as_deref(), Some(&asked.allowed_add)), "privileges.capabilities.allowedAdd"),
        unless(asked.required_drop.iter().all(drops), "privileges.capabilities.requiredDrop"),
    ]
    .concat()
}

fn seccomp(found: &Settings, asked: &Settings, _: &Minimums) -> Vec<&'static str> {
    let Some(asked) = &asked.privileges.seccomp else { return vec![] };
    let found = found.privileges.seccomp.as_ref();
    let flag = |of: fn(&Seccomp) -> &Flag| demands(found.map(of), Some(of(asked)));
    [
        unless(within(found.map(|found| &found.allowed[..]), Some(&asked.allowed)), "privileges.seccomp.allowed"),
        unless(flag(|seccomp| &seccomp.required), "privileges.seccomp.required"),
        unless(flag(|seccomp| &seccomp.annotations), "privileges.seccomp.annotations"),
    ]
    .concat()
}

fn app_armor(found: &Settings, asked: &Settings, _: &Minimums) -> Vec<&'static str> {
    let Some(asked) = &asked.privileges.app_armor else { return vec![] };
    let found = found.privileges.app_armor.as_ref();
    unless(within(found.map(|found| &found.allowed[..]), Some(&asked.allowed)), "privileges.appArmor.allowed")
}

fn se_linux(found: &Settings, asked: &Settings, _: &Minimums) -> Vec<&'static str> {
    let Some(asked) = &asked.privileges.se_linux else { return vec![] };
    let found = found.privileges.se_linux.as_ref();
    [
        unless(within(found.map(|found| &found.types[..]), Some(&asked.types)), "privileges.seLinux.types"),
        unless(within(found.map(|found| &found.users[..]), Some(&asked.users)), "privileges.seLinux.users"),
        unless(within(found.map(|found| &found.roles[..]), Some(&asked.roles)), "privileges.seLinux.roles"),
    ]
    .concat()
}

fn sysctls(found: &Settings, asked: &Settings, _: &Minimums) -> Vec<&'static str> {
    let Some(asked) = &asked.privileges.sysctls else { return vec![] };
    let found = found.privileges.sysctls.as_ref();
    unless(within(found.map(|found| &found.allowed[..]), Some(&asked.allowed)), "privileges.sysctls.allowed")
}

/// Whether pods may be freed from what is asked.
fn is_relaxed(flag: Option<&Flag>) -> bool {
    !matches!(flag, None | Some(Flag::Constant(false)))
}

/// Whether an allowance is rejected where the standard rejects it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Any value may be in a list with a parameter, also one that the standard does not allow.
    #[test]
    fn lists_with_parameters_imply_no_level() {
        let version = Version::default();
        for level in [Level::Baseline, Level::Restricted] {
            let seed = Settings::seed(level, version);
            assert_eq!(implied(&seed, version, &Minimums::new()).level, level);
            let mut json = serde_json::json!(seed);
            let mut paths = Vec::new();
            lists(&json, "", &mut paths);
            assert!(paths.len() > 4, "{paths:?}");
            for path in paths {
                for template in ["$name", "a$name", "${name}b"] {
                    let list = json.pointer_mut(&path).and_then(|list| list.as_array_mut()).unwrap();
                    list.push(template.into());
                    let found: Settings = serde_json::from_value(json.clone()).unwrap();
                    let Implied { level: lower, reason } = implied(&found, version, &Minimums::new());
                    // More to drop is stricter.
                    assert_eq!(lower == level, path.ends_with("/requiredDrop"), "{path} {template}: {reason}");
                    json.pointer_mut(&path).and_then(|list| list.as_array_mut()).unwrap().pop();
                }
            }
        }
    }

    /// The lists of strings with an element.
    fn lists(of: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        match of {
            serde_json::Value::Array(list) if list.first().is_some_and(|one| one.is_string() && one != "*") => {
                found.push(path.to_owned());
            }
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| lists(value, &format!("{path}/{name}"), found));
            }
            _ => {}
        }
    }

    #[test]
    fn special_comparisons_name_existing_settings() {
        for (path, _) in SPECIAL_COMPARISONS {
            assert!(all().any(|setting| setting.path == *path), "{path}");
        }
    }
}

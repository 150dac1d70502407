//! Capabilities, profiles of seccomp and AppArmor, SELinux options, sysctls, and what containers of a pod share.

use palisade_api::{Level, Settings, settings::standard::Version};
use palisade_checks::{Resolve, Text};
use serde_json::Value as Json;

use super::{Change, Found, Subject, differs, for_all, items, missing, names::switch, text};

/// `privileges.capabilities.allowedAdd`
pub(super) fn capabilities(subject: &Subject<'_>) -> Found {
    let Some(setting) = &subject.settings.privileges.capabilities else { return Ok(vec![]) };
    let mut allowed = setting.allowed_add.resolve(subject.values);
    allowed.extend(setting.default_add.resolve(subject.values));
    let baseline = Settings::seed(Level::Baseline, Version::Latest).privileges.capabilities.unwrap_or_default();
    let added = subject.containers().flat_map(|one| items(&one["securityContext"]["capabilities"]["add"]));
    let mut changes = Vec::new();
    for name in missing(added.filter_map(Json::as_str), &allowed) {
        if !baseline.allowed_add.contains(&Text::from(name)) {
            return Err(format!("the Pod Security Standards do not allow the capability {name}"));
        }
        let allows = format!("Any container may add the capability {name}.");
        changes.push(for_all(
            Change::add("privileges.capabilities.allowedAdd", text(name)?, allows),
            &setting.allowed_add,
        ));
    }
    Ok(changes)
}

/// `privileges.seccomp`
pub(super) fn seccomp(subject: &Subject<'_>) -> Found {
    let Some(setting) = &subject.settings.privileges.seccomp else { return Ok(vec![]) };
    let found = subject.contexts().map(|context| &context["seccompProfile"]);
    let paths = ["privileges.seccomp.allowed", "privileges.seccomp.localhostProfiles"];
    profiles(subject, "seccomp", paths, [&setting.allowed, &setting.localhost_profiles], found)
}

/// `privileges.appArmor`
pub(super) fn app_armor(subject: &Subject<'_>) -> Found {
    let Some(setting) = &subject.settings.privileges.app_armor else { return Ok(vec![]) };
    let found = subject.contexts().map(|context| &context["appArmorProfile"]);
    let paths = ["privileges.appArmor.allowed", "privileges.appArmor.localhostProfiles"];
    profiles(subject, "AppArmor", paths, [&setting.allowed, &setting.localhost_profiles], found)
}

fn profiles<'a>(
    subject: &Subject<'_>,
    what: &str,
    [of_types, of_names]: [&'static str; 2],
    [types, names]: [&[Text]; 2],
    found: impl Iterator<Item = &'a Json>,
) -> Found {
    let found: Vec<_> = found.filter(|profile| profile.is_object()).collect();
    let mut changes = Vec::new();
    let named = found.iter().filter_map(|profile| profile["type"].as_str());
    for kind in missing(named, &types.resolve(subject.values)) {
        if kind == "Unconfined" {
            return Err(format!("Unconfined turns {what} off"));
        }
        let allows = format!("Any container may run under a {what} profile of the type {kind}.");
        changes.push(for_all(Change::add(of_types, text(kind)?, allows), types));
    }
    let local = found.iter().filter_map(|profile| profile["localhostProfile"].as_str());
    for name in missing(local, &names.resolve(subject.values)) {
        let allows = format!("Any container may run under the {what} profile {name} of its node.");
        changes.push(for_all(Change::add(of_names, text(name)?, allows), names));
    }
    Ok(changes)
}

/// `privileges.seLinux`
pub(super) fn se_linux(subject: &Subject<'_>) -> Found {
    let Some(setting) = &subject.settings.privileges.se_linux else { return Ok(vec![]) };
    let parts = [
        ("type", "privileges.seLinux.types", &setting.types),
        ("user", "privileges.seLinux.users", &setting.users),
        ("role", "privileges.seLinux.roles", &setting.roles),
        ("level", "privileges.seLinux.levels", &setting.levels),
    ];
    let mut changes = Vec::new();
    for (part, path, list) in parts {
        let found = subject.contexts().filter_map(|context| context["seLinuxOptions"][part].as_str());
        for value in missing(found.filter(|value| !value.is_empty()), &list.resolve(subject.values)) {
            if part == "type" && !value.starts_with("container_") {
                return Err(format!("the SELinux type {value} does not confine containers"));
            }
            if differs(list) {
                return Err(format!("each namespace has a separate SELinux {part}"));
            }
            let allows = format!("Any container may run with the SELinux {part} {value}.");
            let change = Change::add(path, text(value)?, allows);
            changes.push(match part {
                "level" => change.but("Pods with the same level can use each other's files."),
                _ => change.but("Its permissions depend on the SELinux policy of the nodes."),
            });
        }
    }
    Ok(changes)
}

/// `privileges.unmaskedInUserNamespaces`
pub(super) fn proc_mount(subject: &Subject<'_>) -> Found {
    if subject.spec()["hostUsers"] != false {
        return Ok(vec![]);
    }
    let flag = subject.settings.privileges.unmasked_in_user_namespaces.clone().unwrap_or_else(|| false.into());
    switch(Some(&flag), || {
        let allows = "Any pod in a user namespace (hostUsers: false) may see /proc without masks.";
        Change::set("privileges.unmaskedInUserNamespaces", true, allows)
    })
}

/// Prefixes of sysctls that are separate for each pod.
const OF_A_POD: [&str; 5] = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "net."];

/// `privileges.sysctls.allowed`
pub(super) fn sysctls(subject: &Subject<'_>) -> Found {
    let Some(setting) = &subject.settings.privileges.sysctls else { return Ok(vec![]) };
    let covers = |list: &[String], name: &str| {
        list.iter().any(|one| one == name || one.strip_suffix('*').is_some_and(|head| name.starts_with(head)))
    };
    let (allowed, forbidden) = (setting.allowed.resolve(subject.values), setting.forbidden.resolve(subject.values));
    let found = items(&subject.spec()["securityContext"]["sysctls"]).filter_map(|one| one["name"].as_str());
    let mut changes = Vec::new();
    for name in missing(found, &[]) {
        if covers(&forbidden, &name.replace('/', ".")) {
            return Err("the profile forbids this sysctl by its name".to_owned());
        }
        if covers(&allowed, name) {
            continue;
        }
        if !OF_A_POD.iter().any(|head| name.replace('/', ".").starts_with(head)) {
            return Err(format!("the sysctl {name} would affect the node"));
        }
        let allows = format!("Any pod may set the sysctl {name}.");
        let change = Change::add("privileges.sysctls.allowed", text(name)?, allows);
        changes.push(change.but("A kubelet sets it only if it is listed in --allowed-unsafe-sysctls."));
    }
    Ok(changes)
}

/// `privileges.shareProcessNamespace`
pub(super) fn share_process_namespace(subject: &Subject<'_>) -> Found {
    switch(subject.settings.privileges.share_process_namespace.as_ref(), || {
        let allows = "The containers of any pod may share their processes, and read each other's files and secrets.";
        Change::set("privileges.shareProcessNamespace", true, allows)
    })
}

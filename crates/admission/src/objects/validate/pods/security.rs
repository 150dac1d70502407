//! Security contexts of pods and containers (`validatePodSpecSecurityContext`, `ValidateSecurityContext` in
//! `pkg/apis/core/validation/validation.go`).

use std::collections::BTreeSet;

use palisade_cel::{Minor, Regex};

use super::{
    super::{super::gates::Gate, formats, node::Node, shown},
    Pod, paths,
};
use crate::validation::Checking;

const MAX_ID: i64 = i32::MAX as i64;

pub(super) fn of_pod(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let Some(context) = pod.spec.part("securityContext") else { return };
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        checking.within(&context, key, 0, MAX_ID);
    }
    for group in context.list("supplementalGroups") {
        if group.value.as_i64().is_some_and(|id| !(0..=MAX_ID).contains(&id)) {
            checking.wrong(&group, &format!("must be between 0 and {MAX_ID}, inclusive"));
        }
    }
    if pod.spec.is_true("shareProcessNamespace") && pod.spec.is_true("hostPID") {
        let text = "ShareProcessNamespace and HostPID cannot both be enabled";
        // Until 1.36 it is a field of the context in the API server's own form.
        let of = if checking.minor < Minor::V1_37 { &context } else { &pod.spec };
        checking.invalid_value(of.field("shareProcessNamespace"), &true.into(), text);
    }
    sysctls(checking, &context, pod);
    if let Some(policy) = context.part("fsGroupChangePolicy") {
        checking.one_of(&policy, &["Always", "OnRootMismatch"]);
    }
    seccomp(checking, &context.get("seccompProfile"));
    windows(checking, &context.get("windowsOptions"));
    app_armor(checking, &context.get("appArmorProfile"));
    if let Some(policy) = context.part("supplementalGroupsPolicy") {
        checking.one_of(&policy, &["Merge", "Strict"]);
    }
    if let Some(policy) = context.part("seLinuxChangePolicy") {
        let all = Gate::SELinuxMount.is_on(checking.minor);
        checking.one_of(&policy, if all { &["MountOption", "Recursive"] } else { &["Recursive"] });
    }
}

fn is_sysctl(name: &str) -> bool {
    let segment = |segment: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(|b| inner(*b))
            && bytes.last().is_some_and(|b| inner(*b))
            && bytes.iter().all(|b| inner(*b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(segment)
}

fn sysctls(checking: &mut Checking<'_>, context: &Node<'_>, pod: &Pod<'_>) {
    let mut names = BTreeSet::new();
    for sysctl in context.list("sysctls") {
        let (name, field) = (sysctl.text("name"), sysctl.field("name"));
        if name.is_empty() {
            checking.required(&field, "");
        } else if !is_sysctl(name) {
            let segment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
            let text = format!("must have at most 253 characters and match regex ^({segment}[\\./])*{segment}$");
            checking.invalid(&field, name, &text);
        } else if names.contains(name) {
            checking.duplicate(&field, name);
        }
        names.insert(name);
        let (net, ipc) = namespace_of(name);
        if net && pod.spec.is_true("hostNetwork") {
            checking.invalid(field, name, "may not be specified when 'hostNetwork' is true");
        } else if ipc && pod.spec.is_true("hostIPC") {
            checking.invalid(field, name, "may not be specified when 'hostIPC' is true");
        }
    }
}

/// Whether it is of the namespace of the network, and of that of processes
/// (`k8s.io/component-helpers/node/util/sysctl`).
fn namespace_of(name: &str) -> (bool, bool) {
    // Where the first one is a slash, slashes are dots and dots are slashes.
    let swap = name.find(['.', '/']).is_some_and(|at| name[at..].starts_with('/'));
    let swapped = name.chars().map(|c| match c {
        '.' if swap => '/',
        '/' if swap => '.',
        c => c,
    });
    let name: String = swapped.take_while(|c| *c != '*').collect();
    let ipc = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    ];
    (name.starts_with("net."), ipc.contains(&name.as_str()) || name.starts_with("fs.mqueue."))
}

pub(super) fn of_container(checking: &mut Checking<'_>, context: &Node<'_>, pod: &Pod<'_>) {
    for key in ["runAsUser", "runAsGroup"] {
        checking.within(context, key, 0, MAX_ID);
    }
    if let Some(mount) = context.part("procMount") {
        checking.one_of(&mount, &["Default", "Unmasked"]);
        if mount.string() == "Unmasked" && pod.spec.bool("hostUsers") != Some(false) {
            checking.wrong(&mount, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(checking, &context.get("seccompProfile"));
    if context.bool("allowPrivilegeEscalation") == Some(false) {
        if context.is_true("privileged") {
            let text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            checking.invalid_shown(&context.path, &shown::security_context(context), text);
        }
        let added = context.get("capabilities");
        for _ in added.elements("add").iter().filter(|name| *name == "CAP_SYS_ADMIN") {
            let text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            checking.invalid_shown(&context.path, &shown::security_context(context), text);
        }
    }
    windows(checking, &context.get("windowsOptions"));
    app_armor(checking, &context.get("appArmorProfile"));
}

fn seccomp(checking: &mut Checking<'_>, profile: &Node<'_>) {
    if profile.value.is_null() {
        return;
    }
    let (kind, path) = (profile.get("type"), profile.part("localhostProfile"));
    if kind.string().is_empty() {
        checking.required(&kind.path, "type is required when seccompProfile is set");
    } else {
        checking.one_of(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
    match (kind.string(), path) {
        ("Localhost", None) => {
            let text = "must be set when seccomp type is Localhost";
            checking.required(profile.field("localhostProfile"), text);
        }
        ("Localhost", Some(path)) => paths::descending(checking, &path.path, path.string()),
        (_, Some(path)) => {
            let text = "can only be set when seccomp type is Localhost";
            checking.invalid_shown(path.path, &shown::seccomp(profile), text);
        }
        (_, None) => {}
    }
}

fn app_armor(checking: &mut Checking<'_>, profile: &Node<'_>) {
    if profile.value.is_null() {
        return;
    }
    let (kind, path) = (profile.get("type"), profile.part("localhostProfile"));
    let field = profile.field("localhostProfile");
    match (kind.string(), path) {
        ("Localhost", None) => checking.required(field, "must be set when AppArmor type is Localhost"),
        ("Localhost", Some(path)) => {
            let path = path.string();
            if path.trim() != path {
                checking.invalid(&field, path, "must not be padded with whitespace");
            } else if path.is_empty() {
                checking.required(&field, "must be set when AppArmor type is Localhost");
            }
            if path.len() > 4095 {
                checking.too_long(field, 4095);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(path)) => {
            checking.wrong(&path, "can only be set when AppArmor type is Localhost");
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => checking.required(kind.path, "type is required when appArmorProfile is set"),
        _ => checking.one_of(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

/// `validateWindowsSecurityContextOptions`.
fn windows(checking: &mut Checking<'_>, options: &Node<'_>) {
    if let Some(name) = options.part("gmsaCredentialSpecName") {
        formats::subdomain(checking, &name.path, name.string());
    }
    if let Some(spec) = options.part("gmsaCredentialSpec") {
        if spec.string().is_empty() {
            checking.wrong(&spec, "gmsaCredentialSpec cannot be an empty string");
        } else if spec.string().len() > 64 << 10 {
            checking.wrong(&spec, "gmsaCredentialSpec size must be under 64 KiB");
        }
    }
    let Some(name) = options.part("runAsUserName") else { return };
    let parts: Vec<_> = name.string().split('\\').collect();
    if name.string().is_empty() {
        checking.wrong(&name, "runAsUserName cannot be an empty string");
        return;
    }
    if name.string().chars().any(|c| c.is_ascii_control()) {
        checking.wrong(&name, "runAsUserName cannot contain control characters");
        return;
    }
    let (domain, user) = match parts[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => {
            checking.wrong(&name, "runAsUserName cannot contain more than one backslash");
            return;
        }
    };
    if domain.is_some_and(|domain| domain.len() >= 256) {
        checking.wrong(&name, "runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_domain(domain)) {
        checking.wrong(&name, "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        checking.wrong(&name, "runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        checking.wrong(&name, "runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        checking.wrong(&name, "runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        let text = "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]";
        checking.wrong(&name, text);
    }
}

fn is_domain(domain: &str) -> bool {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    let forms = [r#"^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$"#.to_owned(), format!(r"^{label}(?:\.{label})*$")];
    forms.iter().any(|form| Regex::new(form).is_ok_and(|regex| regex.is_match(domain)))
}

//! Rules that depend on the operating system of the nodes (`validateOS`, `validateLinux`, `validateWindows` and
//! `validateWindowsHostProcessPod` in `pkg/apis/core/validation/validation.go`).

use palisade_cel::Minor;

use super::{super::node::Node, Pod};
use crate::validation::Checking;

pub(super) fn check(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let Some(os) = pod.spec.part("os") else { return };
    match os.text("name") {
        "" => checking.required(os.field("name"), if checking.minor < Minor::V1_34 { "cannot be empty" } else { "" }),
        "linux" => linux(checking, pod),
        "windows" => windows(checking, pod),
        other => checking.unsupported(&os.path, other, &["linux", "windows"]),
    }
}

fn linux(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let contexts = pod.containers().map(|container| container.get("securityContext"));
    for context in std::iter::once(pod.spec.get("securityContext")).chain(contexts) {
        if context.has("windowsOptions") {
            checking.forbidden(context.field("windowsOptions"), "windows options cannot be set for a linux pod");
        }
    }
}

fn windows(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let forbid = |checking: &mut Checking<'_>, of: &Node<'_>, keys: &[&str]| {
        for key in keys {
            let value = of.get(key).value;
            // False, and an empty list of sysctls, are what nobody set.
            let unset = match *key {
                "hostPID" | "hostIPC" => value != true,
                "sysctls" => value.as_array().is_none_or(Vec::is_empty),
                _ => value.is_null(),
            };
            if !unset {
                checking.forbidden(of.field(key), "cannot be set for a windows pod");
            }
        }
    };
    let context = pod.spec.get("securityContext");
    forbid(checking, &context, &["appArmorProfile", "seLinuxOptions"]);
    forbid(checking, &pod.spec, &["hostUsers", "hostPID", "hostIPC"]);
    forbid(checking, &context, &["seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls"]);
    forbid(checking, &pod.spec, &["shareProcessNamespace"]);
    let rest = ["runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"];
    forbid(checking, &context, &rest);
    for container in pod.containers() {
        let keys = [
            "appArmorProfile",
            "seLinuxOptions",
            "seccompProfile",
            "capabilities",
            "readOnlyRootFilesystem",
            "privileged",
            "allowPrivilegeEscalation",
            "procMount",
            "runAsUser",
            "runAsGroup",
        ];
        forbid(checking, &container.get("securityContext"), &keys);
    }
}

/// Containers that are processes of the host: all or none of a pod.
pub(super) fn host_process(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    let of = |node: &Node<'_>| node.get("securityContext").get("windowsOptions").bool("hostProcess");
    let (whole, mut all, mut count) = (of(&pod.spec), 0, 0);
    for container in pod.containers() {
        all += 1;
        let own = of(&container);
        if let (Some(whole), Some(own)) = (whole, own)
            && whole != own
        {
            let text = format!("pod hostProcess value must be identical if both are specified, was {whole}");
            checking.invalid_value(container.field("securityContext.windowsOptions.hostProcess"), &own.into(), &text);
        }
        count += usize::from(own.or(whole) == Some(true));
    }
    if count == 0 {
        return;
    }
    if count != all {
        let text = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        checking.invalid(&pod.spec.path, "", text);
    }
    if !pod.spec.is_true("hostNetwork") {
        let text = "hostNetwork must be true if pod contains any hostProcess containers";
        checking.invalid_value(pod.spec.field("hostNetwork"), &false.into(), text);
    }
}

/// Namespaces of users exclude those of the host (`validateHostUsers`).
pub(super) fn host_users(checking: &mut Checking<'_>, pod: &Pod<'_>) {
    if pod.spec.bool("hostUsers") != Some(false) {
        return;
    }
    let text =
        if checking.minor >= Minor::V1_34 { "when `hostUsers` is false" } else { "when `pod.Spec.HostUsers` is false" };
    let network = super::super::super::gates::Gate::UserNamespacesHostNetworkSupport.is_on(checking.minor);
    for (key, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if pod.spec.is_true(key) && !(network && key == "hostNetwork") {
            checking.forbidden(pod.spec.field(shown), text);
        }
    }
    if checking.minor >= Minor::V1_34 {
        for container in pod.containers().filter(|container| !container.elements("volumeDevices").is_empty()) {
            checking.forbidden(container.field("volumeDevices"), text);
        }
    }
}

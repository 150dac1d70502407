//! All checks.
//!
//! To add a check: write its file and its fixtures, list it in [`ALL`] and give its setting a field and a row in a
//! group of [`settings`](crate::settings).

use serde_json::{Value as Json, json};

use crate::{
    Check, Flag, Lowering, Resolve, Values,
    settings::{Settings, WindowsRule},
};

pub mod allow_privilege_escalation;
pub mod app_armor_profile;
pub mod automount_service_account_token;
pub mod capabilities;
pub mod csi_drivers;
pub mod flex_volumes;
pub mod fs_group;
pub mod host_aliases;
pub mod host_namespaces;
pub mod host_path_volumes;
pub mod host_ports;
pub mod host_probes_and_host_lifecycle;
pub mod image_registries;
pub mod mount_propagation;
pub mod node_name;
pub mod node_selector;
pub mod priority_classes;
pub mod privileged;
pub mod proc_mount;
pub mod read_only_root_filesystem;
pub mod restricted_volumes;
pub mod run_as_group;
pub mod run_as_non_root;
pub mod run_as_user;
pub mod runtime_classes;
pub mod schedulers;
pub mod se_linux_options;
pub mod seccomp_profile;
pub mod service_account_tokens;
pub mod service_accounts;
pub mod share_process_namespace;
pub mod supplemental_groups;
pub mod supplemental_groups_policy;
pub mod sysctls;
pub mod tolerations;
pub mod windows_host_process;

/// Every check, in the order in which violations are reported.
pub static ALL: &[&Check] = &[
    &privileged::CHECK,
    &windows_host_process::CHECK,
    &host_namespaces::CHECK,
    &allow_privilege_escalation::CHECK,
    &capabilities::CHECK,
    &run_as_non_root::CHECK,
    &run_as_user::CHECK,
    &run_as_group::CHECK,
    &fs_group::CHECK,
    &supplemental_groups::CHECK,
    &supplemental_groups_policy::CHECK,
    &seccomp_profile::CHECK,
    &app_armor_profile::CHECK,
    &se_linux_options::CHECK,
    &proc_mount::CHECK,
    &sysctls::CHECK,
    &read_only_root_filesystem::CHECK,
    &share_process_namespace::CHECK,
    &host_ports::CHECK,
    &host_probes_and_host_lifecycle::CHECK,
    &host_aliases::CHECK,
    &restricted_volumes::CHECK,
    &host_path_volumes::CHECK,
    &csi_drivers::CHECK,
    &flex_volumes::CHECK,
    &mount_propagation::CHECK,
    &automount_service_account_token::CHECK,
    &service_account_tokens::CHECK,
    &runtime_classes::CHECK,
    &priority_classes::CHECK,
    &schedulers::CHECK,
    &node_name::CHECK,
    &node_selector::CHECK,
    &tolerations::CHECK,
    &image_registries::CHECK,
    // Last: the violating pod of a profile violates this check if it can, so it names a service account that exists in
    // every namespace.
    &service_accounts::CHECK,
];

/// `violated`, but not by a pod for Windows where such pods are exempt.
fn unless_windows(settings: &Settings, violated: &str) -> String {
    match settings.privileges.windows {
        Some(WindowsRule::Exempt) => format!("variables.spec.?os.?name.orValue('') != 'windows' && {violated}"),
        Some(WindowsRule::Check) | None => violated.to_owned(),
    }
}

/// `violated`, but not by a pod in a user namespace of its own where the flag at `path` frees such pods.
fn unless_user_namespace(cx: &mut Lowering<'_>, path: &str, relax: Option<&Flag>, violated: &str) -> String {
    let of_node = "variables.spec.?hostUsers.orValue(true)";
    match relax.map(|relax| cx.flag(path, relax)) {
        None | Some(Ok(false)) => violated.to_owned(),
        Some(Ok(true)) => format!("{of_node} && {violated}"),
        Some(Err(differs)) => format!("(!{differs} || {of_node}) && {violated}"),
    }
}

/// Whether a pod is in a user namespace of its own, and the flag frees such pods in a namespace.
fn is_relaxed(relax: Option<&Flag>, values: &Values, pod: &Json) -> bool {
    relax.is_some_and(|relax| relax.resolve(values)) && pod["spec"]["hostUsers"] == json!(false)
}

//! All checks.
//!
//! To add a check: write its file and its fixtures, list it in [`ALL`] and give its setting a field and a row in a
//! group of [`settings`](crate::settings).

use crate::Check;

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings;

    #[test]
    fn settings_read_by_checks_match_the_setting_rows() {
        let of_objects = crate::objects::ALL.iter().flat_map(|check| check.settings);
        let read: BTreeSet<_> = ALL.iter().flat_map(|check| check.settings).chain(of_objects).copied().collect();
        assert_eq!(read, settings::all().map(|setting| setting.path).collect());
    }
}

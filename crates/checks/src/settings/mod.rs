//! The settings of a profile that checks read: the schema of each group of `spec` in a file of its name, what an absent
//! setting means ([`standard`]), and which level a profile implies ([`implied`]).

use serde::{Deserialize, Serialize};

use crate::Text;

mod host;
mod identity;
pub(crate) mod ids;
mod images;
mod implied;
pub mod mutation;
mod privileges;
pub(crate) mod profiles;
pub(crate) mod ranges;
pub mod redirect;
mod scheduling;
pub mod standard;
mod users;
mod volumes;

pub use host::Host;
pub use identity::{Identity, TokenRules};
pub use ids::{GroupRule, GroupRules, UserRule, UserRules};
pub use images::Images;
pub use implied::{Implied, implied};
pub use privileges::{Privileges, WindowsRule};
pub use ranges::Range;
pub use scheduling::{AllowedToleration, NodeLabel, Scheduling, TaintEffect, TolerationOperator};
pub use users::Users;
pub use volumes::Volumes;
pub(crate) use volumes::{kind_allowed, kind_refused};

/// The settings of all checks, in the groups of a profile's `spec`. A check whose setting is `None` is off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// `spec.users`
    pub users: Users,
    /// `spec.privileges`
    pub privileges: Privileges,
    /// `spec.host`
    pub host: Host,
    /// `spec.volumes`
    pub volumes: Volumes,
    /// `spec.identity`
    pub identity: Identity,
    /// `spec.scheduling`
    pub scheduling: Scheduling,
    /// `spec.images`
    pub images: Images,
    /// `spec.mutation`
    #[serde(skip_serializing_if = "mutation::Mutation::is_default")]
    pub mutation: mutation::Mutation,
}

impl Settings {
    /// These settings, with those of `seed` where they say nothing.
    #[must_use]
    pub fn or(self, seed: Self) -> Self {
        // Destructured without `..`, so that a new setting fails to compile here instead of losing its seed.
        let Users {
            run_as_user,
            run_as_group,
            fs_group,
            supplemental_groups,
            supplemental_groups_policy,
            require_run_as_non_root,
            relax_for_user_namespaces,
        } = self.users;
        let Privileges {
            privileged,
            allow_privilege_escalation,
            capabilities,
            proc_mount,
            unmasked_in_user_namespaces,
            seccomp,
            app_armor,
            se_linux,
            sysctls,
            windows_host_process,
            windows,
            read_only_root_filesystem,
            share_process_namespace,
        } = self.privileges;
        let Host { network, pid, ipc, ports, probe_hosts, aliases } = self.host;
        let Volumes { allowed, host_paths, csi_drivers, flex_volumes, mount_propagation, recursive_read_only } =
            self.volumes;
        let Identity { service_accounts, automount_service_account_token, service_account_tokens } = self.identity;
        let Scheduling { runtime_classes, priority_classes, schedulers, node_name, node_selector, tolerations } =
            self.scheduling;
        let Images { allowed_registries, redirect } = self.images;
        Self {
            users: Users {
                run_as_user: run_as_user.or(seed.users.run_as_user),
                run_as_group: run_as_group.or(seed.users.run_as_group),
                fs_group: fs_group.or(seed.users.fs_group),
                supplemental_groups: supplemental_groups.or(seed.users.supplemental_groups),
                supplemental_groups_policy: supplemental_groups_policy.or(seed.users.supplemental_groups_policy),
                require_run_as_non_root: require_run_as_non_root.or(seed.users.require_run_as_non_root),
                relax_for_user_namespaces: relax_for_user_namespaces.or(seed.users.relax_for_user_namespaces),
            },
            privileges: Privileges {
                privileged: privileged.or(seed.privileges.privileged),
                allow_privilege_escalation: allow_privilege_escalation.or(seed.privileges.allow_privilege_escalation),
                capabilities: capabilities.or(seed.privileges.capabilities),
                proc_mount: proc_mount.or(seed.privileges.proc_mount),
                unmasked_in_user_namespaces: unmasked_in_user_namespaces
                    .or(seed.privileges.unmasked_in_user_namespaces),
                seccomp: seccomp.or(seed.privileges.seccomp),
                app_armor: app_armor.or(seed.privileges.app_armor),
                se_linux: se_linux.or(seed.privileges.se_linux),
                sysctls: sysctls.or(seed.privileges.sysctls),
                windows_host_process: windows_host_process.or(seed.privileges.windows_host_process),
                windows: windows.or(seed.privileges.windows),
                read_only_root_filesystem: read_only_root_filesystem.or(seed.privileges.read_only_root_filesystem),
                share_process_namespace: share_process_namespace.or(seed.privileges.share_process_namespace),
            },
            host: Host {
                network: network.or(seed.host.network),
                pid: pid.or(seed.host.pid),
                ipc: ipc.or(seed.host.ipc),
                ports: ports.or(seed.host.ports),
                probe_hosts: probe_hosts.or(seed.host.probe_hosts),
                aliases: aliases.or(seed.host.aliases),
            },
            volumes: Volumes {
                allowed: allowed.or(seed.volumes.allowed),
                host_paths: host_paths.or(seed.volumes.host_paths),
                csi_drivers: csi_drivers.or(seed.volumes.csi_drivers),
                flex_volumes: flex_volumes.or(seed.volumes.flex_volumes),
                mount_propagation: mount_propagation.or(seed.volumes.mount_propagation),
                recursive_read_only: recursive_read_only.or(seed.volumes.recursive_read_only),
            },
            identity: Identity {
                service_accounts: service_accounts.or(seed.identity.service_accounts),
                automount_service_account_token: automount_service_account_token
                    .or(seed.identity.automount_service_account_token),
                service_account_tokens: service_account_tokens.or(seed.identity.service_account_tokens),
            },
            scheduling: Scheduling {
                runtime_classes: runtime_classes.or(seed.scheduling.runtime_classes),
                priority_classes: priority_classes.or(seed.scheduling.priority_classes),
                schedulers: schedulers.or(seed.scheduling.schedulers),
                node_name: node_name.or(seed.scheduling.node_name),
                node_selector: node_selector.or(seed.scheduling.node_selector),
                tolerations: tolerations.or(seed.scheduling.tolerations),
            },
            images: Images {
                allowed_registries: allowed_registries.or(seed.images.allowed_registries),
                redirect: redirect.or(seed.images.redirect),
            },
            // No standard says what is defaulted.
            mutation: self.mutation,
        }
    }
}

/// Whether a list of texts says `*`: anything.
pub(crate) fn any(texts: &[Text]) -> bool {
    texts.iter().any(|text| text.0 == "*")
}

//! The Pod Security Standards, level by level and version by version, as settings.

use super::{
    AppArmor, Capabilities, Host, Privileges, SeLinux, Seccomp, Settings, Sysctls, UserRule, UserRules, Users, Volumes,
    WindowsRule,
    standard::{self, Level, Version},
};

impl Settings {
    /// The values of unset settings: the requirements of a level of the Pod Security Standards in a version. Settings
    /// that the level does not cover are not restricted.
    pub fn seed(level: Level, version: Version) -> Self {
        if level == Level::Privileged {
            return Self::default();
        }
        let since = |minor: u8| version.minor() >= minor;
        let restricted = |minor: u8| level == Level::Restricted && since(minor);
        Self {
            users: Users {
                run_as_user: restricted(23).then(|| UserRules { rule: UserRule::MustRunAsNonRoot, ranges: vec![] }),
                require_run_as_non_root: restricted(0).then(|| true.into()),
                relax_for_user_namespaces: since(35).then(|| true.into()),
                ..Users::default()
            },
            privileges: Privileges {
                privileged: Some(false.into()),
                allow_privilege_escalation: restricted(8).then(|| false.into()),
                capabilities: Some(if restricted(22) {
                    Capabilities::default()
                } else {
                    let allowed_add = standard::baseline_capabilities(version);
                    Capabilities { allowed_add, required_drop: vec![], default_add: vec![] }
                }),
                proc_mount: Some(vec!["Default".into()]),
                unmasked_in_user_namespaces: (level == Level::Baseline && since(35)).then(|| true.into()),
                seccomp: Some(Seccomp {
                    required: restricted(19).into(),
                    annotations: (!since(19)).into(),
                    ..Seccomp::default()
                }),
                app_armor: Some(AppArmor::default()),
                se_linux: Some(SeLinux { types: standard::se_linux_types(version), ..SeLinux::default() }),
                sysctls: Some(Sysctls { allowed: standard::sysctls(version), forbidden: vec![] }),
                windows_host_process: Some(false.into()),
                windows: since(25).then_some(WindowsRule::Exempt),
                ..Privileges::default()
            },
            host: Host {
                network: Some(false.into()),
                pid: Some(false.into()),
                ipc: Some(false.into()),
                ports: Some(vec![]),
                probe_hosts: since(34).then(|| false.into()),
                ..Host::default()
            },
            volumes: Volumes {
                allowed: restricted(0).then(|| standard::RESTRICTED_VOLUMES.iter().map(|&kind| kind.into()).collect()),
                host_paths: Some(vec![]),
                ..Volumes::default()
            },
            ..Self::default()
        }
    }
}

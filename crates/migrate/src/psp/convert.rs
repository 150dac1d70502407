//! From a `PodSecurityPolicy` to settings: by what the admission plugin did, not by names.
//!
//! The plugin mutated a pod first and judged it then. A setting judges the pod after `spec.mutation` has set the
//! defaults that checks demand. So if the plugin defaulted a value, the setting demands it, and `spec.mutation`
//! defaults the same value; if no engine does that, the pod is denied.

use palisade_api::{
    Diagnostic, Level, Settings,
    settings::{
        Capabilities, Host, Privileges, Scheduling, SeLinux, Sysctls, Users, Volumes, WindowsRule,
        mutation::{AdditionalDefault, Defaults, Mutation},
        standard::Version,
    },
};
use palisade_checks::Text;
use serde_json::{Value as Json, json};

use super::{
    PodSecurityPolicy, PodSecurityPolicySpec, ProcMount, RuntimeClassStrategy, SeLinuxOptions, SeLinuxRule,
    SeLinuxStrategy, annotations,
    findings::Findings,
    ids::{extra_group, ports, primary_group, user},
    lists::{self, text, texts},
    volumes::{drivers, host_paths, volumes},
};
use crate::note::{FieldDefault, Kind, Note};

/// A `PodSecurityPolicy` as settings on top of the level Privileged, and the differences.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The settings; absent ones restrict nothing.
    pub settings: Settings,
    /// Notes on fields that are not carried over one to one, or that are worth knowing.
    pub notes: Vec<Note>,
}

/// Converts a policy.
///
/// # Errors
/// Fields that no API server would have accepted, or that make the policy admit no pod at all, each with its path.
pub fn convert(psp: &PodSecurityPolicy) -> Result<Converted, Vec<Diagnostic>> {
    let mut found = Findings::default();
    // Without `..`: a forgotten field fails to compile.
    let PodSecurityPolicySpec {
        privileged,
        default_add_capabilities,
        required_drop_capabilities,
        allowed_capabilities,
        volumes: kinds,
        host_network,
        host_ports,
        host_pid,
        host_ipc,
        se_linux,
        run_as_user,
        run_as_group,
        supplemental_groups,
        fs_group,
        read_only_root_filesystem,
        default_allow_privilege_escalation,
        allow_privilege_escalation,
        allowed_host_paths,
        allowed_flex_volumes,
        allowed_csi_drivers,
        allowed_unsafe_sysctls,
        forbidden_sysctls,
        allowed_proc_mount_types,
        runtime_class,
    } = &psp.spec;
    if psp.api_version == "policy/v1" {
        found.note(Kind::Note, "apiVersion", "this kind does not exist in policy/v1; it is read as policy/v1beta1");
    }
    let annotations = annotations::Annotations::of(psp, &mut found);
    let (user, non_root) = user(run_as_user, &mut found);
    let flex: Vec<_> = allowed_flex_volumes.iter().map(|allowed| allowed.driver.as_str()).collect();
    let csi: Vec<_> = allowed_csi_drivers.iter().map(|allowed| allowed.name.as_str()).collect();
    let volumes = Volumes {
        allowed: volumes(kinds, &mut found),
        host_paths: host_paths(allowed_host_paths, kinds, &mut found),
        csi_drivers: drivers(&csi, "spec.allowedCSIDrivers", "name", "csi", kinds, &mut found),
        flex_volumes: drivers(&flex, "spec.allowedFlexVolumes", "driver", "flexVolume", kinds, &mut found),
        ..Volumes::default()
    };
    let users = Users {
        run_as_user: user,
        run_as_group: run_as_group.as_ref().and_then(|group| primary_group(group, &mut found)),
        fs_group: extra_group("fsGroup", fs_group, &mut found),
        supplemental_groups: extra_group("supplementalGroups", supplemental_groups, &mut found),
        require_run_as_non_root: non_root.then(|| true.into()),
        ..Users::default()
    };
    let may_escalate = escalation(*allow_privilege_escalation, *default_allow_privilege_escalation, &mut found);
    let capabilities =
        capabilities(allowed_capabilities, default_add_capabilities, required_drop_capabilities, &mut found);
    let windows_cannot_say = !may_escalate
        || capabilities.as_ref().is_some_and(|capabilities| !capabilities.required_drop.is_empty())
        || annotations.seccomp.as_ref().is_some_and(|seccomp| seccomp.required == true.into());
    let privileges = Privileges {
        privileged: (!privileged).then(|| false.into()),
        allow_privilege_escalation: (!may_escalate).then(|| false.into()),
        capabilities,
        proc_mount: proc_mount(allowed_proc_mount_types),
        seccomp: annotations.seccomp,
        app_armor: annotations.app_armor,
        se_linux: se_linux_options(se_linux, &mut found),
        sysctls: sysctls(allowed_unsafe_sysctls, forbidden_sysctls, &mut found),
        windows: windows_cannot_say.then_some(WindowsRule::Exempt),
        read_only_root_filesystem: read_only_root(*read_only_root_filesystem, &mut found),
        ..Privileges::default()
    };
    let host = Host {
        network: (!host_network).then(|| false.into()),
        pid: (!host_pid).then(|| false.into()),
        ipc: (!host_ipc).then(|| false.into()),
        ports: ports(host_ports, &mut found),
        ..Host::default()
    };
    let scheduling = Scheduling {
        runtime_classes: runtime_class.as_ref().and_then(|strategy| runtime_classes(strategy, &mut found)),
        ..Scheduling::default()
    };
    let only_by_default = may_escalate && *default_allow_privilege_escalation == Some(false);
    let mutation = Mutation {
        defaults: Defaults::Secure,
        additional_defaults: only_by_default
            .then_some(AdditionalDefault::AllowPrivilegeEscalation)
            .into_iter()
            .collect(),
        ..Mutation::default()
    };
    let settings = Settings { users, privileges, host, volumes, scheduling, mutation, ..Settings::default() };
    if found.mistakes.is_empty() { Ok(Converted { settings, notes: found.notes }) } else { Err(found.mistakes) }
}

/// Whether containers may gain privileges.
fn escalation(allowed: Option<bool>, default: Option<bool>, found: &mut Findings) -> bool {
    const FIELD: [&str; 2] = ["securityContext", "allowPrivilegeEscalation"];
    let path = "spec.defaultAllowPrivilegeEscalation";
    match (allowed.unwrap_or(true), default) {
        (false, Some(true)) => found.mistake(
            path,
            "is true although allowPrivilegeEscalation is false: every pod that left it unset was denied",
            "remove one of the two: no API server accepts both",
        ),
        (false, _) => found.defaulted(
            Kind::Defaulted,
            "spec.allowPrivilegeEscalation",
            "containers that leave it unset get false, as before",
            FieldDefault::containers(&FIELD, false),
        ),
        (true, Some(false)) => found.defaulted(
            Kind::Defaulted,
            path,
            "containers that leave it unset get false, as before",
            FieldDefault::containers(&FIELD, false),
        ),
        (true, Some(true)) => found.note(Kind::Note, path, "is the default of Kubernetes, and is omitted"),
        (true, None) => {}
    }
    allowed.unwrap_or(true)
}

fn capabilities(
    allowed: &[String],
    default_add: &[String],
    required_drop: &[String],
    found: &mut Findings,
) -> Option<Capabilities> {
    const ADD: [&str; 3] = ["securityContext", "capabilities", "add"];
    const DROP: [&str; 3] = ["securityContext", "capabilities", "drop"];
    let any = allowed.iter().any(|name| name == "*");
    for (field, names) in [("allowedCapabilities", allowed), ("defaultAddCapabilities", default_add)] {
        for (index, name) in names.iter().enumerate() {
            if required_drop.contains(name) || (name == "*" && !required_drop.is_empty()) {
                found.mistake(
                    format!("spec.{field}[{index}]"),
                    format!("{name} cannot be allowed, because requiredDropCapabilities removes it"),
                    "remove one of the two: no API server accepts both",
                );
            }
        }
    }
    let allowed_add = unprefixed("allowedCapabilities", allowed, found);
    let default_add = unprefixed("defaultAddCapabilities", default_add, found);
    let mut drop = Vec::new();
    for (index, name) in required_drop.iter().enumerate() {
        let short = name.strip_prefix("CAP_").unwrap_or(name);
        if short != name {
            let path = format!("spec.requiredDropCapabilities[{index}]");
            found.note(
                Kind::Stricter,
                path,
                format!(
                    "{name} is converted to {short}, and must be dropped by that \
                                                      name"
                ),
            );
        }
        drop.push(short);
    }
    if !drop.is_empty() {
        found.defaulted(
            Kind::Stricter,
            "spec.requiredDropCapabilities",
            "containers that drop none have these dropped, as before; containers that drop only others had these \
             dropped, too, and are now denied (dropping ALL is enough)",
            FieldDefault::containers(&DROP, json!(drop)),
        );
    }
    if !default_add.is_empty() {
        found.defaulted(
            Kind::Default,
            "spec.defaultAddCapabilities",
            "containers that add none, and drop none of these, get them, as before; containers that add or drop some \
             got the rest, too, and no longer get them",
            FieldDefault::containers(&ADD, json!(default_add)),
        );
    }
    // A check that allows every container everything is not worth a line.
    let restricts = !any || !drop.is_empty();
    restricts.then(|| Capabilities {
        allowed_add: texts(&allowed_add),
        required_drop: texts(&drop),
        default_add: texts(&default_add),
    })
}

/// The names of capabilities that exist: with `CAP_` a container asks for something that does not.
fn unprefixed<'a>(field: &str, names: &'a [String], found: &mut Findings) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match name.strip_prefix("CAP_") {
            None => kept.push(name.as_str()),
            Some(short) => found.note(
                Kind::Stricter,
                format!("spec.{field}[{index}]"),
                format!(
                    "{name} is omitted: names must not begin with CAP_, so it applied only to containers that wrote \
                     {name}. If {short} was meant, add it to privileges.capabilities.allowedAdd"
                ),
            ),
        }
    }
    kept
}

fn proc_mount(allowed: &[ProcMount]) -> Option<Vec<Text>> {
    if allowed.is_empty() {
        return Some(vec!["Default".into()]);
    }
    let all = [ProcMount::Default, ProcMount::Unmasked].iter().all(|value| allowed.contains(value));
    (!all).then(|| texts(&allowed.iter().map(ProcMount::to_string).collect::<Vec<_>>()))
}

fn se_linux_options(strategy: &SeLinuxStrategy, found: &mut Findings) -> Option<SeLinux> {
    let options = match (strategy.rule, &strategy.se_linux_options) {
        (SeLinuxRule::MustRunAs, Some(options)) => options,
        (SeLinuxRule::MustRunAs, None) => {
            found.mistake(
                "spec.seLinux",
                "has no seLinuxOptions, so the policy admitted no pod",
                "add the intended label, or remove this policy",
            );
            return None;
        }
        (SeLinuxRule::RunAsAny, options) => {
            if options.is_some() {
                found.note(Kind::Note, "spec.seLinux.seLinuxOptions", "had no effect with this rule, and is omitted");
            }
            return None;
        }
    };
    let SeLinuxOptions { user, role, type_, level } = options;
    let parts = [("user", user), ("role", role), ("type", type_), ("level", level)];
    let label: serde_json::Map<String, Json> = parts
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(part, value)| ((*part).to_owned(), json!(value)))
        .collect();
    if !label.is_empty() {
        found.defaulted(
            Kind::Defaulted,
            "spec.seLinux",
            "pods and containers without a label get this one, as before",
            FieldDefault::pod(&["securityContext", "seLinuxOptions"], Json::Object(label)),
        );
    }
    let (levels, complete) = lists::levels(level);
    if !complete {
        found.note(
            Kind::Stricter,
            "spec.seLinux.seLinuxOptions.level",
            "the categories must now be in this order; before, any order was accepted",
        );
    }
    let part = |value: &str| if value.is_empty() { vec![] } else { vec![text(value)] };
    Some(SeLinux {
        types: part(type_),
        users: part(user),
        roles: part(role),
        levels: levels.iter().map(|level| text(level)).collect(),
        required: true.into(),
    })
}

/// The safe sysctls of Kubernetes 1.24, the last version with `PodSecurityPolicy`, and those that it allows in
/// addition.
fn sysctls(unsafe_ones: &[String], forbidden: &[String], found: &mut Findings) -> Option<Sysctls> {
    for (field, names) in [("allowedUnsafeSysctls", unsafe_ones), ("forbiddenSysctls", forbidden)] {
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() || name[..name.len() - 1].contains('*') {
                let path = format!("spec.{field}[{index}]");
                found.mistake(
                    path,
                    format!("{name:?} is not a valid sysctl name"),
                    "* is allowed only at the end of a name",
                );
            }
        }
    }
    if unsafe_ones.iter().any(|name| name == "*") {
        return (!forbidden.is_empty()).then(|| Sysctls { allowed: vec!["*".into()], forbidden: texts(forbidden) });
    }
    let safe = Settings::seed(Level::Baseline, Version::Minor(24)).privileges.sysctls;
    let mut allowed = safe.map(|safe| safe.allowed).unwrap_or_default();
    allowed.extend(texts(unsafe_ones));
    Some(Sysctls { allowed, forbidden: texts(forbidden) })
}

fn read_only_root(required: bool, found: &mut Findings) -> Option<palisade_checks::Flag> {
    if !required {
        return None;
    }
    found.defaulted(
        Kind::Defaulted,
        "spec.readOnlyRootFilesystem",
        "containers that leave it unset get true, as before",
        FieldDefault::containers(&["securityContext", "readOnlyRootFilesystem"], true),
    );
    Some(true.into())
}

fn runtime_classes(strategy: &RuntimeClassStrategy, found: &mut Findings) -> Option<Vec<Text>> {
    let path = "spec.runtimeClass";
    let RuntimeClassStrategy { allowed_runtime_class_names: names, default_runtime_class_name: default } = strategy;
    let any = names.iter().any(|name| name == "*");
    let Some(default) = default.as_ref().filter(|default| !default.is_empty()) else {
        if any {
            return None;
        }
        // A pod may always name none.
        return Some(std::iter::once(String::new()).chain(names.iter().cloned()).map(|name| text(&name)).collect());
    };
    let field_default = FieldDefault::pod(&["runtimeClassName"], default.clone());
    let path = format!("{path}.defaultRuntimeClassName");
    if any {
        found.defaulted(
            Kind::Looser,
            &path,
            format!("pods without a class ran in {default}, and now run in the node's default runtime"),
            field_default,
        );
        return None;
    }
    if !names.contains(default) {
        found.mistake(
            path.as_str(),
            format!("{default} is not in allowedRuntimeClassNames, so every pod without a class was denied"),
            "add it to that list",
        );
    }
    found.defaulted(
        Kind::Stricter,
        &path,
        format!("pods without a class got {default}, and are now denied"),
        field_default,
    );
    Some(texts(names))
}

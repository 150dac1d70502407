//! What makes settings stricter: written from what the settings mean, and not from how they are compiled.
//!
//! Each step asks for no less than there was. Its argument says which of several possible ones it is.

use std::fmt;

use palisade_api::{
    Settings,
    settings::{
        self, AllowedConnection, AllowedToleration, AnnotationKeys, AppArmor, At, Capabilities, ConnectionResource,
        GroupRule, GroupRules, HostPath, Kind, NodeLabel, Range, SeLinux, Seccomp, SupplementalGroupsPolicy, Sysctls,
        TaintEffect, TokenRules, TolerationOperator, UserRule, UserRules, WindowsRule,
    },
};
use palisade_checks::{Flag, Integer, Text};
use proptest::sample::Index;

use crate::properties::{
    access::{COMMANDS, GROUPS},
    settings::{
        ADD, ANNOTATIONS, AUDIENCES, DROP, NODE_LABELS, PATHS, PROFILE_TYPES, PROFILES, Pool, SE_LINUX_LEVELS,
        SE_LINUX_NAMES, SE_LINUX_TYPES, SYSCTLS, TAINTS, pool,
    },
};

/// A way to make settings stricter: of which setting, and how.
pub(crate) type Step = (&'static str, How);

/// How a setting becomes stricter.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// What may be, no longer may; or what need not be, must.
    Say(At<Flag>, bool),
    /// What may be becomes less.
    Narrow(At<Vec<Text>>, Pool, usize),
    /// In a way of its own.
    Own(Tighten),
}

impl fmt::Debug for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step")
    }
}

impl How {
    /// Makes the settings stricter.
    pub(crate) fn apply(self, settings: &mut Settings, at: Index) {
        match self {
            Self::Say(of, flag) => *(of.get_mut)(settings) = Some(Flag::Constant(flag)),
            Self::Narrow(of, pool, least) => {
                narrow((of.get_mut)(settings).get_or_insert_with(anything), pool, least, at);
            }
            Self::Own(step) => step(settings, at),
        }
    }
}

/// Every way, at least one for each setting.
pub(crate) fn steps() -> Vec<Step> {
    let mut steps: Vec<_> = SPECIAL_STEPS.iter().map(|&(path, step)| (path, How::Own(step))).collect();
    for setting in settings::all() {
        let how = match setting.kind {
            Kind::Allowance(at) | Kind::Relaxation(at) => How::Say(at, false),
            Kind::Demand(at) => How::Say(at, true),
            Kind::Texts(at) => {
                let (pool, least) = pool(setting.path);
                How::Narrow(at, pool, least)
            }
            Kind::Other(_) => {
                let is_there = SPECIAL_STEPS.iter().any(|(path, _)| *path == setting.path);
                assert!(is_there, "SPECIAL_STEPS in crates/gate/tests/properties/tighten.rs has no {}", setting.path);
                continue;
            }
            Kind::Change(_) => continue,
        };
        steps.push((setting.path, how));
    }
    steps
}

/// Makes a setting stricter, at an index in what it lists.
type Tighten = fn(&mut Settings, Index);

/// Ways that the kind of a setting does not say.
const SPECIAL_STEPS: &[(&str, Tighten)] = &[
    ("privileges.windows", |s, _| s.privileges.windows = Some(WindowsRule::Check)),
    ("users.supplementalGroupsPolicy", |s, _| {
        s.users.supplemental_groups_policy = Some(SupplementalGroupsPolicy::Strict);
    }),
    ("privileges.seccomp", |s, _| seccomp(s).required = true.into()),
    ("privileges.seccomp", |s, _| seccomp(s).annotations = true.into()),
    ("privileges.seLinux", |s, _| se_linux(s).required = true.into()),
    // Lists of what is allowed become shorter.
    ("privileges.capabilities", |s, at| narrow(&mut capabilities(s).allowed_add, ADD, 0, at)),
    ("privileges.capabilities", |s, at| drop(remove(&mut capabilities(s).default_add, 0, at))),
    ("privileges.capabilities", |s, at| capabilities(s).required_drop.push((*at.get(DROP)).into())),
    ("privileges.seccomp", |s, at| narrow(&mut seccomp(s).allowed, PROFILE_TYPES, 1, at)),
    ("privileges.seccomp", |s, at| narrow(&mut seccomp(s).localhost_profiles, PROFILES, 0, at)),
    ("privileges.appArmor", |s, at| narrow(&mut app_armor(s).allowed, PROFILE_TYPES, 0, at)),
    ("privileges.appArmor", |s, at| narrow(&mut app_armor(s).localhost_profiles, PROFILES, 0, at)),
    ("privileges.seLinux", |s, at| narrow_part(s, |of| &mut of.types, SE_LINUX_TYPES, at)),
    ("privileges.seLinux", |s, at| narrow_part(s, |of| &mut of.users, SE_LINUX_NAMES, at)),
    ("privileges.seLinux", |s, at| narrow_part(s, |of| &mut of.roles, SE_LINUX_NAMES, at)),
    ("privileges.seLinux", |s, at| narrow_part(s, |of| &mut of.levels, SE_LINUX_LEVELS, at)),
    ("privileges.sysctls", |s, at| narrow(&mut sysctls(s).allowed, SYSCTLS, 0, at)),
    ("privileges.sysctls", |s, at| shorten_wildcard(&mut sysctls(s).allowed, at)),
    ("privileges.sysctls", |s, at| sysctls(s).forbidden.push((*at.get(SYSCTLS)).into())),
    ("identity.serviceAccountTokens", |s, at| narrow(&mut tokens(s).audiences, AUDIENCES, 0, at)),
    ("identity.serviceAccountTokens", |s, at| {
        let most = &mut tokens(s).max_expiration_seconds;
        *most = Some(match most {
            Some(Integer::Constant(most)) => Integer::Constant((*most / 2).max(600)),
            _ => Integer::Constant(*at.get(&[600, 3600])),
        });
    }),
    ("scheduling.nodeSelector", |s, at| narrow_node_selector(s.scheduling.node_selector.get_or_insert_default(), at)),
    ("scheduling.tolerations", |s, at| narrow_tolerations(&mut s.scheduling.tolerations, at)),
    ("images.allowedRegistries", |s, at| go_below(s.images.allowed_registries.iter_mut().flatten(), at)),
    ("volumes.hostPaths", |s, at| drop(remove(host_paths(s), 0, at))),
    ("volumes.hostPaths", |s, at| {
        if let Some(path) = pick(host_paths(s), at) {
            path.read_only = true.into();
        }
    }),
    ("volumes.hostPaths", |s, at| go_below(host_paths(s).iter_mut().map(|path| &mut path.path_prefix), at)),
    // Ranges of numbers become smaller.
    ("host.ports", |s, at| narrow_ranges(s.host.ports.get_or_insert_with(|| vec![range(0, 65535)]), 0, at)),
    ("network.allowedNodePorts", |s, at| {
        narrow_ranges(s.network.allowed_node_ports.get_or_insert_with(|| vec![range(0, 65535)]), 0, at);
    }),
    ("access.maxTokenExpirationSeconds", |s, at| {
        let most = &mut s.access.max_token_expiration_seconds;
        *most = Some(match most {
            Some(Integer::Constant(most)) => Integer::Constant((*most / 2).max(600)),
            _ => Integer::Constant(*at.get(&[600, 3600])),
        });
    }),
    ("access.allowedConnections", |s, at| narrow_connections(&mut s.access.allowed_connections, at)),
    ("network.deniedPolicyCIDRs", |s, at| {
        s.network.denied_policy_cidrs.get_or_insert_default().push((*at.get(&["10.0.0.0/8", "fd00::/8"])).into());
    }),
    ("network.annotations", |s, at| annotations(s).denied.push((*at.get(ANNOTATIONS)).into())),
    ("network.annotations", |s, at| narrow(&mut annotations(s).allowed, ANNOTATIONS, 0, at)),
    ("metadata.rules", |s, at| {
        if let Some(rule) = pick(s.metadata.rules.get_or_insert_default(), at) {
            narrow(rule.allowed_labels.get_or_insert_with(anything), ANNOTATIONS, 0, at);
            rule.labels.iter_mut().for_each(|key| key.required = true);
        }
    }),
    ("storage.maxRequest", |s, _| s.storage.max_request = Some("1".into())),
    ("users.runAsUser", |s, at| tighten_user(&mut s.users.run_as_user, at)),
    ("users.runAsGroup", |s, at| tighten_group(&mut s.users.run_as_group, at)),
    ("users.fsGroup", |s, at| tighten_group(&mut s.users.fs_group, at)),
    ("users.supplementalGroups", |s, at| tighten_group(&mut s.users.supplemental_groups, at)),
];

fn anything() -> Vec<Text> {
    vec!["*".into()]
}

// A group of settings that is absent allows everything. These write that down, for a step to begin with.

fn capabilities(s: &mut Settings) -> &mut Capabilities {
    let all = || Capabilities { allowed_add: anything(), required_drop: vec![], default_add: vec![] };
    s.privileges.capabilities.get_or_insert_with(all)
}

fn seccomp(s: &mut Settings) -> &mut Seccomp {
    s.privileges.seccomp.get_or_insert_with(|| Seccomp {
        allowed: anything(),
        localhost_profiles: anything(),
        required: false.into(),
        annotations: false.into(),
    })
}

fn app_armor(s: &mut Settings) -> &mut AppArmor {
    let all = || AppArmor { allowed: anything(), localhost_profiles: anything() };
    s.privileges.app_armor.get_or_insert_with(all)
}

fn se_linux(s: &mut Settings) -> &mut SeLinux {
    s.privileges.se_linux.get_or_insert_with(|| SeLinux {
        types: anything(),
        users: anything(),
        roles: anything(),
        levels: anything(),
        required: false.into(),
    })
}

fn sysctls(s: &mut Settings) -> &mut Sysctls {
    s.privileges.sysctls.get_or_insert_with(|| Sysctls { allowed: anything(), forbidden: vec![] })
}

fn annotations(s: &mut Settings) -> &mut AnnotationKeys {
    let all = || AnnotationKeys { denied: vec![], allowed: vec![] };
    s.network.annotations.get_or_insert_with(all)
}

fn host_paths(s: &mut Settings) -> &mut Vec<HostPath> {
    let all = || PATHS.iter().map(|&path| HostPath { path_prefix: path.into(), read_only: false.into() }).collect();
    s.volumes.host_paths.get_or_insert_with(all)
}

fn tokens(s: &mut Settings) -> &mut TokenRules {
    let all = || TokenRules { audiences: anything(), max_expiration_seconds: None };
    s.identity.service_account_tokens.get_or_insert_with(all)
}

/// One value less of a label, or one label more.
fn narrow_node_selector(labels: &mut Vec<NodeLabel>, at: Index) {
    if let Some(label) = pick(labels, at)
        && label.values.len() > 1
    {
        remove(&mut label.values, 1, at);
    } else if !labels.iter().any(|label| label.key == "pool") {
        labels.push(NodeLabel { key: "pool".to_owned(), values: vec![(*at.get(NODE_LABELS)).into()] });
    }
}

/// One less, or one that covers less: one key, one value, one effect.
fn narrow_tolerations(allowed: &mut Option<Vec<AllowedToleration>>, at: Index) {
    let everything = AllowedToleration { key: None, operator: TolerationOperator::Exists, value: None, effect: None };
    let allowed = allowed.get_or_insert_with(|| vec![everything]);
    let Some(one) = pick(allowed, at) else { return };
    match one {
        AllowedToleration { key: key @ None, .. } => *key = Some((*at.get(TAINTS)).into()),
        AllowedToleration { effect: effect @ None, .. } => *effect = Some(TaintEffect::NoSchedule),
        AllowedToleration { operator: operator @ TolerationOperator::Exists, .. } => {
            *operator = TolerationOperator::Equal;
        }
        _ => drop(remove(allowed, 0, at)),
    }
}

/// One entry less, or one that allows less: some groups, a command, a port, one resource.
fn narrow_connections(allowed: &mut Option<Vec<AllowedConnection>>, at: Index) {
    let all =
        AllowedConnection { resources: vec![ConnectionResource::Exec], groups: None, commands: None, ports: None };
    let allowed = allowed.get_or_insert_with(|| vec![all]);
    let Some(one) = pick(allowed, at) else { return };
    let is_exec = one.resources == [ConnectionResource::Exec];
    match one {
        AllowedConnection { groups: groups @ None, .. } => *groups = Some(vec![(*at.get(GROUPS)).into()]),
        AllowedConnection { commands: commands @ None, .. } if is_exec => {
            *commands = Some(vec![(*at.get(COMMANDS)).into()]);
        }
        AllowedConnection { resources, .. } if resources.len() > 1 => drop(remove(resources, 1, at)),
        _ => drop(remove(allowed, 0, at)),
    }
}

fn pick<T>(list: &mut [T], at: Index) -> Option<&mut T> {
    if list.is_empty() { None } else { Some(at.get_mut(list)) }
}

/// Takes one away, if more than `least` are left.
fn remove<T>(list: &mut Vec<T>, least: usize, at: Index) -> Option<T> {
    (list.len() > least).then(|| list.remove(at.index(list.len())))
}

/// Allows less: one less, or of anything only one thing.
fn narrow(list: &mut Vec<Text>, pool: Pool, least: usize, at: Index) {
    if list.iter().any(|text| text.0 == "*") {
        *list = vec![(*at.get(pool)).into()];
    } else {
        remove(list, least, at);
    }
}

/// One part of SELinux options. A list that is empty says that a part must not be set, and so it cannot be required:
/// where a part may be required, its list does not become empty.
fn narrow_part(s: &mut Settings, part: fn(&mut SeLinux) -> &mut Vec<Text>, pool: Pool, at: Index) {
    let se_linux = se_linux(s);
    let least = usize::from(se_linux.required != Flag::Constant(false));
    narrow(part(se_linux), pool, least, at);
}

/// Of a wildcard in sysctls, only one thing that it covers.
fn shorten_wildcard(list: &mut [Text], at: Index) {
    let Some(text) = pick(list, at) else { return };
    let Some(start) = text.0.strip_suffix('*') else { return };
    let covered: Vec<_> = SYSCTLS.iter().filter(|name| name.starts_with(start) && !name.starts_with('$')).collect();
    if !covered.is_empty() {
        *text = (**at.get(&covered)).into();
    }
}

/// Of a path or a registry, only what is below it.
fn go_below<'a>(list: impl Iterator<Item = &'a mut Text>, at: Index) {
    let mut list: Vec<_> = list.filter(|text| text.0 != "*" && !text.0.starts_with('$')).collect();
    if let Some(text) = pick(&mut list, at) {
        text.0 = format!("{}/team", text.0.trim_end_matches('/'));
    }
}

fn range(min: i64, max: i64) -> Range {
    Range { min: min.into(), max: max.into() }
}

/// One range less, or one that is shorter at one of its ends.
fn narrow_ranges(ranges: &mut Vec<Range>, least: usize, at: Index) {
    if let Some(Range { min: Integer::Constant(min), max: Integer::Constant(max) }) = pick(ranges, at)
        && *min < *max
    {
        match at.index(3) {
            0 => *min += 1,
            1 => *max -= 1,
            _ => *max = *min,
        }
        return;
    }
    remove(ranges, least, at);
}

fn tighten_user(rules: &mut Option<UserRules>, at: Index) {
    let rules = rules.get_or_insert_with(|| UserRules { rule: UserRule::RunAsAny, ranges: vec![] });
    match (rules.rule, at.index(3)) {
        (UserRule::RunAsAny, 0) => rules.rule = UserRule::MustRunAsNonRoot,
        // Any range forbids something; without root it is also stricter than MustRunAsNonRoot.
        (UserRule::RunAsAny, 1) => *rules = UserRules { rule: UserRule::MayRunAs, ranges: vec![range(0, 9)] },
        (UserRule::RunAsAny | UserRule::MustRunAsNonRoot, 2) => {
            *rules = UserRules { rule: UserRule::MustRunAs, ranges: vec![range(1, 9)] };
        }
        (UserRule::RunAsAny | UserRule::MustRunAsNonRoot, _) => {
            *rules = UserRules { rule: UserRule::MayRunAs, ranges: vec![range(1, 1000)] };
        }
        (UserRule::MayRunAs, 0) => rules.rule = UserRule::MustRunAs,
        (UserRule::MayRunAs | UserRule::MustRunAs, _) => narrow_ranges(&mut rules.ranges, 1, at),
    }
}

fn tighten_group(rules: &mut Option<GroupRules>, at: Index) {
    let rules = rules.get_or_insert_with(|| GroupRules { rule: GroupRule::RunAsAny, ranges: vec![] });
    match (rules.rule, at.index(2)) {
        (GroupRule::RunAsAny, _) => *rules = GroupRules { rule: GroupRule::MayRunAs, ranges: vec![range(0, 1000)] },
        (GroupRule::MayRunAs, 0) => rules.rule = GroupRule::MustRunAs,
        (GroupRule::MayRunAs | GroupRule::MustRunAs, _) => narrow_ranges(&mut rules.ranges, 1, at),
    }
}

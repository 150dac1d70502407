//! Random settings over the whole catalogue, within what the CRD accepts.

use palisade_api::{
    Settings,
    settings::{
        self, AllowedToleration, AnnotationKeys, AppArmor, At, Capabilities, GroupRule, GroupRules, Host, HostPath,
        Identity, Images, Kind, Metadata, MetadataKey, MetadataRule, Network, NodeLabel, ObjectKind, Privileges, Range,
        Scheduling, SeLinux, Seccomp, Setting, Storage, SupplementalGroupsPolicy, Sysctls, TaintEffect, TokenRules,
        TolerationOperator, UserRule, UserRules, Users, Volumes, WindowsRule,
        mutation::{AdditionalDefault, Defaults, Mutation},
        redirect::{PathStyle, Redirect, RedirectedHost},
    },
};
use palisade_checks::{Flag, Integer, Text};
use proptest::{option, prelude::*, sample};

use super::access::access;

/// Elements of lists: constants, and references to parameters of type `String` and `StringList`.
pub(crate) type Pool = &'static [&'static str];

pub(crate) const ADD: Pool = &["NET_BIND_SERVICE", "CHOWN", "NET_RAW", "SYS_TIME", "ALL", "$cap", "$caps"];
pub(crate) const DROP: Pool = &["ALL", "NET_RAW", "MKNOD", "$cap", "$caps"];
pub(crate) const PROFILE_TYPES: Pool = &["RuntimeDefault", "Localhost", "Unconfined", "$kind", "$kinds"];
pub(crate) const PROFILES: Pool = &["a.json", "b.json", "$text", "profiles/$text"];
pub(crate) const SE_LINUX_TYPES: Pool = &["container_t", "container_init_t", "spc_t", "$text"];
pub(crate) const SE_LINUX_NAMES: Pool = &["system_u", "system_r", "$text", "$texts"];
pub(crate) const SE_LINUX_LEVELS: Pool = &["s0", "s0:c1,c2", "$text"];
pub(crate) const SYSCTLS: Pool = &[
    "kernel.shm_rmid_forced",
    "kernel.*",
    "kernel.msg*",
    "kernel.msgmax",
    "net.*",
    "net.ipv4.*",
    "net.ipv4.tcp_syncookies",
    "$sysctls",
];
pub(crate) const AUDIENCES: Pool = &["", "vault", "$text", "$texts"];
pub(crate) const ANNOTATIONS: Pool = &["example.org/*", "example.org/a", "other.example/$text"];
pub(crate) const NODE_LABELS: Pool = &["text", "shared", "$text", "$texts"];
pub(crate) const TAINTS: Pool = &["gpu", "dedicated", "$text"];
pub(crate) const REGISTRIES: Pool = &[
    "registry.example",
    "registry.example/team",
    "docker.io",
    "docker.io/library",
    "localhost:5000",
    "own.example/$text",
    "$registries",
];
pub(crate) const PATHS: Pool = &["/", "/data", "/data/project", "/data/project/$text", "/public"];

/// The elements of settings that are lists of texts, and how many each has at least.
const POOLS: &[(&str, Pool, usize)] = &[
    ("privileges.procMount", &["Default", "Unmasked"], 1),
    ("volumes.allowed", &["csi", "emptyDir", "hostPath", "flexVolume", "image", "$volume", "$volumes"], 0),
    ("volumes.csiDrivers", &["csi.example.org", "other.example.org", "$text"], 0),
    ("volumes.flexVolumes", &["example.org/flex", "example.org/other", "example.org/$text"], 0),
    ("volumes.mountPropagation", &["None", "HostToContainer", "Bidirectional"], 0),
    ("identity.serviceAccounts", &["default", "builder", "$text", "$texts"], 1),
    ("scheduling.runtimeClasses", &["", "gvisor", "kata", "$text"], 1),
    ("scheduling.priorityClasses", &["", "batch", "system-node-critical", "$text"], 1),
    ("scheduling.schedulers", &["default-scheduler", "volcano", "$text"], 1),
    ("images.allowedRegistries", REGISTRIES, 1),
    ("network.allowedHosts", &["a.example.org", "*.example.org", "$text.example.org"], 1),
    ("network.allowedIngressClasses", &["", "nginx", "$text"], 0),
    ("network.allowedGatewayClasses", &["shared", "$text"], 0),
    ("network.allowedGateways", &["infra/public", "infra/*", "$text/public"], 0),
    ("network.allowedServiceTypes", &["ClusterIP", "NodePort", "$text"], 1),
    ("network.allowedExternalNames", &["a.example.org", "*.example.org", "$text.example.org"], 0),
    ("network.allowedExternalIPs", &["192.0.2.0/24", "2001:db8::/32"], 0),
    ("network.allowedLoadBalancerClasses", &["", "example.org/a", "$text"], 0),
    ("network.allowedLoadBalancerSourceRanges", &["192.0.2.0/24", "10.0.0.0/8"], 1),
    ("network.allowedPolicyIngressCIDRs", &["192.0.2.0/24", "10.0.0.0/8"], 0),
    ("network.allowedPolicyEgressCIDRs", &["0.0.0.0/0", "2001:db8::/32"], 0),
    ("network.allowedPolicyNamespaces", &["ingress", "monitoring-*", "$text"], 0),
    ("storage.allowedDataSourceNamespaces", &["images", "images-*", "$text"], 0),
    ("storage.allowedSnapshotClasses", &["", "standard", "$text"], 0),
    ("storage.allowedStorageClasses", &["", "standard", "$text"], 0),
    ("storage.allowedAccessModes", &["ReadWriteOnce", "ReadWriteMany", "$text"], 1),
    ("storage.allowedVolumeModes", &["Filesystem", "Block"], 1),
    ("access.allowedRoleRefs", &["Role/*", "ClusterRole/view", "Role/$text"], 0),
    ("access.allowedSubjects", &["User/*", "Group/$text", "ServiceAccount/ci/builder"], 0),
    ("access.allowedRoleVerbs", &["get", "list", "$text", "$texts"], 0),
    ("access.allowedTokenServiceAccounts", &["default", "build*", "$text-*"], 0),
    ("access.allowedTokenAudiences", &["vault", "$text", "$texts"], 0),
];

/// The elements of a setting that is a list of texts, and how many it has at least.
pub(crate) fn pool(path: &str) -> (Pool, usize) {
    let Some((_, pool, least)) = POOLS.iter().find(|(of, ..)| *of == path) else {
        panic!("POOLS in crates/gate/tests/properties/settings.rs has no {path}");
    };
    (*pool, *least)
}

pub(crate) fn flag() -> impl Strategy<Value = Flag> {
    prop_oneof![
        Just(Flag::Constant(true)),
        Just(Flag::Constant(false)),
        Just(Flag::Parameter("on".to_owned())),
        Just(Flag::Parameter("off".to_owned())),
    ]
}

/// Some of a pool, at least `least`, or now and then anything.
fn texts(pool: Pool, least: usize) -> impl Strategy<Value = Vec<Text>> {
    prop_oneof![
        1 => Just(vec!["*".into()]),
        6 => sample::subsequence(pool, least..=pool.len().min(4)).prop_map(|found| found.into_iter().map(Text::from).collect()),
    ]
}

fn integer() -> impl Strategy<Value = i64> {
    sample::select(vec![0, 1, 5, 6, 9, 80, 1000, 8080, 65535])
}

fn range() -> impl Strategy<Value = Range> {
    prop_oneof![
        5 => (integer(), integer()).prop_map(|(a, b)| Range { min: a.min(b).into(), max: a.max(b).into() }),
        1 => Just(Range { min: Integer::Parameter("uid".to_owned()), max: Integer::Parameter("uid".to_owned()) }),
    ]
}

fn ranges() -> impl Strategy<Value = Vec<Range>> {
    prop::collection::vec(range(), 1..3)
}

fn user_rules() -> impl Strategy<Value = UserRules> {
    let rule =
        sample::select(vec![UserRule::MustRunAs, UserRule::MayRunAs, UserRule::MustRunAsNonRoot, UserRule::RunAsAny]);
    (rule, ranges()).prop_map(|(rule, ranges)| match rule {
        UserRule::MustRunAs | UserRule::MayRunAs => UserRules { rule, ranges },
        UserRule::MustRunAsNonRoot | UserRule::RunAsAny => UserRules { rule, ranges: vec![] },
    })
}

fn group_rules() -> impl Strategy<Value = GroupRules> {
    let rule = sample::select(vec![GroupRule::MustRunAs, GroupRule::MayRunAs, GroupRule::RunAsAny]);
    (rule, ranges()).prop_map(|(rule, ranges)| GroupRules {
        rule,
        ranges: if rule == GroupRule::RunAsAny { vec![] } else { ranges },
    })
}

/// Written in three of five cases.
pub(crate) fn maybe<S: Strategy>(setting: S) -> impl Strategy<Value = Option<S::Value>> {
    option::weighted(0.6, setting)
}

prop_compose! {
    fn users()(
        run_as_user in maybe(user_rules()),
        run_as_group in maybe(group_rules()),
        fs_group in maybe(group_rules()),
        supplemental_groups in maybe(group_rules()),
        supplemental_groups_policy in
            maybe(sample::select(vec![SupplementalGroupsPolicy::Merge, SupplementalGroupsPolicy::Strict])),
    ) -> Users {
        Users {
            run_as_user,
            run_as_group,
            fs_group,
            supplemental_groups,
            supplemental_groups_policy,
            ..Users::default()
        }
    }
}

prop_compose! {
    fn profiles()(
        seccomp in maybe((texts(PROFILE_TYPES, 1), texts(PROFILES, 0), flag(), flag())),
        app_armor in maybe((texts(PROFILE_TYPES, 0), texts(PROFILES, 0))),
    ) -> (Option<Seccomp>, Option<AppArmor>) {
        let seccomp = seccomp.map(|(allowed, localhost_profiles, required, annotations)| Seccomp {
            allowed, localhost_profiles, required, annotations,
        });
        (seccomp, app_armor.map(|(allowed, localhost_profiles)| AppArmor { allowed, localhost_profiles }))
    }
}

prop_compose! {
    fn se_linux()(
        types in texts(SE_LINUX_TYPES, 0),
        users in texts(SE_LINUX_NAMES, 0),
        roles in texts(SE_LINUX_NAMES, 0),
        levels in texts(SE_LINUX_LEVELS, 0),
        required in flag(),
    ) -> SeLinux {
        SeLinux { types, users, roles, levels, required }
    }
}

prop_compose! {
    fn privileges()(
        capabilities in maybe((texts(ADD, 0), sample::subsequence(DROP, 0..3), sample::subsequence(ADD, 0..3))),
        (seccomp, app_armor) in profiles(),
        se_linux in maybe(se_linux()),
        sysctls in maybe((texts(SYSCTLS, 0), sample::subsequence(SYSCTLS, 0..3))),
        windows in option::of(sample::select(vec![WindowsRule::Exempt, WindowsRule::Check])),
    ) -> Privileges {
        let all = |texts: Vec<&str>| texts.into_iter().map(Text::from).collect();
        Privileges {
            capabilities: capabilities.map(|(allowed_add, required_drop, default_add)| Capabilities {
                allowed_add, required_drop: all(required_drop), default_add: all(default_add),
            }),
            seccomp,
            app_armor,
            se_linux,
            sysctls: sysctls.map(|(allowed, forbidden)| Sysctls { allowed, forbidden: all(forbidden) }),
            windows,
            ..Privileges::default()
        }
    }
}

pub(crate) fn host_path() -> impl Strategy<Value = HostPath> {
    (sample::select(PATHS), flag()).prop_map(|(path, read_only)| HostPath { path_prefix: path.into(), read_only })
}

prop_compose! {
    fn identity()(
        service_account_tokens in maybe((texts(AUDIENCES, 0), maybe(sample::select(vec![600, 3600, 86400])))),
    ) -> Identity {
        Identity {
            service_account_tokens: service_account_tokens.map(|(audiences, most)| TokenRules {
                audiences, max_expiration_seconds: most.map(Integer::from),
            }),
            ..Identity::default()
        }
    }
}

/// What may be tolerated: each form that the CRD accepts.
fn toleration() -> impl Strategy<Value = AllowedToleration> {
    let effect = option::of(sample::select(vec![TaintEffect::NoSchedule, TaintEffect::NoExecute]));
    let key = option::weighted(0.8, sample::select(TAINTS));
    let value = option::of(option::of(sample::select(vec!["text", "$text"])));
    (key, value, effect).prop_map(|(key, value, effect)| AllowedToleration {
        operator: if key.is_some() && value.is_some() { TolerationOperator::Equal } else { TolerationOperator::Exists },
        value: value.flatten().filter(|_| key.is_some()).map(Text::from),
        key: key.map(Text::from),
        effect,
    })
}

fn node_labels() -> impl Strategy<Value = Vec<NodeLabel>> {
    let label = |key: &str, values| NodeLabel { key: key.to_owned(), values };
    let values = || prop::collection::vec(sample::select(NODE_LABELS).prop_map(Text::from), 1..3);
    (option::of(values()), option::of(values())).prop_map(move |(pool, zone)| {
        let labels = [pool.map(|values| label("pool", values)), zone.map(|values| label("example.org/zone", values))];
        labels.into_iter().flatten().collect()
    })
}

prop_compose! {
    fn scheduling()(
        node_selector in maybe(node_labels()),
        tolerations in maybe(prop::collection::vec(toleration(), 0..3)),
    ) -> Scheduling {
        Scheduling { node_selector, tolerations, ..Scheduling::default() }
    }
}

prop_compose! {
    fn redirect()(
        target in option::weighted(0.8, sample::select(vec!["sea.hub:5000", "own.example/$text", "registry.example"])),
        path_style in sample::select(vec![PathStyle::KeepHost, PathStyle::StripHost]),
        host in maybe(sample::select(vec!["docker.io", "registry.example", "localhost:5000"])),
        skip in sample::subsequence(REGISTRIES, 0..3),
    ) -> Redirect {
        let hosts = host.map(|host| RedirectedHost { host: host.to_owned(), target: "mirror.example/a".into() });
        Redirect {
            target: target.or(host.is_none().then_some("sea.hub:5000")).map(Text::from),
            path_style,
            hosts: hosts.into_iter().collect(),
            skip: skip.into_iter().map(Text::from).collect(),
        }
    }
}

prop_compose! {
    fn mutation()(
        defaults in sample::select(vec![Defaults::None, Defaults::Secure]),
        additional_defaults in sample::subsequence(vec![
            AdditionalDefault::AllowPrivilegeEscalation,
            AdditionalDefault::HostUsers,
            AdditionalDefault::ReadOnlyRootFilesystem,
            AdditionalDefault::RunAsNonRoot,
            AdditionalDefault::SeccompProfile,
            AdditionalDefault::SupplementalGroupsPolicy,
        ], 0..3),
    ) -> Mutation {
        Mutation { defaults, additional_defaults, ..Mutation::default() }
    }
}

prop_compose! {
    fn metadata_rule()(
        required in any::<bool>(), values in maybe(texts(NODE_LABELS, 1)),
        allowed_labels in maybe(texts(ANNOTATIONS, 0)), allowed_annotations in maybe(texts(ANNOTATIONS, 0)),
    ) -> MetadataRule {
        let key = MetadataKey { key: "team".to_owned(), required, values };
        MetadataRule {
            kinds: vec![ObjectKind {
                group: String::new(), versions: vec!["v1".to_owned()], resource: "configmaps".to_owned(),
                subresources: Vec::new(), operations: Vec::new(),
            }],
            labels: vec![key.clone()],
            allowed_labels,
            annotations: vec![key],
            allowed_annotations,
        }
    }
}

prop_compose! {
    /// What is made up by hand: settings that are more than a flag or a list of texts.
    fn others()(
        users in users(),
        privileges in privileges().boxed(),
        ports in maybe(prop::collection::vec(range(), 0..3)),
        max_request in maybe(sample::select(vec!["1Gi", "$text"])),
        allowed_node_ports in maybe(prop::collection::vec(range(), 0..3)),
        denied_policy_cidrs in maybe(sample::subsequence(vec!["10.0.0.0/8", "fd00::/8"], 0..3)),
        annotations in maybe((texts(ANNOTATIONS, 0), texts(ANNOTATIONS, 0))),
        rules in maybe(prop::collection::vec(metadata_rule(), 0..3)),
        host_paths in maybe(prop::collection::vec(host_path(), 0..5)),
        identity in identity(),
        scheduling in scheduling().boxed(),
        access in access().boxed(),
        redirect in option::weighted(0.3, redirect()),
        mutation in mutation(),
    ) -> Settings {
        Settings {
            users,
            privileges,
            host: Host { ports, ..Host::default() },
            volumes: Volumes { host_paths, ..Volumes::default() },
            identity,
            scheduling,
            images: Images { redirect, ..Images::default() },
            network: Network {
                allowed_node_ports,
                denied_policy_cidrs: denied_policy_cidrs.map(|found| found.into_iter().map(Text::from).collect()),
                annotations: annotations.map(|(denied, allowed)| AnnotationKeys { denied, allowed }),
                ..Network::default()
            },
            storage: Storage { max_request: max_request.map(Text::from), ..Storage::default() },
            access,
            metadata: Metadata { rules },
            mutation,
        }
    }
}

fn flags() -> Vec<At<Flag>> {
    let of = |setting: &Setting| match setting.kind {
        Kind::Allowance(at) | Kind::Demand(at) | Kind::Relaxation(at) => Some(at),
        Kind::Texts(_) | Kind::Other(_) | Kind::Change(_) => None,
    };
    settings::all().filter_map(of).collect()
}

/// The settings that are lists of texts, by their paths.
fn lists() -> Vec<(&'static str, At<Vec<Text>>)> {
    let of = |setting: &'static Setting| match setting.kind {
        Kind::Texts(at) => Some((setting.path, at)),
        _ => None,
    };
    settings::all().filter_map(of).collect()
}

fn list(path: &str) -> BoxedStrategy<Vec<Text>> {
    let (pool, least) = pool(path);
    match path {
        // What is in a volume matters most where its kind is the only one.
        "volumes.allowed" => {
            let one = sample::select(vec!["hostPath", "$volume"]).prop_map(|kind| vec![kind.into()]);
            prop_oneof![texts(pool, least), one].boxed()
        }
        _ => texts(pool, least).boxed(),
    }
}

prop_compose! {
    fn all()(
        mut settings in others().boxed(),
        of_flags in flags().iter().map(|_| maybe(flag())).collect::<Vec<_>>(),
        of_lists in lists().iter().map(|(path, _)| maybe(list(path))).collect::<Vec<_>>(),
    ) -> Settings {
        for (at, flag) in flags().into_iter().zip(of_flags) {
            *(at.get_mut)(&mut settings) = flag;
        }
        for ((_, at), list) in lists().into_iter().zip(of_lists) {
            *(at.get_mut)(&mut settings) = list;
        }
        settings
    }
}

/// Settings of which some are absent. On the heap, because the strategy is too large for the stack of a test.
pub(crate) fn settings() -> BoxedStrategy<Settings> {
    all().boxed()
}

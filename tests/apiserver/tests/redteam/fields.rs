//! Values of the restricted fields: what JSON can say there, and what it means.

use serde_json::{Value as Json, json};

use crate::pods::{
    Means::{self, Bad, BadForTools, Fine, Invalid, Never},
    UID, Value, complying, shown, with,
};

/// A field of containers.
pub(crate) struct Field {
    pub(crate) check: &'static str,
    pub(crate) path: &'static str,
    /// Ephemeral containers must not have it at all.
    pub(crate) not_in_ephemeral: bool,
    pub(crate) values: Vec<(Value, Means)>,
    /// What the container must not say so that the API server takes the value.
    pub(crate) without: &'static [&'static str],
}

/// Representations of a value that no field of these types takes.
fn no_boolean() -> Vec<(Value, Means)> {
    [json!("true"), json!("false"), json!(""), json!(0), json!(1), json!([]), json!({})]
        .map(|value| (Some(value), Invalid))
        .to_vec()
}

fn no_id() -> Vec<(Value, Means)> {
    let wrong =
        [json!("50001"), json!(50_001.5), json!(true), json!([50_001]), json!({}), json!(-1), json!(4_294_967_296_i64)];
    wrong.map(|value| (Some(value), Invalid)).to_vec()
}

fn of(values: &[(Value, Means)], more: Vec<(Value, Means)>) -> Vec<(Value, Means)> {
    values.iter().cloned().chain(more).collect()
}

fn field(check: &'static str, path: &'static str, values: Vec<(Value, Means)>) -> Field {
    Field { check, path, not_in_ephemeral: false, values, without: &[] }
}

/// A value and what it means.
fn some(value: Json, means: Means) -> (Value, Means) {
    (Some(value), means)
}

/// Both ways not to say anything.
fn unset(means: Means) -> [(Value, Means); 2] {
    [(None, means), (Some(Json::Null), means)]
}

/// The fields that containers of every kind have.
pub(crate) fn of_containers() -> Vec<Field> {
    [privileges(), capabilities(), ids(), profiles(), ports()].into_iter().flatten().collect()
}

fn privileges() -> Vec<Field> {
    vec![
        field(
            "privileged",
            "securityContext.privileged",
            of(&[(None, Fine), some(Json::Null, Fine), some(json!(false), Fine)], no_boolean()),
        ),
        field(
            "allowPrivilegeEscalation",
            "securityContext.allowPrivilegeEscalation",
            of(&[(None, Bad), some(Json::Null, Bad), some(json!(false), Fine), some(json!(true), Bad)], no_boolean()),
        ),
        field(
            "allowPrivilegeEscalation",
            "securityContext",
            of(&unset(Bad), vec![some(json!({}), Bad), some(json!([]), Invalid)]),
        ),
        // With a privileged container, it must not be false.
        Field {
            without: &["securityContext.allowPrivilegeEscalation"],
            ..field("privileged", "securityContext.privileged", vec![some(json!(true), Bad)])
        },
    ]
}

fn capabilities() -> Vec<Field> {
    vec![
        field(
            "capabilities",
            "securityContext.capabilities.add",
            vec![
                (None, Fine),
                some(Json::Null, Fine),
                some(json!([]), Fine),
                some(json!(["NET_BIND_SERVICE"]), BadForTools),
                some(json!(["NET_ADMIN"]), Bad),
                some(json!(["SYS_ADMIN"]), Bad),
                some(json!(["net_admin"]), Bad),
                some(json!(["net_bind_service"]), Bad),
                some(json!(["CAP_NET_BIND_SERVICE"]), Bad),
                some(json!(["CAP_NET_ADMIN"]), Bad),
                some(json!(["ALL"]), Bad),
                some(json!(["CHOWN"]), Bad),
                some(json!(["NET_BIND_SERVICE", "SYS_TIME"]), Bad),
                some(json!(["NET_BIND_SERVICE "]), Bad),
                some(json!([""]), Bad),
                some(json!("NET_ADMIN"), Invalid),
                some(json!([1]), Invalid),
                some(json!({"NET_ADMIN": true}), Invalid),
            ],
        ),
        field(
            "capabilities",
            "securityContext.capabilities.drop",
            vec![
                (None, Bad),
                some(Json::Null, Bad),
                some(json!([]), Bad),
                some(json!(["ALL"]), Fine),
                some(json!(["NET_RAW", "ALL"]), Fine),
                some(json!(["all"]), Bad),
                some(json!(["All"]), Bad),
                some(json!(["ALL "]), Bad),
                some(json!(["CAP_ALL"]), Bad),
                some(json!(["*"]), Bad),
                some(json!(["NET_RAW", "SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"]), Bad),
                some(json!("ALL"), Invalid),
            ],
        ),
        field("capabilities", "securityContext.capabilities", of(&unset(Bad), vec![some(json!({}), Bad)])),
    ]
}

fn ids() -> Vec<Field> {
    vec![
        field(
            "runAsUser",
            "securityContext.runAsUser",
            of(
                &[
                    (None, Fine),
                    some(Json::Null, Fine),
                    some(json!(UID), Fine),
                    some(json!(UID + 1), BadForTools),
                    some(json!(0), Bad),
                ],
                no_id(),
            ),
        ),
        field(
            "runAsGroup",
            "securityContext.runAsGroup",
            of(
                &[
                    (None, Fine),
                    some(Json::Null, Fine),
                    some(json!(UID), Fine),
                    some(json!(UID + 1), BadForTools),
                    some(json!(0), BadForTools),
                ],
                no_id(),
            ),
        ),
        field(
            "runAsNonRoot",
            "securityContext.runAsNonRoot",
            of(&[(None, Fine), some(Json::Null, Fine), some(json!(true), Fine), some(json!(false), Bad)], no_boolean()),
        ),
    ]
}

fn profiles() -> Vec<Field> {
    vec![
        field("seccompProfile", "securityContext.seccompProfile", of(&unset(Fine), seccomp())),
        field("appArmorProfile", "securityContext.appArmorProfile", of(&unset(Fine), app_armor())),
        field("seLinuxOptions", "securityContext.seLinuxOptions", of(&unset(Fine), se_linux())),
        field(
            "procMount",
            "securityContext.procMount",
            vec![
                (None, Fine),
                some(Json::Null, Fine),
                some(json!("Default"), Fine),
                some(json!("Unmasked"), Invalid),
                some(json!("default"), Invalid),
                some(json!("unmasked"), Invalid),
                some(json!(""), Invalid),
                some(json!(1), Invalid),
            ],
        ),
        field(
            "windowsHostProcess",
            "securityContext.windowsOptions",
            vec![
                (None, Fine),
                some(json!({}), Fine),
                some(json!({"hostProcess": true}), Never),
                some(json!({"hostProcess": "true"}), Invalid),
            ],
        ),
    ]
}

fn ports() -> Vec<Field> {
    vec![Field {
        not_in_ephemeral: true,
        ..field(
            "hostPorts",
            "ports",
            vec![
                (None, Fine),
                some(json!([{"containerPort": 80}]), Fine),
                some(json!([{"containerPort": 80, "hostPort": 0}]), Fine),
                some(json!([{"containerPort": 80, "hostPort": null}]), Fine),
                some(json!([{"containerPort": 80, "hostPort": 80}]), Bad),
                some(json!([{"containerPort": 80, "hostPort": 40_000}]), Bad),
                some(json!([{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}]), Bad),
                some(json!([{"containerPort": 80, "hostPort": 80, "hostIP": "127.0.0.1"}]), Bad),
                some(json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]), Bad),
                some(json!([{"containerPort": 80, "hostPort": "80"}]), Invalid),
                some(json!([{"containerPort": 80, "hostPort": -1}]), Invalid),
                some(json!([{"containerPort": 80, "hostPort": 65_536}]), Invalid),
            ],
        )
    }]
}

fn seccomp() -> Vec<(Value, Means)> {
    vec![
        some(json!({"type": "RuntimeDefault"}), Fine),
        some(json!({"type": "Unconfined"}), Bad),
        some(json!({"type": "Localhost", "localhostProfile": "x.json"}), BadForTools),
        some(json!({"type": "Localhost", "localhostProfile": "../x"}), Invalid),
        some(json!({"type": "Localhost"}), Invalid),
        some(json!({"type": "RuntimeDefault", "localhostProfile": "x.json"}), Invalid),
        some(json!({"type": "runtimeDefault"}), Invalid),
        some(json!({"type": "runtime/default"}), Invalid),
        some(json!({"type": ""}), Invalid),
        some(json!({}), Invalid),
        some(json!("RuntimeDefault"), Invalid),
    ]
}

fn app_armor() -> Vec<(Value, Means)> {
    vec![
        some(json!({"type": "RuntimeDefault"}), Fine),
        some(json!({"type": "Localhost", "localhostProfile": "mine"}), Fine),
        some(json!({"type": "Unconfined"}), Bad),
        some(json!({"type": "unconfined"}), Invalid),
        some(json!({"type": "Localhost", "localhostProfile": ""}), Invalid),
        some(json!({"type": "RuntimeDefault", "localhostProfile": "mine"}), Invalid),
        some(json!({}), Invalid),
    ]
}

fn se_linux() -> Vec<(Value, Means)> {
    vec![
        some(json!({}), Fine),
        some(json!({"type": ""}), Fine),
        some(json!({"type": "container_t"}), Fine),
        some(json!({"type": "container_init_t"}), Fine),
        some(json!({"type": "container_kvm_t"}), Fine),
        some(json!({"level": "s0:c123,c456"}), Fine),
        some(json!({"type": "spc_t"}), Bad),
        some(json!({"type": "Container_t"}), Bad),
        some(json!({"type": "container_t "}), Bad),
        some(json!({"user": "system_u"}), Bad),
        some(json!({"role": "system_r"}), Bad),
        some(json!({"type": "container_t", "role": "object_r"}), Bad),
        some(json!({"type": 1}), Invalid),
    ]
}

/// A pod: its name, the check that denies it if it violates, and what it means.
pub(crate) type Case = (String, &'static str, Json, Means);

/// A field of pods: its path, its check, its values.
type PodField = (&'static str, &'static str, Vec<(Value, Means)>);

/// Fields of the pod itself.
pub(crate) fn of_pods() -> Vec<Case> {
    let set = [(None, Fine), (Some(Json::Null), Fine), (Some(json!(false)), Fine), (Some(json!(true)), Bad)];
    let mut fields: Vec<PodField> = vec![];
    for path in ["spec.hostNetwork", "spec.hostPID", "spec.hostIPC"] {
        fields.push((path, "hostNamespaces", of(&set, no_boolean())));
    }
    let must = |zero: Means| {
        of(
            &[
                (None, BadForTools),
                some(Json::Null, BadForTools),
                some(json!(UID), Fine),
                some(json!(UID + 1), BadForTools),
                some(json!(0), zero),
            ],
            no_id(),
        )
    };
    fields.push(("spec.securityContext.runAsUser", "runAsUser", must(Bad)));
    fields.push(("spec.securityContext.runAsGroup", "runAsGroup", must(BadForTools)));
    fields.push(("spec.securityContext.fsGroup", "fsGroup", must(BadForTools)));
    fields.push((
        "spec.securityContext.runAsNonRoot",
        "runAsNonRoot",
        of(&[(None, Bad), some(Json::Null, Bad), some(json!(true), Fine), some(json!(false), Bad)], no_boolean()),
    ));
    fields.push((
        "spec.securityContext.supplementalGroups",
        "supplementalGroups",
        vec![
            (None, Fine),
            some(json!([]), Fine),
            some(json!([100]), Fine),
            some(json!([0]), BadForTools),
            some(json!([100, 0]), BadForTools),
            some(json!([0, 0]), BadForTools),
            some(json!([65_536]), BadForTools),
            some(json!([2_147_483_647]), BadForTools),
            // Another tool's files are for its group.
            some(json!([UID + 1]), BadForTools),
            some(json!([100, UID + 1]), BadForTools),
            some(json!(["0"]), Invalid),
            some(json!([-1]), Invalid),
            some(json!(0), Invalid),
        ],
    ));
    fields.push((
        "spec.securityContext.seccompProfile",
        "seccompProfile",
        of(&[(None, Bad), some(Json::Null, Bad)], seccomp()),
    ));
    fields.push(("spec.securityContext.appArmorProfile", "appArmorProfile", of(&[(None, Fine)], app_armor())));
    fields.push(("spec.securityContext.seLinuxOptions", "seLinuxOptions", of(&[(None, Fine)], se_linux())));
    let sysctl =
        |names: &[&str]| json!(names.iter().map(|name| json!({"name": name, "value": "1"})).collect::<Vec<_>>());
    fields.push((
        "spec.securityContext.sysctls",
        "sysctls",
        vec![
            (None, Fine),
            some(json!([]), Fine),
            some(sysctl(&["net.ipv4.tcp_syncookies"]), Fine),
            some(sysctl(&["kernel.shm_rmid_forced", "net.ipv4.ping_group_range"]), Fine),
            some(sysctl(&["kernel.msgmax"]), Bad),
            some(sysctl(&["kernel/msgmax"]), Bad),
            some(sysctl(&["net.ipv4.ip_forward"]), Bad),
            some(sysctl(&["net/ipv4/ip_forward"]), Bad),
            some(sysctl(&["net.ipv4.tcp_syncookies", "kernel.sem"]), Bad),
            some(sysctl(&["net.ipv4.tcp_syncookiesx"]), Bad),
            some(sysctl(&["net.ipv4.tcp_syncookies", "net.ipv4.tcp_syncookies"]), Invalid),
            some(sysctl(&["KERNEL.MSGMAX"]), Invalid),
            some(sysctl(&[""]), Invalid),
        ],
    ));
    let mut cases = vec![];
    for (path, check, values) in fields {
        for (value, means) in values {
            let name = format!("{path} {}", shown(&value));
            cases.push((name, check, with(complying("attack"), &[(path, value)]), means));
        }
    }
    cases
}

//! Pods, derived: each restricted field, in each place that it has, in each representation that JSON allows.
//!
//! What must come of one is derived from what the field means (the Pod Security Standards, and what the example
//! profile of Toolforge says), and from nothing that Palisade computes.

use serde_json::{Value as Json, json};

use crate::{
    table::{Attack, Expect},
    wire::{MERGE, Request, pods},
};

/// The tool that the attacker is.
pub(crate) const UID: i64 = 50_001;
/// A registry that the example allows.
pub(crate) const REGISTRY: &str = "docker-registry.svc.toolforge.org";

/// By what a pod is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The example profile of Toolforge, for the tool [`UID`].
    Toolforge,
    /// A profile that says nothing: the Restricted level.
    Restricted,
}

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// It complies with both.
    Fine,
    /// It violates both.
    Bad,
    /// It violates the example only, which is stricter or has a rule where the standards have none.
    BadForTools,
    /// The API server itself refuses it.
    Invalid,
    /// Nobody may admit it.
    Never,
}
use Means::{Bad, BadForTools, Fine, Invalid, Never};

impl Means {
    fn expect(self, by: By, check: &str) -> Expect {
        match self {
            Bad => Expect::check(check),
            BadForTools if by == By::Toolforge => Expect::check(check),
            Fine | BadForTools => Expect::Admitted,
            Invalid => Expect::Refused,
            Never => Expect::Stopped,
        }
    }
}

/// A container that complies.
pub(crate) fn container(name: &str) -> Json {
    json!({
        "name": name, "image": format!("{REGISTRY}/x:1"),
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    })
}

/// A pod that complies with both.
pub(crate) fn complying(name: &str) -> Json {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": UID, "runAsGroup": UID, "fsGroup": UID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container("main")],
        },
    })
}

/// A pod of the tool that only shares the node's process ids.
pub(crate) fn hostile(name: &str) -> Json {
    with(complying(name), &[("spec.hostPID", Some(json!(true)))])
}

/// A value of a field: `None` is a field that is not there.
type Value = Option<Json>;

/// Sets fields by their paths, where numbers are indices.
pub(crate) fn with(mut object: Json, changes: &[(&str, Value)]) -> Json {
    for (path, value) in changes {
        let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut at = &mut object;
        for step in parent.split('.').filter(|step| !step.is_empty()) {
            at = match step.parse::<usize>() {
                Ok(index) if at.is_array() => &mut at[index],
                _ => &mut at[step],
            };
        }
        match (value, at.as_object_mut()) {
            (None, Some(fields)) => {
                fields.remove(key);
            }
            (None, None) => {}
            (Some(value), _) => at[key] = value.clone(),
        }
    }
    object
}

/// A field of containers.
struct Field {
    check: &'static str,
    path: &'static str,
    /// Ephemeral containers must not have it at all.
    not_in_ephemeral: bool,
    values: Vec<(Value, Means)>,
    /// What the container must not say so that the API server takes the value.
    without: &'static [&'static str],
}

/// Representations of a value that no field of these types takes.
fn no_boolean() -> Vec<(Value, Means)> {
    [json!("true"), json!("false"), json!(""), json!(0), json!(1), json!([]), json!({})]
        .map(|value| (Some(value), Invalid))
        .to_vec()
}

fn no_id() -> Vec<(Value, Means)> {
    let wrong = [json!("50001"), json!(50_001.5), json!(true), json!([50_001]), json!({}), json!(-1), json!(4_294_967_296_i64)];
    wrong.map(|value| (Some(value), Invalid)).to_vec()
}

fn of(values: &[(Value, Means)], more: Vec<(Value, Means)>) -> Vec<(Value, Means)> {
    values.iter().cloned().chain(more).collect()
}

fn field(check: &'static str, path: &'static str, values: Vec<(Value, Means)>) -> Field {
    Field { check, path, not_in_ephemeral: false, values, without: &[] }
}

/// The fields that containers of every kind have.
fn container_fields() -> Vec<Field> {
    let some = |value: Json, means: Means| (Some(value), means);
    let unset = |means: Means| [(None, means), (Some(Json::Null), means)];
    let context = "securityContext";
    let mut fields = vec![
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
        field("allowPrivilegeEscalation", context, of(&unset(Bad), vec![some(json!({}), Bad), some(json!([]), Invalid)])),
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
        field(
            "runAsUser",
            "securityContext.runAsUser",
            of(&[(None, Fine), some(Json::Null, Fine), some(json!(UID), Fine), some(json!(UID + 1), BadForTools), some(json!(0), Bad)], no_id()),
        ),
        field(
            "runAsGroup",
            "securityContext.runAsGroup",
            of(&[(None, Fine), some(Json::Null, Fine), some(json!(UID), Fine), some(json!(UID + 1), BadForTools), some(json!(0), BadForTools)], no_id()),
        ),
        field(
            "runAsNonRoot",
            "securityContext.runAsNonRoot",
            of(&[(None, Fine), some(Json::Null, Fine), some(json!(true), Fine), some(json!(false), Bad)], no_boolean()),
        ),
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
            vec![(None, Fine), some(json!({}), Fine), some(json!({"hostProcess": true}), Never), some(json!({"hostProcess": "true"}), Invalid)],
        ),
    ];
    fields.push(Field {
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
    });
    // With a privileged container, allowPrivilegeEscalation must not be false.
    fields.push(Field {
        without: &["securityContext.allowPrivilegeEscalation"],
        ..field("privileged", "securityContext.privileged", vec![some(json!(true), Bad)])
    });
    fields
}

fn seccomp() -> Vec<(Value, Means)> {
    let some = |value: Json, means: Means| (Some(value), means);
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
    let some = |value: Json, means: Means| (Some(value), means);
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
    let some = |value: Json, means: Means| (Some(value), means);
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

/// Where a container stands in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Main,
    Second,
    Init,
    Sidecar,
    Ephemeral,
}

const PLACES: [Place; 5] = [Place::Main, Place::Second, Place::Init, Place::Sidecar, Place::Ephemeral];

impl Place {
    /// The request with this container there; an ephemeral one in the pod `target`, which runs.
    fn request(self, namespace: &str, target: &str, mut container: Json) -> Request {
        let mut pod = complying("attack");
        match self {
            Self::Main => pod["spec"]["containers"][0] = container,
            Self::Second => {
                container["name"] = "second".into();
                pod["spec"]["containers"] = json!([crate::pods::container("main"), container]);
            }
            Self::Init | Self::Sidecar => {
                container["name"] = "first".into();
                if self == Self::Sidecar {
                    container["restartPolicy"] = "Always".into();
                }
                pod["spec"]["initContainers"] = json!([container]);
            }
            Self::Ephemeral => {
                container["name"] = "debugger".into();
                let path = format!("{}/{target}/ephemeralcontainers?dryRun=All", pods(namespace));
                return Request::new("PATCH", path, MERGE, &json!({"spec": {"ephemeralContainers": [container]}}));
            }
        }
        Request::pod(namespace, &pod)
    }
}

fn shown(value: &Value) -> String {
    value.as_ref().map_or("absent".to_owned(), Json::to_string)
}

/// All attacks by pods on a namespace. `target` is a pod there that complies and has the container `main`.
pub(crate) fn attacks(by: By, namespace: &str, target: &str) -> Vec<Attack> {
    let mut attacks = vec![];
    for field in container_fields() {
        for place in PLACES {
            for (value, means) in &field.values {
                let mut container = with(container("main"), &[(field.path, value.clone())]);
                for path in field.without {
                    container = with(container, &[(path, None)]);
                }
                // Any port is too many there.
                let forbidden = place == Place::Ephemeral && field.not_in_ephemeral && value.is_some();
                let means = if forbidden { Invalid } else { *means };
                let name = format!("{} {} in {place:?}", field.path, shown(value));
                let how = place.request(namespace, target, container);
                attacks.push(Attack::new(name, how, means.expect(by, field.check)));
            }
        }
    }
    attacks.extend(hosts_of_probes(by, namespace));
    let of_pods = pod_fields().into_iter().chain(whole_pods());
    attacks.extend(of_pods.map(|(name, check, pod, means)| {
        Attack::new(name, Request::pod(namespace, &pod), means.expect(by, check))
    }));
    attacks.extend(matrix(by, namespace));
    attacks
}

/// What the kubelet calls from the node.
fn hosts_of_probes(by: By, namespace: &str) -> Vec<Attack> {
    let mut attacks = vec![];
    for place in ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"] {
        for action in ["httpGet", "tcpSocket"] {
            for (host, means) in [
                (None, Fine),
                (Some(Json::Null), Fine),
                (Some(json!("")), Fine),
                (Some(json!("169.254.169.254")), Bad),
                (Some(json!("127.0.0.1")), Bad),
                (Some(json!("kubernetes.default.svc")), Bad),
                (Some(json!("::1")), Bad),
                (Some(json!(1)), Invalid),
            ] {
                let name = format!("{place}.{action}.host {}", shown(&host));
                let call = with(json!({"port": 80}), &[("host", host)]);
                let mut container = container("main");
                let mut at = &mut container;
                for step in place.split('.').chain([action]) {
                    at = &mut at[step];
                }
                *at = call;
                for place in [Place::Main, Place::Sidecar] {
                    let how = place.request(namespace, "", container.clone());
                    let name = format!("{name} in {place:?}");
                    attacks.push(Attack::new(name, how, means.expect(by, "hostProbesAndHostLifecycle")));
                }
            }
        }
    }
    attacks
}

type Case = (String, &'static str, Json, Means);

/// Fields of the pod itself.
fn pod_fields() -> Vec<Case> {
    let some = |value: Json, means: Means| (Some(value), means);
    let set = [(None, Fine), (Some(Json::Null), Fine), (Some(json!(false)), Fine), (Some(json!(true)), Bad)];
    let mut fields: Vec<(&str, &'static str, Vec<(Value, Means)>)> = vec![];
    for path in ["spec.hostNetwork", "spec.hostPID", "spec.hostIPC"] {
        fields.push((path, "hostNamespaces", of(&set, no_boolean())));
    }
    let must = |zero: Means| {
        of(
            &[(None, BadForTools), some(Json::Null, BadForTools), some(json!(UID), Fine), some(json!(UID + 1), BadForTools), some(json!(0), zero)],
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
    fields.push(("spec.securityContext.seccompProfile", "seccompProfile", of(&[(None, Bad), some(Json::Null, Bad)], seccomp())));
    fields.push(("spec.securityContext.appArmorProfile", "appArmorProfile", of(&[(None, Fine)], app_armor())));
    fields.push(("spec.securityContext.seLinuxOptions", "seLinuxOptions", of(&[(None, Fine)], se_linux())));
    let sysctl = |names: &[&str]| {
        json!(names.iter().map(|name| json!({"name": name, "value": "1"})).collect::<Vec<_>>())
    };
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

/// Pods in which several fields play together, and what a tenant may hope to be exempt by.
fn whole_pods() -> Vec<Case> {
    let mut cases: Vec<Case> = vec![];
    let mut case = |name: &str, check: &'static str, means: Means, changes: &[(&str, Value)]| {
        cases.push((name.to_owned(), check, with(complying("attack"), changes), means));
    };
    let yes = || Some(json!(true));
    let unset_context = ("spec.securityContext", None);
    case("no pod securityContext", "seccompProfile", Bad, std::slice::from_ref(&unset_context));
    case("null pod securityContext", "runAsNonRoot", Bad, &[("spec.securityContext", Some(Json::Null))]);
    case("empty pod securityContext", "runAsNonRoot", Bad, &[("spec.securityContext", Some(json!({})))]);
    // User namespaces relax the standards, from v1.35 on, and no profile with ids of its own.
    let in_namespace = ("spec.hostUsers", Some(json!(false)));
    let root = ("spec.securityContext.runAsUser", Some(json!(0)));
    let may_root = ("spec.securityContext.runAsNonRoot", Some(json!(false)));
    case("root in a user namespace", "runAsUser", BadForTools, &[in_namespace.clone(), root, may_root]);
    let other = ("spec.securityContext.runAsUser", Some(json!(UID + 1)));
    case("another tool in a user namespace", "runAsUser", BadForTools, &[in_namespace.clone(), other]);
    let unmasked = ("spec.containers.0.securityContext.procMount", Some(json!("Unmasked")));
    case("unmasked /proc in a user namespace", "procMount", Bad, &[in_namespace.clone(), unmasked]);
    case("a user namespace", "", Fine, std::slice::from_ref(&in_namespace));
    case("a user namespace and hostPID", "", Never, &[in_namespace, ("spec.hostPID", yes())]);
    // Pods for Windows are exempt from four checks of the standards; those of tools have no user then.
    let windows = || {
        vec![
            ("spec.os", Some(json!({"name": "windows"}))),
            ("spec.securityContext", Some(json!({"runAsNonRoot": true}))),
            ("spec.containers.0.securityContext", Some(json!({}))),
        ]
    };
    case("for Windows", "runAsUser", BadForTools, &windows());
    let mut root = windows();
    root.push(("spec.securityContext.runAsNonRoot", None));
    case("for Windows, perhaps as root", "runAsNonRoot", Bad, &root);
    let mut process = windows();
    process.push(("spec.hostNetwork", yes()));
    process.push(("spec.securityContext.windowsOptions", Some(json!({"hostProcess": true}))));
    case("a HostProcess pod", "windowsHostProcess", Bad, &process);
    let mut process = windows();
    process.push(("spec.hostNetwork", yes()));
    process.push(("spec.containers.0.securityContext.windowsOptions", Some(json!({"hostProcess": true}))));
    case("a HostProcess container", "windowsHostProcess", Bad, &process);
    case("for Windows, with fields of Linux", "", Invalid, &[("spec.os", Some(json!({"name": "windows"})))]);
    case("for Linux", "", Fine, &[("spec.os", Some(json!({"name": "linux"})))]);
    case("for WINDOWS", "", Invalid, &[("spec.os", Some(json!({"name": "WINDOWS"})))]);

    // Nothing that a tenant writes on a pod exempts it.
    let pid = || ("spec.hostPID", yes());
    for (name, path, value) in [
        ("annotated as static", "metadata.annotations", json!({"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "x"})),
        ("annotated as exempt", "metadata.annotations", json!({"toolsecurity.dev/exempt": "true", "toolsecurity.dev/profile": "none"})),
        ("labelled as of another profile", "metadata.labels", json!({"toolsecurity.dev/profile": "other"})),
        ("labelled as a probe", "metadata.labels", json!({"app.kubernetes.io/managed-by": "palisade"})),
        ("with another namespace's labels", "metadata.labels", json!({"kubernetes.io/metadata.name": "kube-system"})),
        ("about to be deleted", "metadata.deletionTimestamp", json!("2020-01-01T00:00:00Z")),
        ("made long ago", "metadata.creationTimestamp", json!("2020-01-01T00:00:00Z")),
        ("with a finalizer", "metadata.finalizers", json!(["example.com/hold"])),
        ("owned by a node", "metadata.ownerReferences", json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}])),
        ("that says it runs", "status", json!({"phase": "Running", "qosClass": "BestEffort"})),
        ("with a known uid", "metadata.uid", json!("00000000-0000-0000-0000-000000000000")),
        ("with a resource version", "metadata.generation", json!(7)),
        ("made by the kubelet", "metadata.managedFields", json!([])),
        ("gated", "spec.schedulingGates", json!([{"name": "example.com/later"}])),
    ] {
        case(&format!("hostPID, {name}"), "hostNamespaces", Bad, &[pid(), (path, Some(value))]);
    }
    let mirror = ("metadata.annotations", Some(json!({"kubernetes.io/config.mirror": "x"})));
    let node = ("spec.nodeName", Some(json!("node")));
    case("hostPID, a mirror of a node", "hostNamespaces", Bad, &[pid(), mirror.clone(), node]);
    case("a mirror without a node", "", Invalid, &[mirror]);
    case("ephemeral containers at creation", "", Invalid, &[("spec.ephemeralContainers", Some(json!([container("debugger")])))]);
    case("no containers", "", Invalid, &[("spec.containers", Some(json!([])))]);
    case("null containers", "", Invalid, &[("spec.containers", Some(Json::Null))]);
    case("containers as an object", "", Invalid, &[("spec.containers", Some(json!({"0": container("main")})))]);
    case("no spec", "", Invalid, &[("spec", None)]);
    // The annotations that fields replaced. The API server makes the field of AppArmor's, and none of seccomp's.
    let annotation = "container.apparmor.security.beta.kubernetes.io/";
    for (container, value, means) in [
        ("main", "unconfined", Bad),
        ("main", "runtime/default", Fine),
        ("main", "localhost/mine", Fine),
        ("main", "Unconfined", Never),
        ("main", "UNCONFINED", Never),
        ("main", "", Fine),
        ("nobody", "unconfined", Never),
    ] {
        let annotations = json!({format!("{annotation}{container}"): value});
        let name = format!("annotation of AppArmor {value:?} of {container}");
        case(&name, "appArmorProfile", means, &[("metadata.annotations", Some(annotations))]);
    }
    case(
        "annotation of AppArmor beside the field",
        "",
        Never,
        &[
            ("metadata.annotations", Some(json!({format!("{annotation}main"): "unconfined"}))),
            ("spec.containers.0.securityContext.appArmorProfile", Some(json!({"type": "RuntimeDefault"}))),
        ],
    );
    cases
}

/// What a pod says, and what each of two containers says: absent, good or bad, of fields that both have.
fn matrix(by: By, namespace: &str) -> Vec<Attack> {
    let fields = [
        ("runAsUser", json!(UID), json!(0), by == By::Toolforge),
        ("runAsNonRoot", json!(true), json!(false), true),
        ("seccompProfile", json!({"type": "RuntimeDefault"}), json!({"type": "Unconfined"}), true),
        ("appArmorProfile", json!({"type": "RuntimeDefault"}), json!({"type": "Unconfined"}), false),
        ("seLinuxOptions", json!({"type": "container_t"}), json!({"type": "spc_t"}), false),
    ];
    let mut attacks = vec![];
    for (check, good, bad, required) in fields {
        let says = [None, Some(good), Some(bad.clone())];
        for (of_pod, first, second) in triples(&says) {
            let mut pod = complying("attack");
            pod["spec"]["containers"] = json!([container("main"), container("second")]);
            let path = |at: &str| format!("spec.{at}securityContext.{check}");
            let pod = with(
                pod,
                &[
                    (&path(""), of_pod.clone()),
                    (&path("containers.0."), first.clone()),
                    (&path("containers.1."), second.clone()),
                ],
            );
            let any_bad = [of_pod, first, second].into_iter().any(|value| value.as_ref() == Some(&bad));
            let unset = [first, second].into_iter().any(|own| own.is_none() && of_pod.is_none());
            let means = if any_bad || (required && unset) { Bad } else { Fine };
            let name = format!("{check}: pod {}, containers {} and {}", shown(of_pod), shown(first), shown(second));
            attacks.push(Attack::new(name, Request::pod(namespace, &pod), means.expect(by, check)));
        }
    }
    attacks
}

fn triples<T>(of: &[T]) -> impl Iterator<Item = (&T, &T, &T)> {
    of.iter().flat_map(move |a| of.iter().flat_map(move |b| of.iter().map(move |c| (a, b, c))))
}

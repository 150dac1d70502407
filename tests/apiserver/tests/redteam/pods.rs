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
pub(crate) enum Means {
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
pub(crate) type Value = Option<Json>;

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

pub(crate) fn shown(value: &Value) -> String {
    value.as_ref().map_or("absent".to_owned(), Json::to_string)
}

/// All attacks by pods on a namespace. `target` is a pod there that complies and has the container `main`.
pub(crate) fn attacks(by: By, namespace: &str, target: &str) -> Vec<Attack> {
    let mut attacks = vec![];
    for field in crate::fields::of_containers() {
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
    let of_pods = crate::fields::of_pods().into_iter().chain(crate::whole::pods());
    attacks
        .extend(of_pods.map(|(name, check, pod, means)| {
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

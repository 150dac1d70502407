//! Defaults that are always the same.

use palisade_cel::Minor;
use serde_json::{Map, Value};

/// The value that a field is set to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Constant {
    Text(&'static str),
    Int(i64),
    Bool(bool),
    /// A struct behind a pointer, with nothing set.
    Empty,
    /// A map with nothing in it.
    One(&'static str),
}

impl Constant {
    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Text(text) => Value::from(text),
            Self::Int(number) => Value::from(number),
            Self::Bool(value) => Value::from(value),
            Self::Empty => Value::Object(Map::new()),
            Self::One(text) => Value::from(vec![text]),
        }
    }
}

use Constant::{Bool, Empty, Int, One, Text};

type Constants = &'static [(&'static str, Constant)];

const MODE: Constants = &[("defaultMode", Int(0o644))];
const WEBHOOK: Constants = &[
    ("failurePolicy", Text("Fail")),
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Empty),
    ("objectSelector", Empty),
    ("timeoutSeconds", Int(10)),
];
const MUTATING_WEBHOOK: Constants = &[
    ("failurePolicy", Text("Fail")),
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Empty),
    ("objectSelector", Empty),
    ("timeoutSeconds", Int(10)),
    ("reinvocationPolicy", Text("Never")),
];

/// The fields of a struct that are set if they are not.
pub(super) fn constants(_minor: Minor, part: &str) -> Constants {
    match part {
        "core/v1.PodSpec" => &[
            ("dnsPolicy", Text("ClusterFirst")),
            ("restartPolicy", Text("Always")),
            ("securityContext", Empty),
            ("terminationGracePeriodSeconds", Int(30)),
            ("schedulerName", Text("default-scheduler")),
        ],
        "core/v1.Probe" => &[
            ("timeoutSeconds", Int(1)),
            ("periodSeconds", Int(10)),
            ("successThreshold", Int(1)),
            ("failureThreshold", Int(3)),
        ],
        "core/v1.SecretVolumeSource"
        | "core/v1.ConfigMapVolumeSource"
        | "core/v1.DownwardAPIVolumeSource"
        | "core/v1.ProjectedVolumeSource" => MODE,
        "core/v1.ServiceAccountTokenProjection" | "authentication/v1.TokenRequestSpec" => {
            &[("expirationSeconds", Int(3600))]
        }
        "core/v1.HTTPGetAction" => &[("path", Text("/")), ("scheme", Text("HTTP"))],
        "core/v1.HostPathVolumeSource" => &[("type", Text(""))],
        "core/v1.ObjectFieldSelector" => &[("apiVersion", Text("v1"))],
        "core/v1.Secret" => &[("type", Text("Opaque"))],
        "core/v1.PodLogOptions" => &[("stream", Text("All"))],
        "core/v1.PersistentVolumeStatus" | "core/v1.PersistentVolumeClaimStatus" => &[("phase", Text("Pending"))],
        "core/v1.PersistentVolumeClaimSpec" => &[("volumeMode", Text("Filesystem"))],
        "core/v1.NamespaceStatus" => &[("phase", Text("Active"))],
        "core/v1.ConfigMap" => &[("data", Empty)],
        "batch/v1.CronJobSpec" => &[
            ("concurrencyPolicy", Text("Allow")),
            ("suspend", Bool(false)),
            ("successfulJobsHistoryLimit", Int(3)),
            ("failedJobsHistoryLimit", Int(1)),
        ],
        "batch/v1.PodFailurePolicyOnPodConditionsPattern" => &[("status", Text("True"))],
        "networking/v1.NetworkPolicyPort" => &[("protocol", Text("TCP"))],
        "storage/v1.StorageClass" | "storage/v1beta1.StorageClass" => {
            &[("reclaimPolicy", Text("Delete")), ("volumeBindingMode", Text("Immediate"))]
        }
        "scheduling/v1.PriorityClass" => &[("preemptionPolicy", Text("PreemptLowerPriority"))],
        "discovery/v1.EndpointPort" => &[("name", Text("")), ("protocol", Text("TCP"))],
        "apiextensions/v1.ServiceReference" => &[("port", Int(443))],
        "flowcontrol/v1.FlowSchemaSpec" => &[("matchingPrecedence", Int(1000))],
        "flowcontrol/v1.ExemptPriorityLevelConfiguration" => {
            &[("nominalConcurrencyShares", Int(0)), ("lendablePercent", Int(0))]
        }
        "flowcontrol/v1.LimitedPriorityLevelConfiguration" => {
            &[("nominalConcurrencyShares", Int(30)), ("lendablePercent", Int(0))]
        }
        "flowcontrol/v1.QueuingConfiguration" => {
            &[("handSize", Int(8)), ("queues", Int(64)), ("queueLengthLimit", Int(50))]
        }
        _ => admission(part),
    }
}

/// Of `admissionregistration.k8s.io`, whose versions have the same.
fn admission(part: &str) -> Constants {
    match part.strip_prefix("admissionregistration/").and_then(|rest| rest.split_once('.')) {
        Some((_, "ValidatingWebhook")) => WEBHOOK,
        Some((_, "MutatingWebhook")) => MUTATING_WEBHOOK,
        Some((_, "Rule")) => &[("scope", Text("*"))],
        Some((_, "ServiceReference")) => &[("port", Int(443))],
        Some(("v1alpha1", "ParamRef")) => &[("parameterNotFoundAction", Text("Deny"))],
        Some((_, "ValidatingAdmissionPolicySpec" | "MutatingAdmissionPolicySpec")) => {
            &[("failurePolicy", Text("Fail"))]
        }
        Some((_, "MatchResources")) => {
            &[("matchPolicy", Text("Equivalent")), ("namespaceSelector", Empty), ("objectSelector", Empty)]
        }
        _ => &[],
    }
}

/// The list of one that `storage/v1` declares.
pub(super) const PERSISTENT: Constant = One("Persistent");

//! Fields of a pod's `spec`, less containers and volumes.

use super::{
    Decision::{Checked, CheckedWhole, Of, Open, OpenWhole},
    Group, Type, group,
};

pub(super) static TYPES: &[Type] = &[
    Type { schemas: &["PodSpec"], title: "A pod: `spec`", groups: SPEC },
    Type { schemas: &["PodSecurityContext"], title: "`spec.securityContext`", groups: SECURITY_CONTEXT },
    Type {
        schemas: &["Sysctl"],
        title: "`spec.securityContext.sysctls[*]`",
        groups: &[
            group(&["name"], Checked),
            group(&["value"], Open("the check says which parameters may be set; any value of those may be.")),
        ],
    },
    Type {
        schemas: &["Toleration"],
        title: "`spec.tolerations[*]`",
        groups: &[
            group(&["key", "operator", "value", "effect"], Checked),
            group(
                &["tolerationSeconds"],
                Open(
                    "it only says how long a pod stays on a node that gets a taint, which the pod tolerates in any case.",
                ),
            ),
        ],
    },
    Type {
        schemas: &["PodDNSConfig"],
        title: "`spec.dnsConfig`",
        groups: &[group(&["nameservers", "searches", "options"], OpenWhole(DNS))],
    },
    Type {
        schemas: &["PodResourceClaim"],
        title: "`spec.resourceClaims[*]`",
        groups: &[
            group(&["name"], Open(NAME)),
            group(
                &["resourceClaimName", "resourceClaimTemplateName"],
                Open(
                    "they name objects of the same namespace. Which devices a claim may ask for is decided where it is \
                     made, and administrative access needs a label of the namespace (`resource.kubernetes.io/admin-access`).",
                ),
            ),
        ],
    },
];

const NAME: &str = "a name within the pod.";
const DNS: &str = "the pod asks other servers for names, which its processes can do anyway. Where they may connect to is for network \
                   policies.";

const SPEC: &[Group] = &[
    group(&["containers", "initContainers"], Of("Container")),
    group(&["ephemeralContainers"], Of("EphemeralContainer")),
    group(&["volumes"], Of("Volume")),
    group(&["securityContext"], Of("PodSecurityContext")),
    group(&["tolerations"], Of("Toleration")),
    group(&["dnsConfig"], Of("PodDNSConfig")),
    group(&["resourceClaims"], Of("PodResourceClaim")),
    group(
        &[
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "shareProcessNamespace",
            "serviceAccountName",
            "serviceAccount",
            "automountServiceAccountToken",
            "runtimeClassName",
            "priorityClassName",
            "schedulerName",
            "nodeName",
            "nodeSelector",
        ],
        Checked,
    ),
    group(&["hostAliases"], CheckedWhole("whether a pod has any is checked, not which.")),
    group(
        &["hostUsers"],
        Open(
            "true is what every pod has; false, a user namespace of its own, only takes privileges away. Some checks ask \
             less of such a pod where the profile says so. Palisade can default it to false \
             (`mutation.additionalDefaults`), and a custom check can demand it.",
        ),
    ),
    group(
        &["priority", "preemptionPolicy"],
        Open(
            "the API server sets both from the priority class, and rejects a pod with other values (admission plugin \
             Priority). In a template they are judged when its pods are made.",
        ),
    ),
    group(
        &["affinity"],
        OpenWhole(
            "it only narrows the choice of nodes: `nodeSelector` must hold besides it. Terms about pods of other namespaces \
             can be limited by a ResourceQuota with the scope CrossNamespacePodAffinity.",
        ),
    ),
    group(
        &["topologySpreadConstraints"],
        OpenWhole("they only narrow the choice of nodes, and count pods of the same namespace."),
    ),
    group(&["schedulingGates"], OpenWhole("they keep the pod itself from being scheduled, and nothing else.")),
    group(
        &["schedulingGroup", "workloadRef"],
        OpenWhole(
            "they name a group of pods of the same namespace that are scheduled together. The group has a priority class \
             of its own, which no pod shows: who may make PodGroups is for RBAC.",
        ),
    ),
    group(&["readinessGates"], OpenWhole("they keep the pod itself from being ready, and nothing else.")),
    group(
        &["evictionResponders"],
        OpenWhole(
            "they name who is asked before the pod is evicted by an EvictionRequest, each for a limited time. A drain that \
             uses `pods/eviction` asks none of them.",
        ),
    ),
    group(
        &["overhead"],
        Open(
            "the API server sets it from the runtime class, and rejects a pod with another one (admission plugin RuntimeClass).",
        ),
    ),
    group(&["resources"], OpenWhole("how much a namespace and a pod may use is for ResourceQuota and LimitRange.")),
    group(
        &["os"],
        OpenWhole(
            "it says which fields the API server takes, and the kubelet rejects a pod for another operating system. Checks \
             that a pod for Windows cannot satisfy exempt it only where `privileges.windows` says so.",
        ),
    ),
    group(
        &["imagePullSecrets"],
        OpenWhole(
            "they name Secrets of the same namespace. Whether an image that is on the node already needs one is for the \
             kubelet (`imagePullCredentialsVerificationPolicy`) or the admission plugin AlwaysPullImages.",
        ),
    ),
    group(
        &["dnsPolicy"],
        Open(
            "with `Default` the pod asks the servers that its node asks. Where it may connect to is for network policies.",
        ),
    ),
    group(
        &["hostname", "hostnameOverride", "subdomain", "setHostnameAsFQDN"],
        Open(
            "the name that the pod's processes see, and names below a headless Service of the same namespace. No other \
             pod's name resolution changes.",
        ),
    ),
    group(&["enableServiceLinks"], Open("it puts addresses of Services of the same namespace into the environment.")),
    group(
        &["activeDeadlineSeconds", "restartPolicy"],
        Open("they say when the pod's own containers end and start again."),
    ),
    group(&["terminationGracePeriodSeconds"], Open(super::containers::GRACE)),
];

const SECURITY_CONTEXT: &[Group] = &[
    group(
        &["runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "supplementalGroups", "supplementalGroupsPolicy"],
        Checked,
    ),
    group(&["seccompProfile"], Of("SeccompProfile")),
    group(&["appArmorProfile"], Of("AppArmorProfile")),
    group(&["seLinuxOptions"], Of("SELinuxOptions")),
    group(&["windowsOptions"], Of("WindowsSecurityContextOptions")),
    group(&["sysctls"], Of("Sysctl")),
    group(
        &["fsGroupChangePolicy"],
        Open("it says when the group of the pod's volumes is changed, to one that `fsGroup` allows."),
    ),
    group(
        &["seLinuxChangePolicy"],
        Open(
            "it says how the pod's volumes get the label that `seLinuxOptions` allows: by a mount option or file by file.",
        ),
    ),
];

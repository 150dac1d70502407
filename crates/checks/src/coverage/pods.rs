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
            group(&["value"], Open("The check limits the parameters that a pod sets, not their values.")),
        ],
    },
    Type {
        schemas: &["Toleration"],
        title: "`spec.tolerations[*]`",
        groups: &[
            group(&["key", "operator", "value", "effect"], Checked),
            group(
                &["tolerationSeconds"],
                Open("It only limits how long a pod stays on a node with a new taint that the pod tolerates."),
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
                    "They name objects of the same namespace. Devices are limited when a claim is created. \
                     Administrative access requires a label of the namespace (`resource.kubernetes.io/admin-access`).",
                ),
            ),
        ],
    },
];

const NAME: &str = "A name within the pod.";
const DNS: &str = "The pod sends DNS queries to other servers; its processes can do that anyway. Use network policies \
                   to limit connections.";

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
    group(&["hostAliases"], CheckedWhole("The check only tests whether a pod has any.")),
    group(
        &["hostUsers"],
        Open(
            "True is the default. False gives the pod a separate user namespace, which only removes privileges. Some \
             checks require less of such a pod if the profile permits it. Palisade can default it to false \
             (`mutation.additionalDefaults`), and a custom check can require false.",
        ),
    ),
    group(
        &["priority", "preemptionPolicy"],
        Open(
            "The API server sets both from the priority class, and rejects a pod with other values (admission plugin \
             Priority). In a template they are evaluated when its pods are created.",
        ),
    ),
    group(
        &["affinity"],
        OpenWhole(
            "It only narrows the choice of nodes; `nodeSelector` must also match. A ResourceQuota with the scope \
             CrossNamespacePodAffinity can limit terms about pods of other namespaces.",
        ),
    ),
    group(
        &["topologySpreadConstraints"],
        OpenWhole("They only narrow the choice of nodes, and count pods of the same namespace."),
    ),
    group(&["schedulingGates"], OpenWhole("They only delay the scheduling of the pod itself.")),
    group(
        &["schedulingGroup", "workloadRef"],
        OpenWhole(
            "They name a group of pods of the same namespace that are scheduled together. The group has a separate \
             priority class, which is not visible in a pod. Use RBAC to limit the creation of PodGroups.",
        ),
    ),
    group(&["readinessGates"], OpenWhole("They only delay the readiness of the pod itself.")),
    group(
        &["evictionResponders"],
        OpenWhole(
            "They name the responders that an EvictionRequest waits for before it evicts the pod, each for a limited \
             time. A drain by `pods/eviction` does not wait for them.",
        ),
    ),
    group(
        &["overhead"],
        Open(
            "The API server sets it from the runtime class, and rejects a pod with another value (admission plugin \
             RuntimeClass).",
        ),
    ),
    group(
        &["resources"],
        OpenWhole("Use ResourceQuota and LimitRange to limit the resources of a namespace and a pod."),
    ),
    group(
        &["os"],
        OpenWhole(
            "It determines the fields that the API server accepts, and the kubelet rejects a pod for another \
             operating system. Checks that a pod for Windows cannot satisfy exempt it only if `privileges.windows` \
             permits it.",
        ),
    ),
    group(
        &["imagePullSecrets"],
        OpenWhole(
            "They name Secrets of the same namespace. The kubelet (`imagePullCredentialsVerificationPolicy`) or the \
             admission plugin AlwaysPullImages decides whether an image that is already on the node needs one.",
        ),
    ),
    group(
        &["dnsPolicy"],
        Open("With `Default` the pod uses the DNS servers of its node. Use network policies to limit connections."),
    ),
    group(
        &["hostname", "hostnameOverride", "subdomain", "setHostnameAsFQDN"],
        Open(
            "The name that the pod's processes see, and names below a headless Service of the same namespace. The \
             name resolution of other pods does not change.",
        ),
    ),
    group(&["enableServiceLinks"], Open("It adds addresses of Services of the same namespace to the environment.")),
    group(
        &["activeDeadlineSeconds", "restartPolicy"],
        Open("They determine when the pod's own containers end and restart."),
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
        Open("It determines when the group of the pod's volumes is changed to a group that `fsGroup` allows."),
    ),
    group(
        &["seLinuxChangePolicy"],
        Open(
            "It determines how the pod's volumes get the label that `seLinuxOptions` allows: by a mount option or \
             file by file.",
        ),
    ),
];

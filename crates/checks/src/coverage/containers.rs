//! Fields of containers, init containers and ephemeral containers.

use super::{
    Decision::{Checked, Of, Open, OpenWhole},
    Group, Type, group,
};

pub(super) static TYPES: &[Type] = &[
    Type {
        schemas: &["Container", "EphemeralContainer"],
        title: "A container: `spec.containers[*]`, `spec.initContainers[*]`, `spec.ephemeralContainers[*]`",
        groups: CONTAINER,
    },
    Type { schemas: &["SecurityContext"], title: "`securityContext` of a container", groups: SECURITY_CONTEXT },
    Type {
        schemas: &["Capabilities"],
        title: "`securityContext.capabilities` of a container",
        groups: &[group(&["add", "drop"], Checked)],
    },
    Type {
        schemas: &["SeccompProfile"],
        title: "`securityContext.seccompProfile` of a pod or container",
        groups: &[group(&["type", "localhostProfile"], Checked)],
    },
    Type {
        schemas: &["AppArmorProfile"],
        title: "`securityContext.appArmorProfile` of a pod or container",
        groups: &[group(&["type", "localhostProfile"], Checked)],
    },
    Type {
        schemas: &["SELinuxOptions"],
        title: "`securityContext.seLinuxOptions` of a pod or container",
        groups: &[group(&["type", "user", "role", "level"], Checked)],
    },
    Type {
        schemas: &["WindowsSecurityContextOptions"],
        title: "`securityContext.windowsOptions` of a pod or container",
        groups: &[
            group(&["hostProcess"], Checked),
            group(
                &["gmsaCredentialSpec", "gmsaCredentialSpecName"],
                Open(
                    "the webhook of group-managed service accounts asks RBAC whether the pod's service account may use \
                     the account. Clusters without Windows nodes have none.",
                ),
            ),
            group(
                &["runAsUserName"],
                Open(
                    "it names a user of the container's image. Users of Windows have no numbers, and no account of the \
                     node is reached by a name unless the container is a HostProcess container.",
                ),
            ),
        ],
    },
    Type {
        schemas: &["VolumeMount"],
        title: "`volumeMounts[*]` of a container",
        groups: &[
            group(&["readOnly", "recursiveReadOnly", "mountPropagation"], Checked),
            group(&["name", "mountPath"], Open("which volume of the pod is mounted, and where in the container.")),
            group(
                &["subPath", "subPathExpr"],
                Open(
                    "a path below the volume; the kubelet follows no link out of it. What the volume is, other checks \
                     say.",
                ),
            ),
            group(&["bindMountOptions"], Open("noexec, nodev and nosuid only take privileges away.")),
        ],
    },
    Type {
        schemas: &["VolumeDevice"],
        title: "`volumeDevices[*]` of a container",
        groups: &[group(
            &["name", "devicePath"],
            Open(
                "a block device comes from a claim of the same namespace, and its volume must have the mode Block: which \
                 volumes there are is for storage classes and admins.",
            ),
        )],
    },
    Type {
        schemas: &["ContainerPort"],
        title: "`ports[*]` of a container",
        groups: &[
            group(&["hostPort"], Checked),
            group(&["hostIP"], Open("it has a meaning only beside `hostPort`, which is restricted.")),
            group(
                &["name", "containerPort", "protocol"],
                Open("it informs; a container can listen on any port of its pod."),
            ),
        ],
    },
    Type {
        schemas: &["Probe"],
        title: "`livenessProbe`, `readinessProbe`, `startupProbe` of a container",
        groups: &[
            group(&["exec"], OpenWhole(EXEC)),
            group(&["httpGet"], Of("HTTPGetAction")),
            group(&["tcpSocket"], Of("TCPSocketAction")),
            group(&["grpc"], OpenWhole("the kubelet calls the pod's own address: such a probe can name no other.")),
            group(
                &["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"],
                Open("when the kubelet asks, at most once in a second, and when the container counts as failed."),
            ),
            group(&["terminationGracePeriodSeconds"], Open(GRACE)),
        ],
    },
    Type {
        schemas: &["Lifecycle"],
        title: "`lifecycle` of a container",
        groups: &[
            group(&["postStart", "preStop"], Of("LifecycleHandler")),
            group(
                &["stopSignal"],
                Open("which signal ends the container's own process. It is killed after its grace period."),
            ),
        ],
    },
    Type {
        schemas: &["LifecycleHandler"],
        title: "`lifecycle.postStart`, `lifecycle.preStop` of a container",
        groups: &[
            group(&["exec"], OpenWhole(EXEC)),
            group(&["httpGet"], Of("HTTPGetAction")),
            group(&["tcpSocket"], Of("TCPSocketAction")),
            group(&["sleep"], OpenWhole("the API server limits it by the grace period.")),
        ],
    },
    Type {
        schemas: &["HTTPGetAction"],
        title: "`httpGet` of probes and lifecycle handlers",
        groups: &[
            group(&["host"], Checked),
            group(
                &["httpHeaders"],
                OpenWhole(
                    "a header `Host` changes what the request says, not whom the kubelet calls: that is the pod's own \
                     address, as `host` is restricted.",
                ),
            ),
            group(
                &["path", "port", "scheme", "protocol"],
                Open("how the kubelet asks at the pod's own address, as `host` is restricted."),
            ),
        ],
    },
    Type {
        schemas: &["TCPSocketAction"],
        title: "`tcpSocket` of probes and lifecycle handlers",
        groups: &[
            group(&["host"], Checked),
            group(&["port"], Open("a port at the pod's own address, as `host` is restricted.")),
        ],
    },
    Type {
        schemas: &["EnvVar"],
        title: "`env[*]` of a container",
        groups: &[
            group(&["name", "value"], Open("what the container's own processes read.")),
            group(
                &["valueFrom"],
                OpenWhole(
                    "it reads ConfigMaps and Secrets of the same namespace, fields of the pod itself, or a file of one of \
                     its volumes (`fileKeyRef`). Which Secrets a pod may use is for the namespace.",
                ),
            ),
        ],
    },
];

const EXEC: &str = "it runs inside of the container, with the container's privileges.";
pub(super) const GRACE: &str = "whoever may delete a pod may say any grace period, or set a finalizer, so that a limit would not \
                                hold. Whoever drains a node or empties a namespace can say a shorter one.";

const CONTAINER: &[Group] = &[
    group(&["image"], Checked),
    group(&["securityContext"], Of("SecurityContext")),
    group(&["volumeMounts"], Of("VolumeMount")),
    group(&["volumeDevices"], Of("VolumeDevice")),
    group(&["ports"], Of("ContainerPort")),
    group(&["livenessProbe", "readinessProbe", "startupProbe"], Of("Probe")),
    group(&["lifecycle"], Of("Lifecycle")),
    group(&["env"], Of("EnvVar")),
    group(
        &["envFrom"],
        OpenWhole(
            "it reads ConfigMaps and Secrets of the same namespace. Which Secrets a pod may use is for the namespace.",
        ),
    ),
    group(
        &["imagePullPolicy"],
        Open(
            "whether an image that is on the node already may be used without asking its registry is for the kubelet \
             (`imagePullCredentialsVerificationPolicy`) or the admission plugin AlwaysPullImages.",
        ),
    ),
    group(
        &["name", "command", "args", "workingDir"],
        Open("what runs in the container. The other checks confine it whatever it is."),
    ),
    group(
        &["stdin", "stdinOnce", "tty"],
        Open("whether its input can be attached to, which is for RBAC (`pods/attach`)."),
    ),
    group(
        &["terminationMessagePath", "terminationMessagePolicy"],
        Open(
            "where the container writes why it ended: a file in the container, of which the kubelet reads at most 4 KiB.",
        ),
    ),
    group(
        &["resources", "resizePolicy"],
        OpenWhole("how much a namespace and a container may use is for ResourceQuota and LimitRange."),
    ),
    group(
        &["restartPolicy", "restartPolicyRules"],
        OpenWhole(
            "they say when the container itself, or the pod with it, starts again. The kubelet waits longer each time.",
        ),
    ),
    group(
        &["targetContainerName"],
        Open(
            "an ephemeral container sees the processes of another container of the same pod. Who may add one is for RBAC \
             (`pods/ephemeralcontainers`).",
        ),
    ),
];

const SECURITY_CONTEXT: &[Group] = &[
    group(
        &[
            "privileged",
            "allowPrivilegeEscalation",
            "procMount",
            "readOnlyRootFilesystem",
            "runAsUser",
            "runAsGroup",
            "runAsNonRoot",
        ],
        Checked,
    ),
    group(&["capabilities"], Of("Capabilities")),
    group(&["seccompProfile"], Of("SeccompProfile")),
    group(&["appArmorProfile"], Of("AppArmorProfile")),
    group(&["seLinuxOptions"], Of("SELinuxOptions")),
    group(&["windowsOptions"], Of("WindowsSecurityContextOptions")),
];

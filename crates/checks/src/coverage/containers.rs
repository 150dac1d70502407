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
                    "The webhook of group-managed service accounts checks by RBAC that the pod's service account may \
                     use the account. Clusters without Windows nodes have none.",
                ),
            ),
            group(
                &["runAsUserName"],
                Open(
                    "It names a user of the container's image. Windows users have no numeric ids, and only a \
                     HostProcess container can use an account of the node by its name.",
                ),
            ),
        ],
    },
    Type {
        schemas: &["VolumeMount"],
        title: "`volumeMounts[*]` of a container",
        groups: &[
            group(&["readOnly", "recursiveReadOnly", "mountPropagation"], Checked),
            group(&["name", "mountPath"], Open("The volume of the pod, and its path in the container.")),
            group(
                &["subPath", "subPathExpr"],
                Open(
                    "A path below the volume; the kubelet follows no link out of it. Other checks restrict the \
                     volume.",
                ),
            ),
            group(&["bindMountOptions"], Open("The options noexec, nodev and nosuid only remove privileges.")),
        ],
    },
    Type {
        schemas: &["VolumeDevice"],
        title: "`volumeDevices[*]` of a container",
        groups: &[group(
            &["name", "devicePath"],
            Open(
                "A block device comes from a claim of the same namespace, and its volume must have the mode Block. \
                 Storage classes and admins limit the volumes.",
            ),
        )],
    },
    Type {
        schemas: &["ContainerPort"],
        title: "`ports[*]` of a container",
        groups: &[
            group(&["hostPort"], Checked),
            group(&["hostIP"], Open("It has an effect only with `hostPort`, which is restricted.")),
            group(
                &["name", "containerPort", "protocol"],
                Open("Informational; a container can listen on any port of its pod."),
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
            group(
                &["grpc"],
                OpenWhole("The kubelet calls the pod's own address. Such a probe cannot name another one."),
            ),
            group(
                &["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"],
                Open(
                    "The times at which the kubelet probes, at most once in a second, and the number of failures \
                     until the container counts as failed.",
                ),
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
                Open("The signal that ends the container's own process. The process is killed after its grace period."),
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
            group(&["sleep"], OpenWhole("The API server limits it by the grace period.")),
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
                    "A header `Host` changes the request, not the address that the kubelet calls. That is the pod's \
                     own address, because `host` is restricted.",
                ),
            ),
            group(
                &["path", "port", "scheme", "protocol"],
                Open("They are part of a request to the pod's own address, because `host` is restricted."),
            ),
        ],
    },
    Type {
        schemas: &["TCPSocketAction"],
        title: "`tcpSocket` of probes and lifecycle handlers",
        groups: &[
            group(&["host"], Checked),
            group(&["port"], Open("A port at the pod's own address, because `host` is restricted.")),
        ],
    },
    Type {
        schemas: &["EnvVar"],
        title: "`env[*]` of a container",
        groups: &[
            group(&["name", "value"], Open("Only the container's own processes read them.")),
            group(
                &["valueFrom"],
                OpenWhole(
                    "It reads ConfigMaps and Secrets of the same namespace, fields of the pod itself, or a file of \
                     one of its volumes (`fileKeyRef`). The namespace is the boundary for Secrets.",
                ),
            ),
        ],
    },
];

const EXEC: &str = "It runs inside of the container, with the container's privileges.";
pub(super) const GRACE: &str = "A limit would have no effect: users with permission to delete a pod can give any \
                                grace period, or set a finalizer. A drain of a node or the deletion of a namespace \
                                can use a shorter one.";

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
        OpenWhole("It reads ConfigMaps and Secrets of the same namespace. The namespace is the boundary for Secrets."),
    ),
    group(
        &["imagePullPolicy"],
        Open(
            "The kubelet (`imagePullCredentialsVerificationPolicy`) or the admission plugin AlwaysPullImages decides \
             whether an image on the node may be used without a request to its registry.",
        ),
    ),
    group(
        &["name", "command", "args", "workingDir"],
        Open("The processes of the container. The other checks confine any process."),
    ),
    group(
        &["stdin", "stdinOnce", "tty"],
        Open("They permit attaching to its input. Use RBAC (`pods/attach`) to limit that."),
    ),
    group(
        &["terminationMessagePath", "terminationMessagePolicy"],
        Open("A file in the container for its termination message. The kubelet reads at most 4 KiB of it."),
    ),
    group(
        &["resources", "resizePolicy"],
        OpenWhole("Use ResourceQuota and LimitRange to limit the resources of a namespace and a container."),
    ),
    group(
        &["restartPolicy", "restartPolicyRules"],
        OpenWhole(
            "They determine when the container itself, or the pod with it, restarts. The kubelet waits longer each \
             time.",
        ),
    ),
    group(
        &["targetContainerName"],
        Open(
            "An ephemeral container sees the processes of another container of the same pod. Use RBAC \
             (`pods/ephemeralcontainers`) to limit who adds one.",
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

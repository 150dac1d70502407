//! Kinds of volumes, and fields of those that a Restricted pod may have.

use super::{
    Decision::{Checked, CheckedWhole, Of, Open, OpenWhole},
    Group, Type, group,
};

pub(super) static TYPES: &[Type] = &[
    Type { schemas: &["Volume"], title: "A volume: `spec.volumes[*]`", groups: VOLUME },
    Type { schemas: &["HostPathVolumeSource"], title: "`hostPath`", groups: &[group(&["path", "type"], Checked)] },
    Type {
        schemas: &["CSIVolumeSource"],
        title: "`csi`",
        groups: &[
            group(&["driver"], Checked),
            group(
                &["volumeAttributes", "readOnly", "fsType"],
                OpenWhole(
                    "Their meaning depends on the driver. The check limits the drivers. Do not allow a driver whose \
                     attributes give too many privileges.",
                ),
            ),
            group(&["nodePublishSecretRef"], OpenWhole(SECRET)),
        ],
    },
    Type {
        schemas: &["FlexVolumeSource"],
        title: "`flexVolume`",
        groups: &[
            group(&["driver"], Checked),
            group(
                &["options", "readOnly", "fsType"],
                OpenWhole("Their meaning depends on the driver. The check limits the drivers."),
            ),
            group(&["secretRef"], OpenWhole(SECRET)),
        ],
    },
    Type {
        schemas: &["ImageVolumeSource"],
        title: "`image`",
        groups: &[
            group(&["reference"], Checked),
            group(&["pullPolicy"], Open("Like `imagePullPolicy` of a container.")),
        ],
    },
    Type {
        schemas: &["PersistentVolumeClaimVolumeSource"],
        title: "`persistentVolumeClaim`",
        groups: &[
            group(
                &["claimName"],
                Open("It names a claim of the same namespace. Claims are limited when they are created."),
            ),
            group(&["readOnly"], Open("True only removes access.")),
        ],
    },
    Type {
        schemas: &["EphemeralVolumeSource"],
        title: "`ephemeral`",
        groups: &[group(
            &["volumeClaimTemplate"],
            OpenWhole(
                "The control plane creates a claim from it in the same namespace. Quotas and policies evaluate it \
                 like other claims.",
            ),
        )],
    },
    Type {
        schemas: &["EmptyDirVolumeSource"],
        title: "`emptyDir`",
        groups: &[
            group(
                &["medium", "sizeLimit"],
                Open(
                    "Use LimitRange and ResourceQuota (`ephemeral-storage`) to limit the size. A volume in memory \
                     counts against the memory limits of the containers.",
                ),
            ),
            group(&["mode"], Open("The permissions of a directory that only this pod sees.")),
        ],
    },
    Type {
        schemas: &["ConfigMapVolumeSource", "SecretVolumeSource", "DownwardAPIVolumeSource"],
        title: "`configMap`, `secret`, `downwardAPI`",
        groups: &[
            group(
                &["name", "secretName", "items", "optional"],
                OpenWhole(
                    "They read ConfigMaps and Secrets of the same namespace, and fields of the pod itself. The \
                     namespace is the boundary for Secrets.",
                ),
            ),
            group(&["defaultMode", "defaultUser"], Open(FILES)),
        ],
    },
    Type {
        schemas: &["ProjectedVolumeSource"],
        title: "`projected`",
        groups: &[group(&["sources"], Of("VolumeProjection")), group(&["defaultMode", "defaultUser"], Open(FILES))],
    },
    Type {
        schemas: &["VolumeProjection"],
        title: "`projected.sources[*]`",
        groups: &[
            group(&["configMap", "secret", "downwardAPI"], OpenWhole("Like the volumes of these kinds.")),
            group(
                &["clusterTrustBundle"],
                OpenWhole("Trust anchors are public. Every pod may read them, and they contain no keys."),
            ),
            group(&["serviceAccountToken"], Of("ServiceAccountTokenProjection")),
            group(
                &["podCertificate"],
                OpenWhole(
                    "The kubelet requests a certificate of the pod from a signer. The API server gives the signer the \
                     pod, service account and node, and the signer decides. A custom check can allow signers by name.",
                ),
            ),
        ],
    },
    Type {
        schemas: &["ServiceAccountTokenProjection"],
        title: "`projected.sources[*].serviceAccountToken`",
        groups: &[group(&["audience", "expirationSeconds"], Checked), group(&["path", "user"], Open(FILES))],
    },
];

const SECRET: &str = "It names a Secret of the same namespace.";
const FILES: &str = "Permissions and owner of files that only this pod sees.";
const OF_A_SERVER: &str = "The kind names a server or a disk, which no check compares. Only privileged users should \
                           have it; others get such volumes by a `persistentVolumeClaim`.";

const VOLUME: &[Group] = &[
    group(&["name"], Open("A name within the pod.")),
    group(&["hostPath"], Of("HostPathVolumeSource")),
    group(&["csi"], Of("CSIVolumeSource")),
    group(&["flexVolume"], Of("FlexVolumeSource")),
    group(&["image"], Of("ImageVolumeSource")),
    group(&["persistentVolumeClaim"], Of("PersistentVolumeClaimVolumeSource")),
    group(&["ephemeral"], Of("EphemeralVolumeSource")),
    group(&["emptyDir"], Of("EmptyDirVolumeSource")),
    group(&["configMap"], Of("ConfigMapVolumeSource")),
    group(&["secret"], Of("SecretVolumeSource")),
    group(&["downwardAPI"], Of("DownwardAPIVolumeSource")),
    group(&["projected"], Of("ProjectedVolumeSource")),
    group(
        &[
            "awsElasticBlockStore",
            "azureDisk",
            "azureFile",
            "cephfs",
            "cinder",
            "fc",
            "flocker",
            "gcePersistentDisk",
            "glusterfs",
            "iscsi",
            "nfs",
            "photonPersistentDisk",
            "portworxVolume",
            "quobyte",
            "rbd",
            "scaleIO",
            "storageos",
            "vsphereVolume",
        ],
        CheckedWhole(OF_A_SERVER),
    ),
    group(
        &["gitRepo"],
        CheckedWhole(
            "The kubelet no longer fetches repositories, which could run programs on the node. Only the kind is \
             compared.",
        ),
    ),
];

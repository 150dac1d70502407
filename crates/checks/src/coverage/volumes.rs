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
                    "what they mean each driver decides. The check says which drivers a pod may use; a driver whose \
                     attributes give too much should not be one of them.",
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
                OpenWhole("what they mean each driver decides. The check says which drivers a pod may use."),
            ),
            group(&["secretRef"], OpenWhole(SECRET)),
        ],
    },
    Type {
        schemas: &["ImageVolumeSource"],
        title: "`image`",
        groups: &[group(&["reference"], Checked), group(&["pullPolicy"], Open("as `imagePullPolicy` of a container."))],
    },
    Type {
        schemas: &["PersistentVolumeClaimVolumeSource"],
        title: "`persistentVolumeClaim`",
        groups: &[
            group(
                &["claimName"],
                Open("it names a claim of the same namespace. What a claim may ask for is decided where it is made."),
            ),
            group(&["readOnly"], Open("true only takes away.")),
        ],
    },
    Type {
        schemas: &["EphemeralVolumeSource"],
        title: "`ephemeral`",
        groups: &[group(
            &["volumeClaimTemplate"],
            OpenWhole(
                "the control plane makes a claim of it in the same namespace, which quotas, and policies for claims, judge as \
                 any other.",
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
                    "how much a pod may use is for LimitRange and ResourceQuota (`ephemeral-storage`). What is in memory \
                     counts against the memory limits of the containers.",
                ),
            ),
            group(&["mode"], Open("the permissions of a directory that only this pod sees.")),
        ],
    },
    Type {
        schemas: &["ConfigMapVolumeSource", "SecretVolumeSource", "DownwardAPIVolumeSource"],
        title: "`configMap`, `secret`, `downwardAPI`",
        groups: &[
            group(
                &["name", "secretName", "items", "optional"],
                OpenWhole(
                    "they read ConfigMaps and Secrets of the same namespace, and fields of the pod itself. Which Secrets a \
                     pod may use is for the namespace.",
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
            group(&["configMap", "secret", "downwardAPI"], OpenWhole("as the volumes of these kinds.")),
            group(
                &["clusterTrustBundle"],
                OpenWhole("trust anchors are public: they are there for every pod to read, and hold no keys."),
            ),
            group(&["serviceAccountToken"], Of("ServiceAccountTokenProjection")),
            group(
                &["podCertificate"],
                OpenWhole(
                    "the kubelet asks a signer for a certificate of the pod. The signer is told pod, service account and node \
                     by the API server and decides what they may have; a custom check can allow signers by name.",
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

const SECRET: &str = "it names a Secret of the same namespace.";
const FILES: &str = "permissions and owner of files that only this pod sees.";
const OF_A_SERVER: &str = "it names a server or a disk, which no check compares. Only privileged users should have this kind; \
                           others get such volumes by a `persistentVolumeClaim`.";

const VOLUME: &[Group] = &[
    group(&["name"], Open("a name within the pod.")),
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
            "the kubelet no longer fetches repositories (it could run programs of them on the node); only the kind is compared.",
        ),
    ),
];

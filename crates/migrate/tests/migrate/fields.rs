//! Each field of a `PodSecurityPolicy`: what pods may do under the profile that it becomes.
use std::collections::BTreeSet;

use crate::common::{
    APP_ARMOR, APP_ARMOR_DEFAULT, SECCOMP, SECCOMP_DEFAULT, defaulted, denial, judge, migrate, pod, policy,
};
use palisade_migrate::{Kind, Options, psp::PodSecurityPolicy, rbac::Rbac};
use serde_json::{Value as Json, json};

/// A field, how a policy that allows everything is changed, pods that pass, pods that do not, and the note.
type Case = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], Option<Kind>);

const CASES: &[Case] = &[
    (
        "privileged",
        "privileged: null",
        &["", "c: {securityContext: {privileged: false}}"],
        &["c: {securityContext: {privileged: true}}"],
        None,
    ),
    ("privileged", "privileged: true", &["c: {securityContext: {privileged: true}}"], &[], None),
    // Empty lists of capabilities allow none to be added, and ask for none to be dropped.
    (
        "allowedCapabilities",
        "allowedCapabilities: []",
        &["", "c: {securityContext: {capabilities: {drop: [KILL]}}}"],
        &["c: {securityContext: {capabilities: {add: [KILL]}}}"],
        None,
    ),
    (
        "allowedCapabilities",
        "allowedCapabilities: [KILL]",
        &["c: {securityContext: {capabilities: {add: [KILL]}}}"],
        &["c: {securityContext: {capabilities: {add: [KILL, CHOWN]}}}"],
        None,
    ),
    (
        "allowedCapabilities",
        "allowedCapabilities: ['*']",
        &["c: {securityContext: {capabilities: {add: [SYS_ADMIN]}}}"],
        &[],
        None,
    ),
    (
        "allowedCapabilities",
        "allowedCapabilities: [CAP_KILL]",
        &[""],
        &[
            "c: {securityContext: {capabilities: {add: [KILL]}}}",
            "c: {securityContext: {capabilities: {add: [CAP_KILL]}}}",
        ],
        Some(Kind::Stricter),
    ),
    (
        "requiredDropCapabilities",
        "{allowedCapabilities: [], requiredDropCapabilities: [NET_RAW, KILL]}",
        &[
            "c: {securityContext: {capabilities: {drop: [KILL, NET_RAW]}}}",
            "c: {securityContext: {capabilities: {drop: [ALL]}}}",
            "{os: {name: windows}}",
        ],
        &["", "c: {securityContext: {capabilities: {drop: [KILL]}}}"],
        Some(Kind::Stricter),
    ),
    (
        "defaultAddCapabilities",
        "{allowedCapabilities: [], defaultAddCapabilities: [CHOWN]}",
        &["", "c: {securityContext: {capabilities: {add: [CHOWN]}}}"],
        &["c: {securityContext: {capabilities: {add: [KILL]}}}"],
        Some(Kind::Default),
    ),
    (
        "volumes",
        "volumes: []",
        &[""],
        &["volumes: [{name: v, emptyDir: {}}]", "volumes: [{name: v, projected: {sources: []}}]"],
        None,
    ),
    (
        "volumes",
        "volumes: ['*']",
        &["volumes: [{name: v, nfs: {server: s, path: /}}]", "volumes: [{name: v, hostPath: {path: /}}]"],
        &[],
        None,
    ),
    // In a policy cephFS, in a pod cephfs.
    (
        "volumes",
        "volumes: [cephFS, emptyDir]",
        &["volumes: [{name: v, cephfs: {monitors: []}}, {name: w, emptyDir: {}}]"],
        &["volumes: [{name: v, cephfs: {monitors: []}}, {name: w, secret: {secretName: s}}]"],
        None,
    ),
    // The token of the service account came in by secret.
    (
        "volumes",
        "volumes: [secret]",
        &["volumes: [{name: kube-api-access, projected: {sources: [{serviceAccountToken: {path: token}}]}}]"],
        &["volumes: [{name: v, configMap: {name: c}}]"],
        Some(Kind::Looser),
    ),
    ("hostNetwork", "hostNetwork: false", &[""], &["hostNetwork: true"], None),
    ("hostNetwork", "hostNetwork: true", &["hostNetwork: true"], &[], None),
    ("hostPID", "hostPID: false", &["hostPID: false"], &["hostPID: true"], None),
    ("hostIPC", "hostIPC: false", &["hostIPC: false"], &["hostIPC: true"], None),
    (
        "hostPorts",
        "hostPorts: null",
        &["c: {ports: [{containerPort: 80}]}", "c: {ports: [{containerPort: 80, hostPort: 0}]}"],
        &["c: {ports: [{containerPort: 80, hostPort: 80}]}"],
        None,
    ),
    (
        "hostPorts",
        "hostPorts: [{min: 80, max: 90}, {min: 443, max: 443}]",
        &["c: {ports: [{containerPort: 1, hostPort: 90}, {containerPort: 2, hostPort: 443}]}"],
        &["c: {ports: [{containerPort: 90, hostPort: 91}]}"],
        None,
    ),
    (
        "seLinux",
        "seLinux: {rule: MustRunAs, seLinuxOptions: {level: 's0:c1,c2', type: t_t}}",
        &[
            "securityContext: {seLinuxOptions: {level: 's0:c1,c2', type: t_t}}",
            "c: {securityContext: {seLinuxOptions: {level: 's0:c2,c1', type: t_t}}}",
        ],
        &[
            "",
            "securityContext: {seLinuxOptions: {type: t_t}}",
            "securityContext: {seLinuxOptions: {level: 's0:c1,c2', type: u_t}}",
            "securityContext: {seLinuxOptions: {level: 's0:c1,c2', type: t_t, user: root}}",
        ],
        Some(Kind::Defaulted),
    ),
    // What the policy leaves empty must be empty.
    (
        "seLinux",
        "seLinux: {rule: MustRunAs, seLinuxOptions: {}}",
        &[""],
        &["securityContext: {seLinuxOptions: {level: s0}}"],
        None,
    ),
    (
        "runAsUser",
        "runAsUser: {rule: MustRunAs, ranges: [{min: 10, max: 20}, {min: 30, max: 30}]}",
        &[
            "securityContext: {runAsUser: 20}",
            "c: {securityContext: {runAsUser: 30}}",
            "{securityContext: {runAsUser: 99}, c: {securityContext: {runAsUser: 30}}}",
        ],
        &["", "securityContext: {runAsUser: 21}", "c: {securityContext: {runAsUser: 0}}"],
        Some(Kind::Defaulted),
    ),
    (
        "runAsUser",
        "runAsUser: {rule: MustRunAsNonRoot}",
        &["securityContext: {runAsNonRoot: true}", "c: {securityContext: {runAsNonRoot: true, runAsUser: 5}}"],
        &[
            "",
            "c: {securityContext: {runAsNonRoot: true, runAsUser: 0}}",
            "c: {securityContext: {runAsNonRoot: false}}",
        ],
        Some(Kind::Defaulted),
    ),
    (
        "runAsUser",
        "runAsUser: {rule: RunAsAny, ranges: [{min: 1, max: 2}]}",
        &["", "c: {securityContext: {runAsUser: 0}}"],
        &[],
        Some(Kind::Note),
    ),
    ("runAsGroup", "runAsGroup: null", &["", "c: {securityContext: {runAsGroup: 0}}"], &[], None),
    (
        "runAsGroup",
        "runAsGroup: {rule: MustRunAs, ranges: [{min: 10, max: 20}]}",
        &["securityContext: {runAsGroup: 10}"],
        &["", "securityContext: {runAsGroup: 9}"],
        Some(Kind::Defaulted),
    ),
    (
        "runAsGroup",
        "runAsGroup: {rule: MayRunAs, ranges: [{min: 10, max: 20}]}",
        &["", "securityContext: {runAsGroup: 10}"],
        &["securityContext: {runAsGroup: 9}"],
        None,
    ),
    (
        "fsGroup",
        "fsGroup: {rule: MustRunAs, ranges: [{min: 10, max: 20}]}",
        &["securityContext: {fsGroup: 10}"],
        &["", "securityContext: {fsGroup: 21}"],
        Some(Kind::Defaulted),
    ),
    (
        "fsGroup",
        "fsGroup: {rule: MayRunAs, ranges: [{min: 10, max: 20}]}",
        &["", "securityContext: {fsGroup: 10}"],
        &["securityContext: {fsGroup: 0}"],
        None,
    ),
    (
        "supplementalGroups",
        "supplementalGroups: {rule: MustRunAs, ranges: [{min: 10, max: 20}]}",
        &["securityContext: {supplementalGroups: [10, 11]}"],
        &["", "securityContext: {supplementalGroups: [10, 21]}"],
        Some(Kind::Defaulted),
    ),
    (
        "supplementalGroups",
        "supplementalGroups: {rule: MayRunAs, ranges: [{min: 10, max: 20}]}",
        &[""],
        &["securityContext: {supplementalGroups: [0]}"],
        None,
    ),
    (
        "readOnlyRootFilesystem",
        "readOnlyRootFilesystem: true",
        &["c: {securityContext: {readOnlyRootFilesystem: true}}"],
        &["", "c: {securityContext: {readOnlyRootFilesystem: false}}"],
        Some(Kind::Defaulted),
    ),
    (
        "readOnlyRootFilesystem",
        "readOnlyRootFilesystem: false",
        &["", "c: {securityContext: {readOnlyRootFilesystem: false}}"],
        &[],
        None,
    ),
    (
        "allowPrivilegeEscalation",
        "allowPrivilegeEscalation: null",
        &["", "c: {securityContext: {allowPrivilegeEscalation: true}}"],
        &[],
        None,
    ),
    (
        "allowPrivilegeEscalation",
        "allowPrivilegeEscalation: false",
        &["c: {securityContext: {allowPrivilegeEscalation: false}}", "os: {name: windows}"],
        &["", "c: {securityContext: {allowPrivilegeEscalation: true}}"],
        Some(Kind::Defaulted),
    ),
    (
        "defaultAllowPrivilegeEscalation",
        "defaultAllowPrivilegeEscalation: false",
        &["", "c: {securityContext: {allowPrivilegeEscalation: true}}"],
        &[],
        Some(Kind::Defaulted),
    ),
    (
        "defaultAllowPrivilegeEscalation",
        "{allowPrivilegeEscalation: true, defaultAllowPrivilegeEscalation: true}",
        &[""],
        &[],
        Some(Kind::Note),
    ),
    // Empty: all paths.
    (
        "allowedHostPaths",
        "{volumes: [hostPath], allowedHostPaths: []}",
        &["volumes: [{name: v, hostPath: {path: /etc}}]"],
        &["volumes: [{name: v, emptyDir: {}}]"],
        None,
    ),
    (
        "allowedHostPaths",
        "allowedHostPaths: [{pathPrefix: /data/}, {pathPrefix: /logs, readOnly: true}]",
        &[
            "volumes: [{name: v, hostPath: {path: /data}}]",
            "volumes: [{name: v, hostPath: {path: /data/x/}}]",
            "{volumes: [{name: v, hostPath: {path: /logs/a}}], c: {volumeMounts: [{name: v, mountPath: /l, readOnly: true}]}}",
        ],
        &[
            "volumes: [{name: v, hostPath: {path: /database}}]",
            "volumes: [{name: v, hostPath: {path: /}}]",
            "{volumes: [{name: v, hostPath: {path: /logs/a}}], c: {volumeMounts: [{name: v, mountPath: /l}]}}",
            "volumes: [{name: v, hostPath: {path: /logs/a, type: DirectoryOrCreate}}]",
        ],
        Some(Kind::Stricter),
    ),
    (
        "allowedHostPaths",
        "allowedHostPaths: [{pathPrefix: /a/$b}]",
        &["volumes: [{name: v, hostPath: {path: /a/$b/c}}]"],
        &["volumes: [{name: v, hostPath: {path: /a/b}}]"],
        None,
    ),
    (
        "allowedHostPaths",
        "{volumes: [emptyDir], allowedHostPaths: [{pathPrefix: /}]}",
        &[""],
        &["volumes: [{name: v, hostPath: {path: /etc}}]"],
        Some(Kind::Note),
    ),
    ("allowedFlexVolumes", "allowedFlexVolumes: []", &["volumes: [{name: v, flexVolume: {driver: a/b}}]"], &[], None),
    (
        "allowedFlexVolumes",
        "allowedFlexVolumes: [{driver: a/b}]",
        &["volumes: [{name: v, flexVolume: {driver: a/b}}]"],
        &["volumes: [{name: v, flexVolume: {driver: a/c}}]"],
        None,
    ),
    (
        "allowedFlexVolumes",
        "allowedFlexVolumes: [{driver: '*'}]",
        &[""],
        &["volumes: [{name: v, flexVolume: {driver: a/c}}]"],
        Some(Kind::Note),
    ),
    ("allowedCSIDrivers", "allowedCSIDrivers: []", &["volumes: [{name: v, csi: {driver: d}}]"], &[], None),
    (
        "allowedCSIDrivers",
        "allowedCSIDrivers: [{name: d}]",
        &["volumes: [{name: v, csi: {driver: d}}]"],
        &["volumes: [{name: v, csi: {driver: e}}]"],
        None,
    ),
    // The safe ones always, and those besides.
    (
        "allowedUnsafeSysctls",
        "allowedUnsafeSysctls: null",
        &["securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}"],
        &["securityContext: {sysctls: [{name: net.ipv4.tcp_rmem, value: '1'}]}"],
        None,
    ),
    (
        "allowedUnsafeSysctls",
        "allowedUnsafeSysctls: ['kernel.msg*']",
        &[
            "securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}, {name: kernel.shm_rmid_forced, value: '1'}]}",
        ],
        &["securityContext: {sysctls: [{name: kernel.sem, value: '1'}]}"],
        None,
    ),
    (
        "forbiddenSysctls",
        "{allowedUnsafeSysctls: [], forbiddenSysctls: ['net.ipv4.*']}",
        &["securityContext: {sysctls: [{name: kernel.shm_rmid_forced, value: '1'}]}"],
        &["securityContext: {sysctls: [{name: net.ipv4.tcp_syncookies, value: '1'}]}"],
        None,
    ),
    (
        "forbiddenSysctls",
        "forbiddenSysctls: ['*']",
        &[""],
        &["securityContext: {sysctls: [{name: kernel.shm_rmid_forced, value: '1'}]}"],
        None,
    ),
    (
        "allowedProcMountTypes",
        "allowedProcMountTypes: []",
        &["", "c: {securityContext: {procMount: Default}}"],
        &[
            "c: {securityContext: {procMount: Unmasked}}",
            "{hostUsers: false, c: {securityContext: {procMount: Unmasked}}}",
        ],
        None,
    ),
    (
        "allowedProcMountTypes",
        "allowedProcMountTypes: [Unmasked, Default]",
        &["", "c: {securityContext: {procMount: Unmasked}}"],
        &[],
        None,
    ),
    (
        "allowedProcMountTypes",
        "allowedProcMountTypes: [Unmasked]",
        &["c: {securityContext: {procMount: Unmasked}}"],
        &[""],
        None,
    ),
    ("runtimeClass", "runtimeClass: null", &["", "runtimeClassName: any"], &[], None),
    // None is always allowed.
    ("runtimeClass", "runtimeClass: {allowedRuntimeClassNames: []}", &[""], &["runtimeClassName: any"], None),
    (
        "runtimeClass",
        "runtimeClass: {allowedRuntimeClassNames: [a]}",
        &["", "runtimeClassName: a"],
        &["runtimeClassName: b"],
        None,
    ),
    (
        "runtimeClass",
        "runtimeClass: {allowedRuntimeClassNames: [a, b], defaultRuntimeClassName: b}",
        &["runtimeClassName: a"],
        &["", "runtimeClassName: c"],
        Some(Kind::Stricter),
    ),
    (
        "runtimeClass",
        "runtimeClass: {allowedRuntimeClassNames: ['*'], defaultRuntimeClassName: b}",
        &["", "runtimeClassName: c"],
        &[],
        Some(Kind::Looser),
    ),
];

/// Annotations, pods that pass, pods that do not, and the note.
type Annotated =
    (&'static [(&'static str, &'static str)], &'static [&'static str], &'static [&'static str], Option<Kind>);

const ANNOTATED: &[Annotated] = &[
    // "*" is what the policy of these tests says.
    (&[], &["", "securityContext: {seccompProfile: {type: Unconfined}}"], &[], None),
    // Absent: none may be set, but what confines is admitted.
    (
        &[(SECCOMP, "")],
        &["", "securityContext: {seccompProfile: {type: RuntimeDefault}}"],
        &[
            "securityContext: {seccompProfile: {type: Unconfined}}",
            "c: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}}",
        ],
        Some(Kind::Note),
    ),
    (
        &[(SECCOMP, "docker/default,localhost/a.json")],
        &[
            "securityContext: {seccompProfile: {type: RuntimeDefault}}",
            "c: {securityContext: {seccompProfile: {type: Localhost, localhostProfile: a.json}}}",
        ],
        &[
            "",
            "securityContext: {seccompProfile: {type: Localhost, localhostProfile: b.json}}",
            "securityContext: {seccompProfile: {type: Unconfined}}",
        ],
        Some(Kind::Defaulted),
    ),
    (
        &[(SECCOMP, "runtime/default, unconfined"), (SECCOMP_DEFAULT, "runtime/default")],
        &["securityContext: {seccompProfile: {type: Unconfined}}"],
        &[""],
        Some(Kind::Defaulted),
    ),
    (
        &[(SECCOMP, "*"), (SECCOMP_DEFAULT, "runtime/default")],
        &["securityContext: {seccompProfile: {type: Unconfined}}"],
        &[""],
        Some(Kind::Defaulted),
    ),
    (
        &[(SECCOMP, ""), (SECCOMP_DEFAULT, "runtime/default")],
        &["securityContext: {seccompProfile: {type: RuntimeDefault}}"],
        &[""],
        Some(Kind::Defaulted),
    ),
    (
        &[(APP_ARMOR, "runtime/default")],
        &["", "securityContext: {appArmorProfile: {type: RuntimeDefault}}"],
        &["securityContext: {appArmorProfile: {type: Unconfined}}"],
        Some(Kind::Note),
    ),
    (
        &[(APP_ARMOR, "localhost/a")],
        &["", "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: a}}"],
        &[
            "securityContext: {appArmorProfile: {type: Localhost, localhostProfile: b}}",
            "securityContext: {appArmorProfile: {type: RuntimeDefault}}",
        ],
        Some(Kind::Looser),
    ),
    (
        &[(APP_ARMOR_DEFAULT, "localhost/a")],
        &["", "securityContext: {appArmorProfile: {type: Unconfined}}"],
        &[],
        Some(Kind::Default),
    ),
    (&[("security.alpha.kubernetes.io/sysctls", "kernel.*")], &[""], &[], Some(Kind::Note)),
    (&[("apparmor.security.alpha.kubernetes.io/defaultProfileName", "runtime/default")], &[""], &[], Some(Kind::Note)),
    (&[("example.org/purpose", "test")], &[""], &[], Some(Kind::Note)),
];

fn wrong_verdicts(policy: &Json, path: &str, pass: &[&str], fail: &[&str], kind: Option<Kind>) -> Vec<String> {
    let migrated = migrate(policy);
    let judge = judge(&migrated);
    let mut wrong = Vec::new();
    for text in pass {
        if let Some(denial) = denial(&judge, &pod(text)) {
            wrong.push(format!("{path}: {text:?} is denied: {denial}"));
        }
    }
    wrong.extend(
        fail.iter()
            .filter(|text| denial(&judge, &pod(text)).is_none())
            .map(|text| format!("{path}: {text:?} is admitted")),
    );
    // The note stands at the field, and what it says to write makes a pod pass.
    let kinds: BTreeSet<_> =
        migrated.notes.iter().filter(|note| note.path.starts_with(path)).map(|note| note.kind).collect();
    if kind.map_or(!kinds.is_empty(), |kind| !kinds.contains(&kind)) {
        wrong.push(format!("{path}: notes {:?}", migrated.notes));
    }
    let mut mutated = pod("");
    for default in migrated.notes.iter().filter_map(|note| note.default.as_ref()) {
        default.apply(&mut mutated);
    }
    if !path.ends_with("allowedProcMountTypes")
        && let Some(denial) = denial(&judge, &mutated)
    {
        wrong.push(format!("{path}: a pod with all that notes say to write is denied: {denial}\n{mutated}"));
    }
    // What is defaulted makes it pass just as well.
    let mutated = defaulted(&migrated, &pod(""));
    if kind == Some(Kind::Defaulted) {
        if mutated == pod("") {
            wrong.push(format!("{path}: nothing is defaulted"));
        }
        if let Some(denial) = denial(&judge, &mutated) {
            wrong.push(format!("{path}: a pod that was defaulted is denied: {denial}\n{mutated}"));
        }
    }
    wrong
}

#[test]
fn psp_fields_keep_their_meaning_after_migration() {
    let mut wrong = Vec::new();
    for (field, patch, pass, fail, kind) in CASES {
        wrong.extend(wrong_verdicts(&policy(&json!({}), patch), &format!("spec.{field}"), pass, fail, *kind));
    }
    for (annotations, pass, fail, kind) in ANNOTATED {
        let annotations =
            Json::Object(annotations.iter().map(|&(key, value)| (key.to_owned(), json!(value))).collect());
        wrong.extend(wrong_verdicts(&policy(&annotations, ""), "metadata.annotations", pass, fail, *kind));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_psp_field_has_a_migration_test() {
    let typed: PodSecurityPolicy = serde_json::from_value(policy(&json!({}), "")).unwrap();
    let spec = serde_json::to_value(&typed.spec).unwrap();
    let fields: BTreeSet<_> = spec.as_object().unwrap().keys().map(String::as_str).collect();
    let tested: BTreeSet<_> = CASES.iter().map(|(field, ..)| *field).collect();
    assert_eq!(fields, tested);
    assert_eq!(fields.len(), 24);
}

#[test]
fn invalid_or_unsatisfiable_psp_is_rejected() {
    let cases = [
        ("volumes: [image]", "spec.volumes[0]"),
        ("runAsUser: {rule: MustRunAs}", "spec.runAsUser"),
        ("fsGroup: {rule: MayRunAs, ranges: [{min: 5, max: 4}]}", "spec.fsGroup.ranges[0]"),
        ("hostPorts: [{min: -1, max: 4}]", "spec.hostPorts[0]"),
        ("seLinux: {rule: MustRunAs}", "spec.seLinux"),
        ("requiredDropCapabilities: [ALL]", "spec.allowedCapabilities[0]"),
        ("{allowedCapabilities: [A], requiredDropCapabilities: [A]}", "spec.allowedCapabilities[0]"),
        (
            "{allowPrivilegeEscalation: false, defaultAllowPrivilegeEscalation: true}",
            "spec.defaultAllowPrivilegeEscalation",
        ),
        ("allowedHostPaths: [{pathPrefix: /a/../b}]", "spec.allowedHostPaths[0].pathPrefix"),
        ("allowedHostPaths: [{readOnly: true}]", "spec.allowedHostPaths[0].pathPrefix"),
        ("allowedUnsafeSysctls: ['a*b']", "spec.allowedUnsafeSysctls[0]"),
        (
            "runtimeClass: {allowedRuntimeClassNames: [], defaultRuntimeClassName: a}",
            "spec.runtimeClass.defaultRuntimeClassName",
        ),
        ("allowedCSIDrivers: [{name: ''}]", "spec.allowedCSIDrivers[0].name"),
    ];
    for (patch, path) in cases {
        let typed: PodSecurityPolicy = serde_json::from_value(policy(&json!({}), patch)).unwrap();
        let mistakes = palisade_migrate::psp::convert(&typed).unwrap_err();
        assert!(mistakes.iter().any(|mistake| mistake.location.to_string() == path), "{patch}: {mistakes:?}");
    }
    for (annotations, path) in [
        (json!({SECCOMP: "none"}), SECCOMP),
        (json!({APP_ARMOR: "*"}), APP_ARMOR),
        (json!({SECCOMP: "localhost/"}), SECCOMP),
    ] {
        let typed: PodSecurityPolicy = serde_json::from_value(policy(&annotations, "")).unwrap();
        let mistakes = palisade_migrate::psp::convert(&typed).unwrap_err();
        assert_eq!(mistakes[0].location.to_string(), format!("metadata.annotations.{path}"));
    }
}

#[test]
fn unknown_psp_field_or_value_is_rejected() {
    for patch in [
        "hostPid: true",
        "runAsUser: {rule: MayRunAs}",
        "allowedProcMountTypes: [DefaultProcMount]",
        "privileged: 'true'",
        "seLinux: {rule: RunAsAny, level: s0}",
    ] {
        assert!(serde_json::from_value::<PodSecurityPolicy>(policy(&json!({}), patch)).is_err(), "{patch}");
    }
    // What is needed is not made up.
    assert!(serde_json::from_value::<PodSecurityPolicy>(policy(&json!({}), "fsGroup: null")).is_err());
}

#[test]
fn lists_longer_than_a_profile_allows_are_rejected() {
    let ports: Vec<_> = (0..17).map(|port| json!({"min": port * 2 + 1, "max": port * 2 + 1})).collect();
    let mut policy = policy(&json!({}), "");
    policy["spec"]["hostPorts"] = json!(ports);
    let typed: PodSecurityPolicy = serde_json::from_value(policy).unwrap();
    let mistakes = palisade_migrate::migrate(&[typed], &Rbac::default(), &Options::default()).unwrap_err();
    let (index, mistake) = &mistakes[0];
    assert_eq!((*index, mistake.location.to_string().as_str()), (0, "spec.hostPorts"));
    assert!(mistake.message.contains("17 elements") && mistake.message.contains("at most 16"), "{mistake}");
}

//! Pods as the tools of Toolforge run them, and as an attacker would.

use palisade_controlplane::Feature;
use serde_json::{Value as Json, json};

/// A pod like those that Toolforge's jobs service makes for a tool with this uid.
pub fn tool_pod(name: &str, uid: i64) -> Json {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"toolforge": "tool"}},
        "spec": {
            "securityContext": {
                "runAsUser": uid, "runAsGroup": uid, "fsGroup": uid, "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "job",
                "image": "docker-registry.svc.toolforge.org/toolforge-python311-sssd-base:latest",
                "command": ["/bin/sh", "-c", "./job.sh"],
                "workingDir": format!("/data/project/{name}"),
                "env": [{"name": "HOME", "value": format!("/data/project/{name}")}],
                "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
                "securityContext": {
                    "runAsUser": uid, "runAsGroup": uid, "runAsNonRoot": true, "privileged": false,
                    "readOnlyRootFilesystem": false, "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "home", "mountPath": "/data/project"},
                    {"name": "scratch", "mountPath": "/mnt/nfs/labstore-secondary-scratch"},
                    {"name": "dumps", "mountPath": "/public/dumps", "readOnly": true},
                    {"name": "etcldap-conf", "mountPath": "/etc/ldap.conf", "readOnly": true},
                    {"name": "sssd-pipes", "mountPath": "/var/lib/sss/pipes"},
                ],
            }],
            "volumes": [
                {"name": "home", "hostPath": {"path": "/data/project", "type": "Directory"}},
                {"name": "scratch", "hostPath": {"path": "/data/scratch", "type": "Directory"}},
                {"name": "dumps", "hostPath": {"path": "/public/dumps", "type": "Directory"}},
                {"name": "etcldap-conf", "hostPath": {"path": "/etc/ldap.conf", "type": "File"}},
                {"name": "sssd-pipes", "hostPath": {"path": "/var/lib/sss/pipes", "type": "Directory"}},
            ],
            "restartPolicy": "Never",
        },
    })
}

/// A pod of a tool that says nothing of users and privileges: it complies once the defaults are set.
pub fn bare_pod(name: &str) -> Json {
    let mut pod = tool_pod(name, 0);
    pod["spec"]["securityContext"].take();
    pod["spec"]["containers"][0]["securityContext"].take();
    pod
}

/// A pod that violates each rule of Toolforge that the API server lets a pod violate at once.
pub fn hostile_pod(name: &str) -> Json {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "hostNetwork": true, "hostPID": true, "hostIPC": true,
            "securityContext": {"runAsUser": 0, "runAsGroup": 0, "fsGroup": 0, "supplementalGroups": [0],
                "runAsNonRoot": false, "seccompProfile": {"type": "Unconfined"}},
            "containers": [
                {"name": "miner", "image": "evil.example/miner", "securityContext": {"privileged": true},
                 "ports": [{"containerPort": 8080, "hostPort": 8080}],
                 "volumeMounts": [{"name": "root", "mountPath": "/host"}, {"name": "dumps", "mountPath": "/dumps"}]},
                {"name": "sniffer", "image": "docker-registry.tools.wmflabs.org.evil.example/x",
                 "securityContext": {"capabilities": {"add": ["NET_RAW", "SYS_ADMIN"]}}},
            ],
            "initContainers": [{"name": "setup", "image": "evil.example/setup", "securityContext": {"runAsUser": 0}}],
            "volumes": [
                {"name": "root", "hostPath": {"path": "/"}},
                {"name": "other-tool", "hostPath": {"path": "/data/projectx"}},
                {"name": "dumps", "hostPath": {"path": "/public/dumps"}},
                {"name": "nfs", "nfs": {"server": "nfs.example", "path": "/"}},
            ],
        },
    })
}

/// An ephemeral container of a tool with this uid.
pub fn ephemeral_container(uid: i64) -> Json {
    json!([{
        "name": "debugger",
        "image": "docker-registry.svc.toolforge.org/debug:1",
        "securityContext": {
            "runAsUser": uid, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        },
    }])
}

/// The features of an API server without which it removes fields of this pod.
pub fn features_of(pod: &Json) -> Vec<&'static Feature> {
    let spec = &pod["spec"];
    let all = |lists: &[&str]| -> Vec<Json> {
        lists.iter().flat_map(|list| spec[*list].as_array().cloned().unwrap_or_default()).collect()
    };
    let containers = all(&["initContainers", "containers", "ephemeralContainers"]);
    let has = [
        (&Feature::IMAGE_VOLUMES, all(&["volumes"]).iter().any(|volume| !volume["image"].is_null())),
        (&Feature::PROC_MOUNT, containers.iter().any(|one| !one["securityContext"]["procMount"].is_null())),
        (&Feature::USER_NAMESPACES, !spec["hostUsers"].is_null()),
        (&Feature::SUPPLEMENTAL_GROUPS_POLICY, !spec["securityContext"]["supplementalGroupsPolicy"].is_null()),
    ];
    has.into_iter().filter(|(_, has)| *has).map(|(feature, _)| feature).collect()
}

/// Removes the fields that an API server of this minor removes from a pod that a profile has set defaults of.
pub fn remove_unserved(pod: &mut Json, minor: u8) {
    let mut remove = |feature: &Feature, parent: &str, field: &str| {
        if !feature.is_in(minor)
            && let Some(parent) = pod.pointer_mut(parent).and_then(Json::as_object_mut)
        {
            parent.remove(field);
        }
    };
    remove(&Feature::USER_NAMESPACES, "/spec", "hostUsers");
    remove(&Feature::SUPPLEMENTAL_GROUPS_POLICY, "/spec/securityContext", "supplementalGroupsPolicy");
}

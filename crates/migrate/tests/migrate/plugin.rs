//! The admission plugin of `PodSecurityPolicy`, written down again, against the profiles that its policies become.
//!
//! Source: Kubernetes 1.24, `pkg/security/podsecuritypolicy/provider.go` and the strategies beside it, with seccomp and
//! AppArmor by their fields of today. Each policy of a list meets each pod of the catalogue's fixtures:
//!
//! - A pod that the plugin admits, once the notes' values are written into it, the profile admits.
//! - A pod that the profile admits, the plugin admits, if need be by defaulting something. Only of seccomp a pod may say
//!   RuntimeDefault, and one for Windows nothing.
use palisade_api::catalogue;
use palisade_checks::fixture::Fixture;
use palisade_gate::Validator;
use serde_json::{Value as Json, json};

use crate::common::{APP_ARMOR, SECCOMP, SECCOMP_DEFAULT, defaulted_by, denial, migrate, policy};

fn texts(list: &Json) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).collect()
}

fn is(value: &Json) -> bool {
    value == &json!(true)
}

fn in_ranges(id: &Json, ranges: &Json) -> bool {
    let id = id.as_i64().unwrap();
    ranges.as_array().unwrap().iter().any(|r| r["min"].as_i64().unwrap() <= id && id <= r["max"].as_i64().unwrap())
}

fn containers(pod: &mut Json) -> Vec<&mut Json> {
    let mut found = Vec::new();
    for (kind, list) in pod["spec"].as_object_mut().unwrap() {
        if kind == "containers" || kind == "initContainers" {
            found.extend(list.as_array_mut().unwrap());
        }
    }
    found
}

fn default(at: &mut Json, value: Json) {
    if at.is_null() {
        *at = value;
    }
}

/// The effective value for a container: its own, or the pod's.
fn effective(container: &Json, pod_context: &Json, field: &str) -> Json {
    let own = &container["securityContext"][field];
    if own.is_null() { pod_context[field].clone() } else { own.clone() }
}

/// `MutatePod`
fn mutate(psp: &Json, pod: &mut Json) {
    let spec = &psp["spec"];
    let first = |strategy: &Json| strategy["ranges"][0]["min"].clone();
    let must = |strategy: &Json| strategy["rule"] == json!("MustRunAs");
    {
        let context = &mut pod["spec"]["securityContext"];
        if must(&spec["supplementalGroups"]) {
            default(&mut context["supplementalGroups"], json!([first(&spec["supplementalGroups"])]));
        }
        if must(&spec["fsGroup"]) {
            default(&mut context["fsGroup"], first(&spec["fsGroup"]));
        }
        if must(&spec["seLinux"]) {
            default(&mut context["seLinuxOptions"], spec["seLinux"]["seLinuxOptions"].clone());
        }
        if psp["metadata"]["annotations"][SECCOMP_DEFAULT].is_string() {
            default(&mut context["seccompProfile"], json!({"type": "RuntimeDefault"}));
        }
    }
    if let Some(class) = spec["runtimeClass"]["defaultRuntimeClassName"].as_str() {
        default(&mut pod["spec"]["runtimeClassName"], json!(class));
    }
    let context = pod["spec"]["securityContext"].clone();
    for container in containers(pod) {
        let user = effective(container, &context, "runAsUser");
        let group = effective(container, &context, "runAsGroup");
        let non_root = effective(container, &context, "runAsNonRoot");
        let own = &mut container["securityContext"];
        if user.is_null() && must(&spec["runAsUser"]) {
            own["runAsUser"] = first(&spec["runAsUser"]);
        }
        if group.is_null() && must(&spec["runAsGroup"]) {
            own["runAsGroup"] = first(&spec["runAsGroup"]);
        }
        if user.is_null() && non_root.is_null() && spec["runAsUser"]["rule"] == json!("MustRunAsNonRoot") {
            own["runAsNonRoot"] = json!(true);
        }
        for drop in texts(&spec["requiredDropCapabilities"]) {
            let list = &mut own["capabilities"]["drop"];
            default(list, json!([]));
            if !texts(list).contains(&drop) {
                list.as_array_mut().unwrap().push(json!(drop));
            }
        }
        if is(&spec["readOnlyRootFilesystem"]) {
            default(&mut own["readOnlyRootFilesystem"], json!(true));
        }
        for field in ["defaultAllowPrivilegeEscalation", "allowPrivilegeEscalation"] {
            if spec[field] == json!(false) {
                default(&mut own["allowPrivilegeEscalation"], json!(false));
            }
        }
    }
}

/// `ValidatePod`
fn violations(psp: &Json, pod: &mut Json) -> Vec<String> {
    let spec = &psp["spec"];
    let mut found = Vec::new();
    let mut deny = |when: bool, what: &str| {
        if when {
            found.push(what.to_owned());
        }
    };
    let context = pod["spec"]["securityContext"].clone();
    for (field, one) in [("fsGroup", true), ("supplementalGroups", false)] {
        let ids =
            if one { context[field].as_i64().map(|id| vec![json!(id)]) } else { context[field].as_array().cloned() };
        let (ids, strategy) = (ids.unwrap_or_default(), &spec[field]);
        if strategy["rule"] != json!("RunAsAny") {
            deny(ids.is_empty() && strategy["rule"] == json!("MustRunAs"), field);
            deny(!ids.iter().all(|id| in_ranges(id, &strategy["ranges"])), field);
        }
    }
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        deny(!is(&spec[field]) && is(&pod["spec"][field]), field);
    }
    let matches =
        |name: &str, pattern: &str| pattern == name || pattern.strip_suffix('*').is_some_and(|p| name.starts_with(p));
    let safe = [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ];
    for sysctl in context["sysctls"].as_array().into_iter().flatten() {
        // The kernel's other spelling of a name came after PodSecurityPolicy.
        let name = sysctl["name"].as_str().unwrap().replace('/', ".");
        let any = |list: &Json| texts(list).iter().any(|pattern| matches(&name, pattern));
        deny(any(&spec["forbiddenSysctls"]), "sysctls");
        deny(!safe.contains(&name.as_str()) && !any(&spec["allowedUnsafeSysctls"]), "sysctls");
    }
    let kinds = texts(&spec["volumes"]);
    let all = pod["spec"].clone();
    for volume in all["volumes"].as_array().into_iter().flatten() {
        let kind = volume.as_object().unwrap().keys().find(|key| *key != "name").unwrap().as_str();
        let kind = if kind == "cephfs" { "cephFS" } else { kind };
        deny(!kinds.contains(&"*") && !kinds.contains(&kind), "volumes");
        let listed = |list: &str, field: &str, name: &Json| {
            let list = spec[list].as_array().cloned().unwrap_or_default();
            list.is_empty() || list.iter().any(|allowed| &allowed[field] == name)
        };
        deny(kind == "flexVolume" && !listed("allowedFlexVolumes", "driver", &volume[kind]["driver"]), "flexVolumes");
        deny(kind == "csi" && !listed("allowedCSIDrivers", "name", &volume[kind]["driver"]), "csiDrivers");
        let paths = spec["allowedHostPaths"].as_array().cloned().unwrap_or_default();
        if kind == "hostPath" && !paths.is_empty() {
            let path = volume["hostPath"]["path"].as_str().unwrap();
            // The API server refuses it before any plugin is asked.
            deny(path.split('/').any(|segment| segment == ".."), "hostPaths");
            let path = path.strip_suffix('/').unwrap_or(path);
            let below = |allowed: &&Json| {
                let prefix = allowed["pathPrefix"].as_str().unwrap();
                let rest = path.strip_prefix(prefix.strip_suffix('/').unwrap_or(prefix));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let covering: Vec<_> = paths.iter().filter(below).collect();
            let writes = ["initContainers", "containers"].into_iter().any(|list| {
                let of = |c: &Json| c["volumeMounts"].as_array().cloned().unwrap_or_default();
                let mounts = all[list].as_array().into_iter().flatten().flat_map(of);
                mounts.into_iter().any(|mount| mount["name"] == volume["name"] && !is(&mount["readOnly"]))
            });
            deny(
                covering.is_empty() || (covering.iter().all(|allowed| is(&allowed["readOnly"])) && writes),
                "hostPaths",
            );
        }
    }
    if let (true, Some(class)) = (spec["runtimeClass"].is_object(), pod["spec"]["runtimeClassName"].as_str()) {
        let names = texts(&spec["runtimeClass"]["allowedRuntimeClassNames"]);
        deny(!names.contains(&"*") && !names.contains(&class), "runtimeClass");
    }
    let annotation = |key: &str| {
        psp["metadata"]["annotations"][key].as_str().filter(|v| !v.is_empty()).map(|v| v.split(',').collect::<Vec<_>>())
    };
    let (seccomp, app_armor) = (annotation(SECCOMP), annotation(APP_ARMOR));
    let named = |profile: &Json| match profile["type"].as_str() {
        Some("RuntimeDefault") => "runtime/default".to_owned(),
        Some("Localhost") => format!("localhost/{}", profile["localhostProfile"].as_str().unwrap_or_default()),
        Some(_) => "unconfined".to_owned(),
        None => String::new(),
    };
    let seccomp_ok = |profile: &Json| match &seccomp {
        None => profile.is_null(),
        Some(allowed) => {
            allowed.contains(&"*") || allowed.contains(&named(profile).replace("docker", "runtime").as_str())
        }
    };
    let app_armor_ok =
        |profile: &Json| app_armor.as_ref().is_none_or(|allowed| allowed.contains(&named(profile).as_str()));
    deny(!context["seccompProfile"].is_null() && !seccomp_ok(&context["seccompProfile"]), "seccomp");
    deny(!context["appArmorProfile"].is_null() && !app_armor_ok(&context["appArmorProfile"]), "appArmor");
    let label_ok = |label: &Json| {
        ["user", "role", "type", "level"].into_iter().all(|part| {
            let wanted = spec["seLinux"]["seLinuxOptions"][part].as_str().unwrap_or_default();
            label.is_object() && label[part].as_str().unwrap_or_default() == wanted
        })
    };
    let labelled = spec["seLinux"]["rule"] == json!("MustRunAs");
    deny(labelled && !label_ok(&context["seLinuxOptions"]), "seLinux");
    for container in containers(pod) {
        let user = effective(container, &context, "runAsUser");
        let group = effective(container, &context, "runAsGroup");
        let non_root = effective(container, &context, "runAsNonRoot");
        deny(labelled && !label_ok(&effective(container, &context, "seLinuxOptions")), "seLinux");
        deny(!seccomp_ok(&effective(container, &context, "seccompProfile")), "seccomp");
        let app_armor = effective(container, &context, "appArmorProfile");
        deny(!app_armor.is_null() && !app_armor_ok(&app_armor), "appArmor");
        match spec["runAsUser"]["rule"].as_str().unwrap() {
            "MustRunAs" => deny(user.is_null() || !in_ranges(&user, &spec["runAsUser"]["ranges"]), "runAsUser"),
            "MustRunAsNonRoot" => deny(
                (user.is_null() && non_root.is_null()) || non_root == json!(false) || user == json!(0),
                "runAsNonRoot",
            ),
            _ => {}
        }
        match spec["runAsGroup"]["rule"].as_str().unwrap_or("RunAsAny") {
            "RunAsAny" => {}
            rule => {
                deny(group.is_null() && rule == "MustRunAs", "runAsGroup");
                deny(!group.is_null() && !in_ranges(&group, &spec["runAsGroup"]["ranges"]), "runAsGroup");
            }
        }
        let own = &container["securityContext"];
        deny(!is(&spec["privileged"]) && is(&own["privileged"]), "privileged");
        let proc_mount = own["procMount"].as_str().unwrap_or("Default");
        let mounts = texts(&spec["allowedProcMountTypes"]);
        deny(if mounts.is_empty() { proc_mount != "Default" } else { !mounts.contains(&proc_mount) }, "procMount");
        let allowed = texts(&spec["allowedCapabilities"]);
        let default = texts(&spec["defaultAddCapabilities"]);
        if !allowed.contains(&"*") {
            let adds = texts(&own["capabilities"]["add"]);
            deny(adds.iter().any(|add| !allowed.contains(add) && !default.contains(add)), "capabilities");
        }
        for port in
            container["ports"].as_array().into_iter().flatten().filter(|p| p["hostPort"].as_i64().unwrap_or(0) > 0)
        {
            let ranges = if spec["hostPorts"].is_null() { &json!([]) } else { &spec["hostPorts"] };
            deny(!in_ranges(&port["hostPort"], ranges), "hostPorts");
        }
        deny(is(&spec["readOnlyRootFilesystem"]) && !is(&own["readOnlyRootFilesystem"]), "readOnlyRootFilesystem");
        deny(
            spec["allowPrivilegeEscalation"] == json!(false) && own["allowPrivilegeEscalation"] != json!(false),
            "escalation",
        );
    }
    found
}

fn plugin(psp: &Json, pod: &Json) -> Vec<String> {
    let mut pod = pod.clone();
    mutate(psp, &mut pod);
    violations(psp, &mut pod)
}

/// Whether a pod is refused though the plugin admits it, as the notes say of every migrated policy: ephemeral containers are
/// judged, and what a pod says of root counts even if its containers say otherwise.
fn is_always_stricter(pod: &Json) -> bool {
    let context = &pod["spec"]["securityContext"];
    !pod["spec"]["ephemeralContainers"].is_null()
        || context["runAsUser"] == json!(0)
        || context["runAsNonRoot"] == json!(false)
}

/// Whether a container drops some capabilities, but not all.
fn drops_others(container: &Json) -> bool {
    let drop = &container["securityContext"]["capabilities"]["drop"];
    !drop.is_null() && !texts(drop).contains(&"ALL")
}

const POLICIES: &[&str] = &[
    "",
    "{privileged: null, hostNetwork: null, hostPID: false, hostIPC: false}",
    "{allowedCapabilities: [], requiredDropCapabilities: [NET_RAW]}",
    "{allowedCapabilities: [NET_BIND_SERVICE], requiredDropCapabilities: [ALL], defaultAddCapabilities: [CHOWN]}",
    "{allowPrivilegeEscalation: false}",
    "{readOnlyRootFilesystem: true, allowPrivilegeEscalation: true}",
    "{volumes: [], hostPorts: []}",
    "{volumes: [configMap, cephFS, projected, hostPath, csi, flexVolume], hostPorts: [{min: 80, max: 9000}]}",
    "{allowedHostPaths: [{pathPrefix: /data}, {pathPrefix: /var/, readOnly: true}], allowedCSIDrivers: [{name: a}], allowedFlexVolumes: [{driver: example/lvm}]}",
    "{runAsUser: {rule: MustRunAs, ranges: [{min: 1, max: 65535}]}, runAsGroup: {rule: MustRunAs, ranges: [{min: 1, max: 65535}]}}",
    "{runAsUser: {rule: MustRunAs, ranges: [{min: 0, max: 0}, {min: 1000, max: 2000}]}, runAsGroup: {rule: MayRunAs, ranges: [{min: 1000, max: 2000}]}}",
    "{runAsUser: {rule: MustRunAsNonRoot}}",
    "{fsGroup: {rule: MayRunAs, ranges: [{min: 1, max: 2000}]}, supplementalGroups: {rule: MayRunAs, ranges: [{min: 1, max: 2000}]}}",
    "{fsGroup: {rule: MustRunAs, ranges: [{min: 1, max: 2000}]}, supplementalGroups: {rule: MustRunAs, ranges: [{min: 1, max: 2000}]}}",
    "{seLinux: {rule: MustRunAs, seLinuxOptions: {type: container_t}}}",
    "{seLinux: {rule: MustRunAs, seLinuxOptions: {level: 's0:c1,c2'}}}",
    "{allowedUnsafeSysctls: [], allowedProcMountTypes: []}",
    "{allowedUnsafeSysctls: ['kernel.msg*'], forbiddenSysctls: [kernel.shm_rmid_forced], allowedProcMountTypes: [Default]}",
    "{forbiddenSysctls: ['kernel.*'], runtimeClass: {allowedRuntimeClassNames: []}}",
    "{runtimeClass: {allowedRuntimeClassNames: [gvisor, kata], defaultRuntimeClassName: gvisor}}",
];

const ANNOTATIONS: &[(&str, &str, &str)] = &[
    ("*", "", ""),
    ("", "", ""),
    ("runtime/default,localhost/profiles/a.json", "", "runtime/default"),
    ("runtime/default,unconfined", "runtime/default", "runtime/default,localhost/a"),
];

#[test]
fn migrated_profiles_judge_like_the_psp_plugin() {
    let mut pods = vec![crate::common::pod("")];
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        pods.extend(fixtures.iter().map(Fixture::pod));
    }
    // Fixtures of AppArmor and seccomp have annotations, which the plugin read and nobody does any more.
    pods.retain(|pod| pod["metadata"]["annotations"].is_null());
    let (mut wrong, mut admitted, mut denied) = (Vec::new(), 0, 0);
    for patch in POLICIES {
        for (seccomp, default, app_armor) in ANNOTATIONS {
            // Annotations are judged apart from fields; two policies show it.
            if *seccomp != "*" && !patch.is_empty() && !patch.contains("allowPrivilege") {
                continue;
            }
            let mut annotations = json!({SECCOMP: seccomp, APP_ARMOR: app_armor});
            if !default.is_empty() {
                annotations[SECCOMP_DEFAULT] = json!(default);
            }
            let psp = policy(&annotations, patch);
            let migrated = migrate(&psp);
            let compiled = palisade_compiler::compile(&migrated.profile).unwrap();
            let judge = Validator::new(&compiled.bundle.pods.policy).unwrap();
            for pod in &pods {
                let mut written = pod.clone();
                for default in migrated.notes.iter().filter_map(|note| note.default.as_ref()) {
                    default.apply(&mut written);
                }
                // Where something is defaulted, nothing need be written, but for what notes call stricter: a class, and
                // capabilities beside others that a container drops. What the plugin defaulted was refused by the API
                // server itself where a privileged container may not escalate, and in a pod for Windows.
                let mutated = defaulted_by(&compiled, pod);
                if plugin(&psp, pod).is_empty()
                    && !is_always_stricter(pod)
                    && !patch.contains("defaultRuntimeClassName")
                    && pod["spec"]["os"]["name"] != json!("windows")
                    && !containers(&mut pod.clone())
                        .into_iter()
                        .any(|one| drops_others(one) || is(&one["securityContext"]["privileged"]))
                    && let Some(now) = denial(&judge, &mutated)
                {
                    wrong.push(format!(
                        "{patch} {annotations}: the plugin admits, but after defaulting {now}\n    {pod}"
                    ));
                }
                for (pod, complete) in [(pod, false), (&written, true)] {
                    let (before, now) = (plugin(&psp, pod), denial(&judge, pod));
                    if before.is_empty() && complete && !is_always_stricter(pod) {
                        admitted += 1;
                        if let Some(now) = &now {
                            wrong.push(format!("{patch} {annotations}: the plugin admits, but {now}\n    {pod}"));
                        }
                    }
                    if !before.is_empty() {
                        denied += 1;
                        // RuntimeDefault confines, and a pod for Windows cannot say what it is to run under.
                        let harmless = before.iter().all(|field| field == "seccomp")
                            && (seccomp.is_empty() || pod["spec"]["os"]["name"] == json!("windows"));
                        if now.is_none() && !harmless {
                            wrong.push(format!("{patch} {annotations}: the plugin denies for {before:?}\n    {pod}"));
                        }
                    }
                }
            }
        }
    }
    println!("{admitted} pods that the plugin admits, {denied} that it denies");
    assert!(admitted > 1000 && denied > 1000, "{admitted} {denied}");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}

/// What is said to admit all that another one admits does so, for all these policies and pods.
#[test]
fn covering_policy_admits_every_pod_of_the_covered_one() {
    let mut pods = vec![crate::common::pod("")];
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        pods.extend(fixtures.iter().map(Fixture::pod));
    }
    let patches = POLICIES.iter().map(|patch| policy(&json!({}), patch));
    let annotated =
        ANNOTATIONS.iter().map(|(seccomp, _, app_armor)| policy(&json!({SECCOMP: seccomp, APP_ARMOR: app_armor}), ""));
    let judged: Vec<_> = patches
        .chain(annotated)
        .map(|psp| {
            let migrated = migrate(&psp);
            // Pods that pass a policy of many demands are rare in the catalogue: each meets them with its notes' values, too.
            for default in migrated.notes.iter().filter_map(|note| note.default.as_ref()) {
                let mut mutated = crate::common::pod("");
                default.apply(&mut mutated);
                pods.push(mutated);
            }
            let compiled = palisade_compiler::compile(&migrated.profile).unwrap();
            (psp, migrated.profile.spec.settings(), Validator::new(&compiled.bundle.pods.policy).unwrap())
        })
        .collect();
    let verdicts: Vec<Vec<bool>> =
        judged.iter().map(|(.., judge)| pods.iter().map(|pod| denial(judge, pod).is_none()).collect()).collect();
    let mut covered = 0;
    for (wide, (of_wide, wide_settings, _)) in judged.iter().enumerate() {
        for (narrow, (of_narrow, narrow_settings, _)) in judged.iter().enumerate() {
            if !palisade_migrate::covers(wide_settings, narrow_settings) {
                assert_ne!(wide, narrow, "each covers itself: {of_wide:#}");
                continue;
            }
            covered += usize::from(wide != narrow);
            for (index, pod) in pods.iter().enumerate() {
                assert!(
                    verdicts[wide][index] || !verdicts[narrow][index],
                    "{of_wide}\ncovers\n{of_narrow}\nbut denies\n{pod}"
                );
            }
        }
    }
    // The one that allows everything covers all the others, and a few cover each other besides.
    assert!((judged.len()..judged.len() * 4).contains(&covered), "{covered} of {}", judged.len());
}

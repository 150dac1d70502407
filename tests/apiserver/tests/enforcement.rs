//! What the API server does with pods when a profile is in force.

use palisade_api::names::{self, Shape};
use palisade_controlplane::Feature;
use palisade_kube_json::pod::merge;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, ephemeral_container, eventually, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    compliant_jobs_pass_and_every_rule_denies: Oldest 70, Judged 10;
    an_unmasked_proc_is_judged: Oldest 75, Judged 15 needs PROC_MOUNT, USER_NAMESPACES;
    an_ephemeral_container_is_judged: Oldest 80, Judged 20;
    a_resize_is_judged: Oldest 90, Judged 30 needs RESIZE;
    a_running_pod_may_be_labelled: Oldest 100, Judged 40;
    enforcement_warn_and_audit_admit_pods: Judged 50;
    generated_policies_have_no_type_check_warning: Oldest 110, Answers 180;
}

const UID: i64 = 50_001;

pub(crate) async fn compliant_jobs_pass_and_every_rule_denies(cluster: &mut Cluster) -> TestResult {
    let test = "rules";
    cluster.create_tool(test, "rules-tool", UID).await?;
    cluster.create_namespace("rules-other", &json!({}), &json!({})).await?;
    cluster.enforce(&Cluster::toolforge_profile(test)?).await?;
    cluster.wait_admitted("rules-tool", &tool_pod("job", UID)).await?;

    let container = |field: &str, value: Json| json!({"spec": {"containers": [{field: value}]}});
    let context = |value: Json| json!({"spec": {"containers": [{"securityContext": value}]}});
    let volume = |value: Json| json!({"spec": {"volumes": [value]}});
    let rules = [
        (
            "runAsUser",
            json!({"spec": {"securityContext": {"runAsUser": UID + 1}, "containers": [{"securityContext": {"runAsUser": null}}]}}),
        ),
        ("runAsGroup", context(json!({"runAsGroup": 0}))),
        ("fsGroup", json!({"spec": {"securityContext": {"fsGroup": 0}}})),
        ("supplementalGroups", json!({"spec": {"securityContext": {"supplementalGroups": [0]}}})),
        ("runAsNonRoot", context(json!({"runAsNonRoot": false}))),
        ("privileged", context(json!({"privileged": true, "allowPrivilegeEscalation": null}))),
        ("allowPrivilegeEscalation", context(json!({"allowPrivilegeEscalation": true}))),
        ("capabilities", context(json!({"capabilities": {"add": ["NET_ADMIN"]}}))),
        ("capabilities", context(json!({"capabilities": {"drop": null}}))),
        ("seccompProfile", json!({"spec": {"securityContext": {"seccompProfile": null}}})),
        ("hostNamespaces", json!({"spec": {"hostPID": true}})),
        ("hostPorts", container("ports", json!([{"containerPort": 80, "hostPort": 80}]))),
        ("restrictedVolumes", volume(json!({"name": "home", "nfs": {"server": "x", "path": "/"}}))),
        ("hostPathVolumes", volume(json!({"name": "home", "hostPath": {"path": "/etc"}}))),
        ("hostPathVolumes", container("volumeMounts", json!([{"name": "dumps", "mountPath": "/dumps"}]))),
        ("imageRegistries", container("image", json!("docker-registry.svc.toolforge.org.evil.example/x"))),
    ];
    for (check, patch) in rules {
        let mut pod = tool_pod("job", UID);
        if patch["spec"]["volumes"].is_array() || patch["spec"]["containers"][0]["volumeMounts"].is_array() {
            // The pod's own mounts need the volumes that are replaced.
            let dumps = json!([{"name": "dumps", "hostPath": {"path": "/public/dumps"}}]);
            merge(&mut pod, &json!({"spec": {"volumes": dumps, "containers": [{"volumeMounts": null}]}}));
        }
        merge(&mut pod, &patch);
        let verdict = cluster.dry_run("rules-tool", &pod).await;
        let text = verdict.denial().ok_or(format!("{check}, {patch}: {verdict:?}"))?;
        ensure!(text.contains(&format!("[{check}]")), "{check} is not named: {text}");
        // The API server itself refuses a privileged container that says allowPrivilegeEscalation: false.
        let count = if check == "privileged" { "2 violations" } else { "1 violation" };
        ensure!(text.contains(&format!("{count} of ToolSecurityProfile rules")), "more than {check}: {text}");
    }

    let verdict = cluster.dry_run("rules-tool", &hostile_pod("hostile")).await;
    let text = verdict.denial().ok_or(format!("hostile: {verdict:?}"))?;
    println!("{text}");
    let violations = [
        r#"[privileged] container "miner": securityContext.privileged is true"#,
        "[hostNamespaces] pod: spec.hostNetwork is true",
        "[hostNamespaces] pod: spec.hostPID is true",
        "[hostNamespaces] pod: spec.hostIPC is true",
        r#"[allowPrivilegeEscalation] container "sniffer""#,
        r#"[capabilities] container "sniffer": unrestricted capabilities: securityContext.capabilities.add has NET_RAW, SYS_ADMIN, allowed: none"#,
        r#"[capabilities] container "setup""#,
        "[runAsNonRoot] pod",
        r#"[runAsUser] container "setup": securityContext.runAsUser is 0, must be 50001"#,
        r#"[runAsGroup] container "miner": securityContext.runAsGroup is 0, must be 50001"#,
        "[fsGroup] pod: securityContext.fsGroup is 0, must be 50001",
        "[supplementalGroups] pod: securityContext.supplementalGroups is 0, must be 1-49999, 50001",
        "[seccompProfile] pod: securityContext.seccompProfile is Unconfined, allowed: RuntimeDefault",
        r#"[hostPorts] container "miner": hostPort 8080 is not allowed"#,
        r#"[restrictedVolumes] volume "nfs": restricted volume types: nfs"#,
        r#"[hostPathVolumes] volume "root": hostPath / is not allowed"#,
        r#"[hostPathVolumes] volume "other-tool": hostPath /data/projectx is not allowed"#,
        r#"[hostPathVolumes] volume "dumps": hostPath /public/dumps must be mounted with readOnly: true, but is not in container "miner""#,
        r#"[imageRegistries] container "miner": image evil.example/miner"#,
        r#"[imageRegistries] container "sniffer": image docker-registry.tools.wmflabs.org.evil.example/x"#,
    ];
    for violation in violations {
        ensure!(text.contains(violation), "{violation} is not in: {text}");
    }
    let elsewhere = cluster.dry_run("rules-other", &hostile_pod("hostile")).await;
    ensure!(elsewhere == Verdict::Admitted, "in a namespace that is not selected: {elsewhere:?}");
    cluster.delete_profile(test).await
}

pub(crate) async fn an_unmasked_proc_is_judged(cluster: &mut Cluster) -> TestResult {
    let test = "unmasked";
    cluster.create_tool(test, "unmasked-tool", UID).await?;
    cluster.enforce(&Cluster::toolforge_profile(test)?).await?;
    cluster.wait_admitted("unmasked-tool", &tool_pod("job", UID)).await?;
    let mut pod = tool_pod("job", UID);
    let unmasked = json!({"hostUsers": false, "containers": [{"securityContext": {"procMount": "Unmasked"}}]});
    merge(&mut pod["spec"], &unmasked);
    let verdict = cluster.dry_run("unmasked-tool", &pod).await;
    let text = verdict.denial().ok_or(format!("{verdict:?}"))?;
    ensure!(text.contains("[procMount]") && text.contains("1 violation of"), "{text}");
    cluster.delete_profile(test).await
}

pub(crate) async fn an_ephemeral_container_is_judged(cluster: &mut Cluster) -> TestResult {
    let test = "ephemeral";
    cluster.create_tool(test, "ephemeral-tool", UID).await?;
    cluster.enforce(&Cluster::toolforge_profile(test)?).await?;
    cluster.wait_admitted("ephemeral-tool", &tool_pod("job", UID)).await?;
    let created = cluster.create_pod("ephemeral-tool", &tool_pod("job", UID)).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    let good = cluster.dry_run_ephemeral("ephemeral-tool", "job", &ephemeral_container(UID)).await;
    ensure!(good == Verdict::Admitted, "one that complies: {good:?}");
    let root = cluster.dry_run_ephemeral("ephemeral-tool", "job", &ephemeral_container(0)).await;
    let text = root.denial().ok_or(format!("one that is root: {root:?}"))?;
    ensure!(text.contains(r#"[runAsUser] container "debugger": securityContext.runAsUser is 0"#), "{text}");
    cluster.delete_profile(test).await
}

pub(crate) async fn a_resize_is_judged(cluster: &mut Cluster) -> TestResult {
    let test = "resize";
    cluster.create_tool(test, "resize-tool", UID).await?;
    // A resize must not change the pod's class of quality of service.
    let mut old = hostile_pod("old");
    old["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    for pod in [tool_pod("job", UID), old] {
        let created = cluster.create_pod("resize-tool", &pod).await;
        ensure!(created == Verdict::Admitted, "before there is a profile: {created:?}");
    }
    cluster.enforce(&Cluster::toolforge_profile(test)?).await?;
    cluster.wait_admitted("resize-tool", &tool_pod("other", UID)).await?;
    let resize = |pod: &str| format!("/api/v1/namespaces/resize-tool/pods/{pod}/resize?dryRun=All");
    // Kubernetes 1.33 rejects a resize that adds a limit of memory.
    let limits = json!({"limits": {"cpu": "600m"}, "requests": {"cpu": "300m"}});
    let patch = |container: &str| json!({"spec": {"containers": [{"name": container, "resources": limits}]}});
    let good = cluster.strategic_patch_at(&resize("job"), &patch("job")).await;
    ensure!(good == Verdict::Admitted, "a pod that complies: {good:?}");
    let bad = cluster.strategic_patch_at(&resize("old"), &patch("miner")).await;
    ensure!(bad.denial().is_some_and(|text| text.contains("[privileged]")), "a pod that does not: {bad:?}");
    cluster.delete_profile(test).await
}

pub(crate) async fn a_running_pod_may_be_labelled(cluster: &mut Cluster) -> TestResult {
    let test = "running";
    cluster.create_tool(test, "running-tool", UID).await?;
    let old = cluster.create_pod("running-tool", &hostile_pod("old")).await;
    ensure!(old == Verdict::Admitted, "before there is a profile: {old:?}");
    cluster.enforce(&Cluster::toolforge_profile(test)?).await?;
    cluster.wait_admitted("running-tool", &tool_pod("job", UID)).await?;
    let labelled = cluster.patch_pod("running-tool", "old", &json!({"metadata": {"labels": {"a": "b"}}})).await;
    ensure!(labelled == Verdict::Admitted, "a label: {labelled:?}");
    let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "evil.example/other"}]);
    let changed = cluster.json_patch_pod("running-tool", "old", &image).await;
    ensure!(changed.denial().is_some_and(|text| text.contains("evil.example/other")), "another image: {changed:?}");
    cluster.delete_profile(test).await
}

pub(crate) async fn enforcement_warn_and_audit_admit_pods(cluster: &mut Cluster) -> TestResult {
    let test = "stages";
    cluster.create_tool(test, "stages-tool", UID).await?;
    cluster.create_namespace("stages-failed", &json!({"tenancy": test}), &json!({})).await?;
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["enforcement"] = json!({"pods": "Warn"});
    cluster.apply_profile(&profile).await?;
    cluster.wait_condition(test, "Programmed", "True").await?;
    let file = std::env::temp_dir().join(format!("palisade-hostile-{}.json", std::process::id()));
    std::fs::write(&file, hostile_pod("hostile").to_string())?;
    let path = file.display().to_string();
    let create = ["create", "--dry-run=server", "-f", &path, "--namespace"];
    let create_in = |namespace: &str| {
        let arguments: Vec<&str> = create.iter().copied().chain([namespace]).collect();
        cluster.kubectl_both(&arguments)
    };
    let warned = eventually("a warning", || async {
        let (_, warnings) = create_in("stages-tool").map_err(|error| error.to_string())?;
        if warnings.contains("[privileged]") { Ok(warnings) } else { Err(format!("warnings: {warnings:?}")) }
    })
    .await?;
    ensure!(
        warned.contains("Warning: Validation failed for ValidatingAdmissionPolicy 'palisade-stages-pods'"),
        "{warned}"
    );
    cluster.wait_condition(test, "Ready", "True").await?;
    // As README says; it need not wait any more.
    cluster.kubectl(&["wait", "--for=condition=Ready", &format!("tsp/{test}"), "--timeout=1m"])?;
    let (_, failed) = create_in("stages-failed")?;
    ensure!(failed.contains("[parameters] namespace: parameter uid is missing"), "{failed}");

    profile["spec"]["enforcement"] = json!({"pods": "Audit"});
    cluster.apply_profile(&profile).await?;
    cluster.wait_condition(test, "Programmed", "True").await?;
    eventually("no warning", || async {
        let (_, warnings) = create_in("stages-tool").map_err(|error| error.to_string())?;
        if warnings.is_empty() { Ok(()) } else { Err(warnings) }
    })
    .await?;
    std::fs::remove_file(&file)?;
    cluster.wait_condition(test, "Enforced", "False").await?;
    let enforced = cluster.wait_condition(test, "Ready", "True").await?;
    let reasons: Vec<_> = enforced.status.into_iter().flat_map(|status| status.conditions).map(|c| c.reason).collect();
    ensure!(reasons.contains(&"StageAudit".to_owned()), "{reasons:?}");
    cluster.delete_profile(test).await
}

pub(crate) async fn generated_policies_have_no_type_check_warning(cluster: &mut Cluster) -> TestResult {
    let test = "types";
    let mut profile = Cluster::toolforge_profile(test)?;
    // Everything that can be a reference is one, so that each kind of parameter is checked.
    profile["spec"]["parameters"] = json!([
        {"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "toolforge.org/uid"}]},
        {"name": "strict", "type": "Boolean", "default": "true"},
        {"name": "tool", "type": "String", "default": "tool"},
        {"name": "list", "type": "StringList", "default": "registry.example,other.example"},
    ]);
    profile["spec"]["privileges"]["readOnlyRootFilesystem"] = json!("$strict");
    profile["spec"]["privileges"]["capabilities"]["requiredDrop"] = json!(["ALL", "$tool"]);
    for (setting, value) in [
        ("procMount", json!(["Default", "$tool"])),
        ("unmaskedInUserNamespaces", json!("$strict")),
        ("appArmor", json!({"allowed": ["RuntimeDefault", "$tool"], "localhostProfiles": ["a", "$list"]})),
        ("seLinux", json!({"types": ["a", "$tool"], "users": ["$list"], "levels": ["*"]})),
        ("sysctls", json!({"allowed": ["net.*", "$tool", "$list"], "forbidden": ["kernel.msg*", "a.${tool}.*"]})),
        ("windowsHostProcess", json!("$strict")),
    ] {
        profile["spec"]["privileges"][setting] = value;
    }
    profile["spec"]["privileges"]["seccomp"]["annotations"] = json!("$strict");
    profile["spec"]["users"]["relaxForUserNamespaces"] = json!("$strict");
    profile["spec"]["host"]["probeHosts"] = json!("$strict");
    profile["spec"]["scheduling"] = json!({
        "runtimeClasses": ["", "$tool", "$list"], "priorityClasses": ["", "$tool"], "nodeName": "$strict",
        "schedulers": ["default-scheduler", "$list"], "nodeSelector": [{"key": "pool", "values": ["$tool", "$list"]}],
        "tolerations": [{"key": "dedicated", "value": "$tool", "effect": "NoSchedule"}, {"key": "$tool", "operator": "Exists"}],
    });
    profile["spec"]["identity"] = json!({
        "serviceAccounts": ["default", "$list"], "automountServiceAccountToken": "$strict",
        "serviceAccountTokens": {"audiences": ["", "$tool"], "maxExpirationSeconds": 3600},
    });
    if cluster.has(&Feature::SUPPLEMENTAL_GROUPS_POLICY).await? {
        // Otherwise the API server removes the field, and no pod complies.
        profile["spec"]["users"]["supplementalGroupsPolicy"] = json!("Strict");
    }
    profile["spec"]["privileges"]["shareProcessNamespace"] = json!("$strict");
    profile["spec"]["host"]["aliases"] = json!("$strict");
    profile["spec"]["volumes"]["mountPropagation"] = json!(["$tool"]);
    profile["spec"]["volumes"]["recursiveReadOnly"] = json!("$strict");
    profile["spec"]["volumes"]["allowed"] = json!(["*"]);
    profile["spec"]["volumes"]["csiDrivers"] = json!(["a", "$tool"]);
    profile["spec"]["volumes"]["flexVolumes"] = json!(["$list"]);
    profile["spec"]["volumes"]["hostPaths"] =
        json!([{"pathPrefix": "/data/$tool", "readOnly": "$strict"}, {"pathPrefix": "/x"}]);
    profile["spec"]["images"]["allowedRegistries"] = json!(["$list", "registry.example/$tool"]);
    profile["spec"]["exemptions"] = json!({"users": ["a"], "groups": ["b"], "runtimeClasses": ["c"]});
    profile["spec"]["exceptions"] = json!([
        {"namespaces": ["x"], "checks": ["privileged"], "reason": "a test", "expires": "2099-01-01T00:00:00Z"},
    ]);
    let of_object = json!({
        "id": "ofObject", "target": "Object", "message": "m",
        "kinds": [
            {"versions": ["v1"], "resource": "configmaps"}, {"versions": ["v1"], "resource": "services"},
            {"group": "networking.k8s.io", "versions": ["v1"], "resource": "ingresses"},
        ],
        "expression": "request.kind.kind == 'ConfigMap' ? object.data != oldObject.data : object.spec != params.spec.strings['tool']",
    });
    let mut customs = profile["spec"]["customChecks"].as_array().cloned().unwrap_or_default();
    customs.push(of_object);
    profile["spec"]["customChecks"] = json!(customs);
    cluster.enforce(&profile).await?;
    for shape in Shape::ALL {
        let name = names::policy(test, shape);
        eventually(&format!("the type check of {name}"), || async {
            let policy = cluster.policies().get(&name).await.map_err(|error| error.to_string())?;
            let status = policy.status.unwrap_or_default();
            if status.observed_generation != policy.metadata.generation || status.type_checking.is_none() {
                return Err(format!("{status:?}"));
            }
            match status.type_checking.and_then(|checked| checked.expression_warnings).unwrap_or_default() {
                warnings if warnings.is_empty() => Ok(()),
                warnings => Err(format!("{warnings:?}")),
            }
        })
        .await?;
    }
    cluster.delete_profile(test).await
}

//! What a pod says of where it runs, as whom it speaks, and what its containers see of each other, against a profile
//! that leaves tenants no choice.

use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{Value, complying, container, with},
    table::{Attack, Expect, Tally, make},
    wire::{JSON_PATCH, MERGE, Request, pods},
};

/// A pod that complies with [`strict`], and with the example.
fn modest(name: &str) -> Json {
    with(
        complying(name),
        &[
            ("spec.nodeSelector", Some(json!({"pool": "tools"}))),
            ("spec.securityContext.supplementalGroupsPolicy", Some(json!("Strict"))),
        ],
    )
}

fn strict(spec: &mut Json) {
    spec["scheduling"] = json!({
        "priorityClasses": [""], "schedulers": ["default-scheduler"], "nodeName": false,
        "nodeSelector": [{"key": "pool", "values": ["tools"]}],
        "tolerations": [{"key": "dedicated", "value": "tools", "effect": "NoSchedule"}],
    });
    spec["identity"] = json!({
        "serviceAccounts": ["default"], "automountServiceAccountToken": false,
        "serviceAccountTokens": {"audiences": ["vault"], "maxExpirationSeconds": 3600},
    });
    spec["users"]["supplementalGroupsPolicy"] = json!("Strict");
    spec["host"]["aliases"] = json!(false);
    spec["privileges"]["shareProcessNamespace"] = json!(false);
    spec["volumes"]["mountPropagation"] = json!([]);
}

/// A field of pods, a value, and the check that denies it, if it does.
#[allow(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<(&'static str, Value, Option<&'static str>)> {
    let some = |value: Json| Some(value);
    let projected =
        |token: Json| some(json!([{"name": "v", "projected": {"sources": [{"serviceAccountToken": token}]}}]));
    let toleration = |toleration: Json| some(json!([toleration]));
    let second = |token: Json| {
        some(
            json!([{"name": "v", "projected": {"sources": [{"configMap": {"name": "x"}}, {"serviceAccountToken": token}]}}]),
        )
    };
    let (tokens, tolerations) = (Some("serviceAccountTokens"), Some("tolerations"));
    vec![
        ("spec.priorityClassName", some(json!("system-node-critical")), Some("priorityClasses")),
        ("spec.priorityClassName", some(json!("system-cluster-critical")), Some("priorityClasses")),
        ("spec.priorityClassName", some(json!("")), None),
        ("spec.schedulerName", some(json!("mine")), Some("schedulers")),
        ("spec.schedulerName", some(json!("Default-scheduler")), Some("schedulers")),
        ("spec.schedulerName", some(json!("")), None),
        ("spec.nodeName", some(json!("control-plane")), Some("nodeName")),
        ("spec.nodeName", some(json!("")), None),
        ("spec.nodeSelector", None, Some("nodeSelector")),
        ("spec.nodeSelector", some(Json::Null), Some("nodeSelector")),
        ("spec.nodeSelector", some(json!({})), Some("nodeSelector")),
        ("spec.nodeSelector", some(json!({"pool": "control-plane"})), Some("nodeSelector")),
        ("spec.nodeSelector", some(json!({"pool": ""})), Some("nodeSelector")),
        ("spec.nodeSelector", some(json!({"Pool": "tools"})), Some("nodeSelector")),
        ("spec.nodeSelector", some(json!({"pool": "tools", "disk": "ssd"})), None),
        ("spec.tolerations", toleration(json!({"operator": "Exists"})), tolerations),
        ("spec.tolerations", toleration(json!({"operator": "Exists", "effect": "NoSchedule"})), tolerations),
        (
            "spec.tolerations",
            toleration(json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"})),
            tolerations,
        ),
        (
            "spec.tolerations",
            toleration(json!({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"})),
            tolerations,
        ),
        ("spec.tolerations", toleration(json!({"key": "dedicated", "value": "tools"})), tolerations),
        (
            "spec.tolerations",
            toleration(json!({"key": "dedicated", "value": "tools", "effect": "NoExecute"})),
            tolerations,
        ),
        (
            "spec.tolerations",
            toleration(json!({"key": "dedicated", "value": "other", "effect": "NoSchedule"})),
            tolerations,
        ),
        (
            "spec.tolerations",
            toleration(json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists"})),
            tolerations,
        ),
        (
            "spec.tolerations",
            toleration(
                json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}),
            ),
            tolerations,
        ),
        ("spec.tolerations", toleration(json!({"key": "dedicated", "value": "tools", "effect": "NoSchedule"})), None),
        (
            "spec.tolerations",
            toleration(json!({"key": "dedicated", "operator": "Equal", "value": "tools", "effect": "NoSchedule"})),
            None,
        ),
        ("spec.serviceAccountName", some(json!("builder")), Some("serviceAccounts")),
        ("spec.serviceAccount", some(json!("builder")), Some("serviceAccounts")),
        ("spec.serviceAccountName", some(json!("default")), None),
        ("spec.serviceAccountName", some(json!("")), None),
        ("spec.automountServiceAccountToken", None, Some("automountServiceAccountToken")),
        ("spec.automountServiceAccountToken", some(Json::Null), Some("automountServiceAccountToken")),
        ("spec.automountServiceAccountToken", some(json!(true)), Some("automountServiceAccountToken")),
        ("spec.volumes", projected(json!({"path": "t"})), tokens),
        ("spec.volumes", projected(json!({"path": "t", "audience": ""})), tokens),
        ("spec.volumes", projected(json!({"path": "t", "audience": "Vault"})), tokens),
        ("spec.volumes", projected(json!({"path": "t", "audience": "https://kubernetes.default.svc"})), tokens),
        ("spec.volumes", projected(json!({"path": "t", "audience": "vault", "expirationSeconds": 3601})), tokens),
        ("spec.volumes", projected(json!({"path": "t", "audience": "vault", "expirationSeconds": 600})), None),
        ("spec.volumes", projected(json!({"path": "t", "audience": "vault"})), None),
        ("spec.volumes", second(json!({"path": "t"})), tokens),
        (
            "spec.volumes",
            some(
                json!([{"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3607}}]}}]),
            ),
            tokens,
        ),
        ("spec.shareProcessNamespace", some(json!(true)), Some("shareProcessNamespace")),
        ("spec.shareProcessNamespace", some(json!(false)), None),
        (
            "spec.hostAliases",
            some(json!([{"ip": "192.0.2.1", "hostnames": ["kubernetes.default.svc"]}])),
            Some("hostAliases"),
        ),
        ("spec.hostAliases", some(json!([])), None),
        ("spec.securityContext.supplementalGroupsPolicy", None, Some("supplementalGroupsPolicy")),
        ("spec.securityContext.supplementalGroupsPolicy", some(Json::Null), Some("supplementalGroupsPolicy")),
        ("spec.securityContext.supplementalGroupsPolicy", some(json!("Merge")), Some("supplementalGroupsPolicy")),
        ("spec.containers.0.volumeMounts", some(propagated("HostToContainer")), Some("mountPropagation")),
        ("spec.containers.0.volumeMounts", some(propagated("None")), None),
    ]
}

fn propagated(mode: &str) -> Json {
    json!([{"name": "e", "mountPath": "/e", "mountPropagation": mode}])
}

/// Where pods run, and as whom they speak.
pub(crate) async fn places_and_identities(arena: &mut Arena) -> Result<Tally> {
    let test = "red-places";
    let namespace = format!("{test}-tool");
    arena.tool(test, &namespace).await?;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    arena
        .demand(&Request::create(
            &accounts,
            &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "builder"}}),
        ))
        .await?;
    let mut profile = palisade_tests::Cluster::toolforge_profile(test)?;
    strict(&mut profile["spec"]);
    arena.enforce(&profile).await?;
    arena.admitted(&namespace, &modest("first")).await?;
    let target = arena.demand(&Request::create(&pods(&namespace), &modest("target"))).await?;
    let mut attacks = vec![];
    for (path, value, check) in cases() {
        let mut pod = with(modest("attack"), &[(path, value.clone())]);
        if path.ends_with("volumeMounts") {
            pod["spec"]["volumes"] = json!([{"name": "e", "emptyDir": {}}]);
        }
        let expect = check.map_or(Expect::Admitted, Expect::check);
        let name = format!("{path} {}", crate::pods::shown(&value));
        attacks.push(Attack::new(name, Request::pod(&namespace, &pod), expect));
    }
    // A pod that runs may get more tolerations, and no others than a new one.
    let one = format!("{}/target?dryRun=All", pods(&namespace));
    for (toleration, expect) in [
        (json!({"operator": "Exists"}), Expect::check("tolerations")),
        (json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}), Expect::check("tolerations")),
        (json!({"key": "dedicated", "value": "tools", "effect": "NoSchedule"}), Expect::Admitted),
    ] {
        let add = json!([{"op": "add", "path": "/spec/tolerations/-", "value": toleration}]);
        attacks.push(Attack::new(
            format!("a toleration more, {toleration}"),
            Request::new("PATCH", &one, JSON_PATCH, &add),
            expect.clone(),
        ));
        let mut all = target["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        all.push(toleration.clone());
        let merge = json!({"spec": {"tolerations": all}});
        attacks.push(Attack::new(
            format!("tolerations, with {toleration}"),
            Request::new("PATCH", &one, MERGE, &merge),
            expect,
        ));
    }
    let mut sidecar = container("first");
    sidecar["restartPolicy"] = "Always".into();
    sidecar["volumeMounts"] = propagated("HostToContainer");
    let sidecar = with(
        modest("attack"),
        &[
            ("spec.initContainers", Some(json!([sidecar]))),
            ("spec.volumes", Some(json!([{"name": "e", "emptyDir": {}}]))),
        ],
    );
    attacks.push(Attack::new(
        "mount propagation in a sidecar",
        Request::pod(&namespace, &sidecar),
        Expect::check("mountPropagation"),
    ));
    let tally = make(&arena.tenant, attacks).await;
    arena.delete_profile(test).await?;
    Ok(tally)
}

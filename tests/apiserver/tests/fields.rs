//! Checks of fields that the API server sets itself: service account, token, priority class, scheduler, tolerations and
//! the node.

use palisade_kube_json::{
    pod::{merge, minimal},
    workload::WORKLOADS,
};
use palisade_tests::{Cluster, TestResult, Verdict, ensure};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    fields_set_by_the_api_server_violate_nothing: Oldest 120, Judged 60 needs SUPPLEMENTAL_GROUPS_POLICY;
}

/// A profile with every check that no level of the standards has.
fn profile(name: &str) -> Json {
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"test": name}},
            "baseline": "Privileged",
            "enforcement": {"pods": "Deny", "workloads": "Deny"},
            "users": {"supplementalGroupsPolicy": "Strict"},
            "privileges": {"shareProcessNamespace": false},
            "host": {"aliases": false},
            "volumes": {"mountPropagation": []},
            "identity": {"serviceAccounts": ["default"], "serviceAccountTokens": {"audiences": []}},
            "scheduling": {
                "priorityClasses": [""], "schedulers": ["default-scheduler"], "nodeName": false,
                "nodeSelector": [{"key": "pool", "values": ["tenants"]}], "tolerations": [],
            },
        },
    })
}

pub(crate) async fn fields_set_by_the_api_server_violate_nothing(cluster: &mut Cluster) -> TestResult {
    let cluster = &*cluster;
    let (test, namespace) = ("fields", "fields-tenant");
    cluster.create_namespace(namespace, &json!({"test": test}), &json!({})).await?;
    cluster.enforce(&profile(test)).await?;
    let mut pod = minimal("job");
    let says = json!({
        "automountServiceAccountToken": null, "nodeSelector": {"pool": "tenants"},
        "securityContext": {"supplementalGroupsPolicy": "Strict"},
    });
    merge(&mut pod["spec"], &says);
    cluster.wait_admitted(namespace, &pod).await?;
    let created = cluster.answer_to("POST", &format!("/api/v1/namespaces/{namespace}/pods"), &pod).await?;
    let spec = &created["spec"];
    ensure!(
        spec["serviceAccountName"] == "default"
            && spec["schedulerName"] == "default-scheduler"
            && spec["tolerations"].as_array().is_some_and(|all| all.len() == 2)
            && spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"].is_object(),
        "the API server has not set what this is about: {spec}"
    );
    // A scheduler binds it; then it has a node, and may be looked into.
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "job"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    });
    let bound = cluster.create_at(&format!("/api/v1/namespaces/{namespace}/pods/job/binding"), &binding).await;
    ensure!(bound == Verdict::Admitted, "{bound:?}");
    let debugger = json!([{"name": "debugger", "image": "palisade.invalid/debugger:1"}]);
    let looked_into = cluster.dry_run_ephemeral(namespace, "job", &debugger).await;
    ensure!(looked_into == Verdict::Admitted, "{looked_into:?}");
    // An update may add tolerations, which are judged.
    let tolerate = json!([{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]);
    let tolerated = cluster.json_patch_pod(namespace, "job", &tolerate).await;
    ensure!(tolerated.denial().is_some_and(|text| text.contains("[tolerations]")), "{tolerated:?}");

    let wanted = json!({"spec": {
        "shareProcessNamespace": true, "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}],
        "priorityClassName": "system-node-critical", "schedulerName": "other", "nodeName": "node-1",
        "nodeSelector": {"pool": "control-plane"}, "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "vault", "projected": {"sources": [
            {"serviceAccountToken": {"audience": "vault", "path": "token"}},
        ]}}],
        "containers": [{"volumeMounts": [
            {"name": "vault", "mountPath": "/vault", "mountPropagation": "HostToContainer"},
        ]}],
        "securityContext": {"supplementalGroupsPolicy": "Merge"},
    }});
    let checks = [
        "supplementalGroupsPolicy",
        "shareProcessNamespace",
        "hostAliases",
        "mountPropagation",
        "serviceAccountTokens",
        "priorityClasses",
        "schedulers",
        "nodeName",
        "nodeSelector",
        "tolerations",
    ];
    let (template, mut hostile) = (pod.clone(), pod);
    merge(&mut hostile, &wanted);
    hostile["metadata"]["name"] = "hostile".into();
    let names_all = |verdict: &Verdict| {
        verdict.denial().is_some_and(|text| {
            text.contains("10 violations") && checks.iter().all(|check| text.contains(&format!("[{check}]")))
        })
    };
    let verdict = cluster.dry_run(namespace, &hostile).await;
    ensure!(names_all(&verdict), "{verdict:?}");
    for workload in &WORKLOADS {
        let group =
            if workload.api_version == "v1" { "api/v1".to_owned() } else { format!("apis/{}", workload.api_version) };
        let path = format!("/{group}/namespaces/{namespace}/{}", workload.resource);
        let asked = |pod: &Json| {
            let object = workload.around("fields", pod);
            let path = &path;
            async move { cluster.dry_run_at(&cluster.admin, path, &object).await }
        };
        let good = asked(&template).await;
        ensure!(good == Verdict::Admitted, "{}: {good:?}", workload.kind);
        let bad = asked(&hostile).await;
        ensure!(names_all(&bad), "{}: {bad:?}", workload.kind);
    }
    cluster.delete_profile(test).await
}

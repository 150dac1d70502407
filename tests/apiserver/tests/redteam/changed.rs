//! Updates of what checks read beside the spec of a pod: metadata, fields of workloads, and what exceptions are for.

use palisade_tests::Cluster;
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::{Arena, LIMIT},
    pods::{complying, hostile, with},
    table::{Attack, Expect, Tally, make, make_in_turn},
    updates::{Change, change, each_way},
    wire::{MERGE, Request, STRATEGIC, pods, send},
};

/// Custom checks with which [`complying`] complies.
fn customs() -> Json {
    json!([
        {"id": "ownTeam", "expression": "variables.annotations[?'team'].orValue('a') == 'a'", "message": "another team"},
        {"id": "noDebug", "expression": "object.metadata.?labels[?'debug'].orValue('') == ''", "message": "debugs"},
        {
            "id": "fewReplicas", "message": "too many",
            "expression": "request.kind.kind != 'Deployment' || dyn(object).spec.?replicas.orValue(1) <= 3",
        },
    ])
}

fn denied(id: &str) -> Expect {
    Expect::check(id)
}

/// What a pod becomes, whether it complied before or not.
fn of_pods() -> Vec<Change> {
    vec![
        change("a label that a check forbids", "metadata.labels", json!({"debug": "on"}), denied("noDebug")),
        change("a value of an annotation", "metadata.annotations", json!({"team": "b"}), denied("ownTeam")),
        change("a label that no check reads", "metadata.labels", json!({"other": "x"}), Expect::Admitted),
        change("an annotation that no check reads", "metadata.annotations", json!({"other": "x"}), Expect::Admitted),
        change("a finalizer", "metadata.finalizers", json!(["example.com/hold"]), Expect::Admitted),
    ]
}

/// Metadata of pods, and fields of a workload beside its template, that custom checks read.
pub(crate) async fn metadata(arena: &mut Arena) -> Result<Tally> {
    let test = "red-metadata";
    let old = "red-metadata-old";
    arena.tool("none", old).await?;
    arena.admitted(old, &hostile("old")).await?;
    let held = with(hostile("old"), &[("metadata.finalizers", Some(json!(["example.com/a", "example.com/b"])))]);
    let old_pod = arena.demand(&Request::create(&pods(old), &held)).await?;
    let namespace = arena.stage(test, |spec| {
        spec["customChecks"] = customs();
        spec["enforcement"]["workloads"] = "Deny".into();
    });
    let namespace = namespace.await?;
    arena.cluster.patch_namespace(old, &json!({"metadata": {"labels": {"tenancy": test}}})).await?;
    arena.denied(old).await?;
    arena.admitted(old, &complying("new")).await?;

    let target = arena.demand(&Request::get(format!("{}/target", pods(&namespace)))).await?;
    let mut attacks: Vec<Attack> = of_pods().iter().flat_map(|change| each_way(&namespace, &target, change)).collect();
    // A finalizer too few is not added by these.
    let of_old = of_pods().into_iter().filter(|change| change.path != "metadata.finalizers");
    attacks.extend(of_old.flat_map(|change| each_way(old, &old_pod, &change)));

    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let deployment = |replicas: u8| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "target"},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": complying("x")["spec"]},
            },
        })
    };
    arena.demand(&Request::create(&deployments, &deployment(3))).await?;
    let of_workload = |name: &str, patch: Json, expect: Expect| {
        let how = Request::new("PATCH", format!("{deployments}/target?dryRun=All"), MERGE, &patch);
        Attack::new(name, how, expect)
    };
    let path = format!("{}/target?dryRun=All", pods(&namespace));
    let debug = json!({"metadata": {"labels": {"debug": "on"}}});
    attacks.extend([
        Attack::new("a new Deployment", Request::dry_run(&deployments, &deployment(4)), denied("fewReplicas")),
        of_workload("more replicas", json!({"spec": {"replicas": 4}}), denied("fewReplicas")),
        of_workload("fewer replicas", json!({"spec": {"replicas": 2}}), Expect::Admitted),
        of_workload("a label of a workload", debug.clone(), denied("noDebug")),
        of_workload("another field", json!({"spec": {"paused": true}}), Expect::Admitted),
        // The limit that SECURITY.md names.
        Attack::new(
            "a label by the subresource for the status",
            Request::new("PATCH", path.replace("target", "target/status"), MERGE, &debug),
            Expect::Admitted,
        ),
    ]);
    let mut tally = make(&arena.tenant, attacks).await;
    tally.add(released(arena, old).await);
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// The finalizers of a pod that violates, before and after it is deleted.
async fn released(arena: &Arena, namespace: &str) -> Tally {
    let path = format!("{}/old", pods(namespace));
    let finalizers = |of: Json| Request::new("PATCH", &path, MERGE, &json!({"metadata": {"finalizers": of}}));
    let attacks = vec![
        Attack::new("one finalizer removed", finalizers(json!(["example.com/b"])), Expect::Admitted),
        Attack::new("a pod deleted", Request::delete(&path), Expect::Admitted),
        Attack::new("the last finalizer removed", finalizers(Json::Null), Expect::Admitted),
    ];
    make_in_turn(&arena.tenant, attacks).await
}

/// An approved exception is for images with a prefix: a container that it covers gets no other image.
pub(crate) async fn exceptions(arena: &mut Arena) -> Result<Tally> {
    let (test, prefix) = ("red-lifted", "registry.example/drivers/");
    let namespace = format!("{test}-tool");
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"] = json!({
        "namespaceSelector": profile["spec"]["namespaceSelector"], "baseline": "Baseline",
        "enforcement": {"pods": "Deny", "workloads": "Deny"},
        "exceptionRequests": {"checks": ["privileged"]},
    });
    arena.tool(test, &namespace).await?;
    arena.enforce(&profile).await?;
    arena.denied(&namespace).await?;
    let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityexceptions");
    let exception = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException", "metadata": {"name": "driver"},
        "spec": {
            "profile": test, "checks": ["privileged"], "scope": {"kind": "Namespace", "imagePrefix": prefix},
            "reason": "firmware", "expires": "2099-01-01T00:00:00Z",
        },
    });
    let asked = arena.demand(&Request::create(&path, &exception)).await?;
    let approval = json!({"status": {"approval": {"uid": asked["metadata"]["uid"], "generation": 1}}});
    palisade_tests::within(LIMIT, "an approval", || async {
        let answer = arena.ask(&Request::new("PATCH", format!("{path}/driver/status"), MERGE, &approval)).await;
        if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
    })
    .await?;
    let privileged = |name: &str, image: &str| {
        let context = json!({"privileged": true});
        with(
            complying(name),
            &[("spec.containers.0.image", Some(json!(image))), ("spec.containers.0.securityContext", Some(context))],
        )
    };
    let approved = privileged("driver", &format!("{prefix}x:1"));
    arena.admitted(&namespace, &approved).await?;
    let created = send(&arena.tenant, &Request::create(&pods(&namespace), &approved)).await;
    let mut tally = Tally::default();
    tally.must(created.is_admitted(), format!("the approved image: {}", created.short()));
    let field = "spec.containers.0.image";
    let evil = json!("evil.example/rootkit:1");
    let changes = [
        change("an image that is not approved", field, evil.clone(), denied("privileged")),
        change("another approved image", field, json!(format!("{prefix}x:2")), Expect::Admitted),
        change("a label under an exception", "metadata.labels", json!({"a": "b"}), Expect::Admitted),
    ];
    let mut attacks: Vec<Attack> =
        changes.iter().flat_map(|change| each_way(&namespace, &created.body, change)).collect();
    let evil = privileged("evil", "evil.example/rootkit:1");
    attacks.push(Attack::new("the image from the beginning", Request::pod(&namespace, &evil), denied("privileged")));
    // For real, and not as a dry run.
    let patch = json!({"spec": {"containers": [{"name": "main", "image": "evil.example/rootkit:1"}]}});
    let how = Request::new("PATCH", format!("{}/driver", pods(&namespace)), STRATEGIC, &patch);
    attacks.push(Attack::new("the image for real", how, denied("privileged")));
    tally.add(make(&arena.tenant, attacks).await);
    arena.delete_profile(test).await?;
    Ok(tally)
}

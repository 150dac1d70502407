//! Namespaces that are new, are relabelled, have wrong parameters, or are being deleted.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kube::Client;
use palisade_kube_json::workload::WORKLOADS;
use palisade_tests::{Cluster, within};
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::{Arena, LIMIT},
    pods::{UID, complying, hostile, with},
    table::{Attack, Expect, Tally, Window, make},
    wire::{MERGE, Request, pods, send},
};

/// Real hostile pods in a namespace from the moment it is there.
pub(crate) async fn new_namespaces(arena: &mut Arena) -> Result<Tally> {
    let test = "red-new";
    arena.enforce(&Cluster::toolforge_profile(test)?).await?;
    let cluster = &arena.cluster;
    let tallies = stream::iter(0..arena.extent.pick(30, 60)).map(|index| async move {
        let namespace = format!("{test}-{index}");
        cluster.create_tool(test, &namespace, UID).await?;
        let attacks = (0..5).map(|turn| {
            let how = Request::create(&pods(&namespace), &hostile(&format!("hostile-{turn}")));
            Attack::new(format!("pod {turn} in {namespace}"), how, Expect::Stopped)
        });
        Result::Ok(make(&cluster.admin, attacks.collect()).await)
    });
    let mut tally = Tally::default();
    let mut tallies = tallies.buffer_unordered(4);
    while let Some(one) = tallies.next().await {
        tally.add(one?);
    }
    drop(tallies);
    none_runs(arena, test, &mut tally).await;
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// No hostile pod is there, whatever the answers were.
async fn none_runs(arena: &Arena, test: &str, tally: &mut Tally) {
    let all = arena.ask(&Request::get("/api/v1/pods")).await.body;
    for pod in all["items"].as_array().into_iter().flatten() {
        let of_test = pod["metadata"]["namespace"].as_str().is_some_and(|namespace| namespace.starts_with(test));
        if of_test && pod["spec"]["hostPID"] == true {
            tally
                .holes
                .push(format!("there is the pod {} in {}", pod["metadata"]["name"], pod["metadata"]["namespace"]));
        }
    }
}

/// Namespaces that get the label of a profile's selector later. Until the API server has seen the label, it judges by
/// the earlier state: that is counted apart, with its length.
pub(crate) async fn label_flips(arena: &mut Arena) -> Result<Tally> {
    const TRIES: usize = 8;
    let test = "red-flips";
    arena.enforce(&Cluster::toolforge_profile(test)?).await?;
    let (mut tally, mut tried, mut admitted, mut longest) = (Tally::default(), 0, 0, Duration::ZERO);
    for index in 0..arena.extent.pick(8, 20) {
        let namespace = format!("{test}-{index}");
        arena.cluster.create_namespace(&namespace, &json!({}), &json!({"toolforge.org/uid": UID.to_string()})).await?;
        let client = arena.admin();
        judged(client, &namespace, None).await?;
        arena.cluster.patch_namespace(&namespace, &json!({"metadata": {"labels": {"tenancy": test}}})).await?;
        let start = Instant::now();
        // The first denial ends what may be open; nothing is admitted after it.
        let mut seen = false;
        for turn in 0..TRIES {
            let answer = send(client, &Request::pod(&namespace, &hostile("hostile"))).await;
            seen |= !answer.is_admitted();
            tried += usize::from(turn == 0);
            if seen {
                tally.count(&format!("{namespace}, pod {turn}, after the first denial"), &Expect::Stopped, &answer);
            } else {
                admitted += 1;
                longest = longest.max(start.elapsed());
            }
        }
        if !seen {
            judged(client, &namespace, Some("hostNamespaces")).await?;
        }
    }
    tally.must(longest < Duration::from_secs(10), format!("a label was not seen for {longest:?}"));
    tally.windows.push(Window {
        what: "a label that the API server has not seen yet".to_owned(),
        length: longest,
        tried,
        admitted,
    });
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// Waits until hostile pods are admitted, or denied by a check.
async fn judged(client: &Client, namespace: &str, by: Option<&str>) -> Result<()> {
    within(LIMIT, &format!("pods in {namespace} are judged: {by:?}"), || async {
        let answer = send(client, &Request::pod(namespace, &hostile("hostile"))).await;
        let right = match by {
            None => answer.is_admitted(),
            Some(check) => answer.denial().is_some_and(|text| text.contains(check)),
        };
        if right { Ok(()) } else { Err(answer.short()) }
    })
    .await?;
    Ok(())
}

/// Annotations that are not the uid of a tool, or barely one: pods of root, of nobody and of another tool are denied.
pub(crate) async fn wrong_parameters(arena: &mut Arena) -> Result<Tally> {
    let test = "red-params";
    arena.enforce(&Cluster::toolforge_profile(test)?).await?;
    let values = [
        None,
        Some(""),
        Some(" "),
        Some("0"),
        Some("-0"),
        Some("-50001"),
        Some("49999"),
        Some("65534"),
        Some("99999999999999999999"),
        Some("18446744073709601617"),
        Some("50001.5"),
        Some("5e4"),
        Some("0xC351"),
        Some("50_001"),
        Some("50001 0"),
        Some("50001\n0"),
        Some("\u{665}\u{660}\u{660}\u{660}\u{661}"),
        Some("$uid"),
        Some("50001]] || true"),
        Some("null"),
        Some("true"),
        Some("[50001]"),
    ];
    let values = &values[..arena.extent.pick(10, values.len())];
    let mut attacks = vec![];
    for (index, value) in values.iter().enumerate() {
        let namespace = format!("{test}-{index}");
        let annotations = value.map_or(json!({}), |value| json!({"toolforge.org/uid": value}));
        arena.cluster.create_namespace(&namespace, &json!({"tenancy": test}), &annotations).await?;
        let as_user = |uid: i64| {
            let ids = ["runAsUser", "runAsGroup", "fsGroup"].map(|id| format!("spec.securityContext.{id}"));
            let changes: Vec<_> = ids.iter().map(|id| (id.as_str(), Some(json!(uid)))).collect();
            with(complying("x"), &changes)
        };
        for (who, pod) in [
            ("a pod with hostPID", hostile("x")),
            ("a pod of another tool", as_user(UID + 1)),
            ("a pod of the user 65534", as_user(65_534)),
            ("a pod of the user 1", as_user(1)),
        ] {
            attacks.push(Attack::new(
                format!("{who}, annotation {value:?}"),
                Request::pod(&namespace, &pod),
                Expect::Stopped,
            ));
        }
    }
    // They must be denied for ever, and not until the parameters are there.
    for index in 0..values.len() {
        let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{test}-{index}/toolsecurityparams/{test}");
        within(LIMIT, &format!("parameters in {test}-{index}"), || async {
            let answer = arena.ask(&Request::get(&path)).await;
            if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
        })
        .await?;
    }
    let mut tally = make(arena.admin(), attacks.clone()).await;
    // A good annotation that goes away, or becomes another's, closes the namespace for what was good before.
    let namespace = format!("{test}-good");
    arena.cluster.create_tool(test, &namespace, UID).await?;
    arena.admit_tenant(&namespace).await?;
    arena.admitted(&namespace, &complying("x")).await?;
    for value in [json!(null), json!((UID + 1).to_string())] {
        arena
            .cluster
            .patch_namespace(&namespace, &json!({"metadata": {"annotations": {"toolforge.org/uid": value}}}))
            .await?;
        within(LIMIT, "the former uid denied", || async {
            let answer = send(&arena.tenant, &Request::pod(&namespace, &complying("x"))).await;
            answer.denial().map(drop).ok_or_else(|| answer.short())
        })
        .await?;
        let attack = Attack::new(
            format!("hostPID, annotation now {value}"),
            Request::pod(&namespace, &hostile("x")),
            Expect::Denied(String::new()),
        );
        tally.add(make(&arena.tenant, vec![attack]).await);
    }
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// Whoever may write finalizers must not keep a namespace from being deleted, nor change a spec on the way.
pub(crate) async fn deleted_namespaces(arena: &mut Arena) -> Result<Tally> {
    let test = "red-deleted";
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["enforcement"]["workloads"] = "Deny".into();
    arena.enforce(&profile).await?;
    let mut tally = Tally::default();

    // Of each kind one that complies, while the profile has parameters there.
    let selected = format!("{test}-selected");
    arena.tool(test, &selected).await?;
    arena.admitted(&selected, &complying("first")).await?;
    let kept = hold(arena, &selected).await?;
    // A namespace that held the same before it was selected, and that is deleted before it has parameters: nobody is
    // there who could write them.
    let late = format!("{test}-late");
    arena.cluster.create_namespace(&late, &json!({}), &json!({"toolforge.org/uid": UID.to_string()})).await?;
    arena.admit_tenant(&late).await?;
    arena.admitted(&late, &complying("first")).await?;
    let kept_late = hold(arena, &late).await?;
    arena.kill_controller();
    arena.cluster.patch_namespace(&late, &json!({"metadata": {"labels": {"tenancy": test}}})).await?;
    judged(arena.admin(), &late, Some("params")).await?;
    for namespace in [&selected, &late] {
        arena.cluster.delete_namespace(namespace).await?;
    }
    arena.start_controller()?;
    for path in kept.iter().chain(&kept_late) {
        // Once the pods are gone, the parameters go, unless something keeps them until the workloads are gone, too.
        if path.starts_with("/apis/apps/") && path.contains(&selected) {
            let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{selected}/toolsecurityparams/{test}");
            let _ = within(Duration::from_secs(10), "parameters gone", || async {
                if arena.ask(&Request::get(&path)).await.status == 404 { Ok(()) } else { Err("there".to_owned()) }
            })
            .await;
        }
        let is_pod = path.contains("/pods/");
        if is_pod {
            let evil = json!({"metadata": {"finalizers": ["example.com/hold"]}, "spec": {"containers": [{"name": "main", "image": "evil.example/x"}]}});
            let how = Request::new("PATCH", path, crate::wire::STRATEGIC, &evil);
            tally.add(
                make(arena.admin(), vec![Attack::new(format!("another image at {path}"), how, Expect::Stopped)]).await,
            );
        }
        let free = json!({"metadata": {"finalizers": null}});
        let attack = Attack::new(
            format!("finalizers removed at {path}"),
            Request::new("PATCH", path, MERGE, &free),
            Expect::Admitted,
        );
        tally.add(make(arena.admin(), vec![attack]).await);
    }
    for namespace in [&selected, &late] {
        let path = format!("/api/v1/namespaces/{namespace}");
        let gone = within(Duration::from_secs(30), "gone", || async {
            let answer = arena.ask(&Request::get(&path)).await;
            if answer.status == 404 { Ok(()) } else { Err(answer.body["status"].to_string()) }
        })
        .await;
        tally.must(gone.is_ok(), format!("{namespace} cannot be deleted: {gone:?}"));
    }
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// A pod and one of each kind of workload with a finalizer: their paths.
async fn hold(arena: &Arena, namespace: &str) -> Result<Vec<String>> {
    let mut paths = vec![];
    let mut create = async |path: String, mut object: Json| -> Result<()> {
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        arena.demand(&Request::create(&path, &object)).await?;
        paths.push(format!("{path}/held"));
        Ok(())
    };
    create(pods(namespace), complying("held")).await?;
    for workload in &WORKLOADS {
        let prefix = if workload.api_version == "v1" { "api" } else { "apis" };
        let path = format!("/{prefix}/{}/namespaces/{namespace}/{}", workload.api_version, workload.resource);
        create(path, workload.around("held", &complying("x"))).await?;
    }
    Ok(paths)
}

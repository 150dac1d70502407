//! Pods without a pause, while profiles are edited and the controller is killed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::Client;
use palisade_tests::Cluster;
use serde_json::{Value as Json, json};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    Result,
    arena::Arena,
    pods::{complying, hostile},
    table::{Expect, Tally},
    wire::{Request, send},
};

/// Requests under way, until it ends.
pub(crate) struct Siege {
    tally: Arc<Mutex<Tally>>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Siege {
    pub(crate) fn start(client: &Client, namespace: &str) -> Self {
        let mut siege = Self { tally: Arc::default(), stop: CancellationToken::new(), tasks: JoinSet::new() };
        for (name, pod, expect) in [
            ("a hostile pod", hostile("hostile"), Expect::Denied(String::new())),
            ("a pod that complies", complying("complying"), Expect::Admitted),
        ] {
            let (client, request) = (client.clone(), Request::pod(namespace, &pod));
            let (tally, stop) = (Arc::clone(&siege.tally), siege.stop.clone());
            siege.tasks.spawn(async move {
                while !stop.is_cancelled() {
                    let answer = send(&client, &request).await;
                    tally.lock().unwrap_or_else(PoisonError::into_inner).count(name, &expect, &answer);
                    // A pause between two requests, so that they do not keep the processors busy.
                    sleep(Duration::from_millis(5)).await;
                }
            });
        }
        siege
    }

    pub(crate) async fn end(mut self) -> Tally {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        std::mem::take(&mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The example in one of many forms, all of which deny the hostile pod and admit the other: another name of the
/// parameter, another stage of workloads, defaults or none, an exception elsewhere, and mistakes.
fn variant(test: &str, number: usize) -> Result<Json> {
    let profile = Cluster::toolforge_profile(test)?.to_string();
    let name = format!("uid{}", number % 5);
    let profile =
        profile.replace("$uid", &format!("${name}")).replace("\"name\":\"uid\"", &format!("\"name\":\"{name}\""));
    let mut profile: Json = serde_json::from_str(&profile)?;
    let spec = &mut profile["spec"];
    spec["enforcement"]["workloads"] = ["Warn", "Deny", "Off", "Audit"][number / 5 % 4].into();
    if number % 2 == 1 {
        spec["mutation"] = json!({"defaults": "Secure"});
    }
    if number % 7 == 5 {
        spec["exceptions"] = json!([{"namespaces": ["nowhere"], "checks": ["hostNamespaces"], "reason": "x", "expires": "2099-01-01T00:00:00Z"}]);
    }
    match number % 8 {
        3 => spec["customChecks"] = json!([{"id": "own", "message": "m", "expression": "1 +"}]),
        6 => spec["users"]["runAsUser"]["ranges"] = json!([{"min": "$nobody", "max": "$nobody"}]),
        7 => {
            spec["customChecks"] = json!([{"id": "own", "message": "m", "expression": "object.metadata.name != 'no'"}]);
        }
        _ => {}
    }
    Ok(profile)
}

/// A number that looks random and is the same each time.
fn next(number: usize) -> usize {
    (number * 7919 + 104_729) % 100_003
}

/// Many edits, faster than they are reconciled.
pub(crate) async fn rapid_edits(arena: &mut Arena) -> Result<Tally> {
    let test = "red-edits";
    let namespace = arena.stage(test, |_| ()).await?;
    let siege = Siege::start(arena.admin(), &namespace);
    let mut number = 1;
    for _ in 0..arena.extent.pick(100, 200) {
        number = next(number);
        arena.cluster.apply_profile(&variant(test, number)?).await?;
        // Each edit comes at another moment of the reconciliation of the edit before it.
        sleep(Duration::from_millis(20 + number as u64 % 50)).await;
    }
    arena.enforce(&variant(test, 0)?).await?;
    let tally = siege.end().await;
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// The controller is killed wherever it is, with edits before and after, and 20 namespaces to write parameters for.
pub(crate) async fn killed_controllers(arena: &mut Arena) -> Result<Tally> {
    let test = "red-kills";
    let namespace = arena.stage(test, |_| ()).await?;
    for index in 0..20 {
        arena.cluster.create_tool(test, &format!("{test}-{index}"), crate::pods::UID).await?;
    }
    let siege = Siege::start(arena.admin(), &namespace);
    let mut number = 2;
    for turn in 0..arena.extent.pick(10, 20) {
        number = next(number);
        arena.cluster.apply_profile(&variant(test, number)?).await?;
        // Each kill comes at another moment of a reconciliation.
        sleep(Duration::from_millis(number as u64 % 900)).await;
        arena.kill_controller();
        if turn % 3 == 0 {
            arena.cluster.apply_profile(&variant(test, next(number))?).await?;
        }
        arena.start_controller()?;
        // The next edit comes at another moment of the start.
        sleep(Duration::from_millis(200 + number as u64 % 700)).await;
    }
    arena.enforce(&variant(test, 0)?).await?;
    let mut tally = siege.end().await;
    // What the last profile says, in each namespace.
    for index in 0..20 {
        let name = format!("{test}-{index}");
        let complies = palisade_tests::eventually("admitted", || async {
            let answer = send(arena.admin(), &Request::pod(&name, &complying("x"))).await;
            if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
        })
        .await;
        tally.must(complies.is_ok(), format!("a pod that complies in {name}: {complies:?}"));
        let answer = send(arena.admin(), &Request::pod(&name, &hostile("x"))).await;
        tally.count(&format!("hostPID in {name}"), &Expect::check("hostNamespaces"), &answer);
    }
    arena.delete_profile(test).await?;
    Ok(tally)
}

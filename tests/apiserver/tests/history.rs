//! The revisions of a profile, as the command line shows them and goes back to them.

use std::io::Write as _;

use palisade_cli::CommandOutput;
use palisade_tests::{Cluster, TestResult, ensure, eventually, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

crate::groups::scenarios! {
    rollback_puts_a_recorded_spec_back_in_force: Judged 230, OldestRollouts 10;
}

const UID: i64 = 50_001;

/// Runs a command of `palisade` against the cluster.
pub(crate) async fn palisade(cluster: &Cluster, arguments: &[&str]) -> TestResult<CommandOutput> {
    let mut kubeconfig = NamedTempFile::new()?;
    kubeconfig.write_all(cluster.control_plane.kubeconfig().as_bytes())?;
    let mut all: Vec<_> = ["palisade"].iter().chain(arguments).map(Into::into).collect();
    all.extend(["--kubeconfig".into(), kubeconfig.path().into()]);
    // It has a runtime of its own, on a thread of its own.
    Ok(tokio::task::spawn_blocking(move || palisade_cli::captured(all)).await?)
}

/// Runs a command that asks no cluster.
pub(crate) async fn offline(arguments: &[&str]) -> TestResult<CommandOutput> {
    let all: Vec<_> = ["palisade"].iter().chain(arguments).map(Into::into).collect();
    Ok(tokio::task::spawn_blocking(move || palisade_cli::captured(all)).await?)
}

/// What a command prints that must succeed.
pub(crate) async fn printed(cluster: &Cluster, arguments: &[&str]) -> TestResult<String> {
    let CommandOutput { code, out, err } = palisade(cluster, arguments).await?;
    ensure!(code == 0, "{arguments:?}: {code}: {out}{err}");
    Ok(out)
}

pub(crate) async fn rollback_puts_a_recorded_spec_back_in_force(cluster: &mut Cluster) -> TestResult {
    let (test, namespace) = ("history", "history-tool");
    cluster.create_tool(test, namespace, UID).await?;
    let good = Cluster::small_profile(test);
    cluster.enforce(&good).await?;
    cluster.wait_admitted(namespace, &tool_pod("job", UID)).await?;
    let recorded = async |wanted: &[i64]| {
        eventually(&format!("revisions {wanted:?}"), || async {
            let text = printed(cluster, &["history", test, "-o", "json"]).await.map_err(|error| error.to_string())?;
            let found: Json = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
            let found = found["revisions"].as_array().into_iter().flatten();
            let numbers: Vec<_> = found.filter_map(|one| one["revision"].as_i64()).collect();
            if numbers == wanted { Ok(()) } else { Err(format!("{numbers:?}")) }
        })
        .await
    };
    recorded(&[1]).await?;

    // It is valid, and wrong: it admits what it should deny.
    let mut weak = good.clone();
    weak["spec"]["enforcement"] = json!({"pods": "Audit"});
    cluster.apply_profile(&weak).await?;
    recorded(&[2, 1]).await?;
    eventually("a hostile pod is admitted", || async {
        let verdict = cluster.dry_run(namespace, &hostile_pod("hostile")).await;
        if verdict.denial().is_none() { Ok(()) } else { Err(format!("{verdict:?}")) }
    })
    .await?;
    let table = printed(cluster, &["history", test]).await?;
    let lines: Vec<_> = table.lines().collect();
    ensure!(lines[0].starts_with("REVISION   AGE") && lines.len() == 3, "{table}");
    ensure!(lines[1].contains("active") && lines[1].ends_with("spec.enforcement.pods"), "{table}");
    let change = palisade(cluster, &["diff", "history@1", test]).await?;
    ensure!(change.code == 1, "{change:?}");
    ensure!(change.out.contains("--- history@1\n+++ history\n") && change.out.contains("+  pods: Audit"), "{change:?}");
    ensure!(printed(cluster, &["diff", "history@2"]).await?.is_empty(), "the spec now is revision 2");

    // A dry run changes nothing; a rollback is enforced.
    let shown = printed(cluster, &["rollback", test, "--dry-run"]).await?;
    ensure!(shown.ends_with("profile history would be rolled back to revision 1\n"), "{shown}");
    ensure!(cluster.profiles().get(test).await?.metadata.generation == Some(2), "the dry run wrote");
    let shown = printed(cluster, &["rollback", test]).await?;
    ensure!(shown.contains("-  pods: Audit"), "{shown}");
    recorded(&[3, 2, 1]).await?;
    eventually("a hostile pod is denied", || async {
        let verdict = cluster.dry_run(namespace, &hostile_pod("hostile")).await;
        verdict.denial().map(drop).ok_or(format!("{verdict:?}"))
    })
    .await?;
    let managers = cluster.profiles().get(test).await?.metadata.managed_fields.unwrap_or_default();
    let managers: Vec<_> = managers.into_iter().filter_map(|one| one.manager).collect();
    ensure!(managers.iter().any(|manager| manager == "palisade-rollback"), "{managers:?}");

    // What is refused is not recorded, and the way back leads to what is in force.
    let mut refused = good.clone();
    refused["spec"]["users"]["runAsUser"]["ranges"][0]["max"] = json!("$nope");
    cluster.apply_profile(&refused).await?;
    cluster.wait_condition(test, "Accepted", "False").await?;
    let pending = palisade(cluster, &["history", test]).await?;
    ensure!(pending.err.contains("note: generation 4 (the current spec) is not active: "), "{pending:?}");
    ensure!(pending.err.contains("$nope is not a declared parameter"), "{pending:?}");
    printed(cluster, &["rollback", test]).await?;
    cluster.wait_condition(test, "Accepted", "True").await?;
    recorded(&[5, 3, 2, 1]).await?;

    // Errors say what there is.
    let missing = palisade(cluster, &["rollback", test, "--to", "4"]).await?;
    ensure!(missing.code == 2, "{missing:?}");
    ensure!(missing.err.contains("revision 4 of profile history not found; recorded: 5, 3, 2, 1"), "{missing:?}");
    let unknown = palisade(cluster, &["history", "nobody"]).await?;
    ensure!(unknown.code == 2 && unknown.err.contains("ToolSecurityProfile \"nobody\" not found"), "{unknown:?}");
    let same = printed(cluster, &["rollback", test, "--to", "5"]).await?;
    ensure!(same == "profile history unchanged: its spec is equal to revision 5\n", "{same}");
    cluster.delete_profile(test).await
}

//! Who can approve the exceptions that tenants ask for, and what an approval is of.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use palisade_api::conditions::ExceptionReason;
use palisade_kube_json::pod;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

use crate::exceptions::{approval, approve, ask, exception, path, people, privileged, profile, read, wait_state};

crate::groups::scenarios! {
    only_approvers_may_approve_an_exception: Unprivileged 60, Confined 50;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A denial by the policy of `manifests/confinement.yaml`, or no permission at all.
fn cannot(verdict: &Verdict, who: &str) -> TestResult {
    let right = match verdict {
        Verdict::Denied(text) => text.contains("ValidatingAdmissionPolicy 'confine-toolsecurityexceptions'"),
        Verdict::Refused(code, _) => *code == 403,
        Verdict::Admitted => false,
    };
    ensure!(right, "{who}: {verdict:?}");
    Ok(())
}

/// Somebody replaces an exception by one that is approved, at the path of the object or of its status.
async fn put_approved(cluster: &Cluster, client: &Client, namespace: &str, at: &str) -> Result<Verdict> {
    loop {
        let mut whole = serde_json::to_value(read(cluster, namespace, "driver").await?)?;
        pod::merge(&mut whole, &approval(cluster, namespace, "driver").await?);
        match cluster.ask_as(client, "PUT", at, &whole).await {
            // Somebody has written it meanwhile.
            Verdict::Refused(409, _) => {}
            verdict => return Ok(verdict),
        }
    }
}

pub(crate) async fn only_approvers_may_approve_an_exception(cluster: &mut Cluster) -> TestResult {
    let (test, namespace) = ("approved", "approved");
    cluster.create_namespace(namespace, &json!({"test": test}), &json!({})).await?;
    let [asker, approver] = people(cluster, namespace).await?;
    cluster.enforce(&profile(test)).await?;
    let end = Timestamp::now() + SignedDuration::from_hours(1);
    let exception = |name: &str| exception(name, test, &json!({"kind": "Namespace"}), end);
    ask(cluster, &asker, namespace, &exception("driver")).await?;

    // What many clusters give their tenants; the role of approvers in one namespace; and an editor of the namespace.
    for (name, role) in [
        ("everything", "--role=everything"),
        ("local", "--clusterrole=palisade-exception-approver"),
        ("editor", "--clusterrole=edit"),
        ("admin", "--clusterrole=admin"),
    ] {
        if name == "everything" {
            cluster.kubectl(&["create", "role", name, "--verb=*", "--resource=*.*", "-n", namespace])?;
        }
        cluster.kubectl(&["create", "rolebinding", name, role, &format!("--user={name}"), "-n", namespace])?;
    }
    let at = path(namespace, "driver");
    let status = format!("{at}/status");
    let approval = approval(cluster, namespace, "driver").await?;
    let [everything, local, editor, admin] = [
        cluster.client_of_tenant("everything").await?,
        cluster.client_of_tenant("local").await?,
        cluster.client_of_tenant("editor").await?,
        cluster.client_of_tenant("admin").await?,
    ];
    for (who, client) in [("everything", &everything), ("local", &local)] {
        eventually(&format!("the policy denies {who}"), || async {
            // What is admitted must not approve: the next attempt would be no change, and pass.
            match cluster.ask_as(client, "PATCH", &format!("{status}?dryRun=All"), &approval).await {
                Verdict::Denied(_) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    }
    let controller = cluster.client_as(&cluster.controller_kubeconfig()?).await?;
    for (who, client) in [
        ("a tenant with *", &everything),
        ("an approver of this namespace", &local),
        ("an editor", &editor),
        ("an admin of the namespace", &admin),
        ("who may ask", &asker),
        ("the controller", &controller),
    ] {
        cannot(&cluster.ask_as(client, "PATCH", &status, &approval).await, who)?;
        cannot(&put_approved(cluster, client, namespace, &status).await?, who)?;
        // The object itself has no status to write: what stands there is dropped.
        let patched = cluster.ask_as(client, "PATCH", &at, &approval).await;
        let put = put_approved(cluster, client, namespace, &at).await?;
        let found = read(cluster, namespace, "driver").await?;
        ensure!(!found.is_approved(), "{who} approved: {patched:?}, {put:?}");
    }
    // Nor when it is made.
    let mut made = exception("made");
    pod::merge(&mut made, &approval);
    ask(cluster, &everything, namespace, &made).await?;
    let found = read(cluster, namespace, "made").await?;
    ensure!(found.status.as_ref().is_none_or(|status| status.approval.is_none()), "made approved: {found:?}");

    // An approver approves what was read, in no other's name.
    let meta = read(cluster, namespace, "driver").await?.metadata;
    let (uid, generation) = (meta.uid.unwrap_or_default(), meta.generation.unwrap_or_default());
    for wrong in [
        json!({"uid": uid, "generation": generation + 1}),
        json!({"uid": "another", "generation": generation}),
        json!({"uid": uid, "generation": generation, "by": "somebody-else"}),
    ] {
        let verdict = cluster.ask_as(&approver, "PATCH", &status, &json!({"status": {"approval": wrong}})).await;
        ensure!(verdict.denial().is_some(), "{wrong}: {verdict:?}");
    }
    approve(cluster, &approver, namespace, "driver").await?;
    cluster.wait_admitted(namespace, &privileged()).await?;
    // Nobody else takes it away either, but who may delete the exception.
    for (who, client) in [("a tenant with *", &everything), ("the controller", &controller)] {
        cannot(&cluster.ask_as(client, "PATCH", &status, &json!({"status": {"approval": null}})).await, who)?;
    }
    lost(cluster, &everything, namespace, &exception("driver")).await?;
    cluster.delete_profile(test).await
}

/// An approval does not outlive what was approved, and keeps nothing from being deleted.
async fn lost(cluster: &Cluster, tenant: &Client, namespace: &str, same: &Json) -> TestResult {
    let at = path(namespace, "driver");
    let denied = || async {
        let verdict = cluster.dry_run(namespace, &privileged()).await;
        verdict.denial().map(|_| ()).ok_or(format!("{verdict:?}"))
    };
    // A change that does not matter to the effect is a change.
    let verdict = cluster.ask_as(tenant, "PATCH", &at, &json!({"spec": {"reason": "another"}})).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    eventually("the approval is lost by a change", denied).await?;
    let verdict = cluster.ask_as(tenant, "PATCH", &at, &json!({"spec": {"reason": "a driver"}})).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    wait_state(cluster, namespace, "driver", ExceptionReason::ApprovalOutdated).await?;
    denied().await?;
    // The same again under the same name.
    let finalizer = json!({"metadata": {"finalizers": ["example.org/a"]}});
    ensure!(cluster.ask_as(tenant, "PATCH", &at, &finalizer).await == Verdict::Admitted, "no finalizer");
    ensure!(cluster.ask_as(tenant, "DELETE", &at, &json!({})).await == Verdict::Admitted, "not deleted");
    let none = json!({"metadata": {"finalizers": null}});
    ensure!(cluster.ask_as(tenant, "PATCH", &at, &none).await == Verdict::Admitted, "the finalizer stays");
    ask(cluster, tenant, namespace, same).await?;
    wait_state(cluster, namespace, "driver", ExceptionReason::AwaitingApproval).await?;
    denied().await?;
    Ok(())
}

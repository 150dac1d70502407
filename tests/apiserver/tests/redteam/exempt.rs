//! Exemptions: exempt users are not judged, users who only look exempt are, and no document advises admins to exempt a
//! tenant.

use std::path::{Path, PathBuf};

use palisade_tests::{Cluster, root};
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{complying, hostile, with},
    table::{Attack, Expect, Tally, make},
    wire::{Request, client_of},
};

/// Exemptions of each kind, beside the mutation of pods.
pub(crate) async fn exemptions(arena: &mut Arena) -> Result<Tally> {
    let test = "red-exempt";
    let exempt = |spec: &mut Json| {
        spec["exemptions"] = json!({
            "users": ["system:serviceaccount:platform:debugger"], "groups": ["storage-admins"], "runtimeClasses": ["kata"],
        });
        spec["mutation"] = json!({"defaults": "Secure"});
    };
    let namespace = format!("{test}-tool");
    let mut profile = Cluster::toolforge_profile(test)?;
    exempt(&mut profile["spec"]);
    arena.tool(test, &namespace).await?;
    let mut tally = Tally::default();
    arena.cluster.apply_profile(&profile).await?;
    let accepted = arena.condition(test, "Accepted", "True").await;
    tally.must(accepted.is_ok(), format!("exemptions beside mutation: {accepted:?}"));
    if accepted.is_err() {
        tally.tried += 1;
        arena.delete_profile(test).await?;
        return Ok(tally);
    }
    arena.condition(test, "Enforced", "True").await?;
    arena.denied(&namespace).await?;
    let runtime = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"});
    arena.demand(&Request::create("/apis/node.k8s.io/v1/runtimeclasses", &runtime)).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}],
    });
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings");
    arena.demand(&Request::create(&bindings, &binding)).await?;
    for (user, group, exempt) in [
        ("system:serviceaccount:platform:debugger", "x", true),
        ("someone", "storage-admins", true),
        ("system:serviceaccount:platform:debugger2", "x", false),
        ("System:serviceaccount:platform:debugger", "x", false),
        ("system:serviceaccount:platform2:debugger", "x", false),
        ("platform:debugger", "system:serviceaccounts:platform", false),
        ("debugger", "x", false),
        ("storage-admins", "x", false),
        ("someone", "storage-admins2", false),
        ("someone", "Storage-admins", false),
        ("someone", "storage-admins,x", false),
    ] {
        let client = client_of(&arena.cluster, user, &[group, "system:authenticated"]).await?;
        let expect = if exempt { Expect::Admitted } else { Expect::check("hostNamespaces") };
        let attack =
            Attack::new(format!("hostPID by {user} in {group}"), Request::pod(&namespace, &hostile("x")), expect);
        let fine = Attack::new(
            format!("a pod by {user} in {group}"),
            Request::pod(&namespace, &complying("x")),
            Expect::Admitted,
        );
        tally.add(make(&client, vec![attack, fine]).await);
    }
    let with_runtime = |name: &str| with(hostile("x"), &[("spec.runtimeClassName", Some(json!(name)))]);
    let attacks = vec![
        Attack::new(
            "hostPID under the exempt runtime",
            Request::pod(&namespace, &with_runtime("kata")),
            Expect::Admitted,
        ),
        Attack::new("hostPID under another runtime", Request::pod(&namespace, &with_runtime("kata2")), Expect::Stopped),
    ];
    tally.add(make(&arena.tenant, attacks).await);
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// No example exempts a controller of `kube-system`, by which whoever may create a DaemonSet would run anything.
pub(crate) async fn documents(_: &mut Arena) -> Result<Tally> {
    let mut files = vec![root().join("README.md"), root().join("SECURITY.md")];
    for directory in ["docs", "examples", "manifests", "policies"] {
        below(&root().join(directory), &mut files);
    }
    let mut tally = Tally::default();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        tally.tried += 1;
        for (number, line) in text.lines().enumerate() {
            let exempts = ["users:", "groups:"]
                .iter()
                .any(|key| line.trim_start().starts_with(key) || line.contains(&format!("{{{key}")));
            let controllers =
                line.contains("system:serviceaccount:kube-system:") || line.contains("system:serviceaccounts");
            let shown_as_wrong = file.to_string_lossy().contains("docs/lint/");
            if exempts && controllers && !shown_as_wrong {
                tally.holes.push(format!("{}:{}: {line}", file.display(), number + 1));
            }
        }
    }
    tally.admitted = tally.tried;
    Ok(tally)
}

fn below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md" || extension == "yaml") {
            files.push(path);
        }
    }
}

//! API servers that read policies from files of their own.

use std::ffi::OsString;

use palisade_controlplane::{Builder, ControlPlane};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

crate::groups::scenarios! {
    a_profile_in_a_file_of_the_api_server_denies: OwnProfile needs POLICIES_IN_FILES;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A profile with constants alone.
const PROFILE: &str = "\
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: from-a-file}
spec:
  guardSources: true
  namespaceSelector: {matchLabels: {tenancy: from-a-file}}
  enforcement: {pods: Deny, workloads: Deny}
";

/// An API server that reads these policies from a file.
pub(crate) fn reading(policies: &str) -> Result<(Builder, TempDir)> {
    let directory = tempfile::tempdir()?;
    let manifests = directory.path().join("policies");
    std::fs::create_dir(&manifests)?;
    std::fs::write(manifests.join("policies.yaml"), policies)?;
    let configuration = directory.path().join("admission.json");
    let content = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ValidatingAdmissionPolicy", "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ValidatingAdmissionPolicyConfiguration",
            "staticManifestsDir": manifests,
        }}],
    });
    std::fs::write(&configuration, content.to_string())?;
    let flags = [
        "--feature-gates=ManifestBasedAdmissionControlConfig=true".to_owned(),
        format!("--admission-control-config-file={}", configuration.display()),
    ];
    Ok((ControlPlane::builder().apiserver_flags(flags), directory))
}

/// An API server that reads what `palisade render --static` prints.
pub(crate) fn with_a_profile_of_its_own() -> Result<(Builder, TempDir)> {
    let directory = tempfile::tempdir()?;
    let profile = directory.path().join("profile.yaml");
    std::fs::write(&profile, PROFILE)?;
    let words = ["palisade", "render", "--static"].map(OsString::from);
    let rendered = palisade_cli::captured(words.into_iter().chain([profile.into_os_string()]));
    ensure!(rendered.code == 0, "palisade render: {}", rendered.err);
    reading(&rendered.out)
}

fn pod(user: i64, privileged: bool) -> Json {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job"},
        "spec": {
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsUser": user, "runAsNonRoot": !privileged, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{"name": "job", "image": "registry.example.org/job", "securityContext": {
                "privileged": privileged, "allowPrivilegeEscalation": privileged, "capabilities": {"drop": ["ALL"]},
            }}],
        },
    })
}

pub(crate) async fn a_profile_in_a_file_of_the_api_server_denies(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let (test, namespace) = ("from-a-file", "read-from-a-file");
    cluster.create_namespace(namespace, &json!({"tenancy": test}), &json!({})).await?;
    cluster.wait_admitted(namespace, &pod(1000, false)).await?;
    let denied_by = |verdict: &Verdict, part: &str| {
        let by = format!("ValidatingAdmissionPolicy 'palisade-{test}-{part}.static.k8s.io'");
        match verdict.denial() {
            Some(text) if text.contains(&by) => Ok(()),
            _ => Err(format!("not denied by {part}: {verdict:?}")),
        }
    };
    let verdict = cluster.dry_run(namespace, &pod(0, true)).await;
    denied_by(&verdict, "pods")?;
    ensure!(verdict.denial().is_some_and(|text| text.contains("[privileged]")), "{verdict:?}");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "hostile"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {
            "metadata": {"labels": {"app": "x"}}, "spec": pod(0, true)["spec"],
        }},
    });
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    denied_by(&cluster.create_at(&path, &deployment).await, "workloads")?;
    // Another namespace is no business of the profile.
    cluster.create_namespace("not-from-a-file", &json!({}), &json!({})).await?;
    cluster.wait_admitted("not-from-a-file", &pod(1000, true)).await?;

    // The guard is there too.
    let user = "file-editor";
    cluster.kubectl(&["create", "clusterrole", user, "--verb=get,update,patch,delete", "--resource=namespaces"])?;
    cluster.kubectl(&[
        "create",
        "clusterrolebinding",
        user,
        &format!("--clusterrole={user}"),
        &format!("--user={user}"),
    ])?;
    let editor = cluster.client_of_tenant(user).await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    let patch = json!({"metadata": {"labels": {"tenancy": null}}});
    eventually("who edits namespaces cannot take one out of the profile", || async {
        denied_by(&cluster.ask_as(&editor, "PATCH", &path, &patch).await, "guard")
    })
    .await?;

    // Nothing of it is in the API, where an admin could delete it.
    let found =
        cluster.kubectl(&["get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name"])?;
    ensure!(!found.contains(test), "{found}");
    let delete = cluster.ask_as(&editor, "DELETE", &path, &json!({})).await;
    ensure!(delete == Verdict::Admitted, "the namespace can be deleted: {delete:?}");
    Ok(())
}

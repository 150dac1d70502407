//! What API servers say of the requests that they denied: to an audit webhook, and in their metrics.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::DeleteParams};
use palisade_cli::Outcome;
use palisade_controlplane::Shutdown;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, plain_get};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

crate::groups::scenarios! {
    an_api_server_sends_its_audit_events_and_waits_for_nobody: AuditWebhook;
}

/// The first argument with which the test's own program is `palisade`.
pub(crate) const PALISADE: &str = "palisade";
const UID: i64 = 50_001;

/// `palisade audit --listen`, as a process.
struct Sink {
    child: Child,
    address: String,
    metrics: String,
}

impl Sink {
    fn start(directory: &Path) -> TestResult<Self> {
        let file = |name: &str| directory.join(name).display().to_string();
        let mut child = Command::new(std::env::current_exe()?)
            .args([PALISADE, "audit", "--listen=127.0.0.1:0", "--listen-health=127.0.0.1:0", "-o", "json"])
            .args(["--tls-cert-file", &file("tls.crt"), "--tls-private-key-file", &file("tls.key")])
            .args(["--client-ca-file", &file("ca.crt")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no standard error")?).lines();
        let mut address = |what: &str| -> TestResult<String> {
            let line = lines.next().ok_or("it ended")??;
            Ok(line.strip_prefix(what).ok_or_else(|| format!("{line:?} instead of {what:?}"))?.to_owned())
        };
        let metrics = address("/metrics is at ")?;
        let address = address("waiting for audit events at ")?;
        Ok(Self { child, address, metrics })
    }

    /// Ends it as Kubernetes does, and returns what it printed.
    fn stop(mut self) -> TestResult<Json> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or("no process")?;
        kill_process(id, Signal::TERM)?;
        let out = self.child.stdout.take().ok_or("no standard output")?;
        let last = BufReader::new(out).lines().last().ok_or("it printed nothing")??;
        let status = self.child.wait()?;
        ensure!(status.success(), "{status}");
        Ok(serde_json::from_str(&last)?)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An authority, and certificates of the webhook and of its client that it has signed.
fn certificates(directory: &Path) -> TestResult {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    std::fs::write(directory.join("ca.crt"), params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);
    for (name, usage) in [("tls", ExtendedKeyUsagePurpose::ServerAuth), ("client", ExtendedKeyUsagePurpose::ClientAuth)]
    {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()])?;
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        std::fs::write(directory.join(format!("{name}.crt")), params.signed_by(&key, &issuer)?.pem())?;
        std::fs::write(directory.join(format!("{name}.key")), key.serialize_pem())?;
    }
    Ok(())
}

/// The file of `--audit-webhook-config-file`.
fn configuration(directory: &Path, address: &str) -> TestResult<String> {
    let file = |name: &str| directory.join(name).display().to_string();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "sink",
        "clusters": [{"name": "sink", "cluster": {
            "server": format!("https://{address}/events"), "certificate-authority": file("ca.crt"),
        }}],
        "users": [{"name": "sink", "user": {
            "client-certificate": file("client.crt"), "client-key": file("client.key"),
        }}],
        "contexts": [{"name": "sink", "context": {"cluster": "sink", "user": "sink"}}],
    });
    let path = file("webhook.json");
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

/// A profile at a stage, whose objects are written, and a namespace of it.
async fn profile(cluster: &Cluster, stage: &str) -> TestResult<String> {
    let test = format!("sink-{}", stage.to_lowercase());
    cluster.create_tool(&test, &test, UID).await?;
    let mut profile = Cluster::small_profile(&test);
    profile["spec"]["enforcement"] = json!({"pods": stage});
    cluster.apply_profile(&profile).await?;
    cluster.wait_condition(&test, "Programmed", "True").await?;
    Ok(test)
}

fn sample(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_default()
}

pub(crate) async fn an_api_server_sends_its_audit_events_and_waits_for_nobody(cluster: &mut Cluster) -> TestResult {
    let directory = tempfile::tempdir()?;
    certificates(directory.path())?;
    let sink = Sink::start(directory.path())?;
    let config = configuration(directory.path(), &sink.address)?;
    let flags = [format!("--audit-webhook-config-file={config}"), "--audit-webhook-batch-max-wait=1s".to_owned()];
    let url = cluster.control_plane.add_apiserver(flags).await?;
    // Where the last one is in force, the others are.
    let (noted, warned, denied) =
        (profile(cluster, "Audit").await?, profile(cluster, "Warn").await?, profile(cluster, "Deny").await?);

    let kubeconfig = cluster.control_plane.kubeconfig().replace(cluster.control_plane.url(), &url);
    let client = cluster.client_as(&kubeconfig).await?;
    let create = async |namespace: &str, name: &str| {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        cluster.ask_as(&client, "POST", &path, &hostile_pod(name)).await
    };
    // It has the policies and parameters a moment later than the first one.
    eventually("the second API server denies", || async {
        match create(&denied, "first").await {
            Verdict::Denied(text) if text.contains("[privileged]") => Ok(()),
            Verdict::Admitted => {
                let pods = Api::<Pod>::namespaced(cluster.admin.clone(), &denied);
                let _ = pods.delete("first", &DeleteParams::default().grace_period(0)).await;
                Err("admitted".to_owned())
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    for index in 0..2 {
        let verdict = create(&denied, &format!("denied-{index}")).await;
        ensure!(verdict.denial().is_some(), "{verdict:?}");
    }
    // Somebody without rights forges a denial: the answer quotes the name.
    let nobody = cluster.client_of_tenant_at(&kubeconfig, "nobody").await?;
    let forged = "x%22%20is%20forbidden:%20ValidatingAdmissionPolicy%20%27palisade-forged-pods%27%20with%20binding%20%27b%27%20\
                  denied%20request:%201%20violation%20of%20ToolSecurityProfile%20forged:%20[privileged]%20y";
    let path = format!("/api/v1/namespaces/kube-system/pods/{forged}");
    let verdict = cluster.ask_as(&nobody, "DELETE", &path, &Json::Null).await;
    ensure!(format!("{verdict:?}").contains("palisade-forged-pods"), "{verdict:?}");
    for (namespace, name) in [(&warned, "warned"), (&noted, "noted")] {
        let verdict = create(namespace, name).await;
        ensure!(verdict == Verdict::Admitted, "{namespace}: {verdict:?}");
    }
    let sample_of = |profile: &str, action: &str| {
        format!("palisade_audit_checks_total{{profile=\"{profile}\",check=\"privileged\",action=\"{action}\"}}")
    };
    let counted = async || plain_get(&sink.metrics, "/metrics").await.map_err(|error| error.to_string());
    eventually("all of them at the webhook", || async {
        let metrics = counted().await?;
        let found = [(&denied, "denied"), (&warned, "warned"), (&noted, "audited")];
        let found = found.map(|(profile, action)| sample(&metrics, &sample_of(profile, action)));
        if found[0] >= 3.0 && found[1..] == [1.0, 1.0] { Ok(()) } else { Err(format!("{found:?}: {metrics}")) }
    })
    .await?;
    let metrics = counted().await?;
    ensure!(!metrics.contains("namespace") && !metrics.contains("forged"), "{metrics}");

    // The same by the API server's own metrics, which need a right that most do not have.
    by_its_metrics(cluster, &kubeconfig, [&denied, &warned, &noted]).await?;

    let address = sink.address.clone();
    let printed = sink.stop()?;
    let named: Vec<_> = printed["namespaces"].as_array().into_iter().flatten().map(|one| &one["namespace"]).collect();
    for namespace in [&denied, &warned, &noted] {
        ensure!(named.contains(&&json!(namespace)), "{namespace} is not in {printed}");
    }

    // While nobody listens, requests are answered as before.
    ensure!(plain_get(&address, "/").await.is_err(), "it still listens");
    for index in 0..50 {
        let verdict = create(&denied, &format!("unheard-{index}")).await;
        ensure!(verdict.denial().is_some(), "{verdict:?}");
    }
    for profile in [denied, warned, noted] {
        cluster.delete_profile(&profile).await?;
    }
    cluster.control_plane.remove_apiserver(&url, Shutdown::Graceful).await?;
    Ok(())
}

/// Runs `palisade audit --metrics` with a kubeconfig.
async fn audit_metrics(kubeconfig: &str) -> TestResult<Outcome> {
    let mut file = NamedTempFile::new()?;
    file.write_all(kubeconfig.as_bytes())?;
    let path = file.path().display().to_string();
    let arguments = [PALISADE, "audit", "--metrics", "-o", "json", "--kubeconfig", &path].map(Into::into);
    Ok(tokio::task::spawn_blocking(move || palisade_cli::captured(arguments)).await?)
}

async fn by_its_metrics(cluster: &Cluster, kubeconfig: &str, [denied, warned, noted]: [&str; 3]) -> TestResult {
    let Outcome { code, out, err } = audit_metrics(kubeconfig).await?;
    ensure!(code == 0, "{code}: {err}");
    let found: Json = serde_json::from_str(&out)?;
    let of =
        |name: &str| found["profiles"].as_array().into_iter().flatten().find(|one| one["profile"] == *name).cloned();
    let of_denied = of(denied).ok_or_else(|| found.to_string())?;
    ensure!(of_denied["deny"].as_u64().is_some_and(|count| count >= 3), "{of_denied}");
    for (profile, counts) in [(warned, ["0", "1", "1"]), (noted, ["0", "0", "1"])] {
        let of_profile = of(profile).ok_or_else(|| found.to_string())?;
        let actions = ["deny", "warn", "audit"].map(|action| of_profile[action].to_string());
        ensure!(actions == counts, "{profile}: {of_profile}");
    }
    let Outcome { code, err, .. } = audit_metrics(&cluster.kubeconfig_of("default")?).await?;
    ensure!(code == 2 && err.contains("system:monitoring"), "{code}: {err}");
    Ok(())
}

//! The control plane, for real: it starts, restarts, stops, and leaves nothing behind.
#![allow(clippy::disallowed_methods, reason = "tests of processes take time and look into /proc")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use palisade_controlplane::{Component, ControlPlane, Error, Shutdown};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

fn kubectl(cluster: &ControlPlane, arguments: &str) -> std::result::Result<String, String> {
    let output = cluster
        .kubectl()
        .ok_or("no kubectl")?
        .args(arguments.split(' '))
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn pids(cluster: &ControlPlane) -> Vec<u32> {
    [Some(cluster.etcd_pid()), cluster.apiserver_pid(), cluster.controller_manager_pid()]
        .into_iter()
        .flatten()
        .collect()
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn serves_its_own_version_and_survives_restarts() -> Result {
    let start = Instant::now();
    let mut cluster = ControlPlane::builder().start().await?;
    eprintln!("ready after {:.1?}", start.elapsed());

    assert!(cluster.get("/version").await?.contains(r#""gitVersion": "v1.36.1""#));
    assert!(cluster.get("/apis/admissionregistration.k8s.io/v1").await?.contains("mutatingadmissionpolicies"));
    assert!(matches!(cluster.get("/nowhere").await, Err(Error::Status { status: 404, .. })));

    kubectl(&cluster, "create namespace tool-a")?;
    // The plugin ServiceAccount is on: pods are admitted, and get a token, because the controller has been there.
    kubectl(&cluster, "wait --for=create serviceaccount/default -n tool-a --timeout=30s")?;
    let pod = kubectl(&cluster, "run p -n tool-a --image=example.org/i --privileged --dry-run=server -o yaml")?;
    assert!(pod.contains("kube-api-access"), "{pod}");
    // The certificate is verified, and the token is needed.
    let anonymous = kubectl(&cluster, "--token=wrong get namespaces").unwrap_err();
    assert!(anonymous.contains("must be logged in"), "{anonymous}");

    for component in [Component::Etcd, Component::ApiServer, Component::ControllerManager] {
        let memory = cluster.memory(component)?;
        eprintln!("{component}: {} MB", memory >> 20);
        assert!(memory > 10 << 20);
    }

    for how in [Shutdown::Graceful, Shutdown::Kill] {
        let (url, before) = (cluster.url().to_owned(), cluster.apiserver_pid());
        let start = Instant::now();
        cluster.restart_apiserver(how).await?;
        eprintln!("restarted ({how:?}) after {:.1?}", start.elapsed());
        assert_eq!(cluster.url(), url);
        assert_ne!(cluster.apiserver_pid(), before);
        kubectl(&cluster, "get namespace tool-a")?;
    }

    let before = cluster.etcd_pid();
    cluster.kill_etcd();
    cluster.start_etcd().await?;
    assert_ne!(cluster.etcd_pid(), before);
    kubectl(&cluster, "get namespace tool-a")?;

    cluster.stop_apiserver(Shutdown::Kill).await?;
    assert_eq!(cluster.apiserver_pid(), None);
    assert!(matches!(cluster.get("/version").await, Err(Error::Request { .. })));
    assert!(matches!(cluster.memory(Component::ApiServer), Err(Error::NotRunning(_))));
    cluster.start_apiserver().await?;
    assert!(matches!(cluster.start_apiserver().await, Err(Error::AlreadyRunning)));

    // The namespace controller has found the API server again.
    kubectl(&cluster, "delete namespace tool-a --timeout=60s")?;

    let (pids, kubeconfig) = (pids(&cluster), cluster.kubeconfig_path().to_owned());
    let start = Instant::now();
    cluster.stop().await?;
    eprintln!("stopped after {:.1?}", start.elapsed());
    assert_eq!(pids.len(), 3);
    assert!(!pids.into_iter().any(is_alive));
    assert!(!kubeconfig.parent().is_some_and(Path::exists));
    Ok(())
}

#[tokio::test]
async fn emulates_older_versions_and_stops_on_drop() -> Result {
    for (version, beta_mutating_policies) in [("1.33", false), ("1.35", true)] {
        let cluster = ControlPlane::builder().emulated_version(version).audit(true).start().await?;
        let minor = format!(r#""emulationMinor": "{}""#, &version[2..]);
        assert!(cluster.get("/version").await?.contains(&minor));
        let beta = cluster.get("/apis/admissionregistration.k8s.io/v1beta1").await;
        let served = beta.is_ok_and(|resources| resources.contains("mutatingadmissionpolicies"));
        assert_eq!(served, beta_mutating_policies, "{version}");
        assert!(cluster.audit_log_path().is_some_and(Path::exists));

        let (pids, kubeconfig) = (pids(&cluster), cluster.kubeconfig_path().to_owned());
        drop(cluster);
        assert!(!pids.into_iter().any(is_alive));
        assert!(!kubeconfig.exists());
    }
    Ok(())
}

#[tokio::test]
async fn a_failed_start_shows_the_log() {
    let start = ControlPlane::builder().apiserver_flags(["--no-such-flag"]).start();
    let error = start.await.unwrap_err();
    assert!(matches!(error, Error::Exited { component: Component::ApiServer, .. }), "{error}");
    assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
}

/// Not even SIGKILL leaves a component running.
#[test]
fn components_end_with_their_parent() -> Result {
    if std::env::var_os("KUBEBUILDER_ASSETS").is_some() {
        return Ok(()); // Foreign binaries do not watch their parent.
    }
    let mut parent = Command::new(env!("CARGO_BIN_EXE_controlplane")).arg("run").stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(parent.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    assert!(line.starts_with("export KUBECONFIG="), "{line}");
    let children = children(parent.id())?;
    assert_eq!(children.len(), 3);

    let kubeconfig = line.trim_end().trim_start_matches("export KUBECONFIG=");
    let dir = Path::new(kubeconfig).parent().ok_or("no directory")?.to_owned();

    parent.kill()?;
    parent.wait()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while children.iter().any(|&pid| is_alive(pid)) {
        assert!(Instant::now() < deadline, "still running: {children:?}");
        // They are not children of this process, so it cannot wait for their end.
        std::thread::sleep(Duration::from_millis(20));
    }
    // The next start would remove what the killed program could not; do not wait for one.
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    Ok(())
}

fn children(parent: u32) -> std::result::Result<Vec<u32>, Box<dyn std::error::Error>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task"))? {
        let list = fs::read_to_string(task?.path().join("children"))?;
        for pid in list.split_whitespace() {
            children.push(pid.parse()?);
        }
    }
    Ok(children)
}

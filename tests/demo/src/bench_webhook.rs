//! The webhook against one on controller-runtime and against Kyverno's handler, which default the same, in turn and in one
//! run: CPU of a request, time of an answer at 500 requests a second over TLS, memory.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use palisade_controlplane::free_port;
use palisade_tests::{Cluster, WEBHOOK, bare_pod, within};
use serde_json::{Value as Json, json};

use crate::{Result, scene};

/// How often they take turns.
const ROUNDS: usize = 3;

/// A process that is killed in the end.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures, and prints a table.
/// `other` is the program on controller-runtime, which also sends the requests.
pub(crate) async fn run(
    cluster: &Cluster,
    other: &Path,
    kyverno: Option<&Path>,
    namespaces: u32,
    first_uid: i64,
) -> Result<()> {
    let profile = json!({"spec": {"mutation": {"defaults": "Secure", "engine": "Webhook"}}}).to_string();
    cluster.kubectl(&["patch", "tsp", "toolforge", "--type=merge", "--patch", &profile])?;
    let directory = cluster.control_plane.kubeconfig_path().parent().ok_or("a kubeconfig is in a directory")?;
    let file = |name: &str| directory.join(name).display().to_string();
    let uids: BTreeMap<_, _> =
        (0..namespaces).map(|index| (scene::namespace(index), first_uid + i64::from(index))).collect();
    std::fs::write(file("uids.json"), json!(uids).to_string())?;
    std::fs::write(file("pod.json"), bare_pod("job").to_string())?;
    std::fs::write(file("webhook.kubeconfig"), cluster.kubeconfig_of(WEBHOOK)?)?;
    let [ours, health] = [free_port()?, free_port()?];
    let binary = std::env::current_exe()?.with_file_name(WEBHOOK);
    let ours_process = Command::new(binary)
        .args([format!("--listen=127.0.0.1:{ours}"), format!("--listen-health=127.0.0.1:{health}")])
        .arg(format!("--url=https://127.0.0.1:{ours}"))
        .env("KUBECONFIG", file("webhook.kubeconfig"))
        .stdout(Stdio::null())
        .spawn()?;
    let ours_process = Server(ours_process);
    listening(health).await?;
    listening(ours).await?;
    // What the others serve with, made as the webhook makes its own: read from its Secret.
    for (key, name) in [("tls.crt", "tls.crt"), ("tls.key", "tls.key")] {
        let template = format!("{{{{index .data \"{key}\" | base64decode}}}}");
        let get = ["get", "secret", "palisade-webhook-cert", "-n", "palisade-system", "-o"];
        let arguments: Vec<_> = get.into_iter().map(str::to_owned).chain([format!("go-template={template}")]).collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let (text, _) = within(Duration::from_secs(20), key, || async {
            cluster.kubectl(&arguments).map_err(|error| error.to_string())
        })
        .await?;
        std::fs::write(file(name), text)?;
    }
    let mut sides = vec![("palisade-webhook", ours, ours_process)];
    let uids = format!("-uids={}", file("uids.json"));
    let theirs = [("controller-runtime", Some(other), Some(&uids)), ("Kyverno's handler", kyverno, None)];
    for (name, program, more) in theirs {
        let Some(program) = program else { continue };
        let port = free_port()?;
        let process = Command::new(program)
            .args([format!("-port={port}"), format!("-certificates={}", directory.display())])
            .args(more)
            .stderr(Stdio::null())
            .spawn()?;
        let process = Server(process);
        listening(port).await?;
        sides.push((name, port, process));
    }
    let measure = |port: u16, pid: u32, seconds: u32| -> Result<Json> {
        let output = Command::new(other)
            .args([format!("-load=https://127.0.0.1:{port}/mutate/toolforge"), format!("-pid={pid}")])
            .args([format!("-seconds={seconds}"), format!("-namespaces={namespaces}")])
            .arg(format!("-pod={}", file("pod.json")))
            .output()?;
        let found: Json = serde_json::from_slice(&output.stdout)?;
        if found["Patched"] != found["Requests"] {
            return Err(format!("not all were mutated: {found}").into());
        }
        Ok(found)
    };
    for (_, port, process) in &sides {
        // Once without counting: connections, caches, the garbage collector.
        measure(*port, process.0.id(), 5)?;
    }
    println!("\n  500 requests a second over TLS, {namespaces} namespaces, {ROUNDS} rounds of 20 s in turn\n");
    let mut cpu = vec![0.0; sides.len()];
    for _ in 0..ROUNDS {
        for ((name, port, process), cpu) in sides.iter().zip(&mut cpu) {
            let found = measure(*port, process.0.id(), 20)?;
            let number = |key: &str| found[key].as_f64().unwrap_or_default();
            *cpu += number("CPU");
            println!(
                "  {name:20} CPU {:6.0} us of a request, p50 {:6.2} ms, p99 {:6.2} ms, {:5.1} MiB, {} sent late",
                number("CPU"),
                number("P50"),
                number("P99"),
                number("MemoryMiB"),
                found["NotInTime"]
            );
        }
    }
    println!();
    for ((name, ..), theirs) in sides.iter().zip(&cpu).skip(1) {
        println!("  CPU of a request: {name} takes {:.1} times what palisade-webhook takes", theirs / cpu[0]);
    }
    Ok(())
}

async fn listening(port: u16) -> Result<()> {
    within(Duration::from_secs(30), &format!("port {port}"), || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    Ok(())
}

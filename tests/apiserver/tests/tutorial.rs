//! The tutorial, word by word: its files are written, its commands are run by a shell, and what they print is compared with
//! what the page shows.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use palisade_tests::{Cluster, Nodes, TestResult, ensure, root};
use serde_json::Value as Json;

use crate::{
    audit::PALISADE,
    helm::{self, Helm},
};

crate::groups::scenarios! {
    every_command_of_the_tutorial_prints_what_the_page_shows: Judged 240;
    // It requires a release and helm: cargo xtask release-smoke-cluster.
    the_artifacts_of_a_release_are_enough: Release if "PALISADE_ARTIFACTS";
}

/// A piece of the page that the reader does something with.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// A file, by the comment in its first line.
    File { name: String, text: String },
    /// A command, and what the page shows of its output.
    Command { line: String, shown: String },
}

/// The steps of a page, from its blocks ```` ```yaml ```` and ```` ```console ````.
fn steps(page: &str) -> TestResult<Vec<Step>> {
    let mut out = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind {
            "yaml" => {
                let name = block.first().and_then(|first| first.strip_prefix("# "));
                let name = name.ok_or_else(|| format!("a file has no name: {block:?}"))?.to_owned();
                out.push(Step::File { name, text: block.join("\n") });
            }
            "console" => {
                for line in block {
                    if let Some(command) = line.strip_prefix("$ ") {
                        out.push(Step::Command { line: command.to_owned(), shown: String::new() });
                    } else if let Some(Step::Command { shown, .. }) = out.last_mut() {
                        shown.push_str(line);
                        shown.push('\n');
                    }
                }
            }
            other => return Err(format!("a block of the tutorial is {other}, which nobody runs").into()),
        }
    }
    Ok(out)
}

/// Whether a text is what the page shows, where `...` stands for anything, and lines and columns may be broken elsewhere.
fn is_shown(shown: &str, text: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, text) = (words(shown), words(text));
    let parts: Vec<_> = shown.split("...").map(str::trim).collect();
    let Some((first, others)) = parts.split_first() else { return false };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some((last, middle)) = others.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A directory with `kubectl` and `palisade` as a user has them. `palisade` is a command.
fn programs(cluster: &Cluster, directory: &Path, palisade: &str) -> TestResult {
    let kubectl = cluster.control_plane.kubectl().ok_or("no kubectl")?;
    let variables: Vec<_> = kubectl
        .get_envs()
        .map(|(name, value)| format!("{}='{}'", name.display(), value.unwrap_or_default().display()))
        .collect();
    let kubectl = format!("{} exec '{}'", variables.join(" "), kubectl.get_program().display());
    for (name, command) in [("kubectl", &*kubectl), ("palisade", &format!("exec {palisade}"))] {
        let path = directory.join(name);
        fs::write(&path, format!("#!/bin/sh\n{command} \"$@\"\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Does what the page says, in an empty directory.
async fn follow(cluster: &Cluster, palisade: &str) -> TestResult {
    let page = fs::read_to_string(root().join("docs/tutorial.md"))?;
    let (bin, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    programs(cluster, bin.path(), palisade)?;
    let kubeconfig = bin.path().join("kubeconfig");
    fs::write(&kubeconfig, cluster.control_plane.kubeconfig())?;
    let path = std::env::join_paths(
        [bin.path().to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let (mut commands, mut wrong) = (0, Vec::new());
    for step in steps(&page)? {
        match step {
            Step::File { name, text } => fs::write(home.path().join(name), text)?,
            Step::Command { line, shown } => {
                let mut shell = Command::new("sh");
                shell.args(["-e", "-c", &format!("exec 2>&1; {line}")]).current_dir(home.path());
                shell.env("PATH", &path).env("KUBECONFIG", &kubeconfig).env("NO_COLOR", "1");
                // The controller works meanwhile.
                let output = tokio::task::spawn_blocking(move || shell.output()).await??;
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                commands += 1;
                if !output.status.success() || !is_shown(&shown, &text) {
                    wrong.push(format!("$ {line}\nthe page shows:\n{shown}it printed ({}):\n{text}", output.status));
                }
            }
        }
    }
    println!("{commands} commands");
    ensure!(commands > 10, "only {commands} commands are read from the page");
    ensure!(wrong.is_empty(), "{} of {commands} commands do otherwise:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

pub(crate) async fn every_command_of_the_tutorial_prints_what_the_page_shows(cluster: &mut Cluster) -> TestResult {
    follow(cluster, &format!("'{}' {PALISADE}", std::env::current_exe()?.display())).await
}

/// Unpacks the only layer of an OCI layout.
fn unpack(archive: &Path, directory: &Path) -> TestResult {
    let layout = tempfile::tempdir()?;
    run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(layout.path()))?;
    let blob = |descriptor: &Json| {
        let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        Ok::<_, String>(layout.path().join("blobs/sha256").join(digest.ok_or(format!("no digest in {descriptor}"))?))
    };
    let index: Json = serde_json::from_slice(&fs::read(layout.path().join("index.json"))?)?;
    let manifest: Json = serde_json::from_slice(&fs::read(blob(&index["manifests"][0])?)?)?;
    run(Command::new("tar").arg("-xzf").arg(blob(&manifest["layers"][0])?).arg("-C").arg(directory))
}

fn run(command: &mut Command) -> TestResult {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The file of a release that begins and ends so.
fn artifact(directory: &Path, begins: &str, ends: &str) -> TestResult<PathBuf> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(begins) && name.ends_with(ends) {
            return Ok(path);
        }
    }
    Err(format!("{} has no {begins}...{ends}", directory.display()).into())
}

/// `palisade` by the script of the release, the chart of the release by helm, the programs of its image under the service
/// accounts and with the arguments of the chart, and then the tutorial.
pub(crate) async fn the_artifacts_of_a_release_are_enough(cluster: &mut Cluster) -> TestResult {
    let artifacts = PathBuf::from(std::env::var_os("PALISADE_ARTIFACTS").ok_or("PALISADE_ARTIFACTS names no release")?);
    helm::without_palisade(cluster).await?;
    let cluster = &*cluster;
    let directory = tempfile::tempdir()?;
    let (prefix, image) = (directory.path().join("prefix"), directory.path().join("image"));
    run(Command::new("sh").arg(artifacts.join("install.sh")).arg(&artifacts).arg(&prefix))?;
    fs::create_dir(&image)?;
    unpack(&artifact(&artifacts, "palisade-controller-", ".oci.tar")?, &image)?;
    let (helm, nodes) = (Helm::new(cluster)?, Nodes::of_image(cluster, &image)?);
    let chart = artifact(&artifacts, "palisade-chart-", ".tgz")?.display().to_string();
    helm.run(&["install", "palisade", &chart, "--create-namespace", "--wait", "--timeout=10m"])?;
    ensure!(nodes.started("controller") > 0, "no controller was started");
    follow(cluster, &format!("'{}'", prefix.join("bin/palisade").display())).await?;
    helm.run(&["uninstall", "palisade", "--wait", "--timeout=10m"])?;
    Ok(())
}

//! Finds the binaries of the control plane, or builds them.
//!
//! `KUBEBUILDER_ASSETS`, where set, is a directory with `etcd`, `kube-apiserver` and perhaps `kube-controller-manager`
//! and `kubectl`. Otherwise the Go program beside this crate is built into a cache, with the modules of a [`Version`]. An
//! entry of the cache is named by a digest of everything that goes into it and never changes; it is itself a directory of
//! that layout. Entries of several minors are side by side.

use std::{
    env, fs,
    fs::File,
    io,
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant, SystemTime},
};

use ring::digest;

use crate::{Error, Version, pki::hex, process::tail};

/// The sources are part of this crate's binary: it builds the same control plane wherever it is run.
const MAIN: &str = include_str!("../main.go");

/// Without debug information, which the linker would drop: a seventh of the time. What Go builds with the same flags
/// and of the same modules uses the packages again.
pub const COMPILER_FLAGS: &str = "-gcflags=all=-dwarf=false";

const BINARY: &str = "controlplane";
const LINKS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];
/// Entries that nothing has used for so long make room for a new one.
const KEEP: Duration = Duration::from_hours(14 * 24);
/// How often a build says how far it is.
const PROGRESS: Duration = Duration::from_secs(15);

/// Where the executables are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub apiserver: PathBuf,
    /// kube-controller-manager. Without it nothing creates service accounts or empties deleted namespaces.
    pub controller_manager: Option<PathBuf>,
    /// kubectl.
    pub kubectl: Option<PathBuf>,
}

impl Binaries {
    /// The binaries in `KUBEBUILDER_ASSETS`, or otherwise those of [`binary`], which are built if they are missing.
    ///
    /// It blocks, for minutes when it builds.
    pub fn locate(version: &Version) -> Result<Self, Error> {
        match variable("KUBEBUILDER_ASSETS") {
            Some(dir) => Self::in_dir(&dir),
            None => Self::in_dir(&entry(version)?),
        }
    }

    /// [`Self::locate`] on a thread of its own.
    pub(crate) async fn located(version: &'static Version) -> Result<Self, Error> {
        tokio::task::spawn_blocking(|| Self::locate(version))
            .await
            .map_err(|panic| Error::io("the search for the binaries ended")(panic.into()))?
    }

    fn in_dir(dir: &Path) -> Result<Self, Error> {
        let optional = |name| Some(dir.join(name)).filter(|path| path.is_file());
        let required = |name| optional(name).ok_or_else(|| Error::AssetMissing(dir.join(name)));
        Ok(Self {
            etcd: required("etcd")?,
            apiserver: required("kube-apiserver")?,
            controller_manager: optional("kube-controller-manager"),
            kubectl: optional("kubectl"),
        })
    }
}

/// The path of the multi-call binary, built if need be. It blocks, for minutes when it builds.
pub fn binary(version: &Version) -> Result<PathBuf, Error> {
    Ok(entry(version)?.join(BINARY))
}

fn entry(version: &Version) -> Result<PathBuf, Error> {
    let cache = cache_dir()?;
    fs::create_dir_all(&cache).map_err(Error::io(format!("cannot create {}", cache.display())))?;
    let digest = digest(version, &go_version(&cache)?);
    let entry = cache.join(&digest);
    if !entry.join(BINARY).is_file() {
        let lock = File::create(cache.join(format!("{digest}.lock")))
            .map_err(Error::io("cannot open the lock of the build"))?;
        // Tests run in parallel, in several processes: the first one builds, the others wait here.
        lock.lock().map_err(Error::io("cannot take the lock of the build"))?;
        if !entry.join(BINARY).is_file() {
            build(version, &cache, &entry)?;
            prune(&cache, &digest);
        }
    }
    // Mark the entry as used. A read-only cache is fine, too.
    if let Ok(dir) = File::open(&entry) {
        let _ = dir.set_modified(SystemTime::now());
    }
    Ok(entry)
}

fn cache_dir() -> Result<PathBuf, Error> {
    let palisade = variable("PALISADE_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("palisade")))
        .or_else(|| Some(variable("HOME")?.join(".cache/palisade")))
        .ok_or(Error::NoCacheDir)?;
    let cache = palisade.join("controlplane");
    std::path::absolute(&cache).map_err(Error::io(format!("no absolute path for {}", cache.display())))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn go_version(dir: &Path) -> Result<String, Error> {
    let output = go("env", dir, &["GOVERSION", "GOOS", "GOARCH"])?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn sources(version: &Version) -> [(&'static str, &'static str); 3] {
    [("go.mod", version.go_mod), ("go.sum", version.go_sum), ("main.go", MAIN)]
}

fn digest(version: &Version, go_version: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    let linker_flags = linker_flags(version);
    let texts = sources(version).map(|(_, text)| text);
    for text in texts.into_iter().chain([COMPILER_FLAGS, linker_flags.as_str(), go_version]) {
        // The length first: no two lists of texts give the same bytes.
        context.update(&text.len().to_le_bytes());
        context.update(text.as_bytes());
    }
    hex(context.finish().as_ref())
}

/// Without a version, the API server calls itself `v0.0.0-master+$Format:%H$`, which breaks clients that look.
fn linker_flags(version: &Version) -> String {
    let Version { kubernetes, etcd, published, .. } = version;
    let minor = version.minor.trim_start_matches("1.");
    let commit = format!("k8s.io/kubernetes@{kubernetes}");
    let mut flags = vec!["-s -w".to_owned()];
    // The servers and kubectl report the first, user agents the second.
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for (name, value) in [
            ("gitVersion", *kubernetes),
            ("gitMajor", "1"),
            ("gitMinor", minor),
            ("gitCommit", &commit),
            // What Kubernetes itself reports when it is not built from a git checkout.
            ("gitTreeState", "archive"),
            ("buildDate", published),
        ] {
            flags.push(format!("-X {package}.{name}={value}"));
        }
    }
    flags.push(format!("-X go.etcd.io/etcd/api/v3/version.GitSHA=go.etcd.io/etcd@{etcd}"));
    flags.join(" ")
}

#[allow(clippy::print_stderr, reason = "a build of minutes says how far it is, and nothing else is set up to say it")]
fn build(version: &Version, cache: &Path, entry: &Path) -> Result<(), Error> {
    let kubernetes = version.kubernetes;
    eprintln!("building etcd, kube-apiserver, kube-controller-manager and kubectl {kubernetes} with Go, once");
    let io = |source| Error::io("cannot keep the build of the control plane")(source);
    let temporary = tempfile::Builder::new().prefix("build-").tempdir_in(cache).map_err(io)?;
    for (name, text) in sources(version) {
        fs::write(temporary.path().join(name), text).map_err(io)?;
    }
    let output = temporary.path().join("entry");
    fs::create_dir(&output).map_err(io)?;
    // This fetches the modules, too.
    let packages = go("list", temporary.path(), &["-deps", "-mod=readonly", "."])?.stdout;
    let packages = String::from_utf8_lossy(&packages).lines().count();
    let begin = Instant::now();
    let mut printed = begin;
    go_build(version, temporary.path(), |built| {
        if printed.elapsed() >= PROGRESS {
            printed = Instant::now();
            eprintln!("  Go: {built} of {packages} packages after {} s", begin.elapsed().as_secs());
        }
    })?;
    eprintln!("  Go: built after {} s", begin.elapsed().as_secs());
    for link in LINKS {
        symlink(BINARY, output.join(link)).map_err(io)?;
    }
    match fs::rename(&output, entry) {
        // What is in the way is an entry without its binary: somebody cleaned up half of it.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            fs::remove_dir_all(entry).map_err(io)?;
            fs::rename(&output, entry).map_err(io)
        }
        result => result.map_err(io),
    }
}

/// Builds, and calls back with the number of packages built so far. What is in Go's cache is not counted.
fn go_build(version: &Version, dir: &Path, mut report: impl FnMut(usize)) -> Result<(), Error> {
    let (flags, output) = (linker_flags(version), format!("entry/{BINARY}"));
    // With the first three, the bytes depend on the sources and the Go version only. -v names what is built.
    let reproducible = ["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-v"];
    let arguments = [&reproducible[..], &[COMPILER_FLAGS, "-ldflags", &flags, "-o", &output, "."]].concat();
    let mut child = go_command(dir, &arguments).stderr(Stdio::piped()).spawn().map_err(Error::GoMissing)?;
    let mut lines = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines() {
            lines.push(line.map_err(Error::io("cannot read what Go prints"))?);
            report(lines.len());
        }
    }
    let status = child.wait().map_err(Error::io("cannot wait for Go"))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Go { command: "build", status, output: tail(&lines.join("\n"), 20) })
}

fn go(command: &'static str, dir: &Path, arguments: &[&str]) -> Result<Output, Error> {
    let output = go_command(dir, &[&[command], arguments].concat()).output().map_err(Error::GoMissing)?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Error::Go { command, status: output.status, output: tail(&String::from_utf8_lossy(&output.stderr), 20) })
}

fn go_command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("go");
    command
        .args(arguments)
        .current_dir(dir)
        // A static binary needs no C compiler. The rest keeps the caller's settings out.
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .env_remove("GOOS")
        .env_remove("GOARCH");
    command
}

/// Removes what has not been used for long: entries, locks and abandoned builds. It never fails a start.
fn prune(cache: &Path, current: &str) {
    for item in fs::read_dir(cache).into_iter().flatten().flatten() {
        let age =
            item.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|modified| modified.elapsed().ok());
        if item.file_name().to_string_lossy().starts_with(current) || age.is_none_or(|age| age < KEEP) {
            continue;
        }
        let path = item.path();
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VERSIONS;

    #[test]
    fn xtask_compiles_go_with_the_same_flags() {
        let xtask = include_str!("../../../crates/xtask/src/shell.rs");
        assert!(xtask.contains(&format!("\nconst GO_BUILD: &str = \"-trimpath {COMPILER_FLAGS}\";\n")));
    }

    #[test]
    fn digest_depends_on_the_minor_and_the_go_version() {
        let mut digests = Vec::new();
        for version in &VERSIONS {
            assert_eq!(digest(version, "go1.26.8"), digest(version, "go1.26.8"));
            digests.extend(["go1.26.8", "go1.26.9"].map(|go| digest(version, go)));
        }
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    #[test]
    fn assets_need_etcd_and_the_api_server() {
        let dir = tempfile::tempdir().unwrap();
        let error = Binaries::in_dir(dir.path()).unwrap_err();
        assert!(error.to_string().ends_with("/etcd"), "{error}");

        for name in ["etcd", "kube-apiserver"] {
            File::create(dir.path().join(name)).unwrap();
        }
        let binaries = Binaries::in_dir(dir.path()).unwrap();
        assert_eq!((binaries.controller_manager, binaries.kubectl), (None, None));
    }

    #[test]
    fn pruning_keeps_current_and_recent_builds() {
        let cache = tempfile::tempdir().unwrap();
        let [old, current, recent] = ["old", "current", "recent"].map(|name| cache.path().join(name));
        let long_ago = SystemTime::now() - 2 * KEEP;
        for dir in [&old, &current, &recent] {
            fs::create_dir(dir).unwrap();
        }
        for dir in [&old, &current] {
            File::open(dir).unwrap().set_modified(long_ago).unwrap();
        }
        prune(cache.path(), "current");
        assert_eq!([&old, &current, &recent].map(|dir| dir.exists()), [false, true, true]);
    }
}

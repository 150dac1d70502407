//! Programs that tasks run: Cargo, Go, and tools in pinned versions, with their directories.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use crate::project::root;

/// Compiler flags of the control plane (`tests/controlplane/src/build.rs`). With the same flags, Go uses its compiled packages
/// again.
const GO_BUILD: &str = "-trimpath -gcflags=all=-dwarf=false";

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot run `{command}`: {source}")]
    Start { command: String, source: io::Error },
    #[error("`{command}` failed: {status}")]
    Failed { command: String, status: ExitStatus },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{0}")]
    Invalid(String),
}

/// A command in the root of the project.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    // `cargo run` sets these variables for this program only.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name == "CARGO" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// A command of Cargo; its arguments are separated by spaces.
pub(crate) fn cargo(arguments: &str) -> Command {
    let mut command = command("cargo");
    command.args(arguments.split_whitespace());
    command
}

/// A command with the settings of Go, in a directory of the project.
pub(crate) fn go_program(program: impl AsRef<OsStr>, directory: &str) -> Command {
    let flags = env::var("GOFLAGS").map_or_else(|_| GO_BUILD.to_owned(), |flags| format!("{flags} {GO_BUILD}"));
    let mut command = command(program);
    command.current_dir(root().join(directory)).env("CGO_ENABLED", "0").env("GOFLAGS", flags.trim());
    command
}

/// A command of Go; its arguments are separated by spaces.
pub(crate) fn go(directory: &str, arguments: &str) -> Command {
    let mut command = go_program("go", directory);
    command.args(arguments.split_whitespace());
    command
}

/// The command with its variables, as a shell would read it.
fn shown(command: &Command) -> String {
    let text = |text: &OsStr| {
        let text = text.to_string_lossy().into_owned();
        if text.is_empty() || text.contains([' ', '*', '\'', '{']) { format!("{text:?}") } else { text }
    };
    let variables = command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", text(name), text(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(text);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// Prints a command, runs it, and returns its status.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus, Error> {
    eprintln!("$ {}", shown(command));
    command.status().map_err(|source| Error::Start { command: shown(command), source })
}

/// Prints and runs a command; it must succeed.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let status = status(command)?;
    if status.success() { Ok(()) } else { Err(Error::Failed { command: shown(command), status }) }
}

/// The standard output of a command without the last line break; it must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|source| Error::Start { command: shown(command), source })?;
    if !output.status.success() {
        return Err(Error::Failed { command: shown(command), status: output.status });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Creates a file, or opens it for reading.
pub(crate) fn file(path: &Path, create: bool) -> Result<File, Error> {
    let file = if create { File::create(path) } else { File::open(path) };
    file.map_err(|source| Error::File { path: path.to_owned(), source })
}

/// Creates a directory and its parents; an existing directory is emptied if `empty` is set.
pub(crate) fn directory(path: &Path, empty: bool) -> Result<(), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    if empty && path.exists() {
        fs::remove_dir_all(path).map_err(failed)?;
    }
    fs::create_dir_all(path).map_err(failed)
}

/// A variable of the environment; an empty one counts as unset.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The target directory of Cargo.
pub(crate) fn target() -> PathBuf {
    root().join(variable("CARGO_TARGET_DIR").unwrap_or_else(|| "target".to_owned()))
}

/// A program of the unoptimized build.
pub(crate) fn built(program: &str) -> PathBuf {
    target().join("debug").join(program)
}

/// Directory outside of the clone, which a new clone uses again.
pub(crate) fn cache() -> PathBuf {
    let below = |name: &str, rest: &str| Some(PathBuf::from(variable(name)?).join(rest));
    let cache = below("PALISADE_CACHE", "").or_else(|| below("XDG_CACHE_HOME", "palisade"));
    cache.or_else(|| below("HOME", ".cache/palisade")).unwrap_or_else(|| target().join("cache"))
}

/// The program named by an option or a variable of the environment, or the first one that is on the path.
pub(crate) fn optional(option: Option<&Path>, name: &str, programs: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = |program: &&str| env::split_paths(&path).map(|at| at.join(program)).find(|at| at.is_file());
    let named = option.map(Path::to_owned).or_else(|| variable(name).map(PathBuf::from));
    named.or_else(|| programs.iter().find_map(on_path))
}

/// A directory that is removed at the end.
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self(output(command("mktemp").arg("-d"))?.into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A tool in a pinned version, which Cargo installs outside of the clone.
#[derive(Clone, Copy)]
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    options: &'static str,
}

pub(crate) const MDBOOK: Tool =
    Tool { name: "mdbook", version: "0.5.4", options: "--debug --no-default-features --features search" };
pub(crate) const MUTANTS: Tool = Tool { name: "cargo-mutants", version: "27.1.0", options: "--debug" };
pub(crate) const FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2", options: "" };
pub(crate) const CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9", options: "--debug" };
pub(crate) const AUDITABLE: Tool = Tool { name: "cargo-auditable", version: "0.7.7", options: "--debug" };

impl Tool {
    /// Installs the tool if it is missing, and returns its path.
    pub(crate) fn install(self) -> Result<PathBuf, Error> {
        let (root, Self { name, version, options }) = (cache().join("tools"), self);
        let installed = output(cargo("install --list --root").arg(&root)).unwrap_or_default();
        if !installed.lines().any(|line| line == format!("{name} v{version}:")) {
            run(cargo(&format!("install --locked {options} {name}@{version} --root")).arg(&root))?;
        }
        Ok(root.join("bin").join(name))
    }
}

/// Builds all programs together with all tests. Programs alone need fewer features of their dependencies, and Cargo would build
/// most crates twice.
pub(crate) fn build_all() -> Result<(), Error> {
    run(&mut cargo("build --workspace --bins --tests"))
}

/// Builds the control plane. Cargo ends first: it must not hold its lock while Go builds.
pub(crate) fn build_control_plane() -> Result<(), Error> {
    run(&mut cargo("build --quiet -p palisade-controlplane"))?;
    run(command(built("controlplane")).arg("build"))
}

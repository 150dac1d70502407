//! The binary, as its users meet it: a module for a command. They are one test binary, which is linked once.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test that cannot set itself up may panic")]

mod audit;
mod check;
mod ci;
mod cluster;
mod color;
mod documents;
mod eval;
mod exceptions;
mod explain;
#[cfg(unix)]
mod hostile;
mod infer;
mod inputs;
mod library;
mod lint;
mod migrate;
mod mutated;
mod new;
mod prove;
mod render;
mod report;
mod suggest;
mod suites;
mod whatif;

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// What a run gave.
struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

/// The binary, in a directory.
fn palisade(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.current_dir(directory);
    command
}

/// Runs the binary in a directory, with a text on standard input.
fn run_in(directory: &Path, arguments: &[&str], input: impl AsRef<[u8]>) -> Run {
    let mut command = palisade(directory);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A run that reads no input closes it early.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A directory with files in it.
fn directory(files: &[(&str, impl AsRef<[u8]>)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

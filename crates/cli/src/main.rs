//! `palisade`: the library of the same name, run with the arguments of the process.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(palisade_cli::run(std::env::args_os()))
}

//! The controller's binary: `palisade-controller`.

use std::process::ExitCode;

fn main() -> ExitCode {
    palisade_controller::main(std::env::args_os())
}

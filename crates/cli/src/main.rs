//! `palisade`: the library of the same name, run with the arguments of the process.

use std::process::ExitCode;

use palisade_runtime::on_large_stack;

fn main() -> ExitCode {
    // What is compiled and judged is in files of others: none of them may end the process without a message.
    match on_large_stack(|| palisade_cli::run(std::env::args_os())) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

//! Manual pages and shell completions, generated from the definition of the command line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    args::Args,
    output::{self, could_not_print},
    report::{Failure, Problem},
};

/// Prints the completions for a shell.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "palisade", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}

/// Prints the page of the whole command, or writes the pages of all commands.
pub fn pages(directory: Option<&Path>) -> Result<(), Failure> {
    let Some(directory) = directory else {
        let mut text = Vec::new();
        Man::new(Args::command()).render(&mut text).map_err(|error| could_not_print(&error))?;
        return output::print(&String::from_utf8_lossy(&text));
    };
    clap_mangen::generate_to(Args::command(), directory)
        .map_err(|error| Failure::CouldNotRun(vec![Problem::new(format!("{}: {error}", directory.display()))]))
}

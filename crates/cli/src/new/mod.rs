//! `palisade new`: scaffolds a policy and its tests, like `cargo new`.

mod args;

use std::fs;

use palisade_admission::requests::Plugins;
use palisade_policy_test::{Server, create};
use palisade_profiles::suite::Profiles;

pub use args::NewCommand;

use crate::{
    output,
    report::{Failure, Problem},
};

/// Runs the command.
pub fn run(command: &NewCommand) -> Result<(), Failure> {
    let NewCommand::Policy(args) = command;
    let failed = |what: String| Failure::CouldNotRun(vec![Problem::new(what)]);
    let server = Server { minor: args.kube_version, plugins: Plugins::default(), extension: Some(&Profiles) };
    let files = create::policy(&args.name, &args.kind, &server).map_err(failed)?;
    let directory = args.directory.join(&args.name);
    // An existing directory is never changed.
    fs::create_dir(&directory).map_err(|error| failed(format!("cannot create {}: {error}", directory.display())))?;
    for (name, text) in files {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(format!("cannot write {}: {error}", path.display())))?;
        output::print(&format!("wrote {}\n", path.display()))?;
    }
    Ok(())
}

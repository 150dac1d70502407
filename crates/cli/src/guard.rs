//! `palisade guard off`: how to remove the guard of a profile. It prints commands and asks no cluster, because whoever
//! needs it may have only kubectl and a controller that is down.

use clap::Subcommand;
use palisade_api::names::{self, Part};

use crate::{
    output,
    report::{Failure, Problem},
};

/// What to do with the guard of a profile.
#[derive(Debug, Subcommand)]
pub enum GuardCommand {
    /// Print the commands that remove it.
    Off {
        /// The name of the profile.
        #[arg(value_name = "PROFILE")]
        profile: String,
    },
}

/// Runs the command.
pub fn run(command: &GuardCommand) -> Result<(), Failure> {
    let GuardCommand::Off { profile } = command;
    if !is_name(profile) {
        let message = format!("{profile:?} is not the name of a profile: small letters, digits, dashes and dots");
        return Err(Failure::CouldNotRun(vec![Problem::new(message)]));
    }
    output::print(&commands(profile))
}

/// It becomes a word of a shell.
fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || matches!(one, '-' | '.'))
        && text.starts_with(|one: char| one.is_ascii_alphanumeric())
        && text.len() <= 50
}

fn commands(profile: &str) -> String {
    let guard = names::policy(profile, Part::Guard);
    format!(
        "# The controller removes the guard when the profile no longer asks for it:\n\
         kubectl patch {}.{} {profile} --type merge -p '{{\"spec\":{{\"guardSources\":false}}}}'\n\
         # If the controller does not run, this removes it; a controller that runs restores it:\n\
         kubectl delete validatingadmissionpolicybinding {guard}\n",
        names::PROFILES,
        names::GROUP,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_guard_and_no_shell_can_misread_them() {
        let text = commands("tools");
        assert!(text.contains("kubectl patch toolsecurityprofiles.toolsecurity.dev tools --type merge"), "{text}");
        assert!(text.contains("delete validatingadmissionpolicybinding palisade-tools-guard\n"), "{text}");
        for (name, fine) in
            [("tools", true), ("a.b-c", true), ("", false), ("-x", false), ("a b", false), ("a;b", false)]
        {
            assert_eq!(is_name(name), fine, "{name:?}");
        }
    }
}

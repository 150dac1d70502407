//! `palisade guard off`: prints commands that remove the guard of a profile. It does not connect to a cluster: in an
//! emergency, an administrator may have only kubectl, and the controller may be down.

use clap::Subcommand;
use palisade_api::names::{self, Part};

use crate::{
    output,
    report::{Failure, Problem},
};

/// Commands for the guard of a profile.
#[derive(Debug, Subcommand)]
pub enum GuardCommand {
    /// Print commands that remove the guard.
    Off {
        /// Name of the profile.
        #[arg(value_name = "PROFILE")]
        profile: String,
    },
}

/// Runs the command.
pub fn run(command: &GuardCommand) -> Result<(), Failure> {
    let GuardCommand::Off { profile } = command;
    if !is_name(profile) {
        let message =
            format!("invalid profile name {profile:?}: must consist of lower case letters, digits, dashes and dots");
        return Err(Failure::CouldNotRun(vec![Problem::new(message)]));
    }
    output::print(&commands(profile))
}

/// Whether it is safe as a word in a shell command.
fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || matches!(one, '-' | '.'))
        && text.starts_with(|one: char| one.is_ascii_alphanumeric())
        && text.len() <= 50
}

fn commands(profile: &str) -> String {
    let guard = names::policy(profile, Part::Guard);
    format!(
        "# With a running controller: change the profile, and the controller removes the guard\n\
         kubectl patch {}.{} {profile} --type merge -p '{{\"spec\":{{\"guardSources\":false}}}}'\n\
         # Without a controller: delete the binding; a running controller would restore it\n\
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

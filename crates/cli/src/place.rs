//! The place of a profile to compare: the cluster, files, or a commit.

use std::{path::Path, process::Command, str::FromStr, sync::Arc};

use crate::{
    cluster::could_not_run,
    files,
    profiles::{self, Accepted},
    report::{Failure, Problem, Source},
};

/// A profile and one of its specs, or files with profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the cluster: the current spec, or that of a revision.
    Cluster {
        /// The name of the profile.
        profile: String,
        /// The revision; none for the current spec.
        revision: Option<i64>,
    },
    /// A file or directory.
    Path(String),
    /// A file or directory in a commit of the repository that the working directory is in.
    Git {
        /// The commit in the notation of git.
        commit: String,
        /// Relative to the working directory.
        path: String,
    },
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("git:") {
            return match rest.split_once(':') {
                // An argument that begins with a dash is an option of git.
                Some((commit, path)) if !commit.is_empty() && !commit.starts_with('-') && !path.is_empty() => {
                    Ok(Self::Git { commit: commit.to_owned(), path: path.to_owned() })
                }
                _ => Err("must be git:REF:PATH, for example git:main:profiles/tools.yaml".to_owned()),
            };
        }
        let is_path = text == "-" || text == "." || text == ".." || text.contains('/');
        if is_path || files::is_manifest(Path::new(text)) {
            return Ok(Self::Path(text.to_owned()));
        }
        let Some((profile, revision)) = text.split_once('@') else {
            return Ok(Self::Cluster { profile: text.to_owned(), revision: None });
        };
        match revision.parse() {
            Ok(number) if number > 0 && !profile.is_empty() => {
                Ok(Self::Cluster { profile: profile.to_owned(), revision: Some(number) })
            }
            _ => Err("must be PROFILE, or PROFILE@REVISION with a number, for example toolforge@3; the path of a file must have a / or an extension"
                .to_owned()),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cluster { profile, revision: Some(revision) } => write!(f, "{profile}@{revision}"),
            Self::Cluster { profile, revision: None } => f.write_str(profile),
            Self::Path(path) => f.write_str(path),
            Self::Git { commit, path } => write!(f, "{commit}:{path}"),
        }
    }
}

impl Place {
    /// The profiles in files; `None` if it is in the cluster.
    ///
    /// # Errors
    /// They cannot be read, or are not accepted.
    pub fn in_files(&self) -> Option<Result<Vec<Accepted>, Failure>> {
        let sources = match self {
            Self::Cluster { .. } => return None,
            Self::Path(path) => files::sources(std::slice::from_ref(path)),
            Self::Git { commit, path } => of_commit(commit, path),
        };
        Some(sources.and_then(|sources| match sources.as_slice() {
            [] => Err(could_not_run(format!("{self}: at least one *.yaml, *.yml or *.json file is required"))),
            sources => profiles::all(sources).map_err(Failure::fatal),
        }))
    }
}

/// The files of a commit.
fn of_commit(commit: &str, path: &str) -> Result<Vec<Arc<Source>>, Failure> {
    let listed = git(&["ls-tree", "-r", "-z", "--name-only", commit, "--", path])?;
    let listed =
        String::from_utf8(listed).map_err(|_| could_not_run(format!("{commit}:{path}: file names must be UTF-8")))?;
    let names: Vec<_> = listed.split('\0').filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        let problem = Problem::new(format!("{commit}:{path}: file or directory not found in this commit"));
        return Err(Failure::CouldNotRun(vec![problem.help("the path must be relative to the working directory")]));
    }
    // A file in the arguments is read with any extension.
    let wanted = |name: &&&str| **name == path || files::is_manifest(Path::new(**name));
    let read = |name: &&str| {
        let bytes = git(&["show", &format!("{commit}:./{name}")])?;
        let text = palisade_manifest::decode(bytes)
            .map_err(|_| could_not_run(format!("{commit}:{name}: must be UTF-8 text")))?;
        Ok(Arc::new(Source::new(&format!("{commit}:{name}"), text)))
    };
    names.iter().filter(wanted).map(read).collect()
}

fn git(arguments: &[&str]) -> Result<Vec<u8>, Failure> {
    let ran = Command::new("git").args(arguments).output();
    let output = ran.map_err(|error| could_not_run(format!("cannot run git: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(could_not_run(format!("git {}: {}", arguments.join(" "), said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revision_follows_the_profile_after_an_at_sign() {
        let place = |profile: &str, revision| Ok(Place::Cluster { profile: profile.to_owned(), revision });
        assert_eq!("toolforge".parse::<Place>(), place("toolforge", None));
        assert_eq!("toolforge@12".parse::<Place>(), place("toolforge", Some(12)));
        for wrong in ["toolforge@", "toolforge@x", "toolforge@0", "@3", "toolforge@3@4"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
        assert_eq!("toolforge@12".parse::<Place>().unwrap().to_string(), "toolforge@12");
    }

    #[test]
    fn files_have_a_slash_or_an_ending() {
        for path in ["p.yaml", "profiles/", "./p", "-", ".", "a/b@3"] {
            assert_eq!(path.parse::<Place>(), Ok(Place::Path(path.to_owned())));
        }
        let git = Place::Git { commit: "main~2".to_owned(), path: "profiles".to_owned() };
        assert_eq!("git:main~2:profiles".parse::<Place>(), Ok(git));
        for wrong in ["git:main", "git::p", "git:main:", "git:--output=x:p"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}

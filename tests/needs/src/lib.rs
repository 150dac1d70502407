//! Tests that need something which is not in the repository.
//!
//! Where it is missing, such a test is counted as ignored, with the reason beside its name, and never as passed. What
//! `PALISADE_EXPECT` names must be there (`modules`, `corpus`, `helm`, `programs`, separated by commas): its tests fail where it
//! is missing.
//! `make test` expects the Go modules, which it has fetched itself.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "looks for files, and asks go where they are")]

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use libtest_mimic::{Arguments, Failed, Trial};

/// The environment variable that names what must be there.
pub const EXPECT: &str = "PALISADE_EXPECT";

/// Something that a test needs: where it is, or why it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What [`EXPECT`] calls it.
    kind: &'static str,
    found: Result<PathBuf, String>,
}

/// A part of the collection of other projects' policies and objects: `PALISADE_CORPUS` names its directory, or it is
/// `shared/corpus` beside the clone. `root` is the root of the clone.
pub fn corpus(root: &Path, part: &str) -> Need {
    let collection = env::var_os("PALISADE_CORPUS").map_or_else(|| root.join("../shared/corpus"), PathBuf::from);
    let path = collection.join(part);
    let missing = || format!("no {}; PALISADE_CORPUS names the collection", path.display());
    Need { kind: "corpus", found: if path.exists() { Ok(path) } else { Err(missing()) } }
}

/// A directory of a Go module, as `k8s.io/api@v0.36.1`, in the module cache; or the one that a variable of the
/// environment names instead.
pub fn module(module: &str, directory: &str, variable: &str) -> Need {
    let cache = || {
        let output = Command::new("go").args(["env", "GOMODCACHE"]).output().ok()?;
        let cache = String::from_utf8(output.stdout).ok()?;
        Some(Path::new(cache.trim()).join(module).join(directory))
    };
    let path = env::var_os(variable).map(PathBuf::from).or_else(cache).filter(|path| path.is_dir());
    let missing = || format!("no {directory} of {module}; set {variable}, or run: go mod download {module}");
    Need { kind: "modules", found: path.ok_or_else(missing) }
}

/// A program that a variable of the environment names.
pub fn program(variable: &str) -> Need {
    let path = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_file());
    Need { kind: "programs", found: path.ok_or_else(|| format!("{variable} names no program")) }
}

/// A version of helm, as `cargo xtask helm-program` builds it; or the program that `PALISADE_HELM` names.
pub fn helm(version: &str) -> Need {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("PALISADE_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("palisade")))
        .or_else(|| Some(variable("HOME")?.join(".cache/palisade")));
    let built = || cache.map(|cache| cache.join("helm").join(version).join("helm"));
    let path = variable("PALISADE_HELM").or_else(built).filter(|path| path.is_file());
    let missing = || format!("no helm {version}; run: cargo xtask helm-program");
    Need { kind: "helm", found: path.ok_or_else(missing) }
}

impl Need {
    /// Where it is.
    ///
    /// # Errors
    /// Why it is not there.
    pub fn path(&self) -> Result<PathBuf, String> {
        self.found.clone()
    }

    /// A test that needs it, and fails by a panic.
    pub fn trial(self, name: &str, run: impl FnOnce(PathBuf) + Send + 'static) -> Trial {
        let found = self.path();
        self.of(Trial::test(name, move || {
            run(found?);
            Ok(())
        }))
    }

    /// The same test if it is there; else one that is ignored, or that fails if it is expected.
    pub fn of(&self, trial: Trial) -> Trial {
        self.of_if(&env::var(EXPECT).unwrap_or_default(), trial)
    }

    fn of_if(&self, expected: &str, trial: Trial) -> Trial {
        let Err(missing) = self.path() else { return trial };
        if expected.split(',').any(|one| one.trim() == self.kind) {
            return Trial::test(trial.name().to_owned(), move || Err(Failed::from(missing)));
        }
        trial.with_kind(missing).with_ignored_flag(true)
    }
}

/// Runs tests, as the `main` of a test without the standard harness.
pub fn run(trials: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(need: &Need, expected: &str) -> (u64, u64, u64) {
        let trial = need.of_if(expected, Trial::test("name", || Ok(())));
        // What it prints would be read as what this test prints.
        let arguments = Arguments { logfile: Some("/dev/null".to_owned()), ..Arguments::default() };
        let conclusion = libtest_mimic::run(&arguments, vec![trial]);
        (conclusion.num_passed, conclusion.num_failed, conclusion.num_ignored)
    }

    #[test]
    fn test_with_a_missing_need_is_ignored_unless_expected() {
        let there = Need { kind: "modules", found: Ok(PathBuf::from(".")) };
        let missing = Need { kind: "modules", found: Err("no modules".to_owned()) };
        assert_eq!(outcome(&there, ""), (1, 0, 0));
        assert_eq!(outcome(&there, "modules"), (1, 0, 0));
        assert_eq!(outcome(&missing, ""), (0, 0, 1));
        assert_eq!(outcome(&missing, "corpus"), (0, 0, 1));
        assert_eq!(outcome(&missing, "corpus, modules"), (0, 1, 0));
    }
}

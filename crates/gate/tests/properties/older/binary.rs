//! The older version's command line: what its `render` makes of profiles.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{self, Command},
};

use palisade_api::names;
use palisade_cel::Minor;
use serde_json::{Value as Json, json};

use super::cases::Case;

/// The environment variable that names the program.
const WITH: &str = "PALISADE_COMPARE_WITH";

/// The version of Kubernetes for which both versions render.
pub(super) const MINOR: Minor = Minor::DEFAULT;

/// The older program, and a directory for its files.
pub(super) struct Older {
    program: PathBuf,
    files: PathBuf,
}

/// The objects that `render` prints for a profile, or its answer on standard error where it rejects the profile.
pub(super) type Rendered = Result<Vec<Json>, String>;

impl Older {
    /// The program that the environment names.
    pub(super) fn new() -> Self {
        let program =
            env::var_os(WITH).unwrap_or_else(|| panic!("{WITH} does not name the palisade of another version"));
        let program =
            fs::canonicalize(&program).unwrap_or_else(|error| panic!("{}: {error}", Path::new(&program).display()));
        let files = Path::new(env!("CARGO_TARGET_TMPDIR")).join("older");
        fs::create_dir_all(&files).unwrap();
        Self { program, files }
    }

    /// Where it is.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Renders cases, all at once where it accepts them all. `file` is no other thread's.
    pub(super) fn render(&self, file: &str, cases: &[Case]) -> Vec<Rendered> {
        match (self.run(file, cases), cases.len()) {
            (Ok(objects), _) => cases.iter().map(|case| Ok(of_profile(&objects, &case.name))).collect(),
            (Err(rejected), 1) => vec![Err(rejected)],
            // It prints nothing if it rejects one of them: the others are asked about without that one.
            (Err(_), count) => {
                let (first, second) = cases.split_at(count / 2);
                let mut rendered = self.render(file, first);
                rendered.extend(self.render(file, second));
                rendered
            }
        }
    }

    fn run(&self, file: &str, cases: &[Case]) -> Rendered {
        // Another process may compare at the same time.
        let path = |what: &str| self.files.join(format!("{}-{file}-{what}.json", process::id()));
        let write = |what: &str, items: Vec<&Json>| {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            fs::write(path(what), list.to_string()).unwrap();
        };
        write("profiles", cases.iter().map(|case| &case.profile).collect());
        write("namespaces", cases.iter().flat_map(|case| &case.namespaces).collect());
        let status = Command::new(&self.program)
            .arg("render")
            .arg(path("profiles"))
            .arg("--namespaces")
            .arg(path("namespaces"))
            .args(["--kube-version", &MINOR.to_string(), "--output", "json"])
            .stdout(File::create(path("objects")).unwrap())
            .stderr(File::create(path("errors")).unwrap())
            .status()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        let errors = || fs::read_to_string(path("errors")).unwrap();
        let rendered = match status.code() {
            Some(0) => {
                let mut list: Json = serde_json::from_slice(&fs::read(path("objects")).unwrap()).unwrap();
                match list["items"].take() {
                    Json::Array(objects) => Ok(objects),
                    other => panic!("{}: prints no list: {other}", self.program.display()),
                }
            }
            Some(1) => Err(errors()),
            _ => panic!("{}: {status}: {}", self.program.display(), errors()),
        };
        for what in ["profiles", "namespaces", "objects", "errors"] {
            fs::remove_file(path(what)).unwrap();
        }
        rendered
    }

    /// Keeps something for people to look at, and returns where.
    pub(super) fn keep(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

/// Those objects that are of a profile.
fn of_profile(objects: &[Json], profile: &str) -> Vec<Json> {
    let is_of = |object: &&Json| match object["kind"].as_str() {
        Some("ToolSecurityParams") => object["metadata"]["name"] == names::params(profile),
        _ => object["metadata"]["labels"][names::PROFILE_LABEL] == profile,
    };
    objects.iter().filter(is_of).cloned().collect()
}

//! The directory that `palisade dump` writes: the cluster objects that offline evaluation needs.
//!
//! ```text
//! server.json                   the version of the API server; written last, so that it marks a complete dump
//! toolsecurityprofiles.json
//! namespaces.json
//! toolsecurityexceptions.json
//! objects/NAMESPACE/pods.json   and so on for each workload; pods-2.json if there are many
//! ```
//!
//! Each file is a List with one object on each line, so that two dumps can be compared by lines.

use std::{
    fs,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use palisade_cel::Minor;
use serde_json::{Value as Json, json};

use crate::{
    cluster::could_not_run,
    files,
    input::{self, Object},
    live::{EXCEPTIONS, Kind, NAMESPACES, PROFILES, judged, minor},
    namespaces::{self, Tenant},
    profiles::{self, Accepted},
    progress::Progress,
    report::{Failure, Problem, Source},
};

/// The version of the API server.
pub const SERVER: &str = "server.json";
/// The directory of pods and workloads.
pub const OBJECTS: &str = "objects";
/// The size in bytes from which a list continues in another file.
const LARGE: usize = 8 << 20;

/// The file of a kind with all its objects in one file.
pub fn file_of(kind: Kind<'_>) -> String {
    format!("{}.json", kind.2)
}

/// A list that is written.
#[derive(Debug)]
pub struct ListFile {
    path: PathBuf,
    file: BufWriter<fs::File>,
    bytes: usize,
    empty: bool,
}

impl ListFile {
    /// Begins the list of `resource` in a directory, which is created; in a second file if one exists.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(directory: &Path, resource: &str) -> Result<Self, Failure> {
        fs::create_dir_all(directory).map_err(|error| could_not_write(directory, &error))?;
        for number in 1.. {
            let path = directory.join(numbered(resource, number));
            match fs::File::create_new(&path) {
                Ok(file) => {
                    let mut list = Self { path, file: BufWriter::new(file), bytes: 0, empty: true };
                    list.write(br#"{"apiVersion":"v1","kind":"List","items":["#)?;
                    return Ok(list);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(could_not_write(&path, &error)),
            }
        }
        Err(could_not_run(format!("{}: too many files", directory.display())))
    }

    /// Adds an object.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, object: &Json) -> Result<(), Failure> {
        self.write(if self.empty { "\n" } else { ",\n" }.as_bytes())?;
        self.empty = false;
        self.write(object.to_string().as_bytes())
    }

    /// Whether the list should continue in another file.
    pub fn is_large(&self) -> bool {
        self.bytes >= LARGE
    }

    /// Ends the list.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(mut self) -> Result<(), Failure> {
        self.write(b"\n]}\n")?;
        self.file.flush().map_err(|error| could_not_write(&self.path, &error))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.bytes += bytes.len();
        self.file.write_all(bytes).map_err(|error| could_not_write(&self.path, &error))
    }
}

fn numbered(resource: &str, number: usize) -> String {
    if number == 1 { format!("{resource}.json") } else { format!("{resource}-{number}.json") }
}

/// The failure of a write.
pub fn could_not_write(path: &Path, error: &io::Error) -> Failure {
    could_not_run(format!("cannot write {}: {error}", path.display()))
}

/// A directory that was written.
pub struct Dump {
    directory: PathBuf,
    /// The profiles.
    pub profiles: Vec<Accepted>,
    /// The namespaces, with the exceptions in them.
    pub tenants: Vec<Tenant>,
    /// The minor of the API server.
    pub version: Minor,
}

impl Dump {
    /// Opens it, and reads all but pods and workloads.
    ///
    /// # Errors
    /// It is not a dump, or it is damaged.
    pub fn open(directory: &str) -> Result<Self, Failure> {
        let directory = PathBuf::from(directory);
        let server = directory.join(SERVER);
        if !server.is_file() {
            let problem = Problem::new(format!("{}: not a complete dump: {SERVER} is missing", directory.display()));
            return Err(Failure::CouldNotRun(vec![problem.help("create one with palisade dump DIR")]));
        }
        let text = files::read(&server.display().to_string())?;
        let version: Json = serde_json::from_str(text.text())
            .map_err(|error| could_not_run(format!("{}: {error}", server.display())))?;
        let sources = [PROFILES, NAMESPACES, EXCEPTIONS]
            .map(|kind| files::read(&directory.join(file_of(kind)).display().to_string()));
        let [profiles, namespaces, exceptions] = sources;
        let (profiles, namespaces, exceptions) = (profiles?, namespaces?, exceptions?);
        let mut objects = input::objects(&namespaces).map_err(Failure::fatal)?;
        objects.extend(input::objects(&exceptions).map_err(Failure::fatal)?);
        let (tenants, problems) = namespaces::among(&objects);
        if !problems.is_empty() {
            return Err(Failure::CouldNotRun(problems));
        }
        let profiles = input::objects(&profiles).map_err(Failure::fatal)?;
        let name = |object: &Object<'_>| object.node.get("metadata")?.get("name")?.text().map(str::to_owned);
        let found = profiles.iter().map(|object| (name(object).unwrap_or_default(), profiles::accept(object)));
        Ok(Self {
            profiles: profiles::known(found),
            tenants,
            version: minor(version["gitVersion"].as_str().unwrap_or_default()),
            directory,
        })
    }

    /// Reads objects file by file. In a namespace, owners come before the objects that they own.
    ///
    /// # Errors
    /// A file is damaged, or `found` fails.
    pub fn each(
        &self,
        progress: &mut Progress,
        mut found: impl FnMut(Vec<Json>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let objects = self.directory.join(OBJECTS);
        let mut namespaces = Vec::new();
        if objects.is_dir() {
            let failed = |error: io::Error| could_not_run(format!("{}: {error}", objects.display()));
            for entry in fs::read_dir(&objects).map_err(failed)? {
                namespaces.push(entry.map_err(failed)?.path());
            }
        }
        namespaces.sort();
        for (index, namespace) in namespaces.iter().enumerate() {
            progress.show("namespaces", index, Some(namespaces.len()));
            for resource in resources(namespace)? {
                let resource = resource.as_str();
                let files = (1..).map(|number| namespace.join(numbered(resource, number)));
                for path in files.take_while(|path| path.is_file()) {
                    found(read(&files::read(&path.display().to_string())?)?)?;
                }
            }
        }
        Ok(())
    }
}

/// The resources with files in the directory of a namespace: workloads, then pods, then others.
fn resources(namespace: &Path) -> Result<Vec<String>, Failure> {
    let failed = |error: io::Error| could_not_run(format!("{}: {error}", namespace.display()));
    let mut resources: Vec<_> = judged().map(|(_, _, resource)| resource.to_owned()).collect();
    let mut others = Vec::new();
    for entry in fs::read_dir(namespace).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().into_string().unwrap_or_default();
        let resource = name.trim_end_matches(".json").trim_end_matches(|c: char| c == '-' || c.is_ascii_digit());
        if name == numbered(resource, 1) && !resources.iter().any(|one| one == resource) {
            others.push(resource.to_owned());
        }
    }
    others.sort();
    resources.extend(others);
    Ok(resources)
}

/// The objects of a file, as JSON.
fn read(source: &Arc<Source>) -> Result<Vec<Json>, Failure> {
    let objects = input::objects(source).map_err(Failure::fatal)?;
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for object in objects {
        match object.json() {
            Ok(json) => found.push(json),
            Err(mistake) => problems.push(mistake.problem),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(Failure::CouldNotRun(problems)) }
}

/// The file with the version of the API server.
///
/// # Errors
/// It cannot be written.
pub fn write_server(directory: &Path, version: &str) -> Result<(), Failure> {
    let path = directory.join(SERVER);
    let text = format!("{:#}\n", json!({"gitVersion": version}));
    fs::write(&path, text).map_err(|error| could_not_write(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let pod = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
        let namespace = directory.path().join(OBJECTS).join("a");
        for names in [&["a", "b"][..], &["c"], &[]] {
            let mut list = ListFile::create(&namespace, "pods").unwrap();
            for name in names {
                list.add(&pod(name)).unwrap();
            }
            list.end().unwrap();
        }
        assert_eq!(fs::read_to_string(namespace.join("pods-2.json")).unwrap().lines().count(), 3);
        for kind in [PROFILES, NAMESPACES, EXCEPTIONS] {
            ListFile::create(directory.path(), kind.2).unwrap().end().unwrap();
        }
        let at = directory.path().display().to_string();
        assert!(matches!(Dump::open(&at), Err(Failure::CouldNotRun(_))));
        write_server(directory.path(), "v1.35.2").unwrap();
        let dump = Dump::open(&at).unwrap();
        let mut found = Vec::new();
        let read = dump.each(&mut Progress::none(), |objects| {
            found.extend(objects);
            Ok(())
        });
        assert!(read.is_ok());
        assert_eq!((dump.version, found), (Minor::V1_35, vec![pod("a"), pod("b"), pod("c")]));
    }
}

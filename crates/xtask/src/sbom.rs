//! Compares the SBOMs of a release with the packages that its programs need.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use serde_json::{Value as Json, json};

use crate::project::root;

/// The version of the format that `packaging/sbom.sh` asks for.
const SPECIFICATION: &str = "1.5";
/// Each program of a release, and its package.
const PROGRAMS: [(&str, &str); 3] = [
    ("palisade", "palisade-cli"),
    ("palisade-controller", "palisade-controller"),
    ("palisade-webhook", "palisade-webhook"),
];
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Name and version of a package.
type Packages = BTreeSet<(String, String)>;

/// Compares the SBOMs in a directory with `Cargo.lock`. Returns a summary, and the errors.
///
/// # Errors
/// A file cannot be read, or Cargo does not answer.
pub(crate) fn check(directory: &Path) -> Result<(String, Vec<String>), String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let locked = locked(&read(&root().join("Cargo.lock"))?);
    let (mut seen, mut all) = (Vec::new(), Vec::new());
    for (program, package) in PROGRAMS {
        let file = directory.join(format!("{program}.cdx.json"));
        let bom: Json = serde_json::from_str(&read(&file)?).map_err(|error| format!("{}: {error}", file.display()))?;
        let needed = needed(package)?;
        all.extend(wrong(&bom, program, &needed, &locked).into_iter().map(|what| format!("{program}: {what}")));
        seen.push(format!("{program}.cdx.json names all {} packages that it needs", needed.len()));
    }
    Ok((seen.join("\n"), all))
}

/// The packages that a package needs at run time.
fn needed(package: &str) -> Result<Packages, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["tree", "--locked", "--prefix=none", "--edges=normal", "--target", TARGET, "-p", package];
    let output = Command::new(cargo).args(arguments).args(["--format", "{p}"]).current_dir(root()).output();
    let output = output.map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.trim_start_matches('v').to_owned()))
    });
    Ok(found.collect())
}

/// The packages of a `Cargo.lock`, in which the version follows the name.
fn locked(text: &str) -> Packages {
    let value =
        |line: &str, key: &str| Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.trim_end_matches('"').to_owned());
    let lines: Vec<_> = text.lines().collect();
    lines.windows(2).filter_map(|pair| Some((value(pair[0], "name")?, value(pair[1], "version")?))).collect()
}

fn text<'a>(of: &'a Json, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}

/// The error in an SBOM: with its form, or of this program.
fn wrong(bom: &Json, program: &str, needed: &Packages, locked: &Packages) -> Vec<String> {
    let mut out = Vec::new();
    for (key, value) in
        [("bomFormat", json!("CycloneDX")), ("specVersion", json!(SPECIFICATION)), ("version", json!(1))]
    {
        if bom[key] != value {
            out.push(format!("{key} is {} and not {value}", bom[key]));
        }
    }
    // A random number, and what differs from machine to machine.
    if !bom["serialNumber"].is_null() {
        out.push("serialNumber differs each time".to_owned());
    }
    if bom.to_string().replace("file:///palisade/", "").contains("file:///") {
        out.push("a directory of the machine is named".to_owned());
    }
    let main = &bom["metadata"]["component"];
    if text(main, "name") != program || text(main, "type") != "application" {
        out.push(format!("it is of {} {}", text(main, "type"), text(main, "name")));
    }
    let list = |of: &Json| of.as_array().cloned().unwrap_or_default();
    let components = list(&bom["components"]);
    let mut references = BTreeSet::from([text(main, "bom-ref").to_owned()]);
    let mut named = Packages::new();
    for component in &components {
        let (name, version) = (text(component, "name"), text(component, "version"));
        if text(component, "type") != "library" || name.is_empty() || version.is_empty() {
            out.push(format!("a component has no type, name or version: {component}"));
        }
        if !text(component, "purl").starts_with(&format!("pkg:cargo/{name}@{version}")) {
            out.push(format!("{name} has the purl {}", component["purl"]));
        }
        let licences = list(&component["licenses"]);
        if licences.is_empty() || licences.iter().any(|one| one["expression"].is_null() && one["license"].is_null()) {
            out.push(format!("{name} has no licence"));
        }
        if !references.insert(text(component, "bom-ref").to_owned()) {
            out.push(format!("{name} has the bom-ref of another, or none"));
        }
        named.insert((name.to_owned(), version.to_owned()));
    }
    for dependency in list(&bom["dependencies"]) {
        let of = [dependency["ref"].clone()].into_iter().chain(list(&dependency["dependsOn"]));
        for one in of.filter(|one| !references.contains(one.as_str().unwrap_or_default())) {
            out.push(format!("dependencies name {one}, which is no component"));
        }
    }
    if list(&bom["dependencies"]).len() != references.len() {
        out.push("not each component has its dependencies".to_owned());
    }
    let package = |(name, version): &(String, String)| format!("{name} {version}");
    // The program itself is not one of its components.
    let own = text(main, "bom-ref").rsplit(['#', '@', '/']).map(str::to_owned).collect::<BTreeSet<_>>();
    let missing = needed.difference(&named).filter(|(name, _)| !own.contains(name));
    out.extend(missing.map(|one| format!("{} is not named", package(one))));
    out.extend(named.difference(locked).map(|one| format!("{} is not in Cargo.lock", package(one))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(all: &[(&str, &str)]) -> Packages {
        all.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
    }

    fn good() -> Json {
        json!({
            "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": {"type": "application", "name": "palisade", "bom-ref": "path+file:///palisade/crates/cli#palisade-cli@1.0.0"}},
            "components": [
                {"type": "library", "name": "a", "version": "1.2.3", "bom-ref": "x#a@1.2.3", "purl": "pkg:cargo/a@1.2.3", "licenses": [{"expression": "MIT"}]},
                {"type": "library", "name": "b", "version": "2.0.0", "bom-ref": "x#b@2.0.0", "purl": "pkg:cargo/b@2.0.0", "licenses": [{"license": {"name": "own"}}]},
            ],
            "dependencies": [
                {"ref": "path+file:///palisade/crates/cli#palisade-cli@1.0.0", "dependsOn": ["x#a@1.2.3"]},
                {"ref": "x#a@1.2.3", "dependsOn": ["x#b@2.0.0"]}, {"ref": "x#b@2.0.0"},
            ],
        })
    }

    #[test]
    fn each_mistake_of_an_sbom_is_found() {
        let needed = packages(&[("palisade-cli", "1.0.0"), ("a", "1.2.3"), ("b", "2.0.0")]);
        assert_eq!(wrong(&good(), "palisade", &needed, &needed), Vec::<String>::new());
        for (path, value, expected) in [
            ("/bomFormat", json!("SPDX"), "bomFormat is \"SPDX\" and not \"CycloneDX\""),
            ("/specVersion", json!("1.3"), "specVersion is \"1.3\" and not \"1.5\""),
            ("/version", json!("1"), "version is \"1\" and not 1"),
            ("/serialNumber", json!("urn:uuid:1"), "serialNumber differs each time"),
            ("/metadata/tool", json!("file:///home/me"), "a directory of the machine is named"),
            ("/metadata/component/name", json!("other"), "it is of application other"),
            ("/components/0/version", json!("1.2.4"), "a 1.2.3 is not named"),
            ("/components/0/name", json!("c"), "c 1.2.3 is not in Cargo.lock"),
            ("/components/0/type", json!("file"), "a component has no type, name or version: "),
            ("/components/0/purl", json!("pkg:npm/a@1.2.3"), "a has the purl \"pkg:npm/a@1.2.3\""),
            ("/components/0/licenses", json!([]), "a has no licence"),
            ("/components/1/bom-ref", json!("x#a@1.2.3"), "b has the bom-ref of another, or none"),
            (
                "/dependencies/1/dependsOn",
                json!(["x#z@1.0.0"]),
                "dependencies name \"x#z@1.0.0\", which is no component",
            ),
            ("/dependencies", json!([]), "not each component has its dependencies"),
            ("/components", json!([]), "b 2.0.0 is not named"),
        ] {
            let mut bom = good();
            let (parent, key) = path.rsplit_once('/').unwrap();
            let parent = bom.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            parent.insert(key.to_owned(), value);
            let found = wrong(&bom, "palisade", &needed, &needed);
            assert!(found.iter().any(|one| one.starts_with(expected)), "{path}: {found:?}");
        }
    }

    #[test]
    fn packages_of_the_lock_are_read() {
        let text = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.2.3\"\nsource = \"x\"\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        assert_eq!(locked(text), packages(&[("a", "1.2.3"), ("b", "2.0.0")]));
    }
}

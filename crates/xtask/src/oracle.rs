//! The oracle, kube-apiserver's own code for each minor: its program, and the golden files that it writes.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::{Args, Subcommand};
use palisade_cel::Minor;

use crate::{
    project::root,
    shell::{self, Error, Temporary, cache, go, go_program, output, run, status},
};

/// The module of the oracle.
const DIRECTORY: &str = "tests/oracle";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Write the golden files and schemas of all minors with kube-apiserver's code.
    Oracle(Minors),
    /// Compare the golden files and schemas with those of kube-apiserver's code; fail if one differs.
    OracleCheck(Minors),
}

#[derive(Args)]
pub(crate) struct Minors {
    /// Minor version of Kubernetes, several times for several minors. The default is all of them.
    #[arg(long = "minor", value_name = "MINOR")]
    minors: Vec<Minor>,
}

impl Minors {
    /// The selected minors. The default minor is the first: the golden files of the others record differences from it.
    fn selected(&self) -> Vec<Minor> {
        let mut minors = if self.minors.is_empty() { Minor::ALL.to_vec() } else { self.minors.clone() };
        minors.sort_by_key(|minor| *minor != Minor::DEFAULT);
        minors
    }
}

pub(crate) fn task(verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Oracle(minors) => {
            let out = Outputs::of_repository();
            minors.selected().into_iter().try_for_each(|minor| out.write(minor))
        }
        Verb::OracleCheck(minors) => check(&minors.selected()),
    }
}

/// Directories of the golden files.
struct Outputs {
    /// `<minor>/*.jsonl`: answers to the expressions of the corpus.
    golden: PathBuf,
    /// `<minor>.json.gz`: schemas of the built-in kinds.
    schemas: PathBuf,
    /// `<minor>.json.gz`: kinds and their Go types.
    types: PathBuf,
    /// `<minor>.jsonl.gz`: objects as the API server stores them.
    objects: PathBuf,
    /// `<minor>.jsonl.gz`: CRDs with rules, and their custom resources.
    rules: PathBuf,
    /// `<minor>.jsonl.gz`: CRDs with one change each.
    definitions: PathBuf,
    /// `<minor>.json`: admission plugins that are on by default.
    plugins: PathBuf,
    /// `<minor>.jsonl.gz`: objects with one change each.
    mutants: PathBuf,
    /// `golden/<minor>.jsonl.gz`: custom resources. `formats.jsonl.gz`, of the default minor: strings with formats.
    custom: PathBuf,
    /// `golden.jsonl.gz`: objects as kubectl reads them, which belongs to no minor. The default minor writes it.
    yaml: PathBuf,
}

impl Outputs {
    fn of_repository() -> Self {
        let at = |path: &str| root().join(DIRECTORY).join(path);
        Self {
            golden: at("golden"),
            schemas: root().join("crates/cel/openapi"),
            types: root().join("crates/admission/types"),
            objects: at("objects/golden"),
            rules: at("rules/golden"),
            definitions: at("definitions/golden"),
            plugins: at("plugins"),
            mutants: at("mutants/golden"),
            custom: at("custom"),
            yaml: at("yaml"),
        }
    }

    fn of_directory(directory: &Path) -> Self {
        let at = |name: &str| directory.join(name);
        Self {
            golden: at("golden"),
            schemas: at("openapi"),
            types: at("types"),
            objects: at("objects"),
            rules: at("rules"),
            definitions: at("definitions"),
            plugins: at("plugins"),
            mutants: at("mutants"),
            custom: at("custom"),
            yaml: at("yaml"),
        }
    }

    /// All directories but `golden`. They have files of all minors, and some have files that the oracle does not write.
    fn shared(&self) -> [&Path; 9] {
        let Self { golden: _, schemas, types, objects, rules, definitions, plugins, mutants, custom, yaml } = self;
        [schemas, types, objects, rules, definitions, plugins, mutants, custom, yaml]
    }

    fn write(&self, minor: Minor) -> Result<(), Error> {
        let program = build(minor)?;
        let is_default = minor == Minor::DEFAULT;
        let oracle = |arguments: &str| oracle(&program, arguments);
        let json = |directory: &Path| directory.join(format!("{minor}.json.gz"));
        let lines = |directory: &Path| directory.join(format!("{minor}.jsonl.gz"));
        // The file of the default minor, in which the others record only differences.
        let base = |directory: &str, ending: &str| {
            (!is_default).then(|| format!("{directory}/{default}{ending}", default = Minor::DEFAULT))
        };
        let (kubernetes, apiserver) = (module(minor, "kubernetes")?, module(minor, "apiserver")?);
        // The lists of resources that Kubernetes keeps next to its sources.
        let discovery = kubernetes.join("api/discovery");
        run(oracle("golden").arg(self.golden.join(minor.to_string())).args(base("golden", "")))?;
        run(oracle("openapi").arg(json(&self.schemas)))?;
        run(oracle("types").arg(&discovery).arg(json(&self.types)))?;
        run(oracle("objects").arg(&discovery).args(["objects", "1", "5"]).arg(lines(&self.objects)))?;
        run(oracle("rules rules").arg(lines(&self.rules)))?;
        let definitions = base("definitions/golden", ".jsonl.gz");
        run(oracle("definitions definitions").arg(lines(&self.definitions)).args(definitions))?;
        let plugins = self.plugins.join(format!("{minor}.json"));
        run(oracle("plugins").args([kubernetes, apiserver, plugins]))?;
        let mutants = base("mutants/golden", ".jsonl.gz");
        run(oracle("mutants").arg(&discovery).arg("mutants").arg(lines(&self.mutants)).args(mutants))?;
        let customs = lines(&self.custom.join("golden"));
        run(oracle("custom 1 160").arg(customs).args(base("custom/golden", ".jsonl.gz")))?;
        if is_default {
            run(oracle("formats 1 150").arg(self.custom.join("formats.jsonl.gz")))?;
            let texts = ["yaml/cases.jsonl", "yaml/spellings.jsonl"];
            run(oracle("texts").arg(self.yaml.join("golden.jsonl.gz")).args(texts))?;
        }
        Ok(())
    }
}

/// The option of Go that selects the modules of a minor; none for the default minor.
fn modfile(minor: Minor) -> Option<String> {
    (minor != Minor::DEFAULT).then(|| format!("-modfile=minors/{minor}.mod"))
}

/// The directory of a Kubernetes module of a minor.
fn module(minor: Minor, name: &str) -> Result<PathBuf, Error> {
    let mut command = go(DIRECTORY, "list");
    command.args(modfile(minor)).args(["-m", "-f", "{{.Dir}}"]).arg(format!("k8s.io/{name}"));
    Ok(output(&mut command)?.into())
}

/// Builds the oracle of a minor.
pub(crate) fn build(minor: Minor) -> Result<PathBuf, Error> {
    let program = cache().join("oracle").join(minor.to_string());
    run(go(DIRECTORY, "build").args(modfile(minor)).arg("-o").arg(&program).arg("."))?;
    Ok(program)
}

/// A command of an oracle; its arguments are separated by spaces.
pub(crate) fn oracle(program: &Path, arguments: &str) -> Command {
    let mut command = go_program(program, DIRECTORY);
    command.args(arguments.split_whitespace());
    command
}

/// Writes all files into a temporary directory, and prints each difference to standard error.
fn check(minors: &[Minor]) -> Result<(), Error> {
    run(&mut go(DIRECTORY, "vet ."))?;
    run(&mut go(DIRECTORY, "test ."))?;
    let temporary = Temporary::new()?;
    let (wanted, written) = (Outputs::of_repository(), Outputs::of_directory(temporary.path()));
    for (from, to) in wanted.shared().into_iter().zip(written.shared()) {
        run(shell::command("cp").arg("-r").args([from, to]))?;
    }
    minors.iter().try_for_each(|minor| written.write(*minor))?;
    let golden = |out: &Outputs| minors.iter().map(|minor| out.golden.join(minor.to_string())).collect::<Vec<_>>();
    let mut pairs: Vec<_> = golden(&wanted).into_iter().zip(golden(&written)).collect();
    let shared = wanted.shared().into_iter().zip(written.shared());
    pairs.extend(shared.map(|(wanted, written)| (wanted.to_owned(), written.to_owned())));
    let mut differing = Vec::new();
    for (wanted, written) in pairs {
        let same =
            status(shell::command("diff").arg("-r").args([&wanted, &written]).stdout(Stdio::from(io::stderr())))?;
        if !same.success() {
            differing.push(wanted.strip_prefix(root()).unwrap_or(&wanted).display().to_string());
        }
    }
    if differing.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(format!("golden files differ; run `make oracle` and commit them: {}", differing.join(", "))))
}

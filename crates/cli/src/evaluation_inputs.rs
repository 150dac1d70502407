//! Input that several commands evaluate: the objects of a cluster, of a dump or of manifests, with their
//! namespaces and the version of the API server.

use std::sync::LazyLock;

use palisade_admission::objects::Kinds;
use palisade_api::names;
use palisade_cel::Minor;
use palisade_kube_json::json::set;
use serde_json::Value as Json;

use crate::{
    cluster::ClusterArgs,
    dump_files::Dump,
    evaluator, files,
    input::{self, Found, Object, UnevaluatedArgs},
    live,
    namespaces::{self, Tenant},
    object_kinds::ObjectKinds,
    options::{INPUT, kube_version_help},
    parameters::ParamArgs,
    profiles::{self, Accepted},
    progress::Progress,
    report::{Failure, Problem},
};

/// The arguments for this input. Commands that use it in another way replace the help.
#[derive(Debug, Default, clap::Args)]
pub struct SourceArgs {
    /// Evaluate the objects of the cluster. Requires permission to list them.
    #[arg(long, help_heading = INPUT, conflicts_with_all = ["dump", "namespaces"])]
    pub live: bool,
    /// Evaluate the objects in a directory from palisade dump.
    #[arg(long, value_name = "DIR", help_heading = INPUT, conflicts_with = "namespaces")]
    pub dump: Option<String>,
    /// File with Namespaces and ToolSecurityExceptions, in addition to those among the manifests.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub namespaces: Option<String>,
    #[arg(
        long,
        value_name = "VERSION",
        help = format!("{}; the default is the version of the cluster or the dump, or {} for files", kube_version_help(), Minor::DEFAULT)
    )]
    pub kube_version: Option<Minor>,
    #[command(flatten)]
    pub unevaluated: UnevaluatedArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The source of objects.
pub enum Objects<'a> {
    /// In the cluster, with the kinds of other objects than pods and workloads.
    Cluster(&'a ClusterArgs, ObjectKinds),
    /// In a dump.
    Dump(Dump),
    /// In manifests, after parsing: owners come before the objects that they own.
    Files(Vec<Json>),
}

impl Objects<'_> {
    /// Reads them in batches. In a namespace, owners come before the objects that they own.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn each(self, progress: &mut Progress, mut found: impl FnMut(Vec<Json>)) -> Result<(), Failure> {
        let mut add = |objects| {
            found(objects);
            Ok(())
        };
        match self {
            Self::Files(objects) => add(objects),
            Self::Dump(dump) => dump.each(progress, add),
            Self::Cluster(cluster, others) => cluster.ask(async |client| {
                for kind in live::judged() {
                    live::each(&client, kind, progress, &mut add).await?;
                }
                for (api_version, kind, resource) in live::others(&client, &others).await? {
                    live::each(&client, (&api_version, &kind, &resource), progress, &mut add).await?;
                }
                Ok(())
            }),
        }
    }
}

/// Profiles, the namespaces that they select, and the objects in them.
pub struct EvaluationInputs<'a> {
    /// The profiles. There is one at least.
    pub accepted: Vec<Accepted>,
    /// All namespaces that are known.
    pub tenants: Vec<Tenant>,
    /// The version of the API server.
    pub version: Minor,
    /// The objects.
    pub objects: Objects<'a>,
    /// Objects in the cluster that may change pods in admission, except those of Palisade.
    pub mutators: Vec<String>,
    /// Objects in the manifests that cannot be evaluated.
    pub problems: Vec<Problem>,
}

impl<'a> EvaluationInputs<'a> {
    /// Reads profiles and namespaces of the cluster, of a dump or of files. The profiles in the files `profiles`, if there are
    /// any, replace those.
    ///
    /// # Errors
    /// They cannot be read, or there is no profile.
    pub fn open(
        args: &'a SourceArgs,
        files: &[String],
        profiles: &[String],
        params: &ParamArgs,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        let given = if profiles.is_empty() { None } else { Some(profiles::all(&files::sources(profiles)?)?) };
        let found = Self::given(args, files, given, progress)?;
        if found.accepted.is_empty() {
            let help = "specify files with profiles by --profile";
            return Err(Failure::CouldNotRun(vec![Problem::new("at least one profile is required").help(help)]));
        }
        Ok(Self { accepted: profiles::on(params.set(found.accepted)?, found.version)?, ..found })
    }

    /// Reads namespaces and objects, and evaluates them by these profiles.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn of_profiles(
        args: &'a SourceArgs,
        files: &[String],
        profiles: Vec<Accepted>,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        let found = Self::given(args, files, Some(profiles), progress)?;
        Ok(Self { accepted: profiles::on(found.accepted, found.version)?, ..found })
    }

    fn given(
        args: &'a SourceArgs,
        files: &[String],
        given: Option<Vec<Accepted>>,
        progress: &mut Progress,
    ) -> Result<Self, Failure> {
        let (mut mutators, mut problems) = (Vec::new(), Vec::new());
        let (accepted, tenants, version, objects) = if args.live {
            let (found, tenants, version) = args.cluster.ask(async |client| {
                let rights = live::judged().chain([live::NAMESPACES, live::EXCEPTIONS]);
                live::permitted(&client, rights.chain(given.is_none().then_some(live::PROFILES))).await?;
                let found = if given.is_none() { live::profiles(&client).await? } else { Vec::new() };
                mutators = live::mutators(&client).await;
                Ok((found, live::all_tenants(&client, progress).await?, live::version(&client).await?))
            })?;
            let live = || found.into_iter().map(profiles::accept_live).collect::<Result<_, _>>();
            let accepted = given.map_or_else(live, Ok).map_err(Failure::CouldNotRun)?;
            let kinds = ObjectKinds::of(&accepted);
            (accepted, tenants, version, Objects::Cluster(&args.cluster, kinds))
        } else if let Some(directory) = &args.dump {
            let mut dump = Dump::open(directory)?;
            let accepted = given.unwrap_or_else(|| std::mem::take(&mut dump.profiles));
            (accepted, std::mem::take(&mut dump.tenants), dump.version, Objects::Dump(dump))
        } else {
            let reading =
                Reading { namespaces: args.namespaces.as_deref(), profiles: given.is_none(), ..Reading::default() };
            let found = Manifests::read(files, reading)?;
            problems = found.problems;
            (given.unwrap_or(found.profiles), found.tenants, Minor::DEFAULT, Objects::Files(found.objects))
        };
        let version = args.kube_version.unwrap_or(version);
        Ok(Self { accepted, tenants, version, objects, mutators, problems })
    }
}

/// The objects in manifests.
#[derive(Default)]
pub struct Manifests {
    /// The profiles among them, unless other profiles are used.
    pub profiles: Vec<Accepted>,
    /// The namespaces, with the exceptions in them.
    pub tenants: Vec<Tenant>,
    /// The objects.
    pub objects: Vec<Json>,
    /// Objects that cannot be evaluated.
    pub problems: Vec<Problem>,
}

/// How manifests are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// A file with namespaces, which replace those among the manifests.
    pub namespaces: Option<&'a str>,
    /// The namespace of objects that do not specify one.
    pub namespace: Option<&'a str>,
    /// Whether all namespaces must be known.
    pub known: bool,
    /// Whether the profiles among them count.
    pub profiles: bool,
}

impl Manifests {
    /// Reads files and directories.
    ///
    /// # Errors
    /// They cannot be read, or profiles and namespaces have errors. All errors are returned.
    pub fn read(files: &[String], reading: Reading<'_>) -> Result<Self, Failure> {
        let sources = files::sources(files)?;
        let Found { objects, mut unread } = input::all(&sources);
        if objects.is_empty() && unread.is_empty() {
            unread.push(Problem::new("no object found in the files"));
        }
        let (mut tenants, mut problems) = namespaces::among(&objects);
        if let Some(path) = reading.namespaces {
            let given = namespaces::read(&files::read(path)?)?;
            tenants.retain(|one| !given.iter().any(|other| other.name == one.name));
            tenants.extend(given);
        }
        let mut found = Self { tenants, problems: unread, ..Self::default() };
        let mut pods = Vec::new();
        for object in &objects {
            let is_pod = evaluator::is_pod(&object.api_version, &object.kind);
            if is_pod || evaluator::workload(&object.api_version, &object.kind).is_some() {
                let into = if is_pod { &mut pods } else { &mut found.objects };
                match placed(object, &found.tenants, reading) {
                    Ok(json) => into.push(json),
                    Err(problem) => found.problems.push(problem),
                }
            } else if let Some(why) = evaluator::no_longer_served(&object.api_version, &object.kind) {
                found.problems.push(object.problem("apiVersion", why));
            } else if object.kind == profiles::KIND && reading.profiles {
                found.profile(object, &mut problems);
            } else if !is_cluster_scoped(object) {
                // Profiles may evaluate its kind. If they do not, its namespace does not matter.
                found.objects.extend(placed(object, &found.tenants, reading));
            }
        }
        found.objects.append(&mut pods);
        if problems.is_empty() { Ok(found) } else { Err(Failure::CouldNotRun(problems)) }
    }

    fn profile(&mut self, object: &Object<'_>, problems: &mut Vec<Problem>) {
        match profiles::accept(object) {
            Ok(one) if self.profiles.iter().any(|other| other.checked.profile == one.checked.profile) => {
                problems.push(object.problem("metadata.name", "must be unique: another profile has this name"));
            }
            Ok(one) => self.profiles.push(one),
            Err(found) => problems.extend(found),
        }
    }
}

/// Whether it is an object of a built-in kind without a namespace, or of Palisade itself.
fn is_cluster_scoped(object: &Object<'_>) -> bool {
    static KINDS: LazyLock<Kinds> = LazyLock::new(|| Kinds::builtin(Minor::NEWEST));
    let resource = KINDS.by_kind(&object.api_version, &object.kind);
    resource.is_some_and(|resource| !resource.namespaced) || object.api_version == names::API_VERSION
}

/// An object in its namespace.
fn placed(object: &Object<'_>, tenants: &[Tenant], reading: Reading<'_>) -> Result<Json, Problem> {
    let mut json = object.json().map_err(|mistake| mistake.problem)?;
    let own = json["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
    let help = "--namespaces FILE gives Namespaces";
    let Some(name) = own.or(reading.namespace).map(str::to_owned) else {
        let problem = object.problem("metadata", format!("{} names no namespace", object.kind));
        return Err(if reading.known { problem.help("-n gives the namespace of what names none") } else { problem });
    };
    if reading.known && !tenants.iter().any(|one| one.name == name) {
        let message = format!("which profiles select namespace {name} is not known: it is in no file");
        return Err(object.problem("metadata.namespace", message).help(help));
    }
    set(&mut json, &["metadata", "namespace"], name);
    Ok(json)
}

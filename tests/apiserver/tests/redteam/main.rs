//! The red team: attacks of a hostile tenant, a careless admin and a broken machine on a cluster with Palisade, as
//! tables, on a real API server. No attack may be admitted, and nothing that complies may be denied.
//!
//! It prints a table of the attacks and their results. `cargo xtask redteam` tries everything; as one of the tests, it tries
//! fewer of the slow ones (`PALISADE_REDTEAM=full` for all of them).
#![allow(clippy::disallowed_methods, reason = "tests on a real API server need a clock, files and processes")]

mod arena;
mod bodies;
mod changed;
mod customs;
mod exempt;
mod fence;
mod fields;
mod images;
mod kinds;
mod lists;
mod namespaces;
mod objects;
mod pods;
mod profiles;
mod scheduling;
mod sieges;
mod stages;
mod table;
mod tampering;
mod updates;
mod volumes;
mod webhook;
mod whole;
mod wire;
mod workloads;
mod writes;

use std::{
    pin::Pin,
    process::ExitCode,
    sync::{Arc, LazyLock},
    time::Instant,
};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use palisade_api::names;
use palisade_controlplane::{Feature, Version};
use palisade_tests::known_fault;
use tokio::{runtime::Runtime, sync::Mutex};

use crate::{
    arena::{Arena, Extent},
    table::{Report, Tally},
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
type Kind = for<'a> fn(&'a mut Arena) -> Pin<Box<dyn Future<Output = Result<Tally>> + 'a>>;

/// Lists async functions as kinds of attacks: name, function, and features without which it is skipped.
macro_rules! kinds {
    ($($module:ident :: $name:ident $(needs $feature:ident)?),+ $(,)?) => {
        vec![$((
            stringify!($name),
            (|arena| Box::pin($module::$name(arena))) as Kind,
            &[$(&Feature::$feature)?] as &[&'static Feature],
        )),+]
    };
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// The arena, which is there from the first attack on, and what came of the attacks.
#[derive(Default)]
struct Shared {
    arena: Option<Arena>,
    report: Report,
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        // What is killed must be a process.
        Some(palisade_tests::WEBHOOK) => return RUNTIME.block_on(palisade_tests::run_webhook()),
        Some(names::CONTROLLER) => return palisade_tests::run_controller(),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // One control plane, whose controller is killed under everybody's feet.
    arguments.test_threads = Some(1);
    let mut kinds = kinds![
        kinds::pods_of_tools,
        kinds::pods_at_restricted,
        kinds::kinds_of_volumes,
        kinds::host_paths,
        kinds::image_references,
        scheduling::places_and_identities needs SUPPLEMENTAL_GROUPS_POLICY,
        updates::updates,
        changed::metadata,
        changed::exceptions,
        bodies::bodies,
        workloads::workloads,
        writes::tenants_writes,
        objects::objects_of_tenants,
        namespaces::new_namespaces,
        namespaces::label_flips,
        namespaces::wrong_parameters,
        namespaces::deleted_namespaces,
        sieges::rapid_edits,
        sieges::killed_controllers,
        customs::custom_checks,
        profiles::bad_profiles,
        profiles::bad_selectors,
        stages::edits_around_a_namespace_in_deny,
        lists::long_lists,
        exempt::exemptions needs NATIVE_MUTATION,
        exempt::documents,
        webhook::engines needs NATIVE_MUTATION,
        webhook::hostile_reviews,
        webhook::silent_connections,
        webhook::rejected_profiles,
        tampering::tampering,
    ];
    if Extent::of_environment() == Extent::Full {
        // Last: all parameters are gone, and the API server takes its time to see that they are back.
        kinds.extend(kinds![tampering::deleted_definition]);
    }
    let shared = Arc::new(Mutex::new(Shared::default()));
    if let Err(error) = served() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let trials = kinds.into_iter().map(|(name, kind, features)| {
        if let Some(feature) = lacking(features) {
            let skipped = Completion::ignored_with(format!("the API server lacks: {feature}"));
            return Trial::ignorable_test(name, || Ok(skipped)).with_kind("redteam");
        }
        let shared = Arc::clone(&shared);
        Trial::ignorable_test(name, move || RUNTIME.block_on(run(&shared, name, kind))).with_kind("redteam")
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    RUNTIME.block_on(async {
        let shared = &mut *shared.lock().await;
        if let Some(arena) = shared.arena.take() {
            println!("{}", shared.report.print());
            if let Err(error) = arena.stop().await {
                eprintln!("stopping the control plane: {error}");
            }
        }
    });
    conclusion.exit_code()
}

/// The first of these features that the API server will lack.
fn lacking(features: &[&'static Feature]) -> Option<&'static Feature> {
    Feature::lacking(features, served().ok()?)
}

/// The number of the minor that the API server will serve.
fn served() -> std::result::Result<u8, palisade_controlplane::Error> {
    match arena::emulated() {
        Some(minor) => Ok(Version::of(Some(&minor))?.number),
        None => Ok(Version::of_environment()?.number),
    }
}

async fn run(shared: &Mutex<Shared>, name: &str, kind: Kind) -> std::result::Result<Completion, Failed> {
    let Shared { arena: own, report } = &mut *shared.lock().await;
    let arena = if let Some(arena) = own {
        arena
    } else {
        own.insert(Arena::start(Extent::of_environment()).await.map_err(|error| error.to_string())?)
    };
    arena.start_controller().map_err(|error| error.to_string())?;
    let start = Instant::now();
    let tally = match kind(arena).await {
        Ok(tally) => tally,
        // What could not be tried has not held.
        Err(error) => Tally { other: vec![format!("{name}: {error}")], ..Tally::default() },
    };
    if let Err(ended) = arena.cluster.control_plane.check_apiserver() {
        // The next attacks get another one.
        *own = None;
        if let Some(fault) = known_fault(served().map_err(|error| error.to_string())?, &ended.to_string())
            && !tally.is_wrong()
        {
            return Ok(Completion::ignored_with(format!("the API server ended: {fault}")));
        }
    }
    report.add(name, tally, start.elapsed()).map(|()| Completion::Completed).map_err(Failed::from)
}

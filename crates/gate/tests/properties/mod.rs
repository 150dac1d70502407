//! What holds whatever a profile says: random profiles, judged by the policies that they become.
//!
//! A run in `cargo test` is short and always the same. `cargo xtask properties` runs many more cases, each time others:
//! `PROPTEST_CASES` says how many of [`CASES`] and of pods with additions, and in proportion of the others. What it finds is worth a fixture.

mod access;
mod custom;
mod early;
mod excepted;
mod injected;
mod injections;
mod mutated;
mod older;
mod own_stage;
mod pods;
mod random;
mod readable;
mod settings;
mod templates;
mod tighten;
mod unusual;
mod updates;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    env,
};

use palisade_api::{
    Level, Settings, ToolSecurityProfile, catalogue,
    names::Shape,
    settings::{WindowsRule, all, standard::Version},
};
use palisade_checks::{Check, Lowering, Resolve, Resolved, Values};
use palisade_compiler::{Compiled, Namespace};
use proptest::{
    prelude::*,
    sample::{self, Index},
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Value as Json, json};

use crate::support::ShapePolicy;

/// How often the property of stricter profiles is tried.
const CASES: u32 = 500;

/// A runner of `cases`, always the same ones; or of other ones each time, and as many times more as the environment says.
fn runner(cases: u32) -> TestRunner {
    // A counterexample is made smaller for seconds, not for minutes.
    let config = Config { failure_persistence: None, max_shrink_iters: 1000, ..Config::default() };
    TestRunner::new(match env::var_os("PROPTEST_CASES") {
        Some(_) => Config { cases: (config.cases * cases).div_ceil(CASES), ..config },
        None => Config { cases, rng_seed: RngSeed::Fixed(1), ..config },
    })
}

/// The parameters that settings refer to: name, type, and the value that they have.
const PARAMETERS: [(&str, &str, &str); 13] = [
    ("uid", "Integer", "1000"),
    ("on", "Boolean", "true"),
    ("off", "Boolean", "false"),
    ("text", "String", "text"),
    ("texts", "StringList", "text,system_u"),
    ("cap", "String", "NET_RAW"),
    ("caps", "StringList", "MKNOD,CHOWN"),
    ("kind", "String", "RuntimeDefault"),
    ("kinds", "StringList", "Localhost,RuntimeDefault"),
    ("sysctls", "StringList", "kernel.msgmax,net.core.somaxconn"),
    ("volume", "String", "hostPath"),
    ("volumes", "StringList", "csi,nfs"),
    ("registries", "StringList", "registry.example/team,own.example"),
];

fn profile(settings: &Settings, level: Level) -> Json {
    let text = json!(settings).to_string();
    let used = PARAMETERS.into_iter().filter(|(name, ..)| text.contains(&format!("${name}")));
    let parameters: Vec<_> = used
        .map(|(name, kind, value)| {
            let value = value.parse::<i64>().map_or_else(|_| json!(value), Json::from);
            json!({"name": name, "type": kind, "default": value})
        })
        .collect();
    let mut spec = json!({
        "namespaceSelector": {"matchLabels": {"a": "b"}}, "parameters": parameters, "baseline": level,
    });
    for (group, value) in json!(settings).as_object().unwrap() {
        spec[group] = value.clone();
    }
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "random"},
        "spec": spec,
    })
}

fn values() -> Values {
    let value = |kind: &str, text: &str| match kind {
        "Integer" => Resolved::Integer(text.parse().unwrap()),
        "Boolean" => Resolved::Boolean(text == "true"),
        "StringList" => Resolved::StringList(text.split(',').map(str::to_owned).collect()),
        _ => Resolved::String(text.to_owned()),
    };
    PARAMETERS.map(|(name, kind, text)| (name.to_owned(), value(kind, text))).into()
}

fn compile(settings: &Settings, level: Level) -> Compiled {
    let profile: ToolSecurityProfile = serde_json::from_value(profile(settings, level)).unwrap();
    palisade_compiler::compile(&profile).unwrap_or_else(|error| panic!("{error:?}\n{settings:?}"))
}

/// The policy of pods, with the parameters of the profile's probes.
fn judge(compiled: &Compiled) -> ShapePolicy {
    ShapePolicy::new(compiled, Shape::Pods)
}

fn yaml(settings: &Settings) -> String {
    serde_saphyr::to_string(settings).unwrap_or_default()
}

/// Only those settings that the checks name.
fn named(settings: &Settings, checks: &[&Check]) -> Settings {
    let all = json!(settings);
    let mut named = json!({});
    let paths = checks.iter().flat_map(|check| check.settings);
    for (group, setting) in paths.map(|path| path.split_once('.').unwrap()) {
        if let Some(value) = all[group].get(setting) {
            named[group][setting] = value.clone();
        }
    }
    serde_json::from_value(named).unwrap()
}

/// Settings, the same with one made stricter, the shape of a pod, and changes of it that can matter.
type Stricter = (Settings, Settings, pods::Shape, Vec<pods::Change>);

/// Only one step: if many at once admit more, then one of them does. Only the settings of the checks that it concerns:
/// others would only keep the pod from changing.
fn stricter() -> impl Strategy<Value = Stricter> {
    sample::select(tighten::steps()).prop_flat_map(|(path, tighten)| {
        let checks: Vec<_> = catalogue::ALL.iter().copied().filter(|check| check.settings.contains(&path)).collect();
        let changes = prop::collection::vec(pods::change(&checks), 30..50);
        (settings::settings(), any::<Index>(), pods::shape(), changes).prop_map(
            move |(settings, at, shape, changes)| {
                let weak = named(&settings, &checks);
                let mut strict = weak.clone();
                tighten.apply(&mut strict, at);
                (weak, strict, shape, changes)
            },
        )
    })
}

/// A pod that complies with the stricter profile is changed again and again, as long as it is admitted: so it gets far
/// from what complies at first sight.
#[test]
fn a_stricter_profile_admits_nothing_that_a_weaker_one_denies() {
    let (admitted, denied) = (Cell::new(0), Cell::new(0));
    let outcome = runner(CASES).run(&stricter(), |(weak, strict, shape, changes)| {
        let of_weak = judge(&compile(&weak, Level::Privileged));
        let of_strict = judge(&compile(&strict, Level::Privileged));
        let mut pod = shape.complying(&strict, &values());
        for change in changes {
            let mut changed = pod.clone();
            change.apply(&mut changed);
            if of_strict.denial(&changed).is_some() {
                denied.set(denied.get() + 1);
                continue;
            }
            pod = changed;
            admitted.set(admitted.get() + 1);
            if let Some(message) = of_weak.denial(&pod) {
                let (weak, strict) = (yaml(&weak), yaml(&strict));
                prop_assert!(
                    false,
                    "admitted by the stricter profile, and denied by the weaker one: {message}\n{pod}\nweaker:\n{weak}\
                     stricter:\n{strict}"
                );
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let (admitted, denied) = (admitted.get(), denied.get());
    println!("{admitted} changes were admitted by the stricter profile, {denied} denied");
    assert!(
        admitted > CASES && denied > CASES,
        "changes are neither all admitted nor all denied: {admitted}, {denied}"
    );
}

/// The levels are ordered, and so are profiles that say the same otherwise. What relaxes a check is set, for under
/// Privileged nothing is relaxed.
#[test]
fn a_stricter_level_admits_nothing_that_a_weaker_one_denies() {
    let relaxed = (settings::flag(), settings::flag(), any::<bool>());
    let pod = (pods::shape(), prop::collection::vec(pods::change(catalogue::ALL), 0..12));
    let cases = (settings::settings(), relaxed, pod);
    let outcome = runner(40).run(&cases, |(mut settings, (users, unmasked, exempt), (shape, changes))| {
        settings.users.relax_for_user_namespaces = Some(users);
        settings.privileges.unmasked_in_user_namespaces = Some(unmasked);
        settings.privileges.windows = Some(if exempt { WindowsRule::Exempt } else { WindowsRule::Check });
        let [privileged, baseline, restricted] =
            [Level::Privileged, Level::Baseline, Level::Restricted].map(|level| judge(&compile(&settings, level)));
        let strict = settings.clone().or(Settings::seed(Level::Restricted, Version::Latest));
        let mut pod = shape.complying(&strict, &values());
        for change in &changes {
            change.apply(&mut pod);
            let denials = [&restricted, &baseline, &privileged].map(|judge| judge.denial(&pod).is_some());
            prop_assert!(
                denials.is_sorted_by(|strict, weak| strict >= weak),
                "denied by Restricted, Baseline, Privileged: {denials:?}\n{pod}\n{}",
                yaml(&settings)
            );
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// The ids of the checks in a message.
fn ids(message: &str) -> BTreeSet<&str> {
    catalogue::ALL.iter().map(|check| check.id).filter(|id| message.contains(&format!("[{id}]"))).collect()
}

/// What a pod that violates a check has to violate besides, because the API server refuses it otherwise.
fn in_company(id: &str) -> &'static [&'static str] {
    match id {
        // A privileged container that says allowPrivilegeEscalation: false.
        "privileged" => &["allowPrivilegeEscalation"],
        // A HostProcess container without hostNetwork.
        "windowsHostProcess" => &["hostNamespaces"],
        _ => &[],
    }
}

/// Whether no pod can comply: a seccomp profile must be set, and must be one of none.
fn contradictory(settings: &Settings) -> bool {
    settings.privileges.seccomp.as_ref().is_some_and(|seccomp| {
        seccomp.required.resolve(&values())
            && seccomp.allowed.resolve(&values()).iter().all(|kind| kind == "Localhost")
            && seccomp.localhost_profiles.is_empty()
    })
}

#[test]
fn samples_comply_and_violations_are_denied_by_their_check() {
    let violated = RefCell::new(BTreeSet::new());
    let outcome = runner(100).run(&settings::settings(), |settings| {
        let compiled = compile(&settings, Level::Privileged);
        let judge = judge(&compiled);
        let compliant = &compiled.probes.compliant.pod;
        let denial = judge.denial(compliant);
        if denial.is_some() && contradictory(&settings) {
            return Ok(());
        }
        prop_assert_eq!(denial, None, "{}\n{}", compliant, yaml(&settings));
        for check in catalogue::ALL {
            let mut pod = compliant.clone();
            let violates = (check.violate)(&settings, &values(), &mut pod);
            let denial = judge.denial(&pod).unwrap_or_default();
            let mut found = ids(&denial);
            if violates {
                prop_assert!(found.remove(check.id), "{}: {denial:?}\n{pod}\n{}", check.id, yaml(&settings));
                found.retain(|id| !in_company(check.id).contains(id));
                violated.borrow_mut().insert(check.id);
            } else {
                prop_assert_eq!(compliant, &pod, "{}", check.id);
            }
            prop_assert!(found.is_empty(), "{}: denied for {found:?}, too\n{pod}\n{}", check.id, yaml(&settings));
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(violated.into_inner(), catalogue::ALL.iter().map(|check| check.id).collect(), "each check is violated");
}

/// The check that stands before an API server refuses no profile with which a pod can comply. It evaluates each policy on
/// all pods of the catalogue, so that these are few.
#[test]
fn gate_accepts_every_satisfiable_profile() {
    let outcome = runner(6).run(&settings::settings(), |settings| {
        if let Err(rejected) = palisade_gate::check(compile(&settings, Level::Privileged)) {
            prop_assert!(contradictory(&settings), "{rejected}\n{}", yaml(&settings));
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn random_profiles_use_every_setting() {
    let missing: RefCell<BTreeSet<_>> = RefCell::new(all().map(|setting| setting.path).collect());
    let outcome = runner(100).run(&settings::settings(), |settings| {
        let text = json!(settings);
        for setting in all() {
            let is_there = text.pointer(&format!("/{}", setting.path.replace('.', "/"))).is_some();
            prop_assert_eq!(setting.slot().is_said(&settings), is_there, "the row {} leads elsewhere", setting.path);
            if is_there {
                missing.borrow_mut().remove(setting.path);
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let missing = missing.into_inner();
    assert!(missing.is_empty(), "crates/gate/tests/properties/settings.rs does not make up {missing:?}");
}

#[test]
fn check_reads_only_the_settings_it_declares() {
    let types =
        PARAMETERS.map(|(name, kind, _)| (name.to_owned(), serde_json::from_value(json!(kind)).unwrap())).into();
    let rule = |check: &Check, settings: &Settings| (check.compile)(settings, &mut Lowering::new(&types));
    let outcome = runner(300).run(&settings::settings(), |settings| {
        for check in catalogue::ALL {
            let named = named(&settings, &[check]);
            prop_assert_eq!(rule(check, &settings), rule(check, &named), "{}", check.id);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// JSON whose fields stand in another order.
fn shuffled(value: &Json, order: u64) -> String {
    match value {
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| {
                key.bytes().fold(order, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(order | 1))
            });
            let fields: Vec<_> =
                fields.into_iter().map(|(key, value)| format!("{}:{}", json!(key), shuffled(value, order))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| shuffled(item, order)).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn compiled_bytes_do_not_depend_on_field_order() {
    let outcome = runner(150).run(&(settings::settings(), any::<u64>()), |(settings, order)| {
        let profile = profile(&settings, Level::Restricted);
        let bytes = |text: &str| {
            let profile: ToolSecurityProfile = serde_json::from_str(text).unwrap();
            let compiled = palisade_compiler::compile(&profile).unwrap();
            let bundle = &compiled.bundle;
            let objects: Vec<_> =
                bundle.pairs().map(|(_, pair)| json!([pair.policy, pair.binding, pair.updates])).collect();
            let now = "2026-06-01T00:00:00Z".parse().unwrap();
            json!([objects, compiled.params(&Namespace::default(), [], now)]).to_string()
        };
        prop_assert_eq!(bytes(&profile.to_string()), bytes(&shuffled(&profile, order)));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

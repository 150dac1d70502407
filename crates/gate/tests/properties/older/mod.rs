//! The policies of another version answer as those of this tree: `cargo xtask compare --with path/of/its/palisade`.
//!
//! That version's `palisade render` says what a profile becomes there; this tree compiles the same profile. Then one
//! evaluator, this tree's, judges the same requests by both: match conditions, verdicts, violations, messages. All that
//! is not an expression must be equal as it is: what policies match, bindings, parameters of namespaces. What one of
//! them rejects, the other must reject. Policies for objects other than pods and workloads are not compared.
//!
//! - The fixtures of the catalogue, each by the profile of its check, as a pod and as the template of a Deployment.
//! - Random pods by random profiles, with exemptions, exceptions, checks of an admin's own, and namespaces whose
//!   parameters are other ones or wrong. `PALISADE_COMPARE_CASES` says how many pods, `PALISADE_COMPARE_SEED` which.
//!
//! `PALISADE_COMPARE_WITHOUT` names settings that the other version does not know, separated by commas: no profile has
//! them then, and they are printed, with the fixtures that need them.
//!
//! [`INTENDED`] lists the words that differ on purpose, and [`OTHER_VIOLATIONS`] the fixtures; nothing else may.
#![allow(clippy::disallowed_methods, reason = "it compares with a program that the environment names")]

mod binary;
mod cases;
mod versions;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fmt,
    str::FromStr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use palisade_api::{ToolSecurityProfile, catalogue};
use palisade_compiler::Compiled;
use palisade_gate::Decision;
use serde_json::Value as Json;

use binary::{Older, Rendered};
use cases::{Case, Random};
use versions::{Ask, PolicyAnswer, Version};

/// Words of messages that were changed on purpose: how they were, and how they are.
const INTENDED: &[(&str, &str)] = &[
    ("no whole number", "not a whole number"),
    (", which is not a whole number", ", must be an integer"),
    (", neither true nor false", ", must be true or false"),
    ("must not contain; allowed is ", "must not contain; must be "),
    ("without a slash at its end", "without a trailing slash"),
    ("a registry, or a path in one:", "a registry, or a path in a registry:"),
    (
        "letters, digits, and in between also dots, hyphens and underscores",
        "letters and digits, with dots, hyphens and underscores between them",
    ),
    (" are judged", " are allowed"),
    ("; only who has the verb ", "; this requires the verb "),
    (" may: ask an admin to do it or to grant that", ": ask an administrator to change it or to grant the verb"),
];

/// Fixtures with other violations on purpose: both versions must deny them.
const OTHER_VIOLATIONS: &[&str] =
    &["appArmorProfile: Unconfined in the pod, and in the annotation to which Kubernetes 1.33 copies it"];

/// How many profiles the other version renders at once.
const BATCH: usize = 5;

/// How many pods each random profile judges.
const PODS: usize = 50;

/// One of so many profiles that the other version accepts is tried by this tree's offline check, which takes as long as
/// the judging of a hundred pods. [`crate::properties::gate_accepts_every_satisfiable_profile`] is about it.
const TRIED: usize = 10;

/// How many differences are printed. All are counted.
const SHOWN: usize = 10;

fn variable<T: FromStr<Err: fmt::Debug>>(name: &str, otherwise: T) -> T {
    env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error:?}")))
}

fn without() -> Vec<String> {
    cases::paths(&variable("PALISADE_COMPARE_WITHOUT", String::new()))
}

/// What was compared.
#[derive(Default)]
struct Figures {
    profiles: u64,
    rejected: u64,
    /// How many of the accepted ones this tree's offline check was asked about.
    tried: u64,
    objects: u64,
    pods: u64,
    /// By what was asked: how often it was admitted, and denied.
    requests: BTreeMap<&'static str, [u64; 2]>,
    /// How many requests the cluster gives no verdict on, for the same reason with both.
    without_verdict: u64,
    violations: u64,
    /// The ids in violations, and all messages.
    ids: BTreeSet<String>,
    messages: BTreeSet<String>,
    /// How many policies have match conditions, of the other version and of this tree, and how many requests these leave
    /// out.
    conditional: [u64; 2],
    early: [u64; 2],
    differences: Vec<String>,
}

impl Figures {
    fn add(&mut self, other: Self) {
        self.profiles += other.profiles;
        self.rejected += other.rejected;
        self.tried += other.tried;
        self.objects += other.objects;
        self.pods += other.pods;
        for (what, counts) in other.requests {
            self.count(what, counts);
        }
        self.without_verdict += other.without_verdict;
        self.violations += other.violations;
        self.ids.extend(other.ids);
        self.messages.extend(other.messages);
        self.conditional = [self.conditional[0] + other.conditional[0], self.conditional[1] + other.conditional[1]];
        self.early = [self.early[0] + other.early[0], self.early[1] + other.early[1]];
        self.differences.extend(other.differences);
    }

    fn count(&mut self, what: &'static str, [admitted, denied]: [u64; 2]) {
        let counts = self.requests.entry(what).or_default();
        *counts = [counts[0] + admitted, counts[1] + denied];
    }

    /// Prints them, and fails if there is a difference.
    fn finish(self, what: &str, older: &Older) {
        println!(
            "{what}: {} profiles accepted ({} tried again) and {} rejected by both, {} objects compared, {} pods",
            self.profiles, self.tried, self.rejected, self.objects, self.pods
        );
        let mut all = [0, 0];
        for (what, [admitted, denied]) in &self.requests {
            println!(
                "  {what}: {} requests, {denied} denied ({} %), {admitted} admitted",
                admitted + denied,
                percent(*denied, *admitted)
            );
            all = [all[0] + admitted, all[1] + denied];
        }
        let [admitted, denied] = all;
        println!(
            "  together: {} requests, {denied} denied ({} %), {admitted} admitted",
            admitted + denied,
            percent(denied, admitted)
        );
        println!("  without a verdict of the cluster: {} requests", self.without_verdict);
        let of_catalogue = catalogue::ALL.iter().filter(|check| self.ids.contains(check.id)).count();
        let missing: Vec<_> =
            catalogue::ALL.iter().map(|check| check.id).filter(|id| !self.ids.contains(*id)).collect();
        println!(
            "  {} violations of {of_catalogue} of {} checks and {} other ids, {} distinct messages; not violated: {missing:?}",
            self.violations,
            catalogue::ALL.len(),
            self.ids.len() - of_catalogue,
            self.messages.len()
        );
        let [[policies_before, policies], [before, after]] = [self.conditional, self.early];
        println!(
            "  match conditions: the other version has them in {policies_before} policies, where they leave out {before} \
             requests; this tree in {policies}, and {after}"
        );
        println!("  {} differences", self.differences.len());
        for difference in self.differences.iter().take(SHOWN) {
            println!("{difference}");
        }
        if !self.differences.is_empty() {
            let path = older.keep("differences.txt", &self.differences.join("\n\n"));
            panic!("{} differences, all in {}", self.differences.len(), path.display());
        }
    }

    /// Compares what both versions make of a case. `tried`: this tree's offline check must accept what the other
    /// version's has accepted.
    fn compare(&mut self, case: &Case, older: Rendered, tried: bool) {
        let profile: ToolSecurityProfile = serde_json::from_value(case.profile.clone()).unwrap();
        let newer = compiled(&profile, older.is_err() || tried);
        self.tried += u64::from(tried);
        let (older, newer) = match (older, newer) {
            (Ok(older), Ok(newer)) => (older, newer),
            (Err(_), Err(_)) => {
                self.rejected += 1;
                return;
            }
            (Err(rejected), Ok(_)) => return self.differ(case, "rejected by the other version only", &rejected, ""),
            (Ok(_), Err(rejected)) => return self.differ(case, "rejected by this tree only", "", &rejected),
        };
        self.profiles += 1;
        let versions = [Version::new(&case.name, older), Version::new(&case.name, versions::objects(&newer, case))];
        let [older, newer] = &versions;
        for (count, version) in self.conditional.iter_mut().zip([older, newer]) {
            *count += version.conditional;
        }
        let keys: BTreeSet<_> = older.plain.keys().chain(newer.plain.keys()).collect();
        for key in keys {
            let [before, after] = [older, newer].map(|one| one.plain.get(key).map_or(String::new(), Json::to_string));
            self.objects += 1;
            if intended(&before) != after {
                self.differ(case, key, &before, &after);
            }
        }
        for subject in &case.pods {
            self.pods += 1;
            for ask in versions::asks(case, subject) {
                let said = versions.each_ref().map(|version| version.judge(case, subject.namespace, &ask));
                let [Some(before), Some(after)] = said else {
                    assert!(said.iter().all(Option::is_none), "both versions have the same policies: compared above");
                    continue;
                };
                self.judged(case, subject, &ask, &before, after);
            }
        }
        for (subject, what, [before, after]) in versions::in_clusters(case, &versions) {
            match after.split_once('(').map_or(after.as_str(), |(outcome, _)| outcome) {
                "Denied" => self.count("admission by a cluster", [0, 1]),
                "NoVerdict" => self.without_verdict += 1,
                _ => self.count("admission by a cluster", [1, 0]),
            }
            if intended(&before) != after {
                self.differ(case, &format!("{what} in a cluster\n{}: {}", subject.what, subject.pod), &before, &after);
            }
        }
    }

    fn judged(&mut self, case: &Case, subject: &cases::Subject, ask: &Ask, before: &PolicyAnswer, after: PolicyAnswer) {
        self.early[0] += u64::from(before.left_out);
        self.early[1] += u64::from(after.left_out);
        let [is, was] = [&after, before].map(|said| format!("{:?}", said.decision));
        if let Err(mistake) = &after.decision {
            return self.differ(case, &format!("{}: fails\n{}: {}", ask.what, subject.what, ask.object), &was, mistake);
        }
        let both_deny =
            matches!([&before.decision, &after.decision], [Ok(Decision::Deny { .. }), Ok(Decision::Deny { .. })]);
        if intended(&was) != is && !(both_deny && OTHER_VIOLATIONS.contains(&subject.what.as_str())) {
            return self.differ(case, &format!("{}\n{}: {}", ask.what, subject.what, ask.object), &was, &is);
        }
        match after.decision {
            Ok(Decision::Deny { message, violations, .. }) => {
                self.count(ask.what, [0, 1]);
                self.violations += violations.len() as u64;
                self.ids.extend(violations.into_iter().map(|violation| violation.check));
                self.messages.insert(message.replace(&case.name, ""));
            }
            _ => self.count(ask.what, [1, 0]),
        }
    }

    fn differ(&mut self, case: &Case, what: &str, before: &str, after: &str) {
        let difference = format!("{what}\n  before: {before}\n  now:    {after}\n  profile: {}", case.profile);
        self.differences.push(difference);
    }
}

fn percent(part: u64, rest: u64) -> u64 {
    100 * part / (part + rest).max(1)
}

/// A text of the other version, with the words of this tree.
fn intended(text: &str) -> String {
    INTENDED.iter().fold(text.to_owned(), |text, (before, after)| text.replace(before, after))
}

/// What this tree makes of a profile, if its offline check accepts that, or is not asked.
fn compiled(profile: &ToolSecurityProfile, checked: bool) -> Result<Compiled, String> {
    let compiled = palisade_compiler::compile(profile).map_err(|mistakes| format!("{mistakes:?}"))?;
    match checked.then(|| palisade_gate::check(compiled.clone())) {
        Some(Err(rejected)) => Err(rejected.to_string()),
        _ => Ok(compiled),
    }
}

/// Compares batches, as many at once as there are processors, while there is one: it is asked for by its index and by how
/// many pods were judged before.
fn batches(older: &Older, what: &str, batch: impl Fn(usize, u64) -> Option<Vec<Case>> + Sync) -> Figures {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Figures::default());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let judged = all.lock().unwrap_or_else(PoisonError::into_inner).pods;
            let Some(cases) = batch(index, judged) else { return };
            let mut figures = Figures::default();
            let rendered = older.render(&format!("{what}-{index}"), &cases);
            for (position, (case, rendered)) in cases.iter().zip(rendered).enumerate() {
                figures.compare(case, rendered, position % TRIED == 0);
            }
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.add(figures);
            println!("{what}: {} profiles, {} pods, {} differences", all.profiles, all.pods, all.differences.len());
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
#[ignore = "needs another version: cargo xtask compare --with path/of/its/palisade"]
fn the_policies_of_another_version_answer_to_all_fixtures_alike() {
    let (older, without) = (Older::new(), without());
    let (cases, left_out) = cases::of_fixtures(&without);
    println!(
        "compared with {}; without the settings {without:?}, and so without {left_out:?}",
        older.program().display()
    );
    let chunks: Vec<_> = cases.chunks(BATCH).map(<[Case]>::to_vec).collect();
    batches(&older, "fixtures", |index, _| chunks.get(index).cloned()).finish("fixtures", &older);
}

#[test]
#[ignore = "needs another version: cargo xtask compare --with path/of/its/palisade"]
fn the_policies_of_another_version_answer_to_random_pods_alike() {
    let (older, without) = (Older::new(), without());
    let (count, seed) = (variable("PALISADE_COMPARE_CASES", 10_000_u64), variable("PALISADE_COMPARE_SEED", 1_u64));
    println!(
        "compared with {}; {count} pods with the seed {seed}; without the settings {without:?}",
        older.program().display()
    );
    // Pods of rejected profiles are not judged, and do not count.
    let batch = |index: usize, judged: u64| {
        let batch = || Random::new(PODS, without.clone()).batch((seed << 32) + index as u64, BATCH);
        (judged < count).then(batch)
    };
    batches(&older, "random", batch).finish("random profiles and pods", &older);
}

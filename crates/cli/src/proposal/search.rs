//! Finds changes for the workloads that violate a profile, tries them, and ranks them by the number of admitted
//! workloads.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use k8s_openapi::jiff::Timestamp;
use palisade_api::settings::mutation::{Defaults, Engine};
use palisade_cel::Minor;
use palisade_kube_json::json::Change as _;
use serde_json::json;

use super::{
    cases::{Case, Found, Place},
    change::{Change, applied},
    table::{self, Row, Subject},
};
use crate::{
    evaluator::{Demand, ProfileEvaluator, REJECTED, Violation},
    namespaces::Tenant,
    offline,
    parallel::{parallel, threads},
    profiles::{self, Accepted},
    progress::Progress,
};

/// The maximum number of evaluations of an object: a change can reveal another violation.
const ROUNDS: usize = 4;
/// The setting that fixes pods with unset fields.
const DEFAULTS: &str = "mutation.defaults";
/// The maximum number of values of one list that are tried together: a profile can list at most 64.
const OF_A_LIST: usize = 24;

/// A change and its profile.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Owned {
    /// The name of the profile.
    pub profile: String,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

/// Changes to make together, and the additional workloads that they admit.
#[derive(Clone, Debug)]
pub struct Step {
    /// The changes.
    pub changes: Vec<Owned>,
    /// The workloads without violations after the changes.
    pub admits: Vec<Place>,
    /// The namespace, if only one of several namespaces needs the changes: an exception there allows less.
    pub only: Option<String>,
}

impl Step {
    /// Whether one of its changes has a caution.
    pub fn is_careful(&self) -> bool {
        self.only.is_some() || self.changes.iter().any(|one| !one.change.caution.is_empty())
    }
}

/// A workload that no proposed change admits.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its namespace and name.
    pub place: Place,
    /// Its violations.
    pub violations: Vec<Violation>,
    /// The reasons why no change is proposed.
    pub why: BTreeSet<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct Suggestions {
    /// The most helpful first.
    pub steps: Vec<Step>,
    /// Workloads that need a change by their owners.
    pub left: Vec<Left>,
    /// The number of workloads that further steps would admit. These steps are not shown and were not tried alone.
    pub more: usize,
}

/// Evaluates with changed profiles, at the stage Deny.
pub struct Trial<'a> {
    /// The profiles as they are.
    pub accepted: &'a [Accepted],
    /// The namespaces.
    pub tenants: &'a [Tenant],
    /// The version of the API server.
    pub version: Minor,
    /// The time.
    pub now: Timestamp,
    /// The evaluators of earlier changes.
    judges: RefCell<BTreeMap<Texts, Option<Rc<ProfileEvaluator>>>>,
}

/// Changes as text, each with its profile.
type Texts = BTreeSet<(String, String)>;
/// The indices of changes.
type Set = BTreeSet<usize>;

impl<'a> Trial<'a> {
    /// Prepares to try changes of these profiles in these namespaces.
    pub fn new(accepted: &'a [Accepted], tenants: &'a [Tenant], version: Minor, now: Timestamp) -> Self {
        Self { accepted, tenants, version, now, judges: RefCell::default() }
    }

    /// The evaluator of the profiles with changes. None if a changed profile is not accepted.
    fn judge(&self, changes: &[&Owned]) -> Option<Rc<ProfileEvaluator>> {
        let key: Texts = changes.iter().map(|one| (one.profile.clone(), one.change.to_string())).collect();
        if let Some(known) = self.judges.borrow().get(&key) {
            return known.clone();
        }
        let judge = self.compiled(changes).map(Rc::new);
        self.judges.borrow_mut().insert(key, judge.clone());
        judge
    }

    fn compiled(&self, changes: &[&Owned]) -> Option<ProfileEvaluator> {
        let mut accepted = Vec::new();
        for one in self.accepted {
            let of_profile = changes.iter().filter(|change| change.profile == one.checked.profile);
            let mut of_profile = of_profile.map(|change| &change.change).peekable();
            if of_profile.peek().is_none() {
                accepted.push(profiles::in_deny(&one.profile).ok()?);
                continue;
            }
            let changed = applied(&one.profile, of_profile)?;
            self.is_taken(&changed).then_some(())?;
            accepted.push(profiles::in_deny(&changed).ok()?);
        }
        ProfileEvaluator::new(&accepted, self.tenants, self.version, self.now).ok()
    }

    /// Whether the API server accepts a profile: the schema limits lists.
    fn is_taken(&self, profile: &palisade_api::ToolSecurityProfile) -> bool {
        let mut cluster = palisade_gate::cluster(self.version);
        let mut object = json!(profile);
        if let Some(metadata) = object.at_mut(&["metadata"]).as_object_mut() {
            metadata.retain(|key, _| key == "name");
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        offline::define(&mut cluster).is_ok() && cluster.apply(object).is_ok()
    }
}

/// An object with the results so far.
struct Tried<'a> {
    workload: usize,
    namespace: &'a str,
    case: &'a Case,
    violations: Vec<Violation>,
    needs: Set,
    /// The reasons why no change can admit it.
    stuck: BTreeSet<String>,
}

/// The changes so far.
#[derive(Default)]
struct Known {
    changes: Vec<Owned>,
    by_text: BTreeMap<(String, String), usize>,
}

impl Known {
    fn index(&mut self, profile: &str, change: Change) -> usize {
        let changes = &mut self.changes;
        *self.by_text.entry((profile.to_owned(), change.to_string())).or_insert_with(|| {
            changes.push(Owned { profile: profile.to_owned(), change });
            changes.len() - 1
        })
    }

    fn all(&self, set: &Set) -> Vec<&Owned> {
        set.iter().filter_map(|&index| self.changes.get(index)).collect()
    }

    fn is_careful(&self, set: &Set) -> bool {
        self.all(set).iter().any(|one| !one.change.caution.is_empty())
    }
}

/// Finds, tries and ranks changes; at most `most` steps.
pub fn search(
    trial: &Trial<'_>,
    judge: &ProfileEvaluator,
    found: &Found,
    most: usize,
    progress: &mut Progress,
) -> Suggestions {
    let places: Vec<_> = found.violating.keys().collect();
    let mut tried: Vec<Tried<'_>> = Vec::new();
    for (workload, ((namespace, _), cases)) in found.violating.iter().enumerate() {
        tried.extend(cases.iter().map(|case| Tried {
            workload,
            namespace,
            case,
            violations: case.violations.clone(),
            needs: Set::new(),
            stuck: BTreeSet::new(),
        }));
    }
    let mut known = Known::default();
    progress.show("changes", 0, None);
    defaults(trial, judge, &mut known, &mut tried);
    for round in 0..ROUNDS {
        progress.show("changes", round + 1, None);
        if !widen(trial, judge, &mut known, &mut tried) {
            break;
        }
    }
    // A workload needs the changes of all its objects.
    let mut needs: BTreeMap<usize, Option<Set>> = BTreeMap::new();
    for one in &tried {
        let of_workload = needs.entry(one.workload).or_insert_with(|| Some(Set::new()));
        let is_known = one.stuck.is_empty() && one.violations.is_empty();
        match of_workload {
            Some(set) if is_known => set.extend(&one.needs),
            _ => *of_workload = None,
        }
    }
    for (workload, set) in &mut needs {
        let is_judged = places.get(*workload).is_some_and(|place| !found.not_judged.contains_key(*place));
        if !is_judged || set.as_ref().is_some_and(BTreeSet::is_empty) {
            *set = None;
        }
    }
    let mut ranked = rank(trial, &known, &places, &mut tried, &mut needs, most);
    ranked.left = left(&places, &tried, &needs, found);
    ranked
}

/// Tries the defaults of each profile that sets none.
fn defaults(trial: &Trial<'_>, judge: &ProfileEvaluator, known: &mut Known, tried: &mut [Tried<'_>]) {
    let mut set = Set::new();
    for one in trial.accepted {
        let (name, mutation) = (&one.checked.profile, &one.profile.spec.mutation);
        let is_of_row = |violation: &Violation| {
            violation.profile == *name && table::row_of(&violation.check).is_some_and(|row| row.defaults)
        };
        let concerned = tried.iter().any(|one| one.violations.iter().any(is_of_row));
        if concerned && mutation.defaults == Defaults::None && mutation.engine != Engine::Off {
            set.insert(known.index(name, of_defaults(trial.version)));
        }
    }
    if set.is_empty() {
        return;
    }
    let Some(with_defaults) = trial.judge(&known.all(&set)) else { return };
    let of_profile = |index: usize| known.changes.get(index).map(|one| one.profile.as_str());
    let with_defaults = &*with_defaults;
    let judged = parallel(threads(), tried, |one| with_defaults.denials(one.case.kind, &one.case.object()));
    for (one, violations) in tried.iter_mut().zip(judged) {
        let Ok(violations) = violations else { continue };
        if violations.iter().any(|one| one.check == REJECTED && one.profile.is_empty()) {
            continue;
        }
        let count = |all: &[Violation], profile: Option<&str>| {
            all.iter().filter(|one| Some(one.profile.as_str()) == profile).count()
        };
        let helps =
            |index: &&usize| count(&violations, of_profile(**index)) < count(&one.violations, of_profile(**index));
        one.needs = set.iter().filter(helps).copied().collect();
        if !one.needs.is_empty() && judge.selects(one.namespace) {
            one.violations = violations;
        }
    }
}

fn of_defaults(version: Minor) -> Change {
    let who = if version >= Minor::V1_36 { "The API server" } else { "Palisade's webhook, which must be installed," };
    let allows = format!(
        "{who} sets the required values in pods that leave them unset. Only compliant pods are admitted. \
         Whether a program runs with these values, for example without root, is known only to its owner."
    );
    Change::set(DEFAULTS, "Secure", allows)
}

/// Finds changes for the remaining violations, and evaluates the objects with all of them. Whether a change was found.
fn widen(trial: &Trial<'_>, judge: &ProfileEvaluator, known: &mut Known, tried: &mut [Tried<'_>]) -> bool {
    let mut is_new = vec![false; tried.len()];
    for (one, is_new) in tried.iter_mut().zip(&mut is_new) {
        if one.violations.is_empty() || !one.stuck.is_empty() {
            continue;
        }
        let before = one.needs.len();
        let pod = one.case.pod();
        for violation in &one.violations {
            let demand = judge.demands(one.namespace).iter().find(|demand| demand.profile == violation.profile);
            match changes_for(demand, violation, &pod) {
                Ok(changes) => {
                    let indices = changes.into_iter().map(|change| known.index(&violation.profile, change));
                    one.needs.extend(indices.collect::<Vec<_>>());
                }
                Err(why) => drop(one.stuck.insert(format!("{}: {why}", violation.check))),
            }
        }
        *is_new = one.needs.len() > before && one.stuck.is_empty();
        if !*is_new && one.stuck.is_empty() {
            let why = |violation: &Violation| {
                let why =
                    table::row_of(&violation.check).map_or_else(|| table::why_not(&violation.check), |row| row.why_not);
                format!("{}: {why}", violation.check)
            };
            one.stuck = one.violations.iter().map(why).collect();
        }
    }
    if !is_new.contains(&true) {
        return false;
    }
    let set = most_needed(known, tried, &is_new);
    let together = trial.judge(&known.all(&set));
    let together = together.as_deref();
    let tries: Vec<_> =
        tried.iter().zip(&is_new).map(|(one, is_new)| (one, *is_new && one.needs.is_subset(&set))).collect();
    let judged = parallel(threads(), &tries, |(one, is_tried)| {
        let judge = together.filter(|_| *is_tried)?;
        Some(judge.denials(one.case.kind, &one.case.object()))
    });
    for ((one, judged), is_new) in tried.iter_mut().zip(judged).zip(is_new) {
        match judged {
            Some(Ok(violations)) => one.violations = violations,
            Some(Err(why)) => drop(one.stuck.insert(why)),
            None if is_new => {
                one.stuck.insert("it would need too many different changes to try all of them".to_owned());
            }
            None => {}
        }
    }
    true
}

/// Changes for a violation, or the reason why there is none.
fn changes_for(demand: Option<&Demand>, violation: &Violation, pod: &serde_json::Value) -> Result<Vec<Change>, String> {
    let Some(row) = table::row_of(&violation.check) else { return Err(table::why_not(&violation.check).to_owned()) };
    let Row { find: Some(find), why_not, .. } = row else { return Err(row.why_not.to_owned()) };
    let Some(Demand { settings, values, .. }) = demand else { return Err((*why_not).to_owned()) };
    match find(&Subject { settings, values, pod, message: &violation.message })? {
        found if found.is_empty() => Err((*why_not).to_owned()),
        found => Ok(found),
    }
}

/// The changes to try together: for each list, the values that most objects need.
fn most_needed(known: &Known, tried: &[Tried<'_>], is_new: &[bool]) -> Set {
    let mut count = BTreeMap::<usize, usize>::new();
    for (one, _) in tried.iter().zip(is_new).filter(|(one, _)| one.stuck.is_empty()) {
        one.needs.iter().for_each(|&index| *count.entry(index).or_default() += 1);
    }
    let mut by_list = BTreeMap::<(&str, &str), Vec<(usize, usize)>>::new();
    for (index, count) in count {
        let Some(Owned { profile, change }) = known.changes.get(index) else { continue };
        by_list.entry((profile.as_str(), change.path)).or_default().push((count, index));
    }
    let mut set = Set::new();
    for mut all in by_list.into_values() {
        all.sort_by_key(|&(count, index)| (std::cmp::Reverse(count), index));
        set.extend(all.into_iter().take(OF_A_LIST).map(|(_, index)| index));
    }
    set
}

/// Chooses step by step the changes that admit the most workloads per change, and tries each step with the previous
/// ones.
fn rank(
    trial: &Trial<'_>,
    known: &Known,
    places: &[&Place],
    tried: &mut [Tried<'_>],
    needs: &mut BTreeMap<usize, Option<Set>>,
    most: usize,
) -> Suggestions {
    let mut suggestions = Suggestions::default();
    let (mut chosen, mut done) = (Set::new(), BTreeSet::new());
    while let Some(added) = best(known, needs, &chosen, &done) {
        let with: Set = chosen.union(&added).copied().collect();
        let admits: Vec<_> = admitted(needs, &with, &done).collect();
        if suggestions.steps.len() == most {
            suggestions.more = needs.values().flatten().count() - done.len();
            break;
        }
        let judge = trial.judge(&known.all(&with));
        let mut admits_really = Vec::new();
        for workload in admits {
            let mut of_workload = tried.iter_mut().filter(|one| one.workload == workload);
            let complies = judge.as_ref().is_some_and(|judge| {
                of_workload.all(|one| {
                    let violations = judge.denials(one.case.kind, &one.case.object());
                    one.violations = violations.unwrap_or_default();
                    one.violations.is_empty()
                })
            });
            if complies {
                done.insert(workload);
                admits_really.extend(places.get(workload).map(|place| (*place).clone()));
            } else {
                needs.insert(workload, None);
            }
        }
        if !admits_really.is_empty() {
            let changes: Vec<_> = known.all(&added).into_iter().cloned().collect();
            let only = only(trial, &changes, &admits_really);
            suggestions.steps.push(Step { changes, admits: admits_really, only });
            chosen = with;
        }
    }
    suggestions
}

/// The namespace of the workloads, if it is one of several that would have to allow a value.
fn only(trial: &Trial<'_>, changes: &[Owned], admits: &[Place]) -> Option<String> {
    let (first, _) = admits.first()?;
    let is_one = admits.iter().all(|(namespace, _)| namespace == first);
    let widens = changes.iter().any(|one| one.change.path != DEFAULTS);
    let selected =
        |tenant: &&Tenant| trial.accepted.iter().any(|one| palisade_compiler::selects(&one.profile.spec, tenant));
    (is_one && widens && trial.tenants.iter().filter(selected).count() > 1).then(|| first.clone())
}

fn admitted<'a>(
    needs: &'a BTreeMap<usize, Option<Set>>,
    with: &'a Set,
    done: &'a BTreeSet<usize>,
) -> impl Iterator<Item = usize> + 'a {
    let is_admitted = move |(workload, set): (&usize, &Option<Set>)| {
        let set = set.as_ref().filter(|_| !done.contains(workload))?;
        set.is_subset(with).then_some(*workload)
    };
    needs.iter().filter_map(is_admitted)
}

/// The next changes. Those with a caution come last.
fn best(known: &Known, needs: &BTreeMap<usize, Option<Set>>, chosen: &Set, done: &BTreeSet<usize>) -> Option<Set> {
    let open = needs.iter().filter(|(workload, _)| !done.contains(workload)).filter_map(|(_, set)| set.as_ref());
    let sets: BTreeSet<Set> = open.map(|set| set.difference(chosen).copied().collect()).collect();
    let rated = sets.into_iter().map(|added| {
        let with = chosen.union(&added).copied().collect();
        let gain = admitted(needs, &with, done).count();
        // Workloads per change, in thousandths.
        let rate = gain * 1000 / added.len().max(1);
        (!known.is_careful(&added), rate, gain, std::cmp::Reverse(added))
    });
    rated.max().map(|(_, _, _, std::cmp::Reverse(added))| added)
}

/// The workloads that no change admits.
fn left(places: &[&Place], tried: &[Tried<'_>], needs: &BTreeMap<usize, Option<Set>>, found: &Found) -> Vec<Left> {
    let mut all = Vec::new();
    for (&workload, _) in needs.iter().filter(|(_, set)| set.is_none()) {
        let Some(place) = places.get(workload) else { continue };
        let of_workload = tried.iter().filter(|one| one.workload == workload);
        let (mut violations, mut why) = (BTreeSet::new(), BTreeSet::new());
        for one in of_workload {
            // Violations that a change fixes are not a reason.
            violations.extend(one.violations.iter().cloned());
            why.extend(one.stuck.iter().cloned());
        }
        why.extend(found.not_judged.get(*place).map(|why| format!("not evaluated: {why}")));
        if violations.is_empty() {
            violations
                .extend(found.violating.get(*place).into_iter().flatten().flat_map(|case| case.violations.clone()));
        }
        all.push(Left { place: (*place).clone(), violations: violations.into_iter().collect(), why });
    }
    all
}

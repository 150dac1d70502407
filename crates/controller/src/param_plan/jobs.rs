//! The parameters to write and delete: some at a time, in turn between the profiles, and urgent ones first.
//!
//! A hanging request, for example behind an admission webhook of another product, releases its slot after a second. The
//! controller does not cancel it: such a webhook may need half a minute to admit.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::namespace_plan::Write;
use crate::object_name::{NamespaceName, ProfileName};

/// How long a new generation of the profile waits for hanging requests.
const HANGING_REQUEST_PATIENCE: Duration = Duration::from_secs(5);

/// How urgent a job is, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A namespace has changed or is new, or its parameters were changed by another client.
    Urgent,
    /// One of all namespaces, after the profile has changed.
    Bulk,
    /// The job failed before.
    Retry,
}

impl Class {
    const ALL: [Self; 3] = [Self::Urgent, Self::Bulk, Self::Retry];
}

/// The work to do in a namespace.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    Write {
        write: Arc<Write>,
        /// True if they were right before: another writer has changed them.
        drifted: bool,
    },
    Delete,
}

/// How many jobs may run at the same time.
#[derive(Clone, Copy, Debug)]
struct Limit {
    of_profile: usize,
    of_all: usize,
    /// How many slow ones a profile may have in addition.
    slow: usize,
}

/// The jobs that wait, and those in progress.
#[derive(Debug)]
pub struct JobQueue {
    schedule: Mutex<Schedule>,
}

impl JobQueue {
    /// An empty queue.
    pub fn new(bulk: usize) -> Self {
        Self { schedule: Mutex::new(Schedule::new(bulk)) }
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the waiting jobs of a profile; those in progress go on.
    pub fn clear(&self, profile: &str) {
        self.lock().clear(profile);
    }

    /// Sets the job of a namespace, in place of the waiting one.
    pub fn set(&self, profile: &ProfileName, namespace: &NamespaceName, job: Option<(Class, Job)>) {
        self.lock().set(profile, namespace, job);
    }

    /// True if a profile has jobs, waiting or in progress.
    pub fn is_busy(&self, profile: &str) -> bool {
        self.lock().profiles.contains_key(profile)
    }

    /// Tells if a profile still waits for namespaces that were not tried yet.
    pub fn pending(&self, profile: &str) -> PendingWrites {
        self.lock().pending(profile)
    }

    /// Begins the next job, if the limits allow one. The caller reports its end with [`Self::ended`].
    pub fn begin(&self) -> Option<StartedJob> {
        self.lock().next()
    }

    /// A job takes long: it gives its place to the next one.
    pub fn is_slow(&self, profile: &ProfileName, namespace: &NamespaceName) {
        self.lock().is_slow(profile, namespace);
    }

    pub fn ended(&self, profile: &ProfileName, namespace: &NamespaceName) {
        self.lock().ended(profile, namespace);
    }
}

/// State of the namespaces that were not tried yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingWrites {
    Nothing,
    /// Some wait for their turn or an answer.
    Some,
    /// All were tried. Wait until then for outstanding responses.
    Until(Instant),
}

#[derive(Debug, PartialEq)]
pub struct StartedJob {
    pub profile: ProfileName,
    pub namespace: NamespaceName,
    /// The work to do.
    pub job: Job,
}

/// The waiting jobs and those in progress. It only decides; it does no I/O.
#[derive(Debug)]
struct Schedule {
    limits: [Limit; 3],
    profiles: BTreeMap<ProfileName, ProfileJobs>,
    /// How many jobs in progress are not slow, by class.
    running: [usize; 3],
    /// The profile that had the last turn, by class.
    last: [ProfileName; 3],
    /// A counter of jobs: within a class, they start in order of arrival.
    count: u64,
}

#[derive(Debug, Default)]
struct ProfileJobs {
    waiting: BTreeMap<NamespaceName, (Class, u64, Job)>,
    order: BTreeSet<(Class, u64, NamespaceName)>,
    under_way: BTreeMap<NamespaceName, UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    class: Class,
    since: Instant,
    slow: bool,
    job: Job,
}

impl ProfileJobs {
    fn take(&mut self, namespace: &NamespaceName) -> Option<(Class, Job)> {
        let (class, number, job) = self.waiting.remove(namespace)?;
        self.order.remove(&(class, number, namespace.clone()));
        Some((class, job))
    }

    fn count(&self, class: Class, slow: bool) -> usize {
        self.under_way.values().filter(|job| job.class == class && job.slow == slow).count()
    }

    /// The namespace of the next job of a class that can begin.
    fn next(&self, class: Class) -> Option<&NamespaceName> {
        let of_class = self.order.range((class, 0, NamespaceName::default())..).take_while(|(of, _, _)| *of == class);
        let mut names = of_class.map(|(_, _, namespace)| namespace);
        names.find(|namespace| !self.under_way.contains_key(*namespace))
    }
}

impl Schedule {
    fn new(bulk: usize) -> Self {
        let bulk = bulk.max(1);
        let limits = [
            Limit { of_profile: 8, of_all: 32, slow: 32 },
            Limit { of_profile: bulk, of_all: bulk.saturating_mul(4), slow: 32 },
            Limit { of_profile: 2, of_all: 16, slow: 8 },
        ];
        Self { limits, profiles: BTreeMap::new(), running: [0; 3], last: Default::default(), count: 0 }
    }

    fn clear(&mut self, profile: &str) {
        if let Some(jobs) = self.profiles.get_mut(profile) {
            jobs.waiting.clear();
            jobs.order.clear();
        }
        self.tidy(profile);
    }

    fn set(&mut self, profile: &ProfileName, namespace: &NamespaceName, job: Option<(Class, Job)>) {
        if job.is_none() && !self.profiles.contains_key(profile) {
            return;
        }
        let jobs = self.profiles.entry(profile.clone()).or_default();
        let before = jobs.waiting.get(namespace).map(|(class, number, _)| (*class, *number));
        jobs.take(namespace);
        // A job in progress does not begin twice.
        let same = |job: &Job| jobs.under_way.get(namespace).is_some_and(|under_way| under_way.job == *job);
        if let Some((class, job)) = job.filter(|(_, job)| !same(job)) {
            // It keeps its place.
            let (class, number) = before.filter(|(before, _)| *before <= class).unwrap_or_else(|| {
                self.count += 1;
                (class, self.count)
            });
            jobs.order.insert((class, number, namespace.clone()));
            jobs.waiting.insert(namespace.clone(), (class, number, job));
        }
        self.tidy(profile);
    }

    fn tidy(&mut self, profile: &str) {
        if self.profiles.get(profile).is_some_and(|jobs| jobs.waiting.is_empty() && jobs.under_way.is_empty()) {
            self.profiles.remove(profile);
        }
    }

    /// Begins the next job, if one may begin.
    fn next(&mut self) -> Option<StartedJob> {
        let profile = Class::ALL.into_iter().find_map(|class| Some((class, self.profile(class)?)));
        let (class, profile) = profile?;
        let jobs = self.profiles.get_mut(&profile)?;
        let namespace = jobs.next(class)?.clone();
        let (_, job) = jobs.take(&namespace)?;
        let under_way = UnderWay { class, since: Instant::now(), slow: false, job: job.clone() };
        jobs.under_way.insert(namespace.clone(), under_way);
        self.running[class as usize] += 1;
        self.last[class as usize].clone_from(&profile);
        Some(StartedJob { profile, namespace, job })
    }

    /// Whose turn it is.
    fn profile(&self, class: Class) -> Option<ProfileName> {
        let limit = self.limits[class as usize];
        if self.running[class as usize] >= limit.of_all {
            return None;
        }
        let may = |(_, jobs): &(&ProfileName, &ProfileJobs)| {
            jobs.count(class, false) < limit.of_profile
                && jobs.count(class, true) < limit.slow
                && jobs.next(class).is_some()
        };
        let last = &self.last[class as usize];
        let after = self.profiles.iter().filter(|(name, _)| *name > last);
        let mut turns = after.chain(self.profiles.iter().filter(|(name, _)| *name <= last));
        turns.find(may).map(|(name, _)| name.clone())
    }

    fn is_slow(&mut self, profile: &str, namespace: &str) {
        let under_way = self.profiles.get_mut(profile).and_then(|jobs| jobs.under_way.get_mut(namespace));
        if let Some(job) = under_way.filter(|job| !job.slow) {
            job.slow = true;
            self.running[job.class as usize] -= 1;
        }
    }

    fn ended(&mut self, profile: &str, namespace: &str) {
        let ended = self.profiles.get_mut(profile).and_then(|jobs| jobs.under_way.remove(namespace));
        if let Some(job) = ended.filter(|job| !job.slow) {
            self.running[job.class as usize] -= 1;
        }
        self.tidy(profile);
    }

    fn pending(&self, profile: &str) -> PendingWrites {
        let Some(jobs) = self.profiles.get(profile) else { return PendingWrites::Nothing };
        let mut waiting = jobs.order.iter().map(|(class, _, _)| *class);
        if waiting.any(|class| class != Class::Retry) {
            return PendingWrites::Some;
        }
        let fresh = jobs.under_way.values().filter(|job| job.class != Class::Retry);
        let until = fresh.map(|job| job.since + HANGING_REQUEST_PATIENCE).max();
        until.filter(|until| *until > Instant::now()).map_or(PendingWrites::Nothing, PendingWrites::Until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(schedule: &mut Schedule, profile: &str, namespaces: std::ops::Range<usize>, class: Class) {
        for namespace in namespaces {
            let namespace = NamespaceName::new(format!("n{namespace}"));
            schedule.set(&ProfileName::new(profile), &namespace, Some((class, Job::Delete)));
        }
    }

    fn begin(schedule: &mut Schedule) -> Vec<String> {
        std::iter::from_fn(|| schedule.next()).map(|begun| format!("{}/{}", begun.profile, begun.namespace)).collect()
    }

    #[tokio::test]
    async fn profiles_take_turns_and_urgent_jobs_come_first() {
        let mut schedule = Schedule::new(1);
        put(&mut schedule, "a", 0..3000, Class::Bulk);
        put(&mut schedule, "b", 0..2, Class::Bulk);
        assert_eq!(begin(&mut schedule), ["a/n0", "b/n0"]);
        put(&mut schedule, "a", 9999..10_000, Class::Urgent);
        assert_eq!(begin(&mut schedule), ["a/n9999"]);
        schedule.ended("a", "n0");
        assert_eq!(begin(&mut schedule), ["a/n1"]);
        schedule.ended("b", "n0");
        schedule.ended("a", "n1");
        assert_eq!(begin(&mut schedule), ["b/n1", "a/n2"]);
    }

    #[tokio::test]
    async fn hanging_jobs_free_their_slots_up_to_a_limit() {
        let mut schedule = Schedule::new(1);
        put(&mut schedule, "a", 0..100, Class::Bulk);
        let mut hung = 0;
        while let Some(begun) = schedule.next() {
            schedule.is_slow("a", &begun.namespace);
            hung += 1;
        }
        assert_eq!(hung, 32);
        // The other profile has all its places.
        put(&mut schedule, "b", 0..100, Class::Urgent);
        assert_eq!(begin(&mut schedule).len(), 8);
        schedule.ended("a", "n0");
        assert_eq!(begin(&mut schedule), ["a/n32"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_generation_waits_for_untried_namespaces_but_not_forever() {
        let mut schedule = Schedule::new(1);
        assert_eq!(schedule.pending("a"), PendingWrites::Nothing);
        put(&mut schedule, "a", 0..2, Class::Bulk);
        assert_eq!(begin(&mut schedule), ["a/n0"]);
        assert_eq!(schedule.pending("a"), PendingWrites::Some);
        schedule.is_slow("a", "n0");
        assert_eq!(begin(&mut schedule), ["a/n1"]);
        schedule.ended("a", "n1");
        assert_eq!(schedule.pending("a"), PendingWrites::Until(Instant::now() + HANGING_REQUEST_PATIENCE));
        tokio::time::advance(HANGING_REQUEST_PATIENCE).await;
        assert_eq!(schedule.pending("a"), PendingWrites::Nothing);
        put(&mut schedule, "a", 7..8, Class::Retry);
        assert_eq!(schedule.pending("a"), PendingWrites::Nothing);
    }

    #[tokio::test]
    async fn namespace_has_one_write_at_a_time_and_latest_job_wins() {
        let mut schedule = Schedule::new(4);
        put(&mut schedule, "a", 0..1, Class::Bulk);
        assert_eq!(begin(&mut schedule), ["a/n0"]);
        // The same again is not a job; another one waits for it.
        put(&mut schedule, "a", 0..1, Class::Bulk);
        assert_eq!(
            schedule.pending("a"),
            PendingWrites::Until(schedule.profiles["a"].under_way["n0"].since + HANGING_REQUEST_PATIENCE)
        );
        let params = crate::watch::json_box::JsonBox::new(&palisade_api::ToolSecurityParamsSpec::default());
        let write = Arc::new(Write { params, observed: None });
        schedule.set(
            &ProfileName::new("a"),
            &NamespaceName::new("n0"),
            Some((Class::Urgent, Job::Write { write, drifted: false })),
        );
        assert_eq!(begin(&mut schedule), Vec::<String>::new());
        schedule.ended("a", "n0");
        assert_eq!(begin(&mut schedule), ["a/n0"]);
        schedule.ended("a", "n0");
        assert!(schedule.profiles.is_empty() && schedule.running == [0; 3]);
    }
}

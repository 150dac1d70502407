//! What happened when, and what was wrong.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::File,
    io::Write as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{Result, schedule::Fault};

/// How much of the time line is shown before and after what was wrong.
const AROUND: Duration = Duration::from_secs(20);

/// Something that must never be.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) at: Duration,
    pub(crate) what: String,
}

/// All that happened, in order.
pub(crate) struct Timeline {
    begin: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    events: Vec<(Duration, String)>,
    findings: Vec<Finding>,
    faults: BTreeMap<&'static str, usize>,
    /// How often a controller began to lead.
    leaders: usize,
    late: usize,
    /// How long it took until what somebody had tampered with was restored.
    repairs: Vec<(Duration, String)>,
}

impl Timeline {
    /// An empty one, also written to a file.
    pub(crate) fn new(file: &Path) -> Result<Self> {
        let inner = Inner {
            file: File::create(file)?,
            events: Vec::new(),
            findings: Vec::new(),
            faults: BTreeMap::new(),
            leaders: 0,
            late: 0,
            repairs: Vec::new(),
        };
        Ok(Self { begin: Instant::now(), inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long ago all began.
    pub(crate) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Something happened.
    pub(crate) fn note(&self, what: impl Into<String>) {
        let (at, what) = (self.now(), what.into());
        println!("{:>7.1} s  {what}", at.as_secs_f64());
        let mut inner = self.inner();
        // Without a file the run is worth as much.
        let _ = writeln!(inner.file, "{:.3}\t{what}", at.as_secs_f64());
        inner.events.push((at, what));
    }

    pub(crate) fn fault(&self, fault: &Fault) {
        *self.inner().faults.entry(fault.kind()).or_default() += 1;
        self.note(fault.to_string());
    }

    /// Something that must never be.
    pub(crate) fn finding(&self, what: impl Into<String>) {
        let what = what.into();
        self.note(format!("WRONG: {what}"));
        let at = self.now();
        self.inner().findings.push(Finding { at, what });
    }

    /// Something did not happen as soon as somebody looked for it.
    pub(crate) fn late(&self, what: &str) {
        self.inner().late += 1;
        self.note(format!("LATE: {what}"));
    }

    /// How often that was.
    pub(crate) fn lates(&self) -> usize {
        self.inner().late
    }

    /// Something was restored.
    pub(crate) fn repaired(&self, what: String, took: Duration) {
        self.note(format!("{what} was restored after {:.1} s", took.as_secs_f64()));
        self.inner().repairs.push((took, what));
    }

    pub(crate) fn leads(&self, who: &str) {
        self.inner().leaders += 1;
        self.note(format!("{who} leads"));
    }

    /// How often a controller began to lead.
    pub(crate) fn leaders(&self) -> usize {
        self.inner().leaders
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.inner().findings.clone()
    }

    /// How many faults of each kind there were.
    pub(crate) fn faults(&self) -> BTreeMap<&'static str, usize> {
        self.inner().faults.clone()
    }

    /// What was restored, the slowest first.
    pub(crate) fn repairs(&self) -> Vec<(Duration, String)> {
        let mut repairs = self.inner().repairs.clone();
        repairs.sort_by(|one, other| other.cmp(one));
        repairs
    }

    /// What happened around a time.
    pub(crate) fn around(&self, at: Duration) -> String {
        let mut text = String::new();
        for (when, what) in &self.inner().events {
            if when.abs_diff(at) <= AROUND {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{:>9.1} s  {what}", when.as_secs_f64());
            }
        }
        text
    }
}

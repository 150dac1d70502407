//! The figures of a run: as JSON, and as a table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    timeline::{Finding, Timeline},
    watch::{Sort, Tally},
};

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) faults: BTreeMap<&'static str, usize>,
    pub(crate) probes: BTreeMap<Sort, Tally>,
    pub(crate) namespaces_created: usize,
    pub(crate) namespaces_at_the_end: usize,
    pub(crate) repairs: usize,
    /// How often something was not restored or removed within a minute, while things were broken.
    pub(crate) late: usize,
    /// In seconds, with what was repaired.
    pub(crate) longest_repair: Option<(f64, String)>,
    /// How often a controller began to lead, before the comparison.
    pub(crate) leaders: usize,
    /// How long it took until all was in order after the last fault, in seconds.
    pub(crate) converged: Option<f64>,
    /// How long it took after that until all deleted namespaces were gone, in seconds.
    pub(crate) emptied: Option<f64>,
    /// How many objects were compared with those of a fresh controller.
    pub(crate) compared: usize,
    /// How often each program was started.
    pub(crate) starts: BTreeMap<String, usize>,
    pub(crate) wrong: Vec<String>,
}

impl Report {
    pub(crate) fn new(seed: u64, seconds: u64) -> Self {
        Self {
            seed,
            seconds,
            faults: BTreeMap::new(),
            probes: BTreeMap::new(),
            namespaces_created: 0,
            namespaces_at_the_end: 0,
            repairs: 0,
            late: 0,
            longest_repair: None,
            leaders: 0,
            converged: None,
            emptied: None,
            compared: 0,
            starts: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }

    /// What the time line knows.
    pub(crate) fn take(&mut self, timeline: &Timeline) {
        (self.faults, self.late) = (timeline.faults(), timeline.lates());
        let repairs = timeline.repairs();
        self.repairs = repairs.len();
        self.longest_repair = repairs.into_iter().next().map(|(took, what)| (took.as_secs_f64(), what));
        self.wrong = timeline.findings().into_iter().map(|Finding { what, .. }| what).collect();
    }

    pub(crate) fn table(&self) -> String {
        let mut lines = vec![format!("seed {}, {} s", self.seed, self.seconds)];
        let mut line = |what: &str, value: String| lines.push(format!("  {what:<44} {value}"));
        line("faults", self.faults.values().sum::<usize>().to_string());
        for (kind, count) in &self.faults {
            line(&format!("  {kind}"), count.to_string());
        }
        for (sort, tally) in &self.probes {
            line(&format!("{sort:?} requests (of which not dry runs)"), format!("{} ({})", tally.sent, tally.for_real));
            line("  admitted", tally.admitted.to_string());
            line("  denied", tally.denied.to_string());
            line("  denied, as parameters cannot be read", tally.closed.to_string());
            line("  without an answer", tally.unanswered.to_string());
            for (reason, count) in &tally.reasons {
                line(&format!("    {reason}"), count.to_string());
            }
            line("  longest without an answer", format!("{:.1} s", tally.longest_without_answer));
        }
        line(
            "namespaces created, and there in the end",
            format!("{}, {}", self.namespaces_created, self.namespaces_at_the_end),
        );
        let longest = self.longest_repair.as_ref();
        line(
            "tampering restored, the longest after",
            format!(
                "{}, {}",
                self.repairs,
                longest.map_or("-".to_owned(), |(took, what)| format!("{took:.1} s ({what})"))
            ),
        );
        line("not restored or removed within a minute", self.late.to_string());
        line("leaders, one after the other", self.leaders.to_string());
        for (program, starts) in &self.starts {
            line(&format!("starts of {program}"), starts.to_string());
        }
        let seconds = |took: Option<f64>| took.map_or("never".to_owned(), |took| format!("{took:.1} s"));
        line("in order after the last fault", seconds(self.converged));
        line("deleted namespaces gone after that", seconds(self.emptied));
        line("objects equal to those of a fresh controller", self.compared.to_string());
        line("wrong", self.wrong.len().to_string());
        lines.join("\n") + "\n"
    }
}

//! Attacks, what must come of them, and the table of what came of them.

use std::{fmt::Write as _, time::Duration};

use futures::{StreamExt, stream};
use kube::Client;
use palisade_tests::{features_of, is_lost};
use serde_json::Value as Json;

use crate::{
    lacking,
    wire::{Answer, Request, send},
};

/// How many requests are under way at once.
const CONCURRENCY: usize = 8;
/// How many wrong answers a failure prints.
const SHOWN: usize = 25;

/// What must come of an attack.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    /// It is none: it complies, and must be admitted.
    Admitted,
    /// A generated policy denies it, with this in its text.
    Denied(String),
    /// The API server itself refuses it: by validation, by RBAC, or because there is no such thing.
    Refused,
    /// It is not admitted, whoever says so.
    Stopped,
    /// It may be admitted, but what the answer has at this JSON pointer is this.
    Ineffective(&'static str, Json),
}

impl Expect {
    /// A check of the catalogue denies it.
    pub(crate) fn check(id: &str) -> Self {
        Self::Denied(format!("[{id}]"))
    }
}

/// One attack, or one request that complies and that no rule against attacks may deny.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) how: Request,
    pub(crate) expect: Expect,
}

impl Attack {
    pub(crate) fn new(name: impl Into<String>, how: Request, expect: Expect) -> Self {
        Self { name: name.into(), how, expect }
    }
}

/// A time in which enforcement is known to be open: somebody with the right to do so took it away, and it is not back.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) what: String,
    pub(crate) length: Duration,
    pub(crate) tried: usize,
    pub(crate) admitted: usize,
}

/// What came of the attacks of one kind.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Requests.
    pub(crate) tried: usize,
    /// Denied by a generated policy.
    pub(crate) denied: usize,
    /// Refused by the API server itself.
    pub(crate) refused: usize,
    /// Admitted, as they should be.
    pub(crate) admitted: usize,
    /// Hostile, and admitted.
    pub(crate) holes: Vec<String>,
    /// Complying, and denied.
    pub(crate) wronged: Vec<String>,
    /// Stopped, but not by what was to stop them; and everything else that was not as it should be.
    pub(crate) other: Vec<String>,
    /// Not tried, because the API server lacks the feature of a field and would remove the field.
    pub(crate) without: usize,
    /// Times in which enforcement was open, which no pod is counted for above.
    pub(crate) windows: Vec<Window>,
}

impl Tally {
    /// Counts the answer to an attack.
    pub(crate) fn count(&mut self, name: &str, expect: &Expect, answer: &Answer) {
        self.tried += 1;
        let said = || format!("{name}: {}", answer.short());
        match (expect, answer.is_admitted()) {
            (Expect::Admitted, true) => self.admitted += 1,
            (Expect::Admitted, false) => self.wronged.push(said()),
            (Expect::Ineffective(pointer, value), true) => {
                if answer.body.pointer(pointer).unwrap_or(&Json::Null) == value {
                    self.admitted += 1;
                } else {
                    self.holes.push(format!("{name}: {pointer} became {:?}", answer.body.pointer(pointer)));
                }
            }
            (_, true) => self.holes.push(said()),
            (Expect::Denied(text), false) => match answer.denial() {
                Some(denial) if denial.contains(text) => self.denied += 1,
                _ => self.other.push(format!("{} and not denied with {text}", said())),
            },
            (Expect::Refused, false) if answer.denial().is_some() => {
                self.other.push(format!("{} and not refused by the API server itself", said()));
            }
            // No answer at all is not a refusal.
            (_, false) if matches!(answer.status, 0 | 429 | 500..) => self.other.push(said()),
            (_, false) if answer.denial().is_some() => self.denied += 1,
            (_, false) => self.refused += 1,
        }
    }

    /// Counts something that is not a request: it must hold.
    pub(crate) fn must(&mut self, holds: bool, what: impl Into<String>) {
        if !holds {
            self.other.push(what.into());
        }
    }

    /// Adds what came of more attacks.
    pub(crate) fn add(&mut self, more: Self) {
        self.tried += more.tried;
        self.denied += more.denied;
        self.refused += more.refused;
        self.admitted += more.admitted;
        self.holes.extend(more.holes);
        self.wronged.extend(more.wronged);
        self.other.extend(more.other);
        self.without += more.without;
        self.windows.extend(more.windows);
    }

    /// Whether it has more than answers that a server did not give.
    pub(crate) fn is_wrong(&self) -> bool {
        !self.holes.is_empty() || !self.wronged.is_empty() || !self.other.iter().all(|one| is_lost(one))
    }

    /// What was not as it should be.
    fn failure(&self) -> Option<String> {
        let mut text = String::new();
        for (what, found) in [
            ("admitted although hostile", &self.holes),
            ("denied although complying", &self.wronged),
            ("not as it should be", &self.other),
        ] {
            if !found.is_empty() {
                let _ = write!(text, "\n{} {what}:", found.len());
                found.iter().take(SHOWN).for_each(|one| {
                    let _ = write!(text, "\n  {one}");
                });
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

/// The attacks of which the API server keeps all fields, and the number of the others.
fn effective(mut attacks: Vec<Attack>) -> (Vec<Attack>, usize) {
    let count = attacks.len();
    // A pod, or a patch of one.
    attacks.retain(|attack| {
        let body = serde_json::from_slice::<Json>(&attack.how.body);
        body.map_or(true, |body| lacking(&features_of(&body)).is_none())
    });
    let without = count - attacks.len();
    (attacks, without)
}

/// Makes the attacks, several at once, as a client.
pub(crate) async fn make(client: &Client, attacks: Vec<Attack>) -> Tally {
    let (attacks, without) = effective(attacks);
    let answers = stream::iter(attacks).map(|attack| async move {
        let answer = send(client, &attack.how).await;
        (attack, answer)
    });
    let mut tally = Tally { without, ..Tally::default() };
    let mut answers = answers.buffered(CONCURRENCY);
    while let Some((attack, answer)) = answers.next().await {
        tally.count(&attack.name, &attack.expect, &answer);
    }
    tally
}

/// Makes the attacks one after the other, where each changes what the next one finds.
pub(crate) async fn make_in_turn(client: &Client, attacks: Vec<Attack>) -> Tally {
    let (attacks, without) = effective(attacks);
    let mut tally = Tally { without, ..Tally::default() };
    for attack in attacks {
        let answer = send(client, &attack.how).await;
        tally.count(&attack.name, &attack.expect, &answer);
    }
    tally
}

/// What came of all kinds of attacks.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(String, Tally, Duration)>,
}

impl Report {
    /// Adds a kind.
    ///
    /// # Errors
    /// What was not as it should be.
    pub(crate) fn add(&mut self, kind: &str, tally: Tally, took: Duration) -> Result<(), String> {
        // A kind that tries nothing shows nothing.
        let empty = (tally.tried == 0).then(|| "nothing was tried".to_owned());
        let failure = tally.failure().or(empty);
        self.rows.push((kind.to_owned(), tally, took));
        failure.map_or(Ok(()), Err)
    }

    /// The table.
    pub(crate) fn print(&self) -> String {
        const HEAD: [&str; 9] =
            ["kind", "tried", "denied", "refused", "admitted", "HOSTILE ADMITTED", "COMPLYING DENIED", "OTHER", "time"];
        let mut total = Tally::default();
        let mut lines = vec![HEAD.map(str::to_owned)];
        let row = |kind: &str, tally: &Tally, took: Duration| {
            let counts = [
                tally.tried,
                tally.denied,
                tally.refused,
                tally.admitted,
                tally.holes.len(),
                tally.wronged.len(),
                tally.other.len(),
            ];
            let mut row = vec![kind.to_owned()];
            row.extend(counts.map(|count| count.to_string()));
            row.push(format!("{:.1} s", took.as_secs_f64()));
            row
        };
        let mut text = String::from("\n");
        let mut rows: Vec<Vec<String>> = self.rows.iter().map(|(kind, tally, took)| row(kind, tally, *took)).collect();
        for (_, tally, _) in &self.rows {
            total.tried += tally.tried;
            total.denied += tally.denied;
            total.refused += tally.refused;
            total.admitted += tally.admitted;
            total.holes.extend(tally.holes.iter().cloned());
            total.wronged.extend(tally.wronged.iter().cloned());
            total.other.extend(tally.other.iter().cloned());
        }
        rows.push(row("total", &total, self.rows.iter().map(|(.., took)| *took).sum()));
        rows.insert(0, lines.remove(0).to_vec());
        for row in rows {
            let _ = write!(text, "{:<24}", row[0]);
            for (cell, head) in row.iter().zip(HEAD).skip(1) {
                let _ = write!(text, " {cell:>width$}", width = head.len().max(8));
            }
            text.push('\n');
        }
        let without: usize = self.rows.iter().map(|(_, tally, _)| tally.without).sum();
        if without > 0 {
            let _ =
                writeln!(text, "\n{without} not tried: the API server lacks the feature of a field, and removes it");
        }
        let windows: Vec<_> = self.rows.iter().flat_map(|(_, tally, _)| &tally.windows).collect();
        if !windows.is_empty() {
            text.push_str("\nOpen for a time, because an admin took away what enforces, and counted apart:\n");
        }
        for Window { what, length, tried, admitted } in windows {
            let _ = writeln!(text, "  {what}: {length:.2?}, {admitted} of {tried} hostile pods admitted meanwhile");
        }
        text
    }
}

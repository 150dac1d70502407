//! Many expressions: how often both agree, and where they do not.

use std::{collections::BTreeMap, fmt};

use crate::{
    compare::{Aspect, Difference, Subject},
    lines::Line,
};

const KNOWN: &str = include_str!("../../../crates/cel/tests/known-differences.tsv");

/// Whether a difference is listed, with its reason, in `crates/cel/tests/known-differences.tsv`.
fn is_known(id: &str, what: &str) -> bool {
    KNOWN.lines().any(|line| {
        let mut fields = line.split('\t');
        fields.next() == Some(id) && fields.next() == Some(what)
    })
}

/// How often both agree.
#[derive(Clone, Debug, Default)]
struct Counts {
    expressions: usize,
    no_verdict: usize,
    /// Equal, and compared.
    aspects: BTreeMap<Aspect, (usize, usize)>,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.expressions += other.expressions;
        self.no_verdict += other.no_verdict;
        for (aspect, (equal, compared)) in &other.aspects {
            let count = self.aspects.entry(*aspect).or_default();
            count.0 += equal;
            count.1 += compared;
        }
    }
}

/// A difference, and its expression.
#[derive(Clone, Debug)]
pub struct Found {
    pub group: String,
    pub id: String,
    pub expr: String,
    /// How both differ.
    pub difference: Difference,
}

/// How often both agree, by groups of expressions, and where they do not.
#[derive(Debug, Default)]
pub struct Report {
    groups: Vec<(String, Counts)>,
    /// Differences that are not listed, or fail open; these first.
    pub unlisted: Vec<Found>,
    listed: usize,
    /// How many are mistakes of macros that cel-go finds behind a syntax error, and names first.
    recovered: usize,
    /// How many expressions the API server's code did not evaluate in time.
    unfinished: usize,
}

impl Report {
    /// Compares the expressions of a file or of a minor.
    pub fn compare(&mut self, group: &str, subject: &mut Subject, lines: &[Line], by_category: bool) {
        let mut categories: BTreeMap<&str, Counts> = BTreeMap::new();
        for line in lines {
            let comparison = subject.compare(line);
            let counts = categories.entry(if by_category { line.category() } else { "" }).or_default();
            counts.expressions += 1;
            counts.no_verdict += usize::from(comparison.no_verdict);
            self.unfinished += usize::from(line.answer.unfinished);
            for (aspect, equal) in comparison.compared {
                let count = counts.aspects.entry(aspect).or_default();
                count.0 += usize::from(equal);
                count.1 += 1;
            }
            for difference in comparison.differences {
                // Texts of rejections are counted, and not promised. Of the golden files, the rest is listed one by one.
                let counted = match difference.what {
                    "text" => true,
                    "no verdict" => !by_category,
                    "recovery" if !by_category => {
                        self.recovered += 1;
                        true
                    }
                    _ => false,
                };
                if counted {
                    continue;
                }
                if difference.fail_open || !is_known(&line.id, difference.what) {
                    let (id, expr) = (line.id.clone(), line.expr.clone());
                    self.unlisted.push(Found { group: group.to_owned(), id, expr, difference });
                } else {
                    self.listed += 1;
                }
            }
        }
        self.groups.extend(categories.into_iter().map(|(category, counts)| (format!("{group} {category}"), counts)));
        self.unlisted.sort_by_key(|found| !found.difference.fail_open);
    }

    /// How many expressions were compared.
    pub fn expressions(&self) -> usize {
        self.groups.iter().map(|(_, counts)| counts.expressions).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.groups.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        write!(f, "{:width$} {:>11}", "", "expressions")?;
        for aspect in Aspect::ALL {
            write!(f, " {:>12}", format!("{aspect:?}").to_lowercase())?;
        }
        writeln!(f, " {:>10}", "no verdict")?;
        let mut total = Counts::default();
        for (name, counts) in &self.groups {
            write!(f, "{name:width$} {:>11}", counts.expressions)?;
            for aspect in Aspect::ALL {
                let (equal, compared) = counts.aspects.get(&aspect).copied().unwrap_or_default();
                let cell = if compared == 0 { "-".to_owned() } else { format!("{equal}/{compared}") };
                write!(f, " {cell:>12}")?;
            }
            writeln!(f, " {:>10}", counts.no_verdict)?;
            total.add(counts);
        }
        write!(f, "{:width$} {:>11}", "total", total.expressions)?;
        for aspect in Aspect::ALL {
            let (equal, compared) = total.aspects.get(&aspect).copied().unwrap_or_default();
            let cell = if compared == 0 { "-".to_owned() } else { percent(equal, compared) };
            write!(f, " {cell:>12}")?;
        }
        writeln!(f, " {:>10}", total.no_verdict)?;
        for (count, what) in [
            (self.recovered, "differences in what comes first, a syntax error or a mistake of a macro behind it"),
            (self.unfinished, "expressions not evaluated, as the API server's code took too long"),
        ] {
            if count > 0 {
                writeln!(f, "{count} {what}")?;
            }
        }
        writeln!(f, "{} differences listed, {} not listed or failing open", self.listed, self.unlisted.len())?;
        for Found { group, id, expr, difference } in &self.unlisted {
            let direction = if difference.fail_open { "FAILS OPEN " } else { "" };
            writeln!(f, "\n{direction}{} {group} {id}: {expr} {}", difference.what, difference.detail)?;
        }
        Ok(())
    }
}

/// Rounded down, so that 100% is all.
fn percent(part: usize, of: usize) -> String {
    let thousandths = part * 100_000 / of;
    format!("{}.{:03}%", thousandths / 1000, thousandths % 1000)
}

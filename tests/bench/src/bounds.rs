//! Bounds of ratios: far enough above the measured ones to leave room for a shared machine, and below those without the
//! fast path.

use crate::{measure::Figures, report::rows};

/// The most that the median ratio of an arm may be.
const MOST: &[(&str, f64)] =
    &[("tool-palisade", 1.7), ("restricted-palisade", 1.6), ("label-palisade", 1.6), ("scale-palisade", 1.6)];

/// The ratios that are beyond their bounds.
pub(crate) fn beyond(all: &[Figures]) -> Vec<String> {
    let rows = rows(all);
    MOST.iter()
        .filter_map(|(name, most)| {
            let Some(row) = rows.iter().find(|row| row.name == *name) else {
                return Some(format!("{name} was not measured"));
            };
            let [ratio, ..] = row.ratio?;
            (ratio > *most).then(|| format!("{}: {ratio:.2} times what is not judged; the bound is {most}", row.about))
        })
        .collect()
}

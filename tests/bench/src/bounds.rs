//! Bounds of ratios that a short run on a shared machine can hold. Pods that comply and are judged in full are beyond them,
//! and noise is not. Updates cost too little either way to tell: their bounds catch only what is far worse.

use crate::{
    measure::Figures,
    report::{ratios, rows},
};

/// The most that a quarter of the rounds of an arm must keep to. Rounds of one run range from 0.9 to 1.6 around a median of
/// 1.2, and those without the fast path from 1.6 to 3 around 2.
const MAX_RATIOS: &[(&str, f64)] =
    &[("tool-palisade", 1.6), ("restricted-palisade", 1.5), ("label-palisade", 1.8), ("scale-palisade", 1.8)];

/// The most CPU that the level Restricted may take, compared with Pod Security Admission: medians.
const MAX_OF_PSA: f64 = 1.8;

/// The arms that are beyond their bounds, each with its figures.
pub(crate) fn beyond(all: &[Figures]) -> Vec<String> {
    let median = |name: &str| rows(all).into_iter().find(|row| row.name == name).map(|row| row.cpu[0]);
    let of_psa = match (median("restricted-palisade"), median("restricted-psa")) {
        (Some(palisade), Some(psa)) if palisade <= psa * MAX_OF_PSA => None,
        (Some(palisade), Some(psa)) => Some(format!(
            "the level Restricted takes {palisade:.2} ms and Pod Security Admission {psa:.2}; the bound is {MAX_OF_PSA} times"
        )),
        _ => Some("Pod Security Admission was not measured".to_owned()),
    };
    MAX_RATIOS.iter()
        .filter_map(|(name, most)| {
            let Some(figures) = all.iter().find(|figures| figures.name == *name) else {
                return Some(format!("{name} was not measured"));
            };
            let mut rounds = ratios(figures)?;
            rounds.sort_by(f64::total_cmp);
            let quartile = rounds[rounds.len() / 4];
            let about = &figures.about;
            (quartile > *most)
                .then(|| format!("{about}: three of four rounds cost over {quartile:.2} times what is not judged; the bound is {most}"))
        })
        .chain(of_psa)
        .collect()
}

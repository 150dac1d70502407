//! Ranges of ids and ports, lowered to CEL, and numbers in them and outside of them.

use crate::{Diagnostic, Integer, Lowering, Resolve, Values, cel, settings::Range};

/// Ranges, lowered to CEL.
pub(crate) struct Ranges {
    bounds: Vec<(String, String)>,
}

impl Ranges {
    pub(crate) fn lower(cx: &mut Lowering<'_>, path: &str, ranges: &[Range]) -> Self {
        let bounds = ranges
            .iter()
            .enumerate()
            .map(|(index, range)| {
                if let (Integer::Constant(min), Integer::Constant(max)) = (&range.min, &range.max)
                    && min > max
                {
                    cx.report(Diagnostic::new(
                        format!("{path}[{index}]"),
                        format!("min {min} is greater than max {max}"),
                    ));
                }
                (
                    cx.integer(&format!("{path}[{index}].min"), &range.min),
                    cx.integer(&format!("{path}[{index}].max"), &range.max),
                )
            })
            .collect();
        Self { bounds }
    }

    /// CEL of type bool: whether the int `number` is in a range.
    pub(crate) fn contain(&self, number: &str) -> String {
        let terms: Vec<_> = self
            .bounds
            .iter()
            .map(|(min, max)| {
                if min == max {
                    format!("{number} == {min}")
                } else {
                    format!("({number} >= {min} && {number} <= {max})")
                }
            })
            .collect();
        cel::any(&terms)
    }

    /// CEL of type string that names the ranges: `1-65535, 70000`.
    pub(crate) fn says(&self) -> String {
        if self.bounds.is_empty() {
            return cel::quote("none");
        }
        let mut text = String::new();
        let mut parts = Vec::new();
        for (index, (min, max)) in self.bounds.iter().enumerate() {
            if index > 0 {
                text.push_str(", ");
            }
            let ends = if min == max { vec![min] } else { vec![min, max] };
            for (end_index, end) in ends.into_iter().enumerate() {
                if end_index > 0 {
                    text.push('-');
                }
                if end.parse::<i64>().is_ok() {
                    text.push_str(end);
                } else {
                    parts.push(cel::quote(&std::mem::take(&mut text)));
                    parts.push(format!("string({end})"));
                }
            }
        }
        parts.push(cel::quote(&text));
        cel::concat(&parts)
    }
}

/// The lowest number in the first range.
pub(crate) fn first(ranges: &[Range], values: &Values) -> Option<i64> {
    ranges.first().map(|range| range.min.resolve(values))
}

/// A number in no range that the API server accepts as an id or a port, if there is one: not 0, which for a
/// port means none.
pub(crate) fn outside(ranges: &[Range], values: &Values, highest: i64) -> Option<i64> {
    let inside = |number: i64| {
        ranges.iter().any(|range| range.min.resolve(values) <= number && number <= range.max.resolve(values))
    };
    // Next to an end of a range, or at an end of all numbers. Beyond the ends of an int64 there is no number.
    let next = |range: &Range| [range.min.resolve(values).checked_sub(1), range.max.resolve(values).checked_add(1)];
    ranges
        .iter()
        .flat_map(next)
        .flatten()
        .chain([1, highest])
        .find(|&number| (1..=highest).contains(&number) && !inside(number))
}

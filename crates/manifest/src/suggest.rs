//! What may have been meant.

/// What may have been meant by `name`.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    let distance = |known: &str| strsim::osa_distance(&lower, &known.to_lowercase());
    // A name of any length may be in a file; the distance takes the product of the lengths.
    let nearest = if name.len() <= 64 { known.iter().copied().min_by_key(|known| distance(known)) } else { None };
    match nearest {
        Some(nearest) if distance(nearest) <= 1.max(name.chars().count() / 3) => format!("did you mean {nearest}?"),
        _ => format!("known here: {}", known.join(", ")),
    }
}

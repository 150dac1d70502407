//! Suggestions for misspelt names.

/// A suggestion for `name`, as the end of a message.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    let distance = |known: &str| strsim::osa_distance(&lower, &known.to_lowercase());
    // A file may have a name of any length, and the distance takes the product of the lengths.
    let nearest = if name.len() <= 64 { known.iter().copied().min_by_key(|known| distance(known)) } else { None };
    match nearest {
        Some(nearest) if distance(nearest) <= 1.max(name.chars().count() / 3) => format!("did you mean {nearest}?"),
        _ => format!("known here: {}", known.join(", ")),
    }
}

/// The known name that differs from `name` by the fewest letters, if by no more than `most`; the same name but for upper
/// and lower case differs by none.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>, most: usize) -> Option<&'k str> {
    let lower = name.to_lowercase();
    // A file may have a name of any length, and the distance takes the product of the lengths.
    let distance = |known: &str| {
        (known.len().abs_diff(lower.len()) <= most).then(|| strsim::osa_distance(&lower, &known.to_lowercase()))
    };
    let near = known.into_iter().filter_map(|known| Some((distance(known).filter(|far| *far <= most)?, known)));
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_a_near_match_is_suggested() {
        let known = ["apps", "policy", "admissionregistration.k8s.io"];
        assert_eq!(nearest("aadmissionregistration.k8s.io", known, 2), Some("admissionregistration.k8s.io"));
        assert_eq!(nearest("Policy", known, 0), Some("policy"));
        assert_eq!(nearest("audit.k8s.io", known, 2), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), known, 2), None);
    }
}

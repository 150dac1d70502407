//! The variables of a policy that its expressions read.

use std::collections::BTreeSet;

/// The variables that these texts (CEL that the compiler wrote) read, also through each other, in the same order. `parts`
/// gives the name and the expression of a variable, which reads only variables before it.
pub(crate) fn used<V, T: AsRef<str>>(
    variables: Vec<V>,
    parts: impl Fn(&V) -> (&str, &str),
    texts: impl IntoIterator<Item = T>,
) -> Vec<V> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for text in texts {
        names.extend(read(text.as_ref()).map(str::to_owned));
    }
    let mut kept = Vec::new();
    for one in variables.into_iter().rev() {
        let (name, expression) = parts(&one);
        if names.contains(name) {
            names.extend(read(expression).map(str::to_owned));
            kept.push(one);
        }
    }
    kept.reverse();
    kept
}

/// The names of the variables in a text. A string in it can add a name that the expression does not read.
fn read(text: &str) -> impl Iterator<Item = &str> {
    text.split("variables.").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_followed_through_each_other() {
        let all = vec![
            ("spec", "object.spec"),
            ("specs", "[object.spec]"),
            ("hidden", "variables.specs"),
            ("volumes", "variables.spec.?volumes.orValue([])"),
            ("found", "variables.volumes.map(v, v.name)"),
        ];
        let kept = |texts: &[&str]| {
            let kept = used(all.clone(), |(name, text)| (*name, *text), texts);
            kept.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(kept(&["variables.found.size() == 0"]), ["spec", "volumes", "found"]);
        assert_eq!(kept(&["variables.specs == []", "true"]), ["specs"]);
        assert_eq!(kept(&["variables.hidden"]), ["specs", "hidden"]);
        assert!(kept(&[]).is_empty());
    }
}

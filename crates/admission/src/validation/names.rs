//! The forms of names (`k8s.io/apimachinery/pkg/api/validate/content`). Each function returns the errors in one.

use palisade_cel::Minor;

const SUBDOMAIN_MAX: usize = 253;
const LABEL_MAX: usize = 63;
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";

/// How lengths are counted in texts.
#[derive(Clone, Copy)]
enum Unit {
    Characters,
    Bytes,
}

impl Unit {
    /// Of keys and values of labels, and of what they are made of: other words since 1.35.
    fn of_labels(minor: Minor) -> Self {
        if minor < Minor::V1_35 { Self::Characters } else { Self::Bytes }
    }
}

/// A name that is the beginning of one, as it may end in a dash (`maskTrailingDash`).
pub(crate) fn masked(prefix: &str) -> String {
    match prefix.strip_suffix('-').filter(|shorter| !shorter.is_empty()) {
        Some(shorter) => {
            let mut chars = shorter.chars();
            chars.next_back();
            format!("{}a", chars.as_str())
        }
        None => prefix.to_owned(),
    }
}

/// A DNS subdomain: the name of most objects.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    subdomain_in(name, Unit::Characters)
}

fn subdomain_in(name: &str, unit: Unit) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN_MAX, unit);
    if !name.split('.').all(is_label) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// A DNS label: the names of namespaces, containers and volumes.
pub(crate) fn label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_MAX, Unit::Characters);
    if name.contains('.') && name.split('.').all(is_label) {
        wrong.push("must not contain dots".to_owned());
    } else if !is_label(name) {
        wrong.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

/// A DNS label that begins with a letter: versions, kinds in lower case.
pub(crate) fn label_1035(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_MAX, Unit::Characters);
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        wrong.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

/// A qualified name: keys of labels and annotations, names of match conditions.
pub(crate) fn qualified(minor: Minor, name: &str) -> Vec<String> {
    let examples =
        format!("{KEY_MESSAGE} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY}')");
    let (mut wrong, unit) = (Vec::new(), Unit::of_labels(minor));
    let parts: Vec<&str> = name.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain_in(prefix, unit).into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => {
            // Kubernetes 1.35 has other words for it.
            let what = if minor < Minor::V1_35 { "qualified name" } else { "valid label key" };
            let with = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a {what} {examples} {with}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else {
        wrong.extend(too_long(name, LABEL_MAX, unit).into_iter().map(|text| format!("name part {text}")));
    }
    if !is_key(name) {
        wrong.push(format!("name part {examples}"));
    }
    wrong
}

/// The value of a label.
pub(crate) fn label_value(minor: Minor, value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_MAX, Unit::of_labels(minor));
    if !value.is_empty() && !is_key(value) {
        wrong.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
             for validation is '({KEY})?')"
        ));
    }
    wrong
}

/// A name that can be a segment of an API path.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|part| name.contains(**part)).map(|part| format!("may not contain '{part}'")).collect()
}

fn too_long(name: &str, most: usize, unit: Unit) -> Vec<String> {
    let unit = match unit {
        Unit::Characters => "characters",
        Unit::Bytes => "bytes",
    };
    if name.len() > most { vec![format!("must be no more than {most} {unit}")] } else { vec![] }
}

fn is_label(label: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    framed(label, inner, |c| inner(c) || c == b'-')
}

fn is_key(name: &str) -> bool {
    framed(name, |c| c.is_ascii_alphanumeric(), |c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

/// Whether all characters are inner ones and the first and the last are of those that may stand there.
fn framed(text: &str, ends: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => ends(*only),
        [first, middle @ .., last] => ends(*first) && ends(*last) && middle.iter().all(|&c| inner(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for name in ["a", "a-b.c1", "1"] {
            assert_eq!(subdomain(name), Vec::<String>::new(), "{name}");
        }
        for name in ["", "A", "a..b", "-a", "a-", "a b", &"a".repeat(254)] {
            assert!(!subdomain(name).is_empty(), "{name}");
        }
        for name in ["a", "x/Y_z.1", "a.b/c"] {
            assert_eq!(qualified(Minor::DEFAULT, name), Vec::<String>::new(), "{name}");
        }
        for name in ["", "/", "/a", "a/", "A/b", "a b", "a/b/c", "_a", &"a".repeat(64)] {
            assert!(!qualified(Minor::DEFAULT, name).is_empty(), "{name}");
        }
        assert_eq!(
            qualified(Minor::DEFAULT, "/"),
            [
                "prefix part must be non-empty".to_owned(),
                "name part must be non-empty".to_owned(),
                format!(
                    "name part {KEY_MESSAGE} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY}')"
                ),
            ]
        );
        assert_eq!(path_segment("a/%"), ["may not contain '/'", "may not contain '%'"]);
        assert!(label_1035("1a").len() == 1 && label_1035("v1").is_empty());
        assert!(label_value(Minor::DEFAULT, "").is_empty() && !label_value(Minor::DEFAULT, "a b").is_empty());
        let long = "a".repeat(64);
        assert_eq!(label(&long), ["must be no more than 63 characters"]);
        assert_eq!(label_value(Minor::DEFAULT, &long), ["must be no more than 63 bytes"]);
        assert_eq!(label_value(Minor::V1_34, &long), ["must be no more than 63 characters"]);
        assert_eq!([masked("ab-"), masked("a-"), masked("-"), masked("a")], ["aa", "a", "-", "a"]);
    }
}

//! The meaning of the strings of a setting, and the values that a parameter in them must not have. Every user with
//! permission to change a namespace can set such a value. It must not widen the rest of the string: `/data/$tool` is
//! one directory below `/data`, and with the value `.` it would be `/data` itself.

use std::net::IpAddr;

/// The kind of value that a string of a setting is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    /// A word. A field of a pod is equal to it or not, so every value matches only itself.
    Word,
    /// A path on a node. It matches all paths below it.
    Path,
    /// A profile of seccomp or AppArmor on a node: a file below the kubelet's directory, or the name of a loaded
    /// profile.
    Profile,
    /// A registry, or a path in a registry. It matches all images below it.
    Registry,
    /// A name that may end in `*`, which matches any suffix.
    Pattern,
    /// A name of a host that may begin with `*.`, which matches one or more labels.
    Host,
    /// A network as a CIDR. It contains all addresses with its prefix.
    Cidr,
    /// An SELinux level: `s0:c1,c2`. Signs in it make ranges and sets.
    SeLinuxLevel,
}

/// The position of a parameter in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The parameter is the whole string.
    Whole,
    /// The string begins with the parameter. A slash follows, unless it is a path.
    Begin,
    /// The parameter is at another position in the string.
    Within,
}

/// The use of a parameter in a string of a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The path of the string: `spec.volumes.hostPaths[0].pathPrefix`.
    pub path: String,
    /// The meaning of the string.
    pub meaning: Meaning,
    /// The position of the parameter in it.
    pub place: Place,
}

/// The author of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The author of the profile: the value is a default or an override.
    Profile,
    /// Any user with permission to change the namespace: the value is an annotation, a label or its name.
    Namespace,
}

impl Use {
    /// The allowed values, if this value is not allowed.
    pub fn refusal(&self, value: &str, author: Author) -> Option<&'static str> {
        let (fits, allowed) = self.asks(value, author);
        (!fits).then_some(allowed)
    }

    /// Whether the value is allowed, and a description of the allowed values.
    fn asks(&self, value: &str, author: Author) -> (bool, &'static str) {
        let by_profile = author == Author::Profile;
        match (self.meaning, self.place) {
            (Meaning::Word, _) => (true, ""),
            (Meaning::Path, Place::Whole) => (
                // All of the node: only the profile can say so.
                is_absolute(value.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(value))
                    || (by_profile && value == "/"),
                "an absolute path other than /, without . and .. and without white space",
            ),
            (Meaning::Path, Place::Begin) => {
                (is_absolute(value), "an absolute path without a trailing slash, without . and .. and white space")
            }
            (Meaning::Path, Place::Within) | (Meaning::Profile, Place::Begin | Place::Within) => {
                (is_segment(value), "the name of one file or directory: no slash, no white space, not . and not ..")
            }
            (Meaning::Profile, Place::Whole) => (
                value.strip_prefix('/').unwrap_or(value).split('/').all(is_segment),
                "a path or name without . and .., without a trailing slash, and without white space",
            ),
            (Meaning::Registry, Place::Whole | Place::Begin) => {
                (value.split('/').all(is_of_registry), "a registry, or a path in a registry: host[:port][/path]")
            }
            (Meaning::Registry, Place::Within) => {
                (is_inner(value), "letters and digits, with dots, hyphens and underscores between them")
            }
            (Meaning::Pattern, _) => {
                (value.chars().all(|c| is_visible(c) && c != '*'), "a name without * and without white space")
            }
            (Meaning::Host, _) => (
                value.split('.').all(is_label),
                "lower-case letters, digits and hyphens, with single dots between them",
            ),
            (Meaning::Cidr, Place::Whole) => (is_cidr(value), "a CIDR such as 192.0.2.0/24"),
            (Meaning::Cidr, Place::Begin | Place::Within) => {
                (!value.is_empty() && value.chars().all(|c| c.is_ascii_hexdigit()), "digits")
            }
            (Meaning::SeLinuxLevel, Place::Whole) => (value.chars().all(is_visible), "a level without white space"),
            (Meaning::SeLinuxLevel, Place::Begin | Place::Within) => {
                (value.chars().all(|c| c.is_ascii_alphanumeric()), "letters and digits")
            }
        }
    }
}

fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control()
}

/// Whether it is the name of one file or directory, also on nodes with Windows.
fn is_segment(value: &str) -> bool {
    !matches!(value, "" | "." | "..") && value.chars().all(|c| is_visible(c) && !matches!(c, '/' | '\\'))
}

fn is_absolute(value: &str) -> bool {
    value.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_segment))
}

/// Whether it is a label of a host's name.
fn is_label(value: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    value.starts_with(is_alphanumeric)
        && value.ends_with(is_alphanumeric)
        && value.chars().all(|c| is_alphanumeric(c) || c == '-')
}

/// Whether it may be between two slashes of a registry with a path: also a port, a tag, or an address of IPv6.
fn is_of_registry(value: &str) -> bool {
    let sign = |c| matches!(c, '.' | '_' | '-' | ':' | '@' | '[' | ']');
    is_segment(value) && value.chars().all(|c| c.is_ascii_alphanumeric() || sign(c))
}

/// Whether it may stand beside other text in a part of a reference: it then begins and ends no part, host or tag.
fn is_inner(value: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let mut chars = value.chars();
    ends(value.chars().next())
        && ends(chars.next_back())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether it is a CIDR as Kubernetes reads it: an address, and the length of the prefix without a leading zero.
pub(crate) fn is_cidr(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        // Kubernetes does not accept an IPv4 address in the form of an IPv6 address.
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_none() => 128,
        _ => return false,
    };
    prefix.parse::<u8>().is_ok_and(|length| length <= most && length.to_string() == prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that fit, of a list of suspicious ones.
    fn fitting(meaning: Meaning, place: Place, author: Author) -> Vec<&'static str> {
        let all = [
            "",
            ".",
            "..",
            "...",
            "/",
            "//",
            "*",
            "a",
            "a*",
            "a.b",
            "a/b",
            "/a/b",
            "/a/",
            "/a/./b",
            "/a/../b",
            "/a//b",
            "a\\b",
            "a b",
            "a\tb",
            "a\nb",
            "a\u{0}",
            "\u{a0}",
            "-a",
            ".a",
            "a:1",
            "a@b",
            "a,b",
            "r.example:1/a",
            "r.example/",
            "https://r.example",
            "0.c9",
        ];
        let of = Use { path: "p".to_owned(), meaning, place };
        all.into_iter().filter(|value| of.refusal(value, author).is_none()).collect()
    }

    #[test]
    fn values_that_would_widen_a_text_do_not_fit() {
        let by_namespace = |meaning, place| fitting(meaning, place, Author::Namespace);
        let segments = ["...", "*", "a", "a*", "a.b", "-a", ".a", "a:1", "a@b", "a,b", "0.c9"];
        assert_eq!(by_namespace(Meaning::Path, Place::Whole), ["/a/b", "/a/"]);
        assert_eq!(by_namespace(Meaning::Path, Place::Begin), ["/a/b"]);
        for (meaning, place) in
            [(Meaning::Path, Place::Within), (Meaning::Profile, Place::Begin), (Meaning::Profile, Place::Within)]
        {
            assert_eq!(by_namespace(meaning, place), segments);
        }
        let profiles = by_namespace(Meaning::Profile, Place::Whole);
        assert!(segments.iter().chain(&["a/b", "/a/b", "r.example:1/a"]).all(|one| profiles.contains(one)));
        assert_eq!(profiles.len(), segments.len() + 3);
        let registries = ["...", "a", "a.b", "a/b", "-a", ".a", "a:1", "a@b", "r.example:1/a", "0.c9"];
        assert_eq!(by_namespace(Meaning::Registry, Place::Whole), registries);
        assert_eq!(by_namespace(Meaning::Registry, Place::Begin), registries);
        assert_eq!(by_namespace(Meaning::Registry, Place::Within), ["a", "a.b", "0.c9"]);
        assert_eq!(by_namespace(Meaning::SeLinuxLevel, Place::Within), ["", "a"]);
        assert!(by_namespace(Meaning::Cidr, Place::Whole).is_empty());
        assert_eq!(by_namespace(Meaning::Cidr, Place::Within), ["a"]);
        assert_eq!(by_namespace(Meaning::Host, Place::Begin), ["a", "a.b", "0.c9"]);
        assert!(by_namespace(Meaning::Pattern, Place::Whole).iter().all(|value| !value.contains(['*', ' ', '\n'])));
        assert_eq!(by_namespace(Meaning::Word, Place::Within).len(), 31);
    }

    #[test]
    fn only_a_profile_can_name_the_root_and_no_value_is_a_pattern() {
        assert_eq!(fitting(Meaning::Path, Place::Whole, Author::Profile), ["/", "/a/b", "/a/"]);
        for (meaning, place) in [
            (Meaning::Path, Place::Within),
            (Meaning::Registry, Place::Whole),
            (Meaning::Pattern, Place::Whole),
            (Meaning::Host, Place::Within),
        ] {
            assert_eq!(fitting(meaning, place, Author::Profile), fitting(meaning, place, Author::Namespace));
        }
    }

    #[test]
    fn only_cidrs_are_accepted() {
        for text in ["0.0.0.0/0", "192.0.2.0/24", "192.0.2.7/24", "192.0.2.1/32", "2001:db8::/32", "::1/128"] {
            assert!(is_cidr(text), "{text}");
        }
        for text in [
            "192.0.2.1",
            "192.0.2.0/33",
            "192.0.2.0/024",
            "192.0.2.0/+24",
            "192.0.02.0/24",
            "192.0.2/24",
            "2001:db8::/129",
            "::ffff:192.0.2.0/120",
            "fe80::1%eth0/64",
            " 192.0.2.0/24",
            "192.0.2.0/24/24",
            "",
        ] {
            assert!(!is_cidr(text), "{text}");
        }
    }
}

//! The supported minor versions of Kubernetes.

use std::{fmt, str::FromStr};

/// A minor version of Kubernetes whose API server answered what tests compare with.
///
/// Another one begins as an element of [`Minor::ALL`]. Tables that have no row for it do not compile then, and tests name
/// the golden files that `make oracle` is to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minor(u8);

impl Minor {
    /// Kubernetes 1.32.
    pub const V1_32: Self = Self(32);
    /// Kubernetes 1.33.
    pub const V1_33: Self = Self(33);
    /// Kubernetes 1.34.
    pub const V1_34: Self = Self(34);
    /// Kubernetes 1.35.
    pub const V1_35: Self = Self(35);
    /// Kubernetes 1.36.
    pub const V1_36: Self = Self(36);
    /// Kubernetes 1.37.
    pub const V1_37: Self = Self(37);
    /// All of them, in their order and without a gap.
    pub const ALL: [Self; 6] = [Self::V1_32, Self::V1_33, Self::V1_34, Self::V1_35, Self::V1_36, Self::V1_37];
    /// The oldest: what its API server accepts, the later ones accept.
    pub const OLDEST: Self = Self::ALL[0];
    /// The newest.
    pub const NEWEST: Self = Self::ALL[Self::ALL.len() - 1];
    /// The default. The golden files of the other minors only record differences from it.
    pub const DEFAULT: Self = Self::V1_36;

    /// 36 of 1.36.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its place in [`Minor::ALL`], and in tables with a row for each.
    pub fn index(self) -> usize {
        usize::from(self.0 - Self::OLDEST.0)
    }

    /// The range of them, for people: `1.32 to 1.37`.
    pub fn supported() -> String {
        format!("{} to {}", Self::OLDEST, Self::NEWEST)
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// Why a text is not a [`Minor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAMinor {
    /// It is something else.
    NotAVersion,
    /// It is a version of Kubernetes.
    NotSupported(u8),
}

impl fmt::Display for NotAMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAVersion => f.write_str("not a version of Kubernetes")?,
            Self::NotSupported(number) => write!(f, "Kubernetes 1.{number} is not supported")?,
        }
        write!(f, "; supported are {}", Minor::supported())
    }
}

impl std::error::Error for NotAMinor {}

impl NotAMinor {
    /// The supported minor that is nearest to the version; the default one if it is not a version of Kubernetes.
    pub fn nearest(&self) -> Minor {
        match self {
            Self::NotAVersion => Minor::DEFAULT,
            Self::NotSupported(number) if *number < Minor::OLDEST.number() => Minor::OLDEST,
            Self::NotSupported(_) => Minor::NEWEST,
        }
    }
}

impl FromStr for Minor {
    type Err = NotAMinor;

    /// Reads `1.36`, `v1.36.1` and `v1.36.1-gke.100`.
    fn from_str(text: &str) -> Result<Self, NotAMinor> {
        let number = number(text).ok_or(NotAMinor::NotAVersion)?;
        Self::ALL.into_iter().find(|minor| minor.0 == number).ok_or(NotAMinor::NotSupported(number))
    }
}

fn number(text: &str) -> Option<u8> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = |text: &str| text.parse::<u8>().ok().filter(|_| digits(text));
    let text = text.strip_prefix('v').unwrap_or(text);
    let (version, _build) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let mut parts = version.split('.');
    let (major, minor, patch) = (number(parts.next()?)?, number(parts.next()?)?, parts.next());
    let known = major == 1 && patch.is_none_or(digits) && parts.next().is_none();
    known.then_some(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minor_is_parsed_from_a_version() {
        let cases = [("1.32", 32), ("1.37", 37), ("v1.36.1", 36), ("1.36.1+k3s1", 36), ("v1.35.0-gke.1", 35)];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(Minor(expected)), "{text}");
        }
        let others =
            ["", "1", "1.", "v", "1.31", "1.38", "2.36", "1.36.x", "1.36.1.1", "1.+36", "latest", "1.99999999999"];
        for text in others {
            let error = text.parse::<Minor>().expect_err(text).to_string();
            assert!(error.contains("1.32 to 1.37"), "{text}: {error}");
        }
    }

    #[test]
    fn unsupported_version_has_a_nearest_minor() {
        for (text, expected) in [
            ("1.30", Minor::V1_32),
            ("v1.31.14", Minor::V1_32),
            ("1.38", Minor::V1_37),
            ("1.100", Minor::V1_37),
            ("v1.255.0-alpha.1", Minor::V1_37),
            ("2.36", Minor::DEFAULT),
            ("unknown", Minor::DEFAULT),
            ("", Minor::DEFAULT),
        ] {
            assert_eq!(text.parse::<Minor>().unwrap_err().nearest(), expected, "{text}");
        }
    }

    #[test]
    fn each_minor_is_at_its_index() {
        for (index, minor) in Minor::ALL.into_iter().enumerate() {
            assert_eq!(minor.index(), index);
        }
        assert!(Minor::ALL.contains(&Minor::DEFAULT));
    }
}

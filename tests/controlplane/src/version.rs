//! The versions of Kubernetes that can be built, one for each minor.

use crate::Error;

/// A version of Kubernetes, with the modules of its control plane. `main.go` is the same for all of them.
#[derive(Debug)]
pub struct Version {
    /// The minor, for example `1.33`.
    pub minor: &'static str,
    /// Its number: 33 of `1.33`.
    pub number: u8,
    /// The version of `k8s.io/kubernetes`.
    pub kubernetes: &'static str,
    /// The version of `go.etcd.io/etcd/server/v3` that this Kubernetes requires.
    pub etcd: &'static str,
    /// When the version was published. It is fixed, so that the same sources give the same binary.
    pub published: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
}

/// A version whose module files are in `minors`.
macro_rules! version {
    ($number:literal, $minor:literal, $kubernetes:literal, $etcd:literal, $published:literal) => {
        Version {
            minor: $minor,
            number: $number,
            kubernetes: $kubernetes,
            etcd: $etcd,
            published: $published,
            go_mod: include_str!(concat!("../minors/", $minor, ".mod")),
            go_sum: include_str!(concat!("../minors/", $minor, ".sum")),
        }
    };
}

/// The version whose module files are those of the directory: linters and editors read them.
const DEFAULT: Version = Version {
    minor: "1.36",
    number: 36,
    kubernetes: "v1.36.1",
    etcd: "v3.6.8",
    published: "2026-05-12T09:51:33Z",
    go_mod: include_str!("../go.mod"),
    go_sum: include_str!("../go.sum"),
};

/// All versions, in their order.
pub static VERSIONS: [Version; 6] = [
    version!(32, "1.32", "v1.32.13", "v3.5.16", "2026-02-27T00:14:55Z"),
    version!(33, "1.33", "v1.33.13", "v3.5.21", "2026-06-11T16:59:07Z"),
    version!(34, "1.34", "v1.34.10", "v3.6.4", "2026-07-22T22:05:06Z"),
    version!(35, "1.35", "v1.35.8", "v3.6.5", "2026-08-20T15:16:14Z"),
    DEFAULT,
    version!(37, "1.37", "v1.37.2", "v3.7.0", "2026-10-27T12:01:04Z"),
];

/// The environment variable that selects a minor.
pub const MINOR: &str = "PALISADE_MINOR";

impl Version {
    /// The version of a minor, or the default version.
    ///
    /// # Errors
    /// The project has no modules of this minor.
    pub fn of(minor: Option<&str>) -> Result<&'static Self, Error> {
        VERSIONS
            .iter()
            .find(|version| version.minor == minor.unwrap_or(DEFAULT.minor))
            .ok_or_else(|| Error::UnknownMinor(minor.unwrap_or_default().to_owned()))
    }

    /// The version that `PALISADE_MINOR` selects.
    ///
    /// # Errors
    /// The project has no modules of this minor.
    pub fn of_environment() -> Result<&'static Self, Error> {
        let minor = std::env::var(MINOR).ok().filter(|minor| !minor.is_empty());
        Self::of(minor.as_deref())
    }

    /// Whether tests use this version unless they are told otherwise.
    pub fn is_default(&self) -> bool {
        self.minor == DEFAULT.minor
    }
}

/// The minors, for a message.
pub(crate) fn known() -> String {
    let minors = || VERSIONS.iter().map(|version| version.minor);
    format!("{} to {}", minors().next().unwrap_or_default(), minors().next_back().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_versions_are_the_pinned_ones() {
        for version in &VERSIONS {
            let Version { minor, number, kubernetes, etcd, go_mod, .. } = version;
            assert_eq!(*minor, format!("1.{number}"));
            assert!(kubernetes.starts_with(&format!("v{minor}.")), "{version:?}");
            assert!(go_mod.contains(&format!("\tk8s.io/kubernetes {kubernetes}\n")), "{minor}");
            assert!(go_mod.contains(&format!("\tgo.etcd.io/etcd/server/v3 {etcd}\n")), "{minor}");
            // A module that is replaced has the version of Kubernetes, except for one that the proxy does not serve.
            let own = kubernetes.replacen("v1.", " v0.", 1);
            for line in go_mod.lines().filter(|line| line.contains(" => ")) {
                let is_missing = *minor == "1.32" && line.ends_with("k8s.io/endpointslice v0.32.11");
                assert!(line.ends_with(&own) || is_missing, "{minor}: {line}");
            }
        }
    }

    #[test]
    fn minors_are_consecutive_and_one_is_the_default() {
        let numbers = VERSIONS.each_ref().map(|version| version.number);
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
        assert_eq!(VERSIONS.iter().filter(|version| version.is_default()).count(), 1);
        assert!(Version::of(None).unwrap().is_default());
        // The nightly tests have all others.
        let others: Vec<_> = VERSIONS.iter().filter(|version| !version.is_default()).collect();
        let others: Vec<_> = others.iter().map(|version| format!("{:?}", version.minor)).collect();
        let workflow = include_str!("../../../.github/workflows/minors.yaml");
        assert!(workflow.contains(&format!("minor: [{}]", others.join(", "))), "{others:?}");
    }

    #[test]
    fn an_unknown_minor_is_rejected_with_the_known_ones() {
        assert_eq!(Version::of(Some("1.33")).unwrap().kubernetes, "v1.33.13");
        for minor in ["1.31", "1.38", "33", "v1.33", "1.33.13"] {
            let error = Version::of(Some(minor)).unwrap_err().to_string();
            assert!(error.contains(minor) && error.contains("1.32 to 1.37"), "{error}");
        }
    }
}

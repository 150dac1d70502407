//! API servers that end by a fault of their own.

use std::ops::RangeInclusive;

/// The minors whose API server can end when policies are written while it evaluates others (kubernetes#135757): the types of
/// variables of all policies are in one map without a lock.
const CONCURRENT_TYPES: RangeInclusive<u8> = 32..=33;

/// Whether a failure says only that a server did not answer.
pub fn is_lost(failure: &str) -> bool {
    let failure = failure.to_lowercase();
    failure.contains("connect") || failure.contains("not within")
}

/// The known fault by which an API server of this minor ended, from the end of its log.
pub fn known_fault(minor: u8, log: &str) -> Option<&'static str> {
    (CONCURRENT_TYPES.contains(&minor) && log.contains("fatal error: concurrent map")).then_some("kubernetes#135757")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_fault_of_affected_minors_is_known() {
        let log = "fatal error: concurrent map read and map write\n\ngoroutine 1 [running]:";
        for minor in 30..40 {
            assert_eq!(known_fault(minor, log).is_some(), [32, 33].contains(&minor), "{minor}");
            for other in ["", "fatal error: out of memory", "panic: concurrent map", "exit status 2"] {
                assert_eq!(known_fault(minor, other), None, "{minor} {other}");
            }
        }
    }

    #[test]
    fn wrong_verdict_is_no_lost_connection() {
        for lost in [
            "ServiceError: client error (Connect)",
            "connection refused",
            "Enforced=True of a: not within 60s; last: null",
        ] {
            assert!(is_lost(lost), "{lost}");
        }
        for wrong in ["200 admitted", "403 and not denied with [privileged]", "3 wrong verdicts", ""] {
            assert!(!is_lost(wrong), "{wrong}");
        }
    }
}

//! The certificates in the shared Secret, and the next step of their renewal. Pure.
//!
//! A renewal takes three steps, each a write of the Secret that only one replica can win. First the next certificate is
//! created, and its authority is trusted in addition to the current one. After API servers certainly trust it, the
//! certificate is taken into use. After the previous certificate has expired, its authority is removed. Therefore every
//! replica always serves a trusted certificate, even if it lags behind.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::ByteString;

use super::{
    UnusableCertificate,
    generation::{Generation, end_of},
};

type Data = BTreeMap<String, ByteString>;

/// Keys in the Secret. The first three are those of `kubernetes.io/tls` and cert-manager.
const CURRENT: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];
const NEXT: [&str; 3] = ["next-ca.crt", "next-tls.crt", "next-tls.key"];
const PREVIOUS: &str = "previous-ca.crt";

/// The content of the Secret.
#[derive(Clone, Debug)]
pub struct StoredCertificates {
    /// The certificate in use.
    pub current: Generation,
    /// The certificate to use next.
    pub next: Option<Generation>,
    /// The authority of the certificate in use before.
    pub previous: Option<String>,
}

#[derive(Debug)]
pub enum Step {
    Stay,
    /// Store this instead, for this reason.
    Write(Box<StoredCertificates>, &'static str),
}

/// Requirements for a new certificate.
#[derive(Clone, Debug)]
pub struct CertificateSpec {
    pub names: Vec<String>,
    /// How long it is valid.
    pub life: Duration,
}

impl StoredCertificates {
    /// Reads a Secret; `None` if it is empty.
    ///
    /// # Errors
    /// The certificate in use cannot be read. The rest may be missing.
    pub fn read(data: &Data) -> Result<Option<Self>, UnusableCertificate> {
        if CURRENT.iter().all(|key| !data.contains_key(*key)) {
            return Ok(None);
        }
        let text =
            |key: &str| data.get(key).map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()).unwrap_or_default();
        let generation =
            |[authority, certificate, key]: [&str; 3]| Generation::read(text(authority), text(certificate), text(key));
        let previous = Some(text(PREVIOUS)).filter(|pem| end_of(pem).is_ok());
        Ok(Some(Self { current: generation(CURRENT)?, next: generation(NEXT).ok(), previous }))
    }

    /// The data of the Secret.
    pub fn data(&self) -> Data {
        let mut data = Data::new();
        let mut put = |key: &str, text: &str| drop(data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec())));
        for (keys, of) in [(CURRENT, Some(&self.current)), (NEXT, self.next.as_ref())] {
            if let Some(of) = of {
                for (key, text) in keys.into_iter().zip([&of.authority, &of.certificate, &of.key]) {
                    put(key, text);
                }
            }
        }
        if let Some(previous) = &self.previous {
            put(PREVIOUS, previous);
        }
        data
    }

    /// The authorities to trust, in PEM: of the certificates in use, next and before.
    pub fn authorities(&self) -> Vec<&str> {
        let next = self.next.as_ref().map(|next| next.authority.as_str());
        [Some(self.current.authority.as_str()), next, self.previous.as_deref()].into_iter().flatten().collect()
    }

    /// The next step at `now`, Unix time. `known` is true if API servers certainly trust all [`Self::authorities`].
    ///
    /// # Errors
    ///
    /// If no certificate could be created.
    pub fn step(
        stored: Option<&Self>,
        spec: &CertificateSpec,
        now: i64,
        known: bool,
    ) -> Result<Step, UnusableCertificate> {
        let make = || Generation::make(&spec.names, spec.life, now);
        let write = |stored: Self, what| Ok(Step::Write(Box::new(stored), what));
        let Some(stored) = stored else {
            return write(Self { current: make()?, next: None, previous: None }, "created the first certificate");
        };
        let usable = |of: &Generation| of.is_for(&spec.names) && now < of.leaf.not_after;
        match &stored.next {
            // No replica renewed it in time, or the webhook has other names now. Nothing stored would work.
            _ if !usable(&stored.current) => {
                let previous = Some(stored.current.authority.clone());
                write(Self { current: make()?, next: None, previous }, "replaced an unusable certificate")
            }
            Some(next) if !usable(next) => {
                write(Self { next: Some(make()?), ..stored.clone() }, "replaced the next certificate")
            }
            Some(next) if known => {
                let previous = Some(stored.current.authority.clone());
                write(Self { current: next.clone(), next: None, previous }, "took the next certificate into use")
            }
            None if stored.current.is_due(spec.life, now) => {
                write(Self { next: Some(make()?), ..stored.clone() }, "created the next certificate")
            }
            _ => match &stored.previous {
                Some(previous) if end_of(previous).is_ok_and(|end| now > end) => {
                    write(Self { previous: None, ..stored.clone() }, "removed the previous certificate authority")
                }
                _ => Ok(Step::Stay),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> CertificateSpec {
        CertificateSpec { names: vec!["a".into()], life: Duration::from_mins(15) }
    }

    fn written(stored: Option<&StoredCertificates>, now: i64, known: bool) -> StoredCertificates {
        match StoredCertificates::step(stored, &spec(), now, known).unwrap() {
            Step::Write(stored, _) => *stored,
            Step::Stay => panic!("nothing is done at {now}"),
        }
    }

    fn stays(stored: &StoredCertificates, now: i64, known: bool) -> bool {
        matches!(StoredCertificates::step(Some(stored), &spec(), now, known).unwrap(), Step::Stay)
    }

    #[test]
    fn a_renewal_never_serves_an_untrusted_certificate() {
        let start = 10_000;
        let first = written(None, start, false);
        assert_eq!(first.authorities(), [first.current.authority.as_str()]);
        // Dated back by 90 s, so two thirds of 990 s are over 570 s from now.
        assert!(stays(&first, start + 569, true));
        let renewed = written(Some(&first), start + 570, true);
        let next = renewed.next.clone().unwrap();
        assert_eq!(renewed.current.certificate, first.current.certificate, "still in use");
        assert_eq!(renewed.authorities(), [first.current.authority.as_str(), &next.authority]);
        assert!(stays(&renewed, start + 600, false), "until API servers know its authority");
        let taken = written(Some(&renewed), start + 600, true);
        assert_eq!(taken.current.certificate, next.certificate);
        assert_eq!(taken.authorities(), [next.authority.as_str(), &first.current.authority]);
        assert!(stays(&taken, start + 900, true), "a replica that lags behind serves the former one");
        let forgot = written(Some(&taken), start + 901, true);
        assert_eq!(forgot.authorities(), [next.authority.as_str()]);
    }

    #[test]
    fn an_unusable_certificate_is_replaced_at_once() {
        let first = written(None, 0, false);
        let replaced = written(Some(&first), 900, false);
        assert_ne!(replaced.current.certificate, first.current.certificate);
        assert_eq!(replaced.authorities().len(), 2);
        let moved = CertificateSpec { names: vec!["b".into()], ..spec() };
        let Step::Write(moved, _) = StoredCertificates::step(Some(&first), &moved, 1, false).unwrap() else {
            panic!("nothing")
        };
        assert!(moved.current.is_for(&["b".into()]));
    }

    #[test]
    fn certificate_is_renewed_at_once_if_lifetime_is_shortened() {
        let first = written(None, 10_000, false);
        let renewed = |life| {
            let spec = CertificateSpec { life, ..spec() };
            match StoredCertificates::step(Some(&first), &spec, 10_001, true).unwrap() {
                Step::Write(stored, _) => Some(*stored),
                Step::Stay => None,
            }
        };
        assert!(renewed(Duration::from_hours(1)).is_none());
        let next = renewed(Duration::from_mins(5)).and_then(|stored| stored.next).expect("the next one");
        assert!(!next.is_due(Duration::from_mins(5), 10_002), "it has the life that is wished for");
    }

    #[test]
    fn stored_certificates_can_be_read_again() {
        let first = written(None, 0, false);
        let renewed = written(Some(&first), 700, false);
        for stored in [&first, &renewed, &written(Some(&renewed), 700, true)] {
            let read = StoredCertificates::read(&stored.data()).unwrap().unwrap();
            assert_eq!(read.data(), stored.data());
        }
        assert!(StoredCertificates::read(&Data::new()).unwrap().is_none());
        let mut damaged = renewed.data();
        damaged.insert("next-tls.key".into(), ByteString(b"x".to_vec()));
        assert!(StoredCertificates::read(&damaged).unwrap().unwrap().next.is_none());
        damaged.remove("tls.key");
        assert!(StoredCertificates::read(&damaged).is_err());
    }
}

//! One certificate and its authority.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};

use super::{Leaf, UnusableCertificate, validity};

/// The longest time by which a certificate is dated back, for clocks that are late.
const BACKDATE: Duration = Duration::from_hours(1);

/// A certificate, its key and the authority that signed it, as PEM.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The authority. Its key is gone.
    pub authority: String,
    pub certificate: String,
    /// The key of the certificate, PKCS #8.
    pub key: String,
    /// The served certificate and key.
    pub leaf: Leaf,
    /// Unix time.
    pub not_before: i64,
}

impl Generation {
    /// Creates one that is valid for `names`, for `life` from `now` (Unix time).
    ///
    /// # Errors
    ///
    /// If a name is invalid, or no randomness is available.
    pub fn make(names: &[String], life: Duration, now: i64) -> Result<Self, UnusableCertificate> {
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let from = now.saturating_sub(seconds((life / 10).min(BACKDATE)));
        let until = now.saturating_add(seconds(life));
        let moment = |at: i64| {
            OffsetDateTime::from_unix_timestamp(at).map_err(|error| UnusableCertificate::Certificate(error.to_string()))
        };
        let (not_before, not_after) = (moment(from)?, moment(until)?);

        let mut of_authority = CertificateParams::default();
        // Whoever trusts two authorities must be able to distinguish them.
        of_authority.distinguished_name.push(DnType::CommonName, format!("palisade-webhook-ca-{now}"));
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        of_authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        (of_authority.not_before, of_authority.not_after) = (not_before, not_after);
        let authority_key = KeyPair::generate()?;
        let authority = of_authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(of_authority, authority_key);

        let mut of_leaf = CertificateParams::new(names)?;
        of_leaf.distinguished_name.push(DnType::CommonName, "palisade-webhook");
        of_leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        of_leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        of_leaf.use_authority_key_identifier_extension = true;
        (of_leaf.not_before, of_leaf.not_after) = (not_before, not_after);
        let key = KeyPair::generate()?;
        let certificate = of_leaf.signed_by(&key, &issuer)?;
        Self::read(authority.pem(), certificate.pem(), key.serialize_pem())
    }

    /// Reads one.
    ///
    /// # Errors
    /// A certificate or key is invalid, or they do not belong together.
    pub fn read(authority: String, certificate: String, key: String) -> Result<Self, UnusableCertificate> {
        end_of(&authority)?;
        let leaf = Leaf::read(certificate.as_bytes(), key.as_bytes())?;
        let not_before = leaf.key.cert.first().map_or(Ok((0, 0)), |first| validity(first))?.0;
        Ok(Self { authority, certificate, key, leaf, not_before })
    }

    /// True if to renew it: two thirds of its life are over, or it was made for a longer life than `life`. That does
    /// not depend on clocks, so replicas agree.
    pub fn is_due(&self, life: Duration, now: i64) -> bool {
        let whole = self.leaf.not_after - self.not_before;
        let longest = life + life / 10 + Duration::from_secs(1);
        now >= self.not_before + whole / 3 * 2 || u64::try_from(whole).is_ok_and(|whole| whole > longest.as_secs())
    }

    /// True if it has no other names.
    pub fn is_for(&self, names: &[String]) -> bool {
        let Some(first) = self.leaf.key.cert.first() else { return false };
        let Ok(name) = names_of(first) else { return false };
        let wanted: std::collections::BTreeSet<_> = names.iter().cloned().collect();
        name == wanted
    }
}

/// When a certificate in PEM expires, as Unix time.
///
/// # Errors
/// It is not a certificate.
pub fn end_of(pem: &str) -> Result<i64, UnusableCertificate> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| UnusableCertificate::Certificate(error.to_string()))?;
    Ok(validity(&der)?.1)
}

/// The names that a certificate is for.
fn names_of(certificate: &[u8]) -> Result<std::collections::BTreeSet<String>, UnusableCertificate> {
    use x509_parser::extensions::GeneralName;

    let unreadable = |error: &dyn std::fmt::Display| UnusableCertificate::Certificate(error.to_string());
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|error| unreadable(&error))?;
    let names = parsed.subject_alternative_name().map_err(|error| unreadable(&error))?;
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match *bytes {
            [a, b, c, d] => Some(std::net::Ipv4Addr::from([*a, *b, *c, *d]).to_string()),
            bytes => <[u8; 16]>::try_from(bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
        },
        _ => None,
    };
    Ok(names.map(|names| names.value.general_names.iter().filter_map(text).collect()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_is_renewed_after_two_thirds_of_its_life() {
        let names = ["x.y.svc".to_owned(), "127.0.0.1".to_owned()];
        let made = Generation::make(&names, Duration::from_mins(50), 1_000_000).unwrap();
        // Dated back by a tenth.
        assert_eq!((made.not_before, made.leaf.not_after), (999_700, 1_003_000));
        let life = Duration::from_mins(50);
        assert_eq!([1_001_899, 1_001_900].map(|now| made.is_due(life, now)), [false, true]);
        assert_eq!(end_of(&made.authority).unwrap(), 1_003_000);
        assert!(made.is_for(&names));
        assert!(!made.is_for(&names[..1]));
    }

    #[test]
    fn key_of_another_certificate_is_rejected() {
        let [a, b] = [1, 2].map(|now| Generation::make(&["x".into()], Duration::from_mins(1), now).unwrap());
        assert!(Generation::read(a.authority.clone(), a.certificate.clone(), b.key).is_err());
        assert!(Generation::read("no PEM".into(), a.certificate.clone(), a.key.clone()).is_err());
        assert!(Generation::read(a.authority, a.certificate, a.key).is_ok());
    }
}

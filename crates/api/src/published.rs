//! The data that the webhook publishes for the controller, which registers the webhook: its address and the certificate
//! authorities that API servers must trust. It is in the `ConfigMap` [`names::WEBHOOK_CA`](crate::names::WEBHOOK_CA)
//! and contains no secrets.

use std::collections::BTreeMap;

const AUTHORITIES: &str = "ca.crt";
const URL: &str = "url";
const TIMEOUT: &str = "timeoutSeconds";

/// Address and certificate authorities of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The authorities to trust, in PEM; `None` if another component (the injector of cert-manager) writes them into
    /// the registration.
    pub authorities: Option<String>,
    /// The URL without a path, instead of the Service `palisade-webhook` in the namespace `palisade-system`.
    pub url: Option<String>,
    /// Seconds that an API server waits for an answer.
    pub timeout_seconds: u8,
}

impl Published {
    /// Reads the data of the `ConfigMap`; `None` if no webhook has published it yet.
    pub fn read(data: &BTreeMap<String, String>) -> Option<Self> {
        let text = |key: &str| data.get(key).filter(|text| !text.trim().is_empty()).cloned();
        let timeout_seconds = text(TIMEOUT)?.parse().ok()?;
        Some(Self { authorities: text(AUTHORITIES), url: text(URL), timeout_seconds })
    }

    /// The data of the `ConfigMap`.
    pub fn data(&self) -> BTreeMap<String, String> {
        let timeout = Some(self.timeout_seconds.to_string());
        let all = [(AUTHORITIES, self.authorities.clone()), (URL, self.url.clone()), (TIMEOUT, timeout)];
        all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_data_round_trips() {
        let full = Published { authorities: Some("PEM".into()), url: Some("https://a:1".into()), timeout_seconds: 3 };
        for published in [full.clone(), Published { authorities: None, url: None, ..full }] {
            assert_eq!(Published::read(&published.data()), Some(published));
        }
        assert_eq!(Published::read(&BTreeMap::new()), None);
        assert_eq!(Published::read(&[("timeoutSeconds".to_owned(), "long".to_owned())].into()), None);
    }
}

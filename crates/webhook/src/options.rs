//! Command-line options. The library takes the same values.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use palisade_runtime::{Limits, duration};

/// Options of the webhook.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address of /mutate, over TLS.
    #[arg(long, env = "PALISADE_LISTEN", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,
    /// Address of /livez, /readyz and /metrics, without TLS.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub listen_health: SocketAddr,
    /// Source of the certificate: `SelfSigned` creates one and shares it between replicas in a Secret;
    /// `Files:DIRECTORY` reads tls.crt, tls.key and, if it exists, ca.crt, for example from cert-manager.
    #[arg(long, default_value = "SelfSigned")]
    pub certificates: Certificates,
    /// Validity period of a certificate of `SelfSigned`. It is renewed after two thirds of that period, or immediately
    /// if it was issued for a longer period.
    #[arg(long, default_value = "90d", value_parser = duration)]
    pub certificate_life: Duration,
    /// Time for API servers to read a new certificate authority before its certificate is used.
    #[arg(long, default_value = "1m", value_parser = duration)]
    pub certificate_overlap: Duration,
    /// Interval of checks of the certificate and the registration if there are no changes.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub interval: Duration,
    /// Time limit of the API server for a response, in seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub timeout_seconds: u8,
    /// URL of this process for the API server, without a path, instead of the Service `palisade-webhook` in the
    /// namespace `palisade-system`.
    #[arg(long)]
    pub url: Option<String>,
    /// Time to continue serving requests after a stop signal, so that load balancers can remove the endpoint.
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub drain: Duration,
    /// Maximum number of open connections. At this limit, the connection that has been idle longest is closed for a new
    /// one.
    #[arg(long, default_value_t = Limits::default().connections)]
    pub max_connections: usize,
    /// Maximum size of all reviews in progress, in bytes. At this limit, the review that has been incomplete longest is
    /// rejected.
    #[arg(long, default_value_t = Limits::default().body_bytes)]
    pub max_body_bytes: usize,
    /// File with certificate authorities (PEM). Only clients with a certificate of one of them are served: API servers
    /// with a certificate from an admission configuration. The file is read at startup. Without this option, all
    /// clients are served.
    #[arg(long)]
    pub client_ca: Option<PathBuf>,
    /// Common names or DNS names, separated by commas. The certificate of a client must have one of them. Without this
    /// option, all certificates of `--client-ca` are accepted.
    #[arg(long, value_delimiter = ',', requires = "client_ca")]
    pub client_names: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 8443)),
            listen_health: SocketAddr::from(([0, 0, 0, 0], 8080)),
            certificates: Certificates::SelfSigned,
            certificate_life: Duration::from_hours(90 * 24),
            certificate_overlap: Duration::from_mins(1),
            interval: Duration::from_secs(5),
            timeout_seconds: 3,
            url: None,
            drain: Duration::from_secs(5),
            max_connections: Limits::default().connections,
            max_body_bytes: Limits::default().body_bytes,
            client_ca: None,
            client_names: vec![],
        }
    }
}

/// Source of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// Created by the webhook and kept in a Secret.
    SelfSigned,
    /// Files in a directory.
    Files(PathBuf),
}

impl FromStr for Certificates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "SelfSigned" => Ok(Self::SelfSigned),
            Some(("Files", directory)) if !directory.is_empty() => Ok(Self::Files(directory.into())),
            _ => Err("is neither SelfSigned nor Files:DIRECTORY".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn the_flags_default_to_the_default_options() {
        assert_eq!(format!("{:?}", Cli::parse_from(["x"]).options), format!("{:?}", Options::default()));
    }

    #[test]
    fn certificates_option_is_self_signed_or_files() {
        let of = |text: &str| Certificates::from_str(text);
        assert_eq!(of("SelfSigned"), Ok(Certificates::SelfSigned));
        assert_eq!(of("Files:/tls"), Ok(Certificates::Files("/tls".into())));
        for wrong in ["", "Files", "Files:", "Vault:/x"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}

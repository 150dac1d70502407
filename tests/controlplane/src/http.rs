//! Just enough HTTPS to ask a component how it is.
//!
//! Every HTTP client crate brings more dependencies than this whole crate has, and `kubectl get --raw` is not there
//! with foreign binaries. HTTP/1.0 answers are a head and a body up to the end of the connection: nothing to parse.

use std::{io, net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
    },
};

use crate::Error;

const LIMIT: Duration = Duration::from_secs(30);

/// A client that trusts one certificate authority and shows one token.
#[derive(Clone)]
pub(crate) struct Client {
    tls: TlsConnector,
    token: String,
}

/// An answer.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn new(ca: &CertificateDer<'static>, token: &str) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(ca.clone())?;
        // The provider is named: a process-wide default may be absent, or ambiguous, in the program that links us.
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), token: token.to_owned() })
    }

    /// `GET https://127.0.0.1:<port><path>`.
    pub(crate) async fn get(&self, port: u16, path: &str) -> io::Result<Response> {
        timeout(LIMIT, self.exchange(port, path)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn exchange(&self, port: u16, path: &str) -> io::Result<Response> {
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let server = ServerName::from(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut stream = self.tls.connect(server, tcp).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n", self.token);
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        parse(&String::from_utf8_lossy(&answer))
    }
}

pub(crate) fn parse(answer: &str) -> io::Result<Response> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "not an HTTP answer");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(malformed)?;
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).ok_or_else(malformed)?;
    Ok(Response { status, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn http_response_is_split_into_head_and_body() {
        let answer = parse("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nok\r\n\r\nmore").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok\r\n\r\nmore"));
    }

    #[test]
    fn malformed_http_response_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse("SSH-2.0\r\n\r\n").is_err());
    }
}

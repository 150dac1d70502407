//! With `--client-ca` only API servers get a connection.

#![allow(clippy::disallowed_methods, reason = "tests have files")]

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tokio::{io::AsyncWriteExt, time::timeout};

use crate::common::{LONG, Webhook, answer, request, review};

/// An authority in PEM, and what signs with it.
fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "clients");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}

/// A client's certificate and key in PEM.
fn client(issuer: &Issuer<'_, KeyPair>, name: &str, alternative: Option<&str>) -> (String, String) {
    let mut params = CertificateParams::new(alternative.map(str::to_owned).into_iter().collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, issuer).unwrap().pem(), key.serialize_pem())
}

/// Whether a client is served. With TLS 1.3 it learns only afterwards that it is not.
async fn is_served(webhook: &Webhook, client: Option<&(String, String)>) -> bool {
    let ask = async {
        let client = client.map(|(certificate, key)| (certificate.as_str(), key.as_str()));
        let mut stream = webhook.tls_as("http/1.1", client).await?;
        stream.write_all(&request(&review(), "close")).await?;
        answer(&mut stream).await
    };
    timeout(LONG, ask).await.unwrap().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_clients_with_a_trusted_and_named_certificate_are_served() {
    let files = tempfile::tempdir().unwrap();
    let ((pem, issuer), (_, other)) = (authority(), authority());
    let path = files.path().join("ca.crt");
    std::fs::write(&path, pem).unwrap();
    let (good, named) = (client(&issuer, "kube-apiserver", None), client(&issuer, "x", Some("api.example")));
    let (unnamed, forged) = (client(&issuer, "kubelet", None), client(&other, "kube-apiserver", None));
    let some = Webhook::start(|options| {
        options.client_ca = Some(path.clone());
        options.client_names = vec!["kube-apiserver".into(), "api.example".into()];
    })
    .await;
    for (who, certificate, expected) in [
        ("the API server", Some(&good), true),
        ("one by its DNS name", Some(&named), true),
        ("another client", Some(&unnamed), false),
        ("a client of another authority", Some(&forged), false),
        ("nobody", None, false),
    ] {
        assert_eq!(is_served(&some, certificate).await, expected, "{who}");
    }
    let any = Webhook::start(|options| options.client_ca = Some(path.clone())).await;
    assert!(is_served(&any, Some(&unnamed)).await);
    assert!(!is_served(&any, Some(&forged)).await && !is_served(&any, None).await);
    some.running.stop().await.unwrap();
    any.running.stop().await.unwrap();
}

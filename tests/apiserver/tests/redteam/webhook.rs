//! The webhook: profiles that the gate rejects, reviews that no API server sends, and connections that say nothing.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use palisade_tests::{Cluster, Webhook, bare_pod, within};
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::{
    Result,
    arena::{Arena, LIMIT},
    pods::{REGISTRY, UID, complying, hostile},
    table::{Attack, Expect, Tally, make},
    wire::{Request, pods, send},
};

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/palisade-webhook";

/// The example, for which the webhook mutates pods, in force; and the webhook.
async fn begin(arena: &Arena, test: &str) -> Result<(String, Webhook)> {
    let webhook = Webhook::start(&arena.cluster, None, &[]).await?;
    let mutated = |spec: &mut Json| spec["mutation"] = json!({"defaults": "Secure", "engine": "Webhook"});
    let namespace = arena.stage(test, mutated).await?;
    defaulted(arena, &namespace).await?;
    Ok((namespace, webhook))
}

/// Waits until a pod that says nothing complies once the webhook has mutated it.
async fn defaulted(arena: &Arena, namespace: &str) -> Result<()> {
    let ((), took) = within(LIMIT, &format!("a pod in {namespace} gets defaults"), || async {
        let answer = send(arena.admin(), &Request::pod(namespace, &bare_pod("bare"))).await;
        if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
    })
    .await?;
    if took > Duration::from_secs(5) {
        println!("defaults in {namespace} after {took:.1?}");
    }
    Ok(())
}

/// Profiles that the gate rejects, one of which redirects images to a registry that no pod may use: the webhook must
/// ignore them, and must keep serving all others.
pub(crate) async fn rejected_profiles(arena: &mut Arena) -> Result<Tally> {
    let test = "red-rejected";
    let (namespace, webhook) = begin(arena, test).await?;
    let mut tally = Tally::default();
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Webhook"});
    let good = profile.clone();
    profile["spec"]["images"]["redirect"] = json!({"target": "evil.example/mirror", "skip": ["nowhere.example"]});
    arena.cluster.apply_profile(&profile).await?;
    let rejected = arena.condition(test, "Accepted", "False").await;
    tally.must(rejected.is_ok(), format!("a redirection to what is not allowed: {rejected:?}"));
    // And one whose selector spoils the registration of all, if it gets there.
    let mut selector = Cluster::toolforge_profile("red-rejected-2")?;
    selector["spec"]["mutation"] = good["spec"]["mutation"].clone();
    selector["spec"]["namespaceSelector"]["matchExpressions"] =
        json!([{"key": "zz", "operator": "NotIn", "values": []}]);
    let _ = arena.cluster.apply_profile(&selector).await;
    for turn in 0..30 {
        let attacks = vec![
            Attack::new(
                format!("a pod that complies, {turn}"),
                Request::pod(&namespace, &complying("x")),
                Expect::Admitted,
            ),
            Attack::new(
                format!("a pod that needs defaults, {turn}"),
                Request::pod(&namespace, &bare_pod("bare")),
                Expect::Admitted,
            ),
            Attack::new(
                format!("hostPID, {turn}"),
                Request::pod(&namespace, &hostile("x")),
                Expect::check("hostNamespaces"),
            ),
        ];
        tally.add(make(arena.admin(), attacks).await);
        // The attacks last three seconds, during which the webhook reads the rejected profiles.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // A webhook that has never seen a good form of it.
    webhook.stop().await?;
    let webhook = Webhook::start(&arena.cluster, None, &[]).await?;
    let attacks = (0..10).map(|turn| {
        let how = Request::pod(&namespace, &complying("x"));
        Attack::new(format!("a pod that complies, after a restart of the webhook, {turn}"), how, Expect::Admitted)
    });
    tally.add(make(arena.admin(), attacks.collect()).await);
    // A profile that is written now must get its registration.
    let third = "red-rejected-3";
    let mut profile = Cluster::toolforge_profile(third)?;
    profile["spec"]["mutation"] = good["spec"]["mutation"].clone();
    arena.tool(third, third).await?;
    arena.cluster.apply_profile(&profile).await?;
    let defaults = defaulted(arena, third).await;
    tally.must(defaults.is_ok(), format!("a profile beside the rejected ones: {defaults:?}"));
    for name in [third, "red-rejected-2", test] {
        arena.delete_profile(name).await?;
    }
    webhook.stop().await?;
    Ok(tally)
}

/// Makes connections that believe the authority that the webhook registered.
struct Connector(TlsConnector);

impl Connector {
    async fn connect(&self, address: SocketAddr) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::from(address.ip());
        Ok(timeout(Duration::from_secs(10), self.0.connect(name, stream)).await??)
    }
}

async fn connector(arena: &Arena) -> Result<Connector> {
    let registration = arena.demand(&Request::get(REGISTRATION)).await?;
    let bundle: k8s_openapi::ByteString =
        serde_json::from_value(registration["webhooks"][0]["clientConfig"]["caBundle"].clone())?;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&bundle.0) {
        roots.add(authority?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Connector(TlsConnector::from(Arc::new(config))))
}

/// A review of the creation of a pod.
fn review(namespace: &str, object: &Json) -> Json {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "namespace": namespace, "name": "x",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": object, "oldObject": null, "userInfo": {"username": "x"},
        },
    })
}

/// Bodies that no API server sends.
fn reviews(namespace: &str) -> Vec<(&'static str, Vec<u8>)> {
    let bare = bare_pod("bare");
    let good = review(namespace, &bare);
    let text = good.to_string();
    let with =
        |path: &str, value: Json| crate::pods::with(good.clone(), &[(path, Some(value))]).to_string().into_bytes();
    let spec = |value: Json| with("request.object.spec", value);
    let containers = |value: Json| with("request.object.spec.containers", value);
    let nest = |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    let deep = text.replacen("\"oldObject\":null", &format!("\"oldObject\":{}", nest("[", "]", 5000)), 1);
    vec![
        ("a good one", text.clone().into()),
        ("nothing", vec![]),
        ("null", b"null".to_vec()),
        ("a list", b"[]".to_vec()),
        ("a number", b"1e99999".to_vec()),
        ("half of one", text.as_bytes()[..text.len() / 2].to_vec()),
        ("two", format!("{text}{text}").into()),
        ("NULs", vec![0; 1000]),
        ("no UTF-8", vec![0xff; 1000]),
        ("lists, deep", nest("[", "]", 100_000).into()),
        ("objects, deep", "{\"a\":".repeat(100_000).into()),
        ("a deep field", deep.into()),
        ("no request", b"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\"}".to_vec()),
        ("no uid", with("request.uid", Json::Null)),
        ("a uid that is a number", with("request.uid", json!(1))),
        ("a uid of 1 MB", with("request.uid", json!("u".repeat(1_000_000)))),
        ("a uid with lines", with("request.uid", json!("a\r\nSet-Cookie: x"))),
        ("another version", with("apiVersion", json!("admission.k8s.io/v9"))),
        ("another kind", with("kind", json!("Pod"))),
        ("no object", with("request.object", Json::Null)),
        ("an object that is a text", with("request.object", json!("x"))),
        ("an object that is a list", with("request.object", json!([1]))),
        ("no spec", spec(Json::Null)),
        ("a spec that is a list", spec(json!([]))),
        ("containers that are null", containers(Json::Null)),
        ("containers that are an object", containers(json!({"a": 1}))),
        ("containers of all sorts", containers(json!(["a", 1, null, [], {"name": 1}]))),
        (
            "20,000 containers",
            containers(json!((0..20_000).map(|n| json!({"name": n.to_string(), "image": "x"})).collect::<Vec<_>>())),
        ),
        ("a securityContext that is a text", with("request.object.spec.securityContext", json!("x"))),
        ("a securityContext that is a list", with("request.object.spec.securityContext", json!([0]))),
        ("annotations that are a list", with("request.object.metadata", json!({"annotations": [1]}))),
        ("a huge number", text.replacen("\"name\":\"x\"", "\"name\":1e400", 1).into()),
        ("half a surrogate", text.replacen("\"uid\":\"u\"", "\"uid\":\"\\ud800\"", 1).into()),
        ("a duplicate request", text.replacen("\"request\":", "\"request\":{},\"request\":", 1).into()),
        ("another namespace", with("request.namespace", json!("kube-system"))),
        ("no namespace", with("request.namespace", Json::Null)),
        ("a namespace with ..", with("request.namespace", json!("../../x"))),
        ("another resource", with("request.resource.resource", json!("secrets"))),
        ("another subresource", with("request.subResource", json!("status"))),
        ("DELETE", with("request.operation", json!("DELETE"))),
        ("no such operation", with("request.operation", json!("EXPLODE"))),
        ("9 MB of blanks", vec![b' '; 9_000_000]),
    ]
}

/// Bodies and heads by who reaches the port. The webhook answers, and goes on.
pub(crate) async fn hostile_reviews(arena: &mut Arena) -> Result<Tally> {
    let test = "red-reviews";
    let (namespace, webhook) = begin(arena, test).await?;
    let address = webhook.address;
    let head = format!("POST /mutate/{test}");
    let connector = connector(arena).await?;
    let mut requests: Vec<(String, String, Vec<u8>)> =
        reviews(&namespace).into_iter().map(|(name, body)| (name.to_owned(), head.clone(), body)).collect();
    let body = review(&namespace, &bare_pod("bare")).to_string().into_bytes();
    for path in [
        "/mutate/nobody",
        "/mutate/",
        "/mutate/..%2f..%2fx",
        "/mutate/%00",
        "/",
        "/metrics",
        "/readyz",
        "//mutate/x",
        "/mutate/a/b",
    ] {
        requests.push((format!("path {path}"), format!("POST {path}"), body.clone()));
    }
    requests.push(("a long path".to_owned(), format!("POST /mutate/{}", "a".repeat(100_000)), body.clone()));
    for method in ["GET", "PUT", "DELETE", "CONNECT", "TRACE", "FOO"] {
        requests.push((method.to_owned(), format!("{method} /mutate/{test}"), body.clone()));
    }
    let mut tally = Tally::default();
    for (name, head, body) in requests {
        tally.tried += 1;
        match post(&connector, address, &head, &body).await {
            Ok((200, body)) => {
                let answer: Json = serde_json::from_slice(&body).unwrap_or_default();
                tally.must(answer["response"]["allowed"] == true, format!("review, {name}: {answer}"));
                tally.admitted += 1;
            }
            Ok((400..500, _)) => tally.refused += 1,
            // What is far too long may be cut off.
            Ok((0, _))
                if body.len() > 1_000_000
                    || head.len() > 10_000
                    || head.starts_with("CONNECT")
                    || head.starts_with("FOO") =>
            {
                tally.refused += 1;
            }
            other => tally.other.push(format!("review, {name}: {other:?}")),
        }
    }
    let alive = defaulted(arena, &namespace).await;
    tally.must(alive.is_ok() && webhook.is_ready().await, format!("the webhook after all of them: {alive:?}"));
    arena.delete_profile(test).await?;
    webhook.stop().await?;
    Ok(tally)
}

/// Sends the bytes of an attacker who reaches the port, and returns the answer: a status and a body.
async fn post(connector: &Connector, address: SocketAddr, head: &str, body: &[u8]) -> Result<(u16, Vec<u8>)> {
    let mut stream = connector.connect(address).await?;
    let request = format!(
        "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let exchange = async {
        // It may refuse a body, and close, before it has read all of it.
        let _ = stream.write_all(request.as_bytes()).await;
        let _ = stream.write_all(body).await;
        let mut answer = vec![];
        let _ = stream.read_to_end(&mut answer).await;
        answer
    };
    let answer = timeout(Duration::from_secs(30), exchange).await?;
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.as_bytes().to_vec()).unwrap_or_default();
    Ok((status, body))
}

/// More connections than the webhook has places for, which say nothing, or half of something, and stay. API servers must
/// be answered all the same, after a time that the webhook gives a client to say something.
pub(crate) async fn silent_connections(arena: &mut Arena) -> Result<Tally> {
    let test = "red-silent";
    let (namespace, webhook) = begin(arena, test).await?;
    let mut tally = Tally::default();
    let half = format!(
        "POST /mutate/{test} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 7000000\r\n\r\n{{"
    );
    let connector = connector(arena).await?;
    let kinds: [(&str, &[u8]); 5] = [
        ("silent", b""),
        ("one byte", b"P"),
        ("half a preface of HTTP/2", b"PRI * HTTP/2.0\r\n"),
        ("half a head", b"POST /mutate/x HTTP/1.1\r\nHost: x\r\n"),
        ("half a body", half.as_bytes()),
    ];
    for (kind, bytes) in kinds.into_iter().take(arena.extent.pick(1, 5)) {
        let mut held = vec![];
        for _ in 0..1_100 {
            tally.tried += 1;
            // When there is no place any more, some fail: that is the point.
            match timeout(Duration::from_secs(2), connector.connect(webhook.address)).await {
                Ok(Ok(mut stream)) => {
                    let _ = stream.write_all(bytes).await;
                    held.push(stream);
                    tally.admitted += 1;
                }
                _ => tally.refused += 1,
            }
            if tally.refused > 5 {
                break;
            }
        }
        let served = defaulted(arena, &namespace).await;
        tally.must(served.is_ok(), format!("beside {} connections, {kind}: {served:?}", held.len()));
        // That API server has a connection already. Another one, or the same after a while, makes a new one.
        let body = review(&namespace, &bare_pod("bare")).to_string();
        let head = format!("POST /mutate/{test}");
        let served = within(LIMIT, "an answer to a new client", || async {
            let answer =
                timeout(Duration::from_secs(5), post(&connector, webhook.address, &head, body.as_bytes())).await;
            match answer {
                Ok(Ok((200, _))) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        tally.must(served.is_ok(), format!("beside {} connections, {kind}: {served:?}", held.len()));
        let how = Request::pod(&namespace, &hostile("x"));
        tally.add(
            make(arena.admin(), vec![Attack::new("hostPID meanwhile", how, Expect::check("hostNamespaces"))]).await,
        );
        drop(held);
    }
    arena.delete_profile(test).await?;
    webhook.stop().await?;
    Ok(tally)
}

/// Pods that are hostile, in namespaces where the API server or the webhook sets what pods do not say. What is admitted
/// there complies: as it is then, it is admitted where nothing is set.
pub(crate) async fn engines(arena: &mut Arena) -> Result<Tally> {
    let plain = arena.stage("red-plain", |_| ()).await?;
    let mut tally = Tally::default();
    for (test, engine) in [("red-native", "Native"), ("red-by-webhook", "Webhook")] {
        let webhook = if engine == "Webhook" { Some(Webhook::start(&arena.cluster, None, &[]).await?) } else { None };
        let mutated = |spec: &mut Json| spec["mutation"] = json!({"defaults": "Secure", "engine": engine});
        let namespace = arena.stage(test, mutated).await?;
        defaulted(arena, &namespace).await?;
        let attacks = crate::pods::attacks(crate::pods::By::Toolforge, &namespace, "target");
        // Ephemeral containers are only patched in, and dry runs of them cannot be sent anew.
        let attacks = attacks.into_iter().filter(|attack| attack.how.method == "POST");
        for attack in attacks.step_by(arena.extent.pick(11, 1)) {
            let answer = send(&arena.tenant, &attack.how).await;
            let name = format!("{engine}: {}", attack.name);
            match &attack.expect {
                Expect::Denied(_) if answer.is_admitted() => {
                    let mut pod = answer.body.clone();
                    pod["metadata"] = json!({"name": "again", "annotations": pod["metadata"]["annotations"]});
                    let again = send(&arena.tenant, &Request::pod(&plain, &pod)).await;
                    tally.count(&format!("{name}, as it was admitted"), &Expect::Admitted, &again);
                    if !again.is_admitted() {
                        tally.holes.push(format!("{name}: admitted as {}", answer.body["spec"]));
                    }
                }
                expect => tally.count(&name, expect, &answer),
            }
        }
        // For real: a pod that is admitted by what it got.
        let how = Request::create(&pods(&namespace), &bare_pod("real"));
        tally.add(
            make(arena.admin(), vec![Attack::new(format!("{engine}: a bare pod for real"), how, Expect::Admitted)])
                .await,
        );
        let made = arena.ask(&Request::get(format!("{}/real", pods(&namespace)))).await.body;
        tally.must(
            made["spec"]["securityContext"]["runAsUser"] == UID,
            format!("{engine}: {}", made["spec"]["securityContext"]),
        );
        let image = made["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        tally.must(image.starts_with(REGISTRY), format!("{engine}: {image}"));
        arena.delete_profile(test).await?;
        if let Some(webhook) = webhook {
            webhook.stop().await?;
        }
    }
    arena.delete_profile("red-plain").await?;
    Ok(tally)
}

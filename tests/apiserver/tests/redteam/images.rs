//! References of images: what a container runtime would pull, and from where.

use palisade_kube_json::text::truncated;
use serde_json::{Value as Json, json};

use crate::{
    pods::{complying, container},
    table::{Attack, Expect},
    wire::{MERGE, Request, pods},
};

/// The most of a reference in the name of an attack, in characters.
const MAX_IMAGE: usize = 80;

const ALLOWED: [&str; 3] =
    ["docker-registry.svc.toolforge.org", "docker-registry.tools.wmflabs.org", "tools-harbor.wmcloud.org"];

/// References, and whether a runtime would ask an allowed registry for them.
fn references() -> Vec<(String, bool)> {
    let digest = format!("@sha256:{}", "a".repeat(64));
    let mut all = vec![];
    for host in ALLOWED {
        for rest in ["/x", "/x:1", "/a/b/c:latest", "/library/x"] {
            all.push((format!("{host}{rest}"), true));
            all.push((format!("{host}{rest}{digest}"), true));
        }
        // Another host, port, scheme or user.
        let elsewhere = [
            host.to_owned(),
            format!("{host}:tag"),
            format!("{host}:443/x"),
            format!("{host}:5000/x"),
            format!("{host}./x"),
            format!("{host}.evil.example/x"),
            format!("{host}-evil.example/x"),
            format!("x.{host}/x"),
            format!("evil{host}/x"),
            format!("{host}@evil.example/x"),
            format!("user@{host}/x"),
            format!("user:password@{host}/x"),
            format!("https://{host}/x"),
            format!("//{host}/x"),
            format!("/{host}/x"),
            format!("{host}\\x"),
            format!("{host}%2fx"),
            format!("{host}\u{2044}x"),
            format!("{host}\u{2024}evil/x"),
            format!("evil.example/{host}/x"),
            format!("localhost/{host}/x"),
            format!("docker.io/{host}/x"),
            format!("[::1]/{host}/x"),
            host.to_uppercase() + "/x",
            format!("{}/x", host.replacen('o', "O", 1)),
            format!("{}/x", host.replace('.', "-")),
            format!("{}/x", host.replacen('.', "\u{3002}", 1)),
            format!("\u{200b}{host}/x"),
            format!("evil.example/x#{host}/x"),
            format!("evil.example/x?{host}/"),
            format!("evil.example/x {host}/x"),
        ];
        all.extend(elsewhere.map(|image| (image, false)));
    }
    let foreign = [
        "nginx".to_owned(),
        "library/nginx".to_owned(),
        "evil.example/x".to_owned(),
        "localhost/x".to_owned(),
        "localhost:5000/x".to_owned(),
        "192.0.2.1/x".to_owned(),
        "[2001:db8::1]:5000/x".to_owned(),
        "a".repeat(64),
        format!("sha256:{}", "a".repeat(64)),
        format!("x{digest}"),
        ".".to_owned(),
        "/".to_owned(),
        "..".to_owned(),
        "e".repeat(4000),
    ];
    all.extend(foreign.map(|image| (image, false)));
    all
}

/// Attacks by images on the example for tools: the whole list in containers, a part of it in other places.
pub(crate) fn attacks(namespace: &str, target: &str) -> Vec<Attack> {
    let mut attacks = vec![];
    for (index, (image, allowed)) in references().into_iter().enumerate() {
        let expect = || if allowed { Expect::Admitted } else { Expect::check("imageRegistries") };
        let shown = truncated(&image, MAX_IMAGE);
        let with = |name: &str| {
            let mut container = container(name);
            container["image"] = image.clone().into();
            container
        };
        let mut attack = |place: &str, how: Request| {
            attacks.push(Attack::new(format!("image {shown:?} in {place}"), how, expect()));
        };
        let pod = |place: &str, containers: Json| {
            let mut pod = complying("attack");
            pod["spec"][place] = containers;
            Request::pod(namespace, &pod)
        };
        attack("containers", pod("containers", json!([with("main")])));
        match index % 3 {
            0 => attack("the second container", pod("containers", json!([container("main"), with("second")]))),
            1 => attack("initContainers", pod("initContainers", json!([with("first")]))),
            _ => {
                let path = format!("{}/{target}/ephemeralcontainers?dryRun=All", pods(namespace));
                let body = json!({"spec": {"ephemeralContainers": [with("debugger")]}});
                attack("ephemeralContainers", Request::new("PATCH", path, MERGE, &body));
                // What a running pod is changed to.
                let path = format!("{}/{target}?dryRun=All", pods(namespace));
                let patch = json!({"spec": {"containers": [with("main")]}});
                attack("an update", Request::new("PATCH", path, crate::wire::STRATEGIC, &patch));
            }
        }
    }
    for (image, name) in [
        (json!(""), "empty"),
        (Json::Null, "null"),
        (json!(1), "a number"),
        (json!(["x"]), "a list"),
        (json!(" x"), "blank first"),
    ] {
        let mut pod = complying("attack");
        pod["spec"]["containers"][0]["image"] = image;
        attacks.push(Attack::new(format!("image that is {name}"), Request::pod(namespace, &pod), Expect::Refused));
    }
    attacks
}

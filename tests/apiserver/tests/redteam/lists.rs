//! Lists as long as the API server takes them: what a request in a selected namespace costs it.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{UID, complying, container, with},
    table::{Expect, Tally},
    wire::{Request, send},
};

/// At most so many times what the same request costs in a namespace that no profile selects.
const TIMES: u32 = 5;
/// What else an API server may do at the same time, and the resolution of its clock.
const NOISE: Duration = Duration::from_millis(150);

/// A list of a pod, with so many entries.
fn lists(quick: bool) -> Vec<(&'static str, Json, bool)> {
    let most = |full: usize| if quick { full / 2 } else { full };
    let volumes = |source: Json| {
        let volumes = (0..most(6_000)).map(|n| {
            let mut volume = source.clone();
            volume["name"] = format!("v{n}").into();
            volume
        });
        json!(volumes.collect::<Vec<_>>())
    };
    let set = |path: &str, value: Json| with(complying("x"), &[(path, Some(value))]);
    let groups: Vec<_> = (0..20_000).map(|n| 1 + n % 49_000).collect();
    let many: Vec<_> = (0..most(2_000)).map(|n| container(&format!("c{n}"))).collect();
    let capabilities: Vec<_> = (0..20_000).map(|n| format!("X{n}")).chain(["ALL".to_owned()]).collect();
    let ports: Vec<_> = (0..most(6_000)).map(|n| json!({"containerPort": 1 + n, "protocol": "TCP"})).collect();
    let sysctls: Vec<_> = (0..most(6_000)).map(|n| json!({"name": format!("net.ipv4.x{n}"), "value": "1"})).collect();
    let annotations: serde_json::Map<_, _> = (0..4_000).map(|n| (format!("a.example/x{n}"), json!("x"))).collect();
    let mut mounted = set(
        "spec.volumes",
        json!(
            (0..500)
                .map(|n| json!({"name": format!("v{n}"), "hostPath": {"path": format!("/public/dumps/{n}")}}))
                .collect::<Vec<_>>()
        ),
    );
    mounted["spec"]["containers"][0]["volumeMounts"] = json!(
        (0..500)
            .map(|n| json!({"name": format!("v{n}"), "mountPath": format!("/m{n}"), "readOnly": true}))
            .collect::<Vec<_>>()
    );
    vec![
        // Far more groups than a process can have.
        ("supplementalGroups", set("spec.securityContext.supplementalGroups", json!(groups)), true),
        ("volumes of emptyDir", set("spec.volumes", volumes(json!({"emptyDir": {}}))), false),
        ("volumes of hostPath", set("spec.volumes", volumes(json!({"hostPath": {"path": "/data/project/x"}}))), false),
        ("read-only volumes with mounts", mounted, false),
        ("containers", set("spec.containers", json!(many)), false),
        ("capabilities", set("spec.containers.0.securityContext.capabilities.drop", json!(capabilities)), false),
        ("ports", set("spec.containers.0.ports", json!(ports)), false),
        ("sysctls", set("spec.securityContext.sysctls", json!(sysctls)), false),
        ("annotations", set("metadata.annotations", json!(annotations)), false),
        (
            "letters of an image",
            set("spec.containers.0.image", json!(format!("{}/{}", crate::pods::REGISTRY, "x/".repeat(100_000)))),
            false,
        ),
        ("hostile letters", set("spec.containers.0.image", json!("e".repeat(500_000))), false),
    ]
}

/// The least of what a few dry runs cost the API server, and the last answer.
async fn cost(arena: &Arena, namespace: &str, pod: &Json) -> Result<(Duration, crate::wire::Answer)> {
    let request = Request::pod(namespace, pod);
    let (mut least, mut last) = (Duration::MAX, None);
    for _ in 0..2 {
        let before = arena.cpu()?;
        last = Some(send(arena.admin(), &request).await);
        least = least.min(arena.cpu()?.saturating_sub(before));
    }
    Ok((least, last.ok_or("nothing was sent")?))
}

/// Lists of pods that comply, and are long.
pub(crate) async fn long_lists(arena: &mut Arena) -> Result<Tally> {
    let test = "red-lists";
    let namespace = arena.stage(test, |_| ()).await?;
    let free = "red-lists-free";
    arena.cluster.create_tool("nobody", free, UID).await?;
    arena.admit_tenant(free).await?;
    arena.admitted(free, &complying("x")).await?;
    let mut tally = Tally::default();
    for (name, pod, must_be_denied) in lists(arena.extent.pick(true, false)) {
        let (without, _) = cost(arena, free, &pod).await?;
        let (with, answer) = cost(arena, &namespace, &pod).await?;
        println!("{name}: CPU {with:?} in the namespace of a tool, {without:?} elsewhere: {:.150}", answer.short());
        if must_be_denied {
            tally.count(&format!("a long list of {name}"), &Expect::Denied(String::new()), &answer);
        } else {
            // It complies but for its length.
            tally.tried += 1;
            match answer.denial() {
                Some(_) => tally.denied += 1,
                None if answer.is_admitted() => tally.admitted += 1,
                None => tally.refused += 1,
            }
            tally.must(answer.status != 0, format!("no answer on {name}: {}", answer.short()));
        }
        tally.must(
            with <= without * TIMES + NOISE,
            format!("{name}: CPU {with:?}, and {without:?} where no profile is"),
        );
    }
    arena.delete_profile(test).await?;
    Ok(tally)
}

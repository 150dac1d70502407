//! `palisade check` says of manifests what the API server says of the same objects.

use std::collections::BTreeSet;

use kube::client::Body;
use palisade_api::names;
use palisade_kube_json::{json::set, workload::WORKLOADS};
use palisade_tests::{Cluster, TestResult, bare_pod, ensure, eventually, tool_pod};
use serde_json::{Value as Json, json};

use crate::{
    history::{palisade, printed},
    workloads::path,
};

crate::groups::scenarios! {
    check_says_what_the_api_server_says: Judged 340 needs NATIVE_MUTATION;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const UID: i64 = 50_201;
const TEST: &str = "checked";
/// Namespaces, the stage that their labels say, and whether the profile selects them. Each has a uid of its own.
const NAMESPACES: [(&str, Option<&str>, bool); 4] = [
    ("checked-deny", None, true),
    ("checked-other", Some("Deny"), true),
    ("checked-warn", Some("Warn"), true),
    ("checked-free", None, false),
];

/// The answer about an object: `[check] text` for each violation, and whether it is denied.
type Said = (BTreeSet<String>, bool);

fn profile() -> Result<Json> {
    let mut profile = Cluster::toolforge_profile(TEST)?;
    set(
        &mut profile,
        &["spec", "enforcement"],
        json!({"pods": "Deny", "workloads": "Deny", "namespaceStages": "ByLabel"}),
    );
    set(&mut profile, &["spec", "mutation"], json!({"defaults": "Secure"}));
    Ok(profile)
}

/// Pods: one that complies, one that does once it is mutated, others that violate one check or two, and one of the tool of
/// another namespace.
fn pods(uid: i64) -> [(&'static str, Json); 6] {
    let with = |network: bool, image: bool| {
        let mut pod = tool_pod("x", uid);
        if network {
            set(&mut pod, &["spec", "hostNetwork"], true);
        }
        if image {
            pod["spec"]["containers"][0]["image"] = "example.org/a:1".into();
        }
        pod
    };
    [
        ("good", with(false, false)),
        ("bare", bare_pod("x")),
        ("network", with(true, false)),
        ("image", with(false, true)),
        ("both", with(true, true)),
        ("foreign", tool_pod("x", uid + 1)),
    ]
}

/// All manifests of a namespace, each with the path that it is sent to and, of a workload, a pod that it makes.
fn manifests(namespace: &str, uid: i64) -> Vec<(String, Json, Option<Json>)> {
    let mut all = Vec::new();
    let pods_path = format!("/api/v1/namespaces/{namespace}/pods");
    for (name, pod) in pods(uid) {
        let named = |mut object: Json| {
            set(&mut object, &["metadata", "name"], name);
            set(&mut object, &["metadata", "namespace"], namespace);
            object
        };
        all.push((pods_path.clone(), named(pod.clone()), None));
        if matches!(name, "network" | "image") {
            continue;
        }
        let mut spec = pod.clone();
        // Each kind has its own.
        spec["spec"].as_object_mut().map(|fields| fields.remove("restartPolicy"));
        for workload in &WORKLOADS {
            let object = named(workload.around(name, &spec));
            let template = object.pointer(workload.template).cloned().unwrap_or_default();
            let mut made = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": template["spec"]});
            set(&mut made, &["metadata", "labels"], template["metadata"]["labels"].clone());
            set(&mut made, &["metadata", "name"], "made");
            // Nobody makes pods of a PodTemplate.
            let made = (workload.kind != "PodTemplate").then_some(made);
            all.push((path(workload, namespace), object, made));
        }
    }
    all
}

/// `[check] text` for each violation in a denial or a warning.
fn violations(text: &str) -> BTreeSet<String> {
    let Some((_, list)) = text.split_once(&format!("ToolSecurityProfile {TEST}")) else { return BTreeSet::new() };
    let Some((_, list)) = list.split_once(": ") else { return BTreeSet::new() };
    list.split("; [").map(|one| format!("[{}", one.trim_start_matches('['))).collect()
}

/// What the API server says of an object, by a dry run: in its answer, or in warnings.
async fn of_server(cluster: &Cluster, path: &str, object: &Json) -> Result<Said> {
    let request = http::Request::post(format!("{path}?dryRun=All")).header("content-type", "application/json");
    let response = cluster.admin.send(request.body(Body::from(serde_json::to_vec(object)?))?).await?;
    let mut found = BTreeSet::new();
    for warning in response.headers().get_all("warning") {
        // `299 - "..."`, with quotes and backslashes escaped.
        let text = String::from_utf8_lossy(warning.as_bytes()).replace("\\\"", "\"").replace("\\\\", "\\");
        let text = text.strip_suffix('"').unwrap_or(&text);
        if text.contains("ValidatingAdmissionPolicy 'palisade-") {
            found.extend(violations(text));
        }
    }
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await?;
    if code < 300 {
        return Ok((found, false));
    }
    let status: Json = serde_json::from_slice(&body)?;
    let message = status["message"].as_str().unwrap_or_default();
    ensure_denied(message)?;
    found.extend(violations(message));
    Ok((found, true))
}

/// What the API server says of each object, and of the pod that it makes.
async fn of_server_to_all(
    cluster: &Cluster,
    all: &[(String, Json, Option<Json>)],
) -> std::result::Result<Vec<Said>, String> {
    let mut said = Vec::new();
    for (path, object, made) in all {
        let which = |error| format!("{path}, {}: {error}", object["metadata"]["name"]);
        let (mut found, mut denied) = of_server(cluster, path, object).await.map_err(which)?;
        if let Some(pod) = made {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let pods = format!("/api/v1/namespaces/{namespace}/pods");
            let (more, too) = of_server(cluster, &pods, pod).await.map_err(which)?;
            found.extend(more);
            denied |= too;
        }
        said.push((found, denied));
    }
    Ok(said)
}

fn ensure_denied(message: &str) -> Result<()> {
    if message.contains("denied request: ") { Ok(()) } else { Err(message.to_owned().into()) }
}

/// What `palisade check` says of each object, in the order of the manifests.
fn of_check(report: &Json) -> Vec<Said> {
    let said = |object: &Json| {
        let all = object["violations"].as_array().into_iter().flatten();
        let text = |one: &Json, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let texts = all.clone().map(|one| format!("[{}] {}", text(one, "check"), text(one, "message"))).collect();
        (texts, all.clone().any(|one| one["denied"] == true))
    };
    report["objects"].as_array().into_iter().flatten().map(said).collect()
}

pub(crate) async fn check_says_what_the_api_server_says(cluster: &mut Cluster) -> TestResult {
    let cluster: &Cluster = cluster;
    for ((name, stage, selected), uid) in NAMESPACES.into_iter().zip(UID..) {
        let mut labels = json!({"tenancy": if selected { TEST } else { "nobody" }});
        if let Some(stage) = stage {
            labels[names::stage_label(TEST)] = stage.into();
        }
        cluster.create_namespace(name, &labels, &json!({"toolforge.org/uid": uid.to_string()})).await?;
    }
    cluster.enforce(&profile()?).await?;
    let all: Vec<_> = NAMESPACES.into_iter().zip(UID..).flat_map(|((name, ..), uid)| manifests(name, uid)).collect();
    // Enforced says it of some namespaces; here each has a stage of its own.
    for ((namespace, stage, selected), uid) in NAMESPACES.into_iter().zip(UID..) {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let both = pods(uid).into_iter().find(|(name, _)| *name == "both").map(|(_, pod)| pod).unwrap_or_default();
        eventually(&format!("the stage of {namespace}"), || async {
            let (found, denied) = of_server(cluster, &path, &both).await.map_err(|error| error.to_string())?;
            let right = found.is_empty() != selected && denied == (selected && stage != Some("Warn"));
            if right { Ok(()) } else { Err(format!("{denied}: {found:?}")) }
        })
        .await?;
        cluster.wait_admitted(namespace, &tool_pod("ready", uid)).await?;
    }

    // A namespace that was just made and a policy that was just written reach an API server on several watches.
    let expected = eventually("two equal answers to all objects", || async {
        let (first, second) = (of_server_to_all(cluster, &all).await?, of_server_to_all(cluster, &all).await?);
        let differs = first.iter().zip(&second).zip(&all).find(|((first, second), _)| first != second);
        differs.map_or(Ok(()), |differs| Err(format!("{differs:?}"))).map(|()| second)
    })
    .await?;

    let directory = tempfile::tempdir()?;
    let file = |name: &str, text: &str| -> Result<String> {
        let path = directory.path().join(name).display().to_string();
        std::fs::write(&path, text)?;
        Ok(path)
    };
    let listed = |objects: &mut dyn Iterator<Item = &Json>| {
        json!({"apiVersion": "v1", "kind": "List", "items": objects.collect::<Vec<_>>()}).to_string()
    };
    let manifests = file("manifests.json", &listed(&mut all.iter().map(|(_, object, _)| object)))?;
    let profile = file("profile.yaml", &printed_profile(cluster)?)?;
    let mut get = vec!["get", "namespaces", "-o", "json"];
    get.extend(NAMESPACES.iter().map(|(name, ..)| *name));
    let namespaces = file("namespaces.json", &cluster.kubectl(&get)?)?;
    let version = cluster.minor().await?.to_string();
    let offline = ["--profile", &profile, "--namespaces", &namespaces, "--kube-version", &version];
    for by in [&["--live"][..], &offline] {
        let told = palisade(cluster, &[&["check", "-o", "json", &manifests], by].concat()).await?;
        ensure!(told.code == 1, "{by:?}: {told:?}");
        let found = of_check(&serde_json::from_str(&told.out)?);
        ensure!(found.len() == all.len(), "{} of {} objects", found.len(), all.len());
        for (((_, object, _), found), expected) in all.iter().zip(&found).zip(&expected) {
            let metadata = &object["metadata"];
            let which = format!("{} {}/{}", metadata["namespace"], object["kind"], metadata["name"]);
            ensure!(found == expected, "{by:?}: {which}: check {found:#?}, the API server {expected:#?}");
        }

        // What is only warned of is a failure for who asks for it.
        let of = |namespace: &str| {
            let mut all = all.iter().map(|(_, object, _)| object);
            listed(&mut all.by_ref().filter(|object| object["metadata"]["namespace"] == namespace))
        };
        for (namespace, code, strict) in [("checked-warn", 0, 1), ("checked-free", 0, 0)] {
            let one = file("one.json", &of(namespace))?;
            for (more, code) in [(&[][..], code), (&["--fail-on", "warning"], strict)] {
                let told = palisade(cluster, &[&["check", &one], by, more].concat()).await?;
                ensure!(told.code == code, "{by:?} {namespace} {more:?}: {told:?}");
            }
        }
    }
    let count = |kind: &dyn Fn(&Said) -> bool| expected.iter().filter(|said| kind(said)).count();
    let (denied, warned) = (count(&|said| said.1), count(&|said| !said.1 && !said.0.is_empty()));
    println!("{} objects, {denied} denied, {warned} warned of", all.len());
    // In each namespace: four pods that violate something, and each workload around two of them. One around the bare pod
    // complies, as the pod that it becomes.
    let each = 4 + 2 * WORKLOADS.len();
    ensure!((denied, warned) == (2 * each, each), "{denied} denied, {warned} warned of");
    let wrong = all.iter().map(|(_, object, _)| object).filter(|object| object["metadata"]["name"] == "both");
    let one = file("one.json", &listed(&mut wrong.take(3)))?;
    missing_rights(cluster, &one, &profile).await?;
    cluster.delete_profile(TEST).await
}

/// The profile as anybody can read it who may.
fn printed_profile(cluster: &Cluster) -> Result<String> {
    cluster.kubectl(&["get", "toolsecurityprofile", TEST, "-o", "yaml"])
}

/// Each command reports all missing rights at once; with the `ClusterRole` that is named it works.
async fn missing_rights(cluster: &Cluster, manifests: &str, profile: &str) -> TestResult {
    let tenant = ["check", manifests, "--live", "--as", "check-tenant"];
    let profiles = "list toolsecurityprofiles.toolsecurity.dev in the whole cluster";
    let exceptions = "list toolsecurityexceptions.toolsecurity.dev in ";
    let all = [profiles, exceptions, "list namespaces in", "list pods in", "list cronjobs.batch in"];
    let directory = tempfile::tempdir()?;
    let dump = directory.path().join("dump").display().to_string();
    let commands: [(&[&str], &[&str]); 8] = [
        (&tenant[..3], &[profiles, exceptions, "get namespaces in"]),
        (&["diff", profile, "--live"], &all),
        (&["report", "--live"], &all),
        (&["dump", &dump], &all),
        (&["replay", "-p", profile, "--live", manifests], &["list namespaces in", exceptions]),
        (&["status"], &[profiles]),
        (&["why", "checked-deny"], &["get namespaces in", profiles]),
        (&["history", TEST], &["get toolsecurityprofiles.toolsecurity.dev in the whole cluster"]),
    ];
    for (command, parts) in commands {
        let refused = palisade(cluster, &[command, &["--as", "check-tenant"]].concat()).await?;
        for part in parts.iter().chain(&["palisade-reader grants it"]) {
            ensure!(refused.code == 2 && refused.err.contains(part), "{command:?}: {part} is not in {refused:?}");
        }
    }
    let metrics = palisade(cluster, &["audit", "--metrics", "--as", "check-tenant"]).await?;
    ensure!(metrics.code == 2 && metrics.err.contains("system:monitoring"), "{metrics:?}");
    let role = ["--clusterrole=palisade-reader", "--user=check-tenant"];
    cluster.kubectl(&[&["create", "clusterrolebinding", "check-tenant"], &role[..]].concat())?;
    eventually("the tenant may read", || async {
        let told = palisade(cluster, &tenant).await.map_err(|error| error.to_string())?;
        if told.code == 1 { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await?;
    let all = printed(cluster, &["check", manifests, "--live", "--as", "check-tenant", "--fail-on", "never"]).await?;
    ensure!(all.contains(" violations in "), "{all}");
    Ok(())
}

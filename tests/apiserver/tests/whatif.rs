//! What `palisade diff` and `palisade replay` predict is what the API server does once the change is made.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use palisade_kube_json::{existing::anew, json::set};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, ephemeral_container, eventually, tool_pod};
use serde_json::{Value as Json, json};

use crate::{
    history::{palisade, printed},
    scan::{deploy, workload},
};

crate::groups::scenarios! {
    diff_predicts_what_the_api_server_denies: Judged 330;
    replayed_requests_get_the_logged_answers: Audited 30;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const UID: i64 = 50_101;
/// How many requests are replayed.
const REQUESTS: usize = 2000;
const OTHER_IMAGE: &str = "tools-harbor.wmcloud.org/tool/image:1";

/// By namespace and workload: how many objects are denied, and by which checks.
type Denied = BTreeMap<(String, String), (u64, BTreeSet<String>)>;

fn profile(test: &str, stage: &str) -> Result<Json> {
    let mut profile = Cluster::toolforge_profile(test)?;
    set(&mut profile, &["spec", "enforcement"], json!({"pods": stage, "workloads": stage}));
    Ok(profile)
}

/// Stricter about registries, and laxer about the host's network.
fn changed(mut profile: Json) -> Json {
    set(&mut profile, &["spec", "images", "allowedRegistries"], json!(["docker-registry.svc.toolforge.org"]));
    set(&mut profile, &["spec", "host", "network"], true);
    profile
}

/// Pods of which the profile, the changed one, both and none deny one.
fn pods(uid: i64) -> [(&'static str, Json); 4] {
    let with = |network: bool, image: bool, name: &'static str| {
        let mut pod = tool_pod(name, uid);
        if network {
            set(&mut pod, &["spec", "hostNetwork"], true);
        }
        if image {
            pod["spec"]["containers"][0]["image"] = OTHER_IMAGE.into();
        }
        (name, pod)
    };
    let (name, mut both) = with(true, true, "both");
    pod_as_root(&mut both);
    [with(false, false, "good"), with(true, false, "network"), with(false, true, "image"), (name, both)]
}

fn pod_as_root(pod: &mut Json) {
    pod["spec"]["containers"][0]["securityContext"]["runAsUser"] = json!(0);
}

async fn created(cluster: &Cluster, path: &str, object: &Json) -> TestResult {
    let verdict = cluster.create_at(path, object).await;
    ensure!(verdict == Verdict::Admitted, "{path}: {verdict:?}");
    Ok(())
}

/// What exists: Deployments with their pods, pods alone, a CronJob and a Job.
async fn objects(cluster: &Cluster, test: &str) -> Result<Vec<String>> {
    let names: Vec<_> = (0..3).map(|index| format!("{test}-{index}")).collect();
    for (namespace, uid) in names.iter().zip(UID..) {
        cluster.create_tool(test, namespace, uid).await?;
        for (name, pod) in pods(uid) {
            deploy(cluster, namespace, &format!("web-{name}"), &pod, 2).await?;
            created(cluster, &format!("/api/v1/namespaces/{namespace}/pods"), &pod).await?;
            let template = json!({"metadata": {"labels": {"toolforge": "tool"}}, "spec": pod["spec"]});
            let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": format!("job-{name}")},
                "spec": {"template": template}});
            created(cluster, &format!("/apis/batch/v1/namespaces/{namespace}/jobs"), &job).await?;
            let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": format!("cron-{name}")},
                "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}});
            created(cluster, &format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"), &cron).await?;
        }
    }
    eventually("two pods of each Deployment", || async {
        for namespace in &names {
            let pods = cluster.answer_to("GET", &format!("/api/v1/namespaces/{namespace}/pods"), &json!(null)).await?;
            let count = pods["items"].as_array().map_or(0, Vec::len);
            if count != 4 * 3 {
                return Err(format!("{count} in {namespace}"));
            }
        }
        Ok(())
    })
    .await?;
    Ok(names)
}

fn checks(denial: &str) -> BTreeSet<String> {
    let marks = denial.split('[').skip(1).filter_map(|rest| rest.split_once("] ").map(|(id, _)| id));
    marks.filter(|id| id.starts_with(|first: char| first.is_ascii_lowercase())).map(str::to_owned).collect()
}

/// What the API server denies of what exists, by a dry run of each object; and how many there are.
async fn denied(cluster: &Cluster, namespaces: &[String]) -> Result<(Denied, u64)> {
    let (mut denied, mut count) = (Denied::new(), 0);
    let kinds = [
        ("/apis/apps/v1", "deployments", "apps/v1", "Deployment"),
        ("/apis/apps/v1", "replicasets", "apps/v1", "ReplicaSet"),
        ("/apis/batch/v1", "jobs", "batch/v1", "Job"),
        ("/apis/batch/v1", "cronjobs", "batch/v1", "CronJob"),
        ("/api/v1", "pods", "v1", "Pod"),
    ];
    for namespace in namespaces {
        let mut owners = BTreeMap::new();
        for (group, resource, api_version, kind) in kinds {
            let path = format!("{group}/namespaces/{namespace}/{resource}");
            let found = cluster.answer_to("GET", &path, &json!(null)).await?;
            for object in found["items"].as_array().into_iter().flatten() {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let owner = &object["metadata"]["ownerReferences"][0];
                let of = |owner: &Json| {
                    format!(
                        "{}/{}",
                        owner["kind"].as_str().unwrap_or_default(),
                        owner["name"].as_str().unwrap_or_default()
                    )
                };
                if kind == "ReplicaSet" && !owner.is_null() {
                    owners.insert(format!("ReplicaSet/{name}"), of(owner));
                    continue;
                }
                let workload = if owner.is_null() { format!("{kind}/{name}") } else { of(owner) };
                let workload = owners.get(&workload).cloned().unwrap_or(workload);
                let mut object = object.clone();
                set(&mut object, &["apiVersion"], api_version);
                set(&mut object, &["kind"], kind);
                let mut object = anew(object);
                set(&mut object, &["metadata", "name"], format!("anew-{name}"));
                count += 1;
                match cluster.create_at(&format!("{path}?dryRun=All"), &object).await {
                    Verdict::Admitted => {}
                    Verdict::Denied(text) => {
                        let line = denied.entry((namespace.clone(), workload)).or_default();
                        line.0 += 1;
                        line.1.extend(checks(&text));
                    }
                    Verdict::Refused(code, text) => return Err(format!("{path}/{name}: {code} {text}").into()),
                }
            }
        }
    }
    Ok((denied, count))
}

/// The lines that a command prints of one change.
fn lines(found: &Json, change: &str) -> Denied {
    let lines = found[change]["workloads"].as_array().into_iter().flatten();
    let text = |of: &Json| of.as_str().unwrap_or_default().to_owned();
    lines
        .map(|line| {
            let checks = line["checks"].as_array().into_iter().flatten().map(|one| text(&one["check"]));
            let key = (text(&line["namespace"]), text(&line["workload"]));
            (key, (line["objects"].as_u64().unwrap_or_default(), checks.collect()))
        })
        .collect()
}

fn file(directory: &tempfile::TempDir, profile: &Json) -> Result<String> {
    let path = directory.path().join("changed.yaml");
    std::fs::write(&path, profile.to_string())?;
    Ok(path.display().to_string())
}

pub(crate) async fn diff_predicts_what_the_api_server_denies(cluster: &mut Cluster) -> TestResult {
    let test = "whatif";
    let namespaces = objects(cluster, test).await?;
    cluster.enforce(&profile(test, "Deny")?).await?;
    let (before, _) = denied(cluster, &namespaces).await?;
    let directory = tempfile::tempdir()?;
    let (file, dump) = (file(&directory, &changed(profile(test, "Deny")?))?, directory.path().join("dump"));
    let dump = dump.display().to_string();

    // The command names the rights that are missing, and what gives them.
    let jane = ["dump", &dump, "--as", "jane"];
    let refused = palisade(cluster, &jane).await?;
    ensure!(refused.code == 2, "{refused:?}");
    for part in [
        "list toolsecurityprofiles.toolsecurity.dev in the whole cluster",
        "list cronjobs.batch",
        "palisade-reader grants it",
    ] {
        ensure!(refused.err.contains(part), "{part} is not in {}", refused.err);
    }
    cluster.kubectl(&["create", "clusterrolebinding", "jane-reads", "--clusterrole=palisade-reader", "--user=jane"])?;
    eventually("jane may read", || async {
        let told = palisade(cluster, &jane).await.map_err(|error| error.to_string())?;
        if told.code == 0 && told.err.is_empty() { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await?;
    let secret =
        cluster.kubectl(&["create", "secret", "generic", "hidden", "-n", &namespaces[0], "--from-literal=a=b"])?;
    let again = format!("{dump}-again");
    printed(cluster, &["dump", &again]).await?;
    let same = std::process::Command::new("diff").args(["-r", &dump, &again]).output()?;
    ensure!(same.status.success(), "{secret}two dumps differ: {}", String::from_utf8_lossy(&same.stdout));

    let live = palisade(cluster, &["diff", &file, "--live", "-o", "json", "--as", "jane"]).await?;
    let dumped = palisade(cluster, &["diff", &file, "--dump", &dump, "-o", "json"]).await?;
    ensure!((live.code, dumped.code) == (1, 1), "{live:?} {dumped:?}");
    let found: Json = serde_json::from_str(&live.out)?;
    let of_dump: Json = serde_json::from_str(&dumped.out)?;
    for key in ["newlyDenied", "newlyAdmitted", "judged", "stillDenied", "noVerdict", "generated"] {
        ensure!(found[key] == of_dump[key], "{key}: {} and {}", found[key], of_dump[key]);
    }

    cluster.enforce(&changed(profile(test, "Deny")?)).await?;
    let (after, count) = denied(cluster, &namespaces).await?;
    let only = |one: &Denied, other: &Denied| -> Denied {
        let lines = one.iter().filter(|(key, _)| !other.contains_key(*key));
        lines.map(|(key, line)| (key.clone(), line.clone())).collect()
    };
    let (denied, admitted) = (only(&after, &before), only(&before, &after));
    println!("{count} objects, {} workloads newly denied, {} newly admitted", denied.len(), admitted.len());
    ensure!(denied.len() == 12 && admitted.len() == 12, "{denied:#?} {admitted:#?}");
    ensure!(lines(&found, "newlyDenied") == denied, "{:#?} and {denied:#?}", lines(&found, "newlyDenied"));
    ensure!(lines(&found, "newlyAdmitted") == admitted, "{:#?} and {admitted:#?}", lines(&found, "newlyAdmitted"));
    let still: u64 = before.iter().filter(|(key, _)| after.contains_key(*key)).map(|(_, line)| line.0).sum();
    ensure!(found["stillDenied"] == still, "{} and {still}", found["stillDenied"]);
    // Other scenarios have profiles and objects of their own.
    ensure!(found["judged"].as_u64() >= Some(count) && found["noVerdict"] == json!([]), "{found:#}");

    // What is in force is no change; a revision is one.
    let none = printed(cluster, &["diff", &file, "--live"]).await?;
    ensure!(none.contains("the change has no effect"), "{none}");
    let back = palisade(cluster, &["diff", &file, &format!("{test}@1"), "--live", "-o", "json"]).await?;
    let back: Json = serde_json::from_str(&back.out)?;
    ensure!(lines(&back, "newlyDenied") == admitted && lines(&back, "newlyAdmitted") == denied, "{back:#}");
    inferred(cluster, test, &dump, &namespaces).await
}

/// The profile of `palisade infer` admits what exists, and no image of another registry.
async fn inferred(cluster: &Cluster, test: &str, dump: &str, namespaces: &[String]) -> TestResult {
    let (selector, name) = (format!("tenancy={test}"), format!("{test}-inferred"));
    let found = printed(cluster, &["infer", "--dump", dump, "-l", &selector, "--name", &name, "-o", "json"]).await?;
    let found: Json = serde_json::from_str(&found)?;
    ensure!(found["denied"] == json!([]) && found["notJudged"] == json!([]), "{found:#}");
    let mut profile = found["profile"].clone();
    set(&mut profile, &["spec", "enforcement"], json!({"pods": "Deny", "workloads": "Deny"}));
    cluster.delete_profile(test).await?;
    cluster.enforce_policies(&profile).await?;
    let (denied, count) = denied(cluster, namespaces).await?;
    ensure!(denied.is_empty() && count > 0, "{count}: {denied:#?} by {profile:#}");
    let mut other = tool_pod("other", UID);
    other["spec"]["containers"][0]["image"] = "registry.example/other:1".into();
    let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", namespaces[0]);
    let verdict = cluster.create_at(&path, &other).await;
    ensure!(matches!(&verdict, Verdict::Denied(text) if text.contains("[imageRegistries]")), "{verdict:?}");
    cluster.delete_profile(&name).await
}

/// The objects of requests: pods and workloads around them.
fn requests(uid: i64) -> Vec<(&'static str, Json)> {
    let pods = pods(uid);
    let named = |index: usize| {
        let (name, pod) = &pods[index % pods.len()];
        let name = format!("{name}-{index}");
        let (path, mut object) = match index / pods.len() % 5 {
            0 => {
                let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod["spec"]});
                ("/apis/batch/v1", json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}))
            }
            1 => ("/apis/apps/v1", workload("Deployment", &name, pod, 0)),
            _ => ("/api/v1", pod.clone()),
        };
        set(&mut object, &["metadata", "name"], name);
        (path, object)
    };
    (0..REQUESTS).map(named).collect()
}

fn path(group: &str, namespace: &str, object: &Json) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    format!("{group}/namespaces/{namespace}/{kind}s")
}

/// Sends all requests. Returns which are denied.
async fn sent(
    cluster: &Cluster,
    namespace: &str,
    all: &[(&'static str, Json)],
    query: &str,
) -> Result<BTreeSet<usize>> {
    let verdicts = stream::iter(all.iter().enumerate().map(|(index, (group, object))| async move {
        match cluster.create_at(&format!("{}{query}", path(group, namespace, object)), object).await {
            Verdict::Admitted => Result::Ok(None),
            Verdict::Denied(_) => Ok(Some(index)),
            Verdict::Refused(code, text) => Err(format!("request {index}: {code} {text}").into()),
        }
    }));
    verdicts.buffer_unordered(8).try_filter_map(|denied| async move { Ok(denied) }).try_collect().await
}

/// Requests that have no verdict, and what the reason says; and one update that passes whatever it replaces.
async fn without_verdict(cluster: &Cluster, namespace: &str, uid: i64) -> Result<[&'static str; 3]> {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    created(cluster, &format!("{pods}?dryRun=All"), &tool_pod("dry", uid)).await?;
    let patched = cluster.patch_pod(namespace, "good-8", &json!({"metadata": {"labels": {"a": "b"}}})).await;
    ensure!(patched == Verdict::Admitted, "{patched:?}");
    let mut pod = cluster.answer_to("GET", &format!("{pods}/good-12"), &json!(null)).await?;
    set(&mut pod, &["metadata", "labels", "a"], "b");
    cluster.answer_to("PUT", &format!("{pods}/good-12"), &pod).await?;
    let ephemeral = json!({"spec": {"ephemeralContainers": ephemeral_container(uid)}});
    let patched = cluster.strategic_patch_at(&format!("{pods}/good-8/ephemeralcontainers"), &ephemeral).await;
    ensure!(patched == Verdict::Admitted, "{patched:?}");
    Ok(["dry run", "a patch", "ephemeralcontainers"])
}

pub(crate) async fn replayed_requests_get_the_logged_answers(cluster: &mut Cluster) -> TestResult {
    let (test, namespace) = ("replayed", "replayed-tool");
    cluster.create_tool(test, namespace, UID).await?;
    let good = profile(test, "Deny")?;
    cluster.enforce(&good).await?;
    cluster.wait_admitted(namespace, &tool_pod("ready", UID)).await?;
    let all = requests(UID);
    let denied = sent(cluster, namespace, &all, "").await?;
    let reasons = without_verdict(cluster, namespace, UID).await?;
    let directory = tempfile::tempdir()?;
    let dump = directory.path().join("dump").display().to_string();
    printed(cluster, &["dump", &dump]).await?;
    let log = cluster.control_plane.audit_log_path().ok_or("no audit log")?.display().to_string();
    let replay = async |profile: &Json| -> Result<(u8, Json)> {
        let file = file(&directory, profile)?;
        let told =
            palisade(cluster, &["replay", "-p", &file, "--dump", &dump, "-n", namespace, "-o", "json", &log]).await?;
        let found = serde_json::from_str(&told.out).map_err(|error| format!("{error}: {told:?}"))?;
        Ok((told.code, found))
    };

    // The same profile gives the same answers. The log is written a moment later.
    let found = eventually("all requests are in the log", || async {
        let (code, found) = replay(&good).await.map_err(|error| error.to_string())?;
        // Before them, the pod that waited for the policies was asked about by dry runs.
        let unknown = found["noVerdict"].as_array().into_iter().flatten().count();
        let done = found["judged"] == REQUESTS + 1 && unknown == reasons.len() && code == 0;
        if done { Ok(found) } else { Err(format!("{code}: {found:#}")) }
    })
    .await?;
    ensure!(found["stillDenied"] == denied.len() && denied.len() == REQUESTS / 2, "{} of {found:#}", denied.len());
    for change in ["newlyDenied", "newlyAdmitted", "newlyReported", "noLongerReported"] {
        ensure!(found[change]["total"]["objects"] == 0, "{change}: {found:#}");
    }
    for reason in reasons {
        let told = found["noVerdict"].as_array().into_iter().flatten();
        let mut told = told.filter_map(|one| one["reason"].as_str());
        ensure!(told.any(|one| one.contains(reason)), "{reason}: {}", found["noVerdict"]);
    }

    // Another profile gives the answers that the API server gives under it.
    let other = changed(good);
    let (code, found) = replay(&other).await?;
    cluster.enforce(&other).await?;
    let after = sent(cluster, namespace, &renamed(&all), "?dryRun=All").await?;
    let names = |indices: &mut dyn Iterator<Item = &usize>| -> BTreeSet<String> {
        let name = |index: &usize| {
            let (_, object) = &all[*index];
            let text = |of: &Json| of.as_str().unwrap_or_default().to_owned();
            format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
        };
        indices.map(name).collect()
    };
    let told = |change| lines(&found, change).into_keys().map(|(_, workload)| workload).collect::<BTreeSet<_>>();
    let (newly, no_longer) = (names(&mut after.difference(&denied)), names(&mut denied.difference(&after)));
    println!(
        "{REQUESTS} requests, {} denied; then {} newly denied, {} newly admitted",
        denied.len(),
        newly.len(),
        no_longer.len()
    );
    ensure!(code == 1 && newly.len() == REQUESTS / 4 && no_longer.len() == REQUESTS / 4, "{code}: {found:#}");
    ensure!(told("newlyDenied") == newly, "newly denied: {:?} and {newly:?}", told("newlyDenied"));
    ensure!(told("newlyAdmitted") == no_longer, "newly admitted: {:?} and {no_longer:?}", told("newlyAdmitted"));
    cluster.delete_profile(test).await?;
    Ok(())
}

/// The same objects under other names, since some exist.
fn renamed(all: &[(&'static str, Json)]) -> Vec<(&'static str, Json)> {
    let other = |(group, object): &(&'static str, Json)| {
        let mut object = object.clone();
        let name = format!("{}-again", object["metadata"]["name"].as_str().unwrap_or_default());
        set(&mut object, &["metadata", "name"], name);
        (*group, object)
    };
    all.iter().map(other).collect()
}

//! What a request costs the API server where a profile judges it, whatever is in it.

use std::error::Error;

use palisade_kube_json::workload::WORKLOADS;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, tool_pod};
use serde_json::{Value as Json, json};

use crate::workloads::path;

crate::groups::scenarios! {
    // It takes minutes, and its figures need a machine without other load: cargo xtask bounds.
    judging_a_long_list_costs_a_bounded_multiple: Alone 20 if "PALISADE_BOUNDS";
}

const UID: i64 = 50_001;
/// At most so many times the CPU time of the same request in a namespace that no profile selects.
const MAX_RATIO: f64 = 5.0;
/// Less CPU time than this, in milliseconds, cannot be distinguished from none: the kernel counts in ticks of 10.
const FLOOR: f64 = 60.0;
/// And so many milliseconds for each megabyte of a single text: cel-go counts the characters of each text that an
/// expression makes, for its cost. That grows with the length and no faster.
const TEXT: f64 = 250.0;
/// Sizes of requests in bytes. The API server takes 3 MiB.
const SIZES: [usize; 2] = [400_000, 3_000_000];

/// A list, or a text, of a pod that somebody makes as long as they like.
struct Case {
    name: &'static str,
    /// The pod with so many elements.
    pod: fn(usize) -> Json,
    /// The size that the API server takes, if that is less than a request may have.
    most: usize,
}

fn pod() -> Json {
    let mut pod = tool_pod("big", UID);
    if let Some(spec) = pod["spec"].as_object_mut() {
        // Only Jobs may say never.
        spec.remove("restartPolicy");
    }
    pod
}

fn list(count: usize, element: impl Fn(usize) -> Json) -> Json {
    (0..count).map(element).collect()
}

fn extend(found: &mut Json, more: Json) {
    if let (Some(found), Json::Array(more)) = (found.as_array_mut(), more) {
        found.extend(more);
    }
}

fn with_spec(path: &str, value: Json) -> Json {
    let mut pod = pod();
    let mut at = &mut pod["spec"];
    for key in path.split('.') {
        at = &mut at[key];
    }
    *at = value;
    pod
}

fn with_container(path: &str, value: Json) -> Json {
    let mut pod = pod();
    let mut at = &mut pod["spec"]["containers"][0];
    for key in path.split('.') {
        at = &mut at[key];
    }
    *at = value;
    pod
}

fn with_volumes(volume: impl Fn(usize) -> Json, count: usize) -> Json {
    let mut pod = pod();
    extend(&mut pod["spec"]["volumes"], list(count, volume));
    pod
}

fn with_containers(field: &str, count: usize) -> Json {
    let mut pod = pod();
    let mut container = pod["spec"]["containers"][0].clone();
    for key in ["volumeMounts", "env", "resources", "command", "workingDir"] {
        container.as_object_mut().map(|container| container.remove(key));
    }
    let more = list(count, |index| {
        let mut container = container.clone();
        container["name"] = format!("c{index}").into();
        container
    });
    if field == "containers" {
        extend(&mut pod["spec"]["containers"], more);
    } else {
        pod["spec"][field] = more;
    }
    pod
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let case = |name, pod| Case { name, pod, most: usize::MAX };
    vec![
        case("supplementalGroups", |n| {
            with_spec("securityContext.supplementalGroups", list(n, |i| json!(1 + i % 60_000)))
        }),
        case("supplementalGroups that are forbidden", |n| {
            with_spec("securityContext.supplementalGroups", list(n, |_| json!(0)))
        }),
        case("hostPath volumes", |n| {
            with_volumes(|i| json!({"name": format!("v{i}"), "hostPath": {"path": format!("/data/project/{i}")}}), n)
        }),
        case("hostPath volumes to be mounted read-only", |n| {
            with_volumes(|i| json!({"name": format!("v{i}"), "hostPath": {"path": format!("/public/dumps/{i}")}}), n)
        }),
        case("forbidden hostPath volumes", |n| {
            with_volumes(|i| json!({"name": format!("v{i}"), "hostPath": {"path": format!("/etc/{i}")}}), n)
        }),
        case("emptyDir volumes", |n| with_volumes(|i| json!({"name": format!("v{i}"), "emptyDir": {}}), n)),
        case("containers", |n| with_containers("containers", n)),
        case("initContainers", |n| with_containers("initContainers", n)),
        case("ports", |n| with_container("ports", list(n, |i| json!({"containerPort": 1 + i % 60_000})))),
        case("ports of the node", |n| {
            with_container(
                "ports",
                list(n, |i| {
                    let address = format!("10.{}.{}.{}", i / 62_500, i / 250 % 250, 1 + i % 250);
                    json!({"containerPort": 80, "hostPort": 80, "hostIP": address})
                }),
            )
        }),
        case("capabilities to add", |n| {
            with_container("securityContext.capabilities.add", list(n, |i| json!(format!("C{i}"))))
        }),
        case("capabilities to drop", |n| {
            with_container("securityContext.capabilities.drop", list(n, |i| json!(format!("C{i}"))))
        }),
        case("volumeMounts", |n| {
            with_container("volumeMounts", list(n, |i| json!({"name": "dumps", "mountPath": format!("/{i}")})))
        }),
        case("env", |n| with_container("env", list(n, |i| json!({"name": format!("e{i}"), "value": ""})))),
        case("args", |n| with_container("args", list(n, |_| json!("a")))),
        case("sysctls", |n| {
            with_spec("securityContext.sysctls", list(n, |i| json!({"name": format!("net.a{i}"), "value": "1"})))
        }),
        case("tolerations", |n| {
            with_spec("tolerations", list(n, |i| json!({"key": format!("t{i}"), "operator": "Exists"})))
        }),
        case("hostAliases", |n| with_spec("hostAliases", list(n, |_| json!({"ip": "10.0.0.1"})))),
        Case {
            // The API server itself compares each with each: with more, for minutes.
            most: 1_000_000,
            ..case("imagePullSecrets", |n| with_spec("imagePullSecrets", list(n, |i| json!({"name": format!("s{i}")}))))
        },
        case("projected sources", |n| {
            let sources = list(n, |i| json!({"configMap": {"name": format!("c{i}"), "optional": true}}));
            with_volumes(|_| json!({"name": "p", "projected": {"sources": sources.clone()}}), 1)
        }),
        Case {
            most: 250_000,
            ..case("annotations", |n| {
                let mut pod = pod();
                for index in 0..n {
                    pod["metadata"]["annotations"][format!("a{index}")] = "".into();
                }
                pod
            })
        },
        Case {
            most: 250_000,
            ..case("annotations for seccomp", |n| {
                let mut pod = pod();
                for index in 0..n {
                    let key = format!("container.seccomp.security.alpha.kubernetes.io/a{index}");
                    pod["metadata"]["annotations"][key] = "unconfined".into();
                }
                pod
            })
        },
        case("as many mounts of as many hostPath volumes as are judged", |_| {
            let mut pod = with_containers("initContainers", 3);
            let volumes =
                list(240, |i| json!({"name": format!("v{i}"), "hostPath": {"path": format!("/public/dumps/{i}")}}));
            extend(&mut pod["spec"]["volumes"], volumes);
            for container in pod["spec"]["initContainers"].as_array_mut().into_iter().flatten() {
                let mount = |i| json!({"name": "home", "mountPath": format!("/{i}")});
                // The API server adds that of the service account's token.
                container["volumeMounts"] = list(255, mount);
            }
            pod
        }),
        case("as many containers as are judged", |_| with_containers("initContainers", 126)),
        case("a long image", |n| with_container("image", format!("tools-harbor.wmcloud.org/{}", "a".repeat(n)).into())),
        case("a long image that is forbidden", |n| with_container("image", "é/".repeat(n).into())),
        case("a long image of a volume", |n| {
            with_volumes(|_| json!({"name": "i", "image": {"reference": "a/".repeat(n)}}), 1)
        }),
        case("a long hostPath", |n| {
            let path = format!("/public/dumps/{}", "a/".repeat(n));
            with_volumes(|_| json!({"name": "h", "hostPath": {"path": path.clone()}}), 1)
        }),
        case("a long hostPath that is forbidden", |n| {
            let path = format!("/{}", "é/".repeat(n));
            with_volumes(|_| json!({"name": "h", "hostPath": {"path": path.clone()}}), 1)
        }),
        case("a long seLinuxOptions.type", |n| with_spec("securityContext.seLinuxOptions.type", "a".repeat(n).into())),
        case("a long capability", |n| with_container("securityContext.capabilities.add", json!(["é".repeat(n)]))),
        case("a long host of a probe", |n| {
            with_container("livenessProbe", json!({"httpGet": {"host": "é".repeat(n), "port": 80}}))
        }),
    ]
}

impl Case {
    /// The pod whose JSON is just about so long.
    fn of_size(&self, size: usize) -> Json {
        let length = |count: usize| (self.pod)(count).to_string().len();
        let (few, many) = (length(100), length(1_100));
        let each = (many - few).div_ceil(1_000).max(1);
        // The later elements may be longer than the earlier ones.
        let mut count = size.saturating_sub(few) / each;
        while length(count) > size {
            count = count * 49 / 50;
        }
        (self.pod)(count)
    }
}

/// Toolforge's profile, which also judges workloads, has the checks that it lacks, and changes pods.
fn profile(test: &str) -> Result<Json, Box<dyn Error + Send + Sync>> {
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["enforcement"] = json!({"pods": "Deny", "workloads": "Deny"});
    for (setting, value) in [
        ("appArmor", json!({"allowed": ["RuntimeDefault"]})),
        ("seLinux", json!({"types": ["container_t"], "levels": ["*"]})),
        ("sysctls", json!({"allowed": ["net.ipv4.ping_group_range"], "forbidden": ["kernel.msg*"]})),
    ] {
        profile["spec"]["privileges"][setting] = value;
    }
    profile["spec"]["privileges"]["seccomp"]["annotations"] = json!(true);
    profile["spec"]["host"]["probeHosts"] = json!(false);
    profile["spec"]["scheduling"] = json!({"runtimeClasses": ["", "gvisor"]});
    profile["spec"]["mutation"] = json!({"defaults": "Secure"});
    profile["spec"]["images"]["redirect"] = json!({"target": "tools-harbor.wmcloud.org/mirror"});
    Ok(profile)
}

async fn cost(cluster: &Cluster, path: &str, object: &Json) -> Result<(f64, Verdict), Box<dyn Error + Send + Sync>> {
    let before = cluster.apiserver_cpu()?;
    let verdict = cluster.dry_run_at(&cluster.admin, path, object).await;
    Ok((cluster.apiserver_cpu()?.saturating_sub(before).as_secs_f64() * 1e3, verdict))
}

/// What a request costs where it is judged, and where it is not, in milliseconds: the least of a few times, unless they
/// are far apart at once, which is not noise and may take minutes.
async fn compare(
    cluster: &Cluster,
    [judged, free]: [&str; 2],
    object: &Json,
) -> Result<(f64, f64, String), Box<dyn Error + Send + Sync>> {
    let (mut here, mut there) = (f64::MAX, f64::MAX);
    for _ in 0..5 {
        let (without, verdict) = cost(cluster, free, object).await?;
        ensure!(verdict == Verdict::Admitted, "where nothing is judged: {}", short(&verdict));
        let (with, verdict) = cost(cluster, judged, object).await?;
        (here, there) = (with.min(here), without.min(there));
        if ratio(here, there) <= MAX_RATIO || ratio(here, there) > 4.0 * MAX_RATIO {
            return Ok((here, there, short(&verdict)));
        }
    }
    Ok((here, there, "five times".to_owned()))
}

fn ratio(here: f64, there: f64) -> f64 {
    here.max(FLOOR) / there.max(FLOOR)
}

/// Pods are both changed and judged by the profile, workloads judged.
pub(crate) async fn judging_a_long_list_costs_a_bounded_multiple(cluster: &mut Cluster) -> TestResult {
    let (test, free) = ("cheap", "cheap-free");
    cluster.create_tool(test, test, UID).await?;
    cluster.enforce(&profile(test)?).await?;
    cluster.wait_admitted(test, &pod()).await?;
    cluster.create_namespace(free, &json!({}), &json!({})).await?;
    cluster.wait_admitted(free, &pod()).await?;
    // Its watches and probes cost the API server, too.
    cluster.stop_controller().await?;
    let (mut worst, mut failures) = (0.0_f64, Vec::new());
    let of = std::env::var("PALISADE_BOUNDS").unwrap_or_default();
    ensure!(of == "all" || cases().iter().any(|case| case.name.contains(&of)), "PALISADE_BOUNDS={of} names no list");
    for size in SIZES {
        for case in cases().into_iter().filter(|case| of == "all" || case.name.contains(&of)) {
            let size = size.min(case.most);
            let pod = case.of_size(size);
            for workload in [None, Some(&WORKLOADS[0])] {
                let object = workload.map_or_else(|| pod.clone(), |workload| workload.around("big", &pod));
                let at = |namespace| match workload {
                    None => format!("/api/v1/namespaces/{namespace}/pods"),
                    Some(workload) => path(workload, namespace),
                };
                let kind = workload.map_or("Pod", |workload| workload.kind);
                let what = format!("{}, {size} bytes, {kind}", case.name);
                let compared = compare(cluster, [&at(test), &at(free)], &object).await;
                let (here, there, said) = compared.map_err(|error| format!("{what}: {error}"))?;
                let ratio = ratio(here, there);
                let line = format!("{what}: {here} ms of {there} ms, {ratio:.1}x: {said}");
                println!("{line}");
                worst = worst.max(ratio);
                let text = if case.name.starts_with("a long ") {
                    TEXT * f64::from(u32::try_from(size).unwrap_or(u32::MAX)) / 1e6
                } else {
                    0.0
                };
                if ratio > MAX_RATIO && here > MAX_RATIO * there + text {
                    failures.push(line);
                }
            }
        }
        // Longer ones could take hours.
        ensure!(failures.is_empty(), "more than {MAX_RATIO} times as much CPU time:\n{}", failures.join("\n"));
    }
    println!("the worst: {worst:.1}x");
    cluster.start_controller().await?;
    cluster.delete_profile(test).await
}

fn short(verdict: &Verdict) -> String {
    let text = format!("{verdict:?}");
    let from = text.find("ToolSecurityProfile").unwrap_or_default();
    text.chars().skip(from).take(160).collect()
}

//! What users send, and what an API server says of it before it asks any policy: the same offline.

use std::{collections::BTreeSet, path::Path};

use palisade_admission::requests::{Cluster as Offline, Operation, Outcome};
use palisade_tests::{Cluster, TestResult, ensure, root};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::admission::{Answer, ask_server};

crate::groups::scenarios! {
    validation_errors_match_the_api_server: Answers 80;
    corpus_workloads_are_validated_like_the_api_server: Answers 90;
}

/// The documents of a file, without those that have no kind.
fn documents(file: &Path) -> Result<Vec<Json>, Box<dyn std::error::Error + Send + Sync>> {
    let text = std::fs::read_to_string(file)?;
    let mut out = Vec::new();
    for document in text.split("\n---\n") {
        let value: Json = serde_saphyr::from_str(document)?;
        if value["kind"].is_string() {
            out.push(value);
        }
    }
    Ok(out)
}

/// The offline answer, or why it is unknown.
fn answer(offline: &Offline, object: &Json) -> Result<Answer, String> {
    let request = offline.request(Operation::Create, "", object, None)?;
    let review = offline.admit(&request);
    let refused = match review.outcome {
        Outcome::Allowed => None,
        Outcome::Denied(denials) => denials.first().map(|one| (one.message.clone(), one.reason.clone(), one.code)),
        Outcome::NoVerdict(why) => return Err(why),
    };
    Ok(Answer { refused, warnings: review.warnings })
}

/// The API server walks maps in random order: of several mistakes any may come first.
fn same(a: &Answer, b: &Answer) -> bool {
    let sorted = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    let refusal = |answer: &Answer| {
        answer.refused.as_ref().map(|(message, reason, code)| (sorted(message), reason.clone(), *code))
    };
    // Whether a key fits its certificate is not looked at offline.
    let warnings = |answer: &Answer| {
        answer.warnings.iter().filter(|text| !text.starts_with("tls: ")).cloned().collect::<BTreeSet<_>>()
    };
    refusal(a) == refusal(b) && warnings(a) == warnings(b)
}

/// Sends objects to both. Returns how many were compared, and the differences.
async fn compare(
    cluster: &Cluster,
    objects: &[(String, Json)],
) -> Result<(usize, Vec<String>), Box<dyn std::error::Error + Send + Sync>> {
    let offline = Offline::new(cluster.minor().await?);
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, object) in objects {
        // Kinds of definitions that are not here.
        let Ok(mut request) = offline.request(Operation::Create, "", object, None) else { continue };
        "admin".clone_into(&mut request.user.name);
        request.user.groups = vec!["system:masters".to_owned()];
        count += 1;
        let said = ask_server(cluster, &request).await?;
        match answer(&offline, object) {
            Ok(answer) if same(&answer, &said) => {}
            Ok(answer) => wrong.push(format!("{name}\n    the API server: {said:?}\n    offline: {answer:?}")),
            Err(why) => wrong.push(format!("{name}: no verdict: {why}")),
        }
    }
    Ok((count, wrong))
}

/// Makes the namespaces of objects. What else they refer to is a question of other admission plugins, and is left out.
fn surround(cluster: &Cluster, objects: &mut [(String, Json)]) -> TestResult {
    let mut there = BTreeSet::from([String::from("default")]);
    for (_, object) in objects {
        if let Some(name) = object["metadata"]["namespace"].as_str().map(str::to_owned) {
            // Some are there.
            let is_name = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            if !is_name {
                object["metadata"]["namespace"] = json!("default");
            } else if there.insert(name.clone()) && cluster.kubectl(&["create", "namespace", &name]).is_ok() {
                // A pod of a namespace without it is refused for that.
                cluster.kubectl(&["wait", "--for=create", "sa/default", "-n", &name, "--timeout=60s"])?;
            }
        }
        if object["kind"] != "Pod" {
            continue;
        }
        if let Some(spec) = object["spec"].as_object_mut() {
            let accounts = [spec.remove("serviceAccountName"), spec.remove("serviceAccount")];
            if accounts.iter().any(Option::is_some) {
                spec.insert("serviceAccountName".to_owned(), json!("default"));
            }
            spec.remove("priorityClassName");
            spec.remove("runtimeClassName");
        }
    }
    Ok(())
}

/// One value of another type than that of its field: the answer names the field, as the API server's does.
fn of_wrong_types() -> Vec<(String, Json)> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "typed", "labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}}, "readinessProbe": {"httpGet": {"port": "a"}}}],
            "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
        },
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "typed"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
            ]},
            "validations": [{"expression": "true", "message": "no"}],
        },
    });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "typed"}, "data": {"a": "YQ=="}});
    let claim = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "typed"},
        "spec": {"renewTime": "2024-01-02T03:04:05.000000Z", "leaseDurationSeconds": 1},
    });
    let mut out = Vec::new();
    for (name, object, at, values) in [
        ("label", &pod, "/metadata/labels/a", vec![json!(true), json!(1), json!(null), json!([])]),
        ("name", &pod, "/metadata/name", vec![json!(1), json!({})]),
        ("image", &pod, "/spec/containers/0/image", vec![json!(false), json!(["a"])]),
        (
            "port",
            &pod,
            "/spec/containers/0/ports/0/containerPort",
            vec![json!("80"), json!(1.5), json!(2_147_483_648_u64)],
        ),
        ("quantity", &pod, "/spec/containers/0/resources/limits/cpu", vec![json!("lots"), json!(true), json!([1])]),
        ("number or text", &pod, "/spec/containers/0/readinessProbe/httpGet/port", vec![json!(1.5), json!(true)]),
        ("list", &pod, "/spec/containers", vec![json!({}), json!("a")]),
        ("struct", &pod, "/spec/volumes/0/hostPath", vec![json!("/"), json!([])]),
        (
            "time",
            &pod,
            "/metadata/creationTimestamp",
            vec![json!("yesterday"), json!(5), json!("2024-13-01T00:00:00Z")],
        ),
        ("unknown", &pod, "/spec/containers/0/imagePullpolicy", vec![json!("Always")]),
        ("message", &policy, "/spec/validations/0/message", vec![json!(false), json!(7)]),
        ("operations", &policy, "/spec/matchConstraints/resourceRules/0/operations", vec![json!("CREATE")]),
        ("bytes", &secret, "/data/a", vec![json!("no base64!"), json!(1), json!([97]), json!(["a"])]),
        ("microseconds", &claim, "/spec/renewTime", vec![json!("2024-01-02T03:04:05Z"), json!("now"), json!(1)]),
        ("overflow", &claim, "/spec/leaseDurationSeconds", vec![json!(4_294_967_296_u64), json!("1")]),
    ] {
        for value in values {
            let mut changed = object.clone();
            let (parent, key) = at.rsplit_once('/').unwrap_or_default();
            match changed.pointer_mut(parent) {
                Some(Json::Object(fields)) => drop(fields.insert(key.to_owned(), value.clone())),
                _ => continue,
            }
            out.push((format!("{name}: {value}"), changed));
        }
    }
    out
}

pub(crate) async fn validation_errors_match_the_api_server(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let mut objects = of_wrong_types();
    for file in
        ["objects/valid", "objects/invalid", "objects/odd", "mutants/pods", "mutants/workloads", "mutants/others"]
    {
        let documents = documents(&root().join("tests/oracle").join(format!("{file}.yaml")))?;
        for (i, document) in documents.into_iter().enumerate() {
            objects.push((format!("{file}/{i}"), document));
        }
    }
    surround(cluster, &mut objects)?;
    let (count, wrong) = compare(cluster, &objects).await?;
    println!("{count} objects, {} answered alike", count - wrong.len());
    ensure!(count > 100, "only {count} objects");
    ensure!(wrong.is_empty(), "{} of {count} are answered differently:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[derive(Deserialize)]
struct Entry {
    file: String,
}

/// Skipped where the collection is not there: `PALISADE_CORPUS` names its directory, or it is `shared/corpus` beside the
/// clone.
pub(crate) async fn corpus_workloads_are_validated_like_the_api_server(cluster: &mut Cluster) -> TestResult {
    let directory = std::env::var_os("PALISADE_CORPUS").map_or_else(|| root().join("../shared/corpus"), Into::into);
    let Ok(index) = std::fs::read_to_string(directory.join("workloads/INDEX.json")) else {
        println!("skipped: 0 of 0 workloads compared, there is no directory {}", directory.display());
        return Ok(());
    };
    cluster.stop_controller().await?;
    let index: Vec<Entry> = serde_json::from_str(&index)?;
    let mut objects = Vec::new();
    for entry in &index {
        for (i, document) in documents(&directory.join(&entry.file))?.into_iter().enumerate() {
            objects.push((format!("{} {i}", entry.file), document));
        }
    }
    surround(cluster, &mut objects)?;
    let (count, wrong) = compare(cluster, &objects).await?;
    println!("{} files, {count} workloads, {} answered alike", index.len(), count - wrong.len());
    ensure!(wrong.is_empty(), "{} of {count} are answered differently:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

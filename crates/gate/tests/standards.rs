//! The Pod Security Standards in the offline API server: whether its admission plugin says what the real one does.
#![allow(clippy::disallowed_methods, reason = "tests read files")]

use std::{collections::BTreeMap, fs, io::Read as _, path::Path};

use palisade_admission::requests::{Level, Operation, PodSecurity as _};
use palisade_cel::Minor;
use palisade_gate::Standards;
use serde_json::{Value as Json, json};

#[test]
fn pod_security_plugin_judges_by_the_catalogue() {
    let mut cluster = palisade_gate::cluster(Minor::V1_36);
    let labels = json!({"pod-security.kubernetes.io/enforce": "baseline"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}});
    cluster.apply(namespace).unwrap();
    let spec = json!({"containers": [{"name": "a", "image": "a"}], "hostNetwork": true});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    let review = cluster.admit(&cluster.request(Operation::Create, "", &pod, None).unwrap());
    let message = &review.outcome.denial().unwrap().message;
    let wanted =
        "pods \"a\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)";
    assert_eq!(message, wanted);
}

/// What the plugin writes of a pod after the level; nothing if it complies.
fn words(level: Level, minor: u8, pod: &Json) -> Result<Option<String>, String> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]});
    let violations = Standards.violations(level, minor, &pod)?;
    let texts: Vec<_> = violations.iter().map(ToString::to_string).collect();
    Ok(Some(texts.join(", ")).filter(|text| !text.is_empty()))
}

/// In which words the plugin `PodSecurity` tells what is wrong, for every version of the standards: those of
/// `k8s.io/pod-security-admission`, of the pods of the catalogue's fixtures (`cargo xtask standards`).
#[test]
fn pod_security_messages_match_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/texts/golden.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let (mut compared, mut violating, mut unjudged, mut wrong) = (0, 0, 0, Vec::new());
    for line in text.lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        // The message for each level from a version on.
        let said: BTreeMap<String, Vec<(u8, String)>> = serde_json::from_value(line["said"].clone()).unwrap();
        for (level, since) in said {
            for (index, (from, wanted)) in since.iter().enumerate() {
                let until = since.get(index + 1).map_or(37, |(next, _)| next - 1);
                for minor in [*from, until] {
                    let level = if level == "baseline" { Level::Baseline } else { Level::Restricted };
                    let found = words(level, minor, &line["pod"]);
                    let wanted = Some(wanted.clone()).filter(|wanted| !wanted.is_empty());
                    compared += 1;
                    violating += usize::from(wanted.is_some());
                    // Before v1.19 the plugin looks at annotations alone; the catalogue looks at the field as well.
                    let stricter = matches!(&found, Err(why) if minor < 19 && why.contains("[seccompProfile]"));
                    unjudged += usize::from(stricter);
                    if found != Ok(wanted.clone()) && !stricter {
                        let pod = &line["pod"];
                        wrong.push(format!("{level:?} v1.{minor} {pod}\n  wanted {wanted:?}\n  found {found:?}"));
                    }
                }
            }
        }
    }
    assert!(unjudged < 10, "{unjudged}");
    assert!(compared > 1000 && violating > 500, "{compared} {violating}");
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
}

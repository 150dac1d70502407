//! Random pods of the kinds of [`super::kinds`].

use serde_json::{Value as Json, json};

use super::kinds::{Kind, TEXTS};
use crate::properties::random::Random;

/// A pod, in which each optional field is set in so many of a hundred cases.
pub(crate) fn pod(random: &mut Random) -> Json {
    let percent = random.one(&[15, 40, 70]);
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}});
    if random.percent(40) {
        pod["metadata"]["annotations"] = json!({"k": random.one(&TEXTS)});
    }
    if random.percent(20) {
        pod["metadata"]["labels"] = json!({"a": random.one(&TEXTS)});
    }
    fill(random, &mut pod["spec"], Kind::Spec, percent);
    if random.percent(20) {
        pod["spec"]["nodeSelector"] = json!({"a": "b"});
    }
    pod
}

/// Sets fields of an object of this kind.
pub(crate) fn fill(random: &mut Random, object: &mut Json, kind: Kind, percent: usize) {
    for &(field, required) in kind.texts() {
        if required || random.percent(percent) {
            object[field] = json!(if field == "mountPropagation" { "None" } else { random.one(&TEXTS) });
        }
    }
    for &field in kind.booleans() {
        if random.percent(percent / 2) {
            object[field] = json!(random.percent(50));
        }
    }
    for &(field, required) in kind.numbers() {
        if required || random.percent(percent / 2) {
            object[field] = json!(random.below(3));
        }
    }
    for &(field, of, required) in kind.lists() {
        let few = field == "ephemeralContainers" && random.percent(80);
        if !required && (few || !random.percent(percent)) {
            continue;
        }
        let length = if required { 1 + random.below(3) } else { random.below(4) };
        // An empty list is stored as none, but a test must not depend on that.
        if length > 0 || random.percent(20) {
            object[field] = (0..length).map(|index| element(random, of, percent, index)).collect();
        }
    }
    if let Some((field, of)) = kind.object().filter(|_| random.percent(percent)) {
        let mut below = json!({});
        fill(random, &mut below, of, percent);
        object[field] = below;
    }
}

fn element(random: &mut Random, kind: Kind, percent: usize, index: usize) -> Json {
    let mut object = json!({});
    match kind {
        Kind::Text => return json!(random.one(&TEXTS)),
        Kind::Number => return json!(random.below(3)),
        _ => fill(random, &mut object, kind, percent),
    }
    match kind {
        Kind::Container => {
            let number = if random.percent(50) { String::new() } else { index.to_string() };
            object["name"] = json!(format!("{}{number}", random.one(&["a", "b", "x", "root"])));
        }
        Kind::Volume => object["emptyDir"] = json!({}),
        _ => {}
    }
    object
}

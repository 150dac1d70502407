//! What the definitions of the last release accepted is still accepted, or stands in `compatibility/allowed.tsv` with the
//! reason. `docs/versioning.md` promises it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value as Json, json};

/// The release that is compared with. Whoever releases adds a directory beside it, and names it here.
const RELEASED: &str = "0.1.0";

/// Below an upper bound nothing is refused; a lower one refuses more, and so does one that was not there.
const UPPER: [&str; 4] = ["maximum", "maxItems", "maxLength", "maxProperties"];
const LOWER: [&str; 4] = ["minimum", "minItems", "minLength", "minProperties"];
/// What refuses more if it is there and was not, or was another.
const EXACT: [&str; 13] = [
    "allOf",
    "anyOf",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "type",
    "uniqueItems",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
];
/// What accepts less if it is no longer there.
const LENIENT: [&str; 3] = ["nullable", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compatibility")
}

fn texts(list: &Json) -> BTreeSet<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
        .collect()
}

/// What `new` refuses and `old` accepted: place, and what.
fn narrowed(old: &Json, new: &Json, place: &str, out: &mut Vec<(String, String)>) {
    let mut say = |what: String| out.push((place.to_owned(), what));
    for key in UPPER.into_iter().chain(LOWER) {
        let Some(bound) = new[key].as_f64() else { continue };
        let wider = |before: f64| if UPPER.contains(&key) { before > bound } else { before < bound };
        if old[key].as_f64().is_none_or(wider) && !(LOWER.contains(&key) && key != "minimum" && bound == 0.0) {
            say(format!("{key} is {} and was {}", new[key], old[key]));
        }
    }
    for key in EXACT {
        let unset = new[key].is_null() || new[key] == json!(false);
        // A list without a type is atomic.
        let same = new[key] == old[key] || new[key] == json!("atomic") && old[key].is_null();
        if !unset && !same {
            say(format!("{key} is {} and was {}", new[key], old[key]));
        }
    }
    for key in LENIENT {
        if old[key] == json!(true) && new[key] != json!(true) {
            say(format!("{key} is gone"));
        }
    }
    if new["default"] != old["default"] && !old["default"].is_null() {
        say(format!("default is {} and was {}", new["default"], old["default"]));
    }
    if new["enum"].is_array() {
        let (before, after) = (texts(&old["enum"]), texts(&new["enum"]));
        if old["enum"].is_null() {
            say("enum is new".to_owned());
        }
        before.difference(&after).for_each(|value| say(format!("enum has no {value}")));
    }
    let required = texts(&new["required"]);
    for name in required.difference(&texts(&old["required"])) {
        if new["properties"][name]["default"].is_null() {
            say(format!("{name} is required"));
        }
    }
    let rules = |schema: &Json| -> BTreeSet<String> {
        let rules = schema["x-kubernetes-validations"].as_array();
        rules.into_iter().flatten().filter_map(|rule| rule["rule"].as_str().map(str::to_owned)).collect()
    };
    rules(new).difference(&rules(old)).for_each(|rule| say(format!("a rule is new: {rule}")));

    for (name, before) in old["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match new["properties"].get(name) {
            Some(after) => narrowed(before, after, &place, out),
            None => out.push((place, "the field is gone".to_owned())),
        }
    }
    for (key, sign) in [("items", "[]"), ("additionalProperties", "{}")] {
        match (old.get(key), new.get(key)) {
            (Some(before), Some(after)) => narrowed(before, after, &format!("{place}{sign}"), out),
            (Some(_), None) => out.push((format!("{place}{sign}"), "the schema is gone".to_owned())),
            _ => {}
        }
    }
}

/// What a definition refuses that the earlier one accepted.
fn refused(old: &Json, new: &Json) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for path in ["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"] {
        if old.pointer(path) != new.pointer(path) {
            out.push((path.to_owned(), "it is another".to_owned()));
        }
    }
    let shorter = texts(&old["spec"]["names"]["shortNames"]);
    for name in shorter.difference(&texts(&new["spec"]["names"]["shortNames"])) {
        out.push(("/spec/names/shortNames".to_owned(), format!("{name} is gone")));
    }
    let served = |crd: &Json| -> BTreeMap<String, Json> {
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == json!(true));
        served.map(|version| (version["name"].to_string(), version["schema"]["openAPIV3Schema"].clone())).collect()
    };
    let subresources = |crd: &Json| -> BTreeSet<String> {
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        let all = versions.flat_map(|version| version["subresources"].as_object().into_iter().flatten());
        all.map(|(name, _)| name.clone()).collect()
    };
    for name in subresources(old).difference(&subresources(new)) {
        out.push(("/spec/versions".to_owned(), format!("the subresource {name} is gone")));
    }
    let after = served(new);
    for (version, before) in served(old) {
        match after.get(&version) {
            Some(after) => narrowed(&before, after, "", &mut out),
            None => out.push(("/spec/versions".to_owned(), format!("{version} is not served"))),
        }
    }
    out
}

/// What may differ: kind, place, what; each with a reason.
fn allowed() -> BTreeSet<(String, String, String)> {
    let text = fs::read_to_string(directory().join("allowed.tsv")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let cells: Vec<_> = line.split('\t').collect();
            let [kind, place, what, reason] = cells[..] else { panic!("allowed.tsv: four columns, not {line:?}") };
            assert!(!reason.trim().is_empty(), "allowed.tsv: why may {kind}{place} differ?");
            (kind.to_owned(), place.to_owned(), what.to_owned())
        })
        .collect()
}

#[test]
fn what_the_last_release_accepted_is_accepted() {
    let now: BTreeMap<String, Json> = palisade_api::crd::all()
        .into_iter()
        .map(|crd| (crd.spec.names.plural.clone(), serde_json::to_value(crd).unwrap()))
        .collect();
    let files = fs::read_dir(directory().join("released").join(RELEASED)).unwrap();
    let mut found = BTreeSet::new();
    let mut compared = 0;
    for path in files.map(|entry| entry.unwrap().path()) {
        let old: Json = serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let plural = old["spec"]["names"]["plural"].as_str().unwrap();
        let kind = old["spec"]["names"]["kind"].as_str().unwrap();
        let new = now.get(plural).unwrap_or_else(|| panic!("{kind} of {RELEASED} is gone"));
        found.extend(refused(&old, new).into_iter().map(|(place, what)| (kind.to_owned(), place, what)));
        compared += 1;
    }
    assert!(compared > 0, "no definitions of {RELEASED}");
    let allowed = allowed();
    let show = |(kind, place, what): &(String, String, String)| format!("{kind}{place}: {what}");
    let wrong: Vec<_> = found.difference(&allowed).map(show).collect();
    assert!(
        wrong.is_empty(),
        "refused now, and accepted by {RELEASED}; take it back, or say why in crates/xtask/tests/compatibility/allowed.tsv \
         and in CHANGELOG.md:\n{}",
        wrong.join("\n")
    );
    let stale: Vec<_> = allowed.difference(&found).map(show).collect();
    assert!(stale.is_empty(), "allowed.tsv has what does not differ:\n{}", stale.join("\n"));
}

#[test]
fn each_way_to_accept_less_is_found() {
    let old = json!({
        "type": "object", "required": ["a"], "x-kubernetes-validations": [{"rule": "true"}],
        "properties": {
            "a": {"type": "string", "maxLength": 5, "enum": ["x", "y"], "default": "x"},
            "n": {"type": "integer", "minimum": 1, "nullable": true},
            "l": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "k": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    });
    let mut same = Vec::new();
    narrowed(&old, &old, "", &mut same);
    assert_eq!(same, []);
    for (path, value, expected) in [
        ("/properties/a/maxLength", json!(4), Some(".a: maxLength is 4 and was 5")),
        ("/properties/a/maxLength", json!(6), None),
        ("/properties/a/minLength", json!(1), Some(".a: minLength is 1 and was null")),
        ("/properties/a/minLength", json!(0), None),
        ("/properties/a/enum", json!(["x"]), Some(".a: enum has no y")),
        ("/properties/a/enum", json!(["x", "y", "z"]), None),
        ("/properties/a/enum", Json::Null, None),
        ("/properties/a/default", json!("y"), Some(".a: default is \"y\" and was \"x\"")),
        ("/properties/a/pattern", json!("^x"), Some(".a: pattern is \"^x\" and was null")),
        ("/properties/n/minimum", json!(2), Some(".n: minimum is 2 and was 1")),
        ("/properties/n/nullable", json!(false), Some(".n: nullable is gone")),
        ("/properties/n/type", json!("string"), Some(".n: type is \"string\" and was \"integer\"")),
        ("/properties/l/items/maxLength", json!(9), Some(".l[]: maxLength is 9 and was null")),
        (
            "/properties/k/x-kubernetes-list-map-keys",
            json!(["a"]),
            Some(".k: x-kubernetes-list-map-keys is [\"a\"] and was [\"a\",\"b\"]"),
        ),
        (
            "/properties/l/x-kubernetes-list-type",
            json!("set"),
            Some(".l: x-kubernetes-list-type is \"set\" and was null"),
        ),
        ("/properties/m/additionalProperties/pattern", json!("x"), Some(".m{}: pattern is \"x\" and was null")),
        ("/required", json!(["a", "n"]), Some(": n is required")),
        ("/required", json!([]), None),
        ("/x-kubernetes-validations", json!([{"rule": "self.a == ''"}]), Some(": a rule is new: self.a == ''")),
        ("/properties/o", json!({"type": "string", "maxLength": 1}), None),
        ("/properties/m", json!({"type": "object"}), Some(".m{}: the schema is gone")),
    ] {
        let mut new = old.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = new.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(key.to_owned(), value);
        let mut out = Vec::new();
        narrowed(&old, &new, "", &mut out);
        let said: Vec<_> = out.iter().map(|(place, what)| format!("{place}: {what}")).collect();
        assert_eq!(said, expected.into_iter().collect::<Vec<_>>(), "{path}");
    }
    let mut less = old.clone();
    less["properties"].as_object_mut().unwrap().remove("n");
    let mut out = Vec::new();
    narrowed(&old, &less, "", &mut out);
    assert_eq!(out, [(".n".to_owned(), "the field is gone".to_owned())]);
}

#[test]
fn the_release_that_is_compared_with_is_the_newest() {
    let number = |name: &String| name.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    // Its objects are put into an API server by `objects_of_the_last_release_are_taken_over`.
    for kept in ["crates/xtask/tests/compatibility/released", "tests/apiserver/fixtures"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(kept);
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.max_by_key(number).as_deref(), Some(RELEASED), "{kept}");
    }
}

#[test]
fn version_that_is_no_longer_served_is_found() {
    let old = json!({"spec": {"group": "g", "versions": [{"name": "v1", "served": true, "schema": {}}]}});
    let new = json!({"spec": {"group": "g", "versions": [{"name": "v1", "served": false, "schema": {}}]}});
    assert_eq!(refused(&old, &old), []);
    assert_eq!(refused(&old, &new), [("/spec/versions".to_owned(), "\"v1\" is not served".to_owned())]);
}

#[test]
fn subresource_that_is_gone_is_found() {
    let old =
        json!({"spec": {"versions": [{"name": "v1", "served": true, "schema": {}, "subresources": {"status": {}}}]}});
    let mut new = old.clone();
    new["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    assert_eq!(refused(&old, &old), []);
    assert_eq!(refused(&old, &new), [("/spec/versions".to_owned(), "the subresource status is gone".to_owned())]);
}

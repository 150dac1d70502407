//! The field of an object that a violation is about, by the message and the fields that its check restricts.

use palisade_api::catalogue;
use palisade_checks::Field;
use serde_json::Value as Json;

use crate::evaluator::REJECTED;

/// The path of the field in a pod or workload, whose pod template is at the JSON pointer `template`. If the field is not
/// set, it is the path where it would be.
pub(super) fn of(object: &Json, template: &str, check: &str, message: &str) -> String {
    if check == REJECTED {
        return rejected(message);
    }
    let pod = template.trim_start_matches('/').replace('/', ".");
    let below = |path: &str| if pod.is_empty() { path.to_owned() } else { format!("{pod}.{path}") };
    let element = Element::of(object.pointer(template).unwrap_or(object), message);
    let fields = catalogue::ALL.iter().find(|one| one.id == check).map(|one| one.fields).unwrap_or_default();
    let mut found = fields.iter().flat_map(|field| element.places(field)).collect::<Vec<_>>();
    if fields.is_empty() {
        found.extend(words(message).filter_map(|word| element.place(word)));
    }
    // The message names the field, or at least the value. Of equal ones the first counts.
    let best = found.into_iter().rev().max_by_key(|place| place.rank(message));
    below(&best.map_or(element.path, |place| place.path))
}

/// The field that the API server names: `spec.containers[0].name: Required value`.
fn rejected(message: &str) -> String {
    let named = message.split(' ').filter_map(|word| word.trim_start_matches('[').strip_suffix(':'));
    named.into_iter().find(|word| word.starts_with("spec.") || word.starts_with("metadata.")).unwrap_or("").to_owned()
}

fn words(message: &str) -> impl Iterator<Item = &str> {
    message.split(' ').map(|word| word.trim_matches([',', ':', ';', '"', '\''])).filter(|word| !word.is_empty())
}

/// The part of a pod that a message begins with.
struct Element<'a> {
    pod: &'a Json,
    /// Its path in the pod: `spec`, `spec.containers[0]`.
    path: String,
    value: &'a Json,
}

/// A field of an element, set or not.
struct Place<'a> {
    path: String,
    /// The path below the element, without indices.
    field: String,
    value: &'a Json,
}

impl<'a> Element<'a> {
    fn of(pod: &'a Json, message: &str) -> Self {
        const LISTS: [(&str, &str); 4] = [
            ("container \"", "containers"),
            ("container \"", "initContainers"),
            ("container \"", "ephemeralContainers"),
            ("volume \"", "volumes"),
        ];
        for (prefix, list) in LISTS {
            let Some((name, _)) = message.strip_prefix(prefix).and_then(|rest| rest.split_once("\": ")) else {
                continue;
            };
            let all = pod["spec"][list].as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(index) = all.iter().position(|one| one["name"] == name) {
                return Self { pod, path: format!("spec.{list}[{index}]"), value: &all[index] };
            }
        }
        Self { pod, path: "spec".to_owned(), value: &pod["spec"] }
    }

    /// The places of a restricted field in this element.
    fn places(&self, field: &Field) -> Vec<Place<'a>> {
        let (path, is_here) = match field {
            Field::Pod(path) => (*path, self.path == "spec"),
            Field::Volume("*") if self.path.contains(".volumes[") => {
                let keys = self.value.as_object().into_iter().flatten().filter(|(key, _)| *key != "name");
                let place = |(key, value): (&'a String, _)| Place {
                    path: format!("{}.{key}", self.path),
                    field: key.clone(),
                    value,
                };
                return keys.map(place).collect();
            }
            Field::Volume(path) => (*path, self.path.contains(".volumes[")),
            Field::Container(path) => (*path, self.path.contains("ontainers[")),
            Field::Annotation(prefix) => {
                let all = self.pod["metadata"]["annotations"].as_object().into_iter().flatten();
                let place = |(key, value): (&'a String, _)| Place {
                    path: format!("metadata.annotations.{key}"),
                    field: key.clone(),
                    value,
                };
                return all.filter(|(key, _)| key.starts_with(prefix)).map(place).collect();
            }
        };
        let mut found = Vec::new();
        if is_here {
            let start = Place { path: self.path.clone(), field: String::new(), value: self.value };
            expand(&start, path, &mut found);
        }
        found
    }

    /// The field that a word of a custom message names.
    fn place(&self, word: &str) -> Option<Place<'a>> {
        let word = word.strip_prefix("spec.").filter(|_| self.path == "spec").unwrap_or(word);
        let first = word.split(['.', '[']).next()?;
        let value = self.value.get(first)?;
        Some(Place { path: format!("{}.{word}", self.path), field: word.to_owned(), value })
    }
}

/// Follows a path such as `ports[*].hostPort`, into each element of a list.
fn expand<'a>(at: &Place<'a>, path: &str, found: &mut Vec<Place<'a>>) {
    let Some((first, rest)) = path.split_once('.').map(|(first, rest)| (first, Some(rest))).or(Some((path, None)))
    else {
        return;
    };
    let (key, is_list) = first.strip_suffix("[*]").map_or((first, false), |key| (key, true));
    let value = at.value.get(key).unwrap_or(&Json::Null);
    let field = if at.field.is_empty() { key.to_owned() } else { format!("{}.{key}", at.field) };
    let path = format!("{}.{key}", at.path);
    let mut go_on = |place: Place<'a>| match rest {
        Some(rest) => expand(&place, rest, found),
        None => found.push(place),
    };
    match value.as_array().filter(|items| is_list && !items.is_empty()) {
        Some(items) => {
            for (index, value) in items.iter().enumerate() {
                go_on(Place { path: format!("{path}[{index}]"), field: field.clone(), value });
            }
        }
        None => go_on(Place { path, field, value }),
    }
}

impl Place<'_> {
    /// How well a message fits this field: it names the field, the field is set, it names the value.
    fn rank(&self, message: &str) -> (u8, bool, bool) {
        let last = self.field.rsplit('.').next().unwrap_or_default();
        let named = if message.contains(&self.field) {
            2
        } else {
            u8::from(words(message).any(|word| word.trim_start_matches("spec.") == last))
        };
        let value = match self.value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        (named, !self.value.is_null(), words(message).any(|word| word == value))
    }
}

#[cfg(test)]
mod tests {
    use palisade_checks::fixture::Fixture;
    use serde_json::json;

    use super::*;

    #[test]
    fn violation_is_at_its_field() {
        let pod = json!({
            "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}},
            "spec": {
                "hostPID": true,
                "containers": [
                    {"name": "a", "image": "nginx"},
                    {"name": "b", "image": "evil.example/x", "ports": [{"hostPort": 1}, {"hostPort": 80}],
                        "securityContext": {"capabilities": {"add": ["NET_RAW"]}}},
                ],
                "volumes": [{"name": "v", "hostPath": {"path": "/etc", "type": "FileOrCreate"}}],
            },
        });
        let deployment = json!({"spec": {"template": pod}});
        for (check, message, path) in [
            ("hostNamespaces", "pod: spec.hostPID is true, host namespaces are not allowed", "spec.hostPID"),
            (
                "hostPorts",
                "container \"b\": hostPort 80 is not allowed, allowed: none",
                "spec.containers[1].ports[1].hostPort",
            ),
            ("imageRegistries", "container \"b\": image evil.example/x is not allowed", "spec.containers[1].image"),
            (
                "hostPathVolumes",
                "volume \"v\": hostPath /etc is not allowed, allowed: none",
                "spec.volumes[0].hostPath.path",
            ),
            (
                "hostPathVolumes",
                "volume \"v\": hostPath /etc is read-only and must not be created, but its type is FileOrCreate",
                "spec.volumes[0].hostPath.type",
            ),
            ("restrictedVolumes", "volume \"v\": restricted volume types: hostPath", "spec.volumes[0].hostPath"),
            (
                "capabilities",
                "container \"b\": unrestricted capabilities: securityContext.capabilities.drop is [], must include ALL",
                "spec.containers[1].securityContext.capabilities.drop",
            ),
            (
                "runAsNonRoot",
                "container \"a\": securityContext.runAsNonRoot is unset, must be true",
                "spec.containers[0].securityContext.runAsNonRoot",
            ),
            (
                "appArmorProfile",
                "pod: forbidden AppArmor profile: annotation container.apparmor.security.beta.kubernetes.io/a is unconfined",
                "metadata.annotations.container.apparmor.security.beta.kubernetes.io/a",
            ),
            ("own-check", "container \"b\": image must have a digest", "spec.containers[1].image"),
            ("own-check", "pod: spec.hostPID must not be set", "spec.hostPID"),
            ("own-check", "something else", "spec"),
        ] {
            assert_eq!(of(&pod, "", check, message), path, "{message}");
            assert_eq!(of(&deployment, "/spec/template", check, message), format!("spec.template.{path}"), "{message}");
        }
        let invalid = "Pod \"p\" is invalid: [spec.containers[0].name: Required value, spec.x: Invalid value: 1]";
        assert_eq!(of(&pod, "", REJECTED, invalid), "spec.containers[0].name");
    }

    /// In the fixtures of all checks, a message about an element that sets a restricted field leads to such a field.
    #[test]
    fn violations_of_all_fixtures_are_at_restricted_fields() {
        let mut seen = 0;
        for check in catalogue::ALL {
            let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).expect(check.id);
            for fixture in fixtures {
                let pod = fixture.pod();
                for message in &fixture.violations {
                    let message = message.strip_prefix(&format!("[{}] ", check.id)).unwrap_or(message);
                    if !["container \"", "volume \"", "pod: "].iter().any(|prefix| message.starts_with(prefix)) {
                        continue;
                    }
                    let element = Element::of(&pod, message);
                    let places: Vec<_> = check.fields.iter().flat_map(|field| element.places(field)).collect();
                    let path = of(&pod, "", check.id, message);
                    let is_field = places.iter().any(|place| place.path == path);
                    assert!(is_field || places.is_empty(), "{} {message}: {path}", fixture.name);
                    seen += usize::from(is_field);
                }
            }
        }
        assert!(seen > 100, "only {seen} messages");
    }
}

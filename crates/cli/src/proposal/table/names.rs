//! Names: images, classes, schedulers, service accounts, audiences, tolerations.

use palisade_checks::{Flag, Resolve, Text, image};
use serde_json::{Map, Value as Json, json};

use super::{Change, Found, Subject, for_all, is_of_a_namespace, items, missing, text};

/// Hosts of registries in which anyone can have a path.
const SHARED: [&str; 11] = [
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "lscr.io",
    "mcr.microsoft.com",
    "public.ecr.aws",
    "quay.io",
    "registry.gitlab.com",
    "registry.k8s.io",
    "icr.io",
    "cr.yandex",
];

/// `images.allowedRegistries`
pub(super) fn registries(subject: &Subject<'_>) -> Found {
    let Some(list) = &subject.settings.images.allowed_registries else { return Ok(vec![]) };
    let allowed = list.resolve(subject.values);
    let of_containers = subject.containers().filter_map(|one| one["image"].as_str());
    let found = of_containers.chain(subject.volumes().filter_map(|one| one["image"]["reference"].as_str()));
    let mut changes: Vec<Change> = Vec::new();
    for name in found.filter(|name| !name.is_empty() && !image::is_from(name, &allowed)) {
        if !image::is_valid(name) {
            return Err("an image ID or an invalid image name has no registry".to_owned());
        }
        let registry = registry(&image::completed(name));
        if is_of_a_namespace(list, &registry) {
            return Err(format!("in {registry}, each namespace has a separate path"));
        }
        let allows = match registry.as_str() {
            "docker.io/library" => "Any pod may run any official image of Docker Hub.".to_owned(),
            _ => format!("Any pod may run any image from {registry}."),
        };
        let change = for_all(Change::add("images.allowedRegistries", text(&registry)?, allows), list);
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Ok(changes)
}

/// The host of a completed name; for a shared registry, with the first part of the path.
fn registry(completed: &str) -> String {
    let (host, path) = completed.split_once('/').unwrap_or((completed, ""));
    let host = host.to_owned();
    if !SHARED.contains(&host.as_str()) && !host.ends_with(".gcr.io") && !host.ends_with(".pkg.dev") {
        return host;
    }
    let first = path.split(['/', ':', '@']).next().unwrap_or_default();
    format!("{host}/{first}")
}

/// Names that are not in a list, as changes that add them.
pub(super) fn listed<'a>(
    subject: &Subject<'_>,
    path: &'static str,
    list: Option<&[Text]>,
    found: impl Iterator<Item = &'a str>,
    allows: impl Fn(&str) -> String,
) -> Found {
    let Some(list) = list else { return Ok(vec![]) };
    let change = |name: &str| Ok(for_all(Change::add(path, text(name)?, allows(name)), list));
    missing(found, &list.resolve(subject.values)).into_iter().map(change).collect()
}

/// `scheduling.runtimeClasses`
pub(super) fn runtime_classes(subject: &Subject<'_>) -> Found {
    let found = subject.spec()["runtimeClassName"].as_str().unwrap_or_default();
    let list = subject.settings.scheduling.runtime_classes.as_deref();
    listed(subject, "scheduling.runtimeClasses", list, [found].into_iter(), |class| match class {
        "" => "Any pod may run without a runtime class, with the default runtime of the node.".to_owned(),
        class => format!("Any pod may run with the runtime class {class}."),
    })
}

/// `scheduling.priorityClasses`
pub(super) fn priority_classes(subject: &Subject<'_>) -> Found {
    let found = subject.spec()["priorityClassName"].as_str().unwrap_or_default();
    if found.starts_with("system-") {
        return Err(format!("pods of the class {found} evict pods of all tenants when nodes are full"));
    }
    let list = subject.settings.scheduling.priority_classes.as_deref();
    listed(subject, "scheduling.priorityClasses", list, [found].into_iter(), |class| match class {
        "" => "Any pod may have no priority class.".to_owned(),
        class => format!("Any pod may have the priority class {class}, and evict pods of lower classes."),
    })
}

/// `scheduling.schedulers`
pub(super) fn schedulers(subject: &Subject<'_>) -> Found {
    let found = subject.spec()["schedulerName"].as_str().unwrap_or("default-scheduler");
    let list = subject.settings.scheduling.schedulers.as_deref();
    listed(subject, "scheduling.schedulers", list, [found].into_iter(), |name| {
        format!("Any pod may be placed by the scheduler {name}.")
    })
}

/// `identity.serviceAccounts`
pub(super) fn service_accounts(subject: &Subject<'_>) -> Found {
    let named =
        ["serviceAccountName", "serviceAccount"].map(|field| subject.spec()[field].as_str().unwrap_or_default());
    let found = named.into_iter().find(|name| !name.is_empty()).unwrap_or("default");
    let list = subject.settings.identity.service_accounts.as_deref();
    listed(subject, "identity.serviceAccounts", list, [found].into_iter(), |name| {
        format!("Any pod may run as the service account {name} of its namespace.")
    })
}

/// `identity.serviceAccountTokens.audiences`
pub(super) fn audiences(subject: &Subject<'_>) -> Found {
    let Some(rules) = &subject.settings.identity.service_account_tokens else { return Ok(vec![]) };
    let sources = subject.volumes().flat_map(|one| items(&one["projected"]["sources"]));
    let tokens = sources.map(|source| &source["serviceAccountToken"]).filter(|token| token.is_object());
    let found: Vec<_> = tokens.filter_map(|token| token["audience"].as_str()).filter(|one| !one.is_empty()).collect();
    listed(subject, "identity.serviceAccountTokens.audiences", Some(&rules.audiences), found.into_iter(), |audience| {
        format!("Any pod may request a token of its service account for the audience {audience}.")
    })
}

/// `host.aliases`
pub(super) fn aliases(subject: &Subject<'_>) -> Found {
    switch(subject.settings.host.aliases.as_ref(), || {
        let allows = "Any pod may override DNS names in its own containers.";
        Change::set("host.aliases", true, allows)
    })
}

/// A switch that is turned on.
pub(super) fn switch(flag: Option<&Flag>, on: impl FnOnce() -> Change) -> Found {
    match flag {
        Some(Flag::Parameter(name)) => Err(format!("the value comes from the parameter {name} of the namespace")),
        Some(Flag::Constant(false)) => Ok(vec![on()]),
        _ => Ok(vec![]),
    }
}

/// `scheduling.tolerations`
pub(super) fn tolerations(subject: &Subject<'_>) -> Found {
    let Some(allowed) = &subject.settings.scheduling.tolerations else { return Ok(vec![]) };
    let mut changes: Vec<Change> = Vec::new();
    for found in items(&subject.spec()["tolerations"]).filter(|one| one.is_object()) {
        let part = |field: &str| found[field].as_str().filter(|text| !text.is_empty());
        let (key, effect) = (part("key"), part("effect"));
        let Some(key) = key else {
            return Err("the pod tolerates every taint, including those of nodes for other tenants".to_owned());
        };
        let exists = part("operator") == Some("Exists");
        let value = part("value").unwrap_or_default();
        let covers = |one: &&palisade_api::settings::AllowedToleration| {
            let same = |text: &Option<Text>, found: &str| {
                text.as_ref().is_none_or(|text| text.resolve(subject.values) == found)
            };
            let any_value = one.operator == palisade_api::settings::TolerationOperator::Exists;
            let of_value = any_value
                || (!exists
                    && one.value.as_ref().map(|text| text.resolve(subject.values)).unwrap_or_default() == value);
            let of_effect = one.effect.is_none_or(|one| effect == Some(<&str>::from(one)));
            same(&one.key, key) && of_value && of_effect
        };
        let is_added = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].contains(&key)
            && effect == Some("NoExecute");
        if is_added || allowed.iter().any(|one| covers(&one)) {
            continue;
        }
        if key.starts_with("node-role.kubernetes.io/") || key.starts_with("node.kubernetes.io/") {
            return Err(format!("the taint {key} keeps pods of tenants away from system nodes"));
        }
        let mut toleration = Map::from_iter([("key".to_owned(), Json::from(text(key)?))]);
        toleration.insert("operator".to_owned(), if exists { "Exists" } else { "Equal" }.into());
        if !exists && !value.is_empty() {
            toleration.insert("value".to_owned(), text(value)?.into());
        }
        if let Some(effect) = effect {
            toleration.insert("effect".to_owned(), effect.into());
        }
        let allows = format!(
            "Any pod may run on nodes with the taint {key}{}.",
            match value {
                "" => String::new(),
                value => format!("={value}"),
            }
        );
        let change = Change::add("scheduling.tolerations", json!(toleration), allows);
        let change = change.but("If these nodes are reserved for one tenant, pods of all tenants could run there.");
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_registry_is_not_allowed_as_a_whole() {
        for (name, expected) in [
            ("nginx:1", "docker.io/library"),
            ("bitnami/redis@sha256:0", "docker.io/bitnami"),
            ("quay.io/foo/bar/baz:1", "quay.io/foo"),
            ("quay.io/foo:1", "quay.io/foo"),
            ("registry.example:5000/a/b", "registry.example:5000"),
            ("europe-docker.pkg.dev/project/a/b", "europe-docker.pkg.dev/project"),
        ] {
            assert_eq!(registry(&image::completed(name)), expected);
        }
    }
}

//! The permissions of the service accounts are those in `SECURITY.md`, and none of them is forbidden.

use std::{
    collections::BTreeSet,
    fmt, fs,
    path::{Path, PathBuf},
};

use serde_json::Value as Json;

/// One verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    account: String,
    /// A namespace, or `everywhere`.
    place: String,
    /// `core` for the group without a name.
    group: String,
    resource: String,
    /// Names, or `any`.
    names: String,
    verb: String,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, place, group, resource, names, verb } = self;
        write!(f, "{account} may {verb} {resource} of group {group}, {names}, {place}")
    }
}

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned()
}

/// All objects that `kubectl apply -k manifests` creates, without the CRDs.
fn manifests() -> Vec<Json> {
    let read = |name: &str| fs::read_to_string(root().join("manifests").join(name)).unwrap();
    let kustomization: Json = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    let listed: BTreeSet<_> = texts(&kustomization["resources"]).into_iter().filter(|name| name != "../crds").collect();
    let present: BTreeSet<_> = fs::read_dir(root().join("manifests"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| Path::new(name).extension().is_some_and(|it| it == "yaml") && name != "kustomization.yaml")
        .collect();
    assert_eq!(listed, present, "each file of manifests/ is in its kustomization");
    listed.iter().flat_map(|name| serde_saphyr::from_multiple::<Json>(&read(name)).unwrap()).collect()
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn text(object: &Json, pointer: &str) -> String {
    object.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned()
}

/// The rules of all roles that are bound to an account, each with its namespace.
fn rules(objects: &[Json]) -> Vec<(String, String, Json)> {
    let mut found = Vec::new();
    for binding in objects.iter().filter(|object| text(object, "/kind").ends_with("RoleBinding")) {
        let name = text(binding, "/metadata/name");
        let (kind, of) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let namespace = text(binding, "/metadata/namespace");
        let place = if text(binding, "/kind") == "ClusterRoleBinding" { "everywhere" } else { namespace.as_str() };
        let is_role = |object: &&Json| {
            text(object, "/kind") == kind
                && text(object, "/metadata/name") == of
                && (kind == "ClusterRole" || text(object, "/metadata/namespace") == namespace)
        };
        let role = objects.iter().find(is_role);
        let role = role.unwrap_or_else(|| panic!("binding {name} binds {kind} {of}, which is not in manifests/"));
        assert!(role.get("aggregationRule").is_none(), "{name} binds a role that takes rules of others");
        for subject in binding["subjects"].as_array().unwrap() {
            assert_eq!(text(subject, "/kind"), "ServiceAccount", "binding {name}");
            assert_eq!(text(subject, "/namespace"), "palisade-system", "binding {name}");
            let account = text(subject, "/name");
            let exists =
                |object: &Json| text(object, "/kind") == "ServiceAccount" && text(object, "/metadata/name") == account;
            assert!(objects.iter().any(exists), "binding {name} names the account {account}, which does not exist");
            for rule in role["rules"].as_array().unwrap() {
                found.push((account.clone(), place.to_owned(), rule.clone()));
            }
        }
    }
    found
}

fn granted(objects: &[Json]) -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    for (account, place, rule) in rules(objects) {
        assert!(rule.get("nonResourceURLs").is_none(), "{account}: {rule}");
        let names = texts(&rule["resourceNames"]);
        let names = if names.is_empty() { "any".to_owned() } else { names.join(", ") };
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    let group = if group.is_empty() { "core".to_owned() } else { group.clone() };
                    let (account, place, names) = (account.clone(), place.clone(), names.clone());
                    grants.insert(Grant { account, place, group, resource: resource.clone(), names, verb });
                }
            }
        }
    }
    grants
}

/// The table of `SECURITY.md`.
fn documented() -> BTreeSet<Grant> {
    let page = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let mut grants = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| `palisade-")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let [account, place, group, resource, names, verbs, why] = &cells[..] else {
            panic!("a row of permissions has seven cells: {row}")
        };
        assert!(why.len() > 10, "a permission without a reason: {row}");
        for verb in verbs.split(", ") {
            let grant = Grant {
                account: account.clone(),
                place: place.clone(),
                group: group.clone(),
                resource: resource.clone(),
                names: names.clone(),
                verb: verb.to_owned(),
            };
            assert!(grants.insert(grant), "twice: {verb} in {row}");
        }
    }
    grants
}

#[test]
fn security_page_lists_exactly_the_granted_permissions() {
    let (granted, documented) = (granted(&manifests()), documented());
    let accounts: BTreeSet<_> = granted.iter().map(|grant| grant.account.as_str()).collect();
    assert_eq!(accounts, ["palisade-controller", "palisade-webhook"].into());
    let list = |grants: Vec<&Grant>| grants.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ");
    let unsaid = list(granted.difference(&documented).collect());
    let untrue = list(documented.difference(&granted).collect());
    assert!(unsaid.is_empty(), "granted by manifests/ and not in SECURITY.md:\n  {unsaid}");
    assert!(untrue.is_empty(), "in SECURITY.md and not granted by manifests/:\n  {untrue}");
}

/// Why a permission is forbidden, if it is.
fn forbidden(grant: &Grant) -> Option<&'static str> {
    let Grant { place, group, resource, names, verb, .. } = grant;
    let (base, _) = resource.split_once('/').unwrap_or((resource, ""));
    let writes = !["get", "list", "watch"].contains(&verb.as_str());
    let makes_pods = ["pods", "podtemplates", "replicationcontrollers"].contains(&base) && group == "core"
        || ["apps", "batch"].contains(&group.as_str()) && base != "controllerrevisions";
    if [group, resource, names, verb].iter().any(|part| part.contains('*')) {
        return Some("a wildcard grants what nobody has written down");
    }
    match (group.as_str(), base, verb.as_str()) {
        (_, _, "escalate" | "bind" | "impersonate") => Some("it is all permissions"),
        ("rbac.authorization.k8s.io" | "certificates.k8s.io", ..) if writes => Some("it is more permissions"),
        ("core", "secrets", "list" | "watch") => Some("it is the contents of all Secrets"),
        ("core", "secrets", _) if names == "any" || place == "everywhere" => Some("only its own Secret is named"),
        ("core", "serviceaccounts", _) => Some("it is the tokens of other accounts"),
        ("core", "nodes", _) if writes => Some("nodes are not its business"),
        ("core", "pods", _) if resource.contains('/') => Some("nothing is done in pods that run"),
        _ if makes_pods && writes && place != "palisade-probe" => Some("pods are created in palisade-probe only"),
        _ if makes_pods && writes && verb != "create" => Some("a dry run is a creation"),
        _ => None,
    }
}

#[test]
fn no_account_has_an_escalating_permission() {
    let grants = granted(&manifests());
    let found: Vec<_> = grants.iter().filter_map(|grant| Some(format!("{grant}: {}", forbidden(grant)?))).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    // Tenants can read what aggregates into view, edit and admin.
    for role in manifests().iter().filter(|object| text(object, "/kind") == "ClusterRole") {
        let labels = role["metadata"]["labels"].as_object().unwrap();
        if labels.keys().any(|key| key.contains("aggregate-to")) {
            for rule in role["rules"].as_array().unwrap() {
                let verbs = texts(&rule["verbs"]);
                assert!(verbs.iter().all(|verb| ["get", "list", "watch"].contains(&verb.as_str())), "{rule}");
            }
        }
    }
}

#[test]
fn forbidden_permissions_are_detected() {
    let grant = |place: &str, group: &str, resource: &str, names: &str, verb: &str| {
        let [place, group, resource, names, verb] = [place, group, resource, names, verb].map(str::to_owned);
        forbidden(&Grant { account: "x".to_owned(), place, group, resource, names, verb })
    };
    for (place, group, resource, names, verb) in [
        ("everywhere", "*", "pods", "any", "get"),
        ("everywhere", "apps", "*", "any", "get"),
        ("everywhere", "toolsecurity.dev", "toolsecurityparams", "any", "*"),
        ("everywhere", "rbac.authorization.k8s.io", "clusterroles", "any", "escalate"),
        ("everywhere", "core", "users", "any", "impersonate"),
        ("palisade-system", "rbac.authorization.k8s.io", "roles", "any", "patch"),
        ("palisade-system", "core", "secrets", "any", "list"),
        ("palisade-system", "core", "secrets", "a", "watch"),
        ("palisade-system", "core", "secrets", "any", "get"),
        ("everywhere", "core", "secrets", "a", "get"),
        ("palisade-system", "core", "serviceaccounts/token", "a", "create"),
        ("palisade-system", "core", "pods", "any", "create"),
        ("palisade-probe", "core", "pods/exec", "any", "create"),
        ("palisade-probe", "core", "pods", "any", "patch"),
        ("everywhere", "apps", "deployments", "any", "update"),
        ("palisade-system", "batch", "jobs", "any", "create"),
    ] {
        assert!(grant(place, group, resource, names, verb).is_some(), "{verb} {group}/{resource} {names} {place}");
    }
    for (place, group, resource, names, verb) in [
        ("palisade-probe", "core", "pods", "any", "create"),
        ("palisade-probe", "apps", "deployments", "any", "create"),
        ("palisade-system", "apps", "controllerrevisions", "any", "delete"),
        ("palisade-system", "core", "secrets", "a", "update"),
    ] {
        assert_eq!(grant(place, group, resource, names, verb), None, "{verb} {group}/{resource}");
    }
}

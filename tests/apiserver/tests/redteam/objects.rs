//! Attacks on the checks of objects other than pods, by a tenant with all permissions in its namespace.
//!
//! Hostile requests are no dry runs: at the end, none of their objects may exist, and no object that they change may
//! have changed.

use kube::Client;
use palisade_kube_json::json::merge;
use palisade_tests::{ensure, within};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::{Arena, LIMIT},
    table::{Attack, Expect, Tally, make},
    wire::{APPLY, JSON, JSON_PATCH, MERGE, Request, STRATEGIC, client_of, pods, send},
};

const TEST: &str = "red-objects";
/// The namespaces of the tenant. The first one's name is in the cases.
const NAMESPACE: &str = "red-objects-weather";
const DYING: &str = "red-objects-dying";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PROFILE: &str = include_str!("../../cases/redteam/profile.yaml");
const CASES: [&str; 3] = [
    include_str!("../../cases/redteam/routes.yaml"),
    include_str!("../../cases/redteam/services.yaml"),
    include_str!("../../cases/redteam/others.yaml"),
];

/// The attacks with objects of a kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    resource: String,
    complying: Json,
    /// A merge patch of the object that is updated, if a controller writes it.
    target: Option<Json>,
    creations: Vec<Trick>,
    #[serde(default)]
    updates: Vec<Trick>,
}

/// A request with a merge patch of the object that complies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trick {
    name: String,
    with: Json,
    expect: String,
    /// Whether a creation is sent as an update of an object that does not exist.
    #[serde(default)]
    put: bool,
    /// The subresource that is updated.
    #[serde(default)]
    subresource: String,
    /// The ways of an update that can express it; if empty, all.
    #[serde(default)]
    ways: Vec<String>,
}

impl Trick {
    fn expect(&self) -> Expect {
        match self.expect.as_str() {
            "admitted" => Expect::Admitted,
            "refused" => Expect::Refused,
            "stopped" => Expect::Stopped,
            check => Expect::check(check),
        }
    }

    /// The query that makes a request that is to be admitted a dry run.
    fn query(&self) -> &'static str {
        if self.expect == "admitted" { "?dryRun=All" } else { "?x=y" }
    }
}

impl Kind {
    /// The collection of an object of the kind.
    fn path(&self, namespace: &str, object: &Json) -> String {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let root = if version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{version}/namespaces/{namespace}/{}", self.resource)
    }

    fn object(&self, name: &str, patch: &Json) -> Json {
        let mut object = self.complying.clone();
        merge(&mut object, &json!({"metadata": {"name": name}}));
        merge(&mut object, patch);
        object
    }

    /// The object that is updated. One of its finalizers can be removed.
    fn target(&self) -> Json {
        let mut target = self.object("target", self.target.as_ref().unwrap_or(&json!({})));
        merge(&mut target, &json!({"metadata": {"finalizers": ["example.org/hold", "example.org/other"]}}));
        target
    }

    fn attacks(&self, target: &Json) -> Vec<Attack> {
        let mut attacks = Vec::new();
        for (index, trick) in self.creations.iter().enumerate() {
            let object = self.object(&format!("attack-{index}"), &trick.with);
            let path = format!("{}{}", self.path(NAMESPACE, &object), trick.query());
            let how = if trick.put {
                Request::new("PUT", path.replacen('?', &format!("/attack-{index}?"), 1), JSON, &object)
            } else {
                Request::create(&path, &object)
            };
            attacks.push(self.attack(trick, "creation", how));
        }
        // One of each kind that is not created by POST.
        if let Some(first) = self.creations.iter().find(|trick| !["admitted", "stopped"].contains(&&*trick.expect)) {
            let object = self.object("attack-applied", &first.with);
            let path = self.path(NAMESPACE, &object);
            let query = "fieldManager=x&force=true";
            let how = Request::new("PATCH", format!("{path}/attack-applied?{query}"), APPLY, &object);
            attacks.push(self.attack(first, "creation by server-side apply", how));
            attacks.push(self.attack(first, "dry run", Request::dry_run(&path, &object)));
            let twice = Request::raw("POST", &path, "application/yaml", object.to_string().into_bytes());
            attacks.push(self.attack(first, "creation by YAML", twice));
        }
        for trick in &self.updates {
            attacks.extend(self.updates_by(trick, target));
        }
        attacks
    }

    fn attack(&self, trick: &Trick, way: &str, how: Request) -> Attack {
        Attack::new(format!("{}: {}, {way}", self.resource, trick.name), how, trick.expect())
    }

    /// The same update as a whole object, and as a patch of each type.
    fn updates_by(&self, trick: &Trick, target: &Json) -> Vec<Attack> {
        let path = self.path(NAMESPACE, target);
        let at = match trick.subresource.as_str() {
            "" => format!("{path}/target{}", trick.query()),
            subresource => format!("{path}/target/{subresource}{}", trick.query()),
        };
        let patch = &trick.with;
        let mut changed = target.clone();
        merge(&mut changed, patch);
        let mut applied = json!({
            "apiVersion": target["apiVersion"], "kind": target["kind"], "metadata": {"name": "target"},
        });
        merge(&mut applied, patch);
        let apply = Request::new("PATCH", format!("{at}&fieldManager=x&force=true"), APPLY, &applied);
        let all = [
            ("PUT", Request::new("PUT", &at, JSON, &changed)),
            ("merge patch", Request::new("PATCH", &at, MERGE, patch)),
            ("strategic merge patch", Request::new("PATCH", &at, STRATEGIC, patch)),
            ("JSON patch", Request::new("PATCH", &at, JSON_PATCH, &json_patch(patch, target))),
            ("server-side apply", apply),
        ];
        let is_custom = target["apiVersion"].as_str().is_some_and(|version| version.starts_with("gateway."));
        all.into_iter()
            .filter(|(way, _)| trick.ways.is_empty() || trick.ways.iter().any(|one| one == way))
            .filter(|(way, _)| !(is_custom && way.starts_with("strategic")))
            .map(|(way, how)| self.attack(trick, &format!("update by {way}"), how))
            .collect()
    }
}

/// A merge patch as a JSON patch of an object: of fields, or of the fields of an object in it.
fn json_patch(patch: &Json, object: &Json) -> Json {
    let mut operations = Vec::new();
    for (field, value) in patch.as_object().into_iter().flatten() {
        let Some(fields) = value.as_object().filter(|_| object[field].is_object()) else {
            operations.push(json!({"op": "add", "path": format!("/{field}"), "value": value}));
            continue;
        };
        for (key, value) in fields {
            let path = format!("/{field}/{key}");
            let mut changed = object[field][key].clone();
            merge(&mut changed, value);
            operations.push(match value {
                Json::Null => json!({"op": "remove", "path": path}),
                _ => json!({"op": "add", "path": path, "value": changed}),
            });
        }
    }
    json!(operations)
}

/// Kinds of the Gateway API, with any content.
async fn define(arena: &Arena, kinds: &[Kind]) -> Result<()> {
    for kind in kinds {
        let Some((group, _)) = kind.complying["apiVersion"].as_str().unwrap_or_default().split_once('/') else {
            continue;
        };
        let name = format!("{}.{group}", kind.resource);
        let of = kind.complying["kind"].as_str().unwrap_or_default();
        if !group.starts_with("gateway.") {
            continue;
        }
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": name,
                "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"},
            },
            "spec": {
                "group": group, "scope": "Namespaced", "versions": [version("v1"), version("v1beta1")],
                "names": {
                    "plural": kind.resource, "singular": of.to_lowercase(), "kind": of, "listKind": format!("{of}List"),
                },
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        arena.demand(&Request::create(path, &definition)).await?;
        arena.cluster.wait_established(&["crd", &name])?;
    }
    Ok(())
}

/// Gives a client all permissions in a namespace, before the profile selects it.
async fn give(arena: &Arena, namespace: &str, client: &Client) -> Result<()> {
    arena.cluster.create_namespace(namespace, &json!({"tenancy": TEST}), &json!({})).await?;
    let path = format!("{RBAC}/namespaces/{namespace}");
    let all = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    arena.demand(&Request::create(&format!("{path}/roles"), &all)).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "owner"}],
    });
    arena.demand(&Request::create(&format!("{path}/rolebindings"), &binding)).await?;
    within(LIMIT, &format!("permissions in {namespace}"), || async {
        let answer = send(client, &Request::get(pods(namespace))).await;
        if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
    })
    .await?;
    Ok(())
}

/// All of them.
pub(crate) async fn objects_of_tenants(arena: &mut Arena) -> Result<Tally> {
    let owner = client_of(&arena.cluster, "owner", &["system:authenticated"]).await?;
    let accounts = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
    let by_name = |name: &'static str| format!("system:serviceaccount:kube-system:{name}");
    let slices = client_of(&arena.cluster, &by_name("endpointslice-controller"), &accounts).await?;
    let volumes = client_of(&arena.cluster, &by_name("ephemeral-volume-controller"), &accounts).await?;
    let kinds: Vec<Vec<Kind>> = CASES.into_iter().map(serde_saphyr::from_str).collect::<std::result::Result<_, _>>()?;
    let kinds: Vec<Kind> = kinds.into_iter().flatten().collect();
    define(arena, &kinds).await?;
    for namespace in [NAMESPACE, DYING] {
        give(arena, namespace, &owner).await?;
    }
    // One that is older than the profile.
    let ingress = kinds.first().ok_or("no kinds")?;
    let other = json!({"spec": {"rules": [{"host": "other.toolforge.org"}], "tls": null}});
    let ingresses = ingress.path(NAMESPACE, &ingress.complying);
    arena.demand(&Request::create(&ingresses, &ingress.object("old", &other))).await?;
    arena.enforce(&serde_saphyr::from_str(PROFILE)?).await?;
    let mut targets = Vec::new();
    for kind in &kinds {
        let client = if kind.target.is_some() { &slices } else { &owner };
        let request = Request::create(&kind.path(NAMESPACE, &kind.complying), &kind.target());
        let (answer, _) = within(LIMIT, &format!("the first of {}", kind.resource), || async {
            let answer = send(client, &request).await;
            if answer.is_admitted() { Ok(answer.body) } else { Err(answer.short()) }
        })
        .await?;
        targets.push(answer);
    }
    let mut attacks: Vec<Attack> = kinds.iter().zip(&targets).flat_map(|(kind, target)| kind.attacks(target)).collect();
    attacks.extend(of_old(&format!("{ingresses}/old")));
    attacks.extend(of_namespace());
    let mut tally = make(&owner, attacks).await;
    // A claim of a pod's ephemeral volume, which a controller creates for the tenant.
    let claims = kinds.iter().find(|kind| kind.resource == "persistentvolumeclaims").ok_or("no claims")?;
    let claim = claims.object("attack-ephemeral", &json!({"spec": {"storageClassName": "local"}}));
    let how = Request::create(&claims.path(NAMESPACE, &claim), &claim);
    let attack = Attack::new("a claim of another class by an ephemeral volume", how, Expect::check("storageClaims"));
    tally.add(make(&volumes, vec![attack]).await);
    for (kind, target) in kinds.iter().zip(&targets) {
        none_exists(arena, kind, target, &mut tally).await;
    }
    tally.add(dying(arena, &owner, ingress).await?);
    for (kind, target) in kinds.iter().zip(&targets) {
        let free = json!({"metadata": {"finalizers": null}});
        let path = format!("{}/target", kind.path(NAMESPACE, target));
        let attack = Attack::new("finalizers removed", Request::new("PATCH", path, MERGE, &free), Expect::Admitted);
        tally.add(make(&owner, vec![attack]).await);
    }
    arena.delete_profile(TEST).await?;
    Ok(tally)
}

/// Updates of an Ingress with another tenant's host that is older than the profile.
fn of_old(path: &str) -> Vec<Attack> {
    let patch = |name: &str, patch: &Json, expect| {
        Attack::new(format!("an old Ingress: {name}"), Request::new("PATCH", path, MERGE, patch), expect)
    };
    let hosts = || Expect::check("networkHosts");
    vec![
        patch("a label", &json!({"metadata": {"labels": {"a": "b"}}}), Expect::Admitted),
        patch(
            "a second rule",
            &json!({"spec": {"rules": [{"host": "other.toolforge.org"}, {"host": "weather.toolforge.org"}]}}),
            hosts(),
        ),
        patch("another host", &json!({"spec": {"rules": [{"host": "third.toolforge.org"}]}}), hosts()),
    ]
}

/// Changes of the namespace and its parameters.
fn of_namespace() -> Vec<Attack> {
    let namespace = format!("/api/v1/namespaces/{NAMESPACE}");
    let params = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{NAMESPACE}/toolsecurityparams/{TEST}");
    let patch = |name: &str, path: &str, patch: &Json| {
        Attack::new(name, Request::new("PATCH", path, MERGE, patch), Expect::Stopped)
    };
    vec![
        patch(
            "the namespace without the label of the selector",
            &namespace,
            &json!({"metadata": {"labels": {"tenancy": null}}}),
        ),
        patch(
            "the namespace with another value of it",
            &namespace,
            &json!({"metadata": {"labels": {"tenancy": "none"}}}),
        ),
        patch("the namespace with a parameter", &namespace, &json!({"metadata": {"labels": {"size": "1Ti"}}})),
        patch("other parameters", &params, &json!({"spec": {"strings": {"tool": "other"}}})),
        patch("no exceptions", &params, &json!({"spec": {"exceptions": {"networkHosts": "2099-01-01T00:00:00Z"}}})),
        Attack::new("no parameters", Request::delete(&params), Expect::Stopped),
        Attack::new("no parameters at all", Request::delete(params.replace(&format!("/{TEST}"), "")), Expect::Stopped),
    ]
}

/// No object of a hostile request exists, and the object that they update is as it was.
async fn none_exists(arena: &Arena, kind: &Kind, target: &Json, tally: &mut Tally) {
    let all = arena.ask(&Request::get(kind.path(NAMESPACE, target))).await.body;
    let items = all["items"].as_array().cloned().unwrap_or_default();
    for item in &items {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        if !["target", "old", "all"].contains(&name) {
            tally.holes.push(format!("there is {} {name}", kind.resource));
        }
    }
    let version = |object: &Json| object["metadata"]["resourceVersion"].clone();
    let found = items.iter().find(|item| item["metadata"]["name"] == "target").map(version);
    tally.must(found == Some(version(target)), format!("the target of {} changed: {found:?}", kind.resource));
}

/// A namespace that the tenant deletes and holds by a finalizer, until its parameters are gone.
async fn dying(arena: &Arena, owner: &Client, ingress: &Kind) -> Result<Tally> {
    let hosts = |host: &str| json!({"spec": {"rules": [{"host": host}], "tls": null}});
    let mut held = ingress.object("held", &hosts("dying.toolforge.org"));
    merge(&mut held, &json!({"metadata": {"finalizers": ["example.org/hold"]}}));
    let path = ingress.path(DYING, &held);
    within(LIMIT, "a complying Ingress", || async {
        let answer = send(owner, &Request::create(&path, &held)).await;
        if answer.is_admitted() { Ok(()) } else { Err(answer.short()) }
    })
    .await?;
    // The tenant also holds its own permissions.
    let permissions = ["roles", "rolebindings"].map(|resource| format!("{RBAC}/namespaces/{DYING}/{resource}/all"));
    for path in &permissions {
        let hold = json!({"metadata": {"finalizers": ["example.org/hold"]}});
        let answer = send(owner, &Request::new("PATCH", path, MERGE, &hold)).await;
        ensure!(answer.is_admitted(), "{path}: {}", answer.short());
    }
    let deletion = send(owner, &Request::delete(format!("/api/v1/namespaces/{DYING}"))).await;
    let mut tally = Tally::default();
    tally.must(deletion.is_admitted(), format!("the tenant deletes its namespace: {}", deletion.short()));
    let params = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{DYING}/toolsecurityparams/{TEST}");
    within(LIMIT, "parameters gone", || async {
        if arena.ask(&Request::get(&params)).await.status == 404 { Ok(()) } else { Err("there".to_owned()) }
    })
    .await?;
    let at = format!("{path}/held");
    let update = |name: &str, patch: &Json, expect| {
        Attack::new(format!("in a deleted namespace: {name}"), Request::new("PATCH", &at, MERGE, patch), expect)
    };
    let attacks = vec![
        update("another host", &hosts("other.toolforge.org"), Expect::check("parameters")),
        update("another class", &json!({"spec": {"ingressClassName": "internal"}}), Expect::check("parameters")),
        update("a label", &json!({"metadata": {"labels": {"a": "b"}}}), Expect::Admitted),
        update("no finalizer", &json!({"metadata": {"finalizers": null}}), Expect::Admitted),
    ];
    tally.add(crate::table::make_in_turn(owner, attacks).await);
    for path in permissions.iter().rev() {
        arena.demand(&Request::new("PATCH", path, MERGE, &json!({"metadata": {"finalizers": null}}))).await?;
    }
    let gone = within(LIMIT, "gone", || async {
        let answer = arena.ask(&Request::get(format!("/api/v1/namespaces/{DYING}"))).await;
        if answer.status == 404 { Ok(()) } else { Err(answer.body["status"].to_string()) }
    })
    .await;
    tally.must(gone.is_ok(), format!("{DYING} cannot be deleted: {gone:?}"));
    Ok(tally)
}

//! Changes of pods that are there, by each kind of patch and each subresource.

use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{complying, container, hostile, with},
    table::{Attack, Expect, Tally, make, make_in_turn},
    wire::{APPLY, JSON, JSON_PATCH, MERGE, Request, STRATEGIC, pods},
};

/// Changes to a pod: its name, the path of the field, its value, and what must come of it.
pub(crate) struct Change {
    name: &'static str,
    pub(crate) path: &'static str,
    value: Json,
    expect: Expect,
}

pub(crate) fn change(name: &'static str, path: &'static str, value: Json, expect: Expect) -> Change {
    Change { name, path, value, expect }
}

/// The same change as each kind of request: as a whole object, and as a patch of each type.
pub(crate) fn each_way(namespace: &str, current: &Json, change: &Change) -> Vec<Attack> {
    let name = current["metadata"]["name"].as_str().unwrap_or_default();
    let path = |query: &str| format!("{}/{name}?dryRun=All{query}", pods(namespace));
    let changed = with(current.clone(), &[(change.path, Some(change.value.clone()))]);
    // A merge patch replaces lists as a whole.
    let field = change.path.split('.').take(2).collect::<Vec<_>>();
    let merge = json!({field[0]: {field[1]: changed[field[0]][field[1]]}});
    let pointer = format!("/{}", change.path.replace('.', "/"));
    let json_patch = json!([{"op": "add", "path": pointer, "value": change.value}]);
    let mut applied = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "main"}]},
    });
    applied = with(applied, &[(change.path, Some(change.value.clone()))]);
    let attack = |way: &str, how: Request| Attack::new(format!("{} by {way}", change.name), how, change.expect.clone());
    vec![
        attack("PUT", Request::new("PUT", path(""), JSON, &changed)),
        attack("merge patch", Request::new("PATCH", path(""), MERGE, &merge)),
        attack("strategic merge patch", Request::new("PATCH", path(""), STRATEGIC, &merge)),
        attack("JSON patch", Request::new("PATCH", path(""), JSON_PATCH, &json_patch)),
        attack("server-side apply", Request::new("PATCH", path("&fieldManager=x&force=true"), APPLY, &applied)),
    ]
}

fn images() -> (Expect, Expect) {
    (Expect::check("imageRegistries"), Expect::Admitted)
}

/// What can be changed of a pod that complies.
fn of_complying() -> Vec<Change> {
    let (denied, admitted) = images();
    let image = "spec.containers.0.image";
    vec![
        change("another registry", image, json!("evil.example/x"), denied),
        change("another tag", image, json!(format!("{}/x:2", crate::pods::REGISTRY)), admitted.clone()),
        change("a deadline", "spec.activeDeadlineSeconds", json!(100), admitted),
        change("hostPID", "spec.hostPID", json!(true), Expect::Refused),
        change("hostNetwork", "spec.hostNetwork", json!(true), Expect::Refused),
        change("another user", "spec.securityContext.runAsUser", json!(0), Expect::Refused),
        change("privileged", "spec.containers.0.securityContext", json!({"privileged": true}), Expect::Refused),
        change("another volume", "spec.volumes", json!([{"name": "v", "hostPath": {"path": "/"}}]), Expect::Refused),
        change("an ephemeral container beside", "spec.ephemeralContainers", json!([debugger(true)]), Expect::Refused),
        change("an init container", "spec.initContainers", json!([container("first")]), Expect::Refused),
    ]
}

/// What can be changed of a pod that was there before the profile, and violates it.
fn of_violating(old: &Json) -> Vec<Change> {
    let denied = || Expect::check("hostNamespaces");
    // What is there must stay.
    let mut tolerations = old["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    tolerations.push(json!({"operator": "Exists"}));
    vec![
        change("a label of an old pod", "metadata.labels", json!({"a": "b"}), Expect::Admitted),
        change("an annotation of an old pod", "metadata.annotations", json!({"a": "b"}), Expect::Admitted),
        change("a finalizer of an old pod", "metadata.finalizers", json!(["example.com/hold"]), Expect::Admitted),
        // Its spec is judged when it changes, as a whole.
        change(
            "an image of an old pod",
            "spec.containers.0.image",
            json!(format!("{}/y", crate::pods::REGISTRY)),
            denied(),
        ),
        change("a deadline of an old pod", "spec.activeDeadlineSeconds", json!(100), denied()),
        change("a toleration of an old pod", "spec.tolerations", json!(tolerations), denied()),
    ]
}

fn debugger(hostile: bool) -> Json {
    let mut debugger = container("debugger");
    if hostile {
        debugger["image"] = "evil.example/x".into();
        debugger["securityContext"] = json!({"privileged": true});
    }
    debugger
}

/// Changes of a pod that runs, of one that is older than the profile, and of one that is being deleted.
pub(crate) async fn updates(arena: &mut Arena) -> Result<Tally> {
    let test = "red-updates";
    // An old pod: the namespace is selected after it is there.
    let old = "red-updates-old";
    arena.cluster.create_namespace(old, &json!({}), &json!({"toolforge.org/uid": "50001"})).await?;
    arena.admit_tenant(old).await?;
    arena.admitted(old, &hostile("old")).await?;
    let old_pod = arena.demand(&Request::create(&pods(old), &hostile("old"))).await?;
    let namespace = arena.stage(test, |_| ()).await?;
    arena.cluster.patch_namespace(old, &json!({"metadata": {"labels": {"tenancy": test}}})).await?;
    arena.denied(old).await?;
    arena.admitted(old, &complying("new")).await?;

    let target = arena.demand(&Request::get(format!("{}/target", pods(&namespace)))).await?;
    let mut attacks: Vec<Attack> =
        of_complying().iter().flat_map(|change| each_way(&namespace, &target, change)).collect();
    attacks.extend(of_violating(&old_pod).iter().flat_map(|change| each_way(old, &old_pod, change)));
    attacks.extend(by_metadata(&namespace));
    attacks.extend(by_subresources(&namespace, &target));
    attacks.extend(creations(&namespace));
    let mut tally = make(&arena.tenant, attacks).await;
    tally.add(dying(arena, &namespace).await?);
    tally.add(bound(arena, &namespace).await?);
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// What a pod says of itself beside its spec.
fn by_metadata(namespace: &str) -> Vec<Attack> {
    let path = format!("{}/target?dryRun=All", pods(namespace));
    let patch = |name: &str, metadata: Json, expect: Expect| {
        Attack::new(name, Request::new("PATCH", &path, MERGE, &json!({"metadata": metadata})), expect)
    };
    let annotated = |key: &str, value: &str| json!({"annotations": {key: value}});
    let unconfined = "container.apparmor.security.beta.kubernetes.io/main";
    let evil = json!({
        "metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z", "labels": {"toolsecurity.dev/profile": "none"}},
        "spec": {"containers": [{"name": "main", "image": "evil.example/x"}]},
    });
    vec![
        patch("the annotation of AppArmor on a pod that runs", annotated(unconfined, "unconfined"), Expect::Refused),
        patch("the annotation of mirror pods", annotated("kubernetes.io/config.mirror", "x"), Expect::Refused),
        patch("a label of Palisade", json!({"labels": {"toolsecurity.dev/profile": "none"}}), Expect::Admitted),
        Attack::new(
            "another registry for what says that it is deleted",
            Request::new("PATCH", &path, STRATEGIC, &evil),
            Expect::Stopped,
        ),
    ]
}

/// What each subresource takes of a pod.
fn by_subresources(namespace: &str, target: &Json) -> Vec<Attack> {
    let path = |subresource: &str| format!("{}/target/{subresource}?dryRun=All", pods(namespace));
    let image = "/spec/containers/0/image";
    let same = || Expect::Ineffective(image, target.pointer(image).cloned().unwrap_or_default());
    let evil = json!({"spec": {"containers": [{"name": "main", "image": "evil.example/x"}]}});
    let no_pid = || Expect::Ineffective("/spec/hostPID", Json::Null);
    let pid = json!({"spec": {"hostPID": true}});
    let mut attacks = vec![];
    for subresource in ["status", "resize", "ephemeralcontainers"] {
        for (what, patch, expect) in [("another registry", &evil, same()), ("hostPID", &pid, no_pid())] {
            let how = Request::new("PATCH", path(subresource), STRATEGIC, patch);
            attacks.push(Attack::new(format!("{what} by {subresource}"), how, expect));
            let mut whole = target.clone();
            palisade_kube_json::pod::merge(&mut whole, patch);
            let how = Request::new("PUT", path(subresource), JSON, &whole);
            let expect = if what == "hostPID" { no_pid() } else { same() };
            attacks.push(Attack::new(format!("{what} by PUT of {subresource}"), how, expect));
        }
    }
    for subresource in ["status", "resize"] {
        let body = json!({"spec": {"ephemeralContainers": [debugger(true)]}});
        let how = Request::new("PATCH", path(subresource), MERGE, &body);
        let expect = Expect::Ineffective("/spec/ephemeralContainers", Json::Null);
        attacks.push(Attack::new(format!("an ephemeral container by {subresource}"), how, expect));
    }
    for (hostile, expect) in [(true, Expect::check("privileged")), (false, Expect::Admitted)] {
        let body = json!({"spec": {"ephemeralContainers": [debugger(hostile)]}});
        let name = |way: &str| format!("an ephemeral container by {way}, hostile: {hostile}");
        for (way, content) in [("merge patch", MERGE), ("strategic merge patch", STRATEGIC)] {
            let how = Request::new("PATCH", path("ephemeralcontainers"), content, &body);
            attacks.push(Attack::new(name(way), how, expect.clone()));
        }
        let operations = json!([{"op": "add", "path": "/spec/ephemeralContainers", "value": [debugger(hostile)]}]);
        let how = Request::new("PATCH", path("ephemeralcontainers"), JSON_PATCH, &operations);
        attacks.push(Attack::new(name("JSON patch"), how, expect.clone()));
        let whole = with(target.clone(), &[("spec.ephemeralContainers", Some(json!([debugger(hostile)])))]);
        let how = Request::new("PUT", path("ephemeralcontainers"), JSON, &whole);
        attacks.push(Attack::new(name("PUT"), how, expect));
    }
    let targeted = with(
        debugger(false),
        &[("targetContainerName", Some(json!("main"))), ("securityContext.runAsUser", Some(json!(0)))],
    );
    let both =
        json!({"spec": {"ephemeralContainers": [debugger(false), with(targeted, &[("name", Some(json!("root")))])]}});
    let how = Request::new("PATCH", path("ephemeralcontainers"), MERGE, &both);
    attacks.push(Attack::new(
        "an ephemeral container that is root beside one that complies",
        how,
        Expect::check("runAsUser"),
    ));
    attacks
}

/// Ways to create a pod that are no plain POST.
fn creations(namespace: &str) -> Vec<Attack> {
    let denied = || Expect::check("hostNamespaces");
    let pods = pods(namespace);
    let mut generated = hostile("x");
    generated["metadata"] = json!({"generateName": "x-"});
    let mut elsewhere = hostile("x");
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [hostile("x")]});
    let apply =
        |pod: &Json| Request::new("PATCH", format!("{pods}/new?dryRun=All&fieldManager=x&force=true"), APPLY, pod);
    let post = |query: &str, pod: &Json| Request::new("POST", format!("{pods}?dryRun=All{query}"), JSON, pod);
    let mut attacks = vec![
        Attack::new("server-side apply of a new pod", apply(&hostile("new")), denied()),
        Attack::new("server-side apply of a new pod that complies", apply(&complying("new")), Expect::Admitted),
        Attack::new(
            "PUT of a new pod",
            Request::new("PUT", format!("{pods}/new?dryRun=All"), JSON, &hostile("new")),
            Expect::Refused,
        ),
        Attack::new(
            "merge patch of a new pod",
            Request::new("PATCH", format!("{pods}/new?dryRun=All"), MERGE, &hostile("new")),
            Expect::Refused,
        ),
        Attack::new("a generated name", post("", &generated), denied()),
        Attack::new("another namespace in the body", post("", &elsewhere), Expect::Refused),
        Attack::new("a list", post("", &list), Expect::Refused),
        Attack::new(
            "no namespace in the path",
            Request::new("POST", "/api/v1/pods?dryRun=All", JSON, &hostile("x")),
            Expect::Refused,
        ),
        Attack::new(
            "a namespace behind ..",
            Request::new("POST", format!("/api/v1/namespaces/x/../{namespace}/pods?dryRun=All"), JSON, &hostile("x")),
            Expect::Stopped,
        ),
        Attack::new("a namespace that is not there", Request::pod("red-nowhere", &hostile("x")), Expect::Refused),
        Attack::new(
            "deletion of a collection",
            Request::delete(format!("{pods}?dryRun=All&labelSelector=no=body")),
            Expect::Admitted,
        ),
        Attack::new("deletion", Request::delete(format!("{pods}/target?dryRun=All")), Expect::Admitted),
    ];
    for query in [
        "&fieldValidation=Ignore",
        "&fieldValidation=Strict",
        "&fieldValidation=Warn",
        "&fieldManager=palisade",
        "&pretty=true",
        "&dryRun=All",
    ] {
        attacks.push(Attack::new(format!("query {query}"), post(query, &hostile("x")), denied()));
    }
    // For real, and not as a dry run.
    for query in ["", "?fieldManager=palisade-controller"] {
        let how = Request::new("POST", format!("{pods}{query}"), JSON, &hostile("real"));
        attacks.push(Attack::new(format!("for real, {query:?}"), how, denied()));
    }
    for namespace in ["kube-system", "kube-public", "kube-node-lease", "palisade-system", "palisade-probe", "default"] {
        attacks.push(Attack::new(
            format!("a pod in {namespace}"),
            Request::pod(namespace, &complying("x")),
            Expect::Refused,
        ));
    }
    attacks
}

/// A pod that is being deleted, and that finalizers keep: they can be removed, and nothing else can be changed.
async fn dying(arena: &Arena, namespace: &str) -> Result<Tally> {
    let mut pod = complying("dying");
    pod["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    let path = format!("{}/dying", pods(namespace));
    arena.demand(&Request::create(&pods(namespace), &pod)).await?;
    arena.demand(&Request::delete(&path)).await?;
    let patch = |patch: Json| Request::new("PATCH", &path, STRATEGIC, &patch);
    let evil = json!([{"name": "main", "image": "evil.example/x"}]);
    let attacks = vec![
        Attack::new(
            "another registry, in a pod that is deleted",
            patch(json!({"spec": {"containers": evil}})),
            Expect::check("imageRegistries"),
        ),
        Attack::new(
            "another registry with a finalizer removed",
            Request::new(
                "PATCH",
                &path,
                MERGE,
                &json!({"metadata": {"finalizers": ["example.com/b"]}, "spec": {"containers": [with(container("main"), &[("image", Some(json!("evil.example/x")))])]}}),
            ),
            Expect::Stopped,
        ),
        Attack::new(
            "a finalizer removed",
            Request::new("PATCH", &path, MERGE, &json!({"metadata": {"finalizers": ["example.com/b"]}})),
            Expect::Admitted,
        ),
        Attack::new(
            "an ephemeral container in a pod that is deleted",
            Request::new(
                "PATCH",
                format!("{path}/ephemeralcontainers"),
                MERGE,
                &json!({"spec": {"ephemeralContainers": [debugger(true)]}}),
            ),
            Expect::check("privileged"),
        ),
        Attack::new(
            "the last finalizer removed",
            Request::new("PATCH", &path, MERGE, &json!({"metadata": {"finalizers": null}})),
            Expect::Admitted,
        ),
    ];
    Ok(make_in_turn(&arena.tenant, attacks).await)
}

/// A binding writes annotations into a pod, which no policy for pods judges. None of them exempts the pod.
async fn bound(arena: &Arena, namespace: &str) -> Result<Tally> {
    arena.demand(&Request::create(&pods(namespace), &complying("bound"))).await?;
    let path = format!("{}/bound", pods(namespace));
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "bound", "annotations": {
            "kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file",
            "container.apparmor.security.beta.kubernetes.io/main": "unconfined",
            "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        }},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node"},
    });
    let evil = json!({"spec": {"containers": [{"name": "main", "image": "evil.example/x"}]}});
    let body = json!({"spec": {"ephemeralContainers": [debugger(true)]}});
    let no_field = Expect::Ineffective("/spec/containers/0/securityContext/appArmorProfile", Json::Null);
    let attacks = vec![
        Attack::new(
            "annotations by a binding",
            Request::create(&format!("{path}/binding"), &binding),
            Expect::Ineffective("/spec", Json::Null),
        ),
        Attack::new("the pod after the binding", Request::get(&path), no_field),
        Attack::new(
            "another registry after the binding",
            Request::new("PATCH", &path, STRATEGIC, &evil),
            Expect::Stopped,
        ),
        Attack::new(
            "an ephemeral container after the binding",
            Request::new("PATCH", format!("{path}/ephemeralcontainers"), MERGE, &body),
            // The API server takes it for a static pod, which may have none.
            Expect::Stopped,
        ),
    ];
    Ok(make_in_turn(&arena.tenant, attacks).await)
}

//! What a tenant may not write, so that no other attack is needed.

use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{complying, hostile},
    table::{Attack, Expect, Tally, make},
    wire::{APPLY, JSON, MERGE, Request, client_of},
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Writes to what enforces, by the tenant with the role `admin` in its namespace, and by its service account.
pub(crate) async fn tenants_writes(arena: &mut Arena) -> Result<Tally> {
    let test = "red-writes";
    let namespace = arena.stage(test, |_| ()).await?;
    let mut tally = make(&arena.tenant, forbidden(test, &namespace)).await;
    tally.add(make(&arena.tenant, allowed(test, &namespace)).await);
    // The default service account of the namespace, and a user whose name says that it is Palisade.
    for (user, groups) in [
        (format!("system:serviceaccount:{namespace}:default"), vec!["system:serviceaccounts", "system:authenticated"]),
        ("palisade-controller".to_owned(), vec!["system:authenticated"]),
        ("system:node:node".to_owned(), vec!["system:authenticated"]),
    ] {
        let client = client_of(&arena.cluster, &user, &groups).await?;
        let attacks = forbidden(test, &namespace)
            .into_iter()
            .map(|attack| Attack { name: format!("{user}: {}", attack.name), ..attack });
        tally.add(make(&client, attacks.collect()).await);
    }
    // Members of groups that sound as if they were exempt, who may create pods.
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "others"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}],
    });
    arena.demand(&Request::create(&format!("{RBAC}/namespaces/{namespace}/rolebindings"), &binding)).await?;
    let mut mirror = hostile("mirror");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    mirror["spec"]["nodeName"] = "node".into();
    for (user, group) in [
        ("palisade-controller", "system:serviceaccounts:palisade-system"),
        ("system:serviceaccount:palisade-system:palisade-controller", "system:serviceaccounts:palisade-system"),
        ("system:serviceaccount:kube-system:node", "system:serviceaccounts:kube-system"),
        ("system:anonymous", "system:unauthenticated"),
        ("system:nodes", "system:authenticated"),
        ("xsystem:node:node", "system:nodes"),
        ("system:admin", "ops"),
        ("admin", "system:masters"),
    ] {
        let client = client_of(&arena.cluster, user, &[group, "system:authenticated"]).await?;
        let mut attacks = vec![Attack::new(
            format!("a hostile pod of {user} in {group}"),
            Request::pod(&namespace, &hostile("x")),
            Expect::check("hostNamespaces"),
        )];
        attacks.push(Attack::new(
            format!("a mirror pod of {user} in {group}"),
            Request::pod(&namespace, &mirror),
            Expect::check("hostNamespaces"),
        ));
        tally.add(make(&client, attacks).await);
    }
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// What the role `admin` lets a tenant do and must go on to.
fn allowed(test: &str, namespace: &str) -> Vec<Attack> {
    let params = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityparams");
    vec![
        Attack::new("reads its parameters", Request::get(format!("{params}/{test}")), Expect::Admitted),
        Attack::new("lists its parameters", Request::get(params), Expect::Admitted),
        Attack::new("creates a pod that complies", Request::pod(namespace, &complying("x")), Expect::Admitted),
    ]
}

/// What a tenant would like to write: the path of the collection, a name, the object.
fn wanted(test: &str, namespace: &str) -> Vec<(String, String, Json)> {
    let own = "/apis/toolsecurity.dev/v1alpha1";
    let params = json!({"apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityParams", "metadata": {"name": test}, "spec": {"integers": {"uid": 0}}});
    let profile = json!({"apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": test}, "spec": {"enforcement": {"pods": "Audit"}}});
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let mut objects: Vec<(String, String, Json)> = vec![
        (format!("{own}/namespaces/{namespace}/toolsecurityparams"), test.to_owned(), params),
        (format!("{own}/toolsecurityprofiles"), test.to_owned(), profile),
        (
            "/api/v1/namespaces".to_owned(),
            namespace.to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"tenancy": "none"}, "annotations": {"toolforge.org/uid": "50002"}}}),
        ),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            "toolsecurityparams.toolsecurity.dev".to_owned(),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}),
        ),
        (
            "/apis/apps/v1/namespaces/palisade-system/controllerrevisions".to_owned(),
            "x".to_owned(),
            json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "x"}, "revision": 1}),
        ),
        (
            "/api/v1/namespaces/palisade-system/secrets".to_owned(),
            "palisade-webhook-cert".to_owned(),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
        ),
        (
            "/api/v1/namespaces/palisade-system/serviceaccounts/palisade-controller/token".to_owned(),
            String::new(),
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
        ),
        ("/api/v1/namespaces/palisade-probe/pods".to_owned(), "x".to_owned(), hostile("x")),
        (
            "/apis/apps/v1/namespaces/palisade-system/deployments".to_owned(),
            "palisade-controller".to_owned(),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}),
        ),
        (
            format!("{RBAC}/clusterrolebindings"),
            "x".to_owned(),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "x"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
        ),
    ];
    for (plural, kind) in [
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    ] {
        let name = format!("palisade-{test}-pods");
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
        objects.push((format!("{admission}/{plural}"), name, object));
    }
    objects
}

/// What RBAC forbids.
fn forbidden(test: &str, namespace: &str) -> Vec<Attack> {
    let mut attacks = vec![];
    let dry = |path: &str| format!("{path}?dryRun=All");
    for (path, name, object) in wanted(test, namespace) {
        let one = format!("{path}/{name}");
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let mut attack =
            |verb: &str, how: Request| attacks.push(Attack::new(format!("{verb} {kind}"), how, Expect::Refused));
        attack("create", Request::new("POST", dry(&path), JSON, &object));
        if !name.is_empty() {
            attack("update", Request::new("PUT", dry(&one), JSON, &object));
            attack("patch", Request::new("PATCH", dry(&one), MERGE, &json!({"metadata": {"labels": {"a": "b"}}})));
            attack(
                "apply",
                Request::new("PATCH", format!("{one}?dryRun=All&fieldManager=palisade&force=true"), APPLY, &object),
            );
            attack(
                "patch the status of",
                Request::new("PATCH", dry(&format!("{one}/status")), MERGE, &json!({"status": {}})),
            );
            attack("delete", Request::delete(dry(&one)));
            attack("delete all of", Request::delete(dry(&path)));
        }
    }
    // More rights than one has, and other names.
    let rule = json!([{"apiGroups": ["toolsecurity.dev"], "resources": ["*"], "verbs": ["*"]}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "more"}, "rules": rule});
    let bind = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "more"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
        })
    };
    let at = |resource: &str| dry(&format!("{RBAC}/namespaces/{namespace}/{resource}"));
    let mut attack = |name: &str, how: Request| attacks.push(Attack::new(name, how, Expect::Refused));
    attack("a role that writes parameters", Request::new("POST", at("roles"), JSON, &role));
    for name in ["cluster-admin", "palisade-controller", "palisade-webhook"] {
        attack(&format!("the role {name}"), Request::new("POST", at("rolebindings"), JSON, &bind(name)));
    }
    let finalize =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}, "spec": {"finalizers": []}});
    attack(
        "finalize its namespace",
        Request::new("PUT", dry(&format!("/api/v1/namespaces/{namespace}/finalize")), JSON, &finalize),
    );
    attacks
}

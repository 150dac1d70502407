//! What `manifests/confinement.yaml` denies to the controller and to everybody else, and what it must not deny.

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use palisade_api::{EngineInForce, ToolSecurityParams, names};
use palisade_controlplane::Builder;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, root, tool_pod};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::privilege::{ACCOUNTS, tamper, text};

crate::groups::scenarios! {
    only_dry_runs_are_admitted_in_the_probe_namespace: Unprivileged 20, Confined 10;
    only_the_controller_and_admins_may_write_parameters: Unprivileged 30, Confined 20;
    only_admins_may_set_the_stage_of_a_namespace: Unprivileged 50, Confined 40;
    controller_is_confined_to_its_own_objects: Unprivileged 70, Confined 60;
    webhook_may_be_registered_only_for_tenant_pods: Unprivileged 80, Confined 70;
    confinement_has_no_type_check_warning: Unprivileged 90, Confined 80;
    static_policies_of_the_api_server_confine_the_controller: OwnPolicies needs POLICIES_IN_FILES, NATIVE_MUTATION;
    palisade_can_be_uninstalled_and_reinstalled: Unprivileged 100;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const UID: i64 = 50_001;

/// A client with the rights of the controller.
async fn controller(cluster: &Cluster) -> Result<Client> {
    cluster.client_as(&cluster.controller_kubeconfig()?).await
}

/// A denial by a policy of `manifests/confinement.yaml`, and by nothing else.
fn denied_by(verdict: &Verdict, policy: &str) -> TestResult {
    let by = format!("ValidatingAdmissionPolicy '{policy}'");
    ensure!(verdict.denial().is_some_and(|text| text.contains(&by)), "not denied by {policy}: {verdict:?}");
    Ok(())
}

fn deployment(name: &str) -> Json {
    let pod = tool_pod(name, UID);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"toolforge": "tool"}}, "template": {
            "metadata": pod["metadata"], "spec": {"containers": [{"name": "a", "image": "a"}]},
        }},
    })
}

pub(crate) async fn only_dry_runs_are_admitted_in_the_probe_namespace(cluster: &mut Cluster) -> TestResult {
    let policy = "confine-palisade-probe";
    let pods = format!("/api/v1/namespaces/{}/pods", names::PROBE_NAMESPACE);
    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", names::PROBE_NAMESPACE);
    // Policies of the manifests come into force a moment after they are written.
    eventually("a real pod is denied", || async {
        let verdict = cluster.create_pod(names::PROBE_NAMESPACE, &tool_pod("early", UID)).await;
        denied_by(&verdict, policy).map_err(|error| error.to_string())
    })
    .await?;
    cluster.kubectl(&["delete", "pod", "early", "-n", names::PROBE_NAMESPACE, "--ignore-not-found"])?;
    let controller = controller(cluster).await?;
    for client in [&cluster.admin, &controller] {
        for (path, object) in [(&pods, tool_pod("real", UID)), (&pods, hostile_pod("real"))] {
            denied_by(&cluster.ask_as(client, "POST", path, &object).await, policy)?;
            let dry = cluster.dry_run_at(client, path, &object).await;
            ensure!(dry == Verdict::Admitted, "a dry run: {dry:?}");
        }
    }
    denied_by(&cluster.create_at(&deployments, &deployment("real")).await, policy)?;
    let dry = cluster.dry_run_at(&cluster.admin, &deployments, &deployment("real")).await;
    ensure!(dry == Verdict::Admitted, "a dry run: {dry:?}");
    let elsewhere = "/apis/apps/v1/namespaces/default/deployments";
    let dry = cluster.dry_run_at(&cluster.admin, elsewhere, &deployment("real")).await;
    ensure!(dry == Verdict::Admitted, "in another namespace: {dry:?}");

    // The namespace can be deleted, comes back with the manifests, and is probed in again.
    cluster.delete_namespace(names::PROBE_NAMESPACE).await?;
    eventually("the namespace goes", || async {
        match cluster.kubectl(&["get", "namespace", names::PROBE_NAMESPACE, "-o", "name", "--ignore-not-found"]) {
            Ok(found) if found.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.install()?;
    let test = "probed-again";
    cluster.create_tool(test, test, UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn only_the_controller_and_admins_may_write_parameters(cluster: &mut Cluster) -> TestResult {
    let (test, policy) = ("written", "confine-toolsecurityparams");
    cluster.create_tool(test, test, UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.wait_admitted(test, &tool_pod("job", UID)).await?;
    // What many clusters give their tenants.
    cluster.kubectl(&["create", "role", "everything", "--verb=*", "--resource=*.*", "-n", test])?;
    cluster.kubectl(&["create", "rolebinding", "everything", "--role=everything", "--user=tenant", "-n", test])?;
    let tenant = cluster.client_of_tenant("tenant").await?;
    let api: Api<ToolSecurityParams> = Api::namespaced(tenant.clone(), test);
    let patch = |patch: Json| {
        let api = api.clone();
        async move { Verdict::of(api.patch(test, &PatchParams::default(), &Patch::Merge(&patch)).await) }
    };
    denied_by(&patch(json!({"spec": {"integers": {"uid": UID + 1}}})).await, policy)?;
    let mut another = serde_json::to_value(cluster.params(test, test).await?)?;
    another["metadata"] = json!({"name": "another"});
    let path = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{test}/toolsecurityparams");
    denied_by(&cluster.ask_as(&tenant, "POST", &path, &another).await, policy)?;
    // Neither do their finalizers belong to the tenant: parameters::tenants_can_neither_delete_nor_hold_nor_starve_parameters.
    denied_by(&patch(json!({"metadata": {"finalizers": ["example.org/a"]}})).await, policy)?;
    // An admin may, and the controller restores it.
    let path = format!("{path}/{test}");
    tamper(cluster, &path, &json!({"spec": {"integers": {"uid": 7}}}), "/spec/integers/uid", &json!(7)).await?;
    cluster.delete_namespace(test).await?;
    eventually("the namespace goes", || async {
        match cluster.kubectl(&["get", "namespace", test, "-o", "name", "--ignore-not-found"]) {
            Ok(found) if found.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn only_admins_may_set_the_stage_of_a_namespace(cluster: &mut Cluster) -> TestResult {
    let (test, policy) = ("own-stage", "confine-namespace-stages");
    let label = names::stage_label("any-profile");
    cluster.create_namespace(test, &json!({label.as_str(): "Deny"}), &json!({})).await?;
    // May do anything with namespaces, and nothing with profiles.
    let verbs = "--verb=create,update,patch,delete";
    let resource = "--resource=namespaces,namespaces/status,namespaces/finalize";
    cluster.kubectl(&["create", "clusterrole", test, verbs, resource])?;
    cluster.kubectl(&["create", "clusterrolebinding", test, &format!("--clusterrole={test}"), "--user=editor"])?;
    let editor = cluster.client_of_tenant("editor").await?;
    let path = format!("/api/v1/namespaces/{test}");
    let labels = |labels: Json| json!({"metadata": {"labels": labels}});
    eventually("the policy is in force", || async {
        let verdict = cluster.ask_as(&editor, "PATCH", &path, &labels(json!({label.as_str(): "Audit"}))).await;
        denied_by(&verdict, policy).map_err(|error| error.to_string())
    })
    .await?;
    for changed in [json!({label.as_str(): null}), json!({names::stage_label("another"): "Deny"}), json!(null)] {
        for at in [path.clone(), format!("{path}/status")] {
            denied_by(&cluster.ask_as(&editor, "PATCH", &at, &labels(changed.clone())).await, policy)?;
        }
    }
    let namespace = |name: &str, labels: Json| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let hold = names::rollout_annotation("any-profile");
    let held = |why: Json| json!({"metadata": {"annotations": {hold.as_str(): why}}});
    denied_by(&cluster.ask_as(&editor, "PATCH", &path, &held(json!("until May"))).await, policy)?;
    cluster.patch_namespace(test, &held(json!("until May"))).await?;
    for why in [json!("Violations: none"), json!(null)] {
        denied_by(&cluster.ask_as(&editor, "PATCH", &path, &held(why)).await, policy)?;
    }
    let mut finalized = namespace(test, json!({}));
    finalized["spec"] = json!({"finalizers": ["kubernetes"]});
    denied_by(&cluster.ask_as(&editor, "PUT", &format!("{path}/finalize"), &finalized).await, policy)?;
    let born = namespace("born-open", json!({label.as_str(): "Audit"}));
    denied_by(&cluster.ask_as(&editor, "POST", "/api/v1/namespaces", &born).await, policy)?;
    // Everything else goes on, and an admin may.
    for changed in [json!({"team": "a"}), json!({"team": null, label.as_str(): "Deny"})] {
        let verdict = cluster.ask_as(&editor, "PATCH", &path, &labels(changed)).await;
        ensure!(verdict == Verdict::Admitted, "another label: {verdict:?}");
    }
    let verdict = cluster.ask_as(&editor, "POST", "/api/v1/namespaces", &namespace("born-plain", json!({}))).await;
    ensure!(verdict == Verdict::Admitted, "a namespace without the label: {verdict:?}");
    cluster.patch_namespace(test, &labels(json!({label.as_str(): "Warn"}))).await?;
    let verdict = cluster.ask_as(&editor, "DELETE", &path, &json!({})).await;
    ensure!(verdict == Verdict::Admitted, "it can be deleted: {verdict:?}");
    eventually("the namespace goes", || async {
        match cluster.kubectl(&["get", "namespace", test, "-o", "name", "--ignore-not-found"]) {
            Ok(found) if found.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

pub(crate) async fn controller_is_confined_to_its_own_objects(cluster: &mut Cluster) -> TestResult {
    let test = "confined";
    cluster.create_tool(test, test, UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    let client = controller(cluster).await?;
    let patched = async |path: String, patch: Json| cluster.ask_as(&client, "PATCH", &path, &patch).await;
    let probe = || format!("/api/v1/namespaces/{}", names::PROBE_NAMESPACE);
    let policy = "confine-palisade-controller-namespaces";
    for patch in [json!({"annotations": {"a": "b"}}), json!({"finalizers": ["example.org/a"]})] {
        denied_by(&patched(probe(), json!({"metadata": patch})).await, policy)?;
    }
    let labelled = patched(probe(), json!({"metadata": {"labels": {"a": "b"}}})).await;
    ensure!(labelled == Verdict::Admitted, "{labelled:?}");

    let profile = || format!("/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles/{test}");
    let policy = "confine-palisade-controller-profiles";
    for patch in [
        json!({"spec": {"privileges": {"privileged": true}}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"annotations": {"a": "b"}}}),
        json!({"metadata": {"finalizers": [names::FINALIZER, "example.org/a"]}}),
    ] {
        denied_by(&patched(profile(), patch).await, policy)?;
    }

    let revisions = format!("/apis/apps/v1/namespaces/{}/controllerrevisions", names::OPERATOR_NAMESPACE);
    let revision = |name: &str, labels: Json| {
        json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name, "labels": labels},
            "revision": 1, "data": {},
        })
    };
    let policy = "confine-palisade-controller-revisions";
    for foreign in
        [revision("other", json!({names::MANAGED_BY_LABEL: names::MANAGED_BY})), revision("palisade-x", json!({}))]
    {
        denied_by(&cluster.ask_as(&client, "POST", &revisions, &foreign).await, policy)?;
        let created = cluster.create_at(&revisions, &foreign).await;
        ensure!(created == Verdict::Admitted, "an admin: {created:?}");
        let name = text(&foreign, "/metadata/name");
        denied_by(&cluster.ask_as(&client, "DELETE", &format!("{revisions}/{name}"), &json!({})).await, policy)?;
        cluster.kubectl(&["delete", "controllerrevision", &name, "-n", names::OPERATOR_NAMESPACE])?;
    }

    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = |of: &str, kind: &str| {
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"generateName": "x-", "namespace": "default"},
            "eventTime": "2026-11-22T00:00:00.000000Z", "type": "Normal", "reason": "X", "action": "X",
            "reportingController": of, "reportingInstance": of,
            "regarding": {"apiVersion": "v1", "kind": kind, "name": "x", "namespace": "default"},
        })
    };
    let policy = "confine-palisade-controller-events";
    for (of, kind) in [("kubelet", "ToolSecurityProfile"), (names::CONTROLLER, "Node")] {
        denied_by(&cluster.ask_as(&client, "POST", events, &event(of, kind)).await, policy)?;
        let created = cluster.create_at(events, &event(of, kind)).await;
        ensure!(created == Verdict::Admitted, "an admin: {created:?}");
    }
    for kind in ["ToolSecurityProfile", "ToolSecurityParams", "ToolSecurityException"] {
        let own = cluster.ask_as(&client, "POST", events, &event(names::CONTROLLER, kind)).await;
        ensure!(own == Verdict::Admitted, "{kind}: {own:?}");
    }
    cluster.delete_profile(test).await
}

pub(crate) async fn webhook_may_be_registered_only_for_tenant_pods(cluster: &mut Cluster) -> TestResult {
    let policy = "confine-palisade-registration";
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/palisade-webhook";
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]});
    let protected = names::PROTECTED_NAMESPACES;
    let leaves_out = |names: &[&str]| {
        json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names},
        ]})
    };
    let pods = [rule("", "pods"), rule("", "pods/ephemeralcontainers")];
    let wrong = [
        (json!([rule("*", "*")]), leaves_out(&protected)),
        (json!([rule("", "*")]), leaves_out(&protected)),
        (json!([rule("", "*/*")]), leaves_out(&protected)),
        (json!([rule("", "secrets")]), leaves_out(&protected)),
        (json!([rule("", "pods/exec")]), leaves_out(&protected)),
        (json!([pods[0], rule("apps", "deployments")]), leaves_out(&protected)),
        (json!(pods), json!({})),
        (json!(pods), json!({"matchLabels": {"tenancy": "tool"}})),
        (json!(pods), leaves_out(&protected[1..])),
        (json!(pods), leaves_out(&protected[..3])),
    ];
    let mut writers = 0;
    for account in ACCOUNTS {
        let client = cluster.client_as(&cluster.kubeconfig_of(account)?).await?;
        let write = async |rules: &Json, selector: &Json| -> Result<Verdict> {
            let mut registration = cluster.answer("GET", path, "application/json", &json!(null)).await?;
            registration["webhooks"] = json!([{
                "name": "x.mutate.toolsecurity.dev", "rules": rules, "namespaceSelector": selector, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "clientConfig": {"service": {"name": "palisade-webhook", "namespace": "palisade-system"}},
            }]);
            Ok(cluster.ask_as(&client, "PUT", &format!("{path}?dryRun=All"), &registration).await)
        };
        let right = write(&json!(pods), &leaves_out(&protected)).await?;
        if matches!(&right, Verdict::Refused(403, text) if text.contains("cannot update resource")) {
            continue;
        }
        ensure!(right == Verdict::Admitted, "{account}: {right:?}");
        writers += 1;
        for (rules, selector) in &wrong {
            let verdict = write(rules, selector).await?;
            denied_by(&verdict, policy).map_err(|error| format!("{account}, {rules}, {selector}: {error}"))?;
        }
    }
    ensure!(writers > 0, "neither account may write the registration");
    Ok(())
}

/// The policies of the manifests have no type-check warning on this API server, as the generated ones have none.
pub(crate) async fn confinement_has_no_type_check_warning(cluster: &mut Cluster) -> TestResult {
    let (resource, named) = (
        ApiResource::erase::<k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy>(&()),
        |policy: &DynamicObject| policy.metadata.name.as_deref().is_some_and(|name| name.starts_with("confine-")),
    );
    let api: Api<DynamicObject> = Api::all_with(cluster.admin.clone(), &resource);
    eventually("types are checked", || async {
        let all = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ours: Vec<_> = all.items.into_iter().filter(named).collect();
        let checked = |policy: &DynamicObject| {
            policy.data["status"]["observedGeneration"].is_number()
                && policy.data["status"]["typeChecking"]["expressionWarnings"].is_null()
        };
        let wrong: Vec<_> =
            ours.iter().filter(|policy| !checked(policy)).map(|policy| &policy.data["status"]).collect();
        if ours.len() == 10 && wrong.is_empty() { Ok(()) } else { Err(format!("{} policies, {wrong:?}", ours.len())) }
    })
    .await?;
    Ok(())
}

/// An API server that reads the policy of the examples from a file of its own.
pub(crate) fn with_policies_of_its_own() -> Result<(Builder, TempDir)> {
    crate::files::reading(&std::fs::read_to_string(root().join("examples/api-server/confine-palisade.yaml"))?)
}

pub(crate) async fn static_policies_of_the_api_server_confine_the_controller(cluster: &mut Cluster) -> TestResult {
    let (test, policy) = ("static", "confine-palisade.static.k8s.io");
    let group = "/apis/admissionregistration.k8s.io/v1";
    cluster.create_tool(test, test, UID).await?;
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Native"});
    profile["spec"]["guardSources"] = true.into();
    cluster.enforce(&profile).await?;
    crate::webhook::engine(cluster, test, EngineInForce::Native).await?;
    let client = controller(cluster).await?;
    // What was written for the profile may be written, under another name, and nothing that differs in what it matches.
    let mutating = format!("{group}/mutatingadmissionpolicies");
    let found = cluster.answer("GET", &format!("{mutating}/palisade-{test}-mutation"), "", &json!(null)).await?;
    let changed = |name: &str, pointer: &str, value: &Json| {
        let mut policy = json!({
            "apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": {"name": name}, "spec": found["spec"],
        });
        if let Some(place) = policy.pointer_mut(pointer) {
            *place = value.clone();
        }
        policy
    };
    let dry = format!("{mutating}?dryRun=All");
    let same = cluster.ask_as(&client, "POST", &dry, &changed("palisade-x", "/none", &json!(null))).await;
    ensure!(same == Verdict::Admitted, "{same:?}");
    let rules = "/spec/matchConstraints/resourceRules";
    let rule = |group: &str, resource: &str| json!([{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}]);
    let connects =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods"]}]);
    let selector = "/spec/matchConstraints/namespaceSelector";
    for (name, pointer, value) in [
        ("other", "/none", json!(null)),
        ("palisade-x", rules, rule("rbac.authorization.k8s.io", "rolebindings")),
        ("palisade-x", rules, rule("*", "*")),
        ("palisade-x", rules, rule("", "secrets")),
        ("palisade-x", rules, rule("apps", "deployments")),
        ("palisade-x-guard", rules, rule("", "namespaces")),
        ("palisade-x", rules, connects),
        ("palisade-x", selector, json!({})),
        ("palisade-x", selector, json!({"matchLabels": {"tenancy": "tool"}})),
    ] {
        let verdict = cluster.ask_as(&client, "POST", &dry, &changed(name, pointer, &value)).await;
        denied_by(&verdict, policy).map_err(|error| format!("{name} {pointer} {value}: {error}"))?;
    }
    for kind in ["validatingadmissionpolicies", "validatingadmissionpolicybindings"] {
        let path = format!("{group}/{kind}/confine-palisade-probe?dryRun=All");
        denied_by(&cluster.ask_as(&client, "DELETE", &path, &json!({})).await, policy)?;
    }
    cluster.delete_profile(test).await?;
    ensure!(cluster.left_of(test)?.is_empty(), "left: {}", cluster.left_of(test)?);
    Ok(())
}

/// Last in its cluster: afterwards there is a new one of everything.
pub(crate) async fn palisade_can_be_uninstalled_and_reinstalled(cluster: &mut Cluster) -> TestResult {
    let test = "again";
    cluster.create_tool(test, test, UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    // As `make uninstall` does.
    cluster.kubectl(&["delete", "toolsecurityprofiles", "--all", "--timeout=60s"])?;
    cluster.stop_controller().await?;
    let manifests = root().join("manifests").display().to_string();
    cluster.kubectl(&["delete", "--ignore-not-found", "--timeout=60s", "-k", &manifests])?;
    let left =
        cluster.kubectl(&["get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name"])?;
    ensure!(left.is_empty(), "left: {left}");
    let pod = cluster.dry_run(test, &hostile_pod("free")).await;
    ensure!(pod == Verdict::Admitted, "{pod:?}");
    cluster.install()?;
    cluster.start_controller().await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.delete_profile(test).await
}

//! What the two service accounts ask for, and what they are granted.

use std::collections::BTreeSet;

use palisade_api::{EngineInForce, names};
use palisade_controller::Options;
use palisade_tests::{Cluster, TestResult, Verdict, Webhook, ensure, eventually, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};

use crate::{
    history::offline,
    webhook::{engine, registered},
};

crate::groups::scenarios! {
    every_permission_is_used_and_no_other_requested: Audited 10 needs NATIVE_MUTATION;
    service_accounts_lack_dangerous_permissions: Unprivileged 10;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const UID: i64 = 50_001;
/// The service accounts of the manifests.
pub(crate) const ACCOUNTS: [&str; 2] = ["palisade-controller", "palisade-webhook"];
const MERGE: &str = "application/merge-patch+json";

/// What no request of the accounts shows, although they need it, and why.
const UNSEEN: [(&str, &str); 2] = [
    // Asked by a plugin of admission that is off here, and is on in some clusters.
    ("toolsecurityprofiles/finalizers", "update"),
    // Asked by the API server when a binding with parameters is written.
    ("toolsecurityparams", "get"),
];

pub(crate) fn user(account: &str) -> String {
    format!("system:serviceaccount:{}:{account}", names::OPERATOR_NAMESPACE)
}

/// One verb on one resource: what a role grants, or a request asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    account: &'static str,
    /// Empty: in all of them.
    namespace: String,
    group: String,
    resource: String,
    /// Empty: any.
    name: String,
    verb: String,
}

impl Grant {
    fn covers(&self, asked: &Self) -> bool {
        let same = |granted: &str, asked: &str| granted.is_empty() || granted == asked;
        self.account == asked.account
            && same(&self.namespace, &asked.namespace)
            && self.group == asked.group
            && self.resource == asked.resource
            && same(&self.name, &asked.name)
            && self.verb == asked.verb
    }
}

pub(crate) fn text(of: &Json, pointer: &str) -> String {
    of.pointer(pointer).and_then(Json::as_str).unwrap_or_default().to_owned()
}

fn texts(of: &Json) -> Vec<String> {
    of.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

/// What the roles in the cluster grant the accounts, by bindings to them.
fn granted(cluster: &Cluster) -> Result<Vec<Grant>> {
    let list = |kinds: &str| -> Result<Vec<Json>> {
        let text = cluster.kubectl(&["get", kinds, "--all-namespaces", "-o", "json"])?;
        Ok(serde_json::from_str::<Json>(&text)?["items"].as_array().cloned().unwrap_or_default())
    };
    let roles = list("clusterroles,roles")?;
    let mut grants = Vec::new();
    for binding in list("clusterrolebindings,rolebindings")? {
        for subject in binding["subjects"].as_array().into_iter().flatten() {
            let of_operator = text(subject, "/namespace") == names::OPERATOR_NAMESPACE;
            let account = ACCOUNTS.into_iter().find(|account| of_operator && text(subject, "/name") == **account);
            let Some(account) = account else { continue };
            let namespace = text(&binding, "/metadata/namespace");
            let role = roles.iter().find(|role| {
                text(role, "/kind") == text(&binding, "/roleRef/kind")
                    && text(role, "/metadata/name") == text(&binding, "/roleRef/name")
                    && [String::new(), namespace.clone()].contains(&text(role, "/metadata/namespace"))
            });
            for rule in role.ok_or("a binding without its role")?["rules"].as_array().into_iter().flatten() {
                let mut names = texts(&rule["resourceNames"]);
                if names.is_empty() {
                    names.push(String::new());
                }
                for group in texts(&rule["apiGroups"]) {
                    for resource in texts(&rule["resources"]) {
                        for name in &names {
                            for verb in texts(&rule["verbs"]) {
                                let (namespace, group) = (namespace.clone(), group.clone());
                                let (resource, name) = (resource.clone(), name.clone());
                                grants.push(Grant { account, namespace, group, resource, name, verb });
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(grants)
}

/// What the accounts asked the API server for, by its audit log, and what RBAC refused them.
fn asked(cluster: &Cluster) -> Result<(BTreeSet<Grant>, Vec<String>)> {
    let log = std::fs::read_to_string(cluster.control_plane.audit_log_path().ok_or("no audit log")?)?;
    let (mut asked, mut refused) = (BTreeSet::new(), Vec::new());
    // The last line may be half written.
    for event in log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let by = text(&event, "/user/username");
        let Some(account) = ACCOUNTS.into_iter().find(|account| user(account) == by) else { continue };
        if text(&event, "/annotations/authorization.k8s.io~1decision") != "allow" {
            refused.push(format!("{by}: {} {}", text(&event, "/verb"), text(&event, "/requestURI")));
        }
        // Discovery names no resource.
        let of = &event["objectRef"];
        if text(of, "/resource").is_empty() {
            continue;
        }
        let sub = text(of, "/subresource");
        let slash = if sub.is_empty() { "" } else { "/" };
        let grant = Grant {
            account,
            namespace: text(of, "/namespace"),
            group: text(of, "/apiGroup"),
            resource: format!("{}{slash}{sub}", text(of, "/resource")),
            name: text(of, "/name"),
            verb: text(&event, "/verb"),
        };
        // Server-side apply of what does not exist needs the permission to create.
        if grant.verb == "patch" && event["responseStatus"]["code"] == 201 {
            asked.insert(Grant { verb: "create".to_owned(), ..grant.clone() });
        }
        asked.insert(grant);
    }
    Ok((asked, refused))
}

/// Adds something of somebody else, which server-side apply leaves alone, and waits until it is gone.
pub(crate) async fn tamper(cluster: &Cluster, path: &str, patch: &Json, pointer: &str, foreign: &Json) -> TestResult {
    let tampered = cluster.answer("PATCH", path, MERGE, patch).await?;
    ensure!(tampered.pointer(pointer) == Some(foreign), "{path} was not changed: {tampered}");
    eventually(&format!("{path} is repaired"), || async {
        let now = cluster.answer("GET", path, MERGE, &json!(null)).await.map_err(|error| error.to_string())?;
        if now.pointer(pointer) == Some(foreign) { Err(now.to_string()) } else { Ok(()) }
    })
    .await?;
    Ok(())
}

/// `palisade audit` finds each denial in the log, and none of the controller's own dry runs or of a forged answer.
async fn the_audit_log_names_who_was_denied(cluster: &Cluster, test: &str, namespace: &str) -> TestResult {
    for _ in 0..2 {
        let verdict = cluster.create_pod(namespace, &hostile_pod("hostile")).await;
        ensure!(verdict.denial().is_some(), "{verdict:?}");
    }
    // A user without permissions forges a denial: the answer quotes the name.
    let forger = cluster.client_of_tenant("forger").await?;
    let forged = "x%22%20is%20forbidden:%20ValidatingAdmissionPolicy%20%27palisade-forged-pods%27%20with%20binding%20%27b%27%20\
                  denied%20request:%201%20violation%20of%20ToolSecurityProfile%20forged:%20[privileged]%20y";
    let path = format!("/api/v1/namespaces/kube-system/pods/{forged}");
    let verdict = cluster.ask_as(&forger, "DELETE", &path, &Json::Null).await;
    ensure!(format!("{verdict:?}").contains("palisade-forged-pods"), "{verdict:?}");
    // The log has it before this one.
    let verdict = cluster.create_pod(namespace, &hostile_pod("hostile")).await;
    ensure!(verdict.denial().is_some(), "{verdict:?}");
    let log = cluster.control_plane.audit_log_path().ok_or("no audit log")?.display().to_string();
    eventually("three denials in the log", || async {
        let answer = offline(&["audit", &log, "--profile-name", test, "-o", "json"]).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let found: Json = serde_json::from_str(&answer.out).map_err(|error| format!("{error}: {answer:?}"))?;
        let denied = found["checks"].as_array().into_iter().flatten().find(|one| one["check"] == "privileged");
        let expected =
            json!({"profile": test, "action": "Denied", "check": "privileged", "requests": 3, "namespaces": 1});
        if denied == Some(&expected) { Ok(()) } else { Err(found.to_string()) }
    })
    .await?;
    let found = offline(&["audit", &log, "--profile", "forged", "-o", "json"]).await?;
    let found: Json = serde_json::from_str(&found.out)?;
    ensure!(found["totals"] == json!([]), "{found}");
    Ok(())
}

/// A profile's whole life, with both engines, while somebody tampers with all that was made for it.
async fn live(cluster: &mut Cluster, test: &str) -> TestResult {
    let namespace = format!("{test}-tool");
    cluster.create_tool(test, &namespace, UID).await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    cluster.restart_controller(Options { leader_elect: true, ..Cluster::options()? }).await?;
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Webhook"});
    profile["spec"]["exceptionRequests"] = json!({"checks": ["hostNamespaces"]});
    cluster.enforce(&profile).await?;
    let asked = json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityException", "metadata": {"name": "asked"},
        "spec": {
            "profile": test, "checks": ["hostNamespaces"], "scope": {"kind": "Namespace"}, "reason": "a test",
            "expires": "2099-01-01T00:00:00Z",
        },
    });
    let exceptions = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityexceptions");
    let made = cluster.create_at(&exceptions, &asked).await;
    ensure!(made == Verdict::Admitted, "{made:?}");
    engine(cluster, test, EngineInForce::Webhook).await?;
    cluster.wait_admitted(&namespace, &tool_pod("job", UID)).await?;
    profile["spec"]["mutation"]["engine"] = json!("Native");
    profile["spec"]["host"]["ports"] = json!([{"min": 8080, "max": 8080}]);
    cluster.enforce(&profile).await?;
    engine(cluster, test, EngineInForce::Native).await?;
    registered(&webhook, 0.0).await?;
    the_audit_log_names_who_was_denied(cluster, test, &namespace).await?;

    let group = "/apis/admissionregistration.k8s.io/v1";
    let own = |kind: &str, shape: &str| format!("{group}/{kind}/palisade-{test}-{shape}");
    let condition = json!([{"name": "foreign", "expression": "false"}]);
    let conditions = json!({"spec": {"matchConditions": condition}});
    // What is not among the fields that are applied stays until the binding is replaced.
    let everything = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
    let narrowed = json!({"spec": {"matchResources": {"excludeResourceRules": [everything]}}});
    let (selector, b) = ("/spec/matchResources/excludeResourceRules/0/apiGroups/0", json!("*"));
    let name = "/spec/matchConditions/0/name";
    let foreign = json!("foreign");
    // Twice: an event that repeats is counted up.
    for _ in 0..2 {
        for kind in ["validatingadmissionpolicies", "mutatingadmissionpolicies"] {
            let shape = if kind.starts_with('v') { "pods" } else { "mutation" };
            tamper(cluster, &own(kind, shape), &conditions, name, &foreign).await?;
        }
        // A set, to which others can add; matchResources of this kind is replaced when it is applied.
        let audited = json!({"spec": {"validationActions": ["Deny", "Audit"]}});
        let binding = own("validatingadmissionpolicybindings", "pods");
        tamper(cluster, &binding, &audited, "/spec/validationActions/1", &json!("Audit")).await?;
        tamper(cluster, &own("mutatingadmissionpolicybindings", "mutation"), &narrowed, selector, &b).await?;
        let params = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityparams/{test}");
        let more = json!({"spec": {"integers": {"foreign": 1}}});
        tamper(cluster, &params, &more, "/spec/integers/foreign", &json!(1)).await?;
    }
    cluster.create_tool(test, &format!("{test}-new"), UID + 1).await?;
    cluster.wait_admitted(&format!("{test}-new"), &tool_pod("job", UID + 1)).await?;
    cluster.patch_namespace(&format!("{test}-new"), &json!({"metadata": {"labels": {"tenancy": null}}})).await?;
    eventually("the parameters go", || async {
        let found = cluster.params(&format!("{test}-new"), test).await;
        if found.is_err() { Ok(()) } else { Err("they are there".to_owned()) }
    })
    .await?;
    cluster.delete_profile(test).await?;
    ensure!(cluster.left_of(test)?.is_empty(), "left: {}", cluster.left_of(test)?);
    webhook.stop().await
}

pub(crate) async fn every_permission_is_used_and_no_other_requested(cluster: &mut Cluster) -> TestResult {
    live(cluster, "permissions").await?;
    let granted = granted(cluster)?;
    ensure!(granted.len() > 20, "{granted:?}");
    let used = || -> Result<(Vec<String>, Vec<String>, Vec<String>)> {
        let (asked, refused) = asked(cluster)?;
        let seen = |grant: &&Grant| {
            !asked.iter().any(|asked| grant.covers(asked))
                && !UNSEEN.contains(&(grant.resource.as_str(), grant.verb.as_str()))
        };
        let unused = granted.iter().filter(seen).map(|grant| format!("{grant:?}")).collect();
        let others = asked.iter().filter(|asked| !granted.iter().any(|grant| grant.covers(asked)));
        Ok((refused, unused, others.map(|asked| format!("{asked:?}")).collect()))
    };
    // Events are sent beside the work, and the log is written a moment later.
    eventually("each permission is used", || async {
        let (refused, unused, others) = used().map_err(|error| error.to_string())?;
        if refused.is_empty() && unused.is_empty() && others.is_empty() {
            return Ok(());
        }
        let [refused, unused, others] = [refused, unused, others].map(|lines| lines.join("\n  "));
        Err(format!("refused:\n  {refused}\nnever used:\n  {unused}\nnot granted by their roles:\n  {others}"))
    })
    .await?;
    Ok(())
}

pub(crate) async fn service_accounts_lack_dangerous_permissions(cluster: &mut Cluster) -> TestResult {
    let forbidden = [
        "get secrets -A",
        "list secrets -n palisade-system",
        "get secret/palisade-controller-token -n palisade-system",
        "create pods -n palisade-system",
        "create pods -n default",
        "update pods -n palisade-probe",
        "create pods --subresource=exec -n palisade-probe",
        "update toolsecurityparams.toolsecurity.dev -n default",
        "create deployments.apps -n default",
        "create serviceaccounts --subresource=token -n palisade-system",
        "impersonate users",
        "escalate clusterroles.rbac.authorization.k8s.io",
        "bind clusterroles.rbac.authorization.k8s.io",
        "update clusterroles.rbac.authorization.k8s.io",
        "update rolebindings.rbac.authorization.k8s.io -n palisade-system",
        "create namespaces",
        "delete namespace/palisade-probe",
        "patch namespace/default",
        "patch nodes",
        "create toolsecurityprofiles.toolsecurity.dev",
        "update toolsecurityprofiles.toolsecurity.dev",
        "delete toolsecurityprofiles.toolsecurity.dev",
        "create mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "update mutatingwebhookconfiguration.admissionregistration.k8s.io/another",
        "create validatingwebhookconfigurations.admissionregistration.k8s.io",
        "update controllerrevisions.apps -n default",
        "update customresourcedefinitions.apiextensions.k8s.io",
    ];
    for account in ACCOUNTS {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:palisade-system", "system:authenticated"];
        for what in forbidden {
            let by = format!("--as={}", user(account));
            let mut arguments = vec!["auth", "can-i", by.as_str()];
            let groups = groups.map(|group| format!("--as-group={group}"));
            arguments.extend(groups.iter().map(String::as_str));
            arguments.extend(what.split(' '));
            let mut kubectl = cluster.control_plane.kubectl().ok_or("no kubectl")?;
            let output = kubectl.args(&arguments).output()?;
            let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            ensure!(answer == "no", "may {account} {what}? {answer} {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(())
}

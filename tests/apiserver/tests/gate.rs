//! The API server accepts all objects of an accepted profile, and every engine mutates by the accepted generation.

use k8s_openapi::api::{admissionregistration::v1::MutatingWebhookConfiguration, apps::v1::ControllerRevision};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use palisade_admission::create::{Refused, create};
use palisade_api::{
    names::{self, Shape},
    revision::KEPT,
};
use palisade_cel::Minor;
use palisade_kube_json::pod;
use palisade_tests::{
    Cluster, TestResult, Verdict, Webhook, dry_run_answer, ensure, eventually, hostile_pod, refusing,
};
use serde_json::{Value as Json, json};

use crate::webhook::registered;

crate::groups::scenarios! {
    registration_errors_match_the_api_server: Answers 140, Webhooks 60, Middle 10;
    invalid_selector_changes_no_object_and_no_other_profile: Reconciled 120, Webhooks 70;
    webhook_mutates_by_the_profile_in_force: Reconciled 130, Webhooks 80;
    generations_are_recorded_without_a_gap: Reconciled 140;
    rejected_webhook_entry_does_not_affect_others: Reconciled 150;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Checks that the offline rejection has the API server's own words.
async fn same_refusal(cluster: &Cluster, minor: Minor, path: &str, object: &Json) -> std::result::Result<(), String> {
    let refusal = |minor: Minor| match create(minor, object, None) {
        Ok(_) => String::new(),
        Err(Refused::Status(status)) => status.message,
        Err(Refused::NoVerdict(why)) => format!("no verdict: {why}"),
    };
    let offline = refusal(minor);
    let server = cluster.answer_to("POST", &format!("{path}?dryRun=All"), object).await.err().unwrap_or_default();
    // An API server that emulates another minor has the words of its program.
    let own = refusal(cluster.program_minor().await.map_err(|error| error.to_string())?);
    if offline == server || (own == server && offline.is_empty() == server.is_empty()) {
        Ok(())
    } else {
        Err(format!("{object}\n    the API server: {server}\n    offline: {offline}"))
    }
}

pub(crate) async fn registration_errors_match_the_api_server(cluster: &mut Cluster) -> TestResult {
    let minor = cluster.minor().await?;
    let requirement = |one: Json| json!({"matchExpressions": [one]});
    let mut selectors = vec![
        json!({}),
        requirement(json!({"key": "a", "operator": "Foo"})),
        requirement(json!({"key": "a", "operator": "In"})),
        requirement(json!({"key": "a", "operator": "NotIn", "values": []})),
        requirement(json!({"key": "a", "operator": "Exists", "values": ["x"]})),
        requirement(json!({"key": "a b", "operator": "Exists"})),
        requirement(json!({"key": "", "operator": "DoesNotExist"})),
        requirement(json!({"key": "A_/b", "operator": "Exists"})),
        requirement(json!({"key": "a".repeat(64), "operator": "Exists"})),
        requirement(json!({"key": "a", "operator": "In", "values": ["x y", "fine", "", "y".repeat(64)]})),
        json!({"matchLabels": {"a b": "c"}}),
        json!({"matchLabels": {"a": "x y/"}}),
    ];
    if minor >= Minor::V1_35 || cluster.program_minor().await? == minor {
        // A server that emulates an older version has its own words for this one, and not those of that version.
        selectors.push(requirement(json!({"key": "a/b/c", "operator": "Exists"})));
    }
    let entry = json!({
        "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"service": {"name": "a", "namespace": "b", "path": "/mutate/x", "port": 443}},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
            "scope": "Namespaced",
        }],
    });
    let rule = |patch: Json| {
        let mut rule = entry["rules"][0].clone();
        pod::merge(&mut rule, &patch);
        json!({"rules": [rule]})
    };
    let mut patches = vec![
        json!({"name": ""}),
        json!({"name": "x.y"}),
        json!({"name": "A.b.c"}),
        json!({"admissionReviewVersions": []}),
        json!({"admissionReviewVersions": ["v2"]}),
        json!({"admissionReviewVersions": ["v1", "v1", "V"]}),
        json!({"sideEffects": null}),
        json!({"sideEffects": "Some"}),
        json!({"failurePolicy": "Never"}),
        json!({"matchPolicy": "Never"}),
        json!({"timeoutSeconds": 0}),
        json!({"timeoutSeconds": 31}),
        json!({"clientConfig": {"service": null}}),
        json!({"clientConfig": {"url": "https://a/b"}}),
        json!({"clientConfig": {"service": null, "url": "https://a/b"}}),
        json!({"clientConfig": {"service": null, "url": "http://a:1/b"}}),
        json!({"clientConfig": {"service": null, "url": "https://"}}),
        json!({"clientConfig": {"service": null, "url": "https://user@a/b?c=d#e"}}),
        json!({"clientConfig": {"service": {"name": ""}}}),
        json!({"clientConfig": {"service": {"namespace": ""}}}),
        json!({"clientConfig": {"service": {"port": 70000}}}),
        json!({"clientConfig": {"service": {"path": "mutate"}}}),
        json!({"clientConfig": {"service": {"path": "//"}}}),
        json!({"clientConfig": {"service": {"path": "/a//b/"}}}),
        json!({"clientConfig": {"service": {"path": "/mutate/It's"}}}),
        json!({"matchConditions": [{"name": "", "expression": ""}, {"name": "a b", "expression": "true"}]}),
        json!({"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "1"}]}),
        json!({"matchConditions": [{"name": "a", "expression": "params.x"}]}),
        json!({"matchConditions": [{"name": "a", "expression": "variables.x"}]}),
        rule(json!({"operations": []})),
        rule(json!({"operations": ["PATCH", "*"]})),
        rule(json!({"apiGroups": ["", "*"]})),
        rule(json!({"apiVersions": [""]})),
        rule(json!({"resources": ["*/*", "pods"]})),
        rule(json!({"scope": "Everywhere"})),
    ];
    patches.extend(selectors.iter().map(|selector| json!({"namespaceSelector": selector})));
    patches.extend(selectors.iter().map(|selector| json!({"objectSelector": selector})));
    let group = "admissionregistration.k8s.io/v1";
    let (mut wrong, mut count) = (vec![], 0);
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let path = format!("/apis/{group}/{}s", kind.to_lowercase());
        let metadata = json!({"name": "refused"});
        let whole =
            |entries: Json| json!({"apiVersion": group, "kind": kind, "metadata": metadata, "webhooks": entries});
        let mut objects: Vec<_> = patches
            .iter()
            .map(|patch| {
                let mut entry = entry.clone();
                pod::merge(&mut entry, patch);
                whole(json!([entry]))
            })
            .collect();
        objects.push(whole(json!([entry, entry])));
        if kind.starts_with("Mutating") {
            let mut entry = entry.clone();
            entry["reinvocationPolicy"] = json!("Often");
            objects.push(whole(json!([entry])));
        }
        for object in &objects {
            count += 1;
            wrong.extend(same_refusal(cluster, minor, &path, object).await.err());
        }
    }
    for selector in &selectors {
        let object = json!({
            "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "refused"},
            "spec": {
                "matchConstraints": {"namespaceSelector": selector, "resourceRules": [entry["rules"][0]]},
                "validations": [{"expression": "true"}],
            },
        });
        count += 1;
        let path = format!("/apis/{group}/validatingadmissionpolicies");
        wrong.extend(same_refusal(cluster, minor, &path, &object).await.err());
    }
    println!("{minor}: {count} objects, {} refused in other words or not", wrong.len());
    ensure!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// A profile that selects the namespaces of a test, redirects nothing and changes pods by the webhook.
fn profile(name: &str, spec: &Json) -> Json {
    let mut profile = json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"gate": name}},
            "mutation": {"defaults": "Secure", "engine": "Webhook"},
        },
    });
    pod::merge(&mut profile["spec"], spec);
    profile
}

/// The message of a condition that has this status.
async fn message(cluster: &Cluster, profile: &str, condition: &str, status: &str) -> Result<String> {
    let found = cluster.wait_condition(profile, condition, status).await?;
    let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
    let found = conditions.into_iter().find(|one| one.type_ == condition);
    Ok(found.map(|one| one.message).unwrap_or_default())
}

/// Waits until a pod without anything is defaulted.
async fn defaulted(cluster: &Cluster, namespace: &str) -> Result<Json> {
    let answer = eventually(&format!("a pod in {namespace} is defaulted"), || async {
        let answer = dry_run_answer(&cluster.admin, namespace, &pod::minimal("bare")).await;
        answer.map_err(|error| error.to_string())
    })
    .await?;
    Ok(answer)
}

async fn entries(cluster: &Cluster) -> Result<Vec<String>> {
    let api: Api<MutatingWebhookConfiguration> = Api::all(cluster.admin.clone());
    Ok(api.get(names::WEBHOOK).await?.webhooks.unwrap_or_default().into_iter().map(|entry| entry.name).collect())
}

pub(crate) async fn invalid_selector_changes_no_object_and_no_other_profile(cluster: &mut Cluster) -> TestResult {
    let (bad, other) = ("gate-bad", "gate-other");
    for name in [bad, other] {
        cluster.create_namespace(name, &json!({"gate": name}), &json!({"uid": "50001"})).await?;
    }
    let webhook = Webhook::start(cluster, None, &[]).await?;
    let parameter =
        json!({"parameters": [{"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "uid"}]}]});
    cluster.enforce(&profile(bad, &parameter)).await?;
    defaulted(cluster, bad).await?;
    let before = (cluster.policy_versions(bad).await?, cluster.params_versions(bad).await?);
    // What the definition of the kind does not refuse; and an override that must not be written beside it.
    for selector in [json!({"gate": bad, "a b": "c"}), json!({"gate": bad, "A_/x": "c"})] {
        let selector = json!({"matchLabels": selector});
        let mut changed = profile(bad, &parameter);
        changed["spec"]["namespaceSelector"] = selector.clone();
        changed["spec"]["overrides"] = json!([{"namespaces": [bad], "parameters": {"uid": 50777}}]);
        cluster.apply_profile(&changed).await?;
        let said = message(cluster, bad, "Accepted", "False").await?;
        ensure!(said.starts_with("spec.namespaceSelector.matchLabels: Invalid value: "), "{selector}: {said}");
        let after = (cluster.policy_versions(bad).await?, cluster.params_versions(bad).await?);
        ensure!(after == before, "{selector}: {before:?} became {after:?}");
    }
    // Policies in force are repaired, and other profiles are registered.
    cluster.policies().delete(&names::policy(bad, Shape::Pods), &DeleteParams::default()).await?;
    eventually("the policy is back", || async {
        let found = cluster.policies().get(&names::policy(bad, Shape::Pods)).await;
        found.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    eventually("a hostile pod is denied", || async {
        let verdict = cluster.dry_run(bad, &hostile_pod("hostile")).await;
        verdict.denial().map(drop).ok_or(format!("{verdict:?}"))
    })
    .await?;
    cluster.enforce(&profile(other, &json!({}))).await?;
    defaulted(cluster, other).await?;
    defaulted(cluster, bad).await?;
    ensure!(entries(cluster).await? == [bad, other].map(names::webhook_entry), "{:?}", entries(cluster).await?);
    webhook.stop().await?;
    cluster.delete_profile(bad).await?;
    ensure!(entries(cluster).await? == [names::webhook_entry(other)], "{:?}", entries(cluster).await?);
    cluster.delete_profile(other).await
}

/// A pod that complies and whose image is of an allowed registry.
fn allowed() -> Json {
    let mut pod = pod::minimal("allowed");
    pod["spec"]["containers"][0]["image"] = json!("a.example/x:1");
    pod
}

pub(crate) async fn webhook_mutates_by_the_profile_in_force(cluster: &mut Cluster) -> TestResult {
    let test = "gate-force";
    cluster.create_namespace(test, &json!({"gate": test}), &json!({})).await?;
    let good = json!({"images": {"allowedRegistries": ["a.example"]}});
    let webhook = Webhook::start(cluster, None, &[]).await?;
    cluster.enforce(&profile(test, &good)).await?;
    let admin = cluster.admin.clone();
    let image = async || -> std::result::Result<Json, String> {
        let answer = dry_run_answer(&admin, test, &allowed()).await.map_err(|error| error.to_string())?;
        Ok(answer["spec"]["containers"][0]["image"].clone())
    };
    let untouched = async |when: &str| {
        eventually(&format!("{when}: the image stays as it is"), || async {
            match image().await {
                Ok(found) if found == "a.example/x:1" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    };
    untouched("before").await?;
    // It compiles, and no pod would comply any more: the gate refuses it.
    let mut refused = profile(test, &good);
    refused["spec"]["images"]["redirect"] = json!({"target": "b.example"});
    cluster.apply_profile(&refused).await?;
    let said = message(cluster, test, "Accepted", "False").await?;
    ensure!(said.contains("it complied before it was mutated"), "{said}");
    // The image must stay the same for a second, in which the webhook reads the profile.
    for _ in 0..20 {
        ensure!(image().await? == "a.example/x:1", "the webhook redirects: {:?}", image().await);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // Nor after a restart of either, or of both.
    webhook.stop().await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    untouched("the webhook is started anew").await?;
    cluster.stop_controller().await?;
    cluster.start_controller().await?;
    cluster.wait_condition(test, "Accepted", "False").await?;
    untouched("the controller is started anew").await?;
    // Then the webhook follows the accepted generation.
    refused["spec"]["images"]["allowedRegistries"] = json!(["b.example"]);
    cluster.enforce(&refused).await?;
    eventually("the image is redirected", || async {
        match image().await {
            Ok(found) if found == "b.example/a.example/x:1" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    let refusals = webhook.metric("palisade_webhook_refused_profiles").await?;
    ensure!(refusals.abs() < 0.5, "{refusals} refused");
    webhook.stop().await?;
    cluster.delete_profile(test).await?;
    ensure!(cluster.left_of(test)?.is_empty(), "left: {}", cluster.left_of(test)?);
    Ok(())
}

pub(crate) async fn generations_are_recorded_without_a_gap(cluster: &mut Cluster) -> TestResult {
    let test = "gate-records";
    cluster.create_namespace(test, &json!({"gate": test}), &json!({})).await?;
    let api: Api<ControllerRevision> = Api::namespaced(cluster.admin.clone(), names::OPERATOR_NAMESPACE);
    let of_test = ListParams::default().labels(&format!("{}={test}", names::PROFILE_LABEL));
    let recorded = async || -> Result<Vec<i64>> {
        let mut found: Vec<_> = api.list(&of_test).await?.into_iter().map(|one| one.revision).collect();
        found.sort_unstable();
        Ok(found)
    };
    // No webhook runs: without one, a profile that changes pods is not enforced.
    let spec = |ports: i64| json!({"host": {"ports": [{"min": ports, "max": ports}]}, "mutation": null});
    let first = cluster.enforce(&profile(test, &spec(1))).await?;
    ensure!(first.metadata.generation == Some(1), "{:?}", first.metadata.generation);
    eventually("the first", || async {
        let found = recorded().await.map_err(|error| error.to_string())?;
        if found == [1] { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await?;
    // As older versions of Palisade wrote it: under one name, which they deleted and wrote again.
    cluster.stop_controller().await?;
    let mut old = json!(api.list(&of_test).await?.items.pop().ok_or("none")?);
    old["metadata"] = json!({
        "name": format!("palisade-{test}"), "labels": old["metadata"]["labels"],
        "ownerReferences": old["metadata"]["ownerReferences"],
    });
    api.delete(&names::revision(test, 1), &DeleteParams::default()).await?;
    let path = format!("/apis/apps/v1/namespaces/{}/controllerrevisions", names::OPERATOR_NAMESPACE);
    ensure!(cluster.create_at(&path, &old).await == Verdict::Admitted, "the old one is not created");
    let mut invalid = profile(test, &spec(2));
    invalid["spec"]["images"] = json!({"allowedRegistries": ["$nope"]});
    cluster.apply_profile(&invalid).await?;
    cluster.start_controller().await?;
    let programmed = message(cluster, test, "Programmed", "False").await?;
    ensure!(programmed.contains("the spec of generation 1 stays in effect"), "{programmed}");
    // At no time is there none, and never more than are kept and the one that is written.
    let kept = i64::try_from(KEPT)?;
    for ports in 3..kept + 5 {
        let applied = cluster.apply_profile(&profile(test, &spec(ports))).await?;
        let generation = applied.metadata.generation.unwrap_or_default();
        eventually(&format!("generation {generation}"), || async {
            let found = recorded().await.map_err(|error| error.to_string())?;
            if found.is_empty() || found.len() > KEPT + 1 {
                return Ok(Err(format!("{found:?} are recorded")));
            }
            if found.last() == Some(&generation) { Ok(Ok(())) } else { Err(format!("{found:?}")) }
        })
        .await??;
    }
    eventually("as many are kept as there should be", || async {
        let found = recorded().await.map_err(|error| error.to_string())?;
        if found.len() == KEPT { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await?;
    cluster.delete_profile(test).await?;
    ensure!(recorded().await?.is_empty(), "{:?} are left", recorded().await?);
    Ok(())
}

/// The gate should have refused it; that it did not must not stop the others.
pub(crate) async fn rejected_webhook_entry_does_not_affect_others(cluster: &mut Cluster) -> TestResult {
    let (culprit, other) = ("gate-culprit", "gate-innocent");
    for name in [culprit, other] {
        cluster.create_namespace(name, &json!({"gate": name}), &json!({})).await?;
    }
    cluster.stop_controller().await?;
    let written = format!("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{}", names::WEBHOOK);
    let entry = names::webhook_entry(culprit);
    cluster.start_controller_with(|client| refusing(&client, "PUT", &written, &entry)).await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    cluster.apply_profile(&profile(culprit, &json!({}))).await?;
    cluster.enforce(&profile(other, &json!({}))).await?;
    defaulted(cluster, other).await?;
    let said = message(cluster, culprit, "Programmed", "False").await?;
    ensure!(said.contains("the registration of the webhook"), "{said}");
    let denied = cluster.dry_run(culprit, &hostile_pod("hostile")).await;
    ensure!(denied.denial().is_some(), "{denied:?}");
    ensure!(entries(cluster).await? == [names::webhook_entry(other)], "{:?}", entries(cluster).await?);
    // Once the API server takes it, all is well.
    cluster.stop_controller().await?;
    cluster.start_controller().await?;
    cluster.wait_condition(culprit, "Programmed", "True").await?;
    registered(&webhook, 2.0).await?;
    defaulted(cluster, culprit).await?;
    webhook.stop().await?;
    cluster.delete_profile(culprit).await?;
    cluster.delete_profile(other).await
}

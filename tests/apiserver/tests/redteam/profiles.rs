//! Profiles that a careless admin writes. The earlier generation stays in force as a whole, and each mistake is
//! reported.

use std::time::Duration;

use palisade_tests::{Cluster, within};
use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{UID, complying, hostile, with},
    table::{Attack, Expect, Tally, make},
    wire::{APPLY, Request},
};

const PROFILES: &str = "/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles";
/// How long a profile may take to be rejected.
const LIMIT: Duration = Duration::from_secs(25);

/// A loop whose element has the name of the policy's variables.
const HIDING: &str = "variables.volumes.all(variables, variables.containers.all(c, true))";

/// A profile that must not get into force: its name, and a field of its spec with a value.
pub(crate) fn mistakes() -> Vec<(&'static str, &'static str, Json)> {
    let check = |change: Json| {
        let mut check = json!({"id": "own", "message": "m", "expression": "true"});
        palisade_kube_json::pod::merge(&mut check, &change);
        json!([check])
    };
    let expression = |text: &str| check(json!({"expression": text}));
    let parameter = |more: Json| {
        let uid = json!({"name": "uid", "type": "Integer", "sources": [{"namespaceAnnotation": "toolforge.org/uid"}], "minimum": 50_000});
        json!([uid, more])
    };
    let ids = |range: Json| json!({"rule": "MustRunAs", "ranges": [range]});
    let many: Vec<Json> =
        (0..33).map(|n| json!({"id": format!("c{n}"), "message": "m", "expression": "true"})).collect();
    let exception = |change: Json| {
        let mut exception =
            json!({"namespaces": ["x"], "checks": ["privileged"], "reason": "r", "expires": "2099-01-01T00:00:00Z"});
        palisade_kube_json::pod::merge(&mut exception, &change);
        json!([exception])
    };
    let custom = "customChecks";
    vec![
        ("half an expression", custom, expression("1 +")),
        ("no boolean", custom, expression("1")),
        ("a text", custom, expression("'true'")),
        ("no such function", custom, expression("foo(1) == 1")),
        ("no such variable", custom, expression("nope.x")),
        ("no such field", custom, expression("object.spec.nope == 1")),
        ("a field that may be absent", custom, expression("object.spec.nodeName == 'x'")),
        ("a division by zero", custom, expression("1/0 == 1")),
        ("deep parentheses", custom, expression(&format!("{}true{}", "(".repeat(400), ")".repeat(400)))),
        ("no regular expression", custom, expression("'a'.matches('(')")),
        ("a huge regular expression", custom, expression("'a'.matches('((a{100}){100}){100}')")),
        ("out of the expression", custom, expression("true) ? [] : ['x'] //")),
        ("out of the expression, by lines", custom, expression("true\n) ? [] : [] + (\ntrue")),
        ("half a text", custom, expression("\"\"\"")),
        ("a loop named as the policy's variables", custom, expression(HIDING)),
        ("itself", custom, expression("variables.custom_own.size() == 0")),
        ("the list of violations", custom, expression("variables.violations.size() == 0")),
        ("an id of the catalogue", custom, check(json!({"id": "privileged"}))),
        ("an id that is not a valid id", custom, check(json!({"id": "\u{e9}"}))),
        ("two messages", custom, check(json!({"messageExpression": "'a'"}))),
        (
            "a message that is not a text",
            custom,
            json!([{"id": "own", "messageExpression": "1", "expression": "true"}]),
        ),
        ("too many checks", custom, json!(many)),
        ("too long", custom, expression(&format!("true{}", " ".repeat(8190)))),
        ("a default at no place", custom, check(json!({"default": {"path": "nope", "value": 1}}))),
        ("no such parameter", "images.allowedRegistries", json!(["$nope"])),
        ("a parameter of another type", "images.allowedRegistries", json!(["$uid"])),
        ("two of one name", "parameters", parameter(json!({"name": "uid", "type": "String", "default": "a"}))),
        (
            "half a pattern",
            "parameters",
            parameter(json!({"name": "s", "type": "String", "pattern": "(", "default": "a"})),
        ),
        (
            "a huge pattern",
            "parameters",
            parameter(json!({"name": "s", "type": "String", "pattern": "((a{100}){100}){100}", "default": "a"})),
        ),
        (
            "a default outside of the limits",
            "parameters",
            parameter(json!({"name": "i", "type": "Integer", "minimum": 5, "default": 1})),
        ),
        ("a type that is none", "parameters", parameter(json!({"name": "i", "type": "Float", "default": 1}))),
        ("a range that is empty", "users.runAsUser", ids(json!({"min": 10, "max": 5}))),
        ("no ranges", "users.runAsUser", json!({"rule": "MustRunAs", "ranges": []})),
        ("a negative id", "users.runAsUser", ids(json!({"min": -1, "max": 5}))),
        ("a rule that is none", "users.runAsUser", json!({"rule": "MustRunAsRoot"})),
        ("no selector", "namespaceSelector", json!({})),
        ("an exception from no check", "exceptions", exception(json!({"checks": ["nope"]}))),
        ("an exception until tomorrow", "exceptions", exception(json!({"expires": "tomorrow"}))),
        ("a redirection to what is not allowed", "images.redirect", json!({"target": "evil.example"})),
        ("a redirection to a URL", "images.redirect", json!({"target": "https://docker-registry.svc.toolforge.org"})),
        ("a registry that is a URL", "images.allowedRegistries", json!(["https://docker-registry.svc.toolforge.org"])),
        ("a volume kind of 5,000 letters", "volumes.allowed", json!(["x".repeat(5000)])),
        ("no such version", "baselineVersion", json!("v9")),
        ("no such level", "baseline", json!("Unrestricted")),
        ("no such stage", "enforcement.pods", json!("Off")),
        ("ports that are none", "host.ports", json!([{"min": -1, "max": 99_999}])),
        ("a relative path", "volumes.hostPaths", json!([{"pathPrefix": "data"}])),
        ("an override of no parameter", "overrides", json!([{"namespaces": ["x"], "parameters": {"nope": "1"}}])),
        (
            "an override by what is not a number",
            "overrides",
            json!([{"namespaces": ["x"], "parameters": {"uid": "a"}}]),
        ),
        ("an exempt user without a name", "exemptions", json!({"users": [""]})),
        ("no such defaults", "mutation", json!({"defaults": "Everything"})),
        ("a wave of more than all", "rollout", json!({"waves": [{"percent": 101}]})),
        ("a wave of nobody", "rollout", json!({"waves": [{"stage": "Deny"}]})),
        ("a rollout without waves", "rollout", json!({"waves": []})),
        ("an operator that is none", "namespaceSelector", {
            json!({"matchExpressions": [{"key": "tenancy", "operator": "Near", "values": ["x"]}]})
        }),
        ("a key that is not a valid label", "namespaceSelector", json!({"matchLabels": {"a b": "c"}})),
    ]
}

fn profile_with(test: &str, field: &str, value: &Json) -> Result<Json> {
    Ok(with(Cluster::toolforge_profile(test)?, &[(&format!("spec.{field}"), Some(value.clone()))]))
}

/// Writes a profile; the text of a refusal, or else the message with which it is not accepted.
pub(crate) async fn rejected(arena: &Arena, profile: &Json) -> Result<std::result::Result<String, String>> {
    let name = profile["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{PROFILES}/{name}");
    let apply = Request::new("PATCH", format!("{path}?fieldManager=tests&force=true"), APPLY, profile);
    let answer = arena.ask(&apply).await;
    if !answer.is_admitted() {
        // Only the API server's own refusal is one. To a list map with one key twice, server-side apply says 500.
        let one_key_twice = answer.status == 500 && answer.message().contains("duplicate entries for key");
        let refused = matches!(answer.status, 400 | 422) || one_key_twice;
        return Ok(if refused { Ok(answer.message().to_owned()) } else { Err(answer.short()) });
    }
    let accepted = within(LIMIT, "a verdict on the profile", || async {
        let found = arena.ask(&Request::get(&path)).await.body;
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let accepted = conditions.into_iter().find(|condition| {
            condition["type"] == "Accepted" && condition["observedGeneration"] == found["metadata"]["generation"]
        });
        accepted.ok_or_else(|| found["status"]["conditions"].to_string())
    })
    .await;
    Ok(match accepted {
        Ok((condition, _)) if condition["status"] == "False" => Ok(condition["message"].to_string()),
        Ok((condition, _)) => Err(format!("accepted: {condition}")),
        Err(error) => Err(error),
    })
}

/// What must hold whatever is written: the last good profile is in force, whole.
fn still(name: &str, namespace: &str) -> Vec<Attack> {
    let other = ["runAsUser", "runAsGroup", "fsGroup"].map(|id| format!("spec.securityContext.{id}"));
    let other: Vec<_> = other.iter().map(|path| (path.as_str(), Some(json!(UID + 777)))).collect();
    vec![
        Attack::new(
            format!("hostPID, after {name}"),
            Request::pod(namespace, &hostile("x")),
            Expect::check("hostNamespaces"),
        ),
        Attack::new(
            format!("another uid, after {name}"),
            Request::pod(namespace, &with(complying("x"), &other)),
            Expect::check("runAsUser"),
        ),
        Attack::new(
            format!("a pod that complies, after {name}"),
            Request::pod(namespace, &complying("x")),
            Expect::Admitted,
        ),
    ]
}

/// Profiles with mistakes.
pub(crate) async fn bad_profiles(arena: &mut Arena) -> Result<Tally> {
    let test = "red-mistakes";
    let namespace = arena.stage(test, |_| ()).await?;
    let mut tally = Tally::default();
    let before = (arena.cluster.policy_versions(test).await?, arena.cluster.params_versions(test).await?);
    for (name, field, value) in mistakes().into_iter().step_by(arena.extent.pick(4, 1)) {
        tally.tried += 1;
        match rejected(arena, &profile_with(test, field, &value)?).await? {
            Ok(_) => tally.refused += 1,
            Err(said) => tally.holes.push(format!("a profile with {name}: {said}")),
        }
        tally.add(make(&arena.tenant, still(name, &namespace)).await);
    }
    let after = (arena.cluster.policy_versions(test).await?, arena.cluster.params_versions(test).await?);
    tally.must(before == after, format!("something was written: {before:?}, then {after:?}"));
    arena.enforce(&Cluster::toolforge_profile(test)?).await?;
    arena.delete_profile(test).await?;
    Ok(tally)
}

/// Selectors that the API server would refuse in a policy, with other parameters beside them. A policy that is deleted
/// meanwhile is restored all the same.
pub(crate) async fn bad_selectors(arena: &mut Arena) -> Result<Tally> {
    let test = "red-selectors";
    let namespace = arena.stage(test, |_| ()).await?;
    let labels = |key: &str, value: &str| json!({"matchLabels": {"tenancy": test, key: value}});
    let expressions = |expression: Json| json!({"matchLabels": {"tenancy": test}, "matchExpressions": [expression]});
    let long = "x".repeat(64);
    let selectors = [
        ("NotIn without values", expressions(json!({"key": "zz", "operator": "NotIn", "values": []}))),
        ("a key with a blank", labels("a b", "c")),
        ("Exists with values", expressions(json!({"key": "tenancy", "operator": "Exists", "values": ["x"]}))),
        ("In without values", expressions(json!({"key": "tenancy", "operator": "In"}))),
        ("no such operator", expressions(json!({"key": "tenancy", "operator": "Like", "values": ["x"]}))),
        ("a value with a slash", labels("a", "x y/")),
        ("a value that is too long", labels("a", &long)),
        ("an empty key", labels("", "c")),
        ("a wrong value in a list", expressions(json!({"key": "zz", "operator": "NotIn", "values": ["a b"]}))),
    ];
    let mut tally = Tally::default();
    let policy = format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/palisade-{test}-pods");
    for (index, (name, selector)) in selectors.into_iter().take(arena.extent.pick(3, 9)).enumerate() {
        let mut profile = profile_with(test, "namespaceSelector", &selector)?;
        profile["spec"]["overrides"] = json!([{"namespaces": [namespace], "parameters": {"uid": UID + 777}}]);
        tally.tried += 1;
        match rejected(arena, &profile).await? {
            Ok(_) => tally.refused += 1,
            Err(said) => tally.holes.push(format!("a profile with {name}: {said}")),
        }
        tally.add(make(&arena.tenant, still(name, &namespace)).await);
        if index == 0 {
            arena.demand(&Request::delete(&policy)).await?;
            let what = format!("a deleted policy, while the profile has {name}");
            let restored = || async { arena.ask(&Request::get(&policy)).await.is_admitted() };
            tally.add(arena.window(&what, &namespace, LIMIT, restored).await?);
        }
    }
    arena.enforce(&Cluster::toolforge_profile(test)?).await?;
    tally.add(make(&arena.tenant, still("all of them", &namespace)).await);
    arena.delete_profile(test).await?;
    Ok(tally)
}

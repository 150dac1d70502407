//! Checks of tokens and connections, whose requests are not like those for other objects.

use palisade_api::{ToolSecurityParamsSpec, objects};
use palisade_checks::ObjectResource;
use palisade_gate::{Decision, ValidationRequest, Validator};

use super::*;

/// A request with an object of a kind that a check evaluates.
pub(super) fn request(kind: &str, name: &str, object: Json) -> FixtureRequest {
    let of = objects::ALL.iter().flat_map(|check| check.kinds).find(|of| of.kind == kind).unwrap();
    FixtureRequest::new(of, name, object)
}

fn exec(command: &[&str]) -> FixtureRequest {
    request("PodExecOptions", "web", json!({"apiVersion": "v1", "kind": "PodExecOptions", "command": command}))
}

pub(super) fn connections() -> Vec<ObjectResource> {
    let all = objects::ALL.iter().flat_map(|check| check.kinds).copied();
    all.filter(ObjectResource::is_connection).collect()
}

/// A connection has no time of creation, with which the end of an exception could be compared.
#[test]
fn exception_of_connections_applies_as_long_as_it_is_in_the_parameters() {
    let exception = json!({
        "namespaces": ["tool-weather"], "checks": ["accessConnect", "accessTokens"], "reason": "r",
        "expires": "2026-06-01T00:00:00Z",
    });
    let spec = json!({
        "exceptions": [exception], "access": {"allowedConnections": [], "allowedTokenServiceAccounts": []},
    });
    let compiled = compiled(&spec);
    let namespace = palisade_compiler::Namespace { name: "tool-weather".to_owned(), ..Default::default() };
    let params = |now: &str| json!(compiled.params(&namespace, [], now.parse().unwrap()).unwrap().spec);
    let tenant = FixtureUser::default();
    let token = |created: &str| {
        let object = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "metadata": {"creationTimestamp": created}, "spec": {"audiences": ["a"]},
        });
        request("TokenRequest", "builder", object)
    };
    for minor in Minor::ALL {
        let before = Enforced::new(minor, &compiled, Some(&params("2026-05-31T00:00:00Z")));
        let after = Enforced::new(minor, &compiled, Some(&params("2026-06-01T00:00:00Z")));
        assert_eq!(before.denial_in(&tenant, &exec(&["sh"])), "");
        assert!(after.denial_in(&tenant, &exec(&["sh"])).contains("[accessConnect]"));
        // The API server sets the time of a request for a token, and so the exception ends by its clock.
        assert_eq!(before.denial_in(&tenant, &token("2026-05-31T00:00:00Z")), "");
        assert!(before.denial_in(&tenant, &token("2026-06-02T00:00:00Z")).contains("[accessTokens]"));
    }
}

/// As for creation: the API server looks up parameters before it evaluates an expression.
#[test]
fn connections_without_parameters_are_denied_like_creation() {
    let parameter = json!([{"name": "team", "type": "String", "sources": [{"namespaceLabel": "team"}]}]);
    let spec = |stage: &str| {
        json!({
            "parameters": parameter, "enforcement": {"objects": stage},
            "access": {"allowedConnections": [{"resources": ["pods/exec"], "groups": ["$team"]}]},
        })
    };
    for minor in Minor::ALL {
        for (stage, is_denied) in [("Deny", true), ("Warn", false), ("Audit", false)] {
            let server = Enforced::new(minor, &compiled(&spec(stage)), None);
            let found = server.denial_in(&FixtureUser::default(), &exec(&["ps"]));
            assert_eq!(!found.is_empty(), is_denied, "{minor} {stage}: {found}");
        }
        // A check without parameters, next to one that has some.
        let mut closed = spec("Deny");
        closed["access"] = json!({"allowedConnections": [], "allowedRoleVerbs": ["$team"]});
        let server = Enforced::new(minor, &compiled(&closed), None);
        assert!(!server.denial_in(&FixtureUser::default(), &exec(&["ps"])).is_empty());
    }
}

/// The options of a connection have no metadata. No expression fails because of that.
#[test]
fn connections_are_evaluated_without_metadata() {
    let exception = json!({
        "namespaces": ["other"], "checks": ["accessConnect", "networkServices"], "reason": "r",
        "expires": "2099-01-01T00:00:00Z",
    });
    let spec = json!({
        "exceptions": [exception], "exemptions": {"users": ["robot"]},
        "network": {"allowedServiceTypes": ["ClusterIP"]}, "access": {"allowedConnections": []},
    });
    let compiled = compiled(&spec);
    let policy = Validator::new(&compiled.bundle.objects.as_ref().unwrap().policy).unwrap();
    let params = json!({"spec": ToolSecurityParamsSpec::default()});
    for of in connections() {
        let object = json!({"apiVersion": "v1", "kind": of.kind});
        let decision = |namespace: &str, user: &str| {
            let request = ValidationRequest {
                namespace,
                user,
                operation: Operation::Connect,
                resource: Some(of.resource),
                subresource: of.subresource,
                name: Some("web"),
                params: Some(&params),
                ..ValidationRequest::create(of.kind, &object)
            };
            policy.evaluate(&request).unwrap_or_else(|error| panic!("{}: {error}", of.kind))
        };
        assert_eq!(decision(names::PROBE_NAMESPACE, "tenant"), Decision::Admit, "{}", of.kind);
        assert_eq!(decision("tool-weather", "robot"), Decision::Admit, "{}", of.kind);
        let Decision::Deny { message, .. } = decision("tool-weather", "tenant") else { panic!("{}", of.kind) };
        assert!(message.contains("[accessConnect]"), "{message}");
    }
}

/// The owner of a Secret cannot make the control plane write a token of another service account into it.
#[test]
fn update_to_a_token_of_another_account_is_denied() {
    let compiled = compiled(&json!({"access": {"allowedTokenServiceAccounts": ["builder"]}}));
    let secret = |account: &str| {
        let annotations = json!({"kubernetes.io/service-account.name": account});
        let object = object("v1", "Secret", &json!({"type": "kubernetes.io/service-account-token"}));
        with(&object, "/metadata/annotations", annotations)
    };
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, None);
        assert!(server.update(&secret("admin"), &secret("builder")).contains("[accessTokens]"));
        assert_eq!(server.update(&secret("builder"), &secret("admin")), "");
        // A Secret that is older than the profile can be labelled, and the control plane writes its token.
        assert_eq!(server.update(&with(&secret("admin"), "/metadata/labels", json!({"a": "b"})), &secret("admin")), "");
        assert_eq!(server.update(&with(&secret("admin"), "/data", json!({"token": "YQ=="})), &secret("admin")), "");
    }
}

/// Secrets are evaluated, but never listed for the scan: permission to list them is permission to read them.
#[test]
fn secrets_are_listed_only_for_custom_checks() {
    let access = json!({"access": {"allowedTokenServiceAccounts": ["builder"], "allowedConnections": []}});
    let found = |spec: &Json| {
        let compiled = compiled(spec);
        let names = |kinds: Vec<palisade_api::ObjectKind>| -> Vec<String> {
            kinds.into_iter().map(|kind| kind.resource).collect()
        };
        [names(compiled.object_kinds()), names(compiled.listed_kinds())]
    };
    assert_eq!(found(&access), [vec!["secrets".to_owned()], vec![]]);
    let mut named = access;
    named["customChecks"] = json!([{
        "id": "own", "target": "Object", "expression": "true", "message": "m",
        "kinds": [{"versions": ["v1"], "resource": "secrets"}],
    }]);
    assert_eq!(found(&named), [vec!["secrets".to_owned()], vec!["secrets".to_owned()]]);
}

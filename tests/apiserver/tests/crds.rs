//! The API server rejects a wrong profile with a message that says what is wrong.

use palisade_kube_json::pod::merge;
use palisade_tests::{Cluster, TestResult, Verdict, ensure};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    invalid_profiles_are_rejected_by_the_crd: Oldest 50, Answers 110;
    what_cannot_be_read_is_rejected_by_the_crd: Oldest 60, Answers 120;
    kubectl_explains_every_field: Answers 130;
}

pub(crate) async fn invalid_profiles_are_rejected_by_the_crd(cluster: &mut Cluster) -> TestResult {
    let uid = |range: Json| json!({"users": {"runAsUser": {"rule": "MustRunAs", "ranges": [range]}}});
    let required = |one: Json| json!({"namespaceSelector": {"matchExpressions": [one]}});
    let wave = |wave: Json| json!({"enforcement": {"namespaceStages": "ByLabel"}, "rollout": {"waves": [wave]}});
    let parameter = |parameter: Json| json!({"parameters": [parameter]});
    let cases = [
        (json!({"namespaceSelector": null}), "spec.namespaceSelector: Required value"),
        (json!({"namespaceSelector": {"matchLabels": null}}), "must contain at least one label"),
        (json!({"namespaceSelector": {"matchLabels": {"no": null}}}), "must contain at least one label"),
        (required(json!({"key": "a", "operator": "Foo"})), "Unsupported value: \"Foo\""),
        (required(json!({"key": "a", "operator": "In"})), "need at least one value"),
        (required(json!({"key": "a", "operator": "NotIn", "values": []})), "need at least one value"),
        (required(json!({"key": "a", "operator": "Exists", "values": ["b"]})), "take none"),
        (required(json!({"key": "a b", "operator": "Exists"})), "spec.namespaceSelector.matchExpressions[0].key"),
        (required(json!({"key": "a", "operator": "In", "values": ["x y"]})), "matchExpressions[0].values[0]"),
        (json!({"namespaceSelector": {"matchLabels": {"a": "x y/"}}}), "spec.namespaceSelector.matchLabels.a"),
        (json!({"excludeNamespaces": ["fine", "Not a name"]}), "spec.excludeNamespaces[1]"),
        (uid(json!({"min": 2, "max": 1})), "min must not be greater than max"),
        (uid(json!({"min": -1, "max": 1})), "must not be negative"),
        (uid(json!({"min": "uid", "max": 1})), "spec.users.runAsUser.ranges[0].min"),
        (uid(json!({"min": 1})), "spec.users.runAsUser.ranges[0].max: Required value"),
        (json!({"users": {"runAsUser": {"rule": "MustRunAs"}}}), "need at least one range"),
        (
            json!({"users": {"runAsUser": {"rule": "RunAsAny", "ranges": [{"min": 1, "max": 2}]}}}),
            "the other rules must have none",
        ),
        (json!({"users": {"runAsUser": {"rule": "Whatever"}}}), "Unsupported value: \"Whatever\""),
        (json!({"privileges": {"procMount": ["DefaultProcMount"]}}), "not DefaultProcMount"),
        (json!({"privileges": {"privileged": "no"}}), "spec.privileges.privileged"),
        (json!({"privileges": {"capabilities": {"allowedAdd": ["CAP_CHOWN"]}}}), "must be written without CAP_"),
        (json!({"privileges": {"seccomp": {"allowed": ["runtime/default"]}}}), "not runtime/default"),
        (json!({"volumes": {"allowed": ["config-map"]}}), "must be the field name of a volume type"),
        (json!({"volumes": {"hostPaths": [{"pathPrefix": "data"}]}}), "must be an absolute path without .."),
        (json!({"volumes": {"hostPaths": [{"pathPrefix": "/data/../etc"}]}}), "must be an absolute path without .."),
        (json!({"images": {"allowedRegistries": ["https://registry.example"]}}), "without a scheme"),
        (json!({"images": {"allowedRegistries": []}}), "spec.images.allowedRegistries"),
        (json!({"enforcement": {"pods": "deny"}}), "Unsupported value: \"deny\""),
        (parameter(json!({"name": "Uid", "type": "Integer"})), "spec.parameters[0].name"),
        (parameter(json!({"name": "uid", "type": "String", "minimum": 1})), "for parameters of type Integer"),
        (
            parameter(json!({"name": "uid", "type": "Integer", "minimum": 2, "maximum": 1})),
            "minimum must not be greater",
        ),
        (
            parameter(json!({"name": "uid", "type": "Integer", "minimum": 2, "default": 1})),
            "between minimum and maximum",
        ),
        (
            parameter(json!({"name": "uid", "type": "Integer", "pattern": "x"})),
            "pattern is only allowed for parameters of type String",
        ),
        (parameter(json!({"name": "uid", "type": "Integer", "sources": [{}]})), "exactly one of"),
        (parameter(json!({"name": "on", "type": "Boolean", "default": "yes"})), "in quotes"),
        (wave(json!({})), "exactly one of names, selector and percent"),
        (wave(json!({"percent": 5, "names": ["a"]})), "exactly one of names, selector and percent"),
        (wave(json!({"percent": 0})), "spec.rollout.waves[0].percent"),
        (wave(json!({"percent": 5, "soakSeconds": -1})), "spec.rollout.waves[0].soakSeconds"),
        (wave(json!({"percent": 5, "stage": "deny"})), "Unsupported value: \"deny\""),
        (wave(json!({"names": ["Not a name"]})), "spec.rollout.waves[0].names[0]"),
        (wave(json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})), "need at least one value"),
        (json!({"rollout": {"waves": []}}), "spec.rollout.waves"),
        (json!({"hots": {"pid": true}}), "field not declared in schema"),
    ];
    let mut wrong = Vec::new();
    for (index, (patch, expected)) in cases.iter().enumerate() {
        let mut profile = json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "wrong"},
            "spec": {"namespaceSelector": {"matchLabels": {"no": "such"}}},
        });
        merge(&mut profile["spec"], patch);
        match cluster.apply_profile(&profile).await {
            Ok(_) => wrong.push(format!("case {index} was accepted: {patch}")),
            Err(error) if error.to_string().contains(expected) => {}
            Err(error) => wrong.push(format!("case {index}, {patch}: expected {expected:?}, got {error}")),
        }
    }
    let long = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "a".repeat(51)},
        "spec": {"namespaceSelector": {"matchLabels": {"no": "such"}}},
    });
    match cluster.apply_profile(&long).await {
        Err(error) if error.to_string().contains("at most 50 characters") => {}
        other => wrong.push(format!("a long name: {other:?}")),
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// What the controller could not read, and an exception that would match images whatever their registry.
pub(crate) async fn what_cannot_be_read_is_rejected_by_the_crd(cluster: &mut Cluster) -> TestResult {
    let profile = |expires: &str| {
        json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "ends"},
            "spec": {"namespaceSelector": {"matchLabels": {"no": "such"}}, "exceptions": [
                {"namespaces": ["a"], "checks": ["privileged"], "reason": "x", "expires": expires},
            ]},
        })
    };
    let exception = |expires: &str, scope: &Json| {
        json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException", "metadata": {"name": "ends"},
            "spec": {"profile": "ends", "checks": ["privileged"], "reason": "x", "expires": expires, "scope": scope},
        })
    };
    let namespaced = "/apis/toolsecurity.dev/v1alpha1/namespaces/default/toolsecurityexceptions?dryRun=All";
    let at = "/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles?dryRun=All";
    let whole = json!({"kind": "Namespace"});
    let mut wrong = Vec::new();
    let mut ask = async |path: &str, object: Json, expected: Option<&str>| {
        let answer = cluster.ask_as(&cluster.admin, "POST", path, &object).await;
        let right = match (&answer, expected) {
            (Verdict::Admitted, None) => true,
            (Verdict::Refused(422, text), Some(expected)) => text.contains(expected),
            _ => false,
        };
        if !right {
            wrong.push(format!("{} {object}: {answer:?}", if expected.is_some() { "accepted" } else { "rejected" }));
        }
    };
    for expires in [
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+23:59",
        "2027-01-01T00:00:00.999999999999Z",
        "2016-12-31T23:59:60Z",
        "2027-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2027-01-01T00:00:00+99:99",
        "2027-01-01T00:00:00ZTx",
        "2027-01-01",
        "",
    ] {
        let expected = Some("must be a time such as 2027-01-31T00:00:00Z");
        ask(at, profile(expires), expected).await;
        ask(namespaced, exception(expires, &whole), expected).await;
    }
    for expires in [
        "2027-01-31T00:00:00Z",
        "9998-12-31T23:59:59.999999999-23:59",
        "2028-02-29t00:00:00z",
        "2000-02-29T00:00:00+14:00",
    ] {
        ask(at, profile(expires), None).await;
        ask(namespaced, exception(expires, &whole), None).await;
    }
    let of = |prefix: &str| exception("2027-01-31T00:00:00Z", &json!({"kind": "Namespace", "imagePrefix": prefix}));
    for prefix in ["sha256:", "sha512:", "blake3:ab@"] {
        ask(namespaced, of(prefix), Some("imagePrefix must not match image IDs")).await;
    }
    for prefix in ["registry.example/drivers/", "sha256:5000/", "nginx:"] {
        ask(namespaced, of(prefix), None).await;
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

pub(crate) async fn kubectl_explains_every_field(cluster: &mut Cluster) -> TestResult {
    let mut bare = Vec::new();
    for crd in palisade_api::crd::all() {
        let name = crd.metadata.name.unwrap_or_default();
        let found: Json = serde_json::from_str(&cluster.kubectl(&["get", "crd", &name, "-o", "json"])?)?;
        let schema = &found["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            undescribed(&schema["properties"][part], &format!("{name} {part}"), &mut bare);
        }
    }
    // What comes from meta/v1 has no bounds or texts of ours.
    ensure!(bare.is_empty(), "no description: {}", bare.join(", "));
    // kubectl explains what it knows; it learnt of the API before the CRDs were there.
    cluster.kubectl(&["api-resources"])?;
    let text = cluster.kubectl(&["explain", "tsp.spec.users.runAsUser"])?;
    ensure!(text.contains("MustRunAsNonRoot: not set to 0"), "{text}");
    Ok(())
}

fn undescribed(schema: &Json, path: &str, bare: &mut Vec<String>) {
    if schema.is_object() && schema["description"].as_str().unwrap_or_default().is_empty() {
        bare.push(path.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        undescribed(property, &format!("{path}.{name}"), bare);
    }
    for (name, property) in schema["items"]["properties"].as_object().into_iter().flatten() {
        undescribed(property, &format!("{path}[].{name}"), bare);
    }
}

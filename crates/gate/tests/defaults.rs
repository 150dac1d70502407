//! What custom checks default: what is refused of it, and that policy and webhook do the same.

use palisade_admission::requests::{Operation, Request};
use palisade_api::ToolSecurityProfile;
use palisade_cel::Minor;
use palisade_compiler::{Compiled, compile};
use palisade_gate::check;
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

/// A profile with one custom check, and whatever else is given.
fn profile(custom: &Json, spec: &Json) -> ToolSecurityProfile {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged"},
    });
    pod::merge(&mut profile["spec"], spec);
    let mut check = json!({"id": "own", "expression": "true", "message": "m"});
    pod::merge(&mut check, custom);
    // A null of a default is not one of a merge.
    check["default"] = custom["default"].clone();
    profile["spec"]["customChecks"] = json!([check]);
    serde_json::from_value(profile).unwrap()
}

/// The message for a default; empty if it is accepted.
fn refused(custom: &Json, spec: &Json) -> String {
    let found = match compile(&profile(custom, spec)) {
        Ok(compiled) => check(compiled).err().map(|rejected| rejected.diagnostics).unwrap_or_default(),
        Err(diagnostics) => diagnostics,
    };
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn default(target: &str, path: &str, value: &Json) -> Json {
    json!({"target": target, "default": {"path": path, "value": value}})
}

#[test]
fn invalid_default_is_rejected_with_its_field_path() {
    let long = "x".repeat(5000);
    let cases = [
        ("Volumes", "name", json!("x"), "default: a check of volumes or objects cannot have a default"),
        ("Pod", "spec..x", json!(1), "default.path: \"spec..x\" is not a field"),
        ("Pod", "nodeSelector.in", json!("x"), "default.path: \"nodeSelector.in\" contains a reserved word"),
        ("Pod", "metadata.labels", json!({"a": "b"}), "default.path: unknown field: the spec of a pod has no metadata"),
        (
            "Pod",
            "securityContext.runAsUsr",
            json!(1),
            "default.path: unknown field: the spec of a pod has no securityContext.runAsUsr",
        ),
        (
            "Containers",
            "securityContext.procMont",
            json!("x"),
            "default.path: unknown field: a container has no securityContext.procMont",
        ),
        (
            "Containers",
            "securityContext.seccompProfile",
            json!({"type": "RuntimeDefault", "kind": 1}),
            "default.value: unknown field: a container has no securityContext.seccompProfile.kind",
        ),
        ("Containers", "volumeMounts.name", json!("x"), "default.path: volumeMounts is a list"),
        ("Pod", "hostNetwork.x", json!("x"), "default.path: hostNetwork is not an object"),
        ("Containers", "image", json!("x"), "default.path: image is never unset: it is \"palisade.invalid/main:1\""),
        ("Pod", "dnsPolicy", json!("None"), "default.path: dnsPolicy is never unset: it is \"ClusterFirst\""),
        ("Pod", "serviceAccountName", json!("x"), "default.path: serviceAccountName is never unset"),
        (
            "Pod",
            "automountServiceAccountToken",
            json!(false),
            "default.path: automountServiceAccountToken cannot have a default",
        ),
        (
            "Pod",
            "initContainers",
            json!([{"name": "x", "image": "x"}]),
            "default.path: initContainers cannot have a default",
        ),
        (
            "Containers",
            "livenessProbe",
            json!({"exec": {"command": ["x"]}}),
            "default.path: livenessProbe cannot have a default",
        ),
        (
            "Containers",
            "securityContext.procMount",
            json!(1),
            "default.value: securityContext.procMount cannot be 1: json: cannot unmarshal number",
        ),
        ("Pod", "securityContext.runAsUser", json!("1"), "default.value: securityContext.runAsUser cannot be \"1\""),
        ("Pod", "hostNetwork", json!(false), "default.value: an unset hostNetwork also means false"),
        ("Pod", "tolerations", json!([]), "default.value: [] has the same meaning as an unset field"),
        ("Pod", "hostname", json!(null), "default.value: null has the same meaning"),
        ("Pod", "hostname", json!(long), "default.value: longer than 4096 bytes"),
        ("Containers", "ports", json!([{"containerPort": 70000}]), "default.value: every pod with it is rejected: "),
    ];
    for (target, path, value, expected) in cases {
        let found = refused(&default(target, path, &value), &json!({}));
        let expected = format!("spec.customChecks[0].{expected}");
        assert!(found.starts_with(&expected), "{path}\nexpected: {expected}\nfound: {found}");
    }
}

#[test]
fn field_defaulted_by_two_checks_is_rejected() {
    let alone = default("Pod", "securityContext.supplementalGroupsPolicy", &json!("Strict"));
    assert_eq!(refused(&alone, &json!({})), "");
    let custom =
        default("Pod", "securityContext.seccompProfile", &json!({"type": "Localhost", "localhostProfile": "x"}));
    let found = refused(&custom, &json!({"baseline": "Restricted", "mutation": {"defaults": "Secure"}}));
    let expected =
        "spec.customChecks[0].default.path: securityContext.seccompProfile is defaulted for check seccompProfile";
    assert!(found.starts_with(expected), "{found}");
    let whole = default("Containers", "securityContext", &json!({"privileged": false}));
    let found = refused(&whole, &json!({"mutation": {"additionalDefaults": ["ReadOnlyRootFilesystem"]}}));
    assert!(
        found.contains("securityContext.readOnlyRootFilesystem is defaulted for check readOnlyRootFilesystem"),
        "{found}"
    );
    // What is defaulted in the pod is not what is defaulted in containers.
    let of_container = default("Containers", "securityContext.supplementalGroupsPolicy", &json!("Strict"));
    let found = refused(&of_container, &json!({"mutation": {"additionalDefaults": ["SupplementalGroupsPolicy"]}}));
    assert!(found.contains("unknown field"), "{found}");
}

#[test]
fn default_must_satisfy_its_check_and_keep_pods_compliant() {
    let mut custom = default("Containers", "securityContext.procMount", &json!("Default"));
    custom["expression"] = json!("container.?securityContext.?procMount.orValue('') == 'Unmasked'");
    custom["message"] = json!("procMount must be Unmasked");
    for engine in ["Auto", "Webhook"] {
        let found = refused(&custom, &json!({"mutation": {"engine": engine}}));
        let expected = "spec.customChecks[0].default: the check denies a pod that has only its default: \
                        container \"main\": procMount must be Unmasked";
        assert!(found.starts_with(expected), "{engine}: {found}");
    }
    custom["expression"] = json!("container.?securityContext.?procMount.orValue('') == 'Default'");
    assert_eq!(refused(&custom, &json!({})), "");
    // A pod that complies with the rest of the profile must go on to.
    let network = default("Pod", "hostNetwork", &json!(true));
    for engine in ["Auto", "Webhook"] {
        let found = refused(&network, &json!({"baseline": "Baseline", "mutation": {"engine": engine}}));
        assert!(
            found.starts_with("spec.customChecks[0].default: it complied before it was mutated"),
            "{engine}: {found}"
        );
        assert!(found.contains("[hostNamespaces]"), "{found}");
    }
    // Nor may what complies become invalid.
    let escalation = default("Containers", "securityContext.allowPrivilegeEscalation", &json!(false));
    let found = refused(&escalation, &json!({}));
    assert!(found.contains("customChecks[0].default: it complied, but the mutation makes it invalid: "), "{found}");
    // A mistake is one whoever is to default.
    let wrong = default("Pod", "hostNetwrok", &json!(true));
    assert!(refused(&wrong, &json!({"mutation": {"engine": "Off"}})).contains("default.path: unknown field"));
}

/// What becomes of a request where a profile is in force.
fn admitted(compiled: &Compiled, exceptions: &[&str], object: &Json, old: Option<&Json>) -> Json {
    let mut cluster = palisade_gate::cluster(Minor::V1_36);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}});
    let crds = palisade_api::crd::all().into_iter().map(|crd| json!(crd));
    let mut params = compiled.probes.params.clone().unwrap_or_default();
    params.exceptions = exceptions.iter().map(|id| ((*id).to_owned(), "2999-01-01T00:00:00Z".to_owned())).collect();
    let params = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityParams", "spec": params,
        "metadata": {"name": "test", "namespace": "n"},
    });
    let policy = compiled.bundle.mutation.iter().flat_map(|pair| pair.objects("v1"));
    for object in [namespace].into_iter().chain(crds).chain([params]).chain(policy) {
        cluster.apply(object).unwrap();
    }
    if compiled.bundle.mutation.is_none() {
        palisade_gate::register(&mut cluster, compiled.mutation.clone().unwrap());
    }
    let request: Request = match old {
        None => cluster.request(Operation::Create, "", object, None),
        Some(_) => cluster.request(Operation::Update, "ephemeralcontainers", object, old),
    }
    .unwrap();
    let review = cluster.admit(&request);
    assert!(review.outcome.is_allowed(), "{:?}", review.outcome);
    review.object.unwrap()["spec"].clone()
}

#[test]
fn policy_and_webhook_mutate_the_same() {
    let own = |id: &str, target: &str, path: &str, value: Json| json!({"id": id, "target": target, "expression": "true", "message": "m", "default": {"path": path, "value": value}});
    let customs = json!([
        own("proc", "Containers", "securityContext.procMount", json!("Default")),
        own("limits", "Containers", "resources.limits", json!({"memory": "1Gi", "cpu": 0.5})),
        own(
            "spread",
            "Pod",
            "topologySpreadConstraints",
            json!([{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
            }])
        ),
        own("fs", "Pod", "securityContext.fsGroupChangePolicy", json!("OnRootMismatch")),
    ]);
    let compiled = |engine: &str| {
        let exception =
            json!([{"namespaces": ["x"], "checks": ["fs"], "reason": "r", "expires": "2999-01-01T00:00:00Z"}]);
        let mut profile = profile(&json!({}), &json!({"mutation": {"engine": engine}, "exceptions": exception}));
        profile.spec.custom_checks = serde_json::from_value(customs.clone()).unwrap();
        let compiled = compile(&profile).unwrap();
        check(compiled.clone()).unwrap();
        compiled
    };
    let [policy, webhook] = ["Auto", "Webhook"].map(compiled);
    let both = |exceptions: &[&str], pod: &Json, old: Option<&Json>| {
        let [one, other] = [&policy, &webhook].map(|compiled| admitted(compiled, exceptions, pod, old));
        assert_eq!(one, other);
        one
    };
    let mut pod = pod::minimal("p");
    pod["metadata"]["namespace"] = json!("n");
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "1Mi"}});
    pod["spec"]["initContainers"] = json!([{"name": "i", "image": "i", "securityContext": {"privileged": true}}]);
    let mutated = both(&[], &pod, None);
    assert_eq!(mutated["containers"][0]["resources"]["limits"], json!({"memory": "1Gi", "cpu": "500m"}));
    assert_eq!(mutated["containers"][0]["securityContext"], json!({"procMount": "Default"}));
    assert_eq!(mutated["initContainers"][0]["securityContext"], json!({"procMount": "Default", "privileged": true}));
    assert_eq!(mutated["securityContext"], json!({"fsGroupChangePolicy": "OnRootMismatch"}));
    assert_eq!(mutated["topologySpreadConstraints"][0]["topologyKey"], "zone");
    // What is set stays.
    pod::set(&mut pod, &["securityContext", "fsGroupChangePolicy"], json!("Always"));
    assert_eq!(both(&[], &pod, None)["securityContext"], json!({"fsGroupChangePolicy": "Always"}));
    // Where the check is not made.
    pod["spec"].as_object_mut().unwrap().remove("securityContext");
    assert_eq!(both(&["fs"], &pod, None)["securityContext"], json!({}));
    // New ephemeral containers have what they can have.
    let old = pod.clone();
    pod["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "e"}]);
    let mutated = both(&[], &pod, Some(&old));
    assert_eq!(mutated["ephemeralContainers"][0]["securityContext"], json!({"procMount": "Default"}));
    assert_eq!(mutated["ephemeralContainers"][0]["resources"], json!({}));
    assert!(mutated["containers"][0]["securityContext"].is_null(), "{mutated}");
}

#[test]
fn custom_checks_example_passes_the_gate() {
    let profile = include_str!("../../../examples/custom-checks/profile.yaml");
    let profile: ToolSecurityProfile = serde_saphyr::from_str(profile).unwrap();
    let compiled = compile(&profile).unwrap();
    assert_eq!(compiled.mutation.as_ref().unwrap().defaults.len(), 2);
    check(compiled).unwrap();
}

//! The fast path, as it is written.

use palisade_api::{ToolSecurityProfile, names::Shape};
use serde_json::{Value as Json, json};

fn profile(spec: &Json) -> ToolSecurityProfile {
    let mut whole = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "x"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged",
            "enforcement": {"workloads": "Deny"}},
    });
    palisade_kube_json::pod::merge(&mut whole["spec"], spec);
    serde_json::from_value(whole).unwrap()
}

fn condition(spec: &Json, shape: Shape) -> Option<String> {
    let compiled = palisade_compiler::compile(&profile(spec)).unwrap_or_else(|error| panic!("{error:?}"));
    let policy = compiled.bundle.pair(shape).unwrap().policy.spec.clone().unwrap();
    let conditions = policy.match_conditions?;
    assert_eq!(conditions.len(), 1);
    assert_eq!(conditions[0].name, palisade_compiler::MAY_VIOLATE);
    Some(conditions[0].expression.clone())
}

#[test]
fn match_condition_guards_each_field_and_reads_it_once() {
    let spec = json!({
        "parameters": [{"name": "uid", "type": "Integer", "default": 7}],
        "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
        "privileges": {"privileged": false, "allowPrivilegeEscalation": false},
        "host": {"network": false, "ports": []},
    });
    let expected = "// skips requests that cannot violate any check: docs/adr/0033-skip-complying-requests.md
!(
  (request.operation == 'UPDATE' && object.spec == oldObject.spec)
  || (
    request.namespace == 'palisade-probe'
      ? object.metadata.?labels[?'toolsecurity.dev/profile'].orValue('') != 'x'
    : request.userInfo.username.startsWith('system:node:')
      && 'system:nodes' in request.userInfo.?groups.orValue([])
      && 'kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({})
  )
  || (
    params != null
    && params.spec.problem == ''
    && 'uid' in params.spec.integers
    && object.spec.containers.size() <= 42
    && (!has(object.spec.hostNetwork) || !object.spec.hostNetwork)
    && (
      !has(object.spec.initContainers)
      || object.spec.initContainers.size() <= 42
    )
    && (
      !has(object.spec.ephemeralContainers)
      || object.spec.ephemeralContainers.size() <= 42
    )
    && (
      !has(object.spec.securityContext)
      || !has(object.spec.securityContext.runAsUser)
      || object.spec.securityContext.runAsUser != 0
      || params.spec.integers['uid'] == 0
    )
    && [
      object.spec.containers,
      ?object.spec.?initContainers,
      ?object.spec.?ephemeralContainers
    ].all(list,
      list.size() <= 32
      && list.all(c,
        has(c.securityContext)
        && has(c.securityContext.allowPrivilegeEscalation)
        && !c.securityContext.allowPrivilegeEscalation
        && (!has(c.securityContext.privileged) || !c.securityContext.privileged)
        && (
          has(c.securityContext.runAsUser)
            ? c.securityContext.runAsUser == params.spec.integers['uid']
          : has(object.spec.securityContext)
            && has(object.spec.securityContext.runAsUser)
            && object.spec.securityContext.runAsUser == params.spec.integers['uid']
        )
        && (
          !has(c.ports)
          || (
            c.ports.size() <= 32
            && c.ports.all(p, !has(p.hostPort) || p.hostPort == 0)
          )
        )
      )
    )
  )
)";
    let found = condition(&spec, Shape::Pods).unwrap();
    assert_eq!(found, expected, "\n{found}");
}

/// Snapshots of conditions that the properties of the gate have proven: who changes one proves it again
/// (`cargo xtask properties --only early`).
#[test]
fn conditions_of_whole_profiles_change_only_on_purpose() {
    let toolforge = include_str!("../../../examples/toolforge/profile.yaml");
    let mut toolforge: Json = serde_saphyr::from_str(toolforge).unwrap();
    let parameters = json!([
        {"name": "uid", "type": "Integer", "default": "7"},
        {"name": "strict", "type": "Boolean", "default": "true"},
        {"name": "tool", "type": "String", "default": "tool"},
        {"name": "list", "type": "StringList", "default": "a,b"},
    ]);
    // Together they would be beyond the budget.
    let volumes = json!({
        "parameters": parameters,
        "volumes": {
            "allowed": ["hostPath", "csi"], "csiDrivers": ["a", "$tool"], "mountPropagation": ["None"],
            "hostPaths": [{"pathPrefix": "/data", "readOnly": true}, {"pathPrefix": "/x/$tool"}],
        },
    });
    let others = json!({
        "baseline": "Restricted",
        "parameters": parameters,
        "privileges": {
            "readOnlyRootFilesystem": "$strict", "capabilities": {"requiredDrop": ["ALL", "$tool"]},
            "procMount": ["Default", "$tool"], "unmaskedInUserNamespaces": "$strict", "windowsHostProcess": "$strict",
            "appArmor": {"allowed": ["RuntimeDefault", "$tool"], "localhostProfiles": ["a", "$list"]},
            "seLinux": {"types": ["a", "$tool"], "users": ["b"], "levels": ["*"]},
            "sysctls": {"allowed": ["net.*", "$tool"]},
            "seccomp": {"annotations": "$strict"}, "shareProcessNamespace": "$strict",
        },
        "users": {
            "runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}, {"min": 1, "max": 5}]},
            "relaxForUserNamespaces": "$strict", "supplementalGroupsPolicy": "Strict",
        },
        "host": {"probeHosts": "$strict", "aliases": "$strict", "ports": [{"min": 80, "max": 90}]},
        "scheduling": {
            "runtimeClasses": ["", "$tool", "$list"], "priorityClasses": ["", "$tool"], "nodeName": "$strict",
            "schedulers": ["default-scheduler", "$list"], "nodeSelector": [{"key": "pool", "values": ["$tool", "$list"]}],
        },
        "identity": {
            "serviceAccounts": ["default", "$list"], "automountServiceAccountToken": "$strict",
            "serviceAccountTokens": {"audiences": ["", "$tool"], "maxExpirationSeconds": 3600},
        },
        "images": {"allowedRegistries": ["$list", "registry.example/$tool"]},
        "exemptions": {"users": ["a"], "groups": ["b"], "runtimeClasses": ["c"]},
    });
    for (name, spec) in [
        ("toolforge", toolforge["spec"].take()),
        ("restricted", json!({"baseline": "Restricted"})),
        ("baseline", json!({"baseline": "Baseline"})),
        ("volumes", volumes),
        ("others", others),
    ] {
        insta::assert_snapshot!(name, condition(&spec, Shape::Pods).unwrap());
    }
}

/// "There is something to default": where it is false, the native mutation is skipped.
#[test]
fn condition_of_the_native_mutation_changes_only_on_purpose() {
    let toolforge = include_str!("../../../examples/toolforge/profile.yaml");
    let mut toolforge: Json = serde_saphyr::from_str(toolforge).unwrap();
    palisade_kube_json::pod::merge(&mut toolforge["spec"], &json!({"mutation": {"defaults": "Secure"}}));
    let own = json!({
        "baseline": "Restricted",
        "mutation": {"defaults": "Secure", "additionalDefaults": ["HostUsers"]},
        "images": {"redirect": {"target": "mirror.example"}},
        "exemptions": {"users": ["a"], "runtimeClasses": ["c"]},
    });
    for (name, spec) in [("mutation_toolforge", toolforge["spec"].take()), ("mutation_redirect", own)] {
        let compiled = palisade_compiler::compile(&profile(&spec)).unwrap_or_else(|error| panic!("{error:?}"));
        let conditions = compiled.bundle.mutation.unwrap().policy.spec.unwrap().match_conditions.unwrap();
        let written: Vec<_> = conditions.iter().map(|each| format!("# {}\n{}", each.name, each.expression)).collect();
        insta::assert_snapshot!(name, written.join("\n\n"));
    }
}

/// A pod template is read from its workload once.
#[test]
fn lists_within_lists_are_as_long_as_the_budget_allows() {
    let ports = "c.ports.size() <= ";
    let small = condition(&json!({"host": {"ports": []}}), Shape::Pods).unwrap();
    assert!(small.contains(&format!("{ports}32")), "{small}");
    // Whether a volume is mounted read-only takes a loop over its pod's containers for each volume.
    let volumes = json!({"allowed": ["hostPath"], "hostPaths": [{"pathPrefix": "/data", "readOnly": true}]});
    let large = condition(&json!({"host": {"ports": []}, "volumes": volumes}), Shape::Pods).unwrap();
    let most: u64 = large.split(ports).nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!((16..32).contains(&most), "{large}");
}

#[test]
fn pod_template_is_read_from_its_workload_once() {
    let found = condition(&json!({"host": {"network": false}}), Shape::Workloads).unwrap();
    let bound = "[request.kind.kind == 'CronJob'\n    ? dyn(object).spec.jobTemplate.spec.template";
    assert!(found.contains(bound), "{found}");
    let asked = ".exists(template,\n    has(template.spec)\n    && (!has(template.spec.hostNetwork) || !template.spec.hostNetwork)\n  )";
    assert!(found.contains(asked), "{found}");
}

/// A check that cannot be said so that it never fails leaves the profile without a fast path, and nothing else.
#[test]
fn check_without_a_safe_test_disables_the_fast_path() {
    // Of the variables of policies, a check may name any; these are made of it.
    let spec =
        json!({"customChecks": [{"id": "own", "expression": "variables.violations.size() == 0", "message": "x"}]});
    assert_eq!(condition(&spec, Shape::Pods), None);
}

/// What is not understood stands in the condition as it was written.
#[test]
fn check_that_calls_an_unknown_function_is_repeated_in_the_condition() {
    let own = "!has(object.spec.nodeName) || object.spec.nodeName.split(',').size() == 2";
    let spec = json!({"customChecks": [{"id": "own", "expression": own, "message": "x"}]});
    let found = condition(&spec, Shape::Pods).unwrap();
    assert!(found.contains("object.spec.nodeName.split(',').size() == 2"), "{found}");
}

/// Match conditions do not see the namespace: a check that reads it is judged in full, unless something else is
/// sufficient.
#[test]
fn check_that_reads_the_namespace_has_no_match_condition() {
    let of = |expression: &str| {
        let custom = json!({"id": "own", "expression": expression, "message": "x"});
        Shape::OF_PODS.map(|shape| condition(&json!({"host": {"network": false}, "customChecks": [custom]}), shape))
    };
    let reads = "namespaceObject.metadata.?labels[?'tier'].orValue('') == 'lab'";
    assert_eq!(of(reads), [None, None]);
    assert_eq!(of(&format!("[{reads}].all(x, x)")), [None, None]);
    for found in of(&format!("{reads} || !has(variables.spec.nodeName)")) {
        let found = found.unwrap();
        assert!(found.contains(".spec.nodeName") && !found.contains("namespaceObject"), "{found}");
    }
}

/// The derivation is bounded in steps and depth, and needs no more than the stack of a thread.
#[test]
fn derivation_ends_whatever_an_expression_says() {
    let nested = |levels: usize, around: &dyn Fn(&str) -> String| {
        (0..levels).fold("object.spec.?hostNetwork.orValue(false)".to_owned(), |inner, _| around(&inner))
    };
    let many = |terms: usize, between: &str, term: &dyn Fn(usize) -> String| {
        (0..terms).map(term).collect::<Vec<_>>().join(between)
    };
    let expressions = [
        "variables.volumes.all(variables, variables.containers.all(c, true))".to_owned(),
        "variables.containers.all(i, c, c.name != '')".to_owned(),
        "variables.containers.exists(object, c, object > 0)".to_owned(),
        nested(60, &|inner| format!("({inner} ? {inner2} : true)", inner2 = "has(object.spec.hostPID)")),
        nested(60, &|inner| format!("(({inner}) == has(object.spec.hostPID))")),
        nested(60, &|inner| format!("!({inner})")),
        nested(60, &|inner| format!("variables.containers.all(c, {inner})")),
        nested(60, &|inner| format!("variables.volumes.all(v, v.name == 'a' || {inner})")),
        nested(30, &|inner| format!("[{inner}].all(x, x)")),
        many(200, " + ", &|n| format!("object.spec.?f{n}.orValue('')")) + " == 'x'",
        many(200, " && ", &|n| format!("(has(object.spec.f{n}) ? has(object.spec.g{n}) : has(object.spec.h{n}))")),
        format!("[{}].all(x, x == '')", many(200, ", ", &|n| format!("object.spec.?f{n}.orValue('')"))),
    ];
    for expression in expressions {
        let spec = json!({"customChecks": [{"id": "own", "expression": expression, "message": "m"}]});
        let profile = profile(&spec);
        let compiled = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
            // What is too large for a policy is rejected.
            palisade_compiler::compile(&profile).map(|compiled| compiled.bundle.pods.has_fast_path())
        });
        let found = compiled.unwrap().join().unwrap();
        println!("{found:?}: {expression:.80}");
    }
}

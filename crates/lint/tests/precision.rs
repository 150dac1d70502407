//! What is reported, how bad it is, and what is not: tables of policies for the rules that would otherwise say too much.

use std::sync::Arc;

use palisade_cel::Minor;
use palisade_lint::{Finding, Options, lint};
use palisade_manifest::{Severity, Source, objects};

pub(crate) fn findings(text: &str, rule: &str, minor: Minor) -> Vec<Finding> {
    let source = Arc::new(Source::new("f.yaml", text.to_owned()));
    let objects = objects(&source).unwrap();
    let report = lint(&objects, &Options { minor, ..Options::default() });
    report.findings.into_iter().filter(|finding| finding.rule.id == rule).collect()
}

/// A policy in force, of rules and the rest of its `spec` in YAML, for all namespaces of tools.
pub(crate) fn policy(rules: &[(&str, &str, &str, &str)], rest: &str) -> String {
    policy_in("namespaceSelector: {matchLabels: {tenancy: tool}}", rules, rest)
}

fn policy_in(selector: &str, rules: &[(&str, &str, &str, &str)], rest: &str) -> String {
    let rule = |(groups, versions, operations, resources): &(&str, &str, &str, &str)| {
        format!(
            "    - {{apiGroups: [{groups}], apiVersions: [{versions}], operations: [{operations}], resources: [{resources}]}}\n"
        )
    };
    let rules: String = rules.iter().map(rule).collect();
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: example}}\nspec:\n  \
         matchConstraints:\n    {selector}\n    resourceRules:\n{rules}{rest}\n---\n\
         apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: example}}\n\
         spec: {{policyName: example, validationActions: [Deny]}}\n"
    )
}

/// Validations, each in quotes.
pub(crate) fn validations(expressions: &[&str]) -> String {
    let lines: Vec<_> = expressions.iter().map(|one| format!("  - expression: \"{one}\"")).collect();
    format!("  validations:\n{}", lines.join("\n"))
}

pub(crate) fn reported(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|one| format!("{:?} {}: {}", one.severity, one.path, one.message)).collect()
}

#[test]
fn repeated_error_is_reported_as_one_finding() {
    let rules = [
        ("apps", "v1", "CREATE", "deployments, daemonsets, statefulsets, replicasets"),
        ("batch", "v1", "CREATE", "jobs, cronjobs"),
        ("''", "v1", "CREATE", "pods, replicationcontrollers"),
    ];
    // Twice in one expression, and for each kind but one.
    let text = policy(&rules, &validations(&["object.spec.schedule != '' || object.spec.schedule == 'x'"]));
    let found = findings(&text, "type-check", Minor::V1_36);
    assert_eq!(
        reported(&found),
        ["Warning spec.validations[0].expression: undefined field 'schedule', here and at 1 more place (v1 Pod; \
             v1 ReplicationController; apps/v1 DaemonSet; apps/v1 Deployment; and 3 more)"]
    );
    assert_eq!(found[0].kinds.len(), 7);
    // What may be absent in each of them.
    let text =
        policy(&rules[..1], &validations(&["object.metadata.labels.size() > 0 && object.metadata.labels.size() < 9"]));
    let found = findings(&text, "unguarded-optional-field", Minor::V1_36);
    assert_eq!(
        reported(&found),
        ["Warning spec.validations[0].expression: object.metadata.labels is optional: reading it fails if it is not \
             set (all 4 matched kinds)"]
    );
}

#[test]
fn unguarded_parameter_field_is_reported_once() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: limits.example.org}\n\
        spec:\n  group: example.org\n  names: {kind: Limit, plural: limits, singular: limit, listKind: LimitList}\n  \
        scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      \
        openAPIV3Schema:\n        type: object\n        properties:\n          most: {type: integer}\n---\n";
    let rules = [("apps", "v1", "CREATE", "deployments, daemonsets, statefulsets, replicasets")];
    let rest =
        format!("  paramKind: {{apiVersion: example.org/v1, kind: Limit}}\n{}", validations(&["params.most > 1"]));
    let found = findings(&(crd.to_owned() + &policy(&rules, &rest)), "unguarded-optional-field", Minor::V1_36);
    assert_eq!(
        reported(&found),
        ["Warning spec.validations[0].expression: params.most is optional: reading it fails if it is not set"]
    );
}

/// How bad a mistake of types is: an error only if every request fails because of it.
#[test]
fn type_error_has_severity_error_only_if_every_request_fails() {
    let pods = ("''", "v1", "CREATE", "pods");
    let deployments = ("apps", "v1", "CREATE", "deployments");
    let error = Some(Severity::Error);
    let warning = Some(Severity::Warning);
    for (rules, rest, expected) in [
        (&[pods][..], validations(&["object.spec.contianers.size() < 5"]), error),
        (&[pods], validations(&["has(object.spec.hostname) && object.spec.contianers.size() < 5"]), error),
        (&[pods], validations(&["has(object.spec.contianers)"]), warning),
        (&[pods], validations(&["has(object.spec.hostname) || object.spec.contianers.size() < 5"]), warning),
        (&[pods], validations(&["has(object.spec.hostname) ? object.spec.contianers.size() < 5 : true"]), warning),
        (&[pods], validations(&["object.spec.?volumes.orValue([]).all(v, v.nmae != '')"]), warning),
        // In a variable that is always read, or not.
        (
            &[pods],
            format!(
                "  variables:\n  - {{name: all, expression: object.spec.contianers}}\n{}",
                validations(&["variables.all.size() < 5"])
            ),
            error,
        ),
        (
            &[pods],
            format!(
                "  variables:\n  - {{name: all, expression: object.spec.contianers}}\n{}",
                validations(&["has(object.spec.hostname) || variables.all.size() < 5"])
            ),
            None,
        ),
        (
            &[pods],
            format!(
                "  matchConditions:\n  - {{name: a, expression: \"object.spec.hostnmae == 'a'\"}}\n{}",
                validations(&["object.spec.containers.size() < 5"])
            ),
            error,
        ),
        // Another kind that is matched has it.
        (&[pods, deployments], validations(&["object.spec.replicas < 5"]), warning),
        (&[pods, deployments], validations(&["object.spec.nope < 5"]), error),
        // The object of a scale has other fields; what a wildcard matches is not known.
        (
            &[deployments, ("apps", "v1", "UPDATE", "deployments/scale")],
            validations(&["object.spec.nope < 5"]),
            warning,
        ),
        (&[deployments, ("apps", "v1", "CREATE", "'*'")], validations(&["object.spec.nope < 5"]), warning),
        (
            &[("''", "v1", "CREATE, UPDATE", "pods, pods/ephemeralcontainers")],
            validations(&["object.spec.nope < 5"]),
            error,
        ),
    ] {
        let found = findings(&policy(rules, &rest), "type-check", Minor::V1_36);
        assert_eq!(found.iter().map(|one| one.severity).max(), expected, "{rest}: {:#?}", reported(&found));
        assert!(found.len() <= 1, "{rest}: {:#?}", reported(&found));
    }
}

#[test]
fn unknown_custom_resource_field_is_an_error_unless_preserved() {
    for (keeps, expected) in
        [("", Severity::Error), ("x-kubernetes-preserve-unknown-fields: true, ", Severity::Warning)]
    {
        let crd = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: tests.example.org}}\n\
             spec:\n  group: example.org\n  names: {{kind: Test, plural: tests, singular: test, listKind: TestList}}\n  \
             scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      \
             openAPIV3Schema: {{type: object, properties: {{spec: {{{keeps}type: object, properties: {{a: {{type: string}}}}}}}}}}\n---\n"
        );
        let text = policy(&[("example.org", "v1", "CREATE", "tests")], &validations(&["object.spec.b == 'x'"]));
        let found = findings(&(crd + &text), "type-check", Minor::V1_36);
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [expected], "{:#?}", reported(&found));
    }
}

#[test]
fn kube_system_match_is_reported_only_for_control_plane_writes() {
    for (group, resource, operation, expected) in [
        ("''", "pods", "CREATE", true),
        ("''", "pods", "CONNECT", false),
        ("''", "pods/status", "UPDATE", true),
        ("''", "pods/exec", "CONNECT", false),
        ("apps", "replicasets", "CREATE", true),
        ("apps", "deployments", "UPDATE", false),
        ("apps", "deployments/status", "UPDATE", true),
        // Nobody but people and addons creates them.
        ("apps", "deployments", "CREATE", false),
        ("apps", "daemonsets", "UPDATE", false),
        ("networking.k8s.io", "ingresses", "CREATE", false),
        ("''", "limitranges", "CREATE", false),
        ("apps", "'*'", "CREATE", true),
        // In no namespace.
        ("''", "namespaces", "CREATE", false),
        ("''", "persistentvolumes", "UPDATE", false),
        ("storage.k8s.io", "csinodes", "CREATE", false),
        ("gateway.networking.k8s.io", "gatewayclasses", "CREATE", false),
    ] {
        let rules = [(group, "v1", operation, resource)];
        let text = policy_in("matchPolicy: Equivalent", &rules, &validations(&["object.metadata.name != 'a'"]));
        let found = findings(&text, "matches-kube-system", Minor::V1_36);
        assert_eq!(!found.is_empty(), expected, "{operation} {resource}: {:#?}", reported(&found));
    }
}

#[test]
fn kube_system_match_depends_on_the_minor() {
    let claims = ("resource.k8s.io", "resourceclaims");
    let binding = ("resource.k8s.io", "resourceclaims/binding");
    let requests = ("certificates.k8s.io", "podcertificaterequests");
    for ((group, resource), operation, since) in [
        (claims, "UPDATE", Minor::V1_34),
        (binding, "UPDATE", Minor::V1_36),
        (requests, "CREATE", Minor::V1_37),
        (requests, "DELETE", Minor::V1_37),
    ] {
        let rules = [(group, "v1", operation, resource)];
        let text = policy_in("matchPolicy: Equivalent", &rules, &validations(&["request.name != 'a'"]));
        for minor in Minor::ALL {
            let found = findings(&text, "matches-kube-system", minor);
            assert_eq!(!found.is_empty(), minor >= since, "{minor} {operation} {resource}: {:#?}", reported(&found));
        }
    }
}

#[test]
fn kube_system_match_is_not_reported_if_all_requests_there_are_admitted() {
    let rules = [("''", "v1", "CREATE, UPDATE", "pods, serviceaccounts")];
    let condition = |condition: &str| {
        format!(
            "  matchConditions:\n  - {{name: a, expression: \"{condition}\"}}\n{}",
            validations(&["object.spec.x > 1"])
        )
    };
    let params = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n".to_owned();
    for (rest, expected) in [
        (validations(&["true"]), false),
        (params + &validations(&["true"]), true),
        (validations(&["object.metadata.namespace != 'default'"]), false),
        (validations(&["object.metadata.namespace == 'default'"]), true),
        (validations(&["!(object.metadata.namespace in ['a', 'b']) || object.spec.x > 1"]), false),
        (condition("object.metadata.namespace == 'default'"), false),
        (condition("object.metadata.namespace != 'default'"), true),
        (condition("!['a', 'b'].exists(n, n == object.metadata.namespace)"), true),
        (condition("has(object.metadata.namespace) && object.metadata.namespace == 'a'"), false),
        (condition("request.operation == 'UPDATE'"), true),
        (condition("object != null"), true),
    ] {
        let text = policy_in("matchPolicy: Equivalent", &rules, &rest);
        let found = findings(&text, "matches-kube-system", Minor::V1_36);
        assert_eq!(!found.is_empty(), expected, "{rest}: {:#?}", reported(&found));
    }
}

#[test]
fn missing_subresource_is_reported_only_for_fields_it_changes() {
    let pods = ("''", "v1", "CREATE, UPDATE", "pods");
    let deployments = ("apps", "v1", "CREATE, UPDATE", "deployments");
    for (rule, expression, expected) in [
        (pods, "object.spec.containers.all(c, c.image != '')", "pods/ephemeralcontainers"),
        (
            pods,
            "object.spec.containers.all(c, !has(c.securityContext) || !c.securityContext.privileged)",
            "pods/ephemeralcontainers",
        ),
        (pods, "object.spec.containers.all(c, c.?env.orValue([]).all(e, e.name != 'X'))", "pods/ephemeralcontainers"),
        // Ephemeral containers have none of these, or are others.
        (pods, "object.spec.containers.all(c, has(c.livenessProbe))", ""),
        (pods, "object.spec.containers.all(c, c.?ports.orValue([]).all(p, !has(p.hostPort)))", ""),
        (pods, "object.spec.containers.all(c, !has(c.lifecycle))", ""),
        (pods, "size(object.spec.containers) < 5", ""),
        (pods, "!has(object.spec.securityContext) || !has(object.spec.securityContext.runAsUser)", ""),
        (pods, "has(object.metadata.labels)", ""),
        (
            pods,
            "object.spec.containers.all(c, c.?resources.?limits[?'memory'].orValue(quantity('9Gi')) != quantity('9Gi'))",
            "pods/resize",
        ),
        (pods, "object.spec.containers.all(c, !c.?resources.?limits.?cpu.hasValue())", "pods/resize"),
        (pods, "object.spec.containers.all(c, c.?resources.?limits[?'ephemeral-storage'].hasValue())", ""),
        // A resize removes nothing.
        (pods, "object.spec.containers.all(c, c.?resources.?limits.?cpu.hasValue())", ""),
        (pods, "object.spec.containers.exists(c, has(c.resources) && has(c.resources.requests))", ""),
        (pods, "object.spec.containers.all(c, c.?resources.?limits.?cpu.orValue('') != '9')", "pods/resize"),
        // Nor does it change the class of service.
        (
            pods,
            "object.spec.containers.all(c, c.resources.requests.cpu == c.resources.limits.cpu && c.resources.requests.memory == c.resources.limits.memory)",
            "",
        ),
        (pods, "object.spec.containers.all(c, c.resources.requests.cpu == c.resources.limits.cpu)", "pods/resize"),
        (pods, "object.metadata.?labels.?env.orValue('') != ''", ""),
        // Updates pass in any case.
        (pods, "request.operation == 'UPDATE' || object.spec.containers.all(c, c.image != '')", ""),
        (deployments, "object.spec.replicas < 5", "deployments/scale"),
        (deployments, "object.status.?replicas.orValue(0) < 5", ""),
        (
            ("''", "v1", "CREATE, UPDATE", "replicationcontrollers"),
            "object.spec.replicas < 5",
            "replicationcontrollers/scale",
        ),
        (
            ("rbac.authorization.k8s.io", "v1", "CREATE, UPDATE", "roles"),
            "object.rules.all(r, !('pods' in r.resources))",
            "",
        ),
    ] {
        let found = findings(&policy(&[rule], &validations(&[expression])), "missing-subresource", Minor::V1_36);
        let said = reported(&found).join("\n");
        assert_eq!(!found.is_empty(), !expected.is_empty(), "{expression}: {said}");
        assert!(found.len() <= 1 && said.contains(expected), "{expression}: {said}");
    }
}

#[test]
fn required_or_guarded_fields_are_not_reported() {
    let rule = |group, resource| (group, "v1", "CREATE", resource);
    let (pods, services) = (rule("''", "pods"), rule("''", "services"));
    let deployments = rule("apps", "deployments");
    for (rule, rest, expected) in [
        (rule("storage.k8s.io", "storageclasses"), validations(&["object.reclaimPolicy == 'Retain'"]), ""),
        (rule("storage.k8s.io", "storageclasses"), validations(&["object.volumeBindingMode == 'Immediate'"]), ""),
        (
            rule("storage.k8s.io", "storageclasses"),
            validations(&["object.allowVolumeExpansion == true"]),
            "object.allowVolumeExpansion",
        ),
        (services, validations(&["object.spec.type != 'ExternalName' || object.spec.externalName != 'a'"]), ""),
        (services, validations(&["object.spec.externalName != 'a'"]), "object.spec.externalName"),
        (services, validations(&["object.spec.type != 'NodePort' && object.spec.sessionAffinity == 'None'"]), ""),
        // Not where there is no address.
        (services, validations(&["object.spec.clusterIP != 'None'"]), "object.spec.clusterIP"),
        (services, validations(&["object.spec.ports.all(p, p.protocol == 'TCP')"]), "object.spec.ports"),
        (deployments, validations(&["'a' in object.spec.template.metadata.labels"]), ""),
        (rule("batch", "jobs"), validations(&["'a' in object.spec.template.metadata.labels"]), ""),
        (
            rule("batch", "cronjobs"),
            validations(&["'a' in object.spec.jobTemplate.spec.template.metadata.labels"]),
            "object.spec.jobTemplate.spec.template.metadata.labels",
        ),
        (deployments, validations(&["'a' in object.metadata.labels"]), "object.metadata.labels"),
        (deployments, validations(&["object.spec.replicas > 1 && object.spec.strategy.type == 'Recreate'"]), ""),
        (
            deployments,
            validations(&["object.spec.strategy.rollingUpdate.maxSurge == 1"]),
            "object.spec.strategy.rollingUpdate",
        ),
        (
            deployments,
            validations(&[
                "object.spec.strategy.type == 'Recreate' || object.spec.strategy.rollingUpdate.maxSurge == 1",
            ]),
            "",
        ),
        (pods, validations(&["object.spec.containers.all(c, c.image != '' && c.imagePullPolicy == 'Always')"]), ""),
        (
            pods,
            validations(&["object.spec.containers.all(c, c.livenessProbe.periodSeconds > 0)"]),
            "c.livenessProbe is optional",
        ),
        (pods, validations(&["object.spec.dnsPolicy == 'Default' && object.metadata.namespace != 'a'"]), ""),
        (pods, validations(&["object.spec.volumes.size() < 5"]), "object.spec.volumes"),
        (rule("''", "namespaces"), validations(&["object.metadata.namespace != 'a'"]), "object.metadata.namespace"),
        (rule("rbac.authorization.k8s.io", "rolebindings"), validations(&["object.roleRef.name != 'a'"]), ""),
        // Asked for by an earlier validation, a match condition, a variable.
        (pods, validations(&["has(object.spec.hostname)", "object.spec.hostname != 'a'"]), ""),
        (pods, validations(&["object.spec.hostname != 'a'", "has(object.spec.hostname)"]), "object.spec.hostname"),
        (
            pods,
            validations(&["has(object.spec.hostname) || true", "object.spec.hostname != 'a'"]),
            "object.spec.hostname",
        ),
        (
            pods,
            format!(
                "  matchConditions:\n  - {{name: a, expression: has(object.spec.hostname)}}\n{}",
                validations(&["object.spec.hostname != 'a'"])
            ),
            "",
        ),
        (
            pods,
            format!(
                "  variables:\n  - {{name: named, expression: has(object.spec.hostname)}}\n{}",
                validations(&["!variables.named || object.spec.hostname != 'a'"])
            ),
            "",
        ),
        (
            pods,
            format!(
                "  variables:\n  - {{name: spec, expression: object.spec}}\n{}",
                validations(&["!has(variables.spec.hostname) || object.spec.hostname != 'a'"])
            ),
            "",
        ),
    ] {
        for minor in Minor::ALL {
            let found = findings(&policy(&[rule], &rest), "unguarded-optional-field", minor);
            let said = reported(&found).join("\n");
            assert_eq!(!found.is_empty(), !expected.is_empty(), "{minor} {rest}: {said}");
            assert!(found.len() <= 1 && said.contains(expected), "{minor} {rest}: {said}");
        }
    }
}

#[test]
fn unserved_api_version_or_kind_gets_a_suggestion() {
    for (api_version, kind, expected) in [
        ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicy", "write admissionregistration.k8s.io/v1"),
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "write apiextensions.k8s.io/v1"),
        ("batch/v1beta1", "CronJob", "write batch/v1"),
        ("policy/v1beta1", "PodDisruptionBudget", "write policy/v1"),
        ("extensions/v1beta1", "Ingress", "write networking.k8s.io/v1"),
        (
            "policy/v1beta1",
            "PodSecurityPolicy",
            "it has no replacement; palisade migrate converts PodSecurityPolicies to profiles",
        ),
        ("aadmissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "did you mean admissionregistration.k8s.io?"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmisionPolicy", "did you mean ValidatingAdmissionPolicy?"),
        (
            "admissionregistration.k8s.io/v1",
            "validatingadmissionpolicybinding",
            "did you mean ValidatingAdmissionPolicyBinding?",
        ),
        ("apiextension.k8s.io/v1", "CustomResourceDefinition", "did you mean apiextensions.k8s.io?"),
        ("apps/v1", "Deploymnet", "did you mean Deployment?"),
        ("v1", "Deployment", "did you mean apps/v1?"),
        // Those of others, of subresources, and what is not an object of an API server.
        ("apps.kruise.io/v1", "Deployment", ""),
        ("policy.example.org/v1", "PodDisruptionBudget", ""),
        ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", ""),
        ("gateway.networking.k8s.io/v1", "Gateway", ""),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", ""),
        ("v1", "Config", ""),
        ("v1", "Pod", ""),
        ("policy/v1", "Eviction", ""),
        ("v1", "PodList", ""),
        ("autoscaling/v1", "Scale", ""),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", ""),
    ] {
        let text = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a.b}}\nspec: {{}}\n");
        for minor in Minor::ALL {
            let found = findings(&text, "not-served", minor);
            let said: Vec<_> = found.iter().map(|one| one.help.clone().unwrap_or_default()).collect();
            let expected: Vec<_> = Some(expected).filter(|help| !help.is_empty()).into_iter().collect();
            assert_eq!(said, expected, "{minor} {api_version} {kind}");
        }
    }
    // It is said instead of a parser's mistake.
    let text = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {version: v1}\n";
    assert_eq!(findings(text, "api-server-rejects", Minor::V1_36).len(), 0);
    // As any other finding, it can be silenced.
    let silenced = text.replace("{name: a.b}", "{name: a.b, annotations: {toolsecurity.dev/lint-ignore: not-served}}");
    assert_eq!(findings(&silenced, "not-served", Minor::V1_36).len(), 0);
}

#[test]
fn deliberate_parameter_fan_out_has_severity_info() {
    let rules = [("apps", "v1", "CREATE", "deployments")];
    let text = |condition: &str, param_ref: &str| {
        let rest = format!(
            "  paramKind: {{apiVersion: example.org/v1, kind: Limit}}\n{condition}{}",
            validations(&["params.spec.a == 'a'"])
        );
        policy(&rules, &rest).replace(
            "validationActions: [Deny]}",
            &format!("validationActions: [Deny], paramRef: {{{param_ref}, parameterNotFoundAction: Deny}}}}"),
        )
    };
    let condition = "  matchConditions:\n  - {name: a, expression: \"params.spec.name == request.name\"}\n";
    for (condition, param_ref, expected) in [
        ("", "selector: {}, namespace: policies", Some(Severity::Warning)),
        (condition, "selector: {}, namespace: policies", Some(Severity::Info)),
        ("", "selector: {}", Some(Severity::Info)),
        ("", "selector: {matchLabels: {a: b}}, namespace: policies", None),
        ("", "name: limits", None),
    ] {
        let found = findings(&text(condition, param_ref), "selector-params-fan-out", Minor::V1_36);
        assert_eq!(found.iter().map(|one| one.severity).max(), expected, "{param_ref}: {:#?}", reported(&found));
    }
}

#[test]
fn resources_without_a_schema_are_reported() {
    let rules = [
        ("example.org", "v1", "CREATE", "routes, 'gateways/status', '*'"),
        ("''", "v1", "CREATE", "pods, pod"),
        ("'*'", "v1", "CREATE", "widgets"),
    ];
    let typed = validations(&["object.spec.a == 1"]);
    let found = findings(&policy(&rules, &typed), "types-not-checked", Minor::V1_36);
    assert_eq!(
        reported(&found),
        [
            "Info spec.matchConstraints.resourceRules[0].resources: no schema for example.org/v1 routes: types were not \
             checked",
            "Warning spec.matchConstraints.resourceRules[1].resources: Kubernetes 1.36 has no resource v1 pod: the rule \
             does not match it",
        ]
    );
    // An expression that reads no type of a schema.
    let routes = [("example.org", "v1", "CREATE, UPDATE", "routes")];
    for (expression, expected) in [
        ("true", false),
        ("dyn(object).?spec.?a.orValue(1) == 1", false),
        ("dyn(object).?spec == dyn(oldObject).?spec", false),
        ("oldObject == null || object.metadata.?labels[?'a'].orValue('') != ''", false),
        ("object.metadata.?labels[?request.name].hasValue() && object.kind != 'A'", false),
        ("dyn(object).?spec.?a.orValue(1) == 1 && oldObject.spec.a == 1", true),
        ("dyn(object.spec).a == 1", true),
        ("object.metadata.?labls.hasValue()", true),
        ("object.metadata.?labels[?object.spec.a].hasValue()", true),
        ("[object, oldObject].all(o, o.spec.a == 1)", true),
        ("object != oldObject", true),
    ] {
        for policy in [
            policy(&routes, &validations(&[expression])),
            policy(
                &routes,
                &format!(
                    "  variables:\n  - {{name: a, expression: \"{expression}\"}}\n{}",
                    validations(&["variables.a"])
                ),
            ),
        ] {
            let found = findings(&policy, "types-not-checked", Minor::V1_36);
            assert_eq!(!found.is_empty(), expected, "{expression}: {:#?}", reported(&found));
        }
    }
    // The group of another resource.
    let rules = [("''", "v1", "CREATE", "deployments"), ("apps", "v1", "CREATE", "pods")];
    let found = findings(&policy(&rules, &validations(&["true"])), "types-not-checked", Minor::V1_36);
    let helps: Vec<_> = found.iter().filter_map(|one| one.help.as_deref()).collect();
    assert_eq!(helps, ["it is in the API group \"apps\"", "it is in the API group \"\""]);
    // Versions that Kubernetes had.
    let rules = [
        ("autoscaling", "v2, v2beta2", "CREATE", "horizontalpodautoscalers"),
        ("discovery.k8s.io", "v1beta1", "CREATE", "endpointslices"),
        ("extensions", "v1beta1", "CREATE", "ingresses"),
    ];
    let found = findings(&policy(&rules, &validations(&["true"])), "types-not-checked", Minor::V1_36);
    let of = |index: usize| {
        format!("spec.matchConstraints.resourceRules[{index}].resources: Kubernetes 1.36 does not serve")
    };
    assert_eq!(
        reported(&found),
        [
            format!(
                "Info {} autoscaling/v2beta2 horizontalpodautoscalers: only older clusters need this version",
                of(0)
            ),
            format!("Warning {} discovery.k8s.io/v1beta1 endpointslices: the rule does not match it", of(1)),
            format!("Warning {} extensions/v1beta1 ingresses: the rule does not match it", of(2)),
        ]
    );
    // The object of a subresource, and a resource that is served on demand.
    let rules =
        [("apps", "v1", "UPDATE", "deployments/scale"), ("resource.k8s.io", "v1beta1", "CREATE", "resourceclaims")];
    let found = findings(&policy(&rules, &validations(&["true"])), "types-not-checked", Minor::V1_36);
    assert_eq!(reported(&found), Vec::<String>::new());
}

#[test]
fn second_object_of_a_name_is_reported_with_the_first() {
    let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: \
                   example}\nspec: {policyName: example, validationActions: [Warn]}\n";
    let text = policy(&[("''", "v1", "CREATE", "pods")], &validations(&["true"]));
    let copy = binding.replace("Warn", "Deny");
    let sources: Vec<_> = [("a.yaml", &*text), ("b.yaml", binding), ("c.yaml", &*copy)]
        .map(|(name, text)| Arc::new(Source::new(name, text.to_owned())))
        .into();
    let all: Vec<_> = sources.iter().flat_map(|source| objects(source).unwrap()).collect();
    let report = lint(&all, &Options::default());
    let found: Vec<_> = report.findings.into_iter().filter(|finding| finding.rule.id == "duplicate-name").collect();
    assert_eq!(
        reported(&found),
        [
            "Error metadata.name: a second ValidatingAdmissionPolicyBinding with the name \"example\"; the first one is in \
             a.yaml, line 14",
            "Info metadata.name: a copy of the ValidatingAdmissionPolicyBinding with the name \"example\"; the first one is \
             in a.yaml, line 14",
        ]
    );
}

#[test]
fn conditions_of_webhooks_are_checked() {
    let webhook = |kind: &str, expression: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata: {{name: example}}\nwebhooks:\n- name: \
             a.example.org\n  sideEffects: None\n  admissionReviewVersions: [v1]\n  clientConfig: {{url: \
             'https://example.org/x'}}\n  rules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: \
             [pods]}}]\n  matchConditions:\n  - {{name: x, expression: \"{expression}\"}}\n"
        )
    };
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        let found = findings(&webhook(kind, "objct.x == 1"), "api-server-rejects", Minor::V1_36);
        assert_eq!(
            reported(&found),
            ["Error webhooks[0].matchConditions[0].expression: webhooks[0].matchConditions[0].expression: does not \
              compile: 1:1: undeclared reference to 'objct' (in container '')"]
        );
        assert_eq!(found[0].help.as_deref(), Some("did you mean 'object'?"));
        let source = Arc::new(Source::new("f.yaml", webhook(kind, "object.x == 1")));
        let report = lint(&objects(&source).unwrap(), &Options::default());
        assert_eq!((reported(&report.findings), report.objects), (Vec::new(), 1));
    }
}

#[test]
fn misspelt_names_get_advice() {
    let help = |rest: &str| {
        let text = policy(&[("''", "v1", "CREATE", "pods")], rest);
        let found = findings(&text, "api-server-rejects", Minor::V1_36);
        assert_eq!(found.len(), 1, "{rest}: {found:#?}");
        found[0].help.clone().unwrap_or_default()
    };
    let named = "  variables: [{name: prefix, expression: \"'a'\"}]\n";
    for (rest, expected) in [
        (validations(&["object.metadata.name.startWith('a')"]), "did you mean 'startsWith'?"),
        (named.to_owned() + &validations(&["variables.prefx == 'a'"]), "did you mean 'prefix'?"),
        (validations(&["params.most > 1"]), "`params` is declared if the policy has a paramKind"),
        (validations(&["now() > timestamp('2026-01-01T00:00:00Z')"]), "CEL in the API server has no clock"),
        (
            "  matchConditions: [{name: x, expression: \"variables.y\"}]\n".to_owned() + &validations(&["true"]),
            "match conditions are evaluated before the variables of a policy",
        ),
    ] {
        assert_eq!(help(&rest), expected, "{rest}");
    }
}

#[test]
fn templates_without_pods_are_reported_where_a_pod_gains_something() {
    let apps = ("apps", "v1", "CREATE", "deployments, daemonsets, statefulsets, replicasets");
    let batch = ("batch", "v1", "CREATE", "jobs, cronjobs");
    let pods = ("''", "v1", "CREATE", "pods");
    let found = |rules: &[(&str, &str, &str, &str)], expression: &str| {
        reported(&findings(&policy(rules, &validations(&[expression])), "pods-not-matched", Minor::V1_36))
    };
    let image = "dyn(object).spec.template.spec.containers.all(c, c.image != 'x')";
    let at = "spec.matchConstraints.resourceRules: image of";
    let of_apps = "daemonsets, deployments, replicasets, statefulsets";
    assert_eq!(
        found(&[apps], image),
        [format!("Warning {at} {of_apps} is checked, but not of pods, cronjobs, jobs, replicationcontrollers")]
    );
    assert_eq!(
        found(&[apps, pods], image),
        [format!("Info {at} pods and {of_apps} is checked, but not of cronjobs, jobs")]
    );
    // A binding that only warns about pods does not make up for a missing one that denies.
    let of = |name: &str, rule, actions: &str| {
        let text = policy(&[rule], &validations(&[image]));
        text.replace("name: example", &format!("name: {name}"))
            .replace("policyName: example", &format!("policyName: {name}"))
            .replace("[Deny]", actions)
    };
    for (actions, count) in [("[Deny]", 0), ("[Warn]", 1)] {
        let text = format!("{}---\n{}", of("apps", apps, "[Deny]"), of("pods", pods, actions));
        assert_eq!(findings(&text, "pods-not-matched", Minor::V1_36).len(), count, "{actions}: {text}");
    }
    // All usual kinds; fields of workloads; objects that have no template; a policy for pods alone.
    assert_eq!(found(&[apps, batch, pods], image), Vec::<String>::new());
    assert_eq!(
        found(&[apps], "object.spec.template.spec.containers.all(c, has(c.livenessProbe))"),
        Vec::<String>::new()
    );
    assert_eq!(found(&[apps], "object.metadata.?labels['image'].orValue('') != 'x'"), Vec::<String>::new());
    assert_eq!(found(&[pods], "object.spec.containers.all(c, c.image != 'x')"), Vec::<String>::new());
}

/// Only a proof for every request is a finding.
#[test]
fn validation_that_denies_nothing_is_proved_to_deny_nothing() {
    let created = [("apps", "v1", "CREATE", "deployments")];
    let range = "object.spec.?replicas.orValue(1) >= 1 || object.spec.?replicas.orValue(1) <= 5";
    let paused = "  matchConditions: [{name: paused, expression: \"object.spec.?paused.orValue(false) == true\"}]\n";
    for (rules, conditions, expression, count) in [
        (&created[..], "", range, 1),
        (&[("apps", "v1", "CREATE, UPDATE", "deployments, statefulsets, replicasets")], "", range, 1),
        // The object of a deletion is null.
        (&[("apps", "v1", "CREATE, DELETE", "deployments")], "", range, 0),
        (&[("apps", "v1", "'*'", "deployments")], "", range, 0),
        (&[("apps", "v1", "CREATE", "'*'")], "", range, 0),
        (&[("example.com", "v1", "CREATE", "widgets")], "", range, 0),
        // It fails without the field.
        (&created, "", "object.spec.replicas >= 1 || object.spec.replicas <= 5", 0),
        (&created, "", "object.spec.?replicas.orValue(1) >= 1 || object.spec.?replicas.orValue(1) <= -1", 0),
        (&created, paused, "object.spec.?paused.orValue(false) || object.metadata.name != 'a'", 1),
        (&created, "", "object.spec.?paused.orValue(false) || object.metadata.name != 'a'", 0),
        // Lists of any length.
        (
            &[("''", "v1", "CREATE", "pods")],
            "",
            "object.spec.containers.exists(c, c.name == 'a') || object.spec.containers.all(c, c.name != 'a')",
            1,
        ),
        (
            &[("''", "v1", "CREATE", "pods")],
            "",
            "object.spec.containers.exists(c, c.name == 'a') || object.spec.containers.all(c, c.name != 'b')",
            0,
        ),
        // A node has no namespace.
        (&[("''", "v1", "CREATE", "nodes")], "", "namespaceObject.?metadata.hasValue() || namespaceObject == null", 0),
    ] {
        let text = policy(rules, &format!("{conditions}{}", validations(&[expression])));
        let found = findings(&text, "never-denies", Minor::V1_36);
        assert_eq!(found.len(), count, "{rules:?} {conditions} {expression}: {:?}", reported(&found));
    }
}

#[test]
fn validation_that_no_object_passes_is_proved_to_be_passed_by_none() {
    let services = [("''", "v1", "CREATE, UPDATE", "services")];
    let kind = "object.spec.?type.orValue('ClusterIP')";
    let only = "  matchConditions: [{name: external, expression: \"has(object.spec.externalName)\"}]\n";
    for (rules, conditions, expression, count) in [
        (&services[..], "", format!("{kind} == 'NodePort' && {kind} == 'LoadBalancer'"), 1),
        (&services, "", format!("{kind} == 'NodePort' || {kind} == 'LoadBalancer'"), 0),
        (&services, "", "object.spec.?ports.orValue([]).exists(p, p.port > 1 && p.port < 1)".to_owned(), 1),
        (&services, "", "object.spec.?ports.orValue([]).exists(p, p.port > 1 && p.port < 3)".to_owned(), 0),
        // An empty list.
        (&services, "", "object.spec.?ports.orValue([]).all(p, p.port > 1 && p.port < 1)".to_owned(), 0),
        // One kind of two, and one operation of two.
        (&[("''", "v1", "CREATE", "services, configmaps")], "", "has(object.data)".to_owned(), 0),
        (&services, "", "oldObject != null && oldObject.metadata.name == object.metadata.name".to_owned(), 0),
        // The conditions select what is to be denied.
        (&services, only, "!has(object.spec.externalName)".to_owned(), 0),
        // A constant is meant.
        (&services, "", "false".to_owned(), 0),
        (&[("''", "v1", "'*'", "services")], "", format!("{kind} == 'NodePort' && {kind} == 'LoadBalancer'"), 0),
    ] {
        let text = policy(rules, &format!("{conditions}{}", validations(&[&expression])));
        let found = findings(&text, "always-denies", Minor::V1_36);
        assert_eq!(found.len(), count, "{rules:?} {conditions} {expression}: {:?}", reported(&found));
    }
}

#[test]
fn match_conditions_that_exclude_everything_are_proved_to_exclude_everything() {
    let services = [("''", "v1", "CREATE, UPDATE", "services")];
    let kind = |name: &str| format!("object.spec.?type.orValue('ClusterIP') == '{name}'");
    let (ports, balancers) = (kind("NodePort"), kind("LoadBalancer"));
    let rule = "!has(object.spec.externalIPs)";
    for (rules, conditions, count) in [
        (&services[..], vec![ports.clone(), balancers.clone()], 1),
        (&services, vec![format!("{ports} && {balancers}")], 1),
        (&services, vec![format!("{ports} || {balancers}")], 0),
        (&services, vec![ports.clone()], 0),
        (&services, vec![], 0),
        // never-reached reports it.
        (&services, vec!["false".to_owned()], 0),
        // The first fails without the field: the request is denied, unless another one is false.
        (
            &services,
            vec!["object.spec.type == 'NodePort'".to_owned(), balancers.replace("ClusterIP", "LoadBalancer")],
            0,
        ),
        (&services, vec!["object.spec.type == 'NodePort'".to_owned(), balancers.clone()], 1),
        (&services, vec!["oldObject == null".to_owned(), "request.operation == 'UPDATE'".to_owned()], 1),
        (&[("''", "v1", "CREATE, DELETE", "services")], vec![ports, balancers], 0),
    ] {
        let named = conditions.iter().enumerate();
        let list: Vec<_> = named.map(|(at, one)| format!("  - {{name: c{at}, expression: \"{one}\"}}\n")).collect();
        let list = list.concat();
        let list = if list.is_empty() { list } else { format!("  matchConditions:\n{list}") };
        let text = policy(rules, &format!("{list}{}", validations(&[rule])));
        let found = findings(&text, "never-matches", Minor::V1_36);
        assert_eq!(found.len(), count, "{rules:?} {conditions:?}: {:?}", reported(&found));
        // Then a validation is not reported as well.
        assert!(findings(&text, "never-denies", Minor::V1_36).is_empty());
    }
}

/// A field of a custom resource may be null, for which the expression fails.
#[test]
fn validation_of_custom_resources_is_not_said_to_deny_nothing() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
        spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets, singular: widget}\n  \
        versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: \
        {spec: {type: object, properties: {size: {type: integer, nullable: true}}}}}}\n---\n";
    let range = "object.?spec.?size.orValue(1) >= 1 || object.?spec.?size.orValue(1) <= 5";
    let text = policy(&[("example.com", "v1", "CREATE", "widgets")], &validations(&[range]));
    let found = findings(&format!("{crd}{text}"), "never-denies", Minor::V1_36);
    assert!(found.is_empty(), "{:?}", reported(&found));
    let params = "  paramKind: {apiVersion: example.com/v1, kind: Widget}\n";
    let text =
        policy(&[("''", "v1", "CREATE", "pods")], &format!("{params}{}", validations(&["params == null || true"])));
    let found = findings(&format!("{crd}{text}"), "never-denies", Minor::V1_36);
    assert!(found.is_empty(), "{:?}", reported(&found));
}

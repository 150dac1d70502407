//! The findings of `mutation-type`, and mutations without findings.

use std::sync::Arc;

use palisade_lint::{Options, lint};
use palisade_manifest::{Source, objects};

/// The findings of the rule in a policy with this mutation, each with its severity and advice.
fn found(resources: &str, patch: &str, expression: &str, more: &str) -> Vec<String> {
    let key = if patch == "JSONPatch" { "jsonPatch" } else { "applyConfiguration" };
    let text = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {{name: example}}\nspec:\n  \
         reinvocationPolicy: Never\n{more}  matchConstraints:\n    resourceRules:\n    - {{apiGroups: ['', apps], \
         apiVersions: [v1], operations: [CREATE], resources: [{resources}]}}\n  mutations:\n  - patchType: {patch}\n    \
         {key}:\n      expression: >-\n        {expression}\n"
    );
    let source = Arc::new(Source::new("f.yaml", text));
    let objects = objects(&source).unwrap();
    let report = lint(&objects, &Options::default());
    let rejected = report.findings.iter().find(|finding| finding.rule.id == "api-server-rejects");
    assert!(rejected.is_none(), "{expression}: {rejected:?}");
    let of_rule = report.findings.iter().filter(|finding| finding.rule.id == "mutation-type");
    let line = |one: &palisade_lint::Finding| {
        format!("{:?} {} ({})", one.severity, one.message, one.help.as_deref().unwrap_or_default())
    };
    of_rule.map(line).collect()
}

fn of_pods(expression: &str) -> Vec<String> {
    found("pods", "ApplyConfiguration", expression, "")
}

const REJECTS: &str = ": the API server rejects each request for which it evaluates this expression";

#[test]
fn unknown_fields_and_atomic_parts_of_an_apply_configuration_are_found() {
    for (expression, expected) in [
        (
            "Object{spec: Object.spec{nodeSelectr: {'a': 'b'}}}",
            format!("Error .spec.nodeSelectr: field not declared in schema{REJECTS} (did you mean nodeSelector?)"),
        ),
        (
            "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}",
            format!(
                "Error may not mutate atomic arrays, maps or structs: .spec.nodeSelector{REJECTS} (replace the whole value \
                 with a mutation of patchType JSONPatch)"
            ),
        ),
        (
            "Object{spec: Object.spec{securityContext: Object.spec.securityContext{supplementalGroups: \
             has(object.spec.x) ? [1] : []}}}",
            "Warning undefined field 'x' ()".to_owned(),
        ),
        (
            "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, \
             args: ['x']})}}",
            format!(
                "Error may not mutate atomic arrays, maps or structs: .spec.containers[0].args{REJECTS} (replace the whole \
                 value with a mutation of patchType JSONPatch)"
            ),
        ),
        (
            "Object{spec: Object.spec{priority: '5'}}",
            format!("Error .spec.priority: expected numeric (int or float), got string{REJECTS} ()"),
        ),
        (
            "Object{spec: Object.spec{hostNetwork: string(object.spec.priority)}}",
            format!("Error .spec.hostNetwork: expected boolean, got string{REJECTS} ()"),
        ),
        (
            "Object{metadata: Object.spec{labels: {'a': 'b'}}}",
            format!(
                "Error unexpected type name \"Object.spec\", expected \"Object.metadata\", which matches field name path \
                 from root Object type{REJECTS} ()"
            ),
        ),
        (
            "Object{spec: Object.spec{tolerations: object.spec.tolerations + [Object.spec.tolerations{key: 'a'}]}}",
            format!(
                "Error may not mutate atomic arrays, maps or structs: .spec.tolerations{REJECTS} (replace the whole value \
                 with a mutation of patchType JSONPatch)"
            ),
        ),
    ] {
        let found = of_pods(expression);
        assert!(found.contains(&expected), "{expression}: {found:#?}");
    }
}

#[test]
fn mutations_that_fit_have_no_findings() {
    for expression in [
        "Object{metadata: Object.metadata{labels: {'a': 'b'}, annotations: object.metadata.?annotations.orValue({})}}",
        "Object{spec: Object.spec{serviceAccountName: 'a', priority: 5, hostNetwork: false}}",
        "Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsUser: 1000, runAsNonRoot: true}}}",
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, \
         resources: Object.spec.containers.resources{limits: {'cpu': '1'}}})}}",
        "Object{spec: Object.spec{volumes: [Object.spec.volumes{name: 'v', hostPath: Object.spec.volumes.hostPath{path: '/'}}]}}",
        "Object{spec: Object.spec{?priority: object.spec.?priority}}",
        "object.metadata.name == 'a' ? Object{} : Object{spec: Object.spec{hostname: 'b'}}",
    ] {
        assert_eq!(of_pods(expression), Vec::<String>::new(), "{expression}");
    }
    for expression in [
        "[JSONPatch{op: 'add', path: '/spec/nodeSelector', value: {'a': 'b'}}]",
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]",
        "[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{key: 'a'}}]",
        "object.spec.containers.map(c, JSONPatch{op: 'remove', path: '/spec/containers/0/args'})",
        "[JSONPatch{op: 'replace', path: '/spec/priority', value: 7u}]",
    ] {
        assert_eq!(found("pods", "JSONPatch", expression, ""), Vec::<String>::new(), "{expression}");
    }
}

#[test]
fn literal_paths_and_values_of_a_json_patch_are_checked() {
    for (expression, expected) in [
        (
            "[JSONPatch{op: 'add', path: '/spec/nodeSelectr', value: {'a': 'b'}}]",
            "/spec/nodeSelectr: field not declared",
        ),
        ("[JSONPatch{op: 'add', path: '/spec/nodeSelectr/' + object.metadata.name, value: 'b'}]", "/spec/nodeSelectr:"),
        ("[JSONPatch{op: 'set', path: '/spec/hostname', value: 'b'}]", "Unexpected kind: set"),
        ("[JSONPatch{op: 'add', path: '/spec/priority', value: 'b'}]", ".spec.priority: expected numeric"),
        (
            "[JSONPatch{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{kez: 'a'}}]",
            ".spec.tolerations.-.kez: field not declared",
        ),
    ] {
        let found = found("pods", "JSONPatch", expression, "");
        assert!(found.len() == 1 && found[0].starts_with(&format!("Error {expected}")), "{expression}: {found:#?}");
    }
}

#[test]
fn severity_depends_on_the_kinds_and_on_the_failure_policy() {
    let expression = "Object{spec: Object.spec{replicas: 2}}";
    let both = found("pods, deployments", "ApplyConfiguration", expression, "");
    assert_eq!(both, [format!("Warning .spec.replicas: field not declared in schema{REJECTS} (v1 Pod) ()")]);
    let hidden = found("pods", "ApplyConfiguration", expression, "  failurePolicy: Ignore\n");
    assert!(hidden[0].contains(": the mutation fails; failurePolicy: Ignore hides this"), "{hidden:#?}");
    // What reads a variable is checked, too.
    let variables = "  variables: [{name: pool, expression: \"{'pool': 'tools'}\"}]\n";
    let of_variable =
        found("pods", "ApplyConfiguration", "Object{spec: Object.spec{nodeSelector: variables.pool}}", variables);
    assert!(of_variable[0].contains("atomic arrays, maps or structs: .spec.nodeSelector"), "{of_variable:#?}");
}

#[test]
fn unknown_field_of_a_custom_kind_is_dropped_from_a_json_patch() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: apps.example.org}\n\
        spec:\n  group: example.org\n  names: {kind: App, plural: apps, singular: app, listKind: AppList}\n  scope: Namespaced\n  \
        versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
        properties: {spec: {type: object, properties: {size: {type: integer}}}}\n---\n";
    let policy = |patch: &str, key: &str, expression: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {{name: example}}\nspec:\n  \
             reinvocationPolicy: Never\n  matchConstraints:\n    resourceRules:\n    - {{apiGroups: [example.org], apiVersions: \
             [v1], operations: [CREATE], resources: [apps]}}\n  mutations:\n  - patchType: {patch}\n    {key}: {{expression: \
             \"{expression}\"}}\n"
        )
    };
    let found = |policy: String| -> Vec<String> {
        let source = Arc::new(Source::new("f.yaml", format!("{definition}{policy}")));
        let report = lint(&objects(&source).unwrap(), &Options::default());
        let of_rule = report.findings.iter().filter(|finding| finding.rule.id == "mutation-type");
        of_rule.map(|one| format!("{:?} {}", one.severity, one.message)).collect()
    };
    assert_eq!(
        found(policy("JSONPatch", "jsonPatch", "[JSONPatch{op: 'add', path: '/spec/sise', value: 1}]")),
        ["Warning /spec/sise: field not declared in schema: the API server drops it"]
    );
    assert_eq!(
        found(policy("ApplyConfiguration", "applyConfiguration", "Object{spec: Object.spec{sise: 1}}")),
        [format!("Error .spec.sise: field not declared in schema{REJECTS}")]
    );
}

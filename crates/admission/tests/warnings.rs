//! What stands between mutating admission and policies: validation, and warnings of strategies. The cases of pods are
//! from the tests of `pkg/api/pod/warnings.go`, and so is the order.

use palisade_admission::requests::{Cluster, Operation, Outcome, Review};
use palisade_cel::Minor;
use serde_json::{Value as Json, json};

fn send(minor: Minor, object: &Json, old: Option<&Json>) -> Review {
    let cluster = Cluster::new(minor).without_service_accounts();
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    cluster.admit(&cluster.request(operation, "", object, old).unwrap())
}

#[track_caller]
fn warns(minor: Minor, object: &Json, old: Option<&Json>, wanted: &[&str]) {
    let review = send(minor, object, old);
    assert_eq!(review.outcome, Outcome::Allowed, "{object}");
    assert_eq!(review.warnings, wanted, "{object}");
}

fn pod(spec: &Json) -> Json {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "a", "image": "a"}]);
    }
    pod
}

fn deployment(template: &Json) -> Json {
    let mut template = json!({"metadata": template["metadata"], "spec": template["spec"]});
    template["metadata"]["labels"] = json!({"app": "a"});
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn invalid_object_is_rejected_before_policies_run() {
    let bad = pod(&json!({"containers": [{"name": "a b", "image": "a"}], "imagePullSecrets": [{}]}));
    let review = send(Minor::V1_36, &bad, None);
    let denial = review.outcome.denial().unwrap();
    assert_eq!((denial.code, denial.policy.as_str()), (422, ""));
    assert!(denial.message.starts_with(r#"Pod "a" is invalid: spec.containers[0].name: Invalid value: "a b""#));
    // The strategy warns of nothing that is invalid.
    assert_eq!(review.warnings, [""; 0]);
}

#[test]
fn rejected_pod_is_warned_about_its_app_armor_annotation() {
    let key = "container.apparmor.security.beta.kubernetes.io/a";
    let mut bad = pod(&json!({"containers": [{"name": "a", "image": "a"}, {"name": "B", "image": "b"}]}));
    bad["metadata"]["annotations"] = json!({key: "runtime/default"});
    for minor in Minor::ALL {
        let review = send(minor, &bad, None);
        assert_eq!(review.outcome.denial().unwrap().code, 422, "{minor}");
        let wanted =
            format!("metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead");
        assert_eq!(review.warnings, [wanted], "{minor}");
    }
    bad["spec"]["securityContext"] = json!({"appArmorProfile": {"type": "RuntimeDefault"}});
    assert_eq!(send(Minor::V1_36, &bad, None).warnings, [""; 0]);
}

#[test]
fn duplicate_and_overlapping_ports_are_warned_about() {
    let b = |port: u16, name: &str| json!({"containerPort": port, "name": name});
    let two = |first: Json, second: Json| {
        pod(&json!({"containers": [
            {"name": "a", "image": "a", "ports": [first]}, {"name": "b", "image": "b", "ports": [second]},
        ]}))
    };
    warns(Minor::V1_36, &two(b(80, "x"), b(81, "y")), None, &[]);
    warns(
        Minor::V1_36,
        &two(b(80, "x"), b(80, "x")),
        None,
        &[
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
            "spec.containers[1].ports[0]: duplicate port name \"x\" with spec.containers[0].ports[0], services and \
             probes that select ports by name will use spec.containers[0].ports[0]",
        ],
    );
    let on = |ip: &str, port: u16| json!({"containerPort": 80, "hostPort": port, "hostIP": ip});
    warns(
        Minor::V1_36,
        &two(json!({"containerPort": 80}), on("1.1.1.1", 80)),
        None,
        &["spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]"],
    );
    warns(
        Minor::V1_36,
        &two(json!({"containerPort": 80, "hostPort": 80}), on("1.1.1.1", 80)),
        None,
        &["spec.containers[1].ports[0]: dangerously ambiguous port definition with spec.containers[0].ports[0]"],
    );
    warns(
        Minor::V1_36,
        &two(json!({"containerPort": 80, "hostIP": "1.1.1.1"}), b(81, "y")),
        None,
        &["spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP \
           HostIP:1.1.1.1}"],
    );
}

#[test]
fn overlapping_paths_duplicates_and_deprecations_are_warned_about() {
    let items = |path: &str| json!([{"key": "k", "path": path}]);
    let projected = |sources: Json| {
        let volumes = json!([{"name": "foo", "projected": {"sources": sources}}]);
        pod(&json!({"serviceAccountName": "a", "volumes": volumes}))
    };
    warns(
        Minor::V1_36,
        &projected(json!([
            {"configMap": {"name": "Test", "items": items("test")}},
            {"serviceAccountToken": {"path": "test/file"}},
        ])),
        None,
        &[
            r#"volume "foo" (Projected): overlapping paths: "test/file" (ServiceAccountToken) with "test" (ConfigMap "Test")"#,
        ],
    );
    let two = json!([{"key": "k", "path": "test"}, {"key": "l", "path": "test/app"}]);
    warns(
        Minor::V1_36,
        &pod(&json!({"volumes": [{"name": "Test".to_lowercase(), "configMap": {"name": "foo", "items": two}}]})),
        None,
        &[r#"volume "test" (ConfigMap "foo"): overlapping paths: "test/app" with "test""#],
    );
    warns(
        Minor::V1_36,
        &pod(&json!({
            "volumes": [{"name": "a", "gitRepo": {"repository": "x"}}],
            "hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}],
            "imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}],
            "nodeSelector": {"beta.kubernetes.io/os": "linux"},
        })),
        None,
        &[
            r#"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#,
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
            r#"spec.hostAliases[1].ip: duplicate ip "1.1.1.1""#,
            r#"spec.imagePullSecrets[1].name: duplicate name "a""#,
            r#"spec.imagePullSecrets[2].name: invalid empty name """#,
        ],
    );
    // Conversion makes it 1 in pods, and leaves it in templates.
    let negative = pod(&json!({"terminationGracePeriodSeconds": -1}));
    warns(Minor::V1_36, &negative, None, &[]);
    let wanted = "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be \
                  treated as 1";
    warns(Minor::V1_36, &deployment(&negative), None, &[wanted]);
}

#[test]
fn duplicate_env_and_fractional_bytes_are_warned_about() {
    let env = json!([
        {"name": "a", "value": "x"}, {"name": "a", "value": "$(a)"}, {"name": "a", "value": "y$(a)"},
        {"name": "a", "value": "z"},
    ]);
    let resources = json!({"requests": {"memory": "4m"}, "limits": {"memory": "1Gi", "ephemeral-storage": "4m"}});
    let spec = json!({"containers": [{"name": "a", "image": "a", "env": env, "resources": resources}]});
    let wanted = [
        "spec.containers[0].resources.requests[memory]: fractional byte value \"4m\" is invalid, must be an integer",
        "spec.containers[0].resources.limits[ephemeral-storage]: fractional byte value \"4m\" is invalid, must be an \
         integer",
        "spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value \"4m\" is invalid, must be an \
         integer",
        "spec.containers[0].env[1]: hides previous definition of \"a\", which may be dropped when using apply",
        "spec.containers[0].env[3]: hides previous definition of \"a\", which may be dropped when using apply",
    ];
    warns(Minor::V1_36, &pod(&spec), None, &wanted);
    // Only in pods requests are what the limits are.
    let of_template = wanted.iter().filter(|text| !text.contains("requests[ephemeral"));
    let of_template: Vec<_> = of_template.map(|text| format!("spec.template.{text}")).collect();
    let of_template: Vec<_> = of_template.iter().map(String::as_str).collect();
    let new = deployment(&pod(&spec));
    warns(Minor::V1_36, &new, None, &of_template);
    // Of an update only if something changed but metadata.
    let mut labelled = new.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    warns(Minor::V1_36, &labelled, Some(&new), &[]);
    let mut scaled = new.clone();
    scaled["spec"]["replicas"] = json!(3);
    warns(Minor::V1_36, &scaled, Some(&new), &of_template);
    // Of an update of a pod never.
    let (mut changed, old) = (pod(&spec), pod(&spec));
    changed["spec"]["containers"][0]["image"] = json!("b");
    warns(Minor::V1_36, &changed, Some(&old), &[]);
}

#[test]
fn deprecated_apparmor_annotations_are_warned_about() {
    let key = "container.apparmor.security.beta.kubernetes.io/a";
    let warning =
        format!("metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead");
    let with = |kind: Json| {
        let mut pod = pod(&json!({"securityContext": kind}));
        pod["metadata"]["annotations"] = json!({key: "runtime/default"});
        pod
    };
    let of_template = format!("spec.template.{warning}");
    let (none, same) = (with(json!({})), with(json!({"appArmorProfile": {"type": "RuntimeDefault"}})));
    // A container's own profile is what the annotation has to be the same as, and nothing is reported about it then.
    let mut other = with(json!({"appArmorProfile": {"type": "Unconfined"}}));
    other["spec"]["containers"][0]["securityContext"] = json!({"appArmorProfile": {"type": "RuntimeDefault"}});
    for minor in [Minor::V1_33, Minor::V1_36] {
        warns(minor, &none, None, &[&warning]);
        warns(minor, &same, None, &[]);
        warns(minor, &deployment(&none), None, &[&of_template]);
        warns(minor, &deployment(&same), None, &[]);
        warns(minor, &deployment(&other), None, &[]);
    }
}

#[test]
fn services_ingresses_and_names_are_warned_about() {
    let service = |spec: Json| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec});
    let headless = service(json!({"clusterIP": "None", "externalIPs": ["1.1.1.1"], "ports": [{"port": 80}]}));
    warns(Minor::V1_36, &headless, None, &["spec.externalIPs is ignored for headless services"]);
    warns(Minor::V1_33, &headless, None, &[]);
    let external = service(json!({"externalIPs": ["1.1.1.1"], "ports": [{"port": 80}]}));
    warns(
        Minor::V1_36,
        &external,
        None,
        &["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
    );
    warns(Minor::V1_35, &external, None, &[]);
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}},
        "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
    });
    let wanted = "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead";
    warns(Minor::V1_36, &ingress, None, &[wanted]);
    warns(Minor::V1_36, &ingress, Some(&ingress), &[]);
    let mut dotted = deployment(&pod(&json!({})));
    dotted["metadata"]["name"] = json!("a.b");
    let wanted = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
                  label is recommended: [must not contain dots]";
    warns(Minor::V1_36, &dotted, None, &[wanted]);
}

#[test]
fn path_of_an_unknown_field_is_escaped_only_for_built_in_kinds() {
    let object = |version: &str, kind: &str| {
        let metadata = json!({"name": "a"});
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "a\"b": 1})
    };
    warns(Minor::V1_36, &object("v1", "ConfigMap"), None, &["unknown field \"a\\\"b\""]);
    let mut cluster = Cluster::new(Minor::V1_36);
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}});
    let names = json!({"plural": "cases", "singular": "case", "kind": "Case", "listKind": "CaseList"});
    let spec = json!({"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cases.example.org"}, "spec": spec});
    cluster.apply(crd).unwrap();
    let case = object("example.org/v1", "Case");
    let review = cluster.admit(&cluster.request(Operation::Create, "", &case, None).unwrap());
    assert_eq!((review.outcome, review.warnings), (Outcome::Allowed, vec!["unknown field \"a\"b\"".to_owned()]));
}

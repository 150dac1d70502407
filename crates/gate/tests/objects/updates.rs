//! Updates that no check of objects evaluates: those that change nothing that a check reads, whatever the object
//! violates. Also deletion.

use super::*;

/// Fields that an update can change.
const FIELDS: [&str; 5] = ["/spec/size", "/spec/other", "/data/a", "/metadata/labels/team", "/metadata/labels/other"];
/// Expressions that no object complies with, and the fields with whose change an update is evaluated. Those of the last
/// three are not known, so they are all.
const EXPRESSIONS: [(&str, &[&str]); 6] = [
    ("object.spec.size < 0", &["/spec/size", "/spec/other"]),
    ("object.?data.orValue({}).size() < 0", &["/spec/size", "/spec/other", "/data/a"]),
    ("object.metadata.?labels[?'team'].orValue('') == 'x'", &["/spec/size", "/spec/other", "/metadata/labels/team"]),
    ("object == null", &FIELDS),
    ("oldObject == object", &FIELDS),
    ("request.userInfo.username == 'admin'", &FIELDS),
];

#[test]
fn updates_are_evaluated_only_if_they_change_what_a_check_reads() {
    let content = json!({"spec": {"size": 1, "other": 1}, "data": {"a": "b"}});
    let old = object("example.org/v1", "Widget", &content);
    let old = with(&old, "/metadata/labels", json!({"team": "a", "other": "a"}));
    let finalized = with(&old, "/metadata/finalizers", json!(["example.com/a", "example.com/b"]));
    for (expression, evaluated) in EXPRESSIONS {
        let compiled = compiled(&json!({"customChecks": [{
            "id": "never", "target": "Object", "message": "never", "expression": expression,
            "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets"}],
        }]}));
        for minor in Minor::ALL {
            let server = Enforced::complete(minor, &compiled);
            assert!(server.create(&old).contains("[never]"), "{expression}");
            for field in FIELDS {
                let value = if field.starts_with("/spec") { json!(2) } else { json!("changed") };
                let found = server.update(&with(&old, field, value), &old);
                assert_eq!(found.contains("[never]"), evaluated.contains(&field), "{expression}: {field}: {found}");
            }
            // Fields that none of the expressions can name are removed and added.
            for (object, old) in [(&with(&old, "/more", json!(1)), &old), (&old, &with(&old, "/more", json!(1)))] {
                assert_eq!(server.update(object, old).contains("[never]"), evaluated == FIELDS, "{expression}");
            }
            let released = with(&finalized, "/metadata/finalizers", json!(["example.com/b"]));
            for (object, old) in [(&released, &finalized), (&old, &released), (&old, &old)] {
                assert_eq!(server.update(object, old), "", "{expression}");
            }
            assert_eq!(server.denial(Operation::Delete, "", &old, None), "", "{expression}");
        }
    }
}

#[test]
fn the_policy_matches_no_deletion() {
    let compiled = compiled(&json!({"customChecks": [{
        "id": "never", "target": "Object", "message": "never", "expression": "false",
        "kinds": [
            {"versions": ["v1"], "resource": "services"},
            {"group": "networking.k8s.io", "versions": ["v1"], "resource": "ingresses", "operations": ["UPDATE"]},
        ],
    }]}));
    let policy = compiled.bundle.objects.unwrap().policy.spec.unwrap();
    let rules = policy.match_constraints.unwrap().resource_rules.unwrap();
    let found: Vec<_> = rules.into_iter().flat_map(|rule| rule.operations.unwrap()).collect();
    assert_eq!(found, ["CREATE", "UPDATE", "UPDATE", "CREATE"]);
}

/// An update of the status can change annotations of kinds that are not custom resources.
#[test]
fn an_update_of_the_status_that_changes_an_evaluated_annotation_is_evaluated() {
    let compiled = compiled(&json!({
        "network": {"allowedIngressClasses": ["public"], "allowedServiceTypes": ["ClusterIP"]},
        "storage": {"allowedStorageClasses": ["standard"]},
    }));
    let backend = json!({"service": {"name": "w", "port": {"number": 80}}});
    let ingress = object(
        "networking.k8s.io/v1",
        "Ingress",
        &json!({"spec": {"ingressClassName": "public", "defaultBackend": backend}}),
    );
    let claim = json!({
        "storageClassName": "standard", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    });
    let claim = object("v1", "PersistentVolumeClaim", &json!({"spec": claim}));
    for (old, key, id) in [
        (ingress, "kubernetes.io/ingress.class", "[networkClasses] Ingress: spec.ingressClassName: forbidden"),
        (
            claim,
            "volume.beta.kubernetes.io/storage-class",
            "[storageClaims] PersistentVolumeClaim: spec.storageClassName: forbidden",
        ),
    ] {
        let new = with(&old, "/metadata/annotations", json!({key: "internal"}));
        let other = with(&old, "/metadata/annotations", json!({"example.com/a": "b"}));
        for minor in Minor::ALL {
            let server = Enforced::complete(minor, &compiled);
            let status = |object: &Json, old: &Json| server.denial(Operation::Update, "status", object, Some(old));
            assert!(status(&new, &old).contains(id), "{minor}: {}", status(&new, &old));
            assert_eq!(status(&other, &old), "", "{minor}");
            // It was there before.
            assert_eq!(status(&with(&new, "/metadata/labels", json!({"a": "b"})), &new), "", "{minor}");
        }
    }
}

/// Nodes send packets for the addresses in the status of a load balancer to its pods.
#[test]
fn addresses_in_the_status_of_a_service_are_evaluated() {
    let compiled = compiled(&json!({
        "parameters": [{"name": "own", "type": "String", "sources": [{"namespaceAnnotation": "own"}], "default": "198.51.100.7/32"}],
        "network": {"allowedExternalIPs": ["192.0.2.0/24", "$own"]},
        "exemptions": {"users": ["system:serviceaccount:metallb-system:controller"]},
    }));
    let user = |name: &str, groups: &[&str]| FixtureUser {
        username: name.to_owned(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    };
    let controllers = [
        user("system:cloud-controller-manager", &[]),
        user("system:kube-controller-manager", &[]),
        user("system:serviceaccount:kube-system:service-controller", &["system:serviceaccounts:kube-system"]),
        user("system:serviceaccount:metallb-system:controller", &["system:serviceaccounts:metallb-system"]),
    ];
    let tenants =
        [user("editor", &[]), user("system:serviceaccount:tool-weather:default", &["system:serviceaccounts"])];
    let pending = service("LoadBalancer");
    let balanced = |ip: &str| {
        let ingress =
            json!([{"ip": "192.0.2.1", "ipMode": "VIP"}, {"ip": ip, "ipMode": "VIP"}, {"hostname": "a.example.org"}]);
        with(&pending, "/status", json!({"loadBalancer": {"ingress": ingress}}))
    };
    let params = json!(compiled.probes.params);
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, Some(&params));
        let answer = |user: &FixtureUser, object: &Json, old: &Json| {
            server.denial_of(user, Operation::Update, "status", object, Some(old))
        };
        let expected = "[networkExternalAddresses] Service: status.loadBalancer.ingress[*].ip: forbidden addresses: 10.0.0.1, allowed: ";
        for tenant in &tenants {
            let denial = answer(tenant, &balanced("10.0.0.1"), &pending);
            assert!(denial.contains(expected), "{minor}: {denial}");
            // The address of the cluster in another spelling.
            assert!(!answer(tenant, &balanced("::ffff:192.0.2.2"), &pending).is_empty(), "{minor}");
            assert_eq!(answer(tenant, &balanced("192.0.2.7"), &pending), "", "{minor}");
            assert_eq!(answer(tenant, &pending, &balanced("10.0.0.1")), "", "{minor}: removal");
        }
        for controller in &controllers {
            assert_eq!(answer(controller, &balanced("10.0.0.1"), &pending), "", "{minor}: {}", controller.username);
        }
        // Only the exempt one may choose addresses of the spec.
        let external = with(&pending, "/spec/externalIPs", json!(["10.0.0.1"]));
        for (index, controller) in controllers.iter().enumerate() {
            let denial = server.denial_of(controller, Operation::Update, "", &external, Some(&pending));
            assert_eq!(denial.is_empty(), index == 3, "{minor}: {denial}");
        }
        // With and without parameters, a controller removes its finalizer by the status.
        let held =
            with(&balanced("10.0.0.1"), "/metadata/finalizers", json!(["service.kubernetes.io/load-balancer-cleanup"]));
        for params in [Some(&params), None] {
            let mut server = Enforced::new(minor, &compiled, params);
            for is_ending in [false, true] {
                if is_ending {
                    server.end_namespace();
                }
                for user in controllers.iter().chain(&tenants) {
                    let answer =
                        |object: &Json| server.denial_of(user, Operation::Update, "status", object, Some(&held));
                    let released = with(&held, "/metadata/finalizers", json!([]));
                    assert_eq!(answer(&released), "", "{minor}: {}", user.username);
                }
            }
            let denial =
                server.denial_of(&tenants[0], Operation::Update, "status", &balanced("10.0.0.1"), Some(&pending));
            assert!(!denial.is_empty(), "{minor}: a namespace that is being deleted");
        }
    }
}

#[test]
fn an_endpoint_slice_of_a_controller_stays_with_its_service() {
    let compiled = compiled(&json!({"network": {"allowEndpoints": false}}));
    let slice = object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        &json!({
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.7"]}],
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
        }),
    );
    let slice = with(&slice, "/metadata/labels", json!({"kubernetes.io/service-name": "web"}));
    let controller = FixtureUser {
        username: "system:serviceaccount:kube-system:endpointslice-controller".to_owned(),
        groups: vec!["system:serviceaccounts:kube-system".to_owned()],
    };
    for minor in Minor::ALL {
        let server = Enforced::complete(minor, &compiled);
        for (field, value) in [
            ("/metadata/labels", json!({"kubernetes.io/service-name": "other"})),
            ("/metadata/labels", json!({})),
            ("/ports", json!([{"name": "", "port": 22, "protocol": "TCP"}])),
            ("/endpoints", json!([{"addresses": ["10.0.0.8"]}])),
        ] {
            let new = with(&slice, field, value);
            assert!(server.update(&new, &slice).contains("[networkEndpoints]"), "{minor}: {field}");
            assert_eq!(
                server.denial_of(&controller, Operation::Update, "", &new, Some(&slice)),
                "",
                "{minor}: {field}"
            );
        }
        assert_eq!(server.update(&with(&slice, "/metadata/annotations", json!({"a": "b"})), &slice), "", "{minor}");
        assert_eq!(server.update(&with(&slice, "/endpoints", json!([])), &slice), "", "{minor}");
    }
}

/// A namespace that is being deleted can have lost its parameters, while finalizers hold its objects.
#[test]
fn an_object_in_a_namespace_that_is_being_deleted_gets_no_other_content() {
    let compiled = compiled(&json!({
        "parameters": [{"name": "tool", "type": "String", "sources": [{"namespaceNameTrimPrefix": "tool-"}]}],
        "network": {"allowedHosts": ["$tool.example.org"]},
        "exemptions": {"users": ["robot"]},
    }));
    let route =
        |host: &str| object("gateway.networking.k8s.io/v1", "HTTPRoute", &json!({"spec": {"hostnames": [host]}}));
    let (old, new) = (route("weather.example.org"), route("other.example.org"));
    let held = with(&old, "/metadata/finalizers", json!(["example.com/a", "example.com/b"]));
    let robot = FixtureUser { username: "robot".to_owned(), ..FixtureUser::default() };
    let params = json!(compiled.probes.params);
    for (minor, params) in Minor::ALL.into_iter().flat_map(|minor| [(minor, Some(&params)), (minor, None)]) {
        let mut server = Enforced::new(minor, &compiled, params);
        let other = server.update(&new, &old);
        assert_eq!(other.is_empty(), params.is_none(), "{minor}: {other}");
        server.end_namespace();
        let found = server.update(&new, &old);
        assert!(
            found.contains("[networkHosts]") || found.contains("[parameters] namespace: is being deleted"),
            "{minor}: {found}"
        );
        assert_eq!(server.denial_of(&robot, Operation::Update, "", &new, Some(&old)), "", "{minor}");
        for changed in [
            with(&held, "/metadata/finalizers", json!([])),
            with(&held, "/metadata/finalizers", json!(["example.com/b"])),
            with(&held, "/metadata/labels", json!({"a": "b"})),
            with(&held, "/status", json!({"parents": []})),
        ] {
            assert_eq!(server.update(&changed, &held), "", "{minor}");
        }
    }
}

//! What a plan changes in a pod.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use palisade_api::{ToolSecurityParamsSpec, ToolSecurityProfile};
use palisade_compiler::{Compiled, Namespace};
use palisade_mutation::{MutationRequest, Patch, PatchOperation, Plan, PodOperation};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn yaml(text: &str) -> Json {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn compile(name: &str, spec: &str) -> Compiled {
    let mut spec = yaml(spec);
    spec["namespaceSelector"] = json!({"matchLabels": {"a": "b"}});
    let profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": name}, "spec": spec,
    });
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    palisade_compiler::compile(&profile).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A plan that lives as long as it likes: a test ends soon.
fn plan(compiled: &[Compiled], namespace: &Namespace) -> Plan<'static> {
    let compiled: &'static [Compiled] = compiled.to_vec().leak();
    let params: Vec<_> =
        compiled.iter().map(|one| one.params(namespace, [], "2026-01-01T00:00:00Z".parse().unwrap())).collect();
    let params = params.iter().map(|params| params.as_ref().map(|params| &params.spec));
    Plan::new(compiled.iter().zip(params).filter_map(|(one, params)| Some((one.mutation.as_ref()?, params))))
}

fn tool() -> Namespace {
    let annotations = [("uid".to_owned(), "50001".to_owned())].into();
    Namespace { name: "tool-a".to_owned(), annotations, ..Namespace::default() }
}

/// The pod after it was patched; patching it again changes nothing.
fn patched(plan: &Plan<'_>, pod: &Json) -> (Json, Patch) {
    let patch = plan.patch(&MutationRequest::create("tool-a", pod));
    let mut changed = pod.clone();
    patch.apply(&mut changed).unwrap();
    let again = plan.patch(&MutationRequest::create("tool-a", &changed));
    assert!(again.is_empty(), "{:?}", again.operations);
    (changed, patch)
}

const SECURE: &str = "mutation: {defaults: Secure}";
const TOOL: &str = "
parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]
users:
  runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}
  runAsGroup: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}
  fsGroup: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}
  supplementalGroups: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}
privileges: {readOnlyRootFilesystem: true, seLinux: {types: [container_t], levels: ['s0:c1,c2'], required: true}}
mutation: {defaults: Secure}
";

#[test]
fn fields_required_by_checks_are_defaulted() {
    let plan = plan(&[compile("tools", TOOL)], &tool());
    let (pod, patch) =
        patched(&plan, &yaml("spec: {containers: [{name: a, image: b}], initContainers: [{name: c, image: d}]}"));
    let of_container = "{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}";
    let expected = yaml(&format!(
        "
spec:
  containers: [{{name: a, image: b, securityContext: {of_container}}}]
  initContainers: [{{name: c, image: d, securityContext: {of_container}}}]
  securityContext:
    runAsNonRoot: true
    runAsUser: 50001
    runAsGroup: 50001
    fsGroup: 50001
    supplementalGroups: [50001]
    seccompProfile: {{type: RuntimeDefault}}
    seLinuxOptions: {{type: container_t, level: 's0:c1,c2'}}
"
    ));
    assert_eq!(pod, expected, "{pod:#}");
    assert_eq!(
        patch.warning().as_deref(),
        Some(
            "mutated by ToolSecurityProfile tools: pod securityContext.runAsNonRoot true; securityContext.runAsUser \
             50001; securityContext.runAsGroup 50001; securityContext.fsGroup 50001; securityContext.supplementalGroups \
             [50001]; securityContext.seccompProfile {type: RuntimeDefault}; securityContext.seLinuxOptions {level: \
             s0:c1,c2, type: container_t}; container \"a\" securityContext.allowPrivilegeEscalation false; \
             securityContext.capabilities.drop [ALL]; securityContext.readOnlyRootFilesystem true; container \"c\" \
             securityContext.allowPrivilegeEscalation false; securityContext.capabilities.drop [ALL]; \
             securityContext.readOnlyRootFilesystem true"
        )
    );
    let checks: Vec<_> = patch.changes.iter().filter_map(|change| change.check.as_deref()).take(3).collect();
    assert_eq!(checks, ["runAsNonRoot", "runAsUser", "runAsGroup"]);
}

#[test]
fn set_fields_are_kept_and_inapplicable_ones_not_defaulted() {
    let plan = plan(&[compile("tools", TOOL)], &tool());
    for pod in [
        "spec: {os: {name: windows}, containers: [{name: a, image: b}]}",
        "
spec:
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    runAsGroup: 0
    fsGroup: 0
    supplementalGroups: [0]
    seccompProfile: {type: Unconfined}
    seLinuxOptions: {user: x}
  containers:
  - name: a
    image: b
    securityContext:
      allowPrivilegeEscalation: true
      readOnlyRootFilesystem: false
      capabilities: {drop: [NET_RAW]}
",
    ] {
        let pod = yaml(pod);
        assert_eq!(patched(&plan, &pod).0, pod);
    }
    // The API server refuses these together with allowPrivilegeEscalation: false.
    for container in ["privileged: true", "capabilities: {add: [CAP_SYS_ADMIN]}"] {
        let (pod, _) = patched(
            &plan,
            &yaml(&format!("spec: {{containers: [{{name: a, image: b, securityContext: {{{container}}}}}]}}")),
        );
        let context = &pod["spec"]["containers"][0]["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], Json::Null);
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    }
    // The kubelet would start no container as root then.
    for pod in [
        "spec: {securityContext: {runAsUser: 0}, containers: [{name: a, image: b}]}",
        "spec: {containers: [{name: a, image: b, securityContext: {runAsUser: 0}}]}",
    ] {
        assert_eq!(patched(&plan, &yaml(pod)).0["spec"]["securityContext"]["runAsNonRoot"], Json::Null);
    }
    let annotated = "{metadata: {annotations: {seccomp.security.alpha.kubernetes.io/pod: localhost/x}}, spec: {containers: [{name: a, image: b}]}}";
    let context = &patched(&plan, &yaml(annotated)).0["spec"]["securityContext"];
    assert_eq!(context["seccompProfile"], Json::Null);
    assert_eq!(context["runAsUser"], 50001);
}

#[test]
fn absent_null_and_empty_fields_are_defaulted() {
    let plan = plan(&[compile("tools", TOOL)], &tool());
    let plain = patched(&plan, &yaml("spec: {containers: [{name: a, image: b}]}")).0;
    for pod in [
        "spec: {securityContext: null, containers: [{name: a, image: b, securityContext: null}]}",
        "spec: {securityContext: {}, containers: [{name: a, image: b, securityContext: {capabilities: null}}]}",
        "spec: {securityContext: {supplementalGroups: []}, containers: [{name: a, image: b, securityContext: {capabilities: {drop: []}}}]}",
        "spec: {securityContext: {runAsUser: null}, containers: [{name: a, image: b, securityContext: {allowPrivilegeEscalation: null}}]}",
    ] {
        assert_eq!(patched(&plan, &yaml(pod)).0, plain, "{pod}");
    }
}

#[test]
fn only_requested_defaults_are_set() {
    assert_eq!(compile("a", "{}").mutation, None);
    assert_eq!(compile("a", "{mutation: {defaults: Secure, engine: 'Off'}}").mutation, None);
    assert_eq!(compile("a", "{baseline: Privileged, mutation: {defaults: Secure}}").mutation, None);
    let pod = yaml("spec: {containers: [{name: a, image: b}]}");
    let plan = |spec: &str| plan(&[compile("a", spec)], &tool());
    let (changed, _) =
        patched(&plan("{baseline: Baseline, mutation: {additionalDefaults: [AllowPrivilegeEscalation]}}"), &pod);
    let expected =
        yaml("spec: {containers: [{name: a, image: b, securityContext: {allowPrivilegeEscalation: false}}]}");
    assert_eq!(changed, expected);
    // A flag that differs by namespace is asked there.
    let by_namespace = |value| {
        plan(&format!(
            "
baseline: Privileged
parameters: [{{name: ro, type: Boolean, default: '{value}'}}]
privileges: {{readOnlyRootFilesystem: $ro}}
mutation: {{defaults: Secure}}
"
        ))
    };
    assert_eq!(patched(&by_namespace(false), &pod).0, pod);
    assert_eq!(
        patched(&by_namespace(true), &pod).0["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"],
        true
    );
}

#[test]
fn additional_defaults_are_set_where_the_api_server_allows() {
    let all = "
baseline: Privileged
privileges: {capabilities: {allowedAdd: [], requiredDrop: [], defaultAdd: [CHOWN, KILL]}}
mutation:
  additionalDefaults: [AllowPrivilegeEscalation, HostUsers, ReadOnlyRootFilesystem, RunAsNonRoot, SeccompProfile, SupplementalGroupsPolicy]
";
    let plan = plan(&[compile("a", all)], &tool());
    let (pod, _) = patched(&plan, &yaml("spec: {containers: [{name: a, image: b}]}"));
    let expected = "
spec:
  hostUsers: false
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, supplementalGroupsPolicy: Strict}
  containers:
  - name: a
    image: b
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {add: [CHOWN, KILL]}}
";
    assert_eq!(pod, yaml(expected), "{pod:#}");
    for pod in [
        "spec: {hostNetwork: true, containers: [{name: a, image: b}]}",
        "spec: {hostPID: true, containers: [{name: a, image: b}]}",
        "spec: {hostIPC: true, containers: [{name: a, image: b}]}",
        "spec: {containers: [{name: a, image: b}], initContainers: [{name: a, image: b, volumeDevices: [{name: x, devicePath: /x}]}]}",
    ] {
        assert_eq!(patched(&plan, &yaml(pod)).0["spec"]["hostUsers"], Json::Null, "{pod}");
    }
    let kept = yaml("spec: {containers: [{name: a, image: b, securityContext: {capabilities: {drop: [KILL]}}}]}");
    assert_eq!(
        patched(&plan, &kept).0["spec"]["containers"][0]["securityContext"]["capabilities"],
        json!({"drop": ["KILL"]})
    );
}

fn update<'a>(old_pod: &'a Json, pod: &'a Json, subresource: &'a str) -> MutationRequest<'a> {
    MutationRequest { operation: PodOperation::Update, subresource, old_pod, ..MutationRequest::create("tool-a", pod) }
}

#[test]
fn only_new_ephemeral_containers_are_defaulted() {
    let plan = plan(&[compile("tools", TOOL)], &tool());
    let old = yaml("spec: {containers: [{name: a, image: b}], ephemeralContainers: [{name: old, image: b}]}");
    let mut pod = old.clone();
    pod["spec"]["ephemeralContainers"].as_array_mut().unwrap().push(json!({"name": "new", "image": "b"}));
    let mut changed = pod.clone();
    plan.patch(&update(&old, &pod, "ephemeralcontainers")).apply(&mut changed).unwrap();
    let context = changed["spec"]["ephemeralContainers"][1]["securityContext"].clone();
    let expected = "
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
runAsNonRoot: true
runAsUser: 50001
runAsGroup: 50001
seccompProfile: {type: RuntimeDefault}
seLinuxOptions: {type: container_t, level: 's0:c1,c2'}
";
    assert_eq!(context, yaml(expected), "{context:#}");
    changed["spec"]["ephemeralContainers"][1].as_object_mut().unwrap().remove("securityContext");
    assert_eq!(changed, pod);
    // What the pod says is inherited.
    pod["spec"]["securityContext"] =
        json!({"runAsUser": 50001, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    let patch = plan.patch(&update(&old, &pod, "ephemeralcontainers"));
    assert!(!patch.operations.iter().any(|one| one.path().ends_with("runAsUser")), "{patch:?}");
    for subresource in ["", "resize"] {
        assert!(plan.patch(&update(&old, &pod, subresource)).is_empty());
    }
    assert!(
        plan.patch(&MutationRequest { subresource: "binding", ..MutationRequest::create("tool-a", &pod) }).is_empty()
    );
}

#[test]
fn images_of_all_kinds_are_redirected() {
    let redirect = "{baseline: Privileged, images: {redirect: {target: 'sea.hub:5000', pathStyle: StripHost}}}";
    let plan = plan(&[compile("a", redirect)], &tool());
    let pod = "
spec:
  os: {name: windows}
  containers: [{name: a, image: nginx}]
  initContainers: [{name: b, image: 'quay.io/x/y:1'}]
  volumes: [{name: v, image: {reference: ghcr.io/m/n}}, {name: w, emptyDir: {}}, {name: x, image: {}}]
";
    let expected = "
spec:
  os: {name: windows}
  containers: [{name: a, image: 'sea.hub:5000/library/nginx'}]
  initContainers: [{name: b, image: 'sea.hub:5000/x/y:1'}]
  volumes: [{name: v, image: {reference: 'sea.hub:5000/m/n'}}, {name: w, emptyDir: {}}, {name: x, image: {}}]
";
    let (pod, patch) = patched(&plan, &yaml(pod));
    assert_eq!(pod, yaml(expected), "{pod:#}");
    assert!(patch.operations.iter().all(|one| matches!(one, PatchOperation::Replace { .. })));
    assert!(patch.warning().unwrap().contains("container \"a\" image nginx is now sea.hub:5000/library/nginx"));
}

#[test]
fn profiles_mutate_in_order_of_their_names() {
    let user = |id| {
        format!(
            "{{baseline: Privileged, users: {{runAsUser: {{rule: MustRunAs, ranges: [{{min: {id}, max: 70000}}]}}}}, images: {{redirect: {{target: 'r{id}.example'}}}}, mutation: {{defaults: Secure}}}}"
        )
    };
    let profiles = [("b", user(2)), ("a", user(1)), ("c", SECURE.to_owned())];
    let compiled: Vec<_> = profiles.iter().map(|(name, spec)| compile(name, spec)).collect();
    let plan = plan(&compiled, &tool());
    let (pod, patch) = patched(&plan, &yaml("spec: {containers: [{name: a, image: b}]}"));
    assert_eq!(pod["spec"]["securityContext"]["runAsUser"], 1);
    assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["spec"]["containers"][0]["image"], "r1.example/docker.io/library/b");
    assert!(patch.warning().unwrap().starts_with("mutated by ToolSecurityProfile a, c: "));
}

#[test]
fn profile_without_its_parameters_mutates_nothing() {
    let compiled = compile("tools", TOOL);
    let mutation = compiled.mutation.as_ref().unwrap();
    let pod = yaml("spec: {containers: [{name: a, image: b}]}");
    let empty = ToolSecurityParamsSpec::default();
    let denying = ToolSecurityParamsSpec::denying("x");
    for params in [None, Some(&empty), Some(&denying)] {
        assert!(Plan::new([(mutation, params)]).patch(&MutationRequest::create("tool-a", &pod)).is_empty());
    }
}

#[test]
fn exempt_requests_and_excepted_checks_are_not_mutated() {
    let spec = "
mutation: {defaults: Secure}
exemptions: {users: [admin], groups: [admins], runtimeClasses: [kata]}
exceptions: [{namespaces: [tool-a], checks: [runAsNonRoot], reason: x, expires: '2027-01-01T00:00:00Z'}]
";
    let compiled = [compile("a", spec)];
    let pod = yaml("spec: {containers: [{name: a, image: b}]}");
    let plan_here = plan(&compiled, &tool());
    let context = &patched(&plan_here, &pod).0["spec"]["securityContext"];
    assert_eq!(context, &json!({"seccompProfile": {"type": "RuntimeDefault"}}), "an excepted check has no default");
    let elsewhere = plan(&compiled, &Namespace { name: "tool-b".to_owned(), ..Namespace::default() });
    assert_eq!(patched(&elsewhere, &pod).0["spec"]["securityContext"]["runAsNonRoot"], true);

    let (admins, nodes) = (["admins".to_owned()], ["system:nodes".to_owned()]);
    let mirror =
        yaml("{metadata: {annotations: {kubernetes.io/config.mirror: x}}, spec: {containers: [{name: a, image: b}]}}");
    let kata = yaml("spec: {runtimeClassName: kata, containers: [{name: a, image: b}]}");
    let create = |pod| MutationRequest::create("tool-a", pod);
    for (request, exempt) in [
        (MutationRequest { user: "admin", ..create(&pod) }, true),
        (MutationRequest { groups: &admins, ..create(&pod) }, true),
        (create(&kata), true),
        (MutationRequest { user: "system:node:x", groups: &nodes, ..create(&mirror) }, true),
        (MutationRequest { namespace: "palisade-probe", ..create(&pod) }, true),
        (create(&mirror), false),
        (MutationRequest { user: "system:node:x", ..create(&mirror) }, false),
        (MutationRequest { user: "system:node:x", groups: &nodes, ..create(&pod) }, false),
    ] {
        assert_eq!(plan_here.patch(&request).is_empty(), exempt, "{request:?}");
    }
}

/// JSON with the names of a pod's fields in all the wrong places.
fn arbitrary() -> impl Strategy<Value = Json> {
    let name = prop::sample::select(vec![
        "spec",
        "containers",
        "initContainers",
        "ephemeralContainers",
        "securityContext",
        "capabilities",
        "add",
        "drop",
        "image",
        "reference",
        "volumes",
        "metadata",
        "annotations",
        "os",
        "name",
        "runAsUser",
        "hostUsers",
        "seccompProfile",
    ]);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        ".{0,12}".prop_map(Json::from),
        Just(json!("windows")),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_json_never_panics_and_its_patch_applies(spec in arbitrary(), whole in any::<bool>(), old in arbitrary()) {
        let redirect = "{mutation: {defaults: Secure, additionalDefaults: [HostUsers]}, images: {redirect: {target: a.example}}}";
        let plan = plan(&[compile("tools", TOOL), compile("other", redirect)], &tool());
        let pod = if whole { spec } else { json!({"spec": spec}) };
        let (_, patch) = patched(&plan, &pod);
        for operation in &patch.operations {
            prop_assert!(operation.path().starts_with("/spec/"));
        }
        plan.patch(&MutationRequest { operation: PodOperation::Update, subresource: "ephemeralcontainers", old_pod: &old, ..MutationRequest::create("x", &pod) });
    }
}

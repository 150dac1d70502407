//! The additions of a plan to a pod.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use palisade_api::ToolSecurityProfile;
use palisade_compiler::{Compiled, compile};
use palisade_mutation::{MutationRequest, Patch, Plan, PodOperation};
use serde_json::{Value as Json, json};

fn yaml(text: &str) -> Json {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn profile(inject: &str) -> ToolSecurityProfile {
    let mut spec = yaml("{parameters: [{name: tool, type: String, default: weather}], baseline: Privileged}");
    spec["namespaceSelector"] = json!({"matchLabels": {"a": "b"}});
    spec["mutation"] = json!({"inject": yaml(inject)});
    serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "tools"},
        "spec": spec,
    }))
    .unwrap()
}

fn compiled(inject: &str) -> Compiled {
    compile(&profile(inject)).unwrap_or_else(|error| panic!("{error:?}"))
}

/// Why additions are rejected.
fn refused(inject: &str) -> String {
    let found = compile(&profile(inject)).map(|_| ()).unwrap_err();
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn patch(compiled: &Compiled, pod: &Json) -> Patch {
    let plan = Plan::new([(compiled.mutation.as_ref().unwrap(), compiled.probes.params.as_ref())]);
    plan.patch(&MutationRequest::create("tool-weather", pod))
}

/// The pod with the additions; adding them again changes nothing.
fn patched(compiled: &Compiled, pod: &Json) -> Json {
    let mut after = pod.clone();
    patch(compiled, pod).apply(&mut after).unwrap();
    let again = patch(compiled, &after);
    assert!(again.is_empty(), "{:?}", again.operations);
    after
}

const STORAGE: &str = "
- name: storage
  when: {podSelector: {matchExpressions: [{key: storage, operator: NotIn, values: [none]}]}}
  volumes:
  - {name: dumps, hostPath: {path: /public/dumps, type: Directory}, mounts: [{mountPath: /public/dumps, readOnly: true}]}
  - {name: home, hostPath: {path: /data/project, type: Directory}, mounts: [{mountPath: /data/project}]}
  env:
  - {name: HOME, value: /data/project/$tool, unlessSet: [NO_HOME]}
  - {name: TOOL_DATA_DIR, value: /data/project/$tool}
  removeWorkingDirIfSet: [NO_HOME]
  nodeSelector: {nfs: 'true'}
- name: no-storage
  when: {podSelector: {matchLabels: {storage: none}}}
  preferredNodeAffinity: [{weight: 100, matchExpressions: [{key: nfs, operator: NotIn, values: ['true']}]}]
";

#[test]
fn volumes_variables_and_node_selectors_are_injected() {
    let compiled = compiled(STORAGE);
    let pod =
        yaml("{metadata: {}, spec: {containers: [{name: a, workingDir: /w}, {name: b}], initContainers: [{name: i}]}}");
    let container = "
volumeMounts: [{name: dumps, mountPath: /public/dumps, readOnly: true}, {name: home, mountPath: /data/project}]
env: [{name: HOME, value: /data/project/weather}, {name: TOOL_DATA_DIR, value: /data/project/weather}]
";
    let mut expected = yaml(
        "
metadata: {}
spec:
  containers: [{name: a, workingDir: /w}, {name: b}]
  initContainers: [{name: i}]
  volumes:
  - {name: dumps, hostPath: {path: /public/dumps, type: Directory}}
  - {name: home, hostPath: {path: /data/project, type: Directory}}
  nodeSelector: {nfs: 'true'}
",
    );
    for index in [0, 1] {
        for (field, value) in yaml(container).as_object().unwrap() {
            expected["spec"]["containers"][index][field] = value.clone();
        }
    }
    assert_eq!(patched(&compiled, &pod), expected);
    let none = yaml("{metadata: {labels: {storage: none}}, spec: {containers: [{name: a}]}}");
    let terms = &patched(&compiled, &none)["spec"]["affinity"]["nodeAffinity"];
    assert_eq!(terms["preferredDuringSchedulingIgnoredDuringExecution"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_pod_sets_is_kept_and_named_where_it_is_in_the_way() {
    let compiled = compiled(STORAGE);
    // A volume of the same name with another source: neither the volume nor its mounts.
    let pod = yaml("{metadata: {}, spec: {containers: [{name: a}], volumes: [{name: home, emptyDir: {}}]}}");
    let found = patched(&compiled, &pod);
    assert_eq!(found["spec"]["volumes"][0], json!({"name": "home", "emptyDir": {}}));
    assert_eq!(found["spec"]["containers"][0]["volumeMounts"].as_array().unwrap().len(), 1, "{found}");
    let warning = patch(&compiled, &pod).warning().unwrap();
    assert!(warning.contains("volume home, its mounts and containers that mount it are not added"), "{warning}");
    assert!(warning.contains("mutated by ToolSecurityProfile tools: pod volumes[dumps]"), "{warning}");
    // The same volume: it is not added twice, and its mounts are.
    let pod = yaml(
        "{metadata: {}, spec: {containers: [{name: a}], volumes: [{name: home, hostPath: {path: /data/project, type: Directory}}]}}",
    );
    let found = patched(&compiled, &pod);
    assert_eq!(found["spec"]["volumes"].as_array().unwrap().len(), 2);
    assert_eq!(found["spec"]["containers"][0]["volumeMounts"].as_array().unwrap().len(), 2);
    let pod = yaml(
        "
metadata: {}
spec:
  nodeSelector: {nfs: own}
  containers:
  - {name: a, env: [{name: HOME, value: own}], volumeMounts: [{name: x, mountPath: /public/dumps}]}
  - {name: b, env: [{name: NO_HOME, value: x}], workingDir: /w, volumeDevices: [{name: d, devicePath: /data/project}]}
",
    );
    let found = patched(&compiled, &pod);
    assert_eq!(found["spec"]["nodeSelector"], json!({"nfs": "own"}));
    let [a, b] = [0, 1].map(|index| found["spec"]["containers"][index].clone());
    assert_eq!(a["env"][0]["value"], "own");
    assert_eq!(a["volumeMounts"].as_array().unwrap().len(), 2);
    assert_eq!(b["volumeMounts"], json!([{"name": "dumps", "mountPath": "/public/dumps", "readOnly": true}]));
    assert_eq!((b["workingDir"].clone(), b["env"].as_array().unwrap().len()), (Json::Null, 2), "{b}");
}

#[test]
fn a_variable_that_is_always_set_replaces_the_one_in_effect() {
    let compiled = compiled("[{name: x, env: [{name: A, value: ours, policy: Always}]}]");
    let pod =
        yaml("{metadata: {}, spec: {containers: [{name: a, env: [{name: A, value: one}, {name: A, value: two}]}]}}");
    let env = &patched(&compiled, &pod)["spec"]["containers"][0]["env"];
    assert_eq!(*env, json!([{"name": "A", "value": "one"}, {"name": "A", "value": "ours"}]));
    let warning = patch(&compiled, &pod).warning().unwrap();
    assert!(warning.contains("env[A] {name: A, value: two} is now {name: A, value: ours}"), "{warning}");
}

#[test]
fn the_first_entry_that_matches_counts() {
    let compiled = compiled(
        "
- {name: a, when: {podSelector: {matchLabels: {x: z}}}, env: [{name: A, value: first}]}
- {name: b, env: [{name: A, value: second}], initContainers: true}
",
    );
    let value = |labels: Json, list: &str| {
        let pod = json!({"metadata": {"labels": labels}, "spec": {list: [{"name": "a"}]}});
        patched(&compiled, &pod)["spec"][list][0]["env"][0]["value"].clone()
    };
    assert_eq!(value(json!({"x": "z"}), "containers"), "first");
    assert_eq!(value(json!({}), "containers"), "second");
    // The first entry adds nothing to init containers.
    assert_eq!(value(json!({"x": "z"}), "initContainers"), "second");
}

#[test]
fn windows_pods_and_ephemeral_containers_get_no_additions() {
    let compiled = compiled(STORAGE);
    let pod = yaml("{metadata: {}, spec: {os: {name: windows}, containers: [{name: a}]}}");
    assert!(patch(&compiled, &pod).is_empty());
    let mut new = yaml("{metadata: {}, spec: {containers: [{name: a}]}}");
    let old = new.clone();
    new["spec"]["ephemeralContainers"] = json!([{"name": "e"}]);
    let plan = Plan::new([(compiled.mutation.as_ref().unwrap(), compiled.probes.params.as_ref())]);
    let request = MutationRequest {
        operation: PodOperation::Update,
        subresource: "ephemeralcontainers",
        old_pod: &old,
        ..MutationRequest::create("tool-weather", &new)
    };
    assert!(plan.patch(&request).is_empty());
}

#[test]
fn contradictory_additions_are_rejected_with_their_places() {
    for (inject, expected) in [
        ("[{name: a}]", "spec.mutation.inject[0]: adds nothing"),
        (
            "[{name: a, when: {podSelector: {matchLabels: {x: z}}}, env: [{name: A, value: b}]}, {name: b, labels: {x: z}}]",
            "spec.mutation.inject[0].when.podSelector: reads x, which an entry adds to labels",
        ),
        (
            "[{name: a, env: [{name: A, value: b, unlessSet: [A]}]}]",
            "spec.mutation.inject[0].env[0].unlessSet: reads the variable A, which an entry adds",
        ),
        (
            "[{name: a, env: [{name: A, value: b}], removeWorkingDirIfSet: [A]}]",
            "spec.mutation.inject[0].removeWorkingDirIfSet: reads the variable A, which an entry adds",
        ),
        (
            "[{name: a, volumes: [{name: v, emptyDir: {}}]}, {name: b, volumes: [{name: v, configMap: {name: c}}]}]",
            "spec.mutation.inject[1].volumes[0]: volume v has another source in spec.mutation.inject[0].volumes[0]",
        ),
        (
            "[{name: a, volumes: [{name: v, emptyDir: {}, mounts: [{mountPath: /x}]}, {name: w, emptyDir: {}, mounts: [{mountPath: /x}]}]}]",
            "spec.mutation.inject[0].volumes[1].mounts[0]: the same element as spec.mutation.inject[0].volumes[0].mounts[0]",
        ),
        ("[{name: a, labels: {toolsecurity.dev/x: z}}]", "toolsecurity.dev/x is reserved"),
        (
            "[{name: a, volumes: [{name: v, hostPath: {path: /x/$user}}]}]",
            "spec.mutation.inject[0].volumes[0].hostPath.path: $user is not a declared parameter",
        ),
    ] {
        let found = refused(inject);
        assert!(found.contains(expected), "{inject}\n{found}");
        assert_eq!(found.matches(expected).count(), 1, "{found}");
    }
}

const CONTAINERS: &str = "
- name: secrets
  initContainers: true
  volumes:
  - {name: secrets, emptyDir: {medium: Memory}, mounts: [{mountPath: /run/secrets, readOnly: true}]}
  containers:
  - name: fetch
    type: Init
    image: registry.example/fetch
    args: [--tool, $tool]
    volumeMounts: [{name: secrets, mountPath: /out}]
  - name: renew
    type: Sidecar
    image: registry.example/renew
    resources: {limits: {memory: 32Mi}}
    securityContext: {runAsUser: 1337, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: secrets, mountPath: /out}]
  env: [{name: TOOL, value: $tool}]
";

/// Added containers are first, in their order, and get the other additions like the containers of the pod.
#[test]
fn containers_are_added_before_the_init_containers_of_the_pod() {
    let compiled = compiled(CONTAINERS);
    let pod = yaml("{metadata: {}, spec: {containers: [{name: a}], initContainers: [{name: i}]}}");
    let given = "
volumeMounts: [{name: secrets, mountPath: /run/secrets, readOnly: true}]
env: [{name: TOOL, value: weather}]
";
    let mounted = "
volumeMounts: [{name: secrets, mountPath: /out}, {name: secrets, mountPath: /run/secrets, readOnly: true}]
env: [{name: TOOL, value: weather}]
";
    let mut expected = yaml(
        "
metadata: {}
spec:
  volumes: [{name: secrets, emptyDir: {medium: Memory}}]
  containers: [{name: a}]
  initContainers:
  - {name: fetch, image: registry.example/fetch, args: [--tool, weather]}
  - {name: renew, image: registry.example/renew, restartPolicy: Always, resources: {limits: {memory: 32Mi}},
     securityContext: {runAsUser: 1337, capabilities: {drop: [ALL]}}}
  - {name: i}
",
    );
    for (pointer, fields) in [
        ("/spec/containers/0", given),
        ("/spec/initContainers/0", mounted),
        ("/spec/initContainers/1", mounted),
        ("/spec/initContainers/2", given),
    ] {
        for (field, value) in yaml(fields).as_object().unwrap() {
            expected.pointer_mut(pointer).unwrap()[field] = value.clone();
        }
    }
    assert_eq!(patched(&compiled, &pod), expected);
    // A pod without init containers.
    let after = patched(&compiled, &yaml("{metadata: {}, spec: {containers: [{name: a}]}}"));
    let names: Vec<_> = after["spec"]["initContainers"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["fetch", "renew"]);
}

#[test]
fn containers_are_not_added_if_their_name_or_volume_is_taken() {
    let compiled = compiled(CONTAINERS);
    let names = |after: &Json| {
        let found = after["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
        found.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (pod, expected) in [
        ("{containers: [{name: renew}]}", vec!["fetch"]),
        ("{containers: [{name: a}], initContainers: [{name: fetch}]}", vec!["renew", "fetch"]),
        ("{containers: [{name: a}], volumes: [{name: secrets, emptyDir: {medium: Memory}}]}", vec!["fetch", "renew"]),
        ("{containers: [{name: a}], volumes: [{name: secrets, emptyDir: {}}]}", vec![]),
        ("{containers: [{name: fetch}, {name: renew}]}", vec![]),
        ("{containers: [{name: a, securityContext: {windowsOptions: {hostProcess: true}}}]}", vec![]),
        ("{containers: [{name: a}], securityContext: {windowsOptions: {hostProcess: true}}}", vec![]),
    ] {
        let after = patched(&compiled, &json!({"metadata": {}, "spec": yaml(pod)}));
        assert_eq!(names(&after), expected, "{pod}");
    }
    let many: Vec<_> = (0..33).map(|index| json!({"name": format!("c{index}")})).collect();
    let after = patched(&compiled, &json!({"metadata": {}, "spec": {"containers": many}}));
    assert_eq!(after["spec"]["initContainers"], Json::Null);
}

#[test]
fn containers_mount_volumes_of_their_entry_only() {
    let found = refused(
        "[{name: a, volumes: [{name: v, emptyDir: {}}]},
          {name: b, containers: [{name: c, type: Init, image: x, volumeMounts: [{name: v, mountPath: /v}]}]}]",
    );
    let expected = "spec.mutation.inject[1].containers[0].volumeMounts[0].name: the entry has no volume v";
    assert!(found.contains(expected), "{found}");
    let containers: Vec<_> =
        (0..9).map(|index| json!({"name": format!("c{index}"), "type": "Init", "image": "x"})).collect();
    let found = refused(&json!([{"name": "a", "containers": containers}]).to_string());
    assert!(found.contains("9 containers in all entries, at most 8 are allowed"), "{found}");
}

//! Objects of `spec.generate`: writes, repairs, deletion and failures. The clock is the test's.

use std::time::Duration;

use http::Method;
use kube::{core::ObjectMeta, runtime::watcher::Event};
use palisade_api::names;
use palisade_compiler::ObjectType;
use serde_json::{Value as Json, json};

use super::{
    PROFILES, Setup,
    mock::{Mock, Respond},
    namespace, profile,
};
use crate::{object_name::NamespaceName, options::Options};

fn quotas() -> ObjectType {
    ObjectType { api_version: "v1".to_owned(), kind: "ResourceQuota".to_owned() }
}

fn options() -> Options {
    Options { generate: vec!["v1/ResourceQuota/resourcequotas".parse().unwrap()], ..Options::default() }
}

fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/resourcequotas/tool")
}

fn template() -> Json {
    json!({"name": "quota", "template": {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tool"}, "spec": {"hard": {"pods": "$uid"}},
    }})
}

/// A controller that has listed no generated object yet.
fn unlisted(namespaces: usize) -> Setup {
    let names: Vec<_> = (0..namespaces).map(|n| format!("n{n}")).collect();
    Setup::with_options(Mock::start().0, &names.iter().map(String::as_str).collect::<Vec<_>>(), &options())
}

fn listed(setup: &Setup) {
    let objects = &setup.cx.store.objects;
    objects.observe(&quotas(), Event::Init);
    for object in setup.mock.list("resourcequotas") {
        objects.observe(&quotas(), Event::InitApply(meta(&object)));
    }
    objects.observe(&quotas(), Event::InitDone);
}

fn setup(namespaces: usize) -> Setup {
    let setup = unlisted(namespaces);
    listed(&setup);
    setup
}

fn meta(object: &Json) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap()
}

fn write(setup: &Setup, generation: i64, generate: &[Json]) {
    let mut profile = profile("tools", generation, 100);
    profile["spec"]["generate"] = generate.into();
    setup.observe(&profile);
}

/// The watch shows an object.
fn show(setup: &Setup, event: Event<ObjectMeta>) {
    setup.cx.queues.objects.trigger(setup.cx.store.objects.observe(&quotas(), event));
}

/// Another client changes the value of a field, and so takes it from its owner.
fn edit(setup: &Setup, at: &str) {
    let mut object = setup.mock.get(at).unwrap();
    object["spec"]["hard"]["pods"] = json!("1000000");
    object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:hard"] = json!({".": {}});
    object["metadata"]["resourceVersion"] = setup.mock.next_version().into();
    setup.mock.put(at, object.clone());
    show(setup, Event::Apply(meta(&object)));
}

/// The writes of objects since the last time.
fn writes(setup: &Setup) -> Vec<String> {
    let asked = setup.mock.asked().into_iter().filter(|asked| asked.is_write() && asked.is_of("resourcequotas"));
    asked.map(|asked| format!("{} {}", asked.method, asked.path)).collect()
}

async fn generated(setup: &Setup, reason: &str) -> (String, Json) {
    let (_, message) = setup.condition("tools", "Generated", reason).await;
    let status = setup.mock.get(&format!("{PROFILES}/tools/status")).unwrap();
    (message, status["status"]["generated"].clone())
}

async fn ready(namespaces: usize) -> Setup {
    let setup = setup(namespaces);
    setup.run();
    write(&setup, 1, &[template()]);
    generated(&setup, "ObjectsReady").await;
    setup
}

#[tokio::test(start_paused = true)]
async fn each_selected_namespace_gets_its_objects() {
    let setup = ready(3).await;
    let (message, status) = generated(&setup, "ObjectsReady").await;
    assert_eq!(message, "3 objects ready");
    assert_eq!(status, json!({"desired": 3, "ready": 3, "failedNamespaces": 0}));
    let quota = setup.mock.get(&path("n1")).unwrap();
    assert_eq!(quota["spec"], json!({"hard": {"pods": 50001}}));
    assert_eq!(quota["metadata"]["labels"][names::TEMPLATE_LABEL], "quota");
    // A new namespace.
    setup.add_namespace("new");
    setup.cx.queues.objects.trigger([NamespaceName::new("new")]);
    let took = setup.until("an object", |mock| mock.get(&path("new")).is_some()).await;
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_no_object() {
    let first = ready(5).await;
    first.cx.supervisor.stop().cancel();
    let next = first.restarted(&["n0", "n1", "n2", "n3", "n4"]);
    next.mock.asked();
    next.run();
    // Before its list, nothing is known.
    tokio::time::sleep(Duration::from_secs(10)).await;
    listed(&next);
    next.cx.queues.objects.trigger((0..5).map(|n| NamespaceName::new(format!("n{n}"))));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(writes(&next), Vec::<String>::new());
    assert_eq!(generated(&next, "ObjectsReady").await.1["ready"], 5);
}

#[tokio::test(start_paused = true)]
async fn changed_and_deleted_objects_are_repaired_at_once() {
    let setup = ready(2).await;
    writes(&setup);
    let at = path("n1");
    edit(&setup, &at);
    let right = |mock: &Mock| mock.get(&at).is_some_and(|object| object["spec"]["hard"]["pods"] == 50001);
    let took = setup.until("repaired", right).await;
    assert!(took < Duration::from_millis(200), "{took:?}");
    let gone = setup.mock.remove(&at);
    show(&setup, Event::Delete(meta(&gone)));
    let took = setup.until("created again", right).await;
    assert!(took < Duration::from_millis(200), "{took:?}");
    assert_eq!(writes(&setup), [format!("PATCH {at}"), format!("PATCH {at}")]);
}

#[tokio::test(start_paused = true)]
async fn repairs_of_an_object_are_limited() {
    let setup = ready(1).await;
    writes(&setup);
    let at = path("n0");
    for _ in 0..600 {
        edit(&setup, &at);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let in_a_minute = writes(&setup).len();
    assert!((10..=21).contains(&in_a_minute), "{in_a_minute} writes");
    let (message, _) = generated(&setup, "ObjectsFailed").await;
    assert!(message.contains("another client changes it repeatedly"), "{message}");
    // The last change is repaired, too.
    generated(&setup, "ObjectsReady").await;
    assert_eq!(setup.mock.get(&at).unwrap()["spec"]["hard"]["pods"], 50001);
}

#[tokio::test(start_paused = true)]
async fn a_failing_namespace_delays_no_other() {
    let setup = setup(60);
    let (hangs, refused) = (path("n3"), path("n5"));
    let at = [hangs.clone(), refused.clone(), path("n6"), path("n7"), path("n8")];
    setup.mock.rule(move |asked| match at.iter().position(|path| *path == asked.path) {
        Some(1) => Respond::Error(422),
        Some(_) => Respond::Never,
        None => Respond::Normally,
    });
    setup.run();
    write(&setup, 1, &[template()]);
    // Four requests that hang take all places for a second.
    let took = setup.until("the others", |mock| mock.list("resourcequotas").len() == 55).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    let at = format!("{PROFILES}/tools/status");
    setup.until("failures", |mock| mock.get(&at).unwrap()["status"]["generated"]["failedNamespaces"] == 5).await;
    let (message, status) = generated(&setup, "ObjectsFailed").await;
    assert!(message.starts_with("55 of 60 objects are ready; failed in 5 namespaces, first n3: "), "{message}");
    assert_eq!(status["failures"][1]["name"], "n5");
    // Failures are no reason to call the profile not enforced.
    assert_eq!(setup.condition("tools", "Programmed", "Programmed").await.0, "True");
    setup.mock.rule(|_| Respond::Normally);
    generated(&setup, "ObjectsReady").await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_removed_with_their_template_and_with_the_label_of_the_namespace() {
    let setup = ready(3).await;
    writes(&setup);
    let mut left = namespace("n1");
    left.metadata.labels = None;
    setup.cx.store.observe_namespace(Event::Apply(left));
    setup.cx.queues.objects.trigger([NamespaceName::new("n1")]);
    setup.until("pruned", |mock| mock.get(&path("n1")).is_none()).await;
    show(
        &setup,
        Event::Delete(meta(&json!({"metadata": {"name": "tool", "namespace": "n1", "resourceVersion": "9000"}}))),
    );
    // As an orphan, it loses only what marks it.
    let mut orphan = template();
    orphan["deletionPolicy"] = json!("Orphan");
    write(&setup, 2, &[orphan]);
    let is_orphan = |mock: &Mock, name: &str| {
        let object = mock.get(&path(name)).unwrap_or_default();
        object["metadata"]["annotations"][names::DELETION_POLICY_ANNOTATION] == "Orphan"
    };
    setup.until("orphans", |mock| is_orphan(mock, "n0") && is_orphan(mock, "n2")).await;
    write(&setup, 3, &[]);
    let is_released =
        |object: Json| object["metadata"]["labels"] == json!({}) && object["spec"]["hard"]["pods"] == 50001;
    setup
        .until("released", |mock| ["n0", "n2"].iter().all(|name| mock.get(&path(name)).is_some_and(is_released)))
        .await;
}

#[tokio::test(start_paused = true)]
async fn namespace_that_is_being_deleted_is_left_alone() {
    let setup = ready(2).await;
    let mut going = namespace("n1");
    going.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    setup.cx.store.observe_namespace(Event::Apply(going));
    writes(&setup);
    let gone = setup.mock.remove(&path("n1"));
    show(&setup, Event::Delete(meta(&gone)));
    edit(&setup, &path("n0"));
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(writes(&setup), [format!("PATCH {}", path("n0"))]);
}

#[tokio::test(start_paused = true)]
async fn object_of_another_owner_is_reported_and_taken_over_only_if_adopted() {
    let setup = setup(2);
    let foreign = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {
            "name": "tool", "namespace": "n1", "uid": "u", "resourceVersion": "7",
            "managedFields": [{"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"hard": {"pods": "1"}},
    });
    setup.mock.put(&path("n1"), foreign.clone());
    setup.run();
    write(&setup, 1, &[template()]);
    let (message, _) = generated(&setup, "ObjectsFailed").await;
    assert!(message.contains("first n1: ResourceQuota tool: it exists and belongs to helm"), "{message}");
    assert_eq!(setup.mock.get(&path("n1")), Some(foreign));
    let mut adopting = template();
    adopting["adopt"] = json!(true);
    setup.mock.asked();
    write(&setup, 2, &[adopting]);
    generated(&setup, "ObjectsReady").await;
    let asked = setup.mock.asked();
    let forced: Vec<_> =
        asked.iter().filter(|asked| asked.query.contains("force=true") && asked.path == path("n1")).collect();
    assert_eq!(forced.len(), 1);
    assert_eq!(
        (&forced[0].body["metadata"]["uid"], &forced[0].body["metadata"]["resourceVersion"]),
        (&json!("u"), &json!("7"))
    );
}

#[tokio::test(start_paused = true)]
async fn field_that_another_manager_applied_is_not_taken() {
    let setup = ready(1).await;
    let at = path("n0");
    edit(&setup, &at);
    setup.until("repaired", |mock| mock.get(&at).unwrap()["spec"]["hard"]["pods"] == 50001).await;
    // Without force, the API server answers with a conflict.
    setup.mock.rule(|asked| {
        let apply = asked.method == Method::PATCH && asked.is_of("resourcequotas");
        if apply && !asked.query.contains("force=true") { Respond::Error(409) } else { Respond::Normally }
    });
    let other = |operation: &str| {
        let mut object = setup.mock.get(&at).unwrap();
        let own = object["metadata"]["managedFields"][0].clone();
        object["metadata"]["managedFields"] =
            json!([own, {"manager": "other", "operation": operation, "fieldsV1": {}}]);
        setup.mock.put(&at, object);
        edit(&setup, &at);
    };
    other("Apply");
    let (message, _) = generated(&setup, "ObjectsFailed").await;
    assert!(message.contains("other applied some of its fields"), "{message}");
    assert_eq!(setup.mock.get(&at).unwrap()["spec"]["hard"]["pods"], "1000000");
    // An update is no claim to a field.
    other("Update");
    generated(&setup, "ObjectsReady").await;
    assert_eq!(setup.mock.get(&at).unwrap()["spec"]["hard"]["pods"], 50001);
}

#[tokio::test(start_paused = true)]
async fn deleted_profile_is_kept_until_its_objects_are_deleted() {
    let setup = ready(2).await;
    setup.mock.rule(|asked| {
        if asked.method == Method::DELETE && asked.path == path("n1") { Respond::Error(403) } else { Respond::Normally }
    });
    let mut deleted = profile("tools", 2, 100);
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    setup.observe(&deleted);
    setup.until("deleted", |mock| mock.get(&path("n0")).is_none()).await;
    show(
        &setup,
        Event::Delete(meta(&json!({"metadata": {"name": "tool", "namespace": "n0", "resourceVersion": "9000"}}))),
    );
    tokio::time::sleep(Duration::from_mins(2)).await;
    let at = format!("{PROFILES}/tools");
    assert_eq!(setup.mock.get(&at).unwrap()["metadata"]["finalizers"], json!([names::FINALIZER]));
    let (_, message) = setup.condition("tools", "Enforced", "Deleting").await;
    assert!(message.contains("its objects in namespace n1 could not be deleted"), "{message}");
    setup.mock.rule(|_| Respond::Normally);
    setup.until("deleted", |mock| mock.get(&path("n1")).is_none()).await;
    show(
        &setup,
        Event::Delete(meta(&json!({"metadata": {"name": "tool", "namespace": "n1", "resourceVersion": "9001"}}))),
    );
    setup.until("let go", |mock| mock.get(&at).unwrap()["metadata"]["finalizers"] == json!([])).await;
}

#[tokio::test(start_paused = true)]
async fn kind_without_permission_rejects_the_profile_with_the_value_to_set() {
    let setup = setup(1);
    setup.run();
    let mut other = template();
    other["name"] = json!("limits");
    other["template"]["kind"] = json!("LimitRange");
    write(&setup, 1, &[template(), other]);
    let (status, message) = setup.condition("tools", "Accepted", "InvalidSpec").await;
    assert_eq!(status, "False");
    let expected = "spec.generate[1].template.kind: the controller has no permission to write v1 LimitRange (add \
                    {apiVersion: v1, kind: LimitRange, resource: PLURAL} to generate.kinds in the values of the chart)";
    assert!(message.contains(expected), "{message}");
    assert_eq!(setup.mock.get(&path("n0")), None);
}

#[tokio::test(start_paused = true)]
async fn kind_that_cannot_be_listed_stops_no_enforcement() {
    let setup = unlisted(2);
    setup.run();
    write(&setup, 1, &[template()]);
    setup.in_force("tools", 1).await;
    setup.cx.store.objects.failed(&quotas(), "no such kind".to_owned());
    setup.cx.queues.objects.trigger([NamespaceName::new("n0")]);
    let (message, _) = generated(&setup, "ObjectsFailed").await;
    assert!(message.contains("v1 ResourceQuota cannot be watched: no such kind"), "{message}");
    listed(&setup);
    setup.cx.queues.objects.trigger(["n0", "n1"].map(NamespaceName::new));
    generated(&setup, "ObjectsReady").await;
}

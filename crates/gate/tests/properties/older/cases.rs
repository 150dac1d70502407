//! Profiles, namespaces and pods to compare with: those of the fixtures, and random ones.

use std::collections::BTreeMap;

use palisade_api::{Level, Settings, ToolSecurityProfile, catalogue, settings::all};
use palisade_checks::{Resolved, fixture::Fixture};
use palisade_kube_json::{
    pod,
    workload::{WORKLOADS, Workload},
};
use proptest::{
    prelude::*,
    sample,
    strategy::ValueTree as _,
    test_runner::{Config, RngSeed, TestRunner},
};
use serde_json::{Value as Json, json};

use crate::properties::{PARAMETERS, named, pods, profile, settings, values};

/// A profile, the namespaces that it selects, and pods in them.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The profile's name. No other case of a batch has it.
    pub name: String,
    pub profile: Json,
    pub namespaces: Vec<Json>,
    pub pods: Vec<Subject>,
}

/// A pod to judge.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// Its name in a report.
    pub what: String,
    /// The index of its namespace.
    pub namespace: usize,
    pub pod: Json,
    /// The kinds of workloads that have it as their template.
    pub workloads: Vec<&'static Workload>,
    /// Whether a cluster is asked, too, in which all objects of the profile are in force.
    pub in_cluster: bool,
}

impl Case {
    /// The name of a namespace.
    pub(super) fn namespace(&self, index: usize) -> &str {
        self.namespaces[index]["metadata"]["name"].as_str().unwrap()
    }

    /// Takes settings out of the profile. Whether there was one.
    fn without(&mut self, settings: &[String]) -> bool {
        let mut found = false;
        for (group, setting) in settings.iter().filter_map(|path| path.split_once('.')) {
            let fields = self.profile["spec"].get_mut(group).and_then(Json::as_object_mut);
            found |= fields.and_then(|fields| fields.remove(setting)).is_some();
        }
        without_empty_groups(&mut self.profile["spec"]);
        found
    }
}

/// A group that the other version does not have is no difference if it has no settings.
fn without_empty_groups(spec: &mut Json) {
    spec.as_object_mut().unwrap().retain(|_, group| group != &json!({}));
}

/// Reads a list of settings, as `scheduling.schedulers,images.redirect`.
pub(super) fn paths(text: &str) -> Vec<String> {
    let paths: Vec<_> = text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned).collect();
    for path in &paths {
        assert!(all().any(|setting| setting.path == path), "{path:?} is not a setting");
    }
    paths
}

fn namespace(name: &str, profile: &str, annotations: &BTreeMap<String, String>) -> Json {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"profile": profile}, "annotations": annotations},
    })
}

/// Parameters, each from an annotation.
fn read_annotations(parameters: &mut Json) {
    for parameter in parameters.as_array_mut().into_iter().flatten() {
        let key = annotation(parameter["name"].as_str().unwrap_or_default());
        parameter["sources"] = json!([{"namespaceAnnotation": key}]);
    }
}

fn annotation(parameter: &str) -> String {
    format!("example.org/{parameter}")
}

/// The text that a value has in an annotation.
fn text(value: &Resolved) -> String {
    match value {
        Resolved::Integer(number) => number.to_string(),
        Resolved::Boolean(flag) => flag.to_string(),
        Resolved::String(text) => text.clone(),
        Resolved::StringList(texts) => texts.join(","),
    }
}

/// The cases of the catalogue: each profile with its fixtures, each in a namespace with its values, as a pod and as the
/// template of a Deployment. And the names of those fixtures that have a setting to do without.
pub(super) fn of_fixtures(without: &[String]) -> (Vec<Case>, Vec<String>) {
    let mut cases = BTreeMap::<String, Case>::new();
    let mut left_out = Vec::new();
    for check in catalogue::ALL {
        let fixtures: Vec<Fixture> = serde_saphyr::from_str(check.fixtures).unwrap();
        for fixture in fixtures {
            let mut spec = fixture.spec(&json!({}));
            without_empty_groups(&mut spec);
            read_annotations(&mut spec["parameters"]);
            let count = cases.len();
            let of_check = catalogue::ALL.iter().position(|one| one.id == check.id).unwrap();
            let case = cases.entry(format!("{of_check:02} {spec}")).or_insert_with(|| {
                let name = format!("fixture-{count}");
                spec["namespaceSelector"] = json!({"matchLabels": {"profile": name}});
                let profile = json!({
                    "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile",
                    "metadata": {"name": name}, "spec": spec,
                });
                Case { name, profile, namespaces: vec![], pods: vec![] }
            });
            if case.clone().without(without) {
                left_out.push(format!("{}: {}", check.id, fixture.name));
                continue;
            }
            let annotations = fixture.values().iter().map(|(name, value)| (annotation(name), text(value))).collect();
            let index = case.namespaces.len();
            case.namespaces.push(namespace(&format!("{}-{index}", case.name), &case.name, &annotations));
            case.pods.push(Subject {
                what: format!("{}: {}", check.id, fixture.name),
                namespace: index,
                pod: fixture.pod(),
                workloads: WORKLOADS.iter().filter(|workload| workload.kind == "Deployment").collect(),
                in_cluster: false,
            });
        }
    }
    (cases.into_values().filter(|case| !case.pods.is_empty()).collect(), left_out)
}

/// Other values of the parameters than those that random pods comply with.
const OTHERS: [(&str, &str); 13] = [
    ("uid", "5"),
    ("on", "false"),
    ("off", "true"),
    ("text", "other"),
    ("texts", "default"),
    ("cap", "MKNOD"),
    ("caps", "ALL,CHOWN"),
    ("kind", "Localhost"),
    ("kinds", "Unconfined"),
    ("sysctls", "net.*"),
    ("volume", "nfs"),
    ("volumes", "emptyDir"),
    ("registries", "docker.io"),
];

/// Values that are none: each is a problem of the namespace.
const WRONG: [(&str, &str); 13] = [
    ("uid", "abc"),
    ("on", "perhaps"),
    ("off", ""),
    ("text", " "),
    ("texts", "a,,b"),
    ("cap", ""),
    ("caps", ","),
    ("kind", ""),
    ("kinds", ","),
    ("sysctls", ","),
    ("volume", ""),
    ("volumes", ","),
    ("registries", ","),
];

/// Checks of an admin's own.
fn customs() -> Vec<Json> {
    vec![
        json!({
            "id": "ownHostname", "expression": "size(variables.spec.?hostname.orValue('')) < 9",
            "message": "a long hostname",
        }),
        json!({
            "id": "ownImage", "target": "Containers", "expression": "container.image != 'nginx'",
            "messageExpression": "'image ' + container.image + ' has no registry'",
        }),
        json!({
            "id": "ownTty", "target": "Containers", "expression": "!has(container.tty) || !container.tty",
            "message": "a terminal", "default": {"path": "tty", "value": false},
        }),
        json!({
            "id": "ownVolume", "target": "Volumes", "expression": "volume.?hostPath.?path.orValue('') != '/public'",
            "message": "the public directory",
        }),
        json!({
            "id": "ownCount", "expression": "variables.containers.size() + variables.volumes.size() < 4",
            "messageExpression": "string(variables.containers.size()) + ' containers'",
        }),
    ]
}

/// What a profile says besides its settings.
#[derive(Clone, Debug)]
struct Besides {
    level: Level,
    version: &'static str,
    stages: (&'static str, &'static str),
    exemptions: bool,
    exceptions: Vec<&'static str>,
    ended: bool,
    customs: Vec<Json>,
    /// The ids of the checks whose settings the profile has; all settings where there are none.
    checks: Vec<&'static str>,
}

fn ids() -> Vec<&'static str> {
    catalogue::ALL.iter().map(|check| check.id).collect()
}

prop_compose! {
    fn besides()(
        level in prop_oneof![5 => Just(Level::Privileged), 1 => Just(Level::Baseline), 1 => Just(Level::Restricted)],
        version in prop_oneof![3 => Just("latest"), 2 => sample::select(vec!["v1.0", "v1.24", "v1.25", "v1.33", "v1.35"])],
        pods in prop_oneof![3 => Just("Deny"), 1 => sample::select(vec!["Warn", "Audit"])],
        workloads in prop_oneof![3 => Just("Deny"), 2 => sample::select(vec!["Warn", "Audit", "Off"])],
        exemptions in prop::bool::weighted(0.2),
        exceptions in prop_oneof![
            4 => Just(vec![]),
            1 => sample::subsequence(ids(), 1..6),
        ],
        ended in prop::bool::weighted(0.3),
        customs in prop_oneof![3 => Just(vec![]), 1 => sample::subsequence(customs(), 1..=customs().len())],
        checks in prop_oneof![1 => Just(vec![]), 4 => sample::subsequence(ids(), 1..12)],
    ) -> Besides {
        Besides { level, version, stages: (pods, workloads), exemptions, exceptions, ended, customs, checks }
    }
}

/// The shape of a pod, whether it complies at first, and how it is changed then.
type Made = (pods::Shape, bool, Vec<pods::Change>, usize, usize, bool);

fn made() -> impl Strategy<Value = Made> {
    (
        pods::shape(),
        prop::bool::weighted(0.9),
        prop::collection::vec(pods::change(catalogue::ALL), 0..6),
        prop_oneof![8 => Just(0_usize), 3 => Just(1), 1 => Just(2)],
        0..WORKLOADS.len(),
        prop::bool::weighted(0.1),
    )
}

/// Makes up cases, the same for the same seed.
pub(super) struct Random {
    strategy: BoxedStrategy<(Settings, Besides, Vec<Made>)>,
    without: Vec<String>,
}

impl Random {
    /// Cases with so many pods each, which do without some settings.
    pub(super) fn new(pods: usize, without: Vec<String>) -> Self {
        let strategy = (settings::settings(), besides(), prop::collection::vec(made().boxed(), pods..=pods)).boxed();
        Self { strategy, without }
    }

    /// One batch of them.
    pub(super) fn batch(&self, seed: u64, count: usize) -> Vec<Case> {
        let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        (0..count)
            .map(|index| {
                let (settings, besides, made) = self.strategy.new_tree(&mut runner).unwrap().current();
                self.case(format!("random-{seed}-{index}"), &settings, &besides, made)
            })
            .collect()
    }

    fn case(&self, name: String, settings: &Settings, besides: &Besides, made: Vec<Made>) -> Case {
        let checks = catalogue::ALL.iter().copied().filter(|check| besides.checks.contains(&check.id));
        let few = named(settings, &checks.collect::<Vec<_>>());
        let mut profile = profile(if besides.checks.is_empty() { settings } else { &few }, besides.level);
        profile["metadata"]["name"] = json!(name);
        let spec = &mut profile["spec"];
        spec["namespaceSelector"] = json!({"matchLabels": {"profile": name}});
        spec["baselineVersion"] = json!(besides.version);
        spec["enforcement"] = json!({"pods": besides.stages.0, "workloads": besides.stages.1});
        read_annotations(&mut spec["parameters"]);
        if besides.exemptions {
            spec["exemptions"] = json!({"users": ["exempt"], "groups": ["exempts"], "runtimeClasses": ["kata"]});
        }
        if !besides.exceptions.is_empty() {
            let expires = if besides.ended { "2020-01-01T00:00:00Z" } else { "2099-01-01T00:00:00Z" };
            spec["exceptions"] = json!([{
                "namespaces": [format!("{name}-0")], "checks": besides.exceptions, "reason": "x", "expires": expires,
            }]);
        }
        if !besides.customs.is_empty() {
            spec["customChecks"] = json!(besides.customs);
        }
        let annotations = |values: &[(&str, &str)]| {
            values.iter().map(|(parameter, value)| (annotation(parameter), (*value).to_owned())).collect()
        };
        assert_eq!(OTHERS.map(|(name, _)| name), PARAMETERS.map(|(name, ..)| name));
        let namespaces = [&[][..], &OTHERS, &WRONG].into_iter().enumerate();
        let namespaces = namespaces
            .map(|(index, values)| namespace(&format!("{name}-{index}"), &name, &annotations(values)))
            .collect();
        let mut case = Case { name, profile, namespaces, pods: vec![] };
        case.without(&self.without);
        let parsed: ToolSecurityProfile = serde_json::from_value(case.profile.clone()).unwrap();
        let effective = parsed.spec.effective_settings();
        let subjects = made.into_iter().enumerate();
        case.pods = subjects
            .map(|(index, (shape, complying, changes, namespace, workload, in_cluster))| {
                let mut pod = if complying { shape.complying(&effective, &values()) } else { shape.bare() };
                for change in &changes {
                    change.apply(&mut pod);
                }
                // An exception that ends in 2099 has ended for this one.
                let created = if index % 10 == 9 { "2100-01-01T00:00:00Z" } else { "2026-06-01T00:00:00Z" };
                pod::merge(&mut pod, &json!({"metadata": {"creationTimestamp": created}}));
                let workloads = vec![&WORKLOADS[workload]];
                Subject { what: format!("pod {index}"), namespace, pod, workloads, in_cluster }
            })
            .collect();
        case
    }
}
